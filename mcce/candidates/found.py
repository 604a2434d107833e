"""Counterfactuals on the way: whose they are, and what the model and the trees of plausibility say of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.arrays import Floats


@dataclass(frozen=True)
class Found:
    """Valid rows of some factuals, and how many rows the model was asked for them."""

    owner: npt.NDArray[np.int64]
    rows: Floats
    scores: npt.NDArray[np.generic]
    tree_scores: Floats
    n_asked: int = 0
