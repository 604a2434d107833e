"""Array types, one name per dtype."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]  # nodes and leaves of trees
Indices = npt.NDArray[np.intp]  # indices into another array, as numpy returns them
UInts = npt.NDArray[np.uint64]  # words and keys of random streams
