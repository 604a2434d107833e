"""The conformance suite that every sampler runs, ours or a plug-in's.

1. Build small tables with known properties: numeric, ordered, categorical and two-level givens, one target
   of each kind that the sampler declares to handle.
2. Run the checks of `CHECKS` one after the other; each takes the sampler and a seed and works on clones.
3. The first one that fails raises a `ConformanceError` that says which check failed, on what, and why.

Statistical checks compare distributions by chi-square (levels) or Kolmogorov-Smirnov (numbers) at level
1e-4. The data and the draws are functions of the seed, so a sampler passes always or never.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from mcce.exceptions import InputError, NotFittedError, SamplerError, listing
from mcce.rng import RowStreams
from mcce.samplers import ConditionalSampler, Within
from mcce.schema import KINDS, Column, Kind, Schema, Table

__all__ = ["CHECKS", "ConformanceError", "check_sampler"]

Floats = npt.NDArray[np.float64]
Check = Callable[[ConditionalSampler, int], None]

LEVEL = 1e-4
TRAINING_ROWS = 600
DRAWS_PER_ROW = 4
THREADS = 4

_GIVENS = ("height", "grade", "job", "sex")
_CUTS = (-1.0, 0.5, 2.0)  # of a logistic variable: four levels, none rare


class ConformanceError(AssertionError):
    """A sampler breaks the contract of `ConditionalSampler`; the message says where and how."""


def check_sampler(sampler: ConditionalSampler, *, seed: int = 0) -> None:
    """Check that a sampler keeps the contract of `ConditionalSampler`.

    Parameters
    ----------
    sampler : ConditionalSampler
        The sampler with the parameters to check; it is cloned, never fitted itself.
    seed : int
        Seed of the data and of the draws.

    Raises
    ------
    ConformanceError
        With the name of the first check that failed, and the reason. The checks can be run one by one, for
        example by ``@pytest.mark.parametrize("check", mcce.testing.CHECKS)``.

    Examples
    --------
    >>> import mcce
    >>> from mcce.testing import check_sampler
    >>> check_sampler(mcce.CartSampler(min_leaf=10))
    """
    if not isinstance(sampler, ConditionalSampler):
        raise InputError(
            f"check_sampler got {sampler!r}; give an object of a subclass of ConditionalSampler."
        )
    for check in CHECKS:
        check(sampler, seed)


def _check(function: Check) -> Check:
    """Let every failure and every unforeseen exception of a check name the check and the sampler."""

    @functools.wraps(function)
    def named(sampler: ConditionalSampler, seed: int = 0) -> None:
        place = f"{function.__name__}, {type(sampler).__name__}"
        try:
            function(sampler, seed)
        except ConformanceError as failure:
            raise ConformanceError(f"{place}: {failure}") from None
        except Exception as error:
            raise ConformanceError(f"{place}: raised {type(error).__name__}: {error}") from error

    return named


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ConformanceError(message)


# ---- data


@dataclass(frozen=True)
class _Problem:
    """Training data of one conditional."""

    given: Table
    target: Column

    @property
    def kind(self) -> Kind:
        """Kind of the target."""
        return self.target.feature.kind

    def copies(self, times: int = DRAWS_PER_ROW) -> npt.NDArray[np.intp]:
        """Training row of each row to draw, so that draws and training data have the same givens."""
        return np.tile(np.arange(self.given.n_rows), times)


def _make_problem(kind: Kind, seed: int, *, givens: tuple[str, ...] = _GIVENS, **options: bool) -> _Problem:
    """Return a training problem of its own, which a sampler may spoil."""
    table = _make_table(kind, seed, givens, **options)
    table = Table(table.features, table.matrix.copy(order="F"))
    return _Problem(table.first(len(givens)), table.column(len(givens)))


@functools.lru_cache(maxsize=64)
def _make_table(
    kind: Kind,
    seed: int,
    givens: tuple[str, ...],
    *,
    by_sex: bool = False,
    missing_givens: bool = False,
    missing_target: bool = False,
    unobserved: bool = False,
) -> Table:
    """Return givens and target; the target depends on nothing or, `by_sex`, on the two-level given alone."""
    rng = np.random.default_rng(seed)
    n = TRAINING_ROWS
    sex = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "height": rng.normal(170.0, 10.0, n),
            "grade": _levels(rng.integers(0, 3, n), ["low", "mid", "high"], ordered=True),
            "job": _levels(rng.choice(3, n, p=[0.6, 0.3, 0.1]), ["clerk", "cook", "pilot"]),
            "sex": _levels(sex, ["f", "m"]),
        }
    )
    if missing_givens:
        frame["height"] = frame["height"].mask(rng.random(n) < 0.2)
        frame["job"] = frame["job"].mask(rng.random(n) < 0.2)
    target: pd.Series[Any]
    if kind == "numeric":
        target = pd.Series(rng.normal(50.0, 20.0, n) + 80.0 * sex * by_sex)
    else:
        codes = np.digitize(rng.logistic(size=n) + 3.0 * sex * by_sex, _CUTS)
        levels = ["a", "b", "c", "d"] if kind == "ordered" else ["d", "b", "a", "c"]
        if unobserved:
            levels.insert(2, "never")
            codes = np.where(codes < 2, codes, codes + 1)
        target = _levels(codes, levels, ordered=kind == "ordered")
    frame = frame[list(givens)]
    frame["target"] = target.mask(rng.random(n) < 0.3) if missing_target else target
    return Schema.from_data(frame).encode(frame)


def _levels(codes: npt.NDArray[Any], levels: list[str], *, ordered: bool = False) -> pd.Series[Any]:
    return pd.Series(pd.Categorical(np.array(levels)[codes], categories=levels, ordered=ordered))


def _kinds(sampler: ConditionalSampler) -> list[Kind]:
    return [kind for kind in KINDS if kind in sampler.handles]


def _fit(sampler: ConditionalSampler, problem: _Problem) -> ConditionalSampler:
    fitted = sampler.clone()
    fitted.fit(problem.given, problem.target)
    return fitted


def _draw(fitted: ConditionalSampler, given: Table, seed: int, within: Within | None = None) -> Floats:
    streams = RowStreams.from_seed(seed, given.n_rows)
    return fitted.sample(given, streams) if within is None else fitted.sample(given, streams, within=within)


def _same(a: Floats, b: Floats) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


# ---- distributions


def _agree(kind: Kind, a: Floats, b: Floats) -> tuple[bool, str]:
    """Return whether two samples may have the same distribution, and the evidence."""
    if kind == "numeric":
        p = float(stats.ks_2samp(a, b).pvalue)
        return p > LEVEL, f"Kolmogorov-Smirnov p = {p:.2g}, medians {np.median(a):.4g} and {np.median(b):.4g}"
    seen = np.union1d(a, b)
    counts = np.array([[(part == level).sum() for level in seen] for part in (a, b)])
    p = float(stats.chi2_contingency(counts).pvalue) if seen.size > 1 else 1.0
    shares = " and ".join(str(np.round(row / row.sum(), 3).tolist()) for row in counts)
    return p > LEVEL, f"chi-square p = {p:.2g}, shares of the levels {shares}"


# ---- the checks: what a sampler is


@_check
def check_declarations(sampler: ConditionalSampler, seed: int) -> None:
    """Require that `handles` names known kinds, and that check_target() refuses all others."""
    unknown = set(sampler.handles) - set(KINDS)
    _require(not unknown, f"handles names {listing(sorted(unknown))}; the kinds are {listing(KINDS)}.")
    _require(sampler.handles, f"handles is empty; name at least one of {listing(KINDS)}.")
    for name in ("handles_missing", "thread_safe", "ignores_given"):
        value = getattr(sampler, name)
        _require(
            isinstance(value, bool), f"the class attribute {name} is {value!r}; it must be True or False."
        )
    for kind in KINDS:
        feature = _make_problem(kind, seed).target.feature
        try:
            sampler.check_target(feature)
        except SamplerError as refusal:
            _require(
                kind not in sampler.handles, f"check_target refuses {kind}, which handles names: {refusal}"
            )
        else:
            _require(kind in sampler.handles, f"check_target accepts {kind}, which handles does not name.")


@_check
def check_parameters(sampler: ConditionalSampler, seed: int) -> None:
    """Require that parameters are stored untouched, kept by fit(), and given back by clone() and repr()."""
    params = sampler.get_params()
    for name in params:
        probe = object()
        try:
            stored = getattr(type(sampler)(**{**params, name: probe}), name)
        except Exception as error:
            raise ConformanceError(
                f"the constructor works on its parameter {name!r} ({type(error).__name__}: {error}); "
                "store it untouched, and check it in fit()."
            ) from error
        _require(stored is probe, f"the constructor changes its parameter {name!r}; store it untouched.")
    cloned = sampler.clone()
    _require(type(cloned) is type(sampler), f"clone() returns a {type(cloned).__name__}.")
    _require_params(cloned, params, "clone() changes")
    _require(
        repr(sampler).startswith(f"{type(sampler).__name__}("),
        f"repr() is {sampler!r}; it must begin with the class.",
    )
    if all(map(_is_literal, params.values())):
        written = eval(repr(sampler), {type(sampler).__name__: type(sampler)})
        for name, value in params.items():
            _require(
                getattr(written, name) == value,
                f"repr() is {sampler!r}, which loses the value {value!r} of {name!r}.",
            )
    for kind in _kinds(sampler):
        _require_params(_fit(sampler, _make_problem(kind, seed)), params, "fit() changes")


def _require_params(sampler: ConditionalSampler, params: dict[str, Any], what: str) -> None:
    for name, value in params.items():
        now = getattr(sampler, name)
        _require(now is value, f"{what} the parameter {name!r} from {value!r} to {now!r}.")


def _is_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


@_check
def check_fit_returns_self(sampler: ConditionalSampler, seed: int) -> None:
    """Require that fit() returns the sampler."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed)
        fitted = sampler.clone()
        returned: object = fitted.fit(problem.given, problem.target)
        _require(returned is fitted, f"fit() returns {returned!r}; it must return self.")


@_check
def check_not_fitted(sampler: ConditionalSampler, seed: int) -> None:
    """Require that sample() raises NotFittedError before fit(), and on the clone of a fitted sampler."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed)
        for unfitted, which in (
            (sampler.clone(), "before fit()"),
            (_fit(sampler, problem).clone(), "on a fresh clone"),
        ):
            try:
                _draw(unfitted, problem.given, seed)
            except NotFittedError:
                continue
            except Exception as error:
                raise ConformanceError(
                    f"sample() {which} raises {type(error).__name__}: {error}; raise NotFittedError "
                    "(self.check_fitted('attribute_') does)."
                ) from error
            raise ConformanceError(f"sample() works {which}; it must raise NotFittedError.")


@_check
def check_refit(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a second fit() leaves nothing of the first one."""
    for kind in _kinds(sampler):
        before = _make_problem(kind, seed, givens=("sex",), missing_target=sampler.handles_missing)
        problem = _make_problem(kind, seed + 1, by_sex=True)
        fitted = _fit(sampler, before)
        fitted.fit(problem.given, problem.target)
        same = _same(_draw(fitted, problem.given, seed), _draw(_fit(sampler, problem), problem.given, seed))
        _require(
            same, f"a {kind} target, fitted after another one, is drawn differently than by a fresh sampler."
        )


# ---- the checks: what it draws


@_check
def check_shape(sampler: ConditionalSampler, seed: int) -> None:
    """Require that sample() returns a float64 array with one value for each row."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed)
        drawn = _draw(_fit(sampler, problem), problem.given, seed)
        _require_array(drawn, np.float64, problem.given.n_rows, f"{kind} target: sample()")


def _require_array(found: object, dtype: type[np.generic], n: int, what: str) -> None:
    _require(isinstance(found, np.ndarray), f"{what} returns a {type(found).__name__}; return an array.")
    assert isinstance(found, np.ndarray)
    _require(found.shape == (n,), f"{what} returns shape {found.shape} for {n} rows; return ({n},).")
    _require(found.dtype == dtype, f"{what} returns dtype {found.dtype}; return {np.dtype(dtype)}.")


@_check
def check_values(sampler: ConditionalSampler, seed: int) -> None:
    """Require that levels drawn are observed levels, that numbers are finite, and that nothing is missing."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed, unobserved=kind != "numeric")
        drawn = _draw(_fit(sampler, problem), problem.given.take(problem.copies()), seed)
        _require_valid(drawn, problem.target, f"{kind} target")
        _require(
            not np.isnan(drawn).any(),
            f"{kind} target without missing values: {np.isnan(drawn).sum()} draws are NaN.",
        )


def _require_valid(drawn: Floats, target: Column, where: str) -> None:
    """Missing values apart, every draw is a finite number or an observed level."""
    known = drawn[~np.isnan(drawn)]
    _require(np.isfinite(known).all(), f"{where}: {np.isinf(known).sum()} draws are infinite.")
    if target.feature.levels is not None:
        invented = np.setdiff1d(known, target.values)
        codes = f"the codes are 0 to {target.feature.n_levels - 1}"
        _require(
            invented.size == 0,
            f"{where}: draws {invented.tolist()} are no levels of the training target ({codes}).",
        )


@_check
def check_no_givens(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a table without columns works: a chain's first feature may have nothing before it."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed, givens=())
        drawn = _draw(_fit(sampler, problem), problem.given, seed)
        _require_array(drawn, np.float64, problem.given.n_rows, f"{kind} target, no givens: sample()")
        _require_valid(drawn, problem.target, f"{kind} target, no givens")


@_check
def check_one_row(sampler: ConditionalSampler, seed: int) -> None:
    """Require that one row, or none, can be drawn."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed)
        fitted = _fit(sampler, problem)
        for n in (1, 0):
            drawn = _draw(fitted, problem.given.take(np.arange(n)), seed)
            _require_array(drawn, np.float64, n, f"{kind} target, {n} row(s) to draw: sample()")


@_check
def check_seeds(sampler: ConditionalSampler, seed: int) -> None:
    """Require the same draws from the same streams, and others from other streams."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed)
        fitted = _fit(sampler, problem)
        drawn = _draw(fitted, problem.given, seed)
        same = "the same streams gave other draws; take all randomness from `rng`."
        _require(_same(drawn, _draw(fitted, problem.given, seed)), f"{kind} target, drawn again: {same}")
        _require(
            _same(drawn, _draw(_fit(sampler, problem), problem.given, seed)),
            f"{kind} target, fitted again: {same}",
        )
        changed = not _same(drawn, _draw(fitted, problem.given, seed + 1))
        _require(changed, f"{kind} target: another seed gave the same draws; take all randomness from `rng`.")


@_check
def check_rows_independent(sampler: ConditionalSampler, seed: int) -> None:
    """Require that a row's draw does not depend on the rows beside it, on their order or number."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed)
        fitted = _fit(sampler, problem)
        n = problem.given.n_rows
        drawn = _draw(fitted, problem.given, seed)
        for what, rows in (
            ("in another order", np.random.default_rng(seed).permutation(n)),
            ("without the others", np.arange(5, n, 7)),
        ):
            again = fitted.sample(problem.given.take(rows), RowStreams.from_seed(seed, n).take(rows))
            _require(
                _same(again, drawn[rows]),
                f"{kind} target: rows drawn {what} get other values; draw each by itself.",
            )


@_check
def check_global_state(sampler: ConditionalSampler, seed: int) -> None:
    """Require that the global generators of numpy and of random are neither read nor moved."""
    kept = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        for kind in _kinds(sampler):
            problem = _make_problem(kind, seed)
            drawn = []
            for state in (1, 2):
                np.random.seed(state)  # noqa: NPY002
                random.seed(state)
                before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
                drawn.append(_draw(_fit(sampler, problem), problem.given, seed))
                after = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
                _require(
                    before == after,
                    f"{kind} target: a global random generator has moved; draw from `rng` only.",
                )
            _require(
                _same(*drawn), f"{kind} target: draws depend on global random state; draw from `rng` only."
            )
    finally:
        np.random.set_state(kept[0])  # noqa: NPY002
        random.setstate(kept[1])


@_check
def check_inputs_unchanged(sampler: ConditionalSampler, seed: int) -> None:
    """Require that fit() and sample() do not write into the tables they get."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed)
        given, target = problem.given.matrix.copy(), problem.target.values.copy()
        fitted = _fit(sampler, problem)
        _require(
            _same(given, problem.given.matrix),
            f"{kind} target: fit() writes into given.matrix; copy it first.",
        )
        _require(
            _same(target, problem.target.values),
            f"{kind} target: fit() writes into target.values; copy it first.",
        )
        _draw(fitted, problem.given, seed)
        _require(
            _same(given, problem.given.matrix),
            f"{kind} target: sample() writes into given.matrix; copy it first.",
        )


@_check
def check_missing(sampler: ConditionalSampler, seed: int) -> None:
    """Require, where missing values are handled, that draws are missing only if training values were."""
    if not sampler.handles_missing:
        return
    for kind in _kinds(sampler):
        for givens, target in ((True, False), (False, True), (True, True)):
            problem = _make_problem(kind, seed, missing_givens=givens, missing_target=target)
            holders = " and ".join(["the givens"] * givens + ["the target"] * target)
            where = f"{kind} target, missing values in {holders}"
            drawn = _draw(_fit(sampler, problem), problem.given, seed)
            _require_valid(drawn, problem.target, where)
            _require(target or not np.isnan(drawn).any(), f"{where}: {np.isnan(drawn).sum()} draws are NaN.")
            _require(not np.isnan(drawn).all(), f"{where}: all draws are NaN.")


@_check
def check_marginal(sampler: ConditionalSampler, seed: int) -> None:
    """Require the training distribution, drawn at the training givens, which say nothing of the target."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed)
        drawn = _draw(_fit(sampler, problem), problem.given.take(problem.copies()), seed)
        agree, evidence = _agree(kind, drawn, problem.target.values)
        _require(agree, f"{kind} target: draws are not distributed as the training values ({evidence}).")


@_check
def check_conditional(sampler: ConditionalSampler, seed: int) -> None:
    """Require the training distribution within each level of a two-level given that moves the target."""
    if sampler.ignores_given:
        return
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed, givens=("sex",), by_sex=True)
        rows = problem.copies()
        drawn = _draw(_fit(sampler, problem), problem.given.take(rows), seed)
        sex = problem.given.matrix[:, 0]
        for level in (0.0, 1.0):
            agree, evidence = _agree(kind, drawn[sex[rows] == level], problem.target.values[sex == level])
            _require(
                agree,
                f"{kind} target: given level {level:.0f} of a two-level column, draws are not distributed as "
                f"the training values ({evidence}). A sampler that ignores the givens on purpose says so: "
                "ignores_given = True.",
            )


# ---- the checks: optional methods


@_check
def check_within(sampler: ConditionalSampler, seed: int) -> None:
    """Require that restricted draws stay inside, follow the conditional there, and are NaN where none is."""
    if "within" not in inspect.signature(sampler.sample).parameters:
        return
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed, givens=("sex",), by_sex=True)
        fitted = _fit(sampler, problem)
        n = problem.given.n_rows * DRAWS_PER_ROW
        one_row = problem.given.take(np.zeros(n, dtype=np.intp))
        free = _draw(fitted, one_row, seed)
        possible = np.arange(n) % 4 > 0
        for name, within in _restrictions(problem, free, possible):
            try:
                drawn = _draw(fitted, one_row, seed + 1, within)
            except SamplerError:  # a refusal
                return
            where = f"{kind} target, within {name}"
            _require_array(drawn, np.float64, n, f"{where}: sample()")
            outside = ~within.allows(drawn) & ~np.isnan(drawn)
            _require(not outside.any(), f"{where}: {outside.sum()} of {n} draws lie outside.")
            n_drawn = (~np.isnan(drawn[~possible])).sum()
            _require(
                n_drawn == 0, f"{where}: {n_drawn} rows that allow nothing got a value; they must be NaN."
            )
            n_missing = np.isnan(drawn[possible]).sum()
            _require(
                n_missing == 0,
                f"{where}: {n_missing} of {possible.sum()} rows are NaN, though values are possible.",
            )
            everywhere = within.take(np.flatnonzero(possible)[[0] * n])
            agree, evidence = _agree(kind, drawn[possible], free[everywhere.allows(free)])
            _require(agree, f"{where}: draws do not follow the conditional restricted to it ({evidence}).")


def _restrictions(
    problem: _Problem, free: Floats, possible: npt.NDArray[np.bool_]
) -> list[tuple[str, Within]]:
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


@_check
def check_supports(sampler: ConditionalSampler, seed: int) -> None:
    """Require that supports(), if there is one, supports every value drawn."""
    for kind in _kinds(sampler):
        for missing in (False, True)[: 1 + sampler.handles_missing]:
            problem = _make_problem(kind, seed, missing_target=missing)
            fitted = _fit(sampler, problem)
            drawn = _draw(fitted, problem.given, seed)
            try:
                supported = fitted.supports(problem.given, drawn)
            except SamplerError:  # a refusal
                return
            where = f"{kind} target" + " with missing values" * missing
            _require_array(supported, np.bool_, drawn.size, f"{where}: supports()")
            _require(
                supported.all(),
                f"{where}: supports() denies {(~supported).sum()} of {drawn.size} drawn values.",
            )


@_check
def check_log_density(sampler: ConditionalSampler, seed: int) -> None:
    """Require that log_density(), if there is one, is finite for draws, and that probabilities sum to 1."""
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed)
        fitted = _fit(sampler, problem)
        drawn = _draw(fitted, problem.given, seed)
        try:
            density = fitted.log_density(problem.given, drawn)
        except SamplerError:  # a refusal
            return
        _require_array(density, np.float64, drawn.size, f"{kind} target: log_density()")
        not_finite = (~np.isfinite(density)).sum()
        _require(
            not_finite == 0, f"{kind} target: log_density() is not finite for {not_finite} drawn values."
        )
        if kind != "numeric":
            levels = range(problem.target.feature.n_levels)
            each = [
                np.exp(fitted.log_density(problem.given, np.full(drawn.size, float(level))))
                for level in levels
            ]
            total = np.sum(each, axis=0)
            worst = total[np.argmax(np.abs(total - 1.0))]
            _require(
                abs(worst - 1.0) < 1e-6,
                f"{kind} target: the levels' probabilities sum to {worst:.6g}, not to 1.",
            )


@_check
def check_state(sampler: ConditionalSampler, seed: int) -> None:
    """Require that get_state() gives arrays and JSON values, with which a clone draws the same."""
    for kind in _kinds(sampler):
        for missing in (False, True)[: 1 + sampler.handles_missing]:
            problem = _make_problem(kind, seed, missing_target=missing)
            fitted = _fit(sampler, problem)
            try:
                state = fitted.get_state()
            except SamplerError:  # a refusal
                return
            restored = sampler.clone().set_state(
                {name: _stored(name, value) for name, value in state.items()}
            )
            _require(isinstance(restored, type(sampler)), "set_state() must return self.")
            drawn = _draw(fitted, problem.given, seed)
            same = _same(drawn, _draw(restored, problem.given, seed))
            _require(same, f"{kind} target: a clone with the state of the fitted sampler draws other values.")


def _stored(name: str, value: Any) -> Any:
    """Return a value as it comes back from a file of arrays and JSON."""
    _require(isinstance(name, str), f"get_state() has the key {name!r}; use strings.")
    if isinstance(value, np.ndarray):
        _require(
            not value.dtype.hasobject,
            f"get_state()[{name!r}] is an array of objects; use numbers or strings.",
        )
        return value.copy()
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise ConformanceError(
            f"get_state()[{name!r}] is neither an array nor a JSON value: {error}."
        ) from error


@_check
def check_threads(sampler: ConditionalSampler, seed: int) -> None:
    """Require, where thread safety is declared, that fitting and drawing in threads changes nothing."""
    if not sampler.thread_safe:
        return
    for kind in _kinds(sampler):
        problem = _make_problem(kind, seed, by_sex=True)
        fitted = _fit(sampler, problem)
        parts = [problem.given.take(np.arange(k, problem.given.n_rows, THREADS)) for k in range(THREADS)]
        alone = [_draw(fitted, part, seed + k) for k, part in enumerate(parts)]
        together = _at_once(lambda k: _draw(fitted, parts[k], seed + k))  # noqa: B023
        _require(
            all(map(_same, alone, together)), f"{kind} target: drawn from {THREADS} threads, values change."
        )
        refitted = _at_once(lambda k: _draw(_fit(sampler, problem), parts[k], seed + k))  # noqa: B023
        _require(
            all(map(_same, alone, refitted)), f"{kind} target: fitted in {THREADS} threads, draws change."
        )


def _at_once(work: Callable[[int], Floats]) -> list[Floats]:
    barrier = Barrier(THREADS)

    def wait_and_work(k: int) -> Floats:
        barrier.wait()
        return work(k)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(wait_and_work, range(THREADS)))


CHECKS: tuple[Check, ...] = (
    check_declarations,
    check_parameters,
    check_fit_returns_self,
    check_not_fitted,
    check_refit,
    check_shape,
    check_values,
    check_no_givens,
    check_one_row,
    check_seeds,
    check_rows_independent,
    check_global_state,
    check_inputs_unchanged,
    check_missing,
    check_marginal,
    check_conditional,
    check_within,
    check_supports,
    check_log_density,
    check_state,
    check_threads,
)
