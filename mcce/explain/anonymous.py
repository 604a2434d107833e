"""Counterfactuals that at least k training people share on some keys (`mcce.k_anonymous`).

The linkage attack reads a returned row as the data of a training person (Goethals et al. 2023). Against it, their CF-K
widens the keys of a returned row until k training people fall into it. So here, after the search:

1. A row whose keys are those of at least k training people is returned as it is.
2. Else the search is made once more among candidates that k people share. The best of these takes the place of the row
   if it has no more changes.
3. Else the keys of the row are widened to a box: an interval of numbers, dates or ranks, a set of levels, with a
   missing value or not, around the row.
   a. One number or rank: the smallest interval that has k people, exactly.
   b. Several keys: people are taken in one after the other, each time those that cost the least width per person
      gained; then every end and level that k people do not need is taken back. What costs is the information loss: of
      an interval its share of the training range, of a set its further levels by the number of all others, the sum over
      the keys. A box of loss c holds nobody whom to take in alone costs more than c, so that only people near the row
      are looked at.
   c. Ends are rounded outwards to few digits, or whole months and years of dates: they are read more easily, and need
      not be the values of anybody.
   d. An interval or set of a changed feature does not have the factual's own value in it, if that can be helped.
4. Boxes are tried in this order, until the decision holds all over one: of the changed keys alone before all keys; made
   of people whose keys keep the decision before any; ends with few digits before more. If it holds all over none, the
   one is taken where the share of values that keep it is the largest. That share is asked of the model, at values
   spread evenly over the changed keys of the box, all else as in the row; a value that breaks a constraint counts as
   one that does not keep the decision.
5. The row that is returned is the best of these values (plausible, few changes, near). It depends on the box, the
   factual and the model, not on where in the box the row was: it tells no more than the box does. Where no value keeps
   the decision, nothing is returned.

Unchanged keys count as all others when people are matched, since a row says them as well. They stay at the factual's
own value in the row that is returned, and are told as widened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.exceptions import InputError
from mcce.explain.copies import TrainingRows
from mcce.explain.distances import changed_columns, changes, gower_sum
from mcce.explain.factuals import Factuals
from mcce.explain.winners import Winners
from mcce.report.ranges import ToldRange
from mcce.rng import hash_rows
from mcce.storage.fields import FLOAT, INT, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature, Schema
from mcce.table.dtypes import is_dated

if TYPE_CHECKING:
    from mcce.explain.plan import Plan

NEAREST = 256  # distinct people that are looked at first, and 4 times as many each time that these are too few
COMPARED = 16  # of whom to take in next
ASKED_ABOUT = 48  # people whose keys the model is asked about, to widen where the decision holds
VALUES = 33  # of one number, spread over its interval
POINTS, MOST_POINTS = 64, 256  # of several keys, spread over a box; all combinations if there are no more than so many
FINENESS = (5.0, 50.0)  # steps of the rounding of ends, by the width of the interval
DAYS_OF_MONTHS, DAYS_OF_YEARS = 45, 1100  # from how many on ends of dates are those of months, and of years
TOGETHER = 256  # rows that are widened at a time


@stateful("TrainingKeys")
@dataclass(frozen=True)
class TrainingKeys:
    """The distinct keys of the training people, encoded, and how many people have each of them.

    Attributes
    ----------
    columns : positions of the keys.
    values : a row for each distinct combination.
    counts : how many people have it.
    """

    columns: tuple[int, ...] = stored(tuple, "keys", of=stored(int, least=0), filled=True)
    values: Floats = stored(FLOAT, "distinct", "keys", finite="or missing")
    counts: Ints = stored(INT, "distinct", least=1, filled=True)

    def check_state(self) -> None:
        """Refuse keys that are there twice."""
        require(len(set(self.columns)) == len(self.columns), "columns are there twice")
        require(np.unique(hash_rows(self.values)).size == len(self.counts), "values are there twice")

    @classmethod
    def of(cls, matrix: Floats, columns: Sequence[int]) -> TrainingKeys:
        """Count the keys of encoded training rows."""
        values = matrix[:, list(columns)] + 0.0  # no -0
        _, first, counts = np.unique(hash_rows(values), return_index=True, return_counts=True)
        by_value = np.lexsort(values[first].T[::-1])  # the order of the rows tells nothing
        return cls(tuple(int(j) for j in columns), np.ascontiguousarray(values[first][by_value]), counts[by_value])

    @cached_property
    def _hashed(self) -> tuple[UInts, Ints]:
        hashes = hash_rows(self.values)
        order = np.argsort(hashes)
        return hashes[order], self.counts[order]

    def count(self, rows: Floats) -> Ints:
        """Return how many people have the keys of each encoded row."""
        known, counts = self._hashed
        asked = hash_rows(rows[:, list(self.columns)])
        place = np.minimum(np.searchsorted(known, asked), known.size - 1)
        return np.where(known[place] == asked, counts[place], 0)


@dataclass(frozen=True)
class Anonymity:
    """The demand that at least `k` training people share the keys of a returned row."""

    k: int
    keys: TrainingKeys

    def contain(self, rows: Floats) -> Bools:
        """Return which encoded rows fewer than k people share."""
        return np.asarray(self.keys.count(rows) < self.k)


@dataclass(frozen=True)
class Excluded:
    """Rows that no counterfactual may be: copies of training rows, or those that too few people share."""

    copies: TrainingRows | None
    anonymity: Anonymity

    def contain(self, rows: Floats) -> Bools:
        """Return which encoded rows are among them."""
        found = self.anonymity.contain(rows)
        return found if self.copies is None else found | self.copies.contain(rows)


def anonymity_of(k: int, keys: TrainingKeys) -> Anonymity:
    """Return the demand; more people than there are is an error."""
    n_people = int(keys.counts.sum())
    if k > n_people:
        raise InputError(
            f"k_anonymous asks for {k} training people behind every row, and there are {n_people} training rows; ask "
            "for fewer, or fit on more rows."
        )
    return Anonymity(k, keys)


@dataclass(frozen=True)
class Box:
    """A row of keys, widened.

    Attributes
    ----------
    low, high : the ends of each interval; NaN where no number or rank is in it, and for unordered levels.
    missing : whether a missing value is in it.
    levels : for each key, which unordered levels are in it; empty for the others.
    """

    low: Floats
    high: Floats
    missing: Bools
    levels: tuple[Bools, ...]

    def contain(self, values: Floats) -> Bools:
        """Return which rows of keys are in the box."""
        inside = np.ones(values.shape[0], dtype=bool)
        for j, levels in enumerate(self.levels):
            inside &= self.contain_cells(j, values[:, j], levels)
        return inside

    def contain_cells(self, j: int, cells: Floats, levels: Bools) -> Bools:
        """Return which values of one key are in the box."""
        lacking = np.isnan(cells)
        if levels.size:
            known = levels[np.where(lacking, 0, cells).astype(np.intp)]
        else:
            with np.errstate(invalid="ignore"):
                known = (cells >= self.low[j]) & (cells <= self.high[j])
        return np.where(lacking, self.missing[j], known)

    def with_interval(self, j: int, low: float, high: float) -> Box:
        """Return the box with other ends of one key."""
        lows, highs = self.low.copy(), self.high.copy()
        lows[j], highs[j] = low, high
        return replace(self, low=lows, high=highs)

    def size(self, j: int) -> int:
        """Return how many things one key may be, of which an interval with different ends counts as two."""
        inside = int(self.levels[j].sum()) if self.levels[j].size else int(self.low[j] == self.low[j])
        return inside + int(self.missing[j]) + int(self.low[j] < self.high[j])


class Widening:
    """Widens rows of keys to boxes (step 3).

    Parameters
    ----------
    anonymity : how many people, and who there are.
    features : the columns of the keys.
    """

    def __init__(self, anonymity: Anonymity, features: Sequence[Feature]) -> None:
        self.k = anonymity.k
        self.values, self.counts = anonymity.keys.values, anonymity.keys.counts
        self.features = tuple(features)
        self.unordered = [f.kind == "categorical" for f in features]
        self.width = np.array([self._whole(f) for f in features])

    @staticmethod
    def _whole(feature: Feature) -> float:
        """Return the width of all that a key may be: a range, or the number of further levels."""
        if feature.kind == "categorical":
            return float(max(feature.n_levels + feature.has_missing - 1, 1))
        return feature.span or 1.0

    def exact(self, row: Floats) -> Box:
        """Return the box that holds a row of keys alone."""
        lacking = np.isnan(row)
        levels = []
        for j, feature in enumerate(self.features):
            mask = np.zeros(feature.n_levels if self.unordered[j] else 0, dtype=bool)
            if mask.size and not lacking[j]:
                mask[int(row[j])] = True
            levels.append(mask)
        ends = np.where(self.unordered, np.nan, row)
        return Box(ends, ends.copy(), lacking, tuple(levels))

    def loss(self, box: Box) -> Floats:
        """Return the information loss of each key of a box, from 0 to 1."""
        lost = np.zeros(len(self.features))
        for j in range(lost.size):
            if self.unordered[j]:
                lost[j] = (box.levels[j].sum() + box.missing[j] - 1) / self.width[j]
            elif not np.isnan(box.low[j]):
                lost[j] = (box.high[j] - box.low[j]) / self.width[j] + box.missing[j]
        return np.minimum(lost, 1.0)

    def costs(self, box: Box, values: Floats) -> Floats:
        """Return the information loss of taking each row of keys into a box, the sum over keys."""
        total = np.zeros(values.shape[0])
        for j in range(len(self.features)):
            cells = values[:, j]
            lacking = np.isnan(cells)
            if self.unordered[j]:
                total += ~box.contain_cells(j, cells, box.levels[j]) / self.width[j]
                continue
            if np.isnan(box.low[j]):  # only a missing value so far
                total += ~lacking
                continue
            beyond = np.maximum(box.low[j] - cells, 0.0) + np.maximum(cells - box.high[j], 0.0)
            total += np.where(lacking, float(not box.missing[j]), beyond / self.width[j])
        return total

    def take_in(self, box: Box, rows: Floats) -> Box:
        """Return the smallest box that holds another box and some rows of keys."""
        lacking = np.isnan(rows)
        levels = [mask.copy() for mask in box.levels]
        for j, mask in enumerate(levels):
            if mask.size:
                mask[rows[~lacking[:, j], j].astype(np.intp)] = True
        ends = np.where(self.unordered, np.nan, rows)
        low, high = np.fmin.reduce(ends, axis=0), np.fmax.reduce(ends, axis=0)
        return Box(np.fmin(box.low, low), np.fmax(box.high, high), box.missing | lacking.any(axis=0), tuple(levels))

    def widen(self, row: Floats, free: Bools, anchors: Bools) -> Box | None:
        """Return a box around a row of keys with k people in it; None if there is none.

        Parameters
        ----------
        row : encoded keys.
        free : which keys may be widened; people have to agree with the others.
        anchors : whom the box may be made of.
        """
        alike = self.agree(row, ~free)
        anchors = anchors & alike
        start = self.exact(row)
        (places,) = np.nonzero(free)
        if places.size == 1 and not self.unordered[places[0]] and not np.isnan(row[places[0]]):
            smallest = self._smallest_interval(row, int(places[0]), alike, anchors)
            if smallest is not None:
                return smallest
        (near,) = np.nonzero(anchors)
        if not near.size:
            return None
        costs = self.costs(start, self.values[near])
        by_cost = np.argsort(costs, kind="stable")
        n_looked_at = NEAREST
        while True:
            some = by_cost[:n_looked_at]
            among = self.take_in(start, self.values[near[some]])
            people = np.flatnonzero(alike & among.contain(self.values))
            box = self._grow(start, people, anchors[people])
            if some.size == near.size or (box is not None and self._total(start, box) <= costs[some[-1]]):
                return None if box is None else self._shrink(box, row, people)
            n_looked_at *= 4

    def agree(self, row: Floats, which: Bools) -> Bools:
        """Return which people agree with a row in some keys."""
        ours, theirs = row[which], self.values[:, which]
        return np.asarray(((theirs == ours) | (np.isnan(theirs) & np.isnan(ours))).all(axis=1))

    def _total(self, start: Box, box: Box) -> float:
        """Return what a box costs beyond another one; more than its loss, as that is at most 1 a key."""
        ends = np.where(np.isnan(box.low), 0.0, (box.high - box.low) / self.width)
        both = np.array([m.sum() if m.size else 0 for m in box.levels]) - [m.sum() for m in start.levels]
        more = box.missing & ~start.missing | (start.missing & (np.isnan(start.low) & ~np.isnan(box.low)))
        return float(ends.sum() + (both / self.width).sum() + more.sum())

    def _grow(self, box: Box, people: Ints, anchors: Bools) -> Box | None:
        """Take people in until there are k (step b)."""
        values, counts = self.values[people], self.counts[people]
        inside = box.contain(values)
        while (n_inside := int(counts[inside].sum())) < self.k:
            costs = self.costs(box, values)
            (who,) = np.nonzero(anchors & ~inside)
            if not who.size:
                return None
            who = who[np.argsort(costs[who], kind="stable")[:COMPARED]]
            grown = [self.take_in(box, values[[i]]) for i in who]
            holds = [each.contain(values) for each in grown]
            gains = np.array([min(int(counts[each].sum()), self.k) for each in holds]) - n_inside
            best = int(np.argmax(gains / np.maximum(costs[who], 1e-12)))
            box, inside = grown[best], holds[best]
        return box

    def _shrink(self, box: Box, row: Floats, people: Ints) -> Box:
        """Take back ends and levels that k people do not need, those that cost the most first (step b)."""
        people = people[box.contain(self.values[people])]
        while True:
            best: tuple[float, Box] | None = None
            for smaller in self._smaller(box, row, self.values[people]):
                if self.counts[people][smaller.contain(self.values[people])].sum() >= self.k:
                    left = float(self.loss(smaller).sum())
                    if best is None or left < best[0]:
                        best = left, smaller
            if best is None:
                return box
            box = best[1]
            people = people[box.contain(self.values[people])]

    def _smaller(self, box: Box, row: Floats, values: Floats) -> Iterator[Box]:
        """Yield the boxes with one end moved inwards to the next person, or one level less, that hold the row."""
        for j, mask in enumerate(box.levels):
            if box.missing[j] and not np.isnan(row[j]):
                yield replace(box, missing=box.missing & (np.arange(row.size) != j))
            for level in np.flatnonzero(mask):
                if level != row[j]:
                    fewer = mask.copy()
                    fewer[level] = False
                    yield replace(box, levels=(*box.levels[:j], fewer, *box.levels[j + 1 :]))
            if mask.size or np.isnan(box.low[j]):
                continue
            if np.isnan(row[j]):
                yield box.with_interval(j, np.nan, np.nan)
            cells = values[~np.isnan(values[:, j]), j]
            if np.isnan(row[j]):
                low = cells[cells > box.low[j]].min(initial=box.high[j])
                high = cells[cells < box.high[j]].max(initial=box.low[j])
            else:
                low = min(cells[cells > box.low[j]].min(initial=row[j]), row[j])
                high = max(cells[cells < box.high[j]].max(initial=row[j]), row[j])
            if low > box.low[j]:
                yield box.with_interval(j, low, box.high[j])
            if high < box.high[j]:
                yield box.with_interval(j, box.low[j], high)

    def _smallest_interval(self, row: Floats, j: int, alike: Bools, anchors: Bools) -> Box | None:
        """Return the box with the smallest interval of one key that has k people (step a).

        Ends are values of `anchors`, and it has no one in it who is alike and no anchor. Of equally small ones it is
        that with the most people.
        """
        own = float(row[j])
        cells = self.values[:, j]
        known = alike & ~np.isnan(cells)
        others = cells[known & ~anchors & (cells != own)]
        least, most = others[others < own].max(initial=-np.inf), others[others > own].min(initial=np.inf)
        inside = known & (cells > least) & (cells < most)
        values = np.append(cells[inside], own)
        ends, place = np.unique(values, return_inverse=True)
        upto = np.append(0, np.cumsum(np.bincount(place, np.append(self.counts[inside], 0)))).astype(np.int64)
        at = int(np.searchsorted(ends, own))
        begin = np.arange(at + 1)
        end = np.maximum(np.searchsorted(upto, upto[begin] + self.k) - 1, at)  # the last one in it
        begin, end = begin[end < ends.size], end[end < ends.size]
        if not begin.size:
            return None
        order = np.lexsort((-(upto[end + 1] - upto[begin]), ends[end] - ends[begin]))
        return self.exact(row).with_interval(j, float(ends[begin[order[0]]]), float(ends[end[order[0]]]))

    def count(self, box: Box) -> int:
        """Return how many people are in a box."""
        return int(self.counts[box.contain(self.values)].sum())

    def rounded(self, box: Box, fineness: float, own: Floats) -> Box:
        """Return a box whose intervals end at numbers with few digits, wherever `own` is not taken in (step c)."""
        for j, feature in enumerate(self.features):
            if feature.is_numeric and box.low[j] < box.high[j]:
                was_outside = not box.low[j] <= own[j] <= box.high[j]
                for finer in (1.0, 10.0, 100.0):
                    low, high = _round_ends(feature, float(box.low[j]), float(box.high[j]), finer * fineness)
                    low, high = max(low, min(feature.low, box.low[j])), min(high, max(feature.high, box.high[j]))
                    if not (was_outside and low <= own[j] <= high):
                        box = box.with_interval(j, low, high)
                        break
        return box


def _round_ends(feature: Feature, low: float, high: float, fineness: float) -> tuple[float, float]:
    """Return ends that are rounded outwards to a step that is 1, 2 or 5 with zeros, or to months and years."""
    if is_dated(feature.dtype):
        return _round_dates(feature, low, high) if fineness == FINENESS[0] else (low, high)
    step = nice_step((high - low) / fineness)
    if feature.grid.decimals is not None:
        step = max(step, 10.0**-feature.grid.decimals)
    decimals = max(0, -int(np.floor(np.log10(step))))
    ends = np.round([np.floor(low / step) * step, np.ceil(high / step) * step], decimals)
    held = feature.grid.put(ends)
    return min(float(held[0]), low), max(float(held[1]), high)


def nice_step(width: float) -> float:
    """Return the largest of 1, 2 and 5, with zeros behind or before them, that is not larger than a width.

    Examples
    --------
    >>> nice_step(1506.0), nice_step(0.034), nice_step(5.0)
    (1000.0, 0.02, 5.0)
    """
    ten = 10.0 ** np.floor(np.log10(width))
    return float(max((s for s in (1.0, 2.0, 5.0) if s * ten <= width * (1 + 1e-9)), default=1.0) * ten)


def _round_dates(feature: Feature, low: float, high: float) -> tuple[float, float]:
    """Return the first day of the month or year of one end, and the last one of that of the other."""
    ends = pd.Series(feature.decode(np.array([low, high])))
    if not isinstance(ends.iloc[0], pd.Timestamp):
        return low, high
    days = (ends.iloc[1] - ends.iloc[0]).days
    if days < DAYS_OF_MONTHS:
        return low, high
    unit = "Y" if days >= DAYS_OF_YEARS else "M"
    try:
        plain = ends.dt.tz_localize(None) if ends.dt.tz is not None else ends
        first = plain.iloc[0].to_period(unit).start_time.normalize()
        last = plain.iloc[1].to_period(unit).end_time.normalize()
        told = pd.Series([first, max(last, plain.iloc[1])]).dt.tz_localize(ends.dt.tz).astype(ends.dtype)
        rounded = feature.encode(told, "a range")
    except (InputError, ValueError, OverflowError):  # an hour that the zone leaves out, a year that no date has
        return low, high
    return min(float(rounded[0]), low), max(float(rounded[1]), high)


def points_of(box: Box, which: Bools, row: Floats, features: Sequence[Feature], seed: int) -> Floats:
    """Return rows of keys that are spread evenly over some keys of a box, the others as in a row (step 4)."""
    places = [j for j in np.flatnonzero(which).tolist() if box.size(j) > 1]
    each = VALUES if len(places) == 1 else max(3, int(MOST_POINTS ** (1 / max(len(places), 1))))
    axes = [_axis(box, j, features[j], each) for j in places]
    n_all = float(np.prod([float(axis.size) for axis in axes])) if axes else 1.0
    if n_all <= MOST_POINTS:
        chosen = np.array(list(product(*axes)), dtype=np.float64).reshape(int(n_all), len(axes))
    else:  # each value of a key as often as any other, in an order of chance
        rng = np.random.default_rng(seed)
        n = max(POINTS, *(axis.size for axis in axes))
        chosen = np.column_stack([rng.permutation(np.resize(axis, n)) for axis in axes])
    points = np.repeat(row[None, :], chosen.shape[0], axis=0)
    points[:, places] = chosen
    return points


def _axis(box: Box, j: int, feature: Feature, n: int) -> Floats:
    """Return the values of one key of a box: its levels, or numbers with few digits from end to end."""
    lacking = [np.nan] if box.missing[j] else []
    if box.levels[j].size:
        return np.concatenate([np.flatnonzero(box.levels[j]).astype(np.float64), lacking])
    if np.isnan(box.low[j]):
        return np.array(lacking)
    low, high = float(box.low[j]), float(box.high[j])
    if not feature.is_numeric:
        return np.concatenate([np.arange(low, high + 1), lacking])
    between = np.linspace(low, high, n)
    if low < high:
        step = nice_step((high - low) / n)
        decimals = max(0, -int(np.floor(np.log10(step))))
        between = np.unique(np.clip(feature.grid.put(np.round(np.round(between / step) * step, decimals)), low, high))
        between[[0, -1]] = low, high
    return np.concatenate([np.unique(between), lacking])


@dataclass(frozen=True)
class Anonymised:
    """Winners that k people share, and what became of them.

    Attributes
    ----------
    winners : the rows that are returned.
    told : their widened cells.
    people, people_alike : how many training people are in the box of each row, and how many of these agree with the
        factual in the keys that do not change.
    information_loss, stays_valid, gower_cost : as `mcce.k_anonymous` says.
    """

    winners: Winners
    told: tuple[ToldRange, ...]
    people: Ints
    people_alike: Ints
    information_loss: Floats
    stays_valid: Floats
    gower_cost: Floats


@dataclass
class _Try:
    """A row that is to be widened, while boxes for it are tried."""

    row: Floats
    own: Floats
    owner: int
    changed: Bools  # of the keys
    kept: Bools  # people whose keys keep the decision
    best: _Widened | None = None


@dataclass(frozen=True)
class _Widened:
    """A box, the row that is returned for it, what the model says of that, and the share that keeps the decision."""

    box: Box
    row: Floats
    score: Any
    share: float


Again = Callable[["Plan", Ints], Winners]
Judge = Callable[[Floats, Ints], tuple[Bools, npt.NDArray[Any]]]


class Anonymiser:
    """Puts rows that k people share in the place of others.

    Parameters
    ----------
    anonymity : the demand.
    schema : the columns.
    mutable : positions of the columns that may change.
    judge : function of rows and the positions of their factuals, completed by relations before: which of them may be
        returned, and what the model says of them.
    complete : function of rows and their factuals that computes what relations determine.
    score : function of rows and positions of their factuals: scores of plausibility, and the least one.
    seed : of the values that the model is asked about.
    """

    def __init__(
        self,
        anonymity: Anonymity,
        schema: Schema,
        judge: Judge,
        complete: Callable[[Floats, Floats], Floats],
        believable: Callable[[Floats, Ints], Bools],
        seed: int,
    ) -> None:
        self.columns = list(anonymity.keys.columns)
        self.features = schema.features
        self.key_features = [schema.features[j] for j in self.columns]
        self.widening = Widening(anonymity, self.key_features)
        self.judge, self.complete, self.believable = judge, complete, believable
        self.seed = seed
        self.asked = 0

    def widen(self, rows: Floats, owner: Ints, factuals: Floats) -> list[_Widened | None]:
        """Return for each row its box and the row that is returned for it; None where nothing keeps the decision."""
        tries = [
            _Try(
                row,
                factuals[i],
                int(i),
                changed_columns(row[None, self.columns], factuals[i][None, self.columns])[0],
                np.zeros(self.widening.counts.size, dtype=bool),
            )
            for row, i in zip(rows, owner)
        ]
        everybody = np.ones(self.widening.counts.size, dtype=bool)
        for aside in (True, False):  # the factual's own values are not in the range of what changes, or they may be
            left = [each for each in tries if each.best is None]
            for of_all in (False, True):
                left = self._open(left)
                self._ask_people(left, of_all, aside)
                boxes = [self._box(each, of_all, aside, each.kept) for each in left]
                self._look(left, boxes)
                left = self._open(left)
                self._look(left, [self._box(each, of_all, aside, everybody) for each in left])
        return [each.best for each in tries]

    @staticmethod
    def _open(tries: Sequence[_Try]) -> list[_Try]:
        """Return the rows for which no box is found that keeps the decision everywhere."""
        return [each for each in tries if each.best is None or each.best.share < 1.0]

    def _anchors(self, each: _Try, aside: bool) -> Bools:
        """Return whom a box may be made of: on the same side of the factual as the row, in keys that change."""
        allowed = np.ones(self.widening.counts.size, dtype=bool)
        row, own = each.row[self.columns], each.own[self.columns]
        for j in np.flatnonzero(each.changed) if aside else ():
            cells = self.widening.values[:, j]
            if self.widening.unordered[j] or np.isnan(own[j]) or np.isnan(row[j]):
                allowed &= ~((cells == own[j]) | (np.isnan(cells) & np.isnan(own[j])))
            else:
                allowed &= (cells > own[j]) if row[j] > own[j] else (cells < own[j])
        return allowed

    def _box(self, each: _Try, of_all: bool, aside: bool, people: Bools) -> Box | None:
        free = np.ones(len(self.columns), dtype=bool) if of_all else each.changed
        if not free.any():
            return None
        return self.widening.widen(each.row[self.columns], free, self._anchors(each, aside) & people)

    def _ask_people(self, tries: Sequence[_Try], of_all: bool, aside: bool) -> None:
        """Find the people near each row whose changed keys, put into it, keep the decision."""
        rows, at, who = [], [], []
        for i, each in enumerate(tries):
            keys = each.row[self.columns]
            free = np.ones(len(self.columns), dtype=bool) if of_all else each.changed
            (people,) = np.nonzero(self.widening.agree(keys, ~free) & self._anchors(each, aside))
            costs = self.widening.costs(self.widening.exact(keys), self.widening.values[people])
            people = people[np.argsort(costs, kind="stable")[:ASKED_ABOUT]]
            each.kept[:] = False
            filled = np.repeat(each.row[None, :], people.size, axis=0)
            put = np.array(self.columns)[each.changed]
            filled[:, put] = self.widening.values[people][:, each.changed]
            rows.append(filled)
            at.append(np.full(people.size, i))
            who.append(people)
        if not sum(part.shape[0] for part in rows):
            return
        position, person = np.concatenate(at), np.concatenate(who)
        of = [tries[i] for i in position]
        completed = self.complete(np.concatenate(rows), np.array([each.own for each in of]))
        valid, _ = self._judged(completed, of)
        for i, p in zip(position[valid], person[valid]):
            tries[i].kept[p] = True

    def _judged(self, rows: Floats, of: Sequence[_Try]) -> tuple[Bools, npt.NDArray[Any]]:
        owner = np.array([each.owner for each in of], dtype=np.int64)
        self.asked += rows.shape[0]
        return self.judge(rows, owner)

    def _look(self, tries: Sequence[_Try], boxes: Sequence[Box | None]) -> None:
        """Ask how much of each box keeps the decision, with ends of few digits first; keep the best (steps 4 and 5)."""
        made = [(each, box) for each, box in zip(tries, boxes) if box is not None]
        for fineness in (*FINENESS, np.inf):
            looked_at = [
                (each, box if fineness == np.inf else self.widening.rounded(box, fineness, each.own[self.columns]))
                for each, box in made
                if each.best is None or each.best.share < 1.0
            ]
            if looked_at:
                self._look_at(looked_at)

    def _look_at(self, made: Sequence[tuple[_Try, Box]]) -> None:
        parts = []
        for each, box in made:
            keys = points_of(box, each.changed, each.row[self.columns], self.key_features, self.seed)
            points = np.repeat(each.row[None, :], keys.shape[0], axis=0)
            points[:, self.columns] = keys
            parts.append(self.complete(points, np.repeat(each.own[None, :], keys.shape[0], axis=0)))
        sizes = np.array([part.shape[0] for part in parts])
        rows, ends = np.concatenate(parts), np.cumsum(sizes)
        of = [each for (each, _), n in zip(made, sizes) for _ in range(n)]
        valid, scores = self._judged(rows, of)
        for (each, box), begin, end in zip(made, ends - sizes, ends):
            keeps = valid[begin:end] & box.contain(rows[begin:end][:, self.columns])
            share = float(keeps.mean())
            if keeps.any() and (each.best is None or share > each.best.share):
                best = begin + self._best(rows[begin:end], keeps, each)
                each.best = _Widened(box, rows[best], scores[best], share)

    def _best(self, rows: Floats, keeps: Bools, each: _Try) -> int:
        """Return the place of the row to return: a believable one, with few changes, near the factual."""
        owner = np.full(rows.shape[0], each.owner)
        own = np.repeat(each.own[None, :], rows.shape[0], axis=0)
        doubtful = np.ones(rows.shape[0], dtype=bool)
        doubtful[keeps] = ~self.believable(rows[keeps], owner[keeps])
        n_changes, steps = (distance(self.features).sums(rows, own) for distance in (changes, gower_sum))
        return int(np.lexsort((steps, n_changes, doubtful, ~keeps))[0])

    def told(self, place: int, box: Box) -> Iterator[ToldRange]:
        """Yield the cells of a box that hold more than one value."""
        for j, feature in enumerate(self.key_features):
            if box.size(j) > 1:
                yield _told(place, feature, box, j)


def _told(place: int, feature: Feature, box: Box, j: int) -> ToldRange:
    missing = bool(box.missing[j])
    if feature.is_numeric:
        low, high = pd.Series(feature.decode(np.array([box.low[j], box.high[j]]))).astype(object)
        return ToldRange(place, feature.name, low, high, missing=missing)
    mask = box.levels[j]
    inside = np.flatnonzero(mask) if mask.size else np.arange(box.low[j], box.high[j] + 1)
    levels = tuple(pd.Series(feature.decode(inside.astype(np.float64))).astype(object))
    ends = (levels[0], levels[-1]) if feature.kind == "ordered" else (None, None)
    return ToldRange(place, feature.name, ends[0], ends[1], levels, missing)


def replace_rows(best: Winners, shared: Winners, is_shared: Bools) -> tuple[Winners, Bools]:
    """Return winners in which rows that few people share are replaced by others that many do (step 2).

    A row of `shared` is taken if it has no more changes, and is not there already; the second value says which rows
    are shared now.
    """
    rows, scores, plausibility = best.rows.copy(), best.scores.copy(), best.plausibility.copy()
    measures, is_shared = best.measures.copy(), is_shared.copy()
    taken = {(int(i), key) for i, key in zip(best.owner[is_shared], hash_rows(best.rows[is_shared]).tolist())}
    keys = hash_rows(shared.rows).tolist()
    for place in np.flatnonzero(~is_shared):
        i = int(best.owner[place])
        for other in np.flatnonzero(shared.owner == i):
            if (i, keys[other]) not in taken and shared.measures[other, 0] <= best.measures[place, 0]:
                taken.add((i, keys[other]))
                rows[place], scores[place] = shared.rows[other], shared.scores[other]
                plausibility[place], measures[place] = shared.plausibility[other], shared.measures[other]
                is_shared[place] = True
                break
    cost = replace(best.cost, asked=best.cost.asked + shared.cost.asked)
    replaced = replace(best, rows=rows, scores=scores, plausibility=plausibility, measures=measures, cost=cost)
    return replaced, is_shared


def anonymise(plan: Plan, factuals: Factuals, best: Winners, again: Again) -> Anonymised:
    """Return winners that k people share (steps 1 to 5).

    Parameters
    ----------
    plan, factuals : what was asked, and for whom.
    best : what was found without the demand, in the order of the factuals, with measures.
    again : searches once more, for some factuals, by another plan; what it returns is as `best`.
    """
    anonymity = plan.anonymity
    assert anonymity is not None
    keys = anonymity.keys
    is_shared = keys.count(best.rows) >= anonymity.k
    winners = best
    if not is_shared.all():
        shared = again(replace(plan, only_shared=True), np.unique(best.owner[~is_shared]))
        shared = shared.take(keys.count(shared.rows) >= anonymity.k)
        winners, is_shared = replace_rows(best, shared, is_shared)
    anonymiser = _anonymiser(plan, anonymity, factuals)
    (few,) = np.nonzero(~is_shared)
    found: dict[int, _Widened | None] = {}
    for begin in range(0, few.size, TOGETHER):
        some = few[begin : begin + TOGETHER]
        found |= zip(some.tolist(), anonymiser.widen(winners.rows[some], winners.owner[some], factuals.matrix))
    rows, scores = winners.rows.copy(), winners.scores.astype(object)
    share, loss = np.ones(best.owner.size), np.zeros(best.owner.size)
    boxes = {}
    kept = np.ones(best.owner.size, dtype=bool)
    for place, each in found.items():
        if each is None:
            kept[place] = False
            continue
        rows[place], scores[place], share[place] = each.row, each.score, each.share
        boxes[place], loss[place] = each.box, float(anonymiser.widening.loss(each.box).mean())
    kept &= _first_of_each(winners.owner, rows, kept)
    own = factuals.matrix[winners.owner]
    people, alike = keys.count(rows), keys.count(rows)
    for place, box in boxes.items():
        people[place] = anonymiser.widening.count(box)
        alike[place] = _count_alike(
            anonymiser.widening, box, rows[place, anonymiser.columns], own[place, anonymiser.columns]
        )
    owner = winners.owner
    plausibility = winners.plausibility.copy()
    (moved,) = np.nonzero(np.isin(np.arange(owner.size), list(boxes)))
    if plan.plausibility is not None and moved.size:
        fold = plan.plausibility.fold_of(factuals.matrix)
        origins = plan.plausibility.origins(factuals.matrix, owner[moved])
        plausibility[moved] = plan.plausibility.score(rows[moved], fold[owner[moved]], origins)
    cost = replace(winners.cost, asked=winners.cost.asked + anonymiser.asked)
    as_they_were = None if winners.scores.dtype.kind in "SU" else winners.scores.dtype  # texts of any length
    changed = replace(
        winners, rows=rows, scores=np.array(scores.tolist(), dtype=as_they_were), plausibility=plausibility, cost=cost
    )
    measured = changed.measured(plan.features, factuals.matrix)
    farther = (measured.measures[:, 1] - best.measures[:, 1]) / len(plan.features)
    place_of = np.cumsum(kept) - 1
    told = tuple(
        each for place, box in boxes.items() if kept[place] for each in anonymiser.told(int(place_of[place]), box)
    )
    return Anonymised(
        replace(measured.take(kept), rows=np.asfortranarray(rows[kept]), cost=measured.cost),
        told,
        people[kept],
        alike[kept],
        loss[kept],
        share[kept],
        farther[kept],
    )


def _first_of_each(owner: Ints, rows: Floats, among: Bools) -> Bools:
    """Return which rows are the first of their factual among equal ones."""
    first = np.zeros(owner.size, dtype=bool)
    (places,) = np.nonzero(among)
    hashed = hash_rows(np.column_stack([owner[places], rows[places]]))
    first[places[np.unique(hashed, return_index=True)[1]]] = True
    return first


def _count_alike(widening: Widening, box: Box, row: Floats, own: Floats) -> int:
    """Return how many people in a box agree with the factual in the keys that do not change."""
    same = ~changed_columns(row[None, :], own[None, :])[0]
    inside = box.contain(widening.values) & widening.agree(own, same)
    return int(widening.counts[inside].sum())


def _anonymiser(plan: Plan, anonymity: Anonymity, factuals: Factuals) -> Anonymiser:
    """Return what widens rows by a plan: rows that may be returned obey the constraints, bounds and relations."""
    settings = plan.settings
    constraints = None if plan.constraints is None else plan.constraints.of_factuals(factuals.matrix, factuals.index)
    relations = None if plan.relations is None else plan.relations.of_factuals(factuals.matrix)
    fold = None if plan.plausibility is None else plan.plausibility.fold_of(factuals.matrix)

    def judge(rows: Floats, owner: Ints) -> tuple[Bools, npt.NDArray[Any]]:
        may = np.ones(rows.shape[0], dtype=bool)
        own = factuals.matrix[owner]
        if settings.max_changes is not None:
            may &= changed_columns(rows, own).sum(axis=1) <= settings.max_changes
        if settings.max_gower is not None:
            may &= gower_sum(plan.features).sums(rows, own) / len(plan.features) <= settings.max_gower
        if plan.excluded is not None:
            may[may] = ~plan.excluded.contain(rows[may])
        if constraints is not None:
            may[may] = constraints.hold(rows[may], owner[may])
        if relations is not None:
            may[may] = relations.hold(rows[may], owner[may])
        scores = np.empty(rows.shape[0], dtype=object)
        if may.any():
            answered, wanted = plan.question.ask_encoded(np.ascontiguousarray(rows[may]))
            scores[may] = list(answered)
            may[may] = wanted
        return may, scores

    def complete(rows: Floats, own: Floats) -> Floats:
        return rows if plan.relations is None else np.asarray(plan.relations.complete(rows, own))

    def believable(rows: Floats, owner: Ints) -> Bools:
        scale = plan.plausibility
        if scale is None or fold is None or not settings.sparse or not owner.size:
            return np.ones(owner.size, dtype=bool)
        scores = scale.score(rows, fold[owner], scale.origins(factuals.matrix, owner))
        return np.asarray(scores >= plan.least)

    return Anonymiser(anonymity, plan.generator.schema_, judge, complete, believable, plan.generator.seed_)
