"""Checks of what a sampler may do but need not: restricted draws, support, densities, state, threads.

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
import numpy.typing as npt

from mcce.arrays import Floats
from mcce.exceptions import SamplerError
from mcce.samplers import ConditionalSampler, Within
from mcce.testing.requirements import ConformanceError, check, equal, require, require_agreement, require_array
from mcce.testing.tables import DRAWS_PER_ROW, Problem, draw, fit, trained

THREADS = 4


@check
def check_within(sampler: ConditionalSampler, seed: int) -> None:
    """Require that restricted draws stay inside, follow the conditional there, and are NaN where none is."""
    if "within" not in inspect.signature(sampler.sample).parameters:
        return
    for kind, problem, fitted in trained(sampler, seed, givens=("sex",), by_sex=True):
        n = problem.given.n_rows * DRAWS_PER_ROW
        one_row = problem.given.take(np.zeros(n, dtype=np.intp))
        free = draw(fitted, one_row, seed)
        possible = np.arange(n) % 4 > 0
        for name, within in _restrictions(problem, free, possible):
            try:
                drawn = draw(fitted, one_row, seed + 1, within)
            except SamplerError:  # a refusal
                return
            where = f"{kind} target, within {name}"
            require_array(drawn, np.float64, n, f"{where}: sample()")
            outside = ~within.allows(drawn) & ~np.isnan(drawn)
            require(not outside.any(), f"{where}: {outside.sum()} of {n} draws lie outside.")
            n_drawn = (~np.isnan(drawn[~possible])).sum()
            require(n_drawn == 0, f"{where}: {n_drawn} rows that allow nothing got a value; they must be NaN.")
            n_missing = np.isnan(drawn[possible]).sum()
            require(
                n_missing == 0,
                f"{where}: {n_missing} of {possible.sum()} rows are NaN, though values are possible.",
            )
            everywhere = within.take(np.flatnonzero(possible)[[0] * n])
            require_agreement(
                kind,
                drawn[possible],
                free[everywhere.allows(free)],
                f"{where}: draws do not follow the conditional restricted to it",
            )


def _restrictions(problem: Problem, free: Floats, possible: npt.NDArray[np.bool_]) -> list[tuple[str, Within]]:
    """Restrict to a probable part of the unrestricted draws `free`, and to nothing where not `possible`."""
    found = []
    if problem.kind != "categorical":
        low, high = np.quantile(free, [0.4, 0.9], method="nearest")
        bounds = np.full(free.size, low), np.where(possible, high, low - 1.0)
        found.append(("an interval", Within(low=bounds[0], high=bounds[1])))
        found.append(("a lower bound", Within(low=np.where(possible, low, np.inf))))
        found.append(("an upper bound", Within(high=np.where(possible, high, -np.inf))))
    if problem.kind != "numeric":
        shares = np.bincount(free.astype(np.intp), minlength=problem.target.feature.n_levels)
        two_likeliest = np.isin(np.arange(shares.size), np.argsort(-shares, kind="stable")[:2])
        found.append(("two levels", Within(levels=two_likeliest & possible[:, None])))
    return found


@check
def check_supports(sampler: ConditionalSampler, seed: int) -> None:
    """Require that supports(), if there is one, supports every value drawn."""
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
def check_state(sampler: ConditionalSampler, seed: int) -> None:
    """Require that get_state() gives arrays and JSON values, with which a clone draws the same."""
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
