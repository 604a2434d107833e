"""The columns of a table, and the table as one float matrix.

`Schema.from_data` reads the kind of every column from the training data: numeric (numbers, dates, durations),
categorical or ordered. `Schema.encode` returns a `Table`: a Fortran-ordered float64 matrix with dates counted in their
own unit from the earliest, level codes, and NaN for missing. `Schema.decode` restores columns and dtypes. Encoding is
lossless or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.checks import check
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.storage.state import stateful
from mcce.table.feature import KINDS, Feature, Kind, read_feature
from mcce.table.frames import FrameKind, frame_kind, is_other_frame, read_frame
from mcce.wording import Parameter, PythonOnly, Setting, Value, entry

__all__ = ["KINDS", "Column", "Data", "Feature", "Floats", "Kind", "Schema", "Table", "as_frame"]

Data = pd.DataFrame | npt.NDArray[Any] | Any  # also frames of other libraries, see `mcce.table.frames`
Result = TypeVar("Result")
WIDE = 32  # least number of columns for which those of one dtype are given to pandas as a block


@stateful("Schema", fields=("features", "array_dtype", "frames"))
class Schema:
    """The features of a training table, in column order; built by `Schema.from_data`.

    `array_dtype` is set if the table was a numpy array, `frames` if it was a frame of another library than pandas.

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

    def __init__(self, features: Sequence[Feature], array_dtype: Any = None, frames: FrameKind | None = None) -> None:
        self.features = tuple(features)
        self.array_dtype = array_dtype
        self.frames = frames

    @classmethod
    def from_data(cls, X: Data, kinds: Mapping[Any, Kind] | None = None, where: str = "X") -> Schema:
        """Read the schema of `X`; `kinds` overrides the kind of some columns.

        Examples
        --------
        >>> import numpy as np
        >>> from mcce import Schema
        >>> Schema.from_data(np.array([[1.0, 0.0], [2.5, 1.0]]), kinds={"x1": "categorical"}).kinds
        {'x0': 'numeric', 'x1': 'categorical'}
        """
        frame, array_dtype = as_frame(X, where)
        if frame.shape[0] == 0 or frame.shape[1] == 0:
            raise InputError(
                Parameter(where),
                f" has {frame.shape[0]} rows and {frame.shape[1]} columns; it needs at least one of each.",
            )
        must_be = ("give kinds by column, for example ", Setting("kinds", {"age": "numeric"}), ".")
        check(kinds is None or isinstance(kinds, Mapping), kinds, "kinds", *must_be)
        overrides = dict(kinds or {})
        for name, kind in overrides.items():
            if name not in frame.columns:
                raise InputError(
                    Parameter("kinds"),
                    f" names {name!r}, which is not a column of ",
                    Parameter(where),
                    f"; {did_you_mean(name, frame.columns)}",
                )
            if kind not in KINDS:
                raise InputError(entry("kinds", name), " is ", Value(kind), f"; allowed: {listing(KINDS)}.")
        features = [read_feature(frame[name], overrides.get(name), where) for name in frame.columns]
        return cls(features, array_dtype, frame_kind(X, where))

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
        """Return the position of a column; the error for an unknown name suggests the nearest one."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(
                f"{role} {name!r} is not a column of ", Parameter(where), f"; {did_you_mean(name, self.names)}"
            ) from None

    def subset(self, names: Sequence[Hashable]) -> Schema:
        """Return the schema of some columns, in the order given."""
        return Schema([self.features[self.position(name)] for name in names])

    def encode(self, X: Data, where: str = "X") -> Table:
        """Encode a table with this schema's columns (in any order) as a `Table`."""
        frame, _ = as_frame(X, where)
        if not frame.columns.equals(self._labels):
            self._check_columns(frame, where)
        matrix = np.empty(frame.shape, dtype=np.float64, order="F")
        for j, feature in enumerate(self.features):
            matrix[:, j] = feature.encode(frame[feature.name], where)
        return Table(self.features, matrix)

    def _check_columns(self, frame: pd.DataFrame, where: str) -> None:
        """Raise if a frame lacks a column of the training data, or has an additional one."""
        names = self.names
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise InputError(
                Parameter(where),
                f" lacks the column(s) {listing(absent)} of the training data; it has {listing(frame.columns)}.",
            )
        extra = [name for name in frame.columns if name not in names]
        if extra:
            raise InputError(
                Parameter(where),
                f" has the column(s) {listing(extra)}, unknown to the training data; drop them, or refit with them.",
            )

    def decode(self, matrix: Floats, index: pd.Index[Any] | None = None) -> pd.DataFrame:
        """Return the frame that `matrix` (columns in this schema's order) encodes, with the training dtypes."""
        index = index if index is not None else pd.RangeIndex(matrix.shape[0])
        names = self._labels.view()  # a view: users may name the columns of a frame
        if self._one_dtype is not None and (self._one_dtype.kind == "f" or not np.isnan(matrix).any()):
            return pd.DataFrame(np.array(matrix, dtype=self._one_dtype, order="F"), index, names, copy=False)
        blocks = self._blocks if len(self) >= WIDE else {}
        blocks = {d: places for d, places in blocks.items() if d.kind == "f" or not np.isnan(matrix[:, places]).any()}
        alone = np.arange(len(self))
        if blocks:
            alone = np.setdiff1d(alone, np.concatenate([*blocks.values()]))
        columns = {j: _typed(self.features[j].decode(matrix[:, j]), self.features[j].dtype) for j in alone.tolist()}
        frame = pd.DataFrame(columns, copy=False)
        if blocks:
            cells = matrix.T  # contiguous columns, as in a frame
            parts = [pd.DataFrame(np.asarray(cells[at], dtype=d, order="C").T, copy=False) for d, at in blocks.items()]
            frame = pd.concat([*parts, frame], axis=1) if columns else pd.concat(parts, axis=1)
            place = np.argsort(np.concatenate([*blocks.values(), alone]))
            frame = frame if (place[1:] > place[:-1]).all() else frame.iloc[:, place]
        frame.index = index
        frame.columns = names
        return frame

    @cached_property
    def ranges(self) -> dict[Any, tuple[Any, Any]]:
        """The lowest and highest training value of each number, as the user writes them."""
        numeric = [f for f in self.features if f.is_numeric and not np.isnan(f.low)]
        ends = {f.name: pd.Series(f.decode(np.array([f.low, f.high]))) for f in numeric}
        return {name: (pair.iloc[0], pair.iloc[1]) for name, pair in ends.items()}

    @cached_property
    def _labels(self) -> pd.Index[Any]:
        """The column labels as an Index."""
        labels: pd.Index[Any] = pd.Index(self.names, tupleize_cols=False)
        return labels

    @cached_property
    def _one_dtype(self) -> np.dtype[Any] | None:
        """The common numpy dtype of all columns if all are numeric, else None."""
        dtypes = {f.dtype for f in self.features} if all(f.is_numeric for f in self.features) else set()
        (one,) = dtypes if len(dtypes) == 1 else (None,)
        return one if isinstance(one, np.dtype) and one.kind in "iuf" else None

    @cached_property
    def _blocks(self) -> dict[np.dtype[Any], npt.NDArray[np.intp]]:
        """The positions of numeric columns by numpy dtype, for dtypes of several columns."""
        found: dict[np.dtype[Any], list[int]] = {}
        for j, feature in enumerate(self.features):
            if feature.is_numeric and isinstance(feature.dtype, np.dtype) and feature.dtype.kind in "iuf":
                found.setdefault(feature.dtype, []).append(j)
        return {dtype: np.array(places, dtype=np.intp) for dtype, places in found.items() if len(places) > 1}

    def decode_for_model(self, matrix: Floats) -> Data:
        """Return the rows for the model: like `decode`, but of the kind of the training data."""
        frame = self.decode(matrix)
        if self.frames is not None:
            return self.frames.build(frame)
        return frame if self.array_dtype is None else frame.to_numpy(dtype=self.array_dtype)


def _typed(values: Any, dtype: Any) -> Any:
    """Return values in a form for which a frame keeps this dtype."""
    if getattr(values, "dtype", None) == dtype and dtype != np.dtype(object):  # a frame infers a dtype for objects
        return values
    return pd.Series(values, dtype=dtype, copy=False)


@dataclass(frozen=True)
class Column:
    """One encoded column: the target of a conditional.

    Examples
    --------
    >>> from mcce.datasets import load_loans
    >>> from mcce.table import Column, Schema
    >>> X = load_loans(5).X[["age", "housing"]]
    >>> table = Schema.from_data(X).encode(X)
    >>> target = Column(table.features[1], table.matrix[:, 1])
    >>> target.feature.kind, target.values.tolist()
    ('categorical', [0.0, 1.0, 1.0, 0.0, 1.0])
    >>> target.feature.levels[0]
    'rent'

    `weights`, if not None, are the positive weights of the rows, see `mcce.table.weights`.
    """

    feature: Feature
    values: Floats
    weights: Floats | None = None

    def take(self, rows: npt.NDArray[Any]) -> Column:
        """Return some rows (an index array or a boolean mask), with their weights."""
        return Column(self.feature, self.values[rows], None if self.weights is None else self.weights[rows])

    def with_values(self, values: Floats, feature: Feature | None = None) -> Column:
        """Return a column of other values, one for each row, with the same weights."""
        return Column(self.feature if feature is None else feature, values, self.weights)

    @property
    def total(self) -> float:
        """Sum of the weights; the number of rows, if they have none."""
        return self.values.size if self.weights is None else float(self.weights.sum())


@dataclass(frozen=True)
class Table:
    """Encoded rows: one feature per column of a Fortran-ordered float64 matrix.

    A table made by `select` or `first` keeps `root` and `positions`, so that work on the columns of the whole table
    (ranking for trees) is shared by all tables cut from it. `complete` promises that no value is missing. `weights` are
    those of training rows, None if they have none.

    Examples
    --------
    >>> from mcce.datasets import load_loans
    >>> from mcce.table import Schema
    >>> X = load_loans(5).X[["age", "housing", "salary"]]
    >>> given = Schema.from_data(X).encode(X)
    >>> given.n_rows, given.names, [feature.kind for feature in given.features]
    (5, ['age', 'housing', 'salary'], ['numeric', 'categorical', 'numeric'])
    >>> given.matrix[0].tolist()
    [36.0, 0.0, 68000.0]
    >>> given.select([0, 2]).names, given.take([0, 1]).n_rows
    (['age', 'salary'], 2)
    """

    features: tuple[Feature, ...]
    matrix: Floats
    root: Table | None = field(default=None, repr=False)
    positions: tuple[int, ...] = ()
    complete: bool = False
    weights: Floats | None = field(default=None, repr=False)
    _shared: dict[str, Any] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        if self.root is None:
            object.__setattr__(self, "positions", tuple(range(len(self.features))))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def names(self) -> list[Any]:
        """Column labels, in order."""
        return [f.name for f in self.features]

    def shared(self, name: str, make: Callable[[Table], Result]) -> Result:
        """Return `make(root)`, computed once for all tables cut from the same root; thread-safe."""
        root = self.root or self
        with root._lock:
            if name not in root._shared:
                root._shared[name] = make(root)
            return cast("Result", root._shared[name])

    def column(self, j: int) -> Column:
        """Return one column as a target."""
        return Column(self.features[j], self.matrix[:, j], self.weights)

    def first(self, k: int) -> Table:
        """Return the first `k` columns, without copying."""
        root, positions = self.root or self, self.positions[:k]
        return Table(self.features[:k], self.matrix[:, :k], root, positions, self.complete, self.weights)

    def select(self, columns: Sequence[int]) -> Table:
        """Return some columns, in the order given."""
        return Table(
            tuple(self.features[j] for j in columns),
            np.asfortranarray(self.matrix[:, list(columns)]),
            self.root or self,
            tuple(self.positions[j] for j in columns),
            self.complete,
            self.weights,
        )

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Return some rows (an index array or a boolean mask) as a new table."""
        weights = None if self.weights is None else self.weights[rows]
        return Table(self.features, np.asfortranarray(self.matrix[rows]), weights=weights)


def as_frame(X: Data, where: str = "X") -> tuple[pd.DataFrame, Any]:
    """Return `X` as a frame, and its dtype if it is a numpy array (columns are then named x0, x1, ...)."""
    if isinstance(X, pd.DataFrame):
        if isinstance(X.columns, pd.MultiIndex):
            raise InputError(
                Parameter(where), f" has {X.columns.nlevels} levels of column labels; flatten them to one."
            )
        if not X.columns.is_unique:
            twice = X.columns[X.columns.duplicated()].unique()
            raise InputError(
                Parameter(where), f" has the column label(s) {listing(twice)} more than once; rename them."
            )
        unnamed = np.flatnonzero(X.columns.isna())
        if unnamed.size:  # the label under which pandas finds it depends on the others
            raise InputError(
                Parameter(where),
                f" has no label for column {unnamed[0]} (counted from 0): it is {X.columns[unnamed[0]]}; "
                "give the column a name.",
            )
        return X, None
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise InputError(
                Parameter(where), f" is an array with {X.ndim} dimension(s); a table has two: rows and columns."
            )
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        return (frame.infer_objects() if X.dtype == object else frame), X.dtype
    if is_other_frame(X):
        return read_frame(X, where), None
    if type(X).__name__ == "LazyFrame":
        raise InputError(
            Parameter(where), " is a LazyFrame, which is not computed; give ", PythonOnly(f"{where}.collect()"), "."
        )
    if hasattr(X, "toarray"):
        raise InputError(
            Parameter(where),
            f" is a sparse {type(X).__name__}, which is not supported; give ",
            PythonOnly(f"{where}.toarray()"),
            ".",
        )
    raise InputError(
        Parameter(where), f" is a {type(X).__name__}; give a pandas DataFrame or a two-dimensional numpy array."
    )
