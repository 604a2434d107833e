"""Search for orders ``a <= b`` of numbers and of dates, in all rows or in nearly all of them (`soft_orders`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from mcce.base.arrays import Floats, Ints
from mcce.plausibility.relations import Relation
from mcce.plausibility.searched_columns import LOG_FACTORIALS, MOST_SOFT, SearchedColumns, sorted_pairs
from mcce.plausibility.soft_orders import BY_CHANCE, inner_rows, log_chance_of_soft_order, share_above

NEAR, FEW_NEAR = 0.05, 0.01  # near equality: share of the spread, and least share of the rows
LEAST_OVERLAP = 0.005  # least share of rows that break the order in random order, if some rows are near equality


class OrderSearch:
    """The orders of columns that no other relation explains."""

    def __init__(self, columns: SearchedColumns) -> None:
        self.columns = columns
        self.numbers = columns.numbers
        self.n_tried = len(self.numbers) * (len(self.numbers) - 1)
        self.measured = np.asfortranarray(columns.in_units(columns.sample))
        self.screened = np.asfortranarray(columns.in_units(columns.screen))
        self.ordered: dict[tuple[int, int], Relation] = {}  # pairs of columns in orders that all rows keep
        self.n_known, self.n_above, self.n_below = self._overlap()

    def exact(self) -> list[Relation]:
        """Return the orders that hold in all rows and do not follow from others."""
        may_be = self.least_chances() <= self.columns.least(self.n_tried)
        for a, b in self._pairs(0.0):
            if not may_be[a, b] or self.columns.is_explained(a, b):
                continue
            chance = self.chance(a, b)
            if chance > self.columns.least(self.n_tried):
                continue
            texts = (self._relation(a, b, text, chance) for text in self._texts(a, b))
            kept = next(filter(self.columns.is_kept, texts), None)
            if kept is not None:
                self.ordered[a, b] = kept
        return self._direct(self.ordered, self.ordered)

    def soft(self) -> list[Relation]:
        """Return the orders that hold in nearly all rows; to be called after `exact`."""
        found: dict[tuple[int, int], Relation] = {}
        may_be = self.n_above * self.n_below >= BY_CHANCE * self.n_known**2
        for a, b in self._pairs(2.0 * MOST_SOFT * self.screened.shape[0] + 2.0):
            if not may_be[a, b] or (a, b) in self.ordered or self.columns.is_explained(a, b):
                continue
            if share_above(self.screened[:, a], self.screened[:, b]) < BY_CHANCE / 2.0:
                continue
            chance = log_chance_of_soft_order(*sorted_pairs(self.measured[:, a], self.measured[:, b]))
            texts = self._texts(a, b)
            if chance > self.columns.least(self.n_tried) or not texts:
                continue
            checked = self.columns.checked(self._relation(a, b, texts[-1], chance), (a, b), MOST_SOFT)
            if checked is not None and checked.exceptions:
                found[a, b] = checked
        return self._direct(found, {**self.ordered, **found})

    def least_chances(self) -> Floats:
        """Return a lower bound on the log chance of each pair, which excludes most pairs of many columns.

        a <= b holds in all rows if none has both a above the lowest value of b and b below the highest value of a: the
        chance of the order is at least that of this, which is hypergeometric.
        """
        n, above, below = self.n_known, self.n_above, self.n_below
        apart = np.maximum(n - above - below, 0)
        found = LOG_FACTORIALS[n - above] + LOG_FACTORIALS[n - below] - LOG_FACTORIALS[n] - LOG_FACTORIALS[apart]
        return np.where(above + below > n, -np.inf, found)

    def chance(self, a: int, b: int) -> float:
        """Return the logarithm of the share of orders of the rows in which a <= b everywhere; infinite if unknown.

        With rows in ascending order of b, the i-th row can have any remaining value of a that is at or below its b.
        """
        below, above = sorted_pairs(self.measured[:, a], self.measured[:, b])
        if not below.size:
            return np.inf
        scale = max(float(np.abs(below).max()), float(np.abs(above).max()))
        gap, spread = above / scale - below / scale, float((above / scale).std())
        near = gap <= NEAR * spread
        if (gap < 0.0).any() or near.all():
            return np.inf
        # columns that are 0 together and far apart elsewhere, such as years in a job and salary, are not comparable
        inner = inner_rows(below / scale, above / scale)
        n_near = int((inner[1] - inner[0] <= NEAR * spread).sum())
        least = BY_CHANCE if n_near < 3 else LEAST_OVERLAP
        if n_near < max(3.0, FEW_NEAR * gap.size) and share_above(*inner) < least:
            return np.inf
        possible = np.searchsorted(below, np.sort(above), side="right") - np.arange(gap.size)
        return float(np.log(possible).sum() - LOG_FACTORIALS[gap.size])

    def _overlap(self) -> tuple[Ints, Ints, Ints]:
        """Return bounds on the overlap of each pair of columns a and b.

        These are the least number of rows in which both are known, and the largest numbers of rows with a above the
        lowest value of b, and with b below the highest value of a.
        """
        rows = np.sort(self.measured, axis=0)  # missing values last
        known = (~np.isnan(rows)).sum(axis=0)
        lowest, highest = np.fmin.reduce(rows), np.fmax.reduce(rows)
        above, below = np.zeros((2, known.size, known.size), dtype=np.intp)
        for j in self.numbers:
            above[j] = known[j] - np.searchsorted(rows[: known[j], j], lowest, side="right")
            below[:, j] = np.searchsorted(rows[: known[j], j], highest, side="left")
        n = np.maximum(known[:, None] + known - rows.shape[0], 0)
        return n, np.minimum(above, n), np.minimum(below, n)

    def _pairs(self, most: float) -> Iterator[tuple[int, int]]:
        """Yield pairs of comparable columns whose order at most some of the screened rows break."""
        family = {j: self.columns.family(j) for j in self.numbers}
        for a in self.numbers:
            few = (self.screened[:, [a]] > self.screened).sum(axis=0) <= most
            yield from ((a, b) for b in self.numbers if a != b and few[b] and family[a] == family[b])

    def _direct(
        self, found: Mapping[tuple[int, int], Relation], every: Mapping[tuple[int, int], Relation]
    ) -> list[Relation]:
        """Return the relations that do not follow from others."""
        return [
            relation
            for (a, b), relation in found.items()
            if (b, a) not in every and not any((a, c) in every and (c, b) in every for c in self.numbers)
        ]

    def _texts(self, a: int, b: int) -> list[str]:
        """Return the texts of an order: for all rows, and for rows without codes; none if rules cannot express it."""
        one, other = self.columns.text[a], self.columns.text[b]
        if one is None or other is None:
            return []
        coded = [f"{name} >= 0" for name, j in ((one, a), (other, b)) if self.columns.codes[j]]
        text = f"{one} <= {other}"
        return [text, f"if {' and '.join(coded)} then {text}"] if coded else [text]

    def _relation(self, a: int, b: int, says: str, chance: float) -> Relation:
        rows = int(self.columns.uncoded(self.columns.matrix, (a, b)).sum())
        return Relation("order", says, self.columns.names(a, b), rows, self.columns.adjusted(chance, self.n_tried))
