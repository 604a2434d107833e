"""Tables that a spreadsheet opens without running anything in them.

A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break is a formula to a spreadsheet. An apostrophe
in front makes it text again; a program that reads the file finds the apostrophe, so it is put there only if asked.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

_RUN = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?[\d.,]+(?:[eE][+-]?\d+)?%?")


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before every text, also of the header, that a spreadsheet would run."""
    safe = table.copy()
    for j, dtype in enumerate(table.dtypes):
        if dtype.kind == "O" or isinstance(dtype, (pd.CategoricalDtype, pd.StringDtype)):
            texts: Any = table.iloc[:, j].astype(object).map(_quoted)
            safe.isetitem(j, texts)
    safe.columns = pd.Index([_quoted(name) for name in table.columns], tupleize_cols=False)
    return safe


def _quoted(value: Any) -> Any:
    text = value if isinstance(value, str) else str(value)
    if isinstance(value, (int, float)) or not text.startswith(_RUN) or _NUMBER.fullmatch(text):
        return value
    return f"'{text}"
