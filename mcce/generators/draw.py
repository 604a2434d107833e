"""Draw rows from a chain, feature by feature in visiting order.

There is one path for all draws:

1. Take the distribution of the feature given the columns before it, restricted to what the request allows (`Within`).
2. Draw, and round numbers to the grid of the column.
3. Redraw rows that break a rule whose last column this is, or the restriction after rounding: at most 50 draws.
4. A row without an allowed value is rejected, and continues with a free draw, since later conditionals need a value.

A number is a function of the seed, the position of the feature in the arrangement, and the row's `rows` and `draws`, so
blocks of rows are drawn in any order and by any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mcce._utils import Bools, Floats, blocks, map_threads
from mcce.exceptions import InputError
from mcce.generators.base import Drawn, DrawRequest, RowRule
from mcce.generators.layout import Layout
from mcce.rng import RowStreams, derive_key
from mcce.samplers import ConditionalSampler, Donors, Levels, Within, distribution_of
from mcce.table import Feature, Table

BLOCK_ROWS = 8192  # the columns of a block stay in the cache; its distributions take at most about 64 MiB
MOST_ATTEMPTS = 50


def draw_rows(
    layout: Layout, samplers: Sequence[ConditionalSampler], request: DrawRequest, n_jobs: int | None
) -> Drawn:
    """Draw all rows of a request, in blocks and threads."""
    rows = np.empty((len(request), len(layout.features) - layout.with_decision), order="F")
    rejected = np.empty(len(request), dtype=np.bool_)

    def draw(block: slice) -> None:
        matrix, rejected[block] = draw_block(layout, samplers, request.take(block))
        rows[block, : layout.n_fixed] = matrix[:, : layout.n_fixed]
        rows[block, layout.n_fixed :] = matrix[:, layout.n_given :]

    map_threads(draw, list(blocks(len(request), BLOCK_ROWS)), n_jobs, "drawing")
    return Drawn(rows, rejected)


def draw_block(layout: Layout, samplers: Sequence[ConditionalSampler], request: DrawRequest) -> tuple[Floats, Bools]:
    """Draw some rows; return them as a chain's matrix, and which are rejected."""
    matrix = np.full((len(request), len(layout.features)), np.nan, order="F")
    matrix[:, : layout.n_given] = request.given
    rejected = np.zeros(len(request), dtype=np.bool_)
    due = _rules_by_last_column(request.rules, layout.n_fixed)
    if -1 in due:  # the first mutable column stays NaN
        rejected |= _breaks(layout, request, matrix, due[-1], layout.n_given, np.arange(len(request)), np.nan)
    for column, sampler in enumerate(samplers, layout.n_given):
        place, feature = layout.place(column), layout.features[column]
        streams = RowStreams(derive_key(request.seed, "draw", place), request.rows, request.draws)
        given = layout.given(Table(layout.features, matrix), column)
        is_broken = partial(_breaks, layout, request, matrix, due[place], column) if place in due else None
        drawn, failed = draw_column(sampler, feature, given, streams, request.within.get(place), is_broken)
        matrix[:, column] = drawn
        rejected |= failed
    return matrix, rejected


def draw_column(
    sampler: ConditionalSampler,
    feature: Feature,
    given: Table,
    streams: RowStreams,
    within: Within | None = None,
    is_broken: Callable[[Any, Floats], Bools] | None = None,
) -> tuple[Floats, Bools]:
    """Draw a feature; return the values, and which rows have no allowed one (steps 1 to 4).

    ``is_broken(rows, values)`` tells which values break a rule in some of the rows.
    """
    values, rejected = _draw_once(sampler, feature, given, streams, within)
    if within is None and is_broken is None:
        return values, rejected

    def disallowed(rows: Any, drawn: Floats) -> Bools:
        outside = np.zeros(drawn.size, dtype=np.bool_) if within is None else ~within.take(rows).allows(drawn)
        return outside if is_broken is None else outside | is_broken(rows, drawn)

    waiting = np.flatnonzero(~rejected)
    waiting = waiting[disallowed(waiting, values[waiting])]
    for attempt in range(1, MOST_ATTEMPTS):
        if not waiting.size:
            break
        part = None if within is None else within.take(waiting)
        again = streams.child("again", attempt).take(waiting)
        drawn, failed = _draw_once(sampler, feature, given.take(waiting), again, part)
        values[waiting] = drawn
        waiting = waiting[failed | disallowed(waiting, drawn)]
    rejected[waiting] = True
    rows = np.flatnonzero(rejected)
    if rows.size:
        values[rows] = _draw_once(sampler, feature, given.take(rows), streams.child("free").take(rows), None)[0]
    return values, rejected


def _draw_once(
    sampler: ConditionalSampler, feature: Feature, given: Table, streams: RowStreams, within: Within | None
) -> tuple[Floats, Bools]:
    """Draw one value for each row (steps 1 and 2)."""
    distribution = distribution_of(sampler, given, feature)
    values, rejected = distribution.sample(streams, within)
    if isinstance(distribution, (Donors, Levels)):  # values of the column
        return values, rejected
    wrong = np.isinf(values) | (np.isnan(values) & ~rejected & (not feature.has_missing))
    if wrong.any():
        raise InputError(
            f"the sampler {sampler!r} drew {values[wrong][0]:g} for {feature.name!r} ({int(wrong.sum())} of "
            f"{wrong.size} draws); each draw must be finite{', or NaN' if feature.has_missing else ''}."
        )
    return feature.round(values), rejected


def _rules_by_last_column(rules: Sequence[RowRule], n_fixed: int) -> dict[int, list[RowRule]]:
    """Return the rules by the last column that they read, -1 if all are fixed."""
    due: dict[int, list[RowRule]] = {}
    for rule in rules:
        last = max(rule.columns, default=-1)
        due.setdefault(last if last >= n_fixed else -1, []).append(rule)
    return due


def _breaks(
    layout: Layout, request: DrawRequest, matrix: Floats, rules: Sequence[RowRule], column: int, which: Any, values: Any
) -> Bools:
    """Return which of some rows break one of the rules, with values in a column of the chain."""
    chain_rows = matrix[which]
    chain_rows[:, column] = values
    rows = np.delete(chain_rows, layout.n_fixed, axis=1) if layout.with_decision else chain_rows
    factuals = None if request.factuals is None else request.factuals[which]
    return ~np.logical_and.reduce([np.asarray(rule.holds(rows, factuals), dtype=np.bool_) for rule in rules])


def log_density(sampler: ConditionalSampler, feature: Feature, given: Table, values: Floats) -> Floats:
    """Return the log density of a feature in each row, computed in blocks."""
    parts = [np.empty(0)]
    for block in blocks(values.size, BLOCK_ROWS):
        part = given.take(np.arange(block.start, block.stop))
        parts.append(distribution_of(sampler, part, feature).log_density(values[block]))
    return np.concatenate(parts)
