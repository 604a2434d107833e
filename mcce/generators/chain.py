"""The chain: p(mutable | fixed, decision) as a product of univariate conditionals (paper, equation 2).

1. Order the columns: the fixed features as in the data, the decision if there is one, then the mutable features in
   visiting order.
2. Fit one sampler for each mutable feature on all columns before it; the fits do not depend on each other and run in
   threads.
3. To draw a row, go through the mutable features in that order; each is drawn given the fixed values and the values
   drawn before it. Draws are checked, and numbers put on the column's grid (`mcce.samplers.rounding`). What is allowed
   for a feature, and rules between features, hold while drawing (`mcce.generators.drawing`).
4. The log density of a row that exists is the sum of those of its features, each given the row's own values before it.
   In the same way each conditional is judged by rows that it has not seen (`mcce.generators.criticising`).
5. A file holds the settings, the columns, the order of the visit, the seed, the fitted samplers, and the fixed values
   (and decisions) of the training rows, which `sample` bootstraps; the layout follows from these. What is read is
   checked as a whole before anything is drawn (`mcce.generators.storing`). A chain draws the same after a round trip,
   in another process or on another machine.

Truncating one conditional after the other is not conditioning the joint. To draw x1, then x2 given x1 inside A, gives
each x1 the probability that it has without A; conditioned on A, an x1 of which much of p(x2 | x1) lies inside A has
more. What is missing is p(x2 in A | x1): the product of these masses over the truncated conditionals is the weight of a
row. Weighted means of the rows, or the rows resampled by their weights, follow p(x1, x2 | x2 in A).

A row's random numbers are a function of the seed, the feature, the row's fixed values and the index of the draw
(`mcce.rng`), so blocks of rows can be drawn in any order and by any number of threads.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce import exceptions
from mcce.base.arrays import Floats
from mcce.base.checks import check_count, check_share
from mcce.base.parameters import Learner
from mcce.base.threads import count_jobs, one_native_thread, run_in_threads
from mcce.exceptions import InputError, MCCEWarning, SamplerError
from mcce.generators.auto import Choice, threads_of
from mcce.generators.base import Drawn, DrawRequest, register_generator
from mcce.generators.criticising import check_new_rows, criticise_features, score_features
from mcce.generators.drawing import DrawPlan, draw_in_blocks
from mcce.generators.givens import weighted_rows
from mcce.generators.layout import ChainLayout, Predictors, Samplers, arrange, samplers_for
from mcce.generators.private import Privacy
from mcce.generators.sampling import Allowed, Rules, SampleOptions, Weighted, sample_rows
from mcce.generators.storing import (
    SETTINGS,
    Donors,
    check_donors,
    check_samplers,
    check_training_rows,
    fitted_fields,
    read_fitted,
    samplers_to_store,
    unfitted,
    without_training_values,
)
from mcce.generators.visit import VisitSequence
from mcce.judging.scores import LEVEL, N_DRAWS, Scores
from mcce.privacy.account import PrivacyAccount
from mcce.rng import derive_key, hash_rows, resolve_seed
from mcce.samplers import ConditionalSampler
from mcce.samplers.base import samplers_that_leave_one_out
from mcce.storage import load_fields, save_fields
from mcce.storage.fields import check_type, require
from mcce.storage.state import Fields, register
from mcce.table import Data, Kind, Schema, Table, as_frame
from mcce.table.checks import check_fixed, warn_of_columns
from mcce.table.left_out import without_unknown_levels
from mcce.table.weights import read_weights, rows_by_weight

if TYPE_CHECKING:
    from typing import Unpack

    from mcce.judging.criticism import Criticism

Self = TypeVar("Self", bound="ChainModel")

BLOCK_ROWS = 8192  # a block's columns stay in the cache while its features are drawn
FITTED = ("seed_", "schema_", "visit_sequence_", "associations_", "conditions_on_decision_", "training_givens_")


@register_generator("chain")
class ChainModel(Learner):
    """A chain of conditional samplers: a generative model of a table.

    Parameters
    ----------
    sampler : str, ConditionalSampler, Auto, dict or Privacy
        One sampler for every feature, or ``{feature: sampler, ..., "*": sampler for the rest}``. "auto" chooses one for
        each feature by cross-validation, see `Auto`. `Privacy` makes the whole fit differentially private.
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
        Threads, as scikit-learn counts them: None is 1 unless `joblib.parallel_config` says otherwise, -1 all cores.
        The results do not depend on it.
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
    training_hashes_ : hashes of the training rows, which tell new rows from them; None in a chain from a file
    account_ : what a fit with `Privacy` has spent, or None; `training_givens_` are then synthetic

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
    >>> rows, importance = chain.sample(n=500, within={"education": ["upper secondary"]}, importance=True)
    >>> rows["education"].unique().tolist(), len(importance)
    (['upper secondary'], 500)
    """

    schema_: Schema
    seed_: int
    visit_sequence_: list[Any]
    associations_: pd.DataFrame | None
    samplers_: dict[Any, ConditionalSampler]
    choice_: Choice | None
    conditions_on_decision_: bool
    training_givens_: Floats
    training_weights_: Floats | None
    training_hashes_: npt.NDArray[np.uint64] | None
    account_: PrivacyAccount | None
    _layout: ChainLayout

    def __init__(
        self,
        *,
        sampler: Samplers | Privacy = "cart",
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
        private = self.privacy
        if private is not None:
            private.refuse(weights=sample_weight, visit_sequence=self.visit_sequence, schema=schema)
            X, schema = private.prepare(X, self.kinds)
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
        self.schema_, self._layout = arranged.schema, arranged.layout
        self.visit_sequence_, self.associations_ = arranged.visit_sequence, arranged.associations
        self.conditions_on_decision_ = decision is not None
        self.training_hashes_, self.account_ = None, None
        if isinstance(self.sampler, Privacy):
            self._fit_private(self.sampler, arranged.ordered, progress)
            return self
        self.training_hashes_ = hash_rows(arranged.table.matrix)
        warn_of_columns(arranged.table, self.fixed_)
        ordered, first = arranged.ordered, self._layout.n_given
        samplers, self.choice_ = samplers_for(
            self.sampler,
            ordered,
            self._layout,
            min_donors=self.min_donors,
            seed=self.seed_,
            n_jobs=self.n_jobs,
            progress=progress,
        )

        def fit_one(k: int) -> ConditionalSampler:
            samplers[k].seed_fit(derive_key(self.seed_, "fit", self.visit_sequence_[k]))
            return samplers[k].fit(self._layout.given(ordered, first + k), ordered.column(first + k))

        # later conditionals have more givens: the longest fits first keeps the threads busy to the end
        latest_first = range(len(samplers) - 1, -1, -1)
        threads = threads_of(samplers, self.n_jobs)
        fitted = list(run_in_threads(fit_one, list(latest_first), threads, "fitting", progress))[::-1]
        self.samplers_ = dict(zip(self.visit_sequence_, fitted))
        self.training_givens_ = np.asfortranarray(ordered.matrix[:, :first])
        self.training_weights_ = weights
        return self

    def _fit_private(self, private: Privacy, ordered: Table, progress: bool | None) -> None:
        """Fit every column with its share of the budget; what is kept of the givens is drawn."""
        features, n_given = self._layout.features, self._layout.n_given
        number = private.buy_number(ordered.n_rows)
        samplers = private.samplers(self._layout, self.min_donors, number)

        def fit_one(k: int) -> ConditionalSampler:
            given = ordered.first(k) if k < n_given else self._layout.given(ordered, k)
            samplers[k].seed_fit(derive_key(self.seed_, "fit", features[k].name))
            return samplers[k].fit(given, ordered.column(k))

        threads = threads_of(samplers, self.n_jobs)
        fitted = list(run_in_threads(fit_one, list(range(len(samplers))), threads, "fitting", progress))
        self.account_, self.choice_ = private.account_of(fitted, number), None
        self.samplers_ = dict(zip(self.visit_sequence_, fitted[n_given:]))
        self.training_givens_ = private.synthetic_givens(fitted[:n_given], features, self.seed_)
        self.training_weights_ = None

    @property
    def privacy(self) -> Privacy | None:
        """What the fit is made private by, None for nothing."""
        return self.sampler if isinstance(self.sampler, Privacy) else None

    @overload
    def sample(
        self, n: int = ..., given: Data | None = ..., *, importance: Literal[True], **options: Unpack[SampleOptions]
    ) -> Weighted: ...

    @overload
    def sample(
        self,
        n: int = ...,
        given: Data | None = ...,
        *,
        importance: Literal[False] = ...,
        **options: Unpack[SampleOptions],
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
        rules: Rules = (),
        importance: bool = False,
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
        rules : text, `mcce.rule`, or a list of them
            What must hold between the features of a row, as in ``rules=["savings <= salary"]``. There is no factual, so
            that ``was()`` is refused; a function of two frames is given the rows as both. A
            `mcce.generators.base.RowRule` is accepted too.
        importance : bool
            Whether to return the importance of the rows too.
        resample : bool
            Whether to resample the rows by their importance: all count alike then, and some occur several times.

        Returns
        -------
        DataFrame with the training columns and dtypes, indexed by (id, draw), where id is the index of `given`, or by
        0, 1, ... without `given`; of polars or pyarrow the same kind of frame, id and draw as columns. With
        `importance`, also a Series of it, with mean 1 over the draws of an id (over all without `given`), rejected ones
        included. Rejected rows could not be drawn inside; a warning counts them.

        Notes
        -----
        Truncating one conditional after the other is not conditioning the joint: rows drawn `within` bounds or by
        `rules` keep the distribution that earlier features have without them. The importance is what is missing.
        Weighted by it, or resampled, the rows follow the chain's joint distribution conditioned on what is allowed.
        """
        self.check_fitted()
        return sample_rows(
            self,
            self._layout,
            list(self.samplers_.values()),
            n,
            given,
            decision=decision,
            random_state=random_state,
            within=within,
            rules=rules,
            importance=importance,
            resample=resample,
            progress=progress,
        )

    def draw(self, request: DrawRequest, *, progress: bool | None = None, n_jobs: int | None = None) -> Drawn:
        """Draw one row for each row of the request, feature by feature in visiting order (step 3)."""
        self.check_fitted()
        plan = DrawPlan.of(request, self._layout, list(self.samplers_.values()))
        jobs = count_jobs(self.n_jobs if n_jobs is None else n_jobs)
        threads = jobs if all(sampler.thread_safe for sampler in plan.samplers) else 1
        return draw_in_blocks(plan, request, BLOCK_ROWS, threads, progress)

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
                    f"{sampler!r} for {name!r} cannot leave a training row out of its density; use one that can "
                    f"({samplers_that_leave_one_out()}), or leave training=True out: each row then vouches "
                    "for itself."
                )
        ordered = self._layout.order(matrix, decision)
        own = np.arange(matrix.shape[0], dtype=np.int64)
        columns: dict[Any, Floats] = {}
        for k, (name, sampler) in enumerate(self.samplers_.items(), self._layout.n_given):
            left_out: dict[str, Any] = {"training_rows": own} if training else {}
            columns[name] = sampler.log_density(self._layout.given(ordered, k), ordered.matrix[:, k], **left_out)
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
            Weights of the new rows, for a chain of weighted ones: whole numbers repeat a row; with others each row is
            kept with probability w / max(w), so that the tests keep their level
            (`mcce.table.weights.rows_by_weight`).
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
        X_new, left_out = without_unknown_levels(X_new, self.schema_)
        if left_out is not None:
            left_out.tell("X_new", "The conditionals are judged without such rows.")
            decision, sample_weight = left_out.cut(decision), left_out.cut(sample_weight)
        table = self.schema_.encode(X_new, "X_new")
        if self.conditions_on_decision_ != (decision is not None):
            raise InputError(
                "this chain was fitted with a decision; give that of each row of X_new: decision=..."
                if self.conditions_on_decision_
                else "this chain was fitted without a decision; leave decision out."
            )
        if self.training_hashes_ is not None and np.isin(hash_rows(table.matrix), self.training_hashes_).all():
            warnings.warn(
                f"all {table.n_rows:,} rows of X_new are rows that the chain was fitted on, of which every conditional "
                "seems better than it is; give new rows, or judge out of fold by mcce.diagnostics.conditionals.",
                MCCEWarning,
                stacklevel=2,
            )
        given, where = True if decision is None else decision, "X_new"
        if sample_weight is not None:
            self._layout.check_decision(given, table.n_rows)
            rows = rows_by_weight(read_weights(sample_weight, table.n_rows), seed)
            where = "X_new" if rows.size >= table.n_rows else "X_new, thinned by weight,"
            table, given = table.take(rows), np.broadcast_to(given, table.n_rows)[rows]
        check_new_rows(self.samplers_, self._layout.order(table.matrix, given), self._layout, where)
        scores = self.scores(table.matrix, given, n_draws, seed, progress)
        return self.judge(scores, table.matrix, given, level=level, seed=seed, judged_by="new rows", progress=progress)

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
        from mcce.judging.criticism import Criticism

        as_written = {name: repr(sampler) for name, sampler in self.samplers_.items()}
        ordered = self._layout.order(matrix, decision)
        found = criticise_features(
            scores, as_written, ordered, self._layout, seed=seed, n_jobs=self.n_jobs, progress=progress
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
            self._layout,
            n_draws=n_draws,
            seed=self.seed_ if seed is None else seed,
            n_jobs=self.n_jobs,
            progress=progress,
        )

    def save(self, path: str | os.PathLike[str], *, donors: Donors = "all") -> None:
        """Write the fitted chain to one file, without pickle; what is there is replaced.

        **The file holds training values**, unless the fit was made private (`mcce.Privacy`): those that the samplers
        draw, and the fixed values of every training row.
        Whoever gets it can read them. ``mcce inspect FILE`` lists what it discloses.

        Parameters
        ----------
        path : str or path
        donors : "all" or "none"
            "none" leaves the training values out, which samplers made of coefficients can do without (norm, logreg,
            polyreg, polr); others refuse. What is left are ranges, level names and estimates. Such a chain draws given
            the fixed features only, and norm has no density.

        Examples
        --------
        >>> import mcce, tempfile
        >>> loans = mcce.datasets.load_loans(200)
        >>> chain = mcce.ChainModel(fixed=["age", "sex"], random_state=1).fit(loans.X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     chain.save(f"{folder}/loans.mcce")
        ...     again = mcce.ChainModel.load(f"{folder}/loans.mcce")
        >>> again.sample(n=5).equals(chain.sample(n=5))
        True
        """
        about = {"donors": donors if self.privacy is None else "private"}
        save_fields(path, "ChainModel", {"chain": self.stored(donors)}, about, itemgetter("chain"))

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Return the chain in a file that `save` wrote.

        Nothing in a file is run. One that is damaged, crafted or newer is an `InputError`. Samplers of other packages
        are made by those, which have to be installed, and registered (`mcce.register_sampler`).

        Parameters
        ----------
        path : str or path
        n_jobs : int or None
            Threads, as in the constructor.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
        >>> chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     chain.save(f"{folder}/chain.mcce")
        ...     again = mcce.ChainModel.load(f"{folder}/chain.mcce")
        >>> again.sample(10).equals(chain.sample(10))
        True
        """
        chain = load_fields(path, "ChainModel", itemgetter("chain"))
        if not isinstance(chain, cls):
            raise InputError(f"{os.fspath(path)!r} holds a {type(chain).__name__}; use its own load.")
        chain.n_jobs = n_jobs
        return chain

    def stored(self: Self, donors: Donors) -> Self:
        """Return the chain as it is to be stored: itself, or a copy without training values."""
        if not hasattr(self, "samplers_"):
            raise exceptions.NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) before saving it.")
        check_donors(donors)
        if self.privacy is not None:
            self.privacy.refuse_storage()
        if donors == "all":
            return self
        bare = copy.copy(self)
        bare.samplers_ = {name: without_training_values(name, sampler) for name, sampler in self.samplers_.items()}
        if self._layout.n_given:
            bare.training_givens_ = np.empty((0, self._layout.n_given), order="F")
            bare.training_weights_ = None
        return bare

    def _write(self) -> Fields:
        """Return what is stored of the chain (step 5)."""
        if not hasattr(self, "samplers_"):
            raise InputError("which is not fitted; call fit(X).")
        settings = {name: unfitted(getattr(self, name)) for name in SETTINGS}
        if self.privacy is not None:
            self.privacy.refuse_storage()
        samplers = samplers_to_store(self.samplers_.values())
        fields = {"samplers_": samplers, "settings": settings, "choice_": self.choice_, **fitted_fields(self, FITTED)}
        return fields if self.account_ is None else fields | {"account_": self.account_}

    @classmethod
    def _read(cls: type[Self], fields: Fields) -> Self:
        """Return the chain of these fields, checked as a whole."""
        chain: Self = read_fitted(cls, fields, SETTINGS, FITTED)
        chain.choice_, chain.training_hashes_ = fields.get("choice_"), None
        check_type(chain.choice_, "choice_", Choice, type(None))
        chain.account_ = fields.get("account_")
        check_type(chain.account_, "account_", PrivacyAccount, type(None))
        require((chain.account_ is None) == (chain.privacy is None), "account_ and the sampler are not both private")
        check_type(chain.associations_, "associations_", pd.DataFrame, type(None))
        if chain.min_donors is not None:
            check_count(chain.min_donors, "min_donors")
        names, visited = chain.schema_.names, chain.visit_sequence_
        check_type(visited, "visit_sequence_", list)
        fixed = check_fixed(chain.fixed, names)
        mutable = [name for name in names if name not in fixed]
        require(len(visited) == len(mutable) > 0 and {*visited} == {*mutable}, "visit_sequence_ is not of the features")
        with_decision = chain.conditions_on_decision_
        chain._layout = ChainLayout.arrange(chain.schema_, fixed, visited, with_decision, chain.predictors)
        n_rows = check_training_rows(chain.training_givens_, chain.training_weights_, chain._layout)
        chain.samplers_ = check_samplers(fields["samplers_"], chain._layout, n_rows)
        return chain

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

    def __repr__(self) -> str:
        sampler = self.sampler if not isinstance(self.sampler, Mapping) else dict(self.sampler)
        return f"ChainModel(sampler={sampler!r}, fixed={list(self.fixed)!r}, visit_sequence={self.visit_sequence!r})"


register("ChainModel", ChainModel, ChainModel._write, ChainModel._read)
