"""The parts of an explainer that are learned from the training rows, besides the generator, each when first needed.

They extend the paper's method. Scales of distances do not depend on the weights of the training rows; plausibility
does. An explainer that was loaded, or sent to a worker process, has no training rows: parts learned before are
available, others raise an error.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from mcce.constraints import Constraint
from mcce.constraints.anonymous import together
from mcce.constraints.excluded import Anonymity, TrainingKeys, TrainingRows, anonymity_of
from mcce.distances.measures import MEASURES, Distance, NamedMeasure, tail_robust
from mcce.exceptions import InputError
from mcce.explain.order import DEFAULT, Caution, Margins, MeasureLike, Ordering, find_measure, resolve_measures
from mcce.explain.problem import fixed_columns, mutable_columns
from mcce.explain.reference import learn_usual
from mcce.generators.base import Generator
from mcce.generators.chain import ChainModel
from mcce.model.queries import EncodedModel, TrainingTable
from mcce.plausibility.relations import Relations, keep_relations
from mcce.plausibility.score import Plausibility
from mcce.plausibility.stop_reasons import RuleColumn, StopRules, Usual
from mcce.rng import derive_key
from mcce.table import Schema
from mcce.table.checks import rows_of
from mcce.wording import Either, Parameter, PythonOnly, Setting, call

MOST_PAIRS = 1_000_000  # most pairs of levels whose distances are stored
N_WORLDS = 5
SMOOTH = "mixture"  # replaces trees, as a search for cheap actions exploits their jumps (benchmarks.recourse)


@dataclass
class LearnedParts:
    """Parts learned from the training rows; parts that are None are learned when first needed.

    Attributes
    ----------
    training : the training rows with the model's predictions
    generator : the fitted generator
    n_jobs : number of threads
    unchangeable : features that look like facts, with the reason
    relations : relations between columns, and formulas of derived columns
    caution : plausibility, margins of the decision, and steps that are robust to long tails
    usual : usual values and helpful directions
    rows : hashes of the training rows, which identify copies
    keys : keys of training people, by the columns of the keys
    distances : distances by name, learned before the training rows were dropped
    worlds : chains from which the consequences of actions are drawn
    stops : reasons not to send a counterfactual
    """

    training: TrainingTable
    generator: Generator
    n_jobs: int | None = None
    unchangeable: Mapping[Hashable, str] = field(default_factory=dict)
    relations: Relations = field(default_factory=Relations)
    caution: Caution | None = None
    usual: Usual | None = None
    rows: TrainingRows | None = None
    keys: dict[tuple[int, ...], TrainingKeys] = field(default_factory=dict)
    distances: Mapping[str, Distance] = field(default_factory=dict)
    worlds: tuple[ChainModel, ...] = ()
    stops: StopRules | None = None

    @property
    def schema(self) -> Schema:
        return self.training.schema

    @property
    def has_rows(self) -> bool:
        """Whether the training rows are available."""
        return self.training.table is not None

    def learn_caution(self, progress: bool | None) -> Caution:
        """Return plausibility, margins and steps, for a sparse search."""
        if self.caution is None:
            remedy = "Fit again, or explain once with ", Setting("sparse", True), " before saving."
            matrix = self.training.matrix(remedy)
            features, weights = self.schema.features, self.training.relative_weights()
            margins = Margins.of(self.training.decision, self.training.answer(), weights)
            steps = tail_robust(features, matrix, weights)
            mutable = mutable_columns(self.generator)
            plausibility = Plausibility.fit(matrix, features, mutable, self.n_jobs, progress, weights)
            self.caution = Caution(plausibility, margins, distance=steps)
        return self.caution

    def learn_usual(self) -> Usual | None:
        """Return the usual values of the training rows; None if the rows are not available."""
        if self.usual is None and self.has_rows:
            answer, weights = self.training.answer(), self.training.relative_weights()
            self.usual = learn_usual(
                self.training.matrix(),
                answer.wanted,
                self.schema,
                mutable_columns(self.generator),
                EncodedModel(self.training.decision, self.schema),
                Margins.of(self.training.decision, answer, weights),
                weights,
                self.unchangeable,
                keep_relations(self.relations, self.schema, fixed_columns(self.generator)),
            )
        return self.usual

    def learn_stops(self, units: Mapping[Hashable, str]) -> StopRules | None:
        """Return the reasons not to send a counterfactual; None if the training rows are not available."""
        usual = self.learn_usual()
        if self.stops is None and usual is not None:
            self.stops = StopRules([RuleColumn.from_feature(each) for each in self.schema.features], usual, units)
        return self.stops

    def learn_rows(self, *, needed: bool = False) -> TrainingRows | None:
        """Return the hashes that identify copies of training rows; None if not available and not needed."""
        if needed:
            self.generator.require_training_rows("no_copies()", "leave it out.")
        if self.generator.privacy is None and self.rows is None and (needed or self.has_rows):
            hashes = self.generator.training_hashes_ if self.has_rows else None
            self.rows = TrainingRows.from_matrix(self.training.matrix()) if hashes is None else TrainingRows(hashes)
        return self.rows

    def learn_anonymity(self, given: Sequence[Constraint]) -> Anonymity | None:
        """Return the requirement that counterfactuals are shared by several people (k-anonymity); None without one."""
        combined = together(given)
        if combined is None:
            return None
        self.generator.require_training_rows("k_anonymous()", "leave it out.")
        columns = tuple(sorted(self.schema.position(name) for name in combined.columns))
        if columns not in self.keys:
            constraint = Setting("constraints", [call("mcce.k_anonymous", ...)])
            remedy = "Fit with ", constraint, ", or explain with it once before saving."
            self.keys[columns] = TrainingKeys.from_matrix(
                self.training.matrix(remedy, needed_by="k_anonymous"), columns
            )
        return anonymity_of(combined.k, self.keys[columns])

    def learn_worlds(self, progress: bool | None) -> tuple[ChainModel, ...]:
        """Return chains without the decision, each fitted to a bootstrap of the training rows, for recourse."""
        chain = self.generator
        if not isinstance(chain, ChainModel) or chain.graph_ is None:
            raise InputError(
                Either(PythonOnly("recourse()"), "recourse"),
                " needs a causal graph, which defines causes and consequences; fit the explainer with ",
                Either(call("MCCE", ..., graph="education -> salary"), Parameter("graph")),
                ".",
            )
        chain.require_training_rows("recourse", "fit without it.")
        if not self.worlds:
            n_rows = len(self.training.matrix("Fit again, or use recourse once before saving.", needed_by="recourse"))
            self.worlds = tuple(self._fit_world(chain, b, n_rows, progress) for b in range(N_WORLDS))
        return self.worlds

    def _fit_world(self, chain: ChainModel, b: int, n_rows: int, progress: bool | None) -> ChainModel:
        seed = derive_key(chain.seed_, "world", b)
        rows = np.sort(np.random.default_rng(seed).integers(0, n_rows, n_rows))
        weights = self.training.weights
        world = ChainModel(
            sampler=SMOOTH if chain.sampler == "cart" else chain.sampler,
            fixed=chain.fixed_,
            graph=chain.graph_,
            random_state=seed,
            n_jobs=self.n_jobs,
        )
        table = rows_of(self.training.table, rows)
        weighting = {} if weights is None else {"sample_weight": weights[rows]}
        world.fit(table, None, schema=chain.schema_, progress=progress, **weighting)
        return world

    def learn_order(
        self,
        measures: MeasureLike | Sequence[MeasureLike] | None,
        feature_weights: Mapping[Any, float] | None = None,
        plausibility: Plausibility | None = None,
    ) -> Ordering:
        """Return the order by measures, with the scales that they learn."""
        if measures is None and feature_weights is None:
            return self._default_order
        named = _listed(DEFAULT if measures is None else measures)
        if not self.has_rows:
            named = [self.distances.get(name, name) if isinstance(name, str) else name for name in named]
        learning = [name for name in named if isinstance(name, str) and find_measure(name).is_learned]
        return resolve_measures(
            named,
            self.schema.features,
            feature_weights=feature_weights,
            training=self.training.matrix(needed_by=f"measure {learning[0]!r}") if learning else None,
            decision=self.training.wanted() if learning else None,
            scorers={} if plausibility is None else {"plausibility": plausibility.of_candidates},
        )

    @cached_property
    def _default_order(self) -> Ordering:
        return resolve_measures(DEFAULT, self.schema.features)

    def learn_measures(self, measures: MeasureLike | Sequence[MeasureLike]) -> list[MeasureLike]:
        """Return measures in place of names, for workers, which have neither training rows nor registered measures."""
        found: list[MeasureLike] = []
        for item in _listed(measures):
            known = find_measure(item) if isinstance(item, str) else item
            is_learned = isinstance(known, NamedMeasure) and known.is_learned
            function = self.learn_order(item).measures[0].function if is_learned else known
            found.append(cast(MeasureLike, function))
        return found

    def learn_distances(self) -> dict[str, Distance]:
        """Return the learned distances by name that are small enough to be stored."""
        if not self.has_rows:
            return dict(self.distances)
        n_pairs = sum(feature.n_levels**2 for feature in self.schema.features)
        learned = [name for name, known in MEASURES.all().items() if known.is_learned]
        kept = [name for name in learned if n_pairs <= MOST_PAIRS or "decision" not in find_measure(name).needs]
        try:
            found = {name: self.learn_order(name).measures[0].function for name in kept}
        except InputError:  # the table has been changed since `fit`
            return {}
        return {name: distance for name, distance in found.items() if isinstance(distance, Distance)}


def _listed(measures: MeasureLike | Sequence[MeasureLike]) -> Sequence[MeasureLike]:
    return [measures] if isinstance(measures, str) or not isinstance(measures, Sequence) else measures
