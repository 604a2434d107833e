"""How a value is to be written: a number by an example of itself, a date as R and Python write it, a level by words.

1. A pattern of numbers is the number zero as it should look: "0" (whole), "0.00" (two decimals), "0,000" (thousands
   marked), "0,000.00", "0 %" or "0.0 %" (a share as percentage). Marks of other countries are understood from where
   they stand: "0.000,00", "0 000", "0,0". A single "0.000" has three decimals.
2. A pattern of dates has `strftime`'s codes, which R's `format` has too: "%d.%m.%Y", "%B %Y".
3. A dict has the words of values: {True: "yes", False: "no"}.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from mcce.exceptions import InputError, spell
from mcce.soundness import check_count_of, check_type, require
from mcce.state import stateful

MARKS = ",.' \u00a0\u202f"
MOST_ZEROS, MOST_LETTERS = 100, 1000
EXAMPLES = "'0', '0.00', '0,000', '0 %'"
_NUMBER = re.compile(rf"0(?:(?P<mark>[{MARKS}])000)?(?:(?P<point>[.,])(?P<decimals>0+))?(?P<percent>[ \u00a0]?%)?")


@stateful("NumberPattern")
@dataclass(frozen=True)
class NumberPattern:
    """Decimals, the marks of thousands and decimals, and the sign of percent with its space, or nothing."""

    decimals: int = 0
    mark: str = ""
    point: str = "."
    percent: str = ""

    def check_state(self) -> None:
        """Refuse what no reading of a pattern gives."""
        check_count_of(self.decimals, "decimals", 0, MOST_ZEROS)
        for name in ("mark", "point", "percent"):
            check_type(getattr(self, name), name, str)
            require(len(getattr(self, name)) <= 2, f"{name} is longer than a sign and its space")

    def write(self, value: Any, more: int = 0) -> str:
        """Return a number as text, with `more` decimals than the pattern has."""
        number = float(value) * (100 if self.percent else 1)
        text = f"{number:,.{self.decimals + more}f}"
        if float(text.replace(",", "")) == 0:
            text = text.removeprefix("-")
        swapped = {",": self.mark, ".": self.point}
        return "".join(swapped.get(letter, letter) for letter in text) + self.percent


@stateful("DatePattern")
@dataclass(frozen=True)
class DatePattern:
    """The codes of `strftime`."""

    codes: str

    def check_state(self) -> None:
        """Refuse codes that are no text."""
        check_type(self.codes, "codes", str)
        require(len(self.codes) <= MOST_LETTERS, "codes of a date are too long")

    def write(self, value: Any) -> str:
        """Return a date as text."""
        return str(value.strftime(self.codes))


@stateful("WordPattern")
@dataclass(frozen=True)
class WordPattern:
    """Words of values."""

    words: tuple[tuple[Hashable, str], ...]

    def check_state(self) -> None:
        """Refuse what is no pairs of a value and its words."""
        check_type(self.words, "words", tuple)
        for pair in self.words:
            require(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], str), "words are no pairs")

    def find(self, value: Any) -> str | None:
        """Return the words of a value; None if it has none."""
        return next((words for known, words in self.words if _equals(known, value)), None)


Pattern: TypeAlias = NumberPattern | DatePattern | WordPattern


def read_pattern(said: Any, name: object) -> Pattern:
    """Read what the user says of a feature.

    Examples
    --------
    >>> read_pattern("0,000.00", "salary").write(73200.5)
    '73,200.50'
    >>> read_pattern("0.0 %", "rate").write(0.0569)
    '5.7 %'
    >>> read_pattern("0.000,0", "Gehalt").write(73200.5)
    '73.200,5'
    """
    if isinstance(said, Mapping):
        return _read_words(said, name)
    if not isinstance(said, str):
        raise InputError(
            f"formats[{spell(name)}] is {said!r} (a {type(said).__name__}); give a text such as {EXAMPLES} or "
            "'%d.%m.%Y', or a dict of values to words."
        )
    if re.search("%[A-Za-z-]", said):
        return DatePattern(said)
    found = _NUMBER.fullmatch(said)
    if found is None:
        raise InputError(
            f"formats[{spell(name)}] is {said!r}; write the number zero as it should look, as in {EXAMPLES}, a date "
            "by its codes, as in '%d.%m.%Y', or give a dict of values to words."
        )
    mark, point, decimals = found["mark"] or "", found["point"] or ".", found["decimals"] or ""
    if mark == "." and not decimals:  # three decimals, as everywhere else in Python
        mark, point, decimals = "", ".", "000"
    if decimals and mark == point:
        raise InputError(f"formats[{spell(name)}] is {said!r}, which has one mark for thousands and decimals.")
    return NumberPattern(len(decimals), mark, point, found["percent"] or "")


def _read_words(said: Mapping[Any, Any], name: object) -> WordPattern:
    for value, words in said.items():
        if not isinstance(words, str) or not words.strip():
            raise InputError(f"formats[{spell(name)}] has {words!r} for {spell(value)}; give a text.")
    texts = list(said.values())
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        both = ", ".join(spell(value) for value, words in said.items() if words == twice)
        raise InputError(f"formats[{spell(name)}] calls {both} alike, {twice!r}; a change would not be seen.")
    return WordPattern(tuple(said.items()))


def _equals(known: Any, value: Any) -> bool:
    if pd.isna(known) or pd.isna(value):
        return bool(pd.isna(known) and pd.isna(value))
    return bool(known == value)
