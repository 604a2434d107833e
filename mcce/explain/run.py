"""The flow of an explanation: blocks of factuals, draws, search, own draws for those unexplained, confirmation.

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
    at_once = -(-searched.size // problem.n_jobs) if searched.size else 1
    parts = [
        searched[part[begin : begin + at_once]]
        for part in blocks(problem, factuals.matrix[searched])
        for begin in range(0, part.size, at_once)
    ]
    explained = map_threads(
        lambda members: _explain_block(problem, factuals.matrix[members], members),
        parts,
        problem.n_jobs,
        "explaining",
        problem.progress,
    )
    counts = Counts(*np.zeros((4, len(factuals)), dtype=np.int64))
    not_confirmed = np.zeros(len(factuals), dtype=bool)
    for block in explained:
        for count, of_block in zip(vars(counts).values(), vars(block.counts).values()):
            count[block.members] = of_block
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
    winners, counts = _search(acceptance, pools)
    block = _Block(members, winners, counts, np.zeros(members.size, dtype=bool), drawn - begun, perf_counter() - drawn)
    unexplained = np.flatnonzero(winners.count(members.size) == 0)
    if unexplained.size and needs_own_draws(problem):
        _search_own(acceptance, unexplained, block)
    begun = perf_counter()
    _confirm(acceptance, pools, block)
    block.seconds_select += perf_counter() - begun
    return block


def needs_own_draws(problem: Problem) -> bool:
    """Return whether draws of a factual's own differ from the shared ones in more than chance."""
    features = problem.generator.schema_.features
    gaps = any(features[j].has_missing for j in range(problem.generator.n_fixed_, problem.n_columns))
    return gaps or problem.constraints.depends_on_factual


def _search(acceptance: Acceptance, pools: Pools) -> tuple[Winners, Counts]:
    return (search_sparse if acceptance.problem.sparse else search_plain)(acceptance, pools)


def _search_own(acceptance: Acceptance, unexplained: Ints, block: _Block) -> None:
    """Search the own draws of factuals that the shared ones leave without a row, as many at a time as fit in memory."""
    problem = acceptance.problem
    alone = replace(problem, independent=True)  # every factual is a pool
    parts = [block.winners]
    for members in blocks(alone, acceptance.factuals[unexplained]):
        part = acceptance.take(unexplained[members])
        begun = perf_counter()
        pools = draw_own(problem, part.factuals)
        drawn = perf_counter()
        winners, counts = _search(part, pools)
        parts.append(winners.of_factuals(unexplained[members]))
        for count, of_part in zip(vars(block.counts).values(), vars(counts).values()):
            count[unexplained[members]] = of_part
        block.seconds_generate += drawn - begun
        block.seconds_select += perf_counter() - drawn
    block.winners = Winners.join(parts, problem.n_columns)


def _confirm(acceptance: Acceptance, pools: Pools, block: _Block) -> None:
    """Query the winners once more; rows that are not confirmed are replaced by the next best that is."""
    query = acceptance.problem.query
    for _ in range(TRIES):
        is_refuted = ~query.confirm(block.winners.rows).wanted
        if not is_refuted.any():
            return
        query.refute(block.winners.rows[is_refuted])
        again = np.unique(block.winners.owner[is_refuted])
        block.not_confirmed[again] = True
        winners, _ = _search(acceptance.take(again), pools.take(again))
        kept = block.winners.take(~np.isin(block.winners.owner, again))
        block.winners = Winners.join([kept, winners.of_factuals(again)], acceptance.problem.n_columns)
    block.winners = block.winners.take(query.confirm(block.winners.rows).wanted)
