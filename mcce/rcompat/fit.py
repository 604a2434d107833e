"""Stage 1, mcceR's `fit`: one tree for each mutable feature, on the whole training table.

1. `decision` is 1 where the prediction lies in c_int, both ends included; it is the last of the fixed features.
2. The i-th mutable feature, in column order, is explained by the fixed features as given, then by the mutable ones
   before it. Without fixed features and decision the first tree has one constant column.
3. Each fit of rpart with xval > 0 takes a permutation of the training rows from the stream, for its cross-validation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats, Int32s
from mcce.exceptions import InputError
from mcce.rcompat.columns import (
    DECISION,
    DUMMY,
    check_fixed,
    check_names,
    constant,
    encode_columns,
    party_response,
    read_columns,
)
from mcce.rcompat.names import translate
from mcce.rng import RGenerator
from mcce.table import Column, Feature, Table
from mcce.trees import rpart
from mcce.trees.party import ctree
from mcce.trees.party.tree import CtreeTree
from mcce.trees.rpart import RpartTree


def _grow_ctree(given: Table, target: Column, **settings: Any) -> CtreeTree:
    return ctree.grow(given, party_response(target), **settings)


GROW: Mapping[str, Callable[..., RpartTree | CtreeTree]] = {"ctree": _grow_ctree, "rpart": rpart.grow}


@dataclass(frozen=True)
class FeatureModel:
    """The fitted trees and what generating from them needs: mcceR's `featuremodel_object`.

    Attributes
    ----------
    trees : one for each mutable feature.
    leaf_train : for each mutable feature the leaf of each training row, in the trees' own numbers.
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
        """The mutable features."""
        return self.table.features[self.n_given :]

    @cached_property
    def where_train(self) -> pd.DataFrame:
        """R's number of the leaf of each training row (rpart: row of the frame; party: node), a column a feature."""
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
        Goes on where rpart's cross-validation leaves it; a fresh one if not given.
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
    trees: list[RpartTree | CtreeTree] = []
    for k in range(first, len(table.features)):
        trees.append(GROW[settings.engine](table.first(k), table.column(k), **settings.grow))
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
    """Return 1 where a prediction is wanted, else 0 (step 1)."""
    predictions = np.asarray(pred_train, dtype=np.float64)
    if predictions.shape != (n,):
        raise InputError(
            f"pred_train has shape {predictions.shape}; give one number for each of the {n} training rows."
        )
    return ((predictions >= c_int[0]) & (predictions <= c_int[1])).astype(np.float64)


def _training_table(
    x_train: pd.DataFrame, fixed: list[Hashable], mutable: list[Hashable], decisions: Floats | None
) -> Table:
    """Return the encoded training rows, their columns in the order in which the trees use them (step 2)."""
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
