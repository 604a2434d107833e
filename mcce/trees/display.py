"""A fitted tree to look at: with the names and levels of its columns, printed as R prints it, as a table, as a picture.

1. Nodes are numbered as in R: party counts parents first, left before right; for CART the children of k are 2k and
   2k + 1.
2. `print(tree)` writes a conditional inference tree as party does, and any other as rpart does.
3. `tree.to_frame()` has one row a node; `tree.plot()` draws it (`mcce.trees.drawing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.table import Feature
from mcce.table.dtypes import is_dated
from mcce.trees.kernels import LEAF
from mcce.trees.party.ctree import CtreeTree
from mcce.trees.printing import format_numbers, party_lines, rpart_lines
from mcce.trees.rpart.kernels import ABSENT
from mcce.trees.rpart.tree import RpartTree
from mcce.trees.tree import Floats, Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Rule(NamedTuple):
    """What sends a row to a node: a bound, a set of levels, or whether the value is missing.

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
        """Return the rule as party writes it."""
        return str(self) if self.sign != "in" else f"{self.name} == {{{', '.join(self.values)}}}"

    def as_rpart(self) -> str:
        """Return the rule as rpart writes it."""
        if self.sign == "in":
            return f"{self.name}={','.join(self.values)}"
        return str(self) if self.sign == "is" else f"{self.name}{self.sign:<2}{self.values[0]}"


@dataclass(frozen=True, repr=False)
class FittedTree:
    """A tree with the names and levels of its columns; fitted CART and ctree samplers have it as `tree`.

    Attributes
    ----------
    tree : Tree
        The arrays.
    given : sequence of Feature
        The columns that it splits on.
    target : Feature
        The response.
    values : array
        The response of the training rows, encoded, in the order of ``tree.donors``.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler=mcce.CtreeSampler(max_depth=1), fixed=["age", "sex"]).fit(loans.X)
    >>> tree = chain.samplers_["salary"].tree
    >>> tree
    FittedTree(salary, 2 leaves)
    >>> tree.to_frame()[["n", "condition"]].shape
    (3, 2)
    """

    tree: Tree
    given: Sequence[Feature]
    target: Feature
    values: Floats

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
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
        numbers = [1] * self.tree.n_nodes  # of any size: deep trees have long ones
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
        """Return the two children of a node, R's left one first; none of a leaf."""
        if self.tree.feature[node] == LEAF:
            return []
        left = int(self.tree.left[node])
        return sorted((left, left + 1), key=self.numbers.__getitem__)

    def responses(self, node: int) -> Floats:
        """Return the encoded responses of the training rows of a node."""
        return self.values[self.tree.start[node] : self.tree.start[node] + self.tree.size[node]]

    def counts(self, node: int) -> npt.NDArray[np.int64]:
        """Return how often each level of the response occurs in a node."""
        values = self.responses(node)
        return np.bincount(values[~np.isnan(values)].astype(np.int64), minlength=self.target.n_levels)

    def prediction(self, node: int) -> Any:
        """Return the mean response of a node, or its commonest level (the first, if several are)."""
        if self.target.levels is not None:
            return self.target.levels[int(np.argmax(self.counts(node)))]
        values = self.responses(node)
        values = values[~np.isnan(values)]
        return value_of(self.target, float(values.mean()) if values.size else np.nan)

    def goes_left(self, node: int) -> npt.NDArray[np.bool_]:
        """Return for each level of the column that a node splits on whether it goes to the array's left child."""
        levels = np.arange(self.given[self.tree.feature[node]].n_levels)
        at = self.tree.mask_at[node]
        return self.tree.masks[at : at + levels.size] if at >= 0 else levels < self.tree.threshold[node]

    def seen(self, node: int) -> npt.NDArray[np.bool_]:
        """Return which levels of the column that a node splits on occur in it, as far as the tree knows."""
        feature, at = int(self.tree.feature[node]), self.tree.mask_at[node]
        n_levels = self.given[feature].n_levels
        if at >= 0 and isinstance(self.tree, CtreeTree):
            return self.tree.seen[at : at + n_levels]
        seen = np.ones(n_levels, dtype=np.bool_)
        if isinstance(self.tree, RpartTree):
            return np.not_equal(self.tree.sides[at : at + n_levels], ABSENT) if at >= 0 else seen
        child, parent = node, self.parent[node]
        while parent >= 0:  # levels that were sent elsewhere above
            if self.tree.feature[parent] == feature:
                seen &= self.goes_left(parent) == (child == self.tree.left[parent])
            child, parent = parent, self.parent[parent]
        return seen

    def rule(self, node: int) -> Rule:
        """Return what sends a row from the parent to this node."""
        parent = self.parent[node]
        to_left = node == self.tree.left[parent]
        feature, threshold = self.given[self.tree.feature[parent]], self.tree.threshold[parent]
        name = str(feature.name)
        if np.isinf(threshold):
            return Rule(name, "is", ("known" if to_left == (threshold > 0) else "missing",))
        by_cut = isinstance(self.tree, CtreeTree) and not np.isnan(self.tree.cut[parent])
        if feature.levels is not None and not by_cut:
            chosen = feature.levels[self.seen(parent) & (self.goes_left(parent) == to_left)]
            return Rule(name, "in", tuple(str(level) for level in chosen))
        if isinstance(self.tree, CtreeTree):
            return Rule(name, "<=" if to_left else ">", (text_of(feature, self.tree.cut[parent]),))
        return Rule(name, "<" if to_left else ">=", (text_of(feature, threshold),))

    def __repr__(self) -> str:
        return f"FittedTree({self.target.name}, {self.n_leaves} leaves)"

    def __str__(self) -> str:
        return "\n".join(party_lines(self, self.tree) if isinstance(self.tree, CtreeTree) else rpart_lines(self))

    def to_frame(self) -> pd.DataFrame:
        """Return one row a node, in the order of print.

        Returns
        -------
        DataFrame indexed by the node's number, with the columns parent (number), depth, n, condition (what leads from
        the parent to the node), variable, threshold or levels (what goes left) of its split, missing (where missing
        values go), prediction (mean, or commonest level), impurity (sum of squares; size times Gini; for rpart's trees
        misclassified rows) and, for a conditional inference tree, statistic (of the variable split on) and criterion.
        """
        tree, rows = self.tree, []
        for node in self.order:
            row: dict[str, Any] = {"node": self.numbers[node], "parent": pd.NA, "depth": self.depth[node]}
            if node:
                row["parent"] = self.numbers[self.parent[node]]
            row |= {"n": tree.size[node], "condition": str(self.rule(node)) if node else "root"}
            row |= self._split_cells(node)
            row |= {"prediction": self.prediction(node), "impurity": tree.impurity[node]}
            if isinstance(tree, CtreeTree):
                chosen = tree.feature[node]
                row["statistic"] = tree.statistics[node, chosen] if chosen != LEAF else np.nan
                row["criterion"] = tree.criterion[node]
            rows.append(row)
        frame = pd.DataFrame(rows).set_index("node")
        return frame.astype({"parent": "Int64" if max(self.numbers) < 2**63 else object})

    def _split_cells(self, node: int) -> dict[str, Any]:
        if self.tree.feature[node] == LEAF:
            return {"variable": None, "threshold": None, "levels": None, "missing": None}
        feature = self.given[self.tree.feature[node]]
        left = int(self.tree.left[node])
        first_is_left = self.children(node)[0] == left
        levels = threshold = None
        if feature.levels is not None:
            levels = tuple(feature.levels[self.seen(node) & (self.goes_left(node) == first_is_left)])
        else:
            own = self.tree.cut if isinstance(self.tree, CtreeTree) else self.tree.threshold
            threshold = value_of(feature, own[node])
        side = "left" if self.tree.missing_left[node] == first_is_left else "right"
        return {"variable": feature.name, "threshold": threshold, "levels": levels, "missing": side}

    def plot(self, ax: Axes | None = None, *, max_leaves: int = 12) -> Axes:
        """Draw the tree.

        A node shows its number, the variable it splits on and, for a conditional inference tree, the p-value; a leaf
        shows the distribution of the response, as a box plot of numbers or as bars of levels. A tree of more than
        `max_leaves` leaves is cut at a depth that leaves no more, and says so.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; None makes a figure of a size that fits the tree.
        max_leaves : int
            Greatest number of leaves to draw.
        """
        from mcce.trees.drawing import draw

        return draw(self, ax, max_leaves)


def value_of(feature: Feature, encoded: float) -> Any:
    """Return a number as it is, and a date as a date."""
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
        return str(value.date() if value == value.normalize() else value.tz_localize(None))
    return format_numbers([value])[0] if isinstance(value, float) else str(value)
