"""The way of a block of factuals: draw their pools, and choose among the candidates (steps 2 and 3 of the method).

1. The factuals are taken in blocks whose pools fit in memory (`Problem.blocks`).
2. The pools of a block are drawn, inside the constraints if there are any (`mcce.explain.pools`).
3. A strategy, a function of the problem, the block and its candidates, chooses the best valid rows: among whole draws
   as they are, among draws crossed with the factuals (`mcce.explain.sparse`), or one after the other so that they
   differ (`mcce.explain.diversity`), by either of these two.
4. Who finds nothing in a pool that is shared with others may get one of its own.

With `n_samples="auto"` the same is done in rounds (`mcce.explain.adaptive`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mcce.base.arrays import Ints
from mcce.base.progress import report, reported, within
from mcce.constraints import Constraints
from mcce.explain.acceptance import Acceptance
from mcce.explain.adaptive import in_rounds
from mcce.explain.diversity import Spread
from mcce.explain.factuals import Factuals
from mcce.explain.pools import POOL_BYTES, Candidates, ConstrainedPools, Pools, draw_pools, pool_blocks
from mcce.explain.problem import Block, Problem
from mcce.explain.rank import Selector, best_of
from mcce.explain.sparse import crossed_draws
from mcce.explain.winners import Cost, Winners
from mcce.model.ask import RememberingAsker

DIVERSE_FACTUALS = 64  # whose answers are remembered at a time

Advance = Callable[[float], object]
Strategy = Callable[[Problem, Block, Candidates], Winners]


def search(problem: Problem, factuals: Factuals, which: Ints, advance: Advance) -> tuple[Winners, Ints]:
    """Return the winners of the factuals at `which`, and how many rows were drawn for each of all factuals.

    `advance` is told how many more factuals are done.
    """
    n_samples = problem.settings.n_samples
    if n_samples == "auto":
        return in_rounds(problem, factuals, which, lambda left, draws: _search(problem, factuals, left, draws), advance)
    drawn = np.zeros(len(factuals), dtype=np.int64)
    drawn[which] = n_samples
    return _search(problem, factuals, which, range(n_samples), advance), drawn


def _search(problem: Problem, factuals: Factuals, which: Ints, draws: range, advance: Advance | None = None) -> Winners:
    found = []
    for block in problem.blocks(factuals, which, draws):
        with reported(advance or _nobody_waits, block.members.size):
            found.append(explain_block(problem, block))
    return join_blocks(found, factuals)


def _nobody_waits(n: float) -> None:
    """Take note of progress that nobody sees."""


def join_blocks(found: Sequence[Winners], factuals: Factuals) -> Winners:
    """Join the winners of blocks, in the order of the factuals."""
    joined = Winners.join([Winners.none(factuals.scores, factuals.matrix.shape[1]), *found]).by_factual()
    return replace(joined, scores=np.concatenate([factuals.scores[:0], joined.scores]))


def explain_block(problem: Problem, block: Block) -> Winners:
    """Return the winners of a block, with their measures and their cost; who has none may get draws of its own."""
    begun = time.perf_counter()
    pools = draw_block(problem, block)
    parts = [_choose_timed(problem, block, pools, begun)]
    without = np.flatnonzero(pools.may_find_more & ~np.isin(block.members, parts[0].owner))
    # a pool for each of them, perhaps, and no more of these at a time than fit in memory
    own = np.arange(block.members.size, dtype=np.uint64)
    for some in pool_blocks(without, own, 8 * len(block.draws) * block.matrix.shape[1]):
        begun = time.perf_counter()
        left = block.take(some)
        parts.append(_choose_timed(problem, left, draw_own_block(problem, left), begun))
    return Winners.join(parts)


def draw_block(problem: Problem, block: Block) -> Pools:
    """Draw the pools of a block, inside the constraints if there are any.

    Draws that are crossed with the factuals afterwards need not obey rules over several features before.
    """
    if problem.constraints is None:
        n, begin = len(block.draws), block.draws.start
        candidates = draw_pools(
            problem.generator, block.matrix, block.keys, n, begin=begin, redraw=problem.settings.redraw
        )
        return Pools(candidates, block.keys, np.zeros(block.members.size, dtype=bool))
    if not (problem.settings.sparse and problem.constraints.open_rules):
        return _constrained(problem, block, problem.constraints).draw(block.draws)
    pools = _constrained(problem, block, problem.constraints.before_crossing).draw(block.draws)
    return replace(pools, may_find_more=np.ones(block.members.size, dtype=bool))


def draw_own_block(problem: Problem, block: Block) -> Pools:
    """Draw pools inside all that each factual of a block asks; what is bounded may stay as it is."""
    assert problem.constraints is not None
    return _constrained(problem, block, problem.constraints).draw_own(block.draws)


def _constrained(problem: Problem, block: Block, constraints: Constraints) -> ConstrainedPools:
    redraw = problem.settings.redraw
    return ConstrainedPools(problem.generator, constraints, block.matrix, block.keys, block.ids, redraw)


def _choose_timed(problem: Problem, block: Block, pools: Pools, begun: float) -> Winners:
    """Choose among pools whose drawing was begun at a time."""
    drawn = time.perf_counter()
    found = choose(problem, block, pools.candidates)
    selected = time.perf_counter()
    return replace(
        found, cost=Cost(found.cost.asked, drawn - begun, selected - drawn, np.unique(pools.keys), pools.acceptance)
    )


def choose(problem: Problem, block: Block, pools: Candidates) -> Winners:
    """Return the winners among the candidates of a block, by the strategy that is asked for, with their measures."""
    strategy = diverse_set if problem.settings.diverse else _in_order(problem)
    found = strategy(problem, block, pools).measured(problem.features, block.matrix)
    return found.of_factuals(block.members)


def _in_order(problem: Problem) -> Strategy:
    return crossed_draws if problem.settings.sparse else whole_draws


def whole_draws(problem: Problem, block: Block, pools: Candidates) -> Winners:
    """Choose the best valid draws of each factual of a block."""
    if problem.relations is None:
        return _choose_drawn(problem, block, pools)
    n_draws = int((pools.end - pools.begin).max(initial=1))
    at_once = max(1, POOL_BYTES // (8 * n_draws * pools.rows.shape[1]))  # factuals, whose draws are completed
    parts = []
    for first in range(0, block.members.size, at_once):
        some = np.arange(first, min(first + at_once, block.members.size))
        report(first / block.members.size)
        separate, owner = pools.separate(some)
        completed = np.asfortranarray(problem.relations.complete(separate.rows, block.matrix[owner]))
        mine = replace(separate, rows=completed)
        with within(first / block.members.size, (some[-1] + 1) / block.members.size):
            parts.append(_choose_drawn(problem, block.take(some), mine).of_factuals(some))
    return Winners.join(parts)


def _choose_drawn(problem: Problem, block: Block, pools: Candidates) -> Winners:
    settings = problem.settings
    # pools are shared by factuals that do not allow all of their rows, and a generator need not draw within constraints
    acceptance = Acceptance(problem, block.matrix, block.ids)
    return Selector(problem.features, problem.mutable, problem.question.ask_encoded).select(
        pools,
        block.matrix,
        settings.n_counterfactuals,
        exhaustive=settings.exhaustive,
        ordering=problem.order,
        max_changes=settings.max_changes,
        max_gower=settings.max_gower,
        allow=None if acceptance.admits_all else lambda which, owner: acceptance.admits(pools.rows[which], owner),
    )


def diverse_set(problem: Problem, block: Block, pools: Candidates) -> Winners:
    """Choose counterfactuals one after the other, each for what it adds (`mcce.explain.diversity`)."""
    k, strategy = problem.settings.n_counterfactuals, _in_order(problem)
    parts: list[Winners] = []
    n_asked = 0
    for begin in range(0, block.members.size, DIVERSE_FACTUALS):
        asker = RememberingAsker(problem.question.ask_encoded)
        spread = Spread(problem.features, problem.order)
        one = replace(problem, question=asker, settings=replace(problem.settings, n_counterfactuals=1))
        left = np.arange(begin, min(begin + DIVERSE_FACTUALS, block.members.size))
        by_set = left if problem.settings.sparse and problem.order.is_of_distances else left[:0]
        by_gain = one
        for place in range(k):
            found: list[Winners] = []
            if place:  # other features first, of the rest what adds most
                sets = by_set[np.isin(by_set, left)]
                found.append(_of_other_features(one, block, pools, sets, spread))
                by_set = found[0].owner
                left = left[~np.isin(left, by_set)]
            if left.size:
                candidates = Candidates(pools.rows, pools.begin[left], pools.end[left])
                with within(begin / block.members.size, begin / block.members.size):
                    found.append(strategy(by_gain, block.take(left), candidates).of_factuals(left))
            part = Winners.join(found)
            new = spread.choose(part.rows, block.matrix[part.owner])
            parts.append(part.take(new))
            left = part.owner[new]
            if not left.size:  # the others have no further candidate
                break
            nearest = None if problem.caution is None else replace(problem.caution, strength=0.0)
            by_gain = replace(one, order=spread.next_ordering(), caution=nearest)
        n_asked += asker.n_asked
        report(min(begin + DIVERSE_FACTUALS, block.members.size) / block.members.size)
    chosen = Winners.join(parts)
    kept = best_of(problem.order, problem.features, problem.mutable, chosen.owner, chosen.rows, block.matrix, k)
    return replace(chosen.take(kept), cost=Cost(n_asked))


def _of_other_features(problem: Problem, block: Block, pools: Candidates, which: Ints, spread: Spread) -> Winners:
    """Return the best row, at or above the floor, that changes another set of features than those chosen before."""
    if not which.size:
        return Winners.none(np.empty(0), block.matrix.shape[1])
    candidates = Candidates(pools.rows, pools.begin[which], pools.end[which])
    with within(0.0, 0.0):
        found = crossed_draws(problem, block.take(which), candidates, spread.changes_the_same)
    return found.take(found.plausibility >= problem.least).of_factuals(which)
