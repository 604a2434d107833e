"""What a sampler does that has the probabilities of all levels, one row each: draws, restricted or not, and scores."""

from __future__ import annotations

import numpy as np

from mcce.arrays import Bools, Floats
from mcce.rng import RowStreams
from mcce.samplers.support import IMPOSSIBLE
from mcce.samplers.within import Within, log_of


def draw_levels(probabilities: Floats, rng: RowStreams, within: Within | None) -> Floats:
    """Draw a level for each row, an allowed one if the draw is restricted; NaN where none can be drawn."""
    if within is None:
        return rng.categorical(probabilities).astype(np.float64)
    n, n_levels = probabilities.shape
    weights = np.where(within.level_mask(n, n_levels), probabilities, 0.0)
    possible = weights.sum(axis=1) > 0
    drawn = rng.categorical(np.where(possible[:, None], weights, 1.0)).astype(np.float64)
    return np.where(possible, drawn, np.nan)


def log_mass_of_levels(probabilities: Floats, within: Within) -> Floats:
    """Return the log probability of what is allowed in each row."""
    allowed = np.where(within.level_mask(*probabilities.shape), probabilities, 0.0)
    return log_of(allowed.sum(axis=1) / probabilities.sum(axis=1))


def log_probability(probabilities: Floats, values: Floats) -> Floats:
    """Return the log probability of each row's level; -inf of a missing one."""
    is_missing = np.isnan(values)
    codes = np.where(is_missing, 0.0, values).astype(np.intp)
    return np.where(is_missing, -np.inf, log_of(probabilities[np.arange(values.size), codes]))


def supported_levels(probabilities: Floats, values: Floats) -> Bools:
    """Return whether each row could draw its level (`mcce.samplers.support`); a missing one it could not."""
    known = np.where(np.isnan(values), 0, values).astype(np.intp)
    return np.asarray((probabilities[np.arange(values.size), known] > IMPOSSIBLE) & ~np.isnan(values))
