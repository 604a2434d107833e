"""Judges of counterfactuals that took no part in any search: outside the package, from scikit-learn and scipy.

1. Changes: number of changed features (L0), sum of range-scaled steps, 1 for another level (gower_sum), changed fixed
   features, and whether the model, queried again, gives the wanted decision.
2. Nearness: mean distance, as `gower_sum`, to the five nearest training rows apart from the factual itself.
3. Share of rows beyond a limit that 5 % of the training rows exceed: an isolation forest, a local outlier factor
   (20 neighbours, fitted to at most 10,000 rows), and a mixture of eight normals of normal scores and indicators.
4. Share of three models, trained like the explained one from other seeds, that give the wanted decision.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.ensemble import IsolationForest
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from benchmarks.settings import Problem, train

NEAREST, LIMIT, MOST_ROWS = 5, 0.05, 10_000
GAPS = ["L0", "gower_sum", "near5", "forest", "outlier", "mixture", "refits"]


def paired(figures: pd.DataFrame, reference: pd.DataFrame, name: str) -> dict[str, float]:
    """Return the mean differences from a reference of this name over the people of both, with standard errors."""
    gaps = (figures - reference).dropna(how="all")
    return {**gaps.mean().add_prefix(f"minus_{name}_"), **gaps.sem().add_prefix("se_"), "both": len(gaps)}


class Judge:
    """Judges fitted to the training rows of a problem; `model` is the kind of the refitted models."""

    def __init__(self, problem: Problem, model: str, n_refits: int = 3) -> None:
        self.problem = problem
        self.training = problem.encode(problem.X)
        self.categorical = list(problem.categorical)
        numbers = self.training.drop(columns=self.categorical)
        self.span = (numbers.max() - numbers.min()).replace(0.0, 1.0)
        self.levels = {c: np.unique(self.training[c]) for c in self.categorical}
        self.sorted = {c: np.sort(numbers[c].to_numpy()) for c in numbers}
        points, scores = self._points(self.training), self._scores(self.training)
        some = np.random.default_rng(0).permutation(len(points))[:MOST_ROWS]
        self.near = NearestNeighbors(n_neighbors=NEAREST + 1, metric="manhattan").fit(points)
        self.forest = IsolationForest(n_estimators=300, random_state=0).fit(points[some])
        self.outlier = LocalOutlierFactor(n_neighbors=20, novelty=True).fit(points[some])
        self.mixture = GaussianMixture(n_components=8, reg_covar=1e-3, random_state=0).fit(scores[some])
        rest = np.random.default_rng(1).permutation(len(points))[:MOST_ROWS]
        self.limits = {name: np.quantile(of(rest), LIMIT) for name, of in self._judges(points, scores).items()}
        self.refits = [train(problem.name, model, problem.X, problem.y, seed) for seed in range(1, n_refits + 1)]

    def _points(self, rows: pd.DataFrame) -> np.ndarray:
        """Return points whose Manhattan distance is `gower_sum`: levels as indicators of height one half."""
        parts = [rows[self.span.index].to_numpy() / self.span.to_numpy()]
        parts += [(rows[[c]].to_numpy() == levels) / 2 for c, levels in self.levels.items()]
        return np.hstack(parts)

    def _scores(self, rows: pd.DataFrame) -> np.ndarray:
        """Return normal scores of numbers by their mid-rank among the training rows, and indicators of levels."""
        parts = []
        for c, known in self.sorted.items():
            rank = np.searchsorted(known, rows[c]) + np.searchsorted(known, rows[c], side="right")
            parts.append(ndtri((rank / 2 + 0.5) / (known.size + 1))[:, None])
        return np.hstack([*parts, *((rows[[c]].to_numpy() == levels[1:]) * 1.0 for c, levels in self.levels.items())])

    def _judges(self, points: np.ndarray, scores: np.ndarray) -> dict:
        return {
            "forest": lambda rows: self.forest.score_samples(points[rows]),
            "outlier": lambda rows: self.outlier.score_samples(points[rows]),
            "mixture": lambda rows: self.mixture.score_samples(scores[rows]),
        }

    def judge(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the figures of counterfactuals, given as numbers (`Problem.encode`) and indexed by factual."""
        problem = self.problem
        own = problem.encode(problem.factuals.loc[rows.index])
        steps = (rows - own).abs()
        changed = steps > 0
        scaled = steps[self.span.index] / self.span
        points, scores = self._points(rows), self._scores(rows)
        distance, place = self.near.kneighbors(points)
        is_own = (self.training.to_numpy()[place] == own.to_numpy()[:, None]).all(axis=2)
        is_own &= is_own.cumsum(axis=1) == 1  # one training row is the factual itself
        near = np.sort(np.where(is_own, np.inf, distance), axis=1)[:, :NEAREST].mean(axis=1)
        every = np.arange(len(rows))
        decoded = problem.decode(rows)
        wanted = [refit.predict_proba(decoded)[:, 1] >= problem.decision[0] for refit in self.refits]
        figures = {
            "L0": changed.sum(axis=1),
            "gower_sum": scaled.sum(axis=1) + changed[self.categorical].sum(axis=1),
            "violations": changed[problem.fixed].sum(axis=1),
            "valid": problem.wanted(decoded),
            "near5": near,
            **{name: of(every) < self.limits[name] for name, of in self._judges(points, scores).items()},
            "refits": np.mean(wanted, axis=0) if wanted else np.full(len(rows), np.nan),
        }
        return pd.DataFrame(figures, index=rows.index).astype(float)
