"""The result of `MCCE.explain`: tables, and a few verbs on them.

It is data: it holds no function of the explainer, so it can be pickled, and `to_frame` writes it as one flat table. A
cell counts as changed unless it equals the factual's exactly or both are missing, as in L0; derived columns, which
follow from other changes, do not count.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from mcce._utils import Bools, Ints, check_count
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.report import plots
from mcce.report.text import (
    Words,
    change_sentence,
    free_names,
    is_same,
    shown_table,
    value_text,
)
from mcce.table.checks import find_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ALREADY = "already"  # code of a row that has the wanted decision
PRINTED, PRINTED_HTML = 5, 10  # factuals that are shown
PRINTED_WIDTH = 100  # characters
AS_TEXT = "mixed", "mixed-integer", "period", "interval"  # values that files hold as texts only
SHOWN_MEASURES = ("prediction", "L0", "gower", "plausibility")


@dataclass(frozen=True, repr=False, eq=False)
class Counterfactuals:
    """Counterfactuals of the rows of a table.

    Attributes
    ----------
    frame : DataFrame
        The counterfactuals, indexed by (id, rank), with the columns and dtypes of the training table: `id` is the label
        of the explained row in the index of its table, `rank` is 1 for the best.
    measures : DataFrame
        With the same index: `prediction` of the model, `L0` (number of changes), `gower` (mean of the steps, in [0, 1])
        and `gower_sum`; measures given to `explain`; of a sparse search `plausibility`, the share of real rows that are
        at least as unusual, judged for the change, and `below_floor`, which also marks rows with a harmful change.
    factuals : DataFrame
        The explained rows by id, apart from those with a level that no training row has.
    predictions : Series
        The model's prediction of every explained row, by id.
    unexplained : DataFrame
        The rows without a counterfactual, by id: `code`, the `prediction`, the number of rows `drawn` for it, of those
        `allowed` by the constraints, `plausible` (all of these, because the last search has no floor) and `valid`, and
        the `reason` as a sentence. Codes: `already` (it has the wanted decision), `unknown_level`, `none_allowed`,
        `none_valid`, `not_confirmed`.
    settings : dict
        Version, seed, decision and options of the call, the number of rows queried, and seconds.
    fixed, derived : tuple
        Features that may not change, and those that a formula computes.
    kinds : dict
        Feature to "numeric", "ordered" or "categorical".
    shares : DataFrame
        What `changes` tells about each changed cell: its `row` in `frame`, feature, direction, step and shares.
    distributions : dict
        Changed feature to a table of its training values, for pictures: quantiles, or shares of levels.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> explainer = mcce.MCCE(loans.model, decision=loans.decision, fixed=loans.fixed, random_state=1).fit(loans.X)
    >>> counterfactuals = explainer.explain(loans.X.iloc[[3, 6]], sparse=True)
    >>> len(counterfactuals), list(counterfactuals.frame.index), counterfactuals.unexplained.empty
    (2, [(3, 1), (6, 1)], True)
    """

    frame: pd.DataFrame
    measures: pd.DataFrame
    factuals: pd.DataFrame
    predictions: pd.Series[Any]
    unexplained: pd.DataFrame
    settings: dict[str, Any]
    fixed: tuple[Any, ...]
    derived: tuple[Any, ...]
    kinds: dict[Any, str]
    shares: pd.DataFrame
    distributions: dict[Any, pd.DataFrame] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of counterfactuals."""
        return len(self.frame)

    # -----------------------------------------------------------------------------------------------------------------

    def changes(self) -> pd.DataFrame:
        """Return one row for each changed cell, apart from derived columns.

        Returns
        -------
        DataFrame
            `id`, `rank`, `feature`; `from` and `to`, the old and the new value; `direction`: "up", "down", "other"
            (another level without order) or "missing" (from or to a missing value); `share_from` and `share_to`, the
            shares of training rows with at most the old and the new value (of a level without order, the shares that
            have it); `step`, the share of training rows between the two, ties counted half, negative downwards.

        Examples
        --------
        How often each feature changes in which direction: ``pd.crosstab(changes["feature"], changes["direction"])``.
        """
        computed = set(self.derived)
        is_counted = np.array([name not in computed for name in self.shares["feature"]], dtype=bool)
        cells = self.shares[is_counted].reset_index(drop=True)
        rows = cells["row"].to_numpy(dtype=np.int64)
        owner = self._owner()[rows]
        old, new = np.empty(len(cells), dtype=object), np.empty(len(cells), dtype=object)
        names = list(self.frame.columns)
        places = np.array([names.index(name) for name in cells["feature"]], dtype=np.int64)
        for j in np.unique(places).tolist():
            at = np.flatnonzero(places == j)
            for values, table, taken in ((old, self.factuals, owner), (new, self.frame, rows)):
                values[at] = table.iloc[:, j].astype(object).to_numpy()[taken[at]]
        ids = self.frame.index.get_level_values("id")[rows]
        ranks = self.frame.index.get_level_values("rank")[rows]
        columns = {"id": ids, "rank": ranks, "feature": cells["feature"], "from": old, "to": new}
        table = pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})
        return pd.concat([table, cells[["direction", "step", "share_from", "share_to"]]], axis=1)

    def summary(self) -> pd.Series[Any]:
        """Return figures of all rows: `rows` counts, and means and shares over the best counterfactuals.

        Returns
        -------
        Series
            With index (what, of): "rows" are counts of the given and explained rows and of each code of `unexplained`;
            "mean" has the mean of each measure; "changes" the share of answers with so many changes; "changed" the
            share of answers in which each feature changes, the most frequent first. A feature that changes often and
            cannot be influenced belongs in `fixed`.
        """
        best = np.flatnonzero(self._ranks() == 1)
        measures = self.measures.iloc[best]
        figures: list[tuple[str, Any, Any]] = [
            ("rows", "given", len(self.predictions)),
            ("rows", "explained", len(best)),
        ]
        if "below_floor" in measures:
            figures.append(("rows", "below_floor", int(measures["below_floor"].sum())))
        figures += [("rows", code, int(n)) for code, n in self.unexplained["code"].value_counts().items()]
        if len(best):
            numeric = measures.select_dtypes("number")
            figures += [("mean", name, round(float(value), 4)) for name, value in numeric.mean().items()]
            counts = measures["L0"].value_counts(normalize=True).sort_index()
            figures += [("changes", int(n), round(float(share), 4)) for n, share in counts.items()]
            times = self._is_changed()[best].mean(axis=0)
            order = [j for j in np.argsort(-times, kind="stable").tolist() if times[j] > 0]
            figures += [("changed", self.frame.columns[j], round(float(times[j]), 4)) for j in order]
        what, of, values = zip(*figures)
        index = pd.MultiIndex.from_arrays([list(what), pd.Index(of, dtype=object, tupleize_cols=False)])
        return pd.Series(list(values), index.set_names(["what", "of"]), dtype=object, name="value")

    def sentence(
        self,
        id: Hashable,
        rank: int = 1,
        *,
        labels: Mapping[Any, str] | None = None,
        formats: Mapping[Any, str] | None = None,
    ) -> str:
        """Return one counterfactual as a sentence; of a row without one, the reason.

        Parameters
        ----------
        id : label
            The row, by the index of the explained table.
        rank : int
            1 for the best counterfactual.
        labels : dict or None
            Feature to the name that is written; "prediction" is the model's prediction.
        formats : dict or None
            Feature to a Python format: ``{"salary": "{:,.0f} EUR", "prediction": "{:.1%}"}``.
        """
        words = Words.read(labels, formats, self.frame.columns)
        row = self._find(id, rank)
        if row is None:
            place = find_labels(self.unexplained.index, pd.Index([id], tupleize_cols=False))[0]
            return f"No counterfactual for {spell(id)}: {self.unexplained['reason'].iloc[place]}."
        before, after = self._pair(row)
        changed = [(name, before[name], after[name]) for name in after.index if not is_same(before[name], after[name])]
        prediction = self.measures["prediction"].iloc[row]
        sentence = change_sentence(
            [change for change in changed if change[0] not in self.derived],
            [change for change in changed if change[0] in self.derived],
            (self._prediction(row), prediction),
            self.settings["decision"],
            words,
        )
        if "below_floor" in self.measures and self.measures["below_floor"].iloc[row]:
            level, floor = self.measures["plausibility"].iloc[row], value_text(self.settings["floor"], 3)
            if level >= self.settings["floor"]:  # rows with a harmful change are marked, too
                return f"{sentence} One of its changes may make the decision worse; no answer without one was found."
            share = f"a share of {value_text(level, 3)}" if level > 0.0 else "none"
            sentence += f" It is not plausible: {share} of the real rows is as unusual, and {floor} was required."
        return sentence

    def plot(
        self,
        id: Hashable | None = None,
        rank: int = 1,
        *,
        labels: Mapping[Any, str] | None = None,
        formats: Mapping[Any, str] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw what changes for one row, against its distribution in the training rows; without `id`, for all rows.

        Parameters
        ----------
        id, rank, labels, formats : as in `sentence`
            None draws how often each feature changes in the best counterfactuals.
        ax : Axes or None
            Where to draw; None makes a figure whose height follows its content.
        """
        words = Words.read(labels, formats, self.frame.columns)
        if id is None:
            names = [name for name in self.frame.columns if name not in self.derived]
            n = int((self._ranks() == 1).sum())
            return plots.changes_plot(self.changes(), features=names, fixed=self.fixed, n=n, labels=words.labels, ax=ax)
        row = self._find(id, rank)
        if row is None:
            raise InputError(f"{self.sentence(id)} There is nothing to draw.")
        before, after = self._pair(row)
        return plots.change_plot(
            before,
            after,
            kinds=self.kinds,
            distributions=self.distributions,
            fixed=self.fixed,
            derived=self.derived,
            predictions=(self._prediction(row), self.measures["prediction"].iloc[row]),
            decision=self.settings["decision"],
            labels=words.labels,
            formats=words.formats,
            ax=ax,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return factuals and counterfactuals as one flat table, which CSV and Parquet can hold.

        Each factual is followed by its counterfactuals. Columns: `id`; `rank`, 0 for the factual; `code`, "explained"
        or that of `unexplained`; the features, named by texts; the measures. A column beside the features gets
        underscores where a feature has its name. Rows with a level that no training row has are in `unexplained` only.
        Cells are written as they are: a spreadsheet may take a text such as "=A1" for a formula.
        """
        n, owner = len(self.factuals), self._owner()
        source = np.concatenate([np.arange(n), n + np.arange(len(self))])
        order = np.lexsort([np.concatenate([np.zeros(n), self._ranks()]), np.concatenate([np.arange(n), owner])])
        code = np.full(n, "explained", dtype=object)
        places = find_labels(self.unexplained.index, self.factuals.index)
        code[places >= 0] = self.unexplained["code"].to_numpy(dtype=object)[places[places >= 0]]
        rows = pd.concat([self.factuals.reset_index(drop=True), self.frame.reset_index(drop=True)], ignore_index=True)
        measures = pd.concat([self._factual_measures(), self.measures.reset_index(drop=True)], ignore_index=True)
        keys = {
            "id": self.factuals.index[np.concatenate([np.arange(n), owner])].to_series().reset_index(drop=True),
            "rank": pd.Series(np.concatenate([np.zeros(n, dtype=np.int64), self._ranks()])),
            "code": pd.Series(np.concatenate([code, code[owner]])),
        }
        names = free_names(rows.columns, ())
        names_beside = free_names([*keys, *measures.columns], names)
        features = pd.DataFrame({j: plain_column(rows.iloc[:, j]) for j in range(rows.shape[1])})
        features.columns = pd.Index(names, dtype=object)
        table_of_keys = pd.DataFrame({name: plain_column(values) for name, values in zip(names_beside, keys.values())})
        measures = measures.set_axis(names_beside[len(keys) :], axis=1)
        return pd.concat([table_of_keys, features, measures], axis=1).iloc[source[order]].reset_index(drop=True)

    def _factual_measures(self) -> pd.DataFrame:
        """Return the measures of the factuals themselves: their prediction, and distances of 0."""
        n = len(self.factuals)
        predictions = self.predictions.iloc[find_labels(self.predictions.index, self.factuals.index)]
        columns: dict[str, Any] = {"prediction": predictions.array}
        for name in self.measures.columns[1:]:
            if name == "below_floor":
                columns[name] = np.zeros(n, dtype=bool)
            elif name == "L0":
                columns[name] = np.zeros(n, dtype=np.int64)
            else:
                columns[name] = np.full(n, 0.0 if name in ("gower", "gower_sum") else np.nan)
        return pd.DataFrame(columns)

    # -----------------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        table, hidden = self._shown(PRINTED, PRINTED_WIDTH)
        lines = [self._headline(), f"wanted: {self.settings['decision']}"]
        if len(table):
            lines += ["", *(line.rstrip() for line in table.to_string().splitlines())]
        n_explained = int((self._ranks() == 1).sum())
        notes = []
        if n_explained > PRINTED:
            notes.append(f"{n_explained - PRINTED} further rows")
        if hidden:
            notes.append(f"also changed: {listing(hidden, 6)}")
        return "\n".join(lines + ([f"... {'; '.join(notes)}"] if notes else []))

    def _repr_html_(self) -> str | None:
        """Return the table of `repr` for a notebook, changed values bold; None without jinja2, which pandas needs."""
        table, _ = self._shown(PRINTED_HTML)
        try:
            styler = table.style
        except (ImportError, AttributeError):
            return None
        if not (len(table) and table.index.is_unique and table.columns.is_unique):
            return None
        bold = pd.DataFrame("", table.index, table.columns)
        is_counterfactual = table.index.get_level_values("rank") != "factual"
        n_features = table.shape[1] - len(self._shown_measures())
        bold.iloc[is_counterfactual, :n_features] = "font-weight: bold"
        styler = styler.apply(lambda _: bold, axis=None).format(escape="html")
        styler = styler.format_index(escape="html", axis=0).format_index(escape="html", axis=1)
        return str(styler.set_caption(self._headline()).set_uuid("mcce").to_html())

    def _headline(self) -> str:
        n_rows, n_explained = len(self.predictions), int((self._ranks() == 1).sum())
        counts = self.unexplained["code"].value_counts()
        codes = "".join(f", {n} {code}" for code, n in counts.items())
        return f"Counterfactuals: {n_explained} of {n_rows} rows explained{codes}"

    def _shown(self, n: int, width: float = np.inf) -> tuple[pd.DataFrame, list[Any]]:
        """Return the table of the first explained rows, and the changed features that do not fit into it."""
        firsts = pd.unique(self._owner())[:n]
        rows = np.flatnonzero(np.isin(self._owner(), firsts))
        factuals = self.factuals.iloc[firsts]
        predictions = self.predictions.iloc[find_labels(self.predictions.index, factuals.index)]
        owner = np.searchsorted(np.sort(firsts), self._owner()[rows]).tolist()
        measures = self.measures[self._shown_measures()].iloc[rows]
        is_changed = self._is_changed()[rows]
        return shown_table(factuals, list(predictions), self.frame.iloc[rows], measures, is_changed, owner, width)

    def _shown_measures(self) -> list[str]:
        return [name for name in SHOWN_MEASURES if name in self.measures]

    # -----------------------------------------------------------------------------------------------------------------

    def _owner(self) -> Ints:
        """Return for each counterfactual the position of its factual in `factuals`."""
        return find_labels(self.factuals.index, self.frame.index.get_level_values("id"))

    def _ranks(self) -> Ints:
        return self.frame.index.get_level_values("rank").to_numpy(dtype=np.int64)

    def _is_changed(self) -> Bools:
        """Return which cells of `frame` are changed, apart from derived columns."""
        is_changed = np.zeros(self.frame.shape, dtype=bool)
        place = {name: j for j, name in enumerate(self.frame.columns)}
        columns = np.array([place[name] for name in self.shares["feature"]], dtype=np.int64)
        is_changed[self.shares["row"].to_numpy(dtype=np.int64), columns] = True
        is_changed[:, [place[name] for name in self.derived]] = False
        return is_changed

    def _prediction(self, row: int) -> Any:
        """Return the prediction of the factual of a counterfactual."""
        id = self.factuals.index[[self._owner()[row]]]
        return self.predictions.iloc[find_labels(self.predictions.index, id)[0]]

    def _pair(self, row: int) -> tuple[pd.Series[Any], pd.Series[Any]]:
        """Return a counterfactual and its factual."""
        owner = int(self._owner()[row])
        before, after = self.factuals.iloc[[owner]].astype(object), self.frame.iloc[[row]].astype(object)
        name = self.factuals.index[owner]
        return before.iloc[0].rename(name), after.iloc[0].rename(name)

    def _find(self, id: Hashable, rank: int) -> int | None:
        """Return the position of a counterfactual in `frame`; None for a row without one."""
        check_count(rank, "rank")
        label = pd.Index([id], tupleize_cols=False)
        ids = self.predictions.index
        if not isinstance(id, Hashable) or find_labels(ids, label)[0] < 0:
            raise InputError(f"no row has the id {spell(id)}; {did_you_mean(id, ids)}")
        place = find_labels(self.factuals.index, label)[0]
        rows = np.flatnonzero(self._owner() == place) if place >= 0 else np.empty(0, dtype=np.int64)
        if not rows.size:
            return None
        ranks = self._ranks()[rows]
        if rank not in ranks:
            raise InputError(
                f"row {spell(id)} has {len(ranks)} counterfactual(s), and none of rank {rank}; give a rank up to "
                f"{ranks.max()}, or explain with a larger n_counterfactuals."
            )
        return int(rows[ranks == rank][0])


def plain_column(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column in a form that files hold: periods, intervals and values of several types as texts."""
    dtype = column.dtype
    levels = dtype.categories if isinstance(dtype, pd.CategoricalDtype) else column.dropna()
    if infer_dtype(levels, skipna=True) not in AS_TEXT:
        return column
    cells = column.astype(object)
    if isinstance(dtype, pd.CategoricalDtype):  # as objects, intervals of whole numbers beside NaN become floats
        objects = np.array([*dtype.categories, None], dtype=object)
        cells = pd.Series(objects[column.cat.codes.to_numpy()], index=column.index, name=column.name, dtype=object)
    return cells.map(str, na_action="ignore")
