"""A tree in the words of R: conditional inference trees as party prints them, all others as rpart does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcce.arrays import Floats
from mcce.table.dtypes import is_dated
from mcce.trees.nodes import Nodes
from mcce.trees.party.tree import CtreeTree
from mcce.trees.texts import DIGITS, format_numbers

MANY_CLASSES = 5  # from that number on rpart prints shares with two digits


def party_lines(view: Nodes, tree: CtreeTree) -> list[str]:
    """Return the lines of a conditional inference tree."""
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
    """Return numbers with the significant digits that are shown, and zeros behind them."""
    return [float(f"{value:.{DIGITS - 1}e}") for value in values]
