"""Figures of counterfactuals row by row, the same for all methods.

1. Changes: number of changed features (L0), their size (L1: the sum of range-scaled differences, 1 for another level),
   and number of changed fixed features.
2. Decision: whether the model, queried again, returns the wanted one.
3. Plausibility (`mcce.plausibility.score`): sparse rows were selected by it, so it judges only the other methods.
4. Nearness: distance (as L1) to the nearest training row and mean distance to the five nearest, among all training rows
   and among those with the wanted decision. One training row equal to the factual is excluded, because a
   counterfactual is always near its own factual.
5. Judges that no search uses: an isolation forest (whether it ranks a row below 95 % of the training rows), and the
   share of three models, trained like the explained one from other seeds, that give the wanted decision.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import NearestNeighbors

import mcce
from benchmarks.settings import Problem
from mcce.diagnostics.neighbours import find_equal
from mcce.distances.measures import gower
from mcce.plausibility.score import Plausibility
from mcce.table import Feature

NEIGHBOURS = 5
N_REFITS = 3


class Points:
    """Encoded rows as points whose Manhattan distance is the sum of Gower's steps."""

    def __init__(self, training: np.ndarray, features: Sequence[Feature]) -> None:
        self.scale = gower(features).scale
        self.levels = [np.unique(training[:, j]) for j in range(training.shape[1])]

    def of(self, matrix: np.ndarray) -> np.ndarray:
        """Return the points; each level has an indicator of height one half, so that two levels are one step apart."""
        parts = []
        for j, scale in enumerate(self.scale):
            column = matrix[:, [j]]
            if scale > 0:
                parts.append(column * scale)
            else:
                known = column == self.levels[j]
                parts.append(np.hstack([known, ~known.any(axis=1, keepdims=True)]) / 2)
        return np.hstack(parts)


class Judge:
    """Judges of counterfactuals, fitted to the training rows of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.schema = mcce.Schema.from_data(problem.X, problem.kinds)
        self.training = self.schema.encode(problem.X).matrix
        features = self.schema.features
        mutable = np.array([j for j, f in enumerate(features) if f.name not in problem.fixed], dtype=np.int64)
        self.plausibility = Plausibility.fit(self.training, features, mutable)
        self.points = Points(self.training, features)
        wanted = np.flatnonzero(problem.decision.contains(problem.score(problem.X)))
        self.places = {"": np.arange(len(self.training)), " wanted": wanted}
        self.trees = {
            name: NearestNeighbors(metric="manhattan").fit(self.points.of(self.training[places]))
            for name, places in self.places.items()
        }

        points = self.points.of(self.training)
        self.forest = IsolationForest(n_estimators=300, random_state=0).fit(points)
        self.limit = np.quantile(self.forest.score_samples(points), 0.05)
        self.refits = [problem.refit(seed) for seed in range(1, N_REFITS + 1)] if problem.refit else []

    def judge(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the figures of counterfactuals, given as numbers (`Problem.encode`) and indexed by factual."""
        decoded = self.problem.decode(rows)
        factuals = self.schema.encode(self.problem.factuals.loc[rows.index]).matrix
        matrix = self.schema.encode(decoded).matrix
        fixed = [self.schema.position(name) for name in self.problem.fixed]
        distance = gower(self.schema.features)
        fold = self.plausibility.fold_of(factuals)
        own = find_equal(factuals, self.training)
        return pd.DataFrame(
            {
                "L0": (matrix != factuals).sum(axis=1),
                "L1": distance.between(matrix, factuals) * distance.divisor,
                "violations": (matrix[:, fixed] != factuals[:, fixed]).sum(axis=1),
                "success": self.problem.decision.contains(self.problem.score(decoded)),
                "plausibility": self.plausibility.quantile(self.plausibility.score(matrix, fold)),
                **self._nearness(matrix, own),
                "odd": self.forest.score_samples(self.points.of(matrix)) < self.limit,
                "refits": self._refits_accept(decoded),
            },
            index=rows.index,
        )

    def _refits_accept(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the share of refitted models that return the wanted decision (step 5)."""
        if not self.refits:
            return np.full(len(rows), np.nan)
        return np.mean([self.problem.decision.contains(score(rows)) for score in self.refits], axis=0)

    def _nearness(self, matrix: np.ndarray, own: np.ndarray) -> dict[str, np.ndarray]:
        """Return the nearness among all and among wanted training rows (step 4)."""
        out = {}
        points = self.points.of(matrix)
        for name, places in self.places.items():
            n = min(NEIGHBOURS + 1, places.size)
            distance, found = self.trees[name].kneighbors(points, n_neighbors=n)
            distance = np.sort(np.where(places[found] == own[:, None], np.inf, distance), axis=1)
            out[f"near{name}"] = distance[:, 0]
            out[f"near5{name}"] = distance[:, : min(NEIGHBOURS, n - 1)].mean(axis=1)
        return out
