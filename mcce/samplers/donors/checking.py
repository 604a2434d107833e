"""Donors that come from a file: what they are written as, and whether they fit together and to their columns.

1. A `DonorForest` is its trees and the values of their donors; all else follows.
2. A `DonorModel` holds forests, a margin, and flags that agree with each other.
3. `check_donors` compares them with the columns of the chain: the kernels read levels and donors where these say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcce.arrays import Floats
from mcce.samplers.donors.density import MarginalDensity
from mcce.samplers.donors.engine import DonorForest
from mcce.samplers.donors.model import DonorModel
from mcce.soundness import (
    FLOAT,
    check_array,
    check_codes,
    check_count_of,
    check_flag,
    check_type,
    check_weights,
    require,
)
from mcce.state import Fields, add_check, register
from mcce.table import Feature
from mcce.trees.tree import Tree


def _read_forest(fields: Fields) -> DonorForest:
    """Join trees and donors (step 1)."""
    trees, values = fields["trees"], fields["values"]
    check_type(trees, "trees", list)
    check_type(values, "values", list)
    require(0 < len(trees) == len(values), f"there are {len(trees)} trees, and donors of {len(values)}")
    for tree, of_tree in zip(trees, values):
        check_type(tree, "trees", Tree)
        check_array(of_tree, "values", FLOAT, tree.donors.size)
        require(not np.isinf(of_tree).any(), "values holds an infinite number")
    total = sum(tree.donors.size for tree in trees)
    require(total < 2**31, f"there are {total} donors, more than can be counted")
    weights = fields.get("weights")
    if weights is not None:
        check_type(weights, "weights", list)
        require(len(weights) == len(trees), f"there are {len(trees)} trees, and weights of {len(weights)}")
        for tree, of_tree in zip(trees, weights):
            check_weights(of_tree, "weights", tree.donors.size)
    return DonorForest.of(trees, values, weights)


register(
    "donors.DonorForest",
    DonorForest,
    lambda forest: (
        {"trees": list(forest.trees), "values": forest.values_by_tree}
        | ({} if forest.weights is None else {"weights": forest.weights_by_tree})
    ),
    _read_forest,
)


def _check_model(model: DonorModel) -> None:
    """Step 2."""
    check_type(model.forest, "forest", DonorForest)
    check_type(model.decider, "decider", DonorForest, type(None))
    check_type(model.margin, "margin", MarginalDensity)
    check_flag(model.is_number, "is_number")
    check_count_of(model.min_donors, "min_donors", 1, 2**31)
    share, decider = model.margin.missing_share, model.decider
    if decider is not None:
        require(share > 0.0, "decider decides on missing values, and there are none")
        require(np.isin(decider.values, [0.0, 1.0]).all(), "decider holds other values than 0 and 1")
        require(not np.isnan(model.forest.values).any() or share == 1.0, "forest holds missing donors beside a decider")
    elif share == 0.0:
        require(not np.isnan(model.forest.values).any(), "forest holds missing donors that the margin does not count")


add_check(DonorModel, _check_model)


def check_donors(model: DonorModel, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
    """Refuse donors that are not of these columns and of so many training rows (step 3)."""
    check_type(model, "donors_", DonorModel)
    require(model.is_number == target.is_numeric, "is_number is not as in the target")
    n_levels = np.array([feature.n_levels for feature in given], dtype=np.int64)
    for forest in (model.forest, model.decider):
        for tree in () if forest is None else forest.trees:
            tree.check_columns(n_levels, n_rows)
    if not target.is_numeric:
        check_codes(model.forest.values, "values", target.n_levels)
        levels = np.arange(target.n_levels, dtype=np.float64)
        require(np.array_equal(model.margin.atoms, levels), "atoms are not the levels of the target")
    if model.row_weights is None:
        require(model.margin.n <= n_rows, f"n is {model.margin.n}, and there are {n_rows} training rows")
        weighted = [forest for forest in (model.forest, model.decider) if forest and forest.weights is not None]
        require(not weighted, "weights of donors are there, and none of training rows")
    else:
        check_weights(model.row_weights, "row_weights", n_rows)


def n_donors(model: DonorModel) -> int:
    """Return how many training values are donors, each counted once a tree."""
    values: Floats = model.forest.values
    return int(values.size - np.isnan(values).sum())
