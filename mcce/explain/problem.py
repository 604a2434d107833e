"""What an explanation is asked for: a frozen `Problem`, the `Factuals`, and the blocks that fit in memory.

A `Problem` holds everything that does not depend on a factual. The answer for a factual is a function of the problem,
the factual's values and the seed of the generator; it does not depend on the other factuals of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mcce._utils import Bools, Floats, Ints, UInts
from mcce.constraints import Constraints
from mcce.distances import Gower, Measure
from mcce.explain.cost import Cost
from mcce.generators import Generator
from mcce.model import Query
from mcce.plausibility.derived import Derived
from mcce.plausibility.relations import Relations
from mcce.plausibility.score import Score
from mcce.rng import derive_key, hash_rows

POOL_BYTES = 32 * 2**20  # memory for the draws of a block
BLOCK_FACTUALS = 4096


@dataclass(frozen=True)
class Problem:
    """The requirements of an explanation.

    Attributes
    ----------
    generator : the fitted generator of draws.
    query : the model and the wanted decision, with one cache of answers.
    constraints, derived, relations : what every returned row satisfies.
    gower : the paper's distance.
    measures : the order of candidates; None for the paper's (L0, Gower), and for the cost in a sparse search.
    score, cost : plausibility and the cost of equally many changes; None in a plain search.
    training_hashes : hashes of the training rows if copies of them may not be returned, else None.
    max_steps : the largest sum of Gower's steps.
    """

    generator: Generator
    query: Query
    constraints: Constraints
    derived: Derived
    relations: Relations
    gower: Gower
    measures: tuple[Measure, ...] | None = None
    score: Score | None = None
    cost: Cost | None = None
    training_hashes: UInts | None = None
    n_samples: int = 1000
    k: int = 1
    sparse: bool = False
    floor: float = 0.05
    diverse: bool = False
    independent: bool = False
    max_changes: float = np.inf
    max_steps: float = np.inf
    n_jobs: int = 1
    progress: bool | None = None

    @cached_property
    def n_columns(self) -> int:
        """Number of columns of a row."""
        return len(self.generator.schema_.features)

    @cached_property
    def counted(self) -> Ints:
        """Columns whose changes count: the mutable ones that no formula computes."""
        mutable = np.arange(self.generator.n_fixed_, self.n_columns)
        return mutable[~np.isin(mutable, self.derived.columns)]

    def keys(self, factuals: Floats) -> UInts:
        """Return what identifies the draws of each factual: its fixed values, or all values if `independent`."""
        if self.independent:
            return hash_rows(np.column_stack([factuals, np.full(len(factuals), 2.0)]))
        return hash_rows(self.generator.givens_of(factuals))

    @cached_property
    def seed(self) -> int:
        """The seed of the pools."""
        return derive_key(self.generator.seed_, "pool")


@dataclass(frozen=True)
class Factuals:
    """Encoded rows to explain, with the user's names, the model's predictions, and which have the decision already.

    `unknown` tells, by position in `index`, why a row cannot be encoded; such rows are NaN in `matrix`.
    """

    index: pd.Index[Any]
    matrix: Floats
    prediction: Any
    wanted: Bools
    unknown: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def searched(self) -> Ints:
        """Positions of the factuals to search for."""
        is_searched = ~self.wanted
        is_searched[list(self.unknown)] = False
        return np.flatnonzero(is_searched)


def blocks(problem: Problem, factuals: Floats) -> Iterator[Ints]:
    """Yield positions of factuals whose pools fit in memory together; factuals of one pool are adjacent."""
    if not len(factuals):
        return
    most_pools = max(1, POOL_BYTES // (8 * problem.n_samples * problem.n_columns))
    pool, _ = pd.factorize(problem.keys(factuals))
    if (problem.relations or problem.derived) and not problem.sparse:  # the draws of each factual are completed
        pool = np.arange(len(factuals))
    by_pool = np.argsort(pool, kind="stable")
    begin = 0
    while begin < len(by_pool):
        end = int(np.searchsorted(pool[by_pool], pool[by_pool[begin]] + most_pools))
        end = min(end, begin + BLOCK_FACTUALS)
        yield by_pool[begin:end]
        begin = end
