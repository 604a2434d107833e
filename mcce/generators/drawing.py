"""Draw one block of rows, feature by feature in visiting order, within restrictions and rules.

1. Rules that name fixed features only, and restrictions of fixed features, are checked before anything is drawn.
2. A feature is drawn exactly inside its restriction and inside the bounds set by the rules whose last feature it is
   (steps 6 to 9).
3. These rules are then checked. A row that violates a rule without bounds is redrawn with new streams, 50 draws in all.
4. A row that cannot be drawn is rejected. The first constraint that rejects it is recorded, and the number of rows that
   reach each constraint.
5. With weights, the log of the mass that each step leaves of its conditional is summed: the mass of the bounds (exact
   if the sampler's is exact), and an unbiased estimate of the mass of the rules without bounds
   (`mcce.samplers.restricted`).

Rules are applied in the order of their texts, so the result does not depend on their order in the request.

One conditional, drawn inside the restriction of each row (`Conditional`):

6. A row that its restriction leaves free is drawn as without restriction, with the same bytes (`Within.excludes`).
7. Others are drawn by `sample_within`, and rounded to the feature's grid inside their bounds. Numbers that are rounded
   to an allowed point of the grid are allowed: for whole numbers up to 4, all numbers below 4.5.
8. A row for which no allowed value can be drawn is rejected. It continues with a value that is not allowed, because
   later conditionals may not handle missing values.
9. With weights, each row has the log probability of its restriction. If the sampler does not compute it, it is
   estimated by unrestricted draws (`mcce.samplers.restricted`). Rounding to a grid of multiples is not a restriction in
   this sense.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.threads import run_in_threads
from mcce.exceptions import InputError, did_you_mean
from mcce.generators.layout import ChainLayout
from mcce.generators.requests import RULE_ATTEMPTS, Drawn, DrawRequest
from mcce.rng import RowStreams, derive_key
from mcce.samplers import ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.restricted import draw_until_allowed
from mcce.samplers.rounding import before_rounding, draw_allowed, put_on_grid
from mcce.table import Feature, Table


@dataclass(frozen=True)
class Conditional:
    """A fitted sampler of a feature, with the givens and the random streams of some rows."""

    sampler: ConditionalSampler
    feature: Feature
    given: Table
    streams: RowStreams

    def __len__(self) -> int:
        return self.given.n_rows

    def at(self, rows: Any, *attempt: object) -> Conditional:
        """Return the conditional of some rows; with `attempt`, with the streams of that name."""
        streams = self.streams.child(*attempt) if attempt else self.streams
        return Conditional(self.sampler, self.feature, self.given.take(rows), streams.take(rows))

    def restricted_by(self, within: Within) -> Bools:
        """Return the rows that are not free (step 6)."""
        return within.excludes(self.feature, len(self), observed=self.sampler.draws_observed)

    def draw(self) -> Floats:
        """Draw without restrictions."""
        return self._rounded(self.sampler.sample(self.given, self._streams()))

    def draw_carrying(self, carried: object) -> tuple[Floats, object]:
        """Draw without restrictions, starting from the state that the previous conditional carried over."""
        if not self.sampler.carries_over:
            return self.draw(), carried
        drawn, carried = self.sampler.sample_carrying(self.given, self._streams(), carried)
        return self._rounded(drawn), carried

    def draw_within(self, within: Within, *, weighted: bool = False) -> RestrictedDraw:
        """Draw inside restrictions, and return which rows are rejected (steps 6 to 9)."""
        return self.draw_within_carrying(within, None, weighted=weighted)[0]

    def draw_within_carrying(
        self, within: Within, carried: object, *, weighted: bool = False
    ) -> tuple[RestrictedDraw, object]:
        """Draw inside restrictions; free rows start from the state that the previous conditional carried over."""
        restricted = self.restricted_by(within)
        if restricted.all():
            return self.draw_restricted(within, weighted), None if self.sampler.carries_over else carried
        values = np.empty(len(self))
        if self.sampler.carries_over:
            values, carried = self.draw_carrying(carried)
            if restricted.any():
                values = values.copy()
                carried = carried.without(restricted) if hasattr(carried, "without") else None
        else:
            free = np.flatnonzero(~restricted) if restricted.any() else slice(None)
            values[free] = (self.at(free) if restricted.any() else self).draw()
        rejected, log_mass = np.zeros(len(self), dtype=bool), np.zeros(len(self))
        if restricted.any():
            rows = np.flatnonzero(restricted)
            found = self.at(rows).draw_restricted(within.take(rows), weighted)
            values[rows], rejected[rows] = found.values, found.rejected
            log_mass[rows] = 0.0 if found.log_mass is None else found.log_mass
        return RestrictedDraw(values, rejected, log_mass if weighted else None), carried

    def draw_restricted(self, within: Within, weighted: bool) -> RestrictedDraw:
        within = replace(within, weighted=weighted)
        found = draw_allowed(self.sampler, self.given, self._streams(), self.feature, within)
        values, log_mass = found.values, found.log_mass
        if weighted and log_mass is None:
            streams = self.streams.child("mass")
            unrounded = before_rounding(self.sampler, self.feature, within.off_grid(), len(self))
            log_mass = ConditionalSampler.sample_within(self.sampler, self.given, streams, unrounded).log_mass
        rejected = np.flatnonzero(found.rejected)
        if rejected.size:
            values = values.copy()
            values[rejected] = self.at(rejected, "free").draw()
        return RestrictedDraw(values, found.rejected, log_mass if weighted else None)

    def _streams(self) -> RowStreams:
        """Return the streams at their beginning: a draw does not depend on earlier draws."""
        return RowStreams(self.streams.key, self.streams.rows, self.streams.draws)

    def _rounded(self, drawn: Floats) -> Floats:
        return put_on_grid(drawn, self.sampler, self.feature, len(self))


class DrawnBlock:
    """Some rows of a request while they are drawn: which constraint rejects each, and their weights.

    Attributes
    ----------
    due : rules by the last column of the chain that they name, in the order of their texts; -1: all are given.
    """

    def __init__(self, layout: ChainLayout, request: DrawRequest) -> None:
        self.layout, self.request = layout, request
        self.rejected_by: Ints = np.full(len(request), -1, dtype=np.int64)
        self.log_weight = np.zeros(len(request))
        names = [feature.name for feature in layout.features]
        for name in request.restrictions:
            if name not in names:
                raise InputError(f"a restriction names {name!r}, which is not a feature; {did_you_mean(name, names)}")
        self.due: dict[int, list[int]] = {}
        for r in sorted(range(len(request.rules)), key=lambda r: str(request.rules[r])):
            last = max((layout.place_in_chain[j] for j in request.rules[r].columns), default=-1)
            self.due.setdefault(last if last >= layout.n_given else -1, []).append(r)

    def reject(self, code: int, rows: Bools) -> None:
        """Reject rows by a constraint, unless an earlier one rejects them."""
        self.rejected_by[rows & (self.rejected_by < 0)] = code

    def holds(self, r: int, rows: Floats, at: Ints | slice) -> Bools:
        """Return whether the rows at some places, columns in data order, satisfy a rule."""
        factuals = self.request.factuals
        return np.asarray(self.request.rules[r].holds(rows, None if factuals is None else factuals[at]), dtype=bool)

    def code(self, r: int) -> int:
        """Return the place of a rule among the constraints."""
        return len(self.request.restrictions) + r

    def rows(self) -> Floats:
        """Return the drawn rows, columns in data order."""
        raise NotImplementedError

    def tried(self) -> Ints:
        """Return, for each constraint, the number of restricted rows that reached it."""
        raise NotImplementedError


class ChainBlock(DrawnBlock):
    """The rows of a block drawn by a chain, one feature after the other; `matrix` is in chain order."""

    def __init__(self, layout: ChainLayout, samplers: Sequence[ConditionalSampler], request: DrawRequest) -> None:
        super().__init__(layout, request)
        self.samplers, n = samplers, len(request)
        self.matrix = np.empty((n, len(layout.features)), order="F")
        self.matrix[:, : layout.n_given] = request.givens
        self._tried: Ints = np.zeros(len(request.constraints), dtype=np.int64)
        self._position = {k: j for j, k in enumerate(layout.place_in_chain)}
        self._rows = np.full((n, len(layout.place_in_chain)) if request.rules else (0, 0), np.nan)
        if request.rules:
            self._rows[:, list(layout.fixed_positions)] = request.givens[:, : len(layout.fixed_positions)]

    def rows(self) -> Floats:
        return self.matrix[:, self.layout.place_in_chain]

    def tried(self) -> Ints:
        return self._tried

    def draw(self) -> ChainBlock:
        """Draw all features."""
        layout, request, features = self.layout, self.request, self.layout.features
        self._check_givens()
        complete = not np.isnan(request.givens.sum())
        carried: object = None
        for k, sampler in enumerate(self.samplers, layout.n_given):
            given = layout.given(Table(features, self.matrix, complete=complete), k)
            streams = RowStreams(
                derive_key(request.seed, "draw", features[k].name), request.stream_keys, request.draw_indices
            )
            conditional = Conditional(sampler, features[k], given, streams)
            restriction = request.restrictions.get(features[k].name)
            rules = self.due.get(k, ())
            if restriction is None and not rules:
                drawn, carried = conditional.draw_carrying(carried)
            else:
                drawn, carried = self._draw_allowed(k, conditional, restriction, rules, carried)
            complete = complete and not np.isnan(drawn).any()
            self.matrix[:, k] = drawn
            if request.rules:
                self._rows[:, self._position[k]] = drawn
        return self

    def _check_givens(self) -> None:
        """Reject the rows whose fixed values violate a restriction or a rule (step 1)."""
        for code, (name, within) in enumerate(self.request.restrictions.items()):
            for k, feature in enumerate(self.layout.features[: self.layout.n_given]):
                if feature.name == name:
                    self._count(code, ~within.allows(self.matrix[:, k]))
        for r in self.due.get(-1, ()):
            self._count(self.code(r), ~self.holds(r, self._rows, slice(None)))

    def _draw_allowed(
        self, k: int, conditional: Conditional, restriction: Within | None, rules: Sequence[int], carried: object
    ) -> tuple[Floats, object]:
        """Draw a feature inside its restriction and the rules that are due (steps 2 to 5)."""
        request, column = self.request, self._position[k]
        set_bounds = {r: request.rules[r].within_for(column, self._rows, request.factuals) for r in rules}
        bounds: list[tuple[int, Within]] = []
        if restriction is not None:
            bounds.append((list(request.restrictions).index(conditional.feature.name), restriction))
        bounds += [(self.code(r), within) for r, within in set_bounds.items() if within is not None]
        within = _intersection(bounds)
        if within is None:
            drawn, carried = conditional.draw_carrying(carried)
            mass = np.zeros(len(drawn)) if request.weighted else None
            found = RestrictedDraw(drawn, np.zeros(len(drawn), dtype=bool), mass)
        else:
            found, carried = conditional.draw_within_carrying(within, carried, weighted=request.weighted)
        rejected_by = self._rejecting_bounds(conditional, bounds, np.flatnonzero(found.rejected))
        if rules:
            found = self._obey(conditional, column, found, within, rules, None in set_bounds.values(), rejected_by)
        for code, allowed in bounds:
            if code < len(request.restrictions):
                self._count(code, rejected_by == code, conditional.restricted_by(allowed))
        for r in rules:
            self._count(self.code(r), rejected_by == self.code(r))
        if found.log_mass is not None:
            self.log_weight += found.log_mass
        return found.values, carried

    def _obey(
        self,
        conditional: Conditional,
        column: int,
        first: RestrictedDraw,
        within: Within | None,
        rules: Sequence[int],
        estimate: bool,
        rejected_by: Ints,
    ) -> RestrictedDraw:
        """Redraw rows that violate a rule (step 3); reject those that always do, by the first rule violated."""
        weighted = self.request.weighted

        def broken(at: Ints, values: Floats) -> Ints:
            rows = self._rows[at]
            rows[:, column] = values
            which = np.full(at.size, -1, dtype=np.int64)
            for r in rules:
                which[(which < 0) & ~self.holds(r, rows, at)] = self.code(r)
            return which

        remaining = np.flatnonzero((self.rejected_by < 0) & ~first.rejected)
        broke_first = broken(remaining, first.values[remaining])

        def draw(waiting: Ints, attempt: int) -> RestrictedDraw:
            at = remaining[waiting]
            if attempt == 0:
                return RestrictedDraw(first.values[at], broke_first[waiting] >= 0, first.take(at).log_mass)
            again = conditional.at(at, "rule", attempt)
            if within is None:
                drawn = again.draw()
                tried = RestrictedDraw(drawn, np.zeros(at.size, dtype=bool), np.zeros(at.size) if weighted else None)
            else:
                tried = again.draw_within(within.take(at), weighted=weighted)
            return RestrictedDraw(tried.values, tried.rejected | (broken(at, tried.values) >= 0), tried.log_mass)

        obeyed = draw_until_allowed(draw, remaining.size, RULE_ATTEMPTS, estimate=estimate and weighted)
        values, rejected = first.values.copy(), first.rejected.copy()
        values[remaining[~obeyed.rejected]] = obeyed.values[~obeyed.rejected]
        rejected[remaining] = obeyed.rejected
        rejected_by[remaining[obeyed.rejected]] = broke_first[obeyed.rejected]
        if first.log_mass is None or obeyed.log_mass is None:
            return RestrictedDraw(values, rejected)
        log_mass = first.log_mass.copy()
        log_mass[remaining] = obeyed.log_mass
        return RestrictedDraw(values, rejected, log_mass)

    def _rejecting_bounds(self, conditional: Conditional, bounds: list[tuple[int, Within]], rejected: Ints) -> Ints:
        """Return, for each rejected row, the first bounds that leave no value with those before; -1 for other rows."""
        rejected_by = np.full(len(conditional), -1, dtype=np.int64)
        for end in range(1, len(bounds) + 1):
            if not rejected.size:
                break
            allowed = _intersection(bounds[:end])
            lost = np.ones(rejected.size, dtype=bool)
            if end < len(bounds) and allowed is not None:
                lost = conditional.at(rejected, "cause", end).draw_restricted(allowed.take(rejected), False).rejected
            rejected_by[rejected[lost]] = bounds[end - 1][0]
            rejected = rejected[~lost]
        return rejected_by

    def _count(self, code: int, rejected: Bools, restricted: Bools | None = None) -> None:
        """Count the rows that reach a constraint, and reject those that violate it."""
        remaining = self.rejected_by < 0
        self._tried[code] += int((remaining if restricted is None else remaining & restricted).sum())
        self.reject(code, rejected)
        self.log_weight[rejected] = -np.inf


def draw_in_blocks(
    draw: Callable[[DrawRequest], DrawnBlock],
    request: DrawRequest,
    n_columns: int,
    block_rows: int,
    threads: int,
    progress: bool | None,
    constraints: tuple[Hashable, ...],
) -> Drawn:
    """Draw all rows of a request, block by block in any order; `constraints` are those that may reject a row."""
    rows = np.empty((len(request), n_columns), order="F")
    rejected_by, log_weight = np.empty(len(request), dtype=np.int64), np.empty(len(request))
    tried = np.zeros(len(constraints), dtype=np.int64)

    def draw_block(begin: int) -> Ints:
        part = slice(begin, min(begin + block_rows, len(request)))
        block = draw(request.take(part))
        rows[part], rejected_by[part], log_weight[part] = block.rows(), block.rejected_by, block.log_weight
        return block.tried()[: len(constraints)]

    begins = list(range(0, len(request), block_rows))
    for tried_in_block in run_in_threads(draw_block, begins, threads, "drawing", progress):
        tried += tried_in_block
    weights = log_weight if request.weighted else None
    return Drawn(rows, rejected_by >= 0, weights, rejected_by, constraints, tuple(tried.tolist()))


def _intersection(bounds: Sequence[tuple[int, Within]]) -> Within | None:
    """Return the intersection of all bounds; None if there are no bounds."""
    allowed = None
    for _, within in bounds:
        allowed = within if allowed is None else allowed & within
    return allowed
