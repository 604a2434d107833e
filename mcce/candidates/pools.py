"""Pools of candidates: the rows drawn from the chain for each factual (paper, section 2.2).

1. A factual's draws are identified by its fixed values: factuals that agree in them share one pool. Drawn
   independently, they are identified by all its values.
2. Factuals are taken in blocks whose pools fit in memory; those of one pool stay side by side.
3. Each pool is drawn from the chain, given its fixed values and the wanted decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mcce.arrays import Floats, Ints
from mcce.generators.chain import ChainModel
from mcce.rng import UInts, derive_key, hash_rows, mix

POOL_BYTES = 32 * 2**20  # candidates held at a time
BLOCK_FACTUALS = 4096


@dataclass(frozen=True)
class Pools:
    """Candidates: factual i may choose among rows[begin[i] : end[i]] of one encoded matrix, in the order drawn."""

    rows: Floats
    begin: Ints
    end: Ints


def pool_keys(chain: ChainModel, matrix: Floats, independent: bool) -> UInts:
    """Step 1: hash what identifies each factual's draws."""
    # mixed once more: a row may look like the fixed values and the decision of another
    return mix(hash_rows(matrix)) if independent else hash_rows(chain.encode_fixed(matrix))


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


def draw_pools(chain: ChainModel, matrix: Floats, keys: UInts, n_samples: int, progress: bool | None = False) -> Pools:
    """Step 3: draw one pool for each distinct key."""
    pool, distinct = pd.factorize(keys)
    first = np.zeros(len(distinct), dtype=np.intp)
    first[pool[::-1]] = np.arange(keys.size)[::-1]
    rows = chain.draw(
        np.repeat(chain.encode_fixed(matrix[first]), n_samples, axis=0),
        np.repeat(np.asarray(distinct, dtype=np.uint64), n_samples),
        np.tile(np.arange(n_samples, dtype=np.uint64), len(distinct)),
        derive_key(chain.seed_, "pool"),
        progress=progress,
    )
    begin = pool.astype(np.int64) * n_samples
    return Pools(rows, begin, begin + n_samples)


def why_none(chain: ChainModel, matrix: Floats, n_samples: object) -> str:
    """Say why a factual (an encoded row) has no counterfactual, as far as the training data tell."""
    which = f"none of the {n_samples} candidates" if n_samples else "no candidate"
    tried = f"{which} has the wanted decision"
    if not (chain.conditions_on_decision_ and chain.fixed_):
        return f"{tried}; draw more"
    start = chain.encode_fixed(matrix)[:, :-1]
    training = chain.training_givens_
    alike = ((training[:, :-1] == start) | (np.isnan(training[:, :-1]) & np.isnan(start))).all(axis=1)
    values = chain.schema_.decode(matrix)[chain.fixed_].iloc[0]
    words = ", ".join(f"{name} = {value}" for name, value in values.items())
    if not alike.any():
        return f"{tried}, and no training row has its fixed values ({words})"
    if not training[alike, -1].any():
        return f"{tried}, and no training row with its fixed values ({words}) has it"
    return f"{tried}, though training rows with its fixed values do; draw more"
