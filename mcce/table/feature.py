"""One column of a table: its kind, its levels or its grid, and its values as float64 and back.

Levels are encoded as 0, 1, ...; a date as the number of whole units since the earliest date of the training column.
`Feature.encode` raises on values that the training column could not hold, so `decode` gives back what was encoded.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types as ptypes

from mcce._utils import Bools, Floats, Ints
from mcce.exceptions import InputError, listing, spell
from mcce.table.dtypes import (
    EXACT,
    change_unit,
    date_family,
    from_ticks,
    holds_missing,
    is_date,
    is_number,
    numpy_dtype,
    python_dates,
    tick_length,
    tick_range,
    ticks_of,
)
from mcce.table.grid import Grid

Kind = Literal["numeric", "ordered", "categorical"]
KINDS: tuple[Kind, ...] = ("numeric", "ordered", "categorical")


@dataclass(frozen=True, eq=False)
class Feature:
    """One column: its kind, dtype and levels, and the encoding of its values as numbers.

    Attributes
    ----------
    name : hashable
        Column label.
    kind : {"numeric", "ordered", "categorical"}
    dtype : dtype of the training column, restored by `decode`
    levels : pandas Index of the levels in the order of their codes; None for a numeric column
    low, high : smallest and largest encoded training number, NaN if all are missing; the first and last code of levels
    decimals : decimals of the training values, 0 for whole numbers and dates; None if there are more than six
    has_missing : whether the training column has missing values
    missing : the missing value of an object column
    origin, unit : a date is encoded as (ticks - origin) / unit
    cell : class of the dates in an object column (`datetime.date` or `datetime.datetime`), else None

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.table import Schema
    >>> Schema.from_data(pd.DataFrame({"job": ["pilot", "clerk"]})).features[0].levels.tolist()
    ['clerk', 'pilot']
    """

    name: Hashable
    kind: Kind
    dtype: Any
    levels: pd.Index[Any] | None = None
    low: float = math.nan
    high: float = math.nan
    decimals: int | None = None
    has_missing: bool = False
    missing: Any = np.nan
    origin: int = 0
    unit: int = 1
    cell: type | None = None

    @classmethod
    def boolean(cls, name: Hashable) -> Feature:
        """Return a feature with the levels False and True."""
        return cls(name, "categorical", np.dtype(bool), pd.Index([False, True], dtype=object), 0.0, 1.0)

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers or dates, not levels."""
        return self.kind == "numeric"

    @property
    def is_date(self) -> bool:
        """Whether values are dates, durations or periods."""
        return self.is_numeric and (self.cell is not None or is_date(self.dtype))

    @property
    def n_levels(self) -> int:
        """Number of levels; 0 for a numeric column."""
        return 0 if self.levels is None else len(self.levels)

    @property
    def span(self) -> float:
        """Width of the training range in encoded units; 0 for a constant or all-missing column."""
        return self.high - self.low if self.high > self.low else 0.0

    @property
    def holds_missing(self) -> bool:
        """Whether the training dtype can hold missing values."""
        return holds_missing(self.dtype)

    @cached_property
    def grid(self) -> Grid | None:
        """The numbers that the column may hold; None for levels and for numbers with more than six decimals."""
        if not self.is_numeric or self.decimals is None:
            return None
        most = EXACT - 1
        if self.is_date:
            most = min(most, float(2**63 // self.unit - 1))  # so that the distance from the origin is an int64
            first, last = tick_range(self.dtype, self.cell)
            low, high = -((self.origin - first) // self.unit), (last - self.origin) // self.unit
            return Grid(0, max(float(low), -most), min(float(high), most))
        dtype = numpy_dtype(self.dtype)
        if dtype.kind in "iu":
            return Grid(0, max(float(np.iinfo(dtype).min), -most), min(float(np.iinfo(dtype).max), most))
        return Grid(self.decimals, narrow=dtype if dtype.itemsize < 8 else None)

    def round(self, values: Floats) -> Floats:
        """Return the nearest numbers that the column can hold: on its grid, or in the precision of its dtype."""
        if self.grid is not None:
            return self.grid.round(values)
        dtype = numpy_dtype(self.dtype) if self.is_numeric and not self.is_date else np.dtype(np.float64)
        if dtype.kind != "f" or dtype.itemsize >= 8:
            return values
        return np.clip(values, np.finfo(dtype).min, np.finfo(dtype).max).astype(dtype).astype(np.float64)

    def encode(self, column: pd.Series[Any], where: str) -> Floats:
        """Return the values of a column as float64; `where` names the table in error messages."""
        if self.levels is not None:
            values = self._encode_levels(column, where)
        else:
            values = self._encode_dates(column, where) if self.is_date else self._encode_numbers(column, where)
        if not self.holds_missing and np.isnan(values).any():
            raise InputError(
                f"{column_of(column, where)} has a missing value ({row_of(column, np.isnan(values))}), which the "
                f"fitted table's dtype {self.dtype} cannot hold; fill it, or refit with a dtype that can be missing "
                "(float64, Int64, boolean)."
            )
        return values

    def _encode_numbers(self, column: pd.Series[Any], where: str) -> Floats:
        dtype = column.dtype
        if ptypes.is_object_dtype(dtype):
            classes = ("integer", "floating", "mixed-integer-float", "boolean", "empty")
            is_numeric = ptypes.infer_dtype(column, skipna=True) in classes
        else:
            is_numeric = is_number(dtype) or (
                ptypes.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype)
            )
        if not is_numeric:
            raise InputError(f"{column_of(column, where)} has dtype {dtype}, but it was fitted as numbers; convert it.")
        if isinstance(dtype, np.dtype) and not ptypes.is_object_dtype(dtype):
            values = column.to_numpy().astype(np.float64)
        else:
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        check_finite(values, column, where)
        if not ptypes.is_float_dtype(dtype) and np.fmax.reduce(np.abs(values), initial=0.0) >= EXACT:
            raise InputError(
                f"{column_of(column, where)} holds integers of 2**53 or beyond, which floats cannot tell apart; drop "
                f"it if it is an identifier, rescale it, or set kinds={{{spell(self.name)}: 'categorical'}}."
            )
        if dtype != self.dtype:
            with np.errstate(over="ignore", invalid="ignore"):
                converted = values.astype(numpy_dtype(self.dtype)).astype(np.float64)
            self.check_held(column, (converted == values) | np.isnan(values), where)
        return values

    def _encode_dates(self, column: pd.Series[Any], where: str) -> Floats:
        missing = column.isna().to_numpy(dtype=bool)
        if missing.all():
            return np.full(len(column), np.nan)
        cell = python_dates(column)
        dates = column if cell is not None else column.infer_objects()
        if date_family(dates.dtype, cell) != date_family(self.dtype, self.cell):
            raise InputError(
                f"{column_of(column, where)} has dtype {column.dtype}, which does not convert to the fitted table's "
                f"{self.dtype}; convert it."
            )
        read = ticks_of(dates, missing, cell)
        ticks, is_held = change_unit(read, tick_length(dates.dtype, cell), tick_length(self.dtype, self.cell))
        whole, rest = np.divmod(ticks - self.origin, self.unit)
        encoded = whole + rest / self.unit
        # a difference of integers may overflow, which the difference of floats shows
        is_held &= np.abs(ticks.astype(np.float64) - self.origin) < 2.0**63
        self.check_held(column, missing | (is_held & (self._ticks(encoded) == ticks)), where)
        encoded[missing] = np.nan
        return encoded

    def check_held(self, column: pd.Series[Any], is_held: Bools, where: str) -> None:
        """Raise on values that the training dtype cannot hold."""
        if not is_held.all():
            value = column.iloc[int(np.argmin(is_held))]
            raise InputError(
                f"{column_of(column, where)} holds {value!s} ({row_of(column, ~is_held)}), which the fitted table's "
                f"dtype {self.dtype} cannot hold exactly; convert it, or refit with a wider dtype."
            )

    def _encode_levels(self, column: pd.Series[Any], where: str) -> Floats:
        codes = self._codes(column, where)
        is_unknown = (codes < 0) & ~column.isna().to_numpy(dtype=bool)
        if is_unknown.any():
            raise InputError(
                f"{column_of(column, where)} holds the level {spell(column.iloc[int(np.argmax(is_unknown))])} "
                f"({row_of(column, is_unknown)}), unknown to the fitted table (known: {listing(self._objects)}). "
                "Refit with it, or drop the row."
            )
        return np.where(codes < 0, np.nan, codes.astype(np.float64))

    def is_unknown(self, column: pd.Series[Any], where: str) -> Bools:
        """Return which cells hold a level that the training table lacks; none of a column of numbers."""
        if self.levels is None:
            return np.zeros(len(column), dtype=np.bool_)
        return np.asarray((self._codes(column, where) < 0) & ~column.isna().to_numpy(dtype=bool))

    def _codes(self, column: pd.Series[Any], where: str) -> Ints:
        """Return the code of each value, -1 for missing values and unknown levels."""
        if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.categories.equals(self.levels):
            return column.array.codes.astype(np.int64)
        try:
            places, distinct = pd.factorize(column)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise not_levels(column, where, error) from error
        # as objects, because an index of dates or intervals finds more than equal values
        codes = self._objects.get_indexer(pd.Index(distinct.astype(object), dtype=object, tupleize_cols=False))
        return np.append(codes, -1)[places].astype(np.int64)

    @cached_property
    def _objects(self) -> pd.Index[Any]:
        assert self.levels is not None
        return self.levels.astype(object)

    def decode(self, encoded: Floats) -> Any:
        """Return encoded values as an array of the training dtype."""
        missing = np.isnan(encoded)
        has_missing = bool(missing.any())
        if has_missing and not self.holds_missing:
            raise InputError(
                f"column {spell(self.name)} has a missing value, which the fitted table's dtype {self.dtype} cannot "
                "hold; refit with a dtype that can be missing (float64, Int64, boolean)."
            )
        if self.levels is not None:
            codes = (np.where(missing, -1.0, encoded) if has_missing else encoded).astype(np.intp)
            if isinstance(self.dtype, pd.CategoricalDtype):
                return pd.Categorical.from_codes(codes, dtype=self.dtype, validate=False)
            return self._level_values.take(codes)
        if self.is_date:
            return from_ticks(self._ticks(encoded), missing, self.dtype, self.cell)
        if isinstance(self.dtype, np.dtype):
            return encoded.astype(self.dtype)
        if ptypes.is_integer_dtype(self.dtype):
            whole = pd.array(np.where(missing, 0.0, encoded).astype(np.int64), dtype=pd.Int64Dtype())
            whole[missing] = pd.NA
            return whole.astype(self.dtype)
        return pd.Series(encoded).astype(self.dtype).array

    @cached_property
    def _level_values(self) -> Any:
        """The levels in the training dtype, and the missing value as the last one, for code -1."""
        if isinstance(self.dtype, np.dtype) and self.dtype.kind in "iub":  # without a missing value
            return self._objects.to_numpy(dtype=self.dtype)
        if isinstance(self.dtype, np.dtype) and self.dtype.kind in "fO":
            sentinel = np.array([None], dtype=object)
            sentinel[0] = self.missing
            return np.concatenate([self._objects.to_numpy(), sentinel]).astype(self.dtype)
        return pd.array([*self._objects, None], dtype=self.dtype)

    def _ticks(self, encoded: Floats) -> Ints:
        """Return ticks from whole units and rests, which are exact for long spans; the origin for NaN."""
        known = np.where(np.isnan(encoded), 0.0, encoded)
        whole = np.floor(known)
        rest = np.rint((known - whole) * self.unit)
        return whole.astype(np.int64) * self.unit + rest.astype(np.int64) + self.origin


def column_of(column: pd.Series[Any], where: str) -> str:
    """Return the beginning of a message about a column."""
    return f"column {spell(column.name)} of {where}"


def row_of(column: pd.Series[Any], marked: Bools) -> str:
    """Return the label of the first marked row, for a message."""
    return f"row {spell(column.index[int(np.argmax(marked))])}"


def check_finite(values: Floats, column: pd.Series[Any], where: str) -> None:
    """Raise on infinite values."""
    infinite = np.isinf(values)
    if infinite.any():
        raise InputError(
            f"{column_of(column, where)} holds {infinite.sum()} infinite value(s), the first in "
            f"{row_of(column, infinite)}; replace them by missing or by finite numbers."
        )


def not_levels(column: pd.Series[Any], where: str, error: Exception) -> InputError:
    """Return the error for cells such as lists, which cannot be levels."""
    odd = np.array([not ptypes.is_hashable(cell) for cell in column])
    such = (
        f", such as {spell(column.iloc[int(np.argmax(odd))])} ({row_of(column, odd)})" if odd.any() else f" ({error})"
    )
    return InputError(
        f"{column_of(column, where)} holds values that cannot be levels{such}; convert them to texts or numbers, or "
        "make a column of each part."
    )
