"""Escape texts that a spreadsheet would run as a formula, and undo it.

An apostrophe is put before texts that begin with ``=``, ``+``, ``-``, ``@``, a tab or a line break (after any
apostrophes), but not before numbers. In rows to explain, the apostrophe is removed from unknown names and levels that
are known without it, and from all ids.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pandas as pd

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
LEADING_ZERO = re.compile(r"[+-]?0[0-9]")  # a number with a leading zero may be a code
_NUMBER = re.compile(r"[+-]?[.,]?\d[\d., \u00a0\u202f'’]*(?:[eE][+-]?\d+)?%?")


def escape_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before every text, including the header, that a spreadsheet would run."""
    safe = table.copy()
    for j, dtype in enumerate(table.dtypes):
        if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype):
            continue
        values = table.iloc[:, j].astype(object)
        escaped = [escape_formula(value) for value in values]
        if any(after is not before for after, before in zip(escaped, values)):
            texts: Any = pd.Series(escaped, index=table.index, dtype=object)
            safe.isetitem(j, texts)
    safe.columns = pd.Index([escape_formula(name) for name in table.columns], tupleize_cols=False)
    return safe


def escape_formula(value: Any) -> Any:
    """Return a value, with an apostrophe before it if a spreadsheet would run its text.

    Examples
    --------
    >>> [escape_formula(value) for value in ("=1+1", "clerk", "-5", -5, "'=1+1")]
    ["'=1+1", 'clerk', '-5', -5, "''=1+1"]
    """
    if isinstance(value, (int, float)):
        return value
    text = value if isinstance(value, str) else str(value)
    return f"'{text}" if _is_run(text) else value


def unescape_formula(text: str) -> str:
    """Return a text without the apostrophe of `escape_formula`.

    Examples
    --------
    >>> [unescape_formula(text) for text in ("'=1+1", "clerk", "'tis", "''=1+1")]
    ['=1+1', 'clerk', "'tis", "'=1+1"]
    """
    return text[1:] if text.startswith("'") and _is_run(text[1:]) else text


def unescape_formulas(
    table: pd.DataFrame, known: Mapping[Any, Iterable[Any]], ids: Collection[Any] = ()
) -> pd.DataFrame:
    """Return a table of text as it was before `escape_formulas`.

    Parameters
    ----------
    table : cells as text
    known : the known levels of each expected column
    ids : columns with names of rows, which have no known levels
    """
    expected = {*known, *ids}
    names = {name: unescape_formula(str(name)) for name in table.columns if name not in expected}
    plain = table.rename(columns={name: to for name, to in names.items() if to in expected and to not in table})
    for name in expected.intersection(plain.columns):
        cells = plain[name]
        escaped = {text: unescape_formula(text) for text in cells.unique() if isinstance(text, str)}
        escaped = {text: to for text, to in escaped.items() if to != text}
        if escaped and name not in ids:
            levels = set(map(str, known[name]))
            escaped = {text: to for text, to in escaped.items() if text not in levels and to in levels}
        if escaped:
            plain[name] = cells.map(lambda text, to=escaped: to.get(text, text))
    return plain


def _is_run(text: str) -> bool:
    return bool(_FORMULA.match(text)) and not _NUMBER.fullmatch(text)
