"""Answers that must be reviewed before they are sent, and notes on unusual ones, with reasons.

The reasons are based on the training rows, on the names of the columns and on the other answers. Each has a severity.

"stop": the answer must not be sent.

1. `below the floor`: less plausible than required.
2. The reasons of `mcce.plausibility.stop_reasons`: a past event or fact changes, an education or a duration falls, a
   duration grows by years, a change goes opposite to the usual direction, a number contradicts a level, an amount rises
   from zero to a large value, money has no source, a level becomes "other", "unknown" or a worse situation, a step is
   far, or the decision is. The sparse search prefers answers without them (`mcce.explain.pipeline`).

"note": the answer is unusual, but may be right.

3. `comes along`: an incidental change is a larger step than every needed change. A step is a
   share of the distance between the 5 and the 95 per cent point of training values (`WIDE`), or of all levels if these
   have an order; any other change of level is a whole step.
4. `edge of the data`: a number changes to a value beyond 99 per cent (`EDGE`) of the training rows, or beyond 99
   per cent of those that share one of the answer's levels.
5. `large step`: a number changes by more than the distance of the 5 and the 95 per cent point; or a positive amount
   becomes more than five times as large (`TIMES`), by more than a quarter of that distance. A code, such as a level of
   education, is not an amount.
6. `unlike the others`: a feature changes that changes in fewer than one in a hundred (`RARE`) of at least fifty answers
   (`ENOUGH`); or a number changes by more than the upper quartile of the steps of that feature plus three times their
   interquartile range (`FAR`), given at least twenty steps (`FEW`).

A changed fact, or a duration that grows by years, is a finding about the explainer rather than about single answers
(`OF_COLUMN`): the feature should be fixed or limited. `mcce.suggest_fixed` lists such features, and `MCCE.fit` warns
about facts. The list has one line for the feature: the first answer with the finding, and the number of the others.
Level "all" lists every answer, with its notes. `mcce.report.letters` leaves out every answer of severity "stop", listed
or not.

`benchmarks.suspicious` measures how many answers and real rows are listed, and how many planted errors are found. An
answer that is not listed may still be bad advice.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.plausibility import stop_reasons
from mcce.plausibility.stop_reasons import (
    DURATION,
    FALLS,
    FAR_AWAY,
    FAR_STEP,
    FROM_ZERO,
    NO_WORK,
    PAST,
    UNEXPLAINED_MONEY,
    UNSPECIFIC,
    UNUSUAL_DIRECTION,
    WORSE,
    Edge,
    RuleColumn,
    Stop,
    StopRules,
    Usual,
)
from mcce.report.names import Names, listed, value_text
from mcce.table.dtypes import is_dated

WIDE, EDGE = (0.05, 0.95), (0.01, 0.99)
TIMES, PART = 5.0, 0.25
ENOUGH, RARE, FEW, FAR = 50, 0.01, 20, 3.0
MOST_GROUPS = 2  # groups listed in the words
STOP, NOTE = "stop", "note"
LEVELS = (STOP, "all")
BELOW = "below the floor"
STOP_REASONS = (BELOW, *stop_reasons.REASONS)
ALONG, AT_EDGE, LARGE, UNLIKE = NOTE_REASONS = ("comes along", "edge of the data", "large step", "unlike the others")
REASONS = (*STOP_REASONS, *NOTE_REASONS)
OF_COLUMN = (PAST, DURATION)


@dataclass(frozen=True)
class Answered:
    """Answers and their factuals.

    Attributes
    ----------
    before, after : the factual and the counterfactual of each answer, a row each; the index of `after` is (id, rank)
    changed : marks the cells that differ
    along : marks the incidental changes; None if unknown, as for whole draws
    plausibility, floor : the plausibility of each answer, and the required one; None without a floor
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
        """Return the values of a numeric column before and after."""
        old, new = (each.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan) for each in (self.before, self.after))
        return old, new

    @cached_property
    def as_numbers(self) -> tuple[Floats, Floats]:
        """The values before and after: numbers, dates as numbers, and codes of levels."""
        before, after = np.full(self.changed.shape, np.nan), np.full(self.changed.shape, np.nan)
        for j, column in enumerate(self._columns):
            if column.is_number:
                before[:, j], after[:, j] = self.numbers(j)
            else:
                for numbers, frame in ((before, self.before), (after, self.after)):
                    numbers[:, j] = frame.iloc[:, j].astype(object).map(column.codes).astype(np.float64)
        return before, after

    @cached_property
    def _columns(self) -> list[RuleColumn]:
        """The columns, with codes for values that are not numbers."""
        return [_read_column(self.before.iloc[:, j], self.after.iloc[:, j]) for j in range(self.after.shape[1])]

    def has_level(self, name: Hashable, level: Any) -> Bools:
        """Return which answers have a level in a column; none if there is no such column or level."""
        if name not in self._positions:
            return np.zeros(len(self.after), dtype=bool)
        k = self._positions[name]
        return np.asarray(self.as_numbers[1][:, k] == self._columns[k].codes.get(level, np.nan))

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {name: k for k, name in enumerate(self.after.columns)}

    def rules(self, usual: Usual) -> StopRules:
        """Return the rules that find the reasons of severity "stop"."""
        return StopRules(self._columns, usual, self.names.units)


def _read_column(before: pd.Series[Any], after: pd.Series[Any]) -> RuleColumn:
    """Return the column of two frames; ordered values have increasing codes."""
    dtype = before.dtype
    is_number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        levels, is_ordered = list(dtype.categories), dtype.ordered
    else:
        is_ordered = is_number or is_dated(dtype)
        levels = list(pd.unique(pd.concat([before.astype(object), after.astype(object)]).dropna()))
        levels = sorted(levels) if is_ordered else levels
    codes = {level: float(level if is_number else code) for code, level in enumerate(levels)}
    return RuleColumn(before.name, is_number, bool(is_ordered), codes)


class Suspicion(NamedTuple):
    """A reason to list a row, the feature concerned or None, and the words."""

    row: int
    reason: str
    feature: Hashable
    words: str


def find_suspicious(answers: Answered, usual: Usual, level: str = STOP) -> pd.DataFrame:
    """Return the answers to review before sending, by (id, rank): `severity`, `reasons` by name, and `words`.

    Level "stop" returns the answers of that severity, each finding about a column once; "all" returns all answers with
    a finding.
    """
    if level not in LEVELS:
        raise InputError(f"there is no level {spell(level)} of suspicious answers; {did_you_mean(level, LEVELS)}")
    findings = [*_below(answers), *_along(answers, usual)]
    for stop in answers.rules(usual).find(*answers.as_numbers, answers.changed):
        findings += [_in_words(answers, usual, stop, row) for row in stop.rows.tolist()]
    edges: dict[Hashable, list[Edge]] = defaultdict(list)
    for edge in map(Edge._make, usual.edges):
        edges[edge.feature].append(edge)
    for j in np.flatnonzero(answers.changed.any(axis=0)).tolist():
        findings += _rare_change(answers, j)
        if answers.after.columns[j] in usual.spreads:
            findings += _of_number(answers, usual, j)
            findings += _beyond_edges(answers, edges[answers.after.columns[j]], j)
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
    """Return the findings; those about a column only for its first row and for rows with another reason."""
    has_own = {each.row for each in findings if each.reason not in OF_COLUMN}
    times = Counter((each.reason, each.feature) for each in findings)
    kept, seen = [], set()
    for each in findings:
        cause = (each.reason, each.feature)
        if each.reason in OF_COLUMN and cause not in seen:
            seen.add(cause)
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
        yield Suspicion(row, BELOW, None, f"only {share}% of real rows are at least as unusual")


def _in_words(answers: Answered, usual: Usual, stop: Stop, row: int) -> Suspicion:
    """Return a reason of severity "stop" in words, with the values."""
    reason, j, _, beside = stop
    name, names = answers.after.columns[j], answers.names
    label = names.label(name)
    before, after = (names.text(name, each.iloc[row, j]) for each in (answers.before, answers.after))
    if reason in (DURATION, UNEXPLAINED_MONEY):
        old, new = answers.numbers(j)
        by = names.step(name, float(new[row] - old[row])).removeprefix("+")
    if reason == PAST:
        words = f"{label} changes, although it looks like {usual.unchangeable[name]}"
    elif reason == FALLS:
        words = f"{label} falls"
    elif reason == UNUSUAL_DIRECTION:
        words = _opposite_direction(answers, usual, row, j)
    elif reason == DURATION:
        words = f"{label} grows by {by}"
    elif reason == FROM_ZERO:
        words = f"{label} rises from {before} to {after}"
    elif reason == UNEXPLAINED_MONEY and isinstance(beside, tuple):
        debt = _from_to(answers, row, beside[1])
        words = f"{_from_to(answers, row, j)} and {debt}, together by more than {names.label(beside[0])}"
    elif reason == UNEXPLAINED_MONEY:
        words = f"{label} changes by {by}, which is more than {names.label(beside)}"
    elif reason == FAR_STEP:
        words = _far_step(answers, usual, row, j)
    elif reason == FAR_AWAY:
        steps = [_from_to(answers, row, k) for k in (j, beside) if k is not None]
        words = f"{' and '.join(steps)}: the case is far from the decision"
    elif reason == UNSPECIFIC:
        words = f"{label} changes to {after}, which is not a specific value"
    elif reason == WORSE:
        words = f"{label} changes to {after}, which is usually a worse situation"
    elif reason == NO_WORK:
        words = f"{label} rises from {before} to {after} for an unemployed person"
    else:
        where = "above" if answers.numbers(j)[1][row] > beside.high else "below"
        words = f"{label} {after} is {where} 99% of {_group(names, beside)}"
    return Suspicion(row, reason, name, words)


def _from_to(answers: Answered, row: int, j: int) -> str:
    name, names = answers.after.columns[j], answers.names
    before, after = (names.text(name, each.iloc[row, j]) for each in (answers.before, answers.after))
    return f"{names.label(name)} {_way(answers, row, j)} from {before} to {after}"


def _way(answers: Answered, row: int, j: int) -> str:
    old, new = answers.numbers(j)
    return "rises" if new[row] > old[row] else "falls"


def _opposite_direction(answers: Answered, usual: Usual, row: int, j: int) -> str:
    """Return an unusual direction in words, with the model's usual one if it is known."""
    name, label = answers.after.columns[j], answers.names.label(answers.after.columns[j])
    if name not in usual.directions:
        return f"{label} {_way(answers, row, j)}, which is usually worse"
    way, other = ("falls", "higher") if usual.directions[name] > 0 else ("rises", "lower")
    return f"{label} {way}, although a {other} value usually helps refused cases"


def _far_step(answers: Answered, usual: Usual, row: int, j: int) -> str:
    """Return a far step in words, with the usual bound on its factor."""
    name, names = answers.after.columns[j], answers.names
    before, after = (names.text(name, each.iloc[row, j]) for each in (answers.before, answers.after))
    old, new = (float(each[row]) for each in answers.numbers(j))
    least, most = usual.factors[name]
    more, less = (
        f"more than {value_text(most, 3)} times as high",
        f"less than {value_text(100 * least, 3)}% of {before}",
    )
    usually, way = more if new > old else less, _way(answers, row, j)
    return f"{names.label(name)} {way} from {before} to {after}; among similar accepted cases it is rarely {usually}"


def _rare_change(answers: Answered, j: int) -> Iterator[Suspicion]:
    """Yield the changes of a feature that few answers change."""
    name, rows, n = answers.after.columns[j], np.flatnonzero(answers.changed[:, j]).tolist(), len(answers.after)
    if n >= ENOUGH and len(rows) < RARE * n:
        how = f"{answers.names.label(name)} changes, as in {value_text(len(rows))} of {value_text(n)} answers"
        for row in rows:
            yield Suspicion(row, UNLIKE, name, how)


def _of_number(answers: Answered, usual: Usual, j: int) -> Iterator[Suspicion]:
    """Yield the unusual steps and values of a numeric feature."""
    name, names = answers.after.columns[j], answers.names
    label, spread = names.label(name), usual.spreads[name]
    old, new = answers.numbers(j)
    changed = answers.changed[:, j]
    gain = np.where(changed, new - old, np.nan)  # NaN if one of both is missing
    step = np.abs(gain)

    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(changed & (old > 0.0) & (name in usual.highs), new / old, 1.0)
    for row in np.flatnonzero((step > spread) | ((times > TIMES) & (step > PART * spread))).tolist():
        how = (
            f"to {times[row]:.1f} times its value" if times[row] > TIMES else "more than the range of nine in ten rows"
        )
        yield Suspicion(row, LARGE, name, f"{label} changes by {names.step(name, float(gain[row]))}, {how}")
    known = step[~np.isnan(step)]
    if known.size >= FEW:
        low, high = np.quantile(known, [0.25, 0.75])
        for row in np.flatnonzero(step > high + FAR * (high - low)).tolist():
            typical = names.step(name, float(np.median(known))).removeprefix("+")
            words = f"{label} changes by more than in the other answers, where a step of {typical} is typical"
            yield Suspicion(row, UNLIKE, name, words)


def _beyond_edges(answers: Answered, edges: Sequence[Edge], j: int) -> Iterator[Suspicion]:
    name, names = answers.after.columns[j], answers.names
    old, new = answers.numbers(j)
    rises, falls = (answers.changed[:, j] & way for way in (new > old, new < old))
    groups_beyond: dict[tuple[int, str], list[str]] = {}
    for edge in edges:
        if edge.contradicts:
            continue
        beyond = (rises & (new > edge.high)) | (falls & (new < edge.low))
        if not beyond.any():
            continue
        if edge.given is not None:
            beyond &= answers.has_level(edge.given, edge.level)
        for row in np.flatnonzero(beyond).tolist():
            group = "all cases" if edge.given is None else _group(names, edge)
            groups_beyond.setdefault((row, "above" if rises[row] else "below"), []).append(group)
    for (row, where), groups in groups_beyond.items():
        value = names.text(name, answers.after.iloc[row, j])
        words = f"{names.label(name)} {value} is {where} 99% of {' and of '.join(groups[:MOST_GROUPS])}"
        yield Suspicion(row, AT_EDGE, name, words)


def _group(names: Names, edge: Edge) -> str:
    return f"cases with {names.label(edge.given)} {names.text(edge.given, edge.level)}"


def _along(answers: Answered, usual: Usual) -> Iterator[Suspicion]:
    """Yield incidental changes that are larger than the needed ones."""
    if answers.along is None:
        return
    for row in np.flatnonzero((answers.along & answers.changed).any(axis=1)).tolist():
        steps = {j: _step(answers, usual, row, j) for j in np.flatnonzero(answers.changed[row]).tolist()}
        needed = [step for j, step in steps.items() if not answers.along[row, j]]
        more = [j for j, step in steps.items() if answers.along[row, j] and step > max(needed, default=0.0)]
        if more:
            labels = listed([answers.names.label(answers.after.columns[j]) for j in more])
            verb = "comes along and changes" if len(more) == 1 else "come along and change"
            yield Suspicion(row, ALONG, None, f"{labels} {verb} by more than the needed changes")


def _step(answers: Answered, usual: Usual, row: int, j: int) -> float:
    """Return the size of a change, as a share of the usual spread."""
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
