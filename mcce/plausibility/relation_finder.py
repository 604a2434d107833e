"""Searching the training rows for ties and relations between columns (`mcce.plausibility.relations`).

What is searched for:

1. Copies and exact linear functions of a column: two currencies, age and year of birth.
2. Sums, differences, products and quotients of two columns: ``total == a + b``, ``rate == a / b``.
3. Equations of several columns (`mcce.plausibility.equations`): ``dti == (rent + instalment) / income``; days, months
   and years between two dates.
4. Other functions: a column that another one determines in every row. Linear functions that were rounded, thresholds,
   monotone functions, bands of a number, codes of levels. Columns that determine each other are tied.
5. Orders that every row keeps: ``a <= b``, for numbers and for dates.
6. Values that come together: a number is 0, a code below 0 or missing if, and only if, another column has some of its
   levels, or is 0, that code or missing as well; a level, if, and only if, another column has one of its own.

Equations and thresholds that at most 1 % of the rows break are proposals: they are listed, not kept. Orders and values
that come together in all but 2 % of the rows are soft: they are kept for factuals that keep them.

Numbers are compared to half of the last digit that the column has. An equation can often be written with each of its
columns on the left. The text that leaves the least room is taken, so the finest column is the one that is determined:
``monthly == amount / months`` holds to half a cent, ``months == amount / monthly`` only to half a month. A total rises
with its largest part: a function between columns of the equations in 2 and 3 is kept only if these do not explain it.
Columns are taken in the order of their names, so their order in the table does not matter.

Rows count in which all columns of a relation are known; in orders and in 2, codes such as -9 in a column of other
numbers from 0 on count as missing.

Chance may not explain a relation. The chance is that of a column whose values stand in another order, drawn by lot. Of
n values, of which n_1, n_2, ... are equal, n! / (n_1! n_2! ...) orders look different: a copy takes one of them, a
monotone function two, any function of k values at most m ** k, where m is the number of its own values. Of a <= b it is
counted how many orders keep it: all of them, where the ranges do not overlap. The chance is multiplied by the number of
relations that were looked at (Bonferroni), so that of a hundred tables of unrelated columns at most one has any: that
is `RATE`. As evidence equal rows count once, and no more than some thousand rows. An order that would hold in 19 of
20 rows by chance needs rows near equality as well: two numbers that are far apart in every row are in no relation
worth telling. For equations, the chance is that of the rows that keep it when a column is put in another order, times
the number of equations that could have been written with so many columns and constants, and of ways to choose the
exceptions. For soft relations it is stated in `mcce.plausibility.soft_orders` and at `_Finder.soft_together`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.constraints.conditions import Compared
from mcce.constraints.rules import Rule, resolve_rule, rule
from mcce.exceptions import AdviceWarning, InputError, spell, warn
from mcce.plausibility.derived import MOST_LABELS, Formula, agree, column_text, plain_label
from mcce.plausibility.equations import MOST_TERMS, SUBSET_ROWS, EquationCandidate, find_candidates, shortest_between
from mcce.plausibility.predictable import find_predictable, warn_of_predictable
from mcce.plausibility.relations import (
    ROOM,
    UNSOLVED,
    Relation,
    Relations,
    Tied,
    derived_relation,
    resolution,
    resolve_relation,
    slack_of,
)
from mcce.plausibility.soft_orders import BY_CHANCE, log_chance_of_soft_order, share_above
from mcce.rng import hash_rows
from mcce.table import Data, Feature, Kind, Schema
from mcce.table.dtypes import date_family, is_dated
from mcce.table.frames import own_frame
from mcce.wording import PythonOnly, Setting

RATE = 0.01  # of tables without any relation that one is found in
SCREENED, LOOKED_AT = 500, 5000  # rows that candidates are tried on, and those that count as evidence
MOST_SUMMED = 250  # columns whose sums, differences, products and quotients are tried
LINKED = 5  # columns of a tied group that all others are compared with
NEAR, FEW_NEAR = 0.05, 0.01  # of the spread that is near equality, and the least share of rows that are
FREQUENT, MOST_MARKED = 0.02, 8  # least share of a level that may come together with others, and how many a column has
MOST_NAMED = 5  # relations in a warning
FAMILIES = 8  # of relations, which share the rate
MOST_EXCEPTIONS, MOST_SOFT = 0.01, 0.02  # share of rows that may break a proposal, and a soft relation
LONGER = 1000  # letters that a difference counts
CONSTANTS = 2e4  # that a coefficient of an equation is chosen from
FEW_VALUES = 5  # distinct values up to which a column is not tried as a divisor
MOST_DATES = 20  # columns whose differences are tried
DATE_FORMS = (
    "days({} - {})",
    "years({} - {})",
    "months({} - {})",
    *(f"{by.format('days({} - {})', days)}" for days in (7, 30, 365, 365.25) for by in ("{} / {}", "floor({} / {})")),
    "12 * days({} - {}) / 365.25",
    "floor(12 * days({} - {}) / 365.25)",
)
CODES = {-float(str(digit) * times) for digit in (6, 7, 8, 9) for times in (1, 2, 3, 4, 5)} | {-1.0}
T = TypeVar("T")
_LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, LOOKED_AT + 2)))])


def find_relations(X: Data, *, kinds: Mapping[Any, Kind] | None = None) -> Relations:
    """Return the ties and relations between the columns of a table that do not hold by chance.

    Copies, linear and monotone functions, codes of levels, thresholds, sums and differences of up to four columns,
    products, quotients, logarithms of these, days, months and years between dates, orders such as ``start <= end``, and
    values that come together (0 if and only if "none"). Those that hold in every row are the items of what is returned.
    Its `proposals` are equations that at most 1 % of the rows break; its `soft` relations are orders and values that
    come together in at least 98 % of the rows. A warning names columns that the others predict almost perfectly though
    no formula was found. The test against chance is described in `mcce.plausibility.relation_finder`.

    The finest column of an equation is the determined one, and the order of the columns does not matter. `MCCE.fit`
    searches for relations as well; give it some of these as `relations`.

    Parameters
    ----------
    X : DataFrame or two-dimensional array
    kinds : dict or None
        Kinds of some columns, as of `mcce.MCCE`.

    Examples
    --------
    >>> import mcce, numpy as np, pandas as pd
    >>> born = np.random.default_rng(1).integers(1940, 2000, 200)
    >>> mcce.find_relations(pd.DataFrame({"born": born, "age": 2024 - born})).frame["relation"].tolist()
    ['born == 2024 - age']
    """
    X = own_frame(X)
    schema = Schema.from_data(X, kinds)
    matrix = schema.encode(X).matrix
    labels = list(X.index) if isinstance(X, pd.DataFrame) else None
    found = _Finder(matrix, schema, labels).relations()
    warn_of_predictable(find_predictable(matrix, schema, _explained_by(found)))
    return found


def _explained_by(found: Relations) -> set[Hashable]:
    """Return the columns that equations and functions hold, kept or proposed."""
    every = (*found, *found.proposals)
    return {name for each in every if each.kind not in ("order", "together") for name in each.columns}


def find_in(matrix: Floats, schema: Schema, fixed: Sequence[int] = (), derived: Sequence[Formula] = ()) -> Relations:
    """Return the relations in encoded rows, but those of fixed columns alone or of a formula's columns; warn of them.

    `derived` are the formulas that the user gave.
    """
    names = {schema.names[j] for j in fixed}
    given = [{each.target, *each.inputs} for each in derived]

    def is_new(relation: Relation) -> bool:
        of_formula = relation.kind not in UNSOLVED and any(some.issuperset(relation.columns) for some in given)
        return not names.issuperset(relation.columns) and not of_formula

    every = _Finder(matrix, schema).relations()
    found, soft, proposals = (list(filter(is_new, some)) for some in (every, every.soft, every.proposals))
    explained = names.union(_explained_by(every), *given)
    _warn_of(found, "kept by sparse counterfactuals", "relation")
    _warn_of(soft, "kept by sparse counterfactuals of rows that keep them", "soft relation")
    _warn_of_proposals(proposals)
    warn_of_predictable(find_predictable(matrix, schema, explained))
    return Relations(tuple(found), soft=tuple(soft), proposals=tuple(proposals))


def _warn_of(found: Sequence[Relation], what: str, called: str) -> None:
    if not found:
        return
    shown, more, one = _listed(found, called)
    warn(
        f"{one} between columns found, {what}: {shown}{more}",
        PythonOnly(" (see relations_)" if more else ""),
        ".",
        PythonOnly(
            " To confirm, fit(X, relations=explainer.relations_); to leave one out, "
            "relations=explainer.relations_.without(...); for none, relations=()."
            if not found[0].exceptions
            else ""
        ),
        category=AdviceWarning,
    )


def _warn_of_proposals(found: Sequence[Relation]) -> None:
    """Warn of formulas that some training rows break, with what to give to keep them."""
    if not found:
        return
    shown, more, one = _listed(found, "possible formula")
    formulas = {each.columns[-1]: text for each in found[:MOST_NAMED] if (text := _formula_of(each)) is not None}
    remedy = " To compute these columns from the others: ", Setting("derived", formulas), "."
    warn(
        f"{one} of columns found, not kept because some rows break them: {shown}{more}",
        PythonOnly(" (see relations_.proposals)" if more else ""),
        ".",
        *(remedy if formulas else ()),
        category=AdviceWarning,
    )


def _listed(found: Sequence[Relation], called: str) -> tuple[str, str, str]:
    """Return the first relations in words, how many more there are, and how many in all."""
    shown = "; ".join(f"{r.says} ({r.exceptions:,} exceptions)" if r.exceptions else r.says for r in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return shown, more, f"1 {called}" if len(found) == 1 else f"{len(found)} {called}s"


def _formula_of(relation: Relation) -> str | None:
    """Return the formula of the last column of a relation, as `derived` of `mcce.MCCE` takes it; None without one."""
    begin = f"{column_text(relation.columns[-1])} == "
    return relation.says[len(begin) :] if relation.table is None and relation.says.startswith(begin) else None


def read_relations(given: Any, matrix: Floats, schema: Schema) -> Relations:
    """Return the relations that a user gives: texts of rules, `tied` columns, and relations that were found."""
    if given is False:
        given = ()
    soft = given.soft if isinstance(given, Relations) else ()
    if isinstance(given, (str, Tied, Relation, Rule, Formula)):
        given = [given]
    if given is True or not isinstance(given, Iterable):
        raise InputError(
            f"relations is {spell(given)}; give a list of texts such as 'a <= b', mcce.tied(...) and relations that "
            "were found, () for none, or None to have them found."
        )
    given = list(given)
    if not given:
        return Relations(are_given=True, soft=soft)
    finder = _Finder(matrix, schema)
    found: list[Relation] = []
    for each in given:
        if isinstance(each, Relation):  # of the proposals as well
            for name in each.columns:
                schema.position(name, f"a column of the relation {each.says!r},", "X")
            found.append(each)
        elif isinstance(each, Formula):
            found.append(derived_relation(each))
        elif isinstance(each, Tied):
            found.extend(finder.tied(each.columns))
        elif isinstance(each, (str, Rule)):
            one = rule(each) if isinstance(each, str) else each
            if one.says is None:
                raise InputError(f"relations has the rule {str(one)!r}, which is a function; give it as a constraint.")
            found.append(finder.given(one.says))
        else:
            raise InputError(f"relations has {spell(each)}; give texts such as 'a <= b', or mcce.tied(...).")
    return Relations(tuple(dict.fromkeys(found)), are_given=True, soft=soft)


class _Finder:
    """Looks for relations in encoded rows.

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
        some = np.unique(np.linspace(0, matrix.shape[0] - 1, LOOKED_AT).astype(np.intp))
        _, first = np.unique(hash_rows(np.ascontiguousarray(matrix[some])), return_index=True)  # equal rows count once
        self.sample = np.asfortranarray(matrix[some[np.sort(first)]])
        few = np.unique(np.linspace(0, self.sample.shape[0] - 1, SCREENED).astype(np.intp))
        self.screen = np.ascontiguousarray(self.sample[few])
        known = [column[~np.isnan(column)] for column in self.sample.T]
        # by name, so that the order of the columns in the table does not matter
        self.columns = sorted(range(len(self.features)), key=lambda j: (str(self.features[j].name), j))
        self.rank = {j: place for place, j in enumerate(self.columns)}
        self.n_values = np.array([np.unique(values).size for values in known])
        self.varying = [j for j in self.columns if known[j].size > 1 and (known[j] != known[j][0]).any()]
        self.n_functions = 4 * len(self.varying) * (len(self.varying) - 1)  # that are tried
        self.numbers = [j for j in self.varying if self._is_number(j)]
        self.codes = {j: self._codes(known[j]) for j in self.numbers}
        self.chances: dict[tuple[int, int], float] = {}  # of functions
        self.triples: list[tuple[int, ...]] = []  # columns of sums and the like, what is determined first
        self.explained: set[frozenset[int]] = set()  # pairs of columns in functions and sums
        self.texts: dict[tuple[int, int], str] = {}  # of functions of a column, such as logarithms
        self.ordered: set[tuple[int, int]] = set()  # pairs of columns in orders
        self.lead = {j: j for j in range(len(self.features))}  # the first of the columns that a column is tied to

    def relations(self) -> Relations:
        """Return the relations that hold in every row, the soft ones and the proposals, none of them by chance."""
        with np.errstate(all="ignore"):  # what overflows is in no relation
            copies, linear, sums = self.copies(), self.linear(), self.sums()
            equations = self.equations(sums)
            functions = self.functions()
            proposals = [each for each in equations if each.exceptions] + self.thresholds()
            exact = [each for each in equations if not each.exceptions]
            kept = (*copies, *linear, *functions, *sums, *exact, *self.orders(), *self.together())
            soft = (*self.soft_orders(), *self.soft_together(kept))
            return Relations(kept, soft=soft, proposals=tuple(proposals))

    def tied(self, names: Sequence[Hashable]) -> Iterator[Relation]:
        """Yield the relations of columns that a user says are tied, each to the first."""
        places = [self.schema.position(name, "a column of tied(),", "X") for name in names]
        for other in places[1:]:
            yield self._tie(places[0], other)

    def given(self, says: str) -> Relation:
        """Return a relation that a user says."""
        relation = Relation("rule", says, ("",), 0)
        resolved = resolve_relation(relation, self.schema)
        names = tuple(self.features[j].name for j in resolved.columns)
        return Relation("rule", says, names, int(resolved.holds(self.matrix).sum()))

    # ---- functions

    def copies(self) -> list[Relation]:
        """Return the copies of columns, each with the first column that has the same values; only that is looked at."""
        firsts: dict[Hashable, int] = {}
        found = []
        for y in self.varying:
            digest = hashlib.blake2b((self.matrix[:, y] + 0.0).tobytes()).digest()
            x = firsts.setdefault((digest, self._family(y)), y)
            if x == y or not self._mean_the_same(x, y):
                continue
            self.lead[y] = x
            chance = _log_chance(np.unique(self.sample[~np.isnan(self.sample[:, y]), y], return_counts=True)[1])
            if chance <= self._least(self.n_functions):
                found.append(self._write_tie(x, y, self._adjusted(chance, self.n_functions)))
        self.varying, self.numbers = self._leads(self.varying), self._leads(self.numbers)
        return found

    def linear(self) -> list[Relation]:
        """Return exact linear ties.

        A tie that holds only as its values are rounded may be due to a sum: see `functions`.
        """
        least = self._least(self.n_functions)
        found: list[Relation] = []
        for x in self._leads(self.varying):
            for y in self._seem_functions_of(x) if self.lead[x] == x else ():
                if self.lead[y] != y or self._chance(x, y) > least or self._chance(y, x) > least:
                    continue
                if self._linear_relation(x, y, exact=True) is not None:
                    self.lead[y] = x
            group = sorted((j for j in self.varying if self.lead[j] == x), key=self._fineness)
            found += self._write_ties(group, combinations(group, 2), exact=True)
        return found

    def functions(self) -> list[Relation]:
        """Return ties and functions one way that no exact relation gives; to be called when these are known."""
        least = self._least(self.n_functions)
        pairs = sorted(self.chances, key=lambda pair: [self.rank[j] for j in pair])
        leads = self._leads(self.varying)
        chances = {pair: self.chances[pair] for pair in pairs if self.chances[pair] <= least and {*leads} >= {*pair}}
        for pair in self._by_products(chances):
            chances.pop(pair, None)
        self.explained |= {frozenset(pair) for pair in chances}
        tied = {x: [y for y in leads if x == y or ((x, y) in chances and (y, x) in chances)] for x in leads}
        self.lead = {j: tied[lead][0] if lead in tied else lead for j, lead in self.lead.items()}
        found: list[Relation] = []
        for x in self._leads(leads):
            group = [y for y in tied[x] if self.lead[y] == x]
            found += self._write_ties(group, ((y, z) for y, z in combinations(group, 2) if z in tied[y]))
            for y in self._leads(leads):
                # what lies between tells it
                if (x, y) in chances and not any((x, z) in chances and (z, y) in chances for z in self._leads(leads)):
                    found.append(self._write_function(x, y, self._adjusted(chances[x, y], self.n_functions)))
        return found

    def _write_ties(
        self, group: Sequence[int], pairs: Iterable[tuple[int, int]], exact: bool = False
    ) -> Iterator[Relation]:
        """Yield relations that connect tied columns: linear ones with the shortest texts first, then tables.

        A column is determined once where possible, so that all follow from one of them.
        """
        part = {j: j for j in group}
        near = [(x, y) for x, y in pairs if x in group[:LINKED]]  # of many columns, not all pairs
        texts = ((self._linear_relation(x, y, exact=exact), x, y) for x, y in near)
        linear = sorted(((*text, x, y) for text, x, y in texts if text is not None), key=lambda one: one[0])
        determined: set[Hashable] = set()
        for place, (_, relation, x, y) in enumerate([*linear, *linear, *((0, None, group[0], y) for y in group[1:])]):
            target = None if relation is None else relation.columns[1]
            if part[x] == part[y] or (place < len(linear) and target in determined):
                continue
            determined.add(target)
            part = {j: part[x] if of == part[y] else of for j, of in part.items()}
            chance = max(c for j in (x, y) if (c := self.chances.get((self.lead[j], j))) is not None)
            adjusted = self._adjusted(chance, self.n_functions)
            yield self._write_table(x, y, True, adjusted) if relation is None else replace(relation, chance=adjusted)

    def _fineness(self, j: int) -> tuple[float, int]:
        """Return what tied columns are sorted by: the share of the range that the last digit is, coarse ones first."""
        feature = self.features[j]
        return -float(f"{resolution(feature) / feature.span:.6g}"), self.rank[j]

    def _by_products(self, functions: Mapping[tuple[int, int], float]) -> set[tuple[int, int]]:
        """Return which functions are due to sums and the like: a total rises with its largest part.

        Of columns that such relations connect, a function is kept if it has a text with few digits, or if relations
        determine neither column and the third column of a relation is a function of one of the two as well.
        """
        part = {j: j for j in self.lead}  # of the columns that relations connect, the first
        triples = [tuple(self.lead[j] for j in places) for places in self.triples]
        for places in triples:
            joined = {part[j] for j in places}
            part = {j: min(joined) if first in joined else first for j, first in part.items()}
        targets = {places[0] for places in triples}
        related = {frozenset(pair) for pair in functions}
        dropped: set[tuple[int, int]] = set()
        for x, y in functions:
            if part[x] != part[y] or (x, y) in dropped:
                continue
            around = [{frozenset(pair) for pair in combinations(each, 2)} for each in triples if {x, y} <= {*each}]
            alone = any(len(pairs & related) == 1 for pairs in around)
            is_tied = (y, x) in functions
            if (alone or not targets.isdisjoint((x, y))) and not self._is_simple(x, y, is_tied):
                dropped |= {(x, y), (y, x)}
        return dropped

    def _leads(self, columns: Sequence[int]) -> list[int]:
        return [j for j in columns if self.lead[j] == j]

    def _seem_functions_of(self, x: int) -> list[int]:
        """Return the columns that another one seems to determine, by a few rows."""
        known = self.screen[~np.isnan(self.screen[:, x])]
        rows = known[np.argsort(known[:, x], kind="stable")]
        new = np.concatenate([[True], rows[1:, x] != rows[:-1, x]])
        head = rows[np.maximum.accumulate(np.where(new, np.arange(new.size), 0))]
        seen = ~((rows != head) & ~np.isnan(rows) & ~np.isnan(head)).any(axis=0)
        if self._is_ordered(x) and new.sum() > new.size / 2:  # most values are seen once: all columns are functions
            rises = ~(rows < np.fmax.accumulate(rows)).any(axis=0)
            falls = ~(rows > np.fmin.accumulate(rows)).any(axis=0)
            bands = (rows[1:] != rows[:-1]).sum(axis=0) < self.n_values
            # of values that are seen once each, no function is evidence but a monotone one, and one that has bands
            repeated = self.sample.shape[0] - self.n_values[x]
            told = repeated * np.log(np.maximum(self.n_values, 1)) >= -self._least(self.n_functions)
            may_be = bands | told | np.isnan(rows).any(axis=0)
            seen &= rises | falls | (may_be & ~np.array([self._is_ordered(j) for j in range(len(self.features))]))
        return [y for y in self.varying if y != x and seen[y]]

    def _chance(self, x: int, y: int) -> float:
        if (x, y) not in self.chances:
            self.chances[x, y] = self._chance_of_function(x, y)
        return self.chances[x, y]

    def _chance_of_function(self, x: int, y: int) -> float:
        """Return the logarithm of the chance that one column looks like a function of another; infinite if it is none.

        Rows of which a value of x has only one each are no evidence, unless y rises or falls with x, is the same in a
        whole range of x, or equals it.
        """
        for rows in (self.screen, self.sample, self.matrix):  # a few rows tell most that are none
            a, b = _sorted_pairs(rows[:, x], rows[:, y])
            if a.size < 2 or (b[1:] != b[:-1])[a[1:] == a[:-1]].any():
                return np.inf
        monotone = self._is_ordered(x) and self._is_ordered(y) and ((b[1:] >= b[:-1]).all() or (b[1:] <= b[:-1]).all())
        in_bands = self._is_ordered(x) and (b[1:] != b[:-1]).sum() == np.unique(b).size - 1
        are_equal = self._mean_the_same(x, y) and (a == b).all()
        a, b = _sorted_pairs(self.sample[:, x], self.sample[:, y])
        _, counts = np.unique(b, return_counts=True)
        ways = [np.unique(a).size * np.log(counts.size)]
        ways += [np.log(2.0)] if monotone else []
        ways += [_LOG_FACTORIALS[counts.size]] if in_bands else []
        ways += [0.0] if are_equal else []
        return float(_log_chance(counts) + min(ways))

    def _mean_the_same(self, x: int, y: int) -> bool:
        """Return whether equal codes mean equal values."""
        one, other = self.features[x], self.features[y]
        return one.kind == other.kind and (one.levels is None or one.levels.equals(other.levels))

    def _write_function(self, x: int, y: int, chance: float) -> Relation:
        """Return the relation that x determines y: linear in x or in a column tied to it where possible."""
        tied = [j for j in self.varying if self.lead[j] == x][:LINKED]
        linear = [each for j in tied if (each := self._linear_relation(j, y, both=False)) is not None]
        if linear:
            return replace(min(linear, key=lambda one: one[0])[1], chance=chance)
        written = self._write_table(x, y, False, chance)
        if (x, y) in self.texts:
            return replace(written, says=self.texts[x, y], table=None)
        threshold = (
            self._exact_threshold(x, y) if written.says.endswith(f"determines {self.features[y].name}") else None
        )
        return written if threshold is None else replace(written, says=threshold, table=None)

    def _exact_threshold(self, x: int, y: int) -> str | None:
        """Return the text of y as a threshold of x, if it is one in every row."""
        table = self._table(x, y)
        steps = np.flatnonzero(table[1:, 1] != table[:-1, 1])
        if steps.size != 1 or not self._is_plain(x):
            return None
        below, above = table[steps[0]], table[steps[0] + 1]
        at = shortest_between(float(np.nextafter(below[0], np.inf)), float(above[0]))
        says = None if at is None else self._threshold_text(x, y, at, below[1], above[1])
        names = self.features[x].name, self.features[y].name
        return says if says is not None and self._is_kept(Relation("function", says, names, 0)) else None

    def _write_tie(self, x: int, y: int, chance: float | None) -> Relation:
        """Return the tie of two columns: linear where possible."""
        linear = self._linear_relation(x, y)
        return self._write_table(x, y, True, chance) if linear is None else replace(linear[1], chance=chance)

    def _write_table(self, x: int, y: int, both: bool, chance: float | None) -> Relation:
        names, table = (self.features[x].name, self.features[y].name), self._table(x, y)
        words = f"{names[0]} and {names[1]} go together" if both else self._words(x, y, table)
        return Relation("tied" if both else "function", words, names, self._n_known(x, y), chance, table)

    def _n_known(self, x: int, y: int) -> int:
        return int((~np.isnan(self.matrix[:, [x, y]]).any(axis=1)).sum())

    def _words(self, x: int, y: int, table: Floats) -> str:
        """Return the words of a function: of one that tells whether x is 0, as a rule; else that it is one."""
        level, of_zero = np.unique(table[:, 1]), table[table[:, 0] == 0.0, 1]
        number, name = column_text(self.features[x].name), column_text(self.features[y].name)
        if not self.features[y].is_numeric and level.size == 2 and of_zero.size == 1:
            text = _level(self.features[y], int(of_zero[0]))
            alone = (table[:, 1] == of_zero[0]).sum() == 1
            zero = "0" if self.features[x].is_numeric else _level(self.features[x], 0)
            if alone and None not in (number, name, text, zero):
                return f"if {name} == {text} then {number} == {zero} else {number} != {zero}"
        return f"{self.features[x].name} determines {self.features[y].name}"

    def _table(self, x: int, y: int) -> Floats:
        known = ~np.isnan(self.matrix[:, [x, y]]).any(axis=1)
        keys, first = np.unique(self.matrix[known, x], return_index=True)
        return np.column_stack([keys, self.matrix[known, y][first]])

    def _tie(self, x: int, y: int) -> Relation:
        """Return the tie of two columns that a user says are tied."""
        known = ~np.isnan(self.matrix[:, [x, y]]).any(axis=1)
        for a, b in ((x, y), (y, x)):
            pairs = np.unique(self.matrix[known][:, [a, b]], axis=0)
            twice = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
            if twice.size:
                one, other = self.features[a], self.features[b]
                value = one.decode(pairs[twice[:1], 0])[0]
                seen = list(other.decode(pairs[twice[0] : twice[0] + 2, 1]))
                raise InputError(
                    f"tied({spell(self.features[x].name)}, {spell(self.features[y].name)}): rows with {one.name} = "
                    f"{spell(value)} have {other.name} = {spell(seen[0])} and {spell(seen[1])}; columns that are tied "
                    "determine each other. Correct these rows, or say what holds as a rule."
                )
        if not known.any():
            raise InputError(f"tied(): no row has both {self.features[x].name!r} and {self.features[y].name!r}.")
        with np.errstate(all="ignore"):
            return self._write_tie(x, y, None)

    def _linear_relation(self, x: int, y: int, both: bool = True, exact: bool = False) -> tuple[int, Relation] | None:
        """Return the linear function of two columns, and the length of its text; None if there is none.

        With `both`, each may be the one that is determined; with `exact`, rounding may not matter.
        """
        found = []
        for of, to in ((x, y), (y, x)) if both else ((x, y),):
            text = self._linear_text(of, to)
            if text is not None and (text.is_exact or not exact):
                names = self.features[of].name, self.features[to].name
                relation = Relation("tied" if both else "function", text.says, names, self._n_known(x, y))
                room = resolution(self.features[to]) / (abs(text.slope) if to == y else 1.0)  # in units of x
                found.append((room, text.length, (text.length, relation)))
        return next(iter(_tightest(found)), None)

    def _is_simple(self, x: int, y: int, both: bool) -> bool:
        """Return whether two columns have a linear function with fewer digits than any slope could be fitted with."""
        texts = [self._linear_text(x, y), self._linear_text(y, x) if both else None]
        return any(text is not None and text.is_simple for text in texts)

    def _linear_text(self, x: int, y: int) -> _LinearText | None:
        """Return the shortest text of y as a linear function of x that all rows keep; None if there is none."""
        a, b = column_text(self.features[x].name), column_text(self.features[y].name)
        if a is None or b is None or not (self._is_plain(x) and self._is_plain(y)):
            return None
        known = ~np.isnan(self.matrix[:, [x, y]]).any(axis=1)
        of, to = self.matrix[known, x], self.matrix[known, y]
        if (of == to).all():
            return _LinearText(f"{b} == {a}", 1.0, 0, True, True)
        low, high = int(np.argmin(of)), int(np.argmax(of))
        slope = float((to[high] - to[low]) / (of[high] - of[low]))
        slack = slack_of(self.features[y], to)
        if not (np.abs(to - to[low] - slope * (of - of[low])) <= 4.0 * slack).all():
            return None
        if 2 * np.unique(to).size < np.unique(of).size:
            return None
        centred = of - of.mean()
        scale = float(np.abs(centred).max())
        centred = centred / scale
        fitted = float((centred @ (to - to.mean())) / (centred @ centred) / scale)
        off = to - to.mean() - fitted * (of - of.mean())
        is_exact = bool((np.abs(off) <= 1e-12 * np.abs(to).max()).all())
        for n_digits, factor, times in _short_factors(fitted):
            rest = to - times * of
            middle = float((rest.max() + rest.min()) / 2.0)
            for decimals in range(13):
                plus = round(middle, decimals) + 0.0
                if (np.abs(rest - plus) <= slack).all():
                    says = _linear_text(a, b, factor, times, plus)
                    if not self._is_kept(Relation("tied", says, (self.features[x].name, self.features[y].name), 0)):
                        return None
                    length = len(_linear_text("", "", factor, times, plus)) + factor.count("/")
                    # the share of slopes with so many digits that would fit as well by chance
                    by_chance = 10.0**n_digits * 4.0 * slack.max() / abs(to[high] - to[low])
                    return _LinearText(says, times, length, is_exact, is_exact or by_chance <= RATE)
        return None

    # ---- sums, differences, products and quotients

    def sums(self) -> list[Relation]:
        """Return sums, differences, products and quotients of two columns; one for each three columns."""
        plain = [j for j in self.numbers if self._is_plain(j)]
        chance = {j: self._log_chance_of(j) for j in plain}
        n_tried = 3 * len(plain) ** 3
        plain = [j for j in plain if chance[j] <= self._least(n_tried)][: MOST_SUMMED + 1]
        if not 3 <= len(plain) <= MOST_SUMMED:
            return []
        forms: dict[tuple[bool, frozenset[int]], list[_Form]] = {}
        for form in self._screened_sums(plain):
            forms.setdefault((form[0] in ("product", "quotient"), frozenset(form[1:])), []).append(form)
        found: list[Relation] = []
        done: set[frozenset[int]] = set()
        for (_, columns), alike in forms.items():
            three = frozenset(self.lead[j] for j in columns)
            if len(three) < 3 or three in done or any(self._is_explained(*pair) for pair in combinations(columns, 2)):
                continue
            for (kind, *places), relation in self._written(alike):
                asked, rows = self._chance_of_sum(relation, places, places[2] if kind == "quotient" else None)
                if asked <= self._least(n_tried):
                    found.append(replace(relation, rows=rows, chance=self._adjusted(asked, n_tried)))
                    done.add(three)
                    self.triples.append(tuple(places))
        for triple in self.triples:
            self.explained |= {frozenset(pair) for pair in combinations(triple, 2)}
            self.explained |= {frozenset(pair) for pair in combinations([self.lead[j] for j in triple], 2)}
        return found

    def _written(self, forms: Sequence[_Form]) -> list[tuple[_Form, Relation]]:
        """Return the tightest of the forms of a relation of three columns that hold in all rows, if any does.

        Where several leave the same room, the form is taken that more rows keep to the last bit, and a sum rather than
        a difference.
        """
        kept = []
        for form in forms:
            kind, target, one, other = form
            names = [column_text(self.features[j].name) for j in (target, one, other)]
            columns = tuple(self.features[j].name for j in (one, other, target))
            relation = Relation(kind, f"{names[0]} == {names[1]} {_FORMS[kind][0]} {names[2]}", columns, 0)
            if None in names or not self._is_kept(relation):
                continue
            values, room = self.sample[:, target], resolution(*(self.features[j] for j in (target, one, other)))
            if kind in ("product", "quotient"):  # in shares of the value, as the columns have no common unit
                some = values[values != 0.0]
                room = float(np.nanmedian(slack_of(self.features[target], some) / np.abs(some)))
            computed = _FORMS[kind][1](self.sample[:, one], self.sample[:, other])
            kept.append((room, -int((computed == values).sum()), (form, relation)))
        return _tightest(kept)

    def _screened_sums(self, columns: Sequence[int]) -> Iterator[_Form]:
        """Yield which columns seem to be the sum, difference, product or quotient of two others, by some rows."""
        rows = self.screen[:, columns].copy()
        for place, j in enumerate(columns):
            rows[np.isin(rows[:, place], list(self.codes[j])), place] = np.nan
        rows = rows[np.argsort((np.isnan(rows) | (rows == 0.0)).sum(axis=1), kind="stable")]
        slack = np.column_stack([slack_of(self.features[j], rows[:, place]) for place, j in enumerate(columns)])
        slack = np.where(np.isnan(slack), 0.0, slack)
        for kind, (sign, compute) in _FORMS.items():
            first = compute(rows[0][:, None], rows[0][None, :])
            for target in range(len(columns)):
                one, other = np.nonzero(~(np.abs(first - rows[0, target]) > slack[0, target]))
                kept = (one != target) & (other != target) & ((one < other) if sign in "+*" else (one != other))
                one, other = one[kept], other[kept]
                at = 1
                while one.size and at < rows.shape[0]:  # more rows at a time the fewer are left
                    some = slice(at, at + max(1, 20_000 // one.size))
                    off = np.abs(compute(rows[some, one], rows[some, other]) - rows[some, [target]])
                    far = (off > slack[some, [target]]).any(axis=0)
                    one, other, at = one[~far], other[~far], some.stop
                for a, b in zip(one.tolist(), other.tolist()):
                    yield kind, columns[target], columns[a], columns[b]

    def _chance_of_sum(self, relation: Relation, columns: Sequence[int], divisor: int | None) -> tuple[float, int]:
        """Return the logarithm of the chance of a sum or quotient, and how many rows show it.

        It is the largest of what the orders of each column tell: how many look different, and in what share of rows the
        relation holds when the column is put in another order.
        """
        holds = resolve_relation(relation, self.schema).holds
        shown = [self._uncoded(rows, columns) for rows in (self.sample, self.matrix)]
        if divisor is not None:
            shown = [each & (rows[:, divisor] != 0.0) for each, rows in zip(shown, (self.sample, self.matrix))]
        rows, n = self.sample[shown[0]], int(shown[0].sum())
        if n < 2:
            return np.inf, 0
        chance = -np.inf
        for j in columns:
            share = 0.0
            for shift in (n // 2, n // 3 + 1):
                turned = rows.copy()
                turned[:, j] = np.roll(rows[:, j], shift)
                share = max(share, (holds(turned).sum() + 1.0) / (n + 1.0))
            different = _log_chance(np.unique(rows[:, j], return_counts=True)[1])
            chance = max(chance, different, n * np.log(share))
        return float(chance), int(shown[1].sum())

    # ---- equations of several columns

    def equations(self, sums: Sequence[Relation]) -> list[Relation]:
        """Return equations of several columns that no others give, with at most a few exceptions."""
        plain = [j for j in self._leads(self.numbers) if self._is_plain(j)]
        n_tried = max(len(self.numbers), 2) ** (MOST_TERMS + 1)
        rows = self._in_units(self.sample)[:, plain]
        candidates: list[tuple[EquationCandidate | None, str, tuple[int, ...]]] = list(self._date_differences())
        if 2 <= len(plain) <= MOST_SUMMED and rows.shape[0] > SUBSET_ROWS // 2:
            slack = np.column_stack([slack_of(self.features[j], rows[:, k]) for k, j in enumerate(plain)])
            fine = self.n_values[plain] > FEW_VALUES
            may_divide = fine & ((rows != 0.0).mean(axis=0) > 0.9)
            decimals = [self.features[j].decimals for j in plain]
            for each in find_candidates(rows, slack, decimals, may_divide):
                places = tuple(plain[k] for k in (*each.inputs, each.target))
                names = [column_text(self.features[j].name) for j in places]
                if None not in names:
                    candidates.append((each, f"{names[-1]} == {each.text.format(*names[:-1])}", places))
        found: dict[
            frozenset[int], list[tuple[float, int, tuple[EquationCandidate | None, Relation, tuple[int, ...]]]]
        ] = {}
        for candidate, says, places in candidates:
            relation = self._checked(
                Relation("equation", says, tuple(self.features[j].name for j in places), 0), places
            )
            if relation is None:
                continue
            if len(places) == 2:  # half a unit beside the truth holds within the rounding, and computes other values
                computes = self._computes(relation, places[1])
                if computes and not relation.exceptions:
                    self.texts[places[0], places[1]] = says  # functions of one column are looked for on their own
                if not computes or not relation.exceptions:
                    continue
            n_forms = n_tried * CONSTANTS ** (candidate.n_constants if candidate is not None else 1)
            chance = self._chance_of_equation(relation, places)
            if chance <= self._least(n_forms):
                relation = replace(relation, chance=self._adjusted(chance, n_forms))
                room = self._room(candidate, places)
                length = len(says) + LONGER * says.count(" - ")  # a sum rather than a difference
                found.setdefault(frozenset(places), []).append((room, length, (candidate, relation, places)))
        return list(self._independent(found, sums))

    def _computes(self, relation: Relation, target: int) -> bool:
        """Return whether a relation computes the values of a column in all rows but its exceptions, as rounded."""
        rows = self.matrix[self._uncoded(self.matrix, [self.schema.names.index(name) for name in relation.columns])]
        computed = resolve_relation(relation, self.schema).solve(rows, target)
        return int((~agree(self.features[target], computed, rows[:, target])).sum()) <= relation.exceptions

    def _independent(self, found: Mapping[Any, Any], sums: Sequence[Relation]) -> Iterator[Relation]:
        """Yield the tightest equation of each set of columns, exact ones first, but those that others give."""
        spans: dict[str, list[Floats]] = {"linear": [], "monomial": []}
        determined: set[int] = set()
        for relation in sums:
            one, other, target = (self.schema.names.index(name) for name in relation.columns)
            sign = 1.0 if relation.kind in ("sum", "product") else -1.0
            form = "linear" if relation.kind in ("sum", "difference") else "monomial"
            spans[form].append(self._vector((one, other, target), (-1.0, 1.0, sign)))
            determined.add(target)
        best = []
        for alike in found.values():
            exact = [each for each in alike if not each[2][1].exceptions]
            best += _tightest(exact or alike)
        best.sort(key=lambda each: (each[1].exceptions > 0, len(each[2]), each[1].exceptions, each[1].says))
        for candidate, relation, places in best:
            if candidate is None or not candidate.weights:
                if places[-1] in determined:
                    continue
            else:
                if _are_related(places, spans[candidate.form]):
                    continue
                spans[candidate.form].append(self._vector(places, candidate.weights))
            determined.add(places[-1])
            if not relation.exceptions:
                self.triples.append((places[-1], *places[:-1]))
                self.explained |= {frozenset((places[-1], j)) for j in places[:-1]}
            yield relation

    def _vector(self, places: Sequence[int], weights: Sequence[float]) -> Floats:
        """Return the coefficients of an equation over all columns; `places` has the target last, `weights` first."""
        vector = np.zeros(len(self.features))
        vector[[places[-1], *places[:-1]]] = weights
        return vector

    def _room(self, candidate: EquationCandidate | None, places: Sequence[int]) -> float:
        """Return how much room an equation leaves, in a unit that all equations of the same columns share."""
        target = self.features[places[-1]]
        if candidate is not None and candidate.form == "linear" and candidate.weights:
            weights = dict(zip((places[-1], *places[:-1]), candidate.weights))
            return resolution(target, *(self.features[j] for j in places)) / abs(weights[min(places)])
        values = self.sample[:, places[-1]]
        values = values[~np.isnan(values) & (values != 0.0)]
        if candidate is not None and candidate.form.startswith("log"):
            return float(np.median(slack_of(target, values)))
        return float(np.median(slack_of(target, values) / np.abs(values))) if values.size else np.inf

    def _checked(self, relation: Relation, columns: Sequence[int], most: float = MOST_EXCEPTIONS) -> Relation | None:
        """Return a relation with the rows that show it and those that break it; None if too many do."""
        try:
            holds = resolve_relation(relation, self.schema).holds
        except InputError:
            return None
        for rows in (self.screen, self.sample, self.matrix):
            shown = self._uncoded(rows, columns)
            broken = shown & ~holds(rows)
            few = self.screen is rows and shown.sum() * most < 5.0
            if broken.sum() > max(most * shown.sum(), 5.0 if few else 0.0):
                return None
        wrong = np.flatnonzero(broken)
        first = tuple(plain_label(self.labels[row]) for row in wrong[:MOST_LABELS])
        return replace(relation, rows=int(shown.sum()) - wrong.size, exceptions=wrong.size, first=first)

    def _chance_of_equation(self, relation: Relation, columns: Sequence[int]) -> float:
        """Return the logarithm of the chance of an equation that some rows may break.

        It is that of `_chance_of_sum`, times the number of ways to choose the rows that break it.
        """
        holds = resolve_relation(relation, self.schema).holds
        rows = self.sample[self._uncoded(self.sample, columns)]
        n = rows.shape[0]
        if n < 2:
            return np.inf
        broken = int((~holds(rows)).sum())
        ways = _log_choices(n, broken)
        chance = -np.inf
        for j in columns:
            share = 0.0
            for shift in (n // 2, n // 3 + 1):
                turned = rows.copy()
                turned[:, j] = np.roll(rows[:, j], shift)
                share = max(share, (holds(turned).sum() + 1.0) / (n + 1.0))
            counts = np.unique(rows[:, j], return_counts=True)[1]
            different = _log_chance(counts) + broken * np.log(counts.size)
            chance = max(chance, different, (n - broken) * np.log(share))
        return float(chance + ways)

    def _date_differences(self) -> Iterator[tuple[None, str, tuple[int, ...]]]:
        """Yield numbers that seem to be days, months or years between two dates, by some rows."""
        dates = [j for j in self._leads(self.numbers) if getattr(self.features[j].dtype, "kind", "O") == "M"]
        plain = [j for j in self._leads(self.numbers) if self._is_plain(j)]
        if not plain:
            return
        targets = self._in_units(self.screen)[:, plain]
        slack = np.column_stack([slack_of(self.features[j], targets[:, k]) for k, j in enumerate(plain)])
        for pair in combinations(dates[:MOST_DATES], 2):
            names = [column_text(self.features[j].name) for j in pair]
            if None in names or self._family(pair[0]) != self._family(pair[1]):
                continue
            later, earlier = names if np.nanmedian(np.diff(self._in_units(self.screen)[:, pair])) < 0 else names[::-1]
            done: set[int] = set()
            for form in DATE_FORMS:
                text = form.format(later, earlier)
                values = _values_of(text, self.screen, self.schema)
                off = np.abs(targets - values[:, None]) > slack
                known = ~np.isnan(targets) & ~np.isnan(values)[:, None]
                right = (off & known).mean(axis=0) <= 2.0 * MOST_EXCEPTIONS
                for k in np.flatnonzero(right & (known.sum(axis=0) > 1)):
                    name = column_text(self.features[plain[k]].name)
                    if name is not None and plain[k] not in done:
                        done.add(plain[k])
                        yield None, f"{name} == {text}", (*pair, plain[k])

    def thresholds(self) -> list[Relation]:
        """Return columns of two values that are those of a number above and below a threshold, with few exceptions."""
        numbers = [j for j in self._leads(self.numbers) if self._is_plain(j)]
        flags = [j for j in self._leads(self.varying) if self._two_values(j) is not None]
        n_tried = len(numbers) * len(flags)
        found: list[Relation] = []
        for x in numbers:
            column = self.screen[:, x]
            known = ~np.isnan(column)
            order = np.argsort(column[known], kind="stable")
            for y in flags:
                if x == y or self._is_explained(x, y):
                    continue
                low, high = self._two_values(y) or (0.0, 0.0)
                is_high = self.screen[known, y][order] == high
                if _split(is_high)[1] > 2.0 * MOST_EXCEPTIONS * is_high.size + 2.0:
                    continue
                relation = self._threshold(x, y, low, high, n_tried)
                found += [] if relation is None else [relation]
        return found

    def _threshold(self, x: int, y: int, low: float, high: float, n_tried: int) -> Relation | None:
        known = ~np.isnan(self.sample[:, [x, y]]).any(axis=1)
        order = np.argsort(self.sample[known, x], kind="stable")
        values, is_high = self.sample[known, x][order], self.sample[known, y][order] == high
        at, errors, rises = _split(is_high)
        rare = min(int(is_high.sum()), int((~is_high).sum()))
        if not 0 < at < values.size or errors > min(MOST_EXCEPTIONS * values.size, rare / 10.0):
            return None
        between = shortest_between(float(np.nextafter(values[at - 1], np.inf)), float(values[at]))
        if between is None:
            return None
        says = self._threshold_text(x, y, between, *((low, high) if rises else (high, low)))
        names = self.features[x].name, self.features[y].name
        chance = _log_choices(values.size, errors) + np.log(2.0 * values.size + 2.0)
        chance += _log_chance(np.array([is_high.sum(), (~is_high).sum()]))
        if says is None or chance > self._least(n_tried):
            return None
        relation = self._checked(Relation("function", says, names, 0, self._adjusted(chance, n_tried)), (x, y))
        return relation if relation is not None and relation.exceptions else None

    def _threshold_text(self, x: int, y: int, at: float, below: float, above: float) -> str | None:
        """Return the text that y is one value from a threshold of x on, and another one below."""
        of, to, feature = column_text(self.features[x].name), column_text(self.features[y].name), self.features[y]
        if of is None or to is None:
            return None
        if feature.is_numeric:
            return f"{to} == if({of} >= {at:.12g}, {above:.12g}, {below:.12g})"
        assert feature.levels is not None
        if [type(each) for each in feature.levels] in ([bool, bool], [np.bool_, np.bool_]):
            return f"{to} == ({of} {'>=' if feature.levels[int(above)] else '<'} {at:.12g})"
        texts = _level(feature, int(above)), _level(feature, int(below))
        return None if None in texts else f"{to} == if({of} >= {at:.12g}, {texts[0]}, {texts[1]})"

    def _two_values(self, j: int) -> tuple[float, float] | None:
        """Return the two values of a column; None if it has more or fewer."""
        if self.n_values[j] != 2:
            return None
        column = self.sample[:, j]
        return float(np.nanmin(column)), float(np.nanmax(column))

    # ---- orders

    def orders(self) -> list[Relation]:
        """Return the orders that all rows keep and no others give."""
        n_tried = len(self.numbers) * (len(self.numbers) - 1)
        family = {j: self._family(j) for j in self.numbers}
        found: dict[tuple[int, int], float] = {}
        self.measured = self._in_units(self.sample)
        screened = self._in_units(self.screen)
        highest, lowest = np.fmax.reduce(screened), np.fmin.reduce(screened)
        for a in self.numbers:
            kept = np.asarray(~(screened[:, [a]] > screened).any(axis=0))
            for b in self.numbers:
                if a == b or not kept[b] or family[a] != family[b] or highest[a] <= lowest[b]:
                    continue
                if self._is_explained(a, b):
                    continue
                chance = self._chance_of_order(a, b)
                if chance <= self._least(n_tried) and self._says_order(a, b) is not None:
                    found[a, b] = chance
        self.ordered = set(found)
        relations = []
        for (a, b), chance in found.items():
            if (b, a) in found or any((a, c) in found and (c, b) in found for c in self.numbers):
                continue
            adjusted = self._adjusted(chance, n_tried)
            says, rows = self._says_order(a, b), int(self._uncoded(self.matrix, (a, b)).sum())
            assert says is not None
            relations.append(Relation("order", says, (self.features[a].name, self.features[b].name), rows, adjusted))
        return relations

    def _chance_of_order(self, a: int, b: int) -> float:
        """Return the logarithm of the share of orders of the rows in which a <= b everywhere; infinite if unknown.

        The rows are taken by rising b: the i-th can have one of those that are left of the a at or below it.
        """
        below, above = _sorted_pairs(self.measured[:, a], self.measured[:, b])
        if not below.size:
            return np.inf
        scale = max(float(np.abs(below).max()), float(np.abs(above).max()))
        gap, spread = above / scale - below / scale, float((above / scale).std())
        near = gap <= NEAR * spread
        if (gap < 0.0).any() or near.all():
            return np.inf
        if near.sum() < max(3.0, FEW_NEAR * gap.size) and share_above(below, above) < BY_CHANCE:
            return np.inf
        possible = np.searchsorted(below, np.sort(above), side="right") - np.arange(gap.size)
        return float(np.log(possible).sum() - _LOG_FACTORIALS[gap.size])

    def soft_orders(self) -> list[Relation]:
        """Return the orders that nearly all rows keep, as `mcce.plausibility.soft_orders` tells; after `orders`."""
        n_tried = len(self.numbers) * (len(self.numbers) - 1)
        screened = self._in_units(self.screen)
        found: dict[tuple[int, int], Relation] = {}
        for a in self.numbers:
            rare = (screened[:, [a]] > screened).sum(axis=0) <= 2.0 * MOST_SOFT * screened.shape[0] + 2.0
            for b in self.numbers:
                if a == b or not rare[b] or (a, b) in self.ordered or self._family(a) != self._family(b):
                    continue
                if self._is_explained(a, b) or share_above(screened[:, a], screened[:, b]) < BY_CHANCE / 2.0:
                    continue
                chance = log_chance_of_soft_order(*_sorted_pairs(self.measured[:, a], self.measured[:, b]))
                if chance > self._least(n_tried):
                    continue
                one, other = (column_text(self.features[j].name) for j in (a, b))
                coded = [name for name, j in ((one, a), (other, b)) if self.codes[j]]
                where = f"if {' and '.join(f'{name} >= 0' for name in coded)} then " if coded else ""
                names = self.features[a].name, self.features[b].name
                relation = Relation("order", f"{where}{one} <= {other}", names, 0, self._adjusted(chance, n_tried))
                checked = None if None in (one, other) else self._checked(relation, (a, b), MOST_SOFT)
                if checked is not None and checked.exceptions:
                    found[a, b] = checked
        every = self.ordered | set(found)
        return [
            relation
            for (a, b), relation in found.items()
            if (b, a) not in every and not any((a, c) in every and (c, b) in every for c in self.numbers)
        ]

    def _says_order(self, a: int, b: int) -> str | None:
        """Return the text of an order that all rows keep; None if they do not."""
        one, other = column_text(self.features[a].name), column_text(self.features[b].name)
        texts = [f"{one} <= {other}"]
        coded = [name for name, j in ((one, a), (other, b)) if self.codes[j]]
        if coded:
            texts.append(f"if {' and '.join(f'{name} >= 0' for name in coded)} then {one} <= {other}")
        if one is None or other is None:
            return None
        names = self.features[a].name, self.features[b].name
        return next((text for text in texts if self._is_kept(Relation("order", text, names, 0))), None)

    # ---- values that come together

    def together(self) -> list[Relation]:
        """Return which marked values come together, with one another and with levels."""
        marks = [(j, value) for j in self.columns for value in self._marked(j)]
        levels = [j for j in self.varying if not self.features[j].is_numeric and self.features[j].n_levels <= 50]
        n_tried = len(marks) * (len(levels) + len(marks))
        if not marks:
            return []
        found: list[Relation] = []
        shown = _marks_of(self.sample, marks)
        chances = [_log_chance(np.bincount(each, minlength=2)) for each in shown.T]
        groups: dict[bytes, int] = {}
        for place, (j, value) in enumerate(marks):
            if chances[place] > self._least(n_tried):
                continue
            is_level = self._is_level(j, value)
            for by in levels:
                if by != j and not is_level:
                    found.extend(self._with_levels(j, value, shown[:, place], by, n_tried))
            first = groups.setdefault(shown[:, place].tobytes(), place)
            i, other = marks[first]
            if (i in levels and not is_level) or (j in levels and is_level and not self._is_level(i, other)):
                continue  # which was found by levels
            if first != place and i != j and (not self._is_explained(i, j) or np.isnan(value)):
                says = self._says_together(i, other, j, value)
                found.extend(self._written_together(says, (i, j), chances[place] + np.log(2.0), n_tried))
        return found

    def soft_together(self, kept: Sequence[Relation]) -> list[Relation]:
        """Return which marked values nearly always come together, far more than by chance; beside those in `kept`.

        Of the patterns of so many marked rows, at most those count that differ from the pattern of the other column in
        as many rows; of a column of levels, from the pattern of any of its sets of levels. No more than a fifth of the
        rarer value may be exceptions.
        """
        marks = [(j, value) for j in self.columns for value in self._marked(j)]
        levels = [j for j in self.varying if not self.features[j].is_numeric and self.features[j].n_levels <= 50]
        if not marks:
            return []
        n_tried = len(marks) * (len(levels) + len(marks))
        shown = _marks_of(self.sample, marks)
        patterns = dict.fromkeys((each.tobytes(), place) for place, each in enumerate(shown.T))
        firsts = [place for place in dict((digest, p) for digest, p in reversed(list(patterns))).values()]
        done = {frozenset(self.schema.names.index(name) for name in each.columns) for each in kept}
        found: dict[frozenset[int], Relation] = {}
        tried = self._soft_pairs(marks, shown, sorted(firsts), levels)
        for errors, n_sets, columns, marked, says in sorted(tried, key=lambda each: each[0]):
            pair = frozenset(columns)
            rare = min(int(marked.sum()), int((~marked).sum()))
            if pair in done or pair in found or self._is_explained(*columns) or not 0 < errors <= rare / 5.0:
                continue
            chance = _log_choices(marked.size, errors) + np.log(2.0) * n_sets
            chance += _log_chance(np.array([marked.sum(), (~marked).sum()]))
            text = says()
            if text is None or chance > self._least(n_tried):
                continue
            names = tuple(self.features[j].name for j in columns)
            relation = Relation("together", text, names, 0, self._adjusted(chance, n_tried))
            checked = self._checked(relation, (), MOST_SOFT)
            if checked is not None and checked.exceptions:
                found[pair] = checked
        return list(found.values())

    def _soft_pairs(
        self, marks: Sequence[tuple[int, float]], shown: Any, firsts: Sequence[int], levels: Sequence[int]
    ) -> Iterator[tuple[int, int, tuple[int, int], Bools, Callable[[], str | None]]]:
        """Yield pairs of a mark and another one, or some levels: errors, ways, columns, marked rows, and the text."""
        n = shown.shape[0]
        held = shown[:, firsts].astype(np.float32)
        counts = held.sum(axis=0)
        differ = counts[:, None] + counts[None, :] - 2.0 * (held.T @ held)
        for at, to in zip(*np.nonzero(np.triu(differ <= MOST_SOFT * n, 1))):
            (i, value), (j, other) = marks[firsts[at]], marks[firsts[to]]
            if i != j:
                says = partial(self._says_together, i, value, j, other)
                yield int(differ[at, to]), 1, (i, j), shown[:, firsts[to]], says
        for by in levels:
            codes = np.where(np.isnan(self.sample[:, by]), -1.0, self.sample[:, by]).astype(np.intp) + 1
            total = np.bincount(codes, minlength=self.features[by].n_levels + 1)
            for place in firsts:
                j, value = marks[place]
                if j == by or self._is_level(j, value):
                    continue
                with_it = np.bincount(codes, shown[:, place], minlength=total.size)
                most = with_it > total / 2.0
                errors = int(np.minimum(with_it, total - with_it).sum())
                if errors <= MOST_SOFT * n and not most[0] and most.any() and not most[total > 0].all():
                    says = partial(self._says_with_levels, by, np.flatnonzero(most[1:]), j, value)
                    yield errors, int((total > 0).sum()), (by, j), shown[:, place], says

    def _says_with_levels(self, by: int, codes: Ints, j: int, value: float) -> str | None:
        """Return the text that a value comes with some levels of another column."""
        texts = [_level(self.features[by], int(code)) for code in codes]
        one, has = column_text(self.features[by].name), self._has(j, value)
        if None in texts or one is None or has is None:
            return None
        where = f"{one} == {texts[0]}" if len(texts) == 1 else f"{one} in [{', '.join(map(str, texts))}]"
        return f"if {where} then {has[0]} else {has[1]}"

    def _with_levels(self, j: int, value: float, marked: Bools, by: int, n_tried: int) -> Iterator[Relation]:
        """Yield the relation that a value comes with some levels of another column, and with no others."""
        codes = self.sample[:, by]
        known = ~np.isnan(codes)
        if not np.isnan(value):
            known &= ~np.isnan(self.sample[:, j])
        total = np.bincount(codes[known].astype(np.intp), minlength=self.features[by].n_levels)
        with_it = np.bincount(codes[known & marked].astype(np.intp), minlength=self.features[by].n_levels)
        mixed = (with_it > 0) & (with_it < total)
        if mixed.any() or not with_it.any() or (with_it == total).all() or self._is_explained(by, j):
            return
        chance = _log_chance(np.array([with_it.sum(), total.sum() - with_it.sum()])) + np.log(2.0) * (total > 0).sum()
        if chance <= self._least(n_tried):
            says = self._says_with_levels(by, np.flatnonzero(with_it > 0), j, value)
            yield from self._written_together(says, (by, j), chance, n_tried)

    def _says_together(self, i: int, value: float, j: int, other: float) -> str | None:
        one, two = self._has(i, value), self._has(j, other)
        return None if one is None or two is None else f"if {one[0]} then {two[0]} else {two[1]}"

    def _has(self, j: int, value: float) -> tuple[str, str] | None:
        """Return the texts that a column has a marked value, and that it does not; None if rules cannot say it."""
        name = column_text(self.features[j].name)
        if name is None:
            return None
        if np.isnan(value):
            return f"missing({name})", f"not missing({name})"
        text = _level(self.features[j], int(value)) if self._is_level(j, value) else f"{value:g}"
        return None if text is None else (f"{name} == {text}", f"{name} != {text}")

    def _is_level(self, j: int, value: float) -> bool:
        return not self._is_number(j) and not np.isnan(value)

    def _written_together(
        self, says: str | None, columns: tuple[int, int], chance: float, n_tried: int
    ) -> Iterator[Relation]:
        if says is None or chance > self._least(n_tried):
            return
        adjusted = self._adjusted(chance, n_tried)
        names = tuple(self.features[j].name for j in columns)
        relation = Relation("together", says, names, self.matrix.shape[0], adjusted)
        if self._is_kept(relation):
            yield relation

    def _marked(self, j: int) -> list[float]:
        """Return the values of a column that may come together with others: 0, codes, frequent levels, and NaN."""
        column = self.sample[:, j]
        found = [np.nan] if np.isnan(column).any() and not np.isnan(column).all() else []
        if j in self.codes:
            found += [value for value in (0.0, *sorted(self.codes[j])) if (column == value).any()]
        if not self._is_number(j) and j in self.varying:
            counts = np.bincount(column[~np.isnan(column)].astype(np.intp), minlength=self.features[j].n_levels)
            frequent = np.flatnonzero(counts >= FREQUENT * column.size)
            found += frequent[np.argsort(-counts[frequent], kind="stable")][:MOST_MARKED].astype(float).tolist()
        return found

    # ---- what is asked of columns

    def _is_explained(self, i: int, j: int) -> bool:
        """Return whether a function or a sum has two columns, or those that they are tied to."""
        i_lead, j_lead = self.lead[i], self.lead[j]
        return i_lead == j_lead or not self.explained.isdisjoint((frozenset((i, j)), frozenset((i_lead, j_lead))))

    def _is_ordered(self, j: int) -> bool:
        return self.features[j].kind != "categorical"

    def _is_number(self, j: int) -> bool:
        return self.features[j].is_numeric

    def _is_plain(self, j: int) -> bool:
        """Return whether a column holds numbers that are no dates."""
        return self._is_number(j) and not is_dated(self.features[j].dtype)

    def _family(self, j: int) -> object:
        dtype = self.features[j].dtype
        return date_family(dtype) if is_dated(dtype) else None

    def _codes(self, values: Floats) -> set[float]:
        """Return the values below 0 of a column that are codes: all that there are, and of the kind of -9 or -99."""
        below = set(np.unique(values[values < 0.0]).tolist())
        return below if below <= CODES and (values >= 0.0).any() else set()

    def _uncoded(self, rows: Floats, columns: Sequence[int]) -> Bools:
        """Return in which rows some columns are known and no codes."""
        held = np.ones(rows.shape[0], dtype=bool)
        for j in columns:
            held &= ~np.isnan(rows[:, j])
            if self.codes.get(j):
                held &= ~np.isin(rows[:, j], list(self.codes[j]))
        return held

    def _in_units(self, rows: Floats) -> Floats:
        """Return rows with codes as missing, and dates of one sort in one unit."""
        found = rows.copy()
        for j in self.numbers:
            if self.codes[j]:
                found[np.isin(found[:, j], list(self.codes[j])), j] = np.nan
            if not self._is_plain(j):
                found[:, j] = self._clocked(j, found[:, j])
        return found

    def _clocked(self, j: int, values: Floats) -> Floats:
        from mcce.constraints.encoding import clock_of, days_of

        feature = self.features[j]
        if getattr(feature.dtype, "kind", "O") == "m":
            times, plus = days_of(feature)
            return values * times + plus
        clock = clock_of(self.schema, feature)
        return values * clock.times[j] + clock.plus[j]

    def _is_kept(self, relation: Relation) -> bool:
        """Return whether every row keeps a relation; not if it cannot be said of these columns."""
        try:
            return bool(resolve_relation(relation, self.schema).holds(self.matrix).all())
        except InputError:
            return False

    def _least(self, n_tried: int) -> float:
        """Return the largest logarithm of a chance that counts."""
        return float(np.log(RATE / FAMILIES / max(n_tried, 1)))

    def _adjusted(self, chance: float, n_tried: int) -> float:
        """Return a chance for all that was tried, from the logarithm of that of one."""
        return float(np.exp(min(0.0, chance + np.log(n_tried * FAMILIES))))

    def _log_chance_of(self, j: int, among: Sequence[int] = ()) -> float:
        """Return the logarithm of the chance of a column's own order, in rows in which some columns are known."""
        known = self._uncoded(self.sample, (j, *among))
        return _log_chance(np.unique(self.sample[known, j], return_counts=True)[1])


def _log_chance(counts: Ints) -> float:
    """Return the logarithm of 1 / (orders of values that look different), of which so many each are equal."""
    return float(_LOG_FACTORIALS[counts].sum() - _LOG_FACTORIALS[counts.sum()])


def _log_choices(n: int, most: int) -> float:
    """Return the logarithm of the number of ways to choose at most some of n rows."""
    some = np.arange(min(most, n) + 1)
    each = _LOG_FACTORIALS[n] - _LOG_FACTORIALS[some] - _LOG_FACTORIALS[n - some]
    return float(each.max() + np.log(np.exp(each - each.max()).sum()))


def _split(is_high: Bools) -> tuple[int, int, bool]:
    """Return where to split rows so that few are on the wrong side, how many are, and whether the high ones follow."""
    n, total = is_high.size, int(is_high.sum())
    before = np.concatenate([[0], np.cumsum(is_high)])
    rising = before + (n - np.arange(n + 1)) - (total - before)  # high ones before, and low ones from there on
    at, down = int(rising.argmin()), int(rising.argmax())
    if rising[at] <= n - rising[down]:
        return at, int(rising[at]), True
    return down, int(n - rising[down]), False


def _are_related(columns: Sequence[int], equations: Sequence[Floats]) -> bool:
    """Return whether some combination of equations, as coefficients over all columns, has none but these columns."""
    if not equations:
        return False
    elsewhere = np.delete(np.array(equations), columns, axis=1)
    return int(np.linalg.matrix_rank(elsewhere)) < int(np.linalg.matrix_rank(np.array(equations)))


def _values_of(text: str, rows: Floats, schema: Schema) -> Floats:
    """Return what a text computes for encoded rows."""
    condition = resolve_rule(rule(f"{text} == 0"), schema).condition
    assert isinstance(condition, Compared)
    return condition.left.of(rows, rows)


def _tightest(found: Sequence[tuple[float, int, T]]) -> list[T]:
    """Return the text of a relation that leaves the least room, if any; each comes with its room and a preference.

    ``monthly == amount / months`` to a cent says more than ``months == amount / monthly`` to half a month: the finest
    column is the one that is determined. Of texts that leave the same room the one with the least preference is taken.
    """
    least = min((room for room, _, _ in found), default=0.0)
    close = [each for each in found if each[0] <= ROOM * least]
    return [min(close, key=lambda each: each[1])[2]] if close else []


def _sorted_pairs(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return two columns where both are known, by the first."""
    known = ~(np.isnan(a) | np.isnan(b))
    order = np.argsort(a[known], kind="stable")
    return a[known][order], b[known][order]


def _quotient(a: Floats, b: Floats) -> Floats:
    return np.where(b == 0.0, np.nan, a / b)


_Form = tuple[str, int, int, int]  # kind, the column that is determined, and the two that it is computed from
# kinds by preference, with the sign, and what it computes
_FORMS: dict[str, tuple[str, Callable[[Floats, Floats], Floats]]] = {
    "sum": ("+", np.add),
    "difference": ("-", np.subtract),
    "product": ("*", np.multiply),
    "quotient": ("/", _quotient),
}


def _marks_of(rows: Floats, marks: Sequence[tuple[int, float]]) -> Any:
    """Return which rows have each marked value."""
    return np.column_stack([np.isnan(rows[:, j]) if np.isnan(value) else rows[:, j] == value for j, value in marks])


def _level(feature: Feature, code: int) -> str | None:
    """Return a level as rules write it; None if they cannot."""
    assert feature.levels is not None
    level = feature.levels[code]
    if isinstance(level, (bool, np.bool_)):
        return "true" if level else "false"
    text = str(level)
    quote = "'" if "'" not in text else '"'
    return f"{quote}{text}{quote}" if quote not in text else None


@dataclass(frozen=True)
class _LinearText:
    """A linear function in words.

    Attributes
    ----------
    slope : its slope.
    length : of the text without names; a quotient counts as longer than a product.
    is_exact : whether the columns lie on a line without rounding, such as 6 k and 7 k.
    is_simple : whether its slope has fewer digits than one that is fitted to rounded values would need.
    """

    says: str
    slope: float
    length: int
    is_exact: bool
    is_simple: bool


def _short_factors(estimate: float) -> Iterator[tuple[int, str, float]]:
    """Yield factors near an estimate with ever more digits, each with its text after a name; divisors as well."""
    if not np.isfinite(estimate) or abs(estimate) < np.finfo(np.float64).tiny:
        return
    for digits in range(1, 13):
        times = float(f"{estimate:.{digits}g}")
        yield digits, f"{abs(times):.12g} * {{}}", times
        if abs(estimate) < 1.0:
            divisor = float(f"{1.0 / estimate:.{digits}g}")
            yield digits, f"{{}} / {abs(divisor):.12g}", 1.0 / divisor


def _linear_text(of: str, to: str, factor: str, times: float, plus: float) -> str:
    """Return the text of a linear function."""
    term = of if abs(times) == 1.0 else factor.format(of)
    if times < 0.0:
        return f"{to} == {plus:.12g} - {term}" if plus >= 0.0 else f"{to} == -{abs(plus):.12g} - {term}"
    if plus == 0.0:
        return f"{to} == {term}"
    return f"{to} == {term} {'+' if plus > 0.0 else '-'} {abs(plus):.12g}"
