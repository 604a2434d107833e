"""What regressions leave in a file, and whether it fits together when it comes back from one.

Each class declares what `fit` leaves, refuses a state that it could not have left (`check_complete`), and says what the
state tells of training values. Coefficients tell none, so these can be stored without donors.
"""

from __future__ import annotations

from copy import copy
from typing import TypeVar

from mcce.base.arrays import Floats, Ints
from mcce.exceptions import SamplerError
from mcce.samplers.density import ColumnDensity
from mcce.samplers.parametric.glm import Cumulative, Multinomial
from mcce.samplers.parametric.linear import LinearSampler
from mcce.samplers.parametric.regression import RegressionSampler
from mcce.samplers.smoothing import Smoother
from mcce.storage.fields import (
    FLOAT,
    INT,
    check_array,
    check_between,
    check_count_of,
    check_finite,
    check_flag,
    check_rising,
    check_type,
    require,
)
from mcce.table import Feature
from mcce.table.grid import MOST_DECIMALS

Norm = TypeVar("Norm", bound="StoredNorm")
Levels = TypeVar("Levels", bound="StoredLevels")


class StoredNorm(LinearSampler):
    """A normal regression and what its draws are rounded to; `column_` is for densities only."""

    takes_weights = True

    decimals_: int | None
    column_: ColumnDensity | None
    low_: float
    high_: float

    def check_complete(self, target: Feature, n_rows: int) -> None:
        """Refuse decimals that there are not, and a range without an order."""
        super().check_complete(target, n_rows)
        if self.decimals_ is not None:
            check_count_of(self.decimals_, "decimals_", 0, MOST_DECIMALS)
        check_type(self.column_, "column_", ColumnDensity, type(None))
        check_type(self.low_, "low_", float)
        check_type(self.high_, "high_", float)
        require(self.low_ < self.high_, "low_ is not below high_")

    def without_donors(self: Norm) -> Norm:
        """Return a copy without `column_`, whose knots are training values: it draws, but has no density."""
        bare = copy(self)
        bare.column_ = None
        return bare

    def disclosed(self) -> str:
        """Return how many training values the density is read from."""
        column = None if self.always_missing_ else self.column_
        if column is None:
            return "coefficients, and what its dtype holds"
        return f"coefficients, {column.atoms.size:,} frequent values of it, and {column.knots.size:,} quantiles of it"

    def column_density(self) -> ColumnDensity:
        """Return the column's density; one that was saved without donors has none."""
        if self.column_ is None:
            raise SamplerError(
                f'{self!r} was saved with donors="none", and its density is read from training values; '
                "save it with them."
            )
        return self.column_


class StoredNormRank(LinearSampler):
    """A normal regression on ranks, and the training values that the ranks are of."""

    takes_weights = True

    sorted_: Floats
    upto_: Floats | None = None
    smoother_: Smoother | None
    column_: ColumnDensity

    def check_complete(self, target: Feature, n_rows: int) -> None:
        """Refuse training values that are not in order."""
        super().check_complete(target, n_rows)
        check_array(self.sorted_, "sorted_", FLOAT, None)
        check_count_of(self.sorted_.size, "the number of sorted_", 1, n_rows)
        check_rising(self.sorted_, "sorted_", strictly=False)
        if self.upto_ is not None:
            check_array(self.upto_, "upto_", FLOAT, self.sorted_.size)
            check_rising(self.upto_, "upto_")
            require(self.upto_[0] > 0.0, "upto_ begins with no weight")
        check_type(self.smoother_, "smoother_", Smoother, type(None))
        check_type(self.column_, "column_", ColumnDensity)

    def disclosed(self) -> str:
        """Return that the training values stand in the state."""
        return "no training values of it" if self.always_missing_ else f"{self.sorted_.size:,} training values of it"


class StoredLevels(RegressionSampler):
    """Probabilities of the levels that occur: those of a multinomial model, or of a cumulative one."""

    n_levels_: int
    classes_: Ints
    shift_: Floats
    scale_: Floats
    model_: Multinomial | None

    def check_complete(self, target: Feature, n_rows: int) -> None:
        """Refuse coefficients that are not of the design, and classes that the target does not have."""
        q = self.design_.n_columns
        require(self.n_levels_ == target.n_levels, "n_levels_ is not that of the target")
        check_array(self.classes_, "classes_", INT, None)
        check_count_of(self.classes_.size, "the number of classes_", 1, target.n_levels)
        check_rising(self.classes_, "classes_")
        check_between(self.classes_, "classes_", 0, target.n_levels - 1)
        for name in ("shift_", "scale_"):
            check_array(getattr(self, name), name, FLOAT, q)
            check_finite(getattr(self, name), name)
        require((self.scale_ != 0.0).all(), "scale_ holds 0")
        check_type(self.model_, "model_", Multinomial, type(None))
        if self.model_ is not None:
            shape = (self.classes_.size - 1, q)
            require(self.model_.coef.shape == shape, "model_ is not of the design and the classes")
        else:
            require(self.classes_.size == 1 or self.has_another_model(), "model_ is missing")

    def has_another_model(self) -> bool:
        """Return whether the classes have another model."""
        return False

    def without_donors(self: Levels) -> Levels:
        """Return the sampler itself: its state is coefficients."""
        return self

    def disclosed(self) -> str:
        """Return that the state is coefficients."""
        return "coefficients, and means or ranges of what it is drawn given"


class StoredCumulative(StoredLevels):
    """The same with a cumulative model, and the multinomial one only where that failed."""

    cumulative_: Cumulative | None
    fell_back_: bool

    def check_complete(self, target: Feature, n_rows: int) -> None:
        """Refuse a cumulative model that is not of the design and the classes."""
        check_flag(self.fell_back_, "fell_back_")
        check_type(self.cumulative_, "cumulative_", Cumulative, type(None))
        super().check_complete(target, n_rows)
        if self.cumulative_ is not None:
            sizes = self.cumulative_.thresholds.size + 1, self.cumulative_.coef.size
            wanted = self.classes_.size, self.design_.n_columns
            require(sizes == wanted, "cumulative_ is not of the design and the classes")

    def has_another_model(self) -> bool:
        """Return whether the cumulative model is there."""
        return self.cumulative_ is not None
