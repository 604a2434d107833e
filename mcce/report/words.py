"""Values in the words of a reader, for pictures, tables and sentences alike."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from typing import Any

import pandas as pd


def value_text(value: Any, digits: int = 4, *, is_year: bool = True) -> str:
    """Return a value in the words of a reader: `72,000`, `0.0431`, `2024-05-01`, `missing`.

    Four-digit numbers carry no separator, since many of them are years, unless it is said that this one is none.

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
        return str(value.date() if value == value.normalize() else value.tz_localize(None))
    return str(value) or '""'


def _number_text(value: numbers.Real, digits: int, marked_from: float) -> str:
    number = float(value)
    if isinstance(value, numbers.Integral):
        text = f"{int(value):,d}"
    elif not math.isfinite(number) or not 1e-4 <= abs(number) < 1e15:
        text = f"{number:.{digits}g}"
    else:
        decimals = max(digits - 1 - math.floor(math.log10(abs(number))), 0)
        text = f"{number:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(",", "") if abs(number) < marked_from else text


def value_pair(before: Any, after: Any, digits: int = 4) -> tuple[str, str]:
    """Return two values as text, with as many digits, `digits` or more, as it takes to tell them apart."""
    old, new = value_text(before, digits), value_text(after, digits)
    if old == new and digits < 17 and not is_same(before, after):
        return value_pair(before, after, digits + 1)
    return old, new


def case_name(id: object) -> str:
    """Return what to call a factual: its name, or "case 7" for one that has a number or no text of its own."""
    return id if isinstance(id, str) else f"case {id}"


def listed(parts: Sequence[str]) -> str:
    """Return texts as a sentence has them: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def kept_together(text: str) -> str:
    """Return a text in which no line ends between a number and its sign of percent."""
    return re.sub(r"(?<=\d) (?=%)", "\u00a0", text)


def fold(text: str, width: int, lines: int = 2) -> str:
    """Break a text into at most `lines` lines of `width` letters, best after a space, `_`, `/` or `-`.

    What does not fit is left out of the last line's middle: names often differ in their endings.
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
    """Split a text where a line may end: after a space or a mark, and within a name like this: MaxDelq|Ever."""
    words = re.findall(r"[^\s_/-]*[\s_/-]|[^\s_/-]+", text)
    return [piece for word in words for piece in re.split(r"(?<=[a-z0-9])(?=[A-Z])", word)]


def is_same(before: Any, after: Any) -> bool:
    """Say whether two cells agree: exactly equal, or both missing."""
    if pd.isna(before) or pd.isna(after):
        return bool(pd.isna(before) and pd.isna(after))
    return bool(before == after)
