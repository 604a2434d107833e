"""MCCE: Monte Carlo sampling of valid and realistic counterfactual explanations (Redelmeier, Jullum, Aas, Løland).

1. Model (`fit`). Learn p(mutable | fixed, y') as a chain of conditionals, or by another generator; y' says whether the
   model gives a training row the wanted decision (paper, section 2.1).
2. Generate. For each factual draw K rows, given its own fixed values and y' = 1 (section 2.2). Factuals that agree in
   their fixed values share one pool of draws.
3. Select. Keep the valid rows; take the fewest changes, then the smallest Gower distance, then the earlier draw
   (section 2.3, `mcce.explain`).

`explain` performs steps 2 and 3 block by block (`mcce.explain.pipeline`) and keeps only the selected rows, so memory
does not grow with the number of factuals. `generate` and `select` perform the two steps separately.

Parts that the paper's method does not need are learned from the training rows on first use: scaled distances, the
plausibility score, hashes of training rows (`mcce.explain.learned`). Sample weights affect the plausibility score only.

A saved explainer is one file with everything but the model and other code: the model, functions and the models of
`Several` are passed to `load`, which queries the model for a few stored rows and warns if its predictions differ.
Without donors, parts that hold or reveal training values are left out. With `mcce.Privacy`, all parts are computed from
drawn rows (`mcce.privacy.settings`).
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce import exceptions
from mcce.base.checks import MOST_DRAWS, check, check_count, check_flag, check_share, is_number
from mcce.base.parameters import Learner
from mcce.base.progress import Progress, working
from mcce.base.threads import count_jobs, one_native_thread
from mcce.constraints import Constraint, Constraints, NoCopies, OfFactuals, read, resolve, simplest
from mcce.counterfactuals import Counterfactuals, Questions
from mcce.exceptions import InputError
from mcce.explain.draw import draw_block, match_candidates
from mcce.explain.learned import LearnedParts
from mcce.explain.options import OPTIONS, read_settings
from mcce.explain.order import Caution, MeasureLike, Ordering
from mcce.explain.problem import (
    Block,
    Problem,
    Settings,
    encode_known,
    fixed_columns,
    mutable_columns,
    pool_keys,
    read_factuals,
)
from mcce.explain.reference import (
    REACH_ROWS,
    find_reach,
    unchangeable_features,
    warn_of_factuals,
    warn_of_unchangeable,
)
from mcce.explain.stored import check_fields, read_decision, write_decision
from mcce.generators.base import Donors, Generator, unfitted
from mcce.generators.graph import Graph
from mcce.generators.layout import Predictors, Samplers
from mcce.generators.registry import OF_A_CHAIN, check_givens, make_generator
from mcce.generators.sampling import draw_index
from mcce.generators.visit import VisitSequence
from mcce.judging.scores import LEVEL
from mcce.model.columns import columns_of
from mcce.model.decisions import Answer, Interval, Several, resolve_decision
from mcce.model.queries import EncodedModel, SpotCheck, TrainingTable, check_wanted, predict_table, spot_positions
from mcce.model.robustness import ConfirmedModel, Robust, Robustness
from mcce.plausibility.derived import DerivedColumns, Formula, FrameFunction, fit_derived, with_functions
from mcce.plausibility.relation_finder import find_in, read_relations
from mcce.plausibility.relations import Relations, keep_relations
from mcce.plausibility.score import Plausibility
from mcce.privacy.settings import Privacy
from mcce.records.record import Origin
from mcce.report.names import Names
from mcce.storage import load_fields, save_fields
from mcce.storage.state import Fields
from mcce.table import Data, Kind, Schema, as_frame, frame_kind
from mcce.table.checks import check_fixed, rows_of
from mcce.table.frames import like_input, own_frame
from mcce.table.weights import rows_with_weight
from mcce.wording import Parameter, PythonOnly, Value

if TYPE_CHECKING:
    from mcce.batches import BatchResult, Letters
    from mcce.diagnostics.diagnose import Diagnostics
    from mcce.diagnostics.sensitivity import Sensitivity
    from mcce.diagnostics.trade_off import TradeOff
    from mcce.explain.pipeline import Explanation
    from mcce.judging.independence import GraphCheck
    from mcce.report.rule_set import RuleSet

Self = TypeVar("Self", bound="MCCE")

# passed to `load` again; not among the stored settings
GIVEN_AGAIN = ("model", "decision", "generator", "constraints", "derived", "n_jobs")
OF_DRAWS = ("n_samples", "independent", "redraw")  # settings that do not apply to given candidates


class MCCE(Learner):
    """Counterfactual explanations for any model on tabular data.

    Parameters
    ----------
    model : object or callable
        Anything with predict_proba, decision_function or predict, or a function of a table. It is queried with frames
        (or arrays, if it was trained on arrays) that have exactly the columns, order and dtypes of the training data.
    decision : (low, high), Interval, pandas Interval, class label, OneOf, Not, Several or callable
        The wanted decision: a closed interval for the score, inf for no bound; an `Interval` (open ends, of which class
        the probability is, a margin); the label that `predict` should return, `OneOf` several or any but some (`Not`);
        `Several` models, each with its own decision; or a function of a table that returns booleans. For a cost or
        utility give its function as the model, and an interval. `label=` puts any of these objects in your own words.
    fixed : list of column names
        Features that must not change.
    sampler, visit_sequence, predictors, kinds, n_jobs : see `ChainModel`
    graph : Graph, str, list, networkx.DiGraph, file or None
        A causal graph, assumed by the user, such as ``"age -> education -> salary"``; see `mcce.Graph`.
    condition_on_decision : bool
        Whether the chain conditions on the wanted decision, which makes most draws valid.
    random_state : int or None
        Seed. The result does not depend on the number of threads, or on the order and batching of the factuals. None
        uses a fresh seed.
    generator : Generator, name or None
        Generator of the candidates, in place of a chain: an unfitted `mcce.generators.Generator`, whose conditioning
        features must equal `fixed` and which has the parameters of the chain (sampler, kinds, random_state, ...)
        itself; or the name of a registered one (`mcce.available_generators`).
    constraints : list or file
        Constraints that apply to every call of `explain` and `generate`; see there.
    derived : dict or None
        Columns that are computed from others: names to formulas in the grammar of `mcce.rule`, such as ``{"dti":
        "(rent + instalment) / income"}``, or to functions of a frame that return one value per row. A derived column is
        computed for every candidate, rounded as in the training rows, and is not counted as a change. Rules can refer
        to it (``"dti <= 0.4"``); `fixed` and other constraints cannot.
    names : Names, dict or None
        Display names of features, values and predictions in sentences, letters, pages and plots: `mcce.Names`, or a
        dict of its `labels`, `units`, `formats` and `reasons`. Result tables keep the names and values of the data.

    Notes
    -----
    During a call, models and samplers use one OpenMP and one BLAS thread each (`mcce.base.threads` explains why); the
    model's own `n_jobs` is not changed. The class is a scikit-learn estimator: `sklearn.base.clone` returns an unfitted
    copy that explains the same fitted model.

    Attributes
    ----------
    generator_ : the fitted generator; a `ChainModel` unless `generator` was given
    decision_ : the wanted decision, bound to the model
    names_ : the display names of features, values and predictions
    relations_ : ties and relations between the columns, found or given at `fit`; see `mcce.find_relations`
    derived_ : the formulas of derived columns, inputs first, each with its rounding and the rows that disagree
    fit_seconds_ : the duration of `fit` in seconds

    Examples
    --------
    >>> import mcce
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> loans = mcce.datasets.load_loans()
    >>> model = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype").fit(loans.X, loans.y)
    >>> granted = mcce.Interval(0, 0.1, closed="left", of=True)     # probability of default below 10 per cent
    >>> explainer = mcce.MCCE(model, decision=granted, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> found = explainer.explain(loans.X.iloc[[0]])
    >>> len(found), list(found.measures.columns)
    (1, ['prediction', 'L0', 'gower', 'gower_sum'])
    """

    # not cloned: a clone by scikit-learn would be an unfitted model
    whole_parameters = ("model", "decision", "constraints", "derived")

    def __init__(
        self,
        model: Any,
        *,
        decision: Any = (0.5, 1.0),
        fixed: Sequence[Hashable] = (),
        sampler: Samplers | Privacy = "cart",
        visit_sequence: VisitSequence = "data",
        predictors: Predictors | None = None,
        graph: Any = None,
        condition_on_decision: bool = True,
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        generator: Generator | str | None = None,
        constraints: Any = (),
        derived: Mapping[Hashable, str | FrameFunction] | None = None,
        names: Names | Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.decision = decision
        self.fixed = fixed
        self.sampler = sampler
        self.visit_sequence = visit_sequence
        self.predictors = predictors
        self.graph = graph
        self.condition_on_decision = condition_on_decision
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.generator = generator
        self.constraints = constraints
        self.derived = derived
        self.names = names

    @one_native_thread()
    def fit(
        self: Self,
        X: Data,
        y: object = None,
        *,
        sample_weight: Any = None,
        relations: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Step 1: query the model for the training rows, and fit the chain.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Training rows: the model's features, without the response. Also a frame of polars or pyarrow; the model is
            always queried with the kind of table given here.
        y : ignored
            Present for compatibility with scikit-learn: the method learns from the model's predictions, not from the
            true response.
        sample_weight : array or None
            One weight per row: integers count copies, other weights are relative, 0 drops the row. See
            `ChainModel.fit`.
        relations : list or None
            Ties and relations between columns that sparse counterfactuals satisfy, unless the factual itself violates
            them. None finds them in X (`mcce.find_relations`) and lists them in a warning. A list replaces them:
            ``explainer.relations_.without("a <= b")``, texts such as ``"a <= b"`` or ``"total == a + b"`` (see
            `mcce.rule`), and ``mcce.tied("usd", "eur")``; () for none. The paper's method (``sparse=False``) applies
            relations only if they are given as a list.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        """
        begun = time.perf_counter()
        # a failed fit must not leave a half-fitted explainer
        for name in ("derived_", "fit_seconds_", "generator_", "learned_", "names_", "relations_"):
            vars(self).pop(name, None)
        check_flag(self.condition_on_decision, "condition_on_decision")
        self.decision_ = resolve_decision(self.decision, self.model)
        X = own_frame(X)
        frame, _ = as_frame(X)
        if frame.empty:
            raise InputError(
                Parameter("X"),
                f" has {frame.shape[0]} rows and {frame.shape[1]} columns; it needs at least one of each.",
            )
        X, frame, weights = rows_with_weight(X, frame, sample_weight)
        fixed = check_fixed(self.fixed, list(frame.columns))
        of_model = columns_of(self.model, list(frame.columns))
        of_model.check_response()
        names = Names.read(self.names, frame.columns)  # raise before the expensive steps
        of_a_chain = {name: getattr(self, name) for name in OF_A_CHAIN}
        generator = make_generator(self.generator, fixed, of_a_chain, self.n_jobs)
        graph = getattr(generator, "graph", None)
        if self.derived and graph is not None:
            Graph.read(graph).of_columns(list(frame.columns)).check_undrawn(self.derived)
        if relations is not None and not (hasattr(relations, "__len__") and len(relations) == 0):
            generator.require_training_rows("relations=", "give rules as constraints=[mcce.rule(...)] instead.")
        derived: tuple[Formula, ...] = ()
        if self.derived:
            generator.require_training_rows("derived=", "leave it out; formulas are fitted to training rows.")
            derived = fit_derived(self.derived, frame, Schema.from_data(X, getattr(generator, "kinds", None)), fixed)
        spots = spot_positions(len(frame))
        answer: Answer | None = None
        if self.condition_on_decision:
            with working(f"querying the model for {len(frame)} training rows", progress):
                answer = predict_table(self.decision_, X)
            if generator.privacy is None:
                check_wanted(self.decision_, answer)
            first = Answer(answer.scores[spots], answer.wanted[spots])
        else:
            first = self.decision_.evaluate(rows_of(X, spots), "training rows")
        wanted = None if answer is None else answer.wanted
        weighting: dict[str, Any] = {}
        if weights is not None:
            generator.check_weights()
            weighting["sample_weight"] = weights
        generator.fit(X, wanted, progress=progress, **weighting)
        check_givens(generator, fixed, self.condition_on_decision)
        drawn = generator.rows_in_place_of_training()
        if drawn is not None:  # these rows replace the training rows, which are not read again
            X, answer = drawn, predict_table(self.decision_, drawn, "rows drawn in place of the training rows")
            frame, wanted, spots = as_frame(X)[0], answer.wanted, spot_positions(len(answer.wanted))
            first = Answer(answer.scores[spots], answer.wanted[spots])
        self.generator_ = generator
        schema = generator.schema_
        names.check_kinds(schema)
        self.names_ = names
        checked = SpotCheck(spots, schema.encode(rows_of(X, spots)).matrix, first)
        some = np.unique(np.linspace(0, len(frame) - 1, REACH_ROWS).astype(np.intp))
        reach = find_reach(schema.encode(rows_of(X, some)).matrix, schema.features)
        scores = None if answer is None else answer.scores
        training = TrainingTable(X, schema, self.decision_, checked, wanted, reach, weights, scores)
        matrix = schema.encode(X).matrix
        if relations is None:
            self.relations_ = find_in(matrix, schema, fixed_columns(generator), derived)
        else:
            self.relations_ = read_relations(relations, matrix, schema)
        self.derived_ = derived
        # the duration would reveal the number of training rows
        self.fit_seconds_ = time.perf_counter() - begun if drawn is None else 0.0
        facts = unchangeable_features(frame, schema, [*fixed, *(each.target for each in derived)], self.constraints)
        reasons = {name: suggestion.reason for name, suggestion in facts.items()}
        relations = self.relations_.with_formulas(derived)
        self.learned_ = LearnedParts(training, generator, self.n_jobs, reasons, relations)
        warn_of_unchangeable(facts)
        of_model.warn_of_unread(frame.columns, fixed)
        return self

    @property
    def plausibility_(self) -> Plausibility:
        """The fitted plausibility score; available after the first sparse search."""
        if self.learned_.caution is None:
            raise AttributeError("plausibility_ is learned by the first sparse search")
        return self.learned_.caution.plausibility

    def _training_for(self, needed_by: str) -> Data | None:
        """Return the table given to `fit`; raise if the fit is private."""
        self.generator_.require_training_rows(
            needed_by, "give rows as `training`; figures from training rows are not covered by the privacy account."
        )
        return self.learned_.training.known_table()

    def _known_schema(self) -> Schema | None:
        return self.generator_.schema_ if hasattr(self, "fit_seconds_") else None

    @one_native_thread()
    def explain(
        self,
        X: Data,
        *,
        n_samples: int | Literal["auto"] = 1000,
        n_counterfactuals: int = 1,
        independent: bool = False,
        constraints: Any = (),
        sparse: bool = False,
        floor: float | None = None,
        caution: float | None = None,
        measures: MeasureLike | Sequence[MeasureLike] | None = None,
        feature_weights: Mapping[Any, float] | None = None,
        max_changes: int | None = None,
        max_gower: float | None = None,
        diverse: bool = False,
        robust: float | Robust | None = None,
        progress: bool | None = None,
    ) -> Counterfactuals:
        """Find counterfactuals for the rows of `X` (steps 2 and 3).

        An option that has no effect in combination with the others, such as `floor` without ``sparse=True``, raises an
        error.

        Parameters
        ----------
        X : DataFrame, array or Series
            Rows to explain; the index of a DataFrame gives their ids in the result and must be unique. A Series is one
            row. A row with a level that is unknown to the fitted generator is listed in `unexplained`; the other rows
            are explained. For polars or pyarrow, result tables are frames of the same kind, see
            `Counterfactuals.table`.
        n_samples : int or "auto"
            K, the number of rows drawn per factual. "auto" doubles the draws of a factual, from 500 up to 16,000, until
            its counterfactuals are stable (`mcce.explain.pipeline`); `draws` of the result has the number for each.
        n_counterfactuals : int
            Number of distinct counterfactuals per factual, best first.
        independent : bool
            Whether each factual has its own draws, even if it shares its fixed values with other factuals.
        constraints : list or file
            Constraints in addition to those of the explainer: `mcce.allow`, `mcce.rule`, `mcce.only`,
            `mcce.per_factual`, `mcce.no_copies`, `mcce.k_anonymous`, texts of rules, or a TOML or JSON file. Candidates
            are drawn within the constraints, and no returned row violates one. A known value becomes missing only if
            ``mcce.allow(feature, missing=True)`` permits it.
        sparse : bool
            Whether to combine draws with the factual so that few features change, each of them needed, instead of
            returning whole drawn rows as in the paper; see `mcce.explain.sparse`. Use it for explanations that are sent
            to people. In the default order, a row with a reason not to be sent (`mcce.plausibility.stop_reasons`) is
            replaced by one without, if that has at most one or two more changes; otherwise `suspicious()` of the result
            lists it.
        floor : float or None
            With `sparse`, the minimum plausibility of a counterfactual: the share of real rows that are at least as
            unusual. None is 0.05. A row below it is returned only for a factual without another valid candidate;
            `below_floor()` of the result marks such rows.
        caution : float or None
            With `sparse` and the default order: among rows with equally few changes, the weight of the distance from
            the edge of the data and of the decision, relative to the distance from the factual. None is 1; 0 selects
            the nearest row by Gower distance; see `mcce.explain.order`.
        measures : name, function, several of them, or None
            Measures that order the counterfactuals, the first one first; None is ("L0", "gower"), the paper's order.
            With `sparse` and caution, None orders by L0 and then by a distance that is robust to long tails. Names are
            "L0", "gower", "gower_sum", "l2", "l1_raw", "l2_raw", "mad", "hvdm", "ivdm" (`mcce.distances.measures`),
            "plausibility" with `sparse`, and registered measures (`mcce.register_measure`). A function of the
            candidates (DataFrame) and the factual (Series) returns small values for good candidates.
        feature_weights : dict or None
            Weights of features in these distances; 1 for features that are not listed.
        max_changes, max_gower : int, float or None
            Upper bounds on the number of changes and on the Gower distance.
        diverse : bool
            Whether the counterfactuals of a factual are selected to differ from each other: first the best one, then
            each by what it adds to those before it, relative to its cost (`mcce.explain.diverse`).
            `Counterfactuals.diversity` measures how far apart they are.
        robust : float, Robust or None
            Robustness requirement: `mcce.Robust` states the share of refitted models, and of rows with slightly
            perturbed numbers, that must give the wanted decision too. A number such as 0.9 is a share of rows whose
            numbers are perturbed by up to 2 per cent. See `mcce.model.robustness`.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        """
        from mcce.explain.pipeline import explain_factuals  # deferred: slow to import

        self._check_fitted()
        if n_samples != "auto":
            n_samples = check_count(n_samples, "n_samples", most=MOST_DRAWS, or_else=(", or ", Value("auto")))
        options: dict[str, Any] = {
            "n_samples": n_samples,
            "n_counterfactuals": n_counterfactuals,
            "independent": independent,
            "sparse": sparse,
            "floor": floor,
            "caution": caution,
            "measures": measures,
            "feature_weights": feature_weights,
            "max_changes": max_changes,
            "max_gower": max_gower,
            "diverse": diverse,
        }
        problem = self._problem([*read(self.constraints), *read(constraints)], robust, progress, **options)
        factuals = read_factuals(X, self.generator_.schema_, self.decision_, self.learned_.training.spots)
        warn_of_factuals(factuals.matrix, factuals.index, self.generator_, self.learned_.training.reach)
        found = explain_factuals(problem, factuals, progress)
        described = {**dataclasses.asdict(problem.settings), "pools": int(found.cost.pools.size)}
        return self._tabulate(
            found, described, progress, self._call("explain", constraints, {**options, "robust": robust})
        )

    def check_graph(self, X: Data, *, level: float = LEVEL, random_state: int | None = None) -> GraphCheck:
        """Test the conditional independences that the causal graph implies; see `ChainModel.check_graph`.

        A graph is an assumption of the user. Data can contradict it but not confirm it.

        Parameters
        ----------
        X : DataFrame or array
            Rows with the training columns, for example the training rows.
        level : float
            Familywise level of the tests (Holm).
        random_state : int or None
            Seed of the permutations; None uses the seed of the fit.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(1000).X[["age", "education", "salary"]]
        >>> explainer = mcce.MCCE(
        ...     lambda rows: rows["salary"] / 120_000, fixed=["age"], graph="age -> education -> salary", random_state=1
        ... ).fit(X)
        >>> explainer.check_graph(X).rejected
        [('salary', 'age')]
        """
        self._check_fitted()
        checked: GraphCheck = self.generator_.check_graph(X, level=level, random_state=random_state)
        return checked

    @one_native_thread()
    def group_rules(
        self,
        X: Data,
        k: int = 4,
        *,
        by: Sequence[Hashable] | None = None,
        max_changes: int = 4,
        slack: float = 0.02,
        confidence: float = 0.95,
        random_state: int = 0,
        **settings: Any,
    ) -> RuleSet:
        """Find at most k rules "if <group> then change <features>" that reach the decision for most rows of `X`.

        The rows are explained with ``sparse=True``, and rules are derived from these counterfactuals. See
        `mcce.explain.group_rules` for the algorithm.

        Parameters
        ----------
        X, k, by, max_changes, slack, confidence, random_state : as in `explain` and `Counterfactuals.rules`
        **settings
            Options of `explain`: `constraints`, `floor`, `n_samples`, ...

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(400).X[["age", "salary", "savings"]]
        >>> def score(rows):
        ...     return (rows["salary"] + rows["savings"]) / 200_000
        >>> explainer = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X)
        >>> rules = explainer.group_rules(X.head(100), k=2, n_samples=200)
        >>> bool((rules.found.measures["plausibility"] >= 0.05).all())
        True
        """
        found = self.explain(X, **{"sparse": True, **settings})
        return found.rules(
            k, by=by, max_changes=max_changes, slack=slack, confidence=confidence, random_state=random_state
        )

    def recourse(
        self,
        X: Data,
        actions: Sequence[Hashable] | None = None,
        *,
        assurance: float = 0.9,
        keep: float = 1.0,
        takes: Mapping[Hashable, Any] | None = None,
        n_samples: int = 1000,
        n_counterfactuals: int = 1,
        constraints: Any = (),
        floor: float | None = None,
        max_actions: int | None = None,
        progress: bool | None = None,
    ) -> Counterfactuals:
        """Find actions whose consequences reach the wanted decision, using the causal graph of the explainer.

        A counterfactual of `explain` is a row that would be accepted. Here a person acts on a few features, and the
        descendants of these features follow. **The causal graph is an assumption of the user**, and so are the
        conditionals that consequences are drawn from. See `mcce.explain.recourse` for the method, and `check_graph` for
        a test of the graph.

        Parameters
        ----------
        X : as in `explain`
        actions : list of column names or None
            Features that a person can act on; None: all mutable features of the graph, or the causes of the `outcome`
            if the graph has one. A warning lists actions that are not causes of the outcome: these change the
            prediction of the model, not the outcome itself.
        assurance : float
            Minimum probability of the decision over the consequences of the actions. It is compared with a lower
            confidence bound.
        keep : float
            How much of a person's individual deviation is kept: 1 keeps the person's ranks in the conditional
            distributions, 0 draws consequences from the conditional distributions; see `ChainModel.intervene`.
        takes : dict or None
            Time that an action takes, ``{"education": "2 years"}``: mutable ages and durations, recognized by their
            names, increase with it. A dict of steps names the columns, ``{"education": {"age": 2}}``. Actions are
            taken simultaneously.
        n_samples : int
            K, rows drawn per factual; their values are candidates for actions.
        n_counterfactuals, constraints, floor, progress : as in `explain`
            Consequences that violate a constraint do not count as reaching the decision.
        max_actions : int or None
            Maximum number of actions, up to 3.

        Returns
        -------
        Counterfactuals
            `frame` has a central one of the rows that may follow; `changes()` distinguishes actions and consequences,
            and `consequences` has the intervals of what follows. `measures` counts actions only and has `p_valid`, the
            probability of the decision, with `p_valid_se`, its Monte Carlo standard error.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(400).X[["age", "education", "salary"]]
        >>> explainer = mcce.MCCE(
        ...     lambda rows: rows["salary"] / 100_000, fixed=["age"], graph="age -> education -> salary; age -> salary",
        ...     sampler="parametric", random_state=1,
        ... ).fit(X)
        >>> found = explainer.recourse(X.loc[[26]], ["education"])
        >>> found.changes()[["feature", "from", "to", "role"]]
             feature             from        to         role
        0  education  upper secondary  bachelor       action
        1     salary            44200     55900  consequence
        >>> found.consequences[["feature", "low", "high"]].values.tolist()
        [['salary', 51000, 59800]]
        """
        from mcce.explain.recourse import LARGEST, Recourse, explain_by_actions, read_actions, read_durations

        self._check_fitted()
        n_samples = check_count(n_samples, "n_samples", most=MOST_DRAWS)
        check_share(assurance, "assurance")
        check(is_number(keep) and 0 <= keep <= 1, keep, "keep", "it must be a number from 0 to 1.")
        if max_actions is not None:
            check_count(max_actions, "max_actions", most=LARGEST)
        options: dict[str, Any] = {"measures": None, "feature_weights": None, "max_changes": max_actions}
        problem = self._problem(
            [*read(self.constraints), *read(constraints)],
            None,
            progress,
            n_samples=n_samples,
            n_counterfactuals=n_counterfactuals,
            sparse=True,
            floor=floor,
            **options,
        )
        columns = read_actions(actions, problem)
        worlds = tuple(chain.world(keep, self.derived_) for chain in self.learned_.learn_worlds(progress))
        recourse = Recourse(worlds, columns, assurance, read_durations(takes or {}, columns, problem))
        training = self.learned_.training
        factuals = read_factuals(X, self.generator_.schema_, self.decision_, training.spots)
        warn_of_factuals(factuals.matrix, factuals.index, self.generator_, training.reach)
        found, consequences, reasons = explain_by_actions(problem, factuals, recourse, progress)
        described = {**dataclasses.asdict(problem.settings), "assurance": assurance, "keep": keep}
        described["actions"] = [self.generator_.schema_.names[j] for j in columns]
        arguments = {
            "actions": described["actions"],
            "assurance": assurance,
            "keep": keep,
            "takes": takes,
            "n_samples": n_samples,
            "n_counterfactuals": n_counterfactuals,
            "floor": floor,
            "max_actions": max_actions,
        }
        result = self._tabulate(found, described, progress, self._call("recourse", constraints, arguments))
        for i, why in reasons.items():
            result.unexplained.loc[result.unexplained.index == factuals.index[i], "reason"] = why
        known = result._questions
        questions = Questions(predict=known.predict, usual=known.usual, alike=known.alike, origin=known.origin)
        return dataclasses.replace(result, consequences=consequences, _questions=questions)

    @one_native_thread()
    def generate(
        self,
        X: Data,
        *,
        n_samples: int = 1000,
        independent: bool = False,
        constraints: Any = (),
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Step 2 alone: return the candidates of every row of `X`, indexed by (id, draw).

        These are the rows that `explain` selects from with the same `n_samples`, `independent` and `constraints`,
        unless it redraws. With constraints there may be fewer, numbered consecutively. A row with an unknown level has
        none. For polars or pyarrow the result is a frame of the same kind, with `id` and `draw` as columns.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> candidates = explainer.generate(X.iloc[[0, 5]], n_samples=100)
        >>> candidates.shape, list(candidates.index.names)
        ((200, 3), ['id', 'draw'])
        >>> bool((candidates["age"].loc[0] == X["age"][0]).all())
        True
        """
        self._check_fitted()
        check_count(n_samples, "n_samples", most=MOST_DRAWS)
        check_flag(independent, "independent")
        schema = self.generator_.schema_
        index, matrix, _ = encode_known(X, schema, "Such rows have no candidates.")
        resolved = self._constraints([*read(self.constraints), *read(constraints)]) or None
        drawing = Settings(n_samples, independent=independent)
        problem = Problem(
            self.generator_, self.decision_, EncodedModel(self.decision_, schema), drawing, Ordering(()), resolved
        )
        columns: Sequence[int] = range(len(schema)) if independent else fixed_columns(self.generator_)
        keys = pool_keys(self.generator_, matrix, columns)
        with working("drawing" if resolved is None else "drawing inside the constraints", progress):
            block = Block(np.arange(len(index)), matrix, keys, range(n_samples), index)
            pools = draw_block(problem, block).candidates
        separate, owner = pools.separate(np.arange(len(index)))
        draw = np.arange(owner.size) - np.searchsorted(owner, owner)
        computed = keep_relations(Relations().with_formulas(self.derived_), schema, fixed_columns(self.generator_))
        rows = separate.rows if computed is None else computed.complete(separate.rows, matrix[owner])
        if resolved is not None:
            allowed = resolved.of_factuals(matrix, index).hold(rows, owner)
            rows, owner = rows[allowed], owner[allowed]
            draw = np.arange(owner.size) - np.searchsorted(owner, owner)
        drawn = schema.decode(rows, draw_index(index, n_samples)[owner * n_samples + draw])
        return like_input(drawn, frame_kind(X))

    @one_native_thread()
    def select(
        self,
        candidates: pd.DataFrame,
        X: Data,
        *,
        n_counterfactuals: int = 1,
        exhaustive: bool = False,
        constraints: Any = (),
        sparse: bool = False,
        floor: float | None = None,
        caution: float | None = None,
        measures: MeasureLike | Sequence[MeasureLike] | None = None,
        feature_weights: Mapping[Any, float] | None = None,
        max_changes: int | None = None,
        max_gower: float | None = None,
        diverse: bool = False,
        robust: float | Robust | None = None,
        progress: bool | None = None,
    ) -> Counterfactuals:
        """Step 3 alone: select counterfactuals for the rows of `X` among candidates, as returned by `generate`.

        Parameters
        ----------
        candidates : DataFrame
            Rows with the training columns; the first level of the index is the id of the factual in `X`. Their order
            within an id breaks ties.
        X, n_counterfactuals : as in `explain`
        exhaustive : bool
            Whether to query the model for every candidate, as the paper does, instead of best-first. The result is the
            same.
        constraints : as in `explain`
            Candidates that violate one are skipped. Of the explainer's own constraints, only permissions to become
            missing apply.
        sparse, floor, caution, measures, feature_weights, max_changes, max_gower, diverse, robust, progress
            As in `explain`; with `sparse` the candidates are crossed with the factuals.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> candidates = explainer.generate(X.iloc[[0]], n_samples=100)
        >>> explainer.select(candidates, X.iloc[[0]]).frame.equals(explainer.explain(X.iloc[[0]], n_samples=100).frame)
        True
        >>> rich = candidates[candidates["savings"] > 50_000]
        >>> bool(explainer.select(rich, X.iloc[[0]]).frame["savings"].iloc[0] > 50_000)
        True
        """
        from mcce.explain.pipeline import explain_given  # deferred: slow to import

        self._check_fitted()
        schema = self.generator_.schema_
        own, also = read(self.constraints), read(constraints)
        kept = self._constraints([*own, *also]).known
        problem = self._problem(
            also,
            robust,
            progress,
            resolved=dataclasses.replace(self._constraints(also, allow_missing=True), known=kept),
            n_counterfactuals=n_counterfactuals,
            exhaustive=exhaustive,
            sparse=sparse,
            floor=floor,
            caution=caution,
            measures=measures,
            feature_weights=feature_weights,
            max_changes=max_changes,
            max_gower=max_gower,
            diverse=diverse,
        )
        factuals = read_factuals(X, schema, self.decision_, self.learned_.training.spots)
        members = np.flatnonzero(~factuals.wanted)
        matched = match_candidates(candidates, factuals, members, schema, mutable_columns(self.generator_))
        chosen = explain_given(problem, factuals, members, matched)
        settings = dataclasses.asdict(problem.settings)
        described = {name: value for name, value in settings.items() if name not in OF_DRAWS}
        arguments = {
            "n_candidates": len(candidates),
            **{name: described[name] for name in OPTIONS if name in described},
        }
        call = self._call("select", constraints, arguments)
        found = self._tabulate(chosen, {**described, "n_candidates": len(candidates)}, progress, call)
        without_candidates = found.unexplained.index.isin(factuals.index[members[matched.begin == matched.end]])
        found.unexplained.loc[without_candidates, "reason"] = "no candidates were given for this id; add some"
        return found

    @one_native_thread()
    def diagnose(
        self,
        X: Data,
        *,
        training: Data | None = None,
        sample_weight: npt.ArrayLike | None = None,
        n_samples: int = 1000,
        max_factuals: int = 100,
        max_rows: int = 5000,
        random_state: int = 0,
        **settings: Any,
    ) -> Diagnostics:
        """Measure how realistic the candidates and how good the counterfactuals are; see `mcce.diagnostics`.

        Parameters
        ----------
        X : DataFrame or array
            Real rows, preferably held out. One row is generated for each, given its fixed values and its decision, and
            compared with it. Rows without the wanted decision are the factuals.
        training : DataFrame, array or None
            The training rows, for distances to them and copies of them. None uses the table given to `fit`, which is
            not stored with an explainer.
        sample_weight : array or None
            Weights of the rows of X: integers repeat a row; with other weights, rows are resampled by weight to the
            effective sample size. The rows are then numbered 0, 1, ...
        n_samples : int
            K, rows drawn per factual.
        max_factuals, max_rows : int
            Maximum number of factuals and real rows, spread over X.
        random_state : int
            Seed of the discriminator. All draws use the seed of the explainer.
        **settings
            Further arguments of `explain`, as they are used in production: sparse, floor, constraints, ...

        Returns
        -------
        Diagnostics
            Prints as a table; its attributes are the tables themselves, and `plot` draws them.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X.select_dtypes("number")
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X.iloc[:500])
        >>> d = explainer.diagnose(X.iloc[500:], n_samples=100)
        >>> d.evaluation.summary.loc[["violation", "success"], "mean"].tolist()
        [0.0, 1.0]
        >>> d.discriminator.accuracy < 0.7
        True
        """
        self._check_fitted()
        from mcce.diagnostics.diagnose import diagnose  # deferred: slow to import

        with working("diagnosing", None):
            return diagnose(
                self,
                X,
                training=self._training_for("diagnose") if training is None else training,
                sample_weight=sample_weight,
                n_samples=n_samples,
                max_factuals=max_factuals,
                max_rows=max_rows,
                random_state=random_state,
                n_jobs=self.n_jobs,
                options=settings,
            )

    @one_native_thread()
    def trade_off(
        self,
        X: Data,
        floors: float | Sequence[float] = (0, 0.01, 0.05, 0.1, 0.25, 0.5),
        n_samples: int = 1000,
        *,
        measures: MeasureLike | Sequence[MeasureLike] | None = None,
        feature_weights: Mapping[Any, float] | None = None,
        max_changes: int | None = None,
        max_gower: float | None = None,
        training: Data | None = None,
        max_factuals: int = 200,
        max_rows: int = 10_000,
    ) -> TradeOff:
        """Measure the cost of plausibility floors in changes and distance, to help choose one.

        Parameters
        ----------
        X : DataFrame or array
            Rows to explain; rows that already have the wanted decision are skipped.
        floors : sequence of float
            The floors to compare.
        n_samples, measures, feature_weights, max_changes, max_gower : as in `explain`
            For the sparse counterfactuals; the plain method is shown as published, with as many draws.
        training : DataFrame, array or None
            The training rows, for distances to them. None uses the table given to `fit`, which is not stored with an
            explainer.
        max_factuals, max_rows : int
            Maximum number of factuals to explain and of training rows to search, spread over their tables.

        Returns
        -------
        TradeOff
            Prints as a table; `table` has the figures, `plot()` draws them. See `mcce.diagnostics.trade_off`.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X.select_dtypes("number")
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> costs = explainer.trade_off(X, floors=(0, 0.25), n_samples=100, max_factuals=50)
        >>> costs.table.index.tolist()
        ['plain', 'floor 0', 'floor 0.25']
        >>> bool(costs.table["L0"]["floor 0"] <= costs.table["L0"]["plain"])
        True
        """
        self._check_fitted()
        from mcce.diagnostics.trade_off import trade_off

        rows = self._training_for("trade_off") if training is None else training
        if rows is None:
            raise InputError(
                "training rows are not stored with an explainer, and distances to them are needed; pass them as "
                "`training`."
            )
        return trade_off(
            self,
            X,
            floors,
            training=rows,
            n_samples=n_samples,
            measures=measures,
            feature_weights=feature_weights,
            max_changes=max_changes,
            max_gower=max_gower,
            max_factuals=max_factuals,
            max_rows=max_rows,
        )

    @one_native_thread()
    def sensitivity(
        self,
        X: Data,
        *,
        samplers: Sequence[Any] = ("cart", "ctree", "parametric"),
        visit_sequences: Sequence[Any] = (),
        generators: Sequence[Generator | str] = (),
        n_redraws: int = 2,
        **settings: Any,
    ) -> Sensitivity:
        """Measure how much the counterfactuals depend on the conditional models.

        The same factuals are explained with several generators, fitted to the same training rows. Model, decision,
        constraints, relations and plausibility do not change.

        Parameters
        ----------
        X : DataFrame or array
            The factuals.
        samplers : sequence
            Conditional models of chains, each as `MCCE(sampler=)` takes it.
        visit_sequences : sequence
            Visit sequences; every sampler is combined with each of them. () uses that of this explainer.
        generators : sequence
            Further generators: names or objects. A fitted generator is not refitted.
        n_redraws : int
            Number of times that candidates are drawn from each generator, at least 2: differences between redraws
            estimate the Monte Carlo error.
        **settings
            Further arguments of `explain`: n_samples, sparse, floor, ...

        Returns
        -------
        Sensitivity
            Prints as a summary; `features` and `factuals` are tables, `sentence(id)` describes one factual and
            `plot(id)` draws it. See `mcce.diagnostics.sensitivity`.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> depends = explainer.sensitivity(X.head(20), samplers=["cart", "norm"], n_samples=100, sparse=True)
        >>> depends.generators
        ['cart', 'norm']
        >>> print(depends.factuals["explained"].min())
        1.0
        """
        self._check_fitted()
        from mcce.diagnostics.sensitivity import compare_generators

        training = self._training_for("sensitivity")
        if training is None:
            raise InputError(
                "training rows are not stored with an explainer, and sensitivity fits other generators to them; refit."
            )
        fixed = check_fixed(self.fixed, list(as_frame(training)[0].columns))
        settings_of_chain = {name: getattr(self, name) for name in OF_A_CHAIN} | {"random_state": self.generator_.seed_}
        compared: dict[str, Generator] = {}
        for sampler in samplers:
            for order in visit_sequences or [self.visit_sequence]:
                changed = {"sampler": sampler, "visit_sequence": order}
                name = f"{sampler}, {order}" if visit_sequences else str(sampler)
                compared[name] = make_generator(None, fixed, settings_of_chain | changed, self.n_jobs)
        of_named = OF_A_CHAIN | {name: settings_of_chain[name] for name in ("kinds", "random_state")}
        for given in generators:
            allowed = of_named if isinstance(given, str) else OF_A_CHAIN
            compared[str(given)] = make_generator(given, fixed, allowed, self.n_jobs)
        wanted = self.learned_.training.wanted() if self.condition_on_decision else None
        weighting = {} if self.learned_.training.weights is None else {"sample_weight": self.learned_.training.weights}
        explainers: dict[str, MCCE] = {}
        for name, generator in compared.items():
            if not generator.__sklearn_is_fitted__():
                generator.fit(training, wanted, progress=False, **weighting)
            check_givens(generator, fixed, self.condition_on_decision)
            explainers[name] = copy.copy(self)
            explainers[name].generator_ = generator
            explainers[name].learned_ = dataclasses.replace(self.learned_, generator=generator)
        return compare_generators(explainers, X, training=training, wanted=wanted, n_redraws=n_redraws, **settings)

    def explore(self, X: Data) -> Any:
        """Show the rows of a table one by one in an interactive notebook widget.

        Without a notebook, ``mcce explore explainer.mcce people.csv`` opens it in a browser. See vignettes/explorer.md.

        Parameters
        ----------
        X : DataFrame or array
            Rows to explain; the index of a DataFrame gives their ids.

        Returns
        -------
        An anywidget, for Jupyter, VS Code, Colab and marimo; it needs ``pip install 'mcce[explore]'``.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
        >>> explorer = explainer.explore(X)  # doctest: +SKIP
        """
        self._check_fitted()
        from mcce.explore import ExplorerSession
        from mcce.explore.widget import make_widget

        return make_widget(ExplorerSession(self, X))

    def explain_batches(
        self,
        source: Any,
        out: str | PathLike[str],
        *,
        recourse: bool = False,
        id: str | None = None,
        batch_size: int = 10_000,
        n_jobs: int | None = None,
        skip_bad: bool = False,
        missing: Sequence[str] = (),
        letters: Letters | str | PathLike[str] | None = None,
        records: str | PathLike[str] | None = None,
        progress: Progress = None,
        **settings: Any,
    ) -> BatchResult:
        """Explain a table of any size, batch by batch, into a folder of Parquet files.

        An interrupted run can be resumed by the same call: finished parts are kept. The files are byte-identical to
        those of an uninterrupted run, for any number and kind of workers. See `mcce.batches`.

        Parameters
        ----------
        source : file, folder, DataFrame or iterable of DataFrames
            Parquet or CSV (.csv, .csv.gz), or a folder of such files; columns that are not features are ignored. To
            resume a run on frames, pass the same frames again.
        out : str or path
            A new folder, or the folder of an interrupted run with the same source, settings and explainer; any other
            folder raises an error. Only one run at a time can write to it.
        recourse : bool
            Whether to search for actions (`recourse`) instead of counterfactuals (`explain`). The result table then
            distinguishes actions and consequences, and has a sentence per row.
        id : str, optional
            Column with a unique id for each row of the source. By default, rows are numbered from 0; the index of a
            frame is not read. Constraints on single factuals name these ids.
        batch_size : int
            Maximum number of rows per part; a part never spans two files.
        n_jobs : int, optional
            Number of workers: processes, unless `joblib.parallel_config` selects "threading" or "dask". The explainer
            is sent to each once, so its model must be picklable.
        skip_bad : bool
            Whether rows that cannot be read or explained are listed in `bad-rows.csv` and skipped; otherwise the first
            one raises an error with its file and position. A row with an unknown level is unexplained, not bad.
        missing : list of str
            CSV cells that denote a missing value, in addition to the empty cell.
        letters : folder or mcce.batches.Letters, optional
            Folder for one letter per person, as written by `mcce.report.letters`; a resumed run continues it. Rows
            without a letter are listed with the reason in `unlettered.csv` of `out`.
        records : folder, optional
            A new or empty folder to which the record of each row is written at the end, in one chain in the order of
            the source; see `mcce.records`. An interrupted run continues its chain.
        progress : bool, "log" or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second. "log" writes lines
            with the rate and the remaining time to standard error.
        **settings
            As in `explain`: `n_samples`, `sparse`, `constraints`, ...; with ``recourse=True`` as in `recourse`. To see
            why a row has no counterfactual, explain it alone and call ``found.why_unexplained(id)``.

        Returns
        -------
        BatchResult
            The folder, its manifest and how many rows there were; ``pandas.read_parquet(out / "counterfactuals")``
            reads what was found.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = explainer.explain_batches(X, f"{folder}/out", batch_size=100, n_samples=50)
        ...     print(done.totals["rows"], len(done.manifest["parts"]))
        300 3
        """
        self._check_fitted()
        check_flag(recourse, "recourse")
        check_flag(skip_bad, "skip_bad")
        from mcce.batches import explain_batches

        method = "recourse" if recourse else "explain"
        return explain_batches(
            self,
            source,
            out,
            method=method,
            settings=settings,
            learned=self._learn_for_workers(method, settings, progress),
            spots=self.learned_.training.spots,
            id=id,
            batch_size=batch_size,
            n_jobs=n_jobs,
            skip_bad=skip_bad,
            missing=missing,
            letters=letters,
            records=records,
            progress=progress,
        )

    def _learn_for_workers(self, method: str, settings: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """Check the settings of a method, and learn what it needs of the training rows, which workers do not have.

        Return the settings to replace.
        """
        schema, shown = self.generator_.schema_, None if progress == "log" else progress
        known = [name for name in inspect.signature(getattr(self, method)).parameters if name not in ("X", "progress")]
        given = {name: value for name, value in settings.items() if name in known}
        given["constraints"] = [each for each in read(given.get("constraints", ())) if not isinstance(each, OfFactuals)]
        getattr(self, method)(schema.decode(np.empty((0, len(schema)))), **given, progress=shown)
        if given.get("sparse"):
            self.learned_.learn_usual()
        measures = given.get("measures")
        return {} if measures is None else {"measures": self.learned_.learn_measures(measures)}

    def save(
        self, path: str | PathLike[str], *, donors: Donors = "all", about: Mapping[str, str] | None = None
    ) -> None:
        """Write the fitted explainer to one file, without pickle and without the model; an existing file is replaced.

        **The file holds training values**, unless the explainer was fitted with `mcce.Privacy`; ``mcce inspect FILE``
        lists what it discloses. The plausibility score, needed for ``sparse=True``, is fitted now if it is not yet.

        Parameters
        ----------
        path : str or path
        donors : "all" or "none"
            "none" leaves the training values out; see `ChainModel.save`. Such an explainer does not support
            ``sparse=True``, does not count copies of training rows, and has no relations between columns.

        Examples
        --------
        >>> import mcce, tempfile
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> loans = mcce.datasets.load_loans(300)
        >>> X = loans.X.select_dtypes("number")
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, ~loans.y)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     explainer.save(f"{folder}/loans.mcce")
        ...     again = mcce.MCCE.load(f"{folder}/loans.mcce", model=model)
        >>> again.explain(X.head(20)).frame.equals(explainer.explain(X.head(20)).frame)
        True
        """
        self._check_fitted()
        names = _stored_settings(type(self))
        everything = donors == "all"
        kept = slice(None if everything else 0)
        learned = self.learned_
        spots = learned.training.spots
        can_learn = everything and (learned.caution is not None or learned.has_rows)
        caution = learned.learn_caution(None) if can_learn else None
        if everything and learned.has_rows:
            learned.learn_anonymity(simplest(self.constraints, self.generator_.schema_))
        fields = {
            "settings": {
                **{name: unfitted(getattr(self, name)) for name in names if name != "graph"},
                "graph": None if self.graph is None else self.generator_.graph_,
            },
            "decision": write_decision(self.decision),
            "constraints": read(self.constraints),
            "generator": self.generator_.stored(donors),
            "chosen": self.generator if isinstance(self.generator, str) else self.generator is not None,
            "positions": spots.positions[kept].astype(np.int64),
            "rows": spots.rows[kept],
            "scores": spots.answer.scores[kept],
            "wanted": spots.answer.wanted[kept],
            "plausibility": None if caution is None else caution.plausibility,
            "margins": None if caution is None else caution.margins,
            "steps": None if caution is None else caution.distance,
            "distances": learned.learn_distances() if everything else {},
            "usual": learned.learn_usual() if everything else None,
            "training_rows": learned.learn_rows() if everything else None,
            "training_keys": [learned.keys[columns] for columns in sorted(learned.keys)] if everything else [],
            "worlds": list(learned.worlds) if everything else [],
            "relations": self.relations_ if everything else None,
            "derived": [each if everything else each.without_rows() for each in self.derived_],
            "fit_seconds": float(self.fit_seconds_),
        }
        described = {
            "donors": self.generator_.kept_values(donors),
            "decision": self.decision_.describe(),
            "model": type(self.model).__name__,
        }
        save_fields(path, "MCCE", fields, {**(about or {}), **described}, lambda written: check_fields(written, names))

    @classmethod
    def load(
        cls: type[Self],
        path: str | PathLike[str],
        model: Any = None,
        *,
        decision: Any = None,
        derived: Mapping[Hashable, FrameFunction] | None = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Load an explainer from a file written by `save`, with its model.

        Nothing in the file is executed. A damaged, manipulated or newer file raises an `InputError`.

        Parameters
        ----------
        path : str or path
        model : object, callable or dict
            The model that the explainer was fitted with; for `Several` models a dict by name. A warning is issued if
            its predictions for some training rows differ.
        decision : callable or None
            The wanted decision, if it is a function; otherwise it is read from the file.
        derived : dict or None
            The functions of derived columns, by column; formulas are read from the file.
        n_jobs : int or None
            Threads, as in the constructor.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
        >>> def score(rows):
        ...     return (rows["savings"] + rows["salary"]) / 200_000
        >>> explainer = mcce.MCCE(score, fixed=["age"], random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     explainer.save(f"{folder}/loans.mcce")
        ...     again = mcce.MCCE.load(f"{folder}/loans.mcce", model=score)
        >>> again.fixed
        ['age']
        """
        known = _stored_settings(cls)
        fields = load_fields(path, "MCCE", lambda written: check_fields(written, known))
        wanted = read_decision(fields["decision"], model, decision)
        chosen = fields["generator"] if fields["chosen"] is True else fields["chosen"] or None  # an object, or a name
        formulas = with_functions(fields["derived"], derived or {})
        parts: Fields = {"generator": chosen, "constraints": fields["constraints"], "n_jobs": n_jobs}
        parts["derived"] = {each.target: each.function or each.text for each in formulas} or None
        several = isinstance(wanted, Several)
        make: Any = cls  # typed Any: the parameters come from the file
        made: Self = make(None if several else model, decision=wanted, **parts, **fields["settings"])
        made.names_ = Names.read(made.names, fields["generator"].schema_.names)
        made.decision_ = resolve_decision(wanted, made.model)
        made.generator_ = fields["generator"]
        made.generator_.n_jobs = n_jobs
        schema = made.generator_.schema_
        answer = Answer(fields["scores"], fields["wanted"])
        spots = SpotCheck(fields["positions"].astype(np.intp), fields["rows"], answer)
        plausibility, margins, steps = (fields[name] for name in ("plausibility", "margins", "steps"))
        made.learned_ = LearnedParts(
            TrainingTable(None, schema, made.decision_, spots),
            made.generator_,
            n_jobs,
            caution=None if plausibility is None else Caution(plausibility, margins, distance=steps),
            usual=fields["usual"],
            rows=fields["training_rows"],
            keys={keys.columns: keys for keys in fields["training_keys"]},
            distances=fields["distances"],
            worlds=tuple(fields["worlds"]),
        )
        made.relations_ = fields["relations"] or Relations()
        made.derived_ = formulas
        made.fit_seconds_ = fields["fit_seconds"]
        spots.compare_models(made.decision_, schema)
        return made

    def __repr__(self) -> str:
        decision = self.decision if not isinstance(self.decision, Interval) else str(self.decision)
        drawn = f"sampler={self.sampler!r}" if self.generator is None else f"generator={self.generator!r}"
        model = None if self.model is None else type(self.model).__name__
        return f"MCCE({model}, decision={decision!r}, fixed={list(self.fixed)!r}, {drawn})"

    def _problem(
        self,
        given: Sequence[Constraint],
        robust: float | Robust | None,
        progress: bool | None,
        resolved: Constraints | None = None,
        **options: Any,
    ) -> Problem:
        """Return the problem that `explain` and `select` solve; `options` are those of `read_settings`.

        `given` are the constraints, `resolved` the same for the columns of the table, if known.
        """
        constraints = self._constraints(given) if resolved is None else resolved
        parts = simplest(given, self.generator_.schema_)
        anonymity = self.learned_.learn_anonymity(parts)
        settings = read_settings(exclude_training=any(isinstance(each, NoCopies) for each in parts), **options)
        learned = self.learned_.learn_caution(progress) if settings.sparse else None
        plausibility = None if learned is None else learned.plausibility
        order = self.learned_.learn_order(options["measures"], options["feature_weights"], plausibility)
        caution = None if learned is None else dataclasses.replace(learned, strength=settings.caution)
        robust = Robust.read(robust)
        schema = self.generator_.schema_
        model = EncodedModel(self.decision_, schema)
        robustness = None
        if robust is not None:
            arguments = self.decision, self.decision_, schema, mutable_columns(self.generator_), self.generator_.seed_
            robustness = Robustness.resolve(robust, *arguments)
        demanded = robustness is not None and robustness.share is not None
        relations = self.relations_ if settings.sparse or self.relations_.are_given else Relations()
        relations = relations.with_formulas(self.derived_)
        return Problem(
            generator=self.generator_,
            decision=self.decision_,
            question=ConfirmedModel(model, robustness) if demanded and robustness is not None else model,
            settings=settings,
            order=order,
            constraints=constraints or None,
            caution=caution,
            training=self.learned_.learn_rows(needed=settings.exclude_training),
            robustness=robustness,
            relations=keep_relations(relations, schema, fixed_columns(self.generator_)),
            anonymity=anonymity,
            stops=self.learned_.learn_stops(self.names_.units) if settings.sparse and settings.caution > 0.0 else None,
            names=self.names_.for_display(schema, exact=settings.sparse),
            threads=count_jobs(self.n_jobs),
        )

    def _constraints(self, given: Sequence[Constraint], *, allow_missing: bool = False) -> Constraints:
        """Resolve constraints for the columns of the table."""
        schema = self.generator_.schema_
        derived = DerivedColumns(self.derived_, schema) if self.derived_ else None
        return resolve(given, schema, self.generator_.fixed_, allow_missing=allow_missing, derived=derived)

    def fingerprint(self) -> dict[str, Any]:
        """Return what identifies the explainer in records; see `mcce.explain.origin`.

        Returns
        -------
        dict
            `seed`; `decision`, the wanted decision with its bounds or classes; `model` with its type and a fingerprint
            of its predictions for fixed probe rows, which are not training rows; `explainer` with a fingerprint of its
            settings and draws; `training` with the number of training rows and the hash of the table, None if these
            are unknown or the fit is private; and `versions`.

        Examples
        --------
        >>> import mcce
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary", "savings"]]
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 1e5, fixed=["age"], random_state=1).fit(X)
        >>> made_with = explainer.fingerprint()
        >>> list(made_with), made_with["training"]["rows"], len(made_with["model"]["fingerprint"])
        (['seed', 'decision', 'model', 'explainer', 'training', 'versions'], 300, 64)
        """
        self._check_fitted()
        from mcce.explain.origin import fingerprint_of

        return fingerprint_of(self, self.learned_.learn_rows())

    def _call(self, method: str, constraints: Any, arguments: Mapping[str, Any]) -> Callable[[], Origin]:
        """Return a cached function that describes the origin of a result."""
        return functools.cache(lambda: Origin.from_call(self.fingerprint(), method, arguments, read(constraints)))

    def _tabulate(
        self, found: Explanation, described: Mapping[str, object], progress: bool | None, origin: Callable[[], Origin]
    ) -> Counterfactuals:
        """Return the tables of a result; `described` are the settings of the call, extended by those of the fit."""
        from mcce.explain.followup import questions_of
        from mcce.explain.tabulate import tabulate

        anonymity, schema = found.problem.anonymity, self.generator_.schema_
        described = {**described, **self.generator_.describe(), "condition_on_decision": self.condition_on_decision}
        described |= {} if anonymity is None else anonymity.describe(schema.names)
        questions = questions_of(found, described, self.fit_seconds_, self.learned_.learn_usual, progress)
        return tabulate(found, described, self.fit_seconds_, dataclasses.replace(questions, origin=origin))

    def _check_fitted(self) -> None:
        if not hasattr(self, "fit_seconds_"):
            raise exceptions.NotFittedError(
                "this MCCE is not fitted; call ", PythonOnly("fit(X)"), " with the training rows first."
            )


def _stored_settings(cls: type[MCCE]) -> list[str]:
    """Return the parameters of an explainer that its file stores unchanged."""
    return [name for name in inspect.signature(cls.__init__).parameters if name not in ("self", *GIVEN_AGAIN)]
