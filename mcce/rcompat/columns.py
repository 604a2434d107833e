"""Columns of R's data frames as plain bytes, and back, value for value.

The R package (`r_bridge/r`) sends vectors as dicts of plain values, because converters between the languages lose
missing integers and logicals, time zones, units and integer64:

name, kind     the kind is one of `KINDS`
values         little-endian: float64 for "double", "Date", "POSIXct", "difftime", int64 for "integer64", else int32
states         a byte for each row, or empty if no value is missing: 0 is a value, 1 is NA, 2 is NaN
texts          UTF-8, each ended by a zero byte, of the codes of text and factors
na_level       position of the level of a factor that is NA itself, else -1
seconds, zone  length of a unit of dates and durations; time zone
unit           unit of the pandas column; None: the coarsest of `UNITS` that is exact; "": plain numbers

NaN and NA differ in their bits, as in R. Attributes of the vectors stay in R.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types as ptypes

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import InputError, listing
from mcce.table.dtypes import from_ticks, to_ticks

KINDS = (
    "double",
    "integer",
    "logical",
    "character",
    "factor",
    "ordered",
    "integer64",
    "Date",
    "POSIXct",
    "difftime",
)
DATED = ("Date", "POSIXct", "difftime")
LEVELLED = ("character", "factor", "ordered")
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
VALUE, NA, NAN = 0, 1, 2
NAN_BITS = np.uint64(0x7FF8_0000_0000_4E61)  # R's NaN in a frame; any other NaN is an NA
NA_LABEL = "<NA>"  # the category of a level that is NA, as R prints it
NO_INTEGER = np.iinfo(np.int32).min
MOST_TICKS = 2.0**62


@dataclass(frozen=True)
class SentColumn:
    """Kind, levels, time zone and units of a column of R, without its values.

    Attributes
    ----------
    name : str
    kind : str
        One of `KINDS`.
    levels : tuple of str
        Of a factor, as categories of pandas.
    na_level : int
        The position of the level that is NA in R; -1 if none is.
    seconds : float
        Length of one unit of a date or duration.
    zone : str
    unit : str
        Unit of the pandas column of dates or durations; "" for plain numbers.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    na_level: int = -1
    seconds: float = 1.0
    zone: str = "UTC"
    unit: str = ""


def read_table(
    sent: Sequence[Mapping[str, Any]], n_rows: int, index: Any = None
) -> tuple[pd.DataFrame, tuple[SentColumn, ...]]:
    """Return the frame of the columns that R sends, and their types in R.

    Examples
    --------
    >>> import numpy as np
    >>> age = {"name": "age", "kind": "integer", "values": np.array([36, 0], "<i4").tobytes(), "states": b"\\0\\1"}
    >>> frame, columns = read_table([age], 2)
    >>> frame["age"].tolist()
    [36, <NA>]
    >>> [bytes(part) for part in write_table(frame, columns)[0][:2]] == [age["values"], age["states"]]
    True
    """
    read = [read_column(each, n_rows) for each in sent]
    names = [column.name for column, _ in read]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"the column name(s) {listing(twice)} occur more than once in the data frame; rename them.")
    frame = pd.DataFrame(dict(enumerate(values for _, values in read)), index=pd.RangeIndex(n_rows))
    frame.columns = pd.Index(names, dtype=object)
    if index is not None:
        frame.index = pd.Index(index)
    return frame, tuple(column for column, _ in read)


def read_column(sent: Mapping[str, Any], n_rows: int) -> tuple[SentColumn, Any]:
    """Return the type and the values (an array of pandas or numpy) of one column that R sends."""
    name, kind = str(sent["name"]), str(sent["kind"])
    if kind not in KINDS:
        raise InputError(f"column {name!r} has the kind {kind!r}; known are {listing(KINDS)}. Convert it in R.")
    states = np.frombuffer(bytes(sent.get("states") or bytes(n_rows)), dtype=np.uint8)
    width = np.dtype("<f8" if kind in ("double", *DATED) else "<i8" if kind == "integer64" else "<i4")
    values = np.frombuffer(bytes(sent["values"]), dtype=width).astype(width.newbyteorder("="))
    if values.size != n_rows or states.size != n_rows:
        raise InputError(f"column {name!r} has {values.size} values and {states.size} states for {n_rows} rows.")
    missing = states != VALUE
    if kind in LEVELLED:
        return _read_levels(sent, name, kind, values, missing)
    if kind == "logical":
        return SentColumn(name, kind), pd.arrays.BooleanArray(values != 0, missing)
    if kind in ("integer", "integer64"):
        return SentColumn(name, kind), pd.arrays.IntegerArray(values.astype(np.int64), missing)
    if kind == "double":
        return SentColumn(name, kind), _with_states(values, states)
    return _read_dates(sent, SentColumn(name, kind, seconds=float(sent["seconds"])), values, states)


def write_table(frame: pd.DataFrame, columns: Sequence[SentColumn]) -> list[tuple[bytearray, bytearray, bytearray]]:
    """Return the values, states and texts of each column for R."""
    return [write_column(frame[column.name], column) for column in columns]


def describe_table(frame: pd.DataFrame, columns: Sequence[SentColumn]) -> dict[str, Any]:
    """Return a frame for which R has no template: the number of rows, and each column by name."""
    parts = zip(columns, write_table(frame, columns))
    return {
        "n_rows": len(frame),
        "columns": [
            {"name": column.name, "kind": column.kind, "values": values, "states": states, "texts": texts}
            for column, (values, states, texts) in parts
        ],
    }


def write_column(values: pd.Series[Any], column: SentColumn) -> tuple[bytearray, bytearray, bytearray]:
    missing = values.isna().to_numpy(dtype=bool)
    states = missing.astype(np.uint8)
    texts: Sequence[str] = ()
    written: npt.NDArray[Any]
    if column.kind in ("factor", "ordered"):
        texts = column.levels
        written = _codes(values, pd.Index(column.levels, dtype=object), column.name).astype("<i4")
    elif column.kind == "character":
        codes, distinct = pd.factorize(values.astype(object))
        texts, written = [str(text) for text in distinct], codes.astype("<i4")
    elif column.kind in ("integer", "logical"):
        written = values.to_numpy(dtype=np.float64, na_value=0.0).astype("<i4")
    elif column.kind == "integer64":
        written = values.to_numpy(dtype=np.int64, na_value=0).astype("<i8")
    elif column.kind == "double" or not column.unit:
        if isinstance(values.dtype, np.dtype):
            written = np.array(values, dtype=np.float64)  # keeps the bits of NaN
        else:
            written = values.to_numpy(dtype=np.float64, na_value=np.nan).copy()
        states[written.view(np.uint64) == NAN_BITS] = NAN
        written[missing] = 0.0
    else:
        ticks = np.where(missing, 0, to_ticks(values.dt.as_unit(column.unit)))
        written = ticks / (UNITS[column.unit] * column.seconds)
    packed = bytearray(states.tobytes()) if states.any() else bytearray()
    return bytearray(written.astype(written.dtype.newbyteorder("<")).tobytes()), packed, join_texts(texts)


def columns_of(frame: pd.DataFrame) -> tuple[SentColumn, ...]:
    """Return the types of R's vectors that are nearest to the columns of a frame created in Python."""
    return tuple(SentColumn(str(name), *_kind_of(frame[name])) for name in frame.columns)


def texts_of(values: pd.Index[Any], name: str) -> list[str]:
    """Return levels in R's spelling: TRUE for True, 5 for 5 and for 5.0."""
    texts = [text_of(value) for value in values]
    if len(set(texts)) < len(texts):
        raise InputError(f"the levels {listing(values)} of column {name!r} are not unique as text, as R needs them.")
    return texts


def text_of(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (float, np.floating)):
        return f"{value:.15g}"
    return str(value)


def split_texts(texts: bytes) -> list[str]:
    """Return the texts of bytes in which a zero byte ends each text."""
    return bytes(texts).decode("utf-8").split("\0")[:-1]


def join_texts(texts: Sequence[str]) -> bytearray:
    """Return the bytes of texts, each ended by a zero byte."""
    return bytearray("".join(f"{text}\0" for text in texts).encode("utf-8"))


def _kind_of(values: pd.Series[Any]) -> tuple[str, tuple[str, ...]]:
    dtype: Any = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return ("ordered" if dtype.ordered else "factor"), tuple(map(str, dtype.categories))
    if ptypes.is_bool_dtype(dtype):
        return "logical", ()
    if ptypes.is_integer_dtype(dtype):
        largest = np.abs(values.to_numpy(dtype=np.float64, na_value=0.0)).max(initial=0.0)
        return ("integer" if largest < -NO_INTEGER else "double"), ()
    return ("double" if ptypes.is_float_dtype(dtype) else "character"), ()


def _read_levels(
    sent: Mapping[str, Any], name: str, kind: str, codes: npt.NDArray[np.int32], missing: Bools
) -> tuple[SentColumn, Any]:
    texts, na_level = split_texts(sent.get("texts") or b""), int(sent.get("na_level", -1))
    codes = np.where(missing, -1, codes)
    if codes.size and not -1 <= codes.min() <= codes.max() < len(texts):
        raise InputError(f"column {name!r} has codes from {codes.min()} to {codes.max()} for {len(texts)} levels.")
    if kind == "character":
        values = np.array([*texts, None], dtype=object)[codes]
        return SentColumn(name, kind), pd.array(values, dtype=pd.StringDtype("python"))
    if na_level >= 0:
        if NA_LABEL in texts:
            raise InputError(
                f"column {name!r} has a level that is NA and one that is the text {NA_LABEL!r}; rename that."
            )
        texts[na_level] = NA_LABEL
    made = pd.Categorical.from_codes(codes, pd.Index(texts, dtype=object), ordered=kind == "ordered")
    return SentColumn(name, kind, tuple(texts), na_level), made


def _codes(values: pd.Series[Any], levels: pd.Index[Any], name: str) -> npt.NDArray[np.intp]:
    """Return the position of each value among R's levels, matched by label; -1 for missing values."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        place = levels.get_indexer(pd.Index(values.cat.categories, dtype=object))
        codes = np.append(place, -1)[values.cat.codes.to_numpy()]
    else:
        codes = levels.get_indexer(pd.Index(values.astype(object)))
    unknown = (codes < 0) & ~values.isna().to_numpy(dtype=bool)
    if unknown.any():
        first = values[unknown].iloc[0]
        raise InputError(f"column {name!r} holds {first!r}, which is not one of R's levels {listing(levels)}.")
    return np.asarray(codes)


def _with_states(values: Floats, states: npt.NDArray[np.uint8]) -> Floats:
    values = values.copy()
    values[states == NA] = np.nan
    values.view(np.uint64)[states == NAN] = NAN_BITS
    return values


def _read_dates(
    sent: Mapping[str, Any], column: SentColumn, values: Floats, states: npt.NDArray[np.uint8]
) -> tuple[SentColumn, Any]:
    """Return dates or durations in a unit that holds them exactly."""
    known, unit = values[states == VALUE], sent.get("unit")
    if unit is None:
        plain = (states == NAN).any()
        unit = "" if plain else next((each for each in UNITS if _holds(each, known, column.seconds)), "")
    elif unit and ((states == NAN).any() or not _holds(unit, known, column.seconds)):
        raise InputError(
            f"column {column.name!r} holds times that are no whole multiples of a {unit}, in which the training data "
            "counts; round them in R, or fit again with such times."
        )
    zone = str(sent.get("zone") or "UTC")
    made = SentColumn(column.name, column.kind, seconds=column.seconds, zone=zone, unit=str(unit))
    if not unit:
        return made, _with_states(values, states)
    missing = states != VALUE
    ticks = np.rint(np.where(missing, 0.0, values) * (UNITS[unit] * column.seconds)).astype(np.int64)
    return made, from_ticks(ticks, missing, _date_dtype(made))


def _holds(unit: str, values: Floats, seconds: float) -> bool:
    """Whether values, counted in a unit, come back as the same doubles."""
    scale = UNITS[unit] * seconds
    with np.errstate(over="ignore", invalid="ignore"):
        ticks = np.rint(values * scale)
        same = (np.abs(ticks) < MOST_TICKS) & (ticks / scale == values) & ~((values == 0) & np.signbit(values))
    return bool(same.all())


def _date_dtype(column: SentColumn) -> Any:
    if column.kind == "difftime":
        return np.dtype(f"m8[{column.unit}]")
    if column.kind == "Date":
        return np.dtype(f"M8[{column.unit}]")
    unit: Any = column.unit
    try:
        return pd.DatetimeTZDtype(unit, column.zone)
    except (KeyError, ValueError, OSError, TypeError):  # a zone that Python does not know: the instants are the same
        return pd.DatetimeTZDtype(unit, "UTC")
