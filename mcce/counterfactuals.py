"""The result of an explanation: what was found, for whom, how far away, and how to read it.

A `Counterfactuals` holds plain tables. Its index (id, rank) names the explained row and the place of the
counterfactual among those found for it, 1 the best. A cell counts as changed unless it equals the factual's
cell exactly or both are missing, as in the measure L0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.exceptions import InputError
from mcce.plots import change_plot, fold, value_pair, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

FACTUALS_SHOWN, RANKS_SHOWN, ROWS_PRINTED, CHANGES_PRINTED = 10, 5, 6, 3
WIDE = 15  # beyond this many features the HTML table shows the changing ones first


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Counterfactuals:
    """Counterfactuals for a table of factuals, as `MCCE.explain` returns them.

    Parameters
    ----------
    frame : DataFrame
        The counterfactual rows, indexed by (id, rank), with the columns and dtypes of the training table.
    measures : DataFrame
        Indexed alike: `prediction`, `L0`, `gower`, `gower_sum`, and further measures asked for.
    factuals : DataFrame
        Every row that was to be explained; its index is the id.
    unexplained : DataFrame
        Indexed by id: `reason` and `prediction` of the factuals without a counterfactual.
    factual_predictions : Series
        The model's prediction for each factual.
    decision : str
        The wanted decision in words.
    fixed : tuple of str
        The features that were not allowed to change.
    kinds : mapping
        Feature to "numeric", "categorical" or "ordered".
    ranges : mapping
        Numeric feature to its lowest and highest training value; dates as `Timestamp`.
    timings : mapping
        Seconds for fit, generate and select.
    settings : mapping
        What was asked for: n_samples, n_counterfactuals, random_state, ...
    """

    frame: pd.DataFrame
    measures: pd.DataFrame
    factuals: pd.DataFrame
    unexplained: pd.DataFrame
    factual_predictions: pd.Series[Any]
    decision: str
    fixed: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.measures.index.equals(self.frame.index):
            raise InputError(
                "measures and frame must have the same (id, rank) index; build both in one order."
            )
        if not self.factual_predictions.index.equals(self.factuals.index):
            raise InputError(
                "factual_predictions and factuals must have the same index; build both in one order."
            )
        if not self.factuals.index.is_unique or (self._row_of_factual() < 0).any():
            raise InputError("every id of frame must occur exactly once in the index of factuals.")

    def __len__(self) -> int:
        return len(self.frame)

    def changes(self) -> pd.DataFrame:
        """Return every changed cell: id, rank, feature, from, to, in the order of `frame`."""
        before, changed = self._compare(np.arange(len(self)))
        rows, columns = np.nonzero(changed)
        old, new = (np.empty(len(rows), dtype=object) for _ in range(2))
        for j in range(self.frame.shape[1]):
            cells = columns == j
            old[cells] = before.iloc[changed[:, j], j].astype(object).to_numpy()
            new[cells] = self.frame.iloc[changed[:, j], j].astype(object).to_numpy()
        return pd.DataFrame(
            {
                "id": self.frame.index.get_level_values("id")[rows],
                "rank": self.frame.index.get_level_values("rank")[rows],
                "feature": self.frame.columns[columns],
                "from": pd.Series(old, dtype=object),
                "to": pd.Series(new, dtype=object),
            }
        )

    def summary(self) -> pd.DataFrame:
        """Return the figures of the whole result in one column; the measures are those of rank 1."""
        figures: dict[str, object] = {
            "factuals": len(self.factuals),
            "explained": len(np.unique(self._row_of_factual())),
            "unexplained": len(self.unexplained),
        }
        for reason, count in self.unexplained["reason"].value_counts().items():
            figures[f"unexplained: {reason}"] = int(count)
        best = self.measures[self._is_best()].drop(columns="prediction").select_dtypes("number")
        for name in best.columns:
            figures[f"mean {name}"], figures[f"sd {name}"] = best[name].mean(), best[name].std()
        for step, seconds in self.timings.items():
            figures[f"seconds {step}"] = seconds
        return pd.DataFrame({"value": pd.Series(figures, dtype=object)})

    def changed_features(self) -> pd.DataFrame:
        """Return how often the counterfactuals of rank 1 change each feature, the most changed first."""
        _, changed = self._compare(np.flatnonzero(self._is_best()))
        times = changed.sum(axis=0)
        table = pd.DataFrame(
            {"times": times, "share": times / max(len(changed), 1)}, index=self.frame.columns
        )
        table["fixed"] = table.index.isin(self.fixed)
        return table.rename_axis("feature").sort_values("times", ascending=False, kind="stable")

    def to_frame(self) -> pd.DataFrame:
        """Return features and measures side by side, id and rank as columns.

        A measure, id or rank whose name is also a feature's gets a trailing underscore.
        """
        names = {*self.frame.columns}
        labels = self.frame.index.to_frame(index=False)
        parts = [labels, self.frame.reset_index(drop=True), self.measures.reset_index(drop=True)]
        for k in (0, 2):
            parts[k] = parts[k].rename(columns=lambda name: f"{name}_" if name in names else name)
        return pd.concat(parts, axis=1)

    def sentence(self, id: Hashable, rank: int = 1) -> str:
        """Return one counterfactual in plain words; for an unexplained factual, why there is none.

        Parameters
        ----------
        id : hashable
            A label of the index of `factuals`.
        rank : int
            Which of its counterfactuals, 1 the best.
        """
        factual, row = self._find(id, rank)
        if row is None:
            return self._why_unexplained(id)
        old, new = value_pair(
            self.factual_predictions.iloc[factual], self.measures["prediction"].iloc[row], 3
        )
        changes = [f"{name} {after} instead of {before}" for name, before, after in self._changes_of(row)]
        if not changes:
            return f"Nothing has to change: the decision is the wanted one ({self.decision}: {new})."
        listed = " and ".join([", ".join(changes[:-1]), changes[-1]] if changes[1:] else changes)
        verdict = f"{self.decision}: {new} instead of {old}"
        return f"With {listed}, the decision would have been the wanted one ({verdict})."

    def plot(self, id: Hashable | None = None, rank: int = 1, ax: Axes | None = None) -> Axes:
        """Draw what one counterfactual changes; by default the best one of the first explained factual.

        Parameters
        ----------
        id : hashable, optional
            A label of the index of `factuals`.
        rank : int
            Which of its counterfactuals, 1 the best.
        ax : Axes, optional
            Where to draw; by default a new figure.
        """
        if id is None:
            if not len(self):
                raise InputError("there is no counterfactual to plot; `unexplained` holds the reasons.")
            id = self.factuals.index[self._row_of_factual()[0]]
        factual, row = self._find(id, rank)
        if row is None:
            raise InputError(self._why_unexplained(id) + " Plot another id.")
        return change_plot(
            self.factuals[self.frame.columns].iloc[[factual]].astype(object).iloc[0],
            self.frame.iloc[[row]].astype(object).iloc[0],
            kinds=self.kinds,
            ranges=self.ranges,
            fixed=self.fixed,
            predictions=(self.factual_predictions.iloc[factual], self.measures["prediction"].iloc[row]),
            decision=self.decision,
            name=id,
            ax=ax,
        )

    def __repr__(self) -> str:
        lines = [self._headline(), ""]
        shown = self.measures.iloc[:ROWS_PRINTED]
        table = []
        for row, (id, rank) in enumerate(shown.index):
            changes = [
                f"{name}: {fold(f'{old} -> {new}', 48, 1)}" for name, old, new in self._changes_of(row)
            ]
            more = [f"and {len(changes) - CHANGES_PRINTED} more"] if len(changes) > CHANGES_PRINTED else []
            figures = [value_text(shown[m].iloc[row], 3) for m in ("prediction", "L0", "gower")]
            table.append(
                [str(id), str(rank), *figures, "; ".join(changes[:CHANGES_PRINTED] + more) or "nothing"]
            )
        if table:
            table.insert(0, ["id", "rank", "prediction", "L0", "gower", "changes"])
            widths = [max(len(line[k]) for line in table) for k in range(5)]
            lines += ["  ".join([*map(str.rjust, line, widths), line[5]]) for line in table]
        if len(self) > len(shown):
            lines.append(f"... and {len(self) - len(shown)} more rows")
        return "\n".join(lines + self._reasons())

    def _repr_html_(self) -> str:
        return _html(self)

    def _row_of_factual(self) -> NDArray[np.intp]:
        """For each row of `frame`, the place of its factual in `factuals`."""
        return self.factuals.index.get_indexer(self.frame.index.get_level_values("id"))

    def _is_best(self) -> NDArray[np.bool_]:
        return np.asarray(self.frame.index.get_level_values("rank") == 1)

    def _compare(self, rows: NDArray[np.intp]) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
        """Return the factuals of some rows of `frame`, and which of the cells differ from them."""
        before = self.factuals[self.frame.columns].iloc[self._row_of_factual()[rows]].reset_index(drop=True)
        after = self.frame.iloc[rows].reset_index(drop=True)
        changed = [_differs(before[name], after[name]) for name in self.frame.columns]
        return before, np.column_stack(changed) if changed else np.zeros((len(rows), 0), dtype=bool)

    def _changes_of(self, row: int) -> list[tuple[str, str, str]]:
        before, changed = self._compare(np.array([row]))
        return [
            (str(self.frame.columns[j]), *value_pair(before.iloc[0, j], self.frame.iloc[row, j]))
            for j in np.flatnonzero(changed[0]).tolist()
        ]

    def _find(self, id: Hashable, rank: int) -> tuple[int, int | None]:
        """Return the places of a factual and of its counterfactual; None if it has none at all."""
        try:
            factual = int(self.factuals.index.get_indexer_for(pd.Index([id], tupleize_cols=False))[0])
        except (TypeError, ValueError):
            factual = -1
        if factual < 0:
            known = _some(self.factuals.index)
            raise InputError(
                f"no factual has the id {id!r}; the ids are the index of the explained table: {known}."
            )
        rows = np.flatnonzero(self._row_of_factual() == factual)
        ranks = self.frame.index.get_level_values("rank")[rows]
        if len(rows) and rank not in ranks:
            raise InputError(
                f"factual {id!r} has no counterfactual of rank {rank!r}, only {_some(ranks)}; "
                "ask for one of these, or explain with a larger n_counterfactuals."
            )
        return factual, int(rows[ranks == rank][0]) if len(rows) else None

    def _why_unexplained(self, id: Hashable) -> str:
        reason = "no reason was recorded"
        place = self.unexplained.index.get_indexer_for(pd.Index([id], tupleize_cols=False))[0]
        if place >= 0:
            reason = str(self.unexplained["reason"].iloc[place]).rstrip(".")
        return f"No counterfactual was found for {id!r}: {reason}."

    def _headline(self) -> str:
        best = self.measures[self._is_best()]
        figures = [f"{m} {value_text(best[m].mean(), 3)}" for m in ("L0", "gower")] if len(best) else []
        means = f"\nmean over the best of each: {', '.join(figures)}" if figures else ""
        explained = len(np.unique(self._row_of_factual()))
        counts = f"{explained} of {len(self.factuals)} factuals explained, {len(self)} rows"
        return f"Counterfactuals: {counts}\nwanted: {self.decision}{means}"

    def _reasons(self) -> list[str]:
        """One line for each reason why factuals stayed unexplained."""
        groups = self.unexplained.groupby("reason", sort=False).groups.items()
        return [f"not explained, {reason}: {_some(ids)}" for reason, ids in groups]


def _some(ids: Iterable[object], most: int = 10) -> str:
    known = [repr(i) for i in (ids.tolist() if isinstance(ids, pd.Index) else ids)]
    rest = f" and {len(known) - most} more" if len(known) > most else ""
    return (", ".join(known[:most]) or "none") + rest


def _differs(before: pd.Series[Any], after: pd.Series[Any]) -> NDArray[np.bool_]:
    """Return which cells differ: not equal, or missing on one side only."""
    old, new = (s.astype(object) if isinstance(s.dtype, pd.CategoricalDtype) else s for s in (before, after))
    old_missing, new_missing = old.isna().to_numpy(), new.isna().to_numpy()
    differs: NDArray[np.bool_] = old_missing != new_missing
    present = ~(old_missing | new_missing)
    differs[present] = (old[present] != new[present]).to_numpy(dtype=bool)
    return differs


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
.mcce-cf.mcce-cf table th:first-child{position:sticky;left:0;z-index:1;white-space:nowrap;
 backdrop-filter:blur(9px);background:var(--jp-layout-color0,var(--vscode-editor-background,
 var(--pst-color-background,var(--color-background-primary,transparent))))}
.mcce-cf.mcce-cf table tr.factual :is(th,td){border-top:1px solid rgba(128,128,128,.5)}
.mcce-cf.mcce-cf table tr.found th{font-weight:400;padding-left:1.4em}
.mcce-cf.mcce-cf table td.same{opacity:.6}
.mcce-cf.mcce-cf table td.changed{background:rgba(255,165,0,.3);font-weight:700}
.mcce-cf small{display:block;font-weight:400;opacity:.75}
.mcce-cf p{margin:.2em 0}
</style>"""


def _html(found: Counterfactuals) -> str:
    """Return the result as a self-contained table: each factual, and below it its counterfactuals."""
    factual_of_row = found._row_of_factual()
    explained = list(dict.fromkeys(factual_of_row.tolist()))
    shown = [np.flatnonzero(factual_of_row == f)[:RANKS_SHOWN] for f in explained[:FACTUALS_SHOWN]]
    rows = np.concatenate([np.array([], dtype=np.intp), *shown])
    before, changed = found._compare(rows)
    order = np.arange(found.frame.shape[1])
    if len(order) > WIDE:
        order = np.argsort(~changed.any(axis=0), kind="stable")
    names = [str(name) for name in found.frame.columns[order]]
    numeric = [found.kinds.get(name) == "numeric" for name in names]
    figures = [name for name in ("prediction", "L0", "gower") if name in found.measures]
    old, new = (table.astype(object).to_numpy()[:, order] for table in (before, found.frame.iloc[rows]))
    body = []
    for k, row in enumerate(rows):
        id, rank = found.frame.index[row]
        if k == 0 or factual_of_row[row] != factual_of_row[rows[k - 1]]:
            prediction = value_text(found.factual_predictions.iloc[factual_of_row[row]], 3)
            cells = _cells(old[k], old[k], np.zeros(len(order), dtype=bool), numeric, plain="")
            body.append(_tr("factual", id, [prediction] + [""] * (len(figures) - 1), cells))
        cells = _cells(old[k], new[k], changed[k, order], numeric, plain="same")
        texts = [value_text(found.measures[name].iloc[row], 3) for name in figures]
        body.append(_tr("found", f"→ {rank}", texts, cells))
    heads = [f'<th scope="col" class="n">{escape(name)}</th>' for name in figures]
    for name, is_number in zip(names, numeric):
        lock = "<small>fixed</small>" if name in found.fixed else ""
        heads.append(
            f'<th scope="col"{_class("n" * is_number)}>{escape(name).replace("_", "_<wbr>")}{lock}</th>'
        )
    table = (
        f'<div class="scroll"><table><thead><tr><th scope="col">id, → rank</th>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
    notes = _notes(found, len(explained), len(rows), len(order))
    return f'{STYLE}<div class="mcce-cf">{_paragraphs(found._headline().splitlines())}{table}{notes}</div>'


def _class(names: str) -> str:
    return f' class="{names.strip()}"' if names.strip() else ""


def _cells(
    old: NDArray[Any], new: NDArray[Any], changed: NDArray[np.bool_], numeric: list[bool], plain: str
) -> str:
    """Return the cells of one row; a changed one is bold, has a ground and says what it was."""
    cells = []
    for before, after, is_changed, is_number in zip(old, new, changed, numeric):
        kind = "n " * is_number + ("changed" if is_changed else plain)
        was, text = (escape(fold(t, 120, 1)) for t in value_pair(before, after))
        content = f' title="was {was}"><b>{text}</b>' if is_changed else f">{text}"
        cells.append(f"<td{_class(kind)}{content}</td>")
    return "".join(cells)


def _tr(kind: str, label: object, figures: list[str], cells: str) -> str:
    numbers = "".join(f'<td class="n">{escape(text)}</td>' for text in figures)
    return f'<tr class="{kind}"><th scope="row">{escape(fold(str(label), 30, 1))}</th>{numbers}{cells}</tr>'


def _notes(found: Counterfactuals, n_explained: int, n_rows: int, n_features: int) -> str:
    lines = ["Bold on a coloured ground: changed; point at it to see what it was."] if n_rows else []
    if n_features > WIDE and n_rows:
        lines[0] += " Features that change in these rows stand first."
    if len(found) > n_rows:
        more = max(n_explained - FACTUALS_SHOWN, 0)
        lines.append(f"Not shown: {len(found) - n_rows} more rows, {more} more explained factuals.")
    return _paragraphs(lines + found._reasons())


def _paragraphs(lines: list[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines)
