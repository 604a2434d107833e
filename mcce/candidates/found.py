"""Counterfactuals on the way: whose they are, and what the model and the trees of plausibility say of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.arrays import Bools, Floats


@dataclass(frozen=True)
class Found:
    """Valid rows of some factuals, and how many rows the model was asked for them."""

    owner: npt.NDArray[np.int64]
    rows: Floats
    scores: npt.NDArray[np.generic]
    tree_scores: Floats
    n_asked: int = 0

    def take(self, which: Bools) -> Found:
        """Return some of the rows, without what was asked for them."""
        return Found(self.owner[which], self.rows[which], self.scores[which], self.tree_scores[which])
