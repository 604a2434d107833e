"""MCCE: Monte Carlo sampling of counterfactual explanations (Redelmeier, Jullum, Aas and Løland).

1. `fit` learns p(mutable | fixed, y') as a chain of conditionals (paper, section 2.1); y' says whether a training row
   has the wanted decision.
2. `explain` draws rows for each factual, given its fixed values and y' = 1 (section 2.2), and selects valid rows with
   the fewest changes, then the smallest Gower distance (section 2.3). `sparse=True` crosses the draws with the factual.

The plausibility score and the relations between columns are learned at the first sparse search, from the training rows
that `fit` kept; they depend on these and on the seed only.
"""

from __future__ import annotations

import pickle
import time
import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from io import BytesIO
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, clone

from mcce._utils import Floats, atomic_path, check_count, check_flag, check_number, count_jobs, one_native_thread
from mcce.constraints import Constraints, read_constraints, resolve
from mcce.counterfactuals import Counterfactuals
from mcce.distances import DEFAULT, Gower, Measure, changed, resolve_measures
from mcce.exceptions import InputError, NotFittedError, listing, spell, warn
from mcce.explain.acceptance import Acceptance
from mcce.explain.cost import Cost
from mcce.explain.draw import Pools, draw_shared
from mcce.explain.factuals import read_factuals, read_rows
from mcce.explain.plain import Counts
from mcce.explain.problem import Factuals, Problem
from mcce.explain.run import Explanation, explain, search
from mcce.explain.tabulate import tabulate
from mcce.generators import ChainModel, Generator
from mcce.model import Query, bind
from mcce.model.query import check_wanted
from mcce.plausibility.derived import Derived
from mcce.plausibility.find import find_relations
from mcce.plausibility.relations import Relations
from mcce.plausibility.score import Score
from mcce.rng import hash_rows
from mcce.table import Data, Kind, Table, as_frame
from mcce.table.checks import find_labels

VERSION = version("mcce")
FORMAT = 1  # of saved files
MOST_SAMPLES = 10**7


@dataclass(frozen=True)
class Learned:
    """What the first sparse search learns from the training rows."""

    score: Score
    cost: Cost
    relations: Relations


class MCCE(BaseEstimator):  # type: ignore[misc]
    """Counterfactual explanations for any model on tabular data.

    Parameters
    ----------
    model : object or callable
        Anything with predict_proba, decision_function or predict, or a function of a table. It gets tables with exactly
        the columns, order and dtypes of the training data. None if `decision` is a function of a table.
    decision : (low, high), Interval, label, list of labels, or callable
        The wanted decision: an interval of the score, a class (or several), or a function of a table that returns
        booleans.
    fixed : list of column names
        Features that never change.
    sampler, visit_sequence, predictors, kinds : see `ChainModel`
    condition_on_decision : bool
        Whether the chain conditions on the wanted decision (y' of the paper), which makes most draws valid.
    generator : Generator or None
        An unfitted generator of candidates in place of a chain, with the same `fixed`; it has its own parameters.
    constraints : list
        `allow`, `rule` (or its text) and `no_copies`, for every call of `explain`.
    derived : dict or None
        Columns that are computed from others: ``{"dti": "(rent + instalment) / income"}``, or functions of a frame.
        They are recomputed for every candidate and do not count as changes.
    random_state : int or None
        Seed. One seed gives one answer, for any names and order of columns, other factuals, threads and blocks. None
        draws one, kept in ``settings["seed"]`` of every result.
    n_jobs : int or None
        Threads, as in scikit-learn: `fit` learns several conditionals at once, and `explain` searches blocks of up to
        4,096 factuals. For many more factuals, processes gain more (`mcce.distributed`).

    Attributes
    ----------
    generator_ : the fitted generator.
    relations_ : relations between columns, found or given; available after the first sparse search.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans(500)
    >>> refused = loans.X[loans.model.predict_proba(loans.X)[:, 1] >= 0.1]
    >>> granted = mcce.Interval(0, 0.1, closed="left", of=True)
    >>> explainer = mcce.MCCE(loans.model, decision=granted, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> counterfactuals = explainer.explain(refused.head(3))
    >>> counterfactuals.frame.index.names, list(counterfactuals.measures.columns)
    (FrozenList(['id', 'rank']), ['prediction', 'L0', 'gower', 'gower_sum'])
    """

    generator_: Generator

    def __init__(
        self,
        model: Any,
        *,
        decision: Any = (0.5, 1.0),
        fixed: Sequence[Hashable] = (),
        sampler: Any = "cart",
        visit_sequence: Any = "data",
        predictors: Mapping[Any, Sequence[Any]] | None = None,
        condition_on_decision: bool = True,
        generator: Generator | None = None,
        kinds: Mapping[Any, Kind] | None = None,
        constraints: Any = (),
        derived: Mapping[Hashable, Any] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.decision = decision
        self.fixed = fixed
        self.sampler = sampler
        self.visit_sequence = visit_sequence
        self.predictors = predictors
        self.condition_on_decision = condition_on_decision
        self.generator = generator
        self.kinds = kinds
        self.constraints = constraints
        self.derived = derived
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -----------------------------------------------------------------------------------------------------------------

    @one_native_thread()
    def fit(
        self, X: Data, y: None = None, *, sample_weight: npt.ArrayLike | None = None, relations: Any = None
    ) -> MCCE:
        """Query the model for the training rows, and fit the generator.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Training rows: the model's features, without the response.
        y : ignored
            The method learns from the model's answers, not from the true response.
        sample_weight : array or None
            One weight for each row, see `ChainModel.fit`.
        relations : list or None
            Relations that counterfactuals keep, as texts such as ``"total == a + b"``. None finds them at the first
            sparse search (`find_relations`), and keeps none in a plain one; a list replaces them; () is none.
        """
        begun = time.perf_counter()
        self.__dict__.pop("generator_", None)  # a failed fit must not leave a fitted explainer
        check_flag(self.condition_on_decision, "condition_on_decision")
        frame = as_frame(X, "X")
        decision = bind(self.model, self.decision, margins=False)
        wanted = predictions = None
        if self.condition_on_decision and frame.size:  # the generator refuses an empty table
            answer = decision.answer(X, "the training rows")
            check_wanted(answer, decision.text)
            wanted, predictions = answer.wanted, answer.prediction
        generator = self._make_generator()
        generator.fit(X, wanted, sample_weight=sample_weight)
        if sample_weight is not None and wanted is not None:
            has_weight = np.asarray(sample_weight, dtype=np.float64) != 0
            predictions, wanted = predictions[has_weight], wanted[has_weight]  # type: ignore[index]
        schema = generator.schema_
        self._training = Table(schema.features, generator.training_)
        self._predictions, self._wanted = predictions, wanted  # of the training rows, None if they were not queried
        self._derived = Derived.read(self.derived, schema, generator.training_, generator.fixed_)
        self._constraints = resolve(self.constraints, schema, generator.fixed_)
        self._gower = Gower.fit(self._training)
        self._learned: Learned | None = None
        self._lock = Lock()
        self._relations = None if relations is None else self._read_relations(relations, generator)
        self.generator_ = generator
        self.n_features_in_ = frame.shape[1]
        self.fit_seconds_ = time.perf_counter() - begun
        return self

    def _make_generator(self) -> Generator:
        """Return an unfitted generator: a chain, or a clone of the given one."""
        if self.generator is None:
            return ChainModel(
                fixed=self.fixed,
                sampler=self.sampler,
                visit_sequence=self.visit_sequence,
                predictors=self.predictors,
                kinds=self.kinds,
                random_state=self.random_state,
                n_jobs=self.n_jobs,
            )
        if not isinstance(self.generator, Generator):
            raise InputError(
                f"generator is {spell(self.generator)}; give an unfitted mcce Generator, such as ChainModel()."
            )
        defaults = {"sampler": "cart", "visit_sequence": "data", "predictors": None, "kinds": None}
        ignored = [name for name, default in defaults.items() if getattr(self, name) != default]
        if ignored:
            has = "has" if len(ignored) == 1 else "have"
            raise InputError(f"{listing(ignored)} {has} no effect beside generator; give it to the generator itself.")
        if list(self.generator.fixed) != list(self.fixed):
            raise InputError(
                f"the generator has fixed={list(self.generator.fixed)!r}, and fixed is {list(self.fixed)!r}; give "
                "both the same features."
            )
        generator: Generator = clone(self.generator)
        if generator.random_state is None:
            generator.random_state = self.random_state
        return generator

    @property
    def relations_(self) -> Relations:
        """The relations that sparse counterfactuals keep; learned at the first sparse search."""
        self._check_fitted()
        return self._learn().relations

    # -----------------------------------------------------------------------------------------------------------------

    @one_native_thread()
    def explain(
        self,
        X: Data,
        *,
        n_samples: int = 1000,
        n_counterfactuals: int = 1,
        sparse: bool = False,
        floor: float = 0.05,
        diverse: bool = False,
        constraints: Any = (),
        relations: Any = None,
        measures: Any = None,
        max_changes: int | None = None,
        max_gower: float | None = None,
        independent: bool = False,
        progress: bool | None = None,
    ) -> Counterfactuals:
        """Explain rows that lack the wanted decision.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Rows with the training columns; the index names them.
        n_samples : int
            Draws for each factual (K of the paper).
        n_counterfactuals : int
            Rows for each factual, best first.
        sparse : bool
            Cross the draws with the factual, so that few features change, each of them needed, and reject rows below
            the floor. False is the published method.
        floor : float
            Share of real rows that are rejected as implausible in a sparse search, from 0 to below 1.
        diverse : bool
            Whether the rows of a sparse search change different sets of columns.
        constraints : list
            Further constraints, see `MCCE`.
        relations : list or None
            Relations that the rows keep, in place of those of `fit`; () for none.
        measures : name, function, or list
            The order of candidates: "L0", "gower", "gower_sum", "hvdm", "ivdm", or functions of (candidates, factual).
            None is the paper's ("L0", "gower"); in a sparse search changes, then cost (`mcce.explain.cost`).
        max_changes, max_gower : number or None
            Bounds on the number of changes, and on the Gower distance.
        independent : bool
            Whether each factual has its own draws, instead of a pool shared by factuals with equal fixed values.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        """
        self._check_fitted()
        begun = time.perf_counter()
        options = {
            "n_samples": check_count(n_samples, "n_samples", most=MOST_SAMPLES),
            "n_counterfactuals": check_count(n_counterfactuals, "n_counterfactuals"),
            "sparse": check_flag(sparse, "sparse"),
            "floor": check_number(floor, "floor", 0.0, 1.0, below_high=True),
            "diverse": check_flag(diverse, "diverse"),
            "independent": check_flag(independent, "independent"),
            "max_changes": max_changes,
            "max_gower": max_gower,
        }
        if not sparse and floor != 0.05:
            raise InputError(f"floor is {floor}, which has no effect without sparse=True; set it, or leave floor out.")
        if diverse and not (sparse and n_counterfactuals > 1):
            raise InputError(
                "diverse=True has no effect without sparse=True and n_counterfactuals of at least 2; set them."
            )
        problem = self._problem(options, constraints, relations, measures, progress)
        factuals = read_factuals(X, self.generator_, problem.query)
        explained = explain(problem, factuals)
        self._warn(explained)
        return self._tabulate(explained, options, time.perf_counter() - begun)

    @one_native_thread()
    def generate(
        self, X: Data, n_samples: int = 1000, *, constraints: Any = (), independent: bool = False
    ) -> pd.DataFrame:
        """Return draws for each row of X, indexed by (id, draw): step 2 of the method on its own."""
        self._check_fitted()
        options = {"n_samples": check_count(n_samples, "n_samples", most=MOST_SAMPLES)}
        options["independent"] = check_flag(independent, "independent")
        problem = self._problem(options, constraints, (), None, None)
        schema, frame = self.generator_.schema_, read_rows(X)
        factuals = np.ascontiguousarray(schema.encode(frame, "X").matrix)
        pools = draw_shared(problem, factuals)
        sizes = pools.end - pools.begin
        owner = np.repeat(np.arange(len(factuals)), sizes)
        draw = np.arange(owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = pools.rows(draw + pools.begin[owner])
        index = pd.MultiIndex.from_arrays([frame.index[owner], draw], names=["id", "draw"])
        return schema.decode(self._derived.complete(rows, factuals[owner]), index)

    @one_native_thread()
    def select(
        self,
        candidates: pd.DataFrame,
        X: Data,
        *,
        n_counterfactuals: int = 1,
        constraints: Any = (),
        measures: Any = None,
        max_changes: int | None = None,
        max_gower: float | None = None,
    ) -> Counterfactuals:
        """Return the best valid candidates of each row of X: step 3 of the method on its own.

        `candidates` are indexed as `generate` returns them: the first level of the index names the row of X.
        """
        self._check_fitted()
        begun = time.perf_counter()
        options = {
            "n_counterfactuals": check_count(n_counterfactuals, "n_counterfactuals"),
            "max_changes": max_changes,
            "max_gower": max_gower,
        }
        problem = self._problem(options, constraints, None, measures, None)
        factuals = read_factuals(X, self.generator_, problem.query)
        pools = self._match(candidates, factuals)
        searched = factuals.searched
        acceptance = Acceptance(problem, factuals.matrix[searched])
        winners, counts, refuted = search(acceptance, pools.take(searched))
        counts_of_all = Counts.zeros(len(factuals))
        counts_of_all.write(searched, counts)
        not_confirmed = np.isin(np.arange(len(factuals)), searched[refuted])
        winners = winners.of_factuals(searched)
        explained = Explanation(problem, factuals, winners, counts_of_all, not_confirmed, 0.0, 0.0)
        self._warn(explained)
        return self._tabulate(explained, options, time.perf_counter() - begun)

    def _match(self, candidates: pd.DataFrame, factuals: Factuals) -> Pools:
        """Return given candidates as pools of the factuals that their index names."""
        if not isinstance(candidates, pd.DataFrame):
            raise InputError(f"candidates is a {type(candidates).__name__}; give a DataFrame as `generate` returns it.")
        ids = candidates.index.get_level_values(0)
        owner = find_labels(factuals.index, ids)
        if (owner < 0).any():
            unknown_id = ids[owner < 0][0]
            raise InputError(
                f"candidates has rows for {spell(unknown_id)}, which is not in the index of X; take them out."
            )
        rows = self.generator_.schema_.encode(candidates.reset_index(drop=True), "candidates").matrix
        fixed = slice(0, self.generator_.n_fixed_)
        before, after = factuals.matrix[owner][:, fixed], rows[:, fixed]
        is_changed = changed(after, before)
        is_changed[np.isin(owner, list(factuals.unknown))] = False  # they are not searched
        if is_changed.any():
            at, j = np.argwhere(is_changed)[0]
            raise InputError(
                f"candidates changes the fixed feature {spell(self.generator_.schema_.names[j])} of {spell(ids[at])}; "
                "fixed features stay as in X."
            )
        order = np.argsort(owner, kind="stable")
        places = np.arange(len(factuals))
        begin, end = (np.searchsorted(owner[order], places, side=side) for side in ("left", "right"))
        return Pools(np.require(rows[order].T, np.float64, ["C"]), begin, end)

    # -----------------------------------------------------------------------------------------------------------------

    def _problem(
        self, options: Mapping[str, Any], constraints: Any, relations: Any, measures: Any, progress: bool | None
    ) -> Problem:
        """Return the requirements of a call."""
        generator, sparse = self.generator_, options.get("sparse", False)
        query = Query(
            self.model, self.decision, generator.schema_, training_predictions=self._predictions, margins=sparse
        )
        resolved = self._resolve(constraints)
        learned = self._learn() if sparse else None
        if relations is not None:
            kept_relations = self._read_relations(relations, generator)
        else:
            kept_relations = (self._relations or Relations()) if learned is None else learned.relations
        max_changes, max_gower = options.get("max_changes"), options.get("max_gower")
        n_columns = len(generator.schema_)
        return Problem(
            generator=generator,
            query=query,
            constraints=resolved,
            derived=self._derived,
            relations=kept_relations,
            gower=self._gower,
            measures=None if measures is None else self._measures(measures, sparse),
            score=None if learned is None else learned.score,
            cost=None if learned is None else learned.cost,
            training_hashes=hash_rows(generator.training_) if resolved.no_copies else None,
            n_samples=options.get("n_samples", 1),
            k=options.get("n_counterfactuals", 1),
            sparse=sparse,
            floor=options.get("floor", 0.05),
            diverse=options.get("diverse", False),
            independent=options.get("independent", False),
            max_changes=np.inf if max_changes is None else min(check_count(max_changes, "max_changes"), n_columns),
            max_steps=np.inf
            if max_gower is None
            else n_columns * check_number(max_gower, "max_gower", 0.0) * (1 + 1e-12),
            n_jobs=count_jobs(self.n_jobs),
            progress=progress,
        )

    def _read_relations(self, relations: Any, generator: Generator) -> Relations:
        computed = self._derived.columns
        return Relations.read(relations, generator.schema_, generator.training_, generator.n_fixed_, computed)

    def _resolve(self, constraints: Any) -> Constraints:
        """Return the explainer's constraints and those of a call."""
        further = read_constraints(constraints)
        if not further:
            return self._constraints
        return resolve([*read_constraints(self.constraints), *further], self.generator_.schema_, self.generator_.fixed_)

    def _measures(self, measures: Any, sparse: bool) -> tuple[Measure, ...] | None:
        """Return the order of candidates; None for the paper's in a plain search, which has faster code for it."""
        resolved = resolve_measures(measures, self.generator_.schema_, self.generator_.training_, self._wanted)
        is_default = not sparse and not callable(measures) and tuple(measure.name for measure in resolved) == DEFAULT
        return None if is_default else tuple(resolved)

    def _learn(self) -> Learned:
        """Learn score, cost and relations once."""
        with self._lock:
            if self._learned is None:
                seed = self.generator_.seed_
                score = Score.learn(self._training, seed)
                margins = self._training_margins()
                relations = self._relations
                if relations is None:
                    relations = find_relations(
                        self._training, n_fixed=self.generator_.n_fixed_, derived=self._derived.columns
                    )
                self._learned = Learned(score, Cost.fit(self._training, margins), relations)
        return self._learned

    def _training_margins(self) -> Floats:
        """Return the margins of the training rows that have the wanted decision."""
        query = Query(self.model, self.decision, self.generator_.schema_, training_predictions=self._predictions)
        answer = query(self.generator_.training_, "the training rows")
        return answer.margin[answer.wanted]

    def _warn(self, explained: Explanation) -> None:
        if explained.not_confirmed.any():
            warn(
                "the model gave other answers when it was asked again about the rows of "
                f"{explained.not_confirmed.sum()} factual(s); only confirmed rows are returned. Its answers are "
                "random: use probabilities or counted votes."
            )

    def _tabulate(self, explained: Explanation, options: Mapping[str, Any], seconds: float) -> Counterfactuals:
        query = explained.problem.query
        settings = {
            "mcce": VERSION,
            "seed": self.generator_.seed_,
            "decision": query.text,
            **options,
            "rows_queried": query.n_rows,
            "seconds": round(seconds, 3),
            "seconds_fit": round(self.fit_seconds_, 3),
            "seconds_model": round(query.seconds, 3),
            "seconds_generate": round(explained.seconds_generate, 3),
            "seconds_select": round(explained.seconds_select, 3),
        }
        return tabulate(explained, self.generator_.training_, settings)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this MCCE is not fitted; call fit(X) first.")

    def __sklearn_is_fitted__(self) -> bool:
        return "generator_" in vars(self)

    def __sklearn_clone__(self) -> MCCE:
        """Return an unfitted copy that explains the same fitted model."""
        parameters = self.get_params(deep=False)
        cloned = {name: clone(parameters[name], safe=False) for name in ("sampler", "generator")}
        return type(self)(**{**parameters, **cloned})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    # -----------------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted explainer by joblib, with its training rows, which the sparse search needs.

        The model is saved too, unless it cannot be pickled; then a warning says that `load` needs it again. A file is
        trusted like code: load only files that you trust.
        """
        self._check_fitted()
        if type(self) is not MCCE:
            raise InputError(f"save() is for MCCE itself; use joblib.dump for its subclass {type(self).__name__}.")
        state = {**self.__getstate__(), "model": None}
        header = {"format": FORMAT, "version": VERSION, "class": "MCCE"}
        try:
            model: Any = pickle.dumps(self.model)
        except Exception as error:  # pickle raises many kinds
            warn(f"the model is left out of {str(path)!r}, because it cannot be pickled ({error}); give it to load().")
            model = None
        with atomic_path(path) as temporary:
            try:
                joblib.dump({**header, "state": state, "model": model}, temporary, compress=3)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                says = f"the explainer cannot be saved ({error}); define the functions that it was given in a module."
                raise InputError(says) from error


def load(path: str | PathLike[str], model: Any = None) -> MCCE:
    """Return an explainer saved by `MCCE.save`; a file is trusted like code, as in scikit-learn.

    `model` replaces the saved one, and is needed if that could not be saved.
    """
    try:
        content = joblib.load(BytesIO(zlib.decompress(Path(path).read_bytes())))  # zlib checks the sum
    except OSError:
        raise
    except Exception as error:
        cause = str(error) or type(error).__name__
        raise InputError(
            f"{str(path)!r} is not a saved explainer ({cause}); save one by explainer.save(path)."
        ) from error
    if not isinstance(content, dict) or content.get("class") != "MCCE" or content.get("format") != FORMAT:
        raise InputError(f"{str(path)!r} does not hold an explainer of this format; fit it again and save it.")
    if content["version"] != VERSION:
        warn(f"{str(path)!r} was saved by mcce {content['version']}, and this is {version('mcce')}.")
    if model is None and content["model"] is None:
        message = f"{str(path)!r} holds no model, because it could not be saved; give it: load(path, model=...)."
        raise InputError(message)
    if model is None:
        try:
            model = pickle.loads(content["model"])
        except Exception as error:  # pickle raises many kinds
            raise InputError(
                f"the model in {str(path)!r} cannot be loaded ({type(error).__name__}: {error}); install its packages, "
                "or give it: load(path, model=...)."
            ) from error
    explainer = MCCE.__new__(MCCE)
    explainer.__setstate__({**content["state"], "model": model})
    return explainer
