"""Where labels stand in an index, whatever they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd


def find_labels(index: pd.Index[Any], labels: pd.Index[Any]) -> npt.NDArray[np.intp]:
    """Return the place of each label in an index of different ones, -1 for those that are not there.

    An index of intervals refuses to look for anything if two of them overlap; as labels they are like any others.
    """
    return np.asarray(_plain(index).get_indexer_for(_plain(labels)))


def _plain(index: pd.Index[Any]) -> pd.Index[Any]:
    return index.astype(object) if isinstance(index, pd.IntervalIndex) else index
