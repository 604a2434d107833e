"""Another, independent drawing of the candidates: standard errors of means, and how stable the answers are.

1. It gives the Monte Carlo error of a mean (`redraw_errors`): factuals of one pool share their luck, so it is pools,
   not factuals, that vary independently. With S_p the sum over the factuals of pool p, of n in all, the variance of
   their mean is  sum_p Var(S_p) / n^2,  and Var(S_p) is estimated from the redraws.
2. It says how stable the answers are: the share of factuals whose best counterfactual changes the same features both
   times (`agreement`), which estimates without bias how often two drawings agree for these factuals, fitted generator
   and model. A hundred factuals, spread over all, tell it to 0.05 or better where they share no pools.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.base.progress import progress_bar
from mcce.counterfactuals import Agreement
from mcce.distances.measures import changed_columns
from mcce.explain.factuals import Factuals
from mcce.explain.problem import Problem
from mcce.explain.search import search
from mcce.explain.winners import Winners

MOST_REDRAWN = 100  # factuals, to see how stable the answers are


def draw_again(
    problem: Problem, factuals: Factuals, which: Ints, progress: bool | None, redraw: int | None = None
) -> tuple[Winners, Ints]:
    """Explain some factuals by another, independent drawing of their pools; return also the draws of each.

    Drawings have numbers; None is one that belongs to the problem's own, and that no user has asked for.
    """
    number = -1 - problem.settings.redraw if redraw is None else redraw
    problem = replace(problem, settings=replace(problem.settings, redraw=number))
    with progress_bar(which.size, "drawing again", progress) as bar:
        return search(problem, factuals, which, bar.update)


def redraw_errors(problem: Problem, factuals: Factuals, winners: Winners, again: Winners) -> dict[str, float]:
    """Return the Monte Carlo standard errors of the mean L0 and Gower distance of the best counterfactuals.

    `again` is another drawing of all pools. The means are over the factuals that are explained both times.
    """
    most = max(int(np.bincount(found.owner).max(initial=1)) for found in (winners, again))
    best = np.stack([found.by_rank(len(factuals), most)[:, 0] for found in (winners, again)])
    keys = problem.keys(factuals)
    return {
        "L0": pooled_error(best[:, :, 0], keys),
        "gower": pooled_error(best[:, :, 1] / len(problem.features), keys),
    }


def agreement(factuals: Factuals, which: Ints, winners: Winners, again: Winners) -> Agreement:
    """Compare two drawings; no counterfactual both times is the same as well."""
    one, other = (_changed_sets(part, factuals)[which] for part in (winners, again))
    return Agreement(which.size, float((one == other).all(axis=1).mean()) if which.size else float("nan"))


def spread_over(which: Ints) -> Ints:
    """Return at most a hundred factuals, spread over those at `which`."""
    return which[np.unique(np.linspace(0, max(which.size - 1, 0), MOST_REDRAWN).astype(np.intp))[: which.size]]


def _changed_sets(winners: Winners, factuals: Factuals) -> Bools:
    """Return which columns the best counterfactual of each factual changes; the last column says that there is none."""
    owners, first = np.unique(winners.owner, return_index=True)
    new, old = winners.rows[first], factuals.matrix[owners]
    sets = np.zeros((len(factuals), factuals.matrix.shape[1] + 1), dtype=bool)
    sets[:, -1] = True
    sets[owners, :-1] = changed_columns(new, old)
    sets[owners, -1] = False
    return sets


def pooled_error(values: Floats, pools: UInts) -> float:
    """Return the standard error of a mean over factuals, from its redraws.

    Parameters
    ----------
    values : a row for each of at least two redraws, a column for each factual; those with NaN are left out.
    pools : what identifies the pool of each factual.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.explain.redraw import pooled_error
    >>> values = np.array([[1.0, 1.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]])
    >>> pooled_error(values, np.array([7, 7, 8, 9], dtype=np.uint64))  # sqrt(2) / 4: the sums of pool 7 are 2 and 4
    0.3535533905932738
    """
    known = ~np.isnan(values).any(axis=0)
    if not known.any():
        return float("nan")
    pool, distinct = pd.factorize(pools[known])
    sums = np.zeros((values.shape[0], len(distinct)))
    for r, row in enumerate(values[:, known]):
        np.add.at(sums[r], pool, row)
    return float(np.sqrt(sums.var(axis=0, ddof=1).sum()) / known.sum())
