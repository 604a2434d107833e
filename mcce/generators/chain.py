"""The chain: p(mutable | fixed, decision) as a product of univariate conditionals (paper, equation 2).

1. Order the columns: the fixed features as in the data, the decision if there is one, then the mutable features in
   visiting order.
2. Fit one sampler for each mutable feature on all columns before it; the fits do not depend on each other and run in
   threads.
3. To draw a row, go through the mutable features in that order; each is drawn given the fixed values and the values
   drawn before it. Draws are checked, and numbers put on the column's grid (`mcce.samplers.settle`). What is allowed
   for a feature, and rules between features, hold while drawing (`mcce.generators.drawing`).

Truncating one conditional after the other is not conditioning the joint. To draw x1, then x2 given x1 inside A, gives
each x1 the probability that it has without A; conditioned on A, an x1 of which much of p(x2 | x1) lies inside A has
more. What is missing is p(x2 in A | x1): the product of these masses over the truncated conditionals is the weight of a
row. Weighted means of the rows, or the rows resampled by their weights, follow p(x1, x2 | x2 in A).

A row's random numbers are a function of the seed, the feature, the row's fixed values and the index of the draw
(`mcce.rng`), so blocks of rows can be drawn in any order and by any number of threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from mcce.arrays import Floats
from mcce.checks import check_count
from mcce.exceptions import InputError, NotFittedError, SamplerError
from mcce.generators.base import Drawn, DrawRequest, RowRule
from mcce.generators.conditionals import Samplers, make_samplers
from mcce.generators.drawing import DrawPlan, draw_in_blocks
from mcce.generators.givens import request_of
from mcce.generators.layout import ChainLayout
from mcce.generators.predictors import Predictors, choose_predictors
from mcce.generators.storing import StoredChain, stored_chain
from mcce.generators.visit import VisitSequence, make_visit_sequence
from mcce.generators.weighing import Allowed, SampleOptions, Weighted, choose_rows, read_restrictions
from mcce.rng import derive_key, hash_rows, resolve_seed
from mcce.samplers import ConditionalSampler
from mcce.table import Data, Kind, Schema, Table, as_frame
from mcce.table.checks import check_fixed, check_magnitudes
from mcce.workers import count_jobs, run_in_threads

if TYPE_CHECKING:
    from typing import Unpack

BLOCK_ROWS = 8192  # a block's columns stay in the cache while its features are drawn


@stored_chain
class ChainModel(StoredChain):
    """A chain of conditional samplers: a generative model of a table.

    Parameters
    ----------
    sampler : str, ConditionalSampler or dict
        One sampler for every feature, or ``{feature: sampler, ..., "*": sampler for the rest}``.
    fixed : list of column names
        Features that are conditioned on and never drawn.
    visit_sequence : "data", "correlation" or list
        Order of the mutable features, see `mcce.generators.visit`.
    predictors : dict or None
        ``{feature: [columns]}``: the columns that a feature is modelled on, fixed ones or features visited before it.
        The decision always comes on top. A feature that is not named is modelled on all of them.
    kinds : dict or None
        Overrides of column kinds, ``{column: "numeric" | "categorical" | "ordered"}``.
    random_state : int or None
        Seed of the draws, and of drawn parameters (`proper`); None takes a fresh one at `fit` (kept as `seed_`).
    n_jobs : int or None
        Threads to use; None for all cores. The results do not depend on it.
    min_donors : int or None
        The fewest distinct training rows that a value of a mutable feature is drawn from: leaves with fewer are not
        made. Samplers that do not draw from such pools are refused. It is no differential privacy: a value that one
        person has can be drawn, among those of others; and fixed values that are not given to `sample` are those of
        one training row.

    Attributes
    ----------
    schema_ : Schema
    visit_sequence_ : list of the mutable features in visiting order
    associations_ : DataFrame behind a correlation order, or None
    samplers_ : dict of fitted samplers by feature
    seed_ : int
    training_givens_ : encoded fixed values (and decision) of the training rows

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> rows = chain.sample(given=loans.X.loc[[0, 1], ["age", "sex"]], n=100)
    >>> rows.shape, rows.index.names
    ((200, 10), FrozenList(['id', 'draw']))
    >>> chain.sample(n=500).shape
    (500, 10)
    >>> rows, weights = chain.sample(n=500, within={"education": ["upper secondary"]}, weights=True)
    >>> rows["education"].unique().tolist(), len(weights)
    (['upper secondary'], 500)
    """

    def __init__(
        self,
        *,
        sampler: Samplers = "cart",
        fixed: Sequence[Hashable] = (),
        visit_sequence: VisitSequence = "data",
        predictors: Predictors | None = None,
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        min_donors: int | None = None,
    ) -> None:
        self.sampler = sampler
        self.fixed = fixed
        self.visit_sequence = visit_sequence
        self.predictors = predictors
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.min_donors = min_donors

    def fit(
        self, X: Data, decision: npt.NDArray[np.bool_] | None = None, *, progress: bool | None = None
    ) -> ChainModel:
        """Fit the conditionals.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Training rows, features only.
        decision : bool array or None
            One more column to condition on: whether each row has the wanted decision.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        """
        vars(self).pop("samplers_", None)  # a fit that fails leaves no half-fitted chain
        self.seed_ = resolve_seed(self.random_state)
        self.schema_ = Schema.from_data(X, self.kinds)
        table = self.schema_.encode(X)
        check_magnitudes(table, "X")
        self._row_hashes = hash_rows(table.matrix)
        fixed = check_fixed(self.fixed, self.schema_.names)
        self.visit_sequence_, self.associations_ = make_visit_sequence(self.visit_sequence, table, fixed)
        if not self.visit_sequence_:
            raise InputError(f"all {len(fixed)} columns of X are fixed; leave at least one mutable.")
        self.conditions_on_decision_ = decision is not None
        if decision is not None and (np.shape(decision) != (table.n_rows,) or np.asarray(decision).dtype != bool):
            raise InputError(
                f"decision has shape {np.shape(decision)} and dtype {np.asarray(decision).dtype} for "
                f"{table.n_rows} rows of X; give one boolean a row."
            )
        self._layout = layout = ChainLayout.arrange(
            self.schema_, fixed, self.visit_sequence_, self.conditions_on_decision_
        )
        ordered = layout.order(table.matrix, True if decision is None else np.asarray(decision))
        first = layout.n_given
        names = [feature.name for feature in layout.features]
        self._given_columns = choose_predictors(
            self.predictors, names, first, with_decision=self.conditions_on_decision_
        )
        if self.min_donors is not None:
            check_count(self.min_donors, "min_donors", or_else=", or None for any number")
        samplers = make_samplers(self.sampler, layout, self._given_columns, self.schema_.names, self.min_donors)

        def fit_one(k: int) -> ConditionalSampler:
            samplers[k].seed_fit(derive_key(self.seed_, "fit", self.visit_sequence_[k]))
            return samplers[k].fit(self._given(ordered, first + k), ordered.column(first + k))

        # later conditionals have more givens: the longest fits first keeps the threads busy to the end
        latest_first = range(len(samplers) - 1, -1, -1)
        threads = count_jobs(self.n_jobs) if all(s.thread_safe for s in samplers) else 1
        limit = threadpool_limits(1, "blas") if any(s.uses_blas for s in samplers) else contextlib.nullcontext()
        with limit:
            fitted = list(run_in_threads(fit_one, list(latest_first), threads, "fitting", progress))[::-1]
        self.samplers_ = dict(zip(self.visit_sequence_, fitted))
        self.training_givens_ = np.asfortranarray(ordered.matrix[:, :first])
        return self

    @overload
    def sample(
        self, n: int = ..., given: Data | None = ..., *, weights: Literal[True], **options: Unpack[SampleOptions]
    ) -> Weighted: ...

    @overload
    def sample(
        self, n: int = ..., given: Data | None = ..., *, weights: Literal[False] = ..., **options: Unpack[SampleOptions]
    ) -> pd.DataFrame: ...

    def sample(
        self,
        n: int = 1,
        given: Data | None = None,
        *,
        decision: bool | None = None,
        random_state: int | None = None,
        progress: bool | None = None,
        within: Mapping[Any, Allowed] | None = None,
        rules: Sequence[RowRule] = (),
        weights: bool = False,
        resample: bool = False,
    ) -> pd.DataFrame | Weighted:
        """Draw rows, inside what is allowed.

        Parameters
        ----------
        n : int
            Rows to draw: for each row of `given`, or in all.
        given : DataFrame or None
            Fixed features to condition on. None draws them too, jointly, by a bootstrap of the training rows.
        decision : bool or None
            For a chain fitted with a decision, the decision to condition on. None means True with `given`, and as in
            the bootstrapped row without.
        random_state : int or None
            Seed of these draws; None uses the chain's `seed_`. The same seed gives the same rows.
        within : dict or None
            What mutable features are restricted to: ``(low, high)`` for numbers and ordered levels (None for no bound),
            a list of levels, or a `Within` with one row for each of `given`, or one for all.
        rules : sequence of RowRule
            What must hold between the features of a row (`mcce.generators.base.RowRule`).
        weights : bool
            Whether to return the weights of the rows too.
        resample : bool
            Whether to resample the rows by their weights: rows of equal weight, some of them several times.

        Returns
        -------
        DataFrame with the training columns and dtypes, indexed by (id, draw), where id is the index of `given`, or by
        0, 1, ... without `given`. With `weights`, also a Series of them, with mean 1 over the draws of an id (over all
        without `given`), dead ones included. Dead rows could not be drawn inside; a warning counts them.

        Notes
        -----
        Truncating one conditional after the other is not conditioning the joint: rows drawn `within` bounds or by
        `rules` keep the distribution that earlier features have without them. The weights are what is missing.
        Weighted, or resampled, the rows follow the chain's joint distribution conditioned on what is allowed.
        """
        self.check_fitted()
        n = check_count(n, "n")
        seed = self.seed_ if random_state is None else resolve_seed(random_state)
        request, index, group = request_of(
            n, given, decision, seed, self.training_givens_, self.schema_, self._layout, self.samplers_.values()
        )
        request = replace(
            request,
            restrictions=read_restrictions(within, self.schema_, self.fixed_, len(request) // n, n),
            rules=tuple(rules),
            weighted=weights or resample,
        )
        drawn = self.draw(request, progress=progress)
        rows, places, weight = choose_rows(drawn, request, group, resample=resample)
        frame = self.schema_.decode(drawn.rows[rows], index[places])
        return (frame, pd.Series(weight, index=index[places], name="weight")) if weights else frame

    def draw(self, request: DrawRequest, *, progress: bool | None = None, n_jobs: int | None = None) -> Drawn:
        """Draw one row for each row of the request, feature by feature in visiting order (step 3)."""
        self.check_fitted()
        plan = DrawPlan.of(request, self._layout, self._given, list(self.samplers_.values()))
        thread_safe = all(sampler.thread_safe for sampler in plan.samplers)
        threads = count_jobs(self.n_jobs if n_jobs is None else n_jobs) if thread_safe else 1
        return draw_in_blocks(plan, request, BLOCK_ROWS, threads, progress)

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

    def __repr__(self) -> str:
        sampler = self.sampler if not isinstance(self.sampler, Mapping) else dict(self.sampler)
        return f"ChainModel(sampler={sampler!r}, fixed={list(self.fixed)!r}, visit_sequence={self.visit_sequence!r})"

    def _given(self, table: Table, k: int) -> Table:
        """Return the columns that chain column `k` is modelled on."""
        if k in self._given_columns:
            return table.select(self._given_columns[k])
        return table.first(k)
