"""Pools of draws from the generator (paper, section 2.2).

1. Factuals with equal fixed values share one pool; a draw is a function of the seed, these values and its index.
2. Constraints that are the same for all factuals truncate the shared draws. Draws that another constraint forbids for
   a factual are rejected later (`Acceptance.admits`).
3. `draw_own`: the pools of factuals for which that was not enough, truncated by all their constraints. A known value
   is drawn as missing only if a constraint allows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mcce._utils import Bools, Floats, Ints, UInts
from mcce.constraints import Formula
from mcce.explain.problem import Problem
from mcce.generators import DrawRequest
from mcce.rng import derive_key
from mcce.samplers import Within


@dataclass(frozen=True)
class Pools:
    """Draws, stored by column: those of factual f are `cells[:, begin[f]:end[f]]`; factuals may share a pool."""

    cells: Floats
    begin: Ints
    end: Ints

    def take(self, which: Ints) -> Pools:
        """Return the pools of some factuals."""
        return Pools(self.cells, self.begin[which], self.end[which])

    def rows(self, draws: Ints) -> Floats:
        """Return some draws as rows."""
        return np.ascontiguousarray(self.cells[:, draws].T)


def draw_shared(problem: Problem, factuals: Floats) -> Pools:
    """Draw one pool for all factuals with equal fixed values, within the constraints that are the same for all."""
    constraints = problem.constraints.shared.without(problem.derived.columns)
    keys = problem.keys(factuals)
    pool, first = _first_of_each(keys)
    within = constraints.within(factuals[first])
    return _draw(problem, factuals[first], keys[first], pool, within, constraints.rules, problem.seed)


def draw_own(problem: Problem, factuals: Floats) -> Pools:
    """Draw one pool for each factual, within all its constraints."""
    constraints = problem.constraints.without(problem.derived.columns)
    within = dict(constraints.within(factuals))
    for j in range(problem.generator.n_fixed_, problem.n_columns):
        if not problem.constraints.may_become_missing[j] and problem.generator.schema_.features[j].has_missing:
            stays_known = Within(missing=np.isnan(factuals[:, j]))
            within[j] = within[j] & stays_known if j in within else stays_known
    pool, seed = np.arange(len(factuals)), derive_key(problem.seed, 1)
    return _draw(problem, factuals, problem.keys(factuals), pool, within, constraints.rules, seed)


def _first_of_each(keys: UInts) -> tuple[Ints, Ints]:
    """Return the pool of each factual, and the first factual of each pool."""
    pool, distinct = pd.factorize(keys)
    first = np.zeros(len(distinct), dtype=np.int64)
    first[pool[::-1]] = np.arange(keys.size)[::-1]
    return pool.astype(np.int64), first


def _draw(
    problem: Problem,
    factuals: Floats,
    keys: UInts,
    pool: Ints,
    within: dict[int, Within],
    rules: tuple[Formula, ...],
    seed: int,
) -> Pools:
    """Draw a pool for each of `factuals`; `pool` holds, for each factual asked for, the position of its pool."""
    n, generator = problem.n_samples, problem.generator
    repeated = np.repeat(np.arange(len(factuals)), n)
    drawn = generator.draw(
        DrawRequest(
            given=generator.givens_of(factuals)[repeated],
            rows=keys[repeated],
            draws=np.tile(np.arange(n, dtype=np.uint64), len(factuals)),
            seed=seed,
            within={j: bounds.take(repeated) for j, bounds in within.items()},
            rules=rules,
            factuals=factuals[repeated] if any(rule.factual_columns for rule in rules) else None,
        )
    )
    kept: Bools = ~drawn.rejected
    ends = np.concatenate([[0], np.cumsum(kept)])
    rows = drawn.rows if kept.all() else drawn.rows[kept]
    return Pools(np.require(rows.T, np.float64, ["C"]), ends[pool * n], ends[(pool + 1) * n])
