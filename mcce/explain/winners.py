"""Winners: the counterfactuals of some factuals, from the moment that they are chosen to the result.

Whatever chooses among candidates returns them, and whatever comes after takes some of them or joins several. They name
their factuals, so that those of blocks can be joined in any order.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.distances.measures import changes, gower_sum
from mcce.table import Feature


@dataclass(frozen=True)
class Cost:
    """The cost of a search.

    Attributes
    ----------
    asked : rows that the model was asked about.
    seconds_generate, seconds_select : for drawing, and for choosing.
    pools : what identifies the pools that were drawn.
    acceptance : for each thing that restricts draws, how many rows came to it and how many it let pass.
    """

    asked: int = 0
    seconds_generate: float = 0.0
    seconds_select: float = 0.0
    pools: UInts = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    acceptance: Mapping[Hashable, Ints] = field(default_factory=dict)

    @classmethod
    def total(cls, parts: Sequence[Cost]) -> Cost:
        """Add up what several searches cost."""
        acceptance: dict[Hashable, Ints] = {}
        for part in parts:
            for name, counts in part.acceptance.items():
                acceptance[name] = acceptance.get(name, np.zeros(2, dtype=np.int64)) + counts
        return cls(
            sum(part.asked for part in parts),
            sum(part.seconds_generate for part in parts),
            sum(part.seconds_select for part in parts),
            np.unique(np.concatenate([part.pools for part in parts])),
            acceptance,
        )


@dataclass(frozen=True)
class Winners:
    """Valid rows of some factuals, those of one factual in order of rank.

    Attributes
    ----------
    owner : the position of each row's factual.
    rows : encoded rows.
    scores : what the model says of them.
    plausibility : their scores of plausibility; NaN where nobody asked.
    measures : for each row, how many features it changes, and the sum of Gower's steps; NaN before `measured`.
    cost : what was spent on finding them.
    """

    owner: Ints
    rows: Floats
    scores: npt.NDArray[np.generic]
    plausibility: Floats
    measures: Floats
    cost: Cost = field(default_factory=Cost)

    @classmethod
    def chosen(
        cls,
        owner: Ints,
        rows: Floats,
        scores: npt.NDArray[np.generic],
        plausibility: Floats | None = None,
        asked: int = 0,
    ) -> Winners:
        """Return rows that were just chosen, for which the model was asked about so many."""
        unknown = np.full((owner.size, 2), np.nan)
        return cls(owner, rows, scores, unknown[:, 0] if plausibility is None else plausibility, unknown, Cost(asked))

    @classmethod
    def none(cls, scores: npt.NDArray[np.generic], n_columns: int) -> Winners:
        """Return no rows, with scores like some."""
        return cls.chosen(np.empty(0, dtype=np.int64), np.empty((0, n_columns)), scores[:0])

    @classmethod
    def join(cls, parts: Sequence[Winners]) -> Winners:
        """Put the winners of several searches together, one search after the other."""
        some = [part for part in parts if part.owner.size] or parts[:1]  # scores of no rows have no type
        return cls(
            np.concatenate([part.owner for part in some]),
            np.concatenate([part.rows for part in some]),
            np.concatenate([part.scores for part in some]),
            np.concatenate([part.plausibility for part in some]),
            np.concatenate([part.measures for part in some]),
            Cost.total([part.cost for part in parts]),
        )

    def take(self, which: Ints | Bools | slice) -> Winners:
        """Return some of the rows, without what was spent on them."""
        return Winners(
            self.owner[which], self.rows[which], self.scores[which], self.plausibility[which], self.measures[which]
        )

    def preferring(self, good: Bools) -> Winners:
        """Return the good rows of factuals that have any, and all rows of the others, at the same cost."""
        return replace(self.take(good | ~np.isin(self.owner, self.owner[good])), cost=self.cost)

    def with_others(self, which: Ints, others: Winners) -> Winners:
        """Return the rows with others at some places, owned by the same factuals; the cost stays."""
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
        """Return the rows of factuals that are counted from another number than 0."""
        return replace(self, owner=self.owner + first)

    def measured(self, features: Sequence[Feature], factuals: Floats) -> Winners:
        """Return the rows with their measures; `factuals` are those that the owners are positions of."""
        own = factuals[self.owner]
        sums = [distance(features).sums(self.rows, own) for distance in (changes, gower_sum)]
        return replace(self, measures=np.stack(sums, axis=1))

    def by_factual(self) -> Winners:
        """Return the rows in the order of their factuals, at the same cost."""
        ordered = self.take(np.argsort(self.owner, kind="stable"))
        return replace(ordered, rows=np.asfortranarray(ordered.rows), cost=self.cost)

    def by_rank(self, n_factuals: int, most: int) -> Floats:
        """Return the measures of rows in the order of their factuals: (factual, rank, measure), NaN where none is."""
        values = np.full((n_factuals, most, 2), np.nan)
        values[self.owner, np.arange(self.owner.size) - np.searchsorted(self.owner, self.owner)] = self.measures
        return values
