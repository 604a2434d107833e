"""Changes over many factuals: a bar for each feature, with the share of the factuals in which it changes.

Increases are dark, decreases light, other levels hatched, changes from or to missing dotted. At most 30 features have a
bar; features that never change are listed below.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.canvas import DARK, FONT, LIGHT, SMALL, WIDTH, ink, new_axes, write_caption, write_title
from mcce.report.names import Names, fold
from mcce.report.rows import Result, best_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = (("up", DARK, ""), ("down", LIGHT, ""), ("other", "none", "////"), ("missing", "none", "...."))
WIDE, NARROW = 6.0, 4.0  # inches of the axes; narrower ones have shorter bars, or no notes
MOST_BARS = 30
LEGEND = 5  # rows below the bars for the legend, where the last bars are long
WORDS = {"up": "higher", "down": "lower", "other": "another level", "missing": "from or to missing"}


def changes_plot(found: Result, ax: Axes | None = None) -> Axes:
    """Draw how often each feature changes, and in which direction, over the best counterfactual of every factual.

    Parameters
    ----------
    found : Counterfactuals
    ax : Axes, optional
        Where to draw; by default a new figure whose height fits the number of bars.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> found = explainer.explain(X.head(100), sparse=True, n_samples=100)
    >>> mcce.plots.changes_plot(found).get_yticks().size
    2
    """
    n_best = int(best_rows(found).sum())
    return draw_changes(found.changed_features(), n_best, fixed=found.fixed, names=found.names, ax=ax)


def draw_changes(
    changes: pd.DataFrame,
    n_factuals: int,
    *,
    fixed: Sequence[Hashable] = (),
    names: Names | None = None,
    counted: str = "cases, the best counterfactual of each",
    ax: Axes | None = None,
) -> Axes:
    """Draw how often each feature changes, and in which direction.

    Parameters
    ----------
    changes : DataFrame
        Indexed by feature: `up`, `down` and `other`, the shares of factuals in which it changes so; optionally
        `missing`, and `note`, a few words after the bar. `Counterfactuals.changed_features` returns such a
        table.
    n_factuals : int
        The number of factuals.
    fixed : sequence
        Features that may not change, listed in the caption.
    names : Names, optional
        Labels of the features, as in `Counterfactuals.names`.
    counted : str
        The cases that the shares refer to, for the caption.
    ax : Axes, optional
        Where to draw; by default a new figure whose height fits the number of bars.
    """
    names = names or Names()
    parts = [part for part in PARTS if part[0] in changes]
    total = changes[[part for part, _, _ in parts]].sum(axis=1)
    changing = changes[total.to_numpy() > 0].iloc[np.argsort(-total[total > 0].to_numpy(), kind="stable")]
    drawn = changing.iloc[:MOST_BARS]
    if ax is None:
        ax = new_axes(WIDTH, 1.6 + 0.3 * max(len(drawn), 1))
    inches = ax.get_window_extent().width / ax.figure.dpi
    narrow = inches < NARROW
    places = np.arange(len(drawn))
    begin: npt.NDArray[np.float64] = np.zeros(len(drawn))
    for part, color, hatch in parts:
        share = drawn[part].to_numpy(dtype=np.float64)
        if share.any():
            ax.barh(
                places,
                share,
                0.66,
                left=begin,
                color=color,
                hatch=hatch,
                edgecolor=ink(),
                linewidth=0.7,
                label=WORDS[part],
            )
        begin = begin + share
    notes = [str(note) for note in drawn["note"]] if "note" in drawn else [""] * len(drawn)
    for place, (note, share) in enumerate(zip(notes, begin.tolist())):
        text = f"{share:.0%}" + (f"  {fold(note, 30, 1)}" if note and not narrow else "")
        ax.annotate(text, (share, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=SMALL)
    if not len(drawn):
        ax.text(0.5, 0, "nothing changes", ha="center", va="center", fontsize=FONT)
    _style_axes(ax, [names.label(f) for f in drawn.index], narrow, n_below=LEGEND if len(changing) > len(drawn) else 0)
    ax.set_xlim(0, 1.9 if any(notes) and NARROW <= inches < WIDE else 1.34)
    fixed = list(fixed)
    never = [names.label(name) for name in changes.index if name not in changing.index and name not in fixed]
    sentences = [f"{n_factuals:,} {counted}."]
    if len(changing) > len(drawn):
        sentences.append(f"{len(changing) - len(drawn)} further features change, none more often than these.")
    sentences += [f"Never changed: {', '.join(never)}."] if never else []
    sentences += [f"Fixed: {', '.join(map(names.label, fixed))}."] if fixed else []
    write_caption(ax, " ".join(sentences))
    return ax


def _style_axes(ax: Axes, drawn: Sequence[str], narrow: bool, n_below: int) -> None:
    names = [fold(f, 18 if narrow else 30, 1) for f in drawn]
    ax.set_yticks(range(len(drawn)), names, fontsize=FONT, parse_math=False)
    ax.set_ylim(max(len(drawn), 1) + n_below - 0.5, -0.5)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.spines["left"].set_visible(bool(len(drawn)))
    if len(drawn):
        legend = ax.legend(loc="lower right", fontsize=SMALL, frameon=False, title="new value")
        legend.get_title().set_fontsize(SMALL)
    write_title(ax, "Which features the counterfactuals change")
