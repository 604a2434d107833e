"""Values are written back as they were read: in the words, marks and formats of the user's files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from mcce.cli.cells import Reading
from mcce.cli.column import Column
from mcce.cli.numerals import plain


@dataclass(frozen=True)
class Spelling:
    """How the values of a column are written.

    Attributes
    ----------
    reading : how the cells of the training file are read
    texts : value to its first text in the training file
    missing : the text of a missing value there
    decimals : how many digits after the mark all its numbers have; None if that differs, or if there are none
    alike : whether the rows to explain are read in the same way
    """

    reading: Reading
    texts: dict[Any, str]
    missing: str
    decimals: int | None
    alike: bool

    @classmethod
    def of(cls, training: Column, reading: Reading, of_factuals: Reading) -> Spelling:
        """Learn the spelling from the training file."""
        known = [text for text in training.texts if reading.kind == "text" or text.strip()]
        texts: dict[Any, str] = {}
        for text in known:
            texts.setdefault(reading.value_of(text), text)
        absent = training.raw[training.cells.isna()]
        numbers = [str(plain(text, reading.mark)) for text in known] if reading.kind == "number" else []
        points = {len(number.partition(".")[2]) for number in numbers}
        alike = len(points) == 1 and not any("e" in number.lower() for number in numbers)
        missing = str(absent.iloc[0]) if len(absent) else ""
        return cls(reading, texts, missing, points.pop() if alike else None, reading == of_factuals)

    def write(self, values: pd.Series[Any], own: pd.Series[Any], own_texts: pd.Series[Any]) -> list[Any]:
        """Return values as text; those that equal the row's own value keep the row's own text."""
        rows = zip(values.astype(object), own.astype(object), own_texts.astype(object))
        return [text if self.alike and _is_same(value, before) else self._text(value) for value, before, text in rows]

    def _text(self, value: Any) -> Any:
        if pd.isna(value):
            return self.missing
        if value in self.texts:
            return self.texts[value]
        if self.reading.kind == "date":
            return value.strftime(self.reading.form)
        if self.decimals is not None and float(short := f"{value:.{self.decimals}f}") == value:
            return short.replace(".", self.reading.mark)
        if self.reading.kind == "number" and self.reading.mark == ",":
            return repr(float(value)).replace(".", ",")
        return value


def _is_same(value: Any, other: Any) -> bool:
    return bool(pd.isna(value) and pd.isna(other)) or bool(value == other)
