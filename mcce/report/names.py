"""What features, their values and the prediction are called for people: labels, units and formats.

1. The user gives three plain dicts by feature; "prediction" is what the model says, unless a feature is called so.
2. Unknown names are refused with the nearest known one; units and patterns of numbers go with numbers, those of dates
   with dates, words with the levels that there are.
3. Sentences, pages, pictures and printed tables ask `Names` for a label or a text. Tables that one computes with keep
   the names and values of the data.
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from mcce.exceptions import InputError, did_you_mean, spell
from mcce.report.patterns import DatePattern, NumberPattern, Pattern, WordPattern, read_pattern
from mcce.report.words import is_same, value_pair, value_text
from mcce.soundness import check_type
from mcce.state import stateful
from mcce.table import Schema
from mcce.table.dtypes import is_dated

PREDICTION = "prediction"
BEFORE = ("$", "£", "¥")  # units that stand before a number
MOST_DECIMALS = 12
PATTERNS = (NumberPattern, DatePattern, WordPattern)


@stateful("Names")
@dataclass(frozen=True)
class Names:
    """Labels, units and patterns by feature; made by `Names.read`.

    `ends` are the bounds of a wanted prediction: what lies below 10 % is not rounded to it.

    Examples
    --------
    >>> names = Names.read({"loan_amount": "loan"}, {"loan_amount": "EUR"}, {"rate": "0.0 %"}, ["loan_amount", "rate"])
    >>> names.label("loan_amount"), names.text("loan_amount", 20_000), names.text("rate", 0.0525)
    ('loan', '20,000 EUR', '5.2 %')
    >>> names.pair("rate", 0.0521, 0.0523)
    ('5.21 %', '5.23 %')
    """

    labels: Mapping[Any, str] = field(default_factory=dict)
    units: Mapping[Any, str] = field(default_factory=dict)
    patterns: Mapping[Any, Pattern] = field(default_factory=dict)
    missing: str = "missing"
    ends: tuple[float, ...] = ()

    def check_state(self) -> None:
        """Refuse what `read` would not make."""
        for name, kinds in (("labels", (str,)), ("units", (str,)), ("patterns", PATTERNS)):
            check_type(getattr(self, name), name, dict)
            for value in getattr(self, name).values():
                check_type(value, name, *kinds)
        check_type(self.missing, "missing", str)
        check_type(self.ends, "ends", tuple)
        for end in self.ends:
            check_type(end, "ends", float, int)

    @classmethod
    def read(
        cls,
        labels: Mapping[Any, Any] | None,
        units: Mapping[Any, Any] | None,
        formats: Mapping[Any, Any] | None,
        columns: Iterable[Hashable],
    ) -> Names:
        """Read what the user says of these columns, and of the prediction."""
        known = [*columns]
        known += [] if PREDICTION in known else [PREDICTION]
        for role, given in (("labels", labels), ("units", units), ("formats", formats)):
            _check_names(role, given, known)
        for role, given in (("labels", labels), ("units", units)):
            for name, text in (given or {}).items():
                if not isinstance(text, str) or not text.strip():
                    raise InputError(f"{role}[{spell(name)}] is {text!r}; give a text.")
        _check_different(dict(labels or {}), known)
        patterns = {name: read_pattern(said, name) for name, said in (formats or {}).items()}
        return cls(dict(labels or {}), dict(units or {}), patterns)

    def check_kinds(self, schema: Schema) -> None:
        """Refuse units and formats of columns that they do not go with."""
        for feature in schema.features:
            dated = is_dated(feature.dtype)
            is_number = feature.is_numeric and not dated
            what = "dates" if dated else "numbers" if is_number else "levels"
            pattern = self.patterns.get(feature.name)
            where = f"formats[{spell(feature.name)}]"
            if feature.name in self.units and not is_number:
                raise InputError(f"units names {spell(feature.name)}, which holds {what}; units go with numbers.")
            if isinstance(pattern, NumberPattern) and not is_number:
                raise InputError(f"{where} is of numbers, but the column holds {what}; give a dict of values to words.")
            if isinstance(pattern, DatePattern) and not dated:
                raise InputError(f"{where} is of dates, but the column holds {what}; write a zero, as in '0,000'.")
            if isinstance(pattern, WordPattern) and feature.levels is not None:
                _check_words(pattern, list(feature.levels), where)

    def for_strangers(self, frame: pd.DataFrame) -> Names:
        """Return what to say to somebody who does not know the data: no underscores, yes and no, not known."""
        spaced = {name: self.labels.get(name, str(name).replace("_", " ")) for name in frame.columns}
        if len(set(spaced.values())) < len(spaced):  # two names differ in their underscores alone
            spaced = {}
        yes = WordPattern(((True, "yes"), (False, "no")))
        truths = {name: yes for name in frame.columns if pd.api.types.is_bool_dtype(frame[name].dtype)}
        labels, patterns = {**spaced, **self.labels}, {**truths, **self.patterns}
        return replace(self, labels=labels, patterns=patterns, missing="not known")

    def label(self, name: Hashable) -> str:
        """Return what a feature is called."""
        return self.labels.get(name, str(name))

    def heading(self, name: Hashable) -> str:
        """Return what a feature is called above numbers that stand without their unit."""
        return f"{self.label(name)} ({self.units[name]})" if name in self.units else self.label(name)

    def table(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table to be drawn: headings for names, words for the values that have some."""
        told = frame.copy()
        for name, pattern in self.patterns.items():
            if name in told and isinstance(pattern, WordPattern):
                words = {value: words for value, words in pattern.words if value in set(told[name].dropna())}
                if isinstance(told[name].dtype, pd.CategoricalDtype):
                    told[name] = told[name].cat.rename_categories(words)
                else:
                    told[name] = told[name].astype(object).map(lambda value, words=words: words.get(value, value))
        return told.rename(columns={name: self.heading(name) for name in told.columns})

    def text(self, name: Hashable, value: Any, digits: int = 4, *, unit: bool = True) -> str:
        """Return a value of a feature in words; with its unit unless that stands elsewhere."""
        return self._texts(name, [value], digits, unit)[0]

    def pair(self, name: Hashable, before: Any, after: Any, digits: int = 4, *, unit: bool = True) -> tuple[str, str]:
        """Return two values of a feature in words, with as many decimals as it takes to tell them apart."""
        old, new = self._texts(name, [before, after], digits, unit)
        if old == new and not is_same(before, after):
            return value_pair(before, after, digits)
        return old, new

    def _texts(self, name: Hashable, values: list[Any], digits: int, unit: bool) -> list[str]:
        """Write values so that each can be told from the others, and a prediction from the bounds it has passed."""
        others = [*values, *self.ends] if name == PREDICTION else values
        sizes = [abs(float(value)) for value in values if _is_number(value)]  # int8 has no 128
        is_year = name not in self.units and not any(size >= 10_000 for size in sizes)
        texts = []
        for value in values:
            for more in (*range(MOST_DECIMALS), 0):  # if no decimals tell them apart, none are added
                text = self._plain(name, value, digits, more, is_year)
                different = [other for other in others if not is_same(value, other)]
                if text not in [self._plain(name, other, digits, more, is_year) for other in different]:
                    break
            texts.append(self._with_unit(name, value, text, unit))
        return texts

    def step(self, name: Hashable, value: float) -> str:
        """Return a difference of two numbers of a feature, with its sign."""
        text = self.pair(name, 0.0, abs(value), 3)[1]
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
        return value_text(value, digits + more, is_year=is_year)

    def _with_unit(self, name: Hashable, value: Any, text: str, wanted: bool) -> str:
        unit = self.units.get(name)
        if unit is None or not wanted or not _is_number(value) or pd.isna(value):
            return text
        if unit in BEFORE:
            return f"-{unit}{text[1:]}" if text.startswith("-") else unit + text
        return f"{text} {unit}"


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _check_names(role: str, given: Any, known: list[Any]) -> None:
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{role} is a {type(given).__name__}; give a dict by feature, as in {role}={{'salary': ...}}.")
    for name in given or {}:
        if name not in known:
            raise InputError(f"{role} names {spell(name)}, which is no column of X; {did_you_mean(name, known)}")


def _check_words(pattern: WordPattern, levels: list[Any], where: str) -> None:
    """Refuse words for levels that there are not, or that are another level's."""
    values: list[Any] = [value for value, _ in pattern.words]
    for value in values:
        if not pd.isna(value) and value not in levels:
            raise InputError(f"{where} has words for {spell(value)}; {did_you_mean(value, levels)}")
    called = {value_text(level): level for level in levels if pattern.find(level) is None}
    for value, words in pattern.words:
        if words in called:
            raise InputError(
                f"{where} calls {spell(value)} {words!r}, which is another level; a change would not be seen."
            )


def _check_different(labels: dict[Any, str], known: list[Any]) -> None:
    called = [labels.get(name, str(name)) for name in known]
    twice = [name for name, label in zip(known, called) if called.count(label) > 1 and name in labels]
    if twice:
        raise InputError(
            f"labels calls {spell(twice[0])} {labels[twice[0]]!r}, as another feature is called; give each its own."
        )
