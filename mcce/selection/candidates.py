"""What is chosen among: encoded rows, and which of them each factual may have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mcce.arrays import Floats, Ints


@dataclass(frozen=True)
class Candidates:
    """Factual i may choose among rows[begin[i] : end[i]] of one encoded matrix; on ties the earlier row wins.

    `distinct` says that no two rows of a factual are equal, which spares the search for them.
    """

    rows: Floats
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    distinct: bool = False

    def pools(self, which: Ints) -> Iterator[tuple[int, int, Ints]]:
        """Yield where each pool of some factuals begins and ends, and whose it is; pools without rows are left out."""
        begins, ends = self.begin[which], self.end[which]
        filled = ends > begins  # two pools begin at the same row if one of them has none
        for begin in np.unique(begins[filled]):
            mine = filled & (begins == begin)
            yield int(begin), int(ends[mine][0]), which[mine]
