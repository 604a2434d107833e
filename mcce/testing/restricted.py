"""Checks of restricted draws: inside, distributed as the conditional is there, dead rows, and the mass that is left.

A sampler refuses `within` by a `SamplerError`, which passes.
"""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import stats

from mcce.arrays import Floats
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers import ConditionalSampler, Within
from mcce.samplers.settle import settle
from mcce.testing.requirements import LEVEL, check, require, require_agreement, require_array
from mcce.testing.tables import DRAWS_PER_ROW, Problem, draw, fit, make_problem, trained


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
    if "numeric" in sampler.handles:
        _check_bounds_between_points(sampler, seed)


def _check_bounds_between_points(sampler: ConditionalSampler, seed: int) -> None:
    """Require that draws of whole numbers stay inside bounds that are none, as drawn and as the chain rounds them."""
    problem = make_problem("numeric", seed, givens=("sex",), whole=True)
    n = problem.given.n_rows * DRAWS_PER_ROW
    one_row = problem.given.take(np.zeros(n, dtype=np.intp))
    fitted = fit(sampler, problem)
    low, high = np.rint(np.quantile(draw(fitted, one_row, seed), [0.3, 0.8])) + 0.3
    within = Within(low=np.full(n, low), high=np.full(n, high))
    drawn = draw(fitted, one_row, seed, within)
    settled = settle(drawn, sampler, problem.target.feature, n, within)
    for values, when in ((drawn, ""), (settled, " once they are rounded")):
        outside = ~within.allows(values) & ~np.isnan(values)
        require(
            not outside.any(),
            f"whole numbers, within {low:g} and {high:g}: {outside.sum()} of {n} draws lie outside{when}.",
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
def check_sample_within(sampler: ConditionalSampler, seed: int) -> None:
    """Require that sample_within() says which rows are dead, and gives missing values their probability."""
    for kind, problem, fitted in trained(sampler, seed, or_missing=True, givens=("sex",), by_sex=True):
        n = 2 * problem.given.n_rows
        one_row = problem.given.take(np.zeros(n, dtype=np.intp))
        free = draw(fitted, one_row, seed)
        possible = np.arange(n) % 4 > 0
        is_missing = np.isnan(free)
        known = np.resize(free[~is_missing], n)
        name, within = _restrictions(problem, known, possible)[0]
        for missing in (None, np.arange(n) % 8 > 3):
            allowed = replace(within, missing=missing)
            found = fitted.sample_within(one_row, RowStreams.from_seed(seed + 1, n), allowed)
            where = f"{kind} target{' with missing values' * problem.has_gaps}, sample_within() {name}"
            where += "" if missing is None else " or missing"
            require_array(found.values, np.float64, n, where)
            require_array(found.dead, np.bool_, n, f"{where}: dead")
            outside = (~allowed.allows(found.values) & ~found.dead).sum()
            require(outside == 0, f"{where}: {outside} of {n} draws lie outside, and their rows are not dead.")
            n_nan = (~np.isnan(found.values[found.dead])).sum()
            require(n_nan == 0, f"{where}: {n_nan} dead rows have a value; it must be NaN.")
            may_live = possible if missing is None or not is_missing.any() else possible | missing
            wrong = (found.dead == may_live).sum()
            require(wrong == 0, f"{where}: {wrong} of {n} rows are dead or alive against what can be drawn.")
            if missing is not None and is_missing.any():
                _require_missing_share(found.values[possible & missing], free, within.take(possible), where)


def _require_missing_share(drawn: Floats, free: Floats, within: Within, where: str) -> None:
    """Require that draws are missing as often as unrestricted ones that are allowed or missing."""
    kept = free[within.take(np.zeros(free.size, dtype=np.intp)).allows(free) | np.isnan(free)]
    one, other = (np.isnan(part).astype(np.float64) for part in (drawn, kept))
    require_agreement("categorical", one, other, f"{where}: draws are missing at another rate than unrestricted ones")


@check
def check_log_mass(sampler: ConditionalSampler, seed: int) -> None:
    """Require that log_mass of sample_within(), if it says any, is on average the share of draws that are allowed."""
    for kind, problem, fitted in trained(sampler, seed, or_missing=True, givens=("sex",), by_sex=True):
        n = problem.given.n_rows * DRAWS_PER_ROW
        one_row = problem.given.take(np.zeros(n, dtype=np.intp))
        free, others = (draw(fitted, one_row, seed + k) for k in (0, 2))
        possible = np.arange(n) % 4 > 0
        for name, within in _restrictions(problem, np.resize(free[~np.isnan(free)], n), possible):
            weighted = replace(within, weighted=True)
            found = fitted.sample_within(one_row, RowStreams.from_seed(seed + 1, n), weighted)
            if found.log_mass is None:
                continue
            where = f"{kind} target{' with missing values' * problem.has_gaps}, log_mass of sample_within() {name}"
            require_array(found.log_mass, np.float64, n, where)
            n_wrong = (found.log_mass[found.dead] > -np.inf).sum()
            require(n_wrong == 0, f"{where}: {n_wrong} dead rows have some; it must be -inf.")
            mass = np.exp(found.log_mass[possible])
            allowed = within.take(np.flatnonzero(possible)[[0] * n]).allows(others)
            # the bounds are quantiles of other draws, which they err by as well
            error = np.sqrt(mass.var() / mass.size + 2.0 * allowed.var() / n)
            far = abs(mass.mean() - allowed.mean()) / max(float(error), 1e-12)
            require(
                far < stats.norm.isf(LEVEL / 2.0),
                f"{where} is on average that of {mass.mean():.4g}, and {allowed.mean():.4g} of the unrestricted draws "
                "are allowed.",
            )
