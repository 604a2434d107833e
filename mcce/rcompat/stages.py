"""The three stages of mcceR in R's order: `fit_autoregressive`, `generate`, `process`.

Columns: integers, doubles and logicals (pandas: bool) are numbers; party treats a logical as a factor in tests and as
the response. Factors (category) and text are levels, text in alphabetical order; ordered factors are ordered. Factuals
are matched by label. Generated columns of mutable features have the training dtype, fixed columns that of the factuals.

Fit: one tree for each mutable feature, in column order, on the fixed features, `decision` (1 where the prediction lies
in c_int, ends included) and the preceding mutable features. Without any of these the first tree has one constant
column. A fit of rpart with xval > 0 draws a permutation of the training rows from the stream.

Generate: K rows for each factual, from R's single stream. Rows are routed down each tree; nodes are visited in order of
first appearance, and for each of its rows a node draws one of its training rows, with replacement. For a node with a
single training row r, R's `sample()` draws from the rows 1, ..., r.

Process: a stable sort orders the rows of each factual by the measures, validation descending; the first are kept.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Floats, Ints, check_count
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.rcompat.measures import MEASURES, measure, ranks
from mcce.rcompat.names import translate
from mcce.rcompat.random import RGenerator
from mcce.table import Column, Feature, Schema, Table
from mcce.trees.ctree import CTree, grow_ctree
from mcce.trees.rpart import RpartTree, grow_rpart

DECISION = "decision"  # column: whether a row has the wanted decision
DUMMY = "dummy"  # constant column: given of the first tree if there is no other
RESULT_COLUMNS = ("id_explain", "row_id", "counterfactual_rank", "pred")


# ---------------------------------------------------------------- columns


def read_columns(frame: pd.DataFrame, where: str) -> list[Feature]:
    """Return the features of a training frame; logicals are numbers that are decoded to logicals."""
    logical = [name for name, dtype in frame.dtypes.items() if pd.api.types.is_bool_dtype(dtype)]
    features = Schema.from_data(frame.astype(dict.fromkeys(logical, np.float64)), where=where).features
    for feature in features:
        if feature.is_date:
            raise InputError(
                f"column {spell(feature.name)} of {where} holds dates (dtype {feature.dtype}), which R's trees and "
                "measures treat differently: convert it to a number, such as days."
            )
    return [replace(f, dtype=frame[f.name].dtype) if f.name in logical else f for f in features]


def party_response(column: Column) -> Column:
    """Return a target as party reads it: a logical response is a factor."""
    feature = column.feature
    if not pd.api.types.is_bool_dtype(feature.dtype):
        return column
    return Column(replace(feature, kind="categorical", levels=pd.Index([False, True], dtype=object)), column.values)


def encode_columns(frame: pd.DataFrame, features: Sequence[Feature], where: str) -> Floats:
    """Return columns of a frame as numbers and level codes; numbers may exceed the range of the training dtype."""
    check_present(frame, (feature.name for feature in features), where)
    matrix = np.empty((len(frame), len(features)), order="F")
    for j, feature in enumerate(features):
        column = frame[feature.name]
        missing = np.flatnonzero(column.isna().to_numpy(dtype=bool))
        if missing.size:
            raise InputError(
                f"column {spell(column.name)} of {where} has {missing.size} missing value(s), the first in row "
                f"{spell(column.index[missing[0]])}; mcceR's measures and draws do not handle them: fill them in or "
                "drop the rows, or use mcce.MCCE, which treats missing as a value."
            )
        if feature.is_numeric and pd.api.types.is_bool_dtype(column.dtype):
            column = column.astype(np.float64)
        wide = replace(feature, dtype=np.dtype(np.float64)) if feature.is_numeric else feature
        matrix[:, j] = wide.encode(column, where)
    return matrix


def check_fixed(fixed_features: str | Iterable[Hashable] | None, names: Sequence[Hashable]) -> list[Hashable]:
    """Return the fixed features as a list; raise if one is unknown or repeated, or if they are all columns."""
    if fixed_features is None or isinstance(fixed_features, str):
        fixed_features = () if fixed_features is None else (fixed_features,)
    fixed = list(fixed_features)
    for name in fixed:
        if name not in names:
            raise InputError(f"fixed feature {spell(name)} is not a column of x_train; {did_you_mean(name, names)}")
        if fixed.count(name) > 1:
            raise InputError(f"fixed_features names {spell(name)} more than once; name each feature once.")
    if len(fixed) == len(names):
        raise InputError("fixed_features names every column of x_train; leave at least one that may change.")
    return fixed


def check_names(names: Iterable[Hashable], reserved: Iterable[str]) -> None:
    """Raise if a column has a reserved name of the table of candidates."""
    taken = [name for name in names if name in set(reserved)]
    if taken:
        raise InputError(
            f"x_train has the column(s) {listing(taken)}, a reserved name of explain_mcce (mcceR would overwrite it); "
            "rename the column."
        )


def check_present(frame: pd.DataFrame, names: Iterable[Hashable], where: str) -> None:
    """Raise if a frame has no rows or lacks a column."""
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise InputError(f"{where} lacks the column(s) {listing(absent)} of x_train; it has {listing(frame.columns)}.")
    if len(frame) == 0:
        raise InputError(f"{where} has no rows; give at least one.")


# ---------------------------------------------------------------- fit


@dataclass(frozen=True)
class FeatureModel:
    """The fitted trees and all that generating from them needs: mcceR's `featuremodel_object`.

    Attributes
    ----------
    trees : one for each mutable feature
    fixed_features : names, `decision` last if it was used
    mutable_features : names, in column order
    autoregressive_model : "ctree" or "rpart"
    decision : whether `decision` is among the fixed features
    c_int : the wanted interval
    table : the encoded training rows: fixed, decision (or dummy), mutable
    columns : labels of x_train
    seconds : time for growing the trees
    """

    trees: tuple[RpartTree | CTree, ...]
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
        """The mutable features."""
        return self.table.features[self.n_given :]

    @property
    def where_train(self) -> pd.DataFrame:
        """R's number of the node of each training row (rpart: frame row; party: node), one column per feature."""
        return pd.DataFrame({name: tree.training_node + 1 for name, tree in zip(self.mutable_features, self.trees)})


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
        The model's prediction for each row of x_train.
    fixed_features, c_int, autoregressive_model, decision
        As in `explain_mcce`.
    rng : RGenerator, optional
        The stream from which rpart's cross-validation draws; a fresh one by default.
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
    start = time.perf_counter()
    trees: list[RpartTree | CTree] = []
    for k in range(len(table.features) - len(mutable), len(table.features)):
        if settings.engine == "rpart":
            trees.append(grow_rpart(table.first(k), table.column(k), **settings.grow))
        else:
            trees.append(grow_ctree(table.first(k), party_response(table.column(k)), **settings.grow))
        if settings.permutes:
            rng.permutation(table.n_rows)
    return FeatureModel(
        trees=tuple(trees),
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
    features = [by_name[name] for name in (*fixed, *mutable)]
    matrix = encode_columns(x_train, features, "x_train")
    added = DECISION if decisions is not None else DUMMY if not fixed else None
    if added is not None:  # 1 in every generated row
        check_names(by_name, [added])
        features.insert(len(fixed), Feature(added, "numeric", np.dtype(np.float64), low=0.0, high=1.0))
        matrix = np.insert(matrix, len(fixed), 1.0 if decisions is None else decisions, axis=1)
    return Table(features, np.asfortranarray(matrix))


# ---------------------------------------------------------------- generate


@dataclass(frozen=True)
class Simulated:
    """The generated rows, K consecutive rows for each factual.

    Attributes
    ----------
    matrix : encoded rows, columns in the order of the feature model's table
    x_explain : the factuals
    feature_model : the fitted trees that generated the rows
    K : rows for each factual
    seconds : time for generating
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
        """The encoded mutable columns."""
        return self.matrix[:, self.feature_model.n_given :]

    @cached_property
    def factuals(self) -> Floats:
        """The encoded mutable columns of the factuals."""
        return encode_columns(self.x_explain, self.feature_model.mutable, "x_explain")

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All rows as the input of the model: x_train's columns, without `id_explain`."""
        return self.rows(slice(None))

    def rows(self, which: Ints | slice) -> pd.DataFrame:
        """Return the given rows: mutable columns have x_train's dtypes, fixed ones x_explain's."""
        factual = np.repeat(np.arange(len(self.x_explain)), self.K)[which]
        place = {name: j for j, name in enumerate(self.feature_model.mutable_features)}
        columns: dict[int, Any] = {}
        for j, name in enumerate(self.feature_model.columns):
            if name in place:
                columns[j] = self.feature_model.mutable[place[name]].decode(self.mutable[which, place[name]])
            else:
                columns[j] = self.x_explain[name].array.take(factual)
        frame = pd.DataFrame(columns)
        frame.columns = pd.Index(self.feature_model.columns, tupleize_cols=False)
        return frame

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
    K = check_count(K, "generate_K")
    check_present(x_explain, feature_model.columns, "x_explain")
    rng = rng or RGenerator(None)
    start = time.perf_counter()
    table, n_given = feature_model.table, feature_model.n_given
    n_fixed = sum(feature.name in feature_model.columns for feature in table.features[:n_given])
    given = encode_columns(x_explain, table.features[:n_fixed], "x_explain")
    matrix = np.ones((len(x_explain) * K, len(table.features)), order="F")  # decision, or dummy, is 1
    matrix[:, :n_fixed] = np.repeat(given, K, axis=0)
    for k, tree in enumerate(feature_model.trees, start=n_given):
        matrix[:, k] = _draw(tree, tree.node_of(matrix[:, :k]), table.matrix[:, k], rng)
    return Simulated(matrix, x_explain, feature_model, K, time.perf_counter() - start)


def _draw(tree: RpartTree | CTree, reached: Ints, values: Floats, rng: RGenerator) -> Floats:
    """Draw a training value for each row, node by node in order of first appearance."""
    n, n_nodes = reached.size, tree.node.size
    first = np.full(n_nodes, n)
    first[reached[::-1]] = np.arange(n)[::-1]
    visited = np.argsort(first)[: (first < n).sum()]
    count, pools = np.bincount(reached, minlength=n_nodes), []
    for node in visited:
        donors = tree.rows_in(node)
        if donors.size == 1:
            donors = np.arange(donors[0] + 1)
        pools.append(values[donors][rng.indices(donors.size, count[node])])
    place = np.empty(n_nodes, dtype=np.min_scalar_type(n_nodes))  # small integers are sorted faster
    place[visited] = np.arange(visited.size)
    drawn = np.empty(n)
    drawn[np.argsort(place[reached], kind="stable")] = np.concatenate(pools)
    return drawn


# ---------------------------------------------------------------- process


@dataclass(frozen=True)
class Processed:
    """The best rows, and the measures and ranks of all.

    Attributes
    ----------
    cf : id_explain, counterfactual_rank, and the features
    cf_measures : id_explain, counterfactual_rank, pred, and the measures
    measures : row_id, id_explain, pred, the measures and counterfactual_rank of every generated row
    seconds : time for measuring and selecting
    """

    cf: pd.DataFrame
    cf_measures: pd.DataFrame
    measures: pd.DataFrame
    seconds: float


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
        The model's prediction for each generated row.
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
    n, K, model = simulated.matrix.shape[0], simulated.K, simulated.feature_model
    if predictions.shape != (n,):
        raise InputError(f"pred_sim has shape {predictions.shape}; give one number for each of the {n} generated rows.")
    start = time.perf_counter()
    is_valid = (predictions >= model.c_int[0]) & (predictions <= model.c_int[1])
    measured = {"pred": predictions}
    for name in measures:
        measured[f"measure_{name}"] = (
            is_valid.astype(np.float64)
            if name == "validation"
            else measure(name, simulated.mutable, simulated.factuals, model.mutable)
        )
    keys = [-values if name == "measure_validation" else values for name, values in measured.items() if name != "pred"]
    rank = ranks(np.stack(keys), K)
    by_rank = np.argsort(rank.reshape(-1, K), axis=1) + np.arange(0, n, K)[:, None]
    kept = is_valid[by_rank] if remove_invalid else np.ones(by_rank.shape, dtype=bool)
    best = by_rank[kept & (kept.cumsum(axis=1) <= return_best_k)]
    ids = pd.DataFrame({"id_explain": best // K + 1, "counterfactual_rank": rank[best]})
    every = pd.DataFrame({"row_id": np.arange(1, n + 1), "id_explain": np.arange(n) // K + 1, **measured})
    cf = pd.concat([ids, simulated.rows(best)], axis=1)
    cf_measures = pd.concat([ids, pd.DataFrame({name: values[best] for name, values in measured.items()})], axis=1)
    return Processed(cf, cf_measures, every.assign(counterfactual_rank=rank), time.perf_counter() - start)


def check_measures(measures: Sequence[str]) -> list[str]:
    """Return the measures as a list; raise if a name is unknown or repeated."""
    names = [measures] if isinstance(measures, str) else list(measures)
    for name in names:
        if name not in MEASURES:
            raise InputError(f"process_measures names {spell(name)}; {did_you_mean(name, MEASURES)}")
    if not names or len(set(names)) < len(names):
        raise InputError(f"process_measures is {spell(names)}; name at least one of {listing(MEASURES)}, each once.")
    return names
