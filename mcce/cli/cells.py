"""Cells of a text file: numbers, dates, truths or text, found column by column, and written back as they were read.

Nothing is recoded in silence.

1. An empty cell is missing, and so is one that `--missing` names; in a column of numbers or dates a blank one, too.
2. A column is of numbers if every other cell is a number and writing it as a number loses nothing: no leading zero
   (00026 is a code), no two spellings of one number (1.1 and 1.10 may be versions), no more digits than a whole number
   has room for. Otherwise it is text, and a note says so, or refused if it cannot be told.
3. A column is of truths if every other cell is True or False, spelled in one way; of dates if every other cell is a
   date in one format, and a note says so.
4. A column that is mostly numbers or dates and has text in some cells is refused, with the line of the first; where
   numbers are the minority it is text, and a note says so.
5. `--categorical`, `--numeric`, `--dates`, `--kinds` and `--ordered` say it for the columns they name (`Declared`).
6. Results are written in the words, marks and formats of the user's files (`Spelling`).

Numbers have a decimal point or comma, and their thousands may stand apart:

- `plain` writes a number as Python does, or says that it is none under a decimal mark. Thousands stand apart by the
  other mark, a space or an apostrophe, always three digits and always alike: 1.234,5 or 1'234.5 or 1 234,5.
- `find_marks` finds the decimal mark of each column of a file: the only one under which all its cells are numbers.
  Under both, as in 1,234, the other columns of the file decide.
- Where nothing tells, a point is a decimal point in files that are separated by commas; everything else is refused.

Dates have many formats:

- `find_format` finds the one format that all cells of a column have: ISO, day.month.year, day/month/year or
  month/day/year, with the month's English name, each with or without a time.
- 03/04/2024 is 3 April or March 4: unless some cell has a day beyond 12, or both readings agree, it is refused.
- `--dates` names a column and, if it has to, the order or the format: dmy, mdy, ymd, or a format of strftime.
- `date_of` reads a cell; an offset from UTC is taken into account, and the date is then UTC.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from mcce.cli.console import say
from mcce.exceptions import InputError, did_you_mean, listing, shorten, spell


@dataclass(frozen=True)
class TextColumn:
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


DAYS = {
    "ymd": ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y-%m"),
    "dmy": ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%d. %B %Y"),
    "mdy": ("%m/%d/%Y", "%m-%d-%Y", "%b %d, %Y", "%B %d, %Y"),
}
SHORT = {  # a year of two digits is read if the user names the order
    "ymd": ("%y-%m-%d", "%y/%m/%d", "%Y%m%d", "%y%m%d"),
    "dmy": ("%d.%m.%y", "%d/%m/%y", "%d-%m-%y", "%d%m%Y", "%d %b %y", "%d-%b-%y"),
    "mdy": ("%m/%d/%y", "%m-%d-%y", "%m%d%Y"),
}
TIMES = (
    "",
    " %H:%M",
    " %H:%M:%S",
    " %H:%M:%S.%f",
    "T%H:%M",
    "T%H:%M:%S",
    "T%H:%M:%S.%f",
    "T%H:%M:%S%z",
    "T%H:%M:%S.%f%z",
)
ORDERS = tuple(DAYS)
LIKELY = re.compile(r"\d[^\d\n]+\d")  # a date has two numbers and something between them
MOST_LETTERS = 100


def date_of(text: str, form: str) -> datetime | None:
    """Return the date that a text is in this format, None if it is none."""
    bare = text.strip()
    if len(bare) > MOST_LETTERS:
        return None
    try:
        date = datetime.strptime(bare, form)
    except (ValueError, re.error):  # one that names a part twice, as %d%d does, is no format
        return None
    return date if date.tzinfo is None else date.astimezone(timezone.utc).replace(tzinfo=None)


def formats_of(order: str | None) -> list[str]:
    """Return the formats to try: all with years of four digits, or all of one order of day, month and year."""
    days = [*DAYS[order], *SHORT[order]] if order else [form for each in DAYS.values() for form in each]
    return [day + time for day in days for time in TIMES]


def find_format(texts: Sequence[str], order: str | None = None) -> tuple[list[str], str | None]:
    """Return the formats that all texts have and that read them differently, and the most common one.

    The second is the format that most of the texts have, for messages about the others.
    """
    some = [text for text in texts[:50] if order or LIKELY.search(text)]
    near = [form for form in formats_of(order) if any(date_of(text, form) for text in some)]
    counts = {form: sum(date_of(text, form) is not None for text in texts) for form in near}
    common = max(counts, key=lambda form: counts[form], default=None)
    fitting: dict[tuple[datetime | None, ...], str] = {}
    for form in near:
        if counts[form] == len(texts):
            fitting.setdefault(tuple(date_of(text, form) for text in texts), form)
    return list(fitting.values()), common


Mark = Literal[".", ","]
MARKS: tuple[Mark, Mark] = (".", ",")
WORDS: dict[str, Mark] = {".": ".", "point": ".", ",": ",", "comma": ","}
WORD_OF: dict[Mark, str] = {".": "point", ",": "comma"}
APART = " \u00a0\u202f'’"  # what thousands stand apart by, besides the other mark
MINUS = "\u2212"


def _pattern(decimal: Mark, other: Mark) -> re.Pattern[str]:
    grouped = rf"[1-9][0-9]{{0,2}}(?P<apart>[{APART}{other}])[0-9]{{3}}(?:(?P=apart)[0-9]{{3}})*"
    mantissa = rf"(?:(?:{grouped}|[0-9]+)(?:\{decimal}[0-9]*)?|\{decimal}[0-9]+)"
    return re.compile(rf"[+{MINUS}-]?(?:{mantissa}(?:e[+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE)


_PATTERNS: dict[Mark, re.Pattern[str]] = {".": _pattern(".", ","), ",": _pattern(",", ".")}
_USUAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")  # found sooner than by the full pattern
_PLAIN = re.compile(r"[0-9.eE+-]*")
_WITH_SIGN = re.compile(
    # a blank before the sign at the end is found in one way only, so that time is linear in the blanks
    rf"([€$£¥]\s*)?[+{MINUS}-]?[0-9](?:[0-9.,{APART}]*[0-9.,'’])?(\s*(?:[%‰€$£¥]|eur|usd|gbp|chf|kr))?",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(rf"\([0-9][0-9.,{APART}]*\)")
_TIME_OF_DAY = re.compile(r"[0-9]{1,2}:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?(?:\s*[ap]\.?m\.?)?", re.IGNORECASE)


@dataclass(frozen=True)
class Decimals:
    """Decimal marks that the user gives: one for all columns, or by column."""

    rest: Mark | None = None
    by_column: tuple[tuple[str, Mark], ...] = ()

    def of(self, name: str) -> Mark | None:
        """Return the mark of a column, None if none is given."""
        return dict(self.by_column).get(name, self.rest)


def plain(text: str, decimal: Mark) -> str | None:
    """Return a number as Python writes it; None if the text is no number under this mark."""
    bare = text.strip()
    if decimal == "." and _USUAL.fullmatch(bare):
        return bare
    if not _PATTERNS[decimal].fullmatch(bare):
        return None
    if decimal == "." and _PLAIN.fullmatch(bare):
        return bare
    other = "," if decimal == "." else "."
    return re.sub(f"[{APART}{other}]", "", bare).replace(",", ".").replace(MINUS, "-")


def is_plain(text: str) -> bool:
    """Say whether a number is written without marks that Python would not write."""
    return bool(_PLAIN.fullmatch(text.strip()))


def unread(texts: Collection[str]) -> tuple[str, str] | None:
    """Return what texts are that mean numbers but are not read as such, and the remedy; None if they are not all so."""
    signs = [_WITH_SIGN.fullmatch(text.strip()) for text in texts]
    if not signs:
        return None
    if all(match is not None and (match[1] or match[2]) for match in signs):
        return "numbers with a sign", "Remove the signs"
    if all(_IN_BRACKETS.fullmatch(text.strip()) for text in texts):
        return "numbers in brackets", "Write them with a minus"
    if all(_TIME_OF_DAY.fullmatch(text.strip()) for text in texts):
        return "times of day", "Write them as numbers, such as hours"
    return None


def find_marks(
    columns: Sequence[TextColumn], declared: Decimals, *, sep: str, levels: Collection[str], hints: Mapping[str, Mark]
) -> dict[str, Mark]:
    """Return the decimal mark of each column of a file.

    Parameters
    ----------
    columns : those of one file that are used
    declared : the marks that the user gives
    sep : what separates the cells
    levels : columns whose cells are no numbers whatever they look like
    hints : marks of the training file's columns, for the rows to explain
    """
    numbers = [column for column in columns if column.name not in levels]
    given = {column.name: "." if column.native else declared.of(column.name) for column in numbers}
    could = {column.name: _possible(column, given[column.name]) for column in numbers}
    seen = {marks[0] for name, marks in could.items() if len(marks) == 1 and given[name] is None}
    found: dict[str, Mark] = {}
    told: dict[Mark, list[TextColumn]] = {".": [], ",": []}
    for column in numbers:
        marks, hint = could[column.name], hints.get(column.name)
        if len(marks) < 2:
            mark = marks[0] if marks else given[column.name] or hint or _nearer(column)
        elif hint is not None and seen <= {hint}:
            mark = hint
        elif len(seen) == 1:
            mark = next(iter(seen))
        elif not seen and sep == "," and not any("," in text for text in column.texts):
            mark = "."
        else:
            raise _two_readings(column, marks)
        found[column.name] = mark
        if marks and mark != hint and given[column.name] is None and not all(map(is_plain, column.texts)):
            told[mark].append(column)
    for mark, noted in told.items():
        _tell(noted, mark)
    return found


def _possible(column: TextColumn, given: Mark | None) -> list[Mark]:
    """Return the marks under which all cells are numbers; none if they are the same numbers under both."""
    texts = [text for text in column.texts if text.strip()]
    allowed = MARKS if given is None else (given,)
    marks = [mark for mark in allowed if all(plain(text, mark) is not None for text in texts)]
    same = len(marks) == 2 and all(plain(text, ".") == plain(text, ",") for text in texts)
    return [] if same else marks  # whole numbers say nothing about the mark


def _nearer(column: TextColumn) -> Mark:
    """Return the mark under which more of the cells are numbers, the point on ties."""
    counts = [sum(plain(text, mark) is not None for text in column.texts) for mark in MARKS]
    return "," if counts[1] > counts[0] else "."


def _two_readings(column: TextColumn, marks: Sequence[Mark]) -> InputError:
    text = next(text for text in column.texts if plain(text, ".") != plain(text, ","))
    point, comma = (float(str(plain(text, mark))) for mark in marks)
    return InputError(
        f"column {column.name!r} of {column.where} can be read in two ways: {column.place_of(text)} holds "
        f"{spell(text)}, which is {point:.10g} with a decimal point and {comma:.10g} with a decimal comma. Add "
        f"--decimal point or --decimal comma, or --decimal {column.name}=comma for this column alone; --kinds "
        f"{column.name}=level if these are codes."
    )


def _tell(columns: Sequence[TextColumn], mark: Mark) -> None:
    if not columns:
        return
    first = columns[0]
    text = next(text for text in first.texts if not is_plain(text))
    say(
        f"column(s) {listing(column.name for column in columns)} of {first.where} are read with a decimal "
        f"{WORD_OF[mark]}: {first.place_of(text)} holds {spell(text)}, read as {shorten(str(plain(text, mark)))}. "
        "If that is wrong, add --decimal"
    )


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


def find_reading(column: TextColumn, mark: Mark, declared: Declared) -> Reading:
    """Return what the cells of a training column are (steps 2 to 5)."""
    name, texts = column.name, column.texts
    filled = [text for text in texts if text.strip()]
    others = [text for text in filled if plain(text, mark) is None]
    if name in declared.numbers:
        if others:
            raise _wrong_cell(column, others[0], "is named by --numeric", _no_number(mark))
        return Reading("number", mark)
    if name in declared.dates:
        return Reading("date", form=_named_format(column, filled, declared.dates[name]))
    if not texts:
        return Reading("number", mark)
    if name in declared.levels:
        is_text = others or not filled or not all(map(is_plain, filled)) or _lost_as_numbers(filled, mark)
        reading = TEXT if is_text else Reading("number", mark)
    elif len(others) == len(filled):
        if filled and declared.decimals.of(name) and all(plain(text, "," if mark == "." else ".") for text in filled):
            raise _wrong_cell(column, filled[0], f"is to be read by --decimal {WORD_OF[mark]}", _no_number(mark))
        reading = Reading("truth") if _are_truths(texts) else _dates_or_text(column, filled)
    else:
        reading = _numbers_or_codes(column, mark, filled, others)
    if reading == TEXT:
        _tell_missing_words(column)
    return reading


def read_cells(column: TextColumn, reading: Reading, *, checked: bool, numbers: Collection[str] = ()) -> pd.Series[Any]:
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


def _check_cells(column: TextColumn, reading: Reading, numbers: Collection[str]) -> None:
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
                f"holds {spell(text)}, which looks like a code. Add --categorical {name} if these are codes, --numeric "
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
            return f"{spell(text)} with a leading zero"
        if WHOLE.fullmatch(number) and not -MOST <= float(number) < MOST:
            return f"{spell(text)}, which has too many digits for a number"
        if not is_plain(text):  # no version is written with a comma
            continue
        if not float(number):
            number = number.removeprefix("-")
        other = first.setdefault(float(number), number)
        if other != number:
            return f"{spell(other)} and {spell(text)}, which are one number in two spellings"
    return ""


def _numbers_or_codes(column: TextColumn, mark: Mark, filled: list[str], others: list[str]) -> Reading:
    """Return what a column is of which some cells, but not those of `others`, are numbers (steps 2 and 4)."""
    name = column.name
    zero = next((text for text in filled if LEADING_ZERO.match(text.strip())), None)
    if zero is not None:
        say(
            f"column {name!r} of {column.where} is taken for codes: {column.place_of(zero)} holds {spell(zero)}. If "
            f"these are numbers, add --numeric {name}"
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


def _dates_or_text(column: TextColumn, filled: list[str]) -> Reading:
    """Return what a column is that has no numbers: dates, or text (steps 3 and 4)."""
    name = column.name
    if (found := unread(filled)) is not None:
        what, remedy = found
        raise InputError(
            f"column {name!r} of {column.where} holds {what}: {column.place_of(filled[0])} holds {spell(filled[0])}. "
            f"{remedy}, or add --kinds {name}=level if these are levels."
        )
    forms, common = find_format(filled)
    if len(forms) > 1:
        raise _two_dates(column, filled, forms)
    if forms:
        say(
            f"column {name!r} of {column.where} is taken for dates: {column.place_of(filled[0])} holds "
            f"{spell(filled[0])}, read as {_iso(date_of(filled[0], forms[0]))}. If they are levels, add --kinds "
            f"{name}=level"
        )
        return Reading("date", form=forms[0])
    others = [] if common is None else [text for text in filled if date_of(text, common) is None]
    n_others = int(column.cells.isin(others).sum())
    if common is not None and 2 * n_others <= len(column.cells.dropna()):
        raise InputError(
            f"column {name!r} of {column.where} holds dates like {_now(common)}, but {column.place_of(others[0])} "
            f"holds {spell(others[0])} ({n_others} of {len(column.cells.dropna())} cells are no such dates: "
            f"{listing(others, 5)}). Correct it, or add --missing {shorten(others[0])} if that means missing, or "
            f"--kinds {name}=level if these are levels."
        )
    return TEXT


def _named_format(column: TextColumn, filled: list[str], order: str) -> str:
    """Return the format of a column that `--dates` names; `order` is that of day, month and year, a format or empty."""
    if "%" in order:
        wrong = next((text for text in filled if date_of(text, order) is None), None)
        if wrong is not None:
            raise _wrong_cell(column, wrong, f"is named by --dates with {order}", f"no date like {_now(order)}")
        return order
    forms, common = find_format(filled, order or None)
    if len(forms) > 1:
        raise _two_dates(column, filled, forms)
    if not forms:
        wrong = next((text for text in filled if common is None or date_of(text, common) is None), None)
        if wrong is None:
            return "%Y-%m-%d"  # there are no cells
        what = "no date that is known" if common is None else f"no date like {_now(common)}"
        raise _wrong_cell(column, wrong, "is named by --dates", f"{what}; a format is given as {column.name}=%d.%m.%Y")
    return forms[0]


def _two_dates(column: TextColumn, filled: list[str], forms: list[str]) -> InputError:
    text = next(text for text in filled if len({date_of(text, form) for form in forms}) > 1)
    read = " or ".join(_iso(date_of(text, form)) for form in forms)
    orders = [order for order in ORDERS if any(form.lower().startswith(f"%{order[0]}") for form in forms)]
    return InputError(
        f"column {column.name!r} of {column.where} holds dates that can be read in two ways: {column.place_of(text)} "
        f"holds {spell(text)}, which is {read}. Add --dates {column.name}={f' or --dates {column.name}='.join(orders)}."
    )


def _mixed(column: TextColumn, others: list[str]) -> Reading:
    """Step 4: numbers beside text."""
    name, filled = column.name, column.cells.dropna()
    n_others = int(filled.isin(others).sum())
    count = f"{n_others} of {len(filled)} cells are no numbers"
    if 2 * n_others <= len(filled):
        raise InputError(
            f"column {name!r} of {column.where} holds numbers, but {column.place_of(others[0])} holds "
            f"{spell(others[0])} ({count}: {listing(others, 5)}). Correct it, or add --missing {shorten(others[0])} if "
            f"that means missing, or --categorical {name} if these are codes."
        )
    say(
        f"column {name!r} of {column.where} is taken for text: {count}, the first is {spell(others[0])} on "
        f"{column.place_of(others[0])}. If they are missing values, name them by --missing"
    )
    return TEXT


def _wrong_cell(column: TextColumn, text: str, why: str, what: str) -> InputError:
    return InputError(
        f"column {column.name!r} of {column.where} {why}, but {column.place_of(text)} holds {spell(text)}, which is "
        f"{what}. Correct it, or name it by --missing if it means missing."
    )


def _no_number(mark: Mark) -> str:
    return "no number" if mark == "." else "no number with a decimal comma"


def _iso(date: datetime | None) -> str:
    return "" if date is None else date.isoformat(" ").removesuffix(" 00:00:00")


def _now(form: str) -> str:
    return datetime(2024, 12, 31, 18, 30).strftime(form)


def _tell_missing_words(column: TextColumn) -> None:
    words = [text for text in column.texts if text in MISSING_WORDS]
    if words:
        say(
            f"column {column.name!r} of {column.where} has the level(s) {listing(words)}; if that means missing, add "
            f"--missing {','.join(words)}"
        )


KINDS = ("number", "level", "date")


@dataclass(frozen=True)
class Declared:
    """The kinds of columns that the user gives: numbers, levels or dates, and the order of levels.

    Attributes
    ----------
    numbers, levels : names of columns
    dates : how the dates of a column are written: an order (dmy), a format of strftime, or nothing
    decimals : decimal marks
    ordered : levels from the lowest to the highest
    """

    numbers: frozenset[str] = frozenset()
    levels: frozenset[str] = frozenset()
    dates: Mapping[str, str] = field(default_factory=dict)
    decimals: Decimals = field(default_factory=Decimals)
    ordered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Declared:
        """Put the options together; contradictions are refused."""
        for name, kind in arguments.kinds.items():
            if kind not in KINDS:
                raise InputError(f"--kinds says {name}={kind}; {did_you_mean(kind, KINDS)}")
        by_kind = {kind: [name for name, each in arguments.kinds.items() if each == kind] for kind in KINDS}
        named = [name for name in arguments.ordered if name]
        by_option = {
            "--categorical": arguments.categorical,
            "--numeric": arguments.numeric,
            "--dates": list(arguments.dates),
            "--kinds ...=level": by_kind["level"],
            "--kinds ...=number": by_kind["number"],
            "--kinds ...=date": by_kind["date"],
            "--ordered": named,
        }
        alike = [
            ("--categorical", "--kinds ...=level"),
            ("--categorical", "--ordered"),
            ("--kinds ...=level", "--ordered"),
        ]
        alike += [("--numeric", "--kinds ...=number"), ("--dates", "--kinds ...=date")]
        options = list(by_option)
        for i, one in enumerate(options):
            for other in options[i + 1 :]:
                both = [name for name in by_option[one] if name in by_option[other]]
                if both and (one, other) not in alike:
                    raise InputError(f"{one} and {other} both name {listing(both)}; a column is one of them.")
        return cls(
            frozenset([*arguments.numeric, *by_kind["number"]]),
            frozenset([*arguments.categorical, *by_kind["level"], *named]),
            {**dict.fromkeys(by_kind["date"], ""), **arguments.dates},
            arguments.decimal,
            {name: tuple(levels) for name, levels in arguments.ordered.items()},
        )


@dataclass(frozen=True)
class Spelling:
    """How the values of a column are written.

    Attributes
    ----------
    reading : how the cells of the training file are read
    texts : value to its first text in the training file
    missing : the text of a missing value there
    decimals : how many digits after the mark all its numbers have; None if that differs, or if there are none
    group : what sets thousands apart in all its numbers of more than three digits; empty if nothing does
    alike : whether the rows to explain are read in the same way
    """

    reading: Reading
    texts: dict[Any, str]
    missing: str
    decimals: int | None
    group: str
    alike: bool

    @classmethod
    def of(cls, training: TextColumn, reading: Reading, of_factuals: Reading) -> Spelling:
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
        large = [text for text, number in zip(known, numbers) if len(number.partition(".")[0].lstrip("+-")) > 3]
        groups = {_group_of(text, reading.mark) for text in large}
        group = groups.pop() if len(groups) == 1 else ""
        return cls(reading, texts, missing, points.pop() if alike else None, group, reading == of_factuals)

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
        if self.decimals is not None and float(f"{value:.{self.decimals}f}") == value:
            text = f"{value:,.{self.decimals}f}"
        elif self.reading.kind == "number" and (self.group or self.reading.mark == ","):
            text = f"{float(value):,}"
        else:
            return value
        marks = {",": self.group, ".": self.reading.mark}
        return "".join(marks.get(letter, letter) for letter in text)


def _group_of(text: str, mark: Mark) -> str:
    """Return what sets thousands apart in a number; empty if nothing does."""
    found = _PATTERNS[mark].fullmatch(text.strip())
    return "" if found is None else found["apart"] or ""


def _is_same(value: Any, other: Any) -> bool:
    return bool(pd.isna(value) and pd.isna(other)) or bool(value == other)
