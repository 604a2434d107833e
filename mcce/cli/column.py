"""A column of a text file, or of a table whose cells are written as text: its cells, and where they stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Column:
    """A column as text.

    Attributes
    ----------
    name : str
    raw : its cells as they stand in the file
    cells : the same, NaN where a value is missing
    where : the file, for messages
    place : says where a row is in the file, as in "line 7"
    native : whether the file knows that these are numbers, so that their text is Python's
    """

    name: str
    raw: pd.Series[Any]
    cells: pd.Series[Any]
    where: str
    place: Callable[[int], str]
    native: bool = False

    @cached_property
    def texts(self) -> list[str]:
        """The different cells, missing ones left out, in the order of their first lines."""
        return [str(text) for text in pd.unique(self.cells.dropna().astype(object))]

    def place_of(self, text: str) -> str:
        """Return where a text stands first."""
        return self.place(int(np.flatnonzero((self.cells == text).to_numpy(dtype=bool, na_value=False))[0]))
