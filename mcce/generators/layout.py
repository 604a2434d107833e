"""Where each column stands in the chain: fixed features as in the data, the decision, then the visited features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Bools, Floats
from mcce.exceptions import InputError
from mcce.table import Feature, Schema, Table


@dataclass(frozen=True)
class ChainLayout:
    """The columns in chain order.

    Attributes
    ----------
    features : all columns in chain order, the decision among them.
    fixed_positions : positions in the data of the fixed features.
    n_given : how many columns are given: the fixed features, and the decision if there is one.
    place_in_chain : for each column of the data, its place in the chain.
    with_decision : whether the decision is a column of the chain.
    """

    features: tuple[Feature, ...]
    fixed_positions: tuple[int, ...]
    n_given: int
    place_in_chain: tuple[int, ...]
    with_decision: bool

    @classmethod
    def arrange(cls, schema: Schema, fixed: Sequence[Any], visited: Sequence[Any], with_decision: bool) -> ChainLayout:
        """Lay out the columns of a table."""
        names = schema.names
        fixed_positions = [names.index(name) for name in fixed]
        in_chain = fixed_positions + [names.index(name) for name in visited]
        features = [schema.features[j] for j in in_chain]
        place = {j: k for k, j in enumerate(in_chain)}
        if with_decision:
            features.insert(len(fixed), _decision_feature(names))
            place = {j: k + int(k >= len(fixed)) for j, k in place.items()}
        return cls(
            tuple(features),
            tuple(fixed_positions),
            len(fixed) + int(with_decision),
            tuple(place[j] for j in range(len(names))),
            with_decision,
        )

    def order(self, matrix: Floats, decision: bool | Bools = True) -> Table:
        """Return encoded rows (columns in data order) as a table in chain order."""
        ordered = np.empty((matrix.shape[0], len(self.features)), order="F")
        ordered[:, self.place_in_chain] = matrix
        if self.with_decision:
            self.check_decision(decision, matrix.shape[0])
            ordered[:, self.n_given - 1] = decision
        return Table(self.features, ordered)

    def givens_of(self, matrix: Floats, decision: bool | Bools = True) -> Floats:
        """Return the givens of encoded rows: their fixed values, then the decision."""
        givens = np.empty((matrix.shape[0], self.n_given), order="F")
        givens[:, : len(self.fixed_positions)] = matrix[:, list(self.fixed_positions)]
        if self.with_decision:
            givens[:, -1] = decision
        return givens

    def in_data_order(self, givens: Floats, drawn: Floats) -> Floats:
        """Return rows with the columns of the data, from what is given and the values of the visited features."""
        rows = np.empty((givens.shape[0], len(self.place_in_chain)), order="F")
        for j, k in enumerate(self.place_in_chain):
            rows[:, j] = givens[:, k] if k < self.n_given else drawn[:, k - self.n_given]
        return rows

    @staticmethod
    def check_decision(decision: bool | Bools, n_rows: int) -> None:
        """Refuse a decision that is not a boolean, for all rows or one a row."""
        if np.asarray(decision).dtype != bool or np.shape(decision) not in ((), (n_rows,)):
            raise InputError("decision must be True or False, for all rows or one a row.")


def _decision_feature(names: list[Any]) -> Feature:
    """Return the decision as a two-level feature, under a name that no column has."""
    name = "<decision>"
    while name in names:
        name = f"<{name}>"
    return Feature(name, "categorical", np.dtype(bool), pd.Index([False, True], dtype=object), 0.0, 1.0)


def check_training_decision(decision: Any, n_rows: int) -> None:
    """Refuse a decision of the training rows that is not one boolean for each."""
    if decision is not None and (np.shape(decision) != (n_rows,) or np.asarray(decision).dtype != bool):
        raise InputError(
            f"decision has shape {np.shape(decision)} and dtype {np.asarray(decision).dtype} for "
            f"{n_rows} rows of X; give one boolean a row."
        )
