"""Columns of a joint vine: what each stands for, as variables with an order.

1. A number, or an ordered level, is one variable, with the margin of its training values.
2. Unordered levels are an indicator each, the most frequent one has none. A column with missing values has one more
   indicator before these, or before its number.
3. A variable is seen only where all indicators before it in its column are 0, and its margin is that of these rows; so
   they are independent of each other. Elsewhere nothing is known of it: it covers all shares, from 0 to 1, which is no
   condition at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mcce.arrays import Bools, Floats
from mcce.samplers.copula.margins import Margin, by_frequency, kernel_margin
from mcce.samplers.vine.columns import cover
from mcce.samplers.vine.path import Known
from mcce.soundness import FLOAT, check_array, check_codes, check_flag, check_number, check_type, require
from mcce.state import stateful
from mcce.table import Column, Feature


@stateful("VineGenerator.Column")
@dataclass(frozen=True)
class JointColumn:
    """What a vine sees of one column.

    Attributes
    ----------
    is_number : whether it holds numbers.
    margin : of numbers and ordered levels that are not missing; None of unordered levels, or if all are missing.
    levels, shares : unordered levels, the most frequent one first, and their shares of those that are not missing.
    missing : share of the rows in which it is missing.
    """

    is_number: bool
    margin: Margin | None
    levels: Floats
    shares: Floats
    missing: float

    @classmethod
    def of(cls, column: Column) -> JointColumn:
        """Read the training values of a column."""
        is_known = ~np.isnan(column.values)
        known = column.take(is_known)
        missing = 0.0 if is_known.all() else 1.0 - known.total / column.total
        nothing = np.empty(0)
        if not known.values.size:
            return cls(column.feature.is_numeric, None, nothing, nothing, 1.0)
        if column.feature.kind != "categorical":
            return cls(column.feature.is_numeric, Margin.from_column(known), nothing, nothing, missing)
        levels, counts = by_frequency(known.values, known.weights)
        return cls(False, None, levels, counts / known.total, missing)

    def check_state(self) -> None:
        """Refuse what is no column."""
        check_flag(self.is_number, "is_number")
        check_type(self.margin, "margin", Margin, type(None))
        check_array(self.levels, "levels", FLOAT, None)
        check_array(self.shares, "shares", FLOAT, self.levels.size)
        check_number(self.missing, "missing", 0.0, 1.0)
        require(np.unique(self.levels).size == self.levels.size, "levels holds one of them twice")
        whole = bool((self.shares > 0.0).all()) and abs(float(self.shares.sum()) - 1.0) < 1e-6
        require(whole or not self.shares.size, "shares do not add up to 1")
        require(self.margin is None or self.margin.ordered, "margin is of a column without order")
        require(self.margin is None or not self.levels.size, "a column has a margin and unordered levels")
        some = self.margin is not None or self.levels.size > 0
        require(some == (self.missing < 1.0), "missing is not the share of the values that are missing")

    def check_column(self, feature: Feature) -> None:
        """Refuse what is of another column."""
        require(self.is_number == feature.is_numeric or self.missing == 1.0, "is_number is not as in the column")
        unordered = feature.kind == "categorical"
        require(unordered or not self.levels.size, "levels are of a column that has an order")
        require(not unordered or self.margin is None, "margin is of a column without order")
        check_codes(self.levels, "levels", feature.n_levels)
        if self.margin is not None and not feature.is_numeric:
            check_codes(self.margin.values, "values", feature.n_levels)

    @property
    def may_be_missing(self) -> bool:
        """Whether there is an indicator of missing values."""
        return 0.0 < self.missing < 1.0

    @cached_property
    def discrete(self) -> Bools:
        """Whether each variable of the column has point masses."""
        found = [True] * self.may_be_missing + [True] * max(self.levels.size - 1, 0)
        if self.margin is not None and self.margin.n_latents:
            # what may cover all shares has to be an interval
            found.append(bool(self.margin.atoms.any()) or self.may_be_missing)
        return np.array(found, dtype=bool)

    @cached_property
    def kernel(self) -> tuple[Floats, Floats]:
        """The smooth part of the margin, for densities."""
        assert self.margin is not None
        return kernel_margin(self.margin)

    @cached_property
    def chances(self) -> Floats:
        """Shares of the levels but the first, each among the rows that have none of those before it (step 3)."""
        shares = self.shares[1:]
        return np.asarray(shares / (1.0 - np.concatenate([[0.0], np.cumsum(shares)[:-1]])[: shares.size]))

    def cover(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the shares below and up to each value, for each variable: (rows, variables)."""
        is_missing = np.isnan(values)
        below, upto = np.zeros((2, values.size, self.discrete.size))
        hidden = np.zeros((values.size, self.discrete.size), dtype=bool)
        at = 0
        if self.may_be_missing:
            below[:, 0], upto[:, 0] = cover_indicator(is_missing, self.missing)
            hidden[is_missing, 1:] = True
            at = 1
        for level, chance in zip(self.levels[1:], self.chances):
            below[:, at], upto[:, at] = cover_indicator(values == level, float(chance))
            at += 1
            hidden[values == level, at:] = True
        if self.margin is not None and self.margin.n_latents:
            low, high = cover(self.margin, np.where(is_missing, self.margin.values[0], values))
            if self.discrete[at] and not self.margin.atoms.any():
                half = min(0.5 / self.margin.count, 0.5)
                low, high = np.maximum(low - half, 0.0), np.minimum(high + half, 1.0)
            below[:, at], upto[:, at] = low, high
        return np.where(hidden, 0.0, below), np.where(hidden, 1.0, upto)

    def add_to(self, known: Known, values: Floats) -> Known:
        """Return what is known with the values of this column, too."""
        below, upto = self.cover(values)
        for k in range(self.discrete.size):
            known = known.and_next(below[:, k], upto[:, k])
        return known


def cover_indicator(is_one: Bools, share: float) -> tuple[Floats, Floats]:
    """Return the shares below and up to an indicator that is 1 with so large a share."""
    return np.where(is_one, 1.0 - share, 0.0), np.where(is_one, 1.0, 1.0 - share)
