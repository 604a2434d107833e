"""Limits put together: what a column may be for each factual.

1. A limit applies to all factuals, or to some; what all of them allow is left.
2. The multiples of a step have to be numbers that the column can hold: in whole numbers a step of 0.5 is one of 1, and
   says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mcce.arrays import Floats, Indices
from mcce.constraints.bounding import everything
from mcce.constraints.limits import Limit
from mcce.samplers.within import Within
from mcce.table import Feature
from mcce.table.grid import common_multiples

Applied = tuple[Limit, Indices | None]  # a limit, and the rows that it applies to; None for all


def within_of(column: int, feature: Feature, factuals: Floats, applied: Iterable[Applied]) -> Within:
    """Step 1: return what one column may be for each factual, as it was said."""
    within = everything(factuals.shape[0], feature.n_levels)
    for limit, rows in applied:
        if limit.column != column:
            continue
        if rows is None:
            within = within & limit.within(factuals[:, column])
        else:
            part = within.take(rows) & limit.within(factuals[rows, column])
            within = _scatter(within, rows, part, factuals.shape[0])
    return within


def on_grid(within: Within, feature: Feature) -> Within:
    """Step 2: return a restriction whose steps lie on the column's own grid; those that say no more are left out."""
    if within.step is None or feature.decimals is None:
        return within
    point = 10.0**-feature.decimals
    step = common_multiples(within.step, np.where(np.isnan(within.step), np.nan, point))
    step = np.where(step == point, np.nan, step)
    no_step = bool(np.isnan(step).all())
    return Within(
        within.low,
        within.high,
        within.levels,
        within.missing,
        None if no_step else step,
        None if no_step else within.kept,
        within.never,
    )


def _scatter(whole: Within, rows: Indices, part: Within, n_rows: int) -> Within:
    """Return a restriction with some rows replaced."""

    def put(old: Any, new: Any, empty: Any) -> Any:
        if new is None:
            return old
        width = max(0 if old is None else old.shape[-1], new.shape[-1]) if new.ndim == 2 else 0
        shape = (n_rows, width) if new.ndim == 2 else (n_rows,)
        found = np.full(shape, empty)
        if old is not None:
            found[(slice(None), slice(old.shape[-1])) if new.ndim == 2 else slice(None)] = old
        found[(rows, slice(new.shape[-1])) if new.ndim == 2 else rows] = new
        return found

    return Within(
        low=put(whole.low, part.low, -np.inf),
        high=put(whole.high, part.high, np.inf),
        levels=put(whole.levels, part.levels, True),
        missing=put(whole.missing, part.missing, True),
        step=put(whole.step, part.step, np.nan),
        kept=put(whole.kept, part.kept, np.nan),
        never=put(whole.never, part.never, np.nan),
    )
