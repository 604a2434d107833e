"""Font sizes, colours, new figures and captions shared by all plots.

matplotlib is imported on demand; no global setting is changed and no figure is shown.
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
WIDTH = 5.4  # inches: shown 400 pixels wide, letters of SMALL - 1 points are 7 pixels high
PANEL = WIDTH / 2
DARK, LIGHT = "#2a4d7c", "#f0be78"  # about 0.3 and 0.77 in grey: distinguishable without colour


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of this size in inches."""
    import matplotlib.pyplot as plt

    axes: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def new_panels(
    n: int, n_columns: int, width: float, height: float, extra: float = 0.0, figure: Figure | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `n` panels in rows of `n_columns`; a new one has panels of this size in inches."""
    n_rows = math.ceil(n / n_columns)
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(width * n_columns, height * n_rows + extra), layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())
    for unused in panels[n:]:
        unused.remove()
    return figure, panels[:n]


def prepare_panels(axes: Sequence[Axes] | None, n: int, height: float, n_columns: int = 2) -> list[Axes]:
    """Return the given `n` axes, or the panels of a new figure, each of this height in inches."""
    if axes is None:
        return new_panels(n, min(n, n_columns), PANEL if n_columns > 1 else WIDTH, height)[1]
    given = list(np.atleast_1d(np.asarray(axes, dtype=object)))
    if len(given) != n:
        raise InputError(f"axes has {len(given)} axes for {n} panels; give one for each.")
    return given


def as_array(axes: list[Axes]) -> Panels:
    """Return axes as an array, as `plt.subplots` does."""
    panels = np.empty(len(axes), dtype=object)
    panels[:] = axes
    return panels


def ink() -> str:
    """Return the colour of text in the current style."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def count_fitting_letters(ax: Axes, text: str, size: float, share: float = 0.92, least: int = 8) -> int:
    """Return the number of letters of the text's mean width that fit into a share of the axes, at least `least`."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import text_to_path

    vertices, codes = text_to_path.get_text_path(FontProperties(size=size), text)  # empty for invisible letters
    # the ends of curves; exact extents are slow
    x = np.reshape(vertices, (-1, 2))[np.asarray(codes) != Path.CLOSEPOLY, 0]
    letter = float(np.ptp(x)) * size / text_to_path.FONT_SCALE / len(text) if len(x) else 0.0
    points = ax.get_window_extent().width * 72 / ax.figure.dpi
    return max(int(share * points / max(letter, 1.0)), least)


def wrap_to_axes(ax: Axes, text: str, size: float) -> list[str]:
    """Return a text in lines that fit into the axes' width, those of wide letters included."""
    n = count_fitting_letters(ax, text, size)
    while True:
        lines = textwrap.wrap(text, n, break_on_hyphens=False)
        if n <= 8 or all(len(line) <= count_fitting_letters(ax, line, size, 0.98) for line in lines):
            return lines
        n = max(int(0.9 * n), 8)


def lay_out(ax: Axes) -> None:
    """Lay the figure out, so that widths are final."""
    figure = ax.figure
    while getattr(figure, "figure", figure) is not figure:  # a part of a larger figure
        figure = figure.figure
    figure.draw_without_rendering()  # type: ignore[union-attr]


def set_axes_height(axes: Sequence[Axes], inches: float) -> None:
    """Set the height of the figure so that axes one below the other have this height together."""
    lay_out(axes[0])
    figure = axes[0].figure
    taken = sum(ax.get_window_extent().height for ax in axes) / figure.dpi
    figure.set_figheight(figure.get_figheight() + inches - taken)  # type: ignore[union-attr]
    lay_out(axes[0])


def write_title(ax: Axes, title: str) -> None:
    """Write a wrapped title at the left."""
    lay_out(ax)
    ax.set_title(
        "\n".join(wrap_to_axes(ax, title, 12.5)), loc="left", fontsize=11, fontweight="bold", pad=8, parse_math=False
    )


def write_caption(ax: Axes, caption: str) -> None:
    """Write a wrapped caption below the axes."""
    lay_out(ax)
    ax.set_xlabel(
        "\n".join(wrap_to_axes(ax, caption, SMALL)),
        loc="left",
        fontsize=SMALL,
        labelpad=8,
        alpha=0.8,
        parse_math=False,
    )
    ax.xaxis.label.set_multialignment("left")
