"""What the cells of a text file are: numbers, truths or text. Nothing is recoded in silence.

1. An empty cell is missing, and so is one that `--missing` names; in a column of numbers a blank one, too.
2. A column is of numbers if every other cell is a plain number and writing it as a number loses nothing: no leading
   zero (00026 is a code), no two spellings of one number (1.1 and 1.10 may be versions), no more digits than a whole
   number has room for. Otherwise it is text, and that is said, or refused if it cannot be told.
3. A column is of truths if every other cell is True or False, spelled in one way.
4. A column that is mostly numbers and has text in some cells is refused, with the line of the first; where numbers are
   the minority it is text, and that is said.
5. `--categorical` and `--numeric` say it for the columns they name.
6. `Spelling` writes values back as they were read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from mcce.cli.console import say
from mcce.exceptions import InputError, listing

CellKind = Literal["number", "truth", "text"]
NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE)
WHOLE = re.compile(r"[+-]?[0-9]+")
LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
TRUTHS = {"true": True, "false": False}
MISSING_WORDS = frozenset({"NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?"})
MOST = 2**63  # what a whole number of 64 bits has room for
DIGITS = 4300  # Python reads no longer whole number


@dataclass(frozen=True)
class Column:
    """A column of a text file.

    Attributes
    ----------
    name : str
    raw : its cells as they stand in the file
    cells : the same, NaN where a value is missing
    where : the file, for messages
    line_of : finds the line of a row in the file
    """

    name: str
    raw: pd.Series[Any]
    cells: pd.Series[Any]
    where: str
    line_of: Callable[[int], int]

    @property
    def texts(self) -> list[str]:
        """The different cells, missing ones left out, in the order of their first lines."""
        return [str(text) for text in pd.unique(self.cells.dropna())]

    def first_line(self, text: str) -> str:
        """Return where a text stands first, as the end of a sentence."""
        row = int(np.flatnonzero((self.cells == text).to_numpy(dtype=bool, na_value=False))[0])
        return f"line {self.line_of(row)}"


def find_kind(column: Column, *, categorical: Collection[str], numeric: Collection[str]) -> CellKind:
    """Return what the cells of a training column are (steps 2 to 5)."""
    name, texts = column.name, column.texts
    filled = [text for text in texts if text.strip()]
    others = [text for text in filled if not NUMBER.fullmatch(text.strip())]
    if name in numeric:
        if others:
            raise _wrong_cell(column, others[0], "is named by --numeric", "no number")
        return "number"
    if not texts:
        return "number"
    if name in categorical:
        kind: CellKind = "text" if others or not filled or _lost_as_numbers(filled) else "number"
    elif len(others) == len(filled):
        kind = "truth" if _are_truths(texts) else "text"
    else:
        kind = _numbers_or_codes(column, filled, others)
    if kind == "text":
        _tell_missing_words(column)
    return kind


def read_cells(column: Column, kind: CellKind, *, checked: bool, numeric: Collection[str] = ()) -> pd.Series[Any]:
    """Return the values of a column, as pandas would read them; `checked`: its cells are known to be of this kind."""
    cells = column.cells
    if kind == "text":
        return cells
    if not checked:
        _check_cells(column, kind, numeric)
    values = {text: value_of(text, kind) for text in column.texts}
    if kind == "truth":
        truths = cells.astype(object).map(values)
        return truths if cells.isna().any() else truths.astype(bool)
    numbers = [values.get(cell, np.nan) for cell in cells.astype(object)]
    whole = (
        all(isinstance(value, int) and -MOST <= value < MOST for value in values.values()) and not cells.isna().any()
    )
    return pd.Series(numbers, index=cells.index, name=cells.name, dtype=np.int64 if whole else np.float64)


def value_of(text: str, kind: CellKind) -> Any:
    """Return what a text stands for in a column of this kind."""
    if kind == "text":
        return text
    plain = text.strip()
    if kind == "truth":
        return TRUTHS[plain.lower()]
    if not plain:
        return np.nan
    return int(plain) if WHOLE.fullmatch(plain) and len(plain) < DIGITS else float(plain)


@dataclass(frozen=True)
class Spelling:
    """How the values of a column are written: as they were read (step 6).

    Attributes
    ----------
    texts : value to its first text in the training file
    missing : the text of a missing value there
    decimals : how many digits after the point all its numbers have; None if that differs, or if there are none
    """

    texts: dict[Any, str]
    missing: str
    decimals: int | None

    @classmethod
    def of(cls, training: Column, kind: CellKind) -> Spelling:
        """Learn the spelling from the training file."""
        known = [text for text in training.texts if kind == "text" or text.strip()]
        texts: dict[Any, str] = {}
        for text in known:
            texts.setdefault(value_of(text, kind), text)
        absent = training.raw[training.cells.isna()]
        points = {len(text.strip().partition(".")[2]) for text in known} if kind == "number" else set()
        alike = len(points) == 1 and not any("e" in text.lower() for text in known)
        return cls(texts, str(absent.iloc[0]) if len(absent) else "", points.pop() if alike else None)

    def write(self, values: pd.Series[Any], own: pd.Series[Any], own_texts: pd.Series[Any]) -> list[Any]:
        """Return values as text; those that equal the row's own value keep the row's own text."""
        rows = zip(values.astype(object), own.astype(object), own_texts.astype(object))
        return [text if _is_same(value, before) else self._text(value) for value, before, text in rows]

    def _text(self, value: Any) -> Any:
        if pd.isna(value):
            return self.missing
        if value in self.texts:
            return self.texts[value]
        if self.decimals is not None and float(short := f"{value:.{self.decimals}f}") == value:
            return short
        return value


def _is_same(value: Any, other: Any) -> bool:
    return bool(pd.isna(value) and pd.isna(other)) or bool(value == other)


def _check_cells(column: Column, kind: CellKind, numeric: Collection[str]) -> None:
    """Refuse cells that are not what those of the training column are."""
    name = column.name
    for text in column.texts:
        if kind == "truth" and not _is_truth(text):
            raise _wrong_cell(column, text, "is True or False in the training data", "neither")
        if kind == "number" and text.strip() and not NUMBER.fullmatch(text.strip()):
            raise _wrong_cell(column, text, "is numeric in the training data", "no number")
        if kind == "number" and LEADING_ZERO.match(text.strip()) and name not in numeric:
            raise InputError(
                f"column {name!r} of {column.where} is numeric in the training data, but {column.first_line(text)} "
                f"holds {text!r}, which looks like a code. Add --categorical {name} if these are codes, --numeric "
                f"{name} if they are numbers."
            )


def _is_truth(text: str) -> bool:
    return text.lower() in TRUTHS


def _are_truths(texts: list[str]) -> bool:
    """Whether all are True or False; two spellings of one of them are levels."""
    return bool(texts) and all(map(_is_truth, texts)) and len({text.lower() for text in texts}) == len(texts)


def _lost_as_numbers(texts: list[str]) -> str:
    """Return what would be lost if the texts were read as numbers; empty if nothing is."""
    first: dict[float, str] = {}
    for text in texts:
        plain = text.strip().removeprefix("+")
        if LEADING_ZERO.match(plain):
            return f"{text!r} with a leading zero"
        if WHOLE.fullmatch(plain) and not -MOST <= float(plain) < MOST:
            return f"{text!r}, which has too many digits for a number"
        if not float(plain):
            plain = plain.removeprefix("-")
        other = first.setdefault(float(plain), plain)
        if other != plain:
            return f"{other!r} and {text!r}, which are one number in two spellings"
    return ""


def _numbers_or_codes(column: Column, filled: list[str], others: list[str]) -> CellKind:
    """Return what a column is of which some cells, but not those of `others`, are plain numbers (steps 2 and 4)."""
    name = column.name
    zero = next((text for text in filled if LEADING_ZERO.match(text.strip())), None)
    if zero is not None:
        say(
            f"column {name!r} of {column.where} is taken for codes: {column.first_line(zero)} holds {zero!r}. If these "
            f"are numbers, add --numeric {name}"
        )
        return "text"
    if others:
        return _mixed(column, others)
    lost = _lost_as_numbers(filled)
    if lost:
        raise InputError(
            f"column {name!r} of {column.where} holds {lost}. Add --categorical {name} if these are codes, --numeric "
            f"{name} if they are numbers."
        )
    return "number"


def _mixed(column: Column, others: list[str]) -> CellKind:
    """Step 4: numbers beside text."""
    name, filled = column.name, column.cells.dropna()
    n_others = int(filled.isin(others).sum())
    count = f"{n_others} of {len(filled)} cells are no numbers"
    if 2 * n_others <= len(filled):
        raise InputError(
            f"column {name!r} of {column.where} holds numbers, but {column.first_line(others[0])} holds {others[0]!r} "
            f"({count}: {listing(others, 5)}). Correct it, or add --missing {others[0]} if that means missing, or "
            f"--categorical {name} if these are codes."
        )
    say(
        f"column {name!r} of {column.where} is taken for text: {count}, the first is {others[0]!r} on "
        f"{column.first_line(others[0])}. If they are missing values, name them by --missing"
    )
    return "text"


def _wrong_cell(column: Column, text: str, why: str, what: str) -> InputError:
    return InputError(
        f"column {column.name!r} of {column.where} {why}, but {column.first_line(text)} holds {text!r}, which is "
        f"{what}. Correct it, or name it by --missing if it means missing."
    )


def _tell_missing_words(column: Column) -> None:
    words = [text for text in column.texts if text in MISSING_WORDS]
    if words:
        say(
            f"column {column.name!r} of {column.where} has the level(s) {listing(words)}; if that means missing, add "
            f"--missing {','.join(words)}"
        )
