"""Conversion of a pandas DataFrame to an R data.frame, and back.

Numbers, integers, logicals, text, factors, ordered factors, and dates (Date, POSIXct) are converted as for the R
package, by `write_column` and `read_column` of `mcce.rcompat.from_r`; here R's vectors are filled and read. A missing
value is NA. A column that the other side has no type for is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Ints
from mcce.exceptions import InputError, listing, spell
from mcce.rcompat.from_r import join_texts, read_column, split_texts, texts_of, write_column
from mcce.table import as_frame
from mcce.table.dtypes import UNITS, change_unit, from_ticks, is_date, python_dates, tick_length, ticks_of
from r_bridge.session import Session, session

NA_INTEGER = -(2**31)
TEXTS = ("character", "factor", "ordered")
NUMBERS = ("double", "integer", "logical")
R_CLASSES = ("ordered", "factor", "Date", "POSIXct", "POSIXt", "numeric", "integer", "logical", "character")


@dataclass(frozen=True)
class RColumn:
    """The type that R expects a column to have, with its levels if it is a factor.

    `type` is one of "numeric", "logical", "character", "factor", "ordered", "Date", "POSIXct".
    """

    type: str
    levels: tuple[str, ...] = ()


def to_r(frame: pd.DataFrame, columns: Mapping[str, RColumn] | None = None) -> Any:
    """Write a DataFrame as an R data.frame.

    Parameters
    ----------
    frame : DataFrame
        Column labels are written as text; the index is not written.
    columns : mapping, optional
        The type and levels of some columns, by name, in place of those of their dtypes.

    Returns
    -------
    rpy2.rinterface.ListSexpVector
        A data.frame that can be passed to R functions.

    Examples
    --------
    >>> import pandas as pd, r_bridge
    >>> people = pd.DataFrame({"age": [36, 52], "job": pd.Categorical(["pilot", "clerk"])})
    >>> r_bridge.from_r(r_bridge.to_r(people)).dtypes.astype(str).to_dict()
    {'age': 'int64', 'job': 'category'}
    """
    table = as_frame(frame, "the frame")
    names = [str(name) for name in table.columns]
    if len(set(names)) < len(names):
        raise InputError(
            f"the column labels {listing(table.columns)} are not distinct as text, as R needs; rename them."
        )
    r, wanted = session(), columns or {}
    vectors = [_write(r, table.iloc[:, j].rename(name), wanted.get(name)) for j, name in enumerate(names)]
    data = r.named_list(vectors, names)
    data.do_slot_assign("row.names", r.ri.IntSexpVector([r.ri.NA_Integer, -len(table)]))
    return r.with_class(data, "data.frame")


def from_r(data: Any, like: pd.DataFrame | None = None) -> pd.DataFrame:
    """Read an R data.frame (or data.table, tibble) as a DataFrame.

    Parameters
    ----------
    data : R data.frame
    like : DataFrame, optional
        Columns of the same name get its dtypes; a value that they do not hold is an error.

    Returns
    -------
    DataFrame
        Without `like`: integers and logicals with missing values are Int64 and boolean, dates datetime64.
    """
    r = session()
    if not isinstance(data, r.ri.ListSexpVector) or "data.frame" not in r.strings(data.rclass):
        raise InputError(f"from_r got a {type(data).__name__}, not an R data.frame; in R: as.data.frame(...).")
    names = r.strings(data.names) if len(data) else []
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(
            f"more than one column is called {listing(twice)}; in R: names(data) <- make.unique(names(data))."
        )
    labels = {} if like is None else {str(label): label for label in like.columns}
    columns = {}
    for j, (name, vector) in enumerate(zip(names, data)):
        columns[j] = _read(r, vector, name)
        if like is not None and name in labels:
            columns[j] = _restore(columns[j], like[labels[name]], name)
    frame = pd.DataFrame(columns, index=pd.RangeIndex(int(r.call("row_count", data)[0])))
    frame.columns = pd.Index([labels.get(name, name) for name in names], tupleize_cols=False)
    return frame


def columns_of(data: Any, *, text_is_factor: bool = False) -> dict[str, RColumn]:
    """Return the type and levels of each column of an R data.frame; text, if requested, as R's factor of it."""
    return read_columns(session().call("describe_columns", data, text_is_factor))


def read_columns(described: Any) -> dict[str, RColumn]:
    """Read the value of ``describe_columns`` of ``bridge.R``: for each column its type, then its levels."""
    r = session()
    texts = {name: r.strings(part) for name, part in r.parts(described).items()}
    return {name: RColumn(kind, tuple(levels)) for name, (kind, *levels) in texts.items()}


def _write(r: Session, column: pd.Series[Any], wanted: RColumn | None) -> Any:
    """Write one column as an R vector."""
    name = str(column.name)
    if wanted is not None and wanted.type in TEXTS and not isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype("category")
    sent = write_column(column)
    kind, missing = sent["kind"], column.isna().to_numpy(dtype=bool)
    target = kind if wanted is None else wanted.type
    fits = target in TEXTS if kind in TEXTS else target == kind or (target == "numeric" and kind in NUMBERS)
    if not fits:
        raise InputError(f"column {name!r} has dtype {column.dtype}, but R expects {target}; convert it first.")
    if kind in ("double", "Date", "POSIXct"):
        values: Any = np.frombuffer(bytes(sent["values"]), dtype="<f8").copy()
    else:
        values = np.frombuffer(bytes(sent["values"]), dtype="<i4").copy()
    if kind in TEXTS:
        texts = split_texts(bytes(sent["texts"]))
        if target == "character":
            return r.character([None if is_missing else texts[code] for code, is_missing in zip(values, missing)])
        levels = texts
        if wanted is not None and wanted.levels:
            levels = list(wanted.levels)
            values = _place(texts, levels, column)[values]
        values = np.where(missing, NA_INTEGER, values + 1).astype(np.int32)
        factor = r.ri.IntSexpVector(values)
        factor.do_slot_assign("levels", r.character(levels))
        return r.with_class(factor, *(["ordered"] if target == "ordered" else []), "factor")
    if kind in ("integer", "logical"):
        values[missing] = NA_INTEGER
        is_logical = kind == "logical" and target != "numeric"
        return r.ri.BoolSexpVector(values) if is_logical else r.ri.IntSexpVector(values)
    values[missing] = r.ri.NA_Real
    vector = r.ri.FloatSexpVector(values)
    if kind == "Date":
        return r.with_class(vector, "Date")
    if kind == "POSIXct":
        vector.do_slot_assign("tzone", r.character([sent["zone"]]))
        return r.with_class(vector, "POSIXct", "POSIXt")
    return vector


def _place(texts: list[str], levels: list[str], column: pd.Series[Any]) -> Ints:
    """Return the place of each text among R's levels; R may write 100000 as 1e+05."""
    place = {level: k for k, level in enumerate(levels)}
    numbers = {_number(level): k for level, k in place.items()}
    places = np.array([place.get(text, numbers.get(_number(text), -1)) for text in texts] or [0], dtype=np.int64)
    codes = column.cat.codes.to_numpy()
    unknown = np.flatnonzero((codes >= 0) & (places[codes] < 0))
    if unknown.size:
        raise InputError(
            f"column {column.name!r} holds the level {spell(column.iloc[unknown[0]])} (row "
            f"{spell(column.index[unknown[0]])}), unknown to R (known: {listing(levels)}). Leave the row out, or fit "
            "with it."
        )
    return places


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _read(r: Session, vector: Any, name: str) -> pd.Series[Any]:
    """Read one column by R's type."""
    types = {"FloatSexpVector": "double", "IntSexpVector": "integer", "BoolSexpVector": "logical"}
    classes, stored = r.strings(vector.rclass), {**types, "StrSexpVector": "character"}.get(type(vector).__name__)
    if stored is None or not set(classes) <= set(R_CLASSES):
        raise InputError(
            f"column {name!r} is of R's type {listing(classes)}, which a DataFrame does not have; convert it in R to "
            "numbers, text, a factor or dates, a matrix to one column for each of its own."
        )
    kind = next((r_class for r_class in R_CLASSES[:4] if r_class in classes), stored)
    texts: list[str] = []
    if stored == "character":
        missing = np.array([text is r.ri.NA_Character for text in vector], dtype=bool)
        codes, distinct = pd.factorize(np.array(r.strings(vector), dtype=object))
        values, texts = codes.astype(np.int64), list(distinct)
    else:
        values = r.numbers(vector)
        missing = np.isnan(values) if stored == "double" else values == NA_INTEGER
        values = np.where(missing, 0, values)
    zone = ""
    if kind in ("factor", "ordered"):
        levels = vector.do_slot("levels")
        if any(level is r.ri.NA_Character for level in levels):
            raise InputError(f"the factor {name!r} has NA as a level; in R: droplevels(x, exclude = NA).")
        values, texts = values - 1, r.strings(levels)
    elif kind == "POSIXct" and "tzone" in vector.list_attrs():
        zone = r.strings(vector.do_slot("tzone"))[0]
    width = "<f8" if kind in ("double", "Date", "POSIXct") else "<i4"
    sent = {"name": name, "kind": kind, "values": values.astype(width).tobytes(), "missing": missing.tobytes()}
    column = pd.Series(read_column({**sent, "texts": join_texts(texts), "zone": zone}, len(values)))
    if kind in ("integer", "logical") and not missing.any():
        return column.astype("int64" if kind == "integer" else "bool")
    return column


def _restore(column: pd.Series[Any], like: pd.Series[Any], name: str) -> pd.Series[Any]:
    """Convert a column from R to the dtype of another one."""
    dtype: Any = like.dtype
    missing, cell = column.isna().to_numpy(dtype=bool), python_dates(like)
    try:
        if isinstance(dtype, pd.CategoricalDtype):
            codes = pd.Index(texts_of(dtype.categories, name), dtype=object).get_indexer(
                column.astype(object).to_list()
            )
            if (codes[~missing] < 0).any():
                raise ValueError(f"{spell(column[~missing & (codes < 0)].iloc[0])} is not one of its categories")
            return pd.Series(pd.Categorical.from_codes(np.where(missing, -1, codes), dtype=dtype))
        if cell is not None or is_date(dtype):
            ticks, lengths = (
                ticks_of(column, missing, None),
                (tick_length(column.dtype, None), tick_length(dtype, cell)),
            )
            ticks, exact = change_unit(ticks, lengths[0], lengths[1] or UNITS["D"])
            if not exact.all():
                raise ValueError("it would change times")
            return pd.Series(from_ticks(ticks, missing, dtype, cell), dtype=dtype)
        if dtype == np.dtype(object):
            return column.astype(object).where(~missing, None)
        restored = column.astype(dtype)
        if not (restored[~missing] == column[~missing]).all():
            raise ValueError("it would change values")
    except (TypeError, ValueError) as error:
        raise InputError(f"column {name!r} came from R as {column.dtype} and cannot be {dtype}: {error}.") from error
    return restored
