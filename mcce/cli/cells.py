"""What the cells of a text file are: numbers, dates, truths or text. Nothing is recoded in silence.

1. An empty cell is missing, and so is one that `--missing` names; in a column of numbers or dates a blank one, too.
2. A column is of numbers if every other cell is a number (`mcce.cli.numerals`) and writing it as a number loses
   nothing: no leading zero (00026 is a code), no two spellings of one number (1.1 and 1.10 may be versions), no more
   digits than a whole number has room for. Otherwise it is text, and that is said, or refused if it cannot be told.
3. A column is of truths if every other cell is True or False, spelled in one way; of dates if every other cell is a
   date in one format (`mcce.cli.dates`), and that is said.
4. A column that is mostly numbers or dates and has text in some cells is refused, with the line of the first; where
   numbers are the minority it is text, and that is said.
5. `--categorical`, `--numeric`, `--dates`, `--kinds` and `--ordered` say it for the columns they name.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import pandas as pd

from mcce.cli.column import Column
from mcce.cli.console import say
from mcce.cli.dates import ORDERS, date_of, find_format
from mcce.cli.declared import Declared
from mcce.cli.numerals import WORD_OF, Mark, is_plain, plain, unread
from mcce.exceptions import InputError, listing

CellKind = Literal["number", "truth", "date", "text"]
WHOLE = re.compile(r"[+-]?[0-9]+")
LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
TRUTHS = {"true": True, "false": False}
MISSING_WORDS = frozenset(
    {
        "NA",
        "N/A",
        "n/a",
        "NaN",
        "nan",
        "NULL",
        "null",
        "None",
        "?",
        "#N/A",
        "#NV",
        "#DIV/0!",
        "#VALUE!",
        "#REF!",
        "#NAME?",
    }
)
MOST = 2**63  # what a whole number of 64 bits has room for
DIGITS = 4300  # Python reads no longer whole number


@dataclass(frozen=True)
class Reading:
    """How the cells of a column are read.

    Attributes
    ----------
    kind : what they are
    mark : the decimal mark of numbers
    form : the format of dates, as in strftime
    native : whether they are values already, which stay as they are
    """

    kind: CellKind
    mark: Mark = "."
    form: str = ""
    native: bool = False

    def value_of(self, text: str) -> Any:
        """Return what a text stands for."""
        if self.kind == "text":
            return text
        if self.kind == "truth":
            return TRUTHS[text.strip().lower()]
        if not text.strip():
            return pd.NaT if self.kind == "date" else np.nan
        if self.kind == "date":
            return date_of(text, self.form)
        number = str(plain(text, self.mark))
        return int(number) if WHOLE.fullmatch(number) and len(number) < DIGITS else float(number)


TEXT = Reading("text")


def find_reading(column: Column, mark: Mark, said: Declared) -> Reading:
    """Return what the cells of a training column are (steps 2 to 5)."""
    name, texts = column.name, column.texts
    filled = [text for text in texts if text.strip()]
    others = [text for text in filled if plain(text, mark) is None]
    if name in said.numbers:
        if others:
            raise _wrong_cell(column, others[0], "is named by --numeric", _no_number(mark))
        return Reading("number", mark)
    if name in said.dates:
        return Reading("date", form=_named_format(column, filled, said.dates[name]))
    if not texts:
        return Reading("number", mark)
    if name in said.levels:
        is_text = others or not filled or not all(map(is_plain, filled)) or _lost_as_numbers(filled, mark)
        reading = TEXT if is_text else Reading("number", mark)
    elif len(others) == len(filled):
        if filled and said.decimals.of(name) and all(plain(text, "," if mark == "." else ".") for text in filled):
            raise _wrong_cell(column, filled[0], f"is to be read by --decimal {WORD_OF[mark]}", _no_number(mark))
        reading = Reading("truth") if _are_truths(texts) else _dates_or_text(column, filled)
    else:
        reading = _numbers_or_codes(column, mark, filled, others)
    if reading == TEXT:
        _tell_missing_words(column)
    return reading


def read_cells(column: Column, reading: Reading, *, checked: bool, numbers: Collection[str] = ()) -> pd.Series[Any]:
    """Return the values of a column, as pandas would read them; `checked`: its cells are known to be of this kind."""
    cells = column.cells
    if reading.kind == "text":
        return cells
    if not checked:
        _check_cells(column, reading, numbers)
    values = {text: reading.value_of(text) for text in column.texts}
    if reading.kind == "truth":
        truths = cells.astype(object).map(values)
        return truths if cells.isna().any() else truths.astype(bool)
    if reading.kind == "date":
        unit = "us" if "%f" in reading.form else "s"
        stamps = np.array([_stamp(values.get(cell)) for cell in cells.astype(object)], dtype=f"M8[{unit}]")
        return pd.Series(stamps, index=cells.index, name=cells.name)
    found = [values.get(cell, np.nan) for cell in cells.astype(object)]
    whole = (
        all(isinstance(value, int) and -MOST <= value < MOST for value in values.values()) and not cells.isna().any()
    )
    return pd.Series(found, index=cells.index, name=cells.name, dtype=np.int64 if whole else np.float64)


def _stamp(value: Any) -> datetime | None:
    return value if isinstance(value, datetime) and not pd.isna(value) else None


def _check_cells(column: Column, reading: Reading, numbers: Collection[str]) -> None:
    """Refuse cells that are not what those of the training column are."""
    name, kind = column.name, reading.kind
    for text in column.texts:
        if kind == "truth" and not _is_truth(text):
            raise _wrong_cell(column, text, "is True or False in the training data", "neither")
        if kind == "date" and text.strip() and date_of(text, reading.form) is None:
            raise _wrong_cell(column, text, "is of dates in the training data", f"no date like {_now(reading.form)}")
        number = plain(text, reading.mark) if kind == "number" and text.strip() else "0"
        if number is None:
            raise _wrong_cell(column, text, "is numeric in the training data", _no_number(reading.mark))
        if kind == "number" and LEADING_ZERO.match(number) and name not in numbers:
            raise InputError(
                f"column {name!r} of {column.where} is numeric in the training data, but {column.place_of(text)} "
                f"holds {text!r}, which looks like a code. Add --categorical {name} if these are codes, --numeric "
                f"{name} if they are numbers."
            )


def _is_truth(text: str) -> bool:
    return text.lower() in TRUTHS


def _are_truths(texts: list[str]) -> bool:
    """Whether all are True or False; two spellings of one of them are levels."""
    return bool(texts) and all(map(_is_truth, texts)) and len({text.lower() for text in texts}) == len(texts)


def _lost_as_numbers(texts: list[str], mark: Mark) -> str:
    """Return what would be lost if the texts were read as numbers; empty if nothing is."""
    first: dict[float, str] = {}
    for text in texts:
        number = str(plain(text, mark)).removeprefix("+")
        if LEADING_ZERO.match(number):
            return f"{text!r} with a leading zero"
        if WHOLE.fullmatch(number) and not -MOST <= float(number) < MOST:
            return f"{text!r}, which has too many digits for a number"
        if not is_plain(text):  # no version is written with a comma
            continue
        if not float(number):
            number = number.removeprefix("-")
        other = first.setdefault(float(number), number)
        if other != number:
            return f"{other!r} and {text!r}, which are one number in two spellings"
    return ""


def _numbers_or_codes(column: Column, mark: Mark, filled: list[str], others: list[str]) -> Reading:
    """Return what a column is of which some cells, but not those of `others`, are numbers (steps 2 and 4)."""
    name = column.name
    zero = next((text for text in filled if LEADING_ZERO.match(text.strip())), None)
    if zero is not None:
        say(
            f"column {name!r} of {column.where} is taken for codes: {column.place_of(zero)} holds {zero!r}. If these "
            f"are numbers, add --numeric {name}"
        )
        return TEXT
    if others:
        return _mixed(column, others)
    lost = _lost_as_numbers(filled, mark)
    if lost:
        raise InputError(
            f"column {name!r} of {column.where} holds {lost}. Add --categorical {name} if these are codes, --numeric "
            f"{name} if they are numbers."
        )
    return Reading("number", mark)


def _dates_or_text(column: Column, filled: list[str]) -> Reading:
    """Return what a column is that has no numbers: dates, or text (steps 3 and 4)."""
    name = column.name
    if (found := unread(filled)) is not None:
        what, remedy = found
        raise InputError(
            f"column {name!r} of {column.where} holds {what}: {column.place_of(filled[0])} holds {filled[0]!r}. "
            f"{remedy}, or add --kinds {name}=level if these are levels."
        )
    forms, common = find_format(filled)
    if len(forms) > 1:
        raise _two_dates(column, filled, forms)
    if forms:
        say(
            f"column {name!r} of {column.where} is taken for dates: {column.place_of(filled[0])} holds {filled[0]!r}, "
            f"read as {_iso(date_of(filled[0], forms[0]))}. If they are levels, add --kinds {name}=level"
        )
        return Reading("date", form=forms[0])
    others = [] if common is None else [text for text in filled if date_of(text, common) is None]
    n_others = int(column.cells.isin(others).sum())
    if common is not None and 2 * n_others <= len(column.cells.dropna()):
        raise InputError(
            f"column {name!r} of {column.where} holds dates like {_now(common)}, but {column.place_of(others[0])} "
            f"holds {others[0]!r} ({n_others} of {len(column.cells.dropna())} cells are no such dates: "
            f"{listing(others, 5)}). Correct it, or add --missing {others[0]} if that means missing, or --kinds "
            f"{name}=level if these are levels."
        )
    return TEXT


def _named_format(column: Column, filled: list[str], said: str) -> str:
    """Return the format of a column that `--dates` names; `said` is an order, a format or empty."""
    if "%" in said:
        wrong = next((text for text in filled if date_of(text, said) is None), None)
        if wrong is not None:
            raise _wrong_cell(column, wrong, f"is named by --dates with {said}", f"no date like {_now(said)}")
        return said
    forms, common = find_format(filled, said or None)
    if len(forms) > 1:
        raise _two_dates(column, filled, forms)
    if not forms:
        wrong = next((text for text in filled if common is None or date_of(text, common) is None), None)
        if wrong is None:
            return "%Y-%m-%d"  # there are no cells
        what = "no date that is known" if common is None else f"no date like {_now(common)}"
        raise _wrong_cell(column, wrong, "is named by --dates", f"{what}; a format is given as {column.name}=%d.%m.%Y")
    return forms[0]


def _two_dates(column: Column, filled: list[str], forms: list[str]) -> InputError:
    text = next(text for text in filled if len({date_of(text, form) for form in forms}) > 1)
    read = " or ".join(_iso(date_of(text, form)) for form in forms)
    orders = [order for order in ORDERS if any(form.lower().startswith(f"%{order[0]}") for form in forms)]
    return InputError(
        f"column {column.name!r} of {column.where} holds dates that can be read in two ways: {column.place_of(text)} "
        f"holds {text!r}, which is {read}. Add --dates {column.name}={f' or --dates {column.name}='.join(orders)}."
    )


def _mixed(column: Column, others: list[str]) -> Reading:
    """Step 4: numbers beside text."""
    name, filled = column.name, column.cells.dropna()
    n_others = int(filled.isin(others).sum())
    count = f"{n_others} of {len(filled)} cells are no numbers"
    if 2 * n_others <= len(filled):
        raise InputError(
            f"column {name!r} of {column.where} holds numbers, but {column.place_of(others[0])} holds {others[0]!r} "
            f"({count}: {listing(others, 5)}). Correct it, or add --missing {others[0]} if that means missing, or "
            f"--categorical {name} if these are codes."
        )
    say(
        f"column {name!r} of {column.where} is taken for text: {count}, the first is {others[0]!r} on "
        f"{column.place_of(others[0])}. If they are missing values, name them by --missing"
    )
    return TEXT


def _wrong_cell(column: Column, text: str, why: str, what: str) -> InputError:
    return InputError(
        f"column {column.name!r} of {column.where} {why}, but {column.place_of(text)} holds {text!r}, which is "
        f"{what}. Correct it, or name it by --missing if it means missing."
    )


def _no_number(mark: Mark) -> str:
    return "no number" if mark == "." else "no number with a decimal comma"


def _iso(date: datetime | None) -> str:
    return "" if date is None else date.isoformat(" ").removesuffix(" 00:00:00")


def _now(form: str) -> str:
    return datetime(2024, 12, 31, 18, 30).strftime(form)


def _tell_missing_words(column: Column) -> None:
    words = [text for text in column.texts if text in MISSING_WORDS]
    if words:
        say(
            f"column {column.name!r} of {column.where} has the level(s) {listing(words)}; if that means missing, add "
            f"--missing {','.join(words)}"
        )
