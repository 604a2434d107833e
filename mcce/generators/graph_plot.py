"""Draw a causal graph: causes above effects, readable in a picture 400 pixels wide.

1. A feature is in the row below the lowest of its parents. A row with more features than fit is folded.
2. Within its row, a feature is below the mean place of its parents, and above that of its children (Sugiyama, Tagawa
   and Toda 1981, "Methods for visual understanding of hierarchical system structures").
3. Long names are broken into lines; names longer than three lines are shortened.
4. An edge that would run through a feature between its ends is bent around it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from mcce.base.canvas import DARK, SMALL, ink, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, ROW = 4.0, 0.95  # inches
MOST_IN_ROW, MOST_LINES = 4, 3
N_SWEEPS = 6


def draw_graph(
    parents: Mapping[Any, Sequence[Any]], edges: Sequence[Any], confounded: Sequence[Any], ax: Axes | None
) -> Axes:
    """Draw a graph on axes, or on new ones; `parents` has the parents of each feature, causes before effects."""
    rows = _rows(parents)
    if ax is None:
        ax = new_axes(WIDTH, max(ROW * len(rows), 1.0) + 0.1)
    widest = max(map(len, rows))
    places = _places(rows, widest)
    letters = int(52 / min(max(widest, 2), MOST_IN_ROW))  # of a line of a name, at this size of type
    boxes = {}
    for name, (x, y) in places.items():
        boxes[name] = ax.text(
            x,
            y,
            _folded(str(name), letters),
            ha="center",
            va="center",
            fontsize=SMALL,
            color=ink(),
            linespacing=1.05,
            parse_math=False,
            bbox={"boxstyle": "round,pad=0.35", "fc": ax.get_facecolor(), "ec": DARK, "lw": 1.0},
            zorder=3,
        )
    ax.set(xlim=(-0.02, 1.02), ylim=(-len(rows) + 0.45, 0.55))
    ax.set_axis_off()
    for cause, effect in edges:
        _draw_edge(ax, places, boxes, cause, effect, "-|>", "-", DARK)
    for one, other in confounded:
        _draw_edge(ax, places, boxes, one, other, "<|-|>", (0, (3, 2)), "0.5")
    return ax


def _rows(parents: Mapping[Any, Sequence[Any]]) -> list[list[Any]]:
    """Return the features row by row (steps 1 and 2)."""
    depth: dict[Any, int] = {}
    for name in parents:
        depth[name] = 1 + max((depth[each] for each in parents[name]), default=-1)
    rows: list[list[Any]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name, place_of_row in depth.items():
        rows[place_of_row].append(name)
    children: dict[Any, list[Any]] = {name: [] for name in depth}
    for name, above in parents.items():
        for each in above:
            children[each].append(name)
    around = (parents, children)
    for sweep in range(N_SWEEPS):
        place = {name: (i + 0.5) / len(row) for row in rows for i, name in enumerate(row)}
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            means = {}
            for name in row:
                near = around[sweep % 2][name] or [name]
                means[name] = float(np.mean([place[each] for each in near]))
            row.sort(key=means.__getitem__)
            place |= {name: (i + 0.5) / len(row) for i, name in enumerate(row)}
    folded = []
    for row in rows:
        n_parts = -(-len(row) // MOST_IN_ROW)
        ends = [round(i * len(row) / n_parts) for i in range(n_parts + 1)]
        folded += [row[start:end] for start, end in pairwise(ends)]
    return folded


def _places(rows: list[list[Any]], widest: int) -> dict[Any, tuple[float, float]]:
    """Return the centre of each feature; rows with equally many features are shifted, so that edges do not overlap."""
    found = {}
    for r, row in enumerate(rows):
        shift = 0.0 if len(row) == widest and widest > 1 else (0.06 if r % 2 else -0.06)
        for i, name in enumerate(row):
            found[name] = ((i + 0.5) / len(row) + shift, float(-r))
    return found


def _draw_edge(
    ax: Axes, places: dict[Any, tuple[float, float]], boxes: dict[Any, Any], one: Any, other: Any, *style: Any
) -> None:
    """Draw an arrow between two features, bent if another feature is in between (step 4)."""
    (x0, y0), (x1, y1) = places[one], places[other]
    near = []
    for name, (x, y) in places.items():
        if name not in (one, other) and min(y0, y1) <= y <= max(y0, y1):
            along = (y - y0) / (y1 - y0) if y1 != y0 else (x - x0) / (x1 - x0)
            if y1 != y0 and 0.0 < along < 1.0 and abs(x0 + along * (x1 - x0) - x) < 0.14:
                near.append(x - (x0 + along * (x1 - x0)))
            elif y1 == y0 and 0.0 < along < 1.0:
                near.append(0.0)
    bend = 0.0
    if near:
        bend = 0.32 if np.mean(near) >= 0.0 else -0.32
        bend = bend if y1 < y0 else -bend
    arrow, line, colour = style
    ax.annotate(
        "",
        xy=(x1, y1),
        xytext=(x0, y0),
        arrowprops={
            "arrowstyle": arrow,
            "linestyle": line,
            "color": colour,
            "lw": 1.0,
            "mutation_scale": 9,
            "patchA": boxes[one].get_bbox_patch(),
            "patchB": boxes[other].get_bbox_patch(),
            "shrinkA": 0,
            "shrinkB": 0,
            "connectionstyle": f"arc3,rad={bend}",
        },
        zorder=1,
    )


def _folded(name: str, letters: int) -> str:
    """Return a name in lines (step 3)."""
    letters = max(letters, 8)
    parts = re.findall(r"[^\s_.\-]*[\s_.\-]*", name)
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1] + part.rstrip()) > letters:
            lines.append("")
        lines[-1] += part
    broken = [piece for line in lines for piece in textwrap.wrap(line, letters, break_on_hyphens=False)] or [name]
    if len(broken) > MOST_LINES:
        broken = [*broken[: MOST_LINES - 1], broken[MOST_LINES - 1][: letters - 1] + "…"]
    return "\n".join(broken)
