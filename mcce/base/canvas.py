"""Font sizes, colours, figures and captions shared by all plots.

matplotlib is imported by the first plot; no global setting is changed and no figure is shown.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mcce.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Panels = npt.NDArray[np.object_]

FONT, SMALL = 9.0, 8.0
DARK, LIGHT = "#2a4d7c", "#f0be78"  # grey values 0.3 and 0.77: distinguishable without colour


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of this size in inches."""
    import matplotlib.pyplot as plt

    axes: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def new_panels(
    n: int, n_columns: int, width: float, height: float, extra: float = 0.0, figure: Figure | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `n` panels in rows of `n_columns`; width and height are inches per panel of a new figure."""
    n_rows = math.ceil(n / n_columns)
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width * n_columns, height * n_rows + extra), layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())
    for unused in panels[n:]:
        unused.remove()
    return figure, panels[:n]


def given_panels(axes: Sequence[Axes] | None, n: int, width: float, height: float) -> list[Axes]:
    """Return the `n` given axes, or panels of this size in inches of a new figure, two in a row."""
    if axes is None:
        return new_panels(n, min(n, 2), width, height)[1]
    given = list(np.atleast_1d(np.asarray(axes, dtype=object)))
    if len(given) != n:
        raise InputError(f"axes has {len(given)} axes for {n} panels; give one for each.")
    return given


def as_array(axes: list[Axes]) -> Panels:
    """Return axes as an array like that of `plt.subplots`."""
    panels = np.empty(len(axes), dtype=object)
    panels[:] = axes
    return panels


def ink() -> str:
    """Return the text colour of the current style."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def letters_that_fit(ax: Axes, text: str, size: float, share: float = 0.92, least: int = 8) -> int:
    """Return the number of letters of average width that fit into a share of the axes' width; at least `least`."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import text_to_path

    vertices, codes = text_to_path.get_text_path(FontProperties(size=size), text)  # blanks have no path
    # control points of the curves: exact extents are slow
    x = np.reshape(vertices, (-1, 2))[np.asarray(codes) != Path.CLOSEPOLY, 0]
    letter = float(np.ptp(x)) * size / text_to_path.FONT_SCALE / len(text) if len(x) else 0.0
    points = ax.get_window_extent().width * 72 / ax.figure.dpi
    return max(int(share * points / max(letter, 1.0)), least)


def lay_out(ax: Axes) -> None:
    """Lay out the figure, so that the widths of its axes are final."""
    figure = ax.figure
    while getattr(figure, "figure", figure) is not figure:  # a part of a larger figure
        figure = figure.figure
    figure.draw_without_rendering()  # type: ignore[union-attr]


def write_title(ax: Axes, title: str) -> None:
    """Write a wrapped title at the left."""
    lay_out(ax)
    lines = textwrap.wrap(title, letters_that_fit(ax, title, 12.5)) or [""]
    ax.set_title("\n".join(lines), loc="left", fontsize=11, fontweight="bold", pad=8, parse_math=False)


def write_caption(ax: Axes, caption: str) -> None:
    """Write a wrapped caption below the axes."""
    lay_out(ax)
    lines = textwrap.wrap(caption, letters_that_fit(ax, caption, SMALL), break_on_hyphens=False)
    ax.set_xlabel("\n".join(lines), loc="left", fontsize=SMALL, labelpad=8, alpha=0.8, parse_math=False)
    ax.xaxis.label.set_multialignment("left")
