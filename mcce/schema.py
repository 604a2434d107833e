"""What the columns of a table are, and the table as one float matrix.

1. `Schema.from_data` reads the kind of every column once, from the training data: numeric (numbers, dates,
   durations), categorical (unordered: strings, booleans, categories) or ordered (ordered categories).
2. `Schema.encode` turns a table into a `Table`: one Fortran-ordered float64 matrix. Numbers stand for themselves,
   dates are counted in their own unit from the earliest one, categories are level codes 0, 1, ...; NaN is missing.
3. `Schema.decode` turns such a matrix back into a frame with exactly the training data's columns and dtypes.

Encoding is lossless or an error: nothing is dropped, rounded or recoded in silence.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types as ptypes

from mcce.exceptions import InputError, did_you_mean, listing

Kind = Literal["numeric", "categorical", "ordered"]
KINDS: tuple[Kind, ...] = ("numeric", "categorical", "ordered")
Data = pd.DataFrame | npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Result = TypeVar("Result")

_EXACT = 2.0**53  # integers below are exact in float64
_MOST_TICKS = 2.0**63


@dataclass(frozen=True)
class Feature:
    """One column: its kind, dtype and levels, and how its values are written as numbers.

    Attributes
    ----------
    name : hashable
        Column label.
    kind : {"numeric", "categorical", "ordered"}
    dtype : dtype of the training column, restored by `decode`.
    levels : pandas Index of the levels in code order; None for a numeric column.
    low, high : smallest and largest encoded value in the training data (NaN if all are missing).
    origin, unit : a date is encoded as (ticks - origin) / unit.
    has_missing : whether the training column holds missing values.
    missing : how a missing value is written in an object column.
    """

    name: Hashable
    kind: Kind
    dtype: Any
    levels: pd.Index[Any] | None = None
    low: float = math.nan
    high: float = math.nan
    origin: int = 0
    unit: int = 1
    has_missing: bool = False
    missing: object = None

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

    def encode(self, column: pd.Series[Any], where: str) -> Floats:
        """Write the values of `column` as float64; `where` names the table in error messages."""
        missing = column.isna().to_numpy(dtype=bool)
        if self.is_numeric:
            return self._encode_numbers(column, missing, where)
        return self._encode_levels(column, missing, where)

    def _encode_numbers(self, column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> Floats:
        if _is_dated(self.dtype):
            return self._encode_ticks(column, missing, where)
        if not _holds_numbers(column):
            raise InputError(
                f"column {self.name!r} of {where} is numeric in the training data but has dtype {column.dtype} here; "
                "convert it to numbers."
            )
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        _check_finite(values, self.name, where)
        _check_exact(values, column, where)
        with np.errstate(over="ignore", invalid="ignore"):
            held = values.astype(_numpy_dtype(self.dtype)).astype(np.float64)
        self._refuse(column, ~missing & (held != values), where)
        return values

    def _encode_ticks(self, column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> Floats:
        cast = column if column.dtype == self.dtype else self._cast_dates(column, missing, where)
        ticks = _ticks(cast)
        whole, rest = np.divmod(ticks - self.origin, self.unit)
        encoded = whole + rest / self.unit
        encoded[missing] = np.nan
        # where the exact difference has wrapped, the approximate one tells
        too_far = np.abs(ticks.astype(np.float64) - self.origin) >= _MOST_TICKS
        self._refuse(column, ~missing & (too_far | (self._decode_ticks(encoded) != ticks)), where)
        return encoded

    def _cast_dates(self, column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> pd.Series[Any]:
        """Write dates or durations in the training data's dtype; what that would change is an error."""
        inferred = column.infer_objects()
        try:
            if not _is_dated(inferred.dtype) or _date_family(inferred.dtype) != _date_family(self.dtype):
                raise TypeError("these are not the same sort of dates, durations or periods")
            cast = inferred.astype(self.dtype)
            back = cast.astype(inferred.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"column {self.name!r} of {where} has dtype {column.dtype}, which does not convert to the "
                f"training data's {self.dtype}: {error}"
            ) from error
        self._refuse(column, ~missing & (_ticks(back) != _ticks(inferred)), where)
        return cast

    def _refuse(self, column: pd.Series[Any], unheld: npt.NDArray[np.bool_], where: str) -> None:
        """Raise an error if any value is marked as one that the training data's dtype cannot hold."""
        if unheld.any():
            first = int(np.argmax(unheld))
            raise InputError(
                f"column {self.name!r} of {where} holds {column.iloc[first]!s} in row {column.index[first]!r}, "
                f"which the training data's {self.dtype} cannot hold exactly; convert it, or train on a wider dtype."
            )

    def _encode_levels(self, column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> Floats:
        assert self.levels is not None
        if isinstance(column.dtype, pd.CategoricalDtype) and column.cat.categories.equals(self.levels):
            codes = column.cat.codes.to_numpy()
        else:
            known = self.levels.astype(object)  # an index of dates or intervals matches more than equal values
            codes = known.get_indexer(pd.Index(column.astype(object), dtype=object))
            unknown = (codes < 0) & ~missing
            if unknown.any():
                first = column[unknown].iloc[0]
                raise InputError(
                    f"column {self.name!r} of {where} holds the level {first!r} (row {column.index[unknown][0]!r}), "
                    f"unknown to the training data (known: {listing(self.levels)}). Refit with it, or drop the row."
                )
        encoded = codes.astype(np.float64)
        encoded[missing] = np.nan
        return encoded

    def decode(self, encoded: Floats) -> Any:
        """Write encoded values back as an array of the training column's dtype."""
        missing = np.isnan(encoded)
        if missing.any() and not _holds_missing(self.dtype):
            raise InputError(
                f"column {self.name!r} has a missing value, which the training data's dtype {self.dtype} cannot hold; "
                "fill it, or train on a dtype that can be missing (float64, Int64, boolean)."
            )
        if self.is_numeric:
            return self._decode_numbers(encoded, missing)
        assert self.levels is not None
        codes = np.where(missing, -1, encoded).astype(np.intp)
        if isinstance(self.dtype, pd.CategoricalDtype):
            return pd.Categorical.from_codes(codes, dtype=self.dtype)  # type: ignore[arg-type]
        if isinstance(self.dtype, np.dtype) and not _is_dated(self.dtype):
            values = np.empty(codes.size, dtype=self.dtype)
            values[~missing] = self.levels.to_numpy(dtype=self.dtype)[codes[~missing]]
            if missing.any():
                values[missing] = self.missing
            return values
        return pd.array(self.levels, dtype=self.dtype).take(codes, allow_fill=True)

    def _decode_numbers(self, encoded: Floats, missing: npt.NDArray[np.bool_]) -> Any:
        if _is_dated(self.dtype):
            return _from_ticks(self._decode_ticks(encoded), missing, self.dtype)
        if isinstance(self.dtype, np.dtype):
            return encoded.astype(self.dtype)
        if ptypes.is_integer_dtype(self.dtype):
            whole = pd.array(np.where(missing, 0, encoded).astype(np.int64), dtype=pd.Int64Dtype())
            whole[missing] = pd.NA
            return whole.astype(self.dtype)
        return pd.Series(encoded).astype(self.dtype).array

    def _decode_ticks(self, encoded: Floats) -> npt.NDArray[np.int64]:
        """Whole units and rests apart: float64 cannot count every tick of a long span. Missing is the origin."""
        whole = np.floor(np.where(np.isnan(encoded), 0.0, encoded))
        rest = np.where(np.isnan(encoded), 0.0, encoded - whole)
        ticks: npt.NDArray[np.int64] = whole.astype(np.int64) * self.unit + np.rint(rest * self.unit).astype(np.int64)
        return ticks + self.origin


class Schema:
    """The features of a training table, in column order; built by `Schema.from_data`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import Schema
    >>> X = pd.DataFrame({"age": [36, 52], "job": ["clerk", "pilot"]})
    >>> schema = Schema.from_data(X)
    >>> schema.kinds
    {'age': 'numeric', 'job': 'categorical'}
    >>> schema.decode(schema.encode(X).matrix).equals(X)
    True
    """

    def __init__(self, features: Sequence[Feature], array_dtype: Any = None) -> None:
        self.features = tuple(features)
        self.array_dtype = array_dtype

    @classmethod
    def from_data(cls, X: Data, kinds: Mapping[Any, Kind] | None = None, where: str = "X") -> Schema:
        """Read the schema of `X`; `kinds` overrides the kind of some columns."""
        frame, array_dtype = as_frame(X, where)
        if frame.shape[0] == 0 or frame.shape[1] == 0:
            raise InputError(
                f"{where} has {frame.shape[0]} rows and {frame.shape[1]} columns; it needs at least one of each."
            )
        overrides = dict(kinds or {})
        for name, kind in overrides.items():
            if name not in frame.columns:
                raise InputError(
                    f"kinds names {name!r}, which is not a column of {where}; {did_you_mean(name, frame.columns)}"
                )
            if kind not in KINDS:
                raise InputError(f"kinds[{name!r}] is {kind!r}; allowed: {listing(KINDS)}.")
        return cls([_read_feature(frame[name], overrides.get(name), where) for name in frame.columns], array_dtype)

    @property
    def names(self) -> list[Any]:
        """Column labels, in order."""
        return [f.name for f in self.features]

    @property
    def kinds(self) -> dict[Any, Kind]:
        """Kind of every column."""
        return {f.name: f.kind for f in self.features}

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        rows = (
            f"  {f.name!s}: {f.kind}" + (f" ({f.n_levels} levels)" if f.levels is not None else "")
            for f in self.features
        )
        return "Schema(\n" + "\n".join(rows) + "\n)"

    def position(self, name: Hashable, role: str = "feature", where: str = "X") -> int:
        """Return the position of a column; an unknown name is an error that offers the nearest one."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(f"{role} {name!r} is not a column of {where}; {did_you_mean(name, self.names)}") from None

    def subset(self, names: Sequence[Hashable]) -> Schema:
        """Return the schema of some columns, in the order given."""
        return Schema([self.features[self.position(name)] for name in names])

    def encode(self, X: Data, where: str = "X") -> Table:
        """Encode a table with this schema's columns (in any order) as a `Table`."""
        frame, _ = as_frame(X, where)
        names = self.names
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise InputError(
                f"{where} lacks the column(s) {listing(absent)} of the training data; it has {listing(frame.columns)}."
            )
        extra = [name for name in frame.columns if name not in names]
        if extra:
            raise InputError(
                f"{where} has the column(s) {listing(extra)}, unknown to the training data; drop them, "
                "or refit with them."
            )
        matrix = np.empty(frame.shape, dtype=np.float64, order="F")
        for j, feature in enumerate(self.features):
            matrix[:, j] = feature.encode(frame[feature.name], where)
        return Table(self.features, matrix)

    def decode(self, matrix: Floats, index: pd.Index[Any] | None = None) -> pd.DataFrame:
        """Return the frame that `matrix` (columns in this schema's order) encodes, with the training dtypes."""
        index = index if index is not None else pd.RangeIndex(matrix.shape[0])
        columns = {
            j: pd.Series(feature.decode(matrix[:, j]), index=index, dtype=feature.dtype, copy=False)
            for j, feature in enumerate(self.features)
        }
        frame = pd.DataFrame(columns, index=index, copy=False)
        frame.columns = pd.Index(self.names, tupleize_cols=False)
        return frame

    def decode_for_model(self, matrix: Floats) -> Data:
        """Return what the model is asked on: like `decode`, but a numpy array if the training data was one."""
        frame = self.decode(matrix)
        return frame if self.array_dtype is None else frame.to_numpy(dtype=self.array_dtype)


@dataclass(frozen=True)
class Column:
    """One encoded column: the target of a conditional."""

    feature: Feature
    values: Floats


@dataclass(frozen=True)
class Table:
    """Encoded rows: one feature per column of a Fortran-ordered float64 matrix.

    A table made by `select` or `first` keeps `root` and `positions`, so that work done once on the columns of the
    whole table (ranking them for the trees) is shared by all tables cut from it. `complete` promises that no value is
    missing, which spares samplers the search for missing values.
    """

    features: tuple[Feature, ...]
    matrix: Floats
    root: Table | None = field(default=None, repr=False)
    positions: tuple[int, ...] = ()
    complete: bool = False
    _shared: dict[str, Any] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        if self.root is None:
            object.__setattr__(self, "positions", tuple(range(len(self.features))))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.matrix.shape[0]

    @property
    def names(self) -> list[Any]:
        """Column labels, in order."""
        return [f.name for f in self.features]

    def shared(self, name: str, make: Callable[[Table], Result]) -> Result:
        """Return `make(root)`, computed once for all tables cut from the same root, whatever thread asks first."""
        root = self.root or self
        with root._lock:
            if name not in root._shared:
                root._shared[name] = make(root)
            return cast("Result", root._shared[name])

    def column(self, j: int) -> Column:
        """Return one column as a target."""
        return Column(self.features[j], self.matrix[:, j])

    def first(self, k: int) -> Table:
        """Return the first `k` columns, without copying."""
        return Table(self.features[:k], self.matrix[:, :k], self.root or self, self.positions[:k])

    def select(self, columns: Sequence[int]) -> Table:
        """Return some columns, in the order given."""
        return Table(
            tuple(self.features[j] for j in columns),
            np.asfortranarray(self.matrix[:, list(columns)]),
            self.root or self,
            tuple(self.positions[j] for j in columns),
        )

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Return some rows (an index array or a boolean mask) as a table of its own."""
        return Table(self.features, np.asfortranarray(self.matrix[rows]))


def as_frame(X: Data, where: str = "X") -> tuple[pd.DataFrame, Any]:
    """Return `X` as a frame, and its dtype if it is a numpy array (columns are then named x0, x1, ...)."""
    if isinstance(X, pd.DataFrame):
        if isinstance(X.columns, pd.MultiIndex):
            raise InputError(f"{where} has {X.columns.nlevels} levels of column labels; flatten them to one.")
        if not X.columns.is_unique:
            twice = X.columns[X.columns.duplicated()].unique()
            raise InputError(f"{where} has the column label(s) {listing(twice)} more than once; rename them.")
        return X, None
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise InputError(f"{where} is an array with {X.ndim} dimension(s); a table has two: rows and columns.")
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        return (frame.infer_objects() if X.dtype == object else frame), X.dtype
    raise InputError(f"{where} is a {type(X).__name__}; give a pandas DataFrame or a two-dimensional numpy array.")


def _read_feature(column: pd.Series[Any], override: Kind | None, where: str) -> Feature:
    dtype: Any = column.dtype
    missing = column.isna().to_numpy(dtype=bool)
    kind = override or _default_kind(column, where)
    if kind == "numeric":
        if not (_is_number(dtype) or _is_dated(dtype)):
            raise InputError(
                f"column {column.name!r} of {where} has dtype {dtype} and cannot be numeric; convert it first, "
                "or leave it categorical."
            )
        origin, unit = _origin_and_unit(column, missing, where) if _is_dated(dtype) else (0, 1)
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
        )
    if kind == "ordered" and override and not (_is_number(dtype) or _is_ordered(dtype)):
        raise InputError(
            f"kinds[{column.name!r}] is 'ordered', but dtype {dtype} has no order; use an ordered pandas category."
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


def _default_kind(column: pd.Series[Any], where: str) -> Kind:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordered" if dtype.ordered else "categorical"
    if ptypes.is_bool_dtype(dtype) or ptypes.is_string_dtype(dtype) or ptypes.is_object_dtype(dtype):
        return "categorical"
    if _is_number(dtype) or _is_dated(dtype):
        return "numeric"
    raise InputError(
        f"column {column.name!r} of {where} has dtype {dtype}, which is not supported; convert it to numbers, dates, "
        "strings or categories."
    )


def _levels(column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> pd.Index[Any]:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.categories
    if ptypes.is_bool_dtype(dtype):
        return pd.Index([False, True], dtype=object)
    if _is_number(dtype):
        _check_finite(column.to_numpy(dtype=np.float64, na_value=np.nan), column.name, where)
    try:
        seen = column[~missing].unique()
    except TypeError as error:
        raise InputError(f"column {column.name!r} of {where} holds values that cannot be levels: {error}") from error
    levels: list[Any] = list(seen)
    if ptypes.is_object_dtype(dtype):
        _check_one_type_each(column[~missing], levels, where)
    with contextlib.suppress(TypeError):  # levels of several types have no order: they stay as they appeared
        levels = sorted(levels)
    return pd.Index(levels, dtype=object)


def _check_one_type_each(values: pd.Series[Any], levels: list[Any], where: str) -> None:
    """Refuse True beside 1, or 1 beside 1.0: they are one key, and a level could not be written back as both."""
    if not ptypes.infer_dtype(values, skipna=True).startswith("mixed"):
        return
    kept = {level: level for level in levels}
    for value in values:
        if type(value) is not type(kept[value]):
            raise InputError(
                f"column {values.name!r} of {where} holds both {kept[value]!r} and {value!r}, which are equal and "
                "so one level; write them alike."
            )


def _is_number(dtype: Any) -> bool:
    return bool(
        ptypes.is_numeric_dtype(dtype)
        and not ptypes.is_bool_dtype(dtype)
        and not ptypes.is_complex_dtype(dtype)
        and not str(dtype).startswith("decimal")
        and getattr(dtype, "itemsize", 8) <= 8  # a long double does not fit in float64
    )


def _holds_numbers(column: pd.Series[Any]) -> bool:
    """Whether the values are numbers (or booleans, 0 and 1), in a column of any dtype."""
    if ptypes.is_object_dtype(column.dtype):
        inferred = ptypes.infer_dtype(column, skipna=True)
        return inferred in ("integer", "floating", "mixed-integer-float", "boolean", "empty")
    return _is_number(column.dtype) or (
        ptypes.is_bool_dtype(column.dtype) and not isinstance(column.dtype, pd.CategoricalDtype)
    )


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype in which numpy, pandas, Arrow or sparse columns hold their numbers."""
    if isinstance(dtype, np.dtype):
        return dtype
    return np.dtype(dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype.numpy_dtype)


def _is_ordered(dtype: Any) -> bool:
    return isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered)


def _is_dated(dtype: Any) -> bool:
    if isinstance(dtype, pd.ArrowDtype):
        return dtype.kind in "mM"
    return bool(
        ptypes.is_datetime64_any_dtype(dtype) or ptypes.is_timedelta64_dtype(dtype) or isinstance(dtype, pd.PeriodDtype)
    )


def _date_family(dtype: Any) -> object:
    """Return what dates must agree in to be written as each other: points (zoned or not), durations, periods."""
    if isinstance(dtype, pd.PeriodDtype):
        return dtype
    zoned = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else dtype
    return dtype.kind, getattr(zoned, "tz", None) is not None


def _holds_missing(dtype: Any) -> bool:
    return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")


def _ticks(column: pd.Series[Any]) -> npt.NDArray[np.int64]:
    """Return dates and durations as integers in their own unit; missing ones are arbitrary."""
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa

        arrow = pa.array(column.array)
        if pa.types.is_date32(arrow.type):
            arrow = arrow.cast(pa.int32())
        return cast("npt.NDArray[np.int64]", arrow.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))
    return np.asarray(column.array.asi8, dtype=np.int64)  # type: ignore[attr-defined]


def _from_ticks(ticks: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_], dtype: Any) -> Any:
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        whole = pa.array(ticks, mask=missing)
        if pa.types.is_date32(dtype.pyarrow_dtype):
            whole = whole.cast(pa.int32())
        return pd.array(whole.cast(dtype.pyarrow_dtype), dtype=dtype)
    if isinstance(dtype, pd.PeriodDtype):
        ordinals = np.where(missing, pd.NaT._value if hasattr(pd.NaT, "_value") else pd.NaT.value, ticks)
        return pd.PeriodIndex.from_ordinals(ordinals, freq=dtype.freq).array
    if isinstance(dtype, pd.DatetimeTZDtype):
        stamps = pd.Series(np.where(missing, np.datetime64("NaT"), ticks.view(f"M8[{dtype.unit}]")))
        return stamps.dt.tz_localize("UTC").dt.tz_convert(dtype.tz).array
    values = ticks.view(dtype)
    values[missing] = np.array("NaT", dtype=dtype)
    return values


def _origin_and_unit(column: pd.Series[Any], missing: npt.NDArray[np.bool_], where: str) -> tuple[int, int]:
    """Earliest tick, and the greatest common divisor of all distances to it: keeps dates exact in float64."""
    ticks = _ticks(column)[~missing]
    if ticks.size == 0:
        return 0, 1
    origin = int(ticks.min())
    unit = int(np.gcd.reduce(ticks - origin)) or 1
    span = int(ticks.max()) - origin
    if span >= _MOST_TICKS or span // unit >= _EXACT:
        raise InputError(
            f"column {column.name!r} of {where} spans more time than a float can count in its finest unit; "
            "round it, for example to microseconds, or use a coarser dtype."
        )
    return origin, unit


def _check_finite(values: Floats, name: Hashable, where: str) -> None:
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        raise InputError(
            f"column {name!r} of {where} holds {infinite.size} infinite value(s), the first in row {infinite[0]} "
            "(counted from 0); replace them by missing or by finite numbers."
        )


def _check_exact(values: Floats, column: pd.Series[Any], where: str) -> None:
    if not ptypes.is_float_dtype(column.dtype) and np.nanmax(np.abs(values), initial=0.0) >= _EXACT:
        raise InputError(
            f"column {column.name!r} of {where} holds integers of 2**53 or beyond, which cannot be compared exactly; "
            "drop it if it is an identifier, rescale it, or say kinds={" + f"{column.name!r}: 'categorical'" + "}."
        )
