"""The parts of the givens in which a conditional is looked at: one condition, or two.

1. Conditions on a number or an ordered level: at most one of up to 15 quantiles. On a level: to be it, for up to 10
   frequent ones. On missing values: to be missing.
2. Regions with two conditions are the four quarters of each pair of conditions on different columns, so that an
   interaction without main effects is found; the pairs are of 24 conditions at most, those that halve the rows best,
   column by column in turn.
3. A region has at least a fortieth of the rows, and 15, and leaves as many outside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal

import numpy as np
import numpy.typing as npt

from mcce.arrays import Bools
from mcce.table import Feature, Table
from mcce.table.dtypes import is_dated
from mcce.trees.texts import text_of

Sign = Literal["at most", "above", "is", "is not", "missing", "known"]
Boxes = npt.NDArray[np.float32]

N_CUTS, N_LEVELS, N_PAIRED = 15, 10, 24
LEAST_ROWS, LEAST_SHARE = 15, 1 / 40
_OPPOSITE: dict[Sign, Sign] = {"at most": "above", "is": "is not", "missing": "known"}
_OPPOSITE |= {after: before for before, after in _OPPOSITE.items()}


@dataclass(frozen=True)
class Condition:
    """What a row's given has to be."""

    column: int
    feature: Feature
    sign: Sign
    value: float = float("nan")

    def holds(self, given: Table) -> Bools:
        """Return the rows that it holds for; a missing value is neither at most nor above anything."""
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
    """Return the regions that the rows are looked at in (steps 1 to 3)."""
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
    """Return the conditions on one column (step 1)."""
    feature, column = given.features[j], given.matrix[:, j]
    known = column[~np.isnan(column)]
    found: list[Condition] = []
    if feature.kind == "categorical":
        levels, times = np.unique(known, return_counts=True)
        frequent = levels[np.argsort(-times, kind="stable")][:N_LEVELS]
        if levels.size == 2 and known.size == column.size:  # the other one is its opposite
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
    """Return the conditions that are paired, the best halves of all columns first, then the second best (step 2)."""

    def imbalance(condition: Condition) -> float:
        return abs(float(condition.holds(given).mean()) - 0.5)

    ranked = []
    for found in by_column:
        halves = sorted((c for c in found if c.sign != "above"), key=imbalance)
        ranked += [(place, imbalance(c), c.column, c) for place, c in enumerate(_apart(halves))]
    return [condition for *_, condition in sorted(ranked, key=lambda each: each[:3])][:N_PAIRED]


def _apart(halves: list[Condition]) -> list[Condition]:
    """Return the best half, and those well away from it: quarters of a number, three levels."""
    if not halves or halves[0].sign != "at most":
        return halves[:3]
    return halves[:1] + [half for half in halves[1:] if half.sign != "at most"] + halves[7:9]


def _text(feature: Feature, value: float) -> str:
    if feature.levels is not None or is_dated(feature.dtype):
        return text_of(feature, value)
    return f"{value:,.0f}" if value == round(value) and abs(value) >= 10_000 else f"{value:.4g}"
