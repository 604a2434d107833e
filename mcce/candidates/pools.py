"""Pools of candidates: the rows drawn from the generator for each factual (paper, section 2.2).

1. A factual's draws are identified by the columns that they depend on: its fixed values. Factuals that agree in them
   share one pool. Drawn independently, they are identified by all its values.
2. Factuals are taken in blocks whose pools fit in memory; those of one pool stay side by side.
3. Each pool is drawn from the generator, given its fixed values and the wanted decision. Any part of it can be drawn
   by itself, because a draw is known by its index; a redraw is another, independent pool for the same factuals.
4. Constraints make pools that are shared by fewer: by factuals that agree also in what their draws may be. The random
   numbers stay those of the fixed values, so that a constraint that excludes nothing changes nothing. Rows that could
   not be drawn within the constraints are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Floats, Ints, UInts
from mcce.constraints import Constraints
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


def restrict_keys(keys: UInts, constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> UInts:
    """Step 4: return keys that also tell apart what the draws of factuals may be."""
    depends = constraints.draws_depend_on(matrix, ids)
    free = np.isnan(depends).all(axis=1)
    return np.where(free, keys, mix(keys ^ mix(hash_rows(depends))))


@dataclass(frozen=True)
class Pools:
    """Candidates, and for each thing that restricts them how many rows came to it and how many it let pass."""

    candidates: Candidates
    acceptance: Mapping[Hashable, Ints] = field(default_factory=dict)


def draw_pools(
    generator: Generator,
    matrix: Floats,
    keys: UInts,
    n_samples: int,
    progress: bool | None = False,
    *,
    begin: int = 0,
    redraw: int = 0,
    constraints: Constraints | None = None,
    shared_by: UInts | None = None,
    ids: pd.Index[Any] | None = None,
) -> Pools:
    """Draw one pool for each distinct key: `n_samples` rows from draw `begin` on, of one of its redraws (steps 3, 4).

    With `constraints`, `shared_by` has the restricted key of each factual, and `ids` its name.
    """
    pool, distinct = pd.factorize(keys if shared_by is None else shared_by)
    first = np.zeros(len(distinct), dtype=np.intp)
    first[pool[::-1]] = np.arange(keys.size)[::-1]
    request = DrawRequest(
        givens=np.repeat(generator.givens_of(matrix[first]), n_samples, axis=0),
        stream_keys=np.repeat(keys[first], n_samples),
        draw_indices=np.tile(np.arange(begin, begin + n_samples, dtype=np.uint64), len(distinct)),
        seed=derive_key(generator.seed_, "pool", *([redraw] if redraw else [])),
    )
    if constraints is not None and ids is not None:
        request = _constrained(request, constraints, matrix[first], ids[first], n_samples)
    drawn = generator.draw(request, progress=progress)
    first_row = pool.astype(np.int64) * n_samples
    if not drawn.dead.any():
        candidates = Candidates(drawn.rows, first_row, first_row + n_samples)
    else:
        living = np.concatenate([[0], np.cumsum(~drawn.dead)])
        rows = np.asfortranarray(drawn.rows[~drawn.dead])
        candidates = Candidates(rows, living[first_row], living[first_row + n_samples])
    return Pools(candidates, {name: row.to_numpy() for name, row in drawn.acceptance().iterrows()})


def _constrained(
    request: DrawRequest, constraints: Constraints, matrix: Floats, ids: pd.Index[Any], n_samples: int
) -> DrawRequest:
    """Return the request with what each pool's draws may be."""
    within = constraints.within(matrix, ids)
    reads_factual = any(rule.reads_factual for rule in constraints.rules)
    return replace(
        request,
        restrictions={
            name: each.each(lambda part: np.repeat(part, n_samples, axis=0)) for name, each in within.items()
        },
        rules=constraints.rules,
        factuals=np.repeat(matrix, n_samples, axis=0) if reads_factual else None,
    )
