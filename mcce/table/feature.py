"""One column of a table: its kind and levels, and its values as float64 and back.

`read_feature` reads a training column, `Feature.encode` raises on values that its dtype cannot hold, `Feature.decode`
restores exactly that dtype, and `Feature.grid` has the possible numbers.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types as ptypes

from mcce.base.arrays import Floats
from mcce.exceptions import InputError, spell
from mcce.storage.fields import stored
from mcce.storage.state import stateful
from mcce.table.dtypes import (
    EXACT,
    MOST_TICKS,
    column_of,
    date_family,
    from_ticks,
    holds_missing,
    holds_numbers,
    is_dated,
    is_numeric,
    is_ordered,
    numpy_dtype,
    origin_and_unit,
    to_ticks,
)
from mcce.table.grid import MOST_DECIMALS, Grid, decimals_of
from mcce.wording import Either, PythonOnly, Setting, Values, entry

Kind = Literal["numeric", "categorical", "ordered"]
KINDS: tuple[Kind, ...] = ("numeric", "categorical", "ordered")


@stateful("Feature")
@dataclass(frozen=True)
class Feature:
    """One column: its kind, dtype and levels, and the encoding of its values as numbers.

    Attributes
    ----------
    name : hashable
        Column label.
    kind : {"numeric", "categorical", "ordered"}
    dtype : dtype of the training column, restored by `decode`.
    levels : pandas Index of the levels in code order; None for a numeric column.
    low, high : smallest and largest encoded value in the training data (NaN if all are missing).
    origin, unit : a date is encoded as (ticks - origin) / unit.
    decimals : decimals of the training values; None if they have more than 12, or are not numbers.
    has_missing : whether the training column holds missing values.
    missing : the missing value of an object column.
    """

    name: Hashable
    kind: Kind
    dtype: Any
    levels: pd.Index[Any] | None = stored(pd.Index, optional=True, default=None)
    low: float = stored(float, finite=False, default=math.nan)
    high: float = stored(float, finite=False, default=math.nan)
    origin: int = stored(int, least=-int(MOST_TICKS), most=int(MOST_TICKS) - 1, default=0)
    unit: int = stored(int, least=1, most=int(MOST_TICKS) - 1, default=1)
    has_missing: bool = stored(bool, default=False)
    missing: object = None
    decimals: int | None = stored(int, least=0, most=MOST_DECIMALS, optional=True, default=None)

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers (or dates), not levels."""
        return self.kind == "numeric"

    @property
    def n_levels(self) -> int:
        """Number of levels; 0 for a numeric column."""
        return 0 if self.levels is None else len(self.levels)

    @property
    def span(self) -> float:
        """Width of the training range in encoded units; 0 for a constant or all-missing column."""
        return self.high - self.low if self.high > self.low else 0.0

    @property
    def grid(self) -> Grid:
        """The possible numbers of the column."""
        return Grid.of_dtype(self.dtype, self.decimals, self.origin, self.unit)

    def encode(self, column: pd.Series[Any], where: str) -> Floats:
        """Write the values of `column` as float64; `where` names the table in error messages."""
        dtype = column.dtype
        if self.is_numeric and isinstance(dtype, np.dtype) and dtype == self.dtype and dtype.kind in "iuf":
            values = np.array(column.to_numpy(), dtype=np.float64)
            _check_finite(values, self.name, where)
            _check_exact(values, column, where)
            return values
        if self.levels is not None and isinstance(dtype, pd.CategoricalDtype) and dtype.categories.equals(self.levels):
            codes = cast("pd.Categorical", column.array).codes
            return np.where(codes < 0, np.nan, codes.astype(np.float64))
        missing = column.isna().to_numpy(dtype=bool)
        if self.is_numeric:
            return self._encode_numbers(column, missing, where)
        return self._encode_levels(column, missing, where)

    def _encode_numbers(self, column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> Floats:
        if is_dated(self.dtype):
            return self._encode_ticks(column, missing, where)
        if not holds_numbers(column):
            raise InputError(
                *column_of(self.name, where),
                " is numeric in the training data but ",
                Either(PythonOnly(f"has dtype {column.dtype} here"), "not here"),
                "; convert it to numbers.",
            )
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        _check_finite(values, self.name, where)
        _check_exact(values, column, where)
        with np.errstate(over="ignore", invalid="ignore"):
            held = values.astype(numpy_dtype(self.dtype)).astype(np.float64)
        self._refuse(column, ~missing & (held != values), where)
        return values

    def _encode_ticks(self, column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> Floats:
        cast = column if column.dtype == self.dtype else self._cast_dates(column, missing, where)
        ticks = to_ticks(cast)
        whole, rest = np.divmod(ticks - self.origin, self.unit)
        encoded = whole + rest / self.unit
        encoded[missing] = np.nan
        # integer differences may overflow; the float difference shows it
        too_far = np.abs(ticks.astype(np.float64) - self.origin) >= MOST_TICKS
        self._refuse(column, ~missing & (too_far | (self._decode_ticks(encoded) != ticks)), where)
        return encoded

    def _cast_dates(self, column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> pd.Series[Any]:
        """Convert dates or durations to the training dtype; raise if values would change."""
        inferred = column.infer_objects()
        try:
            if not is_dated(inferred.dtype) or date_family(inferred.dtype) != date_family(self.dtype):
                raise TypeError("these are not the same sort of dates, durations or periods")
            cast = inferred.astype(self.dtype)
            back = cast.astype(inferred.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                *column_of(self.name, where),
                Either(
                    PythonOnly(
                        f" has dtype {column.dtype}, which does not convert to the training data's {self.dtype}"
                    ),
                    " does not convert to what it is in the training data",
                ),
                f": {error}",
            ) from error
        self._refuse(column, ~missing & (to_ticks(back) != to_ticks(inferred)), where)
        return cast

    def _refuse(self, column: pd.Series[Any], not_held: npt.NDArray[np.bool_], where: str) -> None:
        """Raise if any value is marked as one that the training dtype cannot hold."""
        if not_held.any():
            first = int(np.argmax(not_held))
            raise InputError(
                *column_of(self.name, where),
                f" holds {column.iloc[first]!s} in row {spell(column.index[first])}, which the training data's ",
                Either(PythonOnly(str(self.dtype)), "type"),
                " cannot hold exactly; convert it, or train on a wider type.",
            )

    def _encode_levels(self, column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> Floats:
        assert self.levels is not None
        codes = self._find_levels(column)
        unknown = (codes < 0) & ~missing
        if unknown.any():
            first, row = column[unknown].iloc[0], column.index[unknown][0]
            raise InputError(
                *column_of(self.name, where),
                f" holds the level {spell(first)} (row {spell(row)}), unknown here (known: ",
                Values(self.levels),
                "). Refit with it, or drop the row.",
            )
        encoded = codes.astype(np.float64)
        encoded[missing] = np.nan
        return encoded

    def is_unknown(self, column: pd.Series[Any]) -> npt.NDArray[np.bool_]:
        """Return which cells hold an unknown level; none of a numeric column."""
        if self.levels is None:
            return np.zeros(len(column), dtype=bool)
        return (self._find_levels(column) < 0) & ~column.isna().to_numpy(dtype=bool)

    def _find_levels(self, column: pd.Series[Any]) -> npt.NDArray[np.intp]:
        """Return the code of each value, -1 for unknown levels."""
        assert self.levels is not None
        if isinstance(column.dtype, np.dtype) and column.dtype == self.dtype and column.dtype.kind in "iub":
            whole = self.levels.to_numpy(dtype=column.dtype)  # faster than by objects
            order, values = np.argsort(whole), column.to_numpy()
            nearest = order[np.minimum(np.searchsorted(whole, values, sorter=order), whole.size - 1)]
            return np.where(whole[nearest] == values, nearest, -1)
        try:
            place, distinct = pd.factorize(column)
        except TypeError as error:
            raise _not_levels(column, "X", error) from error
        known = self.levels.astype(object)  # an index of dates or intervals matches more than equal values
        code_of_distinct = known.get_indexer(pd.Index(distinct.astype(object), dtype=object, tupleize_cols=False))
        return np.asarray(np.append(code_of_distinct, -1)[place])

    def decode(self, encoded: Floats) -> Any:
        """Return encoded values as an array of the training column's dtype."""
        missing = np.isnan(encoded)
        if missing.any() and not holds_missing(self.dtype):
            raise InputError(
                f"column {self.name!r} has a missing value, which the training data's ",
                Either(PythonOnly(f"dtype {self.dtype}"), "type"),
                " cannot hold; fill it, or train on a type that can be missing",
                PythonOnly(" (float64, Int64, boolean)"),
                ".",
            )
        if self.is_numeric:
            return self._decode_numbers(encoded, missing)
        assert self.levels is not None
        codes = np.where(missing, -1, encoded).astype(np.intp)
        if isinstance(self.dtype, pd.CategoricalDtype):
            return pd.Categorical.from_codes(codes, dtype=self.dtype, validate=False)
        if isinstance(self.dtype, np.dtype) and not is_dated(self.dtype):
            values = np.empty(codes.size, dtype=self.dtype)
            values[~missing] = self.levels.to_numpy(dtype=self.dtype)[codes[~missing]]
            if missing.any():
                values[missing] = self.missing
            return values
        return pd.array(self.levels, dtype=self.dtype).take(codes, allow_fill=True)

    def _decode_numbers(self, encoded: Floats, missing: npt.NDArray[np.bool_]) -> Any:
        if is_dated(self.dtype):
            return from_ticks(self._decode_ticks(encoded), missing, self.dtype)
        if isinstance(self.dtype, np.dtype):
            return encoded.astype(self.dtype)
        if ptypes.is_integer_dtype(self.dtype):
            whole = pd.array(np.where(missing, 0, encoded).astype(np.int64), dtype=pd.Int64Dtype())
            whole[missing] = pd.NA
            return whole.astype(self.dtype)
        return pd.Series(encoded).astype(self.dtype).array

    def _decode_ticks(self, encoded: Floats) -> npt.NDArray[np.int64]:
        """Return ticks from whole units and rests, which are exact for long spans; NaN becomes the origin."""
        whole = np.floor(np.where(np.isnan(encoded), 0.0, encoded))
        rest = np.where(np.isnan(encoded), 0.0, encoded - whole)
        ticks: npt.NDArray[np.int64] = whole.astype(np.int64) * self.unit + np.rint(rest * self.unit).astype(np.int64)
        return ticks + self.origin


def read_feature(column: pd.Series[Any], override: Kind | None, where: str) -> Feature:
    dtype: Any = column.dtype
    missing = column.isna().to_numpy(dtype=bool)
    kind = override or default_kind(column, where)
    inner = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else getattr(dtype, "subtype", dtype)
    if isinstance(inner, np.dtype) and (inner.kind == "c" or (inner.kind == "f" and inner.itemsize > 8)):
        raise _not_supported(column, where)
    if isinstance(inner, np.dtype) and not inner.isnative:  # pandas cannot take rows of such a frame
        raise InputError(
            *column_of(column.name, where),
            f" has dtype {dtype}, whose byte order is not native; convert it",
            PythonOnly(f", as in .astype({inner.newbyteorder('=').name!r})"),
            ".",
        )
    if kind == "numeric":
        if not (is_numeric(dtype) or is_dated(dtype)):
            raise InputError(
                *column_of(column.name, where),
                PythonOnly(f" has dtype {dtype} and"),
                " cannot be numeric; convert it first, or leave it categorical.",
            )
        origin, unit = origin_and_unit(column, missing, where) if is_dated(dtype) else (0, 1)
        plain = Feature(column.name, "numeric", dtype, origin=origin, unit=unit)
        encoded = plain.encode(column, where)
        seen = encoded[~missing]
        low, high = (float(seen.min()), float(seen.max())) if seen.size else (math.nan, math.nan)
        return Feature(
            column.name,
            "numeric",
            dtype,
            low=low,
            high=high,
            origin=origin,
            unit=unit,
            has_missing=bool(missing.any()),
            decimals=decimals_of(seen, None if is_dated(dtype) else numpy_dtype(dtype)) if seen.size else None,
        )
    if kind == "ordered" and override and not (is_numeric(dtype) or is_ordered(dtype)):
        raise InputError(
            entry("kinds", column.name),
            " is 'ordered', but ",
            Either(
                (PythonOnly(f"dtype {dtype} has no order; use an ordered pandas category"),),
                "the column has no order; order its levels",
            ),
            ".",
        )
    levels = _levels(column, missing, where)
    sentinel = column[missing].iloc[0] if missing.any() else np.nan
    return Feature(
        column.name,
        kind,
        dtype,
        levels,
        0.0,
        float(max(len(levels) - 1, 0)),
        has_missing=bool(missing.any()),
        missing=sentinel,
    )


def default_kind(column: pd.Series[Any], where: str) -> Kind:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordered" if dtype.ordered else "categorical"
    try:
        if ptypes.is_bool_dtype(dtype) or ptypes.is_string_dtype(dtype) or ptypes.is_object_dtype(dtype):
            return "categorical"
        if is_numeric(dtype) or is_dated(dtype):
            return "numeric"
    except NotImplementedError:  # pandas knows some Arrow types by name only
        pass
    raise _not_supported(column, where)


def _not_supported(column: pd.Series[Any], where: str) -> InputError:
    return InputError(
        *column_of(column.name, where),
        " has ",
        Either(PythonOnly(f"dtype {column.dtype}"), "a type"),
        ", which is not supported; convert it to numbers, dates, strings or categories.",
    )


def _levels(column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> pd.Index[Any]:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories: pd.Index[Any] = dtype.categories
        return categories
    if ptypes.is_bool_dtype(dtype):
        return pd.Index([False, True], dtype=object)
    if is_numeric(dtype):
        _check_finite(column.to_numpy(dtype=np.float64, na_value=np.nan), column.name, where)
    try:
        seen = column[~missing].unique()
    except (TypeError, ValueError, NotImplementedError) as error:  # lists, structs, bytes in a foreign order
        raise _not_levels(column, where, error) from error
    levels: list[Any] = list(seen)
    if ptypes.is_object_dtype(dtype):
        _check_one_type_each(column[~missing], levels, where)
    with contextlib.suppress(TypeError):  # levels of several types stay in order of appearance
        levels = sorted(levels)
    found: pd.Index[Any] = pd.Index(levels, dtype=object, tupleize_cols=False)
    if not found.is_unique:  # Arrow's times are finer than Python's
        raise InputError(
            *column_of(column.name, where),
            f" holds values that are different in {dtype} and equal in Python, such as "
            f"{spell(found[found.duplicated()][0])}; round them, or convert the column.",
        )
    return found


def _not_levels(column: pd.Series[Any], where: str, error: Exception) -> InputError:
    odd = next((i for i, cell in enumerate(column) if not ptypes.is_hashable(cell)), None)
    such = "" if odd is None else f", as {spell(column.iloc[odd])} in row {spell(column.index[odd])}"
    fix = "Convert the column to texts or numbers, or make a column of each part."
    return InputError(*column_of(column.name, where), f" holds values that cannot be levels: {error}{such}. {fix}")


def _check_one_type_each(values: pd.Series[Any], levels: list[Any], where: str) -> None:
    """Raise on True beside 1, or 1 beside 1.0, which are equal and would be one level."""
    if not ptypes.infer_dtype(values, skipna=True).startswith("mixed"):
        return
    kept = {level: level for level in levels}
    for value in values:
        if type(value) is not type(kept[value]):
            raise InputError(
                *column_of(values.name, where),
                f" holds both {kept[value]!r} and {value!r}, which are equal and so one level; use one of them.",
            )


def _check_finite(values: Floats, name: Hashable, where: str) -> None:
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        raise InputError(
            *column_of(name, where),
            f" holds {infinite.size} infinite value(s), the first in row {infinite[0]} (counted from "
            "0); replace them by missing or by finite numbers.",
        )


def _check_exact(values: Floats, column: pd.Series[Any], where: str) -> None:
    if np.fmax.reduce(np.abs(values), initial=0.0) >= EXACT and not ptypes.is_float_dtype(column.dtype):
        raise InputError(
            *column_of(column.name, where),
            " holds integers of 2**53 or beyond, which cannot be compared exactly; drop it if it is "
            "an identifier, rescale it, or set ",
            Setting("kinds", {column.name: "categorical"}),
            ".",
        )
