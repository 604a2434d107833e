"""Figures, and texts that fit into axes, for all pictures; matplotlib is imported on demand."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT, SMALL = 9.0, 8.0
WIDTH = 5.4  # inches: shown 400 pixels wide, letters of SMALL - 1 points are 7 pixels high
DARK, LIGHT = "#2a4d7c", "#f0be78"  # about 0.3 and 0.77 in grey: distinguishable without colour


def new_axes(height: float) -> Axes:
    """Return the axes of a new figure of this height in inches."""
    import matplotlib.pyplot as plt

    axes: Axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")[1]
    return axes


def ink() -> str:
    """Return the colour of text in the current style."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def inches(ax: Axes) -> float:
    """Return the width of axes."""
    return float(ax.get_window_extent().width / ax.figure.dpi)


def points(ax: Axes, n: float) -> float:
    """Return the width of n points in units of the x axis."""
    low, high = ax.get_xlim()
    return n / 72 / inches(ax) * (high - low)


def count_fitting_letters(ax: Axes, text: str, size: float, share: float = 0.92) -> int:
    """Return the number of letters of the text's mean width that fit into a share of the axes, at least 8."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    vertices = text_to_path.get_text_path(FontProperties(size=size), text)[0]  # empty for invisible letters
    width = float(np.ptp(np.asarray(vertices)[:, 0])) * size / text_to_path.FONT_SCALE if len(vertices) else 0.0
    return max(int(share * 72 * inches(ax) / max(width / max(len(text), 1), 1.0)), 8)


def wrap_to_axes(ax: Axes, text: str, size: float) -> list[str]:
    """Return a text in lines that fit into the width of the axes, also lines of wide letters."""
    n = count_fitting_letters(ax, text, size)
    while True:
        lines = textwrap.wrap(text, n, break_on_hyphens=False)
        if n <= 8 or all(len(line) <= count_fitting_letters(ax, line, size, 0.98) for line in lines):
            return lines
        n = max(int(0.9 * n), 8)


def lay_out(ax: Axes) -> None:
    """Lay the figure out, so that widths are final."""
    ax.figure.canvas.figure.draw_without_rendering()  # of the whole, also where ax is in a part of a figure


def set_axes_height(ax: Axes, height: float) -> None:
    """Set the height of the figure so that its only axes have this height in inches."""
    lay_out(ax)
    figure: Any = ax.figure
    figure.set_figheight(figure.get_figheight() + height - ax.get_window_extent().height / figure.dpi)
    lay_out(ax)


def write_title(ax: Axes, title: str, subtitle: str = "", pad: float = 8.0) -> None:
    """Write a title at the left, and a line below it, both wrapped, with `pad` points below the title."""
    lines, below = (wrap_to_axes(ax, text, size) for text, size in ((title, 11.5), (subtitle, FONT)))
    for part in (lines, below):
        part[2:] = [part[2][:-1] + "…"] if len(part) > 3 else part[2:]
    place: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
    ax.annotate("\n".join(below), (0, 1), xytext=(0, 6), fontsize=FONT, parse_math=False, **place)
    pad += 1.4 * FONT * len(below)
    ax.set_title("\n".join(lines), loc="left", fontsize=10, fontweight="bold", pad=pad, parse_math=False)


def write_notes(ax: Axes, notes: list[str]) -> None:
    """Write wrapped lines below the axes."""
    lines = [line for note in notes for line in wrap_to_axes(ax, note, SMALL)]
    if lines:
        ax.set_xlabel("\n".join(lines), loc="left", fontsize=SMALL, labelpad=8, alpha=0.8, parse_math=False)
        ax.xaxis.label.set_multialignment("left")
