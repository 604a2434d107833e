"""What an explainer learns from its training rows after `fit`, when it is first needed.

Distances that are scaled by the training rows, the trees of plausibility, and what tells copies of training rows: the
paper's method needs none of them, so that `fit` does not spend time on them. Scales of distances are those of the
training rows whatever these weigh; plausibility is by weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mcce.base.arrays import Ints
from mcce.explain.copies import TrainingRows
from mcce.explain.order import LEARNED, MeasureLike, Ordering, resolve_measures
from mcce.explain.plausibility import Plausibility
from mcce.generators.base import Generator
from mcce.model.ask import TrainingTable
from mcce.table.weights import read_weights


class LearnsLater:
    """The part of an explainer that learns on demand."""

    generator_: Generator
    plausibility_: Plausibility
    training_rows_: TrainingRows
    n_jobs: int | None
    _training: TrainingTable
    _mutable: Ints

    def _ordering(
        self,
        measures: MeasureLike | Sequence[MeasureLike],
        weights: Mapping[Any, float] | None,
        plausibility: Plausibility | None,
    ) -> Ordering:
        """Return the order that a user asks for, with what its measures learn from the training rows."""
        features = self.generator_.schema_.features
        named = [measures] if isinstance(measures, str) or not isinstance(measures, Sequence) else measures
        learning = any(isinstance(name, str) and name in LEARNED for name in named)
        scorers = {} if plausibility is None else {"plausibility": plausibility.of_candidates}
        return resolve_measures(
            measures,
            features,
            weights=weights,
            training=self._training.matrix() if learning else None,
            decision=self._training.wanted() if learning else None,
            scorers=scorers,
        )

    def _learned_measures(self, measures: MeasureLike | Sequence[MeasureLike]) -> list[MeasureLike]:
        """Return measures with distances in place of the names of those that are learned from the training rows."""
        named = [measures] if isinstance(measures, str) or not isinstance(measures, Sequence) else measures
        found: list[MeasureLike] = []
        for item in named:
            learned = isinstance(item, str) and item in LEARNED
            function = self._ordering(item, None, None).measures[0].function if learned else item
            found.append(cast(MeasureLike, function))
        return found

    def _plausibility(self, progress: bool | None) -> Plausibility:
        """Return the scorer of plausibility, fitted once, when it is first needed."""
        if "plausibility_" not in vars(self):
            matrix = self._training.matrix("Fit it again, or call explain(..., sparse=True) once before saving it.")
            weights = self._training.weights
            self.plausibility_ = Plausibility.fit(
                matrix,
                self.generator_.schema_.features,
                self._mutable,
                self.generator_.seed_,
                self.n_jobs,
                progress,
                None if weights is None else read_weights(weights, matrix.shape[0], tell=False),
            )
        return self.plausibility_

    def _training_rows(self, *, needed: bool = False) -> TrainingRows | None:
        """Return what tells copies of training rows, made once; None if they are gone and not needed."""
        if "training_rows_" not in vars(self):
            if self._training.table is None and not needed:
                return None
            hashes = self._training.hashes
            rows = TrainingRows.of(self._training.matrix()) if hashes is None else TrainingRows(hashes)
            self.training_rows_ = rows
        return self.training_rows_
