"""Explaining all factuals: with a given number of draws, or with as many as each of them needs.

With `n_samples="auto"` draws are made in rounds, and each factual leaves when its own answer has settled:

1. Draw rows 0 to 499 of the pool of every factual, and choose.
2. Draw as many rows again as there have been, for the factuals that are left, and choose among these. Join with what
   was chosen before, in the same order: what is chosen from whole draws is exactly what one choice among all draws so
   far would be (but that a factual which once found nothing in draws shared with others has draws of its own beside).
   Crossings of sparse counterfactuals are of one draw each, so they too lose nothing by rounds; as only so many
   crossings of several features are looked at each time, rounds may even find better ones than one large pool.
3. A factual is settled if that doubling left its counterfactuals as many as they were, each with as many changes, and
   none moved by more than 0.02 in the summed Gower distance, which is 2 per cent of the range of one feature. One that
   has no counterfactual yet, or none at or above the floor, is not settled.
4. Go back to 2 until all are settled or have 16,000 draws.

Draws are known by their index and the rule looks at one factual alone, so neither its answer nor its number of draws
depends on what stands beside it.

What the rule says: where none of h whole draws is better by more than the tolerance, fewer than 3 / h of all draws are,
at 95 per cent confidence (h is half of the draws made, at least 500). That several rounds are looked at costs less than
the draws before the last h give: of 299 factuals of the loans and Adult that had settled none was above 3 / h by 20,000
further draws, and 5 per cent above 1 / h. What the rule cannot say: that nothing better exists. Where distances have no
ties, the best of two halves is in the first one half of the time, however few the draws: a factual leaves early by luck
as well as by merit, so that for the mean over many factuals a fixed `n_samples` of the same work is a little better
(benchmarks/results/draws.md). "auto" is for tables in which some factuals need far more draws than others.

Another, independent drawing of all pools gives the Monte Carlo error of a mean (`redraw_errors`): factuals of one pool
share their luck, so it is pools, not factuals, that vary independently. With S_p the sum over the factuals of pool p,
of n in all, the variance of their mean is  sum_p Var(S_p) / n^2,  and Var(S_p) is estimated from the redraws.

The same drawing says how stable the answers are: the share of factuals whose best counterfactual changes the same
features both times (`agreement`), which estimates without bias how often two drawings agree for these factuals, fitted
generator and model. A hundred factuals, spread over all, tell it to 0.05 or better where they share no pools.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.base.progress import progress_bar
from mcce.explain.distances import Distance, changes, gower, gower_sum
from mcce.explain.factuals import Factuals
from mcce.explain.pools import Candidates
from mcce.explain.rank import Ranking
from mcce.explain.search import Outcome, Task, concatenate, explain_block, keys_of, make_blocks

FIRST_DRAWS, MOST_DRAWS = 500, 16_000
MOST_REDRAWN = 100  # factuals, to see how stable the answers are
TOLERANCE = 0.02  # of the summed Gower distance

Advance = Callable[[int], object]


@dataclass(frozen=True)
class Explained:
    """The outcome of all factuals, and how many rows were drawn for each."""

    outcome: Outcome
    draws: Ints


def explain_all(task: Task, factuals: Factuals, which: Ints, advance: Advance) -> Explained:
    """Explain the factuals at `which`; `advance` is told how many more are done."""
    draws = np.zeros(len(factuals), dtype=np.int64)
    if task.settings.n_samples == "auto":
        outcome = _in_rounds(task, factuals, which, draws, advance)
    else:
        draws[which] = task.settings.n_samples
        outcome = _explain(task, factuals, which, range(task.settings.n_samples), advance)
    return Explained(outcome, draws)


def _explain(task: Task, factuals: Factuals, which: Ints, draws: range, advance: Advance) -> Outcome:
    outcomes = []
    for block in make_blocks(task, factuals, which, draws):
        outcomes.append(explain_block(task, block))
        advance(block.members.size)
    return concatenate(outcomes, factuals)


def _in_rounds(task: Task, factuals: Factuals, refused: Ints, draws: Ints, advance: Advance) -> Outcome:
    """Follow the rule of this module, and write the number of draws of each factual into `draws`."""
    left, n_drawn = refused, FIRST_DRAWS
    best = _explain(task, factuals, left, range(n_drawn), lambda _: None)
    done = []
    while left.size and n_drawn < MOST_DRAWS:
        more = _explain(task, factuals, left, range(n_drawn, 2 * n_drawn), lambda _: None)
        n_drawn *= 2
        joined = _join(task, factuals, best, more)
        settled = left[_settled(task, factuals, best, joined, left)]
        draws[settled] = n_drawn
        advance(settled.size)
        leaves = np.isin(joined.owner, settled)
        done.append(replace(joined.take(leaves), n_asked=0, seconds_generate=0.0, seconds_select=0.0, acceptance={}))
        best = joined.take(~leaves)
        left = np.setdiff1d(left, settled)
    draws[left] = n_drawn
    advance(left.size)
    return concatenate([*done, best], factuals)


def _join(task: Task, factuals: Factuals, before: Outcome, new: Outcome) -> Outcome:
    """Keep the best of what two rounds found; rows below the floor only where there are no others."""
    both = concatenate([before, new], factuals)  # of each factual the earlier round first, which wins ties
    if task.settings.sparse:
        low = both.plausibility < task.settings.floor
        both = both.take(~low | ~np.isin(both.owner, both.owner[~low]))
    owners, begin = np.unique(both.owner, return_index=True)
    pools = Candidates(both.rows, begin, np.append(begin[1:], both.owner.size))
    ranking = Ranking(task.ordering, task.generator.schema_.features, task.mutable, pools, factuals.matrix[owners])
    k = min(task.settings.n_counterfactuals, int((pools.end - pools.begin).max(initial=1)))
    found, n_found = ranking.first(np.arange(owners.size), k)
    return both.take(found[np.arange(k) < n_found[:, None]])


def _settled(task: Task, factuals: Factuals, before: Outcome, after: Outcome, which: Ints) -> Bools:
    """Say which factuals have the costs that they had, one rank like the other."""
    features = task.generator.schema_.features
    most = _most_found(before, after)
    old, new = (
        np.stack([_by_rank(part, factuals, d, which, most) for d in (changes(features), gower_sum(features))])
        for part in (before, after)
    )
    same = ((np.abs(old - new) <= [[[0.0]], [[TOLERANCE]]]) | (np.isnan(old) & np.isnan(new))).all(axis=(0, 2))
    good = ~np.isnan(new[0, :, 0])
    if task.settings.sparse:
        good &= np.isin(which, after.owner[after.plausibility >= task.settings.floor])
    return np.asarray(same & good)


def _most_found(*outcomes: Outcome) -> int:
    """Return the largest number of counterfactuals that a factual has; many more may have been asked for."""
    return max(int(np.bincount(outcome.owner).max(initial=1)) for outcome in outcomes)


def _by_rank(outcome: Outcome, factuals: Factuals, distance: Distance, which: Ints, most: int) -> Floats:
    """Return the distances of the counterfactuals of some factuals, a row each, NaN where there is none."""
    values = np.full((len(factuals), most), np.nan)
    rank = np.arange(outcome.owner.size) - np.searchsorted(outcome.owner, outcome.owner)
    values[outcome.owner, rank] = distance.between(outcome.rows, factuals.matrix[outcome.owner])
    return values[which]


def draw_again(task: Task, factuals: Factuals, which: Ints, advance: Advance) -> Outcome:
    """Explain some factuals by another, independent drawing of their pools."""
    settings = replace(task.settings, redraw=-1 - task.settings.redraw)  # a negative number is no user's redraw
    return explain_all(replace(task, settings=settings), factuals, which, advance).outcome


def redraw_errors(task: Task, factuals: Factuals, outcome: Outcome, again: Outcome) -> dict[str, float]:
    """Return the Monte Carlo standard errors of the mean L0 and Gower distance of the best counterfactuals.

    `again` is another drawing of all pools. The means are over the factuals that are explained both times.
    """
    features = task.generator.schema_.features
    keys, everybody = keys_of(task, factuals), np.arange(len(factuals))
    most = _most_found(outcome, again)
    errors = {}
    for distance in (changes(features), gower(features)):
        best = [_by_rank(part, factuals, distance, everybody, most)[:, 0] for part in (outcome, again)]
        errors[distance.name] = pooled_error(np.stack(best), keys)
    return errors


def standard_errors_of(
    task: Task, factuals: Factuals, which: Ints, outcome: Outcome, progress: bool | None = None
) -> dict[str, float]:
    """Draw again for all factuals at `which`, and return the Monte Carlo standard errors (`redraw_errors`)."""
    with progress_bar(which.size, "drawing again", progress) as bar:
        again = draw_again(task, factuals, which, bar.update)
    return redraw_errors(task, factuals, outcome, again)


@dataclass(frozen=True)
class Agreement:
    """Of how many factuals that were drawn for again, which share has the same set of changed features both times."""

    n_factuals: int
    share: float


def agreement(factuals: Factuals, which: Ints, outcome: Outcome, again: Outcome) -> Agreement:
    """Compare two drawings; no counterfactual both times is the same as well."""
    one, other = (_changed_sets(part, factuals)[which] for part in (outcome, again))
    return Agreement(which.size, float((one == other).all(axis=1).mean()) if which.size else float("nan"))


def redraw_some(
    task: Task, factuals: Factuals, which: Ints, outcome: Outcome, progress: bool | None = None
) -> Agreement:
    """Draw again for at most a hundred factuals, spread over those at `which`, and compare."""
    some = which[np.unique(np.linspace(0, max(which.size - 1, 0), MOST_REDRAWN).astype(np.intp))[: which.size]]
    with progress_bar(some.size, "drawing again", progress) as bar:
        again = draw_again(task, factuals, some, bar.update)
    return agreement(factuals, some, outcome, again)


def _changed_sets(outcome: Outcome, factuals: Factuals) -> Bools:
    """Return which columns the best counterfactual of each factual changes; the last column says that there is none."""
    owners, first = np.unique(outcome.owner, return_index=True)
    new, old = outcome.rows[first], factuals.matrix[owners]
    sets = np.zeros((len(factuals), factuals.matrix.shape[1] + 1), dtype=bool)
    sets[:, -1] = True
    sets[owners, :-1] = (new != old) & ~(np.isnan(new) & np.isnan(old))
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
    >>> from mcce.explain.adaptive import pooled_error
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
