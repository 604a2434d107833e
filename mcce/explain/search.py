"""Explaining one block of factuals: draw their pools, choose among the candidates (steps 2 and 3 of the method).

`explain_block` is a function of two frozen objects that can be sent to another process: what all blocks share, and the
factuals of this one. Its outcomes can be concatenated in any order, because they name their factuals.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.base.threads import run_in_threads
from mcce.constraints import Constraints
from mcce.explain.copies import TrainingRows
from mcce.explain.diversity import Spread
from mcce.explain.factuals import Factuals
from mcce.explain.order import Ordering
from mcce.explain.plausibility import Plausibility
from mcce.explain.pools import (
    Candidates,
    ConstrainedPools,
    Pools,
    draw_pools,
    fixed_columns,
    pool_blocks,
    pool_keys,
    restrict_keys,
)
from mcce.explain.rank import Admit, Allow, Selector, best_of
from mcce.explain.refine import Found
from mcce.explain.sparse import Bounds, SparseSearch
from mcce.generators.base import Generator
from mcce.model.ask import RememberingAsker
from mcce.model.robustness import AsksEncoded

DIVERSE_FACTUALS = 64  # whose answers are remembered at a time
SEARCHED_FACTUALS = 512  # that one thread searches for, at most
NO_POOLS: UInts = np.empty(0, dtype=np.uint64)
TAKEN_TOGETHER = 4  # searches whose rows are taken inwards together: the model is asked about few rows at a time there
TOGETHER = 64  # that are searched for together: the model is asked about few rows at a time otherwise


@dataclass(frozen=True)
class Settings:
    """What is asked for, the same for all factuals; `redraw` says which of many independent drawings is taken."""

    n_samples: int | Literal["auto"]
    n_counterfactuals: int = 1
    independent: bool = False
    exhaustive: bool = False
    sparse: bool = False
    floor: float = 0.05
    max_changes: int | None = None
    max_gower: float | None = None
    diverse: bool = False
    exclude_training: bool = False
    redraw: int = 0


@dataclass(frozen=True)
class Task:
    """What explaining any block needs: whom to draw from, whom to ask, what is asked for, and in which order.

    `plausibility` is needed for sparse counterfactuals; `excluded` are training rows that none may be a copy of.
    The outcome does not depend on the number of `threads`.
    """

    generator: Generator
    asker: AsksEncoded
    mutable: Ints
    settings: Settings
    ordering: Ordering
    plausibility: Plausibility | None = None
    excluded: TrainingRows | None = None
    threads: int = 1
    constraints: Constraints | None = None


@dataclass(frozen=True)
class Block:
    """Some factuals: positions among all, encoded rows, keys of their streams, and which draws of these are looked at.

    `ids` are their names.
    """

    members: npt.NDArray[np.intp]
    matrix: Floats
    keys: UInts
    draws: range
    ids: pd.Index[Any]

    def take(self, which: Ints) -> Block:
        """Return some of the factuals, as a block of which they are the first, second, ... members."""
        return Block(which, self.matrix[which], self.keys[which], self.draws, self.ids[which])


@dataclass(frozen=True)
class Outcome:
    """Counterfactuals of some factuals, those of one factual in order of rank, and what they cost.

    `plausibility` is NaN where it was not asked for. `pools` identifies the pools that were drawn, `acceptance` has for
    each thing that restricts draws how many rows came to it and how many it let pass.
    """

    owner: Ints
    rows: Floats
    scores: npt.NDArray[np.generic]
    plausibility: Floats
    n_asked: int = 0
    seconds_generate: float = 0.0
    seconds_select: float = 0.0
    pools: UInts = field(default_factory=lambda: NO_POOLS)
    acceptance: Mapping[Hashable, Ints] = field(default_factory=dict)

    def take(self, which: Ints | Bools) -> Outcome:
        """Return some of the counterfactuals, at the same cost."""
        return replace(
            self,
            owner=self.owner[which],
            rows=self.rows[which],
            scores=self.scores[which],
            plausibility=self.plausibility[which],
        )


def keys_of(task: Task, factuals: Factuals) -> UInts:
    """Return what identifies the random numbers of each factual."""
    columns: Sequence[int] = fixed_columns(task.generator)
    if task.settings.independent:
        columns = range(factuals.matrix.shape[1])
    return pool_keys(task.generator, factuals.matrix, columns)


def shared_keys(task: Task, factuals: Factuals) -> UInts:
    """Return what identifies the pool of each factual."""
    keys = keys_of(task, factuals)
    if task.constraints is None:
        return keys
    return restrict_keys(keys, task.constraints, factuals.matrix, factuals.index)


def make_blocks(task: Task, factuals: Factuals, which: Ints, draws: range) -> Iterator[Block]:
    """Yield the factuals at `which` in blocks whose pools, with these draws, fit in memory."""
    keys, shared_by = keys_of(task, factuals), shared_keys(task, factuals)
    if task.constraints is not None:  # pools that are taken from the same draws side by side
        drawn_as, _ = pd.factorize(keys[which])
        which = which[np.argsort(drawn_as, kind="stable")]
    for m in pool_blocks(which, shared_by, 8 * len(draws) * factuals.matrix.shape[1]):
        yield Block(m, factuals.matrix[m], keys[m], draws, factuals.index[m])


def explain_block(task: Task, block: Block) -> Outcome:
    """Draw the pools of a block and choose among them; who finds nothing in a shared pool may get one of its own."""
    begun = time.perf_counter()
    pools = draw_block(task, block)
    found = _choose_timed(task, block, pools, begun)
    without = np.flatnonzero(pools.partly & ~np.isin(block.members, found.owner))
    if not without.size:
        return found
    begun = time.perf_counter()
    left = replace(block.take(without), members=block.members[without])
    own = _constrained(task, left).draw_own(block.draws)
    return join([found, _choose_timed(task, left, own, begun)])


def draw_block(task: Task, block: Block) -> Pools:
    """Draw the pools of a block, inside the constraints if there are any."""
    if task.constraints is not None:
        return _constrained(task, block).draw(block.draws)
    n, begin = len(block.draws), block.draws.start
    candidates = draw_pools(task.generator, block.matrix, block.keys, n, begin=begin, redraw=task.settings.redraw)
    return Pools(candidates, block.keys, np.zeros(block.members.size, dtype=bool))


def _constrained(task: Task, block: Block) -> ConstrainedPools:
    assert task.constraints is not None
    redraw = task.settings.redraw
    return ConstrainedPools(task.generator, task.constraints, block.matrix, block.keys, block.ids, redraw)


def _choose_timed(task: Task, block: Block, pools: Pools, begun: float) -> Outcome:
    """Choose among pools whose drawing was begun at a time."""
    drawn = time.perf_counter()
    choose_some = choose_diverse if task.settings.diverse else choose_by_order
    return replace(
        choose_some(task, pools.candidates, block),
        pools=pools.keys,
        acceptance=pools.acceptance,
        seconds_generate=drawn - begun,
        seconds_select=time.perf_counter() - drawn,
    )


def choose_by_order(task: Task, pools: Candidates, block: Block) -> Outcome:
    """Choose the best valid candidates of each factual of a block: whole draws, or draws crossed with the factual."""
    return choose_sparse(task, pools, block) if task.settings.sparse else choose(task, pools, block)


def choose(task: Task, pools: Candidates, block: Block) -> Outcome:
    """Choose the best valid draws of each factual of a block."""
    selector = Selector(task.generator.schema_.features, task.mutable, task.asker.ask_encoded)
    settings = task.settings
    chosen = selector.select(
        pools,
        block.matrix,
        settings.n_counterfactuals,
        exhaustive=settings.exhaustive,
        ordering=task.ordering,
        max_changes=settings.max_changes,
        max_gower=settings.max_gower,
        admit=None if task.excluded is None else _no_copies(task.excluded, pools),
        allow=None if task.constraints is None else _obey(task.constraints, pools, block),
    )
    unknown = np.full(chosen.row.size, np.nan)
    return Outcome(block.members[chosen.factual], pools.rows[chosen.row], chosen.scores, unknown, chosen.n_asked)


def _no_copies(excluded: TrainingRows, pools: Candidates) -> Admit:
    return lambda which: ~excluded.contain(pools.rows[which])


def _obey(constraints: Constraints, pools: Candidates, block: Block) -> Allow:
    """Return what says which draws factuals allow: pools are shared by some that do not allow all of them.

    A generator need not draw within constraints, either; those that do are checked once more.
    """
    of_factuals = constraints.of_factuals(block.matrix, block.ids)
    return lambda which, factuals: of_factuals.hold(pools.rows[which], factuals)


def choose_sparse(task: Task, pools: Candidates, block: Block) -> Outcome:
    """Choose the best valid crossings of the pools with the factuals of a block, in threads; one of them asks."""
    assert task.plausibility is not None
    settings = task.settings
    asking = threading.Lock()  # a model need not be safe for threads

    def ask(rows: Floats) -> tuple[npt.NDArray[np.generic], Bools]:
        with asking:
            return task.asker.ask_encoded(rows)

    search = SparseSearch(
        task.generator.schema_.features,
        task.mutable,
        ask,
        task.ordering,
        task.plausibility,
        settings.floor,
        Bounds(settings.max_changes, settings.max_gower),
        task.excluded,
        task.constraints,
    )

    n = block.members.size
    size = max(TOGETHER, min(SEARCHED_FACTUALS, -(-n // 2)))

    threads = task.threads if task.ordering.is_thread_safe else 1

    def among(some: slice) -> tuple[Candidates, Floats, int, pd.Index[Any]]:
        mine = Candidates(pools.rows, pools.begin[some], pools.end[some])
        return mine, block.matrix[some], settings.n_counterfactuals, block.ids[some]

    def look(begin: int) -> tuple[Found, Found]:
        return search.look(*among(slice(begin, begin + size)))

    looked = list(run_in_threads(look, range(0, max(n, 1), size), threads, "searching", False))

    def take_inwards(first: int) -> Found:
        parts = looked[first : first + TAKEN_TOGETHER]
        found, starts = (
            Found.join([part.counted_from(i * size) for i, part in enumerate(some)]) for some in zip(*parts)
        )
        some = slice(first * size, (first + TAKEN_TOGETHER) * size)
        return search.take_inwards(found, starts, *among(some)).counted_from(some.start)

    begins = range(0, len(looked), TAKEN_TOGETHER)
    found = Found.join(list(run_in_threads(take_inwards, begins, threads, "searching", False)))
    quantile = task.plausibility.quantile(found.tree_scores)
    return Outcome(block.members[found.owner], found.rows, found.scores, quantile, found.n_asked)


def choose_diverse(task: Task, pools: Candidates, block: Block) -> Outcome:
    """Choose counterfactuals one after the other, each for what it adds (`mcce.explain.diversity`)."""
    features, k = task.generator.schema_.features, task.settings.n_counterfactuals
    parts: list[Outcome] = []
    n_asked = 0
    for begin in range(0, block.members.size, DIVERSE_FACTUALS):
        asker = RememberingAsker(task.asker.ask_encoded)
        spread = Spread(features, task.ordering)
        one = replace(task, asker=asker, settings=replace(task.settings, n_counterfactuals=1))
        left = np.arange(begin, min(begin + DIVERSE_FACTUALS, block.members.size))
        for _ in range(k):
            candidates = Candidates(pools.rows, pools.begin[left], pools.end[left])
            part = choose_by_order(one, candidates, block.take(left))
            new = spread.choose(part.rows, block.matrix[part.owner])
            parts.append(part.take(new))
            left = part.owner[new]
            if not left.size:  # the others have no further candidate
                break
            one = replace(one, ordering=spread.next_ordering())
        n_asked += asker.n_asked
    rows = np.concatenate([part.rows for part in parts])
    owner = np.concatenate([part.owner for part in parts])
    kept = best_of(task.ordering, features, task.mutable, owner, rows, block.matrix, k)
    return Outcome(
        block.members[owner[kept]],
        rows[kept],
        np.concatenate([part.scores for part in parts if part.owner.size] or [parts[0].scores])[kept],
        np.concatenate([part.plausibility for part in parts])[kept],
        n_asked,
    )


def concatenate(outcomes: Sequence[Outcome], factuals: Factuals) -> Outcome:
    """Join the outcomes of blocks, in the order of the factuals."""
    nobody: Ints = np.empty(0, dtype=np.int64)
    nothing = Outcome(nobody, np.empty((0, factuals.matrix.shape[1])), factuals.scores[:0], np.empty(0))
    joined = join([nothing, *outcomes])
    ordered = joined.take(np.argsort(joined.owner, kind="stable"))
    scores = np.concatenate([factuals.scores[:0], ordered.scores])
    return replace(ordered, rows=np.asfortranarray(ordered.rows), scores=scores)


def join(parts: Sequence[Outcome]) -> Outcome:
    """Put outcomes together, one after the other."""
    some = [part for part in parts if part.owner.size] or parts[:1]  # scores of no rows have no type
    return Outcome(
        np.concatenate([part.owner for part in some]),
        np.concatenate([part.rows for part in some]),
        np.concatenate([part.scores for part in some]),
        np.concatenate([part.plausibility for part in some]),
        sum(part.n_asked for part in parts),
        sum(part.seconds_generate for part in parts),
        sum(part.seconds_select for part in parts),
        np.unique(np.concatenate([part.pools for part in parts])),
        add_acceptance([part.acceptance for part in parts]),
    )


def add_acceptance(parts: Sequence[Mapping[Hashable, Ints]]) -> dict[Hashable, Ints]:
    """Add up how many rows came to each restriction, and how many passed."""
    total: dict[Hashable, Ints] = {}
    for part in parts:
        for name, counts in part.items():
            total[name] = total.get(name, np.zeros(2, dtype=np.int64)) + counts
    return total
