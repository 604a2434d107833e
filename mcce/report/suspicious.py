"""Answers that must not be sent before a person has read them, notes about others, and the reasons.

The reasons go by what is usual among the training rows (`Usual`, learned by `mcce.explain.reference`), by the names of
the columns (`mcce.table.words`) and by the other answers. Each has a severity.

"stop": the answer must not be sent. It is impossible, harms, or contradicts what a column means:

1. `below the floor`: less plausible than was asked for.
2. `past event or fact`: a feature changes that looks like an unchangeable fact (`mcce.suggest_fixed`, except counts and
   durations). None of the other reasons of this severity is given for such a feature.
3. `cannot fall`: a level of education or a duration falls.
4. `duration`: a duration grows by more than two years (`YEARS`).
5. `opposite to the usual direction`: a number or ordered level goes down although over the refused as a whole it helps
   that it goes up, or the other way round.
6. `contradicts a level`: a number is above 99 per cent of the training rows with one of the answer's levels, and these
   are low: 99 per cent of them are below the upper quartile of all rows. Example: a salary beside "unemployed".
7. `from nothing to much`: an amount that was 0 or missing exceeds nine in ten of the positive training values.
8. `money from nowhere`: savings rise, or a debt falls, by more than the loan. All three are known by their names, and
   are compared if they have the same unit in `Names`, or none.

"note": the answer is unusual, not wrong:

9. `comes along`: a change that the decision does not need is a larger step than every one that it needs. A step is a
   share of the distance between the 5 and the 95 per cent point of training values (`WIDE`), or of all levels if these
   have an order; any other change of level is a whole step.
10. `edge of the data`: a number moves to a value beyond 99 per cent (`EDGE`) of the training rows, or beyond 99 per
    cent of those that share one of the answer's levels.
11. `large step`: a number moves by more than the distance of the 5 and the 95 per cent point; or a positive amount
    becomes more than five times as much (`TIMES`), by more than a quarter of that distance. A code, such as a level of
    education, is not an amount.
12. `unlike the others`: of at least fifty answers (`ENOUGH`), a feature changes that fewer than one in a hundred change
    (`RARE`); or a number moves by more than the upper quartile of the others' steps in that feature and three times the
    distance of their quartiles (`FAR`), of at least twenty steps (`FEW`).

That a fact may change, or a duration grow by years, is a finding about the explainer rather than about single answers
(`OF_COLUMN`): the feature should be fixed or limited. `mcce.suggest_fixed` lists such features, and `MCCE.fit` warns of
facts. The list has one line for the feature: the first answer with the finding, and the number of the others. Level
"all" lists every answer, with its notes. `mcce.report.letters` writes no letter for any answer of severity "stop",
whether or not it is that one line.

`benchmarks.suspicious` measures how many answers and real rows are listed, and how many planted errors are found. An
answer that is not listed is not therefore good advice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.report.changes import directions
from mcce.report.names import Names, listed, value_text
from mcce.storage.fields import check_type, require
from mcce.storage.state import stateful
from mcce.table.words import DEBT, SAVINGS, is_education, is_loan, name_words

WIDE, EDGE = (0.05, 0.95), (0.01, 0.99)
TIMES, PART = 5.0, 0.25
ENOUGH, RARE, FEW, FAR = 50, 0.01, 20, 3.0
YEARS = 2
MOST_GROUPS = 2  # named in words
STOP, NOTE = "stop", "note"
LEVELS = (STOP, "all")
BELOW, PAST, FALLS, DURATION, UNUSUAL_DIRECTION, AT_LEVEL, FROM_NOTHING, FROM_NOWHERE = STOP_REASONS = (
    "below the floor",
    "past event or fact",
    "cannot fall",
    "duration",
    "opposite to the usual direction",
    "contradicts a level",
    "from nothing to much",
    "money from nowhere",
)
ALONG, AT_EDGE, LARGE, UNLIKE = NOTE_REASONS = ("comes along", "edge of the data", "large step", "unlike the others")
REASONS = (*STOP_REASONS, *NOTE_REASONS)
OF_COLUMN = (PAST, DURATION)


class Edge(NamedTuple):
    """Values between which nearly all numbers of a feature lie, in rows that share a level, or all (`given` None).

    `is_low` says that the rows with the level have low values, so that a high one contradicts it.
    """

    feature: Hashable
    given: Hashable
    level: Any
    low: float
    high: float
    is_low: bool


@stateful("Usual")
@dataclass(frozen=True)
class Usual:
    """Usual values of training rows, directions that help, durations, and unchangeable features.

    Attributes
    ----------
    directions : feature to 1 if higher values help over the refused as a whole, -1 if lower ones do
    spreads : number to the distance of the 5 and the 95 per cent point of its values
    highs : amount, that is a number other than a code, to the 90 per cent point of its positive values
    edges : for numbers, between which values nearly all lie, as of `Edge`
    durations : duration to the number of its units in a year
    unchangeable : feature to the reason why it cannot be changed
    """

    directions: Mapping[Any, int] = field(default_factory=dict)
    spreads: Mapping[Any, float] = field(default_factory=dict)
    highs: Mapping[Any, float] = field(default_factory=dict)
    edges: tuple[tuple[Any, ...], ...] = ()
    durations: Mapping[Any, float] = field(default_factory=dict)
    unchangeable: Mapping[Any, str] = field(default_factory=dict)

    def check_state(self) -> None:
        """Raise if parts of a file have other types."""
        floats = dict.fromkeys(("spreads", "highs", "durations"), float)
        for name, kind in {"directions": int, **floats, "unchangeable": str}.items():
            check_type(getattr(self, name), name, dict)
            for value in getattr(self, name).values():
                check_type(value, name, kind)
        check_type(self.edges, "edges", tuple)
        for edge in self.edges:
            check_type(edge, "edges", tuple)
            require(len(edge) == len(Edge._fields), f"an edge does not have {len(Edge._fields)} parts")
            check_type(edge[3], "edges", float)
            check_type(edge[4], "edges", float)
            check_type(edge[5], "edges", bool)


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

    def numbers(self, j: int) -> tuple[Floats, Floats]:
        """Return the values of a column of numbers before and after."""
        old, new = (each.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan) for each in (self.before, self.after))
        return old, new


class Suspicion(NamedTuple):
    """A reason to list a row, the feature that gives it (None if none does), and the words."""

    row: int
    reason: str
    feature: Hashable
    words: str


def find_suspicious(answers: Answered, usual: Usual, level: str = STOP) -> pd.DataFrame:
    """Return the answers to read before sending, by (id, rank): `severity`, `reasons` by their names, and `words`.

    With the level "stop" these are the answers of that severity, each finding about a column once; with "all", all
    answers with any finding.
    """
    if level not in LEVELS:
        raise InputError(f"there is no level {spell(level)} of suspicious answers; {did_you_mean(level, LEVELS)}")
    findings = [*_below(answers), *_along(answers, usual)]
    for j in np.flatnonzero(answers.changed.any(axis=0)).tolist():
        findings += _of_feature(answers, usual, j)
        if answers.after.columns[j] in usual.spreads:
            findings += _of_number(answers, usual, j)
    findings += _contradictions(answers, usual)
    if level == STOP:
        findings = _columns_once([each for each in findings if each.reason in STOP_REASONS])
    found: dict[int, dict[str, list[str]]] = {}
    for each in sorted(findings, key=lambda finding: finding.row):
        found.setdefault(each.row, {}).setdefault(each.reason, []).append(each.words)
    texts = {
        "severity": [STOP if any(reason in STOP_REASONS for reason in of_row) else NOTE for of_row in found.values()],
        "reasons": [", ".join(reason for reason in REASONS if reason in of_row) for of_row in found.values()],
        "words": ["; ".join(w for reason in REASONS for w in of_row.get(reason, ())) for of_row in found.values()],
    }
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in texts.items()}).set_axis(
        answers.after.index[list(found)], axis=0
    )


def _columns_once(findings: list[Suspicion]) -> list[Suspicion]:
    """Return the findings, those about a column for its first row and for rows that are listed for another reason."""
    has_own = {each.row for each in findings if each.reason not in OF_COLUMN}
    times = Counter((each.reason, each.feature) for each in findings)
    kept, told = [], set()
    for each in findings:
        cause = (each.reason, each.feature)
        if each.reason in OF_COLUMN and cause not in told:
            told.add(cause)
            others = times[cause] - 1
            more = f" (and in {value_text(others)} other answer{'s' * (others > 1)}: fix or limit the feature)"
            kept.append(each._replace(words=each.words + more * (others > 0)))
        elif each.reason not in OF_COLUMN or each.row in has_own:
            kept.append(each)
    return kept


def _below(answers: Answered) -> Iterator[Suspicion]:
    if answers.floor is None or answers.plausibility is None:
        return
    for row in np.flatnonzero(answers.plausibility < answers.floor - 1e-9).tolist():
        share = value_text(100 * float(answers.plausibility[row]), 2)
        yield Suspicion(row, BELOW, None, f"only {share}% of real rows look as unusual or more so")


def _of_feature(answers: Answered, usual: Usual, j: int) -> Iterator[Suspicion]:
    """Yield what is unusual about the changes of one feature."""
    name, changed = answers.after.columns[j], answers.changed[:, j]
    label, rows = answers.names.label(name), np.flatnonzero(changed).tolist()
    ways = directions(answers.before.iloc[:, j], answers.after.iloc[:, j], changed)
    helps = usual.directions.get(name, 0)
    if name in usual.unchangeable:
        for row in rows:
            yield Suspicion(row, PAST, name, f"{label} changes, which looks like {usual.unchangeable[name]}")
    elif name in usual.durations or is_education(name):
        for row in np.flatnonzero(ways == -1).tolist():
            yield Suspicion(row, FALLS, name, f"{label} falls")
    elif helps:
        for row in np.flatnonzero(ways == -helps).tolist():
            way, other = ("lower", "higher") if helps > 0 else ("higher", "lower")
            words = f"{label} is {way}, and for most of the refused {other} helps"
            yield Suspicion(row, UNUSUAL_DIRECTION, name, words)
    n = len(answers.after)
    if n >= ENOUGH and len(rows) < RARE * n:
        for row in rows:
            yield Suspicion(
                row, UNLIKE, name, f"{label} changes, as in {value_text(len(rows))} of {value_text(n)} answers"
            )


def _of_number(answers: Answered, usual: Usual, j: int) -> Iterator[Suspicion]:
    """Yield what is unusual about the steps and values of a number."""
    name, names = answers.after.columns[j], answers.names
    label, spread = names.label(name), usual.spreads[name]
    old, new = answers.numbers(j)
    changed = answers.changed[:, j]
    gain = np.where(changed, new - old, np.nan)  # NaN, which exceeds nothing, if one of both is missing
    step = np.abs(gain)

    def by(row: int) -> str:
        return names.step(name, float(gain[row])).removeprefix("+")

    if name not in usual.unchangeable:
        if name in usual.durations:  # a negative value is a code
            for row in np.flatnonzero((old >= 0.0) & (gain > YEARS * usual.durations[name])).tolist():
                yield Suspicion(row, DURATION, name, f"{label} grows by {by(row)}")
        was_nothing = changed & (np.isnan(old) | (old == 0.0))
        for row in np.flatnonzero(was_nothing & (new > usual.highs.get(name, np.inf))).tolist():
            before, after = (names.text(name, each.iloc[row, j]) for each in (answers.before, answers.after))
            yield Suspicion(row, FROM_NOTHING, name, f"{label} rises from {before} to {after}")
        for loan, row in _beyond_loans(answers, name, gain):
            yield Suspicion(row, FROM_NOWHERE, name, f"{label} changes by {by(row)}, more than {names.label(loan)}")
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(changed & (old > 0.0) & (name in usual.highs), new / old, 1.0)
    for row in np.flatnonzero((step > spread) | ((times > TIMES) & (step > PART * spread))).tolist():
        how = f"to {times[row]:.1f} times as much" if times[row] > TIMES else "farther than nine in ten rows lie apart"
        yield Suspicion(row, LARGE, name, f"{label} moves by {names.step(name, float(gain[row]))}, {how}")
    known = step[~np.isnan(step)]
    if known.size >= FEW:
        low, high = np.quantile(known, [0.25, 0.75])
        for row in np.flatnonzero(step > high + FAR * (high - low)).tolist():
            typical = names.step(name, float(np.median(known))).removeprefix("+")
            words = f"{label} moves farther than in other answers, where {typical} is usual"
            yield Suspicion(row, UNLIKE, name, words)
    yield from _beyond_edges(answers, usual, j)


def _beyond_loans(answers: Answered, name: Hashable, gain: Floats) -> Iterator[tuple[Hashable, int]]:
    """Yield the rows in which savings rise, or a debt falls, by more than a loan, with the loan."""
    words, units = {*name_words(name)}, answers.names.units
    if is_loan(name) or not words & (SAVINGS | DEBT):
        return
    won = gain if words & SAVINGS else -gain
    for k, loan in enumerate(answers.before.columns):
        is_number = pd.api.types.is_numeric_dtype(answers.before.dtypes.iloc[k])
        if is_loan(loan) and is_number and units.get(loan) == units.get(name):
            for row in np.flatnonzero(won > answers.numbers(k)[0]).tolist():
                yield loan, row


def _beyond_edges(answers: Answered, usual: Usual, j: int) -> Iterator[Suspicion]:
    name, names = answers.after.columns[j], answers.names
    old, new = answers.numbers(j)
    whose: dict[tuple[int, str], list[str]] = {}
    for edge in map(Edge._make, usual.edges):
        if edge.feature != name or edge.is_low or (edge.given is not None and edge.given not in answers.after.columns):
            continue
        group = "all rows"
        beyond = answers.changed[:, j] & (((new > edge.high) & (new > old)) | ((new < edge.low) & (new < old)))
        if edge.given is not None:
            group = _group(names, edge)
            beyond &= _has_level(answers, edge)
        for row in np.flatnonzero(beyond).tolist():
            whose.setdefault((row, "above" if new[row] > old[row] else "below"), []).append(group)
    for (row, where), groups in whose.items():
        value = names.text(name, answers.after.iloc[row, j])
        words = f"{names.label(name)} {value} is {where} 99% of {' and of '.join(groups[:MOST_GROUPS])}"
        yield Suspicion(row, AT_EDGE, name, words)


def _contradictions(answers: Answered, usual: Usual) -> Iterator[Suspicion]:
    """Yield numbers that are high beside a level whose rows have low ones, if one of both changes."""
    names, columns = answers.names, cast("list[Hashable]", list(answers.after.columns))
    for edge in map(Edge._make, usual.edges):
        if not edge.is_low or edge.feature in usual.unchangeable or edge.given not in columns:
            continue
        j, k = columns.index(edge.feature), columns.index(edge.given)
        beyond = (
            _has_level(answers, edge) & (answers.numbers(j)[1] > edge.high) & answers.changed[:, [j, k]].any(axis=1)
        )
        for row in np.flatnonzero(beyond).tolist():
            value = names.text(edge.feature, answers.after.iloc[row, j])
            words = f"{names.label(edge.feature)} {value} is above 99% of {_group(names, edge)}"
            yield Suspicion(row, AT_LEVEL, edge.feature, words)


def _group(names: Names, edge: Edge) -> str:
    return f"those with {names.label(edge.given)} {names.text(edge.given, edge.level)}"


def _has_level(answers: Answered, edge: Edge) -> Bools:
    is_level: Bools = (answers.after[edge.given].astype(object) == edge.level).to_numpy(dtype=bool, na_value=False)
    return is_level


def _along(answers: Answered, usual: Usual) -> Iterator[Suspicion]:
    """Yield changes that come along and are larger than those that are needed."""
    if answers.along is None:
        return
    for row in np.flatnonzero((answers.along & answers.changed).any(axis=1)).tolist():
        steps = {j: _step(answers, usual, row, j) for j in np.flatnonzero(answers.changed[row]).tolist()}
        needed = [step for j, step in steps.items() if not answers.along[row, j]]
        more = [j for j, step in steps.items() if answers.along[row, j] and step > max(needed, default=0.0)]
        if more:
            labels = listed([answers.names.label(answers.after.columns[j]) for j in more])
            verbs = ("comes", "changes") if len(more) == 1 else ("come", "change")
            yield Suspicion(row, ALONG, None, f"{labels} {verbs[0]} along, and {verbs[1]} more than what is needed")


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
