"""One column of a mixture given others: draws, restricted or not, and densities, row by row.

The symbols have probabilities, and "another number" a mixture of normal scores (`mcce.samplers.mixture.model`, step 3).
A score stands for the training number whose share of the margin it falls into; what lies between bounds is an interval
of scores, so that restricted draws are exact. Densities are placed as those of the copula (`copula.places`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from mcce.arrays import Bools, Floats
from mcce.rng import RowStreams
from mcce.samplers.copula.places import place_numbers
from mcce.samplers.levels import draw_levels
from mcce.samplers.mixture.columns import Levels, Numbers
from mcce.samplers.smoothing import log_normal_mass, truncated_normal
from mcce.samplers.support import IMPOSSIBLE, supported_by
from mcce.samplers.within import RestrictedDraw, Within, log_of


@dataclass(frozen=True)
class Conditional:
    """The distributions of one column in some rows.

    Attributes
    ----------
    column : what is seen of it.
    log_weights : of the components, by row.
    shares : probabilities of its symbols, by component.
    means, sds : of its score, by row and component; empty without one.
    """

    column: Levels | Numbers
    log_weights: Floats
    shares: Floats
    means: Floats
    sds: Floats

    @cached_property
    def symbols(self) -> Floats:
        """Probabilities of the symbols, by row."""
        weights = np.exp(self.log_weights)
        found = np.zeros((len(weights), self.shares.shape[1]))
        for k in range(len(self.shares)):  # a matrix product may round by the number of rows
            found += weights[:, k : k + 1] * self.shares[k]
        return found

    def draw(self, rng: RowStreams) -> Floats:
        """Draw a value for each row, missing by its probability."""
        return self.draw_within(rng, Within(missing=np.ones(len(self.log_weights), dtype=bool))).values

    def draw_within(self, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw an allowed value for each row, or a missing one where it is allowed, by their probabilities."""
        n, column = len(self.log_weights), self.column
        weights = self.symbols.copy()
        if column.missing:
            weights[:, -1] *= within.allows_missing(n)
        if isinstance(column, Levels):
            weights[:, : column.n_levels] *= within.level_mask(n, column.n_levels)
            code = draw_levels(weights, rng, Within())
            values = np.where(code == column.n_levels, np.nan, code)
            return self._found(values, weights)
        low, high = within.bounds(n)
        k, margin = column.classes.size, column.margin
        weights[:, :k] *= (column.classes >= low[:, None]) & (column.classes <= high[:, None])
        if margin is None:
            code = draw_levels(weights, rng, Within())
            values = np.append(column.classes, np.nan)
            return self._found(values[np.where(np.isnan(code), k, code).astype(np.intp)], weights)
        first = np.searchsorted(margin.values, low)
        last = np.searchsorted(margin.values, high, side="right") - 1
        possible = first <= last
        first, last = np.where(possible, first, 0), np.where(possible, last, 0)
        cuts = margin.cuts
        begin, end = cuts[first], cuts[last + 1]
        log_mass = self._log_mass(begin, end)
        weights[:, k] = np.where(possible, np.exp(log_mass).sum(axis=1), 0.0)
        code = draw_levels(weights, rng, Within())
        top = log_mass.max(axis=1, keepdims=True)
        likely = np.exp(log_mass - np.where(np.isfinite(top), top, 0.0))
        component = rng.categorical(np.where(np.isfinite(top), likely, 1.0))
        rows = np.arange(n)
        score = truncated_normal(self.means[rows, component], self.sds[rows, component], begin, end, rng.uniform())
        values = margin.values[np.clip(margin.positions_of(score), first, last)]
        known = np.append(column.classes, np.nan)[np.where(code < k, code, k).astype(np.intp)]
        return self._found(np.where(code == k, values, known), weights)

    def log_density(self, values: Floats) -> Floats:
        """Return the log probability of levels, missing values and numbers with point mass, log density of others."""
        symbol = self.column.symbols(values)
        found = np.where(symbol < 0, 0.0, self.symbols[np.arange(values.size), np.maximum(symbol, 0)])
        column = self.column
        if isinstance(column, Levels) or column.margin is None:
            return log_of(found)
        other = symbol == column.classes.size
        at = np.where(other, values, column.margin.values[0])
        places = place_numbers(column.margin, column.kernel, at)
        score = np.where(places.is_atom, 0.0, places.low)[:, None]  # atoms have an interval, which may have no end
        z = (score - self.means) / self.sds
        point = self._log_parts() + 0.5 * score**2 - 0.5 * z**2 - np.log(self.sds)
        interval = self._log_mass(places.low, places.high)
        log_other = scipy.special.logsumexp(np.where(places.is_atom[:, None], interval, point), axis=1)
        log_other = np.where(places.is_atom, log_other, log_other + log_of(places.slope))
        return np.where(other, log_other, log_of(found))

    def supports(self, values: Floats) -> Bools:
        """Return whether each value could be drawn, or a number as close to training values as these are."""
        symbol = self.column.symbols(values)
        found = np.where(symbol < 0, 0.0, self.symbols[np.arange(values.size), np.maximum(symbol, 0)]) > IMPOSSIBLE
        column = self.column
        if isinstance(column, Levels) or column.margin is None:
            return found
        margin = column.margin
        other = symbol == column.classes.size
        drawable, weights = margin.training_values
        near = supported_by(drawable, values, is_number=True, weights=weights)
        at = np.searchsorted(margin.values, np.where(near, values, margin.values[0]))
        cuts, ends = margin.cuts, np.full(values.size, np.inf)
        low, high = cuts[np.minimum(at, margin.values.size - 1)], cuts[np.minimum(at + 1, margin.values.size)]
        tails = [np.exp(self._log_mass(*part)).sum(axis=1) for part in ((-ends, high), (low, ends))]
        return np.where(other, near & (np.minimum(*tails) > IMPOSSIBLE), found)

    def _log_parts(self) -> Floats:
        """Return the log probability of each component and "another number" in it."""
        assert isinstance(self.column, Numbers)
        return self.log_weights + log_of(self.shares[:, self.column.classes.size])

    def _log_mass(self, low: Floats, high: Floats) -> Floats:
        """Return the log probability of another number with a score between bounds, by component."""
        a, b = ((bound[:, None] - self.means) / self.sds for bound in (low, high))
        return self._log_parts() + log_normal_mass(a, b)

    @staticmethod
    def _found(values: Floats, weights: Floats) -> RestrictedDraw:
        total = weights.sum(axis=1)
        return RestrictedDraw.of(values, ~(total > 0.0), log_of(total))
