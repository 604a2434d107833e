"""The chain: p(mutable | fixed, decision) as a product of univariate conditionals (paper, equation 2).

1. Order the columns: the fixed features as in the data, the decision if there is one, then the mutable features in
   visiting order.
2. Fit one sampler for each mutable feature on all columns before it; the fits do not depend on each other and run in
   threads.
3. To draw a row, go through the mutable features in that order; each is drawn given the fixed values and the values
   drawn before it. Draws are checked, and numbers are rounded to the column's grid (`mcce.samplers.rounding`).
   Restrictions of features and rules between features are applied while drawing (`mcce.generators.drawing`).
4. The log density of an observed row is the sum of the log densities of its features, each given the row's observed
   values of the columns before it. `criticise` tests each conditional on new rows in the same way, given observed and
   not drawn values, so errors of earlier conditionals do not count against later ones.
5. A file contains the fitted samplers and the visiting order, besides what every generator stores
   (`mcce.generators.base`). On reading, each sampler is checked against its given columns and the number of training
   rows.

Truncating one conditional after the other is not conditioning the joint. Drawing x1, then x2 given x1 inside A, gives
each x1 its unrestricted probability; conditioned on A, the probability of x1 is proportional to p(x1) p(x2 in A | x1).
The product of these masses over the truncated conditionals is the weight of a row. Weighted means of the rows, or the
rows resampled by their weights, follow p(x1, x2 | x2 in A).

A row's random numbers are a function of the seed, the feature, the row's fixed values and the index of the draw
(`mcce.rng`), so blocks of rows can be drawn in any order and by any number of threads.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.checks import check, check_count, check_share, is_number
from mcce.base.threads import count_jobs, one_native_thread, run_in_threads
from mcce.exceptions import InputError, MCCEError, MCCEWarning, SamplerError, listing, spell
from mcce.generators.auto import Choice, threads_of
from mcce.generators.base import Donors, Generator, stored_as
from mcce.generators.conditioning import RowConditionals, share_of_wanted
from mcce.generators.drawing import ChainBlock, draw_in_blocks
from mcce.generators.graph import Graph
from mcce.generators.intervening import CausalWorld, ComputedColumn, read_values
from mcce.generators.layout import (
    ChainLayout,
    Predictors,
    Samplers,
    refuse_beside_graph,
    samplers_for,
    suited_to,
)
from mcce.generators.registry import register_generator
from mcce.generators.requests import Drawn, DrawRequest
from mcce.generators.sampling import MOST_ROWS, draw_index, occurrences
from mcce.generators.visit import VisitSequence
from mcce.judging.scores import LEVEL, N_DRAWS, Scores, score_conditional
from mcce.privacy.account import PrivacyAccount
from mcce.privacy.settings import BoughtNumber, Privacy
from mcce.rng import RowStreams, derive_key, hash_rows, resolve_seed
from mcce.samplers import ConditionalSampler
from mcce.samplers.base import (
    samplers_that_handle_missing,
    samplers_that_leave_one_out,
    samplers_without_donors,
)
from mcce.samplers.donors.base import LeafDonorSampler
from mcce.samplers.dp import DPSampler
from mcce.samplers.rounding import put_on_grid
from mcce.storage.fields import check_type, require
from mcce.storage.learned import without_training_values
from mcce.storage.state import Fields
from mcce.table import Data, Feature, Kind, Schema, Table, as_frame
from mcce.table.checks import check_magnitudes, warn_of_columns
from mcce.table.frames import like_input
from mcce.table.left_out import without_unknown_levels
from mcce.table.weights import read_weights, rows_by_weight
from mcce.wording import Parameter, Setting, Value

if TYPE_CHECKING:
    from mcce.judging.criticism import Criticism
    from mcce.judging.independence import GraphCheck

Self = TypeVar("Self", bound="ChainModel")

BLOCK_ROWS = 8192  # a block's columns stay in the cache while its features are drawn
LEAST_ROWS = 20  # to test a conditional


@register_generator("chain")
@stored_as("ChainModel")
class ChainModel(Generator):
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
        The decision is always added. A feature that is not named is modelled on all of them.
    graph : Graph, str, list, networkx.DiGraph, file or None
        A causal graph of features, an assumption of the user: ``"education -> salary"`` and the other forms of
        `mcce.Graph.read`. Features of the graph are visited causes before effects, in data order where the graph leaves
        it open, and each is modelled on its parents (and the decision) alone. Mutable features outside the graph come
        after all of the graph, in data order, and each is modelled on all columns before it. A fixed feature outside
        the graph is a predictor of features outside the graph only. It cannot be combined with `visit_sequence` or
        `predictors`. Parents of a fixed feature must be fixed. See `check_graph`.
    kinds : dict or None
        Overrides of column kinds, ``{column: "numeric" | "categorical" | "ordered"}``.
    random_state : int or None
        Seed of the draws, and of drawn parameters (`proper`); None takes a fresh one at `fit` (kept as `seed_`).
    n_jobs : int or None
        Threads, as scikit-learn counts them: None is 1 unless `joblib.parallel_config` says otherwise, -1 all cores.
        The results do not depend on it.
    min_donors : int or None
        Smallest number of distinct training rows from which a value of a mutable feature is drawn: leaves are at least
        this large. It is an error for samplers that do not draw from pools of training rows. This is not differential
        privacy: a value that occurs in one training row can still be drawn, and fixed values that are not given to
        `sample` are those of one training row.

    Attributes
    ----------
    schema_ : Schema
    visit_sequence_ : list of the mutable features in visiting order
    associations_ : DataFrame behind a correlation order, or None
    graph_ : the causal graph as a `Graph` with the names of the columns, or None
    samplers_ : dict of fitted samplers by feature
    choice_ : the samplers chosen by "auto", with the reasons, or None
    seed_ : int
    training_givens_ : encoded fixed values (and decision) of the training rows
    training_weights_ : their weights, scaled as in `fit`; None if there are none
    training_hashes_ : hashes of the training rows, to recognise them; None in a chain read from a file
    account_ : the privacy budget spent by a fit with `Privacy`, or None; `training_givens_` are then synthetic

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

    takes_weights: ClassVar[bool] = True
    fitted: ClassVar[tuple[str, ...]] = (
        "samplers_",
        "choice_",
        "seed_",
        "schema_",
        "visit_sequence_",
        "associations_",
        "conditions_on_decision_",
        "training_givens_",
    )

    visit_sequence_: list[Any]
    associations_: pd.DataFrame | None
    samplers_: dict[Any, ConditionalSampler]
    choice_: Choice | None

    def __init__(
        self,
        *,
        sampler: Samplers | Privacy = "cart",
        fixed: Sequence[Hashable] = (),
        visit_sequence: VisitSequence = "data",
        predictors: Predictors | None = None,
        graph: Any = None,
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        min_donors: int | None = None,
    ) -> None:
        self.sampler = sampler
        self.fixed = fixed
        self.visit_sequence = visit_sequence
        self.predictors = predictors
        self.graph = graph
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
            scaled to a mean of 1. Rows of weight 0 are left out. See `mcce.table.weights`.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        schema : Schema or None
            Columns of a larger table of which `X` is a part, and which may have more levels; None reads them from `X`.
        """
        if isinstance(self.sampler, Privacy):
            self.sampler.refuse(weights=sample_weight, visit_sequence=self.visit_sequence, schema=schema)
            X, schema = self.sampler.prepare(X, self.kinds)
        arranged = self._arrange(
            X,
            decision,
            sample_weight=sample_weight,
            schema=schema,
            visit_sequence=self.visit_sequence,
            predictors=self.predictors,
            graph=self.graph,
            progress=progress,
        )
        self.visit_sequence_, self.associations_ = arranged.visit_sequence, arranged.associations
        self.graph_ = arranged.graph
        self.account_ = None
        if isinstance(self.sampler, Privacy):
            self._fit_private(self.sampler, arranged.ordered, progress)
            return self
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

        # later conditionals have more givens and take longer; starting with them balances the threads
        latest_first = range(len(samplers) - 1, -1, -1)
        threads = threads_of(samplers, self.n_jobs)
        fitted = list(run_in_threads(fit_one, list(latest_first), threads, "fitting", progress))[::-1]
        self.samplers_ = dict(zip(self.visit_sequence_, fitted))
        self.training_givens_ = arranged.givens
        return self

    def _fit_private(self, private: Privacy, ordered: Table, progress: bool | None) -> None:
        """Fit every column with its share of the privacy budget; keep synthetic givens."""
        self.training_hashes_ = None
        features, n_given = self._layout.features, self._layout.n_given
        number = private.buy_number(ordered.n_rows)
        samplers = self._private_samplers(private, number)

        def fit_one(k: int) -> DPSampler:
            given = ordered.first(k) if k < n_given else self._layout.given(ordered, k)
            samplers[k].seed_fit(derive_key(self.seed_, "fit", features[k].name))
            return samplers[k].fit(given, ordered.column(k))

        threads = threads_of(samplers, self.n_jobs)
        fitted = list(run_in_threads(fit_one, list(range(len(samplers))), threads, "fitting", progress))
        self.account_, self.choice_ = private.account_of([each.account_ for each in fitted], number), None
        self.samplers_ = dict(zip(self.visit_sequence_, fitted[n_given:]))
        self.training_givens_ = self._synthetic_givens(fitted[:n_given], private.n_synthetic)

    def _private_samplers(self, private: Privacy, number: BoughtNumber | None) -> list[DPSampler]:
        """Return an unfitted sampler for every column in chain order, each with its share of the privacy budget."""
        layout = self._layout
        budget = private.budget_of_a_column(len(layout.features), number)
        first = (layout.features[layout.n_given - 1].name,) if layout.with_decision else ()
        made = []
        for k, target in enumerate(layout.features):
            given = range(k) if k < layout.n_given else layout.columns_given(k)
            columns = [*(layout.features[j] for j in given), target]
            sampler = DPSampler(
                **budget,
                bounds={f.name: private.encoded_edges(f) for f in columns if f.is_numeric},
                levels="schema",
                missing="schema",
                first=first,
                n_trees=private.n_trees,
                max_depth=private.max_depth,
                n_bins=private.n_bins,
                n_rows=None if number is None else number.n_rows,
                choosing=private.choosing,
                testing_seed=private.testing_seed,
            )
            if k >= layout.n_given:
                suited_to(sampler, layout, k, self.min_donors, private=True)
            made.append(sampler)
        return made

    def _synthetic_givens(self, samplers: Sequence[ConditionalSampler], n_rows: int) -> Floats:
        """Return drawn fixed values and decisions, from the fitted samplers of these columns."""
        features = self._layout.features
        drawn: Floats = np.empty((n_rows, len(samplers)), order="F")
        for k, sampler in enumerate(samplers):
            given = Table(tuple(features[:k]), drawn[:, :k])
            key = derive_key(self.seed_, "synthetic", features[k].name)
            streams = RowStreams(key, np.zeros(n_rows, dtype=np.uint64), np.arange(n_rows, dtype=np.uint64))
            drawn[:, k] = put_on_grid(sampler.sample(given, streams), sampler, features[k], n_rows)
        return drawn

    @property
    def privacy(self) -> Privacy | None:
        """The `mcce.Privacy` of the fit; None without differential privacy."""
        return self.sampler if isinstance(self.sampler, Privacy) else None

    def rows_in_place_of_training(self) -> Data | None:
        """Return rows drawn from the chain after a private fit; else None."""
        if self.privacy is None:
            return None
        drawn = self.sample(n=len(self.training_givens_), progress=False)
        return self.schema_.decode_for_model(self.schema_.encode(drawn).matrix)

    def describe(self) -> dict[str, object]:
        """Return the settings that results report."""
        settings = {**super().describe(), "sampler": self.sampler, "visit_sequence": list(self.visit_sequence_)}
        settings |= {} if self.graph_ is None else {"graph": self.graph_.to_text()}
        return settings if self.min_donors is None else {**settings, "min_donors": self.min_donors}

    def _check_incomplete(self, names: Sequence[Any]) -> None:
        refusing = [repr(sampler) for sampler in self.samplers_.values() if not sampler.handles_missing]
        if names and refusing:
            raise InputError(
                f"given has missing values in {listing(names)}, which {refusing[0]} does not handle; fill them, "
                f"or use a sampler that does ({samplers_that_handle_missing()})."
            )

    def draw(self, request: DrawRequest, *, progress: bool | None = None) -> Drawn:
        """Draw one row for each row of the request, feature by feature in visiting order (step 3)."""
        self.check_fitted()
        layout, samplers = self._layout, list(self.samplers_.values())
        threads = threads_of(self.samplers_.values(), self.n_jobs)

        def draw(part: DrawRequest) -> ChainBlock:
            return ChainBlock(layout, samplers, part).draw()

        return draw_in_blocks(draw, request, len(self.schema_), BLOCK_ROWS, threads, progress, request.constraints)

    def feature_log_densities(
        self, matrix: Floats, decision: bool | npt.NDArray[np.bool_] = True, *, training: bool = False
    ) -> dict[Any, Floats]:
        """Return, by mutable feature, the log densities of encoded rows (columns in data order)."""
        for name, sampler in self.samplers_.items():
            if training and not sampler.leaves_one_out:
                raise SamplerError(
                    f"{sampler!r} for {name!r} cannot leave a training row out of its density; use one that can "
                    f"({samplers_that_leave_one_out()}), or leave training=True out: each row then adds to its own "
                    "density."
                )
        ordered = self._layout.order(matrix, decision)
        own = np.arange(matrix.shape[0], dtype=np.int64)
        columns: dict[Any, Floats] = {}
        for k, (name, sampler) in enumerate(self.samplers_.items(), self._layout.n_given):
            left_out: dict[str, Any] = {"training_rows": own} if training else {}
            columns[name] = sampler.log_density(self._layout.given(ordered, k), ordered.matrix[:, k], **left_out)
        return columns

    def conditionals_around(self, row: Floats, determined: Sequence[int] = ()) -> RowConditionals:
        """Return the distribution of any features of an encoded row given its others, marginal to the decision.

        `determined` are columns that are computed from others.
        """
        self.check_fitted()
        self._check_missing(self._layout.order(row[None]), "the row", range(len(self._layout.features)))
        wanted = None
        if self.conditions_on_decision_:
            if not len(self.training_givens_):
                raise InputError(
                    "this chain was saved with donors='none', without the decisions of training rows, so the share of "
                    "the wanted decision is unknown; use a chain saved with donors='all'."
                )
            own = self.givens_of(row[None])[0, :-1]
            wanted = share_of_wanted(self._layout, self.training_givens_, self.training_weights_, own)
        return RowConditionals(self._layout, list(self.samplers_.values()), row, determined, wanted, self.seed_)

    @one_native_thread()
    def intervene(
        self,
        rows: Data,
        values: Mapping[Any, Any],
        *,
        keep: float = 1.0,
        n: int = 1,
        random_state: int | None = None,
        derived: Sequence[ComputedColumn] = (),
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Return rows as they would be if some of their features were set to other values.

        The chain is read as a causal model: the parents of a feature are those of the `graph`, or its predictors.
        **That is an assumption of the user.** Without `graph` and `predictors`, all features visited before a feature
        are its parents.

        1. Features that are not descendants of those that are set keep their values.
        2. Descendants are drawn in visiting order, given the new values of their parents, with ranks set by `keep`.

        `mcce.generators.intervening` has the details.

        Parameters
        ----------
        rows : DataFrame or array
            Rows with the training columns, as they are now.
        values : dict
            ``{feature: value}``, or one value for each row in a list, array or Series. A fixed feature may be set too.
        keep : float
            How much of the variation that its parents do not explain each row keeps, from 0 to 1. 1 keeps the rank of
            the old value given the old parents (abduction): the same person under other circumstances. 0 draws a new
            rank: another person with these parents. In between, old and new rank have a Gaussian copula with this
            correlation.
        n : int
            Draws for each row. With ``keep=1`` they differ only in the random ranks within levels, missing values and
            numbers with point mass.
        random_state : int or None
            Seed of these draws; None uses `seed_`. The same seed gives a row the same draws in any batch, except that
            equal rows within a batch get different draws.
        derived : formulas
            Columns computed from others, such as ``explainer.derived_`` of an `mcce.MCCE` with `derived`.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.

        Returns
        -------
        DataFrame with the training columns and dtypes, indexed by (id, draw), where id is the index of `rows`. polars
        and pyarrow input gives the same kind of frame, with id and draw as columns.

        Notes
        -----
        It is an error if the chain conditions on the decision. The decision is an effect of the features. Given an
        effect, its causes depend on each other, so p(feature | parents, decision) is not the response of the feature to
        its parents: among accepted applicants, those with less education have higher salaries. Fit a chain without a
        decision: ``ChainModel(...).fit(X)``, or ``MCCE(..., condition_on_decision=False)``.

        Constraints are not applied: the effects of an action cannot be chosen.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans().X[["age", "education", "salary", "housing"]]
        >>> causes = {"education": ["age"], "salary": ["age", "education"], "housing": ["age", "salary"]}
        >>> chain = mcce.ChainModel(fixed=["age"], predictors=causes, random_state=1).fit(X)
        >>> people = X[X["education"] == "compulsory"].head(50)
        >>> after = chain.intervene(people, {"education": "master"}, n=20)
        >>> after.shape, after.index.names
        ((1000, 4), FrozenList(['id', 'draw']))
        >>> bool(after["salary"].mean() > people["salary"].mean())
        True
        """
        self.check_fitted()
        n = check_count(n, "n", most=MOST_ROWS)
        check(is_number(keep) and 0 <= keep <= 1, keep, "keep", "it must be a number from 0 to 1.")
        if self.conditions_on_decision_:
            raise InputError(
                "intervene() needs a chain that does not condition on the decision: the decision is an effect of the "
                "features, and given an effect its causes depend on each other. Use ",
                Setting("condition_on_decision", False),
                ", or a ChainModel that is fitted without a decision.",
            )
        index = as_frame(rows)[0].index
        if isinstance(index, pd.MultiIndex):
            raise InputError(
                "the index of rows has several levels; it names the rows. Use rows.reset_index(drop=True)."
            )
        table = self.schema_.encode(rows, "rows")
        check_magnitudes(table, "rows")
        known = read_values(values, self.schema_, table.n_rows, derived)
        seed = self.seed_ if random_state is None else resolve_seed(random_state)
        world = CausalWorld(self._layout, self.samplers_, self.schema_, float(keep), seed, tuple(derived), self.graph_)
        columns, values_set = [self.schema_.position(name) for name in known], np.column_stack(list(known.values()))
        self._check_missing(self._layout.order(table.matrix), "rows", world.descendants(columns))
        keys, total = hash_rows(table.matrix), table.n_rows * n
        first = occurrences(keys) * np.uint64(n)
        out = np.empty((total, table.matrix.shape[1]), order="F")

        def follow(begin: int) -> None:
            part = np.arange(begin, min(begin + BLOCK_ROWS, total))
            row, draw = np.divmod(part, n)
            before = table.matrix[row]
            rows, acted = before.copy(), np.zeros(before.shape, dtype=bool)
            rows[:, columns], acted[:, columns] = values_set[row], True
            out[part] = world.follow(rows, acted, before, keys[row], first[row] + draw.astype(np.uint64))

        threads = threads_of(self.samplers_.values(), self.n_jobs)
        for _ in run_in_threads(follow, list(range(0, total, BLOCK_ROWS)), threads, "intervening", progress):
            pass
        after: pd.DataFrame = like_input(self.schema_.decode(out, draw_index(index, n)), self.schema_.frames)
        return after

    def world(self, keep: float, derived: Sequence[ComputedColumn] = ()) -> CausalWorld:
        """Return the causal model of the effects of actions, for `MCCE.recourse`; parameters as in `intervene`."""
        parts = self._layout, self.samplers_, self.schema_
        return CausalWorld(*parts, float(keep), self.seed_, tuple(derived), self.graph_)

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
        """Test each conditional on new rows: which are wrong, how, and where.

        Parameters
        ----------
        X_new : DataFrame or array
            Rows with the training columns that the chain was not fitted on; some hundreds. On training rows every
            conditional would seem too good; `mcce.diagnostics.conditionals` tests them by cross-validation instead.
        decision : bool or bool array
            For a chain fitted with a decision, the decision of each row.
        sample_weight : array or None
            Weights of the new rows, for a chain fitted with weights. Whole numbers repeat a row; with others each row
            is kept with probability w / max(w), so that the tests keep their level
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
            Its text has one sentence for each feature, `table` the figures, and `plot` draws them.

        Notes
        -----
        Each conditional is given observed, not drawn values, so errors of earlier conditionals do not count against it.
        The test is of the fitted conditional, estimation error included: see `mcce.diagnostics.conditionals`.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans().X[["age", "education", "salary"]]
        >>> chain = mcce.ChainModel(sampler="norm", fixed=["age", "education"], random_state=1).fit(X[:1500])
        >>> chain.criticise(X[1500:]).rejected
        ['salary']
        """
        self.check_fitted()
        level = check_share(level, "level")
        seed = self.seed_ if random_state is None else resolve_seed(random_state)
        X_new, left_out = without_unknown_levels(X_new, self.schema_)
        if left_out is not None:
            left_out.warn("X_new", "The conditionals are tested without such rows.")
            decision, sample_weight = left_out.cut(decision), left_out.cut(sample_weight)
        table = self.schema_.encode(X_new, "X_new")
        if self.conditions_on_decision_ != (decision is not None):
            raise InputError(
                "this chain was fitted with a decision; give the decision of each row of X_new: decision=..."
                if self.conditions_on_decision_
                else "this chain was fitted without a decision; leave decision out."
            )
        if self.training_hashes_ is not None and np.isin(hash_rows(table.matrix), self.training_hashes_).all():
            warnings.warn(
                f"all {table.n_rows:,} rows of X_new are training rows, on which every conditional seems better than "
                "it is; give new rows, or cross-validate with mcce.diagnostics.conditionals.",
                MCCEWarning,
                stacklevel=2,
            )
        given, where = True if decision is None else decision, "X_new"
        if sample_weight is not None:
            self._layout.check_decision(given, table.n_rows)
            rows = rows_by_weight(read_weights(sample_weight, table.n_rows), seed)
            where = "X_new" if rows.size >= table.n_rows else "X_new, thinned by weight,"
            table, given = table.take(rows), np.broadcast_to(given, table.n_rows)[rows]
        self._check_new_rows(self._layout.order(table.matrix, given), where)
        scores = self.scores(table.matrix, given, n_draws, seed, progress)
        return self.judge(scores, table.matrix, given, level=level, seed=seed, judged_by="new rows", progress=progress)

    def check_graph(self, X: Data, *, level: float = LEVEL, random_state: int | None = None) -> GraphCheck:
        """Test the conditional independences that the causal graph implies, on new or training rows.

        A graph is an assumption. Rejected statements contradict it; statements that are not rejected do not confirm it,
        and no test shows the direction of an edge.

        Parameters
        ----------
        X : DataFrame or array
            Rows with the training columns; some hundreds.
        level : float
            Level of the tests, for all statements together (Holm).
        random_state : int or None
            Seed of the permutations; None uses the chain's `seed_`.

        Returns
        -------
        GraphCheck
            Its text has one sentence for each statement, the smallest p-value first; `table` has the figures.

        Notes
        -----
        Each feature is tested against every feature visited before it that is not among its predictors, given its
        predictors. The decision and features outside the graph are not tested. The test is a permutation test of
        residuals (`mcce.judging.independence`).

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(1000).X[["age", "education", "salary"]]
        >>> chain = mcce.ChainModel(graph="age -> education -> salary", random_state=1).fit(X)
        >>> chain.check_graph(X).rejected
        [('salary', 'age')]
        """
        from mcce.judging.independence import GraphCheck, check_independences

        self.check_fitted()
        if self.graph_ is None:
            raise InputError("this chain has no graph to check; fit it with ", Setting("graph", "a -> b"), ".")
        level = check_share(level, "level")
        seed = self.seed_ if random_state is None else resolve_seed(random_state)
        X, left_out = without_unknown_levels(X, self.schema_)
        if left_out is not None:
            left_out.warn("X", "The graph is tested without such rows.")
        table = self.schema_.encode(X)
        if table.n_rows < LEAST_ROWS:
            raise InputError(
                Parameter("X"),
                f" has {table.n_rows} rows; testing a graph needs at least {LEAST_ROWS}, better hundreds.",
            )
        place = {name: j for j, name in enumerate(table.names)}
        statements = [
            (place[each.feature], place[each.other], tuple(place[name] for name in each.given))
            for each in self.graph_.independences([*self.fixed_, *self.visit_sequence_])
        ]
        found = check_independences(table, statements, level=level, seed=seed)
        return GraphCheck(tuple(found), level, table.n_rows)

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
        """Return the criticism of each feature from its scores on encoded rows, by this chain or cross-validated."""
        from mcce.judging.criticism import Criticism
        from mcce.judging.feature import FeatureCriticism, criticise_feature

        ordered = self._layout.order(matrix, decision)

        def criticise(k: int) -> FeatureCriticism:
            name, values = ordered.features[k].name, ordered.matrix[:, k]
            given = self._layout.given(ordered, k)
            return criticise_feature(scores[name], given, values, repr(self.samplers_[name]), seed)

        places = range(self._layout.n_given, len(ordered.features))
        found = list(run_in_threads(criticise, places, count_jobs(self.n_jobs), "testing", progress))
        return Criticism.of(found, level, judged_by)

    def scores(
        self,
        matrix: Floats,
        decision: bool | npt.NDArray[np.bool_] = True,
        n_draws: int = N_DRAWS,
        seed: int | None = None,
        progress: bool | None = None,
    ) -> dict[Any, Scores]:
        """Return the scores of encoded held-out rows (columns in data order) by mutable feature."""
        ordered = self._layout.order(matrix, decision)
        seed = self.seed_ if seed is None else seed

        def score(k: int) -> Scores:
            sampler, given = self.samplers_[ordered.features[k].name], self._layout.given(ordered, k)
            return score_conditional(sampler, given, ordered.column(k), seed=seed, n_draws=n_draws)

        threads = threads_of(self.samplers_.values(), self.n_jobs)
        places = range(self._layout.n_given, len(ordered.features))
        return dict(zip(self.samplers_, run_in_threads(score, places, threads, "scoring", progress)))

    def _check_new_rows(self, ordered: Table, where: str) -> None:
        """Raise if there are too few rows, or they have missing values that a sampler does not handle."""
        if ordered.n_rows < LEAST_ROWS:
            raise InputError(
                Parameter(where),
                f" has {ordered.n_rows} rows; testing a conditional needs at least {LEAST_ROWS}, better hundreds.",
            )
        self._check_missing(ordered, where, range(self._layout.n_given, len(ordered.features)))

    def _check_missing(self, ordered: Table, where: str, places: Sequence[int]) -> None:
        """Raise if rows have missing values that a sampler at one of the places in the chain does not handle."""
        missing = [f.name for f, column in zip(ordered.features, ordered.matrix.T) if np.isnan(column).any()]
        for k in (place for place in places if place >= self._layout.n_given):
            name = ordered.features[k].name
            sampler = self.samplers_[name]
            seen = [*self._layout.given(ordered, k).names, name]
            concerned = [each for each in missing if each in seen]
            if concerned and not sampler.handles_missing:
                raise InputError(
                    Parameter(where),
                    f" has missing values in {listing(concerned)}, which ",
                    Value(sampler),
                    f" for {name!r} does not handle; fill them, leave the rows out, or use a sampler that "
                    f"does ({samplers_that_handle_missing()}).",
                )

    def _without_donors(self: Self) -> Self:
        bare = copy.copy(self)
        bare.samplers_ = {name: _without_donors_of(name, sampler) for name, sampler in self.samplers_.items()}
        if self._layout.n_given:
            bare.training_givens_ = np.empty((0, self._layout.n_given), order="F")
            bare.training_weights_ = None
        return bare

    def stored(self: Self, donors: Donors) -> Self:
        """Return the chain to store: itself, or a copy without training values."""
        if self.privacy is not None:
            self.privacy.refuse_storage()
        return super().stored(donors)

    def _write(self) -> Fields:
        if self.privacy is not None:
            self.privacy.refuse_storage()
        fields = super()._write()
        fields["settings"]["graph"] = self.graph_  # a file or an object of another package could not be read back
        fields["samplers_"] = [_to_store(sampler) for sampler in self.samplers_.values()]
        return fields if self.account_ is None else {**fields, "account_": self.account_}

    @classmethod
    def _read(cls: type[Self], fields: Fields) -> Self:
        chain = super()._read(fields)
        chain.account_ = fields.get("account_")
        check_type(chain.account_, "account_", PrivacyAccount, type(None))
        require((chain.account_ is None) == (chain.privacy is None), "account_ and the sampler are not both private")
        check_type(chain.choice_, "choice_", Choice, type(None))
        check_type(chain.associations_, "associations_", pd.DataFrame, type(None))
        if chain.min_donors is not None:
            check_count(chain.min_donors, "min_donors")
        return chain

    def _lay_out(self, mutable: list[Any]) -> ChainLayout:
        visited = self.visit_sequence_
        check_type(visited, "visit_sequence_", list)
        require(
            len(visited) == len(mutable) and {*visited} == {*mutable}, "visit_sequence_ is not that of the features"
        )
        conditions, predictors = self.conditions_on_decision_, self.predictors
        if self.graph is not None:
            check_type(self.graph, "graph", Graph)
            refuse_beside_graph(self.visit_sequence, predictors)
            self.graph_ = self.graph.of_columns(self.schema_.names)
            in_order, predictors = self.graph_.visit(self.schema_.names, self.fixed_)
            require(in_order == visited, "visit_sequence_ is not that of the graph")
        return ChainLayout.arrange(self.schema_, self.fixed_, visited, conditions, predictors)

    def check_model(self, features: Sequence[Feature], n_given: int) -> None:
        """Raise if samplers read from a file do not match their columns."""
        samplers: Any = self.samplers_
        check_type(samplers, "samplers_", list)
        targets = features[n_given:]
        require(len(samplers) == len(targets), "the number of samplers_ is not that of the features")
        every = Table(tuple(features), np.empty((0, len(features)), order="F"))
        for k, (target, sampler) in enumerate(zip(targets, samplers), n_given):
            check_type(sampler, "samplers_", ConditionalSampler)
            given = self._layout.given(every, k).features
            try:
                sampler.check_target(target)
                if isinstance(sampler, LeafDonorSampler):
                    sampler.name_columns(given, target)
                sampler.check_state(given, target, self.training_givens_.shape[0])
            except MCCEError as error:
                raise InputError(f"the sampler of {target.name!r}: {error}") from None
        self.samplers_ = {target.name: sampler for target, sampler in zip(targets, samplers)}

    def __repr__(self) -> str:
        sampler = self.sampler if not isinstance(self.sampler, Mapping) else dict(self.sampler)
        order = f"visit_sequence={self.visit_sequence!r}" if self.graph is None else f"graph={spell(self.graph)}"
        return f"ChainModel(sampler={sampler!r}, fixed={list(self.fixed)!r}, {order})"


def _to_store(sampler: ConditionalSampler) -> ConditionalSampler:
    """Return a copy of a sampler without its features, which the chain sets again on reading."""
    copied = copy.copy(sampler)
    if isinstance(sampler, LeafDonorSampler):
        for name in ("given_features_", "target_feature_"):
            vars(copied).pop(name, None)
    return copied


def _without_donors_of(name: object, sampler: ConditionalSampler) -> ConditionalSampler:
    """Return the sampler of a feature without training values."""
    try:
        return without_training_values(sampler)
    except SamplerError as error:
        raise SamplerError(
            f"donors='none' is not possible for {name!r}: {error} Choose a sampler of coefficients for it "
            f"({samplers_without_donors()}), or save with donors='all'."
        ) from None
