"""The result of an explanation as a table for a notebook or a page.

1. A row for each factual, and below it one for each of its counterfactuals; changed cells are bold, on a coloured
   ground, and say what they were.
2. Features that change in the rows shown stand first, so that no changed cell has to be searched for.
3. Where the place is too narrow for all of these side by side, each row is a list of its changes instead.
4. Above the table the headline, below it how to read it, what is not shown, and why factuals stayed unexplained.

Self-contained: no script, no file, no colour of text. What is shown is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.report.names import PREDICTION, Names
from mcce.report.words import fold, value_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

LETTER, PADDING, WIDEST, WIDEST_HEAD = 8.0, 18.0, 182.0, 117.0  # pixels at most, of bold type of 13 pixels
STEP = 40  # pixels: tables that need about the same place share a rule

# Colours are the notebook's own: text is inherited, marks are translucent. Only the column that stays put
# needs a ground: the theme's (Jupyter, VS Code, Sphinx), or else a blur.
STYLE = """<style>
.mcce-cf{font-size:13px;line-height:1.35;min-width:20em;max-width:100%;container-type:inline-size}
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

# One rule for each place that a table may need. Figures and changed cells say what they are; the others are left out.
NARROW = """<style>
@container (max-width:{width}px){{
.mcce-cf.{name} table,.mcce-cf.{name} tbody{{display:block;width:auto}}
.mcce-cf.{name} thead,.mcce-cf.{name} td.same,.mcce-cf.{name} td:empty,
.mcce-cf.{name} tr.factual td:not(.f){{display:none}}
.mcce-cf.{name} tr{{display:flex;flex-wrap:wrap;align-items:baseline;padding:.25em 0}}
.mcce-cf.{name} tr.factual{{border-top:1px solid rgba(128,128,128,.5)}}
.mcce-cf.{name}.mcce-cf table tr :is(th,td){{max-width:100%;border:0;padding:.1em .5em;text-align:left;
 white-space:normal}}
.mcce-cf.{name}.mcce-cf table th:first-child{{position:static}}
.mcce-cf.{name} td.changed{{flex:1 1 24em;margin:.1em}}
.mcce-cf.{name} td::before{{content:attr(data-name) " ";font-weight:400;opacity:.8}}
.mcce-cf.{name} td.changed::after{{content:" (" attr(title) ")";font-weight:400;opacity:.8}}
}}
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
    names : Names
        Labels, units and formats.
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
    names: Names
    headline: list[str]
    reasons: list[str]
    n_more_rows: int
    n_more_factuals: int


@dataclass(frozen=True)
class _Column:
    """A feature: its name, what it is called, its unit, whether it is a number and whether it changes somewhere."""

    name: Hashable
    label: str
    unit: str
    is_number: bool
    changes: bool
    is_fixed: bool

    @property
    def said(self) -> str:
        return f"{self.label}, {self.unit}" if self.unit else self.label


def html_table(shown: Shown) -> str:
    """Return the table with its style, its headline and its notes."""
    order = np.argsort(~shown.changed.any(axis=0), kind="stable")
    columns = [_column(shown, j) for j in order.tolist()]
    figures = [name for name in ("prediction", "L0", "gower", "plausibility") if name in shown.measures]
    heads = [f'<th scope="col" class="n">{escape(shown.names.label(name))}</th>' for name in figures]
    for column in columns:
        small = [column.unit] * bool(column.unit) + ["fixed"] * column.is_fixed
        below = "".join(f"<small>{escape(text)}</small>" for text in small)
        label = escape(column.label).replace("_", "_<wbr>")
        heads.append(f'<th scope="col"{_class("n" * column.is_number)}>{label}{below}</th>')
    rows = _rows(shown, order, columns, figures)
    table = (
        '<div class="scroll" role="region" tabindex="0" aria-label="Table of factuals and counterfactuals"><table>'
        f'<thead><tr><th scope="col">id, → rank</th>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
    notes = _paragraphs(_notes(shown) + shown.reasons)
    width = _place(shown, columns, figures)
    style = STYLE + NARROW.format(width=width, name=f"w{width}")
    return f'{style}<div class="mcce-cf w{width}">{_paragraphs(shown.headline)}{table}{notes}</div>'


def _column(shown: Shown, j: int) -> _Column:
    name = shown.after.columns[j]
    is_number = shown.kinds.get(name) == "numeric"
    unit, changes = shown.names.units.get(name, ""), bool(shown.changed[:, j].any())
    return _Column(name, shown.names.label(name), unit, is_number, changes, name in shown.fixed)


def _place(shown: Shown, columns: list[_Column], figures: list[str]) -> int:
    """Return how many pixels it takes to show the names of rows, the figures and all that changes side by side."""
    longest = max([len("id, → rank"), *(min(len(str(id)), 30) for id, _ in shown.after.index)])
    wide = longest * LETTER + 2 * PADDING
    for name in figures:
        texts = [_figure_text(shown, name, k) for k in range(len(shown.after))]
        wide += _width(shown.names.label(name), texts)
    for column in columns:
        if column.changes:
            cells = [shown.names.text(column.name, v, unit=False) for v in shown.after[column.name].astype(object)]
            wide += _width(column.label, cells)
    return int(-(-wide // STEP) * STEP)


def _width(head: str, cells: list[str]) -> float:
    widest = max([min(len(text) * LETTER, WIDEST) for text in cells] or [0.0])
    return max(widest, min(len(head) * LETTER, WIDEST_HEAD)) + PADDING


def _rows(shown: Shown, order: NDArray[np.intp], columns: list[_Column], figures: list[str]) -> list[str]:
    old, new = (table.astype(object).to_numpy()[:, order] for table in (shown.before, shown.after))
    labels = [shown.names.label(name) for name in figures]
    rows = []
    for k, (id, rank) in enumerate(shown.after.index):
        if k == 0 or shown.factual_of_row[k] != shown.factual_of_row[k - 1]:
            prediction = shown.names.text(PREDICTION, shown.factual_predictions.iloc[k], 3)
            cells = _cells(old[k], old[k], np.zeros(len(order), dtype=bool), columns, shown.names, plain="")
            rows.append(_tr("factual", id, labels, [prediction] + [""] * (len(figures) - 1), cells))
        cells = _cells(old[k], new[k], shown.changed[k, order], columns, shown.names, plain="same")
        texts = [_figure_text(shown, name, k) for name in figures]
        rows.append(_tr("found", f"→ {rank}", labels, texts, cells))
    return rows


def _figure_text(shown: Shown, name: str, row: int) -> str:
    value = shown.measures[name].iloc[row]
    return shown.names.text(PREDICTION, value, 3) if name == PREDICTION else value_text(value, 3)


def _class(names: str) -> str:
    return f' class="{names.strip()}"' if names.strip() else ""


def _cells(
    old: NDArray[Any], new: NDArray[Any], changed: NDArray[np.bool_], columns: list[_Column], names: Names, plain: str
) -> str:
    """Return the cells of one row; a changed one is bold, has a ground and says what it was."""
    cells = []
    for before, after, is_changed, column in zip(old, new, changed, columns):
        kind = "n " * column.is_number + ("changed" if is_changed else plain)
        pair = names.pair(column.name, before, after, unit=False)
        was, text = (escape(fold(t, 120, 1)) for t in pair)
        content = f">{text}"
        if is_changed:
            said = escape(column.said)
            content = f' data-name="{said}" title="was {was}" aria-label="{text}, was {was}"><b>{text}</b>'
        cells.append(f"<td{_class(kind)}{content}</td>")
    return "".join(cells)


def _tr(kind: str, label: object, names: list[str], figures: list[str], cells: str) -> str:
    numbers = "".join(
        f'<td class="n f" data-name="{escape(name)}">{escape(text)}</td>' for name, text in zip(names, figures)
    )
    return f'<tr class="{kind}"><th scope="row">{escape(fold(str(label), 30, 1))}</th>{numbers}{cells}</tr>'


def _notes(shown: Shown) -> list[str]:
    """Say how to read the table, and what is not shown."""
    lines = []
    if len(shown.after):
        lines.append(
            "Bold on a coloured ground: changed; the row of the factual above has what it was. Features that change in "
            "these rows stand first."
        )
    if shown.n_more_rows:
        lines.append(f"Not shown: {shown.n_more_rows} more rows, {shown.n_more_factuals} more explained factuals.")
    return lines


def _paragraphs(lines: list[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)
