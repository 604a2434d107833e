"""A fitted tree with the names and levels of its columns: printed as R prints it, as a table, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.checks import check_count
from mcce.exceptions import shorten
from mcce.table.dtypes import is_dated
from mcce.trees.ctree.tree import CtreeTree
from mcce.trees.kernels import LEAF
from mcce.trees.nodes import DIGITS, Nodes, format_numbers, value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY_CLASSES = 5  # from this number on, rpart prints shares with two digits


def party_lines(view: Nodes, tree: CtreeTree) -> list[str]:
    names = [str(feature.name) for feature in view.given]
    lines = ["", f"\t Conditional inference tree with {view.n_leaves} terminal nodes", ""]
    lines += [f"Response:  {view.target.name}", f"Input{'s' if len(names) != 1 else ''}:  {', '.join(names)}"]
    lines += [f"Number of observations:  {tree.size[0]}", ""]

    waiting: list[int | str] = [0]  # nodes to write, and lines to write between them
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            lines.append(node)
            continue
        start = "  " * int(view.depth[node]) + f"{view.numbers[node]})"
        if not view.children(node):
            lines.append(f"{start}*  weights = {tree.size[node]}")
            continue
        first, second = view.children(node)
        found = (tree.criterion[node], tree.statistics[node].max())  # the largest statistic, of whichever variable
        criterion, statistic = (format_numbers([round(float(value), 3)])[0] for value in found)
        lines.append(f"{start} {view.rule(first).as_party()}; criterion = {criterion}, statistic = {statistic}")
        waiting += [second, f"{start} {view.rule(second).as_party()}", first]
    return [line.rstrip() for line in lines]


def rpart_lines(view: Nodes) -> list[str]:
    """Return the lines of a classification or regression tree."""
    order, tree = view.order, view.tree
    if view.target.levels is not None:
        counts = np.array([view.counts(node) for node in order])
        shares = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).ravel()
        few = counts.shape[1] < MANY_CLASSES
        texts = format_numbers(shares) if few else [f"{share:.2g}" for share in shares]
        losses = format_numbers((counts.sum(axis=1) - counts.max(axis=1)).astype(np.float64))
        fitted = [
            f"{loss} {view.prediction(node)} ({' '.join(share)})"
            for node, loss, share in zip(order, losses, np.reshape(texts, counts.shape))
        ]
    else:
        means = [view.prediction(node) for node in order]
        texts = [str(mean) for mean in means] if is_dated(view.target.dtype) else format_numbers(_rounded(means))
        spreads = format_numbers(_rounded(tree.impurity[order]))
        fitted = [f"{spread} {mean}" for spread, mean in zip(spreads, texts)]
    columns = "loss, yval, (yprob)" if view.target.levels is not None else "deviance, yval"
    lines = [f"n= {tree.size[0]}", "", f"node), split, n, {columns}", "      * denotes terminal node", ""]
    width = max(len(str(number)) for number in view.numbers)
    for node, text in zip(order, fitted):
        start = "  " * int(view.depth[node]) + str(view.numbers[node]).rjust(width)
        rule = view.rule(node).as_rpart() if node else "root"
        lines.append(f"{start}) {rule} {tree.size[node]} {text} {'' if view.children(node) else '*'}")
    return [line.rstrip() for line in lines]


def _rounded(values: Sequence[float] | Floats) -> list[float]:
    """Return numbers rounded to the significant digits that are shown."""
    return [float(f"{value:.{DIGITS - 1}e}") for value in values]


WIDTH, HEIGHT = 1.7, 1.2  # inches of a node in a picture
LONGEST_RULE = 24


def _shown(view: Nodes, max_leaves: int) -> dict[int, float]:
    """Return the horizontal positions of the nodes down to the greatest depth with at most `max_leaves` end nodes."""
    depth = view.depth
    is_leaf = np.array([not view.children(node) for node in range(view.tree.n_nodes)])
    deepest = 0
    while deepest < depth.max() and (is_leaf & (depth <= deepest)).sum() + (depth == deepest + 1).sum() <= max_leaves:
        deepest += 1
    shown = [node for node in view.order if depth[node] <= deepest]
    ends = [node for node in shown if is_leaf[node] or depth[node] == deepest]
    places = {node: float(place) for place, node in enumerate(ends)}
    for node in reversed(shown):
        if node not in places:
            places[node] = float(np.mean([places[child] for child in view.children(node)]))
    return {node: places[node] for node in shown}


@dataclass(frozen=True, repr=False)
class FittedTree(Nodes):
    """A tree with the names and levels of its columns; fitted CART and ctree samplers have it as `tree`.

    Attributes
    ----------
    tree : Tree
        The arrays.
    given : sequence of Feature
        The given columns.
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
        """Return one row for each node, in the order of the printed tree.

        Returns
        -------
        DataFrame indexed by the node's number, with the columns parent (number), depth, n, condition (that leads from
        the parent to the node), variable, threshold or levels (that go left) of its split, missing (side of missing
        values), prediction (mean, or most frequent level), impurity (sum of squares; size times Gini; for rpart's trees
        misclassified rows) and, for a conditional inference tree, statistic (of the split variable) and criterion.
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
        """Draw the tree: each node as a box with its number, rule, number of rows and prediction.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; None makes a figure that fits the tree.
        max_leaves : int
            Largest number of leaves to draw: a larger tree is cut at a depth, and dots mark omitted nodes.
        """
        from matplotlib import pyplot, rcParams

        places = _shown(self, check_count(max_leaves, "max_leaves"))
        depth = max(int(self.depth[node]) for node in places)
        if ax is None:
            size = (WIDTH * (max(places.values()) + 1.5), HEIGHT * (depth + 1.5))
            ax = pyplot.figure(figsize=size).add_axes((0.0, 0.0, 1.0, 0.85))
        ink = rcParams["text.color"]
        box = {"boxstyle": "round", "facecolor": rcParams["figure.facecolor"], "edgecolor": ink}
        for node, x in places.items():
            y, is_cut = -int(self.depth[node]), bool(self.children(node)) and self.depth[node] == depth
            lines = [str(self.numbers[node])]
            if node:
                parent = int(self.parent[node])
                ax.plot([places[parent], x], [y + 1, y], color=ink, linewidth=0.8, zorder=1)
                lines.append(shorten(str(self.rule(node)), LONGEST_RULE))
            fitted = self.prediction(node)
            value = f"{fitted:.4g}" if isinstance(fitted, float) else shorten(str(fitted), LONGEST_RULE)
            lines += [f"n = {self.tree.size[node]}", f"{value} \u2026" if is_cut else value]
            ax.text(x, y, "\n".join(lines), ha="center", va="center", fontsize=7.5, bbox=box, parse_math=False)
        ax.set(xlim=(-0.75, max(places.values()) + 0.75), ylim=(-depth - 0.75, 0.75))
        ax.set_title(f"{self.target.name}: {self.n_leaves} leaves, n = {self.tree.size[0]}", parse_math=False)
        ax.set_axis_off()
        return ax
