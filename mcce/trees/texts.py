"""What is written of a tree: its rules, the values of its columns, and numbers as R writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.arrays import Floats
from mcce.table import Feature
from mcce.table.dtypes import is_dated

DIGITS = 7  # significant digits of a number


class Rule(NamedTuple):
    """What sends a row to a node: a bound, a set of levels, or whether the value is missing.

    Attributes
    ----------
    name : column.
    sign : "<", "<=", ">=", ">", "in" or "is".
    values : the bound, the levels, or "missing" or "known".
    """

    name: str
    sign: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        values = ", ".join(self.values)
        return f"{self.name} {self.sign} " + (f"{{{values}}}" if self.sign == "in" else values)

    def as_party(self) -> str:
        """Return the rule as party writes it."""
        return str(self) if self.sign != "in" else f"{self.name} == {{{', '.join(self.values)}}}"

    def as_rpart(self) -> str:
        """Return the rule as rpart writes it."""
        if self.sign == "in":
            return f"{self.name}={','.join(self.values)}"
        return str(self) if self.sign == "is" else f"{self.name}{self.sign:<2}{self.values[0]}"


def value_of(feature: Feature, encoded: float) -> Any:
    """Return a number as it is, and a date as a date."""
    if not is_dated(feature.dtype):
        return encoded
    if not np.isfinite(encoded):
        return pd.NaT
    return pd.Series(feature.decode(np.array([encoded])), dtype=feature.dtype).iloc[0]


def text_of(feature: Feature, encoded: float) -> str:
    """Return a number, date or level as text."""
    if feature.levels is not None:
        return str(feature.levels[int(encoded)])
    value = value_of(feature, encoded)
    if isinstance(value, pd.Timestamp):
        return str(value.date() if value == value.normalize() else value.tz_localize(None))
    return format_numbers([value])[0] if isinstance(value, float) else str(value)


def format_numbers(values: Sequence[float] | Floats, digits: int = DIGITS) -> list[str]:
    """Write numbers as R's `format` does: with as many decimals as show `digits` significant digits of each.

    Powers of ten are used if that is shorter.

    Examples
    --------
    >>> from mcce.trees.texts import format_numbers
    >>> format_numbers([1402.471, 9.556252]), format_numbers([100000.0]), format_numbers([0.1 + 0.2])
    (['1402.471000', '   9.556252'], ['1e+05'], ['0.3'])
    """
    decimals, longest, widest_left = 0, 1, 1
    exponents = [0]
    for value in values:
        if np.isfinite(value):
            mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
            shown = len(mantissa.lstrip("-").replace(".", "").rstrip("0")) or 1
            exponents.append(int(exponent))
            decimals = max(decimals, shown - 1 - int(exponent))
            longest = max(longest, shown)
            widest_left = max(widest_left, max(int(exponent) + 1, 1) + (value < 0))
    fixed_width = widest_left + (decimals + 1 if decimals else 0)
    exponent_width = 3 if max(map(abs, exponents)) > 99 else 2
    power_width = any(v < 0 for v in values) + (longest + 1 if longest > 1 else 1) + 2 + exponent_width
    form = f".{decimals}f" if fixed_width <= power_width else f".{longest - 1}e"
    texts = [format(float(value) + 0.0, form) if np.isfinite(value) else "NA" for value in values]  # no -0
    return [text.rjust(max(map(len, texts), default=0)) for text in texts]
