"""Checks of what a sampler may do but need not: support, densities, state, threads; `restricted` has restricted draws.

A sampler refuses what it cannot do by a `SamplerError`, which passes.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np

from mcce.arrays import Floats
from mcce.exceptions import SamplerError, listing
from mcce.samplers import ConditionalSampler
from mcce.samplers.base import BASE_MEASURES
from mcce.table import Column
from mcce.testing.requirements import ConformanceError, check, equal, require, require_array
from mcce.testing.tables import DRAWS_PER_ROW, Problem, draw, fit, make_problem, trained

THREADS = 4
_GAP = 1e4  # between two clusters of numbers
_GRID_POINTS = 1001
_DONORS = 30


@check
def check_supports(sampler: ConditionalSampler, seed: int) -> None:
    """Require that supports(), if there is one, supports what is drawn and what is as close, and nothing far away."""
    for kind, problem, fitted in trained(sampler, seed, or_missing=True):
        drawn = draw(fitted, problem.given, seed)
        try:
            supported = fitted.supports(problem.given, drawn)
        except SamplerError:  # a refusal
            return
        where = f"{kind} target" + " with missing values" * problem.has_gaps
        require_array(supported, np.bool_, drawn.size, f"{where}: supports()")
        require(
            supported.all(),
            f"{where}: supports() denies {(~supported).sum()} of {drawn.size} drawn values.",
        )
    if "numeric" in sampler.handles:
        _require_local_support(sampler, seed)


def _require_local_support(sampler: ConditionalSampler, seed: int) -> None:
    """Require the definition for a number in two far-away clusters, from what one row draws."""
    problem = make_problem("numeric", seed, givens=("sex",))
    values = problem.target.values
    split = values + _GAP * (values > np.median(values))
    fitted = fit(sampler, Problem(problem.given, Column(problem.target.feature, split)))
    n = values.size * DRAWS_PER_ROW
    drawn = np.unique(draw(fitted, problem.given.take(np.zeros(n, dtype=np.intp)), seed))
    gaps = np.diff(drawn)
    width = drawn[-1] - drawn[0]
    far = [("below", drawn[0] - width), ("above", drawn[-1] + width)]
    if gaps.max() > 0.5 * width:
        far.append(("between two clusters of", drawn[gaps.argmax()] + 0.5 * gaps.max()))
    for place, value in far:
        supported = fitted.supports(problem.given.take(np.zeros(1, dtype=np.intp)), np.array([value]))
        require(not supported.any(), f"numeric target: supports() takes {value:.4g}, far {place} all draws of its row.")
    near = drawn[:-1] + 0.4 * np.minimum(gaps, np.median(gaps))
    denied = (~fitted.supports(problem.given.take(np.zeros(near.size, dtype=np.intp)), near)).sum()
    require(
        denied == 0,
        f"numeric target: supports() denies {denied} of {near.size} numbers that are closer to a drawn value than "
        "the draws are to each other.",
    )


@check
def check_log_density(sampler: ConditionalSampler, seed: int) -> None:
    """Require that log_density(), if there is one, is finite for draws, and that probabilities sum to 1."""
    for kind, problem, fitted in trained(sampler, seed):
        drawn = draw(fitted, problem.given, seed)
        try:
            density = fitted.log_density(problem.given, drawn)
        except SamplerError:  # a refusal
            return
        require_array(density, np.float64, drawn.size, f"{kind} target: log_density()")
        not_finite = (~np.isfinite(density)).sum()
        require(not_finite == 0, f"{kind} target: log_density() is not finite for {not_finite} drawn values.")
        if kind != "numeric":
            levels = range(problem.target.feature.n_levels)
            each = [np.exp(fitted.log_density(problem.given, np.full(drawn.size, float(level)))) for level in levels]
            total = np.sum(each, axis=0)
            worst = total[np.argmax(np.abs(total - 1.0))]
            require(
                abs(worst - 1.0) < 1e-6,
                f"{kind} target: the levels' probabilities sum to {worst:.6g}, not to 1.",
            )


@check
def check_training_rows(sampler: ConditionalSampler, seed: int) -> None:
    """Require, where it is declared, that log_density() leaves training rows out: they are then less likely."""
    if not sampler.leaves_one_out or "training_rows" not in inspect.signature(sampler.log_density).parameters:
        return
    for kind, problem, fitted in trained(sampler, seed):
        n = problem.given.n_rows
        rows = np.arange(n, dtype=np.int64)
        left_out = fitted.log_density(problem.given, problem.target.values, training_rows=rows)
        require_array(left_out, np.float64, n, f"{kind} target: log_density(training_rows=...)")
        density = fitted.log_density(problem.given, problem.target.values)
        known = np.isfinite(density)
        gain = np.median(left_out[known] - density[known])
        require(gain < 0.0, f"{kind} target: training rows are as likely if they are left out; leave them out.")


@check
def check_min_donors(sampler: ConditionalSampler, seed: int) -> None:
    """Require, of a sampler with this parameter, that no value is drawn from fewer training rows."""
    if "min_donors" not in sampler.get_params(deep=False) or "numeric" not in sampler.handles:
        return
    bound = type(sampler)(**{**sampler.get_params(deep=False), "min_donors": _DONORS})
    problem = make_problem("numeric", seed, by_sex=True)  # all values differ: as many values as donors
    fitted = fit(bound, problem)
    for row in range(0, problem.given.n_rows, 50):
        one_row = problem.given.take(np.full(40 * _DONORS, row))
        n_values = np.unique(draw(fitted, one_row, seed)).size
        require(n_values >= _DONORS, f"min_donors={_DONORS}: row {row} is drawn from {n_values} training rows.")


@check
def check_base_measure(sampler: ConditionalSampler, seed: int) -> None:
    """Require that base_measure(), if there is one, says what log_density() sums or integrates to 1 over."""
    for kind, problem, fitted in trained(sampler, seed, givens=("sex",)):
        try:
            measure: object = fitted.base_measure()
        except SamplerError:  # a refusal
            return
        known = listing(BASE_MEASURES)
        require(measure in BASE_MEASURES, f"{kind} target: base_measure() is {measure!r}; it must be one of {known}.")
        if kind != "numeric":
            require(measure == "counting", f"{kind} target: base_measure() is {measure!r}; levels are counted.")
            continue
        grid = _grid(problem.target.values)
        density = np.exp(fitted.log_density(problem.given.take(np.zeros(grid.size, dtype=np.intp)), grid))
        # a grid of even steps that hits no value, and the training values themselves
        integral = float(density.sum() * (grid[1] - grid[0]))
        values = np.unique(problem.target.values)
        at_values = np.exp(fitted.log_density(problem.given.take(np.zeros(values.size, dtype=np.intp)), values))
        total = float(at_values.sum())
        if measure == "counting":
            require(total < 1.0 + 1e-6, f"numeric target: probabilities of the training values sum to {total:.4g}.")
            require(integral == 0.0, "numeric target: values that were never observed have a probability.")
        else:  # no training value of this problem has point mass
            require(abs(integral - 1.0) < 0.05, f"numeric target: the density integrates to {integral:.4g}, not to 1.")


def _grid(values: Floats) -> Floats:
    """Return even steps, far beyond the values, that hit none of them."""
    reach = np.ptp(values)
    grid = np.linspace(values.min() - reach, values.max() + reach, _GRID_POINTS)
    return np.asarray(grid[:-1] + (grid[1] - grid[0]) / np.e)


@check
def check_state(sampler: ConditionalSampler, seed: int) -> None:
    """Require that get_state() gives arrays and JSON values by name, with which a clone draws the same."""
    for kind, problem, fitted in trained(sampler, seed, or_missing=True):
        try:
            state = fitted.get_state()
        except SamplerError:  # a refusal
            return
        restored = sampler.clone().set_state({name: _stored(name, value) for name, value in state.items()})
        require(isinstance(restored, type(sampler)), "set_state() must return self.")
        drawn = draw(fitted, problem.given, seed)
        same = equal(drawn, draw(restored, problem.given, seed))
        require(same, f"{kind} target: a clone with the state of the fitted sampler draws other values.")


def _stored(name: str, value: Any) -> Any:
    """Return a value as it comes back from a file of arrays and JSON."""
    require(isinstance(name, str), f"get_state() has the key {name!r}; use strings.")
    if isinstance(value, np.ndarray):
        require(
            not value.dtype.hasobject,
            f"get_state()[{name!r}] is an array of objects; use numbers or strings.",
        )
        return value.copy()
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise ConformanceError(f"get_state()[{name!r}] is neither an array nor a JSON value: {error}.") from error


@check
def check_threads(sampler: ConditionalSampler, seed: int) -> None:
    """Require, where thread safety is declared, that fitting and drawing in threads changes nothing."""
    if not sampler.thread_safe:
        return
    for kind, problem, fitted in trained(sampler, seed, by_sex=True):
        parts = [problem.given.take(np.arange(k, problem.given.n_rows, THREADS)) for k in range(THREADS)]
        alone = [draw(fitted, part, seed + k) for k, part in enumerate(parts)]
        together = _at_once(lambda k: draw(fitted, parts[k], seed + k))  # noqa: B023
        require(all(map(equal, alone, together)), f"{kind} target: drawn from {THREADS} threads, values change.")
        refitted = _at_once(lambda k: draw(fit(sampler, problem), parts[k], seed + k))  # noqa: B023
        require(all(map(equal, alone, refitted)), f"{kind} target: fitted in {THREADS} threads, draws change.")


def _at_once(work: Callable[[int], Floats]) -> list[Floats]:
    barrier = Barrier(THREADS)

    def wait_and_work(k: int) -> Floats:
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(wait_and_work, range(THREADS)))
