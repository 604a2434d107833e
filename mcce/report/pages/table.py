"""The result of an explanation as a table for a notebook or a page.

1. A row for each factual, and below it one for each of its counterfactuals; changed cells are bold, on a coloured
   ground, and say what they were.
2. Beyond `WIDE` features, those that change in the rows shown stand first.
3. Above the table the headline, below it how to read it, what is not shown, and why factuals stayed unexplained.

Self-contained: no script, no file, no colour of text. What is shown is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.report.plots import fold, value_pair, value_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDE = 15  # beyond this many features the table shows the changing ones first

# Colours are the notebook's own: text is inherited, marks are translucent. Only the column that stays put
# needs a ground: the theme's (Jupyter, VS Code, Sphinx), or else a blur.
STYLE = """<style>
.mcce-cf{font-size:13px;line-height:1.35;max-width:100%}
.mcce-cf .scroll{overflow-x:auto;max-width:100%;scrollbar-color:rgba(128,128,128,.6) transparent}
.mcce-cf.mcce-cf table{border-collapse:separate;border-spacing:0;width:max-content;margin:.4em 0;border:0}
.mcce-cf.mcce-cf table tr{background:none}
.mcce-cf.mcce-cf table :is(th,td){padding:.25em .65em;border:0;text-align:left;vertical-align:top;
 max-width:14em;overflow-wrap:anywhere;white-space:normal}
.mcce-cf.mcce-cf table .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.mcce-cf.mcce-cf table thead th{vertical-align:bottom;border-bottom:1px solid;font-weight:600;max-width:9em}
.mcce-cf.mcce-cf table thead th.n{white-space:normal}
.mcce-cf.mcce-cf table th:first-child{position:sticky;left:0;z-index:1;white-space:nowrap;
 backdrop-filter:blur(9px);background:var(--jp-layout-color0,var(--vscode-editor-background,
 var(--pst-color-background,var(--color-background-primary,transparent))))}
.mcce-cf.mcce-cf table tr.factual :is(th,td){border-top:1px solid rgba(128,128,128,.5)}
.mcce-cf.mcce-cf table tr.found th{font-weight:400;padding-left:1.4em}
.mcce-cf.mcce-cf table td.same{opacity:.7}
.mcce-cf.mcce-cf table td.changed{background:rgba(255,165,0,.3);font-weight:700}
.mcce-cf small{display:block;font-weight:400;opacity:.75}
.mcce-cf p{margin:.2em 0}
</style>"""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The rows to show, all of these tables in the same order, and what is said around them.

    Parameters
    ----------
    before, after : DataFrame
        The factual of each row, and its counterfactual, indexed by (id, rank).
    changed : ndarray of bool
        Which cells differ.
    measures : DataFrame
        The measures of each counterfactual, its prediction among them.
    factual_of_row : ndarray of int
        Equal for the counterfactuals of one factual.
    factual_predictions : Series
        The model's prediction for the factual of each row.
    kinds : mapping
        Feature to "numeric", "categorical" or "ordered".
    fixed : collection of str
        The features that were not allowed to change.
    headline, reasons : list of str
        The lines above the table, and those below it.
    n_more_rows, n_more_factuals : int
        How much is not shown.
    """

    before: pd.DataFrame
    after: pd.DataFrame
    changed: NDArray[np.bool_]
    measures: pd.DataFrame
    factual_of_row: NDArray[np.intp]
    factual_predictions: pd.Series[Any]
    kinds: Mapping[str, str]
    fixed: Collection[str]
    headline: list[str]
    reasons: list[str]
    n_more_rows: int
    n_more_factuals: int


def html_table(shown: Shown) -> str:
    """Return the table with its style, its headline and its notes."""
    order = np.arange(shown.after.shape[1])
    if len(order) > WIDE:
        order = np.argsort(~shown.changed.any(axis=0), kind="stable")
    names = [str(name) for name in shown.after.columns[order]]
    numeric = [shown.kinds.get(name) == "numeric" for name in names]
    figures = [name for name in ("prediction", "L0", "gower", "plausibility") if name in shown.measures]
    heads = [f'<th scope="col" class="n">{escape(name)}</th>' for name in figures]
    for name, is_number in zip(names, numeric):
        lock = "<small>fixed</small>" if name in shown.fixed else ""
        heads.append(f'<th scope="col"{_class("n" * is_number)}>{escape(name).replace("_", "_<wbr>")}{lock}</th>')
    table = (
        '<div class="scroll" role="region" tabindex="0" aria-label="Table of factuals and counterfactuals"><table>'
        f'<thead><tr><th scope="col">id, → rank</th>{"".join(heads)}</tr></thead>'
        f"<tbody>{_body(shown, order, numeric, figures)}</tbody></table></div>"
    )
    notes = _paragraphs(_notes(shown) + shown.reasons)
    return f'{STYLE}<div class="mcce-cf">{_paragraphs(shown.headline)}{table}{notes}</div>'


def _body(shown: Shown, order: NDArray[np.intp], numeric: list[bool], figures: list[str]) -> str:
    old, new = (table.astype(object).to_numpy()[:, order] for table in (shown.before, shown.after))
    rows = []
    for k, (id, rank) in enumerate(shown.after.index):
        if k == 0 or shown.factual_of_row[k] != shown.factual_of_row[k - 1]:
            prediction = value_text(shown.factual_predictions.iloc[k], 3)
            cells = _cells(old[k], old[k], np.zeros(len(order), dtype=bool), numeric, plain="")
            rows.append(_tr("factual", id, [prediction] + [""] * (len(figures) - 1), cells))
        cells = _cells(old[k], new[k], shown.changed[k, order], numeric, plain="same")
        texts = [value_text(shown.measures[name].iloc[k], 3) for name in figures]
        rows.append(_tr("found", f"→ {rank}", texts, cells))
    return "".join(rows)


def _class(names: str) -> str:
    return f' class="{names.strip()}"' if names.strip() else ""


def _cells(old: NDArray[Any], new: NDArray[Any], changed: NDArray[np.bool_], numeric: list[bool], plain: str) -> str:
    """Return the cells of one row; a changed one is bold, has a ground and says what it was."""
    cells = []
    for before, after, is_changed, is_number in zip(old, new, changed, numeric):
        kind = "n " * is_number + ("changed" if is_changed else plain)
        was, text = (escape(fold(t, 120, 1)) for t in value_pair(before, after))
        content = f' title="was {was}" aria-label="{text}, was {was}"><b>{text}</b>' if is_changed else f">{text}"
        cells.append(f"<td{_class(kind)}{content}</td>")
    return "".join(cells)


def _tr(kind: str, label: object, figures: list[str], cells: str) -> str:
    numbers = "".join(f'<td class="n">{escape(text)}</td>' for text in figures)
    return f'<tr class="{kind}"><th scope="row">{escape(fold(str(label), 30, 1))}</th>{numbers}{cells}</tr>'


def _notes(shown: Shown) -> list[str]:
    """Say how to read the table, and what is not shown."""
    n_rows, n_features = shown.after.shape
    lines = ["Bold on a coloured ground: changed; the row of the factual above has what it was."] if n_rows else []
    if n_features > WIDE and n_rows:
        lines[0] += " Features that change in these rows stand first."
    if shown.n_more_rows:
        lines.append(f"Not shown: {shown.n_more_rows} more rows, {shown.n_more_factuals} more explained factuals.")
    return lines


def _paragraphs(lines: list[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)
