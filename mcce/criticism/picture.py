"""Pictures of a criticism: what was seen, over the band in which it would lie if the conditional were right.

1. Numbers and ordered levels: the histogram of the PITs. Bars above the band at both ends: too narrow; at one end: too
   low or too high.
2. Unordered levels: the share of the rows that has each level, over the share of the draws; and how often a level is
   seen that has a given probability.
3. The same for the rows of the region that explains most.

Bands hold all bars of a panel together with a probability of at least 95 per cent (Bonferroni).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy

from mcce.arrays import Bools, Floats
from mcce.canvas import DARK, FONT, LIGHT, SMALL, as_array, new_panels
from mcce.criticism.calibration import Calibration
from mcce.criticism.feature import FeatureCriticism
from mcce.criticism.uniformity import BAND, histogram
from mcce.criticism.words import cell_text, p_text, sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mcce.canvas import Panels

WIDTH, HEIGHT = 3.6, 2.6
N_BINS = 8  # of probabilities


def draw_feature(found: FeatureCriticism, level: float) -> Panels:
    """Draw one feature: all rows, and those where it fails most (steps 1 to 3)."""
    everywhere = np.full(found.n_rows, True)
    of_levels = found.pit is None and found.calibration is not None
    n_panels = 1 + int(of_levels) + int(found.failure is not None)
    figure, panels = new_panels(n_panels, n_panels, WIDTH, HEIGHT, 0.45)
    _draw(panels[0], found, everywhere, f"all {found.n_rows:,} rows")
    if of_levels and found.calibration is not None:
        _draw_reliability(panels[1], found.calibration)
    if found.failure is not None:
        inside, p = found.failure.inside, _together(p_text(found.p_where))
        _draw(panels[-1], found, inside, f"{inside.sum():,} rows where {found.failure} ({p})")
    lines = textwrap.wrap(sentence(found, level), int(15 * WIDTH * n_panels / 1.9))
    figure.suptitle("\n".join(lines), x=0.02, ha="left", fontsize=11, fontweight="bold", parse_math=False)
    return as_array(panels)


def draw_all(features: Sequence[FeatureCriticism], level: float) -> Panels:
    """Draw one panel for each feature: all rows."""
    _, panels = new_panels(len(features), min(len(features), 3), WIDTH, HEIGHT)
    for ax, each in zip(panels, features):
        _draw(ax, each, np.full(each.n_rows, True), sentence(each, level))
    return as_array(panels)


def _draw(ax: Axes, found: FeatureCriticism, rows: Bools, title: str) -> None:
    if found.pit is not None:
        _draw_pit(ax, found.pit[rows])
    elif found.calibration is not None:
        _draw_levels(ax, found, found.calibration, rows)
    else:
        ax.set_axis_off()
    folded = textwrap.wrap(title, 46)
    ax.set_title("\n".join(folded), loc="left", fontsize=FONT, parse_math=False)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_pit(ax: Axes, pit: Floats) -> None:
    """Draw a histogram of PITs and its band (step 1)."""
    counts, (low, high) = histogram(pit)
    edges = np.linspace(0.0, 1.0, counts.size + 1)
    outside = (counts < low) | (counts > high)
    colours = np.where(outside, DARK, "0.72")
    ax.axhspan(low, high, color=LIGHT, alpha=0.45, lw=0, zorder=0)
    ax.bar(edges[:-1], counts, 1.0 / counts.size, align="edge", color=colours, ec="white", lw=0.5, alpha=0.9)
    for bound in (low, high):
        ax.axhline(bound, color=LIGHT, lw=1.2)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("PIT: share of the draws below the value", fontsize=SMALL)
    ax.set_ylabel("rows", fontsize=SMALL)


def _draw_levels(ax: Axes, found: FeatureCriticism, tested: Calibration, rows: Bools) -> None:
    """Draw the share of each level among the rows, and the band around its probability (step 2)."""
    q = tested.cells[rows]
    seen = np.bincount(tested.observed[rows], minlength=q.shape[1]) / len(q)
    low, high = _band(q, q.shape[1])
    for place, (share, below, above) in enumerate(zip(seen, low, high)):
        ax.bar(place, share, 0.62, color="0.72" if below <= share <= above else DARK)
        ax.bar(place, above - below, 0.84, bottom=below, color=LIGHT, alpha=0.75)
    names = [cell_text(found, cell).strip("'") for cell in range(q.shape[1])]
    ax.set_xticks(range(len(names)), [textwrap.shorten(name, 14, placeholder="…") for name in names], fontsize=SMALL)
    if sum(map(len, names)) > 34:
        ax.tick_params(axis="x", rotation=30)
    ax.set_ylabel("share of the rows", fontsize=SMALL)


def _draw_reliability(ax: Axes, tested: Calibration) -> None:
    """Draw how often levels are seen that have a given probability (step 2)."""
    q = tested.cells.ravel()
    is_seen = (tested.observed[:, None] == np.arange(tested.cells.shape[1])).ravel()
    edges = np.unique(np.quantile(q, np.linspace(0.0, 1.0, N_BINS + 1)))
    place = np.clip(np.searchsorted(edges, q, side="right") - 1, 0, max(edges.size - 2, 0))
    ax.plot([0, 1], [0, 1], color="0.6", lw=0.8)
    for bin_ in np.unique(place):
        inside = place == bin_
        low, high = _band(q[inside][:, None], int(place.max()) + 1)
        mean, share = float(q[inside].mean()), float(is_seen[inside].mean())
        ax.plot([mean, mean], [low[0], high[0]], color=LIGHT, lw=6, solid_capstyle="butt")
        is_inside = low[0] <= share <= high[0]
        ax.plot(mean, share, "o", ms=4.5, color="0.45" if is_inside else DARK)
    ax.set_xlabel("probability of a level", fontsize=SMALL)
    ax.set_ylabel("how often it is seen", fontsize=SMALL)
    ax.set_title("levels by their probability", loc="left", fontsize=FONT)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)


def _together(text: str) -> str:
    """Return a text that is not broken into lines."""
    return text.replace(" ", "\u00a0")


def _band(q: Floats, n_bands: int) -> tuple[Floats, Floats]:
    """Return the interval of the share seen, for each column of probabilities."""
    half = scipy.stats.norm.isf(0.5 * (1.0 - BAND) / n_bands) * np.sqrt((q * (1.0 - q)).sum(axis=0)) / len(q)
    middle = q.mean(axis=0)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
