"""Labels, units and formats of features, of their values and of the prediction.

1. The user gives plain dicts by feature (`Names`); "prediction" is the prediction of the model, unless a feature has
   this name.
2. A format states how values are written:
   numbers by the number zero as it should look: "0" (whole), "0.00" (two decimals), "0,000" (thousands marked),
   "0,000.00", "0 %" or "0.0 %" (a share as percentage). Separators of other locales are inferred from their position:
   "0.000,00", "0 000", "0,0". A single "0.000" has three decimals;
   dates by the codes of `strftime`, which R's `format` shares: "%d.%m.%Y", "%B %Y";
   levels by a dict of words: {True: "yes", False: "no"}.
3. Unknown names raise an error that suggests the nearest known one (`Names.read`). Units and formats must match the
   kind of the column: numbers, dates or existing levels (`Names.check_kinds`).
4. Sentences, pages, pictures and printed tables use the labels and texts of `Names`. Without a format a value is
   written by `value_text`, with enough digits to show a change. Tables for computation keep the names and values of
   the data.
5. In a result whose numbers were rounded for display (`mcce.explain.finish`), a new value has all digits needed to be
   read back exactly (`exact`: features and their float types). All numbers but years have thousands separators; the
   years are the features listed in `years`, or without it numbers of four digits.
"""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from mcce.exceptions import InputError, did_you_mean, spell
from mcce.storage.fields import check_type, require, stored
from mcce.storage.state import add_check, register, stateful
from mcce.table import Schema
from mcce.table.dtypes import date_text, is_dated, numpy_dtype
from mcce.wording import Either, Parameter, Part, PythonOnly, Setting, Value, entry

MARKS = ",.' \u00a0\u202f"
MOST_ZEROS, MOST_LETTERS = 100, 1000
DIGITS = 4  # significant digits of a number with decimals, unless more are needed
EXAMPLES = "'0', '0.00', '0,000', '0 %'"
_NUMBER = re.compile(rf"0(?:(?P<mark>[{MARKS}])000)?(?:(?P<point>[.,])(?P<decimals>0+))?(?P<percent>[ \u00a0]?%)?")


@stateful("NumberPattern")
@dataclass(frozen=True)
class NumberPattern:
    """A format of numbers: decimals, thousands and decimal separators, and the per cent sign with its space."""

    decimals: int = stored(int, least=0, most=MOST_ZEROS, default=0)
    mark: str = stored(str, longest=2, default="")
    point: str = stored(str, longest=2, default=".")
    percent: str = stored(str, longest=2, default="")

    def write(self, value: Any, more: int = 0) -> str:
        """Return a number as text, with `more` decimals in addition to those of the pattern."""
        number, decimals = float(value), self.decimals + more
        text = f"{number:,.{decimals}f}"
        if math.isfinite(number):
            shortest = Decimal(repr(number))
            if self.percent:
                text = f"{shortest.scaleb(2):,.{decimals}f}"  # 0.07 is written as 7, not 7.000000000000001
            elif -int(shortest.as_tuple().exponent) <= decimals:  # all of its digits
                text = f"{shortest:,.{decimals}f}"
        if float(text.replace(",", "")) == 0:
            text = text.removeprefix("-")
        swapped = {",": self.mark, ".": self.point}
        return "".join(swapped.get(letter, letter) for letter in text) + self.percent

    def read(self, text: str) -> float:
        """Return the number in a text that `write` returned."""
        swapped = {self.mark: "", self.point: "."}
        plain = "".join(swapped.get(letter, letter) for letter in text.removesuffix(self.percent))
        return float(Decimal(plain).scaleb(-2) if self.percent else Decimal(plain))


@stateful("DatePattern")
@dataclass(frozen=True)
class DatePattern:
    """A format of dates: the codes of `strftime`."""

    codes: str = stored(str, longest=MOST_LETTERS)

    def write(self, value: Any) -> str:
        """Return a date as text; years before 1 or after 9999 are written as year, month and day."""
        try:
            return str(value.strftime(self.codes))
        except NotImplementedError:
            return date_text(value)


@stateful("WordPattern")
@dataclass(frozen=True)
class WordPattern:
    """A format of levels: words by value."""

    words: tuple[tuple[Hashable, str], ...] = stored(tuple, of=stored(tuple, parts=(object, str)))

    def find(self, value: Any) -> str | None:
        """Return the words of a value, or None."""
        return next((words for known, words in self.words if is_same(known, value)), None)


@dataclass(frozen=True)
class Marks:
    """The conventions of a language for numbers and dates: separators, per cent sign with its space, dates in words."""

    decimal: str
    group: str
    minus: str
    percent: str
    currency_first: bool
    date: Callable[[Any], str]

    def number(self, text: str) -> str:
        """Return a number in English notation in that of the language."""
        swapped = {",": self.group, ".": self.decimal, "-": self.minus}
        plain = text.rstrip("% \u00a0")
        written = "".join(swapped.get(letter, letter) for letter in plain)
        return written + (self.percent if text.endswith("%") else "")


Pattern: TypeAlias = NumberPattern | DatePattern | WordPattern
PATTERNS = (NumberPattern, DatePattern, WordPattern)


def read_pattern(given: Any, name: object) -> Pattern:
    """Return the pattern of a format, as in `Names`; a pattern is returned unchanged.

    Examples
    --------
    >>> read_pattern("0,000.00", "salary").write(73200.5)
    '73,200.50'
    >>> read_pattern("0.0 %", "rate").write(0.0569)
    '5.7 %'
    >>> read_pattern("0.000,0", "Gehalt").write(73200.5)
    '73.200,5'
    """
    if isinstance(given, PATTERNS):
        return given
    if isinstance(given, Mapping):
        return _read_words(given, name)
    if not isinstance(given, str):
        raise InputError(
            entry("formats", name),
            " is ",
            Value(given),
            f"; give a text such as {EXAMPLES} or '%d.%m.%Y', or a word for each value",
            PythonOnly(", in a dict"),
            ".",
        )
    if len(given) > MOST_LETTERS:
        raise InputError(
            entry("formats", name),
            f" is {spell(given)}, of {len(given):,} characters; give at most {MOST_LETTERS:,}.",
        )
    if re.search("%[A-Za-z-]", given):
        try:
            datetime(2024, 12, 31).strftime(given)
        except ValueError as error:  # a lone surrogate, or a code that the platform does not support
            raise InputError(
                f"formats[{spell(name)}] is {spell(given)}, which strftime cannot write ({error}); write codes such as "
                "'%d.%m.%Y' and plain text between them."
            ) from None
        return DatePattern(given)
    found = _NUMBER.fullmatch(given)
    if found is None:
        raise InputError(
            entry("formats", name),
            f" is {spell(given)}; write the number zero as it should look, as in {EXAMPLES}, a date "
            "by its codes, as in '%d.%m.%Y', or give a word for each value",
            PythonOnly(", in a dict"),
            ".",
        )
    mark, point, decimals = found["mark"] or "", found["point"] or ".", found["decimals"] or ""
    if mark == "." and not decimals:  # three decimals, as in Python
        mark, point, decimals = "", ".", "000"
    if len(decimals) > MOST_ZEROS:
        raise InputError(
            entry("formats", name), f" is {spell(given)}, with {len(decimals)} decimals; give at most {MOST_ZEROS}."
        )
    if decimals and mark == point:
        raise InputError(
            entry("formats", name),
            f" is {spell(given)}, which has the same separator for thousands and decimals; give two different ones.",
        )
    return NumberPattern(len(decimals), mark, point, found["percent"] or "")


def _read_words(given: Mapping[Any, Any], name: object) -> WordPattern:
    for value, words in given.items():
        if not isinstance(words, str) or not words.strip():
            raise InputError(entry("formats", name), " has ", Value(words), f" for {spell(value)}; give a text.")
    texts = list(given.values())
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        both = ", ".join(spell(value) for value, words in given.items() if words == twice)
        raise InputError(
            entry("formats", name),
            f" has the same word for {both}, {spell(twice)}, which would hide a change; give each value its own word.",
        )
    return WordPattern(tuple(given.items()))


_WITHOUT_INK = ("Cc", "Cf", "Zl", "Zp", "Zs")  # control and format characters, such as a zero-width space, and spaces


def value_text(value: Any, digits: int = DIGITS, *, is_year: bool = True) -> str:
    """Return a value as text: `72,000`, `0.0431`, `2024-05-01`, `missing`.

    Four-digit numbers have no separator, since many are years, unless `is_year` is False.

    Parameters
    ----------
    value : object
        One cell of a table.
    digits : int
        Significant digits of a number with decimals.
    is_year : bool
        Whether a number of four digits may be a year.
    """
    if pd.isna(value):
        return "missing"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, numbers.Real):
        return _number_text(value, digits, 10_000 if is_year else 1000)
    if isinstance(value, pd.Timestamp):
        return date_text(value)
    return visible(str(value))


def visible(text: str) -> str:
    """Return a visible text: one of only spaces and invisible characters is quoted, the latter as codes.

    Examples
    --------
    >>> visible("clerk"), visible(" "), visible("\u200b")
    ('clerk', '" "', '"\\\\u200b"')
    """
    if any(unicodedata.category(letter) not in _WITHOUT_INK for letter in text):
        return text
    return '"' + "".join(" " if letter == " " else ascii(letter)[1:-1] for letter in text) + '"'


def _number_text(value: numbers.Real, digits: int, marked_from: float) -> str:
    number = float(value)
    if isinstance(value, numbers.Integral):
        text = f"{int(value):,d}"
    elif not math.isfinite(number) or not 1e-4 <= abs(number) < 1e15:
        text = f"{number:.{digits}g}"
    else:
        text = f"{number:,.{max(_decimals(number, digits), 0)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(",", "") if abs(number) < marked_from else text


def _decimals(number: float, digits: int) -> int:
    """Return the number of decimals at a number of significant digits; negative for digits before the point."""
    return digits - 1 - math.floor(math.log10(abs(number))) if number else digits


def value_pair(before: Any, after: Any, digits: int = DIGITS) -> tuple[str, str]:
    """Return two values as text, with the fewest digits, at least `digits`, that distinguish them."""
    old, new = value_text(before, digits), value_text(after, digits)
    if old == new and digits < 17 and not is_same(before, after):
        return value_pair(before, after, digits + 1)
    return old, new


def case_name(id: object) -> str:
    """Return the name of a factual: its id if that is a text, else "case 7"."""
    return visible(id) if isinstance(id, str) else f"case {id}"


def listed(parts: Sequence[str]) -> str:
    """Join texts for a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def kept_together(text: str) -> str:
    """Return a text with no-break spaces between numbers and per cent signs."""
    return re.sub(r"(?<=\d) (?=%)", "\u00a0", text)


def fold(text: str, width: int, lines: int = 2) -> str:
    """Break a text into at most `lines` lines of `width` letters, preferably after a space, `_`, `/` or `-`.

    A text that does not fit is shortened in the middle of the last line, since names often differ in their endings.
    """
    folded = [""]
    for word in _pieces(text):
        if len(folded[-1]) + len(word.rstrip()) > width and folded[-1]:
            folded.append("")
        while len(word) > width + 1:
            folded[-1], word = word[:width], word[width:]
            folded.append("")
        folded[-1] += word
    folded = [line.rstrip() for line in folded]
    if len(folded) > lines:
        half = width // 2
        folded = folded[:lines]
        folded[-1] = folded[-1][: width - half - 1] + "…" + text[-half:]
    return "\n".join(folded)


def _pieces(text: str) -> list[str]:
    """Split a text where a line may end: after a space or a mark, and before a capital as in MaxDelq|Ever."""
    words = re.findall(r"[^\s_/-]*[\s_/-]|[^\s_/-]+", text)
    return [piece for word in words for piece in re.split(r"(?<=[a-z0-9])(?=[A-Z])", word)]


def is_same(before: Any, after: Any) -> bool:
    """Return whether two cells are equal, or both missing."""
    if pd.isna(before) or pd.isna(after):
        return bool(pd.isna(before) and pd.isna(after))
    return bool(before == after)


PREDICTION = "prediction"
BEFORE = ("$", "£", "¥")  # units written before a number
MOST_DECIMALS = 14
FIRST_YEAR, LAST_YEAR = 1800, 2200
ROLES = ("labels", "units", "formats", "reasons")
FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True)
class Names:
    """Names of features, of their values and of the prediction, for sentences, letters, pages and pictures.

    `MCCE` accepts it, or a dict with the same four entries, as `names`. Tables for computation keep the names and
    values of the data.

    Parameters
    ----------
    labels : dict or None
        Feature to its label. "prediction" is the prediction of the model; a letter states it only if it has a label.
    units : dict or None
        Numeric feature to its unit, as in {"salary": "EUR"}; $, £ and ¥ are written before the number.
    formats : dict or None
        Feature to its format: numbers by the number zero as it should look ("0,000.00", "0.0 %"), dates by the codes
        of `strftime` ("%d.%m.%Y"), levels by a dict of words ({True: "yes", False: "no"}). See `mcce.report.names`.
    reasons : dict or None
        Feature to its text as a reason of a refusal: a text, or a dict of `text` and `code`, as in
        {"salary": {"code": "12", "text": "Income is too low for the loan"}}. `Counterfactuals.principal_reasons` and
        letters with reasons use them.
    missing : str
        The text of a missing value.

    Examples
    --------
    >>> import mcce
    >>> names = mcce.Names(labels={"loan_amount": "loan"}, units={"loan_amount": "EUR"}, formats={"rate": "0.0 %"})
    >>> names.label("loan_amount"), names.text("loan_amount", 20_000), names.text("rate", 0.0525)
    ('loan', '20,000 EUR', '5.2 %')
    >>> names.pair("rate", 0.0521, 0.0523)
    ('5.21 %', '5.23 %')
    """

    labels: Mapping[Any, str] = None  # type: ignore[assignment]  # a dict after __post_init__
    units: Mapping[Any, str] = None  # type: ignore[assignment]
    formats: Mapping[Any, Any] = None  # type: ignore[assignment]
    _: KW_ONLY
    reasons: Mapping[Any, Any] = None  # type: ignore[assignment]
    missing: str = stored(str, default="missing")
    ends: tuple[float, ...] = stored(
        tuple, of=(float, int), default=(), repr=False
    )  # bounds that a rounded prediction must not reach
    exact: Mapping[Any, str] = field(default_factory=dict, repr=False)  # written in full: feature to float type
    years: tuple[Hashable, ...] | None = field(default=None, repr=False)  # None: numbers of four digits
    marks: Marks | None = field(default=None, repr=False, compare=False)  # None for English
    patterns: Mapping[Any, Pattern] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for role in ROLES:
            given = getattr(self, role)
            if given is not None and not isinstance(given, Mapping):
                raise InputError(
                    Parameter(role),
                    f" is a {type(given).__name__}; give values by feature, as in ",
                    Setting(role, {"salary": ...}),
                    ".",
                )
            object.__setattr__(self, role, dict(given or {}))
        for role in ("labels", "units"):
            for name, text in getattr(self, role).items():
                if not isinstance(text, str) or not text.strip():
                    raise InputError(entry(role, name), " is ", Value(text), "; give a text.")
        for name, given in self.reasons.items():
            _check_reason(name, given)
        patterns = {name: read_pattern(form, name) for name, form in self.formats.items()}
        object.__setattr__(self, "patterns", patterns)

    def for_display(self, schema: Schema, *, exact: bool) -> Names:
        """Return names with the features that are years, and, if `exact`, those written in full."""
        features = [f for f in schema.features if f.is_numeric and not is_dated(f.dtype)]
        years = tuple(f.name for f in features if f.decimals == 0 and f.low >= FIRST_YEAR and f.high <= LAST_YEAR)
        dtypes = {f.name: numpy_dtype(f.dtype) for f in features} if exact else {}
        held = {name: dtype.name if dtype.kind == "f" else "float64" for name, dtype in dtypes.items()}
        return replace(self, years=years, exact=held)

    @classmethod
    def read(cls, names: Names | Mapping[str, Any] | None, columns: Iterable[Hashable]) -> Names:
        """Return names for these columns and the prediction.

        Parameters
        ----------
        names : Names, dict or None
            A dict has the entries "labels", "units", "formats" and "reasons", or some of them.
        columns : iterable
            The known columns.
        """
        names = cls._of(names)
        known = [*columns]
        known += [] if PREDICTION in known else [PREDICTION]
        for role in ROLES:
            for name in getattr(names, role):
                if name not in known:
                    raise InputError(
                        Parameter(role),
                        f" names {spell(name)}, which is not a column of ",
                        Parameter("X"),
                        f"; {did_you_mean(name, known)}",
                    )
        _check_different(names.labels, known)
        return names

    @classmethod
    def _of(cls, given: Any) -> Names:
        if isinstance(given, Names):
            return given
        if given is not None and not isinstance(given, Mapping):
            raise InputError(
                Parameter("names"),
                f" is a {type(given).__name__}; give ",
                Either(
                    (PythonOnly("mcce.Names(labels=..., units=..., formats=..., reasons=...), or a dict of these"),),
                    "labels, units, formats and reasons by feature",
                ),
                ".",
            )
        for role in given or {}:
            if role not in ROLES:
                raise InputError(
                    Parameter("names"),
                    f" has the entry {spell(role)}; features are named inside its entries, as in ",
                    Setting("names", {"labels": {"salary": "pay"}}),
                    f"; {did_you_mean(role, ROLES)}",
                )
        return cls(**(given or {}))

    def replaced_by(self, others: Names | None) -> Names:
        """Return these names, updated by others."""
        if others is None:
            return self
        return replace(
            self,
            labels={**self.labels, **others.labels},
            units={**self.units, **others.units},
            formats={**self.formats, **others.formats},
            reasons={**self.reasons, **others.reasons},
        )

    def check_state(self) -> None:
        """Raise if parts read from a file are invalid."""
        check_type(self.exact, "exact", dict)
        require(all(kind in FLOATS for kind in self.exact.values()), "exact has an unknown float type")
        check_type(self.years, "years", tuple, type(None))

    def check_kinds(self, schema: Schema) -> None:
        """Raise if a unit or format does not match the kind of its column."""
        for feature in schema.features:
            dated = is_dated(feature.dtype)
            is_number = feature.is_numeric and not dated
            what = "dates" if dated else "numbers" if is_number else "levels"
            pattern = self.patterns.get(feature.name)
            where = entry("formats", feature.name)
            if feature.name in self.units and not is_number:
                raise InputError(
                    Parameter("units"), f" names {spell(feature.name)}, which holds {what}; units go with numbers."
                )
            if isinstance(pattern, NumberPattern) and not is_number:
                raise InputError(
                    where,
                    f" is of numbers, but the column holds {what}; give a word for each value",
                    PythonOnly(", in a dict"),
                    ".",
                )
            if isinstance(pattern, DatePattern) and not dated:
                raise InputError(where, f" is of dates, but the column holds {what}; write a zero, as in '0,000'.")
            if isinstance(pattern, WordPattern) and feature.levels is not None:
                _check_words(pattern, list(feature.levels), where)

    def for_lay_reader(
        self,
        frame: pd.DataFrame,
        words: tuple[str, str, str] = ("yes", "no", "not known"),
        marks: Marks | None = None,
    ) -> Names:
        """Return names for a reader who does not know the data: no underscores, words for true, false and missing.

        `words` and `marks` are those of the language of the reader.
        """
        spaced = {name: visible(self.labels.get(name, str(name).replace("_", " "))) for name in frame.columns}
        if len(set(spaced.values())) < len(spaced):  # two names differ only in underscores
            spaced = {}
        yes, no, missing = words
        pattern = WordPattern(((True, yes), (False, no)))
        truths = {name: pattern for name in frame.columns if pd.api.types.is_bool_dtype(frame[name].dtype)}
        formats = {**truths, **self.formats}
        return replace(self, labels={**spaced, **self.labels}, formats=formats, missing=missing, marks=marks)

    def count(self, n: int) -> str:
        """Return a count as text."""
        return value_text(n) if self.marks is None else self.marks.number(f"{n:,}")

    def label(self, name: Hashable) -> str:
        """Return the label of a feature."""
        return self.labels.get(name, visible(str(name)))

    def reason(self, name: Hashable) -> tuple[str, str]:
        """Return the code and the text of a feature as a reason of a refusal; empty without any."""
        given = self.reasons.get(name, "")
        return ("", given) if isinstance(given, str) else (given.get("code", ""), given["text"])

    def heading(self, name: Hashable) -> str:
        """Return the label of a feature with its unit."""
        return f"{self.label(name)} ({self.units[name]})" if name in self.units else self.label(name)

    def table(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table for a picture: headings for names, words for values."""
        renamed = frame.copy()
        for name, pattern in self.patterns.items():
            if name in renamed and isinstance(pattern, WordPattern):
                words = {value: words for value, words in pattern.words if value in set(renamed[name].dropna())}
                if isinstance(renamed[name].dtype, pd.CategoricalDtype):
                    renamed[name] = renamed[name].cat.rename_categories(words)
                else:
                    renamed[name] = renamed[name].astype(object).map(lambda value, words=words: words.get(value, value))
        return renamed.rename(columns={name: self.heading(name) for name in renamed.columns})

    def text(self, name: Hashable, value: Any, digits: int = DIGITS, *, unit: bool = True) -> str:
        """Return a value of a feature as text, by default with its unit."""
        return self._texts(name, [value], digits, unit)[0]

    def pair(
        self, name: Hashable, before: Any, after: Any, digits: int = DIGITS, *, unit: bool = True
    ) -> tuple[str, str]:
        """Return two values of a feature as text, with enough decimals to distinguish them.

        For features in `exact` the second value has enough decimals to be read back exactly.
        """
        old, new = self._texts(name, [before, after], digits, unit, exact=name in self.exact and name != PREDICTION)
        if old == new and not is_same(before, after):
            return value_pair(before, after, digits)
        return old, new

    def _texts(self, name: Hashable, values: list[Any], digits: int, unit: bool, exact: bool = False) -> list[str]:
        """Return texts that distinguish the values, and a prediction from the bounds of the decision.

        If `exact`, the last value is written in full.
        """
        others = [*values, *self.ends] if name == PREDICTION else values
        is_year = self._is_year(name, values)
        texts = []
        for k, value in enumerate(values):
            in_full = exact and k == len(values) - 1
            # without success, no decimals are added
            for more in (*range(MOST_DECIMALS), self._all_decimals(name, value) if in_full else 0):
                text = self._plain(name, value, digits, more, is_year)
                different = [other for other in others if not is_same(value, other)]
                if text not in [self._plain(name, other, digits, more, is_year) for other in different] and (
                    not in_full or self._says(name, text, value)
                ):
                    break
            texts.append(self._with_unit(name, value, self._in_marks(name, value, text), unit))
        return texts

    def _in_marks(self, name: Hashable, value: Any, text: str) -> str:
        """Return a number in the notation of the language, unless its format has separators."""
        pattern = self.patterns.get(name)
        if self.marks is None or not _is_number(value) or pd.isna(value):
            return text
        if isinstance(pattern, WordPattern) and pattern.find(value) is not None:
            return text
        if isinstance(pattern, NumberPattern) and (pattern.point == "," or pattern.mark not in ("", ",")):
            return text
        return self.marks.number(text)

    def _all_decimals(self, name: Hashable, value: Any) -> int:
        """Return the number of decimals of a number beyond those of its pattern."""
        pattern = self.patterns.get(name)
        if not isinstance(pattern, NumberPattern) or not _is_number(value) or not math.isfinite(value):
            return 0
        exponent = Decimal(repr(float(value))).as_tuple().exponent
        shown = pattern.decimals + (2 if pattern.percent else 0)
        return max(-int(exponent) - shown, 0)

    def _is_year(self, name: Hashable, values: list[Any]) -> bool:
        """Return whether numbers of four digits are years, without a separator."""
        if name in self.units:
            return False
        if self.years is not None:
            return name in self.years
        return not any(abs(float(value)) >= 10_000 for value in values if _is_number(value))  # int8 has no 128

    def written(self, name: Hashable, value: Any, more: int = 0) -> tuple[float, ...]:
        """Return the number as displayed, with `more` decimals, and the next displayable number beyond the value.

        A value displayed in full is returned alone; a value that is not displayed as a number gives an empty tuple.

        Examples
        --------
        >>> Names().written("rate", 0.123456), Names().written("rate", 0.123456, 1), Names().written("rate", 0.25)
        ((0.1235, 0.1234), (0.12346, 0.12345), (0.25,))
        """
        pattern = self.patterns.get(name)
        if (
            not _is_number(value)
            or not math.isfinite(value)
            or (isinstance(pattern, WordPattern) and pattern.find(value))
        ):
            return ()
        printed = self._number(name, self._plain(name, value, DIGITS, more, False))
        if self._is_read_as(name, printed, value):
            return (float(value),)
        if isinstance(pattern, NumberPattern):
            decimals = pattern.decimals + (2 if pattern.percent else 0) + more
        else:
            decimals = _decimals(float(value), DIGITS + more)
        beyond = Decimal(repr(printed)) + (1 if printed < value else -1) * Decimal(1).scaleb(-decimals)
        return printed, float(beyond)

    def _says(self, name: Hashable, text: str, value: Any) -> bool:
        """Return whether the text of a number is read back as the number; true for other values."""
        if not _is_number(value) or not math.isfinite(value):
            return True
        pattern = self.patterns.get(name)
        if isinstance(pattern, WordPattern) and pattern.find(value) is not None:
            return True
        return self._is_read_as(name, self._number(name, text), value)

    def _is_read_as(self, name: Hashable, number: float, value: Any) -> bool:
        """Return whether a number equals a value in the float type of the feature."""
        with np.errstate(over="ignore"):
            return float(np.dtype(self.exact.get(name, "float64")).type(number)) == float(value)

    def _number(self, name: Hashable, text: str) -> float:
        """Return the number in a text without unit."""
        pattern = self.patterns.get(name)
        return pattern.read(text) if isinstance(pattern, NumberPattern) else float(Decimal(text.replace(",", "")))

    def step(self, name: Hashable, value: float) -> str:
        """Return a difference of two numbers of a feature, with its sign."""
        text = self._texts(name, [0.0, abs(value)], 3, True)[1]
        return ("+" if value > 0 else "-" if value < 0 else "") + text

    def _plain(self, name: Hashable, value: Any, digits: int, more: int, is_year: bool) -> str:
        pattern = self.patterns.get(name)
        words = pattern.find(value) if isinstance(pattern, WordPattern) else None
        if words is not None:
            return words
        if pd.isna(value):
            return self.missing
        if isinstance(pattern, DatePattern) and hasattr(value, "strftime"):
            return pattern.write(value)
        if isinstance(pattern, NumberPattern) and _is_number(value):
            return pattern.write(value, more)
        if self.marks is not None and isinstance(value, pd.Timestamp) and value == value.normalize():
            return self.marks.date(value)
        return value_text(value, digits + more, is_year=is_year)

    def _with_unit(self, name: Hashable, value: Any, text: str, wanted: bool) -> str:
        unit = self.units.get(name)
        if unit is None or not wanted or not _is_number(value) or pd.isna(value):
            return text
        if unit in BEFORE and (self.marks is None or self.marks.currency_first):
            return f"-{unit}{text[1:]}" if text.startswith("-") else unit + text
        return f"{text} {unit}" if self.marks is None else f"{text}\u00a0{unit}"


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _check_words(pattern: WordPattern, levels: list[Any], where: Part) -> None:
    """Raise if words are for unknown levels, or equal another level."""
    values: list[Any] = [value for value, _ in pattern.words]
    for value in values:
        if not pd.isna(value) and value not in levels:
            raise InputError(where, f" has words for {spell(value)}; {did_you_mean(value, levels)}")
    called = {value_text(level): level for level in levels if pattern.find(level) is None}
    for value, words in pattern.words:
        if words in called:
            raise InputError(
                where,
                f" has the word {words!r} for {spell(value)}, which is another level and would hide a change; give "
                "another word.",
            )


def _check_reason(name: object, given: Any) -> None:
    """Raise unless a reason is a text, or a dict of a text and a code."""
    parts = {"text": given} if isinstance(given, str) else given
    if not isinstance(parts, Mapping) or "text" not in parts:
        raise InputError(
            entry("reasons", name),
            " is ",
            Value(given),
            '; give a text, or {"code": "12", "text": "Income is too low"}.',
        )
    for part, text in parts.items():
        if part not in ("code", "text"):
            raise InputError(entry("reasons", name), f" has {spell(part)}; {did_you_mean(part, ('code', 'text'))}")
        if not isinstance(text, str) or not text.strip():
            raise InputError(entry("reasons", name), f" has the {part} ", Value(text), "; give a text.")


def _check_different(labels: Mapping[Any, str], known: list[Any]) -> None:
    """Raise if two features have the same label."""
    called = [labels.get(name, str(name)) for name in known]
    twice = [name for name, label in zip(known, called) if called.count(label) > 1 and name in labels]
    if twice:
        raise InputError(
            Parameter("labels"),
            f" has {labels[twice[0]]!r} for {spell(twice[0])}, which is the label of another feature; give each "
            "its own.",
        )


def _write_state(names: Names) -> dict[str, Any]:
    parts = (
        "labels",
        "units",
        "patterns",
        "missing",
        "ends",
        "exact",
        "years",
        *(["reasons"] if names.reasons else []),
    )
    return {name: getattr(names, name) for name in parts}


def _read_state(read: dict[str, Any]) -> Names:
    patterns = read.pop("patterns", {})
    for name in ("labels", "units", "reasons"):
        check_type(read.get(name, {}), name, dict)
    check_type(patterns, "patterns", dict)
    for pattern in patterns.values():
        check_type(pattern, "patterns", *PATTERNS)
    return Names(formats=patterns, **read)


register("Names", Names, _write_state, _read_state)
add_check(Names)
