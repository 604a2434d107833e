"""The design matrix of the parametric samplers, and augmentation against separation.

1. Design columns, in synthpop's order: the numeric givens in the order of the data, then for each factor (categorical
   or ordered given) one treatment dummy for every level but the first.
2. Missing values are coded as in synthpop: a missing number is 0 and has an indicator among the factors; a missing
   level is one more level.
3. Augmentation (White, Daniel and Royston 2010, "Avoiding bias due to perfect prediction in multiple imputation of
   incomplete categorical variables", section 4): for every design column and every class two rows of small weight at
   mean ± sd / 2, so that every class occurs on both sides of every column. They also break collinearity.

Factors with one observed level have no column. An unobserved level is coded as the base level. A missing value of a
column that is complete in the training rows is coded as the mean or the base level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcce.base.arrays import Floats, Ints
from mcce.storage.fields import FLOAT, INT, check_between, check_finite, require, stored
from mcce.storage.state import stateful
from mcce.table import Feature, Table
from mcce.table.checks import LARGEST
from mcce.table.weights import deviation_of, mean_of

NUMBER = -1  # `code` of a numeric column; that of a dummy is the code of its level
IS_MISSING = -2  # `code` of the indicator of a missing number
SMALLEST_COUNTED = 1.0 / LARGEST  # columns whose values are all smaller count as zero, because their squares underflow


@stateful("parametric.Design")
@dataclass(frozen=True)
class Design:
    """The design columns, as read from the training rows.

    Attributes
    ----------
    source : position of the given that each design column comes from.
    code : level of each dummy, or `NUMBER`, or `IS_MISSING`; a missing level has the code `n_levels`.
    fill : value that replaces a missing number: 0 if there is an indicator, else the training mean.
    constant : value of a number that is constant in the training rows, used for all later rows; else NaN.
    columns : names of the design columns, as in "sex[T.male]".
    """

    source: Ints = stored(INT, "columns")
    code: Ints = stored(INT, "columns", least=IS_MISSING, most=2**31)
    fill: Floats = stored(FLOAT, "columns")
    constant: Floats = stored(FLOAT, "columns", finite="or missing")
    columns: tuple[str, ...] = stored(tuple, None, of=str, default=())

    @classmethod
    def read(cls, given: Table, *, keep_constants: bool) -> Design:
        """Read the design columns from training rows; means are weighted.

        Constant numbers are kept on request, because the ridge of synthpop's `norm` includes them.
        """
        numbers: list[tuple[int, int, float, float]] = []
        factors: list[tuple[int, int, float, float]] = []
        for j, feature in enumerate(given.features):
            column = given.matrix[:, j]
            missing = np.isnan(column)
            seen = np.unique(column[~missing])
            if not feature.is_numeric:
                codes = [int(code) for code in seen] + [feature.n_levels] * bool(missing.any())
                factors += [(j, code, np.nan, np.nan) for code in codes[1:]]
                continue
            if seen.size and missing.any():
                factors.append((j, IS_MISSING, np.nan, np.nan))
                seen = np.union1d(seen, [0.0])
            if np.abs(seen).max(initial=0.0) < SMALLEST_COUNTED:
                continue
            if seen.size > 1:
                fill = 0.0 if missing.any() else float(mean_of(column, given.weights))
                numbers.append((j, NUMBER, fill, np.nan))
            elif keep_constants:
                numbers.append((j, NUMBER, float(seen[0]), float(seen[0])))
        columns = numbers + factors
        return cls(
            np.array([column[0] for column in columns], dtype=np.int64),
            np.array([column[1] for column in columns], dtype=np.int64),
            np.array([column[2] for column in columns], dtype=np.float64),
            np.array([column[3] for column in columns], dtype=np.float64),
            tuple(_column_name(given.features[column[0]], column[1]) for column in columns),
        )

    def check_state(self) -> None:
        """Raise if the parts do not form a design."""
        check_finite(self.fill[self.code == NUMBER], "fill")
        # a block is the dummies of one factor, or a single other column
        block = np.where(self.code >= 0, self.source, -1 - np.arange(self.n_columns))
        n_runs = int((np.diff(block) != 0).sum()) + bool(block.size)
        require(np.unique(block).size == n_runs, "source has the dummies of a factor in several places")

    def check_columns(self, given: Sequence[Feature]) -> None:
        """Raise if the design does not belong to these columns."""
        check_between(self.source, "source", 0, len(given) - 1)
        n_levels = np.array([feature.n_levels for feature in given], dtype=np.int64)[self.source]
        is_number = np.array([feature.is_numeric for feature in given], dtype=bool)[self.source]
        require(((self.code < 0) == is_number).all(), "code has dummies of numbers, or numbers of levels")
        require((self.code <= n_levels).all(), "code holds a level that the column does not have")

    def without(self, given: int) -> Design:
        """Return the design without the columns that come from one of the givens."""
        keep = np.flatnonzero(self.source != given)
        names = tuple(self.columns[k] for k in keep)
        return Design(self.source[keep], self.code[keep], self.fill[keep], self.constant[keep], names)

    @property
    def n_columns(self) -> int:
        """Number of design columns without the intercept."""
        return self.source.size

    def matrix(self, given: Table) -> Floats:
        """Return the design matrix of some rows, without intercept."""
        out = np.empty((given.n_rows, self.n_columns), order="F")
        for k, (j, code) in enumerate(zip(self.source, self.code)):
            column = given.matrix[:, j]
            if code == NUMBER:
                out[:, k] = self._number(k, column)
            elif code == IS_MISSING:
                out[:, k] = np.isnan(column)
            else:
                out[:, k] = np.where(np.isnan(column), given.features[j].n_levels, column) == code
        return out

    def predict(self, given: Table, intercept: Floats, coef: Floats) -> Floats:
        """Return linear predictors, one column for each of the `intercept.size` rows of `coef`.

        They are summed column by column, not by a matrix product, so that the predictor of a row does not depend on
        other rows, to the last bit.
        """
        out = np.tile(intercept, (given.n_rows, 1))
        k = 0
        while k < self.n_columns:
            j, code = self.source[k], self.code[k]
            column = given.matrix[:, j]
            if code == NUMBER:
                out += self._number(k, column)[:, None] * coef[:, k]
                k += 1
            elif code == IS_MISSING:
                out += np.isnan(column)[:, None] * coef[:, k]
                k += 1
            else:
                n_dummies = int((self.source[k:] == j).sum())
                n_levels = given.features[j].n_levels
                effect = np.zeros((n_levels + 1, intercept.size))
                effect[self.code[k : k + n_dummies]] = coef[:, k : k + n_dummies].T
                out += effect[np.where(np.isnan(column), n_levels, column).astype(np.intp)]
                k += n_dummies
        return out

    def _number(self, k: int, column: Floats) -> Floats:
        if not np.isnan(self.constant[k]):
            return np.full(column.size, self.constant[k])
        return np.where(np.isnan(column), self.fill[k], column)


def _column_name(feature: Feature, code: int) -> str:
    if code == NUMBER:
        return str(feature.name)
    if code == IS_MISSING:
        return f"is_missing({feature.name})"
    assert feature.levels is not None
    return f"{feature.name}[T.{feature.levels[code] if code < feature.n_levels else 'missing'}]"


@dataclass(frozen=True)
class Rows:
    """Rows of a likelihood: design without intercept, class 0, 1, ... and weight."""

    x: Floats
    y: Ints
    weight: Floats


def augmentation(x: Floats, n_classes: int, weights: Floats | None = None) -> Rows:
    """Return the rows that step 3 adds to the design `x`.

    These are 2 p K rows, in blocks by column, then class, then (+, -): the column means, with one column moved by half
    its standard deviation, clipped to its range. Each weighs (p + 1) / (2 p K), so their total weight is the number of
    coefficients including the intercept. `weights` are those of the rows of `x`.
    """
    p = x.shape[1]
    mean, half = mean_of(x, weights), deviation_of(x, weights, ddof=1) / 2.0
    low, high = x.min(axis=0), x.max(axis=0)
    rows = np.tile(mean, (2 * p * n_classes, 1))
    column = np.repeat(np.arange(p), 2 * n_classes)
    up = np.tile([True, False], p * n_classes)
    moved = mean[column] + np.where(up, half[column], -half[column])
    rows[np.arange(column.size), column] = np.clip(moved, low[column], high[column])
    classes = np.tile(np.repeat(np.arange(n_classes), 2), p)
    return Rows(rows, classes, np.full(column.size, (p + 1) / max(2 * p * n_classes, 1)))


def augmented(x: Floats, y: Ints, n_classes: int, weights: Floats | None = None) -> Rows:
    """Return the training rows, of weight 1 by default, followed by their augmentation (none without columns)."""
    weight = np.ones(y.size) if weights is None else weights
    if x.shape[1] == 0 or n_classes < 2:
        return Rows(x, y, weight)
    extra = augmentation(x, n_classes, weights)
    return Rows(np.vstack([x, extra.x]), np.concatenate([y, extra.y]), np.concatenate([weight, extra.weight]))
