"""Checks of a sampler: of the contract of `mcce.ConditionalSampler`, and of goodness of fit.

The contract compares a sampler with itself (restricted draws, densities and weighted fits with its free draws), not
with the training data; only `check_marginal`, `check_conditional` and `check_rounded` do that. A check passes if the
sampler raises a `SamplerError` because it does not support an operation.
"""

from __future__ import annotations

import ast
import inspect
import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from mcce import exceptions
from mcce.base.arrays import Floats
from mcce.exceptions import SamplerError, listing
from mcce.rng import RowStreams
from mcce.samplers import ConditionalSampler, Within
from mcce.samplers.base import BASE_MEASURES
from mcce.samplers.rounding import put_on_grid
from mcce.storage.learned import get_state, set_state
from mcce.storage.state import put_back_arrays, take_out_arrays
from mcce.table import KINDS, Column, Kind
from mcce.testing.requirements import (
    LEVEL,
    Check,
    ConformanceError,
    difference,
    equal,
    member_of,
    require,
    require_agreement,
    require_array,
    require_valid,
)
from mcce.testing.tables import DRAWS_PER_ROW, FitProblem, draw, fit, kinds_of, problem_for, trained

CHECKS: list[Check] = []
GOODNESS_OF_FIT: list[Check] = []
check, goodness_of_fit = member_of(CHECKS), member_of(GOODNESS_OF_FIT)


@check
def check_declarations(sampler: ConditionalSampler, seed: int) -> None:
    """Require that `handles` names known kinds, and that check_target() rejects all others."""
    unknown = set(sampler.handles) - set(KINDS)
    require(not unknown, f"handles names {listing(sorted(unknown))}; the kinds are {listing(KINDS)}.")
    require(sampler.handles, f"handles is empty; name at least one of {listing(KINDS)}.")
    for name in ("handles_missing", "thread_safe", "draws_observed", "ignores_given", "leaves_one_out", "carries_over"):
        value = getattr(sampler, name)
        require(isinstance(value, bool), f"the class attribute {name} is {value!r}; it must be True or False.")
    known = ("any", "positive", "counts", "shares")
    require(sampler.numbers in known, f"numbers is {sampler.numbers!r}; it must be one of {listing(known)}.")
    for kind in KINDS:
        feature = problem_for(sampler, kind, seed).target.feature
        try:
            sampler.check_target(feature)
        except SamplerError as refusal:
            require(kind not in sampler.handles, f"check_target rejects {kind}, which handles names: {refusal}")
        else:
            require(kind in sampler.handles, f"check_target accepts {kind}, which handles does not name.")


@check
def check_parameters(sampler: ConditionalSampler, seed: int) -> None:
    """Require that parameters are stored unchanged, kept by fit(), and returned by clone() and repr()."""
    params = sampler.get_params(deep=False)
    for name in params:
        probe = object()
        try:
            stored = getattr(type(sampler)(**{**params, name: probe}), name)
        except Exception as error:
            raise ConformanceError(
                f"the constructor works on its parameter {name!r} ({type(error).__name__}: {error}); "
                "store it untouched, and check it in fit()."
            ) from error
        require(stored is probe, f"the constructor changes its parameter {name!r}; store it untouched.")
    cloned = sampler.clone()
    require(type(cloned) is type(sampler), f"clone() returns a {type(cloned).__name__}.")
    _require_params(cloned, params, "clone() changes")
    require(
        repr(sampler).startswith(f"{type(sampler).__name__}("),
        f"repr() is {sampler!r}; it must begin with the class.",
    )
    if all(map(_is_literal, params.values())):
        written = eval(repr(sampler), {type(sampler).__name__: type(sampler)})
        for name, value in params.items():
            require(
                getattr(written, name) == value,
                f"repr() is {sampler!r}, which loses the value {value!r} of {name!r}.",
            )
    for _, _, fitted in trained(sampler, seed):
        _require_params(fitted, params, "fit() changes")


def _require_params(sampler: ConditionalSampler, params: dict[str, Any], what: str) -> None:
    for name, value in params.items():
        now = getattr(sampler, name)
        require(now is value, f"{what} the parameter {name!r} from {value!r} to {now!r}.")


def _is_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


@check
def check_fit_returns_self(sampler: ConditionalSampler, seed: int) -> None:
    """Require that fit() returns the sampler."""
    for kind in kinds_of(sampler):
        problem = problem_for(sampler, kind, seed)
        fitted = sampler.clone()
        returned: object = fitted.fit(problem.given, problem.target)
        require(returned is fitted, f"fit() returns {returned!r}; it must return self.")


@check
def check_not_fitted(sampler: ConditionalSampler, seed: int) -> None:
    """Require that sample() raises NotFittedError before fit(), and on the clone of a fitted sampler."""
    for kind in kinds_of(sampler):
        problem = problem_for(sampler, kind, seed)
        for unfitted, which in (
            (sampler.clone(), "before fit()"),
            (fit(sampler, problem).clone(), "on a fresh clone"),
        ):
            try:
                draw(unfitted, problem.given, seed)
            except exceptions.NotFittedError:
                continue
            except Exception as error:
                raise ConformanceError(
                    f"sample() {which} raises {type(error).__name__}: {error}; raise NotFittedError "
                    "(self.check_fitted('attribute_') does)."
                ) from error
            raise ConformanceError(f"sample() works {which}; it must raise NotFittedError.")


@check
def check_refit(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a second fit() does not depend on the first."""
    for kind in kinds_of(sampler):
        before = problem_for(sampler, kind, seed, givens=("sex",), missing_target=sampler.handles_missing)
        problem = problem_for(sampler, kind, seed + 1, by_sex=True)
        fitted = fit(sampler, before)
        fitted.fit(problem.given, problem.target)
        same = equal(draw(fitted, problem.given, seed), draw(fit(sampler, problem), problem.given, seed))
        require(same, f"a {kind} target, fitted after another one, is not drawn as by a fresh sampler.")


@check
def check_shape(sampler: ConditionalSampler, seed: int) -> None:
    """Require that sample() returns a float64 array with one value for each row."""
    for kind, problem, fitted in trained(sampler, seed):
        drawn = draw(fitted, problem.given, seed)
        require_array(drawn, np.float64, problem.given.n_rows, f"{kind} target: sample()")


@check
def check_values(sampler: ConditionalSampler, seed: int) -> None:
    """Require that drawn levels were observed, that numbers are finite, and that no draw is missing."""
    for kind, problem, fitted in trained(sampler, seed, unobserved=True):
        drawn = draw(fitted, problem.given.take(problem.copies()), seed)
        require_valid(drawn, problem.target, f"{kind} target")
        require(
            not np.isnan(drawn).any(),
            f"{kind} target without missing values: {np.isnan(drawn).sum()} draws are NaN.",
        )


@check
def check_no_givens(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a table without columns works: the first feature of a chain may have no givens."""
    for kind, problem, fitted in trained(sampler, seed, givens=()):
        drawn = draw(fitted, problem.given, seed)
        require_array(drawn, np.float64, problem.given.n_rows, f"{kind} target, no givens: sample()")
        require_valid(drawn, problem.target, f"{kind} target, no givens")


@check
def check_one_row(sampler: ConditionalSampler, seed: int) -> None:
    """Require that one row and zero rows can be drawn."""
    for kind, problem, fitted in trained(sampler, seed):
        for n in (1, 0):
            drawn = draw(fitted, problem.given.take(np.arange(n)), seed)
            require_array(drawn, np.float64, n, f"{kind} target, {n} row(s) to draw: sample()")


@check
def check_seeds(sampler: ConditionalSampler, seed: int) -> None:
    """Require the same draws from the same streams, and different draws from other streams."""
    for kind, problem, fitted in trained(sampler, seed):
        drawn = draw(fitted, problem.given, seed)
        same = "the same streams gave other draws; draw from `rng` only."
        require(equal(drawn, draw(fitted, problem.given, seed)), f"{kind} target, drawn again: {same}")
        require(
            equal(drawn, draw(fit(sampler, problem), problem.given, seed)),
            f"{kind} target, fitted again: {same}",
        )
        changed = not equal(drawn, draw(fitted, problem.given, seed + 1))
        require(changed, f"{kind} target: another seed gave the same draws; draw from `rng` only.")


@check
def check_rows_independent(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a row's draw does not depend on the other rows, their order or their number."""
    for kind, problem, fitted in trained(sampler, seed):
        n = problem.given.n_rows
        drawn = draw(fitted, problem.given, seed)
        for what, rows in (
            ("in another order", np.random.default_rng(seed).permutation(n)),
            ("without the others", np.arange(5, n, 7)),
        ):
            again = fitted.sample(problem.given.take(rows), RowStreams.from_seed(seed, n).take(rows))
            require(
                equal(again, drawn[rows]),
                f"{kind} target: rows drawn {what} get other values; draw each row independently.",
            )


@check
def check_global_state(sampler: ConditionalSampler, seed: int) -> None:
    """Require that the global generators of numpy and of random are neither read nor changed."""
    kept = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        for kind in kinds_of(sampler):
            problem = problem_for(sampler, kind, seed)
            drawn = []
            for state in (1, 2):
                np.random.seed(state)  # noqa: NPY002
                random.seed(state)
                before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
                drawn.append(draw(fit(sampler, problem), problem.given, seed))
                after = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
                require(
                    before == after,
                    f"{kind} target: the state of a global random generator changed; draw from `rng` only.",
                )
            require(equal(*drawn), f"{kind} target: draws depend on global random state; draw from `rng` only.")
    finally:
        np.random.set_state(kept[0])  # noqa: NPY002
        random.setstate(kept[1])


@check
def check_inputs_unchanged(sampler: ConditionalSampler, seed: int) -> None:
    """Require that fit() and sample() do not change their input."""
    for kind in kinds_of(sampler):
        problem = problem_for(sampler, kind, seed)
        given, target = problem.given.matrix.copy(), problem.target.values.copy()
        fitted = fit(sampler, problem)
        require(
            equal(given, problem.given.matrix),
            f"{kind} target: fit() writes into given.matrix; copy it first.",
        )
        require(
            equal(target, problem.target.values),
            f"{kind} target: fit() writes into target.values; copy it first.",
        )
        draw(fitted, problem.given, seed)
        require(
            equal(given, problem.given.matrix),
            f"{kind} target: sample() writes into given.matrix; copy it first.",
        )


@check
def check_missing(sampler: ConditionalSampler, seed: int) -> None:
    """Require, where missing values are handled, that draws are missing only if training values were."""
    if not sampler.handles_missing:
        return
    for kind in kinds_of(sampler):
        for givens, target in ((True, False), (False, True), (True, True)):
            problem = problem_for(sampler, kind, seed, missing_givens=givens, missing_target=target)
            holders = " and ".join(["the givens"] * givens + ["the target"] * target)
            where = f"{kind} target, missing values in {holders}"
            drawn = draw(fit(sampler, problem), problem.given, seed)
            require_valid(drawn, problem.target, where)
            require(target or not np.isnan(drawn).any(), f"{where}: {np.isnan(drawn).sum()} draws are NaN.")
            require(not np.isnan(drawn).all(), f"{where}: all draws are NaN.")


@goodness_of_fit
def check_marginal(sampler: ConditionalSampler, seed: int) -> None:
    """Goodness of fit: require the training distribution, given training rows that are independent of the target."""
    for kind, problem, fitted in trained(sampler, seed):
        drawn = draw(fitted, problem.given.take(problem.copies()), seed)
        require_agreement(
            kind, drawn, problem.target.values, f"{kind} target: draws are not distributed as the training values"
        )


@goodness_of_fit
def check_conditional(sampler: ConditionalSampler, seed: int) -> None:
    """Goodness of fit: require the training distribution within each level of a given that shifts the target."""
    if sampler.ignores_given:
        return
    for kind, problem, fitted in trained(sampler, seed, givens=("sex",), by_sex=True):
        rows = problem.copies()
        drawn = draw(fitted, problem.given.take(rows), seed)
        sex = problem.given.matrix[:, 0]
        for level in (0.0, 1.0):
            require_agreement(
                kind,
                drawn[sex[rows] == level],
                problem.target.values[sex == level],
                f"{kind} target: given level {level:.0f} of a two-level column, draws are not distributed as the "
                "training values",
            )


@check
def check_given(sampler: ConditionalSampler, seed: int) -> None:
    """Require that draws depend on a two-level given that shifts the target far, unless `ignores_given` is declared."""
    if sampler.ignores_given:
        return
    for kind, problem, fitted in trained(sampler, seed, givens=("sex",), by_sex=True):
        rows = problem.copies()
        drawn = draw(fitted, problem.given.take(rows), seed)
        sex = problem.given.matrix[rows, 0]
        p = difference(kind, drawn[sex == 0.0], drawn[sex == 1.0])[0]
        require(
            p < LEVEL,
            f"{kind} target: draws are the same given both levels of a column that moves the target far (p = {p:.2g}). "
            "If the sampler ignores the givens on purpose, declare ignores_given = True.",
        )


@check
def check_grid(sampler: ConditionalSampler, seed: int) -> None:
    """Require that draws rounded by a chain can be stored in a column of integers or of tenths.

    With `draws_observed`, only training values may be drawn.
    """
    for where, problem, raw, on_grid in _on_grids(sampler, seed):
        n, feature = raw.size, problem.target.feature
        if sampler.draws_observed:
            new = ~np.isin(raw, problem.target.values)
            require(
                not new.any(),
                f"{where}: {new.sum()} of {n} draws are not training values, contrary to draws_observed.",
            )
        seen = feature.encode(pd.Series(feature.decode(on_grid)), "the draws")
        require(equal(seen, on_grid), f"{where}: draws change when they are written as {feature.dtype}.")


@goodness_of_fit
def check_rounded(sampler: ConditionalSampler, seed: int) -> None:
    """Goodness of fit: require the training distribution of integers and tenths, from draws that a chain has rounded.

    The draws of a sampler that truncates them are half a unit too low.
    """
    for where, problem, _, on_grid in _on_grids(sampler, seed):
        require_agreement(
            "numeric",
            on_grid,
            problem.target.values,
            f"{where}: draws, rounded to the nearest, are not distributed as the training values",
            " Leave the rounding to the chain.",
        )


def _on_grids(sampler: ConditionalSampler, seed: int) -> Iterator[tuple[str, FitProblem, Floats, Floats]]:
    """Yield problems with a target on a grid: the name, the draws, and the draws rounded by a chain."""
    if "numeric" not in sampler.handles:
        return
    for name, what in (("whole", "whole numbers"), ("tenths", "tenths")):
        if (sampler.numbers, name) in (("shares", "whole"), ("counts", "tenths")):
            continue
        problem = problem_for(sampler, "numeric", seed, givens=("sex",), **{name: True})
        given = problem.given.take(problem.copies())
        raw = draw(fit(sampler, problem), given, seed)
        yield f"numeric target of {what}", problem, raw, put_on_grid(raw, sampler, problem.target.feature, raw.size)


@check
def check_weights(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a sampler which supports weights uses them: values of triple weight are drawn more often."""
    if not sampler.takes_weights:
        return
    for kind in kinds_of(sampler):
        problem = problem_for(sampler, kind, seed, givens=("sex",))
        values = problem.target.values
        heavy = values > np.median(values) if kind == "numeric" else values == values[0]
        try:
            sampler.check_weights(problem.target.feature)
        except SamplerError:  # a refusal
            return
        weighted = Column(problem.target.feature, values, np.where(heavy, 3.0, 1.0))
        draws = [
            draw(fit(sampler, FitProblem(problem.given, each)), problem.given, seed)
            for each in (problem.target, weighted)
        ]
        before, found = (
            float((drawn > np.median(values)).mean() if kind == "numeric" else (drawn == values[0]).mean())
            for drawn in draws
        )
        plain = float(heavy.mean())
        wanted = 3.0 * plain / (3.0 * plain + 1.0 - plain)
        require(
            found - before > (wanted - plain) / 2.0,  # a normal distribution, for example, changes its mean only
            f"{kind} target: values of {wanted:.0%} of the weight are {found:.0%} of the draws, and {before:.0%} "
            "without weights; use target.weights in fit(), or do not declare takes_weights.",
        )


@check
def check_within(sampler: ConditionalSampler, seed: int) -> None:
    """Require that restricted draws stay inside, follow the conditional there, and are NaN if nothing is allowed."""
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
    if "numeric" in sampler.handles and sampler.numbers != "shares":
        _check_bounds_between_points(sampler, seed)


def _check_bounds_between_points(sampler: ConditionalSampler, seed: int) -> None:
    """Require that draws of integers stay inside non-integer bounds, before and after rounding by the chain."""
    problem = problem_for(sampler, "numeric", seed, givens=("sex",), whole=True)
    n = problem.given.n_rows * DRAWS_PER_ROW
    one_row = problem.given.take(np.zeros(n, dtype=np.intp))
    fitted = fit(sampler, problem)
    low, high = np.rint(np.quantile(draw(fitted, one_row, seed), [0.3, 0.8])) + 0.3
    within = Within(low=np.full(n, low), high=np.full(n, high))
    drawn = draw(fitted, one_row, seed, within)
    on_grid = put_on_grid(drawn, sampler, problem.target.feature, n, within)
    for values, when in ((drawn, ""), (on_grid, " once they are rounded")):
        outside = ~within.allows(values) & ~np.isnan(values)
        require(
            not outside.any(),
            f"whole numbers, within {low:g} and {high:g}: {outside.sum()} of {n} draws lie outside{when}.",
        )


def _restrictions(problem: FitProblem, free: Floats, possible: npt.NDArray[np.bool_]) -> list[tuple[str, Within]]:
    """Return restrictions to a probable part of the unrestricted draws `free`; empty ones where not `possible`."""
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
    """Require that sample_within() marks the rejected rows, and draws missing values with their probability."""
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
            require_array(found.rejected, np.bool_, n, f"{where}: rejected")
            outside = (~allowed.allows(found.values) & ~found.rejected).sum()
            require(outside == 0, f"{where}: {outside} of {n} draws lie outside, and their rows are not rejected.")
            n_nan = (~np.isnan(found.values[found.rejected])).sum()
            require(n_nan == 0, f"{where}: {n_nan} rejected rows have a value; it must be NaN.")
            may_be_drawn = possible if missing is None or not is_missing.any() else possible | missing
            wrong = (found.rejected == may_be_drawn).sum()
            require(wrong == 0, f"{where}: {wrong} of {n} rows are wrongly rejected or wrongly accepted.")
            if missing is not None and is_missing.any():
                _require_missing_share(found.values[possible & missing], free, within.take(possible), where)


def _require_missing_share(drawn: Floats, free: Floats, within: Within, where: str) -> None:
    """Require that draws are missing as often as unrestricted ones that are allowed or missing."""
    kept = free[within.take(np.zeros(free.size, dtype=np.intp)).allows(free) | np.isnan(free)]
    one, other = (np.isnan(part).astype(np.float64) for part in (drawn, kept))
    require_agreement("categorical", one, other, f"{where}: draws are missing at another rate than unrestricted ones")


@check
def check_log_mass(sampler: ConditionalSampler, seed: int) -> None:
    """Require that log_mass of sample_within(), if given, is on average the share of allowed draws."""
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
            n_wrong = (found.log_mass[found.rejected] > -np.inf).sum()
            require(n_wrong == 0, f"{where}: {n_wrong} rejected rows have a finite value; it must be -inf.")
            mass = np.exp(found.log_mass[possible])
            allowed = within.take(np.flatnonzero(possible)[[0] * n]).allows(others)
            # the bounds are quantiles of other draws and add their own error
            error = np.sqrt(mass.var() / mass.size + 2.0 * allowed.var() / n)
            far = abs(mass.mean() - allowed.mean()) / max(float(error), 1e-12)
            require(
                far < stats.norm.isf(LEVEL / 2.0),
                f"{where} corresponds to a mean share of {mass.mean():.4g}, and {allowed.mean():.4g} of the free draws "
                "are allowed.",
            )


THREADS = 4
_GAP = 1e4  # between two clusters of numbers
_BEYOND = 1e6  # widths of the draws: a heavy tail may reach one or two widths beyond the draws
_CLUSTER = 0.1  # least share of the draws in a cluster
_GRID_POINTS = 1001
_TAIL = 0.02  # share of the draws at each end, whose tail may be long
_SMOOTHED = 0.15  # share of the draws that a smoothed density may have moved outside
_DONORS = 30
_ROUNDING = 1e-6  # tolerance of a number at its own rank, as a share of the range of the draws
ONE = np.zeros(1, dtype=np.intp)


@check
def check_supports(sampler: ConditionalSampler, seed: int) -> None:
    """Require that supports(), if given, accepts drawn values and values close to them, and rejects distant ones."""
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
            f"{where}: supports() rejects {(~supported).sum()} of {drawn.size} drawn values.",
        )
    if "numeric" in sampler.handles and sampler.numbers != "shares":
        _require_local_support(sampler, seed)


def _require_local_support(sampler: ConditionalSampler, seed: int) -> None:
    """Require the same of the draws of one row, for a number in two distant clusters."""
    problem = problem_for(sampler, "numeric", seed, givens=("sex",))
    values = problem.target.values
    split = values + _GAP * (values > np.median(values)) * (sampler.numbers != "counts")
    fitted = fit(sampler, FitProblem(problem.given, Column(problem.target.feature, split)))
    n = values.size * DRAWS_PER_ROW
    free = draw(fitted, problem.given.take(np.zeros(n, dtype=np.intp)), seed)
    drawn = np.unique(free)
    gaps = np.diff(drawn)
    width = drawn[-1] - drawn[0]
    beyond = width if sampler.draws_observed else _BEYOND * width
    far = [("below", drawn[0] - beyond), ("above", drawn[-1] + beyond)]
    middle = drawn[gaps.argmax()] + 0.5 * gaps.max()
    if gaps.max() > 0.5 * width and _CLUSTER < (free < middle).mean() < 1.0 - _CLUSTER:
        far.append(("between two clusters of", middle))
    for place, value in far:
        supported = fitted.supports(problem.given.take(np.zeros(1, dtype=np.intp)), np.array([value]))
        require(not supported.any(), f"numeric target: supports() accepts {value:.4g}, far {place} its draws.")
    near = drawn[:-1] + 0.4 * np.minimum(gaps, np.median(gaps)) * (sampler.numbers != "counts")
    denied = (~fitted.supports(problem.given.take(np.zeros(near.size, dtype=np.intp)), near)).sum()
    require(
        denied == 0,
        f"numeric target: supports() rejects {denied} of {near.size} numbers that are closer to a drawn value than "
        "the draws are to each other.",
    )


@check
def check_log_density(sampler: ConditionalSampler, seed: int) -> None:
    """Require that log_density(), if given, is finite for draws, and that probabilities sum to 1."""
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
    """Require, where declared, that log_density() can leave training rows out: they are then less likely."""
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
        require(gain < 0.0, f"{kind} target: training rows are not less likely when left out; leave them out.")


@check
def check_min_donors(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a sampler with this parameter draws from at least that many training rows."""
    if "min_donors" not in sampler.get_params(deep=False) or "numeric" not in sampler.handles:
        return
    bound = type(sampler)(**{**sampler.get_params(deep=False), "min_donors": _DONORS})
    problem = problem_for(sampler, "numeric", seed, by_sex=True)  # all values differ: as many values as donors
    fitted = fit(bound, problem)
    for row in range(0, problem.given.n_rows, 50):
        one_row = problem.given.take(np.full(40 * _DONORS, row))
        n_values = np.unique(draw(fitted, one_row, seed)).size
        require(n_values >= _DONORS, f"min_donors={_DONORS}: row {row} is drawn from {n_values} training rows.")


@check
def check_ranks(sampler: ConditionalSampler, seed: int) -> None:
    """Require that at_ranks(), if given, is the inverse of ranks(): it returns each draw at its rank."""
    for kind, problem, fitted, where in _with_ranks(sampler, seed):
        given = problem.given.take(np.arange(problem.given.n_rows))
        drawn = draw(fitted, given, seed)
        ranks = fitted.ranks(given, drawn, RowStreams.from_seed(seed + 1, drawn.size))
        require_array(ranks, np.float64, drawn.size, f"{where}: ranks()")
        outside = (~((ranks >= 0.0) & (ranks <= 1.0))).sum()
        require(outside == 0, f"{where}: {outside} of {drawn.size} ranks are not between 0 and 1.")
        back = fitted.at_ranks(given, ranks)
        require_array(back, np.float64, drawn.size, f"{where}: at_ranks()")
        exact = kind != "numeric" or fitted.draws_observed
        slack = 0.0 if exact else _ROUNDING * float(np.nanmax(drawn) - np.nanmin(drawn))
        wrong = ~((np.abs(back - drawn) <= slack) | (np.isnan(back) & np.isnan(drawn)))
        require(
            not wrong.any(),
            f"{where}: at_ranks() at the ranks of {wrong.sum()} of {drawn.size} draws returns other values, as "
            f"{back[wrong][:1]} instead of {drawn[wrong][:1]}.",
        )


@check
def check_uniform_ranks(sampler: ConditionalSampler, seed: int) -> None:
    """Require that ranks(), if given, are uniform for new draws, also within each level of a given."""
    for _, problem, fitted, where in _with_ranks(sampler, seed):
        given = problem.given.take(problem.copies())
        sex = given.matrix[:, 0].copy()  # a sampler may overwrite it, which another check reports
        drawn = draw(fitted, given, seed)
        ranks = fitted.ranks(given, drawn, RowStreams.from_seed(seed + 1, drawn.size))
        for level in (0.0, 1.0):
            p = float(stats.kstest(ranks[sex == level], "uniform").pvalue)
            require(
                p > LEVEL,
                f"{where}: ranks() of draws are not uniform (Kolmogorov-Smirnov p = {p:.2g}). Randomise them within "
                "levels, missing values and numbers with point mass.",
            )


@check
def check_at_ranks(sampler: ConditionalSampler, seed: int) -> None:
    """Require that at_ranks(), if given, has the distribution of the draws at uniform ranks."""
    for kind, problem, fitted, where in _with_ranks(sampler, seed):
        given = problem.given.take(problem.copies(1))
        u = RowStreams.from_seed(seed + 1, given.n_rows).uniform()
        at, drawn = fitted.at_ranks(given, u), draw(fitted, given, seed)
        require_agreement(
            "categorical",
            np.isnan(at).astype(np.float64),
            np.isnan(drawn).astype(np.float64),
            f"{where}: at_ranks() at uniform ranks is missing at another rate than draws",
        )
        require_agreement(
            kind,
            at[~np.isnan(at)],
            drawn[~np.isnan(drawn)],
            f"{where}: at_ranks() at uniform ranks is not distributed as the draws",
        )


def _with_ranks(sampler: ConditionalSampler, seed: int) -> Iterator[tuple[Kind, FitProblem, ConditionalSampler, str]]:
    """Yield the fits of a sampler with ranks, given the column that shifts the target; none if unsupported."""
    for kind, problem, fitted in trained(sampler, seed, or_missing=True, givens=("sex",), by_sex=True):
        try:
            fitted.ranks(problem.given.take(ONE), problem.target.values[ONE], RowStreams.from_seed(seed, 1))
        except SamplerError:  # a refusal
            return
        yield kind, problem, fitted, f"{kind} target" + " with missing values" * problem.has_gaps


@check
def check_base_measure(sampler: ConditionalSampler, seed: int) -> None:
    """Require that log_density() sums or integrates over base_measure() to the share of the draws.

    A sampler without base_measure() passes.
    """
    for kind, problem, fitted in trained(sampler, seed, givens=("sex",)):
        try:
            measure: object = fitted.base_measure()
        except SamplerError:  # a refusal
            return
        known = listing(BASE_MEASURES)
        require(measure in BASE_MEASURES, f"{kind} target: base_measure() is {measure!r}; it must be one of {known}.")
        if kind != "numeric":
            require(measure == "counting", f"{kind} target: base_measure() is {measure!r}; levels need 'counting'.")
            continue
        one_row = np.zeros(problem.given.n_rows * DRAWS_PER_ROW, dtype=np.intp)
        low, high = np.quantile(draw(fitted, problem.given.take(one_row), seed), [_TAIL, 1.0 - _TAIL])
        grid = _grid(low, high)
        density = np.exp(fitted.log_density(problem.given.take(np.zeros(grid.size, dtype=np.intp)), grid))
        # a grid of even steps that hits no value, and the training values themselves
        step = grid[1] - grid[0]
        integral, inside = (
            float(density[part].sum() * step) for part in (grid > -np.inf, (grid > low) & (grid < high))
        )
        values = np.unique(problem.target.values)
        at_values = np.exp(fitted.log_density(problem.given.take(np.zeros(values.size, dtype=np.intp)), values))
        total = float(at_values.sum())
        if measure == "counting":
            require(total < 1.0 + 1e-6, f"numeric target: probabilities of the training values sum to {total:.4g}.")
            require(integral == 0.0, "numeric target: values that were never observed have positive probability.")
        else:  # no training value of this problem has point mass
            require(abs(integral - 1.0) < 0.05, f"numeric target: the density integrates to {integral:.4g}, not to 1.")
            share = 1.0 - 2.0 * _TAIL
            require(
                share - _SMOOTHED < inside < share + 0.05,
                f"numeric target: the density integrates to {inside:.4g} from {low:.4g} to {high:.4g}, where "
                f"{share:.0%} of the draws lie.",
            )


def _grid(low: float, high: float) -> Floats:
    """Return an even grid over a range, extended by its width at both ends, without round numbers."""
    grid = np.linspace(2.0 * low - high, 2.0 * high - low, _GRID_POINTS)
    return np.asarray(grid[:-1] + (grid[1] - grid[0]) / np.e)


@check
def check_state(sampler: ConditionalSampler, seed: int) -> None:
    """Require that fitted attributes can be written as arrays and JSON values, with which a clone draws the same."""
    if sampler.unstorable:
        return
    for kind, problem, fitted in trained(sampler, seed, or_missing=True):
        try:
            state = get_state(fitted)
        except SamplerError as error:
            raise ConformanceError(f"{error} Keep arrays and plain values, or declare `unstorable`.") from error
        restored = set_state(sampler.clone(), through_json(state))
        drawn = draw(fitted, problem.given, seed)
        same = equal(drawn, draw(restored, problem.given, seed))
        require(
            same,
            f"{kind} target: a clone with the attributes of the fitted sampler that end in an underscore draws other "
            "values.",
        )


def through_json(state: Any) -> Any:
    """Return a state with arrays copied, and everything else written as JSON and read back."""
    arrays: list[Any] = []

    def refer(array: npt.NDArray[Any]) -> dict[str, Any]:
        arrays.append(array.copy())
        return {"entry": len(arrays) - 1}

    return put_back_arrays(json.loads(json.dumps(take_out_arrays(state, refer))), lambda found: arrays[found["entry"]])


@check
def check_threads(sampler: ConditionalSampler, seed: int) -> None:
    """Require, where thread safety is declared, that fitting and drawing in threads give the same draws."""
    if not sampler.thread_safe:
        return
    for kind, problem, fitted in trained(sampler, seed, by_sex=True):
        parts = [problem.given.take(np.arange(k, problem.given.n_rows, THREADS)) for k in range(THREADS)]
        alone = [draw(fitted, part, seed + k) for k, part in enumerate(parts)]
        together = _batch_size(lambda k: draw(fitted, parts[k], seed + k))  # noqa: B023
        require(all(map(equal, alone, together)), f"{kind} target: drawn from {THREADS} threads, values change.")
        refitted = _batch_size(lambda k: draw(fit(sampler, problem), parts[k], seed + k))  # noqa: B023
        require(all(map(equal, alone, refitted)), f"{kind} target: fitted in {THREADS} threads, draws change.")


def _batch_size(work: Callable[[int], Floats]) -> list[Floats]:
    barrier = Barrier(THREADS)

    def wait_and_work(k: int) -> Floats:
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(wait_and_work, range(THREADS)))
