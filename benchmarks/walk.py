"""A walk to the nearest unlike neighbour, written from the paper on NICE (Brughmans, Leyman and Martens 2023).

1. The neighbour of a factual is its nearest training row with the wanted decision, by the sum of range-scaled
   differences of numbers and 1 for another level.
2. From the factual, try each feature in which the neighbour differs, and set the one with the best score.
3. Repeat until the row has the wanted decision, which the neighbour has at the latest.

NICE has no fixed features. `held` keeps them: the neighbour is searched for among training rows with the factual's
fixed values, and a factual without such a row is not explained. NICEx 0.2.3, given decisions as responses, returned the
same rows as the free walk (German Credit and FICO: 100 of 100).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.settings import Problem


def walk(problem: Problem, model: object, *, held: bool) -> pd.DataFrame:
    """Return the rows, as numbers and indexed by factual; all factuals walk one step at a time."""
    training, factuals = problem.encode(problem.X), problem.encode(problem.factuals)
    accepted = training[model(problem.X) >= problem.decision[0]]
    now = factuals.to_numpy().copy()
    goal = neighbours(problem, accepted, factuals, training.max() - training.min(), held=held)
    walking = np.flatnonzero(~np.isnan(goal).all(axis=1))
    is_explained = np.zeros(len(factuals), dtype=bool)
    while walking.size:
        owner, feature = np.nonzero(now[walking] != goal[walking])
        owner = walking[owner]
        tries = now[owner]
        tries[np.arange(owner.size), feature] = goal[owner, feature]
        scores = model(problem.decode(pd.DataFrame(tries, columns=training.columns)))
        best_first = np.lexsort((-scores, owner))
        best = best_first[np.diff(owner[best_first], prepend=-1) > 0]
        now[owner[best]] = tries[best]
        has_arrived = scores[best] >= problem.decision[0]
        is_explained[owner[best[has_arrived]]] = True
        walking = owner[best[~has_arrived]]
    return pd.DataFrame(now, factuals.index, factuals.columns)[is_explained]


def neighbours(
    problem: Problem, accepted: pd.DataFrame, factuals: pd.DataFrame, span: pd.Series, *, held: bool
) -> np.ndarray:
    """Return each factual's nearest accepted row; NaN where `held` leaves none."""
    is_level = accepted.columns.isin(problem.categorical)
    fixed = accepted.columns.isin(problem.fixed) if held else np.zeros(len(accepted.columns), dtype=bool)
    weight = 1.0 / span.replace(0.0, 1.0).to_numpy()
    rows = accepted.to_numpy()
    goal = np.full(factuals.shape, np.nan)
    for i, own in enumerate(factuals.to_numpy()):
        among = np.flatnonzero((rows[:, fixed] == own[fixed]).all(axis=1))
        if among.size:
            steps = np.abs(rows[among] - own) * weight
            steps[:, is_level] = rows[among][:, is_level] != own[is_level]
            goal[i] = rows[among[np.argmin(steps.sum(axis=1))]]
    return goal
