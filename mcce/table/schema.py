"""The columns of a table, and the table as one float matrix.

`Schema.from_data` reads the features of a training table. `Schema.encode` returns a `Table`: a float64 matrix with
level codes, dates in whole units since the first, and NaN for missing values. `Schema.decode` restores columns and
dtypes. Encoding is lossless or an error. `Schema.arrange` puts the columns of the matrix in another order, while frames
keep that of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Floats, Ints
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.table.feature import KINDS, Feature, Kind
from mcce.table.frames import Data, FrameKind, as_frame, frame_kind
from mcce.table.reading import read_feature

Result = TypeVar("Result")


class Schema:
    """The features of a training table, in the order of the columns of its matrix; built by `Schema.from_data`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.table import Schema
    >>> X = pd.DataFrame({"age": [36, 52], "job": ["clerk", "pilot"]})
    >>> schema = Schema.from_data(X).arrange(["job", "age"])
    >>> schema.encode(X).matrix.tolist()
    [[0.0, 36.0], [1.0, 52.0]]
    >>> schema.decode(schema.encode(X).matrix).equals(X)
    True
    """

    def __init__(
        self,
        features: Sequence[Feature],
        columns: pd.Index[Any],
        places: Ints,
        array_dtype: Any = None,
        frame_kind: FrameKind | None = None,
    ) -> None:
        self.features = tuple(features)
        self.columns = columns  # labels in the order of the data
        self.places = places  # of the data's columns among the features
        self.array_dtype = array_dtype  # if the table was an array
        self.frame_kind = frame_kind  # if it was a frame of another library than pandas

    @classmethod
    def from_data(cls, X: Data, kinds: Mapping[Any, Kind] | None = None, where: str = "X") -> Schema:
        """Read the schema of a table; `kinds` overrides the kind of some columns.

        Examples
        --------
        >>> import numpy as np
        >>> from mcce.table import Schema
        >>> Schema.from_data(np.array([[1.0, 0.0], [2.5, 1.0]]), kinds={"x1": "categorical"}).kinds
        {'x0': 'numeric', 'x1': 'categorical'}
        """
        frame = as_frame(X, where)
        if 0 in frame.shape:
            raise InputError(
                f"{where} has {frame.shape[0]} rows and {frame.shape[1]} columns; give at least one of each."
            )
        if kinds is not None and not isinstance(kinds, Mapping):
            raise InputError(f"kinds is {spell(kinds)}; give kinds by column, for example kinds={{'age': 'numeric'}}.")
        kinds = dict(kinds or {})
        for name, kind in kinds.items():
            if name not in frame.columns:
                raise InputError(
                    f"kinds names {spell(name)}, which is not a column of {where}; {did_you_mean(name, frame.columns)}"
                )
            if kind not in KINDS:
                raise InputError(f"kinds[{spell(name)}] is {spell(kind)}; give one of {listing(KINDS)}.")
        features = [read_feature(frame.iloc[:, j], kinds.get(name), where) for j, name in enumerate(frame.columns)]
        array_dtype = X.dtype if isinstance(X, np.ndarray) else None
        return cls(features, frame.columns, np.arange(len(features)), array_dtype, frame_kind(X))

    @property
    def names(self) -> list[Any]:
        """Column labels, in the order of the features."""
        return [f.name for f in self.features]

    @property
    def kinds(self) -> dict[Any, Kind]:
        """Kind of every column."""
        return {f.name: f.kind for f in self.features}

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        rows = (
            f"{f.name}: {f.kind}" + (f" ({f.n_levels} levels)" if f.levels is not None else "") for f in self.features
        )
        return "Schema(" + ", ".join(rows) + ")"

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {name: j for j, name in enumerate(self.names)}

    def position(self, name: Hashable, role: str = "feature") -> int:
        """Return the position of a column; the error for an unknown name begins with its `role`.

        Examples
        --------
        >>> import numpy as np
        >>> from mcce.table import Schema
        >>> Schema.from_data(np.zeros((1, 2))).position("x9", "fixed feature")
        Traceback (most recent call last):
        mcce.exceptions.InputError: fixed feature 'x9' is not a column of X; known: 'x0', 'x1'
        """
        if not isinstance(name, Hashable) or name not in self._positions:
            raise InputError(f"{role} {spell(name)} is not a column of X; {did_you_mean(name, self.names)}")
        return self._positions[name]

    def subset(self, names: Sequence[Hashable]) -> Schema:
        """Return the schema of a table of some columns, in the order given."""
        chosen = [self.position(name) for name in names]
        labels = pd.Index([self.features[j].name for j in chosen], tupleize_cols=False, name=self.columns.name)
        features = [self.features[j] for j in chosen]
        return Schema(features, labels, np.arange(len(chosen)), self.array_dtype)

    def arrange(self, names: Sequence[Hashable]) -> Schema:
        """Return the schema with all features in the order given; frames and arrays keep the order of the data."""
        order = [self.position(name) for name in names]
        if sorted(order) != list(range(len(self))):
            raise InputError(f"names are {listing(names)}; give each of {listing(self.names)} once.")
        features = [self.features[j] for j in order]
        places = np.argsort(order)[self.places]
        return Schema(features, self.columns, places, self.array_dtype, self.frame_kind)

    # -----------------------------------------------------------------------------------------------------------------

    def encode(self, X: Data, where: str = "X") -> Table:
        """Encode a table with these columns in any order."""
        frame = as_frame(X, where)
        order = frame.columns.get_indexer(self.columns)
        if (order < 0).any() or len(frame.columns) > len(self):
            self._refuse_columns(frame, where)
        matrix = np.empty(frame.shape, dtype=np.float64, order="F")
        for j, place in zip(self.places, order):
            matrix[:, j] = self.features[j].encode(frame.iloc[:, int(place)], where)
        return Table(self.features, matrix)

    def _refuse_columns(self, frame: pd.DataFrame, where: str) -> None:
        """Raise on a frame that lacks a column, or has another one."""
        absent = [name for name in self.columns if name not in frame.columns]
        if absent:
            raise InputError(
                f"{where} lacks the column(s) {listing(absent)} of the fitted table; it has {listing(frame.columns)}."
            )
        extra = [name for name in frame.columns if name not in self._positions]
        raise InputError(
            f"{where} has the column(s) {listing(extra)}, unknown to the fitted table; drop them, or refit with them."
        )

    def decode(self, matrix: Floats, index: pd.Index[Any] | None = None) -> pd.DataFrame:
        """Return the frame that a matrix encodes: columns in the data's order, with the training dtypes."""
        if self._one_dtype is not None and (self._one_dtype.kind == "f" or not np.isnan(matrix).any()):
            frame = pd.DataFrame(matrix[:, self.places].astype(self._one_dtype, order="F"), copy=False)
        else:
            arrays = {k: self.features[j].decode(matrix[:, j]) for k, j in enumerate(self.places)}
            frame = pd.DataFrame({k: _keep_objects(values) for k, values in arrays.items()}, copy=False)
        if index is not None:
            frame.index = index
        frame.columns = self.columns.view()  # a view, because users may name the columns of a frame
        return frame

    @cached_property
    def _one_dtype(self) -> np.dtype[Any] | None:
        """The numpy dtype of all columns, if they are numbers of one dtype, which make one block of pandas."""
        dtypes = {f.dtype if f.is_numeric else None for f in self.features}
        (one,) = dtypes if len(dtypes) == 1 else (None,)
        return one if isinstance(one, np.dtype) and one.kind in "iuf" else None

    def decode_for_model(self, matrix: Floats) -> Data:
        """Return the model's input for the rows of a matrix: like `decode`, but of the kind of the training table."""
        if self.array_dtype is not None and self.array_dtype == self._one_dtype and self.array_dtype.kind == "f":
            return np.asarray(matrix[:, self.places], dtype=self.array_dtype)
        frame = self.decode(matrix)
        if self.frame_kind is not None:
            return self.frame_kind.build(frame)
        return frame if self.array_dtype is None else frame.to_numpy(dtype=self.array_dtype)


def _keep_objects(values: Any) -> Any:
    """Return values in a form of which a frame keeps the dtype, which it infers for arrays of objects."""
    return pd.Series(values, dtype=object, copy=False) if values.dtype == object else values


class Column:
    """One encoded column: the target of a conditional.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.table import Schema
    >>> X = pd.DataFrame({"age": [36, 52], "job": ["clerk", "pilot"]})
    >>> target = Schema.from_data(X).encode(X).column(1)
    >>> target.feature.kind, target.values.tolist()
    ('categorical', [0.0, 1.0])
    """

    def __init__(self, feature: Feature, values: Floats) -> None:
        self.feature = feature
        self.values = values

    def take(self, rows: npt.NDArray[Any]) -> Column:
        """Return some rows (an index array or a boolean mask)."""
        return Column(self.feature, self.values[rows])


class Table:
    """Encoded rows: one feature for each column of a float64 matrix in Fortran order.

    A table made by `select` or `first` keeps the table that it was cut from, so that work on columns of the whole table
    (ranking them for trees) is shared by all tables cut from it: `positions` are those of its columns there.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.table import Schema
    >>> X = pd.DataFrame({"age": [36, 52], "job": ["clerk", "pilot"]})
    >>> table = Schema.from_data(X).encode(X)
    >>> table.n_rows, table.names, table.select([1]).names
    (2, ['age', 'job'], ['job'])
    """

    def __init__(
        self, features: Sequence[Feature], matrix: Floats, root: Table | None = None, positions: Sequence[int] = ()
    ) -> None:
        self.features = tuple(features)
        self.matrix = matrix
        self.root = self if root is None else root
        self.positions = tuple(range(len(self.features))) if root is None else tuple(positions)
        self._shared: dict[str, Any] = {}
        self._lock = RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave lock, root and shared work out of a pickle."""
        return Table, (self.features, self.matrix)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def names(self) -> list[Any]:
        """Column labels, in order."""
        return [f.name for f in self.features]

    def shared(self, name: str, make: Callable[[Table], Result]) -> Result:
        """Return `make(root)`, computed once for all tables cut from one root; thread-safe."""
        with self.root._lock:
            if name not in self.root._shared:
                self.root._shared[name] = make(self.root)
            return cast("Result", self.root._shared[name])

    def column(self, j: int) -> Column:
        """Return one column as a target."""
        return Column(self.features[j], self.matrix[:, j])

    def first(self, k: int) -> Table:
        """Return the first `k` columns, without copying."""
        return Table(self.features[:k], self.matrix[:, :k], self.root, self.positions[:k])

    def select(self, columns: Sequence[int]) -> Table:
        """Return some columns, in the order given."""
        features = [self.features[j] for j in columns]
        matrix = np.asfortranarray(self.matrix[:, list(columns)])
        return Table(features, matrix, self.root, [self.positions[j] for j in columns])

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Return some rows (an index array or a boolean mask) as a table of its own."""
        return Table(self.features, np.asfortranarray(self.matrix.T[:, rows].T))
