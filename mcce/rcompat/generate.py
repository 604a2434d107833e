"""Stage 2, mcceR's `generate`: K rows for each factual, feature by feature, from R's one stream.

1. Repeat the fixed values of each factual K times; `decision` is 1.
2. For each mutable feature route all rows down its tree.
3. Visit the leaves in the order in which they first appear down the rows. For each draw, with replacement, as many of
   its training rows as it has rows, and hand their values out from top to bottom.

A leaf with a single training row r is the trap of R's `sample()`: the draw is from the rows 1, ..., r. A row that rpart
leaves in an inner node, since its level is unknown there, nothing stands in for it and both children are of one size,
draws from all rows of that node.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats, Ints
from mcce.checks import check_count
from mcce.exceptions import InputError
from mcce.rcompat import kernels
from mcce.rcompat.columns import check_present, encode_columns
from mcce.rcompat.fit import FeatureModel
from mcce.rng import RGenerator
from mcce.trees.tree import Tree


@dataclass(frozen=True)
class Simulated:
    """The generated rows, K for each factual, those of a factual side by side.

    Attributes
    ----------
    matrix : encoded rows, columns in the order of the feature model's table.
    x_explain : the factuals.
    feature_model : what the rows were generated from.
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
        """Take over rows generated elsewhere: mcceR's `sim_data`, as many for each factual, in the factuals' order."""
        table, n = feature_model.table, len(x_explain)
        expected = np.repeat(np.arange(1, n + 1), len(sim_data) // n)
        if not np.array_equal(sim_data["id_explain"], expected):
            raise InputError(f"id_explain of sim_data is not 1, ..., {n}, each as often and side by side.")
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
        """The factuals' encoded mutable columns."""
        return encode_columns(self.x_explain, self.feature_model.mutable, "x_explain")

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All rows as the model sees them: x_train's columns, without the factuals' numbers."""
        return self.rows(slice(None))

    def rows(self, which: Ints | slice) -> pd.DataFrame:
        """Return some rows: mutable columns have x_train's dtypes, fixed ones x_explain's."""
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
        """Return all rows with the number of their factual, from 1, in front: mcceR's `sim_data`."""
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
        The stream, just seeded with generate_seed or as the fit left it; a fresh one if not given.

    Returns
    -------
    Simulated
    """
    K = check_count(K, "generate_K")
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
    """Draw a training value for each row from its leaf (step 3)."""
    count = np.zeros(tree.n_nodes, dtype=np.int64)
    order = np.empty(tree.n_nodes, dtype=np.int64)
    visited = order[: kernels.count_leaves(leaf, count, order)]
    grouped = np.argsort(leaf_train, kind="stable")  # training rows of a leaf side by side, ascending
    ends = np.cumsum(np.bincount(leaf_train, minlength=tree.n_nodes))
    drawn = np.empty(leaf.size)
    place = np.zeros(tree.n_nodes, dtype=np.int64)
    begin = 0
    for node in visited:
        donors = grouped[ends[node - 1] if node else 0 : ends[node]]
        if donors.size == 1:
            donors = np.arange(donors[0] + 1)
        elif donors.size == 0:  # an inner node, where an unknown level left the row
            donors = np.sort(tree.donors[tree.start[node] : tree.start[node] + tree.size[node]])
        place[node] = begin
        drawn[begin : begin + count[node]] = values[donors][rng.indices(donors.size, count[node])]
        begin += count[node]
    kernels.deal(leaf, place, drawn, out)
