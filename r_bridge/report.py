"""Rendering of a table of comparisons: as text, and as HTML for a notebook or a page.

The HTML is self-contained: no script, no file, no text colour; rows that need attention have a coloured background.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

WIDTH = 100
STYLE = """<style>
.mcce-report{font-size:13px;line-height:1.35;max-width:100%;overflow-x:auto}
.mcce-report.mcce-report table{border-collapse:collapse;font-size:inherit;margin:.4em 0;border:0}
.mcce-report.mcce-report table :is(th,td){padding:.25em .65em;border:0;text-align:left;vertical-align:top}
.mcce-report.mcce-report table thead th{border-bottom:1px solid;font-weight:600}
.mcce-report.mcce-report table .n{text-align:right;font-variant-numeric:tabular-nums}
.mcce-report.mcce-report table tr{background:none}
.mcce-report.mcce-report table tr.look{background:rgba(255,165,0,.3)}
.mcce-report p{margin:.2em 0}
</style>"""


def cell(value: Any) -> str:
    """Return a value as text: short numbers, integers with separators, missing values as empty text."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_, str)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)


def as_text(headline: Sequence[str], table: pd.DataFrame, notes: Sequence[str]) -> str:
    """Return headline, table and notes as lines of text."""
    rows = [[_head(name) for name in table.columns], *_cells(table)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    right = [pd.api.types.is_numeric_dtype(dtype) for dtype in table.dtypes]
    lines = ["  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join([*_wrapped(headline), "", *lines, *([""] if notes else []), *_wrapped(notes)])


def as_html(headline: Sequence[str], table: pd.DataFrame, notes: Sequence[str], look: Sequence[bool]) -> str:
    """Return the same as HTML; `look` marks the rows with a coloured background."""
    right = [' class="n"' * pd.api.types.is_numeric_dtype(dtype) for dtype in table.dtypes]
    heads = "".join(f'<th scope="col"{r}>{escape(_head(name))}</th>' for name, r in zip(table.columns, right))
    rows = []
    for cells, marked in zip(_cells(table), look):
        inner = "".join(f"<td{r}>{escape(c)}</td>" for c, r in zip(cells, right))
        opening = '<tr class="look">' if marked else "<tr>"
        rows.append(f"{opening}{inner}</tr>")
    above, below = ("".join(f"<p>{escape(line)}</p>" for line in lines) for lines in (headline, notes))
    body = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'{STYLE}<div class="mcce-report">{above}{body}{below}</div>'


def _head(name: object) -> str:
    return str(name).replace("_", " ")


def _cells(table: pd.DataFrame) -> list[list[str]]:
    return [[cell(value) for value in row] for row in table.astype(object).itertuples(index=False, name=None)]


def _wrapped(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, WIDTH) or [""]]
