"""A result in words: sentences, tables of answers and of changes, the printed lines, and the figures of the summary.

For one counterfactual: its changes, the sentence, and the warning about an unusual row. For one factual: why it has no
counterfactual. For all: the headline, a line for each counterfactual, the figures of the summary, and the effect of
each constraint. Terminal output, pages and letters share these texts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.base.arrays import Ints
from mcce.exceptions import spell, spell_all
from mcce.report.changes import changed_cells, free_name, side_by_side
from mcce.report.languages import Texts, read_texts
from mcce.report.names import PREDICTION, Names, case_name, fold, is_same, value_text
from mcce.report.reasons import short_reason
from mcce.report.rows import (
    Result,
    best_rows,
    cases_of_100,
    compare_rows,
    find_row,
    incidental_cells,
    owners,
    usual_consequences,
)
from mcce.table.checks import find_labels

NEARLY_ALL = 0.995  # larger shares would be rounded to 100 per cent
ROWS_PRINTED, CHANGES_PRINTED = 6, 3
CLASS = "predicted class "  # the beginning of a decision without a label


class Change(NamedTuple):
    """A change in words; the decision does not need one that `comes_along`, but the others are implausible alone."""

    feature: str
    before: str
    after: str
    comes_along: bool = False


def changes_text(changes: Sequence[Change], texts: Texts | None = None) -> str:
    """Return changes as part of a sentence: the needed ones, and the incidental ones in brackets.

    Examples
    --------
    >>> changes_text([Change("job", "none", "nurse", True), Change("salary", "0", "30,000")])
    'salary 30,000 instead of 0 (together with job nurse instead of none)'
    """
    known = texts or read_texts()

    def listed(some: list[Change]) -> str:
        words = [known.fill("example.change", feature=c.feature, before=c.before, after=c.after) for c in some]
        return known.listed(words)

    along = [change for change in changes if change.comes_along]
    needed = listed([change for change in changes if not change.comes_along])
    return known.fill("example.along", len(along), needed=needed, changes=listed(along)) if along else needed


def follow_sentence(changes: Sequence[tuple[str, str, str]], texts: Texts | None = None) -> str:
    """Return the changes of computed features as a sentence; each is its name, its direction and its new value.

    Examples
    --------
    >>> follow_sentence([("dti", "falls", "0.45"), ("grade", "becomes", "B")])
    'As a result, dti falls to 0.45 and grade becomes B.'
    """
    known = texts or read_texts()
    sentences = [known.fill(f"example.{way}", feature=name, after=after) for name, way, after in changes]
    return known.fill("example.follows", changes=known.listed(sentences)) if sentences else ""


def change_sentence(changes: Sequence[Change], decision: str, old: str, new: str, name: str | None = None) -> str:
    """Return the changes and the old and new prediction as a sentence; without a `name`, predictions may be left out.

    Examples
    --------
    >>> more = [Change("savings", "12,000", "36,500")]
    >>> change_sentence(more, "the loan is granted", "22%", "7%", "risk")
    'With savings 36,500 instead of 12,000, the loan would have been granted (risk 7% instead of 22%).'
    >>> change_sentence(more, "predicted class 'repaid'", "defaulted", "repaid")
    'With savings 36,500 instead of 12,000, the model would have said repaid instead of defaulted.'
    """
    if not changes:
        return f"Nothing has to change: the result is as wanted ({decision}: {new})."
    begin, would = f"With {changes_text(changes)},", read_texts().conditional_form(decision)
    if would is not None:
        figures = "" if name is None else f" ({name} {new} instead of {old})"
        return f"{begin} {would}{figures}."
    if decision.startswith(CLASS):
        return f"{begin} the model would have said {new} instead of {old}."
    return f"{begin} the result would have been as wanted: {decision} ({new} instead of {old})."


def care_sentence(plausibility: float, floor: float) -> str:
    """Return the warning about a counterfactual below the floor of plausibility."""
    share = "hardly any" if plausibility < 0.001 else f"{value_text(100 * plausibility, 3)}%"
    return (
        f"Use with caution: {share} of the real rows are at least as unusual as this one; "
        f"{value_text(100 * floor, 3)}% were required."
    )


def unexplained_sentence(unexplained: pd.DataFrame, id: Hashable) -> str:
    """Return why a factual has no counterfactual, as a sentence."""
    reason = "no reason was recorded"
    place = find_labels(unexplained.index, pd.Index([id], tupleize_cols=False))[0]
    if place >= 0:
        reason = str(unexplained["reason"].iloc[place]).rstrip(".")
    case = spell(id) if isinstance(id, str) else case_name(id)
    return f"No counterfactual was found for {case}: {reason}."


def reasons_in_lines(unexplained: pd.DataFrame) -> list[str]:
    """Return one line for each kind of reason for unexplained factuals."""
    groups = unexplained["reason"].groupby(unexplained["reason"].map(short_reason), sort=False).groups.items()
    return [f"not explained, {reason}: {spell_all(ids)}" for reason, ids in groups]


def changes_in_words(
    found: Result, rows: Ints | None = None, names: Names | None = None
) -> Iterator[tuple[int, int, list[Change]]]:
    """Yield for rows of `frame`, all by default, the position of the factual, that of the row, and its changes.

    The names are those of the result unless others are given.
    """
    rows, names = np.arange(len(found)) if rows is None else rows, names or found.names
    before, changed = compare_rows(found, rows)
    owner, along = owners(found)[rows], incidental_cells(found, rows)
    for k, row in enumerate(rows.tolist()):
        changes = []
        for j in np.flatnonzero(changed[k]).tolist():
            name = found.frame.columns[j]
            old, new = names.pair(name, before.iloc[k, j], found.frame.iloc[row, j])
            changes.append(Change(names.label(name), old, new, bool(along[k, j])))
        yield int(owner[k]), row, changes


def follows_in_words(
    found: Result, factual: int, row: int, names: Names | None = None, texts: Texts | None = None
) -> str:
    """Return the changes of the derived features in a row of `frame` as a sentence; empty without any."""
    names, changes = names or found.names, []
    for name in found.frame.columns[found.frame.columns.isin(found.derived)]:
        before, after = found.factuals[name].iloc[factual], found.frame[name].iloc[row]
        if not is_same(before, after):
            changes.append((names.label(name), _way(found, name, before, after), names.pair(name, before, after)[1]))
    return follow_sentence(changes, texts)


def _way(found: Result, name: Any, before: Any, after: Any) -> str:
    """Return the key of the text that describes a change of a feature."""
    if found.kinds.get(name) != "numeric" or pd.isna(before) or pd.isna(after):
        return "becomes"
    return "rises" if after > before else "falls"


def consequences_in_words(found: Result, row: int, names: Names | None = None, texts: Texts | None = None) -> str:
    """Return the usual consequences of the actions of a row of `frame`, and how often the decision is then reached."""
    names, texts = names or found.names, texts or read_texts()
    changes = []
    own = found.factuals.iloc[owners(found)[row]]
    for feature, low, high in usual_consequences(found, row):
        if is_same(low, high) and is_same(low, own[feature]):
            continue
        key = _way(found, feature, own[feature], high) if is_same(low, high) else "between"
        first, last = names.pair(feature, low, high)
        changes.append(texts.fill(f"example.{key}", feature=names.label(feature), low=first, high=last, after=last))
    usually = [texts.fill("example.usually", changes=texts.listed(changes))] if changes else []
    cases = cases_of_100(found, row)
    return " ".join([*usually, texts.fill("example.assured", cases=names.count(cases), decision=found.decision)])


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
    first, second = roles_of(found)
    return table.assign(role=pd.Series(np.where(along, second, first), dtype=object))


def roles_of(found: Result) -> tuple[str, str]:
    """Return the roles of changes that are not incidental, and of those that are."""
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
    _, changed = compare_rows(found)
    roles = {} if found.incidental is None else dict(zip(roles_of(found), (False, True)))
    columns: dict[str, list[str]] = {name: [] for name in ("changed", *roles, "changes", "sentence")}
    for factual, row, changes in changes_in_words(found):
        named = list(zip(map(str, found.frame.columns[changed[row]]), changes))
        columns["changed"].append(", ".join(name for name, _ in named))
        for role, comes_along in roles.items():
            columns[role].append(", ".join(name for name, each in named if each.comes_along == comes_along))
        columns["changes"].append(", ".join(f"{name}: {each.before} -> {each.after}" for name, each in named))
        columns["sentence"].append(_row_sentence(found, factual, row, changes))
    table = side_by_side(found.frame, found.measures)
    for name, texts in columns.items():
        table[free_name(name.replace(" ", "_"), {*table.columns})] = pd.Series(texts, index=table.index, dtype=object)
    return table


def result_headline(found: Result, heads: Mapping[str, str] | None = None) -> list[str]:
    """Return the first lines of a result: the number explained, the wanted decision and the mean distances.

    `heads` has the words for L0 and the Gower distance; None for their names.
    """
    best, n_explained = found.measures[best_rows(found)], len(np.unique(owners(found)))
    lines = [f"Counterfactuals: {n_explained} of {len(found.factuals)} factuals explained, {len(found)} rows"]
    lines.append(f"wanted: {found.decision}")
    if len(best):
        means = [f"{(heads or {}).get(m, m)} {value_text(best[m].mean(), 3)}" for m in ("L0", "gower")]
        lines.append(f"mean over the best of each: {', '.join(means)}")
    if found.run.floor is not None:
        lines.append(
            f"rows below the floor of plausibility ({value_text(found.run.floor)}): {found.below_floor().sum()}"
        )
    return lines


def printed_result(found: Result) -> str:
    """Return the printed form of a result: a line for each of the first counterfactuals, below a line of names."""
    shown, names = found.measures.iloc[:ROWS_PRINTED], found.names
    figures = [name for name in (PREDICTION, "L0", "gower", "plausibility") if name in shown]
    table = [["id", "rank", *figures, "changes"]] if len(shown) else []
    for _, row, changes in changes_in_words(found, np.arange(len(shown))):
        texts = [f"{name}: {fold(f'{old} -> {new}', 48, 1)}" for name, old, new, _ in changes]
        more = [f"and {len(texts) - CHANGES_PRINTED} more"] if len(texts) > CHANGES_PRINTED else []
        values = [value_text(shown[name].iloc[row], 3) for name in figures]
        values[0] = names.text(PREDICTION, shown[PREDICTION].iloc[row], 3)
        table.append([*map(str, shown.index[row]), *values, "; ".join(texts[:CHANGES_PRINTED] + more) or "nothing"])
    widths = [max(map(len, column)) for column in zip(*table)][:-1]
    lines = ["  ".join([*map(str.rjust, line, widths), line[-1]]) for line in table]
    if len(found) > len(shown):
        lines.append(f"... and {len(found) - len(shown)} more rows")
    return "\n".join([*result_headline(found), "", *lines, *reasons_in_lines(found.unexplained)])


def count_figures(n_factuals: int, n_explained: int, unexplained: pd.DataFrame) -> dict[str, object]:
    """Return the numbers of factuals: all, explained, and unexplained by kind of reason."""
    figures = {"factuals": n_factuals, "explained": n_explained, "unexplained": len(unexplained)}
    counts = unexplained["reason"].map(short_reason).value_counts().items()
    return {**figures, **{f"unexplained: {reason}": int(count) for reason, count in counts}}


def measure_figures(best: pd.DataFrame, standard_errors: Mapping[str, float]) -> dict[str, object]:
    """Return mean and standard deviation of the measures of the best rows, and Monte Carlo errors where known."""
    figures: dict[str, object] = {}
    numbers = best.drop(columns="prediction").select_dtypes("number")
    for name in numbers.columns:
        infinite = np.isinf(numbers[name]).any()  # the log density of a row that the chain cannot draw
        figures[f"mean {name}"] = numbers[name].mean()
        figures[f"sd {name}"] = np.nan if infinite else numbers[name].std()
        if name in standard_errors:
            figures[f"se {name}"] = standard_errors[name]
    return figures


def spread_figures(pairwise: pd.DataFrame | None) -> dict[str, object]:
    """Return the mean pairwise distances of counterfactuals over the factuals that have several."""
    if pairwise is None or not (several := pairwise[pairwise["rows"] > 1]).size:
        return {}
    return {
        "mean pairwise gower": several["gower"].mean(),
        "mean pairwise share of features": several["features"].mean(),
    }


class ConstraintWords(NamedTuple):
    """One constraint: its text, the share of unconstrained draws that violate it, and the number that passed."""

    text: str
    breaks: str
    passed: str


def constraint_words(constraints: pd.DataFrame | None) -> list[ConstraintWords]:
    """Return the rows of `Counterfactuals.constraints` in words; empty without constraints.

    Parameters
    ----------
    constraints : DataFrame or None
        `breaks`, `tried` and `passed`, by constraint.
    """
    if constraints is None:
        return []
    rows = zip(constraints.index, constraints["breaks"], constraints["tried"], constraints["passed"])
    return [
        ConstraintWords(str(text), _share_text(breaks), _passed_text(tried, passed))
        for text, breaks, tried, passed in rows
    ]


def constraint_lines(constraints: pd.DataFrame | None) -> list[str]:
    """Return one line for each constraint."""
    return [
        f"{each.text}: violated by {each.breaks} of the unconstrained draws; draws with an allowed value: {each.passed}"
        for each in constraint_words(constraints)
    ]


def _share_text(share: float) -> str:
    if pd.isna(share):
        return "an unknown share"
    if share in (0.0, 1.0):
        return "all" if share else "none"
    return "over 99%" if share >= NEARLY_ALL else "under 1%" if share < 1 - NEARLY_ALL else f"{100 * share:.0f}%"


def _passed_text(tried: float, passed: float) -> str:
    if pd.isna(tried) or not tried:
        return "none was tested"
    tried, passed = int(tried), int(passed)
    if passed == tried:
        return f"all of {value_text(tried)}"
    return f"{value_text(passed)} of {value_text(tried)}"
