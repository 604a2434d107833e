"""One conditional, drawn inside what is allowed for each row.

1. A row that its restriction leaves free is drawn as without any: the same bytes (`Within.excludes`).
2. Others are drawn by `sample_within`, and put on the feature's grid inside their bounds. Numbers that are put on an
   allowed point of the grid are allowed: of whole numbers up to 4, all below 4.5.
3. A row of which nothing allowed can be drawn is dead. It goes on with a value that is not allowed, because later
   conditionals need not take missing values.
4. With weights, each row has the log probability of what is allowed; a sampler that does not say has it estimated by
   unrestricted draws (`mcce.samplers.rejection`). To be put on a grid of multiples is no restriction in this sense.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcce.arrays import Bools, Floats
from mcce.rng import RowStreams
from mcce.samplers import ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.settle import before_settling, draw_allowed, settle
from mcce.table import Feature, Table


@dataclass(frozen=True)
class Conditional:
    """A fitted sampler of a feature, with what some rows are drawn given and by."""

    sampler: ConditionalSampler
    feature: Feature
    given: Table
    streams: RowStreams

    def __len__(self) -> int:
        return self.given.n_rows

    def at(self, rows: Any, *attempt: object) -> Conditional:
        """Return the conditional of some rows; with `attempt`, by streams of that name."""
        streams = self.streams.child(*attempt) if attempt else self.streams
        return Conditional(self.sampler, self.feature, self.given.take(rows), streams.take(rows))

    def restricted_by(self, within: Within) -> Bools:
        """Return the rows that are not free (step 1)."""
        return within.excludes(self.feature, len(self), observed=self.sampler.draws_observed)

    def draw(self) -> Floats:
        """Draw without restrictions."""
        return self._settled(self.sampler.sample(self.given, self._streams()))

    def draw_on(self, carried: object) -> tuple[Floats, object]:
        """Draw without restrictions, going on from what the conditional before left."""
        if not self.sampler.hands_on:
            return self.draw(), carried
        drawn, carried = self.sampler.sample_on(self.given, self._streams(), carried)
        return self._settled(drawn), carried

    def draw_within(self, within: Within, *, weighted: bool = False) -> RestrictedDraw:
        """Draw inside what is allowed, and say which rows are dead (steps 1 to 4)."""
        return self.draw_on_within(within, None, weighted=weighted)[0]

    def draw_on_within(
        self, within: Within, carried: object, *, weighted: bool = False
    ) -> tuple[RestrictedDraw, object]:
        """Draw inside what is allowed; free rows go on from what the conditional before left."""
        restricted = self.restricted_by(within)
        if restricted.all():
            return self._draw_restricted(within, weighted), None if self.sampler.hands_on else carried
        values = np.empty(len(self))
        if self.sampler.hands_on:
            values, carried = self.draw_on(carried)
            if restricted.any():
                values = values.copy()
                carried = carried.without(restricted) if hasattr(carried, "without") else None
        else:
            free = np.flatnonzero(~restricted) if restricted.any() else slice(None)
            values[free] = (self.at(free) if restricted.any() else self).draw()
        dead, log_mass = np.zeros(len(self), dtype=bool), np.zeros(len(self))
        if restricted.any():
            rows = np.flatnonzero(restricted)
            found = self.at(rows)._draw_restricted(within.take(rows), weighted)
            values[rows], dead[rows] = found.values, found.dead
            log_mass[rows] = 0.0 if found.log_mass is None else found.log_mass
        return RestrictedDraw(values, dead, log_mass if weighted else None), carried

    def can_draw(self, within: Within) -> Bools:
        """Return whether something allowed can be drawn, row by row."""
        return ~draw_allowed(self.sampler, self.given, self._streams(), self.feature, within).dead

    def _draw_restricted(self, within: Within, weighted: bool) -> RestrictedDraw:
        within = replace(within, weighted=weighted)
        found = draw_allowed(self.sampler, self.given, self._streams(), self.feature, within)
        values, log_mass = found.values, found.log_mass
        if weighted and log_mass is None:
            streams = self.streams.child("mass")
            asked = before_settling(self.sampler, self.feature, within.off_grid(), len(self))
            log_mass = ConditionalSampler.sample_within(self.sampler, self.given, streams, asked).log_mass
        dead = np.flatnonzero(found.dead)
        if dead.size:
            values = values.copy()
            values[dead] = self.at(dead, "free").draw()
        return RestrictedDraw(values, found.dead, log_mass if weighted else None)

    def _streams(self) -> RowStreams:
        """Return the streams at their beginning: a draw does not depend on what was drawn before it."""
        return RowStreams(self.streams.key, self.streams.rows, self.streams.draws)

    def _settled(self, drawn: Floats) -> Floats:
        return settle(drawn, self.sampler, self.feature, len(self))
