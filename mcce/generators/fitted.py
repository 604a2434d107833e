"""What a fitted chain says of rows that exist: how dense they are, and what it is given of them.

1. The columns of the rows are put in chain order (`mcce.generators.layout`).
2. Each feature's sampler is asked for the log density of the row's value given the columns before it. They sum to that
   of the row: log p(x^m | x^f, y').
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats
from mcce.exceptions import InputError, NotFittedError, SamplerError
from mcce.generators.layout import ChainLayout
from mcce.samplers import ConditionalSampler
from mcce.table import Data, Schema, Table, as_frame


class FittedChain:
    """The part of a chain that reads rows and draws none.

    Attributes
    ----------
    schema_, seed_, samplers_, training_givens_, conditions_on_decision_ : see `mcce.ChainModel`.
    """

    schema_: Schema
    seed_: int
    samplers_: dict[Any, ConditionalSampler]
    training_givens_: Floats
    conditions_on_decision_: bool
    _layout: ChainLayout
    _given_columns: Mapping[int, Sequence[int]]

    def log_density(
        self,
        X: Data,
        *,
        decision: bool | npt.NDArray[np.bool_] = True,
        training: bool = False,
        per_feature: bool = False,
    ) -> pd.Series[float] | pd.DataFrame:
        """Return the log density of the mutable features of each row, given its fixed ones: log p(x^m | x^f, y').

        Criterion 1 of the paper, p(x^m | x^f) > epsilon, has no y': it is that of a chain fitted without a decision.

        Parameters
        ----------
        X : DataFrame or array
            Rows with the training columns.
        decision : bool or bool array
            For a chain fitted with a decision, the decision to condition on.
        training : bool
            Whether `X` are the training rows, in their order: each row is then left out of its own density, so that
            it does not vouch for itself. Samplers that cannot do so (`leaves_one_out`) are refused.
        per_feature : bool
            Whether to return one column for each mutable feature instead of their sum.

        Notes
        -----
        Densities are with respect to the counting measure for levels and numbers with point mass, and to the Lebesgue
        measure for other numbers (dates: encoded), the same for all samplers (`mcce.samplers.column_density`).
        """
        self.check_fitted()
        frame, _ = as_frame(X)
        table = self.schema_.encode(X)
        if training and table.n_rows != self.training_givens_.shape[0]:
            raise InputError(
                f"X has {table.n_rows} rows, but the chain was trained on {self.training_givens_.shape[0]}; "
                "training=True needs the training rows in their order."
            )
        if self.conditions_on_decision_:
            self._layout.check_decision(decision, table.n_rows)
        columns = self.feature_log_densities(table.matrix, decision, training=training)
        each = pd.DataFrame(columns, index=frame.index)
        return each if per_feature else each.sum(axis=1).rename("log_density")

    def feature_log_densities(
        self, matrix: Floats, decision: bool | npt.NDArray[np.bool_] = True, *, training: bool = False
    ) -> dict[Any, Floats]:
        """Return, by mutable feature, the log densities of encoded rows (columns in data order)."""
        for name, sampler in self.samplers_.items():
            if training and not sampler.leaves_one_out:
                raise SamplerError(
                    f"{sampler!r} for {name!r} cannot leave a training row out of its density; use one that can (cart, "
                    "ctree, forest, marginal), or leave training=True out: each row then vouches for itself."
                )
        ordered = self._layout.order(matrix, decision)
        own = np.arange(matrix.shape[0], dtype=np.int64)
        columns: dict[Any, Floats] = {}
        for k, (name, sampler) in enumerate(self.samplers_.items(), self._layout.n_given):
            left_out: dict[str, Any] = {"training_rows": own} if training else {}
            columns[name] = sampler.log_density(self._given(ordered, k), ordered.matrix[:, k], **left_out)
        return columns

    def check_fitted(self) -> None:
        """Refuse a call that needs `fit` first."""
        if not hasattr(self, "samplers_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) first.")

    @property
    def fixed_(self) -> list[Any]:
        """The fixed features, in data order."""
        return [self.schema_.names[j] for j in self._layout.fixed_positions]

    def givens_of(self, matrix: Floats, decision: bool | npt.NDArray[np.bool_] = True) -> Floats:
        """Return the givens of encoded rows (columns in data order): their fixed values, then the decision."""
        return self._layout.givens_of(matrix, decision)

    def _given(self, table: Table, k: int) -> Table:
        """Return the columns that chain column `k` is modelled on."""
        if k in self._given_columns:
            return table.select(self._given_columns[k])
        return table.first(k)
