"""The flow of an explanation: blocks of factuals, draws, search; then own draws, then no floor, for those unexplained.

Blocks run in threads; the answer does not depend on their number or size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from mcce._utils import Bools, Floats, Ints, map_threads
from mcce.explain.acceptance import Acceptance
from mcce.explain.draw import Pools, draw_own, draw_shared
from mcce.explain.plain import Counts, search_plain
from mcce.explain.problem import Factuals, Problem, blocks
from mcce.explain.sparse import search_sparse
from mcce.explain.winners import Winners

TRIES = 5  # searches for rows that a model with random answers confirms


@dataclass(frozen=True)
class Explanation:
    """The winners of all factuals, what became of the draws of those without one, and the time it took.

    `not_confirmed` marks factuals whose rows the model accepted at first and not when asked again.
    """

    problem: Problem
    factuals: Factuals
    winners: Winners
    counts: Counts
    not_confirmed: Bools
    seconds_generate: float
    seconds_select: float


@dataclass
class _Block:
    members: Ints
    winners: Winners
    counts: Counts
    not_confirmed: Bools
    seconds_generate: float = 0.0
    seconds_select: float = 0.0


def explain(problem: Problem, factuals: Factuals) -> Explanation:
    """Return the counterfactuals of all factuals that lack the wanted decision."""
    searched = factuals.searched
    parts = [searched[part] for part in blocks(problem, factuals.matrix[searched])]
    explained = map_threads(
        lambda members: _explain_block(problem, factuals.matrix[members], members),
        parts,
        problem.n_jobs,
        "explaining",
        problem.progress,
    )
    counts = Counts.zeros(len(factuals))
    not_confirmed = np.zeros(len(factuals), dtype=bool)
    for block in explained:
        counts.write(block.members, block.counts)
        not_confirmed[block.members] = block.not_confirmed
    return Explanation(
        problem,
        factuals,
        Winners.join([block.winners.of_factuals(block.members) for block in explained], problem.n_columns),
        counts,
        not_confirmed,
        sum(block.seconds_generate for block in explained),
        sum(block.seconds_select for block in explained),
    )


def _explain_block(problem: Problem, matrix: Floats, members: Ints) -> _Block:
    acceptance = Acceptance(problem, matrix)
    begun = perf_counter()
    pools = draw_shared(problem, matrix)
    drawn = perf_counter()
    winners, counts, not_confirmed = search(acceptance, pools)
    block = _Block(members, winners, counts, not_confirmed, drawn - begun, perf_counter() - drawn)
    unexplained = np.flatnonzero(winners.count(members.size) == 0)
    if unexplained.size and _needs_own_draws(problem):
        _search_own(acceptance, unexplained, block)
    block.winners = _with_rows_below_floor(acceptance, pools, block.winners)
    return block


def _with_rows_below_floor(acceptance: Acceptance, pools: Pools, winners: Winners) -> Winners:
    """Return winners, and for factuals without one those of a search as if there were no floor.

    Few changes may be allowed where no whole draw is, for example if a level may only rise and has the highest value.
    """
    problem = acceptance.problem
    unexplained = np.flatnonzero(winners.count(len(acceptance)) == 0)
    if not (unexplained.size and problem.sparse and problem.floor > 0.0):
        return winners
    without_floor = Acceptance(replace(problem, floor=0.0), acceptance.factuals[unexplained])
    below, _, _ = search(without_floor, pools.take(unexplained))
    marked = Winners.of(unexplained[below.owner], below.rows, below_floor=True)
    return Winners.join([winners, marked], problem.n_columns)


def _needs_own_draws(problem: Problem) -> bool:
    """Return whether draws of a factual's own differ from the shared ones in more than chance."""
    features = problem.generator.schema_.features
    gaps = any(features[j].has_missing for j in range(problem.generator.n_fixed_, problem.n_columns))
    return gaps or problem.constraints.depends_on_factual


def search(acceptance: Acceptance, pools: Pools) -> tuple[Winners, Counts, Bools]:
    """Return the winners of each factual, counts of its draws, and which factuals had winners that were refuted.

    The model is asked once more for the winners; a refuted row is replaced by the next best one that is confirmed.
    """
    query = acceptance.problem.query
    find_winners = search_sparse if acceptance.problem.sparse else search_plain
    winners, counts = find_winners(acceptance, pools)
    not_confirmed = np.zeros(len(acceptance), dtype=bool)
    for _ in range(TRIES):
        is_refuted = ~query.confirm(winners.rows).wanted
        if not is_refuted.any():
            return winners, counts, not_confirmed
        query.refute(winners.rows[is_refuted])
        refuted = np.unique(winners.owner[is_refuted])
        not_confirmed[refuted] = True
        replacements, _ = find_winners(acceptance.take(refuted), pools.take(refuted))
        confirmed = winners.take(~np.isin(winners.owner, refuted))
        winners = Winners.join([confirmed, replacements.of_factuals(refuted)], acceptance.problem.n_columns)
    return winners.take(query.confirm(winners.rows).wanted), counts, not_confirmed


def _search_own(acceptance: Acceptance, unexplained: Ints, block: _Block) -> None:
    """Search the own draws of factuals that the shared ones leave without a row, as many at a time as fit in memory."""
    problem = acceptance.problem
    with_own_pools = replace(problem, independent=True)
    parts = [block.winners]
    for members in blocks(with_own_pools, acceptance.factuals[unexplained]):
        part = acceptance.take(unexplained[members])
        begun = perf_counter()
        pools = draw_own(problem, part.factuals)
        drawn = perf_counter()
        winners, counts, not_confirmed = search(part, pools)
        winners = _with_rows_below_floor(part, pools, winners)
        parts.append(winners.of_factuals(unexplained[members]))
        block.counts.write(unexplained[members], counts)
        block.not_confirmed[unexplained[members]] |= not_confirmed
        block.seconds_generate += drawn - begun
        block.seconds_select += perf_counter() - drawn
    block.winners = Winners.join(parts, problem.n_columns)
