"""The three stages of mcceR in R's order: `fit`, `generate`, `process`.

Columns: integers, doubles and logicals (pandas: bool) are numbers; party treats a logical as a factor in tests and as
the response. Factors (category) and text are levels, text in alphabetical order; ordered factors are ordered. Factuals
are matched by label. Generated columns of mutable features have the training dtype, fixed columns that of the factuals.
Missing values, dates and reserved names raise an error, because mcceR cannot handle them.

`fit`: one tree for each mutable feature, in column order, on the fixed features, `decision` (1 where the prediction
lies in c_int, ends included) and the preceding mutable features. Without any of these the first tree has one constant
column. A fit of rpart with xval > 0 draws a permutation of the training rows from the stream.

`generate`: K rows for each factual, from R's single stream. Rows are routed down each tree; leaves are visited in order
of first appearance, and for each of its rows a leaf draws one of its training rows, with replacement. For a leaf with a
single training row r, R's `sample()` draws from the rows 1, ..., r. A row that stops in an inner node of rpart draws
from all rows of that node.

`process`: `validation`, `L0`, `L1` and `L2` (raw scales) and `gower` (mcceR's, see `mcce.rcompat`) of every row, over
the mutable columns. A stable sort orders rows by the measures, validation descending. Invalid rows are dropped on
request, and the first rows of each factual are kept.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats, Int32s, Ints
from mcce.base.checks import MOST_DRAWS, check, check_count
from mcce.distances.kernels import Top, best_within, sort_within
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.rcompat import kernels
from mcce.rcompat.names import translate
from mcce.rng.r import RGenerator
from mcce.table import Column, Feature, Schema, Table
from mcce.table.checks import check_fixed_names
from mcce.table.dtypes import is_dated, is_logical
from mcce.trees.ctree import tree as ctree
from mcce.trees.ctree.tree import CtreeTree
from mcce.trees.rpart import tree as rpart
from mcce.trees.rpart.tree import RpartTree
from mcce.trees.tree import Tree
from mcce.wording import Either, Parameter, PythonOnly

DECISION = "decision"  # column: whether a row has the wanted decision
DUMMY = "dummy"  # constant column: given of the first tree if there is no other
RESULT_COLUMNS = ("id_explain", "row_id", "counterfactual_rank", "pred")


def read_columns(frame: pd.DataFrame, where: str) -> list[Feature]:
    """Return the features of a training frame; logicals are numbers that are decoded to logicals."""
    for name, dtype in frame.dtypes.items():
        if is_dated(dtype):
            raise InputError(
                f"column {name!r} of ",
                Parameter(where),
                " holds dates",
                PythonOnly(f" (dtype {dtype})"),
                ", which R's trees and measures treat differently: convert it to a number, such as days.",
            )
    logical = [name for name, dtype in frame.dtypes.items() if is_logical(dtype)]
    features = Schema.from_data(frame.astype(dict.fromkeys(logical, np.float64)), where=where).features
    return [replace(f, dtype=frame[f.name].dtype) if f.name in logical else f for f in features]


def party_response(column: Column) -> Column:
    """Return a target as party reads it: a logical response is a factor."""
    feature = column.feature
    if not is_logical(feature.dtype):
        return column
    return Column(replace(feature, kind="categorical", levels=pd.Index([False, True], dtype=object)), column.values)


def encode_column(column: pd.Series[Any], feature: Feature, where: str) -> Floats:
    """Return the values as numbers or level codes; numbers may exceed the range of the training dtype."""
    missing = np.flatnonzero(column.isna().to_numpy(dtype=bool))
    if missing.size:
        raise InputError(
            f"column {column.name!r} of ",
            Parameter(where),
            f" has {missing.size} missing value(s), the first in row "
            f"{spell(column.index[missing[0]])}; mcceR's measures and draws do not handle them: fill "
            "them in or drop the rows, or use ",
            Either(PythonOnly("mcce.MCCE"), "mcce()"),
            ", which treats missing as a value.",
        )
    wide = replace(feature, dtype=np.dtype(np.float64)) if feature.is_numeric else feature
    return wide.encode(column, where)


def encode_columns(frame: pd.DataFrame, features: Sequence[Feature], where: str) -> Floats:
    """Return columns of a frame as one Fortran-ordered matrix."""
    check_present(frame, (feature.name for feature in features), where)
    matrix = np.empty((len(frame), len(features)), order="F")
    for j, feature in enumerate(features):
        matrix[:, j] = encode_column(frame[feature.name], feature, where)
    return matrix


def constant(name: str) -> Feature:
    """Return the feature of `decision` or `dummy`, which is 1 in every generated row."""
    return Feature(name, "numeric", np.dtype(np.float64), low=0.0, high=1.0)


def gower_roles(features: Sequence[Feature]) -> npt.NDArray[np.int8]:
    """Return the roles of columns in mcceR's Gower: 1 for numbers, 0 for factors, -1 (ignored) for logicals, text."""
    roles = [
        -1 if is_logical(f.dtype) else 1 if f.is_numeric else 0 if isinstance(f.dtype, pd.CategoricalDtype) else -1
        for f in features
    ]
    return np.array(roles, dtype=np.int8)


def check_fixed(fixed_features: str | Iterable[Hashable] | None, names: Sequence[Hashable]) -> list[Hashable]:
    if fixed_features is None or isinstance(fixed_features, str):
        fixed_features = () if fixed_features is None else (fixed_features,)
    fixed = check_fixed_names(fixed_features, names, "fixed_features", "x_train")
    if len(fixed) == len(names):
        raise InputError(
            Parameter("fixed_features"),
            " names every column of ",
            Parameter("x_train"),
            "; leave at least one that may change.",
        )
    return fixed


def check_names(names: Iterable[Hashable], reserved: Iterable[str]) -> None:
    """Raise if a column has a reserved name of the table of candidates."""
    taken = [name for name in names if name in set(reserved)]
    if taken:
        raise InputError(
            f"x_train has the column(s) {listing(taken)}, a reserved name of explain_mcce (mcceR would "
            "overwrite it); rename the column."
        )


def check_present(frame: pd.DataFrame, names: Iterable[Hashable], where: str) -> None:
    """Raise if a frame has no rows or lacks a column."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise InputError(
            Parameter(where), f" lacks the column(s) {listing(absent)} of x_train; it has {listing(frame.columns)}."
        )
    if len(frame) == 0:
        raise InputError(Parameter(where), " has no rows; give at least one.")


def _grow_ctree(given: Table, target: Column, **settings: Any) -> CtreeTree:
    return ctree.grow(given, party_response(target), **settings)


@dataclass(frozen=True)
class FeatureModel:
    """The fitted trees and all that generating from them needs: mcceR's `featuremodel_object`.

    Attributes
    ----------
    trees : one for each mutable feature.
    leaf_train : for each mutable feature the leaf of each training row, as numbered in the tree.
    fixed_features : names, `decision` last if it was used.
    mutable_features : names, in column order.
    autoregressive_model : "ctree" or "rpart".
    decision : whether `decision` is among the fixed features.
    c_int : the wanted interval.
    table : the encoded training rows: fixed, decision (or dummy), mutable.
    columns : labels of x_train.
    seconds : time for growing the trees.
    """

    trees: tuple[RpartTree | CtreeTree, ...]
    leaf_train: tuple[Int32s, ...]
    fixed_features: tuple[Hashable, ...]
    mutable_features: tuple[Hashable, ...]
    autoregressive_model: str
    decision: bool
    c_int: tuple[float, float]
    table: Table
    columns: tuple[Hashable, ...]
    seconds: float

    @property
    def n_given(self) -> int:
        """Number of columns that the first tree is grown on."""
        return len(self.table.features) - len(self.mutable_features)

    @property
    def mutable(self) -> tuple[Feature, ...]:
        return self.table.features[self.n_given :]

    @cached_property
    def where_train(self) -> pd.DataFrame:
        """R's number of the leaf of each training row (rpart: frame row; party: node), one column per feature."""
        numbers = [tree.frame_row if isinstance(tree, RpartTree) else tree.number for tree in self.trees]
        by_feature = zip(self.mutable_features, numbers, self.leaf_train)
        return pd.DataFrame({name: number[leaf] for name, number, leaf in by_feature})


def fit_autoregressive(
    x_train: pd.DataFrame,
    pred_train: npt.ArrayLike,
    fixed_features: str | Iterable[Hashable] | None = None,
    c_int: tuple[float, float] = (0.5, 1),
    autoregressive_model: str = "ctree",
    decision: bool = True,
    rng: RGenerator | None = None,
    **arguments: Any,
) -> FeatureModel:
    """Fit the trees of all mutable features.

    Parameters
    ----------
    x_train : DataFrame
    pred_train : array
        The model's answer for each of its rows.
    fixed_features, c_int, autoregressive_model, decision
        As in `explain_mcce`.
    rng : RGenerator, optional
        The stream from which rpart's cross-validation draws; a fresh one by default. Its `fused` describes how the R to
        reproduce was compiled.
    **arguments
        R's arguments of the engine.

    Returns
    -------
    FeatureModel
    """
    settings = translate(autoregressive_model, arguments)
    rng = rng or RGenerator(None)
    fixed = check_fixed(fixed_features, list(x_train.columns))
    mutable: list[Hashable] = [name for name in x_train.columns if name not in fixed]
    table = _training_table(x_train, fixed, mutable, _decisions(pred_train, len(x_train), c_int) if decision else None)
    first = len(table.features) - len(mutable)
    start = time.perf_counter()
    # only rpart's trees depend on how R was compiled, as far as known
    grow = partial(rpart.grow, fused=rng.fused) if settings.engine == "rpart" else _grow_ctree
    trees: list[RpartTree | CtreeTree] = []
    for k in range(first, len(table.features)):
        trees.append(grow(table.first(k), table.column(k), **settings.grow))
        if settings.permutes:
            rng.permutation(table.n_rows)
    return FeatureModel(
        trees=tuple(trees),
        leaf_train=tuple(tree.route(table.matrix[:, : first + i], complete=True) for i, tree in enumerate(trees)),
        fixed_features=(*fixed, DECISION) if decision else tuple(fixed),
        mutable_features=tuple(mutable),
        autoregressive_model=settings.engine,
        decision=decision,
        c_int=c_int,
        table=table,
        columns=tuple(x_train.columns),
        seconds=time.perf_counter() - start,
    )


def _decisions(pred_train: npt.ArrayLike, n: int, c_int: tuple[float, float]) -> Floats:
    """Return 1 where a prediction is wanted, else 0."""
    predictions = np.asarray(pred_train, dtype=np.float64)
    if predictions.shape != (n,):
        raise InputError(
            f"pred_train has shape {predictions.shape}; give one number for each of the {n} training rows."
        )
    return ((predictions >= c_int[0]) & (predictions <= c_int[1])).astype(np.float64)


def _training_table(
    x_train: pd.DataFrame, fixed: list[Hashable], mutable: list[Hashable], decisions: Floats | None
) -> Table:
    """Return the encoded training rows, with columns in the order of the trees."""
    by_name = {feature.name: feature for feature in read_columns(x_train, "x_train")}
    before, after = [by_name[name] for name in fixed], [by_name[name] for name in mutable]
    between: list[Feature] = []
    if decisions is not None:
        check_names(by_name, [DECISION])
        between = [constant(DECISION)]
    elif not fixed:
        check_names(by_name, [DUMMY])
        between, decisions = [constant(DUMMY)], np.ones(len(x_train))
    parts = [encode_columns(x_train, before, "x_train"), encode_columns(x_train, after, "x_train")]
    if decisions is not None:
        parts.insert(1, decisions[:, None])
    return Table((*before, *between, *after), np.asfortranarray(np.hstack(parts)), complete=True)


@dataclass(frozen=True)
class Simulated:
    """The generated rows, K consecutive rows for each factual.

    Attributes
    ----------
    matrix : encoded rows, columns in the order of the feature model's table.
    x_explain : the factuals.
    feature_model : the fitted trees that generated the rows.
    K : rows for each factual.
    seconds : time for generating.
    """

    matrix: Floats
    x_explain: pd.DataFrame
    feature_model: FeatureModel
    K: int
    seconds: float

    @classmethod
    def from_frame(cls, sim_data: pd.DataFrame, x_explain: pd.DataFrame, feature_model: FeatureModel) -> Simulated:
        """Create from mcceR's `sim_data`: the same number of rows for each factual, in the order of the factuals."""
        table, n = feature_model.table, len(x_explain)
        expected = np.repeat(np.arange(1, n + 1), len(sim_data) // n)
        if not np.array_equal(sim_data["id_explain"], expected):
            raise InputError(f"id_explain of sim_data is not 1, ..., {n}, with equally many consecutive rows each.")
        matrix = np.ones((len(sim_data), len(table.features)), order="F")
        for j, feature in enumerate(table.features):
            if feature.name in feature_model.columns:
                matrix[:, j] = encode_columns(sim_data, [feature], "sim_data")[:, 0]
        return cls(matrix, x_explain, feature_model, len(sim_data) // n, 0.0)

    @property
    def mutable(self) -> Floats:
        return self.matrix[:, self.feature_model.n_given :]

    @cached_property
    def factuals(self) -> Floats:
        return encode_columns(self.x_explain, self.feature_model.mutable, "x_explain")

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All rows as the input of the model: x_train's columns, without the factuals' numbers."""
        return self.rows(slice(None))

    def rows(self, which: Ints | slice) -> pd.DataFrame:
        """Return the given rows: mutable columns have x_train's dtypes, fixed ones x_explain's."""
        factual = np.repeat(np.arange(len(self.x_explain)), self.K)[which]
        place = {name: j for j, name in enumerate(self.feature_model.mutable_features)}
        columns: dict[Hashable, Any] = {}
        for name in self.feature_model.columns:
            if name in place:
                decoded = self.feature_model.mutable[place[name]].decode(self.mutable[which, place[name]])
                columns[name] = pd.Series(decoded, copy=False)
            else:
                columns[name] = pd.Series(self.x_explain[name].array.take(factual), copy=False)
        return pd.DataFrame(columns, copy=False)

    def with_ids(self) -> pd.DataFrame:
        """Return all rows with the number of their factual, from 1, as the first column: mcceR's `sim_data`."""
        frame = self.frame.copy(deep=False)
        frame.insert(0, "id_explain", np.repeat(np.arange(1, len(self.x_explain) + 1), self.K))
        return frame


def generate(
    x_explain: pd.DataFrame, feature_model: FeatureModel, K: int = 1000, rng: RGenerator | None = None
) -> Simulated:
    """Generate `K` rows for each row of `x_explain`.

    Parameters
    ----------
    x_explain : DataFrame
        Has the columns of x_train; others are ignored.
    feature_model : FeatureModel
    K : int
    rng : RGenerator, optional
        The stream, seeded with generate_seed or as the fit left it; a fresh one by default.

    Returns
    -------
    Simulated
    """
    K = check_count(K, "generate_K", most=MOST_DRAWS)
    check_present(x_explain, feature_model.columns, "x_explain")
    rng = rng or RGenerator(None)
    start = time.perf_counter()
    table, first = feature_model.table, feature_model.n_given
    n_fixed = first if feature_model.fixed_features and not feature_model.decision else first - 1
    given = encode_columns(x_explain, table.features[:n_fixed], "x_explain")
    matrix = np.empty((len(x_explain) * K, len(table.features)), order="F")
    for j in range(n_fixed):
        matrix[:, j] = np.repeat(given[:, j], K)
    matrix[:, n_fixed:first] = 1.0  # decision, or dummy
    for i, tree in enumerate(feature_model.trees):
        leaf = tree.route(matrix[:, : first + i], complete=True)
        values = table.matrix[:, first + i]
        _draw(tree, leaf, feature_model.leaf_train[i], values, rng, matrix[:, first + i])
    return Simulated(matrix, x_explain, feature_model, K, time.perf_counter() - start)


def _draw(
    tree: Tree,
    leaf: npt.NDArray[np.int32],
    leaf_train: npt.NDArray[np.int32],
    values: Floats,
    rng: RGenerator,
    out: Floats,
) -> None:
    count = np.zeros(tree.n_nodes, dtype=np.int64)
    order = np.empty(tree.n_nodes, dtype=np.int64)
    visited = order[: kernels.count_leaves(leaf, count, order)]
    grouped = np.argsort(leaf_train, kind="stable")  # training rows grouped by leaf, ascending
    ends = np.cumsum(np.bincount(leaf_train, minlength=tree.n_nodes))
    drawn = np.empty(leaf.size)
    place = np.zeros(tree.n_nodes, dtype=np.int64)
    begin = 0
    for node in visited:
        donors = grouped[ends[node - 1] if node else 0 : ends[node]]
        if donors.size == 1:
            donors = np.arange(donors[0] + 1)
        elif donors.size == 0:  # an inner node, where a row with an unknown level stops
            donors = np.sort(tree.donors[tree.start[node] : tree.start[node] + tree.size[node]])
        place[node] = begin
        drawn[begin : begin + count[node]] = values[donors][rng.indices(donors.size, count[node])]
        begin += count[node]
    kernels.deal(leaf, place, drawn, out)


MEASURES = ("validation", "L0", "L1", "L2", "gower")


@dataclass(frozen=True)
class Processed:
    """The best rows, and the measures and ranks of all.

    Attributes
    ----------
    cf : id_explain, counterfactual_rank, and the features.
    cf_measures : id_explain, counterfactual_rank, pred, and the measures.
    measured : pred and the measures of every generated row.
    K : rows for each factual.
    seconds : time for measuring and selecting.
    """

    cf: pd.DataFrame
    cf_measures: pd.DataFrame
    measured: pd.DataFrame
    K: int
    seconds: float

    @cached_property
    def measures(self) -> pd.DataFrame:
        """row_id, id_explain, pred, the measures and counterfactual_rank of every generated row."""
        n = len(self.measured)
        return pd.DataFrame(
            {
                "row_id": np.arange(1, n + 1),
                "id_explain": np.arange(n) // self.K + 1,
                **dict(self.measured.items()),
                "counterfactual_rank": _ranks(_keys(self.measured), self.K),
            }
        )


def process(
    simulated: Simulated,
    pred_sim: npt.ArrayLike,
    measures: Sequence[str] = ("validation", "L0", "L1"),
    remove_invalid: bool = True,
    return_best_k: int = 1,
) -> Processed:
    """Measure, rank and select generated rows.

    Parameters
    ----------
    simulated : Simulated
    pred_sim : array
        The model's answer for each of its rows.
    measures : sequence of {"validation", "L0", "L1", "L2", "gower"}
        In order of priority in sorting.
    remove_invalid : bool
    return_best_k : int

    Returns
    -------
    Processed
    """
    measures = check_measures(measures)
    return_best_k = check_count(return_best_k, "process_return_best_k")
    predictions = np.asarray(pred_sim, dtype=np.float64)
    n, K = simulated.matrix.shape[0], simulated.K
    if predictions.shape != (n,):
        raise InputError(f"pred_sim has shape {predictions.shape}; give one number for each of the {n} generated rows.")
    start = time.perf_counter()
    columns = {f"measure_{name}": _measure(name, simulated, predictions) for name in measures}
    measured = pd.DataFrame({"pred": predictions, **columns}, copy=False)
    keys = _keys(measured)
    kept = _measure("validation", simulated, predictions) > 0 if remove_invalid else np.ones(n, dtype=np.bool_)
    top = Top.room_for(len(keys), n // K, min(return_best_k, K))
    best_within(keys, kept, K, np.arange(len(keys)), top)
    best = top.rows[top.rows >= 0]
    if remove_invalid and measures[0] != "validation":  # invalid rows are between the valid ones
        rank = _ranks(keys, K)[best]
    else:
        rank = np.nonzero(top.rows >= 0)[1] + 1
    ids = pd.DataFrame({"id_explain": best // K + 1, "counterfactual_rank": rank})
    cf = pd.concat([ids, simulated.rows(best)], axis=1)
    cf_measures = pd.concat([ids, measured.iloc[best].reset_index(drop=True)], axis=1)
    return Processed(cf, cf_measures, measured, K, time.perf_counter() - start)


def check_measures(measures: Sequence[str]) -> list[str]:
    """Return the measures as a list; raise if a name is unknown or repeated."""
    names = [measures] if isinstance(measures, str) else list(measures)
    for name in names:
        if name not in MEASURES:
            raise InputError(Parameter("process_measures"), f" names {spell(name)}; {did_you_mean(name, MEASURES)}")
    fits = names and len(set(names)) == len(names)
    check(fits, names, "process_measures", f"name at least one of {listing(MEASURES)}, each once.")
    return names


def _measure(name: str, simulated: Simulated, predictions: Floats) -> Floats:
    model, K = simulated.feature_model, simulated.K
    rows, factuals = simulated.mutable, simulated.factuals
    out = np.zeros(rows.shape[0])
    if name == "validation":
        out = ((predictions >= model.c_int[0]) & (predictions <= model.c_int[1])).astype(np.float64)
    elif name == "L0":
        kernels.count_changes(rows, factuals, K, out)
    elif name in ("L1", "L2"):
        is_number = np.array([feature.kind != "categorical" for feature in model.mutable])
        kernels.sum_steps(rows, factuals, K, is_number, name == "L2", out)
    else:
        span = rows.max(axis=0) - rows.min(axis=0)
        kernels.sum_gower(rows, factuals, K, gower_roles(model.mutable), span, np.zeros(rows.shape[0]), out)
    return out


def _keys(measured: pd.DataFrame) -> Floats:
    """Return the sort keys, ascending, one row for each measure."""
    columns = [name for name in measured.columns if name != "pred"]
    return np.stack([-measured[c] if c == "measure_validation" else measured[c] for c in columns])


def _ranks(keys: Floats, K: int) -> npt.NDArray[np.int64]:
    """Return the rank of each row among those of its factual, from 1."""
    order = np.empty(keys.shape[1], dtype=np.int64)
    sort_within(keys, K, np.arange(len(keys)), np.empty(K, dtype=np.int64), order)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size) % K + 1
    return rank
