"""Types of arrays: one name for each dtype, the same in every module."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]  # nodes and leaves of trees
Indices = npt.NDArray[np.intp]  # places in another array, as numpy gives them
UInts = npt.NDArray[np.uint64]  # words and keys of random streams
