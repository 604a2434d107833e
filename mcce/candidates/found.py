"""Counterfactuals on the way: for whom they are sought, and what the model and the trees say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mcce.arrays import Bools, Floats, Ints
from mcce.candidates.copies import TrainingRows
from mcce.constraints import FactualConstraints


@dataclass(frozen=True)
class Sought:
    """Factuals that counterfactuals are sought for: encoded rows, and the folds of their trees.

    `excluded` are training rows that none may be a copy of, `constraints` say what may change.
    """

    matrix: Floats
    fold: Ints
    excluded: TrainingRows | None = None
    constraints: FactualConstraints | None = None

    @property
    def admits_all(self) -> bool:
        """Whether any row may be a counterfactual."""
        return self.excluded is None and self.constraints is None

    def admits(self, rows: Floats, owner: Ints) -> Bools:
        """Return which encoded rows may be counterfactuals of the factuals at `owner`."""
        admitted = np.ones(rows.shape[0], dtype=bool) if self.excluded is None else ~self.excluded.contain(rows)
        if self.constraints is not None:
            admitted[admitted] = self.constraints.hold(rows[admitted], owner[admitted])
        return admitted


@dataclass(frozen=True)
class Found:
    """Valid rows of some factuals, and how many rows the model was asked for them."""

    owner: npt.NDArray[np.int64]
    rows: Floats
    scores: npt.NDArray[np.generic]
    tree_scores: Floats
    n_asked: int = 0

    def take(self, which: Ints | Bools) -> Found:
        """Return some of the rows, without what was asked for them."""
        return Found(self.owner[which], self.rows[which], self.scores[which], self.tree_scores[which])

    def counted_from(self, first: int) -> Found:
        """Return the rows of factuals that are counted from another number than 0."""
        return replace(self, owner=self.owner + first)

    @classmethod
    def join(cls, parts: Sequence[Found]) -> Found:
        """Put rows of several searches together, one search after the other."""
        some = [part for part in parts if part.owner.size] or parts[:1]  # scores of no rows have no type
        return cls(
            np.concatenate([part.owner for part in some]),
            np.concatenate([part.rows for part in some]),
            np.concatenate([part.scores for part in some]),
            np.concatenate([part.tree_scores for part in some]),
            sum(part.n_asked for part in parts),
        )
