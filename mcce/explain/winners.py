"""Winners: the counterfactuals of some factuals, from the search to the tables.

A search returns winners, finishing steps replace some of their values, and those of several blocks are joined. They
have the positions of their factuals, so that blocks can be joined in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import changes, gower_sum
from mcce.table import Feature


@dataclass(frozen=True)
class Winners:
    """Valid rows of some factuals, those of one factual in order of rank.

    Attributes
    ----------
    owner : the position of each row's factual.
    rows : encoded rows.
    scores : the model's scores.
    plausibility : scores of plausibility; NaN where they were not computed.
    measures : for each row, the number of changed features, and the sum of Gower's steps; NaN before `measured`.
    incidental : which changes the decision does not need; filled by a finishing step.
    reported : further measures by name; filled by a finishing step.
    """

    owner: Ints
    rows: Floats
    scores: npt.NDArray[np.generic]
    plausibility: Floats
    measures: Floats
    incidental: Bools
    reported: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def chosen(
        cls, owner: Ints, rows: Floats, scores: npt.NDArray[np.generic], plausibility: Floats | None = None
    ) -> Winners:
        """Return rows that a search chose."""
        unknown = np.full((owner.size, 2), np.nan)
        needed = np.zeros(rows.shape, dtype=bool)
        return cls(owner, rows, scores, unknown[:, 0] if plausibility is None else plausibility, unknown, needed)

    @classmethod
    def none(cls, scores: npt.NDArray[np.generic], n_columns: int) -> Winners:
        """Return no rows; the type of their scores is that of `scores`."""
        return cls.chosen(np.empty(0, dtype=np.int64), np.empty((0, n_columns)), scores[:0])

    @classmethod
    def join(cls, parts: Sequence[Winners]) -> Winners:
        """Return the rows of several searches, one search after the other; further measures are those of the first."""
        some = [part for part in parts if part.owner.size] or parts[:1]  # scores of no rows have no type
        if len(some) == 1:
            return some[0]
        return cls(
            np.concatenate([part.owner for part in some]),
            np.concatenate([part.rows for part in some]),
            np.concatenate([part.scores for part in some]),
            np.concatenate([part.plausibility for part in some]),
            np.concatenate([part.measures for part in some]),
            np.concatenate([part.incidental for part in some]),
            {name: np.concatenate([part.reported[name] for part in some]) for name in some[0].reported},
        )

    def take(self, which: Ints | Bools | slice) -> Winners:
        """Return some of the rows."""
        return Winners(
            self.owner[which],
            self.rows[which],
            self.scores[which],
            self.plausibility[which],
            self.measures[which],
            self.incidental[which],
            {name: values[which] for name, values in self.reported.items()},
        )

    def prefer(self, good: Bools) -> Winners:
        """Return the good rows of factuals that have any, and all rows of the others."""
        return self if good.all() else self.take(good | ~np.isin(self.owner, self.owner[good]))

    def with_others(self, which: Ints, others: Winners) -> Winners:
        """Return the rows with others at some positions, owned by the same factuals."""
        if not which.size:
            return self
        names = ("rows", "scores", "plausibility", "measures")
        arrays = {name: getattr(self, name).copy() for name in names}
        for name, array in arrays.items():
            array[which] = getattr(others, name)
        return replace(self, **arrays)

    def of_factuals(self, positions: Ints) -> Winners:
        """Return the rows with owners counted among others: owner i is the factual at `positions[i]`."""
        return replace(self, owner=positions[self.owner])

    def counted_from(self, first: int) -> Winners:
        """Return the rows with positions of factuals shifted by a number."""
        return replace(self, owner=self.owner + first)

    def measured(self, features: Sequence[Feature], factuals: Floats, counted: Floats | None = None) -> Winners:
        """Return the rows with their measures.

        Owners are positions in `factuals`; `counted` are the rows without changes that do not count.
        """
        own, rows = factuals[self.owner], self.rows if counted is None else counted
        sums = [distance(features).sums(rows, own) for distance in (changes, gower_sum)]
        return replace(self, measures=np.stack(sums, axis=1))

    def by_factual(self) -> Winners:
        """Return the rows in the order of their factuals."""
        ordered = self.take(np.argsort(self.owner, kind="stable"))
        return replace(ordered, rows=np.asfortranarray(ordered.rows))

    def by_rank(self, n_factuals: int, most: int) -> Floats:
        """Return the measures of rows in the order of their factuals: (factual, rank, measure), NaN where none is."""
        values = np.full((n_factuals, most, 2), np.nan)
        values[self.owner, np.arange(self.owner.size) - np.searchsorted(self.owner, self.owner)] = self.measures
        return values
