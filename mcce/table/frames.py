"""Frames of polars, pyarrow and other libraries that narwhals supports; results are returned as the same kind.

`frame_kind` reads the library and the Arrow types of the columns, `read_frame` converts to pandas without loss
(nullable dtypes, ordered categories), and `FrameKind.build` converts back. A column with both null and NaN is refused.
Frames that narwhals cannot build are read, and results are pandas. `build_frame` builds small frames of pandas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pandas as pd

from mcce.exceptions import InputError, spell, spell_all
from mcce.storage.fields import require, stored
from mcce.storage.state import stateful
from mcce.table.dtypes import column_of
from mcce.wording import Parameter

if TYPE_CHECKING:
    import pyarrow as pa

Pandas = TypeVar("Pandas", pd.DataFrame, "pd.Series[Any]")  # other frames are unknown to the type checker

BACKENDS = ("polars", "pyarrow", "modin", "cudf")
_PROTOCOLS = ("__narwhals_dataframe__", "__arrow_c_stream__", "__dataframe__")


@stateful("FrameKind")
@dataclass(frozen=True)
class FrameKind:
    """The kind of a frame of another library.

    Attributes
    ----------
    backend : narwhals' name of the library: "polars", "pyarrow", ...
    types : serialised Arrow schema of the columns.
    with_nan : float columns with NaN, not null, for missing values.
    """

    backend: Any
    types: bytes = stored(bytes)
    with_nan: tuple[str, ...] = stored(tuple, of=str, default=())

    def check_state(self) -> None:
        """Raise if the library is unknown or the Arrow schema invalid."""
        require(self.backend in BACKENDS, f"backend is {spell(self.backend)}, which is not a supported library")
        try:
            import pyarrow as pa

            known = pa.ipc.read_schema(pa.py_buffer(self.types))
        except ImportError:
            raise InputError(f"frames of {self.backend} need pyarrow; pip install 'mcce[frames]'.") from None
        except Exception:
            raise InputError("types is not an Arrow schema") from None
        require({*self.with_nan} <= {*known.names}, "with_nan names an unknown column")

    def build(self, frame: pd.DataFrame) -> Any:
        """Convert a pandas frame to this library; row labels become columns, except 0, 1, ..."""
        import narwhals as nw
        import pyarrow as pa

        known = pa.ipc.read_schema(pa.py_buffer(self.types))
        columns = index_as_columns(frame)
        arrays, fields = [], []
        for name, column in columns.items():
            name = str(name)
            array = _to_arrow(column, missing_is_null=name not in self.with_nan)
            place = known.get_field_index(name)
            field = pa.field(name, array.type) if place < 0 else known.field(place)
            try:
                arrays.append(array.cast(field.type))
                fields.append(field)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # values that do not fit the training column
                arrays.append(array)
                fields.append(pa.field(name, array.type))
        return nw.from_arrow(pa.table(arrays, schema=pa.schema(fields)), backend=self.backend).to_native()


def is_other_frame(X: object) -> bool:
    """Return whether `X` is a frame of another library than pandas."""
    if isinstance(X, (pd.DataFrame, pd.Series, np.ndarray, type)):
        return False
    # by class: the columns of a lazy frame may be expensive
    return hasattr(type(X), "columns") and any(hasattr(X, name) for name in _PROTOCOLS)


def frame_kind(X: object, where: str = "X") -> FrameKind | None:
    """Return the kind of frame `X`; None for pandas, arrays, and frames that narwhals cannot build."""
    if not is_other_frame(X):
        return None
    wrapped = _wrap_by_narwhals(X, where)
    if wrapped is None:
        return None
    table = wrapped.to_arrow()
    return FrameKind(wrapped.implementation.value, table.schema.serialize().to_pybytes(), _with_nan(table, where))


def own_frame(X: Any, where: str = "X") -> Any:
    """Return a table as it is kept and given to the model: native, or pandas if narwhals cannot build its kind."""
    if not is_other_frame(X):
        return X
    wrapped = _wrap_by_narwhals(X, where)
    return read_frame(X, where) if wrapped is None else wrapped.to_native()


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of a frame of another library, by position."""
    import narwhals as nw

    return nw.from_native(X, eager_only=True)[rows].to_native()


def read_frame(X: Any, where: str = "X") -> pd.DataFrame:
    """Return a frame of another library as a pandas frame."""
    table = _arrow_table(X, where)
    _with_nan(table, where)
    columns = {name: _to_pandas(column) for name, column in zip(table.column_names, table.columns)}
    return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows), copy=False)


def like_input(table: Pandas, kind: FrameKind | None) -> Pandas:
    """Convert a frame or series of pandas to this kind of frame; unchanged for None."""
    if kind is None:
        return table
    return cast("Pandas", kind.build(table.to_frame() if isinstance(table, pd.Series) else table))


def build_frame(columns: Mapping[str, Any], index: pd.Index[Any] | None = None) -> pd.DataFrame:
    """Return a frame of named columns. For few rows pandas takes most of its time to make an index of the names."""
    frame = pd.DataFrame(dict(enumerate(columns.values())), index)
    frame.columns = _labels(*columns).view()  # a view: users may name the columns of a frame
    return frame


@cache
def _labels(*names: str) -> pd.Index[Any]:
    return pd.Index(names)


def index_as_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its row labels as columns, unless they are 0, 1, ...; a name that is taken gets a `_`."""
    index = frame.index
    if index.nlevels == 1 and index.name is None and index.equals(pd.RangeIndex(len(frame))):
        return frame
    names = {*frame.columns}
    labels = index.to_frame(index=False)
    labels.columns = pd.Index([f"{n}_" if n in names else n for n in (n or "id" for n in index.names)])
    return pd.concat([labels, frame.reset_index(drop=True)], axis=1)


def _wrap_by_narwhals(X: Any, where: str) -> Any:
    """Return a frame wrapped by narwhals; None if narwhals cannot build its kind."""
    _need("narwhals", X, where)
    import narwhals as nw

    names = list(getattr(X, "column_names", ()))  # only Arrow tables may repeat a name
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(Parameter(where), f" has the column label(s) {spell_all(twice)} more than once; rename them.")
    for name in names:
        kind = str(X.schema.field(name).type)
        if kind.endswith("_view"):
            raise InputError(
                *column_of(name, where),
                f" has Arrow's type {kind}, of which Arrow cannot take single rows; cast it, to "
                f"{kind.removesuffix('_view')}.",
            )
    found = nw.from_native(X, pass_through=True)
    if not isinstance(found, nw.DataFrame):
        return None
    _need("pyarrow", X, where)
    return found


def _arrow_table(X: Any, where: str) -> pa.Table:
    wrapped = _wrap_by_narwhals(X, where)
    if wrapped is not None:
        return wrapped.to_arrow()
    _need("pyarrow", X, where)
    import pyarrow as pa

    if hasattr(X, "__arrow_c_stream__"):
        return pa.table(X)
    from pyarrow.interchange import from_dataframe

    return from_dataframe(X)


def _need(package: str, X: object, where: str) -> None:
    try:
        __import__(package)
    except ImportError as error:
        raise InputError(
            Parameter(where),
            f" is a {type(X).__module__.partition('.')[0]} {type(X).__name__}, and reading it needs "
            f"{package}; install it (pip install 'mcce[frames]'), or give a pandas DataFrame.",
        ) from error


def _with_nan(table: pa.Table, where: str) -> tuple[str, ...]:
    """Return the columns with NaN for missing numbers; raise on a column with both null and NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: list[str] = []
    for name, column in zip(table.column_names, table.columns):
        if not pa.types.is_floating(column.type) or not pc.any(pc.is_nan(column)).as_py():
            continue
        if column.null_count:
            raise InputError(
                *column_of(name, where),
                " holds both null and NaN; missing values must have one form. Replace one of "
                "them, in polars by fill_nan(None).",
            )
        found.append(str(name))
    return tuple(found)


def _to_pandas(column: Any) -> Any:
    import pyarrow as pa

    of, types = column.type, pa.types
    if types.is_date(of):
        return pd.Series(column.cast(pa.date32()).combine_chunks(), dtype=pd.ArrowDtype(pa.date32()))
    if types.is_decimal(of) or types.is_time(of):
        return pd.Series(column.combine_chunks(), dtype=pd.ArrowDtype(of))
    if column.null_count and types.is_integer(of):
        dtype: Any = pd.api.types.pandas_dtype(str(of).replace("i", "I", 1).replace("uI", "UI"))
        return column.to_pandas(types_mapper={of: dtype}.get)
    if column.null_count and types.is_boolean(of):
        return column.to_pandas(types_mapper={of: pd.BooleanDtype()}.get)
    return column.to_pandas()


def _to_arrow(column: Any, *, missing_is_null: bool) -> Any:
    import pyarrow as pa

    if not missing_is_null:
        return pa.array(column.to_numpy(dtype=np.float64), from_pandas=False)
    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        array = pa.array([None if pd.isna(value) else str(value) for value in column], pa.string())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
