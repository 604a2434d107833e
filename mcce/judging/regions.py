"""Regions of misfit: the part of the givens in which the residuals of a conditional differ most from the others.

1. For numbers and ordered levels, the residuals are phi_1 and phi_2 of the PITs (`mcce.judging.calibration`), location
   and spread; for unordered levels, indicator minus probability for each of up to 5 cells, with its variance.
2. For a region R and residuals r_i with variances v_i, z = (sum_R r_i - s sum r_i) / sqrt(s (1 - s) sum v_i), where s
   is the share of R in the sum of all variances. The region with the largest misfit has the largest |z| over all
   regions (steps 6 to 8) and residuals.
3. The p-value is that of the largest |z|. If the conditional is right, PITs are independent of the givens: the search
   is repeated with permuted PITs. Levels are redrawn from their exact probabilities. Both are exact for any number of
   rows: a right conditional is rejected at the nominal level.
4. The search is repeated up to 499 times, and stops when 20 results are as large as the observed one: if the 20th is
   that of search l, p = 20 / l (Besag and Clifford 1991). If no result is as large, p is at most 1 / 500, and is
   extrapolated by the normal tail, m 2 (1 - Phi(|z|)), where m is such that the median of the largest z agrees with
   that of the searches. More than 4000 rows are thinned to 4000.
5. Two conditions are reported only if they explain a quarter more than the best single one. Of one condition, the side
   with the larger misfit is reported.

A p-value from permutations is independent of the marginal distribution of the PITs, so it is independent of that of
the smooth test.

Regions are parts of the givens, defined by one or two conditions:

6. A number or an ordered level is at most one of up to 15 quantiles; a level is one of up to 10 frequent ones; a value
   is missing.
7. Regions with two conditions are the four quarters of each pair of conditions on different columns, so that an
   interaction without main effects is found; the pairs are of 24 conditions at most, those that halve the rows best,
   column by column in turn.
8. A region has at least a fortieth of the rows and at least 15 rows, and so has its complement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.judging.calibration import LOCATION, SPREAD, Calibration, components
from mcce.table import Feature, Table
from mcce.table.dtypes import is_dated
from mcce.trees.nodes import text_of

Sign = Literal["at most", "above", "is", "is not", "missing", "known"]
Boxes = npt.NDArray[np.float32]

N_CUTS, N_LEVELS, N_PAIRED = 15, 10, 24
LEAST_ROWS, LEAST_SHARE = 15, 1 / 40
_OPPOSITE: dict[Sign, Sign] = {"at most": "above", "is": "is not", "missing": "known"}
_OPPOSITE |= {after: before for before, after in _OPPOSITE.items()}


@dataclass(frozen=True)
class Condition:
    """A condition on one given of a row."""

    column: int
    feature: Feature
    sign: Sign
    value: float = float("nan")

    def holds(self, given: Table) -> Bools:
        """Return the rows that satisfy the condition; a missing value is neither at most nor above anything."""
        column = given.matrix[:, self.column]
        if self.sign == "at most":
            return column <= self.value
        if self.sign == "above":
            return column > self.value
        if self.sign in ("is", "is not"):
            return np.asarray((column == self.value) == (self.sign == "is"))
        return np.asarray(np.isnan(column) == (self.sign == "missing"))

    def opposite(self) -> Condition:
        """Return the condition that holds where this one does not, missing values aside."""
        if self.sign == "is" and self.feature.n_levels == 2:
            return replace(self, value=1.0 - self.value)
        return replace(self, sign=_OPPOSITE[self.sign])

    def __str__(self) -> str:
        name = str(self.feature.name)
        if self.sign in ("missing", "known"):
            return f"{name} is {self.sign}"
        value = _text(self.feature, self.value)
        return f"{name} {self.sign} {value}" if self.sign in ("is", "is not") else f"{name} is {self.sign} {value}"


@dataclass(frozen=True)
class Regions:
    """All regions of some rows: their conditions, and a matrix with 1 where a row lies inside."""

    conditions: tuple[tuple[Condition, ...], ...]
    boxes: Boxes


def find_regions(given: Table) -> Regions:
    """Return the regions of some rows (steps 6 to 8)."""
    n = given.n_rows
    least = max(LEAST_ROWS, n * LEAST_SHARE)
    kept: list[tuple[Condition, ...]] = []
    boxes: list[Bools] = []

    def keep(conditions: tuple[Condition, ...], inside: Bools) -> None:
        if least <= inside.sum() <= n - least:
            kept.append(conditions)
            boxes.append(inside)

    by_column = [_conditions(given, j) for j in range(len(given.features))]
    for found in by_column:
        for condition in found:
            keep((condition,), condition.holds(given))
    paired = [[(half, half.holds(given)) for half in (c, c.opposite())] for c in _paired(by_column, given)]
    for one, other in combinations(paired, 2):
        if one[0][0].column != other[0][0].column:
            for (first, in_first), (second, in_second) in product(one, other):
                keep((first, second), in_first & in_second)
    stacked = np.array(boxes, dtype=np.float32) if boxes else np.empty((0, n), dtype=np.float32)
    return Regions(tuple(kept), stacked)


def _conditions(given: Table, j: int) -> list[Condition]:
    """Return the conditions on one column (step 6)."""
    feature, column = given.features[j], given.matrix[:, j]
    known = column[~np.isnan(column)]
    found: list[Condition] = []
    if feature.kind == "categorical":
        levels, times = np.unique(known, return_counts=True)
        frequent = levels[np.argsort(-times, kind="stable")][:N_LEVELS]
        if levels.size == 2 and known.size == column.size:  # the second level is the opposite of the first
            frequent = frequent[:1]
        found += [Condition(j, feature, "is", float(level)) for level in frequent]
    elif known.size:
        cuts = np.unique(np.quantile(known, np.arange(1, N_CUTS + 1) / (N_CUTS + 1), method="inverted_cdf"))
        found += [Condition(j, feature, "at most", float(cut)) for cut in cuts]
    if known.size < column.size:
        found.append(Condition(j, feature, "missing"))
        found += [condition.opposite() for condition in found if condition.sign == "at most"]
    return found


def _paired(by_column: list[list[Condition]], given: Table) -> list[Condition]:
    """Return the conditions to pair, the best half of each column first, then the second best (step 7)."""

    def imbalance(condition: Condition) -> float:
        return abs(float(condition.holds(given).mean()) - 0.5)

    ranked = []
    for found in by_column:
        halves = sorted((c for c in found if c.sign != "above"), key=imbalance)
        ranked += [(place, imbalance(c), c.column, c) for place, c in enumerate(_apart(halves))]
    return [condition for *_, condition in sorted(ranked, key=lambda each: each[:3])][:N_PAIRED]


def _apart(halves: list[Condition]) -> list[Condition]:
    """Return the condition that halves the rows best, and distant ones: quarters of a number, three levels."""
    if not halves or halves[0].sign != "at most":
        return halves[:3]
    return halves[:1] + [half for half in halves[1:] if half.sign != "at most"] + halves[7:9]


def _text(feature: Feature, value: float) -> str:
    if feature.levels is not None or is_dated(feature.dtype):
        return text_of(feature, value)
    return f"{value:,.0f}" if value == round(value) and abs(value) >= 10_000 else f"{value:.4g}"


MOST_ROWS, MOST_CELLS = 4000, 5
SEARCHES, ENOUGH, BATCH = 499, 20, 37
SIMPLER = 0.8
LEAST_VARIANCE = 2.0  # of the sum of a region; with less, a single row can make it large

Residuals = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Failure:
    """The region with the largest misfit.

    Attributes
    ----------
    conditions : the one or two conditions that define the region.
    residual : the residual that differs: 0 for location, 1 for spread of PITs; for levels, the cell.
    p : p-value of the largest |z| of all regions.
    inside : which of all rows lie inside.
    inside_z, outside_z : the sums of the residuals inside and outside, in standard errors; about 0 without misfit.
    """

    conditions: tuple[Condition, ...]
    residual: int
    p: float
    inside: Bools
    inside_z: float
    outside_z: float

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))


def where_pit_fails(given: Table, pit: Floats, rng: np.random.Generator) -> Failure | None:
    """Return the region in which PITs differ most; None without regions."""
    rows = _thinned(pit.size)
    found = components(pit[rows])[:, [LOCATION, SPREAD]]
    spread = found.std(axis=0)
    residuals = ((found - found.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)).astype(np.float32)
    everywhere = components(pit)[:, [LOCATION, SPREAD]]

    def again(times: int) -> Residuals:
        order = rng.permuted(np.tile(np.arange(rows.size), (times, 1)), axis=1)
        return np.asarray(residuals[order].transpose(1, 0, 2))

    best = _search(given, rows, residuals, np.ones_like(residuals), again)
    return None if best is None else _described(best, best.residual, given, everywhere, np.ones_like(everywhere))


def where_levels_fail(given: Table, found: Calibration, rng: np.random.Generator) -> Failure | None:
    """Return the region in which observed and drawn levels differ most; None without regions."""
    rows = _thinned(found.observed.size)
    n_cells = found.cells.shape[1]
    # of two cells one is enough; of many, the most frequent
    chosen = np.argsort(-found.seen, kind="stable")[: 1 if n_cells == 2 else MOST_CELLS]
    everywhere, variances_everywhere = found.residuals
    residuals, variances = (part[rows][:, chosen].astype(np.float32) for part in (everywhere, variances_everywhere))
    q = found.cells[rows]
    below = np.cumsum(q, axis=1)[:, :-1]

    def again(times: int) -> Residuals:
        drawn = (rng.uniform(size=(rows.size, times))[:, :, None] > below[:, None, :]).sum(axis=2)
        return np.asarray((drawn[:, :, None] == chosen) - q[:, None, chosen], dtype=np.float32)

    best = _search(given, rows, residuals, variances, again)
    if best is None:
        return None
    return _described(best, int(chosen[best.residual]), given, everywhere, variances_everywhere)


class _Best(NamedTuple):
    """The region found: its conditions, the residual that differs, and the p-value."""

    conditions: tuple[Condition, ...]
    residual: int
    p: float


def _described(best: _Best, residual: int, given: Table, residuals: Floats, variances: Floats) -> Failure:
    """Return the region, or its complement if that is a region with a larger misfit."""

    def strength(rows: Bools) -> float:
        return float(residuals[rows, residual].sum() / np.sqrt(max(variances[rows, residual].sum(), 1e-9)))

    inside = np.logical_and.reduce([condition.holds(given) for condition in best.conditions])
    conditions, within, without = best.conditions, strength(inside), strength(~inside)
    opposite = conditions[0].opposite()
    if abs(without) > abs(within) and len(conditions) == 1 and (opposite.holds(given) == ~inside).all():
        return Failure((opposite,), residual, best.p, ~inside, without, within)
    return Failure(conditions, residual, best.p, inside, within, without)


def _search(
    given: Table, rows: Ints, residuals: Residuals, variances: Residuals, again: Callable[[int], Residuals]
) -> _Best | None:
    """Find the region (step 2) and compare it with residuals that are independent of the givens (steps 3, 4)."""
    regions = find_regions(given.take(rows))
    scale = _RegionScale.of(regions.boxes, variances)
    if not scale.usable.any():
        return None
    z = scale.z(residuals[:, None, :])[:, 0]
    largest = np.abs(z).max(axis=1)
    best = int(largest.argmax())
    p = _p_value(float(largest[best]), lambda times: np.asarray(np.abs(scale.z(again(times))).max(axis=(0, 2))))
    single = np.array([len(conditions) == 1 for conditions in regions.conditions])
    if single.any():
        simplest = int(np.where(single, largest, -1.0).argmax())
        best = simplest if largest[simplest] ** 2 >= SIMPLER * largest[best] ** 2 else best
    return _Best(regions.conditions[best], int(np.abs(z[best]).argmax()), p)


@dataclass(frozen=True)
class _RegionScale:
    """The scale of sums over regions: the share of all variance that each region has, and its standard error."""

    boxes: Boxes
    share: Residuals
    error: Residuals
    usable: Bools

    @classmethod
    def of(cls, boxes: Boxes, variances: Residuals) -> _RegionScale:
        """Return the scale for residuals with these variances."""
        total = np.maximum(variances.sum(axis=0), np.float32(1e-9))
        share = boxes @ variances / total
        varies = share * (1.0 - share) * total
        usable = varies >= LEAST_VARIANCE
        return cls(boxes, share, np.sqrt(np.where(usable, varies, 1.0)).astype(np.float32), usable)

    def z(self, residuals: Residuals) -> Residuals:
        """Return z of (region, search, residual) from the residuals of (row, search, residual)."""
        n, times, width = residuals.shape
        inside = (self.boxes @ residuals.reshape(n, times * width)).reshape(-1, times, width)
        expected = self.share[:, None, :] * residuals.sum(axis=0)
        return np.asarray(np.where(self.usable[:, None, :], (inside - expected) / self.error[:, None, :], 0.0))


def _p_value(found: float, largest: Callable[[int], Residuals]) -> float:
    """Return the share of searches with a result as large, stopped at 20 of them (step 4)."""
    searched = np.empty(0, dtype=np.float32)
    while searched.size < SEARCHES:
        searched = np.append(searched, largest(min(BATCH, SEARCHES - searched.size)))
        as_large = np.cumsum(searched >= found * (1.0 - 1e-6))
        if as_large[-1] >= ENOUGH:
            return ENOUGH / (1 + int(np.argmax(as_large >= ENOUGH)))
    by_searches = (int(as_large[-1]) + 1) / (SEARCHES + 1)
    if as_large[-1]:
        return by_searches
    tests = np.log(2.0) / scipy.stats.norm.sf(float(np.median(searched)))
    return min(by_searches, float(tests * scipy.stats.norm.sf(found)))


def _thinned(n: int) -> Ints:
    """Return the rows that are searched."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.int64))
