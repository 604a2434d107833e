"""Relations between columns, as texts, and how counterfactuals keep those that their factual satisfies.

1. A relation is ``column == expression`` in the language of `mcce.rule` (it holds if the column equals the expression
   up to half of the column's last digit), another condition such as ``a <= b``, or a map: ``a -> b`` (equal values of a
   have equal values of b in the training rows) and ``a <-> b`` (both ways). A row with a missing value in a relation
   keeps it.
2. `Relations.complete(rows, factuals)`: where a change breaks an equation or map that the factual satisfies, it is
   solved for its last mutable unchanged column (in the arranged order) that has a solution in the training range. A
   solved column counts as changed, so the equations of a chain are solved one after the other.
3. `Relations.holds(rows, factuals)`: whether a row keeps every relation that its factual keeps.

Equations are solved numerically: most are linear in each column, or in its reciprocal, and each solution is verified.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mcce._utils import Bools, Floats, Ints
from mcce.constraints.formula import Formula, bind
from mcce.constraints.grammar import parse
from mcce.distances import changed
from mcce.exceptions import InputError, did_you_mean, spell, warn
from mcce.plausibility.derived import tolerance, usual_step
from mcce.table import Feature, Schema

MANY_BROKEN = 0.1  # share of training rows that break a relation of the user, above which a warning is issued
MOST_LEVELS = 200  # levels that are tried when an equation is solved for a column of levels
_NAME = r"(`[^`]+`|[^`\s][^`]*?)"
_MAP = re.compile(rf"\s*{_NAME}\s*(<->|->)\s*{_NAME}\s*", re.DOTALL)


@dataclass(frozen=True)
class Relation:
    """A condition on rows; a relation that can be solved for columns overrides `solve`."""

    text: str
    columns: tuple[int, ...]
    schema: Schema = field(repr=False, compare=False)

    def holds(self, rows: Floats) -> Bools:
        """Return which rows keep the relation."""
        raise NotImplementedError

    def solve(self, rows: Floats, column: int) -> Floats:
        """Return the values of a column with which the relation holds; missing where none is known."""
        return np.full(len(rows), np.nan)

    def solutions(self, rows: Floats, column: int) -> tuple[Floats, Bools]:
        """Return the solutions for a column on its grid, and in which rows they are in the training range and hold."""
        feature = self.schema.features[column]
        values = feature.round(self.solve(rows, column))
        tried = rows.copy()
        tried[:, column] = values
        with np.errstate(invalid="ignore"):
            is_solved = (values >= feature.low) & (values <= feature.high)
        return values, np.asarray(is_solved & self.holds(tried))

    def _is_known(self, rows: Floats) -> Bools:
        return np.asarray(~np.isnan(rows[:, list(self.columns)]).any(axis=1))


@dataclass(frozen=True)
class Condition(Relation):
    """A condition that is checked and not solved, such as ``a <= b``."""

    formula: Formula = field(repr=False, compare=False, kw_only=True)

    def holds(self, rows: Floats) -> Bools:
        """Return in which rows the condition holds or a value is missing."""
        return np.asarray(self.formula.holds(rows) | ~self._is_known(rows))


@dataclass(frozen=True)
class Equation(Relation):
    """``target == formula``, up to half of `step`, the last digit of the target; None for continuous numbers."""

    target: int = field(kw_only=True)
    step: float | None = field(kw_only=True)
    formula: Formula = field(repr=False, compare=False, kw_only=True)

    @property
    def _feature(self) -> Feature:
        return self.schema.features[self.target]

    def computes(self, rows: Floats) -> Bools:
        """Return in which rows the formula gives the target, rounded to the nearest number, half up and half down."""
        values, step = self.formula.encode(rows, self._feature), self.step
        if step is None or not self._feature.is_numeric:
            return self.holds(rows)[:, None]
        steps, targets = values / step, rows[:, self.target] / step
        near = np.rint(steps)
        is_tie = np.abs(np.abs(steps - np.trunc(steps)) - 0.5) < 1e-9 * np.maximum(np.abs(steps), 1.0)
        rounded = [near, np.where(is_tie, np.floor(steps) + 1.0, near), np.where(is_tie, np.floor(steps), near)]
        is_equal = np.column_stack([np.abs(whole - targets) < 0.5 for whole in rounded])
        return is_equal | ~np.isfinite(steps - targets)[:, None]

    def _excess(self, rows: Floats) -> Floats:
        """Return by how much the target exceeds the formula."""
        return rows[:, self.target] - self.formula.encode(rows, self._feature)

    def holds(self, rows: Floats) -> Bools:
        """Return in which rows the target is the formula's value, rounded, or one of them is missing."""
        excess = self._excess(rows)
        if not self._feature.is_numeric:
            return np.asarray((excess == 0.0) | np.isnan(excess))
        with np.errstate(invalid="ignore"):
            slack = tolerance(self._feature, rows[:, self.target], 0.5000001, self.step)
            return np.asarray((np.abs(excess) <= slack) | np.isnan(excess))

    def solve(self, rows: Floats, column: int) -> Floats:
        """Return the value of the formula, or the root for another column."""
        if column == self.target:
            return self.formula.encode(rows, self._feature)
        feature = self.schema.features[column]
        if not feature.is_numeric:
            return self._try_levels(rows, column)
        linear = self._root(rows, column, feature.low, feature.low + (feature.span or 1.0), np.positive)
        largest = max(abs(feature.low), abs(feature.high)) or 1.0
        inverse = self._root(rows, column, largest, largest / 2.0, np.reciprocal)
        tried = rows.copy()
        tried[:, column] = linear if feature.grid is None else feature.grid.round(linear)
        return np.where(self.holds(tried), linear, inverse)

    def _root(self, rows: Floats, column: int, first: float, second: float, of: Any) -> Floats:
        """Return the column's value at which the excess, linear in a function of the column, is 0."""
        tried = rows.copy()
        tried[:, column] = first
        at_first = self._excess(tried)
        tried[:, column] = second
        at_second = self._excess(tried)
        with np.errstate(all="ignore"):
            root = of(of(first) - at_first * (of(second) - of(first)) / (at_second - at_first))
        return np.where(np.isfinite(root), root, np.nan)

    def _try_levels(self, rows: Floats, column: int) -> Floats:
        """Return the only level with which the equation holds."""
        n_levels = self.schema.features[column].n_levels
        solution, n_solutions = np.full(len(rows), np.nan), np.zeros(len(rows), dtype=np.int64)
        tried = rows.copy()
        for code in range(n_levels if n_levels <= MOST_LEVELS else 0):
            tried[:, column] = code
            is_solved = self.holds(tried)
            solution[is_solved] = code
            n_solutions += is_solved
        return np.where(n_solutions == 1, solution, np.nan)


@dataclass(frozen=True)
class Map(Relation):
    """``a -> b``: the value of a determines that of b; with `both`, ``a <-> b``.

    Attributes
    ----------
    pairs : the values of a, ascending, each with its value of b.
    """

    pairs: Floats = field(repr=False, compare=False, kw_only=True)
    both: bool = field(kw_only=True)

    def holds(self, rows: Floats) -> Bools:
        """Return which rows hold a pair of the training rows, or a missing value."""
        a, b = self.columns
        return (_look_up(self.pairs, rows[:, a]) == rows[:, b]) | ~self._is_known(rows)

    def solve(self, rows: Floats, column: int) -> Floats:
        """Return the value that belongs to that of the other column."""
        a, b = self.columns
        if column == b:
            return _look_up(self.pairs, rows[:, a])
        if not self.both:
            return np.full(len(rows), np.nan)
        turned = self.pairs[:, ::-1]
        return _look_up(turned[np.argsort(turned[:, 0], kind="stable")], rows[:, b])


def _look_up(pairs: Floats, values: Floats) -> Floats:
    """Return the partner of each value; missing for unknown ones."""
    at = np.minimum(np.searchsorted(pairs[:, 0], values), len(pairs) - 1)
    return np.where(pairs[at, 0] == values, pairs[at, 1], np.nan)


def majority_pairs(a: Floats, b: Floats) -> tuple[Floats, int]:
    """Return each value of a with its most frequent value of b, and the number of rows with another one."""
    is_known = ~(np.isnan(a) | np.isnan(b))
    pairs, counts = np.unique(np.column_stack([a[is_known], b[is_known]]), axis=0, return_counts=True)
    order = np.lexsort((pairs[:, 1], -counts, pairs[:, 0]))
    is_first = np.ones(order.size, dtype=bool)
    is_first[1:] = pairs[order[1:], 0] != pairs[order[:-1], 0]
    chosen = order[is_first]
    return pairs[chosen], int(is_known.sum() - counts[chosen].sum())


def read_relation(text: str, schema: Schema, training: Floats) -> Relation:
    """Return the relation of a text; a map is learned from the encoded training rows."""
    if not isinstance(text, str):
        raise InputError(f"relations holds {spell(text)}; give texts such as 'total == rent + food' or 'start <= end'.")
    arrow = _MAP.fullmatch(text)
    if arrow is not None:
        a, b = (_position(name, schema, text) for name in (arrow[1], arrow[3]))
        pairs, _ = majority_pairs(training[:, a], training[:, b])
        both = arrow[2] == "<->"
        if both:  # a value of b with several partners belongs to the most frequent
            back, _ = majority_pairs(training[:, b], training[:, a])
            pairs = pairs[_look_up(back, pairs[:, 1]) == pairs[:, 0]]
        if not len(pairs):
            raise InputError(f"relation {spell(text)}: no training row has both columns; leave it out.")
        return Map(text.strip(), (a, b), schema, pairs=pairs, both=both)
    expression = parse(text, "relation")
    formula = bind(expression, schema, may_read_factual=False)
    formula.holds(np.empty((0, len(schema.features))))  # raises if it is no condition
    if not formula.columns:
        raise InputError(f"relation {spell(text)} reads no column; leave it out.")
    tree = expression.tree
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq):
        for target, other in ((tree.left, tree.comparators[0]), (tree.comparators[0], tree.left)):
            if expression.name(target) is not None and not isinstance(target, ast.Constant):
                (column,) = bind(replace(expression, tree=target), schema).columns or (None,)
                value = bind(replace(expression, tree=other), schema)
                if column is not None and column not in value.columns and value.columns:
                    step = usual_step(schema.features[column], training[:, column])
                    return Equation(text.strip(), formula.columns, schema, target=column, step=step, formula=value)
    return Condition(text.strip(), formula.columns, schema, formula=formula)


def _position(name: str, schema: Schema, text: str) -> int:
    plain = name.strip().removeprefix("`").removesuffix("`")
    matches = [j for j, column in enumerate(schema.names) if str(column) == plain]
    if len(matches) != 1:
        raise InputError(f"relation {spell(text)}: {spell(plain)} is not a column; {did_you_mean(plain, schema.names)}")
    return matches[0]


@dataclass(frozen=True)
class Relations:
    """Relations between the columns of a table; made by `mcce.find_relations` and `Relations.read`.

    Attributes
    ----------
    relations : the relations, in the order in which they are solved.
    broken : by relation, the number of training rows that break it.
    kept_columns : columns that are not solved for: fixed ones and derived ones.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from mcce.plausibility.relations import Relations
    >>> from mcce.table import Schema
    >>> X = pd.DataFrame({"rent": [3, 5, 9], "food": [2, 2, 7], "total": [5, 7, 16]})
    >>> schema = Schema.from_data(X)
    >>> relations = Relations.read(["total == rent + food"], schema, schema.encode(X).matrix)
    >>> relations.complete(np.array([[4.0, 2.0, 5.0], [3.0, 2.0, 6.0]]), schema.encode(X).matrix[[0, 0]]).tolist()
    [[4.0, 2.0, 6.0], [3.0, 3.0, 6.0]]
    """

    relations: tuple[Relation, ...] = ()
    broken: tuple[int, ...] = ()
    kept_columns: frozenset[int] = frozenset()

    @classmethod
    def read(
        cls,
        texts: str | Iterable[str] | Relations,
        schema: Schema,
        training: Floats,
        n_fixed: int = 0,
        derived: Sequence[int] | Ints = (),
    ) -> Relations:
        """Return the relations of texts (or of `find_relations`) for the columns of a table.

        Parameters
        ----------
        texts : texts
        schema : the arranged columns, the fixed ones first.
        training : encoded training rows.
        n_fixed : number of fixed columns.
        derived : positions of the derived columns, which formulas compute.
        """
        if isinstance(texts, str):
            texts = [texts]
        if not isinstance(texts, Iterable):
            raise InputError(
                f"relations is {spell(texts)}; give a list of texts such as 'a <= b', () for none, or None to find "
                "them."
            )
        by_text = {str(text): read_relation(text, schema, training) for text in texts}
        relations = tuple(relation for relation in by_text.values() if max(relation.columns) >= n_fixed)
        broken = tuple(int((~relation.holds(training)).sum()) for relation in relations)
        for relation, n_broken in zip(relations, broken):
            if n_broken > MANY_BROKEN * len(training):
                rows = f"{n_broken:,} of {len(training):,} training rows break the relation {spell(relation.text)}"
                warn(f"{rows}; it is kept only for rows that satisfy it. Correct it, or leave it out.")
        return cls(relations, broken, frozenset(range(n_fixed)) | frozenset(int(j) for j in derived))

    def __bool__(self) -> bool:
        return bool(self.relations)

    def __len__(self) -> int:
        return len(self.relations)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __repr__(self) -> str:
        notes = [f"  (broken by {n:,} training rows)" if n else "" for n in self.broken]
        lines = [relation.text + note for relation, note in zip(self.relations, notes)]
        return "\n".join(lines) or "no relations"

    @property
    def texts(self) -> tuple[str, ...]:
        """The relations as texts, which `relations=` accepts."""
        return tuple(relation.text for relation in self.relations)

    def holds(self, rows: Floats, factuals: Floats) -> Bools:
        """Return which rows keep every relation that their factual keeps; `factuals` are paired with rows."""
        is_kept = np.ones(len(rows), dtype=bool)
        for relation in self.relations:
            breaking = np.flatnonzero(is_kept)
            breaking = breaking[~relation.holds(rows[breaking])]
            is_kept[breaking] = ~relation.holds(factuals[breaking])
        return is_kept

    def complete(self, rows: Floats, factuals: Floats) -> Floats:
        """Return rows in which the equations and maps that changes broke are solved for another column."""
        solvable = [relation for relation in self.relations if not isinstance(relation, Condition)]
        if not solvable:
            return rows
        rows = rows.copy(order="K")
        is_changed = changed(rows, factuals)
        for _ in solvable:  # a solved column may break another relation
            n_solved = sum(self._solve(relation, rows, factuals, is_changed) for relation in solvable)
            if not n_solved:
                break
        return rows

    def _solve(self, relation: Relation, rows: Floats, factuals: Floats, is_changed: Bools) -> int:
        """Solve one relation in the rows that break it, in place; return in how many."""
        broken = np.flatnonzero(is_changed[:, list(relation.columns)].any(axis=1))
        broken = broken[~relation.holds(rows[broken])]
        broken = broken[relation.holds(factuals[broken])]
        n_solved = 0
        for column in sorted(set(relation.columns) - self.kept_columns, reverse=True):
            unchanged = broken[~is_changed[broken, column]]
            if not unchanged.size:
                continue
            values, is_solved = relation.solutions(rows[unchanged], column)
            solved = unchanged[is_solved]
            rows[solved, column] = values[is_solved]
            is_changed[solved, column] = True
            n_solved += solved.size
            broken = broken[~np.isin(broken, solved)]
        return n_solved
