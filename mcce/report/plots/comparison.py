"""Differences of samplers to the best one: a panel for each feature, with standard errors of the paired difference.

Filled points are within one standard error of the best. Points beyond the axis are written at its edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.base.canvas import DARK, FONT, PANEL, SMALL, as_array, ink, new_panels
from mcce.base.checks import check_count
from mcce.exceptions import InputError
from mcce.report.names import fold

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mcce.base.canvas import Panels

WORDS = {"log_score": "log score behind the best", "loss": "{} above the best"}
FAR = 4.0  # end of the axis, in differences of the median sampler


def comparison_plot(scores: pd.DataFrame, *, by: str = "log_score", n_columns: int = 2) -> Panels:
    """Draw the difference of each sampler to the best, from `Comparison.scores`.

    Parameters
    ----------
    scores : DataFrame
        Indexed by feature and sampler: `log_score_behind` or `loss_behind`, each with its `_se`, and `loss_name`.
    by : "log_score" or "loss"
    n_columns : int
        Panels in a row.

    Returns
    -------
    array of Axes
        One for each feature.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(200).X[["age", "salary", "savings"]]
    >>> compared = mcce.compare_conditionals(X, ["marginal", "cart"], fixed=["age"], n_draws=5)
    >>> mcce.plots.comparison_plot(compared.scores).size >= 2
    True
    """
    if by not in WORDS:
        raise InputError(f"by is {by!r}; it must be 'log_score' or 'loss'.")
    n_columns = check_count(n_columns, "n_columns")
    names = list(dict.fromkeys(scores.index.get_level_values("feature")))
    n_samplers = len(dict.fromkeys(scores.index.get_level_values("sampler")))
    n_columns = min(n_columns, len(names))
    _, panels = new_panels(len(names), n_columns, PANEL, 0.9 + 0.2 * n_samplers)
    for ax, name in zip(panels, names):
        rows = scores.xs(name, level="feature")
        _draw(ax, rows[f"{by}_behind"], rows[f"{by}_behind_se"])
        ax.set_title(fold(str(name), 34, 1), loc="left", fontsize=FONT, fontweight="bold", parse_math=False)
        ax.set_xlabel(WORDS[by].format(rows["loss_name"].iloc[0]), fontsize=SMALL)
    return as_array(panels)


def _draw(ax: Axes, behind: pd.Series[Any], error: pd.Series[Any]) -> None:
    from matplotlib.ticker import MaxNLocator

    places = np.arange(len(behind))
    edge = _edge(behind, error)
    for place, far, width in zip(places, behind.to_numpy(float), error.to_numpy(float)):
        if np.isnan(far):
            ax.annotate("left out", (0.04 * edge, place), va="center", fontsize=SMALL, alpha=0.6)
        elif far > edge:
            ax.annotate(f"{far:.2g} \u2192", (edge, place), ha="right", va="center", fontsize=SMALL)
        else:
            face = DARK if far <= width else "none"
            ax.errorbar(
                far, place, xerr=width, fmt="o", color=DARK, markerfacecolor=face, markersize=4.5, linewidth=1.1
            )
    ax.axvline(0.0, color=ink(), linewidth=0.8, linestyle=":")
    ax.set_yticks(places, [fold(str(label), 18, 1) for label in behind.index], parse_math=False)
    ax.set_ylim(len(places) - 0.5, -0.5)
    ax.set_xlim(-0.08 * edge, 1.05 * edge)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", alpha=0.3, linewidth=0.6)


def _edge(behind: pd.Series[Any], error: pd.Series[Any]) -> float:
    """Return the end of the axis."""
    known = behind.notna() & (behind > 0)
    if not known.any():
        return 1.0
    ends = (behind + error)[known]
    return float(min(ends.max(), max(FAR * behind[known].median(), ends.min())))
