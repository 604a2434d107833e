"""The distribution of the leaves of an adversarial forest: draws and densities given part of a row.

1. A leaf has the weight q: its share of the training rows, divided by the number of trees. Within a leaf the columns
   are independent (`mcce.generators.joint.adversarial.kernels`):

       f(x) = sum_leaf q_leaf prod_j f_leaf,j(x_j).

2. One more leaf contains all rows, with a thousandth of the weight: the product of the margins. So no combination of
   observed values has density 0.
3. Given some columns, the weights of the leaves are q times the likelihood of the given values. If a given value has
   likelihood 0 in all leaves (a number that no training row has, in a column of numbers with point mass), its
   likelihood is 1 in leaves whose box contains it, and 0 elsewhere.
4. Restrictions multiply the weights by the probability of the allowed values, column by column: since the columns of a
   leaf are independent, this conditions the joint distribution exactly. A number that is the only allowed one is
   conditioned on like a fixed one.
5. For each row a leaf is drawn by these weights, and the value of each column from the leaf.

Spread numbers have a normal distribution in each leaf:

6. The box of a leaf ends at the midpoints beyond its outermost codes. Beyond the first and the last training value it
   is unbounded, or ends at 0 (`mcce.generators.joint.adversarial.growing`).
7. Mean and standard deviation are those of the leaf's spread numbers. One more number, one standard deviation of the
   normal distribution that fills the box away from the mean, keeps the standard deviation above 0.

Watson et al. (2023), section 4 (FORDE and FORGE).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.generators.joint.adversarial.growing import Codes, Coding, GrownTree
from mcce.generators.joint.adversarial.kernels import (
    draw_free,
    draw_inside,
    leaf_likelihoods,
    leaf_masses,
    multiply_column,
)
from mcce.rng import RowStreams, hash_rows
from mcce.samplers import RestrictedDraw
from mcce.samplers.restricted import Within
from mcce.storage.fields import FLOAT, INT, INT32, check_array, check_between, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature

INSIDE = 2.0 * 1.959964  # width in standard deviations of the central 95 per cent of a normal distribution


def find_boxes(codings: Sequence[Coding], low: Codes, high: Codes) -> Floats:
    """Return the bounds of the box of each leaf: (leaves, columns, 2) (step 6)."""
    box = np.zeros((*low.shape, 2))
    for j, coding in enumerate(codings):
        if coding.values.size:
            edges = np.concatenate([[coding.ends[0]] * 2, coding.cuts, [coding.ends[1]]])
            box[:, j, 0] = edges[np.maximum(low[:, j], 1)]
            box[:, j, 1] = edges[high[:, j] + 1]
    return box


def find_moments(
    codings: Sequence[Coding], codes: Codes, weight: Floats, start: Ints, rows: Codes, box: Floats
) -> tuple[Floats, Floats]:
    """Return mean, standard deviation and mass in the box, (leaves, columns, 3), and the count of spread numbers."""
    normal, n_spread = np.ones((*box.shape[:2], 3)), np.zeros(box.shape[:2])
    weight = weight[rows]
    begins = start[:-1]
    leaf_of = np.repeat(np.arange(begins.size), np.diff(start))
    below = scipy.special.ndtr
    for j, coding in enumerate(codings):
        if not coding.values.size:
            continue
        mine = codes[j][rows]
        spread = ~coding.mass_of_code[mine]
        values = np.where(spread, coding.value_of_code[mine], 0.0)
        count = np.add.reduceat(weight * spread, begins)
        low, high = (np.clip(box[:, j, end], *coding.reach) for end in (0, 1))
        some = np.where(count > 0.0, count, 1.0)
        mean = np.where(count > 0.0, np.add.reduceat(weight * values, begins) / some, (low + high) / 2.0)
        off = np.where(spread, values - mean[leaf_of], 0.0)
        squares = np.add.reduceat(weight * off**2, begins) + ((high - low) / INSIDE) ** 2
        sd = np.where(high > low, np.sqrt(squares / (count + 1.0)), 1.0)
        a, b = ((box[:, j, end] - mean) / sd for end in (0, 1))
        held = np.where(a > 0.0, below(-a) - below(-b), below(b) - below(a))
        normal[:, j] = np.column_stack([mean, sd, held])
        n_spread[:, j] = count
    return normal, n_spread


def group_rows(keys: UInts) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the rows of each distinct key."""
    _, group = np.unique(keys, return_inverse=True)
    yield from np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])


def choose_leaves(log_weights: Floats, uniform: Floats) -> Ints:
    """Return a leaf for each uniform number, by weights."""
    total = np.cumsum(np.exp(log_weights - log_weights.max()))
    last = int(np.flatnonzero(np.isfinite(log_weights))[-1])  # rounding may exceed it
    return np.asarray(np.minimum(np.searchsorted(total, uniform * total[-1], side="right"), last), dtype=np.int64)


EVEN_PART = 1e-3
MOST_CELLS = 2_000_000  # rows times leaves of a block


@stateful("AdversarialForest.Leaves")
@dataclass(frozen=True)
class Leaves:
    """The leaves of a forest; the last one contains all rows.

    Attributes
    ----------
    codings : of the columns.
    codes : of the training rows, one column a row.
    start, rows : the training rows of leaf l are ``rows[start[l]:start[l + 1]]``.
    low, high : smallest and largest code in the box of each leaf, by column.
    log_weight : of the leaves.
    smoothing : weight of the margin, in rows, in the shares of a leaf.
    accuracies : of the rounds of the forest.
    weights : of the training rows; None without weights.
    """

    codings: tuple[Coding, ...] = stored(tuple, of=Coding)
    codes: Codes = stored(INT32, "columns", "training", filled=True)
    start: Ints = stored(INT, "leaves + 1")
    rows: Codes = stored(INT32, "donors", index_of="training")
    low: Codes = stored(INT32, "leaves", "columns")
    high: Codes = stored(INT32, "leaves", "columns")
    log_weight: Floats = stored(FLOAT, "leaves", finite=True, filled=True)
    smoothing: float = stored(float, least=0.0, most=1e9)
    accuracies: Floats = stored(FLOAT, None)
    weights: Floats | None = stored(FLOAT, "training", finite=True, above=0.0, optional=True, default=None)

    @classmethod
    def of(
        cls,
        codings: tuple[Coding, ...],
        codes: Codes,
        trees: list[GrownTree],
        smoothing: float,
        accuracies: Floats,
        weights: Floats | None = None,
    ) -> Leaves:
        """Gather the leaves of trees (steps 1 and 2)."""
        n = codes.shape[1]
        sizes = [np.bincount(tree.leaf_of_row) for tree in trees]
        held = [np.bincount(tree.leaf_of_row, weights) for tree in trees]
        total = n if weights is None else weights.sum()
        shares = [(1.0 - EVEN_PART) / len(trees) * each / total for each in held]
        everything = np.array([[coding.n_codes - 1 for coding in codings]], dtype=np.int32)
        return cls(
            codings,
            codes,
            np.concatenate([[0], np.cumsum([*np.concatenate(sizes), n])]).astype(np.int64),
            np.concatenate([*(np.argsort(t.leaf_of_row, kind="stable") for t in trees), np.arange(n)]).astype(np.int32),
            np.concatenate([*(tree.low for tree in trees), np.zeros_like(everything)]),
            np.concatenate([*(tree.high for tree in trees), everything]),
            np.log(np.concatenate([*shares, [EVEN_PART]])),
            smoothing,
            accuracies,
            weights,
        )

    def check_state(self) -> None:
        """Raise if the arrays do not match each other."""
        check_array(self.codes, "codes", INT32, len(self.codings), None)
        require(self.start[0] == 0 and self.start[-1] == self.rows.size, "start does not match the rows")
        require((np.diff(self.start) > 0).all(), "start has an empty leaf")
        for j, coding in enumerate(self.codings):
            for name, part in (("codes", self.codes[j]), ("low", self.low[:, j]), ("high", self.high[:, j])):
                check_between(part, name, 0, coding.n_codes - 1)
            at = int(self.first[j]) + j
            held = self.below[at + self.high[:, j].astype(np.int64) + 1] - self.below[at + self.low[:, j]]
            require((held > 0).all(), "low and high contain no row")

    def check_columns(self, features: Sequence[Feature], n_given: int) -> None:
        """Raise if the leaves do not match these columns."""
        require(len(self.codings) == len(features), "the number of codings is not that of the columns")
        for coding, feature in zip(self.codings, features):
            fits = coding.n_levels == feature.n_levels and (feature.is_numeric or not coding.values.size)
            require(fits, "codings do not match the columns")

    @cached_property
    def first(self) -> Ints:
        """The first code of each column in the concatenated codes."""
        return np.concatenate([[0], np.cumsum([coding.n_codes for coding in self.codings])]).astype(np.int64)

    @cached_property
    def has_mass(self) -> Bools:
        """Whether each code of each column has a probability."""
        return np.concatenate([coding.mass_of_code for coding in self.codings])

    @cached_property
    def value_of_code(self) -> Floats:
        """The value of each code of each column."""
        return np.concatenate([coding.value_of_code for coding in self.codings])

    @cached_property
    def below(self) -> Floats:
        """The weight of training rows with a lower code, by code, and one more entry for each column."""
        return self._counts_below(spread_only=False)

    @cached_property
    def spread_below(self) -> Floats:
        """The same for rows with spread numbers."""
        return self._counts_below(spread_only=True)

    def _counts_below(self, *, spread_only: bool) -> Floats:
        parts = []
        for coding, codes in zip(self.codings, self.codes):
            counts = np.bincount(codes, self.weights, minlength=coding.n_codes)
            counts = np.where(coding.mass_of_code, 0, counts) if spread_only else counts
            parts.append(np.concatenate([[0.0], np.cumsum(counts)]))
        return np.concatenate(parts)

    @cached_property
    def weight(self) -> Floats:
        """The weight of each training row."""
        return np.ones(self.codes.shape[1]) if self.weights is None else self.weights

    @cached_property
    def size(self) -> Floats:
        """The total weight of the training rows of each leaf."""
        return np.asarray(np.add.reduceat(self.weight[self.rows], self.start[:-1]))

    @cached_property
    def box(self) -> Floats:
        """The bounds of the box of each leaf: (leaves, columns, 2)."""
        return find_boxes(self.codings, self.low, self.high)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        return find_moments(self.codings, self.codes, self.weight, self.start, self.rows, self.box)

    @property
    def _parts(self) -> tuple[Any, ...]:
        """The arrays that kernels read, in their order."""
        normal, n_spread = self._moments
        return (self.first, self.has_mass, self.below, self.spread_below, self.codes, self.weight, self.start,
                self.rows, self.size, self.low, self.high, self.box, normal, n_spread,
                float(self.smoothing))  # fmt: skip

    def _coded(self, matrix: Floats) -> tuple[Codes, Bools, Floats]:
        """Return the codes of the first columns, which of them are spread numbers, and the values."""
        codes = np.empty(matrix.shape, dtype=np.int32)
        spread = np.empty(matrix.shape, dtype=bool)
        for j in range(matrix.shape[1]):
            codes[:, j] = self.codings[j].encode(matrix[:, j])
            spread[:, j] = self.codings[j].is_spread(matrix[:, j], codes[:, j])
        return codes, spread, np.ascontiguousarray(matrix)

    def log_weights_given(self, given: Floats) -> Floats:
        """Return the log weights of the leaves given the values of the first columns (step 3)."""
        codes, spread, values = (part[0] for part in self._coded(given[None]))
        out = np.empty(self.log_weight.size)
        columns = np.arange(given.size)
        leaf_likelihoods(columns, codes, spread, values, self.log_weight, *self._parts, out)
        if not np.isneginf(out).all():
            return out
        total, zeros = self.log_weight.copy(), np.zeros(out.size)
        for j in columns:
            one = slice(j, j + 1)
            leaf_likelihoods(columns[one], codes[one], spread[one], values[one], zeros, *self._parts, out)
            if np.isneginf(out).all():
                out = np.where((codes[j] >= self.low[:, j]) & (codes[j] <= self.high[:, j]), 0.0, -np.inf)
            total = total + out
        return self.log_weight if np.isneginf(total).all() else total

    def draw(self, givens: Floats, streams: RowStreams) -> Floats:
        """Draw the other columns given the first ones (step 5)."""
        n, n_given = givens.shape
        leaf_of, uniform = np.empty(n, dtype=np.int64), streams.uniform()
        for rows in group_rows(hash_rows(givens)):
            leaf_of[rows] = choose_leaves(self.log_weights_given(givens[rows[0]]), uniform[rows])
        values = np.empty((n, len(self.codings) - n_given), order="F")
        for k in range(values.shape[1]):
            values[:, k] = self._draw_column(n_given + k, leaf_of, streams)
        return values

    def _draw_column(self, j: int, leaf_of: Ints, streams: RowStreams) -> Floats:
        first, has_mass, below, _, *of_leaves, normal, _, smoothing = self._parts
        out = np.empty(leaf_of.size)
        draw_free(j, leaf_of, streams.uniform(), streams.uniform(), first, has_mass, self.value_of_code, below,
                  *of_leaves, normal, smoothing, out)  # fmt: skip
        return out

    def draw_within(self, givens: Floats, streams: RowStreams, within: Mapping[int, Within]) -> RestrictedDraw:
        """Draw the other columns given the first ones, inside restrictions of some (steps 4 and 5)."""
        n, n_given = givens.shape
        n_drawn = len(self.codings) - n_given
        leaf_of, uniform = np.zeros(n, dtype=np.int64), streams.uniform()
        values, log_mass = np.full((n, n_drawn), np.nan, order="F"), np.zeros(n)
        groups = list(group_rows(hash_rows(np.column_stack([givens, *self._restriction_keys(within, n, n_given)]))))
        inside: list[dict[int, tuple[Any, ...]]] = []
        for rows in groups:
            weights = self.log_weights_given(givens[rows[0]])
            before = np.logaddexp.reduce(weights)
            allowed_of = {k: self._allowed(n_given + k, each.take(rows[:1])) for k, each in within.items()}
            inside.append(allowed_of)
            weights = weights.copy()
            for k, allowed in allowed_of.items():
                leaf_masses(n_given + k, *allowed, *self._parts, weights)
            log_mass[rows] = np.logaddexp.reduce(weights) - before
            if not np.isneginf(log_mass[rows[0]]):
                leaf_of[rows] = choose_leaves(weights, uniform[rows])
        rejected = np.isneginf(log_mass)
        for k in range(n_drawn):
            if k not in within:
                values[:, k] = self._draw_column(n_given + k, leaf_of, streams)
                continue
            u_code, u_spread = streams.uniform(), streams.uniform()
            for rows, allowed_of in zip(groups, inside):
                if not rejected[rows[0]]:
                    values[rows, k] = self._draw_inside(
                        n_given + k, leaf_of[rows], u_code[rows], u_spread[rows], allowed_of[k]
                    )
        values[rejected] = np.nan
        return RestrictedDraw(values, rejected, log_mass)

    def _draw_inside(self, j: int, leaf_of: Ints, u_code: Floats, u_spread: Floats, allowed: tuple[Any, ...]) -> Floats:
        first, has_mass, *rest = self._parts
        out = np.empty(leaf_of.size)
        draw_inside(j, leaf_of, u_code, u_spread, *allowed, first, has_mass, self.value_of_code, *rest, out)
        return out

    def _restriction_keys(self, within: Mapping[int, Within], n: int, n_given: int) -> Iterator[Floats]:
        """Yield arrays that are equal for rows with equal restrictions."""
        for k, each in within.items():
            yield np.column_stack([*each.bounds(n), each.allows_missing(n)])
            if self.codings[n_given + k].n_levels:
                yield each.level_mask(n, self.codings[n_given + k].n_levels).astype(np.float64)

    def _allowed(self, j: int, within: Within) -> tuple[Bools, Floats, float, float]:
        """Return the allowed codes with point mass of one row, their cumulative counts, and bounds of other numbers."""
        coding = self.codings[j]
        low, high = (float(end[0]) for end in within.bounds(1))
        numbers = (coding.values >= low) & (coding.values <= high)
        levels = within.level_mask(1, coding.n_levels)[0] if coding.n_levels else np.empty(0, dtype=bool)
        allowed = np.concatenate([within.allows_missing(1), levels, numbers]) & coding.mass_of_code
        counts = np.bincount(self.codes[j], self.weights, minlength=coding.n_codes)
        if low == high and (coding.values[numbers].size and coding.has_mass[numbers].all()):
            low, high = np.inf, -np.inf  # one number, which has point mass
        return allowed, np.concatenate([[0.0], np.cumsum(np.where(allowed, counts, 0))]), low, high

    def log_densities(self, matrix: Floats, n_given: int) -> Floats:
        """Return the log density of each further column given all before it."""
        n, p = matrix.shape
        found = np.empty((n, p - n_given))
        at_once = max(1, MOST_CELLS // self.log_weight.size)
        for begin in range(0, n, at_once):
            some = slice(begin, begin + at_once)
            found[some] = self._log_densities(matrix[some], n_given)
        return found

    def _log_densities(self, matrix: Floats, n_given: int) -> Floats:
        codes, spread, values = self._coded(matrix)
        n, n_leaves = matrix.shape[0], self.log_weight.size
        living = np.repeat(np.arange(n_leaves, dtype=np.int32)[None], n, axis=0)
        likely, n_living = np.repeat(np.exp(self.log_weight)[None], n, axis=0), np.full(n, n_leaves)
        log_scale, now, known = np.zeros(n), np.zeros(n), np.empty(n_leaves)
        found = np.empty(matrix.shape)
        for j in range(matrix.shape[1]):
            _, one, group = np.unique(hash_rows(values[:, [j]]), return_index=True, return_inverse=True)
            before, now = now, np.empty(n)
            distinct = codes[one, j], spread[one, j], values[one, j]
            group = group.ravel()
            order = np.argsort(group, kind="stable")
            multiply_column(j, order, group, *distinct, self.codes[j][self.rows], *self._parts, living, n_living,
                            likely, known, log_scale, now)  # fmt: skip
            found[:, j] = np.subtract(now, before, out=np.full(n, -np.inf), where=~np.isneginf(now))
        return found[:, n_given:]
