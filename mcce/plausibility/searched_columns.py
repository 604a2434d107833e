"""The columns of a table in which relations are searched: rows that count as evidence, and chances.

`mcce.plausibility.relation_finder` describes the search and the test against chance.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.constraints.conditions import Compared
from mcce.constraints.rules import resolve_rule, rule
from mcce.exceptions import InputError
from mcce.plausibility.derived import MOST_LABELS, column_text, plain_label
from mcce.plausibility.relations import Relation, resolve_relation, slack_of
from mcce.rng import hash_rows
from mcce.table import Feature, Schema
from mcce.table.dtypes import date_family, is_dated

RATE = 0.01  # share of tables of independent columns in which any relation is found
FAMILIES = 10  # families of relations that share the rate
SCREENED, LOOKED_AT = 500, 5000  # rows for the screening of candidates, and rows that count as evidence
MOST_EXCEPTIONS, MOST_SOFT = 0.01, 0.02  # largest share of exceptions of a proposal, and of a soft relation
CODES = {-float(str(digit) * times) for digit in (6, 7, 8, 9) for times in (1, 2, 3, 4, 5)} | {-1.0}
LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, LOOKED_AT + 2)))])


class SearchedColumns:
    """Columns of encoded rows, with helpers for the searches.

    Parameters
    ----------
    matrix : all rows.
    schema : their columns.
    labels : names of the rows; their positions unless given.
    """

    def __init__(self, matrix: Floats, schema: Schema, labels: Sequence[Any] | None = None) -> None:
        self.matrix = matrix
        self.labels = range(matrix.shape[0]) if labels is None else labels
        self.schema = schema
        self.features = schema.features
        self.name = schema.names
        self.text = [column_text(name) for name in self.name]  # in the grammar of rules; None if it cannot be written
        some = np.unique(np.linspace(0, matrix.shape[0] - 1, LOOKED_AT).astype(np.intp))
        _, first = np.unique(hash_rows(np.ascontiguousarray(matrix[some])), return_index=True)  # equal rows count once
        self.sample = np.asfortranarray(matrix[some[np.sort(first)]])
        few = np.unique(np.linspace(0, self.sample.shape[0] - 1, SCREENED).astype(np.intp))
        self.screen = np.ascontiguousarray(self.sample[few])
        known = [column[~np.isnan(column)] for column in self.sample.T]
        # by name, so that the order of the columns in the table does not matter
        self.columns = sorted(range(len(self.features)), key=lambda j: (str(self.name[j]), j))
        self.rank = {j: place for place, j in enumerate(self.columns)}
        self.n_values = np.array([np.unique(values).size for values in known])
        self.varying = [j for j in self.columns if known[j].size > 1 and (known[j] != known[j][0]).any()]
        self.numbers = [j for j in self.varying if self.is_number(j)]
        self.codes = {j: self._codes(known[j]) for j in self.numbers}
        self.explained: set[frozenset[int]] = set()  # pairs of columns in functions and sums
        self.lead = {j: j for j in range(len(self.features))}  # the first of the columns that a column is tied to

    def leads(self, columns: Sequence[int]) -> list[int]:
        return [j for j in columns if self.lead[j] == j]

    def names(self, *columns: int) -> tuple[Hashable, ...]:
        return tuple(self.name[j] for j in columns)

    def places(self, relation: Relation) -> list[int]:
        return [self.name.index(each) for each in relation.columns]

    def slack(self, rows: Floats, columns: Sequence[int]) -> Floats:
        """Return half of the last digit of each value; `rows` has the columns given."""
        return np.column_stack([slack_of(self.features[j], rows[:, k]) for k, j in enumerate(columns)])

    def checked(self, relation: Relation, columns: Sequence[int], most: float = MOST_EXCEPTIONS) -> Relation | None:
        """Return a relation with the numbers of rows that satisfy and violate it; None with too many exceptions."""
        try:
            holds = resolve_relation(relation, self.schema).holds
        except InputError:
            return None
        for rows in (self.screen, self.sample, self.matrix):
            shown = self.uncoded(rows, columns)
            broken = shown & ~holds(rows)
            few = self.screen is rows and shown.sum() * most < 5.0
            if broken.sum() > max(most * shown.sum(), 5.0 if few else 0.0):
                return None
        wrong = np.flatnonzero(broken)
        first = tuple(plain_label(self.labels[row]) for row in wrong[:MOST_LABELS])
        return replace(relation, rows=int(shown.sum()) - wrong.size, exceptions=wrong.size, first=first)

    def is_explained(self, i: int, j: int) -> bool:
        """Return whether a function or a sum connects two columns, or the columns that they are tied to."""
        i_lead, j_lead = self.lead[i], self.lead[j]
        return i_lead == j_lead or not self.explained.isdisjoint((frozenset((i, j)), frozenset((i_lead, j_lead))))

    def is_ordered(self, j: int) -> bool:
        return self.features[j].kind != "categorical"

    def is_number(self, j: int) -> bool:
        return self.features[j].is_numeric

    def is_plain(self, j: int) -> bool:
        """Return whether a column holds numbers other than dates."""
        return self.is_number(j) and not is_dated(self.features[j].dtype)

    def family(self, j: int) -> object:
        dtype = self.features[j].dtype
        return date_family(dtype) if is_dated(dtype) else None

    def _codes(self, values: Floats) -> set[float]:
        """Return the negative values of a column if all of them are codes such as -9 or -99."""
        below = set(np.unique(values[values < 0.0]).tolist())
        return below if below <= CODES and (values >= 0.0).any() else set()

    def uncoded(self, rows: Floats, columns: Sequence[int]) -> Bools:
        """Return in which rows some columns are known and not codes."""
        held = np.ones(rows.shape[0], dtype=bool)
        for j in columns:
            held &= ~np.isnan(rows[:, j])
            if self.codes.get(j):
                held &= ~np.isin(rows[:, j], list(self.codes[j]))
        return held

    def in_units(self, rows: Floats) -> Floats:
        """Return rows with codes replaced by missing, and dates of one family in one unit."""
        found = rows.copy()
        for j in self.numbers:
            if self.codes[j]:
                found[np.isin(found[:, j], list(self.codes[j])), j] = np.nan
            if not self.is_plain(j):
                found[:, j] = self._convert_dates(j, found[:, j])
        return found

    def _convert_dates(self, j: int, values: Floats) -> Floats:
        from mcce.constraints.encoding import clock_of, days_of

        feature = self.features[j]
        if getattr(feature.dtype, "kind", "O") == "m":
            times, plus = days_of(feature)
            return values * times + plus
        clock = clock_of(self.schema, feature)
        return values * clock.times[j] + clock.plus[j]

    def is_kept(self, relation: Relation) -> bool:
        """Return whether every row satisfies a relation; False if it cannot be expressed for these columns."""
        try:
            return bool(resolve_relation(relation, self.schema).holds(self.matrix).all())
        except InputError:
            return False

    def least(self, n_tried: float) -> float:
        """Return the largest log chance that is significant."""
        return float(np.log(RATE / FAMILIES / max(n_tried, 1)))

    def adjusted(self, chance: float, n_tried: float) -> float:
        """Return a chance adjusted for the number of relations tried, from the log chance of one."""
        return float(np.exp(min(0.0, chance + np.log(n_tried * FAMILIES))))

    def chance_of_equation(self, relation: Relation, columns: Sequence[int], divisor: int | None = None) -> float:
        """Return the log chance of an equation with exceptions; rows with a divisor of 0 are not evidence.

        It is the largest over the columns of two bounds, times the number of ways to choose the exceptions: one over
        the number of distinct permutations, and the chance of the rows in which the equation holds after a permutation.
        """
        holds = resolve_relation(relation, self.schema).holds
        rows = self.sample[self.shown(self.sample, columns, divisor)]
        n = rows.shape[0]
        if n < 2:
            return np.inf
        broken = int((~holds(rows)).sum())
        chance = -np.inf
        for j in columns:
            share = 0.0
            for shift in (n // 2, n // 3 + 1):
                turned = rows.copy()
                turned[:, j] = np.roll(rows[:, j], shift)
                share = max(share, (holds(turned).sum() + 1.0) / (n + 1.0))
            counts = np.unique(rows[:, j], return_counts=True)[1]
            different = log_chance(counts) + broken * np.log(counts.size)
            chance = max(chance, different, (n - broken) * np.log(share))
        return float(chance + log_choices(n, broken))

    def shown(self, rows: Floats, columns: Sequence[int], divisor: int | None) -> Bools:
        """Return which rows are evidence for an equation."""
        known = self.uncoded(rows, columns)
        return known if divisor is None else known & (rows[:, divisor] != 0.0)

    def log_chance_of(self, j: int) -> float:
        """Return the log chance of the permutation of a column."""
        known = self.uncoded(self.sample, (j,))
        return log_chance(np.unique(self.sample[known, j], return_counts=True)[1])


def log_chance(counts: Ints) -> float:
    """Return the logarithm of one over the number of distinct permutations, given the counts of equal values."""
    return float(LOG_FACTORIALS[counts].sum() - LOG_FACTORIALS[counts.sum()])


def log_choices(n: int, most: int) -> float:
    """Return the logarithm of the number of ways to choose at most some of n rows."""
    some = np.arange(min(most, n) + 1)
    each = LOG_FACTORIALS[n] - LOG_FACTORIALS[some] - LOG_FACTORIALS[n - some]
    return float(each.max() + np.log(np.exp(each - each.max()).sum()))


def values_of(text: str, rows: Floats, schema: Schema) -> Floats:
    """Return the values of a text for encoded rows."""
    condition = resolve_rule(rule(f"{text} == 0"), schema).condition
    assert isinstance(condition, Compared)
    return condition.left.of(rows, rows)


def sorted_pairs(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return two columns where both are known, sorted by the first."""
    known = ~(np.isnan(a) | np.isnan(b))
    order = np.argsort(a[known], kind="stable")
    return a[known][order], b[known][order]


def level_text(feature: Feature, code: int) -> str | None:
    """Return a level in the grammar of rules; None if it cannot be written."""
    assert feature.levels is not None
    level = feature.levels[code]
    if isinstance(level, (bool, np.bool_)):
        return "true" if level else "false"
    text = str(level)
    quote = "'" if "'" not in text else '"'
    return f"{quote}{text}{quote}" if quote not in text else None
