"""The result of an explanation: counterfactuals, their measures, and methods to present them.

A `Counterfactuals` holds plain tables and, in `run`, the settings and timings of the call. The index (id, rank) has the
id of the explained row and the rank of the counterfactual, 1 for the best. A cell counts as changed unless it equals
the factual's cell exactly or both are missing, as in the measure L0. Columns that are computed from others (`computed`)
do not count.

`mcce.report` has the functions for texts, letters, pages and plots, `mcce.storage` those for files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from mcce.base.checks import check, check_count, check_flag, check_share, is_number
from mcce.base.files import atomic_write
from mcce.exceptions import InputError, MCCEError, did_you_mean, spell
from mcce.generators.graph import Graph
from mcce.plausibility.stop_reasons import Usual
from mcce.records.canonical import sha256
from mcce.records.folder import append_records
from mcce.records.record import Origin, make_bodies, make_records
from mcce.report.changes import Predict, contributions_in_words, count_changes, in_words, predict_changes, side_by_side
from mcce.report.groups import Groups, check_confidence, compare_groups
from mcce.report.html import result_page, result_table
from mcce.report.names import Names
from mcce.report.plots.change import ShownChange, draw_change, draw_plans
from mcce.report.principal import reasons_table, repaired_by
from mcce.report.reasons import ALREADY, UNREADABLE
from mcce.report.result_letters import as_paragraphs
from mcce.report.rows import (
    Result,
    Run,
    best_rows,
    cases_of_100,
    compare_rows,
    find_row,
    incidental_cells,
    owners,
    usual_consequences,
)
from mcce.report.rule_set import RuleSet
from mcce.report.suspicious import Answered, find_suspicious
from mcce.report.words import (
    answers,
    change_table,
    count_figures,
    measure_figures,
    printed_result,
    sentence,
    sentences,
    spread_figures,
    unexplained_sentence,
)
from mcce.samplers import ConditionalSampler
from mcce.samplers.registry import Recipe
from mcce.storage import load_fields, save_fields
from mcce.storage.fields import check_number, check_type, require
from mcce.storage.state import Fields, to_state
from mcce.table import Data, FrameKind
from mcce.table.checks import find_labels
from mcce.table.frames import index_as_columns, like_input
from mcce.table.spreadsheet import escape_formulas
from mcce.wording import Either, PythonOnly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Agreement", "Counterfactuals", "Questions", "Run"]

FACTUALS_SHOWN = 10
TABLES = ("frame", "measures", "factuals", "unexplained", "factual_predictions", "draws", "nearest", "allowed")
COMPUTED = ("changes", "changed_features", "summary", "diversity", "suspicious", "to_frame")
WRITTEN: dict[str, Callable[[Counterfactuals], Any]] = {"sentences": sentences, "answers": answers}

_OF_ONE = ("predict", "usual", "alike", "origin", "reasons")  # questions about a single factual
_COLUMNS = {
    "measures": ("prediction", "L0", "gower"),
    "unexplained": ("reason", "prediction"),
    "pairwise": ("rows", "gower", "features"),
    "constraints": ("breaks", "tried", "passed"),
    "consequences": ("id", "rank", "feature", "low", "high", "share"),
}
_MAPPINGS = ("kinds", "ranges", "standard_errors", "timings", "settings", "rules")
_TYPES: dict[str, type] = {  # of the parts in files; texts, tuples and names are never None
    **dict.fromkeys(("frame", "measures", "factuals", "unexplained", "pairwise", "comes_along"), pd.DataFrame),
    **dict.fromkeys(("constraints", "nearest", "allowed", "consequences"), pd.DataFrame),
    **dict.fromkeys(("factual_predictions", "draws"), pd.Series),
    **dict.fromkeys(_MAPPINGS, dict),
    **dict.fromkeys(("fixed", "computed", "derived"), tuple),
    **{"decision": str, "copies": int, "names": Names, "frames": FrameKind, "usual": Usual},
}
_PRIVATE = {  # names in files
    "standard_errors": "_standard_errors",
    "pairwise": "_pairwise",
    "comes_along": "_along",
    "rules": "_rules",
    "frames": "_frame_kind",
    "usual": "_usual",
}


@dataclass(frozen=True)
class Agreement:
    """The number of factuals with a second drawing, and the share that changes the same features in both."""

    n_factuals: int
    share: float


@dataclass(frozen=True, kw_only=True)
class Questions:
    """Functions that query the model and the generator later; they are not stored in files.

    Attributes
    ----------
    predict : return scores and validity of rows between a factual and its counterfactual; for
        `Counterfactuals.contributions`
    agreement : return the share of factuals that change the same features if drawn again; for
        `Counterfactuals.summary`
    standard_errors : return the Monte Carlo standard error of the mean of each measure; for
        `Counterfactuals.standard_errors`
    known_errors : return the same if already computed, else an empty mapping; for `Counterfactuals.save`
    redrawn : return the result of another drawing, given its number; for `Counterfactuals.redrawn`
    why : for the factuals at given positions, return statistics of their candidates, what would help, and the drawn
        rows nearest to the decision; for `Counterfactuals.why_unexplained`
    prove : for the factual at a position and a time limit in seconds, return a statement whether a valid row exists,
        and that row if one was found; for `Counterfactuals.why_unexplained` and `Counterfactuals.with_proofs`
    with_candidates : return the result with further candidates, by id; for `Counterfactuals.with_proofs`
    usual : return statistics of the training rows; for `Counterfactuals.suspicious`
    alike : return rows drawn with the fixed values of a factual, given as a table of one row; for
        `Counterfactuals.plot`
    origin : return a description of the call; for `Counterfactuals.record`
    reasons : for a factual, given as a table of one row, and a number of draws, return share, Shapley value and repair
        of each feature; for `Counterfactuals.principal_reasons`
    rules : find rules for many factuals; for `Counterfactuals.rules`
    apply_rules : apply the rules that this result comes from to other rows; for `RuleSet.apply`
    """

    predict: Predict | None = None
    agreement: Callable[[], Agreement] | None = None
    standard_errors: Callable[[], Mapping[str, float]] | None = None
    known_errors: Callable[[], Mapping[str, float]] | None = None
    redrawn: Callable[[int], Counterfactuals] | None = None
    why: Callable[[NDArray[Any]], tuple[pd.DataFrame, pd.DataFrame]] | None = None
    prove: Callable[[int, float], tuple[str, pd.DataFrame]] | None = None
    with_candidates: Callable[[pd.DataFrame], Counterfactuals] | None = None
    usual: Callable[[], Usual | None] | None = None
    alike: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    origin: Callable[[], Origin] | None = None
    reasons: Callable[[pd.DataFrame, int], pd.DataFrame] | None = None
    rules: Callable[..., RuleSet] | None = None
    apply_rules: Callable[[Data], RuleSet] | None = None


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Counterfactuals(Result):
    """Counterfactuals for a table of factuals, returned by `MCCE.explain`.

    Attributes
    ----------
    frame : DataFrame
        The counterfactual rows, indexed by (id, rank), with the columns and dtypes of the training table.
    measures : DataFrame
        With the same index: `prediction`, `L0`, `gower`, `gower_sum`, and the measures given to `explain`. Sparse
        counterfactuals have `log_density` and `plausibility`, the share of real rows that are at least as unusual;
        `refits` and `noise` are the shares of refitted models and of perturbed copies that give the wanted decision.
    factuals : DataFrame
        All rows to explain, indexed by id.
    factual_predictions : Series
        The model's prediction for each factual.
    unexplained : DataFrame
        By id: `reason` and `prediction` of the factuals without a counterfactual, and the columns that
        `with_why_unexplained` and `with_proofs` add.
    nearest : DataFrame or None
        The drawn row nearest to the decision, for the factuals that `with_why_unexplained` examined; `unexplained` has
        its prediction.
    constraints : DataFrame or None
        By constraint: `breaks`, the share of unconstrained draws that violate it; of the rows drawn within all
        constraints, the number that reached it (`tried`) and the number that satisfied it (`passed`).
    allowed : DataFrame or None
        By id, the lowest and highest allowed value of each number with limits; rules are not taken into account.
    consequences : DataFrame or None
        Of recourse (`MCCE.recourse`): the usual consequences of the actions by `id`, `rank` and `feature`: `low` and
        `high` of a number, the most frequent level of others, and its `share`.
    draws : Series or None
        The number of rows drawn for each factual; 0 for factuals that already have the wanted decision.
    copies : int or None
        The number of rows of `frame` that equal a training row in every feature. None if the training rows are not
        available: the explainer was saved before its first call, or the table given to `fit` was modified.
    decision : str
        The wanted decision in words.
    fixed : tuple of str
        The features that were not allowed to change.
    computed : tuple of str
        The features that are computed from others: derived columns, columns determined by a relation, and copies.
        They are not counted as changes.
    derived : tuple of str
        The features that a formula computes from others. Sentences and letters state their new values ("As a result,
        dti falls to 0.45") and do not list them among the person's own facts.
    kinds : mapping
        Feature to "numeric", "categorical" or "ordered".
    ranges : mapping
        Numeric feature to its lowest and highest training value; dates as `Timestamp`.
    names : Names
        Labels, units and formats given to `MCCE`; used in texts, pages and plots, not in tables.
    run : Run
        The settings and timings, as in ``found.run.settings["n_samples"]`` and ``found.run.seconds``.

    Notes
    -----
    ============================== ============================================================================
    to compute with                `changes`, `changed_features`, `summary`, `diversity`, `below_floor`, `suspicious`,
                                   `by`, `to_frame`; `table` returns any of them as the user's kind of frame
    querying the model again       `contributions`, `principal_reasons`, `why_unexplained`, `standard_errors`, `rules`;
                                   not for a saved result
    to read                        `sentence`, `to_html`, printing it; `mcce.report.sentences`, `mcce.report.answers`,
                                   `mcce.report.letter` and `mcce.report.letters`
    to look at                     `plot`, `plot_plans`; `mcce.plots.changes_plot`
    files                          `to_csv`, `save` and `load`
    ============================== ============================================================================

    `found[id]` is the result of a single factual, `for id in found` iterates over the explained factuals, ``id in
    found`` tests whether a factual is explained, and `len(found)` counts counterfactuals. The tables above are always
    pandas frames.

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
    With salary 88,100 instead of 68,000, the result would have been as wanted: probability of class True at least 0.5
    (0.897 instead of 0).
    >>> found.changes()
       id  rank feature   from     to    role
    0   0     1  salary  68000  88100  needed
    1   5     1  salary  68600  87800  needed
    2   7     1  salary  54900  86600  needed
    >>> found.changed_features()[["times", "up", "down"]]
             times   up  down
    feature
    salary       3  1.0   0.0
    age          0  0.0   0.0
    savings      0  0.0   0.0
    >>> found.contributions(0)[["from", "to", "enough", "needed"]]
              from     to  enough  needed
    feature
    salary   68000  88100    True    True
    >>> bool(found.incidental.to_numpy().any()), found.constraint_texts
    (False, {})
    >>> int(found.below_floor().sum()), found.diversity().shape
    (0, (3, 3))
    >>> found.summary().loc["explained", "value"]
    3
    >>> found.to_frame().columns.tolist() == found.table("to_frame").columns.tolist()
    True
    >>> axes = found.plot(0), mcce.plots.changes_plot(found)
    >>> found.run.settings["n_samples"], list(found.run.timings)
    (1000, ['fit', 'generate', 'select'])
    >>> many = explainer.explain(X.head(100), n_samples=100)
    >>> list(many.by("age", bins=2).overall.index)
    ['gower', 'L0', 'explained']
    """

    _questions: Questions = field(default_factory=Questions)

    def __getattr__(self, name: str) -> Any:
        known = [known for known in (*self.__dataclass_fields__, *dir(type(self))) if not known.startswith("_")]
        raise AttributeError(f"a Counterfactuals has no {name!r}; {did_you_mean(name, known)}")

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the ids of the explained factuals."""
        return iter(self.frame.index.get_level_values("id").unique())

    def __contains__(self, id: object) -> bool:
        """Return whether a factual is explained."""
        return bool(np.any([id == label for label in self]))

    def __getitem__(self, id: Hashable) -> Counterfactuals:
        """Return the result of a single factual, by its id."""
        factual, _ = find_row(self, id, 1)
        rows = owners(self) == factual
        label = self.factuals.index[[factual]]
        by_id = {
            name: table[table.index.isin(label)]
            for name in ("unexplained", "draws", "_pairwise", "nearest", "allowed")
            if (table := getattr(self, name)) is not None
        }
        return replace(
            self,
            frame=self.frame[rows],
            measures=self.measures[rows],
            _along=None if self._along is None else self._along[rows],
            consequences=self.consequences
            if self.consequences is None
            else self.consequences[self.consequences["id"].isin(label)],
            factuals=self.factuals.iloc[[factual]],
            factual_predictions=self.factual_predictions.iloc[[factual]],
            copies=None,  # known of all rows together, as the standard errors of the means
            _standard_errors={},
            _questions=replace(Questions(), **{name: getattr(self._questions, name) for name in _OF_ONE}),
            **by_id,
        )

    def changes(self, *, words: bool = False) -> pd.DataFrame:
        """Return every changed cell: id, rank, feature, from, to, in the order of `frame`.

        Changes of sparse counterfactuals have a `role`: "needed" for the decision, or "comes along" if the needed
        changes would not be plausible without it. Changes of recourse are an "action" or a "consequence".

        Parameters
        ----------
        words : bool
            Whether to use labels for features, and units and formats for values.
        """
        check_flag(words, "words")
        table = change_table(self)
        return self._as_explained(in_words(table, table["feature"], self.names) if words else table)

    def changed_features(self) -> pd.DataFrame:
        """Return how often the counterfactuals of rank 1 change each feature, the most changed first.

        `times` and `share` count the changes. `up`, `down` and `other` are the shares of changes to a higher number,
        date or ordered level, to a lower one, and to another level; `missing` is the share of changes from or to a
        missing value. `note` is a typical change: the median step of a number or date, the most frequent new level of
        other features.
        """
        best = np.flatnonzero(best_rows(self))
        before, changed = compare_rows(self, best)
        return count_changes(before, self.frame.iloc[best], changed, self.fixed, self.names)

    def summary(self, *, standard_errors: bool = False) -> pd.DataFrame:
        """Return a summary of the result in one column; measures are those of rank 1.

        `sd` is the standard deviation over the factuals. Reasons in `unexplained` are grouped without the details of
        single factuals.

        `same changed features if drawn again` is the share of factuals for which an independent drawing of the same
        size changes the same features, computed from at most a hundred factuals by the first call. It is not available
        for a loaded result. More draws (`n_samples`) make results more stable.

        Parameters
        ----------
        standard_errors : bool
            Whether to add `se`, the Monte Carlo standard error of each mean. This takes as long as `explain`; see
            `standard_errors`.
        """
        check_flag(standard_errors, "standard_errors")
        errors: Mapping[str, float] = dict(self.standard_errors()) if standard_errors else self._standard_errors
        n_explained = len(np.unique(owners(self)))
        figures = count_figures(len(self.factuals), n_explained, self.unexplained)
        figures |= measure_figures(self.measures[best_rows(self)], errors)
        if self.run.settings.get("n_samples") == "auto" and self.draws is not None:
            figures["mean draws"] = self.draws[self.draws > 0].mean()
        agreement = self._questions.agreement
        if agreement is not None and (drawn := agreement()).n_factuals:
            figures["same changed features if drawn again"] = drawn.share
            figures["factuals drawn again"] = drawn.n_factuals
        figures |= spread_figures(self._pairwise)
        if "graph" in self.run.settings:
            figures["edges of the assumed causal graph"] = len(Graph.from_text(self.run.settings["graph"]).edges)
        if self.copies is not None:
            figures["copies of training rows"] = self.copies
        if self.run.floor is not None:
            figures["rows below the floor of plausibility"] = int(self.below_floor().sum())
        figures |= {f"seconds {step}": seconds for step, seconds in self.run.timings.items()}
        return pd.DataFrame({"value": pd.Series(figures, dtype=object)})

    def diversity(self) -> pd.DataFrame:
        """Return the mean pairwise difference between the counterfactuals of each explained factual.

        `rows` is their number, `gower` the mean Gower distance of two of them, and `features` the mean share of
        features in which two of them differ. Both means are NaN for a single counterfactual.
        """
        if self._pairwise is None:
            raise InputError("this result was not made by `MCCE.explain` and has no diversity table.")
        return self._pairwise.copy()

    def suspicious(self, level: str = "stop") -> pd.DataFrame:
        """Return the counterfactuals that a person should review before they are sent, with the reasons.

        The severity "stop" is assigned to counterfactuals below the plausibility floor, to changes of past events and
        other facts, and to advice that contradicts the data, such as a salary beside "unemployed", savings that rise by
        more than the loan, or an income that becomes 2.5 times as high (`mcce.plausibility.stop_reasons`); no letters
        are written for these. The severity "note" is assigned to merely unusual ones (`mcce.report.suspicious`). A
        counterfactual that is not listed is not necessarily good advice.

        The reference values of the training rows are computed on first use. They are stored with sparse results only.

        Parameters
        ----------
        level : {"stop", "all"}
            "stop" for the counterfactuals of that severity, and one line per unchangeable feature; "all" for every
            counterfactual with a reason.

        Returns
        -------
        DataFrame
            By (id, rank): `severity`; `reasons`, their names; `words`, the reasons with the values.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> found = explainer.explain(X.head(100), sparse=True, constraints=["salary == was(salary)"])
        >>> found.suspicious().head(2)
                severity               reasons                           words
        id rank
        72 1        stop  large rise from zero  savings rises from 0 to 66,200
        """
        usual = self._known_usual()
        if usual is None:
            raise InputError(
                "this result has no reference values of the training rows: it was saved and is not sparse, or its "
                "explainer was saved without training values. Refit the explainer and explain again."
            )
        before, changed = compare_rows(self)
        is_scored = self.run.floor is not None and "plausibility" in self.measures
        return find_suspicious(
            Answered(
                before=before,
                after=self.frame,
                changed=changed,
                along=None if self._along is None else self._along.to_numpy(dtype=bool),
                plausibility=self.measures["plausibility"].to_numpy(dtype=np.float64) if is_scored else None,
                floor=self.run.floor,
                names=self.names,
            ),
            usual,
            level,
        )

    def _known_usual(self) -> Usual | None:
        """Return the reference values of the training rows, computed on first use."""
        if self._usual is None and self._questions.usual is not None:
            return self._questions.usual()
        return self._usual

    def contributions(self, id: Hashable, rank: int = 1, *, words: bool = False) -> pd.DataFrame:
        """Return how much each change of one counterfactual contributes to the decision, by querying the model.

        Parameters
        ----------
        id : hashable
            A label of the index of `factuals`.
        rank : int
            Rank of the counterfactual, 1 for the best.
        words : bool
            Whether to use labels for features, and units and formats for values and predictions.

        Returns
        -------
        DataFrame, one row per change: `from`, `to`; `alone`, the prediction with this change only, and `enough`,
        whether it has the wanted decision; `without`, the prediction with all other changes, and `needed`, whether it
        lacks the wanted decision.
        """
        check_flag(words, "words")
        _, row = find_row(self, id, rank)
        if row is None:
            raise InputError(unexplained_sentence(self.unexplained, id) + " Choose another id.")
        predict = self._questions.predict
        if predict is None:
            raise _not_stored("query the model")
        before, changed = compare_rows(self, np.array([row]))
        table = predict_changes(before, self.frame.iloc[[row]].reset_index(drop=True), changed[0], predict)
        return contributions_in_words(table, self.names) if words else table

    def principal_reasons(self, id: Hashable, n: int = 4, *, every: bool = False, n_draws: int = 1000) -> pd.DataFrame:
        """Return the features that contributed most to a refusal and that a plausible change would repair, in order.

        `contributions` describes the changes of a counterfactual; this method describes why the factual was refused.

        Features are ordered by their Shapley value: how much the person's value lowers the probability of the wanted
        decision. A feature is repaired "alone" if a plausible change of it reaches the decision, "together" if it does
        so with a change of another feature. See `mcce.explain.principal` for the definitions.

        Parameters
        ----------
        id : hashable
            A label of the index of `factuals`, of a factual without the wanted decision.
        n : int
            Maximum number of features.
        every : bool
            Whether to return all features instead. `repair` is "none" if no plausible change that helps was found,
            "fixed" if the feature must not change, and "no effect" if the model does not seem to use the feature.
        n_draws : int
            Number of draws per set of features; more draws give smaller standard errors.

        Returns
        -------
        DataFrame, one row per feature: `value`, that of the person; `shapley` and its Monte Carlo `standard_error`;
        `share`, the share of plausible values that reach the decision, and its `effective_draws`; `repair`; `code` and
        `text` from ``names["reasons"]``, by default an empty code, and the feature with its value.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
        >>> reasons = {"salary": {"code": "R1", "text": "Income is too low"}}
        >>> explainer = mcce.MCCE(
        ...     lambda rows: rows["salary"] > 60_000,
        ...     decision=True,
        ...     fixed=["age"],
        ...     names={"reasons": reasons},
        ...     random_state=1,
        ... )
        >>> found = explainer.fit(X).explain(X[X["salary"] < 50_000].head(1), sparse=True)
        >>> found.principal_reasons(next(iter(found)))[["repair", "code", "text"]]
                repair code               text
        feature
        salary   alone   R1  Income is too low
        """
        check_flag(every, "every")
        factual, row = find_row(self, id, 1)
        own = self.factuals[self.frame.columns].iloc[[factual]]
        n = check_count(n, "n")
        n_draws = check_count(n_draws, "n_draws", least=4)
        if row is None and ALREADY in unexplained_sentence(self.unexplained, id):
            raise InputError(f"factual {spell(id)} has the wanted decision; there are no reasons for a refusal.")
        if self._questions.reasons is None:
            raise _not_stored("compute the reasons of a refusal")
        table = self._questions.reasons(own, n_draws)
        answers = (owners(self) == factual) & ~self.below_floor().to_numpy()
        for rank in self.frame.index.get_level_values("rank")[answers]:
            table["repair"] = repaired_by(table["repair"], self.contributions(id, rank))
        return reasons_table(table, own, self.fixed, self.names, None if every else n)

    def why_unexplained(self, id: Hashable, *, prove: bool = False, time_limit: float = 60.0) -> pd.Series[Any]:
        """Return why a factual has no counterfactual, and what would have helped.

        Unless the factual already has the wanted decision, its candidates are drawn again and examined: how many were
        `drawn`, `rejected` and by which constraint, `plausible` and `queried`, the prediction of the candidate
        `nearest` to the decision and that row (`nearest_row`), and what `would_help`, determined by trial. A loaded
        result returns what `with_why_unexplained` stored. See `mcce.explain.followup`.

        Parameters
        ----------
        id : hashable
            A label of the index of `unexplained`.
        prove : bool
            Whether to determine if a valid row exists at all: `proof` states that none exists, that the nearest one is
            `proof_row`, or why neither is proven. The proof covers the constraints, the model and values within the
            training ranges, not plausibility. It supports linear models and trees (`mcce.explain.proof`).
        time_limit : float
            Time limit of the proof in seconds.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
        >>> poor = X[X["salary"] < 30_000].head(1)
        >>> found = explainer.explain(poor, n_samples=100, max_gower=0.01, constraints=[mcce.allow("savings", high=0)])
        >>> why = found.why_unexplained(poor.index[0])
        >>> why["would_help"]
        'without bounds on changes or distance'

        No draw was within the bound. For a tree, it can be proven that none exists:

        >>> from sklearn.tree import DecisionTreeClassifier
        >>> tree = DecisionTreeClassifier(max_depth=3, random_state=1).fit(X, X["salary"] > 40_000)
        >>> explainer = mcce.MCCE(tree, random_state=1).fit(X)
        >>> found = explainer.explain(poor, n_samples=100, constraints=[mcce.allow("salary", high=39_000)])
        >>> found.why_unexplained(poor.index[0], prove=True)["proof"].partition(":")[0]
        'none exists'
        """
        check_flag(prove, "prove")
        factual, row = find_row(self, id, 1)
        if row is not None:
            raise InputError(f"factual {spell(id)} has a counterfactual; see sentence({spell(id)}).")
        place = find_labels(self.unexplained.index, self.factuals.index[[factual]])[0]
        if place < 0:
            raise InputError(f"no reason was recorded for {spell(id)}; explain again.")
        known = {str(name): self.unexplained[name].iloc[place] for name in self.unexplained.columns}
        if known["reason"] == ALREADY:
            known = {name: known[name] for name in ("reason", "prediction")}
        elif self._questions.why is not None and pd.isna(known.get("would_help", np.nan)) and self._drawn_for(factual):
            details, nearest = self._questions.why(np.array([factual]))
            rows = nearest.astype(object)  # dates of different units cannot share a row otherwise
            known |= {**details.iloc[0], "nearest_row": rows.iloc[0] if len(rows) else None}
        if prove and _are_open([known["reason"]])[0]:
            says, found = self._prove(factual, time_limit)
            known |= {"proof": says, "proof_row": found.astype(object).iloc[0] if len(found) else None}
        return pd.Series(known, dtype=object, name=id)

    def with_proofs(self, time_limit: float = 60.0) -> Counterfactuals:
        """Return the result with a proof for each factual without a counterfactual.

        A row that was found (`why_unexplained` with ``prove=True``) is passed to the search as a candidate. If it is
        selected, the factual has a counterfactual. For all other factuals, `unexplained` has the column `proof`.

        Parameters
        ----------
        time_limit : float
            Time limit of the proof of one factual in seconds.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
        >>> tree = DecisionTreeClassifier(max_depth=3, random_state=1).fit(X, X["salary"] > 40_000)
        >>> explainer = mcce.MCCE(tree, random_state=1).fit(X)
        >>> found = explainer.explain(X[X["salary"] < 30_000].head(2), n_samples=3, max_changes=1)
        >>> len(found), len(found.with_proofs())
        (0, 2)
        """
        open_ids = self.unexplained.index[self.unexplained["reason"] != ALREADY]
        proofs = {
            place: self._prove(place, time_limit) for place in find_labels(self.factuals.index, open_ids).tolist()
        }
        rows = [found for _, found in proofs.values() if len(found)]
        result = self
        if rows:
            assert self._questions.with_candidates is not None
            result = self._questions.with_candidates(pd.concat(rows))
        texts = {self.factuals.index[place]: says for place, (says, _) in proofs.items()}
        column = [texts.get(case_id) for case_id in result.unexplained.index]
        proof = pd.Series(column, index=result.unexplained.index, dtype=object)
        return replace(result, unexplained=result.unexplained.assign(proof=proof)) if texts else result

    def _prove(self, place: int, time_limit: float) -> tuple[str, pd.DataFrame]:
        if self._questions.prove is None:
            raise _not_stored("prove it")
        check(is_number(time_limit) and time_limit > 0, time_limit, "time_limit", "it must be a number above 0.")
        return self._questions.prove(place, float(time_limit))

    def with_why_unexplained(self, n: int | None = None) -> Counterfactuals:
        """Return the result with `why_unexplained` of several factuals as columns of `unexplained`.

        The drawn rows nearest to the decision are in `nearest`. Pages, letters and files then hold both.

        Parameters
        ----------
        n : int, optional
            Number of factuals to examine, the first of `unexplained`; by default all.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
        >>> found = explainer.explain(X[X["salary"] < 30_000].head(1), n_samples=100, max_gower=0.01)
        >>> found = found.with_why_unexplained()
        >>> found.unexplained["would_help"].iloc[0]
        'without bounds on changes or distance'
        """
        if self._questions.why is None or self.draws is None:
            raise _not_stored("redraw")
        places = find_labels(self.factuals.index, self.unexplained.index)
        places = places[self.draws.to_numpy()[places] > 0][:n]
        if not places.size:
            return self
        details, nearest = self._questions.why(places)
        table = self.unexplained.copy()
        at = find_labels(table.index, details.index)
        for name in details.columns:
            column = np.full(len(table), None if details[name].dtype == object else np.nan, dtype=object)
            column[at] = details[name].to_numpy(dtype=object)
            table[name] = pd.Series(column, index=table.index, dtype=object).infer_objects()
        reasons = table["reason"].to_numpy(dtype=object, copy=True)
        for place, helps in zip(at, details["would_help"]):
            reasons[place] = f"{str(reasons[place]).removesuffix('; draw more')}; what would help: {helps}"
        return replace(self, unexplained=table.assign(reason=reasons), nearest=nearest)

    def redrawn(self, redraw: int) -> Counterfactuals:
        """Return the result of an independent drawing of the same number of candidates for the same factuals.

        Parameters
        ----------
        redraw : int
            Number of the drawing; 0 is the original one.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
        >>> found = explainer.explain(X.head(20), n_samples=100)
        >>> found.redrawn(0).frame.equals(found.frame), found.redrawn(1).frame.equals(found.frame)
        (True, False)
        """
        if self._questions.redrawn is None:
            raise _not_stored("redraw")
        return self._questions.redrawn(check_count(redraw, "redraw", least=0))

    def standard_errors(self) -> pd.Series[Any]:
        """Return the Monte Carlo standard error of the mean of each measure, over the best counterfactuals.

        The error is the standard deviation of the mean over redraws, for the same factuals, fitted generator and model;
        it accounts for factuals that share a pool of draws. It does not cover the seed of the fit, which other values
        of `random_state` show. The computation draws and selects a second time, which takes as long as `explain`.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
        >>> found = explainer.explain(X.head(20), n_samples=100)
        >>> errors = found.standard_errors()
        >>> list(errors.index), bool((errors > 0).all())
        (['L0', 'gower'], True)
        """
        errors = self._standard_errors
        if not errors:
            if self._questions.standard_errors is None:
                raise _not_stored("redraw")
            errors = self._questions.standard_errors()
        return pd.Series(dict(errors), name="standard_error", dtype=np.float64).rename_axis("measure")

    def by(
        self,
        groups: Hashable | pd.Series[Any],
        *,
        bins: int | None = None,
        confidence: float = 0.95,
        random_state: int = 0,
    ) -> Groups:
        """Compare the cost of recourse between groups of factuals; see `mcce.report.groups`.

        The permutation test of equal means is liberal in small groups whose values differ in shape from the rest: with
        20 and 60 factuals it rejected at level 0.05 in up to 9 per cent of simulations.

        Parameters
        ----------
        groups : column name or Series
            A column of `factuals`, or a Series indexed by id.
        bins : int, optional
            Number of quantile groups for numbers, dates or ordered levels.
        confidence : float
            Confidence level of the intervals.
        random_state : int
            Seed of the bootstrap.
        """
        found = (self.factuals, self.measures[best_rows(self)], self.unexplained)
        return compare_groups(
            *found, groups, bins=bins, confidence=confidence, random_state=random_state, names=self.names
        )

    def rules(
        self,
        k: int = 4,
        *,
        by: Sequence[Hashable] | None = None,
        max_changes: int = 4,
        slack: float = 0.02,
        confidence: float = 0.95,
        random_state: int = 0,
    ) -> RuleSet:
        """Find at most k rules "if <group> then change <features>" that reach the decision for most factuals.

        Every changed row satisfies the constraints and has a plausibility at or above the floor. Candidate changes come
        from the counterfactuals of this result, which must be sparse. See `mcce.explain.group_rules` for the algorithm.

        Parameters
        ----------
        k : int
            Maximum number of rules.
        by : list of column names or None
            Columns whose values define groups; None for the fixed ones, [] for rules without groups.
        max_changes : int
            Maximum number of features that a rule changes.
        slack : float
            Share of the coverage that may be given up for cheaper rules and for groups that fit them better.
        confidence : float
            Confidence level of the intervals.
        random_state : int
            Seed of the bootstrap; the rules do not depend on it.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(400).X[["age", "salary", "savings"]]
        >>> def score(rows):
        ...     return (rows["salary"] + rows["savings"]) / 200_000
        >>> explainer = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X)
        >>> rules = explainer.explain(X.head(100), sparse=True, n_samples=200).rules(k=1, by=[], max_changes=1)
        >>> rules.rules[0].group, len(rules.rules[0].change)
        ((), 1)
        """
        if self._questions.rules is None:
            raise InputError(
                "this result was loaded from a file or has one factual; explain several factuals to find rules."
            )
        if self.run.floor is None:
            raise InputError("rules need a plausibility floor; explain with sparse=True.")
        check_count(k, "k")
        check_count(max_changes, "max_changes")
        check_share(slack, "slack")
        check_confidence(confidence)
        check_count(random_state, "random_state", least=0)
        return self._questions.rules(k, by, max_changes, slack, confidence, random_state)

    def to_frame(self) -> pd.DataFrame:
        """Return features and measures side by side, with id and rank as columns.

        A measure, id or rank with the name of a feature gets a trailing underscore.
        """
        return self._as_explained(side_by_side(self.frame, self.measures))

    def table(self, name: str = "frame") -> Any:
        """Return a table of the result as a frame of the kind that was explained, with the index as columns.

        Parameters
        ----------
        name : str
            "frame", "measures", "factuals", "unexplained", "factual_predictions", "draws", "nearest", "allowed",
            "changes", "changed_features", "summary", "diversity", "sentences", "suspicious", "to_frame"
            or "answers".
        """
        if name not in (*TABLES, *COMPUTED, *WRITTEN):
            raise InputError(f"there is no table {name!r}; {did_you_mean(name, (*TABLES, *COMPUTED, *WRITTEN))}")
        if name in WRITTEN:
            table = WRITTEN[name](self)
        else:
            table = getattr(self, name) if name in TABLES else getattr(self, name)()
        if table is None:
            raise InputError(f"this result has no table {name!r}; it was not requested.")
        if not isinstance(table, (pd.DataFrame, pd.Series)):
            return table  # a method that hands over the user's kind itself
        plain = table.to_frame() if isinstance(table, pd.Series) else table.copy()
        unnamed = {"summary": "figure", "changed_features": "feature"}.get(name, "id")
        plain.index.names = [known or unnamed for known in plain.index.names]
        if plain.columns.nlevels > 1:
            plain.columns = pd.Index(["_".join(map(str, parts)) for parts in plain.columns])
        counted = name in ("changes", "to_frame", "answers")
        return self._as_explained(plain if counted else index_as_columns(plain))

    def sentence(self, id: Hashable, rank: int = 1) -> str:
        """Return one counterfactual as a sentence; for an unexplained factual, the reason.

        A second sentence warns of a counterfactual below the plausibility floor.

        Parameters
        ----------
        id : hashable
            A label of the index of `factuals`.
        rank : int
            Rank of the counterfactual, 1 for the best.
        """
        return sentence(self, id, rank)

    def __repr__(self) -> str:
        return printed_result(self)

    def _repr_html_(self) -> str:
        return result_table(self, FACTUALS_SHOWN)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str = "Counterfactuals",
        intro: str | Sequence[str] = (),
        examples: Any = None,
        diagnostics: Any = None,
    ) -> Path | str:
        """Write the result as a self-contained HTML page with sentences, plots, tables and settings.

        The page is for an analyst; `mcce.report.letter` writes to the person concerned.

        Parameters
        ----------
        path : str or path, optional
            File to write, replacing an existing one. Without it, the page is returned.
        title : str
        intro : str or sequence of str
            Introductory paragraphs.
        examples : Counterfactuals, optional
            Source of the sentences and plots; by default the first explained factuals of this result.
        diagnostics : Diagnostics, optional
            What `MCCE.diagnose` returned.

        Returns
        -------
        Path or str
            The file written, or the page.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> found = explainer.explain(X.head(1), sparse=True)
        >>> found.to_html().lower().startswith("<!doctype html>")
        True
        """
        page = result_page(self, title, as_paragraphs(intro), examples=examples, diagnostics=diagnostics)
        if path is None:
            return page
        with atomic_write(path) as beside:
            beside.write_text(page, encoding="utf-8")
        return Path(path)

    def plot(self, id: Hashable | None = None, rank: int = 1, ax: Axes | None = None) -> Axes:
        """Plot the changes of one counterfactual; by default the best one of the first explained factual.

        For recourse, arrows are actions and bars are their usual consequences.

        The background shows cases with the same fixed values and the wanted decision, drawn for the plot; for a loaded
        result it shows the training range.

        Parameters
        ----------
        id : hashable, optional
            A label of the index of `factuals`.
        rank : int
            Rank of the counterfactual, 1 for the best.
        ax : Axes, optional
            Axes to draw on; by default those of a new figure.
        """
        id = self._id_to_plot(id)
        return draw_change(self._change(id, rank), ax)

    def plot_plans(
        self, id: Hashable | None = None, *, max_plans: int = 5, figure: Figure | None = None
    ) -> NDArray[np.object_]:
        """Draw the counterfactuals of one factual in one figure, a panel for each; see `plot`.

        Parameters
        ----------
        id : hashable, optional
            A label of the index of `factuals`; by default the first explained factual.
        max_plans : int
            The number of counterfactuals to draw at most, best first.
        figure : Figure, optional
            Where to draw; its height is set to fit. By default a new figure.

        Returns
        -------
        array of Axes
            One for each counterfactual.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> found = explainer.explain(X.head(1), sparse=True, n_counterfactuals=2)
        >>> found.plot_plans(0).size
        2
        """
        id, most = self._id_to_plot(id), check_count(max_plans, "max_plans")
        factual, _ = find_row(self, id)
        n_plans = int((owners(self) == factual).sum())
        return draw_plans([self._change(id, rank + 1) for rank in range(min(max(n_plans, 1), most))], figure)

    def _id_to_plot(self, id: Hashable | None) -> Hashable:
        """Return an id as given, or that of the first explained factual."""
        if id is not None:
            return id
        if not len(self):
            raise InputError(
                "there is no counterfactual to plot; ",
                Either(PythonOnly("`unexplained`"), "the table of unexplained rows"),
                " holds the reasons.",
            )
        first: Hashable = self.factuals.index[owners(self)[0]]
        return first

    def _change(self, id: Hashable, rank: int) -> ShownChange:
        """Return one counterfactual with everything that its picture shows."""
        factual, row = find_row(self, id, rank)
        if row is None:
            raise InputError(unexplained_sentence(self.unexplained, id) + " Plot another id.")
        own = self.factuals[self.frame.columns].iloc[[factual]]
        shown = ~self.frame.columns.isin(self.computed)
        usual = None
        if self.consequences is not None:
            usual = {feature: (low, high) for feature, low, high in usual_consequences(self, row)}
        return ShownChange(
            factual=own.loc[:, shown].astype(object).iloc[0],
            counterfactual=self.frame.loc[:, shown].iloc[[row]].astype(object).iloc[0],
            kinds=self.kinds,
            ranges=self.ranges,
            allowed=self._allowed_of(factual),
            alike=None if self._questions.alike is None else self._questions.alike(own),
            fixed=self.fixed,
            along=tuple(self.frame.columns[incidental_cells(self)[row]]),
            consequences=usual,
            cases=None if usual is None else cases_of_100(self, row),
            predictions=(self.factual_predictions.iloc[factual], self.measures["prediction"].iloc[row]),
            decision=self.decision,
            name=id,
            names=self.names,
        )

    def record(
        self,
        id: Hashable,
        *,
        previous: str | None = None,
        reviewed_by: str | None = None,
        reviewed_at: str | None = None,
    ) -> dict[str, Any]:
        """Return the record of one decision: JSON values that can be verified later; see `mcce.records`.

        It holds the factual, the decision and score, every counterfactual with its measures, constraints, settings,
        seed and versions, fingerprints of model and explainer, and a hash of the training table. **It holds personal
        data** of the factual, but no training row. It is not available for a loaded result.

        Parameters
        ----------
        id : hashable
            A label of the index of `factuals`.
        previous : str, optional
            The hash of the previous record.
        reviewed_by, reviewed_at : str, optional
            The reviewer of the counterfactual, and the time of the review.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 1e5, fixed=["age"], random_state=1).fit(X)
        >>> record = explainer.explain(X.loc[[1]], sparse=True).record(1)
        >>> record["factual"], record["decision"]["score"]
        ({'age': 30, 'salary': 40600, 'savings': 0}, 0.406)
        >>> record["hash"] == mcce.records.hash_of(record)
        True
        """
        how: dict[str, Any] = {"reviewed_by": reviewed_by, "reviewed_at": reviewed_at}
        return next(make_records(make_bodies(self[id]), self._origin(), previous, **how))

    def write_records(
        self,
        folder: str | os.PathLike[str],
        *,
        reviewed_by: str | None = None,
        reviewed_at: str | None = None,
        files: Mapping[str, str | os.PathLike[str]] | None = None,
    ) -> list[Path]:
        """Append the records of all factuals to a folder, one file each, in a chain; return the new files.

        `mcce.records.verify` and ``mcce verify FOLDER`` check the folder.

        Parameters
        ----------
        folder : str or path
            A new folder, or one with records; its chain is continued.
        reviewed_by, reviewed_at : str, optional
            The reviewer of the counterfactuals, and the time of the review.
        files : dict, optional
            The files of the "model" and the "explainer"; the records contain their SHA-256.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 1e5, fixed=["age"], random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in explainer.explain(X.head(2)).write_records(folder)]
        ['000001-0.json', '000002-1.json']
        """
        hashes = {part: sha256(Path(path).read_bytes()) for part, path in (files or {}).items()}
        how: dict[str, Any] = {"reviewed_by": reviewed_by, "reviewed_at": reviewed_at, "files": hashes}
        origin = self._origin()
        return append_records(folder, lambda last: make_records(make_bodies(self), origin, last, **how))

    def _origin(self) -> Origin:
        if self._questions.origin is None:
            raise _not_stored("write records")
        return self._questions.origin()

    def to_csv(
        self, path: str | os.PathLike[str] | None = None, *, spreadsheet_safe: bool = True, **options: Any
    ) -> Path | str:
        """Write `to_frame()` as CSV, replacing an existing file; without a path, return it as text.

        A text, column name or id that a spreadsheet would execute as a formula is prefixed with an apostrophe, which
        `mcce explain` removes when it reads the file; ``spreadsheet_safe=False`` writes all texts unchanged.
        `options` are those of `pandas.DataFrame.to_csv`, for example ``sep=";"`` or ``decimal=","``.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> text = explainer.explain(X.head(2), sparse=True).to_csv(sep=";")
        >>> text.splitlines()[0]
        'id;rank;age;salary;savings;prediction;L0;gower;gower_sum;log_density;plausibility'
        """
        check_flag(spreadsheet_safe, "spreadsheet_safe")
        table = side_by_side(self.frame, self.measures)
        table = escape_formulas(table) if spreadsheet_safe else table
        options = {"index": False, **options}
        if path is None:
            return str(table.to_csv(**options))
        with atomic_write(path) as beside:
            table.to_csv(beside, **options)
        return Path(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to one file, without pickle; an existing file is replaced.

        **The file holds personal data**: every factual, and counterfactuals made of training values. It does not hold
        the model, so `contributions` is not available for a loaded result.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
        >>> found = explainer.explain(X.head(20), n_samples=100)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.save(f"{folder}/found.mcce")
        ...     again = mcce.Counterfactuals.load(f"{folder}/found.mcce")
        >>> again.frame.equals(found.frame), again.decision == found.decision
        (True, True)
        """
        self._check_tables()
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "run" and not f.name.startswith("_")}
        parts |= {name: getattr(self, private) for name, private in _PRIVATE.items()}
        parts |= {"timings": self.run.timings, "settings": self.run.settings}
        parts["usual"] = self._usual if self._along is None else self._known_usual()
        parts |= {name: dict(parts[name]) for name in _MAPPINGS}
        parts["settings"] = {name: _storable(value) for name, value in self.run.settings.items()}
        if not parts["standard_errors"] and self._questions.known_errors is not None:
            parts["standard_errors"] = dict(self._questions.known_errors())
        about = {"decision": self.decision, "rows": len(self)}
        save_fields(path, "Counterfactuals", parts, about, type(self)._read)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Counterfactuals:
        """Load a result from a file written by `save`; raise `InputError` if it is damaged, manipulated or newer.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> found = explainer.explain(X.head(2), sparse=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.save(Path(folder) / "found.mcce")
        ...     again = mcce.Counterfactuals.load(Path(folder) / "found.mcce")
        >>> again.frame.equals(found.frame)
        True
        """
        return load_fields(path, "Counterfactuals", cls._read)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the functions that query the model: the pickle holds the result, not the model."""
        usual = self._usual if self._along is None else self._known_usual()
        return {**vars(self), "_questions": Questions(), "_usual": usual}

    @classmethod
    def _read(cls, read: Fields) -> Counterfactuals:
        for name, kind in _TYPES.items():
            required = name in ("decision", "fixed") or (kind in (tuple, Names) and name in read)
            if required or read.get(name) is not None:
                check_type(read[name], name, kind)
        known = {f.name for f in fields(cls)} - {"run"} | {*_PRIVATE, "timings", "settings"}
        unknown = [name for name in read if name not in known or name.startswith("_")]
        require(not unknown, f"a result has no part {', '.join(unknown)}")
        run = Run(settings=read.pop("settings", {}), timings=read.pop("timings", {}))
        made = cls(run=run, **{_PRIVATE.get(name, name): value for name, value in read.items()})
        made._check_tables()
        return made

    def _check_tables(self) -> None:
        """Raise if a table lacks columns that every result has."""
        require({*self.frame.columns} <= {*self.factuals.columns}, "frame has a column that factuals do not have")
        for name, table in (("frame", self.frame), ("measures", self.measures)):
            require(list(table.index.names) == ["id", "rank"], f"{name} is not indexed by id and rank")
        if self._along is not None:
            require(self._along.shape == self.frame.shape, "comes_along has another shape than frame")
            require(all(dtype == np.dtype(bool) for dtype in self._along.dtypes), "comes_along is not boolean")
        for name, columns in _COLUMNS.items():
            table = getattr(self, _PRIVATE.get(name, name))
            lacking = [] if table is None else [column for column in columns if column not in table.columns]
            require(not lacking, f"{name} has no column {', '.join(lacking)}")
        numbers = [*(self.measures[name] for name in ("L0", "gower"))]
        numbers += [] if self._pairwise is None else [self._pairwise[name] for name in _COLUMNS["pairwise"]]
        if self.run.floor is not None:
            check_number(self.run.floor, "floor", 0.0, 1.0)
            numbers += [self.measures[name] for name in ("plausibility",) if name in self.measures.columns]
        require(all(is_numeric_dtype(column.dtype) for column in numbers), "a measure is not a number")
        for name, value in [*self.run.timings.items(), *self._standard_errors.items()]:
            check_type(value, str(name), float, int)

    def _drawn_for(self, factual: int) -> bool:
        """Return whether rows were drawn for the factual at a position."""
        return self.draws is not None and bool(self.draws.iloc[factual] > 0)

    def _allowed_of(self, factual: int) -> dict[Any, tuple[Any, Any]]:
        """Return the lowest and highest allowed value of each number that a constraint limits, for one factual."""
        if self.allowed is None:
            return {}
        names = self.allowed.columns.get_level_values(0).unique()
        ends = [self.allowed.iloc[factual, j] for j in range(self.allowed.shape[1])]
        pairs = dict(zip(names, zip(ends[::2], ends[1::2])))  # by position: a feature name may be a tuple
        return {name: pair for name, pair in pairs.items() if not pd.isna(pair[0])}

    def _as_explained(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table as a frame of the kind that was explained."""
        return like_input(table, self._frame_kind)


def _not_stored(purpose: str) -> InputError:
    """Return the error of a method that needs the model or the generator, which files do not hold."""
    return InputError(f"this result was loaded from a file or built by hand; explain again to {purpose}.")


def _are_open(reasons: Iterable[str]) -> list[bool]:
    """Return for which reasons it is unknown whether a valid row exists."""
    return [reason != ALREADY and not reason.startswith(UNREADABLE) for reason in reasons]


def _storable(value: object) -> object:
    """Return a setting in storable form: a sampler without its fit, anything unknown as text."""
    plain = Recipe(value) if isinstance(value, ConditionalSampler) else value
    if isinstance(value, Mapping):
        plain = {key: _storable(each) for key, each in value.items()}
    try:
        to_state(plain)
    except MCCEError:
        return repr(value)
    return plain
