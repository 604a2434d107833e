"""Check draws, round them to the grid of the column, and enforce the restrictions of each row.

1. A draw has one value per row: a number, an existing level code or missing; anything else is an error of the sampler.
2. Numbers are rounded to the column's grid (`mcce.table.grid`), inside the row's bounds, so that later conditionals and
   measures use the displayed values. Draws of samplers with `draws_observed` are on the grid already.
3. With a step, numbers are rounded to the nearest multiple inside the bounds; excluded values are redrawn.
4. If no allowed value can be drawn, a row keeps its present value if that is allowed, and is rejected otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from mcce.base.arrays import Floats
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import REJECTION_ROUNDS, ConditionalSampler, RestrictedDraw, Within
from mcce.table import Feature, Table

_SAME_RANK = 1e-12  # ranks that differ by less are not randomised


class Drawing(Protocol):
    """A sampler, or a generator of whole rows."""

    @property
    def draws_observed(self) -> bool:
        """Whether draws are training values only."""


def put_on_grid(drawn: Floats, sampler: Drawing, feature: Feature, n_rows: int, within: Within | None = None) -> Floats:
    """Return the draws of a feature, checked and rounded to its grid."""
    if np.shape(drawn) != (n_rows,):
        raise SamplerError(
            f"{sampler!r} drew an array of shape {np.shape(drawn)} for {feature.name!r} and {n_rows} rows; "
            "sample() must return one value per row."
        )
    drawn = np.asarray(drawn, dtype=np.float64)
    _check(drawn, sampler, feature)
    if not feature.is_numeric or (sampler.draws_observed and within is None):
        return drawn
    if within is None:
        return feature.grid.put(drawn)
    return within.put(feature.grid.put_within(drawn, *within.bounds(n_rows)))


def draw_allowed(
    sampler: ConditionalSampler, given: Table, streams: RowStreams, feature: Feature, within: Within
) -> RestrictedDraw:
    """Return restricted draws on the grid; excluded numbers are redrawn, at most 200 times.

    A row with a single allowed value gets this value without a draw, unless its probability is needed for a weight.
    """
    single, value = within.single_values(feature, given.n_rows)
    if single.any() and not within.weighted:
        drawn = np.flatnonzero(~single)
        rejected = np.zeros(given.n_rows, dtype=bool)
        if drawn.size:
            others = draw_allowed(sampler, given.take(drawn), streams.take(drawn), feature, within.take(drawn))
            value[drawn], rejected[drawn] = others.values, others.rejected
        return RestrictedDraw.of(value, rejected)
    found = _draw_once(sampler, given, streams, feature, within)
    if within.never is None:
        return _with_kept_values(found, within)
    values, rejected = found.values.copy(), found.rejected.copy()
    waiting = np.flatnonzero(~rejected & ~within.allows(values))
    for attempt in range(REJECTION_ROUNDS):
        if not waiting.size:
            break
        part = within.take(waiting)
        rows = given.take(waiting)
        again = _draw_once(sampler, rows, streams.child("never", attempt).take(waiting), feature, part)
        values[waiting], rejected[waiting] = again.values, again.rejected
        waiting = waiting[~again.rejected & ~part.allows(again.values)]
    rejected[waiting] = True
    return _with_kept_values(RestrictedDraw.of(values, rejected), within)


def _with_kept_values(found: RestrictedDraw, within: Within) -> RestrictedDraw:
    """Return the draws; rejected rows keep their present value if it is allowed."""
    if within.kept is None or within.weighted or not found.rejected.any():
        return found
    stays = found.rejected & ~np.isnan(within.kept) & within.allows(within.kept)
    return RestrictedDraw(np.where(stays, within.kept, found.values), found.rejected & ~stays)


def _draw_once(
    sampler: ConditionalSampler, given: Table, streams: RowStreams, feature: Feature, within: Within
) -> RestrictedDraw:
    """Draw allowed values; also reject rows without a grid point inside their bounds."""
    unrounded = before_rounding(sampler, feature, within.known_to_samplers(), given.n_rows)
    found = sampler.sample_within(given, streams, unrounded)
    values = put_on_grid(found.values, sampler, feature, found.rejected.size, within)
    return RestrictedDraw.of(values, found.rejected | (np.isnan(values) & ~np.isnan(found.values)), found.log_mass)


def ranks_on_grid(
    sampler: ConditionalSampler, given: Table, streams: RowStreams, feature: Feature, values: Floats
) -> Floats:
    """Return the ranks of values on the grid.

    A number without point mass represents all numbers that are rounded to it: its rank is randomised among theirs.
    """
    ranks = sampler.ranks(given, values, streams.child("rank"))
    if sampler.draws_observed or not feature.is_numeric or feature.grid.decimals is None:
        return ranks
    again = sampler.ranks(given, values, streams.child("again"))
    rows = np.flatnonzero((np.abs(again - ranks) < _SAME_RANK) & ~np.isnan(values))
    if not rows.size:
        return ranks
    part, own = given.take(rows), values[rows]
    ends = [np.where(np.isfinite(end), end, own) for end in feature.grid.basin(own, own)]
    below, upto = (sampler.ranks(part, end, streams.child("end").take(rows)) for end in ends)
    ranks[rows] = below + streams.child("inside").take(rows).uniform() * (upto - below)
    return ranks


def before_rounding(sampler: Drawing, feature: Feature, within: Within, n_rows: int) -> Within:
    """Return the restriction before rounding: for whole numbers up to 4, numbers below 4.5."""
    if sampler.draws_observed or not feature.is_numeric:
        return within
    low, high = feature.grid.basin(*within.bounds(n_rows))
    return replace(within, low=low, high=high)


def _check(drawn: Floats, sampler: Drawing, feature: Feature) -> None:
    if not drawn.size:
        return
    low, high = drawn.min(), drawn.max()  # a cheap check that suffices for most draws
    if feature.is_numeric:
        if np.isfinite(low) and np.isfinite(high):
            return
    elif low >= 0 and high < feature.n_levels and (np.floor(drawn) == drawn).all():
        return
    known = drawn[~np.isnan(drawn)]
    if feature.is_numeric:
        wrong, remedy = known[np.isinf(known)], "finite, or NaN for a missing value"
    else:
        exists = (known >= 0) & (known < feature.n_levels) & (np.floor(known) == known)
        wrong = known[~exists]
        remedy = f"the code of a level, a whole number from 0 to {feature.n_levels - 1}, or NaN for a missing value"
    if wrong.size:
        raise SamplerError(
            f"{sampler!r} drew {wrong[0]:g} for {feature.name!r} ({wrong.size} of {drawn.size} draws); "
            f"every draw must be {remedy}."
        )
