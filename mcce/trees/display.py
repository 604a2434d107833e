"""A fitted tree to look at: with the names and levels of its columns, printed as R prints it, as a table, as a picture.

1. `print(tree)` writes a conditional inference tree as party does, and any other as rpart does (`mcce.trees.printing`).
2. `tree.to_frame()` has one row a node, numbered as in R (`mcce.trees.nodes`).
3. `tree.plot()` draws it (`mcce.trees.drawing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.trees.drawing import draw
from mcce.trees.kernels import LEAF
from mcce.trees.nodes import Nodes
from mcce.trees.party.tree import CtreeTree
from mcce.trees.printing import party_lines, rpart_lines
from mcce.trees.texts import value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class FittedTree(Nodes):
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
    weights : array or None
        Their weights, in the same order: predictions and shares of levels are by weight, n is a number of rows.

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
        return draw(self, ax, max_leaves)
