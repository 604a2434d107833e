"""What a fitted chain says of rows that exist: how dense they are, and what it is given of them.

1. The columns of the rows are put in chain order (`mcce.generators.layout`).
2. Each feature's sampler is asked for the log density of the row's value given the columns before it. They sum to that
   of the row: log p(x^m | x^f, y').
3. Each sampler is judged by what it draws for rows that it has not seen (`mcce.generators.criticising`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce import exceptions
from mcce.base.arrays import Floats, UInts
from mcce.base.checks import check_share
from mcce.base.threads import one_native_thread
from mcce.exceptions import InputError, MCCEWarning, SamplerError
from mcce.generators.criticising import check_new_rows, criticise_features, score_features
from mcce.generators.layout import ChainLayout
from mcce.judging import N_DRAWS, Criticism, Scores
from mcce.judging.criticism import LEVEL
from mcce.rng import hash_rows, resolve_seed
from mcce.samplers import ConditionalSampler
from mcce.table import Data, Schema, Table, as_frame
from mcce.table.weights import read_weights, rows_by_weight


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
    row_hashes_: UInts | None = None  # of the encoded training rows; a chain from a file has none
    conditions_on_decision_: bool
    n_jobs: int | None
    _layout: ChainLayout
    _given_columns: Mapping[int, Sequence[int]]

    @one_native_thread()
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
        measure for other numbers (dates: encoded), the same for all samplers (`mcce.samplers.density`).

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(1000).X[["age", "education", "salary"]]
        >>> chain = mcce.ChainModel(sampler="ctree", fixed=["age"], random_state=1).fit(X[:800])
        >>> density = chain.log_density(X[800:])
        >>> of_the_best_paid = chain.log_density(X[800:].assign(salary=X["salary"].max()))
        >>> bool(density.median() > of_the_best_paid.median())
        True
        >>> chain.log_density(X[800:], per_feature=True).columns.tolist()
        ['education', 'salary']
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

    def criticise(
        self,
        X_new: Data,
        *,
        decision: bool | npt.NDArray[np.bool_] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        n_draws: int = N_DRAWS,
        level: float = LEVEL,
        random_state: int | None = None,
        progress: bool | None = None,
    ) -> Criticism:
        """Judge each conditional by rows that it has not seen: which are wrong, how, and where.

        Parameters
        ----------
        X_new : DataFrame or array
            Rows with the training columns that the chain was not fitted on; some hundreds. Of the training rows
            themselves every conditional would seem too good: `mcce.diagnostics.conditionals` fits chains to all but a
            fold of them instead.
        decision : bool or bool array
            For a chain fitted with a decision, what each row's is.
        sample_weight : array or None
            Weights of the new rows, for a chain of weighted ones: whole numbers repeat a row, of others as many rows
            are taken, by weight, as these are worth (`mcce.table.weights.rows_by_weight`).
        n_draws : int
            Draws for each row and feature.
        level : float
            Level of the tests, for all features together (Holm).
        random_state : int or None
            Seed of draws, randomised PITs and permutations; None uses the chain's `seed_`.

        Returns
        -------
        Criticism
            Print it for one sentence a feature; `table` has the figures, `plot` the pictures.

        Notes
        -----
        Each conditional is given the row's own values, not drawn ones, so it is not blamed for those before it. What is
        tested is the fitted conditional, errors of estimation included: see `mcce.diagnostics.conditionals`.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans().X[["age", "education", "salary"]]
        >>> chain = mcce.ChainModel(sampler="norm", fixed=["age", "education"], random_state=1).fit(X[:1500])
        >>> chain.criticise(X[1500:]).accused
        ['salary']
        """
        self.check_fitted()
        level = check_share(level, "level")
        seed = self.seed_ if random_state is None else resolve_seed(random_state)
        table = self.schema_.encode(X_new, "X_new")
        if self.conditions_on_decision_ != (decision is not None):
            raise InputError(
                "this chain was fitted with a decision; give that of each row of X_new: decision=..."
                if self.conditions_on_decision_
                else "this chain was fitted without a decision; leave decision out."
            )
        self._warn_of_training_rows(table)
        given = True if decision is None else decision
        if sample_weight is not None:
            self._layout.check_decision(given, table.n_rows)
            rows = rows_by_weight(read_weights(sample_weight, table.n_rows))
            table, given = table.take(rows), np.broadcast_to(given, table.n_rows)[rows]
        check_new_rows(self.samplers_, self._layout.order(table.matrix, given), self._given, "X_new")
        scores = self.scores(table.matrix, given, n_draws, seed, progress)
        return self.judge(scores, table.matrix, given, level=level, seed=seed, judged_by="new rows", progress=progress)

    def _warn_of_training_rows(self, table: Table) -> None:
        """Warn if the chain has seen all rows; one from a file cannot tell."""
        known = self.row_hashes_
        if known is not None and np.isin(hash_rows(table.matrix), known).all():
            warnings.warn(
                f"all {table.n_rows:,} rows of X_new are rows that the chain was fitted on, of which every conditional "
                "seems better than it is; give new rows, or judge out of fold by mcce.diagnostics.conditionals.",
                MCCEWarning,
                stacklevel=3,
            )

    def judge(
        self,
        scores: Mapping[Any, Scores],
        matrix: Floats,
        decision: bool | npt.NDArray[np.bool_] = True,
        *,
        level: float,
        seed: int,
        judged_by: str,
        progress: bool | None = None,
    ) -> Criticism:
        """Return the criticism of each feature by its scores on encoded rows, wherever these were fitted."""
        written = {name: repr(sampler) for name, sampler in self.samplers_.items()}
        ordered = self._layout.order(matrix, decision)
        found = criticise_features(
            scores, written, ordered, self._given, seed=seed, n_jobs=self.n_jobs, progress=progress
        )
        return Criticism.of(found, level, judged_by)

    def scores(
        self,
        matrix: Floats,
        decision: bool | npt.NDArray[np.bool_] = True,
        n_draws: int = N_DRAWS,
        seed: int | None = None,
        progress: bool | None = None,
    ) -> dict[Any, Scores]:
        """Return, by mutable feature, the scores of encoded rows (columns in data order) that were not fitted on."""
        return score_features(
            self.samplers_,
            self._layout.order(matrix, decision),
            self._given,
            n_draws=n_draws,
            seed=self.seed_ if seed is None else seed,
            n_jobs=self.n_jobs,
            progress=progress,
        )

    def check_fitted(self) -> None:
        """Refuse a call that needs `fit` first."""
        if not hasattr(self, "samplers_"):
            raise exceptions.NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) first.")

    def _known_schema(self) -> Schema | None:
        return self.schema_ if hasattr(self, "samplers_") else None

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
