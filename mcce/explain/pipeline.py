"""The pipeline of `explain`: for each block of factuals draw, search, finish.

1. The factuals are taken in blocks whose pools fit in memory (`Problem.split`).
2. The pools of a block are drawn, inside the constraints if there are any (`mcce.explain.draw`).
3. A search chooses the best valid rows: among whole draws (`mcce.explain.plain`), among draws crossed with the factuals
   (`mcce.explain.sparse`), or diverse rows one after the other (`mcce.explain.diverse`). Factuals without a
   counterfactual in a shared pool may be redrawn individually.
4. The same draws are searched again, within limits, for factuals with a sparse counterfactual that must not be sent: a
   change makes the decision worse, such as a larger loan together with a higher salary, or there is another reason
   (`mcce.plausibility.stop_reasons`). A row without such a reason is preferred if it has at most one change more than a
   row with a long or far step or a changed fact, or two more than a row with another reason (`avoid_unfit`).
5. The steps of `FINISHING` are applied to the winners. A search is a function (Acceptance, Candidates) -> Winners, a
   finishing step a function (Acceptance, Winners) -> Winners.

With `n_samples="auto"` drawing and searching are repeated in rounds (`search_in_rounds`), for each factual until its
counterfactuals are stable:

1. Draw rows 0 to 499 of the pool of every factual, and search.
2. Double the number of draws for the remaining factuals, and search the new draws. Merge with the rows found before, in
   the same order: the winners among whole draws are exactly those of one search of all draws so far (except that a
   factual without a counterfactual in shared draws also has an individual pool). Crossings of sparse counterfactuals
   use one draw each, so rounds lose nothing here either; as the number of examined crossings of several features is
   limited in each round, rounds may even find better ones than one large pool.
3. A factual is stable if that doubling left its counterfactuals as many as they were, each with as many changes, and
   none moved by more than 0.02 in the summed Gower distance, which is 2 per cent of the range of one feature. A factual
   that has no counterfactual yet, or none at or above the floor, is not stable.
4. Go back to 2 until all are stable or have 16,000 draws.

Draws are identified by their index, and stability is a property of one factual, so neither its counterfactuals nor its
number of draws depend on the other factuals.

Guarantee: if none of h whole draws is better by more than the tolerance, fewer than 3 / h of all draws
are, at 95 per cent confidence (h is half of the draws made, at least 500). Repeated checks cost less confidence than
the draws before the last h add: of 299 stable factuals of the loans and Adult, none was above 3 / h in 20,000 further
draws, and 5 per cent were above 1 / h. The rule does not guarantee that nothing better exists. Without ties of
distances, the best of two halves is in the first half with probability one half, however few the draws: a factual may
become stable early by chance, so for the mean over many factuals a fixed `n_samples` of the same cost is slightly
better (benchmarks/results/draws.md). "auto" is for tables in which some factuals need far more draws than others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.base.progress import progress_bar, reported
from mcce.distances.measures import changed_columns
from mcce.explain.acceptance import Acceptance
from mcce.explain.crossing import Limits
from mcce.explain.diverse import diverse_set, in_order
from mcce.explain.draw import (
    Candidates,
    Pools,
    draw_block,
    draw_other_decision,
    draw_own_block,
    draw_pools,
    redraw_block,
)
from mcce.explain.finish import add_measures, round_for_display
from mcce.explain.plain import best_by, best_of, whole_draws
from mcce.explain.problem import Block, Factuals, Problem, searched
from mcce.explain.refine import drop_harmful, harm_of_changes, mark_incidental
from mcce.explain.sparse import crossed_draws
from mcce.explain.winners import Winners
from mcce.plausibility.stop_reasons import StopRules

FIRST_DRAWS, MOST_DRAWS = 500, 16_000
TOLERANCE = 0.02  # tolerance of the summed Gower distance
MORE_CHANGES = 1, 2  # additional changes that a fit row may have (`_most_changes`)
UNFIT = 9  # the place of unfit rows that were not searched again, after those of all searches
TRIED_FACTUALS, TRIED_DRAWS = 100, 100

FINISHING: tuple[Callable[[Acceptance, Winners], Winners], ...] = (round_for_display, mark_incidental, add_measures)


@dataclass(frozen=True)
class Cost:
    """The cost of a search.

    Attributes
    ----------
    rows_queried : number of rows for which the model was queried.
    seconds_generate, seconds_select : time for drawing, and for searching and finishing.
    pools : the keys of the pools that were drawn.
    acceptance : for each restriction, the number of rows checked and the number accepted.
    """

    rows_queried: int = 0
    seconds_generate: float = 0.0
    seconds_select: float = 0.0
    pools: UInts = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    acceptance: Mapping[Hashable, Ints] = field(default_factory=dict)

    @classmethod
    def total(cls, parts: Sequence[Cost]) -> Cost:
        """Return the sum of several costs."""
        acceptance: dict[Hashable, Ints] = {}
        for part in parts:
            for name, counts in part.acceptance.items():
                acceptance[name] = acceptance.get(name, np.zeros(2, dtype=np.int64)) + counts
        return cls(
            sum(part.rows_queried for part in parts),
            sum(part.seconds_generate for part in parts),
            sum(part.seconds_select for part in parts),
            np.unique(np.concatenate([part.pools for part in [cls(), *parts]])),
            acceptance,
        )


@dataclass(frozen=True)
class Explanation:
    """The complete outcome of an explanation.

    Attributes
    ----------
    problem, factuals : the problem, and the rows to explain.
    winners : the counterfactuals, in the order of the factuals.
    cost : the cost of the search.
    drawn : number of rows drawn for each factual; None if the user gave the candidates.
    contradictions : why no row can satisfy the constraints, by position of the factual.
    breaks : for each constraint, the share of unconstrained draws that violate it.
    """

    problem: Problem
    factuals: Factuals
    winners: Winners
    cost: Cost
    drawn: Ints | None
    contradictions: Mapping[int, str] = field(default_factory=dict)
    breaks: Mapping[str, float] = field(default_factory=dict)


def explain_factuals(
    problem: Problem, factuals: Factuals, progress: bool | None, label: str = "explaining"
) -> Explanation:
    """Explain all factuals that lack the wanted decision."""
    contradictions = problem.contradictions(factuals)
    which = searched(factuals, contradictions)
    with progress_bar(which.size, label, progress) as bar:
        winners, drawn, cost = explain_blocks(problem, factuals, which, bar.update)
    breaks = constraint_breaks(problem, factuals, which)
    return Explanation(problem, factuals, winners, cost, drawn, contradictions, breaks)


def explain_given(problem: Problem, factuals: Factuals, members: Ints, candidates: Candidates) -> Explanation:
    """Choose among candidates given by the user for the factuals at `members`."""
    begun = time.perf_counter()
    acceptance = Acceptance(problem, factuals.matrix[members], factuals.index[members])
    found = finish(acceptance, search(acceptance, candidates)).of_factuals(members)
    cost = Cost(acceptance.n_queried, seconds_select=time.perf_counter() - begun)
    breaks = constraint_breaks(problem, factuals, members)
    return Explanation(problem, factuals, join_blocks([found], factuals), cost, None, breaks=breaks)


def explain_blocks(
    problem: Problem, factuals: Factuals, which: Ints, advance: Callable[[float], object]
) -> tuple[Winners, Ints, Cost]:
    """Return the winners of the factuals at `which`, the number of rows drawn for each of all factuals, and the cost.

    `advance` is called with the number of further factuals that are done.
    """
    n_samples = problem.settings.n_samples
    first = range(FIRST_DRAWS if n_samples == "auto" else n_samples)
    drawn = np.zeros(len(factuals), dtype=np.int64)
    nothing = Winners.none(factuals.scores, factuals.matrix.shape[1])
    winners, costs = [], []
    for block in problem.split(problem.block(factuals, which, first)):
        with reported(advance, block.members.size):
            found, drawn[block.members], cost = explain_block(problem, block)
        winners.append(found)
        costs.append(cost)
    if not winners:
        winners.append(finish(Acceptance(problem, factuals.matrix[:0], factuals.index[:0]), nothing))
    return join_blocks(winners, factuals), drawn, Cost.total(costs)


def join_blocks(found: Sequence[Winners], factuals: Factuals) -> Winners:
    """Join the winners of blocks, in the order of the factuals."""
    joined = Winners.join(found).by_factual()
    return replace(joined, scores=np.concatenate([factuals.scores[:0], joined.scores]))


def explain_block(problem: Problem, block: Block) -> tuple[Winners, Ints, Cost]:
    """Draw, search and finish: return the winners of a block, the number of rows drawn for each factual, the cost."""
    acceptance = Acceptance(problem, block.matrix, block.ids)
    if problem.settings.n_samples == "auto":
        found, drawn, cost = search_in_rounds(acceptance, block)
    else:
        found, cost = search_block(acceptance, block)
        drawn = np.full(block.members.size, len(block.draws))
    begun = time.perf_counter()
    found = finish(acceptance, found).of_factuals(block.members)
    finished = Cost(acceptance.n_queried, seconds_select=time.perf_counter() - begun)
    return found, drawn, Cost.total([cost, finished])


def avoid_unfit(acceptance: Acceptance, candidates: Candidates, found: Winners) -> Winners:
    """Search again for factuals with a counterfactual that is unfit to be sent.

    A counterfactual is unfit if it has a reason not to be sent (`mcce.plausibility.stop_reasons`) or a long step, or if
    a change makes the decision worse. A harmful change makes the row plausible: a loan as small as the factual's is
    rare with the salary of a draw. The same draws are therefore searched again without changes of these columns, at
    first with all values in the other columns. If the row that is found is not fit, and for other reasons, values that
    a reason excludes are skipped: all but far steps, unless they are the only reason, then very far ones, then far
    ones, and finally long steps, if long or far steps are the only reasons. The search ends when nothing is found. New
    rows that are less unfit take part in `prefer_fit`. Factuals whose counterfactuals are below the floor are skipped.
    """
    problem = acceptance.problem
    if not (problem.settings.sparse and problem.order.is_of_distances):
        return found
    harm = harm_of_changes(acceptance, found)
    reasons = _reasons_and_harm(acceptance, found, harm)
    unfit = np.asarray(reasons.any(axis=1))
    left = np.unique(found.owner[unfit & (found.plausibility >= acceptance.least)])
    if not left.size:
        return found
    kept = np.zeros(acceptance.matrix.shape, dtype=bool)
    np.logical_or.at(kept, found.owner, harm > 0.0)
    serious = np.zeros(len(acceptance))
    np.maximum.at(serious, found.owner, reasons[:, 0])
    harmful = np.asarray(kept.any(axis=1))
    stages: dict[StopRules, Bools] = {}
    if problem.stops is not None:
        long, far = np.isin(serious, (1, 2, 3)) & ~harmful, (serious > 1) | harmful
        of_stages = (serious > 3, serious > 2, far, long)
        stages = dict(zip(problem.stops.nested[::-1], of_stages))  # equal rules are used once
    most = _most_changes(acceptance, found, reasons[:, 0])
    parts: list[Winners] = []  # of the strictest search first
    unfitness: list[Ints] = []  # of their rows; it depends on the search, not on the searches for other factuals
    done = np.zeros(len(acceptance), dtype=bool)  # nothing was found, or enough rows that are fit
    searches = ((None, harmful), *stages.items())
    for place, (stops, searched_again) in zip(range(len(searches), 0, -1), searches):
        which = left[(searched_again & ~done)[left]]
        if not which.size:
            continue
        rule = acceptance.take(which)
        limits = _limits(rule, stops, kept[which], most[which])
        rule = rule.for_problem(replace(problem, stops=stops, avoids_stops=True), limits)
        new = search(rule, candidates.take(which)).of_factuals(which)
        new = new.take((new.plausibility >= acceptance.least) & (new.measures[:, 0] <= most[new.owner]))
        of_new = _reasons_and_harm(acceptance, new, harm_of_changes(acceptance, new))
        less = _are_less_unfit(acceptance, new, of_new, found, reasons)
        new, of_new = new.take(less), of_new[less]
        parts.insert(0, new)
        unfitness.insert(0, np.where(of_new.any(axis=1), place, 0))
        n_fit = np.bincount(new.owner[acceptance.seriousness(new.rows, new.owner) == 0], minlength=done.size)
        done[which] = (n_fit[which] >= problem.settings.n_counterfactuals) | ~np.isin(which, new.owner)
    redone = np.isin(found.owner, np.concatenate([part.owner for part in parts]))
    unfitness.insert(0, np.where(unfit[redone], UNFIT, 0))
    chosen = prefer_fit(acceptance, Winners.join([found.take(redone), *parts]), np.concatenate(unfitness), most)
    return Winners.join([found.take(~redone), chosen])


def _limits(acceptance: Acceptance, stops: StopRules | None, kept: Bools, most: Floats) -> Limits:
    """Return limits that exclude changes in some columns, values that a reason excludes, and too many changes."""
    limits = Limits.none(*kept.shape)
    if stops is not None:
        for j in acceptance.problem.mutable.tolist():
            limits.low[:, j], limits.high[:, j] = stops.bounds(j, acceptance.matrix)
    limits.low[kept], limits.high[kept] = np.inf, -np.inf
    return replace(limits, most=most)


def _reasons_and_harm(acceptance: Acceptance, found: Winners, harm: Floats) -> Floats:
    """Return for each row how serious the reasons not to send it are, and the harm of its changes."""
    return np.column_stack([acceptance.seriousness(found.rows, found.owner), harm.sum(axis=1)])


def _are_less_unfit(acceptance: Acceptance, new: Winners, of_new: Floats, found: Winners, reasons: Floats) -> Bools:
    """Return which new rows are fit, or less unfit than all rows found before for their factual."""
    _, rank = np.unique(np.concatenate([reasons, of_new]), axis=0, return_inverse=True)
    least = np.full(len(acceptance), rank.size)
    np.minimum.at(least, found.owner, rank[: found.owner.size])
    return np.asarray(~of_new.any(axis=1) | (rank[found.owner.size :] < least[new.owner]))


def _most_changes(acceptance: Acceptance, found: Winners, seriousness: npt.ArrayLike) -> Floats:
    """Return the number of changes that a fit row may have, for each factual: it depends on the sparsest row found.

    More changes are not worth it to avoid a change of a past event or fact: `fit` advises to fix these features.
    """
    n_changes, stops = found.measures[:, 0], acceptance.problem.stops
    serious = np.asarray(seriousness) > 3
    if stops is not None:
        changed = changed_columns(found.rows, acceptance.matrix[found.owner])
        serious &= ~changed[:, stops.facts].any(axis=1)
    fewest, more = np.full(len(acceptance), np.inf), np.full(len(acceptance), MORE_CHANGES[0])
    np.minimum.at(fewest, found.owner, n_changes)
    more[found.owner[serious & (n_changes == fewest[found.owner])]] = MORE_CHANGES[1]
    return fewest + more


def prefer_fit(acceptance: Acceptance, found: Winners, unfitness: Ints, most: Floats) -> Winners:
    """Return the best of the least unfit rows of each factual, followed by more unfit ones if these are too few.

    `unfitness` is 0 for fit rows, and at most `UNFIT` for others; rows with more changes than `most` of their factual
    count as unfit. Diverse rows are taken in the order in which they were chosen, fit ones first, and returned in the
    order of the measures.
    """
    settings = acceptance.problem.settings
    unfitness = np.where(found.measures[:, 0] <= most[found.owner], unfitness, UNFIT)
    ranked = [found.take(unfitness == each) for each in np.unique(unfitness)] or [found]
    if not settings.diverse:
        ranked = [best_of(acceptance, each, settings.n_counterfactuals) for each in ranked]
    found = Winners.join(ranked)
    found = found.take(best_by(found.owner, found.rows, (), settings.n_counterfactuals))
    return in_order(acceptance, found) if settings.diverse else found


def search_block(acceptance: Acceptance, block: Block) -> tuple[Winners, Cost]:
    """Draw and search; redraw factuals without a counterfactual within all their constraints."""
    problem, begun = acceptance.problem, time.perf_counter()
    pools = draw_block(problem, block)
    found, cost = _search_timed(acceptance, pools, begun)
    parts, costs, begun = [found], [cost], time.perf_counter()
    explained = np.isin(np.arange(len(acceptance)), found.owner)
    again: list[tuple[Bools, Callable[[Problem, Block], Pools]]] = [(pools.to_redraw, draw_own_block)]
    if problem.settings.sparse and problem.generator.conditions_on_decision_:
        again.append((np.ones_like(explained), draw_other_decision))
    for to_redraw, draw in again:
        for some, own in redraw_block(problem, block, np.flatnonzero(to_redraw & ~explained), draw):
            found, cost = _search_timed(acceptance.take(some), own, begun)
            parts.append(found.of_factuals(some))
            explained[parts[-1].owner] = True
            costs.append(cost)
            begun = time.perf_counter()
    return Winners.join(parts), Cost.total(costs)


def _search_timed(acceptance: Acceptance, pools: Pools, begun: float) -> tuple[Winners, Cost]:
    """Search pools, given the time at which drawing began; return also the cost."""
    drawn = time.perf_counter()
    found = avoid_unfit(acceptance, pools.candidates, search(acceptance, pools.candidates))
    seconds = drawn - begun, time.perf_counter() - drawn
    return found, Cost(0, *seconds, np.unique(pools.keys), pools.acceptance)


def search(acceptance: Acceptance, candidates: Candidates) -> Winners:
    """Return the best valid rows of each factual, with their measures, by the search of the settings."""
    settings = acceptance.problem.settings
    strategy = diverse_set if settings.diverse else crossed_draws if settings.sparse else whole_draws
    found = strategy(acceptance, candidates)
    counted = acceptance.counted(found.rows, found.owner)
    return found.measured(acceptance.problem.features, acceptance.matrix, counted)


def finish(acceptance: Acceptance, found: Winners) -> Winners:
    """Apply the finishing steps."""
    for step in FINISHING:
        found = step(acceptance, found)
    return found


def search_in_rounds(acceptance: Acceptance, block: Block) -> tuple[Winners, Ints, Cost]:
    """Return the winners of a block, the number of rows drawn for each factual, and the cost."""
    problem = acceptance.problem
    drawn = np.zeros(block.members.size, dtype=np.int64)
    left, n_drawn = np.arange(block.members.size), FIRST_DRAWS
    best, cost = search_block(acceptance, replace(block, draws=range(n_drawn)))
    done, costs = [], [cost]
    while left.size and n_drawn < MOST_DRAWS:
        more = replace(block, members=np.arange(block.members.size), draws=range(n_drawn, 2 * n_drawn)).take(left)
        found = [best]  # earlier rounds come first, and win ties
        for part in problem.split(more):
            new, cost = search_block(acceptance.take(part.members), part)
            found.append(new.of_factuals(part.members))
            costs.append(cost)
        n_drawn *= 2
        joined = _join_rounds(acceptance, Winners.join(found))
        stable = left[_stable(acceptance, best, joined, left)]
        drawn[stable] = n_drawn
        leaves = np.isin(joined.owner, stable)
        done.append(joined.take(leaves))
        best = joined.take(~leaves)
        left = np.setdiff1d(left, stable)
    drawn[left] = n_drawn
    return Winners.join([best, *done]), drawn, Cost.total(costs)


def _join_rounds(acceptance: Acceptance, found: Winners) -> Winners:
    """Return the best rows of two rounds, by the rules that apply within a round (`mcce.explain.sparse`)."""
    problem = acceptance.problem
    if problem.settings.sparse:
        found = found.prefer(found.plausibility >= problem.least)
        if problem.order.is_of_distances:
            found = drop_harmful(acceptance, found)
            seriousness = acceptance.seriousness(found.rows, found.owner)
            most = _most_changes(acceptance, found, seriousness)
            return prefer_fit(acceptance, found, np.where(seriousness > 0, UNFIT, 0), most)
    return best_of(acceptance, found, problem.settings.n_counterfactuals)


def _stable(acceptance: Acceptance, before: Winners, after: Winners, which: Ints) -> Bools:
    """Return which factuals have the same measures as before, rank by rank."""
    most = max(int(np.bincount(found.owner).max(initial=1)) for found in (before, after))
    old, new = (found.by_factual().by_rank(len(acceptance), most)[which] for found in (before, after))
    same = ((np.abs(old - new) <= [0.0, TOLERANCE]) | (np.isnan(old) & np.isnan(new))).all(axis=(1, 2))
    good = ~np.isnan(new[:, 0, 0])
    if acceptance.problem.settings.sparse:
        good &= np.isin(which, after.owner[after.plausibility >= acceptance.least])
    return np.asarray(same & good)


def constraint_breaks(problem: Problem, factuals: Factuals, which: Ints) -> dict[str, float]:
    """Return for each constraint the share of unconstrained draws that violate it, for some of the factuals."""
    constraints = problem.constraints
    if constraints is None or not constraints.explicit:
        return {}
    some = which[np.unique(np.linspace(0, max(which.size - 1, 0), TRIED_FACTUALS).astype(np.intp))[: which.size]]
    breaks = dict.fromkeys(constraints.texts, np.nan)
    if some.size:
        pools = draw_pools(problem.generator, factuals.matrix[some], problem.keys(factuals)[some], TRIED_DRAWS)
        rows = np.concatenate([pools.rows[a:b] for a, b in zip(pools.begin, pools.end)])
        owner = np.repeat(some, pools.end - pools.begin)
        broken = constraints.broken(rows, factuals.matrix[owner], factuals.index[owner])
        breaks |= {text: float(each.mean()) for text, each in broken.items()}
    return breaks
