"""What a mixture sees of a column: a symbol, and of some numbers a score.

1. Levels are symbols, and so is a missing value, if the training rows have any.
2. Numbers that many rows share are symbols too, and all of them, if they are few (`ColumnDensity.classes`). All others
   are one more symbol, "another number", with a score: the normal quantile of the share of these numbers below it, half
   of its own included. A number between two training values has the score of the share below it.
3. What the training rows do not have, a level or a missing value, is no symbol (-1): it says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from mcce.arrays import Floats, Ints
from mcce.samplers.base import BaseMeasure
from mcce.samplers.column_density import ColumnDensity
from mcce.samplers.copula.margins import Margin, kernel_margin
from mcce.samplers.point_mass import find_point_masses
from mcce.soundness import FLOAT, check_array, check_count_of, check_flag, check_rising, check_type, require
from mcce.state import stateful
from mcce.table import Column, Feature


@stateful("mixture.Levels")
@dataclass(frozen=True)
class Levels:
    """A column of levels; `missing`: whether a missing value is one more symbol."""

    n_levels: int
    missing: bool

    def check_state(self) -> None:
        """Refuse what is no column of levels."""
        check_count_of(self.n_levels, "n_levels", 0, 2**31)
        check_flag(self.missing, "missing")

    def check_column(self, feature: Feature) -> None:
        """Refuse another column's levels."""
        require(not feature.is_numeric and feature.n_levels == self.n_levels, "n_levels are not those of the column")

    @property
    def n_symbols(self) -> int:
        """How many symbols the column has."""
        return self.n_levels + self.missing

    @property
    def n_scores(self) -> int:
        """How many of its symbols have a score: none."""
        return 0

    def symbols(self, values: Floats) -> Ints:
        """Return the symbol of each value (steps 1 and 3)."""
        is_missing = np.isnan(values)
        return np.where(is_missing, self.n_levels if self.missing else -1, np.where(is_missing, 0, values)).astype(
            np.int64
        )

    @property
    def base_measure(self) -> BaseMeasure:
        """What densities of the column are with respect to."""
        return "counting"


@stateful("mixture.Numbers")
@dataclass(frozen=True)
class Numbers:
    """A column of numbers.

    Attributes
    ----------
    classes : the numbers that are symbols, ascending.
    margin : the other training numbers, with their shares among each other; None if there are none.
    missing : whether a missing value is one more symbol.
    """

    classes: Floats
    margin: Margin | None
    missing: bool

    @classmethod
    def of(cls, values: Floats, weights: Floats | None = None) -> Numbers:
        """Read the training values of a column (step 2); weights count as copies."""
        is_known = ~np.isnan(values)
        known, weight = values[is_known], None if weights is None else weights[is_known]
        missing = known.size < values.size
        if not known.size:
            return cls(np.empty(0), None, missing)
        classes = ColumnDensity.of(known, weight).classes
        distinct, counts, has_mass = find_point_masses(known, weight)
        other = ~np.isin(distinct, classes)
        if not other.any():
            return cls(classes, None, missing)
        n = int((~np.isin(known, classes)).sum())
        total = n if weight is None else float(counts[other].sum())
        shares = np.concatenate([[0.0], np.cumsum(counts[other]) / total])
        shares[-1] = 1.0
        by_weight = None if weight is None else total
        return cls(classes, Margin(distinct[other], shares, has_mass[other], True, n, by_weight), missing)

    def check_state(self) -> None:
        """Refuse what is no column of numbers."""
        check_array(self.classes, "classes", FLOAT, None)
        check_rising(self.classes, "classes")
        check_type(self.margin, "margin", Margin, type(None))
        require(self.margin is None or self.margin.ordered, "margin is of a column without order")
        check_flag(self.missing, "missing")

    def check_column(self, feature: Feature) -> None:
        """Refuse another column's numbers."""
        require(feature.is_numeric, "classes are numbers, and the column has levels")

    @property
    def n_symbols(self) -> int:
        """How many symbols the column has."""
        return self.classes.size + self.n_scores + self.missing

    @property
    def n_scores(self) -> int:
        """How many of its symbols have a score: "another number" has one."""
        return int(self.margin is not None)

    def symbols(self, values: Floats) -> Ints:
        """Return the symbol of each value (steps 2 and 3)."""
        k = self.classes.size
        found = np.searchsorted(self.classes, values).astype(np.int64)
        found[~np.isin(values, self.classes)] = k if self.margin is not None else -1
        return np.where(np.isnan(values), self.n_symbols - 1 if self.missing else -1, found)

    def scores(self, values: Floats) -> Floats:
        """Return the scores (step 2), NaN of symbols without."""
        if self.margin is None:
            return np.full(values.size, np.nan)
        after = np.searchsorted(self.margin.values, values)
        tied = self.margin.position(values) >= 0
        share = (self.margin.shares[after] + self.margin.shares[np.minimum(after + tied, self.margin.values.size)]) / 2
        least = min(0.5 / self.margin.count, 0.5)
        score = scipy.special.ndtri(np.clip(share, least, 1.0 - least))
        return np.where(self.symbols(values) == self.classes.size, score, np.nan)

    @cached_property
    def kernel(self) -> tuple[Floats, Floats]:
        """The smooth part of the margin, for densities."""
        assert self.margin is not None
        return kernel_margin(self.margin)

    @property
    def base_measure(self) -> BaseMeasure:
        """What densities of the column are with respect to."""
        if self.margin is None or self.margin.atoms.all():
            return "counting"
        return "mixed" if self.classes.size or self.margin.atoms.any() else "lebesgue"


def read_column(column: Column) -> Levels | Numbers:
    """Return what a mixture sees of a column."""
    if column.feature.is_numeric:
        return Numbers.of(column.values, column.weights)
    return Levels(column.feature.n_levels, bool(np.isnan(column.values).any()))
