"""Three pictures: what changes for one row, what changes for many, and real against drawn columns.

`change_plot` has a row for each changed feature. A number stands on a line that spans 98 per cent of the training rows
and both values, over their distribution, with an arrow from the old to the new value; the line is logarithmic where
few values take most of it (`make_scale`). A level has a bar for the share of each level, with an arrow beside them.
Other values are written out. `changes_plot` has a bar for each feature, `marginal_plot` a histogram.

Every function returns the Axes (an array of them for several), which are neither shown nor closed; `ax=` draws on given
ones. New figures are as high as their content, and all texts are legible at a width of 400 pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce._utils import Floats
from mcce.exceptions import InputError
from mcce.report.canvas import (
    DARK,
    FONT,
    LIGHT,
    SMALL,
    WIDTH,
    count_fitting_letters,
    inches,
    ink,
    lay_out,
    new_axes,
    points,
    set_axes_height,
    write_notes,
    write_title,
)
from mcce.report.text import PREDICTION, Words, fold, is_same, name_text, value_text
from mcce.table import Data, Feature, Kind, Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["change_plot", "changes_plot", "marginal_plot"]

NAME, NUMBER, LEVEL = 12, 13, 15  # letters in a line
MOST_ROWS, MOST_LEVELS, MOST_NAMES = 20, 7, 8  # of a picture, of a feature, and of a list of features
ROW = 0.56  # inches of a row, which is 1 on the y axis
LEVEL_ROW, LEVEL_LINE, LEVEL_GAP = 0.2, 0.13, 0.16  # inches: a level, further lines of its name, around the levels
HILL, N_BARS = 0.36, 24  # height of the shading as a share of a row, and number of bars of a distribution
BESIDE, BESIDE_LEVELS = 1.05, 1.15  # inches on both sides of the lines
SHADED = "Shaded: the training rows; 98 of 100 are on the line."
SHARED = "Bars: their share of the training rows."


# ---------------------------------------------------------------------------------------------------------------------
# one row
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A row of the picture of one change; `height` is in units of the y axis."""

    name: Hashable
    before: Any
    after: Any
    texts: tuple[str, str]
    quantiles: Sequence[Any] = ()  # of a number, for a line
    levels: Sequence[tuple[str, float]] = ()  # name and share, for bars
    height: float = 1.0


def change_plot(
    factual: pd.Series[Any],
    counterfactual: pd.Series[Any],
    *,
    kinds: Mapping[Any, str],
    distributions: Mapping[Any, pd.DataFrame],
    fixed: Sequence[Hashable] = (),
    derived: Sequence[Hashable] = (),
    predictions: tuple[Any, Any] | None = None,
    decision: str = "",
    labels: Mapping[Any, str] | None = None,
    formats: Mapping[Any, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what changes between a row and its counterfactual; `Counterfactuals.plot` calls it.

    Parameters
    ----------
    factual, counterfactual : Series
        The two rows, indexed by feature; the name of the first is in the title.
    kinds : mapping
        Feature to "numeric", "ordered" or "categorical".
    distributions : mapping
        Feature to its training values, as in `Counterfactuals.distributions`; others are written out.
    fixed, derived : sequence
        Features that may not change, and those that a formula computes, which are listed below.
    predictions : pair or None
        The model's prediction before and after.
    decision : str
        The wanted decision.
    labels, formats : mapping or None
        As in `Counterfactuals.sentence`.
    ax : Axes or None
        Where to draw; None makes a figure whose height follows the number of changes.
    """
    words = Words.read(labels, formats, counterfactual.index)
    before, after = factual.to_dict(), counterfactual.to_dict()
    same = [name for name in before if is_same(before[name], after[name])]
    changed = [name for name in before if name not in same and name not in derived]
    rows = [_row(name, before[name], after[name], kinds, distributions, words) for name in changed[:MOST_ROWS]]
    heights = np.array([row.height for row in rows] or [1.0])
    middles = (np.cumsum(heights) - heights / 2 - 0.5).tolist()[: len(rows)]
    is_new = ax is None
    ax = new_axes(2.0 + ROW * heights.sum()) if ax is None else ax
    _style_rows(ax, rows, middles, heights.sum(), words)
    logarithmic = []
    for row, middle in zip(rows, middles):
        if row.quantiles:
            logarithmic += [words.label(row.name)] * _draw_number(ax, middle, row, words)
        elif row.levels:
            _draw_levels(ax, middle, row)
        else:
            _draw_words(ax, middle, row.texts)
    if not rows:
        ax.text(0.5, 0, "nothing changes", ha="center", va="center", fontsize=FONT)
    notes = [SHADED] * any(row.quantiles for row in rows) + [SHARED] * any(row.levels for row in rows)
    notes += [f"Logarithmic scale: {', '.join(logarithmic)}."] if logarithmic else []
    follows = [(name, before[name], after[name]) for name in derived if name not in same]
    lists = {
        f"{len(changed) - MOST_ROWS} more change": changed[MOST_ROWS:],
        "Fixed": [name for name in same if name in fixed],
        "Unchanged": [name for name in same if name not in fixed],
    }
    lines = [" ".join(notes), *_lists(lists, words)]
    write_notes(ax, [*lines, f"Follows: {words.instead(follows)}."] if follows else lines)
    _write_titles(ax, factual.name, predictions, decision, words)
    if is_new:
        set_axes_height(ax, ROW * heights.sum())
    return ax


def _row(
    name: Hashable, before: Any, after: Any, kinds: Mapping[Any, str], distributions: Mapping[Any, Any], words: Words
) -> _Row:
    texts = words.pair(name, before, after)
    training = distributions.get(name)
    if training is None or (kinds[name] == "numeric" and (pd.isna(before) or pd.isna(after))):
        return _Row(name, before, after, texts)
    if kinds[name] == "numeric":
        return _Row(name, before, after, texts, quantiles=list(training["value"]))
    names = [words.text(name, value) for value in training["value"].astype(object)]
    shares = {text: 0.0 for text in [*names, *texts]}
    for text, share in zip(names, training["share"]):
        shares[text] += float(share)
    often = sorted(shares, key=lambda text: (text not in texts, -shares[text]))
    rare = often[MOST_LEVELS:] if len(often) > MOST_LEVELS + 1 else []
    levels = [(text, share) for text, share in shares.items() if text not in rare]
    levels += [(f"{len(rare)} others", sum(shares[text] for text in rare))] if rare else []
    height = (sum(_level_inches(text, texts) for text, _ in levels) + LEVEL_GAP) / ROW
    return _Row(name, before, after, texts, levels=levels, height=max(height, 1.0))


def _level_name(text: str, both: Sequence[str]) -> str:
    return fold(text, LEVEL, 3 if text in both else 2)


def _level_inches(text: str, both: Sequence[str]) -> float:
    return LEVEL_ROW + LEVEL_LINE * _level_name(text, both).count("\n")


def _style_rows(ax: Axes, rows: Sequence[_Row], middles: Sequence[float], height: float, words: Words) -> None:
    """Label the rows, hide the axes, and leave space for values."""
    ax.set_ylim(height - 0.5, -0.5)
    ax.set_yticks(middles, [fold(words.label(row.name), NAME, 3) for row in rows], fontsize=FONT, parse_math=False)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    lay_out(ax)
    beside = BESIDE_LEVELS if any(row.levels for row in rows) else BESIDE
    margin = beside / max(inches(ax) - 2 * beside, beside)
    ax.set_xlim(-margin, 1 + margin)


def _draw_number(ax: Axes, y: float, row: _Row, words: Words) -> bool:
    """Draw a number on its line; return whether the line is logarithmic."""
    n = len(row.quantiles) - 1
    ends = sorted([row.quantiles[round(0.01 * n)], row.quantiles[round(0.99 * n)], row.before, row.after], key=_number)
    training = np.array([_number(value) for value in row.quantiles])
    place, is_logarithmic = make_scale(training, _number(ends[0]), _number(ends[-1]))
    shares, edges = np.histogram(place(training), N_BARS, (0, 1))
    hill = y - HILL * shares / max(shares.max(), 1)
    ax.stairs(hill, edges, baseline=y, fill=True, color=DARK, alpha=0.28, linewidth=0, zorder=0.4)
    for end, x in ((ends[0], 0), (ends[-1], 1)):
        text = fold(words.text(row.name, end), NUMBER, 1)
        _write(ax, text, (x, y), (7 if x else -7, 0), fontsize=SMALL - 1)
    ax.plot([0, 1], [y, y], color=ink(), alpha=0.2, linewidth=1, zorder=1, solid_capstyle="butt")
    marks = place(np.array([_number(row.before), _number(row.after)])).tolist()
    outward = 2 if marks[1] >= marks[0] else -2
    for text, x, offset, weight in zip(row.texts, marks, (-outward, outward), ("normal", "bold")):
        style = {"va": "top", "fontsize": FONT, "fontweight": weight, "alpha": 1.0}
        _write(ax, fold(text, NUMBER), (x, y), (offset, -7), **style)
    _draw_marks(ax, (marks[0], y), (marks[1], y))
    return is_logarithmic


def _number(value: Any) -> float:
    """Return a number as it is, a period by its ordinal, dates and durations in seconds."""
    if isinstance(value, pd.Period):
        return float(value.ordinal)
    if isinstance(value, (date, np.datetime64)):
        return pd.Timestamp(value).timestamp()
    if isinstance(value, (timedelta, np.timedelta64)):
        return pd.Timedelta(value).total_seconds()
    return float(value)


def make_scale(training: Floats, low: float, high: float) -> tuple[Callable[[Floats], Floats], bool]:
    """Return the function that places numbers on a line, 0 for `low` and 1 for `high`, and whether it is logarithmic.

    It is linear, or logarithmic if one side of the median is more than three times as long as the other: position =
    log(1 + d / b) / log(1 + w / b), with d the distance from the crowded end, w the width of the line, and b the
    distance from that end of the median (if 0, of the median of the other numbers). Numbers beyond an end are on it.
    """
    width = max(high - low, np.finfo(np.float64).tiny)
    below = float(np.clip(np.median(training) - low, 0.0, width))
    near, far = sorted([below, width - below])
    is_mirrored, is_logarithmic = below > width / 2, far > 3 * near
    distances = high - training if is_mirrored else training - low
    away = distances[distances > 0]
    bend = near or (float(np.median(away)) if away.size else width)

    def place(numbers: Floats) -> Floats:
        distance = np.clip(high - numbers if is_mirrored else numbers - low, 0.0, width)
        share = np.log1p(distance / bend) / np.log1p(width / bend) if is_logarithmic else distance / width
        return np.asarray(1.0 - share if is_mirrored else share)

    return place, is_logarithmic


def _write(ax: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **style: Any) -> None:
    """Write a text beside a point, on the side of the offset in points."""
    style = {"ha": "left" if offset[0] > 0 else "right", "va": "center", "alpha": 0.75, **style}
    ax.annotate(text, at, xytext=offset, textcoords="offset points", parse_math=False, **style)


def _draw_levels(ax: Axes, y: float, row: _Row) -> None:
    """Draw a bar for the share of each level, and an arrow from the old to the new level."""
    names = [text for text, _ in row.levels]
    old, new = (names.index(text) for text in row.texts)
    heights = np.array([_level_inches(text, row.texts) for text in names]) / ROW
    places = (y - heights.sum() / 2 + np.cumsum(heights) - heights / 2).tolist()
    begin, most = points(ax, 9), max(max(share for _, share in row.levels), 1e-9)
    for k, (place, (text, share)) in enumerate(zip(places, row.levels)):
        width = (1 - begin) * share / most
        alpha, weight = (0.75, "bold") if k == new else (0.28, "normal")
        ax.barh(place, width, 0.6 * LEVEL_ROW / ROW, left=begin, color=DARK, alpha=alpha)
        style = {"fontsize": SMALL, "fontweight": weight, "linespacing": 1.0, "alpha": 1.0}
        _write(ax, _level_name(text, row.texts), (0, place), (-9, 0), **style)
        _write(ax, _per_cent(share), (begin + width, place), (4, 0), fontsize=SMALL)
    _draw_marks(ax, (0.0, places[old]), (0.0, places[new]))


def _per_cent(share: float) -> str:
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def _draw_words(ax: Axes, y: float, texts: tuple[str, str]) -> None:
    """Write the old and the new value on the two sides of a short arrow in the middle."""
    for text, offset, weight in zip(texts, (-15, 15), ("normal", "bold")):
        folded = fold(text, min(26, count_fitting_letters(ax, text, 1.12 * FONT, 0.42)))
        _write(ax, folded, (0.5, y), (offset, 0), fontsize=FONT, fontweight=weight, alpha=1.0)
    _draw_arrow(ax, (0.5 - points(ax, 11), y), (0.5 + points(ax, 11), y))


def _draw_marks(ax: Axes, old: tuple[float, float], new: tuple[float, float]) -> None:
    """Draw an open circle at the old value, a filled one at the new value, and an arrow between them."""
    ax.plot(*old, "o", markersize=6, markerfacecolor="none", markeredgecolor=ink(), zorder=3)
    ax.plot(*new, "o", markersize=6, color=ink(), zorder=3)
    if old[1] != new[1] or abs(new[0] - old[0]) >= points(ax, 14):  # the head of an arrow is nearly as long
        _draw_arrow(ax, old, new)


def _draw_arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    line = {"arrowstyle": "-|>", "color": ink(), "linewidth": 1.4, "shrinkA": 3, "shrinkB": 3}
    ax.annotate("", end, xytext=start, arrowprops=line, zorder=2)


def _lists(lists: Mapping[str, Sequence[Hashable]], words: Words) -> list[str]:
    """Return the lists of features that have no row in the picture: of many the first, and the number of the others."""
    lines = []
    for what, features in lists.items():
        most = MOST_NAMES if len(features) > MOST_NAMES + 1 else len(features)
        names = [fold(words.label(f), 34, 1).replace(" ", "\u00a0") for f in features[:most]]
        others = f" and {len(features) - most} others" if len(features) > most else ""
        lines += [f"{what}: {', '.join(names)}{others}."] if names else []
    return lines


def _write_titles(ax: Axes, name: Any, predictions: tuple[Any, Any] | None, decision: str, words: Words) -> None:
    subtitle = ""
    if predictions is not None:
        old, new = words.pair(PREDICTION, *predictions, 3)
        subtitle = f"{words.label(PREDICTION)}: {new} instead of {old}" + f" (wanted: {decision})" * bool(decision)
    of_row = "" if name is None else f" for {'' if isinstance(name, str) else 'row '}{name_text(name)}"
    write_title(ax, f"What would have changed the decision{of_row}", subtitle)


# ---------------------------------------------------------------------------------------------------------------------
# many rows
# ---------------------------------------------------------------------------------------------------------------------

PARTS = {  # of a bar, by direction
    "up": ("higher", DARK, ""),
    "down": ("lower", LIGHT, ""),
    "other": ("another level", "none", "////"),
    "missing": ("from or to missing", "none", "...."),
}
BAR = 0.3  # inches


def changes_plot(
    changes: pd.DataFrame,
    *,
    features: Sequence[Hashable] = (),
    fixed: Sequence[Hashable] = (),
    n: int | None = None,
    labels: Mapping[Any, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often each feature changes, and in which direction, over the best counterfactuals.

    Parameters
    ----------
    changes : DataFrame
        What `Counterfactuals.changes` returns; ranks after the first are left out.
    features : sequence
        All features of the table, of which those that never change are listed.
    fixed : sequence
        Features that may not change, which are listed.
    n : int or None
        Number of explained rows; None counts those with a change.
    labels : mapping or None
        Feature to the name that is written.
    ax : Axes or None
        Where to draw; None makes a figure whose height fits the number of bars.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.report.plots import changes_plot
    >>> changes = pd.DataFrame({"id": [1, 2], "rank": 1, "feature": "salary", "direction": ["up", "down"]})
    >>> changes_plot(changes).get_yticks().size
    1
    """
    best = changes[changes["rank"] == 1]
    names = list(dict.fromkeys(best["feature"]))
    words = Words.read(labels, None, [*names, *features, *fixed])
    n = best["id"].nunique(dropna=False) if n is None else n
    shares = np.zeros((len(names), len(PARTS)))
    for name, direction in zip(best["feature"], best["direction"]):
        shares[names.index(name), list(PARTS).index(direction)] += 1 / n
    order = np.argsort(-shares.sum(axis=1), kind="stable")
    drawn, shares = [names[k] for k in order[:MOST_ROWS]], shares[order[:MOST_ROWS]]
    ax = new_axes(1.6 + BAR * max(len(drawn), 1)) if ax is None else ax
    begin, y = np.zeros(len(drawn)), np.arange(len(drawn))
    for share, (label, color, hatch) in zip(shares.T, PARTS.values()):
        if share.any():
            style: dict[str, Any] = {
                "color": color,
                "hatch": hatch,
                "edgecolor": ink(),
                "linewidth": 0.7,
                "label": label,
            }
            ax.barh(y, share, 0.66, left=begin, **style)
        begin = begin + share
    for k, total in enumerate(begin.tolist()):
        _write(ax, _per_cent(total), (total, k), (5, 0), fontsize=SMALL, alpha=1.0)
    width = 18 if inches(ax) < 0.7 * WIDTH else 30
    ax.set_yticks(y, [fold(words.label(f), width, 1) for f in drawn], parse_math=False)
    ax.set_ylim(max(len(drawn), 1) - 0.5, -0.5)
    ax.set_xlim(0, 1.34)
    ax.set_xticks([])
    ax.tick_params(length=0, labelsize=FONT)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    n_parts = len(ax.get_legend_handles_labels()[1])
    if drawn:
        style = {"fontsize": SMALL, "frameon": False, "columnspacing": 1.2, "handlelength": 1.4, "borderaxespad": 0.0}
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2 if n_parts == 4 else 3, **style)
    else:
        ax.text(0.5, 0, "nothing changes", ha="center", va="center", fontsize=FONT)
    lists = {
        "Seldom": [names[k] for k in order[MOST_ROWS:]],
        "Never": [f for f in features if f not in names and f not in fixed],
        "Fixed": list(fixed),
    }
    lay_out(ax)
    write_notes(ax, [f"{n:,} rows, the best counterfactual of each.", *_lists(lists, words)])
    write_title(ax, "Which features the counterfactuals change", pad=22 + 12 * (n_parts == 4))
    return ax


# ---------------------------------------------------------------------------------------------------------------------
# real against drawn columns
# ---------------------------------------------------------------------------------------------------------------------

TAIL, FAR = 0.005, 3.0  # share of the rows in each outer bar, if the range is so many times as wide without them


def marginal_plot(
    real: Data,
    drawn: Data,
    *,
    features: Sequence[Hashable] | None = None,
    kinds: Mapping[Any, Kind] | None = None,
    ax: Axes | None = None,
) -> npt.NDArray[Any]:
    """Draw the distribution of each feature in drawn rows over that in real rows (paper, experiment 3).

    Both have the same bars. Numbers far away are counted in the first and last bar, rare levels in one bar.

    Parameters
    ----------
    real, drawn : DataFrame or array
        Tables with the same columns, of any sizes.
    features : sequence or None
        The features to draw, in this order; None draws all.
    kinds : mapping or None
        Kinds of columns, as for `ChainModel`.
    ax : Axes or None
        Where to draw a single feature.

    Returns
    -------
    array of Axes, one for each feature.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(200).X[["age", "salary", "savings"]]
    >>> mcce.plots.marginal_plot(X, X.sample(50)).size
    3
    """
    schema = Schema.from_data(real, kinds, "real")
    positions = [schema.position(name) for name in (schema.names if features is None else features)]
    if not positions or (ax is not None and len(positions) != 1):
        raise InputError(f"{len(positions)} features are to be drawn; name one or more, or exactly one if ax is given.")
    both = schema.encode(real, "real").matrix, schema.encode(drawn, "drawn").matrix
    panels = np.empty(len(positions), dtype=object)
    panels[:] = _panels(len(positions), len(both[0]), len(both[1])) if ax is None else [ax]
    for panel, j in zip(panels, positions):
        _draw_marginal(panel, schema.features[j], [matrix[:, j] for matrix in both])
    return panels


def _panels(n: int, n_real: int, n_drawn: int) -> list[Axes]:
    """Return axes in two columns, below a legend."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    n_columns = min(n, 2)
    n_rows = -(-n // n_columns)
    figure = plt.figure(figsize=(WIDTH if n > 1 else 4.5, 2.15 * n_rows + 0.35), layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).ravel())
    for unused in panels[n:]:
        unused.remove()
    handles = [
        Patch(facecolor=DARK, alpha=0.55, label=f"real ({n_real:,} rows)"),
        Patch(facecolor="none", edgecolor=ink(), linewidth=1.2, label=f"drawn ({n_drawn:,} rows)"),
    ]
    legend = figure.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=SMALL, frameon=False)
    legend.set_title("Drawn over real rows, in per cent of the rows")
    legend.get_title().set(fontsize=10, fontweight="bold")
    legend.set_alignment("left")
    return panels[:n]


def _draw_marginal(ax: Axes, feature: Feature, both: list[Floats]) -> None:
    """Draw one column of the real and of the drawn rows."""
    shares = [float(np.isnan(values).mean()) if values.size else 0.0 for values in both]
    notes = [f"missing: {_per_cent(shares[0])} real, {_per_cent(shares[1])} drawn"] if max(shares) > 0 else []
    both = [values[~np.isnan(values)] for values in both]
    ax.tick_params(labelsize=SMALL - 1, length=2)
    if feature.is_numeric and any(values.size for values in both):
        notes += _draw_histograms(ax, feature, both)
    elif not feature.is_numeric:
        _draw_shares(ax, feature, both)
    title = fold(name_text(feature.name), 22)
    ax.set_title(title, loc="left", fontsize=SMALL + 0.5, fontweight="bold", parse_math=False)
    ax.set_xlabel("; ".join(notes), fontsize=SMALL - 1, alpha=0.85, loc="left")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_histograms(ax: Axes, feature: Feature, both: list[Floats]) -> list[str]:
    """Draw two histograms; return the notes."""
    edges, collects = _edges(np.concatenate(both))
    shares = [np.histogram(np.clip(v, edges[0], edges[-1]), edges)[0] / max(v.size, 1) for v in both]
    ax.stairs(shares[0], edges, fill=True, color=DARK, alpha=0.55)
    ax.stairs(shares[1], edges, color=ink(), linewidth=1.2)
    _as_per_cent(ax.yaxis)
    places = edges[0] + (edges[-1] - edges[0]) * np.array([0.15, 0.85])
    if feature.is_date:
        places = np.rint(places)
        texts = [value_text(value) for value in pd.Series(feature.decode(places)).astype(object)]
        ax.set_xticks(places, [fold(text, 12, 1) for text in texts], parse_math=False)
    else:
        from matplotlib.ticker import MaxNLocator

        is_long = max(len(value_text(float(place), 3)) for place in places) > 7
        ax.xaxis.set_major_locator(MaxNLocator(2 if is_long else 4))
        ax.xaxis.set_major_formatter(lambda value, _: value_text(float(value), 3))
    return ["the end bars hold what lies beyond"] if collects else []


def _edges(values: Floats) -> tuple[Floats, bool]:
    """Return the edges of the bars, and whether the outer ones hold far values too; whole numbers get whole widths."""
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    collects = bool(np.ptp(values) > FAR * (high - low) > 0)
    if not collects:
        low, high = values.min(), values.max()
    if (values == np.rint(values)).all():
        low, high = np.floor(low) - 0.5, np.ceil(high) + 0.5
        width = np.ceil((high - low) / N_BARS)
        return low + width * np.arange(np.ceil((high - low) / width) + 1), collects
    half = 0.5 if high == low else 0.0
    return np.linspace(low - half, high + half, N_BARS + 1), collects


def _draw_shares(ax: Axes, feature: Feature, both: list[Floats]) -> None:
    """Draw a bar for each level, rare levels pooled."""
    n = feature.n_levels
    shares = np.array([np.bincount(v.astype(np.int64), minlength=n) / max(v.size, 1) for v in both])
    assert feature.levels is not None
    names = [value_text(level) for level in feature.levels.astype(object)]
    kept = np.flatnonzero(shares.any(axis=0))
    if kept.size > MOST_LEVELS + 3:
        often = np.sort(np.argsort(-shares.sum(axis=0), kind="stable")[: MOST_LEVELS + 2])
        rest = np.setdiff1d(kept, often)
        names, kept = [*names, f"{rest.size} others"], np.append(often, n)
        shares = np.column_stack([shares, shares[:, rest].sum(axis=1)])
    places = np.arange(kept.size)
    ax.barh(places, shares[0, kept], height=0.7, color=DARK, alpha=0.55)
    ax.barh(places, shares[1, kept], height=0.7, facecolor="none", edgecolor=ink(), linewidth=1.2)
    ax.set_yticks(places, [fold(names[k], 16, 1) for k in kept], parse_math=False)
    ax.set_ylim(kept.size - 0.5, -0.5)
    _as_per_cent(ax.xaxis)


def _as_per_cent(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
