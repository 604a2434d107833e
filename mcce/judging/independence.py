"""Tests of conditional independence between columns of mixed tables, for the statements that a causal graph implies.

The hypothesis is that x is independent of y given the columns z. A missing value is a value like any other.

1. Scores: a number or an ordered level has the normal score of its rank and the square of this score, both 0 where it
   is missing; an unordered level has an indicator for each of up to 8 frequent levels; missing values have an
   indicator. Rows in which a column of z is missing are left out: x and y may depend on each other through its value.
2. Each score of x and of y is regressed on z: least squares on a cubic and linear splines of the normal scores (up to
   15 knots) and on indicators of levels, and ridge regression on products of two and three columns of z, with the
   penalty for which leave-one-out predictions are best. With an empty z the mean is subtracted.
3. For residuals a of a score of x and b of one of y, T = |sum a b| / sqrt(sum a^2 b^2): the generalised covariance
   measure of Shah and Peters (2020, "The hardness of conditional independence testing and the generalised covariance
   measure", Annals of Statistics 48). In the denominator, one of the two residuals is that of the leave-one-out
   prediction, a / (1 - leverage), whichever gives the smaller T: as in the HC3 estimate of MacKinnon and White (1985),
   this allows for the number of estimated coefficients. The statistic is the largest T over all pairs of scores but
   that of two squares. Of two columns of unordered levels, it is the sum of T^2 over all pairs of scores, after the
   residuals of each column are made uncorrelated by a linear map: a dependence of levels is spread over many pairs.
4. Its p-value is found by permuting the rows of the residuals of y, without leaving rows out. T is studentised, so the
   test keeps its level asymptotically also where the spread of the residuals depends on z (DiCiccio and Romano 2017,
   "Robust permutation tests for correlation and regression coefficients", JASA 112). Permutations stop after 20 that
   are as large, with p = 20 / number (Besag and Clifford 1991).
5. p-values are adjusted for the number of statements by Holm's method: if the graph is right, the probability of
   rejecting any statement is about the level.

More than 4,000 rows are thinned to 4,000. The level of a single test is kept as far as step 2 fits the regressions: it
is exceeded where three or more columns of z act on x and y together only, in ways other than their product. A
dependence that shows in none of the scores is not found. `benchmarks.graph_test` measures level and power for pairs of
numbers and levels with up to three parents; the vignette on the visit sequence cites the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import scipy

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import listing
from mcce.judging.feature import holm, p_text
from mcce.rng import derive_key
from mcce.table import Table

JOINT_KNOTS = np.array([-0.7, 0.7])
N_KNOTS, N_LEVELS, LEAST_ROWS = 15, 8, 10
MOST_ROWS, MOST_COLUMNS = 4000, 300
N_EXCEEDING, LEAST_PERMUTATIONS = 20, 999
PENALTIES = np.geomspace(1e-3, 10.0, 9)  # ridge penalties of joint columns, to be multiplied by the number of rows
ASSUMPTION = "A graph is an assumption: data can contradict it, but cannot confirm it or the direction of its edges."
DETERMINED = 1e-8  # residuals below this share of the score are rounding errors
SINGULAR = 1e-8  # singular values below this share of the largest count as 0
LEAST_LEFT = 0.05  # lower bound of 1 - leverage


@dataclass(frozen=True)
class TestedIndependence:
    """The test of one statement: `feature` is independent of `other` given the columns `given`.

    Attributes
    ----------
    strength : absolute correlation of the two residuals with the largest statistic.
    p, p_adjusted : p-value, and the one adjusted for the number of statements.
    """

    feature: Any
    other: Any
    given: tuple[Any, ...]
    strength: float
    p: float
    p_adjusted: float = float("nan")


@dataclass(frozen=True, eq=False, repr=False)
class GraphCheck:
    """The findings of `ChainModel.check_graph`, the smallest p-value first.

    ``print(check)`` shows sentences, `table` has the figures.

    Attributes
    ----------
    findings : tuple of TestedIndependence
    level : float
        Level of all tests together: if the graph is right, the probability that any statement is rejected.
    n_rows : int
        Number of rows used.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(1000).X[["age", "education", "salary"]]
    >>> chain = mcce.ChainModel(graph="age -> education; salary", random_state=1).fit(X)
    >>> check = chain.check_graph(X)
    >>> check.rejected
    [('salary', 'education'), ('salary', 'age')]
    >>> len(check.table), len(check.sentences)
    (2, 2)
    """

    findings: tuple[TestedIndependence, ...]
    level: float
    n_rows: int

    @property
    def rejected(self) -> list[tuple[Any, Any]]:
        """The pairs of features whose implied independence is rejected, the smallest p-value first."""
        return [(each.feature, each.other) for each in self.findings if each.p_adjusted <= self.level]

    @property
    def table(self) -> pd.DataFrame:
        """One row for each statement, the smallest p-value first.

        feature, other, given; strength (largest absolute correlation of two residuals); p, p_adjusted (Holm);
        rejected; says (the sentence).
        """
        rows = [
            {
                "feature": each.feature,
                "other": each.other,
                "given": list(each.given),
                "strength": each.strength,
                "p": each.p,
                "p_adjusted": each.p_adjusted,
                "rejected": bool(each.p_adjusted <= self.level),
                "says": says,
            }
            for each, says in zip(self.findings, self.sentences)
        ]
        names = ["feature", "other", "given", "strength", "p", "p_adjusted", "rejected", "says"]
        return pd.DataFrame(rows, columns=names)

    @property
    def sentences(self) -> list[str]:
        """One sentence for each statement."""
        return [self._sentence(each) for each in self.findings]

    def _sentence(self, each: TestedIndependence) -> str:
        given = f" given {listing(each.given)}" if each.given else ""
        pair = f"{each.feature!r} and {each.other!r}"
        if np.isnan(each.p):
            return f"{pair}{given}: not tested, one of them is constant"
        figures = f"correlation {each.strength:.2f}, adjusted {p_text(each.p_adjusted)}"
        if each.p_adjusted <= self.level:
            return f"{pair} are dependent{given} ({figures}): the graph lacks an edge or an unmeasured cause"
        return f"{pair} may be independent{given} ({figures})"

    def _headline(self) -> str:
        n = len(self.findings)
        if not n:
            return "the graph connects all pairs of its features, so it implies no independence that could be tested"
        statements = "1 implied independence" if n == 1 else f"{n} implied independences"
        return f"{statements} tested by {self.n_rows:,} rows: {len(self.rejected)} rejected at level {self.level:g}"

    def __iter__(self) -> Iterator[TestedIndependence]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        return "\n".join([self._headline(), *(f"  {says}" for says in self.sentences), f"  {ASSUMPTION}"])

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(says)}</li>" for says in self.sentences)
        return f"<p><b>{escape(self._headline())}</b></p><ul>{items}</ul><p>{escape(ASSUMPTION)}</p>"


def check_independences(
    table: Table, statements: Sequence[tuple[int, int, tuple[int, ...]]], *, level: float, seed: int
) -> list[TestedIndependence]:
    """Test statements (x, y, z) about the columns of a table; return them with the smallest p-value first."""
    rows = np.arange(table.n_rows)
    if rows.size > MOST_ROWS:
        rows = np.sort(np.random.default_rng(derive_key(seed, "rows")).permutation(rows)[:MOST_ROWS])
    table = table.take(rows)
    n_permutations = max(LEAST_PERMUTATIONS, int(np.ceil(2 * len(statements) / level)))
    by_given: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for x, y, given in statements:
        by_given.setdefault(given, []).append((x, y))
    found = []
    for given, pairs in by_given.items():
        known = table.take(np.flatnonzero(~np.isnan(table.matrix[:, given]).any(axis=1)))
        regression = _Regression(*_design(known, given))
        residuals = {j: regression.residuals(_scores(known, j)) for j in {j for pair in pairs for j in pair}}
        for x, y in pairs:
            feature, other = table.names[x], table.names[y]
            rng = np.random.default_rng(derive_key(seed, "graph", feature, other))
            kinds = frozenset(table.features[j].kind for j in (x, y))
            strength, p = _permutation_test(residuals[x], residuals[y], kinds, n_permutations, rng)
            found.append(TestedIndependence(feature, other, tuple(table.names[j] for j in given), strength, p))
    adjusted = holm(np.array([each.p for each in found]))
    found = [replace(each, p_adjusted=float(p)) for each, p in zip(found, adjusted)]
    return sorted(found, key=lambda each: (np.isnan(each.p), each.p, -each.strength))


@dataclass(frozen=True)
class _ScoreResiduals:
    """Residuals of the scores of a column, in the sample and of leave-one-out predictions."""

    inside: Floats
    left_out: Floats

    def uncorrelated(self) -> _ScoreResiduals:
        """Return the residuals after a linear map that makes those in the sample uncorrelated."""
        _, s, rotation = np.linalg.svd(self.inside, full_matrices=False)
        kept = s > SINGULAR * s[0]
        linear = rotation[kept].T / s[kept]
        return _ScoreResiduals(self.inside @ linear, self.left_out @ linear)


def _permutation_test(
    x: _ScoreResiduals, y: _ScoreResiduals, kinds: frozenset[str], n_permutations: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the largest absolute correlation of two residuals, and the p-value (steps 3 and 4).

    `kinds` are the kinds of the two columns.
    """
    if not x.inside.size or not y.inside.size:
        return float("nan"), float("nan")
    tested = np.full((x.inside.shape[1], y.inside.shape[1]), True)
    tested[-1, -1] = "categorical" in kinds  # else the last scores are squares
    seen = _statistics(x, y, tested)
    if seen.max() == 0.0:  # a constant
        return float("nan"), float("nan")
    j, k = np.unravel_index(int(seen.argmax()), seen.shape)
    a, b = x.inside[:, j], y.inside[:, k]
    strength = abs(float(a @ b / np.sqrt((a @ a) * (b @ b))))
    combine: Callable[[Floats], Any] = np.max
    if kinds == {"categorical"}:
        x, y, combine = x.uncorrelated(), y.uncorrelated(), np.sum
        tested = np.full((x.inside.shape[1], y.inside.shape[1]), True)
        seen = _statistics(x, y, tested)
    observed, n_as_large, squares = float(combine(seen)), 0, x.inside**2
    for done in range(1, n_permutations + 1):
        permuted = y.inside[rng.permutation(len(y.inside))]
        drawn = combine(_squared(x.inside, permuted, squares.T @ permuted**2, tested))
        n_as_large += bool(drawn >= observed * (1.0 - 1e-12))
        if n_as_large == N_EXCEEDING:
            return strength, N_EXCEEDING / done
    return strength, (n_as_large + 1) / (n_permutations + 1)


def _statistics(x: _ScoreResiduals, y: _ScoreResiduals, tested: Bools) -> Floats:
    """Return T^2 of all pairs of scores, 0 of those that are not tested."""
    spread = np.maximum((x.left_out**2).T @ y.inside**2, (x.inside**2).T @ y.left_out**2)
    return _squared(x.inside, y.inside, spread, tested)


def _squared(a: Floats, b: Floats, spread: Floats, tested: Bools) -> Floats:
    return np.divide((a.T @ b) ** 2, spread, out=np.zeros_like(spread), where=tested & (spread > 0.0))


def _normal_scores(column: Floats) -> Floats:
    """Return the normal scores of the ranks, with mean 0 and variance 1; 0 for missing values."""
    known = ~np.isnan(column)
    found = np.zeros(column.size)
    ranks = scipy.stats.rankdata(column[known])
    scored = scipy.special.ndtri(ranks / (ranks.size + 1))
    spread = scored.std() if scored.size else 0.0
    found[known] = (scored - scored.mean()) / spread if spread > 0.0 else 0.0
    return found


def _indicators(column: Floats, n_levels: int) -> Floats:
    """Return an indicator for each frequent value, missing values included."""
    values, times = np.unique(np.where(np.isnan(column), -1.0, column), return_counts=True)
    order = np.argsort(-times, kind="stable")
    frequent = values[order][times[order] >= LEAST_ROWS][:n_levels]
    if frequent.size == values.size:  # the last indicator is determined by the others
        frequent = frequent[:-1]
    return np.asarray(np.where(np.isnan(column), -1.0, column)[:, None] == frequent, dtype=np.float64)


def _missing(column: Floats) -> Floats:
    """Return an indicator of missing values, if only some values are missing."""
    missing = np.isnan(column)
    enough = LEAST_ROWS <= missing.sum() <= column.size - LEAST_ROWS
    return np.asarray(missing[:, None], dtype=np.float64) if enough else np.empty((column.size, 0))


def _scores(table: Table, j: int) -> Floats:
    """Return the scores of a column (step 1)."""
    column = table.matrix[:, j]
    if table.features[j].kind == "categorical":
        return _indicators(column, N_LEVELS)
    score = _normal_scores(column)
    square = np.where(np.isnan(column) | (score == 0.0).all(), 0.0, score**2 - 1.0)
    return np.column_stack([score, _missing(column), square])


def _design(table: Table, given: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the regressors of scores (step 2): those of each given, and their products."""
    n = table.n_rows
    n_knots = int(np.clip(n / (10 * max(len(given), 1)) - 1, 1, N_KNOTS))
    main, reduced = [], []
    for j in given:
        column = table.matrix[:, j]
        if table.features[j].kind == "categorical":
            indicators = _indicators(column, 4 * N_LEVELS)
            main.append(indicators)
            reduced.append(indicators[:, :N_LEVELS])
            continue
        score = _normal_scores(column)
        knots = np.unique(np.quantile(score, np.arange(1, n_knots + 1) / (n_knots + 1)))
        splines = np.maximum(score[:, None] - knots, 0.0)
        main.append(np.column_stack([score, score**2, score**3, splines]))
        reduced.append(np.column_stack([score, score**2, np.maximum(score[:, None] - JOINT_KNOTS, 0.0)]))
    joint: list[Floats] = []
    most = min(MOST_COLUMNS, n // 5)
    for together in (2, 3):
        for chosen in combinations(reduced, together):
            products = chosen[0]
            for each in chosen[1:]:
                products = (products[:, :, None] * each[:, None, :]).reshape(n, -1)
            if sum(each.shape[1] for each in joint) + products.shape[1] <= most:
                joint.append(products)
    empty = np.empty((n, 0))
    return np.hstack(main or [empty]), np.hstack(joint or [empty])


class _Regression:
    """Regressions of many responses on the same columns, with leave-one-out residuals in closed form.

    The main columns are fitted by least squares; the joint columns, made orthogonal to them, by ridge regression.
    """

    def __init__(self, main: Floats, joint: Floats) -> None:
        n = main.shape[0]
        self.q = _orthonormal(np.column_stack([np.ones(n), main]))[0]
        left = joint - self.q @ (self.q.T @ joint)
        spread = np.sqrt((left**2).mean(axis=0))
        kept = spread > 1e-6 * np.maximum(np.abs(joint).max(axis=0, initial=0.0), 1e-300)
        self.u, s = _orthonormal(left[:, kept] / spread[kept])
        self.s2, self.penalties = s**2, PENALTIES * n

    def residuals(self, responses: Floats) -> _ScoreResiduals:
        """Return the residuals of each response, with the penalty of the best leave-one-out predictions."""
        inside = responses - self.q @ (self.q.T @ responses)
        leverage = (self.q**2).sum(axis=1)
        left_out = inside / np.maximum(1.0 - leverage, LEAST_LEFT)[:, None]
        least = (left_out**2).sum(axis=0)
        projected, remaining = self.u.T @ inside, inside.copy()
        for penalty in self.penalties if self.u.shape[1] else ():
            shrinkage = self.s2 / (self.s2 + penalty)
            kept = np.maximum(1.0 - leverage - (self.u**2) @ shrinkage, LEAST_LEFT)
            found = remaining - self.u @ (shrinkage[:, None] * projected)
            predicted = found / kept[:, None]
            errors = (predicted**2).sum(axis=0)
            better = errors < least
            inside[:, better], left_out[:, better], least[better] = (
                found[:, better],
                predicted[:, better],
                errors[better],
            )
        determined = inside.std(axis=0) <= DETERMINED * responses.std(axis=0)
        inside[:, determined] = left_out[:, determined] = 0.0
        return _ScoreResiduals(inside, left_out)


def _orthonormal(columns: Floats) -> tuple[Floats, Floats]:
    """Return an orthonormal basis of the space of some columns, and their singular values."""
    if not columns.shape[1]:
        return columns, np.empty(0)
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    kept = s > SINGULAR * s[0]
    return u[:, kept], s[kept]
