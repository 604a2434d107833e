"""Diagnostics in four panels.

1. How far each feature's distribution is from the real one: the largest distances as bars.
2. Correlations of the generated rows against those of the real rows, a point for each pair; on the line they agree.
3. How far counterfactuals are from the nearest training row, and from the nearest one with the wanted decision: the
   share of the counterfactuals within each distance.
4. The share of valid candidates, over the factuals.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.canvas import DARK, FONT, LIGHT, SMALL, as_array, ink, letters_that_fit, new_panels, settle
from mcce.report.words import fold

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mcce.canvas import Panels

MOST_BARS = 12


def overview_plot(
    distances: pd.Series[Any],
    pairs: pd.DataFrame,
    neighbours: pd.DataFrame | None = None,
    validity: pd.Series[Any] | None = None,
    *,
    n_columns: int = 2,
    figure: Figure | None = None,
) -> Panels:
    """Draw diagnostics in up to four panels.

    Parameters
    ----------
    distances : Series
        Feature to the distance of its distribution, from 0 to 1.
    pairs : DataFrame
        `real` and `generated`: the correlation of each pair of features.
    neighbours : DataFrame, optional
        `distance` and `distance_wanted` of each counterfactual.
    validity : Series, optional
        Share of valid candidates of each factual.
    n_columns : int
        Panels in a row.
    figure : Figure, optional
        Where to draw; by default a new one.

    Returns
    -------
    array of Axes
        Those of the panels drawn.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(200).X[["age", "salary", "savings"]]
    >>> generated = mcce.ChainModel(random_state=1).fit(X).sample(200)
    >>> distances = mcce.diagnostics.marginal_distances(X, generated)["distance"]
    >>> correlations = mcce.diagnostics.compare_correlations(X, generated)
    >>> mcce.plots.overview_plot(distances, correlations.pairs, None, None).size
    2
    """
    if neighbours is not None and ("distance" not in neighbours or neighbours.empty):
        neighbours = None
    n_panels = 2 + (neighbours is not None) + (validity is not None)
    _, axes = new_panels(n_panels, n_columns, 4.6, 3.5, figure=figure)
    _draw_distances(axes[0], distances)
    _draw_pairs(axes[1], pairs)
    if neighbours is not None:
        _draw_neighbours(axes[2], neighbours)
    if validity is not None:
        _draw_validity(axes[-1], validity)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return as_array(axes)


def _title(ax: Axes, text: str, x: str, y: str = "") -> None:
    """Write title and labels in lines that fit the panel."""
    ax.set_ylabel(y, fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    settle(ax)
    title, label = ("\n".join(textwrap.wrap(t, letters_that_fit(ax, t, s, 1.0))) for t, s in ((text, 10.5), (x, SMALL)))
    ax.set_title(title, loc="left", fontsize=FONT + 0.5, fontweight="bold")
    ax.set_xlabel(label, fontsize=SMALL)


def _draw_distances(ax: Axes, distances: pd.Series[Any]) -> None:
    shown = distances.sort_values(ascending=False, kind="stable").head(MOST_BARS)
    ax.barh(np.arange(len(shown)), shown.to_numpy(float), 0.66, color=DARK)
    ax.set_yticks(range(len(shown)), [fold(str(name), 22, 1) for name in shown.index], parse_math=False)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlim(0, max(0.1, 1.1 * float(shown.max())))
    more = f"the {len(shown)} largest of {len(distances)} features" if len(shown) < len(distances) else "0 to 1"
    _title(ax, "Distance of the distributions", f"KS or total variation, generated to real ({more})")


def _draw_pairs(ax: Axes, pairs: pd.DataFrame) -> None:
    real, generated = (pairs[name].to_numpy(float) for name in ("real", "generated"))
    low = float(min(0.0, real.min(initial=0.0), generated.min(initial=0.0))) - 0.05
    ax.plot([low, 1.05], [low, 1.05], color=ink(), alpha=0.4, linewidth=0.8)
    ax.plot(real, generated, "o", markersize=4, markerfacecolor="none", markeredgecolor=DARK)
    ax.set_xlim(low, 1.05)
    ax.set_ylim(low, 1.05)
    _title(ax, "Correlations of all pairs", "real rows", "generated rows")


def _draw_neighbours(ax: Axes, neighbours: pd.DataFrame) -> None:
    styles = (("distance", "any training row", "-", DARK), ("distance_wanted", "with the wanted decision", "--", ink()))
    for name, label, dash, color in styles:
        values = np.sort(neighbours[name].dropna().to_numpy(float))
        if values.size:
            steps = np.arange(1, values.size + 1) / values.size
            ax.step(np.append(0, values), np.append(0, steps), where="post", linestyle=dash, color=color, label=label)
    ax.set_ylim(0, 1.02)
    ax.set_xlim(left=0)
    ax.legend(fontsize=SMALL, frameon=False, loc="best")
    _title(ax, "Distance to the nearest training row", "Gower distance", "share of the counterfactuals")


def _draw_validity(ax: Axes, validity: pd.Series[Any]) -> None:
    ax.hist(validity.to_numpy(float), [k / 20 for k in range(21)], color=LIGHT, edgecolor=ink(), linewidth=0.7)
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    _title(ax, "Valid candidates", "share of the draws with the wanted decision", "factuals")
