"""Measures of counterfactuals by group: a panel for each measure, a point with its interval for each group.

A dotted line is the mean of all. A point is filled if the interval of its difference to the rest excludes 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mcce.base.canvas import DARK, FONT, SMALL, as_array, ink, prepare_panels
from mcce.report.names import fold, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mcce.base.canvas import Panels

TITLES = {
    "gower": ("Distance", "Gower distance to the case, mean"),
    "L0": ("Changes", "features changed, mean"),
    "explained": ("Cases explained", "share of the cases explained"),
    "plausibility": ("Plausibility", "share of real rows no more plausible, mean"),
}


def groups_plot(
    table: pd.DataFrame,
    overall: pd.DataFrame,
    name: str,
    *,
    confidence: float = 0.95,
    texts: Sequence[str] | None = None,
    axes: Sequence[Axes] | None = None,
) -> Panels:
    """Draw measures by group, from `Groups.table` and `Groups.overall`.

    Parameters
    ----------
    table : DataFrame
        Indexed by (group, measure), the measures of each group in the order of `overall`: n, mean, low, high,
        difference_low, difference_high.
    overall : DataFrame
        Indexed by measure: `mean` of all.
    name : str
        The name of the column of groups.
    confidence : float
        The coverage of the intervals, for the caption.
    texts : sequence of str, optional
        The names of the groups; by default their values.
    axes : sequence of Axes, optional
        Where to draw: one for each measure.

    Returns
    -------
    array of Axes
        One for each measure, in the order of `overall`.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> groups = explainer.explain(X.head(100), n_samples=50).by("age", bins=2)
    >>> mcce.plots.groups_plot(groups.table, groups.overall, "age").size == len(groups.overall)
    True
    """
    measures = list(overall.index)
    n_groups = len(table) // len(measures)
    groups = table.index.get_level_values("group")[:: len(measures)]
    called = [value_text(group) for group in groups] if texts is None else list(texts)
    panels = prepare_panels(axes, len(measures), 1.1 + 0.3 * n_groups, n_columns=1)
    for k, (ax, measure) in enumerate(zip(panels, measures)):
        _draw(ax, table.iloc[k :: len(measures)], called, float(overall.loc[measure, "mean"]))
        if measure == "explained":
            ax.set_xlim(-0.03, 1.03)
        title, words = TITLES.get(measure, (measure, measure))
        ax.set_title(f"{title}, by {fold(name, 24, 1)}", loc="left", fontsize=FONT, fontweight="bold", parse_math=False)
        ax.set_xlabel(words, fontsize=SMALL)
    note = f"Dotted: all together. Filled: differs from the rest with confidence {confidence:.12g}. In brackets: cases."
    panels[-1].annotate(
        note,
        (1, 0),
        xytext=(0, -34),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=SMALL - 0.5,
        alpha=0.8,
    )
    return as_array(panels)


def _draw(ax: Axes, rows: pd.DataFrame, called: Sequence[str], overall: float) -> None:
    places = np.arange(len(rows))
    names = [f"{fold(text, 22, 1)} ({n:,})" for text, n in zip(called, rows["n"].tolist())]
    for place, (mean, low, high) in enumerate(rows[["mean", "low", "high"]].to_numpy(dtype=np.float64)):
        if not np.isnan(low):
            ax.plot([low, high], [place, place], color=DARK, linewidth=1.6, solid_capstyle="butt")
        begin, end = rows[["difference_low", "difference_high"]].to_numpy(dtype=np.float64)[place]
        differs = bool(begin > 0 or end < 0)
        ax.plot(mean, place, "o", markersize=6, color=DARK, markerfacecolor=DARK if differs else ax.get_facecolor())
    if not np.isnan(overall):
        ax.axvline(overall, color=ink(), linestyle=":", linewidth=1.0, zorder=0)
    ax.set_yticks(places, names, fontsize=SMALL, parse_math=False)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.locator_params(axis="x", nbins=5)
    ax.tick_params(axis="x", labelsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", alpha=0.3, linewidth=0.6)
