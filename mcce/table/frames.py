"""Tables as pandas frames: numpy arrays, and frames of polars and pyarrow by narwhals.

The columns of an array are named x0, x1, .... Results are pandas; only the model is given rows of the kind that it
knows from the training table (`FrameKind.build`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.exceptions import InputError, listing

Data = pd.DataFrame | npt.NDArray[Any] | Any  # also frames of polars and pyarrow


@dataclass(frozen=True)
class FrameKind:
    """The library of a frame ("polars", "pyarrow", ...) and the Arrow schema of its columns."""

    backend: Any
    arrow_schema: Any

    def build(self, frame: pd.DataFrame) -> Any:
        """Convert a frame of pandas with these columns to this library."""
        import narwhals as nw
        import pyarrow as pa

        arrays = [pa.array(frame[name], from_pandas=True) for name in self.arrow_schema.names]
        arrays = [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in arrays]
        columns = [array.cast(field.type) for array, field in zip(arrays, self.arrow_schema)]
        return nw.from_arrow(pa.table(columns, schema=self.arrow_schema), backend=self.backend).to_native()


def frame_kind(X: Data) -> FrameKind | None:
    """Return the kind of a frame of another library than pandas, else None."""
    if isinstance(X, (pd.DataFrame, np.ndarray)):
        return None
    import narwhals as nw

    wrapped = nw.from_native(X, eager_only=True)
    return FrameKind(wrapped.implementation.value, wrapped.to_arrow().schema)


def as_frame(X: Data, where: str = "X") -> pd.DataFrame:
    """Return a table as a pandas frame; raise on what is not a table with distinct names.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.table import as_frame
    >>> list(as_frame(np.zeros((2, 3))))
    ['x0', 'x1', 'x2']
    """
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            plural = "" if X.ndim == 1 else "s"
            raise InputError(
                f"{where} is an array with {X.ndim} dimension{plural}; give a table with two, rows and columns."
            )
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        return frame.infer_objects() if X.dtype == object else frame
    frame = X if isinstance(X, pd.DataFrame) else _read(X, where)
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(f"{where} has {frame.columns.nlevels} levels of column names; flatten them to one.")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()].unique()
        raise InputError(f"{where} has the column name(s) {listing(twice)} more than once; rename them.")
    unnamed = np.flatnonzero(frame.columns.isna())
    if unnamed.size:
        raise InputError(
            f"{where} has no name for column {unnamed[0]} (counted from 0): it is {frame.columns[unnamed[0]]}; name it."
        )
    return frame


def _read(X: Any, where: str) -> pd.DataFrame:
    """Return a frame of polars, pyarrow or another library as pandas, with dtypes that hold its missing values."""
    import narwhals as nw

    try:
        wrapped = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = pd.Index(X.column_names)
        raise InputError(
            f"{where} has the column name(s) {listing(names[names.duplicated()].unique())} more than once; rename them."
        ) from None
    if isinstance(wrapped, nw.LazyFrame):
        raise InputError(f"{where} is a LazyFrame, which is not computed; give {where}.collect().")
    if not isinstance(wrapped, nw.DataFrame):
        fix = f"{where}.toarray()" if hasattr(X, "toarray") else "a pandas DataFrame or a two-dimensional numpy array"
        raise InputError(f"{where} is a {type(X).__name__}, which is not a table; give {fix}.")
    table = wrapped.to_arrow()
    return pd.DataFrame({name: _read_column(table[name], name, where) for name in table.column_names})


def _read_column(column: Any, name: str, where: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_type = pa.types
    if is_type.is_floating(column.type) and column.null_count and pc.any(pc.is_nan(column)).as_py():
        raise InputError(f"column {name!r} of {where} holds both null and NaN; use one of them for missing values.")
    if is_type.is_date(column.type):
        return column.to_pandas(date_as_object=False)
    if column.null_count and (is_type.is_integer(column.type) or is_type.is_boolean(column.type)):
        text = str(column.type)
        nullable = "boolean" if text == "bool" else text.replace("i", "I", 1).replace("uI", "UI")
        return column.to_pandas(types_mapper={column.type: pd.api.types.pandas_dtype(nullable)}.get)
    if is_type.is_string_view(column.type):
        column = column.cast(pa.large_string())
    return column.to_pandas()
