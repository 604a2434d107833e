"""Search for relations between the columns of a table (`mcce.plausibility.relations`); names play no part.

1. *Equations* are linear regressions of a column t on the others (`total == rent + food`, also with exponentials of
   small numbers), of t * c on the others (`dti == (rent + instalment) / income`), and of log t on logarithms (products
   and quotients). Each is fitted in small subsets of the rows, of which some hold no wrong row, with few columns and
   coefficients of few digits (`mcce.plausibility.regression`). The column with the tightest tolerance is the computed
   one.
2. *Maps*: every value of a column comes with one value of another (`code <-> job`, `zip -> town`).
3. *Orders* ``a <= b`` of numbers or dates that would fail in one row of twenty or more by chance.

A relation is kept if at most 1 % of the rows break it, and if chance does not explain it: its chance under permutations
of a column, times the number of relations of its form (Bonferroni), is at most one in a thousand for each of the three.
Equal rows count once, and at most 2,000 rows count as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from mcce._utils import Floats, Ints
from mcce.constraints.grammar import column_text
from mcce.constraints.values import clock_of
from mcce.exceptions import InputError
from mcce.plausibility.derived import tolerance, usual_step
from mcce.plausibility.regression import (
    common_constant,
    filled,
    linear_forms,
    monomial_text,
    most_unexplained,
    needed_columns,
    norms,
    solved_forms,
    standardised,
    sum_text,
    times_text,
    unexplained_by_others,
)
from mcce.plausibility.relations import Equation, Relation, Relations, majority_pairs, read_relation
from mcce.rng import hash_rows
from mcce.table import Data, Kind, Schema, Table

LOG_LEVEL = float(np.log(0.001))  # of one kind of relation: one false relation in a thousand independent tables
MOST_BROKEN = 0.01  # share of the rows that break a relation
EVIDENCE = 2_000  # rows that count as evidence
SUBSETS, SUBSET_ROWS = 8, 50
MOST_EQUATED, MOST_DIVIDED = 300, 60  # columns among which equations are searched, and quotients of sums
LOG_CONSTANTS = float(np.log(2e4))  # number of constants that were possible
LEAST_CHANCE_OF_DISORDER = 0.05
MOST_EXPONENT = 15.0  # largest number whose exponential is tried


def find_relations(
    X: Data | Table, *, kinds: Mapping[Any, Kind] | None = None, n_fixed: int = 0, derived: Sequence[int] | Ints = ()
) -> Relations:
    """Return the relations between the columns of a table that chance does not explain.

    Copies, columns that determine each other, linear functions, sums, products, quotients and orders ``a <= b``,
    each as a text that `relations=` accepts. At most 1 % of the rows break any of them.

    Parameters
    ----------
    X : DataFrame, two-dimensional array, or encoded `Table`
    kinds : dict or None
        Kinds of some columns, as in `mcce.MCCE`.
    n_fixed : int
        Number of columns, the first ones, that do not change; relations between these alone are left out.
    derived : positions of columns that formulas compute; they are left out.

    Examples
    --------
    >>> import mcce, numpy as np, pandas as pd
    >>> rent, food = np.random.default_rng(1).integers(100, 900, (2, 200))
    >>> mcce.find_relations(pd.DataFrame({"rent": rent, "food": food, "total": rent + food}))
    total == rent + food
    """
    if isinstance(X, Table):
        schema = Schema(X.features, pd.Index(X.names, tupleize_cols=False), np.arange(len(X.features)))
        matrix = X.matrix
    else:
        schema = Schema.from_data(X, kinds)
        matrix = schema.encode(X).matrix
    with np.errstate(all="ignore"):
        texts = _Search(schema, matrix, set(map(int, derived))).texts()
    return Relations.read(texts, schema, matrix, n_fixed, derived)


class _Search:
    """The search in encoded rows; columns are positions."""

    def __init__(self, schema: Schema, matrix: Floats, left_out: set[int]) -> None:
        self.schema, self.matrix, self.features = schema, matrix, schema.features
        texts = [str(name) for name in schema.names]
        self.text = [column_text(name) if texts.count(str(name)) == 1 else None for name in schema.names]
        spread = np.unique(np.linspace(0, len(matrix) - 1, EVIDENCE).astype(np.int64))
        _, first = np.unique(hash_rows(np.ascontiguousarray(matrix[spread])), return_index=True)
        self.sample = np.asfortranarray(matrix[spread[np.sort(first)]])
        self.n = len(self.sample)
        self.counts = [np.unique(column[~np.isnan(column)], return_counts=True)[1] for column in self.sample.T]
        self.log_orders = np.array([_log_orders(counts) for counts in self.counts])
        self.searched = [
            j for j, counts in enumerate(self.counts) if counts.size > 1 and self.text[j] and j not in left_out
        ]
        self.numbers = [j for j in self.searched if self.features[j].is_numeric]
        self.plain = [j for j in self.numbers if not self.features[j].is_date]
        self.units = np.column_stack([self._in_units(j) for j in range(len(self.features))])  # dates in days
        self.rooms = np.column_stack([self._room(j) for j in range(len(self.features))])
        self.tied: set[int] = set()  # columns that follow from one other column
        self.together: set[frozenset[int]] = set()  # pairs of columns of one equation or map
        self.is_clean = np.ones(self.n, dtype=bool)  # rows that break no equation so far: a wrong row bends other fits

    def _in_units(self, j: int) -> Floats:
        clock = clock_of(self.features[j]) if self.features[j].is_date else None
        return self.sample[:, j] if clock is None else clock.of(self.sample[:, j]) / clock.day

    def _room(self, j: int) -> Floats:
        """Return half of the last digit of each value."""
        feature = self.features[j]
        if not feature.is_numeric:
            return np.full(self.n, np.nan)
        room = tolerance(feature, self.sample[:, j], 0.5, usual_step(feature, self.sample[:, j]))
        return room * clock_of(feature).times / clock_of(feature).day if feature.is_date else room

    def texts(self) -> list[str]:
        """Return the relations that were found; those that equations need first."""
        if self.n < 10:
            return []
        searches = (self._pairs, self._linear, self._monomials, self._quotients)
        equations = [text for search in searches for text in search()]
        return [*equations, *self._maps(), *self._orders()]

    # ---- equations

    def _subsets(self, columns: Sequence[int]) -> Iterator[Ints]:
        """Yield small disjoint sets of rows, those with few missing values and zeros."""
        values = self.units[:, columns]
        order = np.argsort((np.isnan(values) | (values == 0.0)).sum(axis=1), kind="stable")
        size = max(SUBSET_ROWS, 2 * len(columns) + 10)
        order = order[self.is_clean[order]]
        n_complete = int((~np.isnan(values[order]).any(axis=1)).sum())
        n_subsets = max(1, min(SUBSETS, order.size // size, max(n_complete // size, 2)))
        for k in range(n_subsets):
            yield np.sort(order[: n_subsets * size][k::n_subsets])

    def _equated(self, columns: Sequence[int], most: int = MOST_EQUATED) -> list[int]:
        """Return the columns among which equations are searched; none if there are too many."""
        chosen = [j for j in columns if j not in self.tied]
        return chosen if len(chosen) <= most and self.n > SUBSET_ROWS // 2 else []

    def _pairs(self) -> Iterator[str]:
        """Yield linear functions of one column."""
        columns = self._equated(self.numbers)
        for rows in self._subsets(columns):
            standard, lengths = standardised(_block(self.units, rows, columns))
            unexplained = lengths * np.sqrt(np.maximum(1.0 - (standard.T @ standard) ** 2, 0.0))  # regressor by target
            is_near = unexplained <= most_unexplained(_block(self.rooms, rows, columns), lengths)
            for a, b in combinations(range(len(columns)), 2):
                x, t = columns[a], columns[b]
                if (is_near[a, b] or is_near[b, a]) and self.tied.isdisjoint((x, t)):
                    equation = self._fit_linear(rows, t, [x]) or self._fit_linear(rows, x, [t])
                    if equation is not None:
                        self.tied.add(t)
                        yield equation.text

    def _linear(self) -> Iterator[str]:
        """Yield linear functions of several columns."""
        columns = self._equated(self.numbers)
        computed: set[int] = set()
        for rows in self._subsets(columns):
            raised = [j for j in columns if self._may_be_raised(rows, j)]
            atoms = np.column_stack([_block(self.units, rows, columns), np.exp(_block(self.units, rows, raised))])
            for t in self._targets(rows, columns, atoms, self.rooms):
                inputs = [j for j in columns if j != t and j not in computed]
                if t in computed or len(inputs) < 2:
                    continue
                equation = self._fit_linear(rows, t, inputs)
                if equation is None and raised:
                    equation = self._fit_linear(rows, t, inputs, [j for j in raised if j in inputs])
                if equation is not None:
                    computed.add(equation.target)
                    yield equation.text

    def _targets(self, rows: Ints, columns: list[int], atoms: Floats, rooms: Floats) -> list[int]:
        """Return the columns that a regression on the other atoms may give; the first atoms are the columns.

        Those with the finest relative digits come first, because they are computed from others; of ties, the last.
        """
        standard, lengths = standardised(atoms)
        unexplained = unexplained_by_others(standard, lengths)[: len(columns)]
        most = most_unexplained(_block(rooms, rows, columns), lengths[: len(columns)])
        targets = [columns[k] for k in np.flatnonzero(unexplained <= most)]
        fineness = {j: float(np.nanmedian(rooms[:, j]) / np.nanstd(self.units[:, j])) for j in targets}
        return sorted(targets, key=lambda j: (float(f"{fineness[j]:.0e}"), -j))

    def _may_be_raised(self, rows: Ints, j: int) -> bool:
        """Return whether the exponential of a column is tried."""
        values = self.units[rows, j]
        is_small = np.nanmax(np.abs(values), initial=0.0) <= MOST_EXPONENT
        return bool(is_small and (np.rint(values) != values).any()) and not self.features[j].is_date

    def _fit_linear(self, rows: Ints, t: int, inputs: list[int], raised: Sequence[int] = ()) -> Equation | None:
        """Return the linear function of some columns, and exponentials, that gives a column; None if there is none."""
        rows = rows[self.is_clean[rows]]
        atoms = np.column_stack([_block(self.units, rows, inputs), np.exp(_block(self.units, rows, raised))])
        names = [str(self.text[j]) for j in inputs] + [f"exp({self.text[j]})" for j in raised]
        owners = [*inputs, *raised]
        candidates = []
        for used, weights, plus in linear_forms(atoms, self.units[rows, t], self.rooms[rows, t]):
            terms = {names[k]: (owners[k], w) for k, w in zip(used, weights)}
            if len({j for j, _ in terms.values()}) == len(terms):
                forms = solved_forms(str(self.text[t]), t, terms, plus, self._resolution)
                confirmed = (self._confirmed(text, _n_constants(weights) + (plus != 0.0)) for text in forms)
                candidates += [equation for equation in confirmed if equation is not None][:1]
        return min(candidates, key=lambda equation: int((~equation.holds(self.sample)).sum()), default=None)

    def _resolution(self, j: int) -> float:
        """Return the median of half of the last digit of a column."""
        return float(np.nanmedian(self.rooms[:, j]))

    def _monomials(self) -> Iterator[str]:
        """Yield products and quotients of columns, with factors."""
        columns = [j for j in self._equated(self.plain) if np.nanmean(self.sample[:, j] > 0.0) > 0.5]
        logs = np.where(self.sample > 0.0, np.log(np.where(self.sample > 0.0, self.sample, 1.0)), np.nan)
        rooms = self.rooms / np.abs(self.sample)
        computed: set[int] = set()
        for rows in self._subsets(columns) if len(columns) > 1 else ():
            for t in self._targets(rows, columns, _block(logs, rows, columns), rooms):
                inputs = [j for j in columns if j != t and j not in computed]
                if t in computed or not inputs:
                    continue
                fitted = needed_columns(_block(logs, rows, inputs), logs[rows, t], rooms[rows, t])
                if fitted is None:
                    continue
                used, coefficients = fitted
                powers = np.rint(coefficients)
                if (np.abs(coefficients - powers) > 0.25).any() or (powers == 0.0).any() or np.abs(powers).max() > 2.0:
                    continue
                equation = self._product({t: -1.0, **{inputs[k]: power for k, power in zip(used, powers)}})
                if equation is not None:
                    computed.add(equation.target)
                    yield equation.text

    def _product(self, powers: dict[int, float]) -> Equation | None:
        """Return an equation whose monomial is constant, solved for the column with the finest relative digits."""
        finest = sorted(
            (j for j, power in powers.items() if abs(power) == 1.0),
            key=lambda j: (float(f"{np.nanmedian(self.rooms[:, j] / np.abs(self.sample[:, j])):.1e}"), -j),
        )
        for t in finest:
            inputs = {j: -power / powers[t] for j, power in powers.items() if j != t}
            base = np.prod([self.sample[:, j] ** power for j, power in inputs.items()], axis=0)
            factors = self.sample[:, t] / base
            rooms = self.rooms[:, t] / np.abs(base)
            factor = common_constant(factors, rooms, int(_most_broken(self.n)))
            if factor is None:
                continue
            powers_by_text = {str(self.text[j]): power for j, power in inputs.items()}
            text = monomial_text(str(self.text[t]), powers_by_text, factor)
            equation = self._confirmed(text, int(factor != 1.0))
            if equation is not None:
                return equation
        return None

    def _quotients(self) -> Iterator[str]:
        """Yield quotients of sums by a column."""
        columns = self._equated(self.plain, MOST_DIVIDED)
        divisors = [j for j in columns if np.nanmean(self.sample[:, j] != 0.0) > 0.9]
        computed: set[int] = set()
        for rows in self._subsets(columns) if len(columns) > 2 else ():
            values, rooms = _block(self.units, rows, columns), _block(self.rooms, rows, columns)
            basis, _ = np.linalg.qr(np.column_stack([np.ones(len(rows)), filled(values)]))
            for c in divisors:
                by = self.units[rows, c]
                products = filled(values * by[:, None])
                residuals = products - basis @ (basis.T @ products)
                lengths = norms(products - products.mean(axis=0))
                is_near = norms(residuals) <= most_unexplained(rooms * np.abs(by)[:, None], lengths)
                for t in (columns[k] for k in np.flatnonzero(is_near)):
                    if t == c or t in computed or frozenset((t, c)) in self.together:
                        continue
                    inputs = [j for j in columns if j != t]
                    y, room = self.units[rows, t] * by, self.rooms[rows, t] * np.abs(by)
                    equation = self._fit_quotient(rows, t, c, inputs, y, room)
                    if equation is not None:
                        computed.add(t)
                        yield equation.text

    def _fit_quotient(self, rows: Ints, t: int, c: int, inputs: list[int], y: Floats, room: Floats) -> Equation | None:
        """Return the quotient of a sum by column c that gives column t; `y` is their product."""
        for used, weights, plus in linear_forms(_block(self.units, rows, inputs), y, room):
            if len(used) < 2 - (plus != 0.0):
                return None
            sizes = set(np.abs(weights))
            factor = sizes.pop() if len(sizes) == 1 and plus == 0.0 else 1.0
            terms = {str(self.text[inputs[k]]): w / factor for k, w in zip(used, weights)}
            text = f"{self.text[t]} == {times_text(factor, f'({sum_text(terms, plus)})')} / {self.text[c]}"
            equation = self._confirmed(text, _n_constants(weights) + (plus != 0.0))
            if equation is not None:
                return equation
        return None

    # ---- maps and orders

    def _maps(self) -> Iterator[str]:
        """Yield pairs of columns of which one or each determines the other."""
        codes = np.column_stack([_codes(column) for column in self.sample.T])
        is_function = np.zeros((len(self.features), len(self.features)), dtype=bool)
        for a in self.searched:
            is_function[a, [b for b in self._may_map(a, codes) if self._maps_to(a, b, codes)]] = True
        lead = {j: j for j in self.searched}
        for a, b in combinations(self.searched, 2):
            if is_function[a, b] and is_function[b, a] and lead[b] == b and lead[a] == a:
                lead[b] = a
                self.together.add(frozenset((a, b)))
                is_copy = self._is_copy(a, b)
                yield f"{self.text[b]} == {self.text[a]}" if is_copy else f"{self.text[a]} <-> {self.text[b]}"
        leads = [j for j in self.searched if lead[j] == j]
        for a in leads:
            for b in leads:
                if not is_function[a, b] or frozenset((a, b)) in self.together:
                    continue
                if not any(is_function[a, c] and is_function[c, b] for c in leads if c not in (a, b)):
                    self.together.add(frozenset((a, b)))
                    yield f"{self.text[a]} -> {self.text[b]}"

    def _is_copy(self, a: int, b: int) -> bool:
        """Return whether two columns have equal levels in all rows."""
        one, other = self.features[a], self.features[b]
        if one.levels is None or other.levels is None or one.kind != other.kind:
            return False
        return one.levels.equals(other.levels) and bool((self.sample[:, a] == self.sample[:, b]).all())

    def _may_map(self, a: int, codes: Ints) -> list[int]:
        """Return the columns that another one may determine, judged by a few rows.

        At most m_b ** m_a of the n! / (n_1! n_2! ...) orders of the values of b are functions of a.
        """
        others = np.array([b for b in self.searched if b != a and not self.tied & {a, b}], dtype=np.int64)
        log_m = np.log([self.counts[b].size for b in others])
        others = others[self.counts[a].size * log_m + self.log_orders[others] <= self._log_level_of_maps()]
        few = codes[:: max(1, self.n // 200)]
        few = few[np.argsort(few[:, a], kind="stable")]
        same = (few[1:, a] == few[:-1, a]) & (few[1:, a] >= 0)
        after, before = few[1:][same][:, others], few[:-1][same][:, others]
        n_differing = ((after != before) & (after >= 0) & (before >= 0)).sum(axis=0)
        return [int(b) for b in others[n_differing <= 2.0 * _most_broken(len(few))]]

    def _log_level_of_maps(self) -> float:
        return LOG_LEVEL - 2.0 * float(np.log(max(len(self.searched), 1)))

    def _maps_to(self, a: int, b: int, codes: Ints) -> bool:
        """Return whether the values of a determine those of b, and chance does not explain it."""
        m_a, m_b = self.counts[a].size, self.counts[b].size
        is_known = (codes[:, a] >= 0) & (codes[:, b] >= 0)
        pairs, counts = np.unique(codes[is_known, a] * m_b + codes[is_known, b], return_counts=True)
        largest = np.zeros(m_a, dtype=np.int64)
        np.maximum.at(largest, pairs // m_b, counts)
        n_known, n_broken = int(is_known.sum()), int(is_known.sum() - largest.sum())
        if n_broken > _most_broken(n_known):
            return False
        orders = _log_orders(np.bincount(codes[is_known, b], minlength=m_b))
        if (m_a + n_broken) * np.log(m_b) + orders + _log_choices(n_known, n_broken) > self._log_level_of_maps():
            return False
        return majority_pairs(self.matrix[:, a], self.matrix[:, b])[1] <= MOST_BROKEN * len(self.matrix)

    def _orders(self) -> Iterator[str]:
        """Yield orders of two columns that follow from no other order.

        The number of rows that break an order in a random permutation is distributed as a sum of independent indicators
        (a rook polynomial of a Ferrers board has real roots), so Chernoff's bound holds.
        """
        columns = [j for j in self.numbers if j not in self.tied]
        families = {j: clock_of(self.features[j]).family if self.features[j].is_date else None for j in columns}
        n_tried = max(len(columns) ** 2, 1)
        ordered: set[tuple[int, int]] = set()
        few = np.asfortranarray(self.units[:: max(1, self.n // 200), columns])
        for k, a in enumerate(columns):
            n_above = (few[:, [k]] > few).sum(axis=0)
            for b in (columns[other] for other in np.flatnonzero(n_above <= _most_broken(len(few)))):
                if a == b or families[a] != families[b] or frozenset((a, b)) in self.together:
                    continue
                n_known = int((~np.isnan(self.units[:, [a, b]]).any(axis=1)).sum())
                n_broken = int((self.units[:, a] > self.units[:, b]).sum())
                if not n_known or n_broken > _most_broken(n_known):
                    continue
                share = self._chance_of_disorder(a, b)
                expected = share * n_known
                chance = -(expected - n_broken + (n_broken * np.log(n_broken / expected) if n_broken else 0.0))
                if share >= LEAST_CHANCE_OF_DISORDER and chance <= LOG_LEVEL - np.log(n_tried):
                    ordered.add((a, b))
        for a, b in sorted(ordered):
            follows = any((a, c) in ordered and (c, b) in ordered for c in columns if c not in (a, b))
            if (b, a) in ordered or follows:
                continue
            text = f"{self.text[a]} <= {self.text[b]}"
            if self._n_broken(read_relation(text, self.schema, self.matrix)) is not None:
                yield text

    def _chance_of_disorder(self, a: int, b: int) -> float:
        """Return the share of pairs of rows in which a of one is above b of the other."""
        is_known = ~(np.isnan(self.units[:, a]) | np.isnan(self.units[:, b]))
        above = np.searchsorted(np.sort(self.units[is_known, b]), self.units[is_known, a], side="left")
        return float(above.mean() / max(is_known.sum(), 1))

    # ---- evidence

    def _n_broken(self, relation: Relation) -> int | None:
        """Return the number of rows that break a relation; None if there are too many."""
        for rows in (self.sample[:: max(1, self.n // 200)], self.sample, self.matrix):
            n_known = int((~np.isnan(rows[:, list(relation.columns)]).any(axis=1)).sum())
            n_broken = int((~relation.holds(rows)).sum())
            if n_broken > (MOST_BROKEN * n_known if rows is self.matrix else _most_broken(n_known)):
                return None
        return n_broken

    def _confirmed(self, text: str, n_constants: int) -> Equation | None:
        """Return an equation if it holds in nearly all rows, and chance does not explain it.

        The chance is the largest, over its columns, of two bounds under permutations of the column: one over the number
        of distinct permutations, and the chance of the rows in which the equation holds after one of them.
        """
        try:
            relation = read_relation(text, self.schema, self.matrix)
        except InputError:  # dates times numbers
            return None
        if not isinstance(relation, Equation) or self._n_broken(relation) is None:
            return None
        columns = list(relation.columns)
        if (~relation.computes(self.sample)).sum(axis=0).min() > _most_broken(self.n):
            return None  # it holds up to half a digit, and gives other numbers
        rows = self.sample[~np.isnan(self.sample[:, columns]).any(axis=1)]
        n, n_broken = len(rows), int((~relation.holds(rows)).sum())
        chance = -np.inf
        for j in columns:
            counts = np.unique(rows[:, j], return_counts=True)[1]
            share = 0.0
            for shift in (n // 2, n // 3 + 1):
                turned = rows.copy()
                turned[:, j] = np.roll(rows[:, j], shift)
                share = max(share, (relation.holds(turned).sum() + 1.0) / (n + 1.0))
            distinct = _log_orders(counts) + n_broken * np.log(counts.size)
            chance = max(chance, distinct, (n - n_broken) * np.log(share))
        n_tried = len(columns) * np.log(max(len(self.numbers), 2)) + n_constants * LOG_CONSTANTS
        if chance + _log_choices(n, n_broken) > LOG_LEVEL - n_tried:
            return None
        self.together |= {frozenset(pair) for pair in combinations(columns, 2)}
        self.is_clean &= relation.holds(self.sample)
        return relation


# ---- rows and counts


def _block(matrix: Floats, rows: Ints, columns: Sequence[int]) -> Floats:
    """Return some rows and columns of a matrix."""
    return matrix[np.ix_(rows, np.asarray(columns, dtype=np.int64))]


def _n_constants(weights: Floats) -> int:
    return int((np.abs(weights) != 1.0).sum())


def _most_broken(n: int) -> float:
    """Return how many of n rows, drawn from all, may break a relation that 1 % of all rows break."""
    return float(MOST_BROKEN * n + 3.0 * np.sqrt(MOST_BROKEN * n) + 1.0)


def _codes(column: Floats) -> Ints:
    """Return the values of a column as 0, 1, ...; missing ones as -1."""
    codes = np.full(column.size, -1, dtype=np.int64)
    is_known = ~np.isnan(column)
    codes[is_known] = np.unique(column[is_known], return_inverse=True)[1].ravel()
    return codes


def _log_orders(counts: Ints) -> float:
    """Return the logarithm of one over the number of distinct orders of values that occur so often."""
    return float(gammaln(counts + 1.0).sum() - gammaln(counts.sum() + 1.0))


def _log_choices(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose at most k of n rows."""
    broken = np.arange(min(k, n) + 1)
    log_counts = gammaln(n + 1.0) - gammaln(broken + 1.0) - gammaln(n - broken + 1.0)
    return float(np.logaddexp.reduce(log_counts))
