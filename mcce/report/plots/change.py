"""The picture of one counterfactual: a row for each changed feature.

1. A number is placed on a line, with an arrow from the old to the new value. With reference rows (`alike`) the line
   spans 98 per cent of them and both values, and their distribution is shaded; otherwise it spans the training values.
   It is logarithmic where few values take most of it (`LineScale`). A bar marks the part that constraints allow.
2. Other values are written out, old to new. Incidental changes stand below the needed ones, with a dashed arrow.
3. Of recourse, actions have arrows. The consequences below them have a bar from the lowest to the highest value that
   usually follows, in place of an arrow.
4. Unchanged features are named below, and so are changes beyond the first 30.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.base.canvas import DARK, FONT, SMALL, lay_out, letters_that_fit
from mcce.report.names import PREDICTION, Names, case_name, fold, is_same
from mcce.report.plots.scale import scale_of, scale_of_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME_WIDTH, NUMBER_WIDTH, LEVEL_WIDTH = 24, 13, 26
NARROW = 5.0  # inches; on less, names are folded more
MARGIN, MOST_MARGIN = 0.34, 0.9  # room left and right of the lines, for the values at the arrow's ends
ROW, WORDS_ROW, WIDE, SMALL_WIDTH = 0.56, 0.36, 8.0, 6.2  # inches: of a row with a line or with words; of the picture
INTERVAL_ROW, INTERVAL_WIDTH = 0.68, 30  # of a row with a bar; letters of its two ends
BELOW = 0.08  # of the distance of two rows: between a line and what is allowed on it
HILL, N_BARS = 0.36, 24  # height of the shading, of the distance of two rows, and how many bars it has
MOST_ROWS = 30
COMES_ALONG = "Dashed: comes along. The decision does not need it, but the other changes are not believable alone."
ACTED = "Arrow: an action."
FOLLOWS = "Bar: a consequence, which is in it in 8 of 10 cases; the dot is one of them."
LEVEL_FOLLOWS = "Dashed: a consequence, one of those that may follow."
SHADED = "Shaded: cases with {}the wanted decision, as the method draws them; 98 of 100 are on the line."
LOGARITHMIC = "Logarithmic scale: {}."
VALUE = 0.95  # inches that the longest value may take


def change_plot(
    factual: pd.Series[Any],
    counterfactual: pd.Series[Any],
    *,
    kinds: Mapping[str, str],
    ranges: Mapping[str, tuple[Any, Any]],
    allowed: Mapping[str, tuple[Any, Any]] | None = None,
    alike: pd.DataFrame | None = None,
    fixed: Sequence[str] = (),
    along: Sequence[str] = (),
    consequences: Mapping[str, tuple[Any, Any]] | None = None,
    cases: int | None = None,
    predictions: tuple[Any, Any] | None = None,
    decision: str = "prediction",
    name: object = None,
    names: Names | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what changes between a factual and its counterfactual.

    Parameters
    ----------
    factual, counterfactual : Series
        The two rows, indexed by feature.
    kinds : mapping
        Feature to "numeric", "categorical" or "ordered".
    ranges : mapping
        Numeric feature to the lowest and highest value of the training table; dates as `Timestamp`.
        A numeric feature without a range is written out like a category.
    allowed : mapping, optional
        Numeric feature to the lowest and highest value that was allowed for this factual.
    alike : DataFrame, optional
        Rows to compare with: their numbers are shaded behind, and the lines span what most of them have.
    fixed : sequence of str
        The features that may not change; marked in the list of unchanged ones.
    along : sequence of str
        The features whose change comes along: the decision does not need it.
    consequences : mapping, optional
        Of recourse, whose other changes are actions: feature to the lowest and highest value that usually follows.
    cases : int, optional
        Of recourse: in how many of 100 cases the actions reach the decision.
    predictions : pair, optional
        The model's prediction before and after.
    decision : str
        What the prediction is measured against, for the subtitle.
    name : object, optional
        What to call the factual in the title; its `name` by default.
    names : Names, optional
        Labels, units and formats, as `Counterfactuals.names` has them.
    ax : Axes, optional
        Where to draw; by default a new figure whose height fits the number of rows.

    Returns
    -------
    Axes
        The axes drawn on. The figure is neither shown nor closed.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(200).X[["age", "salary", "savings"]]
    >>> after = X.iloc[0].replace({X["savings"][0]: 90_000})
    >>> ranges = {name: (X[name].min(), X[name].max()) for name in X}
    >>> ax = mcce.plots.change_plot(X.iloc[0], after, kinds=dict.fromkeys(X, "numeric"), ranges=ranges, fixed=["age"])
    >>> ax.figure.axes[0] is ax
    True
    """
    names, is_recourse, follows = names or Names(), consequences is not None, consequences or {}
    along = (*along, *follows)
    values = {f: (counterfactual[f], *follows.get(f, ())) for f in counterfactual.index}
    changed = [f for f in counterfactual.index if not all(is_same(factual[f], value) for value in values[f])]
    kept = set(fixed)
    same = [names.label(f) + " (fixed)" * (f in kept) for f in counterfactual.index if f not in changed]
    changed.sort(key=lambda f: f in along)
    changed, others = changed[:MOST_ROWS], [names.label(f) for f in changed[MOST_ROWS:]]
    in_range = [f for f in changed if _has_position(f, kinds, ranges, factual[f], counterfactual[f])]
    if ax is None:
        row_height = INTERVAL_ROW if follows else ROW if in_range else WORDS_ROW
        ax = _new_axes(row_height, len(changed), len(", ".join(same + others)))
    known = {f: _known(alike, f) for f in in_range}
    known = {f: values for f, values in known.items() if len(values)}
    rest = len(known) < len(in_range)
    aside = " (consequence)" if is_recourse else " (comes along)"
    _style_axes(ax, [names.label(f) + aside * (f in along) for f in changed], rest)
    barred, bent, held = False, [], [f for f in in_range if f in follows]
    for row, feature in enumerate(changed):
        before, after = factual[feature], counterfactual[feature]
        texts = names.pair(feature, before, after)
        if feature not in in_range:
            _draw_words(ax, row, texts, needed=feature not in along)
            continue
        usual = follows.get(feature, ())
        scale = scale_of_range(*ranges[feature], (before, after, *usual))
        if feature in known:
            scale, ends = scale_of(known[feature], (before, after, *usual))
            _shade(ax, row, [scale.place(value) for value in known[feature]])
            _write_ends(ax, row, [names.text(feature, end, 3) for end in ends])
        bent += [] if scale.is_linear else [names.label(feature)]
        if allowed and feature in allowed:
            barred |= _bar(ax, row, *(scale.place(end) for end in allowed[feature]))
        outward = 1 if after >= before else -1
        marks = scale.place(before), scale.place(after)
        _draw_marks(ax, row, texts, outward, marks, needed=feature not in along)
        if usual:
            _draw_interval(ax, row, names.pair(feature, *usual), [scale.place(end) for end in usual], marks[1])
        else:
            _arrow(ax, row, *marks, needed=feature not in along)
    if not changed:
        ax.text(0.5, 0, "nothing changes", ha="center", va="center", fontsize=FONT)
    scales = [SHADED.format("the same fixed values and " if kept else "")] if known else []
    scales += [LOGARITHMIC.format(", ".join(bent))] if bent else []
    notes = [" ".join(scales)] if scales else []
    notes += ["Bar below a line: what the constraints on this feature allow."] if barred else []
    if is_recourse:
        by_words = any(f in along and f not in held for f in changed)
        notes += [" ".join([ACTED, *[FOLLOWS] * bool(held), *[LEVEL_FOLLOWS] * by_words])]
    elif any(f in along for f in changed):
        notes.append(COMES_ALONG)
    _write_below(ax, notes, {f"{len(others)} more change": others, "Unchanged": same})
    told = None if predictions is None else names.pair(PREDICTION, *predictions, 3)
    what = "Actions that may change the decision" if is_recourse else "What would have changed the decision"
    subtitle = "" if told is None else f"{names.labels.get(PREDICTION, decision)}: {told[1]} instead of {told[0]}"
    if cases is not None:
        subtitle += f"; reached in {cases} of 100 cases"
    _write_title(ax, what, factual.name if name is None else name, subtitle)
    return ax


def _has_position(feature: str, kinds: Mapping[str, str], ranges: Mapping[str, tuple[Any, Any]], *values: Any) -> bool:
    known = kinds.get(feature) == "numeric" and feature in ranges
    return known and not any(pd.isna(v) for v in (*values, *ranges[feature]))


def _known(alike: pd.DataFrame | None, feature: str) -> list[Any]:
    """Return the values of rows alike that are not missing."""
    if alike is None or feature not in alike.columns:
        return []
    return list(alike[feature].dropna())


def _new_axes(row_height: float, n_changed: int, n_letters: int) -> Axes:
    import matplotlib.pyplot as plt

    width = SMALL_WIDTH if n_changed <= 1 else WIDE
    height = 1.15 + row_height * max(n_changed, 1) + 0.155 * (WIDE / width) * (n_letters / 70)
    axes: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def _shade(ax: Axes, row: int, places: Sequence[float]) -> None:
    """Shade how values are spread over a line; the outer bars hold what lies beyond."""
    shares, edges = np.histogram(np.clip(places, 0, 1), N_BARS, (0, 1))
    heights = row - HILL * shares / max(shares.max(), 1)
    ax.stairs(heights, edges, baseline=row, fill=True, color=DARK, alpha=0.28, linewidth=0, zorder=0.4)


def _write_ends(ax: Axes, row: int, texts: Sequence[str]) -> None:
    """Write the values at the two ends of a line beside it."""
    for text, x, side in zip(texts, (0, 1), (-1, 1)):
        ax.annotate(
            fold(text, NUMBER_WIDTH, 1),
            (x, row),
            xytext=(7 * side, 0),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
            va="center",
            fontsize=SMALL - 1,
            alpha=0.75,
            parse_math=False,
        )


def _draw_marks(
    ax: Axes, row: int, texts: tuple[str, str], outward: int, marks: tuple[float, float], *, needed: bool
) -> None:
    """Draw a line with two marks on it; each value stands below its mark, towards the outer side.

    `outward` is 1 if the new value is on the right, else -1.
    """
    from matplotlib import rcParams

    ink = rcParams["text.color"]
    ax.plot([0, 1], [row, row], color=ink, alpha=0.2, linewidth=1, zorder=1, solid_capstyle="butt")
    ax.plot(marks[0], row, "o", markersize=6, markerfacecolor="none", markeredgecolor=ink, zorder=3)
    ax.plot(marks[1], row, "o", markersize=6, color=ink, zorder=3)
    old, new = (fold(text, NUMBER_WIDTH) for text in texts)
    heavy = "bold" if needed else "normal"
    for text, x, side, weight in ((old, marks[0], -outward, "normal"), (new, marks[1], outward, heavy)):
        ax.annotate(
            text,
            (x, row),
            xytext=(2 * side, -7),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
            va="top",
            fontsize=FONT,
            fontweight=weight,
            parse_math=False,
        )


def _draw_interval(ax: Axes, row: int, texts: tuple[str, str], ends: Sequence[float], place: float) -> None:
    """Draw a bar between two ends, and write these below the value at `place`; nothing if they are the same."""
    from matplotlib import rcParams

    if texts[0] == texts[1]:
        return
    ink = rcParams["text.color"]
    ax.plot(ends, [row, row], color=ink, alpha=0.45, linewidth=5, solid_capstyle="butt", zorder=1.5)
    ax.plot(ends, [row, row], "|", color=ink, markersize=10, markeredgewidth=1.2, zorder=2)
    ax.annotate(
        fold(f"{texts[0]} to {texts[1]}", INTERVAL_WIDTH, 1),
        (place, row),
        xytext=(0, -7 - 1.25 * FONT),
        textcoords="offset points",
        ha="left" if place < 0.3 else "right" if place > 0.7 else "center",
        va="top",
        fontsize=SMALL - 1,
        parse_math=False,
    )


def _draw_words(ax: Axes, row: int, texts: tuple[str, str], *, needed: bool) -> None:
    """Write old and new value on the two sides of a short arrow in the middle."""
    old, new = (fold(t, min(LEVEL_WIDTH, letters_that_fit(ax, t, 1.12 * FONT, 0.42))) for t in texts)
    style: dict[str, Any] = {"va": "center", "fontsize": FONT, "parse_math": False}
    gap = _points(ax, 15)
    ax.text(0.5 - gap, row, old, ha="right", **style)
    ax.text(0.5 + gap, row, new, ha="left", fontweight="bold" if needed else "normal", **style)
    _arrow(ax, row, 0.5 - 0.7 * gap, 0.5 + 0.7 * gap, needed=needed)


def _arrow(ax: Axes, row: int, start: float, end: float, *, needed: bool) -> None:
    if abs(end - start) < _points(ax, 14):  # the head of an arrow is longer than that
        return
    from matplotlib import rcParams

    line = {
        "arrowstyle": "-|>",
        "color": rcParams["text.color"],
        "linewidth": 1.4,
        "linestyle": "-" if needed else (0, (3, 2)),
        "shrinkA": 3,
        "shrinkB": 3,
    }
    ax.annotate("", (end, row), xytext=(start, row), arrowprops=line, zorder=2)


def _style_axes(ax: Axes, changed: Sequence[str], has_scale: bool) -> None:
    """Name the rows, mark the ends of the training range, leave out idle lines; then make room for values."""
    ax.set_ylim(max(len(changed), 1) - 0.5, -0.5)
    narrow = _inches(ax) < NARROW
    names = [fold(str(f), NAME_WIDTH // 2 if narrow else NAME_WIDTH, 3 if narrow else 2) for f in changed]
    ax.set_yticks(range(len(changed)), names, fontsize=FONT, parse_math=False)
    ends = ["lowest\nin training", "highest\nin training"] if has_scale else []
    ax.set_xticks([0, 1] if has_scale else [], ends, fontsize=SMALL, alpha=0.75)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if has_scale:
        ax.grid(axis="x", alpha=0.35, linewidth=0.8, linestyle=":")
    ax.set_axisbelow(True)
    lay_out(ax)
    margin = min(max(VALUE / max(_inches(ax) - 2 * VALUE, 0.1), MARGIN), MOST_MARGIN)
    ax.set_xlim(-margin, 1 + margin)


def _inches(ax: Axes) -> float:
    return ax.get_window_extent().width / ax.figure.dpi


def _points(ax: Axes, n: float) -> float:
    """Return the width of n points in the units of the x axis."""
    low, high = ax.get_xlim()
    return n / 72 / _inches(ax) * (high - low)


def _bar(ax: Axes, row: int, low: float, high: float) -> bool:
    """Draw a bar below the part of the training range that is allowed, if it is a part; say whether it is."""
    from matplotlib import rcParams

    if low <= 0 and high >= 1:
        return False
    style: dict[str, Any] = {"color": rcParams["text.color"], "alpha": 0.4, "linewidth": 3, "solid_capstyle": "butt"}
    ax.plot([low, high], [row + BELOW, row + BELOW], zorder=0.5, **style)
    return True


def _write_below(ax: Axes, notes: Sequence[str], listed: Mapping[str, Sequence[str]]) -> None:
    """Name the features that have no row, below the notes."""
    lines = [line for note in notes for line in textwrap.wrap(note, letters_that_fit(ax, note, SMALL))]
    for what, features in listed.items():
        if not features:
            continue
        short = [fold(name, 34, 1).replace(" ", "\u00a0") for name in features]
        text = f"{what}: " + ", ".join(short)
        lines += textwrap.wrap(text, letters_that_fit(ax, text, SMALL), break_on_hyphens=False)
    if lines:
        ax.set_xlabel("\n".join(lines), loc="left", fontsize=SMALL, labelpad=8, alpha=0.75, parse_math=False)
        ax.xaxis.label.set_multialignment("left")


def _write_title(ax: Axes, what: str, name: object, subtitle: str) -> None:
    if subtitle:
        subtitle = fold(subtitle, letters_that_fit(ax, subtitle, FONT), lines=3)
        ax.annotate(
            subtitle,
            (0, 1),
            xytext=(0, 6),
            xycoords="axes fraction",
            textcoords="offset points",
            va="bottom",
            fontsize=FONT,
            parse_math=False,
        )
    title = what + ("" if name is None else f" for {case_name(name)}")
    title = fold(title, letters_that_fit(ax, title, 13), lines=3 if _inches(ax) < NARROW else 2)
    pad = 8 + 1.4 * FONT * (subtitle.count("\n") + 1) * bool(subtitle)
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", pad=pad, parse_math=False)
