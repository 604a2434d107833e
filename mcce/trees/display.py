"""A fitted tree as text and as a table.

`Tree` shows the trees of `mcce.trees.cart`, `mcce.trees.rpart` and `mcce.trees.ctree`. It reads their ``nodes()`` (one
row for each node, a parent before its left branch before its right branch) and their columns `given` and `target`.
Numbers of nodes are those of the R package: party counts them in this order; in CART and rpart the children of node k
are 2k and 2k + 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce.table import Feature

MOST_LEVELS = 12  # named in a condition


class Tree:
    """A fitted tree to print or to convert to a table; fitted CART and ctree samplers have it as ``tree_``.

    Parameters
    ----------
    grown : CartTree, RpartTree or CTree

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.table import Schema
    >>> from mcce.trees import Tree, cart
    >>> X = pd.DataFrame({"age": [20, 30, 40, 50], "salary": [1.0, 1.0, 3.0, 3.0]})
    >>> table = Schema.from_data(X).encode(X)
    >>> tree = Tree(cart.grow(table.first(1), table.column(1), min_leaf=2))
    >>> tree
    Tree(salary, 2 leaves)
    >>> print(tree)
    salary: 2 leaves, 4 rows
    node) condition, n, mean; * is a leaf
    1) root, 4, 2
      2) age < 35, 2, 1 *
      3) age >= 35, 2, 3 *
    >>> tree.to_frame()["condition"].to_dict()
    {1: 'root', 2: 'age < 35', 3: 'age >= 35'}
    """

    def __init__(self, grown: Any) -> None:
        self.grown = grown

    def __repr__(self) -> str:
        return f"Tree({self.grown.target.name}, {self.grown.n_leaves} leaves)"

    def __str__(self) -> str:
        frame = self.to_frame()
        what = "mean" if self.grown.target.is_numeric else "level"
        lines = [f"{self.grown.target.name}: {self.grown.n_leaves} leaves, {frame['n'].iloc[0]} rows"]
        lines.append(f"node) condition, n, {what}; * is a leaf")
        for number, node in frame.iterrows():
            start, is_leaf = "  " * node["depth"] + f"{number}) ", " *" if pd.isna(node["variable"]) else ""
            lines.append(f"{start}{node['condition']}, {node['n']}, {_text(node['prediction'])}{is_leaf}")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each node, in the order of the printed tree.

        Returns
        -------
        DataFrame indexed by the node's number, with the columns parent (number), depth, n, condition (that leads from
        the parent to the node), variable, threshold or levels (those that go left) of its split, prediction (mean, or
        most frequent level; in ctree the mean level of ordered ones) and those that only one kind of tree has:
        missing_left and impurity (CART; sum of squares, or size times Gini), statistic (of the split variable) and
        criterion (ctree).
        """
        nodes = self.grown.nodes()
        target, is_closed = self.grown.target, "criterion" in nodes  # ctree's cuts belong to the left side
        coming: dict[int, list[_Branch]] = {}  # the branches of each node that are not visited yet
        rows = []
        for node in nodes.to_dict("records"):
            number, parent, variable = node.pop("node"), node.pop("parent"), node.pop("variable")
            cut, left_levels = node.pop("cut"), node.pop("left_levels")
            branch = coming[parent].pop(0) if parent in coming else _Branch("root", {})
            row: dict[str, Any] = {"node": number, "parent": parent if parent in coming else pd.NA}
            row |= {"depth": node.pop("depth"), "n": node.pop("n"), "condition": branch.condition}
            row |= {"variable": None, "threshold": None, "levels": None}
            if not node.pop("is_leaf"):
                feature = self.grown.given[variable]
                row["variable"] = feature.name
                if feature.levels is None or np.isinf(cut):
                    row["threshold"] = cut if np.isinf(cut) else _decoded(feature, cut)
                    coming[number] = [_Branch(text, branch.levels) for text in _beside_cut(feature, cut, is_closed)]
                else:
                    codes = np.arange(feature.n_levels)
                    below = codes[codes <= cut if is_closed else codes < cut]
                    left = set((below if left_levels is None else np.array(left_levels, dtype=int)).tolist())
                    possible = branch.levels.get(variable, set(codes.tolist()))
                    row["levels"] = tuple(feature.levels[sorted(left & possible)])
                    coming[number] = [
                        branch.among(feature, variable, side) for side in (left & possible, possible - left)
                    ]
            row["prediction"] = _decoded(target, node.pop("value"))
            rows.append(row | node)
        frame = pd.DataFrame(rows).set_index("node")
        return frame.astype({"parent": "Int64" if max(frame.index) < 2**63 else object})


@dataclass(frozen=True)
class _Branch:
    """The condition that leads to a node, and the levels that it and those above leave, by column."""

    condition: str
    levels: dict[int, set[int]]

    def among(self, feature: Feature, variable: int, codes: set[int]) -> _Branch:
        """Return a branch below this one: the levels of `codes`."""
        names = [str(level) for level in feature.levels[sorted(codes)]]  # type: ignore[index]
        shown = names if len(names) <= MOST_LEVELS else [*names[:MOST_LEVELS], f"and {len(names) - MOST_LEVELS} more"]
        return _Branch(f"{feature.name} in {{{', '.join(shown)}}}", self.levels | {variable: codes})


def _beside_cut(feature: Feature, cut: float, is_closed: bool) -> list[str]:
    """Return the conditions of both sides of a cut; a CART splits missing from known values at an infinite one."""
    if np.isinf(cut):
        words = ("known", "missing") if cut > 0 else ("missing", "known")
        return [f"{feature.name} is {word}" for word in words]
    signs = ("<=", ">") if is_closed else ("<", ">=")
    return [f"{feature.name} {sign} {_text(_decoded(feature, cut))}" for sign in signs]


def _decoded(feature: Feature, encoded: float) -> Any:
    """Return a number unchanged, a level by its name, and a date as a date."""
    if feature.levels is not None:
        return feature.levels[round(encoded)]
    return pd.Series(feature.decode(np.array([encoded]))).iloc[0] if feature.is_date else encoded


def _text(value: Any) -> str:
    if isinstance(value, pd.Timestamp):
        return str(value.date() if value == value.normalize() else value.round("s"))
    return f"{value:.7g}" if isinstance(value, float) else str(value)
