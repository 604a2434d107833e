"""A result in words: a sentence for each factual, a table of answers, and the printed lines."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce.report.changes import changed_cells, free_name, in_words, side_by_side, texts_by_row
from mcce.report.languages import read_texts
from mcce.report.names import PREDICTION
from mcce.report.rows import (
    Result,
    best_rows,
    changes_in_words,
    compare_rows,
    consequences_in_words,
    find_row,
    follows_in_words,
    owners,
)
from mcce.report.words import (
    Change,
    care_sentence,
    change_sentence,
    changes_text,
    headline,
    printed_rows,
    reasons_in_lines,
    unexplained_sentence,
)

ROWS_PRINTED = 6


def sentence(found: Result, id: Hashable, rank: int = 1) -> str:
    """Return one counterfactual in plain words; see `mcce.Counterfactuals.sentence`."""
    _, row = find_row(found, id, rank)
    if row is None:
        return unexplained_sentence(found.unexplained, id)
    return next(_row_sentence(found, *each) for each in changes_in_words(found, np.array([row])))


def sentences(found: Result, rank: int = 1) -> pd.Series[Any]:
    """Return `Counterfactuals.sentence` of every factual, by id; without a counterfactual it states the reason.

    Parameters
    ----------
    found : Counterfactuals
    rank : int
        The rank of the counterfactual, 1 for the best.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> print(mcce.report.sentences(explainer.explain(X.head(2), sparse=True)).iloc[0])
    With salary 88,100 instead of 68,000, the result would have been as wanted: probability of class True at least 0.5
    (0.897 instead of 0).
    """
    ranks = found.frame.index.get_level_values("rank")
    known = {
        f: _row_sentence(found, f, row, changed) for f, row, changed in changes_in_words(found) if ranks[row] == rank
    }
    texts = [known[f] if f in known else sentence(found, id, rank) for f, id in enumerate(found.factuals.index)]
    return pd.Series(texts, index=found.factuals.index, name="sentence", dtype=object)


def _row_sentence(found: Result, factual: int, row: int, changes: Sequence[Change]) -> str:
    if found.consequences is not None:
        acts = read_texts().fill(
            "example.acts", changes=changes_text([each for each in changes if not each.comes_along])
        )
        return f"{acts} {consequences_in_words(found, row)}"
    now, then = found.factual_predictions.iloc[factual], found.measures["prediction"].iloc[row]
    old, new = found.names.pair(PREDICTION, now, then, 3)
    name = found.names.label(PREDICTION) if PREDICTION in found.names.labels else None
    text = change_sentence(changes, found.decision, old, new, name)
    if follows := follows_in_words(found, factual, row):
        text += f" {follows}"
    if found.run.floor is not None and found.below_floor().iloc[row]:
        text += " " + care_sentence(float(found.measures["plausibility"].iloc[row]), found.run.floor)
    return text


def change_table(found: Result) -> pd.DataFrame:
    """Return every changed cell, with its role where it is known; see `mcce.Counterfactuals.changes`."""
    before, changed = compare_rows(found)
    table = changed_cells(before, found.frame, changed)
    if found.incidental is None:
        return table
    along = found.incidental.to_numpy(dtype=bool)[changed]
    first, second = _roles(found)
    return table.assign(role=pd.Series(np.where(along, second, first), dtype=object))


def _roles(found: Result) -> tuple[str, str]:
    return ("needed", "comes along") if found.consequences is None else ("action", "consequence")


def answers(found: Result) -> pd.DataFrame:
    """Return features, measures and changes for reading: a row for each counterfactual.

    `changed`, `needed` and `comes_along` list features (`action` and `consequence` for recourse), `changes` lists their
    values, and `sentence` describes the counterfactual.

    Parameters
    ----------
    found : Counterfactuals

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> mcce.report.answers(explainer.explain(X.head(1), sparse=True))[["changed", "changes"]]
      changed                   changes
    0  salary  salary: 68,000 -> 88,100
    """
    changes = change_table(found)
    words = in_words(changes, changes["feature"], found.names)
    columns: dict[str, Any] = dict(texts_by_row(changes, words, found.frame.index, _roles(found)))
    columns["sentence"] = [_row_sentence(found, *each) for each in changes_in_words(found)]
    table = side_by_side(found.frame, found.measures)
    for name, texts in columns.items():
        table[free_name(name, {*table.columns})] = pd.Series(texts, index=table.index, dtype=object)
    return table


def result_headline(found: Result) -> list[str]:
    """Return the first lines of a result: the number explained, the wanted decision and the mean distances."""
    best, n_below = found.measures[best_rows(found)], int(found.below_floor().sum())
    n_explained = len(np.unique(owners(found)))
    return headline(n_explained, len(found.factuals), len(found), found.decision, best, found.run.floor, n_below)


def printed_result(found: Result) -> str:
    """Return the printed form of a result."""
    shown = found.measures.iloc[:ROWS_PRINTED]
    changes = [changed for _, _, changed in changes_in_words(found, np.arange(len(shown)))]
    lines = [*result_headline(found), "", *printed_rows(shown, changes, found.names)]
    if len(found) > len(shown):
        lines.append(f"... and {len(found) - len(shown)} more rows")
    return "\n".join(lines + reasons_in_lines(found.unexplained))
