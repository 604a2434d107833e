"""Pools of candidates: the rows drawn from the generator for each factual (paper, section 2.2).

1. A factual's draws are identified by the columns that they depend on: its fixed values. Factuals that agree in them
   share one pool. Drawn independently, they are identified by all its values.
2. Factuals are taken in blocks whose pools fit in memory; those of one pool stay side by side.
3. Each pool is drawn from the generator, given its fixed values and the wanted decision. Any part of it can be drawn
   by itself, because a draw is known by its index; a redraw is another, independent pool for the same factuals.

`mcce.candidates.constrained` draws them inside constraints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from mcce.arrays import Floats, Ints, UInts
from mcce.generators.base import DrawRequest, Generator
from mcce.rng import derive_key, hash_rows, mix
from mcce.selection.candidates import Candidates

POOL_BYTES = 32 * 2**20  # candidates held at a time
BLOCK_FACTUALS = 4096


def fixed_columns(generator: Generator) -> tuple[int, ...]:
    """Return the columns that unrestricted draws depend on: those of the fixed features."""
    return tuple(generator.schema_.names.index(name) for name in generator.fixed_)


def pool_keys(generator: Generator, matrix: Floats, columns: Sequence[int]) -> UInts:
    """Step 1: hash the columns that each factual's draws depend on."""
    if tuple(columns) == fixed_columns(generator):
        return hash_rows(generator.givens_of(matrix))
    # mixed once more: these values may look like the fixed values and the decision of another
    return mix(hash_rows(matrix[:, list(columns)]))


def pool_blocks(order: Ints, keys: UInts, pool_bytes: int) -> Iterator[Ints]:
    """Step 2: yield the factuals in `order` block by block."""
    n_pools = max(1, POOL_BYTES // pool_bytes)
    pool, _ = pd.factorize(keys[order])
    by_pool = np.argsort(pool, kind="stable")
    ordered = pool[by_pool]
    begin = 0
    while begin < order.size:
        end = int(np.searchsorted(ordered, ordered[begin] + n_pools))
        end = min(end, begin + BLOCK_FACTUALS)
        yield order[by_pool[begin:end]]
        begin = end


def draw_pools(
    generator: Generator,
    matrix: Floats,
    keys: UInts,
    n_samples: int,
    progress: bool | None = False,
    *,
    begin: int = 0,
    redraw: int = 0,
) -> Candidates:
    """Step 3: draw one pool for each distinct key: `n_samples` rows from draw `begin` on, of one of its redraws.

    Rows that a generator could not draw given their fixed values are left out.
    """
    pool, request = request_pools(generator, matrix, keys, keys, range(begin, begin + n_samples), redraw)[:2]
    drawn, first = generator.draw(request, progress=progress), pool * n_samples
    if not drawn.dead.any():
        return Candidates(drawn.rows, first, first + n_samples)
    living = np.concatenate([[0], np.cumsum(~drawn.dead)])
    return Candidates(np.asfortranarray(drawn.rows[~drawn.dead]), living[first], living[first + n_samples])


def request_pools(
    generator: Generator, matrix: Floats, keys: UInts, shared_by: UInts, draws: range, redraw: int
) -> tuple[Ints, DrawRequest, Ints]:
    """Return which pool each factual has, what to draw for all pools, and the first factual of each.

    Factuals that agree in `shared_by` share a pool; the random numbers are those of `keys`.
    """
    pool, distinct = pd.factorize(shared_by)
    first = np.zeros(len(distinct), dtype=np.intp)
    first[pool[::-1]] = np.arange(keys.size)[::-1]
    request = DrawRequest(
        givens=np.repeat(generator.givens_of(matrix[first]), len(draws), axis=0),
        stream_keys=np.repeat(keys[first], len(draws)),
        draw_indices=np.tile(np.arange(draws.start, draws.stop, dtype=np.uint64), len(distinct)),
        seed=derive_key(generator.seed_, "pool", *([redraw] if redraw else [])),
    )
    return pool.astype(np.int64), request, first
