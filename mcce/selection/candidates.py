"""What is chosen among: encoded rows, and which of them each factual may have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.arrays import Floats


@dataclass(frozen=True)
class Candidates:
    """Factual i may choose among rows[begin[i] : end[i]] of one encoded matrix; on ties the earlier row wins.

    `distinct` says that no two rows of a factual are equal, which spares the search for them.
    """

    rows: Floats
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    distinct: bool = False
