"""Small tables with known properties, and samplers fitted to them."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from mcce.base.arrays import Floats
from mcce.rng import RowStreams
from mcce.samplers import ConditionalSampler, Within
from mcce.table import KINDS, Column, Kind, Schema, Table

TRAINING_ROWS = 600
DRAWS_PER_ROW = 4

_GIVENS = ("height", "grade", "job", "sex")
_CUTS = (-1.0, 0.5, 2.0)  # cut points of a logistic variable: four levels, none rare


@dataclass(frozen=True)
class FitProblem:
    """Training data of one conditional."""

    given: Table
    target: Column

    @property
    def kind(self) -> Kind:
        """Kind of the target."""
        return self.target.feature.kind

    @property
    def has_gaps(self) -> bool:
        """Whether values of the target are missing."""
        return bool(np.isnan(self.target.values).any())

    def copies(self, times: int = DRAWS_PER_ROW) -> npt.NDArray[np.intp]:
        """Return the training row of each row to draw, so that draws and training data have the same givens."""
        return np.tile(np.arange(self.given.n_rows), times)


def problem_for(sampler: ConditionalSampler, kind: Kind, seed: int, **options: Any) -> FitProblem:
    """Return a training problem whose numbers the sampler models."""
    return make_problem(kind, seed, numbers=sampler.numbers, **options)


def make_problem(kind: Kind, seed: int, *, givens: tuple[str, ...] = _GIVENS, **options: Any) -> FitProblem:
    """Return a new training problem, which a sampler may change."""
    table = _make_table(kind, seed, givens, **options)
    table = Table(table.features, table.matrix.copy(order="F"))
    return FitProblem(table.first(len(givens)), table.column(len(givens)))


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
    whole: bool = False,
    tenths: bool = False,
    numbers: str = "any",
) -> Table:
    """Return givens and target; the target depends on nothing or, `by_sex`, on the two-level given alone.

    A numeric target has float64's decimals, or it is `whole` (few integers) or counted in `tenths`. It is approximately
    normal and positive, as some families require. `numbers` may be "counts", some of them 0, or "shares" between 0 and
    1, whose `tenths` are hundredths.
    """
    rng = np.random.default_rng(seed)
    n = TRAINING_ROWS
    sex = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "height": rng.normal(170.0, 10.0, n),
            "grade": levels_of(rng.integers(0, 3, n), ["low", "mid", "high"], ordered=True),
            "job": levels_of(rng.choice(3, n, p=[0.6, 0.3, 0.1]), ["clerk", "cook", "pilot"]),
            "sex": levels_of(sex, ["f", "m"]),
        }
    )
    if missing_givens:
        frame["height"] = frame["height"].mask(rng.random(n) < 0.2)
        frame["job"] = frame["job"].mask(rng.random(n) < 0.2)
    target: pd.Series[Any]
    if kind == "numeric":
        values = 10.0 + np.abs(rng.normal(50.0, 20.0, n) - 10.0) + 80.0 * sex * by_sex
        if numbers == "counts":
            values, whole = 12.0 * _counts(rng.random(n), 4.0 + 12.0 * sex * by_sex), True
        elif numbers == "shares":
            values = np.clip(np.round(values / 250.0, 2), 0.01, 0.99) if tenths else values / 250.0
            tenths = False
        target = pd.Series(
            np.rint(values / 12.0).astype(np.int64) if whole else np.round(values, 1) if tenths else values
        )
    else:
        codes = np.digitize(rng.logistic(size=n) + 3.0 * sex * by_sex, _CUTS)
        levels = ["a", "b", "c", "d"] if kind == "ordered" else ["d", "b", "a", "c"]
        if unobserved:
            levels.insert(2, "never")
            codes = np.where(codes < 2, codes, codes + 1)
        target = levels_of(codes, levels, ordered=kind == "ordered")
    frame = frame[list(givens)]
    frame["target"] = target.mask(rng.random(n) < 0.3) if missing_target else target
    return Schema.from_data(frame).encode(frame)


def _counts(uniform: Floats, mean: npt.NDArray[Any]) -> Floats:
    """Return counts from a zero-inflated negative binomial distribution of variance mean + mean^2 / 3."""
    left = (uniform - 0.15) / 0.85
    return np.where(left > 0.0, stats.nbinom.ppf(np.maximum(left, 0.0), 3.0, 3.0 / (3.0 + mean)), 0.0)


def levels_of(codes: npt.NDArray[Any], levels: list[str], *, ordered: bool = False) -> pd.Series[Any]:
    """Return a column of levels from their codes."""
    return pd.Series(pd.Categorical(np.array(levels)[codes], categories=levels, ordered=ordered))


def kinds_of(sampler: ConditionalSampler) -> list[Kind]:
    """Return the kinds that a sampler handles, in the order of `KINDS`."""
    return [kind for kind in KINDS if kind in sampler.handles]


def fit(sampler: ConditionalSampler, problem: FitProblem) -> ConditionalSampler:
    """Return a clone of the sampler, fitted to the problem."""
    fitted = sampler.clone()
    fitted.fit(problem.given, problem.target)
    return fitted


def draw(fitted: ConditionalSampler, given: Table, seed: int, within: Within | None = None) -> Floats:
    """Draw one value for each row, from the streams of the seed."""
    streams = RowStreams.from_seed(seed, given.n_rows)
    return fitted.sample(given, streams) if within is None else fitted.sample(given, streams, within=within)


def trained(
    sampler: ConditionalSampler, seed: int, *, or_missing: bool = False, **options: Any
) -> Iterator[tuple[Kind, FitProblem, ConditionalSampler]]:
    """Fit a clone to a target of each kind that the sampler handles; with `or_missing`, also to one with gaps.

    Checks of the same problem share the fitted clone, since they only draw from it.
    """
    for kind in kinds_of(sampler):
        for missing in (False, True)[: 1 + (or_missing and sampler.handles_missing)]:
            yield kind, *_fitted_once(sampler, kind, seed, missing_target=missing, **options)


_SHARED: dict[int, dict[Hashable, tuple[FitProblem, ConditionalSampler]]] = {}  # by identity: equal samplers may differ


def _fitted_once(
    sampler: ConditionalSampler, kind: Kind, seed: int, **options: Any
) -> tuple[FitProblem, ConditionalSampler]:
    """Return a problem and a clone fitted to it, cached as long as the sampler and its parameters exist."""
    if id(sampler) not in _SHARED:
        _SHARED[id(sampler)] = {}
        weakref.finalize(sampler, _SHARED.pop, id(sampler), None)
    fits = _SHARED[id(sampler)]
    parameters = tuple(map(id, sampler.get_params(deep=False).values()))
    key = (kind, seed, parameters, *sorted(options.items()))
    if key not in fits:
        problem = problem_for(sampler, kind, seed, **options)
        fits[key] = problem, fit(sampler, problem)
    return fits[key]


def forget_fits(sampler: ConditionalSampler) -> None:
    """Clear the shared fits of this sampler."""
    _SHARED.get(id(sampler), {}).clear()
