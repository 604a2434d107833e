"""The nodes of a fitted tree with the names and levels of its columns: rules, values and numbers as R writes them.

party numbers nodes parents first, left before right; for CART the children of k are 2k and 2k + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.table import Feature
from mcce.table.dtypes import date_text, is_dated
from mcce.table.weights import mean_of
from mcce.trees.ctree.tree import CtreeTree
from mcce.trees.kernels import LEAF
from mcce.trees.rpart.kernels import ABSENT
from mcce.trees.rpart.tree import RpartTree
from mcce.trees.tree import Tree


@dataclass(frozen=True, repr=False)
class Nodes:
    """The arrays of a tree and its columns; `mcce.trees.display.FittedTree` explains the attributes."""

    tree: Tree
    given: Sequence[Feature]
    target: Feature
    values: Floats
    weights: Floats | None = None

    @property
    def n_leaves(self) -> int:
        return self.tree.n_leaves

    @cached_property
    def parent(self) -> npt.NDArray[np.int64]:
        """Parent of each node; -1 for the root."""
        parent = np.full(self.tree.n_nodes, -1)
        for node in np.flatnonzero(self.tree.feature != LEAF):
            parent[self.tree.left[node] : self.tree.left[node] + 2] = node
        return parent

    @cached_property
    def numbers(self) -> list[int]:
        """R's number of each node."""
        own = getattr(self.tree, "number", None)
        if own is not None:
            return [int(number) for number in own]
        numbers = [1] * self.tree.n_nodes  # Python integers: numbers in deep trees exceed 64 bits
        for node in np.flatnonzero(self.tree.feature != LEAF):
            numbers[self.tree.left[node]] = 2 * numbers[node]
            numbers[self.tree.left[node] + 1] = 2 * numbers[node] + 1
        return numbers

    @cached_property
    def order(self) -> list[int]:
        """Return the nodes in R's order: parents first, all below the left child before the right one."""
        ordered, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            ordered.append(node)
            waiting += reversed(self.children(node))
        return ordered

    @cached_property
    def depth(self) -> npt.NDArray[np.int64]:
        """Depth of each node; 0 for the root."""
        depth = np.zeros(self.tree.n_nodes, dtype=np.int64)
        for node in self.order[1:]:
            depth[node] = depth[self.parent[node]] + 1
        return depth

    def children(self, node: int) -> list[int]:
        """Return the two children of a node, R's left one first; a leaf has none."""
        if self.tree.feature[node] == LEAF:
            return []
        left = int(self.tree.left[node])
        return sorted((left, left + 1), key=self.numbers.__getitem__)

    def responses(self, node: int) -> Floats:
        return self.values[self.tree.start[node] : self.tree.start[node] + self.tree.size[node]]

    def weights_of(self, node: int) -> Floats | None:
        rows = slice(self.tree.start[node], self.tree.start[node] + self.tree.size[node])
        return None if self.weights is None else self.weights[rows]

    def counts(self, node: int) -> npt.NDArray[Any]:
        """Return the number of rows of each level of the response in a node, or their weight."""
        values, weights = self.responses(node), self.weights_of(node)
        known = ~np.isnan(values)
        weights = None if weights is None else weights[known]
        return np.bincount(values[known].astype(np.int64), weights, minlength=self.target.n_levels)

    def prediction(self, node: int) -> Any:
        """Return the mean response of a node, or its most frequent level (the first on ties)."""
        if self.target.levels is not None:
            return self.target.levels[int(np.argmax(self.counts(node)))]
        values, weights = self.responses(node), self.weights_of(node)
        known = ~np.isnan(values)
        weights = None if weights is None else weights[known]
        return value_of(self.target, float(mean_of(values[known], weights)) if known.any() else np.nan)

    def goes_left(self, node: int) -> npt.NDArray[np.bool_]:
        """Return, for each level of the column that a node splits on, whether it goes to the left child."""
        levels = np.arange(self.given[self.tree.feature[node]].n_levels)
        at = self.tree.mask_at[node]
        return self.tree.masks[at : at + levels.size] if at >= 0 else levels < self.tree.threshold[node]

    def seen(self, node: int) -> npt.NDArray[np.bool_]:
        """Return which levels of the column that a node splits on occur in it, as far as the tree records it."""
        feature, at = int(self.tree.feature[node]), self.tree.mask_at[node]
        n_levels = self.given[feature].n_levels
        if at >= 0 and isinstance(self.tree, CtreeTree):
            return self.tree.seen[at : at + n_levels]
        seen = np.ones(n_levels, dtype=np.bool_)
        if isinstance(self.tree, RpartTree):
            return np.not_equal(self.tree.sides[at : at + n_levels], ABSENT) if at >= 0 else seen
        child, parent = node, self.parent[node]
        while parent >= 0:  # levels that a split above excludes
            if self.tree.feature[parent] == feature:
                seen &= self.goes_left(parent) == (child == self.tree.left[parent])
            child, parent = parent, self.parent[parent]
        return seen

    def rule(self, node: int) -> SplitRule:
        """Return the rule that sends a row from the parent to this node."""
        parent = self.parent[node]
        to_left = node == self.tree.left[parent]
        feature, threshold = self.given[self.tree.feature[parent]], self.tree.threshold[parent]
        name = str(feature.name)
        if np.isinf(threshold):
            return SplitRule(name, "is", ("known" if to_left == (threshold > 0) else "missing",))
        by_cut = isinstance(self.tree, CtreeTree) and not np.isnan(self.tree.cut[parent])
        if feature.levels is not None and not by_cut:
            chosen = feature.levels[self.seen(parent) & (self.goes_left(parent) == to_left)]
            return SplitRule(name, "in", tuple(str(level) for level in chosen))
        if isinstance(self.tree, CtreeTree):
            return SplitRule(name, "<=" if to_left else ">", (text_of(feature, self.tree.cut[parent]),))
        return SplitRule(name, "<" if to_left else ">=", (text_of(feature, threshold),))


DIGITS = 7  # significant digits of a number


class SplitRule(NamedTuple):
    """A rule that sends a row to a node: a bound, a set of levels, or whether the value is missing.

    Attributes
    ----------
    name : column.
    sign : "<", "<=", ">=", ">", "in" or "is".
    values : the bound, the levels, or "missing" or "known".
    """

    name: str
    sign: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        values = ", ".join(self.values)
        return f"{self.name} {self.sign} " + (f"{{{values}}}" if self.sign == "in" else values)

    def as_party(self) -> str:
        return str(self) if self.sign != "in" else f"{self.name} == {{{', '.join(self.values)}}}"

    def as_rpart(self) -> str:
        if self.sign == "in":
            return f"{self.name}={','.join(self.values)}"
        return str(self) if self.sign == "is" else f"{self.name}{self.sign:<2}{self.values[0]}"


def value_of(feature: Feature, encoded: float) -> Any:
    """Return a number unchanged, and an encoded date as a date."""
    if not is_dated(feature.dtype):
        return encoded
    if not np.isfinite(encoded):
        return pd.NaT
    return pd.Series(feature.decode(np.array([encoded])), dtype=feature.dtype).iloc[0]


def text_of(feature: Feature, encoded: float) -> str:
    """Return a number, date or level as text."""
    if feature.levels is not None:
        return str(feature.levels[int(encoded)])
    value = value_of(feature, encoded)
    if isinstance(value, pd.Timestamp):
        return date_text(value)
    return format_numbers([value])[0] if isinstance(value, float) else str(value)


def format_numbers(values: Sequence[float] | Floats, digits: int = DIGITS) -> list[str]:
    """Return numbers as R's `format` writes them: with the decimals that show `digits` significant digits of each.

    Scientific notation is used if it is shorter.

    Examples
    --------
    >>> from mcce.trees.nodes import format_numbers
    >>> format_numbers([1402.471, 9.556252]), format_numbers([100000.0]), format_numbers([0.1 + 0.2])
    (['1402.471000', '   9.556252'], ['1e+05'], ['0.3'])
    """
    decimals, longest, widest_left = 0, 1, 1
    exponents = [0]
    for value in values:
        if np.isfinite(value):
            mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
            shown = len(mantissa.lstrip("-").replace(".", "").rstrip("0")) or 1
            exponents.append(int(exponent))
            decimals = max(decimals, shown - 1 - int(exponent))
            longest = max(longest, shown)
            widest_left = max(widest_left, max(int(exponent) + 1, 1) + (value < 0))
    fixed_width = widest_left + (decimals + 1 if decimals else 0)
    exponent_width = 3 if max(map(abs, exponents)) > 99 else 2
    power_width = any(v < 0 for v in values) + (longest + 1 if longest > 1 else 1) + 2 + exponent_width
    form = f".{decimals}f" if fixed_width <= power_width else f".{longest - 1}e"
    texts = [format(float(value) + 0.0, form) if np.isfinite(value) else "NA" for value in values]  # no -0
    return [text.rjust(max(map(len, texts), default=0)) for text in texts]
