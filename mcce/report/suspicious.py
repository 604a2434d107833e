"""Counterfactuals that a person should read before they are sent to anybody, and why.

What is usual is told by the training rows (`Usual`, learned by `mcce.explain.reference`) and by the other answers. An
answer is listed for any of these reasons, each with its number:

1. `below the floor`: less plausible than was asked for.
2. `past event or fact`: a feature changes that looks like an unchangeable fact, or should not be given as advice
   (`mcce.suggest_fixed`).
3. `opposite to the usual direction`: a number or ordered level goes down although over the refused as a whole it helps
   that it goes up, or the other way round.
4. `comes along`: a change that the decision does not need is a larger step than every one that it needs. A step is a
   share of the distance between the 5 and the 95 per cent point of training values (`WIDE`), or of all levels if these
   have an order; any other change of level is a whole step.
5. `edge of the data`: a number moves to a value beyond 99 per cent (`EDGE`) of the training rows, or beyond 99 per cent
   of those that share one of the answer's levels: a salary that the unemployed do not have.
6. `large step`: a number moves by more than the distance of the 5 and the 95 per cent point; or a positive amount
   becomes more than five times as much (`TIMES`), by more than a quarter of that distance. (A debt that is nearly paid
   back is a small part of what it was, and no large step.)
7. `unlike the others`: of at least fifty answers (`ENOUGH`), a feature changes that fewer than one in a hundred change
   (`RARE`); or a number moves by more than the upper quartile of the others' steps in that feature and three times the
   distance of their quartiles (`FAR`), of at least twenty steps (`FEW`).
8. `duration`: a duration grows by more than two years (`YEARS`). A number is a duration if a unit of time and another
   word stand in its name, as in years_employed.

The numbers were chosen on the loans of `mcce.datasets.load_loans`, so that all advice to take a larger loan, to have
been in a job for years, to have no default, or to have a salary while unemployed is listed, and fewer than one answer
in six at the default floor. An answer that is not listed is not therefore good advice.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.report.changes import directions
from mcce.report.names import Names, listed, value_text
from mcce.storage.fields import check_type, require
from mcce.storage.state import stateful
from mcce.table.suggest import name_words

WIDE, EDGE = (0.05, 0.95), (0.01, 0.99)
TIMES, PART = 5.0, 0.25
ENOUGH, RARE, FEW, FAR = 50, 0.01, 20, 3.0
YEARS = 2
IN_A_YEAR = {"years": 1.0, "yrs": 1.0, "months": 12.0, "weeks": 52.0, "days": 365.0}
MOST_GROUPS = 2  # named in words
BELOW, PAST, UNUSUAL_DIRECTION, ALONG, AT_EDGE, LARGE, UNLIKE, DURATION = (
    "below the floor",
    "past event or fact",
    "opposite to the usual direction",
    "comes along",
    "edge of the data",
    "large step",
    "unlike the others",
    "duration",
)
REASONS = (BELOW, PAST, UNUSUAL_DIRECTION, ALONG, AT_EDGE, LARGE, UNLIKE, DURATION)


class Edge(NamedTuple):
    """Values between which nearly all numbers of a feature lie, in rows that share a level, or all (`given` None)."""

    feature: Hashable
    given: Hashable
    level: Any
    low: float
    high: float


@stateful("Usual")
@dataclass(frozen=True)
class Usual:
    """Usual values of training rows, directions that help, and unchangeable features.

    Attributes
    ----------
    directions : feature to 1 if higher values help over the refused as a whole, -1 if lower ones do
    spreads : number to the distance of the 5 and the 95 per cent point of its values
    edges : for numbers, between which values nearly all lie, as of `Edge`
    unchangeable : feature to the reason why it cannot be changed
    """

    directions: Mapping[Any, int] = field(default_factory=dict)
    spreads: Mapping[Any, float] = field(default_factory=dict)
    edges: tuple[tuple[Any, ...], ...] = ()
    unchangeable: Mapping[Any, str] = field(default_factory=dict)

    def check_state(self) -> None:
        """Refuse parts of a file that are no such facts."""
        for name, kind in (("directions", int), ("spreads", float), ("unchangeable", str)):
            check_type(getattr(self, name), name, dict)
            for value in getattr(self, name).values():
                check_type(value, name, kind)
        check_type(self.edges, "edges", tuple)
        for edge in self.edges:
            check_type(edge, "edges", tuple)
            require(len(edge) == len(Edge._fields), "edges hold what is none")
            check_type(edge[3], "edges", float)
            check_type(edge[4], "edges", float)


@dataclass(frozen=True)
class Answered:
    """Answers side by side with the rows that they answer.

    Attributes
    ----------
    before, after : the factual and the counterfactual of each answer, a row each; the index of `after` is (id, rank)
    changed : which cells differ
    along : which of them the decision does not need; None if that is not known, as of whole draws
    plausibility, floor : of each answer, and what was asked for; None if there was none to keep
    names : labels, units and formats
    """

    before: pd.DataFrame
    after: pd.DataFrame
    changed: Bools
    along: Bools | None
    plausibility: Floats | None
    floor: float | None
    names: Names


def find_suspicious(answers: Answered, usual: Usual) -> pd.DataFrame:
    """Return the answers to read before sending, by (id, rank): `reasons` by their names, and the `words`."""
    found: list[dict[str, list[str]]] = [{} for _ in range(len(answers.after))]

    def note(row: int, reason: str, words: str) -> None:
        found[row].setdefault(reason, []).append(words)

    for row in np.flatnonzero(_below(answers)):
        assert answers.plausibility is not None
        share = value_text(100 * float(answers.plausibility[row]), 2)
        note(int(row), BELOW, f"only {share}% of real rows look as unusual or more so")
    for j in np.flatnonzero(answers.changed.any(axis=0)).tolist():
        _look_at_feature(answers, usual, j, note)
    _look_at_roles(answers, usual, note)
    rows = [row for row, told in enumerate(found) if told]
    texts = {
        "reasons": [", ".join(reason for reason in REASONS if reason in found[row]) for row in rows],
        "words": ["; ".join(w for reason in REASONS for w in found[row].get(reason, ())) for row in rows],
    }
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in texts.items()}).set_axis(
        answers.after.index[rows], axis=0
    )


def _below(answers: Answered) -> Bools:
    if answers.floor is None or answers.plausibility is None:
        return np.zeros(len(answers.after), dtype=bool)
    return answers.plausibility < answers.floor - 1e-9


def _look_at_feature(answers: Answered, usual: Usual, j: int, note: Any) -> None:
    """Note what is unusual about the changes of one feature."""
    name, changed = answers.after.columns[j], answers.changed[:, j]
    label, rows = answers.names.label(name), np.flatnonzero(answers.changed[:, j])
    old, new = answers.before.iloc[:, j], answers.after.iloc[:, j]
    if name in usual.unchangeable:
        for row in rows:
            note(int(row), PAST, f"{label} changes, which looks like {usual.unchangeable[name]}")
    helps = usual.directions.get(name, 0)
    if helps:
        for row in np.flatnonzero(directions(old, new, changed) == -helps):
            ways = ("lower", "higher") if helps > 0 else ("higher", "lower")
            note(int(row), UNUSUAL_DIRECTION, f"{label} is {ways[0]}, and for most of the refused {ways[1]} helps")
    n = len(answers.after)
    if n >= ENOUGH and rows.size < RARE * n:
        for row in rows:
            note(int(row), UNLIKE, f"{label} changes, as in {value_text(int(rows.size))} of {value_text(n)} answers")
    if name in usual.spreads:
        _look_at_numbers(answers, usual, j, note)


def _look_at_numbers(answers: Answered, usual: Usual, j: int, note: Any) -> None:
    """Note what is unusual about the steps and values of a number."""
    name, names = answers.after.columns[j], answers.names
    label, spread = names.label(name), usual.spreads[name]
    old = answers.before.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan)
    new = answers.after.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan)
    moved = answers.changed[:, j] & ~np.isnan(old) & ~np.isnan(new)
    step = np.where(moved, np.abs(new - old), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(moved & (old > 0.0), new / old, 1.0)
    is_large = (step > spread) | ((times > TIMES) & (step > PART * spread))
    for row in np.flatnonzero(moved & is_large):
        by = names.step(name, float(new[row] - old[row]))
        how = f"to {times[row]:.1f} times as much" if times[row] > TIMES else "farther than nine in ten rows lie apart"
        note(int(row), LARGE, f"{label} moves by {by}, {how}")
    units = [word for word in name_words(name) if word in IN_A_YEAR]
    if len(units) == 1 and len(name_words(name)) > 1:
        for row in np.flatnonzero(moved & (new - old > YEARS * IN_A_YEAR[units[0]])):
            by = names.step(name, float(new[row] - old[row])).removeprefix("+")
            note(int(row), DURATION, f"{label} grows by {by}")
    if int(moved.sum()) >= FEW:
        low, high = np.quantile(step[moved], [0.25, 0.75])
        for row in np.flatnonzero(moved & (step > high + FAR * (high - low))):
            typical = names.step(name, float(np.median(step[moved]))).removeprefix("+")
            note(int(row), UNLIKE, f"{label} moves farther than in other answers, where {typical} is usual")
    whose: dict[tuple[int, str], list[str]] = {}
    for edge in map(Edge._make, usual.edges):
        if edge.feature != name or (edge.given is not None and edge.given not in answers.after.columns):
            continue
        group = "all rows"
        beyond = moved & (((new > edge.high) & (new > old)) | ((new < edge.low) & (new < old)))
        if edge.given is not None:
            group = f"those with {names.label(edge.given)} {names.text(edge.given, edge.level)}"
            beyond &= (answers.after[edge.given].astype(object) == edge.level).to_numpy(dtype=bool, na_value=False)
        for row in np.flatnonzero(beyond):
            whose.setdefault((int(row), "above" if new[row] > old[row] else "below"), []).append(group)
    for (place, where), groups in whose.items():
        value = names.text(name, answers.after.iloc[place, j])
        note(place, AT_EDGE, f"{label} {value} is {where} 99% of {' and of '.join(groups[:MOST_GROUPS])}")


def _look_at_roles(answers: Answered, usual: Usual, note: Any) -> None:
    """Note changes that come along and are larger than those that are needed."""
    if answers.along is None:
        return
    for row in np.flatnonzero((answers.along & answers.changed).any(axis=1)):
        steps = {j: _step(answers, usual, int(row), j) for j in np.flatnonzero(answers.changed[row]).tolist()}
        needed = [step for j, step in steps.items() if not answers.along[row, j]]
        more = [j for j, step in steps.items() if answers.along[row, j] and step > max(needed, default=0.0)]
        if more:
            labels = listed([answers.names.label(answers.after.columns[j]) for j in more])
            verbs = ("comes", "changes") if len(more) == 1 else ("come", "change")
            note(int(row), ALONG, f"{labels} {verbs[0]} along, and {verbs[1]} more than what is needed")


def _step(answers: Answered, usual: Usual, row: int, j: int) -> float:
    """Return the size of a change, as a share of what is usual."""
    name, dtype = answers.after.columns[j], answers.after.dtypes.iloc[j]
    old: Any = answers.before.iloc[row, j]
    new: Any = answers.after.iloc[row, j]
    if pd.isna(old) or pd.isna(new):
        return 1.0
    if name in usual.spreads:
        return abs(float(new) - float(old)) / usual.spreads[name]
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        levels = list(dtype.categories)
        return abs(levels.index(old) - levels.index(new)) / max(len(levels) - 1, 1)
    return 1.0
