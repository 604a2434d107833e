"""Values and changes as text.

`labels` replaces names of features, and `formats` says by Python format strings how their values are written, as in
{"salary": "{:,.0f} EUR"}. Both are dicts by feature, in which "prediction" is the model's prediction (unless a feature
has this name). Nothing else decides how a value is written than its type: words of the data are never interpreted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Bools
from mcce.exceptions import InputError, did_you_mean, spell

DIGITS = 4  # significant digits of a number with decimals, unless two values need more to differ
EXACT_DIGITS = 17  # that tell any two floats apart
PREDICTION = "prediction"


def value_text(value: Any, digits: int = DIGITS) -> str:
    """Return one value as text; numbers from 10,000 have separators, so that years have none.

    Characters that are not printed, such as ends of lines and marks that turn the direction of writing, are escaped.

    Examples
    --------
    >>> value_text(72_000), value_text(0.0431234), value_text(pd.Timestamp("2024-05-01")), value_text(None)
    ('72,000', '0.04312', '2024-05-01', 'missing')
    >>> print(value_text("two\\nlines"))
    two\\nlines
    """
    if is_missing(value):
        return "missing"
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, Integral):
        return _marked(f"{int(value):,d}", abs(int(value)))
    if isinstance(value, Real):
        return _number_text(float(value), digits)
    if isinstance(value, datetime) and value.time() == datetime.min.time() and getattr(value, "nanosecond", 0) == 0:
        return str(value)[:-9] if value.tzinfo is None else str(value)
    text = str(value)
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)
    return text if text.strip() else repr(text)


def name_text(name: Hashable) -> str:
    """Return the label of a row or column as text; numbers have no separators, so that they can be copied."""
    return str(name) if isinstance(name, Integral) else value_text(name)


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def _number_text(number: float, digits: int) -> str:
    size = abs(number)
    if not math.isfinite(number) or (number and not 1e-4 <= size < 1e15):
        return f"{number:.{digits}g}"
    decimals = digits - 1 - math.floor(math.log10(size)) if number else 0
    text = f"{number:,.{max(decimals, 0)}f}"
    return _marked(text.rstrip("0").rstrip(".") if "." in text else text, size)


def _marked(text: str, size: float) -> str:
    return text.replace(",", "") if size < 10_000 else text


def is_missing(value: Any) -> bool:
    """Return whether a cell is missing."""
    missing = pd.isna(value)
    return isinstance(missing, (bool, np.bool_)) and bool(missing)


def is_same(before: Any, after: Any) -> bool:
    """Return whether two cells are equal, or both missing."""
    if is_missing(before) or is_missing(after):
        return is_missing(before) and is_missing(after)
    return bool(before == after)


def listed(parts: Sequence[str]) -> str:
    """Join texts for a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def fold(text: str, width: int, lines: int = 2) -> str:
    """Break a text into at most `lines` lines of `width` letters, preferably after a space, `_`, `/` or `-`.

    A text that does not fit is shortened in the middle of the last line, because names often differ in their endings.

    Examples
    --------
    >>> fold("months_since_last_inquiry", 12)
    'months_\\nsince…nquiry'
    """
    folded = [""]
    for word in re.findall(r"[^\s_/-]*[\s_/-]|[^\s_/-]+", text):
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


@dataclass(frozen=True)
class Words:
    """Labels and formats of features and of the prediction.

    Examples
    --------
    >>> words = Words({"loan_amount": "loan"}, {"loan_amount": "{:,.0f} EUR"})
    >>> words.label("loan_amount"), words.text("loan_amount", 20_000), words.label("age")
    ('loan', '20,000 EUR', 'age')
    """

    labels: Mapping[Any, str]
    formats: Mapping[Any, str]

    @classmethod
    def read(cls, labels: Any, formats: Any, features: Iterable[Hashable]) -> Words:
        """Return the labels and formats that a user gave for a table with these features; None for none."""
        names = list(dict.fromkeys([*features, PREDICTION]))
        example = {"labels": "{'loan_amount': 'loan'}", "formats": "{'loan_amount': '{:,.0f} EUR'}"}
        for what, given in (("labels", labels), ("formats", formats)):
            if given is not None and not isinstance(given, Mapping):
                raise InputError(f"{what} is {spell(given)}; give texts by feature, as in {what}={example[what]}.")
            for name, text in (given or {}).items():
                if name not in names:
                    raise InputError(f"{what} names {spell(name)}, which is no feature; {did_you_mean(name, names)}")
                if not isinstance(text, str):
                    raise InputError(f"{what}[{spell(name)}] is {spell(text)}; give a text, as in {example[what]}.")
        return cls(dict(labels or {}), dict(formats or {}))

    def label(self, name: Hashable) -> str:
        """Return the label of a feature."""
        return self.labels.get(name, name_text(name))

    def text(self, name: Hashable, value: Any, digits: int = DIGITS) -> str:
        """Return a value of a feature as text."""
        pattern = self.formats.get(name)
        if pattern is None or is_missing(value):
            return value_text(value, digits)
        try:
            return pattern.format(value)
        except (ValueError, IndexError, KeyError, AttributeError, TypeError) as error:
            raise InputError(
                f"formats[{spell(name)}] is {spell(pattern)}, which cannot write {spell(value)} ({error}); give a "
                "Python format such as '{:,.0f} EUR', '{:.1%}' or '{:%d.%m.%Y}'."
            ) from error

    def pair(self, name: Hashable, before: Any, after: Any, digits: int = DIGITS) -> tuple[str, str]:
        """Return two values as texts that differ if the values do, both with separators if one has any."""
        old, new = self.text(name, before, digits), self.text(name, after, digits)
        while old == new and not is_same(before, after) and digits < EXACT_DIGITS:
            digits += 1
            old, new = value_text(before, digits), value_text(after, digits)
        if name not in self.formats and isinstance(before, Real) and isinstance(after, Real) and "," in old + new:
            old, new = (re.sub(r"^(-?\d)(\d{3})(?=\.|$)", r"\1,\2", text) for text in (old, new))
        return old, new

    def instead(self, changes: Iterable[tuple[Hashable, Any, Any]]) -> str:
        """Return changes (feature, old value, new value) as part of a sentence.

        Examples
        --------
        >>> Words({}, {}).instead([("salary", 68_000, 75_800), ("home", "rent", "own")])
        'salary 75,800 instead of 68,000 and home own instead of rent'
        """
        parts = []
        for name, before, after in changes:
            old, new = self.pair(name, before, after)
            parts.append(f"{self.label(name)} {new} instead of {old}")
        return listed(parts)


def change_sentence(
    changes: Sequence[tuple[Hashable, Any, Any]],
    derived: Sequence[tuple[Hashable, Any, Any]],
    predictions: tuple[Any, Any],
    decision: str,
    words: Words,
) -> str:
    """Return a counterfactual as a sentence; `derived` are the changes that follow from the others.

    Examples
    --------
    >>> sentence = change_sentence([("savings", 9, 36)], [], (0.221, 0.07), "risk below 0.1", Words({}, {}))
    >>> sentence.split(": ")[0]
    'With savings 36 instead of 9, the decision would have been the wanted one'
    """
    old, new = words.pair(PREDICTION, *predictions, digits=3)
    what = words.instead(changes) or "nothing else"
    sentence = (
        f"With {what}, the decision would have been the wanted one: {words.label(PREDICTION)} {new} instead of {old} "
        f"(wanted: {decision})."
    )
    return f"{sentence} This gives {words.instead(derived)}." if derived else sentence


def free_names(names: Iterable[Hashable], features: Iterable[Hashable]) -> list[str]:
    """Return names of columns beside those of features: texts, with an underscore for each that is taken.

    Examples
    --------
    >>> free_names(["L0", "prediction"], ["age", "prediction"])
    ['L0', 'prediction_']
    """
    taken = {str(name) for name in features}
    free = []
    for name in map(str, names):
        while name in taken:
            name += "_"
        taken.add(name)
        free.append(name)
    return free


def shown_table(
    factuals: pd.DataFrame,
    predictions: Sequence[Any],
    rows: pd.DataFrame,
    measures: pd.DataFrame,
    is_changed: Bools,
    owner: Sequence[int],
    width: float = math.inf,
) -> tuple[pd.DataFrame, list[Any]]:
    """Return a table of texts for reading, and the names of the changed features that do not fit into `width` letters.

    The counterfactuals stand below their factual, with the changed cells only. Features that change in no row are left
    out, and further ones where they do not fit, those that change most seldom first.

    Parameters
    ----------
    factuals, predictions : the rows that are explained, and what the model predicts for them.
    rows, measures : the counterfactuals, with index (id, rank).
    is_changed : the changed cells of `rows`.
    owner : position of the factual of each counterfactual.
    """
    index, origin = [], []
    ranks = rows.index.get_level_values("rank").tolist()
    for f, label in enumerate(factuals.index):
        of_factual = [k for k in range(len(ranks)) if owner[k] == f]
        index += [(name_text(label), "factual"), *((name_text(label), str(ranks[k])) for k in of_factual)]
        origin += [(f, -1), *((f, k) for k in of_factual)]
    features = np.flatnonzero(is_changed.any(axis=0)).tolist()
    cells = {
        j: [
            value_text(factuals.iloc[f, j] if k < 0 else rows.iloc[k, j]) if k < 0 or is_changed[k, j] else ""
            for f, k in origin
        ]
        for j in features
    }
    names = [name_text(name) for name in rows.columns]
    figures = {
        name: ["" if k < 0 else value_text(measures.iloc[k, m], 3) for _, k in origin]
        for m, name in enumerate(free_names(measures.columns, names))
    }
    if len(measures.columns) and measures.columns[0] == PREDICTION:
        begin = [value_text(predictions[f], 3) for f, _ in origin]
        name = next(iter(figures))
        figures[name] = [old if k < 0 else new for (_, k), old, new in zip(origin, begin, figures[name])]
    taken = sum(max(map(len, [name, *texts])) + 2 for name, texts in figures.items())
    taken += sum(max((len(key[level]) for key in index), default=0) + 2 for level in (0, 1))
    fitting: list[int] = []
    for j in sorted(features, key=lambda j: -int(is_changed[:, j].sum())):
        taken += max(map(len, [names[j], *cells[j]])) + 2
        if taken <= width or not fitting:
            fitting.append(j)
    columns = [cells[j] for j in sorted(fitting)] + list(figures.values())
    table = pd.DataFrame(dict(enumerate(columns)), pd.MultiIndex.from_tuples(index, names=["id", "rank"]), dtype=object)
    table.columns = pd.Index([*(names[j] for j in sorted(fitting)), *figures], dtype=object)
    return table, [rows.columns[j] for j in features if j not in fitting]
