"""Search the training rows for ties and relations between columns (`mcce.plausibility.relations`).

The search covers:

1. Copies and exact linear functions of a column: two currencies, age and year of birth.
2. Sums, differences, products and quotients of two columns: ``total == a + b``, ``rate == a / b``.
3. Equations of several columns (`mcce.plausibility.equations`): ``dti == (rent + instalment) / income``; days, months
   and years between two dates.
4. Other functions: a column that another one determines in every row. Linear functions that were rounded, thresholds,
   monotone functions, bands of a number, codes of levels. Columns that determine each other are tied.
5. Orders ``a <= b`` that hold in every row, for numbers and for dates.
6. Values that come together: a number is 0, a code below 0 or missing if and only if another column has one of some
   levels, or is 0, that code or missing as well; a level occurs if and only if another column has a certain level.

Equations and thresholds with at most 1 % of exceptions are proposals: they are listed, not kept. Orders and values that
come together with at most 2 % of exceptions, ratios in a narrow band, and numbers near a formula
(`mcce.plausibility.near`) are soft: they are kept for factuals that satisfy them.

Numbers are compared to half of the last digit of the column. An equation can often be solved for each of its columns.
The tightest form is chosen, so the finest column is the one that is determined: ``monthly == amount / months`` holds to
half a cent, ``months == amount / monthly`` only to half a month. A total rises with its largest part: a function
between columns of the equations in 2 and 3 is kept only if these do not explain it. Columns are visited in the order of
their names, so their order in the table does not matter.

Only rows in which all columns of a relation are known are used. For orders and for 2, codes such as -9 in a column of
otherwise non-negative numbers count as missing.

A relation is reported only if chance does not explain it. The chance is computed under random permutations of a column.
Of n values, of which n_1, n_2, ... are equal, n! / (n_1! n_2! ...) permutations differ: one of them gives a copy, two
give a monotone function, at most m ** k give a function of k values, where m is the number of distinct values. For
a <= b, the permutations that satisfy it are counted; if the ranges do not overlap, these are all. The chance is
multiplied by the number of relations examined (Bonferroni), so that at most one in a hundred tables of independent
columns has any relation (`RATE`). Equal rows count once, and at most some thousand rows count as evidence. An order
that would hold in 19 of 20 rows by chance also needs rows near equality: two numbers that are far apart in every row,
or in all rows except those in which both are 0, are not reported. For equations, the chance is that of the rows in
which the equation holds after a permutation of a column, times the number of equations that can be written with as many
columns and constants, times the number of ways to choose the exceptions. For soft relations see
`mcce.plausibility.soft_orders` and `mcce.plausibility.together`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats
from mcce.constraints.rules import Rule, rule
from mcce.exceptions import AdviceWarning, InputError, spell, warn
from mcce.plausibility.derived import Formula, agree, column_text
from mcce.plausibility.equations import (
    CONSTANTS,
    MOST_TERMS,
    SUBSET_ROWS,
    EquationCandidate,
    find_candidates,
    shortest_between,
)
from mcce.plausibility.near import NearSearch
from mcce.plausibility.orders import OrderSearch
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
from mcce.plausibility.searched_columns import (
    LOG_FACTORIALS,
    MOST_EXCEPTIONS,
    RATE,
    SearchedColumns,
    level_text,
    log_chance,
    log_choices,
    sorted_pairs,
    values_of,
)
from mcce.plausibility.together import TogetherSearch
from mcce.table import Data, Kind, Schema
from mcce.table.frames import own_frame
from mcce.wording import PythonOnly, Setting

MOST_SUMMED = 250  # columns whose sums, differences, products and quotients are tried
FEW_OF_SCREENED = 8  # one in so many screened rows excludes most pairs
LINKED = 5  # columns of a tied group that all others are compared with
MOST_NAMED = 5  # relations in a warning
LONGER = 1000  # penalty of a difference, in characters
FEW_VALUES = 5  # columns with at most this many distinct values are not tried as divisors
MOST_DATES = 20  # date columns whose differences are tried
DATE_FORMS = (
    "days({} - {})",
    "years({} - {})",
    "months({} - {})",
    *(f"{by.format('days({} - {})', days)}" for days in (7, 30, 365, 365.25) for by in ("{} / {}", "floor({} / {})")),
    "12 * days({} - {}) / 365.25",
    "floor(12 * days({} - {}) / 365.25)",
)
T = TypeVar("T")


def find_relations(X: Data, *, kinds: Mapping[Any, Kind] | None = None) -> Relations:
    """Return the ties and relations between the columns of a table that do not hold by chance.

    Copies, linear and monotone functions, codes of levels, thresholds, sums and differences of up to four columns,
    products, quotients, logarithms of these, days, months and years between dates, orders such as ``start <= end``, and
    values that come together (0 if and only if "none"). The items of the result hold in every row. `proposals` are
    equations with at most 1 % of exceptions; `soft` relations are orders, values that come together, narrow bands of
    ratios and numbers near a formula that hold in at least 98 % of the rows. A warning names columns that the others
    predict almost perfectly although no formula was found. The test against chance is described in
    `mcce.plausibility.relation_finder`.

    The finest column of an equation is the determined one, and the order of the columns does not matter. `MCCE.fit`
    searches for relations as well; pass some of these as `relations` to keep only them.

    Parameters
    ----------
    X : DataFrame or two-dimensional array
    kinds : dict or None
        Kinds of some columns, as in `mcce.MCCE`.

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
    """Return the columns of equations and functions, kept or proposed."""
    every = (*found, *found.proposals)
    return {name for each in every if each.kind not in ("order", "together") for name in each.columns}


def find_in(matrix: Floats, schema: Schema, fixed: Sequence[int] = (), derived: Sequence[Formula] = ()) -> Relations:
    """Return the relations in encoded rows, except those of fixed columns only or of a formula's columns; warn of them.

    `derived` are the formulas given by the user.
    """
    names = {schema.names[j] for j in fixed}
    given = [{each.target, *each.inputs} for each in derived]

    def is_new(relation: Relation) -> bool:
        of_formula = relation.kind not in ("order", "together") and any(
            some.issuperset(relation.columns) for some in given
        )
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
    """Warn of formulas with exceptions, and name the setting that would keep them."""
    if not found:
        return
    shown, more, one = _listed(found, "possible formula")
    formulas = {each.columns[-1]: text for each in found[:MOST_NAMED] if (text := _formula_of(each)) is not None}
    remedy = " To compute these columns from the others: ", Setting("derived", formulas), "."
    warn(
        f"{one} of columns found, not kept because some rows violate them: {shown}{more}",
        PythonOnly(" (see relations_.proposals)" if more else ""),
        ".",
        *(remedy if formulas else ()),
        category=AdviceWarning,
    )


def _listed(found: Sequence[Relation], called: str) -> tuple[str, str, str]:
    """Return the first relations in words, the number of further ones, and the number of all."""
    shown = "; ".join(f"{r.says} ({r.exceptions:,} exceptions)" if r.exceptions else r.says for r in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return shown, more, f"1 {called}" if len(found) == 1 else f"{len(found)} {called}s"


def _formula_of(relation: Relation) -> str | None:
    """Return the formula of the last column of a relation, as accepted by `derived` of `mcce.MCCE`, or None."""
    begin = f"{column_text(relation.columns[-1])} == "
    return relation.says[len(begin) :] if relation.table is None and relation.says.startswith(begin) else None


def read_relations(given: Any, matrix: Floats, schema: Schema) -> Relations:
    """Return the relations given by the user: texts of rules, `tied` columns, and relations that were found."""
    if given is False:
        given = ()
    soft = given.soft if isinstance(given, Relations) else ()
    if isinstance(given, (str, Tied, Relation, Rule, Formula)):
        given = [given]
    if given is True or not isinstance(given, Iterable):
        raise InputError(
            f"relations is {spell(given)}; give a list of texts such as 'a <= b', mcce.tied(...) and relations that "
            "were found, () for none, or None to search for them."
        )
    given = list(given)
    if not given:
        return Relations(are_given=True, soft=soft)
    finder = _Finder(matrix, schema)
    found: list[Relation] = []
    for each in given:
        if isinstance(each, Relation):  # proposals as well
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


class _Finder(SearchedColumns):
    """Search for relations in encoded rows."""

    def __init__(self, matrix: Floats, schema: Schema, labels: Sequence[Any] | None = None) -> None:
        super().__init__(matrix, schema, labels)
        self.has_missing = np.asarray(np.isnan(self.screen).any(axis=0))
        self.ordered = np.array([self.is_ordered(j) for j in range(len(self.features))], dtype=bool)
        self.n_functions = 4 * len(self.varying) * (len(self.varying) - 1)  # number tried
        self.chances: dict[tuple[int, int], float] = {}  # log chances of functions
        self.triples: list[tuple[int, ...]] = []  # columns of sums, products etc., the determined one first
        self.texts: dict[tuple[int, int], str] = {}  # texts of functions of one column, such as logarithms

    def relations(self) -> Relations:
        """Return the exact relations, the soft ones and the proposals that chance does not explain."""
        with np.errstate(all="ignore"):  # values that overflow satisfy no relation
            copies, linear, sums = self.copies(), self.linear(), self.sums()
            equations = self.equations(sums)
            functions = self.functions()
            proposals = [each for each in equations if each.exceptions] + self.thresholds()
            exact = [each for each in equations if not each.exceptions]
            orders, together = OrderSearch(self), TogetherSearch(self)
            kept = (*copies, *linear, *functions, *sums, *exact, *orders.exact(), *together.exact())
            near = NearSearch(self, [each.columns for each in (*kept, *proposals) if each.kind not in UNSOLVED])
            soft = (*orders.soft(), *together.soft(kept), *near.soft())
            return Relations(kept, soft=soft, proposals=tuple(proposals))

    def tied(self, names: Sequence[Hashable]) -> Iterator[Relation]:
        """Yield the relations of columns declared as tied, each to the first."""
        places = [self.schema.position(name, "a column of tied(),", "X") for name in names]
        for other in places[1:]:
            yield self._tie(places[0], other)

    def given(self, says: str) -> Relation:
        """Return a relation given by the user as text."""
        relation = Relation("rule", says, ("",), 0)
        resolved = resolve_relation(relation, self.schema)
        return Relation("rule", says, self.names(*resolved.columns), int(resolved.holds(self.matrix).sum()))

    # ---- functions

    def copies(self) -> list[Relation]:
        """Return the copies of columns, each with the first column with the same values; only the first is searched."""
        firsts: dict[Hashable, int] = {}
        found = []
        for y in self.varying:
            digest = hashlib.blake2b((self.matrix[:, y] + 0.0).tobytes()).digest()
            x = firsts.setdefault((digest, self.family(y)), y)
            if x == y or not self._have_equal_values(x, y):
                continue
            self.lead[y] = x
            chance = log_chance(np.unique(self.sample[~np.isnan(self.sample[:, y]), y], return_counts=True)[1])
            if chance <= self.least(self.n_functions):
                found.append(self._write_tie(x, y, self.adjusted(chance, self.n_functions)))
        self.varying, self.numbers = self.leads(self.varying), self.leads(self.numbers)
        return found

    def linear(self) -> list[Relation]:
        """Return exact linear ties.

        A tie that holds only up to rounding may be due to a sum: see `functions`.
        """
        least = self.least(self.n_functions)
        found: list[Relation] = []
        for x in self.leads(self.varying):
            for y in self._find_likely_functions(x) if self.lead[x] == x else ():
                if self.lead[y] != y or self._chance(x, y) > least or self._chance(y, x) > least:
                    continue
                if self._linear_relation(x, y, exact=True) is not None:
                    self.lead[y] = x
            group = sorted((j for j in self.varying if self.lead[j] == x), key=self._fineness)
            found += self._write_ties(group, combinations(group, 2), exact=True)
        return found

    def functions(self) -> list[Relation]:
        """Return ties and one-way functions that do not follow from exact relations; to be called after these."""
        least = self.least(self.n_functions)
        pairs = sorted(self.chances, key=lambda pair: [self.rank[j] for j in pair])
        leads = self.leads(self.varying)
        chances = {pair: self.chances[pair] for pair in pairs if self.chances[pair] <= least and {*leads} >= {*pair}}
        for pair in self._find_by_products(chances):
            chances.pop(pair, None)
        self.explained |= {frozenset(pair) for pair in chances}
        tied = {x: [y for y in leads if x == y or ((x, y) in chances and (y, x) in chances)] for x in leads}
        self.lead = {j: tied[lead][0] if lead in tied else lead for j, lead in self.lead.items()}
        found: list[Relation] = []
        for x in self.leads(leads):
            group = [y for y in tied[x] if self.lead[y] == x]
            found += self._write_ties(group, ((y, z) for y, z in combinations(group, 2) if z in tied[y]))
            for y in self.leads(leads):
                # functions that follow from an intermediate column are omitted
                if (x, y) in chances and not any((x, z) in chances and (z, y) in chances for z in self.leads(leads)):
                    found.append(self._write_function(x, y, self.adjusted(chances[x, y], self.n_functions)))
        return found

    def _write_ties(
        self, group: Sequence[int], pairs: Iterable[tuple[int, int]], exact: bool = False
    ) -> Iterator[Relation]:
        """Yield relations that connect tied columns: linear ones with the shortest texts first, then tables.

        Each column is determined only once where possible, so that all follow from one of them.
        """
        part = {j: j for j in group}
        near = [(x, y) for x, y in pairs if x in group[:LINKED]]  # not all pairs of many columns
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
            adjusted = self.adjusted(chance, self.n_functions)
            yield self._write_table(x, y, True, adjusted) if relation is None else replace(relation, chance=adjusted)

    def _fineness(self, j: int) -> tuple[float, int]:
        """Return the sort key of tied columns: the last digit as a share of the range, coarse columns first."""
        feature = self.features[j]
        return -float(f"{resolution(feature) / feature.span:.6g}"), self.rank[j]

    def _find_by_products(self, functions: Mapping[tuple[int, int], float]) -> set[tuple[int, int]]:
        """Return the functions that are due to sums, products etc.: a total rises with its largest part.

        Between columns that such relations connect, a function is kept if its text has few digits, or if relations
        determine neither column and the third column of a relation is a function of one of the two as well.
        """
        part = {j: j for j in self.lead}  # the first of the columns connected by relations
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

    def _find_likely_functions(self, x: int) -> list[int]:
        """Return the columns that another one seems to determine, judged by a few rows."""
        order = np.argsort(self.screen[:, x], kind="stable")
        order = order[: order.size - int(np.isnan(self.screen[:, x]).sum())]
        values = self.screen[order, x]
        # if most values occur once, any column is a function
        is_distinct = self.ordered[x] and (values[1:] != values[:-1]).sum() + 1 > values.size / 2
        # if values occur once each, only monotone functions and functions with bands are evidence
        repeated = self.sample.shape[0] - self.n_values[x]
        repeats = repeated * np.log(np.maximum(self.n_values, 1)) >= -self.least(self.n_functions)
        seen = np.setdiff1d(self.varying, x)
        for some in (slice(None, None, FEW_OF_SCREENED), slice(None)):  # few rows exclude most columns
            of, rest = values[some], self.screen[order[some][:, None], seen]
            new = np.ones(of.size, dtype=bool)
            new[1:] = of[1:] != of[:-1]
            head = rest[np.maximum.accumulate(np.where(new, np.arange(new.size), 0))]
            kept = ~((rest != head) & ~np.isnan(rest) & ~np.isnan(head)).any(axis=0)
            if is_distinct:
                rises = ~(rest < np.fmax.accumulate(rest)).any(axis=0)
                falls = ~(rest > np.fmin.accumulate(rest)).any(axis=0)
                bands = (rest[1:] != rest[:-1]).sum(axis=0) < self.n_values[seen]
                may_be = bands | repeats[seen] | self.has_missing[seen]
                kept &= rises | falls | (may_be & ~self.ordered[seen])
            seen = seen[kept]
        return sorted(seen.tolist(), key=self.rank.__getitem__)

    def _chance(self, x: int, y: int) -> float:
        if (x, y) not in self.chances:
            self.chances[x, y] = self._chance_of_function(x, y)
        return self.chances[x, y]

    def _chance_of_function(self, x: int, y: int) -> float:
        """Return the log chance that one column looks like a function of another; infinite if it is not a function.

        Values of x that occur in one row only are not evidence, unless y rises or falls with x, is constant over a
        range of x, or equals x.
        """
        for rows in (self.screen, self.sample, self.matrix):  # a few rows exclude most pairs
            a, b = sorted_pairs(rows[:, x], rows[:, y])
            if a.size < 2 or (b[1:] != b[:-1])[a[1:] == a[:-1]].any():
                return np.inf
        monotone = self.is_ordered(x) and self.is_ordered(y) and ((b[1:] >= b[:-1]).all() or (b[1:] <= b[:-1]).all())
        in_bands = self.is_ordered(x) and (b[1:] != b[:-1]).sum() == np.unique(b).size - 1
        are_equal = self._have_equal_values(x, y) and (a == b).all()
        a, b = sorted_pairs(self.sample[:, x], self.sample[:, y])
        _, counts = np.unique(b, return_counts=True)
        ways = [np.unique(a).size * np.log(counts.size)]
        ways += [np.log(2.0)] if monotone else []
        ways += [LOG_FACTORIALS[counts.size]] if in_bands else []
        ways += [0.0] if are_equal else []
        return float(log_chance(counts) + min(ways))

    def _have_equal_values(self, x: int, y: int) -> bool:
        """Return whether equal codes stand for equal values."""
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
        threshold = self._exact_threshold(x, y) if written.says.endswith(f"determines {self.name[y]}") else None
        return written if threshold is None else replace(written, says=threshold, table=None)

    def _exact_threshold(self, x: int, y: int) -> str | None:
        """Return the text of y as a threshold of x, if it holds in every row."""
        table = self._table(x, y)
        steps = np.flatnonzero(table[1:, 1] != table[:-1, 1])
        if steps.size != 1 or not self.is_plain(x):
            return None
        below, above = table[steps[0]], table[steps[0] + 1]
        at = shortest_between(float(np.nextafter(below[0], np.inf)), float(above[0]))
        says = None if at is None else self._threshold_text(x, y, at, below[1], above[1])
        return says if says is not None and self.is_kept(Relation("function", says, self.names(x, y), 0)) else None

    def _write_tie(self, x: int, y: int, chance: float | None) -> Relation:
        """Return the tie of two columns: linear where possible."""
        linear = self._linear_relation(x, y)
        return self._write_table(x, y, True, chance) if linear is None else replace(linear[1], chance=chance)

    def _write_table(self, x: int, y: int, both: bool, chance: float | None) -> Relation:
        names, table = self.names(x, y), self._table(x, y)
        words = f"{names[0]} and {names[1]} go together" if both else self._words(x, y, table)
        kind, rows = "tied" if both else "function", int(self._known(x, y).sum())
        return Relation(kind, words, names, rows, chance, table)

    def _known(self, x: int, y: int) -> Bools:
        """Return in which rows two columns are known."""
        return ~(np.isnan(self.matrix[:, x]) | np.isnan(self.matrix[:, y]))

    def _words(self, x: int, y: int, table: Floats) -> str:
        """Return a function in words: an indicator of x = 0 as a rule, other functions as "x determines y"."""
        level, of_zero = np.unique(table[:, 1]), table[table[:, 0] == 0.0, 1]
        number, name = self.text[x], self.text[y]
        if not self.features[y].is_numeric and level.size == 2 and of_zero.size == 1:
            text = level_text(self.features[y], int(of_zero[0]))
            alone = (table[:, 1] == of_zero[0]).sum() == 1
            zero = "0" if self.features[x].is_numeric else level_text(self.features[x], 0)
            if alone and None not in (number, name, text, zero):
                return f"if {name} == {text} then {number} == {zero} else {number} != {zero}"
        return f"{self.name[x]} determines {self.name[y]}"

    def _table(self, x: int, y: int) -> Floats:
        known = self._known(x, y)
        keys, first = np.unique(self.matrix[known, x], return_index=True)
        return np.column_stack([keys, self.matrix[known, y][first]])

    def _tie(self, x: int, y: int) -> Relation:
        """Return the tie of two columns declared as tied."""
        known = self._known(x, y)
        for a, b in ((x, y), (y, x)):
            pairs = np.unique(self.matrix[known][:, [a, b]], axis=0)
            twice = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
            if twice.size:
                one, other = self.features[a], self.features[b]
                value = one.decode(pairs[twice[:1], 0])[0]
                seen = list(other.decode(pairs[twice[0] : twice[0] + 2, 1]))
                raise InputError(
                    f"tied({spell(self.name[x])}, {spell(self.name[y])}): rows with {one.name} = "
                    f"{spell(value)} have {other.name} = {spell(seen[0])} and {spell(seen[1])}; tied columns "
                    "determine each other. Correct these rows, or give a rule instead."
                )
        if not known.any():
            raise InputError(f"tied(): no row has both {self.name[x]!r} and {self.name[y]!r}.")
        with np.errstate(all="ignore"):
            return self._write_tie(x, y, None)

    def _linear_relation(self, x: int, y: int, both: bool = True, exact: bool = False) -> tuple[int, Relation] | None:
        """Return the linear function of two columns, and the length of its text; None if there is none.

        With `both`, either column may be the determined one; with `exact`, the function must hold without rounding.
        """
        found = []
        for of, to in ((x, y), (y, x)) if both else ((x, y),):
            text = self._linear_text(of, to)
            if text is not None and (text.is_exact or not exact):
                kind = "tied" if both else "function"
                relation = Relation(kind, text.says, self.names(of, to), int(self._known(x, y).sum()))
                room = resolution(self.features[to]) / (abs(text.slope) if to == y else 1.0)  # in units of x
                found.append((room, text.length, (text.length, relation)))
        return next(iter(_tightest(found)), None)

    def _is_simple(self, x: int, y: int, both: bool) -> bool:
        """Return whether two columns have a linear function with fewer digits than a fitted slope would need."""
        texts = [self._linear_text(x, y), self._linear_text(y, x) if both else None]
        return any(text is not None and text.is_simple for text in texts)

    def _linear_text(self, x: int, y: int) -> _LinearText | None:
        """Return the shortest text of y as a linear function of x that holds in all rows; None if there is none."""
        a, b = self.text[x], self.text[y]
        if a is None or b is None or not (self.is_plain(x) and self.is_plain(y)):
            return None
        known = self._known(x, y)
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
                    if not self.is_kept(Relation("tied", says, self.names(x, y), 0)):
                        return None
                    length = len(_linear_text("", "", factor, times, plus)) + factor.count("/")
                    # the share of slopes with this many digits that would fit as well by chance
                    by_chance = 10.0**n_digits * 4.0 * slack.max() / abs(to[high] - to[low])
                    return _LinearText(says, times, length, is_exact, is_exact or by_chance <= RATE)
        return None

    # ---- sums, differences, products and quotients

    def sums(self) -> list[Relation]:
        """Return sums, differences, products and quotients of two columns; one for each set of three columns."""
        plain = [j for j in self.numbers if self.is_plain(j)]
        chance = {j: self.log_chance_of(j) for j in plain}
        n_tried = 3 * len(plain) ** 3
        plain = [j for j in plain if chance[j] <= self.least(n_tried)][: MOST_SUMMED + 1]
        if not 3 <= len(plain) <= MOST_SUMMED:
            return []
        forms: dict[tuple[bool, frozenset[int]], list[_Form]] = {}
        for form in self._screened_sums(plain):
            forms.setdefault((form[0] in ("product", "quotient"), frozenset(form[1:])), []).append(form)
        found: list[Relation] = []
        done: set[frozenset[int]] = set()
        for (_, columns), alike in forms.items():
            three = frozenset(self.lead[j] for j in columns)
            if len(three) < 3 or three in done or any(self.is_explained(*pair) for pair in combinations(columns, 2)):
                continue
            for (kind, *places), relation in self._written(alike):
                divisor = places[2] if kind == "quotient" else None
                p_value = self.chance_of_equation(relation, places, divisor)
                if p_value <= self.least(n_tried):
                    rows = int(self.shown(self.matrix, places, divisor).sum())
                    found.append(replace(relation, rows=rows, chance=self.adjusted(p_value, n_tried)))
                    done.add(three)
                    self.triples.append(tuple(places))
        for triple in self.triples:
            self.explained |= {frozenset(pair) for pair in combinations(triple, 2)}
            self.explained |= {frozenset(pair) for pair in combinations([self.lead[j] for j in triple], 2)}
        return found

    def _written(self, forms: Sequence[_Form]) -> list[tuple[_Form, Relation]]:
        """Return the tightest of the forms of a relation of three columns that hold in all rows, if any does.

        Of equally tight forms, the one that more rows satisfy to the last bit is chosen, and a sum rather than a
        difference.
        """
        kept = []
        for form in forms:
            kind, target, one, other = form
            texts = [self.text[j] for j in (target, one, other)]
            says = f"{texts[0]} == {texts[1]} {_FORMS[kind][0]} {texts[2]}"
            relation = Relation(kind, says, self.names(one, other, target), 0)
            if None in texts or not self.is_kept(relation):
                continue
            values, room = self.sample[:, target], resolution(*(self.features[j] for j in (target, one, other)))
            if kind in ("product", "quotient"):  # relative to the value, as the columns have no common unit
                some = values[values != 0.0]
                room = float(np.nanmedian(slack_of(self.features[target], some) / np.abs(some)))
            computed = _FORMS[kind][1](self.sample[:, one], self.sample[:, other])
            kept.append((room, -int((computed == values).sum()), (form, relation)))
        return _tightest(kept)

    def _screened_sums(self, columns: Sequence[int]) -> Iterator[_Form]:
        """Yield columns that seem to be the sum, difference, product or quotient of two others, judged by some rows."""
        rows = self.screen[:, columns].copy()
        for place, j in enumerate(columns):
            rows[np.isin(rows[:, place], list(self.codes[j])), place] = np.nan
        rows = rows[np.argsort((np.isnan(rows) | (rows == 0.0)).sum(axis=1), kind="stable")]
        slack = self.slack(rows, columns)
        slack = np.where(np.isnan(slack), 0.0, slack)
        for kind, (sign, compute) in _FORMS.items():
            first = compute(rows[0][:, None], rows[0][None, :]).ravel()
            order = np.argsort(first)  # missing results last
            ordered = first[order]
            ends = rows[0] + np.outer((-1.0, 1.0), slack[0] + 1e-9 * np.abs(rows[0]))  # checked exactly below
            low, high = np.searchsorted(ordered, ends[0], "left"), np.searchsorted(ordered, ends[1], "right")
            unknown = order[np.searchsorted(ordered, np.nan) :]
            for target in range(len(columns)):
                near = (
                    order if np.isnan(rows[0, target]) else np.concatenate([order[low[target] : high[target]], unknown])
                )
                one, other = np.divmod(np.sort(near), len(columns))
                kept = (one != target) & (other != target) & ((one < other) if sign in "+*" else (one != other))
                one, other = one[kept], other[kept]
                at = 0
                while one.size and at < rows.shape[0]:  # the fewer pairs are left, the more rows per step
                    some = slice(at, at + max(1, 20_000 // one.size))
                    off = np.abs(compute(rows[some, one], rows[some, other]) - rows[some, [target]])
                    far = (off > slack[some, [target]]).any(axis=0)
                    one, other, at = one[~far], other[~far], some.stop
                for a, b in zip(one.tolist(), other.tolist()):
                    yield kind, columns[target], columns[a], columns[b]

    # ---- equations of several columns

    def equations(self, sums: Sequence[Relation]) -> list[Relation]:
        """Return equations of several columns that do not follow from others, with at most a few exceptions."""
        plain = [j for j in self.leads(self.numbers) if self.is_plain(j)]
        n_tried = max(len(self.numbers), 2) ** (MOST_TERMS + 1)
        rows = self.in_units(self.sample)[:, plain]
        candidates: list[tuple[EquationCandidate | None, str, tuple[int, ...]]] = list(self._date_differences())
        if 2 <= len(plain) <= MOST_SUMMED and rows.shape[0] > SUBSET_ROWS // 2:
            fine = self.n_values[plain] > FEW_VALUES
            may_divide = fine & ((rows != 0.0).mean(axis=0) > 0.9)
            decimals = [self.features[j].decimals for j in plain]
            for each in find_candidates(rows, self.slack(rows, plain), decimals, may_divide):
                places = tuple(plain[k] for k in (*each.inputs, each.target))
                texts = [self.text[j] for j in places]
                if None not in texts:
                    candidates.append((each, f"{texts[-1]} == {each.text.format(*texts[:-1])}", places))
        found: dict[
            frozenset[int], list[tuple[float, int, tuple[EquationCandidate | None, Relation, tuple[int, ...]]]]
        ] = {}
        for candidate, says, places in candidates:
            relation = self.checked(Relation("equation", says, self.names(*places), 0), places)
            if relation is None:
                continue
            if len(places) == 2:  # an equation off by half a unit holds within the rounding, but computes other values
                computes = self._computes(relation, places[1])
                if computes and not relation.exceptions:
                    self.texts[places[0], places[1]] = says  # functions of one column have a separate search
                if not computes or not relation.exceptions:
                    continue
            n_forms = n_tried * CONSTANTS ** (candidate.n_constants if candidate is not None else 1)
            chance = self.chance_of_equation(relation, places)
            if chance <= self.least(n_forms):
                relation = replace(relation, chance=self.adjusted(chance, n_forms))
                room = self._room(candidate, places)
                length = len(says) + LONGER * says.count(" - ")  # sums are preferred to differences
                found.setdefault(frozenset(places), []).append((room, length, (candidate, relation, places)))
        return list(self._independent(found, sums))

    def _computes(self, relation: Relation, target: int) -> bool:
        """Return whether a relation computes the rounded values of a column in all rows except its exceptions."""
        rows = self.matrix[self.uncoded(self.matrix, self.places(relation))]
        computed = resolve_relation(relation, self.schema).solve(rows, target)
        return int((~agree(self.features[target], computed, rows[:, target])).sum()) <= relation.exceptions

    def _independent(self, found: Mapping[Any, Any], sums: Sequence[Relation]) -> Iterator[Relation]:
        """Yield the tightest equation of each set of columns, exact ones first, if it does not follow from others."""
        spans: dict[str, list[Floats]] = {"linear": [], "monomial": []}
        determined: set[int] = set()
        for relation in sums:
            one, other, target = self.places(relation)
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
        """Return the tolerance of an equation, in a unit shared by all equations of the same columns."""
        target = self.features[places[-1]]
        if candidate is not None and candidate.form == "linear" and candidate.weights:
            weights = dict(zip((places[-1], *places[:-1]), candidate.weights))
            return resolution(target, *(self.features[j] for j in places)) / abs(weights[min(places)])
        values = self.sample[:, places[-1]]
        values = values[~np.isnan(values) & (values != 0.0)]
        if candidate is not None and candidate.form.startswith("log"):
            return float(np.median(slack_of(target, values)))
        return float(np.median(slack_of(target, values) / np.abs(values))) if values.size else np.inf

    def _date_differences(self) -> Iterator[tuple[None, str, tuple[int, ...]]]:
        """Yield numbers that seem to be days, months or years between two dates, judged by some rows."""
        dates = [j for j in self.leads(self.numbers) if getattr(self.features[j].dtype, "kind", "O") == "M"]
        plain = [j for j in self.leads(self.numbers) if self.is_plain(j)]
        if not plain:
            return
        targets = self.in_units(self.screen)[:, plain]
        slack = self.slack(targets, plain)
        for pair in combinations(dates[:MOST_DATES], 2):
            texts = [self.text[j] for j in pair]
            if None in texts or self.family(pair[0]) != self.family(pair[1]):
                continue
            later, earlier = texts if np.nanmedian(np.diff(self.in_units(self.screen)[:, pair])) < 0 else texts[::-1]
            done: set[int] = set()
            for form in DATE_FORMS:
                text = form.format(later, earlier)
                values = values_of(text, self.screen, self.schema)
                off = np.abs(targets - values[:, None]) > slack
                known = ~np.isnan(targets) & ~np.isnan(values)[:, None]
                right = (off & known).mean(axis=0) <= 2.0 * MOST_EXCEPTIONS
                for k in np.flatnonzero(right & (known.sum(axis=0) > 1)):
                    name = self.text[plain[k]]
                    if name is not None and plain[k] not in done:
                        done.add(plain[k])
                        yield None, f"{name} == {text}", (*pair, plain[k])

    def thresholds(self) -> list[Relation]:
        """Return columns with two values that depend on a threshold of a number, with few exceptions."""
        numbers = [j for j in self.leads(self.numbers) if self.is_plain(j)]
        flags = {j: two for j in self.leads(self.varying) if (two := self._two_values(j)) is not None}
        n_tried = len(numbers) * len(flags)
        found: list[Relation] = []
        for x in numbers:
            column = self.screen[:, x]
            known = ~np.isnan(column)
            order = np.argsort(column[known], kind="stable")
            for y, (low, high) in flags.items():
                if x == y or self.is_explained(x, y):
                    continue
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
        chance = log_choices(values.size, errors) + np.log(2.0 * values.size + 2.0)
        chance += log_chance(np.array([is_high.sum(), (~is_high).sum()]))
        if says is None or chance > self.least(n_tried):
            return None
        relation = self.checked(Relation("function", says, self.names(x, y), 0, self.adjusted(chance, n_tried)), (x, y))
        return relation if relation is not None and relation.exceptions else None

    def _threshold_text(self, x: int, y: int, at: float, below: float, above: float) -> str | None:
        """Return the text that y has one value if x is at or above a threshold, and another one below."""
        of, to, feature = self.text[x], self.text[y], self.features[y]
        if of is None or to is None:
            return None
        if feature.is_numeric:
            return f"{to} == if({of} >= {at:.12g}, {above:.12g}, {below:.12g})"
        assert feature.levels is not None
        if [type(each) for each in feature.levels] in ([bool, bool], [np.bool_, np.bool_]):
            return f"{to} == ({of} {'>=' if feature.levels[int(above)] else '<'} {at:.12g})"
        texts = level_text(feature, int(above)), level_text(feature, int(below))
        return None if None in texts else f"{to} == if({of} >= {at:.12g}, {texts[0]}, {texts[1]})"

    def _two_values(self, j: int) -> tuple[float, float] | None:
        """Return the two values of a column; None if it has more or fewer."""
        if self.n_values[j] != 2:
            return None
        column = self.sample[:, j]
        return float(np.nanmin(column)), float(np.nanmax(column))


def _split(is_high: Bools) -> tuple[int, int, bool]:
    """Return the split with the fewest rows on the wrong side, their number, and whether high values come last."""
    n, total = is_high.size, int(is_high.sum())
    before = np.concatenate([[0], np.cumsum(is_high)])
    rising = before + (n - np.arange(n + 1)) - (total - before)  # high values before, low after
    at, down = int(rising.argmin()), int(rising.argmax())
    if rising[at] <= n - rising[down]:
        return at, int(rising[at]), True
    return down, int(n - rising[down]), False


def _are_related(columns: Sequence[int], equations: Sequence[Floats]) -> bool:
    """Return whether a linear combination of equations (coefficients over all columns) has only these columns."""
    if not equations:
        return False
    elsewhere = np.delete(np.array(equations), columns, axis=1)
    return int(np.linalg.matrix_rank(elsewhere)) < int(np.linalg.matrix_rank(np.array(equations)))


def _tightest(found: Sequence[tuple[float, int, T]]) -> list[T]:
    """Return the tightest text of a relation, if any; each comes with its tolerance and a preference.

    ``monthly == amount / months`` to a cent is sharper than ``months == amount / monthly`` to half a month: the finest
    column is the determined one. Of equally tight texts, the one with the smallest preference is chosen.
    """
    least = min((room for room, _, _ in found), default=0.0)
    close = [each for each in found if each[0] <= ROOM * least]
    return [min(close, key=lambda each: each[1])[2]] if close else []


def _quotient(a: Floats, b: Floats) -> Floats:
    return np.where(b == 0.0, np.nan, a / b)


_Form = tuple[str, int, int, int]  # kind, the determined column, and the two columns that it is computed from
# kinds in order of preference, with the operator and its function
_FORMS: dict[str, tuple[str, Callable[[Floats, Floats], Floats]]] = {
    "sum": ("+", np.add),
    "difference": ("-", np.subtract),
    "product": ("*", np.multiply),
    "quotient": ("/", _quotient),
}


@dataclass(frozen=True)
class _LinearText:
    """A linear function in words.

    Attributes
    ----------
    slope : its slope.
    length : length of the text without names; a quotient counts as longer than a product.
    is_exact : whether the columns lie on a line without rounding, such as 6 k and 7 k.
    is_simple : whether its slope has fewer digits than a slope fitted to rounded values would need.
    """

    says: str
    slope: float
    length: int
    is_exact: bool
    is_simple: bool


def _short_factors(estimate: float) -> Iterator[tuple[int, str, float]]:
    """Yield factors near an estimate with an increasing number of digits, each with its text; divisors as well."""
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
