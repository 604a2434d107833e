"""A correlation matrix as circles (paper, figures of Experiment 3).

1. The area of a circle is the absolute value of the correlation; a circle that fills its cell is 1 (or `scale`).
2. Filled circles are positive, open ones negative: told apart without colour.
3. The lower triangle is drawn; with few features the upper one has the numbers.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mcce.arrays import Floats, Indices
from mcce.canvas import DARK, SMALL, ink, letters_that_fit, new_axes, settle, write_caption, write_title
from mcce.exceptions import InputError
from mcce.report.words import fold

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_NUMBERS = 12
CELL, CELL_WITH_NUMBER = 0.24, 0.43  # inches for a feature


def correlation_plot(
    matrix: pd.DataFrame, *, title: str = "Correlations", scale: float = 1.0, ax: Axes | None = None
) -> Axes:
    """Draw a correlation matrix, or a difference of two, as circles.

    Parameters
    ----------
    matrix : DataFrame
        Symmetric, the same features in rows and columns; as `mcce.diagnostics.correlations` returns it.
    title : str
    scale : float
        The absolute value that fills a cell. 1 compares with a whole correlation; less shows small differences.
    ax : Axes, optional
        Where to draw; by default a new figure whose size fits the number of features.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(200).X[["age", "salary", "savings"]]
    >>> ax = mcce.plots.correlation_plot(X.corr())
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['age', 'salary', 'savings']
    """
    p = len(matrix)
    if matrix.shape != (p, p) or list(matrix.index) != list(matrix.columns) or p == 0:
        raise InputError(f"matrix has shape {matrix.shape}; give a square one with the same names on both sides.")
    if not scale > 0:
        raise InputError(f"scale is {scale!r}; give the absolute value that fills a cell, above 0.")
    names = [fold(str(name), 26, 1) for name in matrix.columns]
    if ax is None:
        square = max(2.8, (CELL_WITH_NUMBER if p <= MOST_NUMBERS else CELL) * p)
        names_take, title_takes = 0.062 * max(map(len, names)), 0.2 * math.ceil(0.11 * len(title) / square)
        ax = new_axes(square + names_take + 0.3, square + names_take + title_takes + 0.75)
    values = matrix.to_numpy(dtype=np.float64)
    rows, columns = np.tril_indices(p, -1)
    _draw_circles(ax, rows, columns, values[rows, columns] / scale)
    size = SMALL if p <= 25 else SMALL - 1
    ax.set_xticks(range(p), names, rotation=90, fontsize=size, parse_math=False)
    ax.set_yticks(range(p), names, fontsize=size, parse_math=False)
    ax.set_xlim(-0.5, p - 0.5)
    ax.set_ylim(p - 0.5, -0.5)
    ax.set_aspect("equal")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for edge in np.arange(-0.5, p):
        ax.plot([edge, edge], [-0.5, p - 0.5], color=ink(), alpha=0.12, linewidth=0.6, zorder=0)
        ax.plot([-0.5, p - 0.5], [edge, edge], color=ink(), alpha=0.12, linewidth=0.6, zorder=0)
    write_title(ax, title)
    if p <= MOST_NUMBERS and letters_that_fit(ax, "-0.00", SMALL, 1 / p, least=0) > len("-0.00"):
        for i, j in itertools.combinations(range(p), 2):
            ax.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", fontsize=SMALL)
    write_caption(ax, f"Area: absolute value, {scale:g} fills a cell. Filled: positive. Open: negative.")
    settle(ax)  # once more: a square within the figure moves when the caption takes its place
    return ax


def _draw_circles(ax: Axes, rows: Indices, columns: Indices, shares: Floats) -> None:
    from matplotlib.collections import EllipseCollection

    diameters = 0.94 * np.sqrt(np.clip(np.abs(shares), 0.0, 1.0))
    for sign, face in ((shares > 0, DARK), (shares < 0, "none")):
        circles = EllipseCollection(
            diameters[sign],
            diameters[sign],
            np.zeros(int(sign.sum())),
            units="xy",
            offsets=np.column_stack([columns[sign], rows[sign]]),
            transOffset=ax.transData,
            facecolors=face,
            edgecolors=DARK if face == DARK else ink(),
            linewidths=0.9,
        )
        ax.add_collection(circles)
