"""MCCE: Monte Carlo sampling of valid and realistic counterfactual explanations (Redelmeier, Jullum, Aas, Løland).

1. Model (`fit`). Learn p(mutable | fixed, y') as a chain of conditionals, or by another generator; y' says whether the
   model gives a training row the wanted decision (paper, section 2.1).
2. Generate. For each factual draw K rows, given its own fixed values and y' = 1 (section 2.2). Factuals that agree in
   their fixed values share one pool of draws.
3. Select. Keep the valid rows; take the fewest changes, then the smallest Gower distance, then the earlier draw
   (section 2.3, `mcce.explain`).

Pools stream through steps 2 and 3 in blocks (`mcce.explain.search`) and only the winners are kept, so memory does not grow with
the number of factuals. `mcce.method.MCCE` is this explainer together with its diagnostics.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from mcce.assembling import assemble
from mcce.base.checks import check_count, check_not_negative, check_share
from mcce.base.parameters import Learner
from mcce.base.progress import progress_bar, working
from mcce.base.threads import one_native_thread
from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import InputError
from mcce.explain.adaptive import agreement, draw_again, explain_all, redraw_errors, redraw_some
from mcce.explain.factuals import REACH_ROWS, find_reach, read_factuals, warn_of_factuals
from mcce.explain.order import DEFAULT, MeasureLike
from mcce.explain.pools import fixed_columns
from mcce.explain.search import Settings
from mcce.explain.unexplained import allowed_table, describe_constraints, find_open, tell_why
from mcce.generators.base import Generator
from mcce.generators.chain import ChainModel
from mcce.generators.choice import OF_A_CHAIN, check_generator, choose_generator, fit_generator
from mcce.generators.layout import Predictors, Samplers
from mcce.generators.visit import VisitSequence
from mcce.model.ask import SpotCheck, TrainingTable, ask_table, check_wanted, spot_positions
from mcce.model.decisions import Answer, Interval, resolve_decision
from mcce.model.robustness import Lasting, Noise
from mcce.report.names import Names
from mcce.saving import Saves
from mcce.table import Data, Kind, Schema, as_frame, frame_kind
from mcce.table.checks import check_fixed, rows_of
from mcce.table.frames import own_frame
from mcce.table.weights import rows_with_weight

Self = TypeVar("Self", bound="Explainer")

REPORTED = ("L0", "gower", "gower_sum", "plausibility", "log_density")  # measures of every result


class Explainer(Saves, Learner):
    """Fits a generator, draws candidates and chooses among them; see `MCCE` for the parameters."""

    # what is explained is explained as it is: a copy by scikit-learn would be a model without its fit
    whole_parameters = ("model", "decision", "constraints")

    def __init__(
        self,
        model: Any,
        *,
        decision: Any = (0.5, 1.0),
        fixed: Sequence[Hashable] = (),
        sampler: Samplers = "cart",
        visit_sequence: VisitSequence = "data",
        predictors: Predictors | None = None,
        condition_on_decision: bool = True,
        kinds: Mapping[Any, Kind] | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        generator: Generator | None = None,
        min_donors: int | None = None,
        constraints: Any = (),
        labels: Mapping[Any, str] | None = None,
        units: Mapping[Any, str] | None = None,
        formats: Mapping[Any, Any] | None = None,
    ) -> None:
        self.model = model
        self.decision = decision
        self.fixed = fixed
        self.sampler = sampler
        self.visit_sequence = visit_sequence
        self.predictors = predictors
        self.condition_on_decision = condition_on_decision
        self.kinds = kinds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.generator = generator
        self.min_donors = min_donors
        self.constraints = constraints
        self.labels = labels
        self.units = units
        self.formats = formats

    @one_native_thread()
    def fit(self: Self, X: Data, y: object = None, *, sample_weight: Any = None, progress: bool | None = None) -> Self:
        """Step 1: ask the model about the training rows, and fit the chain.

        Parameters
        ----------
        X : DataFrame or two-dimensional array
            Training rows: the model's features, without the response. Also a frame of polars or pyarrow; the model is
            always asked with the kind of table that was given here.
        y : ignored
            For scikit-learn, which hands it over: the method learns from what the model says, not from the truth.
        sample_weight : array or None
            A weight for each row: whole numbers count copies, others are relative, 0 leaves a row out. See
            `ChainModel.fit`.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        """
        begun = time.perf_counter()
        # a fit that fails leaves no half-fitted explainer
        for name in ("fit_seconds_", "generator_", "plausibility_", "training_rows_"):
            vars(self).pop(name, None)
        if not isinstance(self.condition_on_decision, (bool, np.bool_)):
            raise InputError(f"condition_on_decision is {self.condition_on_decision!r}; it must be True or False.")
        self.decision_ = resolve_decision(self.decision, self.model)
        X = own_frame(X)
        frame, _ = as_frame(X)
        if frame.empty:
            raise InputError(
                f"X has {frame.shape[0]} rows and {frame.shape[1]} columns; it needs at least one of each."
            )
        X, frame, weights = rows_with_weight(X, frame, sample_weight)
        fixed = check_fixed(self.fixed, list(frame.columns))
        Names.read(
            self.labels, self.units, self.formats, frame.columns
        )  # what is wrong is told before anything is learned
        of_a_chain = {name: getattr(self, name) for name in OF_A_CHAIN}
        generator = choose_generator(self.generator, fixed, of_a_chain, self.n_jobs)
        spots = spot_positions(len(frame))
        answer: Answer | None = None
        if self.condition_on_decision:
            with working(f"asking the model about {len(frame)} training rows", progress):
                answer = ask_table(self.decision_, X)
            check_wanted(self.decision_, answer)
            first = Answer(answer.scores[spots], answer.wanted[spots])
        else:
            first = self.decision_.ask(rows_of(X, spots), "training rows")
        wanted = None if answer is None else answer.wanted
        fit_generator(generator, X, wanted, weights, progress)
        check_generator(generator, fixed, self.condition_on_decision)
        self.generator_ = generator
        schema = generator.schema_
        self.names()
        given = fixed_columns(generator)
        self._mutable = np.array([j for j in range(len(schema)) if j not in given], dtype=np.int64)
        checked = SpotCheck(spots, schema.encode(rows_of(X, spots)).matrix, first)
        hashes = getattr(generator, "training_hashes_", None)  # generators of other packages need not have them
        some = np.unique(np.linspace(0, len(frame) - 1, REACH_ROWS).astype(np.intp))
        reach = find_reach(schema.encode(rows_of(X, some)).matrix, schema.features)
        self._training = TrainingTable(X, schema, self.decision_, checked, wanted, hashes, reach, weights)
        self.fit_seconds_ = time.perf_counter() - begun
        return self

    def _known_schema(self) -> Schema | None:
        return self.generator_.schema_ if hasattr(self, "fit_seconds_") else None

    @property
    def chain_(self) -> ChainModel:
        """The fitted chain; an explainer with another generator has none."""
        if "generator_" not in vars(self):
            raise AttributeError("chain_ exists after fit(X)")
        if not isinstance(self.generator_, ChainModel):
            raise AttributeError(f"this explainer draws from a {type(self.generator_).__name__}, see generator_")
        return self.generator_

    @one_native_thread()
    def explain(
        self,
        X: Data,
        *,
        n_samples: int | Literal["auto"] = 1000,
        n_counterfactuals: int = 1,
        independent: bool = False,
        exhaustive: bool = False,
        constraints: Any = (),
        allow_missing: bool | Sequence[Hashable] = False,
        sparse: bool = False,
        floor: float = 0.05,
        measures: MeasureLike | Sequence[MeasureLike] = DEFAULT,
        weights: Mapping[Any, float] | None = None,
        max_changes: int | None = None,
        max_gower: float | None = None,
        diverse: bool = False,
        exclude_training: bool = False,
        refits: Sequence[Any] = (),
        noise: Noise = 0.0,
        robust: float | None = None,
        redraw: int = 0,
        standard_errors: bool = False,
        tell_reasons: bool | None = None,
        progress: bool | None = None,
    ) -> Counterfactuals:
        """Find counterfactuals for the rows of `X` (steps 2 and 3).

        Parameters
        ----------
        X : DataFrame, array or Series
            Rows to explain; the index of a DataFrame names them in the result and must be unique. A Series is one row.
            For polars or pyarrow, tables come back as the same kind of frame, see `Counterfactuals.table`.
        n_samples : int or "auto"
            K, rows drawn for each factual. "auto" doubles the draws of a factual, from 500 on, until a doubling leaves
            its counterfactuals with as many changes, within 0.02 of their summed Gower distance, and ends at 16,000;
            `draws` of the result says how many each had. See `mcce.explain.adaptive` for what that means and what it does not.
        n_counterfactuals : int
            How many distinct counterfactuals to return for each factual, best first.
        independent : bool
            Whether each factual gets draws of its own, even if it shares its fixed values with others.
        exhaustive : bool
            Ask the model about every candidate, as the paper does, instead of best-first. The answer is the same.
        constraints : list, dict or file
            What may change and how, besides what the explainer was made with: `mcce.allow`, `mcce.rule`, `mcce.only`,
            `mcce.per_factual`, texts of rules, or a TOML or JSON file. Rows are drawn inside them, and nothing that is
            returned breaks one. `Counterfactuals.constraints` says what each one does.
        allow_missing : bool or list of features
            Whether a known value may become missing: to withhold something is no advice, so it may not unless said
            here or by ``mcce.allow(feature, missing=True)``. The paper knows no missing values.
        sparse : bool
            Whether to cross the draws with the factual, so that few features change, instead of taking whole drawn
            rows as the paper does; see `mcce.explain.sparse`.
        floor : float
            With `sparse`, the least plausibility of a counterfactual: the share of real rows that look no more like a
            real row. At 0.05 one real row in twenty would be rejected. Rows below it come back only for factuals that
            have no other, and `measures["plausibility"]` says so.
        measures : name, function or several of them
            What counterfactuals are ordered by, the first measure first: "L0", "gower", "gower_sum", "l2", "l1_raw",
            "l2_raw", "mad", "hvdm", "ivdm" (`mcce.explain.distances`), "plausibility" with `sparse`, or any function
            of the candidates (DataFrame) and the factual (Series) that is small for good ones.
        weights : dict or None
            What a step in a feature counts in these distances, by feature; 1 for those not named.
        max_changes, max_gower : int, float or None
            Bounds: counterfactuals with more changes, or farther away, are not returned.
        diverse : bool
            Whether several counterfactuals of a factual are chosen so that they differ: the best one, then each for
            what it adds to those before it, at its cost (`mcce.explain.diversity`). `Counterfactuals.diversity` says
            how far apart they are.
        exclude_training : bool
            Whether rows that equal a training row in every column are passed over (the paper's safeguard). Nothing more
            is promised: every value is still one that somebody has, unless its sampler smooths. Without it,
            `Counterfactuals.copies` counts such rows.
        refits : list of models
            Other models that decide the same, as `bootstrap_refits` makes; `measures["refits"]` of the result is the
            share of them that gives a counterfactual the wanted decision. See `mcce.model.robustness`.
        noise : float or dict
            By how much the numbers of a counterfactual may be off, as a share of the value, for all that may change or
            by feature; `measures["noise"]` is the share of noisy neighbours that have the wanted decision.
        robust : float or None
            The least of these shares that a counterfactual must have; 0.9 for nine in ten. Refits and noise are asked
            last, about rows that the model accepts.
        redraw : int
            0 for the draws that belong to the seed; each other number for other, independent ones from the same fitted
            generator, to see what depends on chance (`mcce.diagnostics.stability`).
        standard_errors : bool
            Whether to draw and choose a second time, and report in `summary()` the Monte Carlo standard errors of the
            mean L0 and Gower distance: how much they would vary over redraws for these same factuals; and how stable
            the answers are, over all of these. It takes as long again.
        tell_reasons : bool or None
            Whether to look into every factual without a counterfactual: what became of its candidates, which one came
            nearest, and what would have helped. It draws and asks more; None looks into the first five, if something
            was demanded that could be dropped: constraints, bounds, robustness, no copies. See `mcce.explain.unexplained`.
        progress : bool or None
            Whether to show a progress bar; None shows one in a terminal or notebook after a second.
        """
        self._check_fitted()
        if diverse and n_samples == "auto":
            raise InputError(
                "diverse=True chooses among all draws at once, and n_samples='auto' draws in rounds; give a number."
            )
        settings = Settings(
            n_samples="auto" if n_samples == "auto" else check_count(n_samples, "n_samples", or_else=', or "auto"'),
            n_counterfactuals=check_count(n_counterfactuals, "n_counterfactuals"),
            independent=independent,
            exhaustive=exhaustive,
            sparse=sparse,
            floor=check_share(floor, "floor"),
            max_changes=None if max_changes is None else check_count(max_changes, "max_changes"),
            max_gower=None if max_gower is None else check_not_negative(max_gower, "max_gower"),
            diverse=diverse,
            exclude_training=exclude_training,
            redraw=check_count(redraw, "redraw", least=0),
        )
        plausibility = self._plausibility(progress) if sparse else None
        ordering = self._ordering(measures, weights, plausibility)
        factuals = read_factuals(X, self.generator_.schema_, self.decision_, self._training.spots)
        warn_of_factuals(factuals.matrix, factuals.index, self.generator_, self._training.reach)
        training = self._training_rows(needed=exclude_training)
        lasting = Lasting.resolve(
            self.decision,
            self.decision_,
            self.generator_.schema_,
            self._mutable,
            self.generator_.seed_,
            refits=refits,
            noise=noise,
            robust=robust,
        )
        asked = self._constraints(constraints, allow_missing)
        said = None if asked is None else asked.said
        task = self._task(settings, ordering, plausibility, training if exclude_training else None, lasting, asked)
        open_to, contradictions = find_open(task, factuals)
        with progress_bar(open_to.size * (1 + standard_errors), "explaining", progress) as bar:
            explained = explain_all(task, factuals, open_to, bar.update)
            again = draw_again(task, factuals, open_to, bar.update) if standard_errors else None
        outcome = explained.outcome
        with working("looking for reasons", progress):
            described = describe_constraints(task, factuals, open_to, outcome)
            why = tell_why(task, self.decision_, factuals, open_to, outcome, contradictions, asked_for=tell_reasons)
        return assemble(
            factuals,
            outcome,
            self.generator_,
            self.decision_,
            constraints=described,
            allowed=allowed_table(said, factuals.matrix, factuals.index) if said else None,
            why=why,
            further=[m for m in ordering.measures if m.name not in REPORTED],
            training=training,
            lasting=lasting,
            n_samples=int(explained.draws.max(initial=0)),
            draws=explained.draws,
            standard_errors={} if again is None else redraw_errors(task, factuals, outcome, again),
            redraw=functools.cache(
                partial(redraw_some, task, factuals, open_to, outcome, progress)
                if again is None
                else partial(agreement, factuals, open_to, outcome, again)
            ),
            fit_seconds=self.fit_seconds_,
            settings={**dataclasses.asdict(settings), "pools": int(outcome.pools.size), **self._described()},
            names=self.names(),
            rules={who: said.texts_of(who) for who in factuals.index} if said else None,
            frames=frame_kind(X),
        )

    def __repr__(self) -> str:
        decision = self.decision if not isinstance(self.decision, Interval) else str(self.decision)
        drawn = f"sampler={self.sampler!r}" if self.generator is None else f"generator={self.generator!r}"
        model = None if self.model is None else type(self.model).__name__
        return f"MCCE({model}, decision={decision!r}, fixed={list(self.fixed)!r}, {drawn})"
