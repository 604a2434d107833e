"""Prove that no row within the constraints has the wanted decision, or find the nearest row that has it.

1. A model that `mcce.model.exact` can read, the decision and the constraints are written as a mixed-integer linear
   program, which HiGHS solves (`scipy.optimize.milp`).
2. The domain of each column is cut into cells: levels, "missing", and intervals of numbers between thresholds of the
   trees. The factual's own value is a separate cell. Thresholds are looked up among the floats through the real
   preprocessing, so that all values of a cell are routed alike at every split. A number is
   inside the training range and on the grid of its column; other values are not part of the proof, except the factual's
   own.
3. A binary variable for each threshold or level says in which cell a column lies; a leaf is reached if all splits above
   it agree (Mišić 2020, Operations Research 68, 1605-1624). Linear models and linear rules also need the place inside a
   cell. The fewest changes come first, then the smallest Gower distance, as in the paper.
4. Limits, bounds on changes and distance, rules made of linear comparisons and levels, and linear relations are part of
   the program. Other conditions, such as nonlinear rules and the exclusion of training rows, are left out and checked
   afterwards: a solution that `Acceptance` or the model rejects is excluded, and the program is solved again.
5. A program without a solution, also with the decision loosened by `EDGE`, proves that no such row exists, as far as
   the solver's arithmetic (tolerance 1e-6) is trusted. A solution is returned only if the model itself accepts it.

The floor of plausibility is not part of the program: a proof is about constraints and the model.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats
from mcce.constraints.bounds import float_at
from mcce.constraints.conditions import (
    ColumnValue,
    Compared,
    Complement,
    Computed,
    Condition,
    Conjunction,
    Disjunction,
    Rounded,
    Value,
    Where,
    columns_read,
)
from mcce.constraints.rules import DerivedRule, resolve_rule, rule
from mcce.distances.measures import changed_columns, gower_sum
from mcce.explain.acceptance import Acceptance
from mcce.explain.problem import Factuals, Problem, fixed_columns
from mcce.model.exact import NotExactError, SplitTree, demands, goes_left, read_model
from mcce.model.queries import EncodedModel
from mcce.plausibility.derived import equation
from mcce.plausibility.relations import resolution
from mcce.samplers.restricted import Within
from mcce.table import Feature
from mcce.table.grid import common_multiple, put_on_multiples

MOST_LEAVES = 50_000  # most leaves that the factual can reach
MOST_ROUNDS = 50  # most solutions that are excluded one by one
MOST_STEPS = 100_000  # most grid steps inside a cell; a finer grid is solved as a continuum and rounded
EDGE = 1e-5  # share of the largest term of a score by which the decision is loosened or tightened
CHECKED = 64  # rows on which the reading of a model is compared with the model
NONE, FOUND, UNKNOWN = "none exists", "a row exists", "not proven"
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Proof:
    """The outcome: one of `NONE`, `FOUND` and `UNKNOWN`, in words, and the encoded row that was found."""

    status: str
    says: str
    row: Floats | None = None


def prove(problem: Problem, factuals: Factuals, i: int, time_limit: float = 60.0) -> Proof:
    """Prove that the factual at `i` has no valid row, or find the nearest one, in at most `time_limit` seconds."""
    try:
        return _Search(problem, factuals, i, time.monotonic() + time_limit).run()
    except NotExactError as error:
        return Proof(UNKNOWN, f"{UNKNOWN}: {error}")


@dataclass
class Sum:
    """A linear expression: a constant and the coefficients of variables, or of columns."""

    constant: float = 0.0
    terms: dict[int, float] = field(default_factory=dict)

    def add(self, other: Sum, times: float = 1.0) -> Sum:
        self.constant += times * other.constant
        for variable, weight in other.terms.items():
            self.terms[variable] = self.terms.get(variable, 0.0) + times * weight
        return self


class Program:
    """A mixed-integer linear program; variables are at least 0."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.whole: list[bool] = []
        self.rows: list[tuple[Sum, float, float]] = []

    def variable(self, upper: float = 1.0, *, whole: bool = False) -> int:
        self.cost.append(0.0)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.cost) - 1

    def scale(self, expression: Sum) -> float:
        """Return the largest term that an expression can have."""
        return max((abs(w) * self.upper[v] for v, w in expression.terms.items()), default=0.0) or 1.0

    def at_most(self, expression: Sum, bound: float, switch: int | None = None) -> None:
        """Require an expression to be at most `bound`; with a switch, only where that variable is 1."""
        scale = self.scale(expression)
        made = Sum().add(expression, 1.0 / scale)
        bound /= scale
        if switch is not None:
            most = made.constant + sum(max(w, 0.0) * self.upper[v] for v, w in made.terms.items())
            if most <= bound:
                return
            made.add(Sum(0.0, {switch: most - bound}))
            bound = most
        self.rows.append((made, -np.inf, bound))

    def solve(self, seconds: float) -> tuple[int, Floats | None]:
        """Return the status of the solver (0: optimal, 1: time limit, 2: no solution) and the variables."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_matrix

        sizes = [len(row.terms) for row, _, _ in self.rows]
        columns = [v for row, _, _ in self.rows for v in row.terms]
        weights = [w for row, _, _ in self.rows for w in row.terms.values()]
        shape = (len(self.rows), len(self.cost))
        matrix = csr_matrix((weights, columns, np.append(0, np.cumsum(sizes)).astype(int)), shape=shape)
        low, high = (
            [bound - row.constant for row, *bounds in self.rows for bound in bounds[k : k + 1]] for k in (0, 1)
        )
        found = milp(
            self.cost,
            integrality=np.array(self.whole, dtype=int),
            bounds=Bounds(0.0, self.upper),
            constraints=LinearConstraint(matrix, low, high),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        return int(found.status), found.x


@dataclass(frozen=True)
class Domain:
    """The domain of a column: closed intervals in ascending order, single levels, NaN for missing at the end.

    Attributes
    ----------
    unit : what numbers are multiples of; NaN for none.
    near : the value in each cell that is nearest to the own one.
    changes : how many features are changed in each cell, those that the column determines included.
    cost : Gower's steps to `low` and to `high` of each cell, (2, cells).
    """

    column: int
    feature: Feature
    low: Floats
    high: Floats
    unit: float
    near: Floats
    changes: Floats
    cost: Floats

    def at(self, cell: int, share: float) -> float:
        """Return the value at a share of the way through a cell, on the grid."""
        low, high = self.low[[cell]], self.high[[cell]]
        value = low + share * (high - low)
        if low[0] == high[0] or np.isnan(value[0]):
            return float(low[0])
        if np.isnan(self.unit):
            return float(self.feature.grid.put_within(value, low, high)[0])
        return float(put_on_multiples(value, np.array([self.unit]), low, high)[0])


class Position:
    """The variables of a column: its cell and, if requested, the position inside it."""

    def __init__(self, program: Program, cells: Domain, inside: bool) -> None:
        self.cells, self.n = cells, len(cells.low)
        self.moves: dict[int, tuple[int, float]] = {}
        self.is_number = cells.feature.is_numeric
        self.binary = [program.variable(whole=True) for _ in range(self.n - self.is_number)]
        if self.is_number:  # whether the column lies in this cell or below
            for one, other in zip(self.binary, self.binary[1:]):
                program.at_most(Sum(0.0, {one: 1.0, other: -1.0}), 0.0)
        else:
            program.rows.append((Sum(0.0, dict.fromkeys(self.binary, 1.0)), 1.0, 1.0))
        for c in np.flatnonzero(cells.low < cells.high).tolist() if inside else ():
            steps = np.rint((cells.high[c] - cells.low[c]) / cells.unit) if cells.unit > 0.0 else np.inf
            most = float(steps) if steps <= MOST_STEPS else 1.0
            move = program.variable(most, whole=steps <= MOST_STEPS)
            program.at_most(Sum(0.0, {move: 1.0}).add(self.inside(np.arange(self.n) == c), -most), 0.0)
            self.moves[c] = move, most

    def weighted(self, values: Floats) -> Sum:
        """Return the value of the cell that the column lies in."""
        if not self.is_number:
            return Sum(0.0, {v: w for v, w in zip(self.binary, values.tolist()) if w})
        steps = (values[:-1] - values[1:]).tolist()
        return Sum(float(values[-1]), {v: w for v, w in zip(self.binary, steps) if w})

    def inside(self, cells: Bools) -> Sum:
        """Return 1 if the column lies in one of some cells, else 0."""
        if self.is_number or 2 * cells.sum() <= self.n:
            return self.weighted(cells.astype(np.float64))
        return Sum(1.0).add(self.weighted((~cells).astype(np.float64)), -1.0)

    def between(self, at_low: Floats, at_high: Floats) -> Sum:
        """Return a function of the column that is linear inside each cell."""
        found = self.weighted(at_low)
        for c, (move, most) in self.moves.items():
            found.add(Sum(0.0, {move: float(at_high[c] - at_low[c]) / most}))
        return found

    def value(self) -> Sum:
        """Return the number; 0 stands for missing."""
        return self.between(np.nan_to_num(self.cells.low), np.nan_to_num(self.cells.high))

    def read(self, solution: Floats) -> float:
        """Return the value of the column in a solution."""
        at = [self.inside(np.arange(self.n) == c) for c in range(self.n)]
        cell = int(np.argmax([s.constant + sum(w * solution[v] for v, w in s.terms.items()) for s in at]))
        if cell not in self.moves:
            return float(self.cells.near[cell])
        move, most = self.moves[cell]
        return self.cells.at(cell, float(np.clip(solution[move] / most, 0.0, 1.0)))


class _Search:
    """One factual's program, and the solutions that were excluded."""

    def __init__(self, problem: Problem, factuals: Factuals, i: int, deadline: float) -> None:
        self.problem, self.deadline = problem, deadline
        self.schema, self.features = problem.generator.schema_, problem.features
        self.own = factuals.matrix[[i]]
        self.acceptance = Acceptance(problem, self.own, factuals.index[[i]])
        self.exact = read_model(problem.decision, self.schema.decode_for_model(self.own))
        limits = None if problem.constraints is None else problem.constraints.of_factuals(self.own, factuals.index[[i]])
        self.within: dict[int, Within] = {} if limits is None else dict(limits.within)
        self.rules = () if limits is None else limits.rules
        self.loose: dict[str, None] = {}  # requirements that the program omits
        self.unproven: dict[str, None] = {}  # requirements that the program makes too strict
        self.cuts: list[dict[int, float]] = []
        self.ends: list[dict[int, Floats]] = []  # the model's columns at the low and the high end of cells
        self._find_columns()
        self.splits = self._find_splits()

    # ---- columns

    def _find_columns(self) -> None:
        """Find the columns with a domain, and those that a column of levels determines."""
        relations, stays = self.problem.relations, set(fixed_columns(self.problem.generator))
        computed = () if relations is None else relations.computed
        stays.update(() if relations is None else relations.stays)
        free = set(range(len(self.features))) - stays
        self.follows: dict[int, int] = {}
        roots: dict[int, set[int]] = {}
        for column, each in computed:
            sources = set(each.columns) - {column} - stays
            roots[column] = set().union(*(roots.get(j, {j}) for j in sources))
            if not roots[column]:
                free.discard(column)
            elif len(roots[column]) == 1 and not self.features[min(roots[column])].is_numeric:
                self.follows[column] = min(roots[column])
                free.discard(column)
        self.computed = [column for column in roots if column in free]
        self.free = [*sorted(free.difference(self.computed)), *self.computed]
        self.span = {j: (self.features[j].low, self.features[j].high) for j in self.free}
        self.equations = [
            found for column, each in computed if column in free and (found := self._equation(column, each)) is not None
        ]
        names = self.exact.encoded
        wrong = [self.features[j].name for j in self.free if self.features[j].is_numeric]
        known = set(self.schema.names)
        if not names <= known or names.intersection(wrong):
            raise NotExactError("an encoder takes numbers, or columns that another step made")
        self.base = self._columns(self.own)[0]
        self.owner: dict[int, int] = {}
        for j, made in self._made({j: self._probes(j) for j in self.free}).items():
            for k in np.flatnonzero(~np.all((made == made[0]) | (np.isnan(made) & np.isnan(made[0])), axis=0)).tolist():
                if self.owner.setdefault(k, j) != j:
                    raise NotExactError("a column of its preprocessing depends on several features")

    def _probes(self, j: int) -> Floats:
        feature = self.features[j]
        if feature.is_numeric:
            values = [feature.low, feature.high, (feature.low + feature.high) / 2.0]
            values = feature.grid.put(np.array(values)).tolist()
        else:
            values = list(range(feature.n_levels))
        return np.array([self.own[0, j], *values, *([np.nan] if feature.has_missing else [])])

    def _rows(self, j: int, values: Floats) -> Floats:
        """Return the factual with other values of a column, and of those that it determines."""
        rows = np.repeat(self.own, len(values), axis=0)
        rows[:, j] = values
        following = [column for column, root in self.follows.items() if root == j]
        if following:
            rows[:, following] = self.acceptance.complete(rows, np.zeros(len(rows), dtype=np.int64))[:, following]
        return rows

    def _columns(self, rows: Floats) -> Floats:
        return self.exact.columns(self.schema.decode_for_model(rows))

    def _made(self, parts: Mapping[int, Floats]) -> dict[int, Floats]:
        """Return the model's columns of the factual with other values of one column, for each of several."""
        if not parts:
            return {}
        made = self._columns(np.concatenate([self._rows(j, values) for j, values in parts.items()]))
        return dict(zip(parts, np.split(made, np.cumsum([len(values) for values in parts.values()])[:-1])))

    def _find_splits(self) -> dict[int, Floats]:
        """Return for each number the last values of its cells, as the splits of the trees cut it; by bisection."""
        found = {
            (self.owner[k], k, threshold)
            for tree in self.exact.trees
            for k, threshold in zip(tree.column.tolist(), tree.threshold.tolist())
            if self.features[self.owner.get(k, 0)].is_numeric and k in self.owner
        }
        if not found:
            return {}
        splits = np.array(sorted(found))
        column, k, threshold = splits[:, 0].astype(np.intp), splits[:, 1].astype(np.intp), splits[:, 2]
        each = np.arange(len(splits))

        def left(values: Floats) -> Bools:
            rows = np.repeat(self.own, len(splits), axis=0)
            rows[each, column] = values
            return goes_left(self._columns(rows)[each, k], threshold, False, self.exact.strict)

        ends = [np.array([self.span[j][side] for j in column.tolist()]) for side in (0, 1)]
        at_first, at_last = map(left, ends)
        begin, end = (np.where(v < 0.0, -np.abs(v).view(np.int64), np.abs(v).view(np.int64)) for v in ends)
        while True:
            middle = (begin >> 1) + (end >> 1) + (begin & end & 1)
            if (middle == begin).all():
                break
            same = left(float_at(middle)) == at_first
            begin, end = np.where(same, middle, begin), np.where(same, end, middle)
        last, cuts = float_at(begin), at_first != at_last
        return {j: np.unique(last[cuts & (column == j)]) for j in np.unique(column).tolist()}

    def _cells(self, j: int) -> Domain:
        """Return the domain of a column, inside its limits."""
        feature, own = self.features[j], float(self.own[0, j])
        within = self.within.get(j)
        unit = np.nan
        if feature.is_numeric:
            if feature.grid.decimals is not None:
                unit = 10.0**-feature.grid.decimals
            if within is not None and within.step is not None and not np.isnan(within.step[0]):
                unit = common_multiple(within.step[0], unit) if unit > 0.0 else float(within.step[0])
            low, high = self._intervals(j, own, within, unit)
        else:
            mask = np.ones(feature.n_levels, dtype=bool)
            if within is not None:
                mask = within.level_mask(1, feature.n_levels)[0]
            low = high = np.flatnonzero(mask).astype(np.float64)
        may_miss = within is None or bool(within.allows_missing(1)[0])
        if (feature.has_missing and may_miss) or (np.isnan(own) and may_miss):
            low, high = np.append(low, np.nan), np.append(high, np.nan)
        rows = self._rows(j, np.concatenate([low, high]))
        owner = np.zeros(len(rows), dtype=np.int64)
        counted, own_rows = self.acceptance.counted(rows, owner), self.own[owner]
        cost = gower_sum(self.features).sums(counted, own_rows).reshape(2, -1)
        changes = changed_columns(counted, own_rows).sum(axis=1)[: len(low)].astype(np.float64)
        near = np.where(low >= own, low, np.where(high <= own, high, low))
        return Domain(j, feature, low, high, unit, near, changes, cost)

    def _intervals(self, j: int, own: float, within: Within | None, unit: float) -> tuple[Floats, Floats]:
        feature = self.features[j]
        first, last = self.span[j]
        never: list[float] = []
        if within is not None:
            first, last = max(first, float(within.bounds(1)[0][0])), min(last, float(within.bounds(1)[1][0]))
            never = [] if within.never is None else within.never[0].tolist()
        may_stay = not np.isnan(own) and (within is None or bool(within.allows(np.array([own]))[0]))
        singles = [v for v in (own, *never, *(cut[j] for cut in self.cuts if j in cut)) if not np.isnan(v)]
        ends = np.unique([*self.splits.get(j, ()), *singles, *np.nextafter(singles, -np.inf), last])
        ends = ends[(ends >= first) & (ends <= last)]
        low, high = np.append(first, np.nextafter(ends, np.inf))[: len(ends)], ends
        if unit > 0.0:
            step = np.full(len(ends), unit)
            low, high = put_on_multiples(low, step, low, high), put_on_multiples(high, step, low, high)
        else:
            low, high = feature.grid.put_within(low, low, high), feature.grid.put_within(high, low, high)
        kept = ~np.isnan(low) & ~((low == high) & np.isin(low, [own, *never]))
        low, high = low[kept], high[kept]
        if may_stay:
            low, high = np.append(low, own), np.append(high, own)
        order = np.argsort(low, kind="stable")
        return low[order], high[order]

    # ---- the program

    def build(self, level: int) -> Program | None:
        """Return the program; None if a column has no allowed value.

        `level` 1 tightens strict inequalities and the decision by `EDGE`, -1 loosens them.
        """
        self.level, self.program = level, Program()
        self.positions: dict[int, Position] = {}
        for j, within in self.within.items():
            if j not in self.free and j not in self.follows and not within.allows(self.own[:, j])[0]:
                return None
        read = {c.column for condition in self._conditions() for c in columns_read(condition) if not c.was}
        for j in self.free:
            cells = self._cells(j)
            if not len(cells.low):
                return None
            linear = j in read or (self.exact.weights is not None and j in self.owner.values())
            self.positions[j] = Position(self.program, cells, cells.feature.is_numeric and linear)
        if not self.ends or self.cuts:
            domains = [position.cells for position in self.positions.values()]
            self.ends = [
                self._made({c.column: c.low for c in domains}),
                self._made({c.column: c.high for c in domains}),
            ]
        self._count()
        for each in self.rules:
            condition = each.named.condition if isinstance(each, DerivedRule) else each.condition
            if condition is None or not self._enforce(condition, False, None):
                self.loose[f"the rule {each.text!r}"] = None
        self._relate()
        for cut in self.cuts:
            same = Sum(-len(cut) + 1.0)
            for j, value in cut.items():
                cells = self.positions[j].cells
                same.add(self.positions[j].inside((cells.low == value) | (np.isnan(cells.low) & np.isnan(value))))
            self.program.at_most(same, 0.0)
        self._decide()
        return self.program

    def _conditions(self) -> Iterable[Condition]:
        """Yield the conditions of rules and relations."""
        for each in self.rules:
            condition = each.named.condition if isinstance(each, DerivedRule) else each.condition
            if condition is not None:
                yield condition
        for resolved in () if self.problem.relations is None else self.problem.relations.demanded:
            if resolved.relation.formula is None and resolved.relation.table is None:
                condition = resolve_rule(rule(resolved.relation.says), self.schema).condition
                assert condition is not None
                yield condition

    def _count(self) -> None:
        """Minimise the number of changes, then the Gower distance, and keep the bounds on both."""
        changes, steps = Sum(), Sum()
        for position in self.positions.values():
            changes.add(position.weighted(position.cells.changes))
            low, high = position.cells.cost
            steps.add(position.between(low, high) if position.moves else position.weighted(np.minimum(low, high)))
        weight = 1.0 + sum(p.cells.cost.max(initial=0.0) for p in self.positions.values())
        for v, w in Sum().add(changes, weight).add(steps).terms.items():
            self.program.cost[v] += w
        settings = self.problem.settings
        if settings.max_changes is not None:
            self.program.at_most(changes, settings.max_changes)
        if settings.max_gower is not None:
            self.program.at_most(steps, settings.max_gower * len(self.features) + 1e-9)

    def _decide(self) -> None:
        """Require the wanted decision."""
        k = self.exact.intercept.size
        scores = [Sum(float(c)) for c in self.exact.intercept]
        if self.exact.weights is not None:
            for column, weights in enumerate(self.exact.weights):
                if column not in self.owner:
                    for score, weight in zip(scores, weights):
                        score.constant += float(weight * self.base[column])
            for j in set(self.owner.values()):
                mine = [c for c, owner in self.owner.items() if owner == j]
                at_low, at_high = (ends[j][:, mine] @ self.exact.weights[mine] for ends in self.ends)
                for place, score in enumerate(scores):
                    score.add(self.positions[j].between(at_low[:, place], at_high[:, place]))
        self.n_leaves = 0
        for tree in self.exact.trees:
            leaves = self._grow(tree, 0, {})
            if len(leaves) > 1:
                self.program.rows.append((Sum(0.0, {v: 1.0 for v, _ in leaves}), 1.0, 1.0))
            for variable, node in leaves:
                for score, value in zip(scores, tree.value[node].tolist()):
                    score.add(Sum(0.0, {variable: value}) if len(leaves) > 1 else Sum(value))
        ways = demands(self.problem.decision, self.exact)
        switches = [None] if len(ways) == 1 else [self.program.variable(whole=True) for _ in ways]
        if len(ways) > 1:
            self.program.rows.append((Sum(0.0, {s: 1.0 for s in switches if s is not None}), 1.0, np.inf))
        for way, switch in zip(ways, switches):
            for weights, low, high in way:
                wanted = Sum()
                for place in range(k):
                    wanted.add(scores[place], float(weights[place]))
                tightened = self.level * EDGE * self.program.scale(wanted)
                if low > -np.inf:
                    self.program.at_most(Sum().add(wanted, -1.0), -low - tightened, switch)
                if high < np.inf:
                    self.program.at_most(wanted, high - tightened, switch)

    def _grow(self, tree: SplitTree, node: int, inside: Mapping[int, Bools]) -> list[tuple[int, int]]:
        """Add the leaves below a node that the factual can reach, each as a variable and its place."""
        k = int(tree.column[node])
        if k < 0:
            self.n_leaves += 1
            if self.n_leaves > MOST_LEAVES:
                raise NotExactError(f"its trees have more than {MOST_LEAVES:,} leaves within reach")
            return [(self.program.variable(), node)]
        split = tree.threshold[node], tree.missing_left[node], self.exact.strict
        j = self.owner.get(k)
        if j is None:
            below = bool(goes_left(self.base[[k]], *split)[0])
            return self._grow(tree, int((tree.left if below else tree.right)[node]), inside)
        left = goes_left(self.ends[0][j][:, k], *split)
        possible = inside.get(j, np.ones(left.size, dtype=bool))
        if not (possible & left).any() or not (possible & ~left).any():
            down = tree.left if (possible & left).any() else tree.right
            return self._grow(tree, int(down[node]), inside)
        ways = [
            self._grow(tree, int(down[node]), {**inside, j: possible & side})
            for down, side in ((tree.left, left), (tree.right, ~left))
        ]
        goes = self.positions[j].inside(left)
        for leaves, sign in zip(ways, (1.0, -1.0)):
            reached = Sum(0.0, {v: 1.0 for v, _ in leaves}).add(goes, -sign)
            self.program.rows.append((reached, -np.inf, 0.0 if sign > 0.0 else 1.0))
        return [*ways[0], *ways[1]]

    # ---- rules and relations

    def _equation(self, column: int, each: Any) -> tuple[Sum, float] | None:
        """Return a relation that computes a column as a linear function that is 0 up to rounding, and that rounding.

        A derived column may lie outside the training range: it gets the range that its formula can reach.
        """
        name, found = f"the relation {each.relation.says!r}", None
        if each.relation.table is None and each.relation.formula is None and each.holds(self.own)[0]:
            condition = resolve_rule(rule(each.relation.says), self.schema).condition
            found = None if condition is None or self._may_miss(condition) else equation(condition)
        if found is None:
            self.unproven[name] = None
            return None
        target, value = found
        room = 2.1 * abs(target.times) * resolution(self.features[target.column])
        if isinstance(value, Rounded):
            room, value = room + 10.0**-value.decimals, value.value
        left, right = self._linear(target), self._linear(value)
        if left is None or right is None:
            self.unproven[name] = None
            return None
        whole = left.add(right, -1.0)
        if each.relation.kind == "derived":
            weight = whole.terms[column]
            ends = np.array([whole.constant - room, whole.constant + room])
            for j, times in whole.terms.items():
                if j != column:
                    reach = np.array([*self.span[j], self.own[0, j]]) * times
                    ends += [reach.min(), reach.max()]
            low, high = sorted((-ends / weight).tolist())
            self.span[column] = min(low, self.span[column][0]), max(high, self.span[column][1])
        return whole, room

    def _relate(self) -> None:
        """Require the relations that the factual keeps."""
        for whole, room in self.equations:
            for sign in (1.0, -1.0):
                self.program.at_most(Sum().add(self._total(whole), sign), room)
        for each in () if self.problem.relations is None else self.problem.relations.demanded:
            if each.relation.table is None and each.relation.formula is None and not each.solvable:
                condition = resolve_rule(rule(each.relation.says), self.schema).condition
                assert condition is not None
                if each.holds(self.own)[0] and (self._may_miss(condition) or not self._enforce(condition, False, None)):
                    self.loose[f"the relation {each.relation.says!r}"] = None

    def _may_miss(self, node: Condition | Value) -> bool:
        """Return whether a column that is read may be missing."""
        return any(self.features[c.column].has_missing or np.isnan(self.own[0, c.column]) for c in columns_read(node))

    def _enforce(self, node: Condition, negated: bool, switch: int | None) -> bool:
        """Require a condition, or its opposite, where a switch is 1; return whether the program expresses all of it."""
        free = {c.column for c in columns_read(node) if not c.was and c.column in self.positions}
        if any(c.column in self.follows for c in columns_read(node) if not c.was):
            return False
        if not free or (len(free) == 1 and not self.features[min(free)].is_numeric):
            return self._choose(node, negated, switch, free)
        if isinstance(node, Complement):
            return self._enforce(node.part, not negated, switch)
        if isinstance(node, Where):
            then, otherwise = ((Complement(p) if negated else p) for p in (node.then, node.otherwise))
            parts = Conjunction((node.condition, then)), Conjunction((Complement(node.condition), otherwise))
            return self._enforce(Disjunction(parts), False, switch)
        if isinstance(node, (Conjunction, Disjunction)):
            if isinstance(node, Conjunction) != negated:
                return all([self._enforce(part, negated, switch) for part in node.parts])
            return self._either(node.parts, negated, switch)
        if isinstance(node, Compared):
            return self._compare(node, _OPPOSITE[node.sign] if negated else node.sign, negated, switch)
        return False

    def _choose(self, node: Condition, negated: bool, switch: int | None, free: set[int]) -> bool:
        """Require a condition that depends on one column of levels, or on none."""
        for j in free:
            rows = np.repeat(self.own, self.positions[j].n, axis=0)
            rows[:, j] = self.positions[j].cells.low
            held = node.holds(rows, np.repeat(self.own, len(rows), axis=0)) != negated
            self.program.at_most(self.positions[j].inside(~held), 0.0, switch)
            return True
        if bool(node.holds(self.own, self.own)[0]) == negated:
            self.program.at_most(Sum(1.0), 0.0, switch)
        return True

    def _either(self, parts: Sequence[Condition], negated: bool, switch: int | None) -> bool:
        switches = [self.program.variable(whole=True) for _ in parts]
        self.program.at_most(Sum(1.0, dict.fromkeys(switches, -1.0)), 0.0, switch)
        return all([self._enforce(part, negated, each) for part, each in zip(parts, switches)])

    def _compare(self, node: Compared, sign: str, negated: bool, switch: int | None) -> bool:
        left, right = self._linear(node.left), self._linear(node.right)
        if left is None or right is None:
            return False
        if self._may_miss(node):
            if negated:
                return False
            for c in columns_read(node):
                if not c.was and c.column in self.positions:
                    position = self.positions[c.column]
                    self.program.at_most(position.inside(np.isnan(position.cells.low)), 0.0, switch)
        if sign == "!=":
            return self._either(
                [Compared(node.left, "<", node.right), Compared(node.left, ">", node.right)], False, switch
            )
        whole = left.add(right, -1.0)
        difference = self._total(whole)
        gap = self._gap(whole, difference) if sign in ("<", ">") else 0.0
        if sign != ">" and sign != ">=":
            self.program.at_most(difference, -gap, switch)
        if sign != "<" and sign != "<=":
            self.program.at_most(Sum().add(difference, -1.0), -gap, switch)
        return True

    def _gap(self, whole: Sum, difference: Sum) -> float:
        """Return the gap of a strict inequality: half of the smallest step, if all columns lie on grids."""
        steps = []
        for j, weight in whole.terms.items():
            cells = self.positions[j].cells
            lows = cells.low[~np.isnan(cells.low)]
            if not cells.unit > 0.0 or (np.abs(lows / cells.unit - np.rint(lows / cells.unit)) > 1e-9).any():
                return self.level * EDGE * self.program.scale(difference)
            steps.append(Fraction(repr(weight)) * Fraction(repr(cells.unit)))
        numbers = [abs(each) for each in (*steps, Fraction(repr(whole.constant))) if each]
        if not numbers:
            return self.level * EDGE
        denominator = lcm(*(each.denominator for each in numbers))
        return float(Fraction(gcd(*(int(each * denominator) for each in numbers)), denominator)) / 2.0

    def _linear(self, value: Value) -> Sum | None:
        """Return a value as a linear expression of columns; None if it is not linear in them."""
        read = {c.column for c in columns_read(value) if not c.was}
        if not read.isdisjoint(self.follows):
            return None
        if read.isdisjoint(self.free):
            constant = float(value.of(self.own, self.own)[0])
            return None if np.isnan(constant) else Sum(constant)
        if isinstance(value, ColumnValue):
            is_plain = value.codes is None and not value.n_levels
            return Sum(value.plus, {value.column: value.times}) if is_plain else None
        if not isinstance(value, Computed) or len(value.parts) != 2:
            return None
        left, right = (self._linear(part) for part in value.parts)
        if left is None or right is None:
            return None
        if value.function in ("+", "-"):
            return left.add(right, 1.0 if value.function == "+" else -1.0)
        if value.function == "*" and not left.terms:
            left, right = right, left
        if value.function not in ("*", "/") or right.terms or (value.function == "/" and right.constant == 0.0):
            return None
        return Sum().add(left, right.constant if value.function == "*" else 1.0 / right.constant)

    def _total(self, linear: Sum) -> Sum:
        found = Sum(linear.constant)
        for j, weight in linear.terms.items():
            found.add(self.positions[j].value(), weight)
        return found

    # ---- solving

    def run(self) -> Proof:
        """Solve, check and exclude until a row is valid, none is left, or time is up."""
        self._check_reading()
        level = 0
        for _ in range(MOST_ROUNDS):
            built = self.build(level)
            seconds = self.deadline - time.monotonic()
            status, solution = (2, None) if built is None else (1, None)
            if built is not None and seconds > 0.0:
                status, solution = built.solve(seconds)
            if solution is None and status != 2:
                return Proof(UNKNOWN, f"{UNKNOWN}: the time limit was reached")
            if solution is None:
                if level < 0:
                    return self._without()
                level = -1
                continue
            row = self._row(solution)
            if not self._admitted(row):
                continue
            if EncodedModel(self.problem.decision, self.schema).predict_encoded(row)[1][0]:
                if self.acceptance.query(row)[1][0]:
                    return self._with(row, status)
                self.loose["the robustness requirement"] = None
            elif level == 0:
                level = 1
                continue
            else:
                self.loose["the edge of the decision"] = None
            self._cut(row, self.free)
        return Proof(UNKNOWN, f"{UNKNOWN}: {self._left_out()} left {MOST_ROUNDS} solutions that are not valid")

    def _check_reading(self) -> None:
        """Compare the reading of the model with the model, on rows of the domain."""
        rng = np.random.default_rng(0)
        rows = np.repeat(self.own, CHECKED, axis=0)
        for j in self.free:
            rows[1:, j] = rng.choice(self._probes(j), CHECKED - 1)
        rows = self.acceptance.complete(rows, np.zeros(CHECKED, dtype=np.int64))
        self.exact.check(self.schema.decode_for_model(rows), self.problem.decision)

    def _row(self, solution: Floats) -> Floats:
        row = self.own.copy()
        for j, position in self.positions.items():
            if j not in self.computed:
                row[0, j] = position.read(solution)
        return self.acceptance.complete(row, np.zeros(1, dtype=np.int64))

    def _admitted(self, row: Floats) -> bool:
        """Return whether a solution is allowed; one that is not is excluded."""
        owner = np.zeros(1, dtype=np.int64)
        if self.acceptance.admits(row, owner)[0] and self.acceptance.within_bounds(row, owner)[0]:
            return True
        broken = [each for each in self.rules if not each.holds(row, self.own)[0]]
        for each in broken[:1]:
            self.loose[f"the rule {each.text!r}"] = None
        self._cut(row, [j for j in broken[0].columns if j in self.positions] if broken else self.free)
        return False

    def _cut(self, row: Floats, columns: Iterable[int]) -> None:
        """Exclude the values of a row in some columns."""
        self.cuts.append({j: float(row[0, j]) for j in columns if j not in self.computed})

    def _left_out(self) -> str:
        return " and ".join([*self.loose, *self.unproven]) or "other demands"

    def _without(self) -> Proof:
        if self.unproven:
            return Proof(UNKNOWN, f"{UNKNOWN}: {' and '.join(self.unproven)} is not linear, or may be missing")
        return Proof(
            NONE,
            f"{NONE}: no row with values inside the training ranges meets the constraints and has the wanted decision "
            "(the floor of plausibility is not part of the proof)",
        )

    def _with(self, row: Floats, status: int) -> Proof:
        nearest = "the nearest one (fewest changes, then Gower distance) is found"
        if status:
            nearest = "the time limit was reached before the nearest one was known"
        if self.unproven:
            nearest = f"whether it is the nearest one is not known, as {' and '.join(self.unproven)} is not linear"
        floor = "the floor of plausibility is not part of the search"
        return Proof(
            FOUND, f"{FOUND} that meets the constraints and has the wanted decision; {nearest} ({floor})", row[0]
        )
