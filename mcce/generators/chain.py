"""The chain: p(mutable | fixed, decision) as a product of univariate conditionals (paper, equation 2).

1. Order the columns: the fixed features as in the data, the decision if there is one, then the mutable features in
   visiting order.
2. Fit one sampler for each mutable feature on all columns before it; the fits do not depend on each other and run in
   threads.
3. To draw a row, go through the mutable features in that order; each is drawn given the fixed values and the values
   drawn before it. Draws are checked, and numbers put on the column's grid (`mcce.samplers.allowed`). What is allowed
   for a feature, and rules between features, hold while drawing (`mcce.generators.drawing`).

Truncating one conditional after the other is not conditioning the joint. To draw x1, then x2 given x1 inside A, gives
each x1 the probability that it has without A; conditioned on A, an x1 of which much of p(x2 | x1) lies inside A has
more. What is missing is p(x2 in A | x1): the product of these masses over the truncated conditionals is the weight of a
row. Weighted means of the rows, or the rows resampled by their weights, follow p(x1, x2 | x2 in A).

A row's random numbers are a function of the seed, the feature, the row's fixed values and the index of the draw
(`mcce.rng`), so blocks of rows can be drawn in any order and by any number of threads.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.checks import check_count
from mcce.base.parameters import Learner
from mcce.base.threads import count_jobs, one_native_thread, run_in_threads
from mcce.generators.base import Drawn, DrawRequest, RowRule
from mcce.generators.drawing import DrawPlan, draw_in_blocks
from mcce.generators.fitted import FittedChain
from mcce.generators.givens import request_of, weighted_rows
from mcce.generators.layout import Predictors, Samplers, arrange, samplers_for, threads_of
from mcce.generators.restrictions import Allowed, SampleOptions, Weighted, sample_rows
from mcce.generators.storing import StoredChain, stored_chain
from mcce.generators.visit import VisitSequence
from mcce.rng import derive_key, hash_rows, resolve_seed
from mcce.samplers import ConditionalSampler
from mcce.table import Data, Kind, Schema
from mcce.table.checks import warn_of_columns

if TYPE_CHECKING:
    from typing import Unpack

BLOCK_ROWS = 8192  # a block's columns stay in the cache while its features are drawn


@stored_chain
class ChainModel(FittedChain, StoredChain, Learner):
    """A chain of conditional samplers: a generative model of a table.

    Parameters
    ----------
    sampler : str, ConditionalSampler, Auto or dict
        One sampler for every feature, or ``{feature: sampler, ..., "*": sampler for the rest}``. "auto" chooses one for
        each feature by cross-validation, see `Auto`.
    fixed : list of column names
        Features that are conditioned on and never drawn.
    visit_sequence : "data", "correlation", "reversed" or list
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
    choice_ : what "auto" chose for each feature and why, or None
    seed_ : int
    training_givens_ : encoded fixed values (and decision) of the training rows
    training_weights_ : their weights, as they count; None if there are none
    row_hashes_ : hashes of the encoded training rows, which tell copies of them; None of a chain from a file

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

    @one_native_thread()
    def fit(
        self,
        X: Data,
        decision: npt.NDArray[np.bool_] | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        progress: bool | None = None,
        schema: Schema | None = None,
    ) -> ChainModel:
        """Fit the conditionals.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Training rows, features only.
        decision : bool array or None
            One more column to condition on: whether each row has the wanted decision.
        sample_weight : array or None
            A weight for each row. Whole numbers count copies: a row of weight 2 is two rows. Others are relative, and
            scaled to a mean of 1. A row of weight 0 is as good as absent. See `mcce.table.weights`.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        schema : Schema or None
            What the columns are, if `X` is a part of a larger table that may hold more levels; None reads it from `X`.
        """
        vars(self).pop("samplers_", None)  # a fit that fails leaves no half-fitted chain
        self.seed_ = resolve_seed(self.random_state)
        X, decision, weights = weighted_rows(X, decision, sample_weight)
        arranged = arrange(
            X,
            decision,
            fixed=self.fixed,
            visit_sequence=self.visit_sequence,
            predictors=self.predictors,
            kinds=self.kinds,
            schema=schema,
            weights=weights,
            progress=progress,
        )
        self.schema_, self._layout, self._given_columns = arranged.schema, arranged.layout, arranged.given_columns
        self.visit_sequence_, self.associations_ = arranged.visit_sequence, arranged.associations
        self.row_hashes_ = hash_rows(arranged.table.matrix)
        warn_of_columns(arranged.table, self.fixed_)
        self.conditions_on_decision_ = decision is not None
        ordered, first = arranged.ordered, self._layout.n_given
        samplers, self.choice_ = samplers_for(
            self.sampler,
            ordered,
            self._layout,
            self._given_columns,
            min_donors=self.min_donors,
            seed=self.seed_,
            n_jobs=self.n_jobs,
            progress=progress,
        )

        def fit_one(k: int) -> ConditionalSampler:
            samplers[k].seed_fit(derive_key(self.seed_, "fit", self.visit_sequence_[k]))
            return samplers[k].fit(self._given(ordered, first + k), ordered.column(first + k))

        # later conditionals have more givens: the longest fits first keeps the threads busy to the end
        latest_first = range(len(samplers) - 1, -1, -1)
        threads = threads_of(samplers, self.n_jobs)
        fitted = list(run_in_threads(fit_one, list(latest_first), threads, "fitting", progress))[::-1]
        self.samplers_ = dict(zip(self.visit_sequence_, fitted))
        self.training_givens_ = np.asfortranarray(ordered.matrix[:, :first])
        self.training_weights_ = weights
        return self

    @overload
    def sample(
        self, n: int = ..., given: Data | None = ..., *, weights: Literal[True], **options: Unpack[SampleOptions]
    ) -> Weighted: ...

    @overload
    def sample(
        self, n: int = ..., given: Data | None = ..., *, weights: Literal[False] = ..., **options: Unpack[SampleOptions]
    ) -> pd.DataFrame: ...

    @one_native_thread()
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
            Fixed features to condition on. None draws them too, jointly, by a bootstrap of the training rows, by
            their weights.
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
        0, 1, ... without `given`; of polars or pyarrow the same kind of frame, id and draw as columns. With `weights`,
        also a Series of them, with mean 1 over the draws of an id (over all without `given`), dead ones included. Dead
        rows could not be drawn inside; a warning counts them.

        Notes
        -----
        Truncating one conditional after the other is not conditioning the joint: rows drawn `within` bounds or by
        `rules` keep the distribution that earlier features have without them. The weights are what is missing.
        Weighted, or resampled, the rows follow the chain's joint distribution conditioned on what is allowed.
        """
        self.check_fitted()
        n = check_count(n, "n")
        seed = self.seed_ if random_state is None else resolve_seed(random_state)
        training = (self.training_givens_, self.training_weights_)
        asked = request_of(n, given, decision, seed, training, self.schema_, self._layout, self.samplers_.values())
        return sample_rows(
            self, asked, n, within=within, rules=rules, weights=weights, resample=resample, progress=progress
        )

    def draw(self, request: DrawRequest, *, progress: bool | None = None, n_jobs: int | None = None) -> Drawn:
        """Draw one row for each row of the request, feature by feature in visiting order (step 3)."""
        self.check_fitted()
        plan = DrawPlan.of(request, self._layout, self._given, list(self.samplers_.values()))
        jobs = count_jobs(self.n_jobs if n_jobs is None else n_jobs)
        threads = jobs if all(sampler.thread_safe for sampler in plan.samplers) else 1
        return draw_in_blocks(plan, request, BLOCK_ROWS, threads, progress)

    def __repr__(self) -> str:
        sampler = self.sampler if not isinstance(self.sampler, Mapping) else dict(self.sampler)
        return f"ChainModel(sampler={sampler!r}, fixed={list(self.fixed)!r}, visit_sequence={self.visit_sequence!r})"
