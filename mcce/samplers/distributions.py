"""The conditional distributions of some rows: what every sampler returns, and every other module asks.

1. `Levels`: a table of probabilities. `Donors`: segments of a pool of training values. `Continuous`: a family and its
   parameters. `Hurdle`: one value with a probability, else another distribution. `Sampled`: draws only.
2. All draw (also restricted by a `Within`), have a log density relative to the column's base measure (`margin.py`), a
   distribution function and its inverse. The object holds no random numbers.
3. A draw of `Donors` takes one index per row; a restricted one two binary searches, as segments are sorted by value
   with missing values last. The probability of an interval is a difference of two positions.
4. A `Continuous` draw is rounded to the column's grid: the probability of a value is that of its grid cell.
5. `cdf` and `ppf` are those of the known values: P(Y <= y | Y is not missing).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numba import uint64

from mcce._utils import Bools, Floats, Ints, jit
from mcce.exceptions import InputError, did_you_mean
from mcce.rng import RowStreams, multiply_high, philox
from mcce.samplers.families import FAMILIES, JUST_BELOW, LOG_ROOT_TAU, MOST, TINY, Family
from mcce.samplers.margin import KERNELS, Margin
from mcce.samplers.within import Within
from mcce.table import Feature, Grid

ATTEMPTS = 200  # draws of a row before rejection sampling gives up
LEAST_MASS = 1e-12  # a smaller probability of the allowed numbers is none
PSEUDO_DONORS = 5.0  # the size of the paper's smallest leaf


class Distribution(ABC):
    """The conditional distribution of each of some rows."""

    has_density = True  # False: it can be drawn from, and nothing else

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def take(self, rows: Any) -> Distribution:
        """Return the distributions of some rows: indices, a mask or a slice."""

    @abstractmethod
    def sample(self, rng: RowStreams, within: Within | None = None) -> tuple[Floats, Bools]:
        """Draw one value for each row: values, and which rows are rejected (NaN: no allowed value can be drawn)."""

    @abstractmethod
    def log_density(self, values: Floats) -> Floats:
        """Return the log density of each row's value relative to the column's base measure; of NaN, log P(missing)."""

    @abstractmethod
    def cdf(self, values: Floats, below: bool = False) -> Floats:
        """Return P(Y <= y | known), or P(Y < y | known), of each row's value; NaN for NaN."""

    @abstractmethod
    def ppf(self, u: Floats) -> Floats:
        """Return the least y with P(Y <= y | known) >= u in each row; NaN if the value is certainly missing."""

    @abstractmethod
    def probability(self, within: Within) -> Floats:
        """Return the probability of an allowed value in each row, missing values included."""

    def with_base_of(self, column: Margin) -> Distribution:
        """Return the distributions with log densities relative to the base measure of another column."""
        return self


def _nothing_rejected(values: Floats) -> tuple[Floats, Bools]:
    return values, np.zeros(values.size, dtype=bool)


def _reject(values: Floats, rejected: Bools) -> tuple[Floats, Bools]:
    return np.where(rejected, np.nan, values), rejected


def draw_until_allowed(
    draw: Callable[[Ints, RowStreams], Floats], rng: RowStreams, within: Within
) -> tuple[Floats, Bools]:
    """Draw each row until the value is allowed, at most 200 times; ``draw(rows, rng)`` draws some of the rows."""
    values, waiting = np.full(len(rng), np.nan), np.arange(len(rng))
    for attempt in range(ATTEMPTS):
        tried = draw(waiting, rng.child("attempt", attempt).take(waiting))
        allowed = within.take(waiting).allows(tried)
        values[waiting[allowed]] = tried[allowed]
        waiting = waiting[~allowed]
        if not waiting.size:
            break
    rejected = np.zeros(values.size, dtype=bool)
    rejected[waiting] = True
    return values, rejected


# ---------------------------------------------------------------------------------------------------------- kernels


@jit
def _search(ordered, begin, end, values, right, out):  # type: ignore[no-untyped-def]
    """Find the first position in each segment whose value is not below (or, `right`, is above) the row's value.

    NaN, at the end of a segment, is above every value.
    """
    for i in range(out.size):
        low, high, x = begin[i], end[i], values[i]
        while low < high:
            middle = (low + high) >> 1
            if ordered[middle] < x or (right and ordered[middle] == x):
                low = middle + 1
            else:
                high = middle
        out[i] = low


def search(ordered: Floats, begin: Ints, end: Ints, values: Floats, *, right: bool) -> Ints:
    """Return the position of each row's value in its segments; `begin` and `end` are (rows, segments)."""
    out = np.empty(begin.shape, dtype=np.int64)
    sought = np.broadcast_to(np.asarray(values, dtype=np.float64)[:, None], begin.shape)
    flat = np.ascontiguousarray
    _search(flat(ordered), flat(begin).ravel(), flat(end).ravel(), flat(sought).ravel(), right, out.reshape(-1))
    return out


@jit
def _pick_donor(key, draws, rows, begin, end, pool, out):  # type: ignore[no-untyped-def]
    """Draw one of the donors of each row, numbered segment by segment; the same numbers as `RowStreams.integer`."""
    for i in range(out.size):
        total = uint64(0)
        for s in range(begin.shape[1]):
            total += uint64(end[i, s] - begin[i, s])
        chosen = np.int64(multiply_high(philox(key, draws[i], rows[i])[0], total))
        s = 0
        while chosen >= end[i, s] - begin[i, s]:
            chosen -= end[i, s] - begin[i, s]
            s += 1
        out[i] = pool[begin[i, s] + chosen]


@jit
def _sum_kernels(pool, weight, begin, end, values, quartile_range, width_of_ties, most, out):  # type: ignore[no-untyped-def]
    """Sum normal kernels at the donors of each row, with Silverman's bandwidth of these donors.

    Of more than `most` donors in a segment, so many evenly spaced ones count for all.
    """
    for i in range(out.size):
        total = mean = squares = weight_squares = 0.0
        for s in range(begin.shape[1]):
            size = end[i, s] - begin[i, s]
            used = min(size, most)
            for k in range(used):
                at = begin[i, s] + (2 * k + 1) * size // (2 * used)
                w = (weight[at] if weight.size else 1.0) * size / used
                total += w
                weight_squares += w * w * used / size
                step = pool[at] - mean
                mean += w / total * step
                squares += w * step * (pool[at] - mean)
        out[i] = 0.0
        if total == 0.0:
            continue
        spread = np.sqrt(squares / total)
        if 0.0 < quartile_range[i] < 1.34 * spread:
            spread = quartile_range[i] / 1.34
        h = 0.9 * spread * (total * total / weight_squares) ** -0.2
        if not h > 1e-12 * abs(mean):
            h = width_of_ties
        for s in range(begin.shape[1]):
            size = end[i, s] - begin[i, s]
            used = min(size, most)
            for k in range(used):
                at = begin[i, s] + (2 * k + 1) * size // (2 * used)
                w = (weight[at] if weight.size else 1.0) * size / used
                out[i] += w * np.exp(-0.5 * ((values[i] - pool[at]) / h) ** 2)
        out[i] /= h * np.sqrt(2.0 * np.pi)


# ----------------------------------------------------------------------------------------------------------- levels


@dataclass(frozen=True, eq=False)
class Levels(Distribution):
    """Probabilities of levels: logreg, polyreg, polr, copula, mixture, classifiers.

    Parameters
    ----------
    probabilities : (distinct givens, levels) floats
        Each row sums to 1 (or to any positive number); column k is the level with the code k.
    rows : (rows,) ints or None
        The distinct givens of each row; None: one row of probabilities for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.samplers.distributions import Levels
    >>> levels = Levels(np.array([[0.2, 0.8], [1.0, 0.0]]), rows=np.array([1, 0, 0]))
    >>> np.exp(levels.log_density(np.array([0.0, 0.0, 1.0]))).tolist()
    [1.0, 0.2, 0.8]
    >>> levels.ppf(np.array([0.5, 0.2, 0.21])).tolist()
    [0.0, 0.0, 1.0]
    """

    probabilities: Floats
    rows: Ints | None = None

    def __len__(self) -> int:
        return len(self.probabilities) if self.rows is None else len(self.rows)

    def take(self, rows: Any) -> Levels:
        return Levels(self.probabilities, self._rows[rows])

    @cached_property
    def _rows(self) -> Ints:
        return np.arange(len(self.probabilities)) if self.rows is None else self.rows

    @cached_property
    def _shares(self) -> Floats:
        return np.asarray(self.probabilities / self.probabilities.sum(axis=1, keepdims=True))

    @cached_property
    def _upto(self) -> Floats:
        return np.cumsum(self._shares, axis=1)

    def sample(self, rng: RowStreams, within: Within | None = None) -> tuple[Floats, Bools]:
        if within is None:
            return _nothing_rejected(_pick(self._upto, self._rows, rng.uniform()))
        upto = np.cumsum(self._allowed(within), axis=1)
        total = upto[:, -1]
        drawn = _pick(upto, np.arange(len(self)), rng.uniform() * total)
        return _reject(drawn, total <= 0.0)

    def log_density(self, values: Floats) -> Floats:
        is_missing = np.isnan(values)
        codes = np.where(is_missing, 0.0, values).astype(np.int64)
        with np.errstate(divide="ignore"):
            return np.where(is_missing, -np.inf, np.log(self._shares[self._rows, codes]))

    def cdf(self, values: Floats, below: bool = False) -> Floats:
        is_missing = np.isnan(values)
        codes = np.where(is_missing, 0.0, values).astype(np.int64) + (0 if below else 1)
        upto = np.column_stack([np.zeros(len(self._upto)), np.minimum(self._upto, 1.0)])
        return np.where(is_missing, np.nan, upto[self._rows, codes])

    def ppf(self, u: Floats) -> Floats:
        return _pick(self._upto, self._rows, np.asarray(u) - 1e-12, right=False)

    def probability(self, within: Within) -> Floats:
        return np.asarray(self._allowed(within).sum(axis=1))

    def _allowed(self, within: Within) -> Floats:
        n_levels = self.probabilities.shape[1]
        return np.where(within.allowed_levels(len(self), n_levels), self._shares[self._rows], 0.0)


def _pick(upto: Floats, rows: Ints, places: Floats, *, right: bool = True) -> Floats:
    """Return the first level of each row whose cumulative probability exceeds (or reaches) a place."""
    n_levels = upto.shape[1]
    begin = (rows * n_levels)[:, None]
    code = search(upto.ravel(), begin, begin + n_levels, places, right=right)[:, 0] - begin[:, 0]
    last = (upto < upto[:, -1:]).sum(axis=1)  # the last level with a positive probability
    return np.minimum(code, last[rows]).astype(np.float64)


# ----------------------------------------------------------------------------------------------------------- donors


@dataclass(frozen=True, eq=False)
class Donors(Distribution):
    """Training values: cart, ctree, forest, marginal, pmm.

    Parameters
    ----------
    pool : (donors,) floats
        Training values, in segments; each segment ascending, its missing values last.
    begin, end : (rows,) or (rows, trees) ints
        The donors of a row are ``pool[begin:end]``, of all its trees together.
    weight : (donors,) floats or None
        Weights of the donors; None: all equal.
    margin : Margin or None
        Distribution of the column, for densities of numbers. None: only shares of the donors.

    Notes
    -----
    Draws, `cdf` and `ppf` are exactly those of the donors. The density is smoothed, so that values that are not donors
    have one: with m donors (with weights, (sum w)^2 / sum w^2) and c = 5 pseudo-donors distributed as the margin, a
    value with point mass has the probability (m share + c margin's share) / (m + c), other numbers the density
    (m kernel estimate + c margin's density) / (m + c), with Silverman's bandwidth of the row's donors.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.samplers.distributions import Donors
    >>> from mcce.samplers.within import Within
    >>> from mcce.rng import RowStreams
    >>> pool = np.array([1.0, 4.0, 9.0, 2.0, 2.0, np.nan])
    >>> donors = Donors(pool, begin=np.array([0, 3]), end=np.array([3, 6]))
    >>> donors.cdf(np.array([4.0, 2.0])).round(3).tolist()
    [0.667, 1.0]
    >>> values, rejected = donors.sample(RowStreams.from_seed(1, 2), Within(low=np.array([5.0, 5.0])))
    >>> values.tolist(), rejected.tolist()
    ([9.0, nan], [False, False])
    """

    pool: Floats
    begin: Ints
    end: Ints
    weight: Floats | None = None
    margin: Margin | None = None

    def __len__(self) -> int:
        return len(self.begin)

    def take(self, rows: Any) -> Donors:
        return replace(self, begin=self.begin[rows], end=self.end[rows])

    def with_base_of(self, column: Margin) -> Donors:
        return self if self.margin is None else replace(self, margin=self.margin.with_atoms_of(column))

    # -------------------------------------------------------------------------------------------------------- draws

    def sample(self, rng: RowStreams, within: Within | None = None) -> tuple[Floats, Bools]:
        if within is None:
            return _nothing_rejected(self._draw(self.begin, self.end, rng))
        donors, begin, end = self._allowed(within)
        total = donors._total(begin, end).sum(axis=1)
        rejected = ~(total > 0.0)
        if rejected.all():
            return np.full(len(self), np.nan), rejected
        begin[rejected], end[rejected] = begin[~rejected][0], end[~rejected][0]  # any donor will do
        return _reject(donors._draw(begin, end, rng), rejected)

    def _draw(self, begin: Ints, end: Ints, rng: RowStreams) -> Floats:
        """Draw one of the donors in the segments of each row, none of which may be without donors."""
        begin, end = _columns(begin), _columns(end)
        if self.weight is None:
            out = np.empty(len(begin))
            segments = np.ascontiguousarray(begin, dtype=np.int64), np.ascontiguousarray(end, dtype=np.int64)
            _pick_donor(rng.next_key(), rng.draws, rng.rows, *segments, np.ascontiguousarray(self.pool), out)
            return out
        upto = np.cumsum(self._total(begin, end), axis=1)
        place = rng.uniform() * upto[:, -1]
        last = (upto < upto[:, -1:]).sum(axis=1)  # the last segment with a donor
        segment = np.minimum((upto <= place[:, None]).sum(axis=1), last)
        rows = np.arange(len(begin))
        place = place - np.where(segment > 0, upto[rows, segment - 1], 0)
        begin, end = begin[rows, segment], end[rows, segment]
        weights_upto = self._weights_upto
        at = search(weights_upto[1:], begin[:, None], end[:, None], weights_upto[begin] + place, right=True)[:, 0]
        return np.asarray(self.pool[np.minimum(at, end - 1)])

    def probability(self, within: Within) -> Floats:
        donors, begin, end = self._allowed(within)
        return np.asarray(donors._total(begin, end).sum(axis=1) / self._total().sum(axis=1))

    def _allowed(self, within: Within) -> tuple[Donors, Ints, Ints]:
        """Return the segments of each row's allowed donors, and the donors that these are segments of."""
        donors = self
        if within.values is not None:
            donors = self._only(np.isnan(self.pool) | np.isin(self.pool, within.values))
        begin, end = _columns(donors.begin), _columns(donors.end)
        low, high = within.bounds(len(self))
        known = donors._known_end
        first = search(donors.pool, begin, known, low, right=False)
        last = np.maximum(search(donors.pool, begin, known, high, right=True), first)
        begins, ends = [first], [last]
        if within.levels is not None:
            codes = np.arange(float(within.levels.shape[1]))
            edges = [search(donors.pool, first, last, np.full(len(self), code), right=False) for code in codes] + [last]
            begins = edges[:-1]
            ends = [np.where(within.levels[:, [k]], edges[k + 1], edges[k]) for k in range(codes.size)]
        missing_end = np.where(within.allows_missing(len(self))[:, None], end, known)
        return donors, np.hstack([*begins, known]), np.hstack([*ends, missing_end])

    def _only(self, keep: Bools) -> Donors:
        """Return the distributions without some of the donors."""
        place = np.concatenate([[0], np.cumsum(keep)])
        weight = None if self.weight is None else self.weight[keep]
        return Donors(self.pool[keep], place[self.begin], place[self.end], weight, self.margin)

    def _total(self, begin: Ints | None = None, end: Ints | None = None) -> Any:
        """Return the number of donors in each segment, or the sum of their weights."""
        begin = _columns(self.begin if begin is None else begin)
        end = _columns(self.end if end is None else end)
        return end - begin if self.weight is None else self._weights_upto[end] - self._weights_upto[begin]

    @cached_property
    def _weights_upto(self) -> Floats:
        assert self.weight is not None
        return np.concatenate([[0.0], np.cumsum(self.weight)])

    # ------------------------------------------------------------------------------------------------- distribution

    @cached_property
    def _known_end(self) -> Ints:
        """The end of each segment's known donors."""
        begin, end = _columns(self.begin), _columns(self.end)
        if not np.isnan(self.pool).any():
            return end
        return search(self.pool, begin, end, np.full(len(self), np.inf), right=True)

    @cached_property
    def _known(self) -> Floats:
        return np.asarray(self._total(self.begin, self._known_end).sum(axis=1), dtype=np.float64)

    def _upto(self, values: Floats, below: bool) -> Floats:
        """Return the number, or weight, of the donors up to each row's value."""
        at = search(self.pool, _columns(self.begin), self._known_end, values, right=not below)
        return np.asarray(self._total(self.begin, at).sum(axis=1), dtype=np.float64)

    def cdf(self, values: Floats, below: bool = False) -> Floats:
        share = _divide(self._upto(np.nan_to_num(values), below), self._known)
        return np.where(np.isnan(values) | (self._known == 0.0), np.nan, share)

    def ppf(self, u: Floats) -> Floats:
        place = np.maximum(np.asarray(u) * self._known * JUST_BELOW, 0.0)
        if self.begin.ndim == 1 and self.weight is None:
            at = self.begin + np.maximum(np.ceil(place).astype(np.int64) - 1, 0)
            return np.where(self._known > 0.0, np.append(self.pool, np.nan)[at], np.nan)
        values = np.unique(self.pool[~np.isnan(self.pool)])
        if not values.size:
            return np.full(len(self), np.nan)
        first, last = np.zeros(len(self), dtype=np.int64), np.full(len(self), values.size - 1)
        while (first < last).any():  # bisection among all donors
            middle = (first + last) // 2
            upto = self._upto(values[middle], False)
            reached = (upto >= place) & (upto > 0.0)
            first, last = np.where(reached, first, np.minimum(middle + 1, last)), np.where(reached, middle, last)
        return np.where(self._known > 0.0, values[last], np.nan)

    # ------------------------------------------------------------------------------------------------------ density

    def log_density(self, values: Floats) -> Floats:
        values = np.asarray(values, dtype=np.float64)
        total = np.asarray(self._total().sum(axis=1), dtype=np.float64)
        filled = np.nan_to_num(values)
        share = _divide(self._upto(filled, False) - self._upto(filled, True), total)
        share = np.where(np.isnan(values), 1.0 - _divide(self._known, total), share)
        if self.margin is not None:
            smooth = np.flatnonzero(~self.margin.has_mass(values))
            if smooth.size:
                share[smooth] = self.take(smooth)._kernel_estimate(values[smooth]) / total[smooth]
            n = self._effective_number(total)
            share = (n * share + PSEUDO_DONORS * np.exp(self.margin.log_density(values))) / (n + PSEUDO_DONORS)
        with np.errstate(divide="ignore"):
            return np.log(share)

    def _effective_number(self, total: Floats) -> Floats:
        if self.weight is None:
            return total
        squares = np.concatenate([[0.0], np.cumsum(self.weight**2)])
        return _divide(total**2, (squares[_columns(self.end)] - squares[_columns(self.begin)]).sum(axis=1))

    def _kernel_estimate(self, values: Floats) -> Floats:
        """Return the sum of kernels at the donors without point mass."""
        assert self.margin is not None
        smooth = self._only(~self.margin.has_mass(self.pool))
        n = len(self)
        quartile_range = smooth.ppf(np.full(n, 0.75)) - smooth.ppf(np.full(n, 0.25))
        weight = np.empty(0) if self.weight is None else np.ascontiguousarray(smooth.weight)
        begin, end = (np.ascontiguousarray(_columns(part)) for part in (smooth.begin, smooth.end))
        out = np.empty(n)
        _sum_kernels(smooth.pool, weight, begin, end, values, quartile_range, self.margin.bandwidth, KERNELS, out)
        return out


def _columns(positions: Ints) -> Ints:
    """Return positions as (rows, segments)."""
    return positions[:, None] if positions.ndim == 1 else positions


def _divide(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros(np.shape(a)), where=b > 0.0)


# ------------------------------------------------------------------------------------------------------- continuous


@dataclass(frozen=True, eq=False)
class Continuous(Distribution):
    """Numbers with a family of distributions: norm, generalised linear models, quantiles; normrank, copula, mixture.

    Parameters
    ----------
    family : str or Family
        A name of `mcce.samplers.families.FAMILIES`, or an object of a subclass of `Family`.
    parameters : tuple of arrays
        In the order of the family; the first axis of each is the rows.
    margin : Margin or None
        Distribution of the column. Draws are rounded to its grid, and densities are relative to its base measure. None:
        no grid, no point masses.
    latent : bool
        Whether the family is that of the normal score: the value is ``margin.from_normal(z)``, then rounded.

    Notes
    -----
    The probability of a value with point mass is that of its grid cell, so that it is what draws have; without a grid
    it is 0 (its log density -inf), unless the family is discrete or pushed through the margin.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.samplers.distributions import Continuous
    >>> normal = Continuous("normal", (np.array([0.0, 10.0]), np.array([1.0, 2.0])))
    >>> normal.cdf(np.array([0.0, 12.0])).round(3).tolist()
    [0.5, 0.841]
    """

    family: Family | str
    parameters: tuple[Floats, ...]
    margin: Margin | None = None
    latent: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.family, str):
            if self.family not in FAMILIES:
                raise InputError(f"there is no family {self.family!r}; {did_you_mean(self.family, FAMILIES)}")
            object.__setattr__(self, "family", FAMILIES[self.family])

    def __len__(self) -> int:
        return len(self.parameters[0])

    def take(self, rows: Any) -> Continuous:
        return replace(self, parameters=tuple(part[rows] for part in self.parameters))

    def with_base_of(self, column: Margin) -> Continuous:
        return self if self.margin is None else replace(self, margin=self.margin.with_atoms_of(column))

    @property
    def _law(self) -> Family:
        assert isinstance(self.family, Family)
        return self.family

    @property
    def _grid(self) -> Grid | None:
        return None if self.margin is None else self.margin.grid

    @property
    def _pushed(self) -> Margin | None:
        """The margin that draws are pushed through."""
        return self.margin if self.latent else None

    # -------------------------------------------------------------------------------------------------------- draws

    def sample(self, rng: RowStreams, within: Within | None = None) -> tuple[Floats, Bools]:
        if within is None:
            return _nothing_rejected(self._finish(self._law.draw(rng, *self.parameters)))
        if within.values is not None:
            return self._sample_values(rng, within, within.values)
        first, last = self._ends(*within.bounds(len(self)))
        low, high = self._scores(first, last)
        rejected = ~((self._law.mass(low, high, *self.parameters) >= LEAST_MASS) & (first <= last))
        drawn = self._finish(self._law.draw_between(rng, low, high, *self.parameters))
        drawn = np.clip(drawn, first, last)  # rounding
        if self._grid is None:
            is_point = (first == last) & np.isfinite(first)
            with np.errstate(divide="ignore"):
                possible = self.log_density(np.where(is_point, first, 0.0)) > -np.inf
            drawn, rejected = np.where(is_point, first, drawn), np.where(is_point, ~possible, rejected)
        return _reject(drawn, rejected)

    def _sample_values(self, rng: RowStreams, within: Within, values: Floats) -> tuple[Floats, Bools]:
        if not values.size:
            return np.full(len(self), np.nan), np.full(len(self), True)
        upto = np.cumsum(self._weights(within, values), axis=1)
        drawn = _pick(upto, np.arange(len(self)), rng.uniform() * upto[:, -1]).astype(np.int64)
        return _reject(values[drawn], ~(upto[:, -1] > 0.0))

    def _weights(self, within: Within, values: Floats) -> Floats:
        """Return the probability (without a grid, the density) of each allowed value: (rows, values)."""
        low, high = within.bounds(len(self))
        weights = np.zeros((len(self), values.size))
        for k, value in enumerate(values):
            same = np.full(len(self), value)
            weights[:, k] = np.exp(self.log_density(same)) if self._grid is None else self._cell_mass(same)
            weights[(value < low) | (value > high), k] = 0.0
        return weights

    def _finish(self, drawn: Floats) -> Floats:
        """Push draws through the margin and round them."""
        if self._pushed is not None:
            drawn = self._pushed.from_normal(drawn)
        return drawn if self._grid is None else self._grid.round(drawn)

    def probability(self, within: Within) -> Floats:
        if within.values is not None:
            if self._grid is None and not self._law.is_discrete:
                return np.zeros(len(self))
            return np.asarray(self._weights(within, within.values).sum(axis=1))
        first, last = self._ends(*within.bounds(len(self)))
        return np.where(first <= last, self._law.mass(*self._scores(first, last), *self.parameters), 0.0)

    # ---------------------------------------------------------------------------------------------- grid and scores

    def _ends(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the least and the greatest point of the grid between bounds."""
        grid = self._grid
        if grid is None:
            return low, high
        first, last = low.copy(), high.copy()
        rows = np.flatnonzero(np.isfinite(low))
        first[rows] = grid.round(low[rows])
        rows = rows[first[rows] < low[rows]]
        first[rows] = grid.round(first[rows] + grid.step)
        rows = np.flatnonzero(np.isfinite(high))
        last[rows] = grid.round(high[rows])
        rows = rows[last[rows] > high[rows]]
        last[rows] = grid.round(last[rows] - grid.step)
        return first, last

    def _cells(self, first: Floats, last: Floats) -> tuple[Floats, Floats]:
        """Return the numbers that are rounded to points of the grid from `first` to `last`."""
        if self._grid is None:
            return first, last
        low, high = self._grid.cells(first)[0], self._grid.cells(last)[1]
        return np.where(np.isfinite(first), low, first), np.where(np.isfinite(last), high, last)

    def _scores(self, first: Floats, last: Floats) -> tuple[Floats, Floats]:
        """Return the family's interval of the values from `first` to `last`."""
        low, high = self._cells(first, last)
        if self._pushed is None:
            return low, high
        return self._pushed.score(low, below=True), self._pushed.score(high)

    def _cell_mass(self, values: Floats) -> Floats:
        return self._law.mass(*self._scores(values, values), *self.parameters)

    # ------------------------------------------------------------------------------------------------- distribution

    def log_density(self, values: Floats) -> Floats:
        values = np.asarray(values, dtype=np.float64)
        filled = np.nan_to_num(values)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._pushed is not None:
                z = self._pushed.score(filled)
                slope = np.log(self._pushed.density(filled)) + 0.5 * z**2 + LOG_ROOT_TAU
                log_density = np.where(np.isfinite(z), self._law.log_density(z, *self.parameters) + slope, -np.inf)
            else:
                log_density = self._law.log_density(filled, *self.parameters)
            if self.margin is not None and not self._law.is_discrete:
                has_mass = self.margin.has_mass(filled)
                if has_mass.any():
                    log_density = np.where(has_mass, np.log(self._cell_mass(filled)), log_density)
        return np.where(np.isnan(values), -np.inf, log_density)

    def cdf(self, values: Floats, below: bool = False) -> Floats:
        low, high = self._scores(values, values)
        upto = self._law.below(low, *self.parameters) if below else self._law.cdf(high, *self.parameters)
        return np.where(np.isnan(values), np.nan, upto)

    def ppf(self, u: Floats) -> Floats:
        u = np.asarray(u, dtype=np.float64) * JUST_BELOW  # the end of a cell belongs to it
        return self._finish(self._law.ppf(u, *self.parameters))


# ----------------------------------------------------------------------------------------------------------- hurdle


@dataclass(frozen=True, eq=False)
class Hurdle(Distribution):
    """One value with a probability, else another distribution: zeros; missing targets, with the value NaN.

    Parameters
    ----------
    p : (rows,) floats
        Probability of the value.
    value : float
        A number, or NaN.
    rest : Distribution
        That of the other values; it may have the value, too.
    margin : Margin or None
        Distribution of the whole column, whose base measure the densities of `rest` are made relative to; needed if
        `rest` was fitted to a part of the known values (twopart), not for missing values.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.samplers.distributions import Continuous, Hurdle
    >>> hurdle = Hurdle(np.array([0.4]), 0.0, Continuous("gamma", (np.array([2.0]), np.array([1.0]))))
    >>> hurdle.cdf(np.array([0.0])).tolist(), hurdle.ppf(np.array([0.3])).tolist()
    ([0.4], [0.0])
    """

    p: Floats
    value: float
    rest: Distribution
    margin: Margin | None = None

    def __post_init__(self) -> None:
        if self.margin is not None:
            object.__setattr__(self, "rest", self.rest.with_base_of(self.margin))

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        """Whether the other values have a density."""
        return self.rest.has_density

    def __len__(self) -> int:
        return len(self.p)

    def take(self, rows: Any) -> Hurdle:
        return Hurdle(self.p[rows], self.value, self.rest.take(rows))

    def with_base_of(self, column: Margin) -> Hurdle:
        return replace(self, rest=self.rest.with_base_of(column), margin=None)

    def sample(self, rng: RowStreams, within: Within | None = None) -> tuple[Floats, Bools]:
        is_value = rng.child("hurdle").uniform() < self.p
        if within is None:
            drawn, rejected = self.rest.sample(rng.child("rest"))
            return np.where(is_value, self.value, drawn), rejected & ~is_value
        if not self.has_density:
            return draw_until_allowed(lambda rows, streams: self.take(rows).sample(streams)[0], rng, within)
        value_mass, rest_mass = self._masses(within)
        total = value_mass + rest_mass
        is_value = rng.child("hurdle").uniform() * total < value_mass
        drawn, rejected = self.rest.sample(rng.child("rest"), within)
        return np.where(is_value, self.value, drawn), rejected & ~is_value

    def _masses(self, within: Within) -> tuple[Floats, Floats]:
        """Return the probabilities of the value, and of the rest, if they are allowed."""
        allowed = within.allows(np.full(len(self), self.value))
        return np.where(allowed, self.p, 0.0), (1.0 - self.p) * self.rest.probability(within)

    def probability(self, within: Within) -> Floats:
        return np.add(*self._masses(within))

    def log_density(self, values: Floats) -> Floats:
        values = np.asarray(values, dtype=np.float64)
        is_value = np.isnan(values) if np.isnan(self.value) else values == self.value
        with np.errstate(divide="ignore"):
            of_rest = np.log1p(-self.p) + self.rest.log_density(values)
            if np.isnan(self.value):
                return np.where(is_value, np.log(self.p), of_rest)
            return np.where(is_value, np.log(self.p + (1.0 - self.p) * self._mass_in_rest()), of_rest)

    def _mass_in_rest(self) -> Floats:
        """Return the probability of the value in the rest."""
        same = np.full(len(self), self.value)
        return np.nan_to_num(self.rest.cdf(same) - self.rest.cdf(same, below=True))

    def cdf(self, values: Floats, below: bool = False) -> Floats:
        of_rest = self.rest.cdf(values, below)
        if np.isnan(self.value):
            return np.where(self.p >= 1.0, np.nan, of_rest)
        passed = np.where(values > self.value if below else values >= self.value, self.p, 0.0)
        return np.where(np.isnan(values), np.nan, (1.0 - self.p) * np.nan_to_num(of_rest) + passed)

    def ppf(self, u: Floats) -> Floats:
        u = np.asarray(u, dtype=np.float64)
        if np.isnan(self.value):
            return np.where(self.p >= 1.0, np.nan, self.rest.ppf(u))
        same = np.full(len(self), self.value)
        before, upto = self.cdf(same, below=True), self.cdf(same)
        inner = np.where(u <= before, u, u - self.p)
        of_rest = self.rest.ppf(np.clip(_divide(inner, 1.0 - self.p), TINY, MOST))
        return np.where((u > before) & (u <= upto), self.value, of_rest)


# ---------------------------------------------------------------------------------------------------- draws only


@dataclass(frozen=True, eq=False)
class Sampled(Distribution):
    """The draws of a sampler that implements `sample` only; restricted by rejection, at most 200 draws for each row.

    Parameters
    ----------
    draw : function
        ``draw(rows, rng)`` draws one value for each of some rows (indices).
    rows : ints
        The rows of the table.
    feature : Feature
        The target: draws are rounded to its grid and checked.
    name : str
        Of the sampler, for messages.
    """

    has_density = False

    draw: Callable[[Ints, RowStreams], Floats]
    rows: Ints
    feature: Feature
    name: str

    def __len__(self) -> int:
        return self.rows.size

    def take(self, rows: Any) -> Sampled:
        return replace(self, rows=self.rows[rows])

    def sample(self, rng: RowStreams, within: Within | None = None) -> tuple[Floats, Bools]:
        if within is None:
            return _nothing_rejected(self._checked(self.draw(self.rows, rng), self.rows.size))

        def draw(waiting: Ints, streams: RowStreams) -> Floats:
            return self._checked(self.draw(self.rows[waiting], streams), waiting.size)

        return draw_until_allowed(draw, rng, within)

    def _checked(self, drawn: Any, n_rows: int) -> Floats:
        if np.shape(drawn) != (n_rows,):
            raise InputError(
                f"{self.name} drew an array of shape {np.shape(drawn)} for {self.feature.name!r} and {n_rows} rows; "
                "sample() must return one value for each row."
            )
        drawn = np.asarray(drawn, dtype=np.float64)
        known = drawn[~np.isnan(drawn)]
        if self.feature.is_numeric:
            wrong, remedy = known[np.isinf(known)], "finite, or NaN for a missing value"
        else:
            n_levels = self.feature.n_levels
            wrong = known[~((known >= 0) & (known < n_levels) & (np.floor(known) == known))]
            remedy = f"the code of a level, a whole number from 0 to {n_levels - 1}, or NaN for a missing value"
        if wrong.size:
            raise InputError(
                f"{self.name} drew {wrong[0]:g} for {self.feature.name!r} ({wrong.size} of {n_rows} draws); every draw "
                f"must be {remedy}."
            )
        grid = self.feature.grid if self.feature.is_numeric else None
        return drawn if grid is None else grid.round(drawn)

    def log_density(self, values: Floats) -> Floats:
        raise self._error("density")

    def cdf(self, values: Floats, below: bool = False) -> Floats:
        raise self._error("distribution function")

    def ppf(self, u: Floats) -> Floats:
        raise self._error("quantiles")

    def probability(self, within: Within) -> Floats:
        raise self._error("probabilities")

    def _error(self, what: str) -> InputError:
        return InputError(
            f"{self.name} has no {what}, because it implements sample() only; implement "
            "distribution(given), or use another sampler for this column."
        )
