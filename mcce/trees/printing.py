"""A tree in the words of R: conditional inference trees as party prints them, all others as rpart does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mcce.table.dtypes import is_dated
from mcce.trees.party.ctree import CtreeTree
from mcce.trees.tree import Floats

if TYPE_CHECKING:
    from mcce.trees.display import FittedTree

DIGITS = 7  # significant digits of a number
MANY_CLASSES = 5  # from that number on rpart prints shares with two digits


def party_lines(view: FittedTree, tree: CtreeTree) -> list[str]:
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


def rpart_lines(view: FittedTree) -> list[str]:
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


def format_numbers(values: Sequence[float] | Floats, digits: int = DIGITS) -> list[str]:
    """Write numbers as R's `format` does: with as many decimals as show `digits` significant digits of each.

    Powers of ten are used if that is shorter.

    Examples
    --------
    >>> from mcce.trees.printing import format_numbers
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
