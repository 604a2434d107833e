"""Search for text among the people of an explorer.

A person matches if every word is part of the name or of a value; case is ignored, and so are commas and currency signs
in numbers. The texts of each feature are built at the first search.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.report.names import BEFORE, Names, case_name
from mcce.table import Feature, Schema
from mcce.table.dtypes import is_dated


class _ColumnTexts(NamedTuple):
    """The texts of the distinct values of a feature, and the position of each person's value among them."""

    texts: list[str]
    places: Ints
    is_number: bool

    def contain(self, word: str) -> Bools:
        """Mark the people whose value contains a word."""
        word = word.lstrip("".join(BEFORE)).replace(",", "") if self.is_number else word
        return _contain(self.texts, word)[self.places]


class PeopleSearch:
    """Search for text among the rows of an encoded table; several threads may search at once."""

    def __init__(self, schema: Schema, matrix: Floats, index: pd.Index[Any], names: Names) -> None:
        self._schema, self._matrix, self._index, self._names = schema, matrix, index, names
        self._lock = Lock()
        self._texts: tuple[list[str], list[_ColumnTexts]] | None = None

    def find(self, search: str) -> tuple[Bools, Bools]:
        """Mark the people found, and those found by their names alone."""
        found, named = np.ones((2, len(self._index)), dtype=bool)
        for word in dict.fromkeys(search.lower().split()):
            names, columns = self._prepared()
            in_name = _contain(names, word)
            found &= np.logical_or.reduce([in_name, *(column.contain(word) for column in columns)])
            named &= in_name
            if not found.any():
                break
        return found, named & found

    def _prepared(self) -> tuple[list[str], list[_ColumnTexts]]:
        with self._lock:
            if self._texts is None:
                columns = [self._column(j, feature) for j, feature in enumerate(self._schema.features)]
                self._texts = [case_name(id).lower() for id in self._index], columns
            return self._texts

    def _column(self, j: int, feature: Feature) -> _ColumnTexts:
        values, places = np.unique(self._matrix[:, j], return_inverse=True)
        cells = pd.Series(feature.decode(values))
        if feature.is_numeric:
            texts = cells.astype(str)
            is_number = not is_dated(feature.dtype)
        else:
            texts, is_number = cells.astype(object).map(lambda level: self._names.text(feature.name, level)), False
        missing = self._names.missing
        return _ColumnTexts(
            [missing if is_missing else text.lower() for text, is_missing in zip(texts, cells.isna())],
            places.ravel(),
            is_number,
        )


def _contain(texts: list[str], word: str) -> Bools:
    return np.array([word in text for text in texts], dtype=bool)
