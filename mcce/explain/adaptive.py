"""As many draws as each factual needs (`n_samples="auto"`).

Draws are made in rounds, and each factual leaves when its own answer is stable:

1. Draw rows 0 to 499 of the pool of every factual, and choose.
2. Draw as many rows again as there have been, for the factuals that are left, and choose among these. Join with what
   was chosen before, in the same order: what is chosen from whole draws is exactly what one choice among all draws so
   far would be (but that a factual which once found nothing in draws shared with others has draws of its own beside).
   Crossings of sparse counterfactuals are of one draw each, so they too lose nothing by rounds; as only so many
   crossings of several features are looked at each time, rounds may even find better ones than one large pool.
3. A factual is stable if that doubling left its counterfactuals as many as they were, each with as many changes, and
   none moved by more than 0.02 in the summed Gower distance, which is 2 per cent of the range of one feature. One that
   has no counterfactual yet, or none at or above the floor, is not stable.
4. Go back to 2 until all are stable or have 16,000 draws.

Draws are known by their index and the rule looks at one factual alone, so neither its answer nor its number of draws
depends on what stands beside it.

What the rule says: where none of h whole draws is better by more than the tolerance, fewer than 3 / h of all draws are,
at 95 per cent confidence (h is half of the draws made, at least 500). That several rounds are looked at costs less than
the draws before the last h give: of 299 factuals of the loans and Adult that were stable none was above 3 / h by 20,000
further draws, and 5 per cent above 1 / h. What the rule cannot say: that nothing better exists. Where distances have no
ties, the best of two halves is in the first one half of the time, however few the draws: a factual leaves early by luck
as well as by merit, so that for the mean over many factuals a fixed `n_samples` of the same work is a little better
(benchmarks/results/draws.md). "auto" is for tables in which some factuals need far more draws than others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mcce.base.arrays import Bools, Ints
from mcce.distances.measures import gower
from mcce.explain.acceptance import Acceptance, without_harm
from mcce.explain.caution import cheapest_of
from mcce.explain.factuals import Factuals
from mcce.explain.problem import Problem
from mcce.explain.rank import best_of
from mcce.explain.winners import Winners

FIRST_DRAWS, MOST_DRAWS = 500, 16_000
TOLERANCE = 0.02  # of the summed Gower distance


def in_rounds(
    problem: Problem,
    factuals: Factuals,
    which: Ints,
    explain: Callable[[Ints, range], Winners],
    advance: Callable[[int], object],
) -> tuple[Winners, Ints]:
    """Return the winners of the factuals at `which`, and how many rows were drawn for each of all factuals.

    `explain` returns the winners of some factuals among some of their draws, in the order of the factuals; `advance` is
    told how many more factuals are stable.
    """
    drawn = np.zeros(len(factuals), dtype=np.int64)
    left, n_drawn = which, FIRST_DRAWS
    best = explain(left, range(n_drawn))
    done: list[Winners] = []
    while left.size and n_drawn < MOST_DRAWS:
        more = explain(left, range(n_drawn, 2 * n_drawn))
        n_drawn *= 2
        joined = _join(problem, factuals, best, more)
        stable = left[_stable(problem, len(factuals), best, joined, left)]
        drawn[stable] = n_drawn
        advance(stable.size)
        leaves = np.isin(joined.owner, stable)
        done.append(joined.take(leaves))
        best = replace(joined.take(~leaves), cost=joined.cost)
        left = np.setdiff1d(left, stable)
    drawn[left] = n_drawn
    advance(left.size)
    return Winners.join([best, *done]).by_factual(), drawn


def _join(problem: Problem, factuals: Factuals, before: Winners, new: Winners) -> Winners:
    """Return the best of what two rounds found, by the rules that apply within a round (`mcce.explain.sparse`)."""
    found = Winners.join([before, new])  # of each factual the earlier round first, which wins ties
    if problem.settings.sparse:
        assert problem.caution is not None
        found = found.preferring(found.plausibility >= problem.least)
        if problem.order.is_of_distances:
            found = without_harm(Acceptance(problem, factuals.matrix, factuals.index), found)
    k = problem.settings.n_counterfactuals
    if problem.caution is not None and problem.caution.strength > 0.0:
        kept = cheapest_of(problem.caution, found, factuals.matrix, k, gower(problem.features))
    else:
        kept = best_of(problem.order, problem.features, problem.mutable, found.owner, found.rows, factuals.matrix, k)
    return replace(found.take(kept), cost=found.cost)


def _stable(problem: Problem, n_factuals: int, before: Winners, after: Winners, which: Ints) -> Bools:
    """Return which factuals have the measures that they had, one rank like the other."""
    most = max(int(np.bincount(found.owner).max(initial=1)) for found in (before, after))
    old, new = (found.by_rank(n_factuals, most)[which] for found in (before, after))
    same = ((np.abs(old - new) <= [0.0, TOLERANCE]) | (np.isnan(old) & np.isnan(new))).all(axis=(1, 2))
    good = ~np.isnan(new[:, 0, 0])
    if problem.settings.sparse:
        good &= np.isin(which, after.owner[after.plausibility >= problem.least])
    return np.asarray(same & good)
