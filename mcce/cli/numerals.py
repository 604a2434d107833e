"""Numbers as people write them: with a decimal point or comma, their thousands apart.

1. `plain` writes a number as Python does, or says that it is none under a decimal mark. Thousands stand apart by the
   other mark, a space or an apostrophe, always three digits and always alike: 1.234,5 or 1'234.5 or 1 234,5.
2. `find_marks` finds the decimal mark of each column of a file: the only one under which all its cells are numbers.
   Under both, as in 1,234, what the other columns of the file say counts.
3. Where nothing tells, a point is a decimal point in files that are separated by commas; everything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mcce.cli.column import Column
from mcce.cli.console import say
from mcce.exceptions import InputError, listing

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
    rf"([€$£¥]\s*)?[+{MINUS}-]?[0-9][0-9.,{APART}]*(\s*(?:[%‰€$£¥]|eur|usd|gbp|chf|kr))?", re.IGNORECASE
)
_IN_BRACKETS = re.compile(rf"\([0-9][0-9.,{APART}]*\)")
_TIME_OF_DAY = re.compile(r"[0-9]{1,2}:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?(?:\s*[ap]\.?m\.?)?", re.IGNORECASE)


@dataclass(frozen=True)
class Decimals:
    """What a user says about decimal marks: one for all columns, or by column."""

    rest: Mark | None = None
    by_column: tuple[tuple[str, Mark], ...] = ()

    def of(self, name: str) -> Mark | None:
        """Return the mark of a column, None if nothing is said."""
        return dict(self.by_column).get(name, self.rest)


def plain(text: str, decimal: Mark) -> str | None:
    """Return a number as Python writes it; None if the text is no number under this mark (step 1)."""
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
    columns: Sequence[Column], said: Decimals, *, sep: str, levels: Collection[str], hints: Mapping[str, Mark]
) -> dict[str, Mark]:
    """Return the decimal mark of each column (steps 2 and 3).

    Parameters
    ----------
    columns : those of one file that are used
    said : what the user says
    sep : what separates the cells
    levels : columns whose cells are no numbers whatever they look like
    hints : marks of the training file's columns, for the rows to explain
    """
    numbers = [column for column in columns if column.name not in levels]
    given = {column.name: "." if column.native else said.of(column.name) for column in numbers}
    could = {column.name: _possible(column, given[column.name]) for column in numbers}
    seen = {marks[0] for name, marks in could.items() if len(marks) == 1 and given[name] is None}
    found: dict[str, Mark] = {}
    told: dict[Mark, list[Column]] = {".": [], ",": []}
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


def _possible(column: Column, given: Mark | None) -> list[Mark]:
    """Return the marks under which all cells are numbers; none if they are the same numbers under both."""
    texts = [text for text in column.texts if text.strip()]
    allowed = MARKS if given is None else (given,)
    marks = [mark for mark in allowed if all(plain(text, mark) is not None for text in texts)]
    same = len(marks) == 2 and all(plain(text, ".") == plain(text, ",") for text in texts)
    return [] if same else marks  # whole numbers say nothing about the mark


def _nearer(column: Column) -> Mark:
    """Return the mark under which more of the cells are numbers, the point on ties."""
    counts = [sum(plain(text, mark) is not None for text in column.texts) for mark in MARKS]
    return "," if counts[1] > counts[0] else "."


def _two_readings(column: Column, marks: Sequence[Mark]) -> InputError:
    text = next(text for text in column.texts if plain(text, ".") != plain(text, ","))
    point, comma = (float(str(plain(text, mark))) for mark in marks)
    return InputError(
        f"column {column.name!r} of {column.where} can be read in two ways: {column.place_of(text)} holds {text!r}, "
        f"which is {point:.10g} with a decimal point and {comma:.10g} with a decimal comma. Add --decimal point or "
        f"--decimal comma, or --decimal {column.name}=comma for this column alone; --kinds "
        f"{column.name}=level if these are codes."
    )


def _tell(columns: Sequence[Column], mark: Mark) -> None:
    if not columns:
        return
    first = columns[0]
    text = next(text for text in first.texts if not is_plain(text))
    say(
        f"column(s) {listing(column.name for column in columns)} of {first.where} are read with a decimal "
        f"{WORD_OF[mark]}: {first.place_of(text)} holds {text!r}, read as {plain(text, mark)}. "
        "If that is wrong, add --decimal"
    )
