"""The cost of a plausibility floor as curves: changes, distances and shares against the floor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.base.canvas import DARK, FONT, SMALL, as_array, ink, prepare_panels
from mcce.exceptions import InputError, did_you_mean
from mcce.report.names import fold, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mcce.base.canvas import Panels

FLOOR_MEASURES = {
    "L0": "features changed",
    "gower_sum": "Gower distance, summed",
    "distance": "distance, 5 nearest rows",
}
SHARES = {"explained": "explained", "above_floor": "of these at or above the floor"}
STYLES = (("o", "-"), ("s", "--"))


def trade_off_plot(table: pd.DataFrame, factual_distance: float, *, axes: Sequence[Axes] | None = None) -> Panels:
    """Draw the cost of a floor of plausibility, from `TradeOff.table`.

    Parameters
    ----------
    table : DataFrame
        A row for each floor, and one without a floor for the plain method: `floor`, L0, gower_sum, distance, explained,
        above_floor.
    factual_distance : float
        The distance of the factuals themselves to the data.
    axes : sequence of Axes, optional
        Where to draw: four.

    Returns
    -------
    array of Axes
        Changes, distance to the factual, distance to the data, shares.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> costs = explainer.trade_off(X, floors=(0, 0.25), n_samples=50, max_factuals=20)
    >>> mcce.plots.trade_off_plot(costs.table, costs.factual_distance).size
    4
    """
    _check_columns(table, ["floor", *FLOOR_MEASURES, *SHARES])
    by_floor = table[table["floor"].notna()].set_index("floor").sort_index()
    plain = table[table["floor"].isna()]
    panels = prepare_panels(axes, len(FLOOR_MEASURES) + 1, 2.6)
    for ax, (measure, words) in zip(panels, FLOOR_MEASURES.items()):
        _draw_line(ax, by_floor[measure], "sparse", 0)
        for value in plain[measure]:
            _draw_level(ax, float(value), "plain method", "--")
        if measure == "distance":
            _draw_level(ax, factual_distance, "the cases themselves", ":")
        _against_floors(ax, by_floor.index, words)
        ax.set_ylim(0, 1.05 * ax.get_ylim()[1])
    for k, (share, words) in enumerate(SHARES.items()):
        _draw_line(panels[-1], by_floor[share], words, k)
    _against_floors(panels[-1], by_floor.index, "share of the cases")
    panels[-1].set_ylim(0, 1.05)
    titles = ("Changes", "Distance to the case", "Distance to the data", "Cases explained")
    for ax, title in zip(panels, titles):
        ax.set_title(title, loc="left", fontsize=FONT, fontweight="bold")
    return as_array(panels)


def _draw_level(ax: Axes, value: float, label: str, dash: str) -> None:
    ax.axhline(value, color=ink(), linestyle=dash, linewidth=1.1, label=label)


def _against_floors(ax: Axes, floors: pd.Index[Any], y: str) -> None:
    """Set a square-root x axis with ticks at the floors."""
    ax.set_xscale("function", functions=(lambda v: np.sign(v) * np.sqrt(np.abs(v)), lambda v: np.sign(v) * v**2))
    highest = max(float(floors.max()), 0.01)
    ax.set_xlim(-0.002 * highest, 1.1 * highest)
    ax.set_xticks(floors.to_numpy(float), [value_text(float(v)) if v else "0" for v in floors])
    ax.minorticks_off()
    _style_axes(ax, "floor of plausibility", y)


def _draw_line(ax: Axes, line: pd.Series[Any], label: str, k: int) -> None:
    marker, dash = STYLES[k]
    ax.plot(
        line.index.to_numpy(float),
        line.to_numpy(float),
        marker=marker,
        linestyle=dash,
        color=(DARK, ink())[k],
        markersize=4.5,
        linewidth=1.3,
        markerfacecolor="none" if k else DARK,
        label=fold(label, 30, 1),
    )


def _style_axes(ax: Axes, x: str, y: str) -> None:
    ax.set_xlabel(x, fontsize=SMALL)
    ax.set_ylabel(y, fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3, linewidth=0.6)
    ax.legend(fontsize=SMALL - 0.5, frameon=False)


def _check_columns(frame: pd.DataFrame, names: list[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise InputError(f"the table has no column {name!r}; {did_you_mean(name, frame.columns)}")
