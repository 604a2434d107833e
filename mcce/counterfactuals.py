"""The result of an explanation: what was found, for whom, how far away, and how to read it.

A `Counterfactuals` holds plain tables. Its index (id, rank) names the explained row and the place of the
counterfactual among those found for it, 1 the best. A cell counts as changed unless it equals the factual's
cell exactly or both are missing, as in the measure L0.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.exceptions import InputError
from mcce.report.changes import (
    carrying_table,
    changed_cells,
    count_changes,
    count_figures,
    floor_of,
    headline,
    in_words,
    measure_figures,
    printed_rows,
    reasons_in_lines,
    reasons_in_words,
    side_by_side,
    spread_figures,
    why_unexplained,
)
from mcce.report.groups import Groups, compare_groups
from mcce.report.html import Shown, html_table
from mcce.report.plots import change_plot, changes_plot
from mcce.taking import Taking
from mcce.written import Written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FACTUALS_SHOWN, RANKS_SHOWN, ROWS_PRINTED = 10, 5, 6


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Counterfactuals(Written, Taking):
    """Counterfactuals for a table of factuals, as `MCCE.explain` returns them.

    Parameters
    ----------
    frame : DataFrame
        The counterfactual rows, indexed by (id, rank), with the columns and dtypes of the training table.
    measures : DataFrame
        Indexed alike: `prediction`, `L0`, `gower`, `gower_sum`, and those that `explain` was asked to order by. Sparse
        counterfactuals have `log_density` and `plausibility`, the share of real rows that look no more like a real
        row; `refits` and `noise` are shares of what they were asked to stand.
    factuals : DataFrame
        Every row that was to be explained; its index is the id.
    unexplained : DataFrame
        Indexed by id: `reason` and `prediction` of the factuals without a counterfactual; if they were looked into,
        how many rows were `drawn`, how many are `dead` and by what, `plausible` and `asked`, the prediction of the
        `nearest` one, and what `would_help`.
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
    draws : Series or None
        How many rows were drawn for each factual; 0 for those that have the wanted decision already.
    standard_errors : mapping
        Measure to the Monte Carlo standard error of its mean, if it was asked for; see `summary`.
    timings : mapping
        Seconds for fit, generate and select.
    settings : mapping
        What was asked for: n_samples, n_counterfactuals, random_state, ...
    copies : int or None
        How many rows of `frame` equal a training row in every feature. None if the training rows were not at hand:
        the explainer was saved before it ever explained, or the table given to `fit` was changed since.
    pairwise : DataFrame or None
        What `diversity` returns.
    constraints : DataFrame or None
        What each constraint does: `breaks`, the share of draws without constraints that break it; of the rows drawn
        inside them, how many came to it (`tried`) and how many could go on (`passed`).
    nearest : DataFrame or None
        For factuals without a counterfactual that were looked into, the drawn row that came nearest to the decision;
        `unexplained` has its prediction.
    allowed : DataFrame or None
        By id, the lowest and highest value that was allowed for each number that a constraint limits, rules left aside.
    ask : function or None
        Asks the model about rows, for `reasons`. A result that was saved is without it.
    redraw : function or None
        Draws again for some factuals, for `summary`. A result that was saved is without it.
    names : Names
        Labels, units and formats that `MCCE` was given; words, pages and pictures use them, tables to compute with do
        not.
    rules : mapping
        By id, the constraints that its counterfactuals keep, in words.
    frames : FrameKind or None
        In what kind of frame `to_frame`, `changes` and `table` hand tables back; None for pandas.

    Notes
    -----
    `found[id]` is the result of one factual alone, `for id in found` goes through the explained ones, and ``id in
    found`` says whether a factual is explained; `len(found)` counts counterfactuals. The tables above are pandas
    frames, whose index names their rows, whatever frame was explained; `table` returns them as that kind.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> found = explainer.explain(X.iloc[[0, 5, 7]], sparse=True)
    >>> list(found), len(found), found.unexplained.index.tolist()
    ([0, 5, 7], 3, [])
    >>> print(found.sentence(0))
    With savings 36,500 instead of 12,000, the decision would have been the wanted one (probability of class True at
    least 0.5: 1 instead of 0).
    >>> found.changes()
       id  rank  feature   from     to
    0   0     1  savings  12000  36500
    1   5     1   salary  68600  87800
    2   7     1  savings      0  40400
    >>> found.changed_features()[["times", "up", "down"]]
             times        up  down
    feature
    savings      2  0.666667   0.0
    salary       1  0.333333   0.0
    age          0  0.000000   0.0
    >>> found.reasons(0)[["from", "to", "enough", "needed"]]
              from     to  enough  needed
    feature
    savings  12000  36500    True    True
    >>> int(found.below_floor().sum()), found.diversity().shape
    (0, (3, 3))
    >>> found.summary().loc["explained", "value"]
    3
    >>> found.to_frame().columns.tolist() == found.table("to_frame").columns.tolist()
    True
    >>> axes = found.plot(0), found.plot_changes()
    >>> found.html_table(n_factuals=3).count("<table")
    1
    >>> many = explainer.explain(X.head(100), n_samples=100)
    >>> list(many.by("age", bins=2).overall.index)
    ['gower', 'L0', 'explained']
    """

    def changes(self, *, words: bool = False) -> pd.DataFrame:
        """Return every changed cell: id, rank, feature, from, to, in the order of `frame`.

        Parameters
        ----------
        words : bool
            Whether features have their labels, and values their units and formats, instead of being those of the data.
        """
        before, changed = self._compare(np.arange(len(self)))
        table = changed_cells(before, self.frame, changed)
        return self._handed(in_words(table, table["feature"], self.names) if words else table)

    def summary(self) -> pd.DataFrame:
        """Return the figures of the whole result in one column; the measures are those of rank 1.

        `sd` is the spread over the factuals. `se`, if `explain` was asked for `standard_errors`, is the Monte Carlo
        standard error of the mean: its spread over redraws for the same factuals, fitted generator and model. It knows
        that factuals that share a pool share its luck. It says nothing about other factuals or training rows.

        `same changed features if drawn again` says how stable the answers are: the share of factuals for which another,
        independent drawing of as many rows changes the same features. It is found when `summary` is first called, by
        drawing again for at most a hundred factuals, or from all of them with `standard_errors`; a result that was
        saved has no way to do so, and is without it. More draws (`n_samples`) make answers more stable;
        `mcce.diagnostics.stability` says more.
        """
        n_explained = len(np.unique(self._row_of_factual()))
        figures = count_figures(len(self.factuals), n_explained, self.unexplained)
        figures |= measure_figures(self.measures[self._is_best()], self.standard_errors)
        if self.settings.get("n_samples") == "auto" and self.draws is not None:
            figures["mean draws"] = self.draws[self.draws > 0].mean()
        if self.redraw is not None and (drawn := self.redraw()).n_factuals:
            figures["same changed features if drawn again"] = drawn.share
            figures["factuals drawn again"] = drawn.n_factuals
        figures |= spread_figures(self.pairwise)
        if self.copies is not None:
            figures["copies of training rows"] = self.copies
        if floor_of(self.settings) is not None:
            figures["rows below the floor of plausibility"] = int(self.below_floor().sum())
        figures |= {f"seconds {step}": seconds for step, seconds in self.timings.items()}
        return pd.DataFrame({"value": pd.Series(figures, dtype=object)})

    def changed_features(self) -> pd.DataFrame:
        """Return how often the counterfactuals of rank 1 change each feature, the most changed first.

        `times` and `share` count the changes; `up`, `down` and `other` are the shares of those to a higher number, date
        or ordered level, to a lower one, and to another level, `missing` of those from or to a missing value; `note` is
        a typical one: the median step of a number or date, the most frequent new level of the others.
        """
        best = np.flatnonzero(self._is_best())
        before, changed = self._compare(best)
        return count_changes(before, self.frame.iloc[best], changed, self.fixed, self.names)

    def by(
        self, groups: Hashable | pd.Series[Any], *, bins: int | None = None, level: float = 0.95, random_state: int = 0
    ) -> Groups:
        """Compare groups of factuals: is recourse dearer for one than for another? See `mcce.report.groups`.

        Parameters
        ----------
        groups : column name or Series
            A column of `factuals`; or a Series of anything else, with the ids as its index.
        bins : int, optional
            Into how many quantiles to cut numbers, dates or ordered levels.
        level : float
            How often the intervals should cover.
        random_state : int
            Seed of the bootstrap.
        """
        found = (self.factuals, self.measures[self._is_best()], self.unexplained)
        return compare_groups(*found, groups, bins=bins, level=level, random_state=random_state, names=self.names)

    def reasons(self, id: Hashable, rank: int = 1, *, words: bool = False) -> pd.DataFrame:
        """Ask the model which changes of one counterfactual carry the decision.

        Parameters
        ----------
        id : hashable
            A label of the index of `factuals`.
        rank : int
            Which of its counterfactuals, 1 the best.
        words : bool
            Whether features have their labels, and values and predictions their units and formats.

        Returns
        -------
        DataFrame, a row for each change: `from`, `to`; `alone`, the prediction with this change only, and `enough`,
        whether that has the wanted decision; `without`, the prediction with all changes but this one, and `needed`,
        whether the decision is lost then.
        """
        _, row = self._find(id, rank)
        if row is None:
            raise InputError(why_unexplained(self.unexplained, id) + " Ask for another id.")
        if self.ask is None:
            raise InputError("this result was saved, or built without the model; explain again to ask for reasons.")
        before, changed = self._compare(np.array([row]))
        table = carrying_table(before, self.frame.iloc[[row]].reset_index(drop=True), changed[0], self.ask)
        return reasons_in_words(table, self.names) if words else table

    def to_frame(self) -> pd.DataFrame:
        """Return features and measures side by side, id and rank as columns.

        A measure, id or rank whose name is also a feature's gets a trailing underscore.
        """
        return self._handed(side_by_side(self.frame, self.measures))

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
            raise InputError(why_unexplained(self.unexplained, id) + " Plot another id.")
        return change_plot(
            self.factuals[self.frame.columns].iloc[[factual]].astype(object).iloc[0],
            self.frame.iloc[[row]].astype(object).iloc[0],
            kinds=self.kinds,
            ranges=self.ranges,
            allowed=self._allowed_of(factual),
            fixed=self.fixed,
            predictions=(self.factual_predictions.iloc[factual], self.measures["prediction"].iloc[row]),
            decision=self.decision,
            name=id,
            names=self.names,
            ax=ax,
        )

    def plot_changes(self, ax: Axes | None = None) -> Axes:
        """Draw how often each feature changes, and in which direction, over the best of every factual.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default a new figure.
        """
        n_best = int(self._is_best().sum())
        return changes_plot(self.changed_features(), n_best, fixed=self.fixed, names=self.names, ax=ax)

    def __repr__(self) -> str:
        shown = self.measures.iloc[:ROWS_PRINTED]
        lines = [self._headline(), "", *printed_rows(shown, [*map(self._changes_of, range(len(shown)))], self.names)]
        if len(self) > len(shown):
            lines.append(f"... and {len(self) - len(shown)} more rows")
        return "\n".join(lines + self._reasons())

    def _repr_html_(self) -> str:
        return self.html_table(FACTUALS_SHOWN)

    def html_table(self, n_factuals: int) -> str:
        """Return the table of the first explained factuals as HTML, changed cells marked."""
        factual_of_row = self._row_of_factual()
        explained = list(dict.fromkeys(factual_of_row.tolist()))
        chosen = [np.flatnonzero(factual_of_row == f)[:RANKS_SHOWN] for f in explained[:n_factuals]]
        rows = np.concatenate([np.array([], dtype=np.intp), *chosen])
        before, changed = self._compare(rows)
        return html_table(
            Shown(
                before=before,
                after=self.frame.iloc[rows],
                changed=changed,
                measures=self.measures.iloc[rows],
                factual_of_row=factual_of_row[rows],
                factual_predictions=self.factual_predictions.iloc[factual_of_row[rows]],
                kinds=self.kinds,
                fixed=self.fixed,
                names=self.names,
                headline=self._headline().splitlines(),
                reasons=self._reasons(),
                n_more_rows=len(self) - len(rows),
                n_more_factuals=max(len(explained) - n_factuals, 0),
            )
        )

    def _headline(self) -> str:
        explained = len(np.unique(self._row_of_factual()))
        floor = floor_of(self.settings)
        return headline(explained, len(self.factuals), self.decision, self.measures, self._is_best(), floor)

    def _reasons(self) -> list[str]:
        return reasons_in_lines(self.unexplained)
