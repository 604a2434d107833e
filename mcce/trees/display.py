"""A fitted tree to look at: with the names and levels of its columns, printed as R prints it, as a table, as a picture.

1. `print(tree)` writes a conditional inference tree as party does, and any other as rpart does.
2. `tree.to_frame()` has one row a node, numbered as in R (`mcce.trees.nodes`).
3. `tree.plot()` draws it:

4. Each leaf has a slot of equal width; a node stands in the middle of the slots of its leaves. What belongs to a node
   (its name, the rule that leads to it) keeps within its own slots, folded to their width: so nothing overlaps.
5. The leaves stand in one row at the bottom, each with a small plot of its responses, all on the same scale.
6. A tree with too many leaves is cut at a depth; what is left out below a node is marked by dots.

Lengths are in inches, on a figure made here; on axes that are handed in everything shrinks or grows with them.
matplotlib is imported when a picture is asked for; no global setting is changed and nothing is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats
from mcce.base.checks import check_count
from mcce.table.dtypes import is_dated
from mcce.trees.ctree.tree import CtreeTree
from mcce.trees.kernels import LEAF
from mcce.trees.nodes import DIGITS, Nodes, SplitRule, format_numbers, text_of, value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


TITLE, FONT, SMALL = 10.0, 8.5, 7.5  # points
SLOT, MARGIN = 1.2, 1.15  # width of a leaf; room at the left for the scale of the small plots
HEAD, ROW, LEAF_HEAD, PANEL, FOOT = 0.65, 1.0, 0.4, 1.3, 0.3  # heights, from top to bottom
BOX, BRANCH = 0.42, 0.52  # below the top of a node: the height of its box, and where the ways to its children part
MOST_BARS = 8
SIGNS = {"<=": "\u2264", ">=": "\u2265", "in": "", "is": ""}
FILL = "#8fb0cf"


class Place(NamedTuple):
    """Where a node stands: its first slot, the number of its slots, and whether what is below it is left out."""

    first: int
    width: int
    is_cut: bool

    @property
    def middle(self) -> float:
        """Middle of its slots."""
        return self.first + self.width / 2


class Canvas(NamedTuple):
    """Where to draw: axes measured in slots and inches, the height of it all, and what sizes are multiplied by."""

    ax: Axes
    height: float
    scale: float

    def top(self, depth: int) -> float:
        """Height of the upper edge of a level of the tree."""
        return self.height - HEAD - depth * ROW


def draw(view: Nodes, ax: Axes | None, max_leaves: int) -> Axes:
    """Draw a tree on `ax`, or on a figure of its own."""
    places = _places(view, _deepest(view, check_count(max_leaves, "max_leaves")))
    canvas = _canvas(ax, places[0].width, max(int(view.depth[node]) for node in places))
    _write_title(canvas, view, places)
    ends = [node for node in places if places[node].width == 1]
    for node, place in places.items():
        if node not in ends:
            _draw_split(canvas, view, places, node)
        elif node:
            line = [canvas.top(int(view.depth[node])), LEAF_HEAD + PANEL + FOOT]
            canvas.ax.plot([place.middle] * 2, line, color=_ink(), linewidth=0.8)
    _draw_panels(canvas, view, places, sorted(ends, key=lambda node: places[node].first))
    return canvas.ax


def _deepest(view: Nodes, max_leaves: int) -> int:
    """Return the greatest depth to draw: the tree cut there has no more than `max_leaves` ends."""
    is_leaf = np.array([not view.children(node) for node in range(view.tree.n_nodes)])
    depth = 0
    while depth < view.depth.max():
        if (is_leaf & (view.depth <= depth)).sum() + (view.depth == depth + 1).sum() > max_leaves:
            break
        depth += 1
    return depth


def _places(view: Nodes, deepest: int) -> dict[int, Place]:
    """Return the place of each node to draw, in the tree's order."""
    drawn = [node for node in view.order if view.depth[node] <= deepest]
    is_end = {node: not view.children(node) or view.depth[node] == deepest for node in drawn}
    width = dict.fromkeys(drawn, 0)
    for node in reversed(drawn):
        width[node] = 1 if is_end[node] else sum(width[child] for child in view.children(node))
    first = {0: 0}
    for node in drawn:
        start = first[node]
        for child in view.children(node) if not is_end[node] else ():
            first[child] = start
            start += width[child]
    return {node: Place(first[node], width[node], is_end[node] and bool(view.children(node))) for node in drawn}


def _canvas(ax: Axes | None, n_slots: int, rows: int) -> Canvas:
    height = HEAD + rows * ROW + LEAF_HEAD + PANEL + FOOT
    slots = max(n_slots, 2)  # a picture of one leaf is wide enough for its title
    width = MARGIN + slots * SLOT
    scale = 1.0
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(width, height)).add_axes((0.0, 0.0, 1.0, 1.0))
    else:
        extent = ax.get_window_extent()
        dpi = ax.figure.dpi
        scale = min(extent.width / dpi / width, extent.height / dpi / height, 1.3)
    extra = (slots - n_slots) / 2
    ax.set(xlim=(-MARGIN / SLOT - extra, n_slots + extra), ylim=(0, height))
    ax.set_axis_off()
    return Canvas(ax, height, scale)


def _write(canvas: Canvas, x: float, y: float, text: str, size: float, **style: Any) -> None:
    usual: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "fontsize": size * canvas.scale,
        "parse_math": False,
        "zorder": 3,
    }
    canvas.ax.text(x, y, text, **(usual | style))


def _write_title(canvas: Canvas, view: Nodes, places: dict[int, Place]) -> None:
    kind = "Conditional inference tree" if isinstance(view.tree, CtreeTree) else "Tree"
    title = f"{kind} for {view.target.name}: {view.n_leaves} leaves, n = {view.tree.size[0]}"
    low, high = canvas.ax.get_xlim()
    lines = [fold(title, (high - low) * SLOT - 0.2, TITLE, 2)]
    if any(place.is_cut for place in places.values()):
        depth = max(int(view.depth[node]) for node in places)
        note = f"cut at depth {depth} of {view.depth.max()}; \u2026: there is more below"
        lines.append(fold(note, (high - low) * SLOT - 0.2, TITLE, 1))
    _write(canvas, (low + high) / 2, canvas.height - 0.08, "\n".join(lines), TITLE, va="top")


def _draw_split(canvas: Canvas, view: Nodes, places: dict[int, Place], node: int) -> None:
    """Draw a node, the ways to its children, and the rules on them."""
    place, top = places[node], canvas.top(int(view.depth[node]))
    name = str(view.given[view.tree.feature[node]].name)
    label = [squeeze(f"{view.numbers[node]}  {name}", place.width * SLOT - 0.3, FONT), *_test_text(view, node)]
    box = {"boxstyle": "round,pad=0.3", "facecolor": _paper(canvas), "edgecolor": _ink(), "linewidth": 0.8}
    _write(canvas, place.middle, top - BOX / 2, "\n".join(label), FONT, bbox=box)
    below = canvas.top(int(view.depth[node]) + 1)
    for child in view.children(node):
        x = places[child].middle
        end = below - BOX / 2 if places[child].width > 1 else below  # boxes hide what is behind them
        way = ([place.middle, place.middle, x, x], [top - BOX / 2, top - BRANCH, top - BRANCH, end])
        canvas.ax.plot(*way, color=_ink(), linewidth=0.8, zorder=1)
        rule = fold(_rule_text(view.rule(child)), places[child].width * SLOT - 0.12, SMALL, 3)
        plain = {"boxstyle": "square,pad=0.15", "facecolor": _paper(canvas), "edgecolor": "none"}
        _write(canvas, x, (top - BRANCH + below) / 2, rule, SMALL, bbox=plain)


def _rule_text(rule: SplitRule) -> str:
    return f"{SIGNS.get(rule.sign, rule.sign)} {', '.join(rule.values)}".strip()


def _test_text(view: Nodes, node: int) -> list[str]:
    """Return the p-value of a node, or the statistic if that was the criterion."""
    tree = view.tree
    if not isinstance(tree, CtreeTree):
        return []
    known = np.isfinite(tree.criteria)
    if np.array_equal(tree.criteria[known], tree.statistics[known]):
        return [f"statistic = {tree.criterion[node]:.4g}"]
    p = 1 - tree.criterion[node]
    return ["p < 0.001" if p < 0.001 else f"p = {p:.3f}"]


# ---------------------------------------------------------------- the leaves


def _draw_panels(canvas: Canvas, view: Nodes, places: dict[int, Place], ends: list[int]) -> None:
    draw_one = _bars(view) if view.target.levels is not None else _box(view)
    for node in ends:
        place = places[node]
        number = f"{view.numbers[node]} \u2026" if place.is_cut else str(view.numbers[node])
        head = f"{number}\nn = {view.tree.size[node]}"
        box = {"boxstyle": "square,pad=0.1", "facecolor": _paper(canvas), "edgecolor": "none"}
        _write(canvas, place.middle, FOOT + PANEL + LEAF_HEAD / 2, head, SMALL, bbox=box)
        panel = canvas.ax.inset_axes((place.first + 0.06, FOOT, 0.88, PANEL), transform=canvas.ax.transData)
        panel.tick_params(labelsize=SMALL * canvas.scale, length=2 * canvas.scale, pad=2 * canvas.scale)
        draw_one(panel, node)
        panel.tick_params(labelleft=node == ends[0])


def _box(view: Nodes) -> Any:
    """Return how to draw numbers: a box plot, on the scale of all of them."""
    known = view.values[~np.isnan(view.values)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    margin = 0.05 * (high - low) or 0.5
    dated = is_dated(view.target.dtype)

    def draw_box(panel: Axes, node: int) -> None:
        values = view.responses(node)
        ink = {"color": _ink(), "linewidth": 0.8}
        panel.boxplot(
            values[~np.isnan(values)],
            widths=0.5,
            patch_artist=True,
            boxprops={"facecolor": FILL, "edgecolor": _ink(), "linewidth": 0.8},
            medianprops=ink,
            whiskerprops=ink,
            capprops=ink,
            flierprops={"marker": ".", "markersize": 2, "markeredgecolor": _ink()},
        )
        panel.set(ylim=(low - margin, high + margin), xticks=[])
        panel.yaxis.set_major_locator(_locator())
        panel.yaxis.set_major_formatter(lambda value, _: text_of(view.target, value) if dated else f"{value:,.6g}")

    return draw_box


def _locator() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def _bars(view: Nodes) -> Any:
    """Return how to draw levels: the share of each as a bar; rare ones together, if there are many."""
    assert view.target.levels is not None
    overall = view.counts(0)
    shown = np.arange(overall.size)
    if shown.size > MOST_BARS:
        shown = np.sort(np.argsort(-overall, kind="stable")[: MOST_BARS - 1])
    names = [squeeze(str(level), MARGIN - 0.2, SMALL) for level in view.target.levels[shown]]
    names += ["others"] if shown.size < overall.size else []

    def draw_bars(panel: Axes, node: int) -> None:
        counts = view.counts(node)
        heights = counts[shown].tolist() + ([counts.sum() - counts[shown].sum()] if shown.size < counts.size else [])
        panel.barh(
            range(len(names)), np.array(heights) / max(counts.sum(), 1), color=FILL, edgecolor=_ink(), linewidth=0.6
        )
        panel.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6), xticks=[0, 0.5, 1], xticklabels=["0", "", "1"])
        panel.set_yticks(range(len(names)), names, parse_math=False)

    return draw_bars


# ---------------------------------------------------------------- text and colour


def fold(text: str, width: float, size: float, lines: int) -> str:
    """Break a text at its spaces into lines of `width` inches; what does not fit into `lines` becomes dots."""
    folded = [""]
    for word in text.split():
        longer = f"{folded[-1]} {word}".strip()
        if _inches(longer, size) <= width or not folded[-1]:
            folded[-1] = longer
        else:
            folded.append(word)
    if len(folded) > lines:
        folded = [*folded[: lines - 1], f"{folded[lines - 1].rstrip(',')} \u2026"]
    return "\n".join(squeeze(line, width, size) for line in folded)


def squeeze(text: str, width: float, size: float) -> str:
    """Leave out the middle of a text that is wider than `width` inches: names often differ in their endings."""
    kept = len(text)
    squeezed = text
    while _inches(squeezed, size) > width and kept > 2:
        kept -= 1
        squeezed = f"{text[: kept - kept // 2]}\u2026{text[len(text) - kept // 2 :]}"
    return squeezed


def _inches(text: str, size: float) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0]) / 72


def _ink() -> Any:
    from matplotlib import rcParams

    return rcParams["text.color"]


def _paper(canvas: Canvas) -> Any:
    """Return the colour behind the drawing; on a figure of its own, that of the figure."""
    figure = canvas.ax.figure
    return figure.get_facecolor() if figure is not None else "white"


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
