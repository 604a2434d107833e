"""A walk to the nearest unlike neighbour, written from the paper on NICE.

Brughmans, Leyman and Martens (2023), NICE: an algorithm for nearest instance counterfactual explanations, Data Mining
and Knowledge Discovery 38, 2665-2703; its reward for sparsity:

1. The neighbour of a factual is its nearest training row with the wanted decision, by the sum of range-scaled
   differences of numbers and 1 for another level (HEOM, here `gower`).
2. From the factual, try each feature in which the neighbour differs, and set the one with the best score.
3. Repeat until the row has the wanted decision, which the neighbour has at the latest.

NICE has no fixed features. `held` keeps them: the neighbour is searched for among training rows with the factual's
fixed values, and a factual without such a row is not explained. By default NICE also requires that the neighbour's
response be the wanted one; here the model's decision is sufficient, which leaves more candidates.

Given decisions as responses, NICEx 0.2.3 returns the same rows as the free walk (German Credit and FICO: 100 of 100).

With `rules`, the walk may use only what the sparse search may use. In each of the 100 nearest wanted rows, fixed
features and values with a reason not to be sent (`mcce.plausibility.stop_reasons`) are replaced by the factual's. The
goal is the first of these rows that still has the wanted decision.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

import mcce
from benchmarks.settings import Problem
from benchmarks.speed_worker import Counted, Run
from mcce.diagnostics.neighbours import find_nearest
from mcce.distances.measures import gower
from mcce.plausibility.stop_reasons import StopRules

TRIED = 100  # nearest wanted rows that are tried with `rules`


def run_walk(problem: Problem, *, held: bool, rules: StopRules | None = None) -> Run:
    """Walk from every factual, all of them one step at a time; higher scores are better."""
    model = Counted(problem.score)
    begun = time.perf_counter()
    wanted = problem.decision.contains(model(problem.X))
    queried_before = model.queried
    training, factuals = problem.encode(problem.X), problem.encode(problem.factuals)
    now = factuals.to_numpy().copy()
    if rules is None:
        place = neighbours(problem, wanted, held=held)
        walking, goal = np.flatnonzero(place >= 0), training.to_numpy()[place]
    else:
        goal = allowed_goals(problem, training[wanted].to_numpy(), now, rules, model)
        walking = np.flatnonzero((goal != now).any(axis=1))
    explained = np.zeros(len(factuals), dtype=bool)
    while walking.size:
        owner, feature = np.nonzero(now[walking] != goal[walking])
        owner = walking[owner]
        tries = now[owner]
        tries[np.arange(owner.size), feature] = goal[owner, feature]
        scores = model(problem.decode(pd.DataFrame(tries, columns=training.columns)))
        best_first = np.lexsort((-scores, owner))
        best = best_first[np.diff(owner[best_first], prepend=-1) > 0]
        now[owner[best]] = tries[best]
        arrived = problem.decision.contains(scores[best])
        explained[owner[best[arrived]]] = True
        walking = owner[best[~arrived]]
    rows = pd.DataFrame(now, index=factuals.index, columns=factuals.columns)[explained]
    return Run({"total": time.perf_counter() - begun}, rows, model.queried - queried_before)


def neighbours(problem: Problem, wanted: np.ndarray, *, held: bool) -> np.ndarray:
    """Return the position of each factual's nearest wanted training row; -1 where `held` leaves none (step 1)."""
    schema = mcce.Schema.from_data(problem.X, problem.kinds)
    training = schema.encode(problem.X).matrix
    factuals = schema.encode(problem.factuals).matrix
    place = np.full(len(factuals), -1)
    columns = [schema.position(name) for name in problem.fixed] if held else []
    cells, group = np.unique(factuals[:, columns], axis=0, return_inverse=True)
    for k, values in enumerate(cells):
        among = wanted & (training[:, columns] == values).all(axis=1)
        members = group.reshape(-1) == k
        if among.any():
            place[members] = find_nearest(factuals[members], training, schema.features, among=among).row[:, 0]
    return place


def allowed_goals(
    problem: Problem, accepted: np.ndarray, factuals: np.ndarray, rules: StopRules, model: Counted
) -> np.ndarray:
    """Return for each factual the nearest wanted row with the factual's values where others are not allowed.

    A factual without such a row among the `TRIED` nearest is returned itself.
    """
    distance = gower(mcce.Schema.from_data(problem.X, problem.kinds).features)
    fixed = [problem.X.columns.get_loc(name) for name in problem.fixed]
    goals = factuals.copy()
    for i, own in enumerate(factuals):
        before = np.repeat(own[None], TRIED, axis=0)
        apart = distance.between(accepted, np.repeat(own[None], len(accepted), axis=0))
        rows = accepted[np.argsort(apart, kind="stable")[:TRIED]].copy()
        before = before[: len(rows)]
        rows[:, fixed] = before[:, fixed]
        while (stopped := rules.cells(before, rows, rows != before)).any():
            # a level can contradict a number that is unchanged: then the row takes the factual's levels
            stopped[(stopped & (rows == before)).any(axis=1)] = True
            rows = np.where(stopped, before, rows)
        good = problem.decision.contains(model(problem.decode(pd.DataFrame(rows, columns=problem.X.columns))))
        if good.any():
            goals[i] = rows[int(np.argmax(good))]
    return goals
