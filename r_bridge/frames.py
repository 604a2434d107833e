"""Lossless conversion of a pandas DataFrame to an R data.frame, and back.

1. `to_r` writes each column as the R vector of the same meaning:

   ========================================  ==========================================================
   pandas                                    R
   ========================================  ==========================================================
   integers of any width, nullable or not    integer; double if one of them needs more than 32 bits
   floats                                    double
   bool, boolean                             logical
   strings                                   character
   category                                  factor, levels in the order of the categories
   ordered category                          ordered
   datetime64, with or without a zone        POSIXct (to the microsecond)
   timedelta64                               difftime in seconds
   dates (Arrow's date32, Period[D])         Date
   ========================================  ==========================================================

   A missing value is NA. `columns` overrides the type and levels of columns, for example by those of a model.
2. `from_r` reads a data.frame by the same table; `like`, a frame, gives the dtypes to restore. Columns not in `like`
   keep R's type.

A value that the new type cannot represent exactly is an error that names the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mcce.exceptions import InputError, listing
from mcce.table import as_frame
from r_bridge.columns import RColumn
from r_bridge.reading import classes_of, read_column, restore_column
from r_bridge.session import session
from r_bridge.writing import write_column


def to_r(frame: pd.DataFrame, columns: Mapping[str, RColumn] | None = None) -> Any:
    """Write a DataFrame as an R data.frame.

    Parameters
    ----------
    frame : DataFrame
        Column labels are written as text; the index is not written.
    columns : mapping, optional
        The type and levels of some columns, by name.

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
    table, _ = as_frame(frame, "the frame")
    names = [str(name) for name in table.columns]
    if len(set(names)) < len(names):
        raise InputError(
            f"column labels {listing(table.columns)} are not unique as text, as R needs them; rename them."
        )
    r = session()
    wanted = columns or {}
    written = [write_column(r, table.iloc[:, j], name, wanted.get(name)) for j, name in enumerate(names)]
    data = r.named_list(written, names)
    data.do_slot_assign("row.names", r.ri.IntSexpVector([r.ri.NA_Integer, -len(table)]))
    return r.with_class(data, "data.frame")


def from_r(data: Any, like: pd.DataFrame | None = None) -> pd.DataFrame:
    """Read an R data.frame (or data.table, tibble) as a DataFrame.

    Parameters
    ----------
    data : R data.frame
    like : DataFrame, optional
        Columns of the same name get its dtypes.

    Returns
    -------
    DataFrame
        Without `like`: int64 (Int64 with missing values), float64, bool (boolean), str, category, datetime64[us],
        timedelta64[us].
    """
    r = session()
    if not isinstance(data, r.ri.ListSexpVector) or "data.frame" not in classes_of(r, data):
        raise InputError(f"from_r got a {type(data).__name__}, not an R data.frame; in R: as.data.frame(...).")
    names = r.strings(data.names) if len(data) else []
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(
            f"more than one column is called {listing(repeated)}; rename them, in R: names(data) <- "
            "make.unique(names(data))."
        )
    labels = {} if like is None else {str(label): label for label in like.columns}
    columns: list[pd.Series[Any]] = []
    for name, vector in r.parts(data).items():
        column = read_column(r, vector, name)
        if like is not None and name in labels:
            column = restore_column(column, like[labels[name]], name)
        columns.append(column)
    index = pd.RangeIndex(int(r.call("row_count", data)[0]))
    frame = pd.DataFrame(dict(enumerate(columns)), index=index)
    frame.columns = pd.Index([labels.get(name, name) for name in r.parts(data)], tupleize_cols=False)
    return frame


def columns_of(data: Any, *, text_is_factor: bool = False) -> dict[str, RColumn]:
    """Return the type and levels of each column of an R data.frame; text, if requested, as R's factor of it."""
    r = session()
    return read_columns(r.call("describe_columns", data, text_is_factor))


def read_columns(described: Any) -> dict[str, RColumn]:
    """Read the value of ``describe_columns`` of ``bridge.R``: for each column its type, then its levels."""
    r = session()
    texts = {name: r.texts(part) for name, part in r.parts(described).items()}
    return {name: RColumn(str(kind), tuple(levels)) for name, (kind, *levels) in texts.items()}
