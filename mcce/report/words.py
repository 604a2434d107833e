"""The texts of a result, shared by terminal output, pages and letters.

For one counterfactual: the sentence on its changes, and the warning about an unusual row. For one factual: why it has
no counterfactual. For all: the headline, a line for each counterfactual, the figures of the summary, and the effect of
each constraint.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from mcce.exceptions import spell, spell_all
from mcce.report.languages import Texts, read_texts
from mcce.report.names import PREDICTION, Names, case_name, fold, value_text
from mcce.report.reasons import short_reason
from mcce.table.checks import find_labels

NEARLY_ALL = 0.995  # larger shares would be rounded to 100 per cent
CHANGES_PRINTED = 3
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
        f"Use with caution: {share} of the real rows look as unusual as this one or more so; at least "
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


def headline(
    n_explained: int, n_factuals: int, n_rows: int, decision: str, best: pd.DataFrame, floor: float | None, n_below: int
) -> list[str]:
    """Return the number explained, the wanted decision, the mean distances, and the number of rows below the floor.

    `best` holds the measures of the best counterfactual of each factual; `floor` is None if there was no floor.
    """
    lines = [
        f"Counterfactuals: {n_explained} of {n_factuals} factuals explained, {n_rows} rows",
        f"wanted: {decision}",
    ]
    if len(best):
        figures = [f"{m} {value_text(best[m].mean(), 3)}" for m in ("L0", "gower")]
        lines.append(f"mean over the best of each: {', '.join(figures)}")
    if floor is not None:
        lines.append(f"rows below the floor of plausibility ({value_text(floor)}): {n_below}")
    return lines


def printed_rows(measures: pd.DataFrame, changes: Sequence[Sequence[Change]], names: Names) -> list[str]:
    """Return a line for each counterfactual, below a line of names: id, rank, figures and the first changes."""
    if not len(measures):
        return []
    figures = [m for m in ("prediction", "L0", "gower", "plausibility") if m in measures]
    table = [["id", "rank", *figures, "changes"]]
    for row, (id, rank) in enumerate(measures.index):
        texts = [f"{name}: {fold(f'{old} -> {new}', 48, 1)}" for name, old, new, _ in changes[row]]
        more = [f"and {len(texts) - CHANGES_PRINTED} more"] if len(texts) > CHANGES_PRINTED else []
        values = [
            names.text(m, measures[m].iloc[row], 3) if m == PREDICTION else value_text(measures[m].iloc[row], 3)
            for m in figures
        ]
        table.append([str(id), str(rank), *values, "; ".join(texts[:CHANGES_PRINTED] + more) or "nothing"])
    widths = [max(len(line[k]) for line in table) for k in range(len(table[0]) - 1)]
    return ["  ".join([*map(str.rjust, line, widths), line[-1]]) for line in table]


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
