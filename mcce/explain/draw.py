"""Draw candidates: pools of rows from the generator (paper, section 2.2), or rows given by the user.

1. Factuals that agree in the values that draws depend on share one pool (`mcce.explain.problem`). Each pool is drawn
   from the generator, given its fixed values and the wanted decision. A draw is identified by its index, so any part of
   a pool can be drawn separately; a redraw is another, independent pool for the same factuals.
2. `Candidates` has the encoded rows that are candidates of each factual. Rows given by the user are matched to their
   factuals and checked (`match_candidates`).
3. `draw_block` draws the pools of a block. `redraw_block` draws for single factuals without a counterfactual.

With constraints, pools are shared by as many factuals as possible (`ConstrainedPools`):

1. Constraints that are the same for all factuals (`Constraints.shared`) are applied while drawing. Factuals that agree
   in their fixed values share these draws.
2. Constraints that depend on the values of a factual (`Constraints.relative`: may only rise, by at most a given amount,
   may not become missing, rules that read the factual) reject some of the draws in the search. The remaining draws are
   from the chain conditioned on the constraint: rejecting whole rows is conditioning, truncating conditionals is not.
3. A factual whose constraints allow less than a quarter of the first 100 shared draws, or do not let a feature change,
   gets an individual pool within all its constraints. If no allowed value can be drawn for a feature, the factual's
   value is kept if it is allowed; such a pool is not shared with factuals that have another value.
4. A factual without a counterfactual is redrawn within all its constraints (`ConstrainedPools.draw_own`) if it shared
   its draws, or if draws were lost or rounded to a grid. The values of all bounded features may then be kept, and a row
   for which no draw satisfies the rules is drawn once more, with the factual's values in all columns that the rules
   name: values that satisfy a constraint may be kept, whatever the form of the constraint.
5. A factual that a sparse search still cannot explain gets draws given the other decision (`draw_other_decision`).
   If few training rows have the wanted decision, their values may all violate a constraint (all of them are younger,
   and age may only rise); combinations of values of other rows may be accepted.
6. The random numbers depend on the fixed values only, however pools are shared: neither a constraint that excludes
   nothing nor the factuals explained together change the draws. Rows that cannot be drawn within the constraints are
   left out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints, UInts
from mcce.constraints import Constraints, ResolvedRule
from mcce.constraints.limits import keep
from mcce.exceptions import InputError, spell
from mcce.explain.problem import Block, Factuals, Problem, pool_blocks, restrict_keys, split_keys
from mcce.generators.base import Generator
from mcce.generators.requests import Drawn, DrawRequest
from mcce.rng import derive_key, hash_rows
from mcce.table import Schema
from mcce.table.checks import find_labels
from mcce.table.frames import is_other_frame, read_frame


@dataclass(frozen=True)
class Candidates:
    """The candidates of factual i are rows[begin[i] : end[i]] of one encoded matrix; ties go to the earlier row.

    `distinct` says that no two rows of a factual are equal, so duplicates need not be searched.
    """

    rows: Floats
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    distinct: bool = False

    def take(self, which: Ints | slice) -> Candidates:
        """Return the candidates of some factuals."""
        return replace(self, begin=self.begin[which], end=self.end[which])

    def pools(self, which: Ints) -> Iterator[tuple[int, int, Ints]]:
        """Yield the begin, end and factuals of each pool of some factuals; pools without rows are left out."""
        begins, ends = self.begin[which], self.end[which]
        filled = ends > begins  # an empty pool begins at the same row as the next one
        for begin in sorted({*begins[filled].tolist()}):
            mine = filled & (begins == begin)
            yield begin, int(ends[mine][0]), which[mine]

    def separate(self, which: Ints) -> tuple[Candidates, Ints]:
        """Return the candidates of some factuals one after the other, none shared, and the factual of each row."""
        sizes = self.end[which] - self.begin[which]
        ends = np.cumsum(sizes)
        place = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes) + np.repeat(self.begin[which], sizes)
        return Candidates(self.rows[place], ends - sizes, ends), np.repeat(which, sizes)


def draw_pools(
    generator: Generator,
    matrix: Floats,
    keys: UInts,
    n_samples: int,
    progress: bool | None = False,
    *,
    begin: int = 0,
    redraw: int = 0,
    decision: bool = True,
) -> Candidates:
    """Draw one pool for each distinct key: `n_samples` rows from draw `begin` on, of the given redraw.

    Rows that the generator cannot draw given their fixed values are left out.
    """
    draws = range(begin, begin + n_samples)
    pool, request = request_pools(generator, matrix, keys, keys, draws, redraw, decision)[:2]
    drawn, first = generator.draw(request, progress=progress), pool * n_samples
    if not drawn.rejected.any():
        return Candidates(drawn.rows, first, first + n_samples)
    kept = np.concatenate([[0], np.cumsum(~drawn.rejected)])
    return Candidates(np.asfortranarray(drawn.rows[~drawn.rejected]), kept[first], kept[first + n_samples])


def request_pools(
    generator: Generator,
    matrix: Floats,
    keys: UInts,
    shared_by: UInts,
    draws: range,
    redraw: int,
    decision: bool = True,
) -> tuple[Ints, DrawRequest, Ints]:
    """Return the pool of each factual, the request for all pools, and the first factual of each pool.

    Factuals that agree in `shared_by` share a pool; the random numbers are those of `keys`. Draws are conditional on
    the wanted decision, or on the other one.
    """
    pool, distinct = pd.factorize(shared_by)
    first = np.zeros(len(distinct), dtype=np.intp)
    first[pool[::-1]] = np.arange(keys.size)[::-1]
    request = DrawRequest(
        givens=np.repeat(generator.givens_of(matrix[first], decision), len(draws), axis=0),
        stream_keys=np.repeat(keys[first], len(draws)),
        draw_indices=np.tile(np.arange(draws.start, draws.stop, dtype=np.uint64), len(distinct)),
        seed=derive_key(generator.seed_, "pool", *([redraw] if redraw else [])),
    )
    return pool.astype(np.int64), request, first


LEAST_ALLOWED = 25  # fewest allowed rows among the first shared draws, for a factual that shares its pool
FIRST = range(100)
AT_ONCE = 8192  # factuals whose first draws are checked together
NOTHING: Ints = np.zeros(2, dtype=np.int64)


@dataclass(frozen=True)
class Pools:
    """Candidates, the key of the pool of each factual, and the acceptance of draws.

    `to_redraw` marks factuals to redraw individually if they have no counterfactual (step 4). `acceptance` has, for
    each restriction, the number of rows checked and the number accepted.
    """

    candidates: Candidates
    keys: UInts
    to_redraw: Bools
    acceptance: Mapping[Hashable, Ints] = field(default_factory=dict)


def _agree(keys: UInts, pool: Ints) -> Bools:
    """Return for each pool whether all its factuals have the same key."""
    least, most = np.full((2, int(pool.max()) + 1), keys[0])
    least[pool], most[pool] = keys, keys
    np.minimum.at(least, pool, keys)
    np.maximum.at(most, pool, keys)
    return np.asarray(least == most)


def _mutable_columns(constraints: Constraints, rules: Sequence[ResolvedRule]) -> list[int]:
    """Return the columns that some rules name and that are not fixed."""
    return sorted({column for rule in rules for column in rule.columns} - set(constraints.fixed))


class ConstrainedPools:
    """The pools of some factuals (encoded rows, keys of their streams, and names), drawn within constraints."""

    def __init__(
        self,
        generator: Generator,
        constraints: Constraints,
        matrix: Floats,
        keys: UInts,
        ids: pd.Index[Any],
        redraw: int = 0,
        decision: bool = True,
    ) -> None:
        self.generator = generator
        self.constraints = constraints
        self.matrix = matrix
        self.keys = keys
        self.ids = ids
        self.redraw = redraw
        self.decision = decision
        self.rows: list[Floats] = []
        self.n_rows = 0
        self.begin = np.zeros(keys.size, dtype=np.int64)
        self.end = np.zeros(keys.size, dtype=np.int64)
        self.pool_keys = keys.copy()
        self.acceptance: dict[Hashable, Ints] = {}

    def draw(self, draws: range) -> Pools:
        """Draw one row for each of `draws` and each pool; rejected rows are left out."""
        relative = self.constraints.relative
        all_factuals = np.arange(self.keys.size)
        depends = relative.draws_depend_on(self.matrix, self.ids) if relative else np.empty((all_factuals.size, 0))
        is_relative: Bools = np.asarray(~np.isnan(depends).all(axis=1))
        own = is_relative.copy()  # factuals with a feature that may not change
        own[own] = relative.kept(self.matrix[own], self.ids[own]).any(axis=1) if relative else False
        own[self._factuals_with_few_draws(all_factuals[is_relative & ~own])] = True
        self._draw_for(all_factuals[~own], self.constraints.shared, draws)
        self._draw_for(all_factuals[own], self.constraints, draws)
        restricted = self.constraints.limits or self.constraints.personal or self.constraints.rules
        lost = (self.end - self.begin < len(draws)) & bool(restricted)
        off_steps = ~np.isnan(self._off_steps(self.constraints, self.matrix, self.ids, self.matrix)).all(axis=1)
        return self._pools(lost | off_steps | (is_relative & ~own))

    def draw_own(self, draws: range) -> Pools:
        """Draw one row for each of `draws` within all constraints of each factual; bounded values may be kept."""
        self._draw_for(np.arange(self.keys.size), self.constraints, draws, bounded_may_stay=True)
        return self._pools(np.zeros(self.keys.size, dtype=bool))

    def _pools(self, to_redraw: Bools) -> Pools:
        return Pools(Candidates(self._joined(), self.begin, self.end), self.pool_keys, to_redraw, self.acceptance)

    def _draw_for(self, which: Ints, constraints: Constraints, draws: range, *, bounded_may_stay: bool = False) -> None:
        """Draw within `constraints`, for factuals that share pools if the constraints are the same for them."""
        if not which.size:
            return
        drawn, pool, self.pool_keys[which] = self._draw(which, constraints, draws, bounded_may_stay=bounded_may_stay)
        for name, counts in drawn.acceptance().iterrows():
            self.acceptance[name] = self.acceptance.get(name, NOTHING) + counts.to_numpy()
        kept = np.concatenate([[0], np.cumsum(~drawn.rejected)])
        first = pool * len(draws)
        self.begin[which], self.end[which] = self.n_rows + kept[first], self.n_rows + kept[first + len(draws)]
        self.rows.append(drawn.rows[~drawn.rejected] if drawn.rejected.any() else drawn.rows)
        self.n_rows += int(kept[-1])

    def _factuals_with_few_draws(self, which: Ints) -> Ints:
        """Return the factuals whose constraints allow too few of the first shared draws."""
        if not which.size:
            return which
        drawn, pool, _ = self._draw(which, self.constraints.shared, FIRST)
        by_pool = np.argsort(pool, kind="stable")
        n_allowed = np.empty(which.size, dtype=np.int64)
        for p, members in enumerate(np.split(by_pool, np.cumsum(np.bincount(pool))[:-1])):
            mine = slice(p * len(FIRST), (p + 1) * len(FIRST))
            rows = drawn.rows[mine][~drawn.rejected[mine]]
            for first in range(0, members.size, AT_ONCE):
                some = members[first : first + AT_ONCE]
                n_allowed[some] = self._allowed(which[some], rows).sum(axis=1)
        return which[n_allowed < LEAST_ALLOWED]

    def _allowed(self, which: Ints, rows: Floats) -> Bools:
        """Return by factual which rows of a pool are allowed; count the rows that each constraint accepts."""
        relative = self.constraints.relative.of_factuals(self.matrix[which], self.ids[which])
        shape = which.size, rows.shape[0]
        allowed = np.ones(shape, dtype=bool)
        owner = np.repeat(np.arange(which.size), rows.shape[0])
        for column, within in relative.within:
            passed = within.take(owner).allows(np.tile(rows[:, column], which.size)).reshape(shape)
            self._add_counts(self.constraints.schema.names[column], allowed, passed)
            allowed &= passed
        for rule in relative.rules:
            passed = rule.holds(np.tile(rows, (which.size, 1)), relative.factuals[owner]).reshape(shape)
            self._add_counts(self.constraints.counted_as(rule.text), allowed, passed)
            allowed &= passed
        return allowed

    def _draw(
        self, which: Ints, constraints: Constraints, draws: range, *, bounded_may_stay: bool = False
    ) -> tuple[Drawn, Ints, UInts]:
        """Draw within constraints; return also the pool of each factual and its key.

        With `bounded_may_stay`, values bounded by any constraint may be kept; otherwise only those bounded by
        constraints that depend on the factual.
        """
        matrix, ids = self.matrix[which], self.ids[which]
        own = self._own(constraints, matrix, ids)
        if bounded_may_stay:
            bounded = [constraints.schema.position(name) for name in constraints.within(matrix, ids)]
            bounded += _mutable_columns(constraints, constraints.rules)
            own[:, bounded] = matrix[:, bounded]
        shared_by = restrict_keys(self.keys[which], constraints, matrix, ids)
        shared_by = split_keys(shared_by, self._off_steps(constraints, matrix, ids, own))
        by_own = split_keys(shared_by, own)
        drawn, pool = self._draw_pools(which, constraints, draws, shared_by, own, bounded_may_stay)
        lost = np.logical_or.reduceat(drawn.rejected, np.arange(0, drawn.rejected.size, len(draws)))
        split = lost[pool] & ~_agree(by_own, pool)[pool]
        if split.any():
            shared_by = np.where(split, by_own, shared_by)
            drawn, pool = self._draw_pools(which, constraints, draws, shared_by, own, bounded_may_stay)
        return drawn, pool, shared_by

    def _draw_pools(
        self,
        which: Ints,
        constraints: Constraints,
        draws: range,
        shared_by: UInts,
        own: Floats,
        bounded_may_stay: bool,
    ) -> tuple[Drawn, Ints]:
        """Draw a pool for all factuals that agree in `shared_by`; own values may be kept where these agree."""
        matrix, ids, keys = self.matrix[which], self.ids[which], self.keys[which]
        arguments = keys, shared_by, draws, self.redraw, self.decision
        pool, request, first = request_pools(self.generator, matrix, *arguments)
        agree = _agree(hash_rows(own), pool)
        own = np.where(agree[:, None], own[first], np.nan)

        def for_draws(part: Any) -> Any:
            return np.repeat(part, len(draws), axis=0)

        names = self.constraints.schema.names
        within = {
            name: replace(each, kept=own[:, names.index(name)])
            for name, each in constraints.within(matrix[first], ids[first]).items()
        }
        request = replace(
            request,
            restrictions={name: each.each(for_draws) for name, each in within.items()},
            rules=constraints.open_rules,
            factuals=for_draws(matrix[first]) if any(rule.reads_factual for rule in constraints.open_rules) else None,
        )
        drawn = self.generator.draw(request)
        if bounded_may_stay and constraints.open_rules and drawn.rejected.any():
            drawn = self._draw_kept(drawn, request, constraints, for_draws(matrix[first]), for_draws(agree))
        return drawn, pool

    def _draw_kept(
        self, drawn: Drawn, request: DrawRequest, constraints: Constraints, factuals: Floats, agree: Bools
    ) -> Drawn:
        """Draw rejected rows once more, with the factual's values in all columns of open rules that it satisfies.

        `agree` marks the rows of pools whose factuals agree in these values.
        """
        rows, rejected = drawn.rows.copy(order="F"), drawn.rejected.copy()
        lost = np.flatnonzero(rejected & agree)
        obeyed = np.column_stack([rule.holds(factuals[lost], factuals[lost]) for rule in constraints.open_rules])
        for by_own in np.unique(obeyed[obeyed.any(axis=1)], axis=0):  # factuals that satisfy the same rules
            some = lost[(obeyed == by_own).all(axis=1)]
            part = request.take(some)
            restrictions = dict(part.restrictions)
            for column in _mutable_columns(constraints, list(compress(constraints.open_rules, by_own))):
                feature = constraints.schema.features[column]
                stays = keep(column, feature, "").within(factuals[some, column])
                others = restrictions.get(feature.name)
                restrictions[feature.name] = stays if others is None else stays & others
            again = self.generator.draw(replace(part, restrictions=restrictions))
            rows[some[~again.rejected]], rejected[some] = again.rows[~again.rejected], again.rejected
        rejected_by = None if drawn.rejected_by is None else np.where(rejected, drawn.rejected_by, -1)
        return replace(drawn, rows=rows, rejected=rejected, rejected_by=rejected_by)

    def _own(self, constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> Floats:
        """Return the values that may be kept, for features whose draws depend on them; NaN elsewhere."""
        own = np.full(matrix.shape, np.nan)
        relative = constraints.relative
        columns = {column for column, _ in relative.of_factuals(matrix, ids).within}
        columns |= {column for column, _ in relative.bounding_rules}
        own[:, list(columns)] = matrix[:, list(columns)]
        return own

    def _off_steps(self, constraints: Constraints, matrix: Floats, ids: pd.Index[Any], own: Floats) -> Floats:
        """Return the values that need not be rounded to a multiple of a step; NaN elsewhere."""
        off = np.full(matrix.shape, np.nan)
        for name, within in constraints.within(matrix, ids).items():
            if within.step is not None:
                column = self.constraints.schema.names.index(name)
                off[:, column] = np.where(np.isnan(within.step), np.nan, own[:, column])
        return off

    def _joined(self) -> Floats:
        """Return all rows, stored by column for the kernels."""
        rows = np.empty((self.n_rows, self.matrix.shape[1]), order="F")
        at = 0
        for part in self.rows:
            rows[at : at + part.shape[0]] = part
            at += part.shape[0]
        return rows

    def _add_counts(self, name: Hashable, reached: Bools, passed: Bools) -> None:
        counts = np.array([reached.sum(), (reached & passed).sum()], dtype=np.int64)
        self.acceptance[name] = self.acceptance.get(name, NOTHING) + counts


def draw_block(problem: Problem, block: Block) -> Pools:
    """Draw the pools of a block, within the constraints if there are any.

    Draws that are crossed with the factuals later need not satisfy rules on several features yet.
    """
    if problem.constraints is None:
        n, begin = len(block.draws), block.draws.start
        candidates = draw_pools(
            problem.generator, block.matrix, block.keys, n, begin=begin, redraw=problem.settings.redraw
        )
        return Pools(candidates, block.keys, np.zeros(block.members.size, dtype=bool))
    if not (problem.settings.sparse and problem.constraints.open_rules):
        return _constrained(problem, block, problem.constraints).draw(block.draws)
    pools = _constrained(problem, block, problem.constraints.before_crossing).draw(block.draws)
    return replace(pools, to_redraw=np.ones(block.members.size, dtype=bool))


def draw_own_block(problem: Problem, block: Block) -> Pools:
    """Draw pools within all constraints of each factual of a block; bounded values may be kept."""
    assert problem.constraints is not None
    return _constrained(problem, block, problem.constraints).draw_own(block.draws)


def draw_other_decision(problem: Problem, block: Block) -> Pools:
    """Draw the pools of a block given the other decision, within the bounds of single features."""
    draws, redraw = block.draws, problem.settings.redraw
    if problem.constraints is not None:
        return _constrained(problem, block, problem.constraints.before_crossing, decision=False).draw(draws)
    arguments = problem.generator, block.matrix, block.keys, len(draws)
    candidates = draw_pools(*arguments, begin=draws.start, redraw=redraw, decision=False)
    return Pools(candidates, block.keys, np.zeros(block.members.size, dtype=bool))


def redraw_block(
    problem: Problem, block: Block, which: Ints, draw: Callable[[Problem, Block], Pools]
) -> Iterator[tuple[Ints, Pools]]:
    """Draw pools for single factuals of a block; yield parts that fit in memory, with the positions of the factuals."""
    own = np.arange(block.members.size, dtype=np.uint64)  # possibly one pool for each factual
    for some in pool_blocks(which, own, 8 * len(block.draws) * block.matrix.shape[1]):
        yield some, draw(problem, block.take(some))


def _constrained(
    problem: Problem, block: Block, constraints: Constraints, *, decision: bool = True
) -> ConstrainedPools:
    redraw = problem.settings.redraw
    return ConstrainedPools(problem.generator, constraints, block.matrix, block.keys, block.ids, redraw, decision)


def match_candidates(
    candidates: pd.DataFrame, factuals: Factuals, members: npt.NDArray[np.intp], schema: Schema, mutable: Ints
) -> Candidates:
    """Return the candidates of the factuals at `members`; raise for other factuals, or if fixed values differ."""
    if is_other_frame(candidates):
        candidates = _indexed(read_frame(candidates, "candidates"), schema)
    if not isinstance(candidates, pd.DataFrame):
        raise InputError(f"candidates is a {type(candidates).__name__}; give a DataFrame as returned by `generate`.")
    ids = candidates.index.get_level_values(0)
    owner = find_labels(factuals.index, ids)
    if (owner < 0).any():
        stranger, left_out = ids[owner < 0][:1], factuals.left_out
        known = left_out is not None and find_labels(left_out.frame.index, stranger)[0] >= 0
        why = "has an unknown level and is not explained" if known else "is not in the index of X"
        raise InputError(f"candidates has rows for {spell(stranger[0])}, which {why}. Take them out.")
    matrix = schema.encode(candidates, "candidates").matrix
    fixed = [j for j in range(matrix.shape[1]) if j not in mutable]
    before, after = factuals.matrix[owner][:, fixed], matrix[:, fixed]
    changed_fixed = (after != before) & ~(np.isnan(after) & np.isnan(before))
    if changed_fixed.any():
        row, column = np.argwhere(changed_fixed)[0]
        name = schema.names[fixed[column]]
        raise InputError(
            f"candidates changes the fixed feature {name!r} of {spell(ids[row])}; fixed features must stay as in X."
        )
    by_owner = np.argsort(owner, kind="stable")
    begin = np.searchsorted(owner[by_owner], members)
    end = np.searchsorted(owner[by_owner], members, side="right")
    return Candidates(np.asfortranarray(matrix[by_owner]), begin, end)


def _indexed(candidates: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return candidates with their labels in the index; `generate` has them in columns beside the features."""
    labels = [name if name not in schema.names else f"{name}_" for name in ("id", "draw")]
    if labels[0] not in candidates.columns:
        raise InputError(
            f"candidates has no column {labels[0]!r}, which names the factual of each row; give a frame as returned "
            "by `generate`."
        )
    return candidates.set_index([name for name in labels if name in candidates.columns])
