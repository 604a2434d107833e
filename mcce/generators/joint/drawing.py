"""Draw one block of whole rows within restrictions and rules: directly by generators that can, else by rejection.

1. Restrictions of fixed features, and rules that name fixed features only, are checked before anything is drawn.
2. Without rules, a row that its restrictions leave free is drawn as without restrictions, with the same bytes.
3. Other rows are drawn inside the restrictions by a generator with `restricts`. Without it, the whole row is redrawn,
   with new streams for each attempt, until all its values are allowed. This conditions the joint distribution, so the
   rows need no weights. A feature with a single allowed value is set to it, like a fixed value.
4. A row that violates a rule is redrawn as a whole, with at most `attempts` draws in all.
5. A row without an allowed draw is drawn once more without the restrictions of features whose present value may be kept
   (`Within.kept`), and keeps these values. If this fails too, the row is rejected: by the first constraint that its
   first draw violates, or that leaves no value together with those before it.
6. With weights, each row has the log probability of its restrictions: the generator's, or an unbiased estimate
   (`mcce.samplers.restricted`).

Numbers are rounded to the column's grid before they are checked, as in a chain (`mcce.samplers.rounding`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.exceptions import SamplerError
from mcce.generators.drawing import DrawnBlock
from mcce.generators.layout import ChainLayout
from mcce.generators.requests import DrawRequest
from mcce.rng import RowStreams, derive_key
from mcce.samplers.restricted import RestrictedDraw, Within, draw_until_allowed
from mcce.samplers.rounding import before_rounding, put_on_grid
from mcce.table import Feature

UNREACHED = "the fixed values"  # the constraint that rejects a row which could not be drawn given its fixed values

Withins = Mapping[int, Within]


class Draws(Protocol):
    """The interface of `mcce.generators.JointGenerator` for drawing blocks of rows."""

    @property
    def restricts(self) -> bool: ...
    @property
    def draws_observed(self) -> bool: ...
    @property
    def attempts(self) -> int: ...
    def draw_free(self, givens: Floats, streams: RowStreams) -> RestrictedDraw: ...
    def draw_within(
        self, givens: Floats, streams: RowStreams, within: Withins, *, weighted: bool
    ) -> RestrictedDraw: ...


class JointBlock(DrawnBlock):
    """The rows of a block drawn by a joint generator; `values` are the mutable features."""

    def __init__(self, generator: Draws, layout: ChainLayout, request: DrawRequest) -> None:
        super().__init__(layout, request)
        self.generator = generator
        self.features = layout.features[layout.n_given :]
        self.values = np.empty((len(request), len(self.features)), order="F")
        names = [feature.name for feature in layout.features]
        # the mutable feature of each restriction, by its number; negative for fixed features
        self.column_of = {code: names.index(name) - layout.n_given for code, name in enumerate(request.restrictions)}
        self.early = self.due.pop(-1, [])  # rules that name fixed features only
        late = [r for rules in self.due.values() for r in rules]
        self.late = sorted(late, key=lambda r: (str(request.rules[r]), r))
        self.restricting = self._restricting()

    def _restricting(self) -> dict[int, Bools]:
        """Return which rows each constraint restricts, by its number, in the order in which rows reach them."""
        n, request = len(self.request), self.request
        all_rows = np.ones(n, dtype=bool)
        found: dict[int, Bools] = {}
        for code, column in self.column_of.items():
            if column < 0:
                found[code] = all_rows
        found |= {self.code(r): all_rows for r in self.early}
        for code, (column, within) in enumerate(zip(self.column_of.values(), request.restrictions.values())):
            if column >= 0:
                observed = self.generator.draws_observed
                found[code] = within.excludes(self.features[column], n, observed=observed)
        return found | {self.code(r): all_rows for r in self.late}

    def draw(self) -> JointBlock:
        """Draw all rows."""
        self._check_givens()
        bound = np.zeros(len(self.request), dtype=bool)
        for code, restricted in self.restricting.items():
            if code >= len(self.column_of) or self.column_of[code] >= 0:
                bound |= restricted
        bound &= self.rejected_by < 0
        free = np.flatnonzero(~bound)
        if free.size:
            drawn = self.generator.draw_free(self.request.givens[free], self._streams(free))
            self.values[free] = self._rounded(drawn.values, {})
            lost = free[drawn.rejected & (self.rejected_by[free] < 0)]
            self.rejected_by[lost] = len(self.request.constraints)
        if bound.any():
            self._draw_bound(np.flatnonzero(bound))
        self.log_weight[self.rejected_by >= 0] = -np.inf
        return self

    def rows(self) -> Floats:
        return self.layout.in_data_order(self.request.givens, self.values)

    def tried(self) -> Ints:
        """Return, for each constraint and for the fixed values, the number of restricted rows that reached it."""
        tried = np.zeros(len(self.request.constraints) + 1, dtype=np.int64)
        tried[-1] = len(self.request)
        remaining = self.rejected_by != len(self.request.constraints)
        for code, restricted in self.restricting.items():
            tried[code] = int((restricted & remaining).sum())
            remaining &= self.rejected_by != code
        return tried

    def _check_givens(self) -> None:
        """Reject the rows whose fixed values violate a restriction or a rule (step 1)."""
        for code, within in enumerate(self.request.restrictions.values()):
            column = self.column_of[code] + self.layout.n_given
            if column < self.layout.n_given:
                self.reject(code, ~within.allows(self.request.givens[:, column]))
        undrawn = np.full((len(self.request), len(self.features)), np.nan)
        for r in self.early:
            self.reject(self.code(r), ~self._obeys(r, undrawn, np.arange(len(self.request))))

    def _draw_bound(self, at: Ints) -> None:
        """Draw rows within restrictions and rules (steps 3 to 6)."""
        within = {
            column: each if self.request.weighted else _keeping_single(each, self.features[column], len(self.request))
            for column, each in zip(self.column_of.values(), self.request.restrictions.values())
            if column >= 0
        }
        first, found = self._obey(at, within, ())
        rejected = found.rejected.copy()
        kept = self._kept(at[rejected], within)
        if kept is not None and not self.request.weighted:
            again = at[rejected][kept.any(axis=1)]
            loosened = self._obey(again, within, ("kept",), kept[kept.any(axis=1)])[1]
            rejected[np.isin(at, again[~loosened.rejected])] = False
        self.log_weight[at] = 0.0 if found.log_mass is None else found.log_mass
        lost = at[rejected]
        if lost.size:
            values, unreached = first[0][rejected], first[1][rejected]
            self.rejected_by[lost] = self._rejecting(lost, within, values, unreached)
            missing = np.isnan(values).all(axis=1)
            self.values[lost] = values
            if missing.any():  # no value is allowed: the row gets values that are not
                rest = lost[missing]
                drawn = self.generator.draw_free(self.request.givens[rest], self._streams(rest, "free"))
                self.values[rest] = self._rounded(drawn.values, {})

    def _obey(
        self, at: Ints, within: Withins, labels: tuple[object, ...], kept: Bools | None = None
    ) -> tuple[tuple[Floats, Bools], RestrictedDraw]:
        """Draw rows until they are allowed; also return the first draws, and which of them the fixed values reject.

        Features marked in `kept` keep the present value of the row.
        """
        first = np.full((at.size, len(self.features)), np.nan), np.zeros(at.size, dtype=bool)
        weighted, restricts = self.request.weighted, self.generator.restricts and bool(within)
        found = np.zeros(at.size, dtype=bool)

        def attempt(waiting: Ints, number: int) -> RestrictedDraw:
            rows = at[waiting]
            streams = self._streams(rows, *labels, *(("attempt", number) if number else ()))
            keeps = None if kept is None else kept[waiting]
            drawn, unreached = self._draw_once(rows, within, streams, keeps)
            broken = drawn.rejected.copy()
            passing = np.flatnonzero(~broken)
            for r in self.late:
                if passing.size:
                    holds = self._obeys(r, drawn.values[passing], rows[passing])
                    broken[passing[~holds]] = True
                    passing = passing[holds]
            if number == 0:
                first[0][waiting], first[1][waiting] = drawn.values, unreached
            new = ~broken & ~found[waiting]
            self.values[rows[new]] = drawn.values[new]
            found[waiting[new]] = True
            return RestrictedDraw(np.zeros(rows.size), broken, drawn.log_mass if weighted else None)

        never = any(each.never is not None for each in within.values())
        rejecting = bool(within) and (not restricts or never)
        estimate = weighted and (rejecting or bool(self.late))
        return first, draw_until_allowed(attempt, at.size, self.generator.attempts, estimate=estimate)

    def _draw_once(
        self, rows: Ints, within: Withins, streams: RowStreams, kept: Bools | None
    ) -> tuple[RestrictedDraw, Bools]:
        """Draw some rows once; also return which of them could not be drawn given the fixed values."""
        givens, weighted = self.request.givens[rows], self.request.weighted
        inside = {k: each.take(rows) for k, each in within.items()}
        wanted = inside if kept is None else {k: _loosened(w, kept[:, j]) for j, (k, w) in enumerate(inside.items())}
        nothing = np.zeros(rows.size, dtype=bool)
        if self.generator.restricts and within:
            known = {
                k: before_rounding(self.generator, self.features[k], each.known_to_samplers(), rows.size)
                for k, each in wanted.items()
            }
            drawn = self.generator.draw_within(givens, streams, known, weighted=weighted)
            values, unreached = self._rounded(drawn.values, wanted), nothing
        else:
            drawn = self.generator.draw_free(givens, streams)
            values, unreached = self._rounded(drawn.values, {}), drawn.rejected
        rejected = drawn.rejected.copy()
        for j, (k, each) in enumerate(inside.items()):
            if not self.generator.restricts:
                values[:, k], outside = _put_inside(values[:, k], each, self.features[k], weighted)
            else:
                outside = nothing
            if kept is not None and each.kept is not None:
                values[:, k] = np.where(kept[:, j], each.kept, values[:, k])
                outside = outside & ~kept[:, j]
            rejected |= outside | ~each.allows(values[:, k])
        return RestrictedDraw(
            values, rejected, drawn.log_mass if drawn.log_mass is not None else np.zeros(rows.size)
        ), unreached

    def _kept(self, rows: Ints, within: Withins) -> Bools | None:
        """Return, for each row, which restricted features may keep the present value; None if no feature has one."""
        if not rows.size or all(each.kept is None for each in within.values()):
            return None
        columns = []
        for each in within.values():
            part = each.take(rows)
            may = np.zeros(rows.size, dtype=bool)
            if part.kept is not None:
                may = ~np.isnan(part.kept) & part.allows(part.kept)
            columns.append(may)
        return np.column_stack(columns)

    def _rejecting(self, rows: Ints, within: Withins, values: Floats, unreached: Bools) -> Ints:
        """Return the constraint that rejects each row (step 5)."""
        found = np.full(rows.size, -1, dtype=np.int64)
        found[unreached] = len(self.request.constraints)
        code_of = {column: code for code, column in self.column_of.items()}
        for end, k in enumerate(within, 1):
            left = np.flatnonzero(found < 0)
            if not left.size:
                return found
            if self.generator.restricts:
                some = dict(list(within.items())[:end])
                lost = self._draw_once(rows[left], some, self._streams(rows[left], "cause"), None)[0].rejected
            else:
                lost = ~within[k].take(rows[left]).allows(values[left, k])
            found[left[lost]] = code_of[k]
        for r in self.late:
            left = np.flatnonzero(found < 0)
            if left.size:
                found[left[~self._obeys(r, values[left], rows[left])]] = self.code(r)
        # rows with an allowed draw in this search, but in none of their attempts
        last = [*self.restricting][-1]
        return np.where(found < 0, last, found)

    def _rounded(self, values: Floats, within: Withins) -> Floats:
        if np.ndim(values) != 2 or values.shape[1] != len(self.features):
            raise SamplerError(
                f"{self.generator!r} drew an array of shape {np.shape(values)} for {len(self.features)} features; "
                "return one row for each row to draw, with a column for each mutable feature."
            )
        on_grid = np.empty(values.shape, order="F")
        for k, feature in enumerate(self.features):
            on_grid[:, k] = put_on_grid(values[:, k], self.generator, feature, values.shape[0], within.get(k))
        return on_grid

    def _streams(self, rows: Ints, *labels: object) -> RowStreams:
        key = derive_key(self.request.seed, "joint", *labels)
        return RowStreams(key, self.request.stream_keys[rows], self.request.draw_indices[rows])

    def _obeys(self, r: int, values: Floats, at: Ints) -> Bools:
        """Return whether the mutable features of the rows at some places satisfy a rule."""
        return self.holds(r, self.layout.in_data_order(self.request.givens[at], values), at)


def _keeping_single(within: Within, feature: Feature, n_rows: int) -> Within:
    """Return the restriction of a feature with the single allowed value of a row as its present value to keep."""
    single, value = within.single_values(feature, n_rows)
    if not single.any():
        return within
    return replace(within, kept=np.where(single, value, np.nan if within.kept is None else within.kept))


def _put_inside(values: Floats, within: Within, feature: Feature, weighted: bool) -> tuple[Floats, Bools]:
    """Return free draws set to the single allowed value or rounded to a multiple; also which are not allowed."""
    outside = ~within.off_grid().allows(values)
    values = np.where(outside, values, within.put(values))
    if not weighted:
        single, value = within.single_values(feature, values.size)
        values, outside = np.where(single, value, values), outside & ~single
    return values, outside


def _loosened(within: Within, rows: Bools) -> Within:
    """Return the restriction with some rows unrestricted."""
    n = rows.size
    low, high = within.bounds(n)
    return replace(
        within,
        low=np.where(rows, -np.inf, low),
        high=np.where(rows, np.inf, high),
        levels=None if within.levels is None else within.levels | rows[:, None],
        missing=within.allows_missing(n) | rows,
        step=None if within.step is None else np.where(rows, np.nan, within.step),
        never=None if within.never is None else np.where(rows[:, None], np.nan, within.never),
    )
