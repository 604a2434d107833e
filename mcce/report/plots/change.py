"""Pictures of counterfactuals: a row for each changed feature, a panel for each counterfactual of a factual.

1. A number is placed on a line, with an arrow from the old to the new value. With reference rows (`alike`) the line
   spans 98 per cent of them and both values, and their distribution is shaded; otherwise it spans the training values.
   The line is logarithmic where few values take most of it (`LineScale`). A bar marks the part that constraints allow.
2. A level has a bar for the share of each level among the reference rows, with an arrow from the old to the new level.
   Without reference rows, and for missing numbers, old and new value are written out.
3. Incidental changes stand below the needed ones, with a dashed arrow.
4. Of recourse, actions have arrows. The consequences below them have a bar from the lowest to the highest value that
   usually follows, in place of an arrow.
5. Unchanged features are listed below, and so are changes beyond the first 30.

The height of a new figure follows the number of changes. All texts are legible when it is shown 400 pixels wide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.base.canvas import (
    DARK,
    FONT,
    SMALL,
    WIDTH,
    as_array,
    count_fitting_letters,
    ink,
    lay_out,
    set_axes_height,
    wrap_to_axes,
)
from mcce.report.names import PREDICTION, Names, case_name, fold, is_same
from mcce.report.plots.scale import scale_of, scale_of_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mcce.base.canvas import Panels

NAME_WIDTH, NUMBER_WIDTH, LEVEL_WIDTH = 24, 13, 26
NARROW = 5.0  # inches; feature names are folded more on narrower axes
MARGIN, MOST_MARGIN = 0.34, 0.9  # space left and right of the lines, for the values at the ends of an arrow
ROW, INTERVAL_ROW = 0.56, 0.68  # inches of a row, and of a row with an interval
LEVEL_ROW, LEVEL_LINE, LEVEL_GAP = 0.2, 0.13, 0.16  # inches: a level, each further line of its name, around the levels
SHARE_WIDTH, MOST_LEVELS = 15, 7  # letters in a line of the name of a level; levels with a separate bar
INTERVAL_WIDTH = 30  # letters of the two ends of an interval
BELOW = 0.08  # distance from a line to the bar of allowed values, as a share of a row
HILL, N_BARS = 0.36, 24  # height of the shading as a share of a row, and its number of bars
MOST_ROWS = 30
COMES_ALONG = "Dashed: comes along. The decision does not need it, but the other changes alone are not plausible."
ACTED = "Arrow: an action."
FOLLOWS = "Bar: a consequence, which is in it in 8 of 10 cases; the dot is one of them."
LEVEL_FOLLOWS = "Dashed: a consequence, one of those that may follow."
SHADED = "Shaded: cases with {}the wanted decision, as the method draws them{}."
ON_LINE, BY_LEVEL = "; 98 of 100 are on the line", "; per cent: their share of each level"
LOGARITHMIC = "Logarithmic scale: {}."
VALUE = 1.05  # inches reserved for the longest value


@dataclass(frozen=True, kw_only=True)
class ShownChange:
    """One counterfactual with everything that its picture shows; see `change_plot` for the attributes."""

    factual: pd.Series[Any]
    counterfactual: pd.Series[Any]
    kinds: Mapping[str, str]
    ranges: Mapping[str, tuple[Any, Any]]
    allowed: Mapping[str, tuple[Any, Any]] | None = None
    alike: pd.DataFrame | None = None
    fixed: Sequence[str] = ()
    along: Sequence[str] = ()
    consequences: Mapping[str, tuple[Any, Any]] | None = None
    cases: int | None = None
    predictions: tuple[Any, Any] | None = None
    decision: str = "prediction"
    name: object = None
    names: Names

    @property
    def follows(self) -> Mapping[str, tuple[Any, Any]]:
        """The usual values of each consequence."""
        return self.consequences or {}

    @cached_property
    def all_changed(self) -> list[str]:
        """The features that change, needed ones first."""
        before, after, usual = self.factual, self.counterfactual, self.follows
        values = {f: (after[f], *usual.get(f, ())) for f in after.index}
        changed = [f for f in after.index if not all(is_same(before[f], value) for value in values[f])]
        return sorted(changed, key=self.is_aside)

    @property
    def changed(self) -> list[str]:
        """The features that have a row in the picture."""
        return self.all_changed[:MOST_ROWS]

    def is_aside(self, feature: str) -> bool:
        """Return whether a change is incidental or a consequence."""
        return feature in self.along or feature in self.follows

    def has_line(self, feature: str) -> bool:
        """Return whether a feature is drawn on a line: a number with a range, none of its values missing."""
        if self.kinds.get(feature) != "numeric" or feature not in self.ranges:
            return False
        values = self.factual[feature], self.counterfactual[feature], *self.ranges[feature]
        return not any(pd.isna(value) for value in values)

    def reference(self, feature: str) -> list[Any]:
        """Return the values of the reference rows that are not missing."""
        if self.alike is None or feature not in self.alike.columns:
            return []
        return list(self.alike[feature].dropna())

    @cached_property
    def shares(self) -> dict[str, dict[str, float]]:
        """The share of each level among the reference rows, by its text, for changed features that are levels."""
        found = {}
        for feature in self.changed:
            if self.alike is not None and feature in self.alike.columns and self.kinds.get(feature) != "numeric":
                found[feature] = self._shares_of(feature, self.alike[feature])
        return found

    def _shares_of(self, feature: str, column: pd.Series[Any]) -> dict[str, float]:
        """Return the shares of levels in their order; the old and the new level are among them, rare ones pooled."""
        shares = column.value_counts(normalize=True, sort=False, dropna=False)
        both = self.texts(feature)
        named = dict.fromkeys([*(self.names.text(feature, level) for level in shares.index), *both], 0.0)
        for level, share in shares.items():
            named[self.names.text(feature, level)] += float(share)
        named = {text: share for text, share in named.items() if share > 0 or text in both}
        often = sorted(named, key=lambda text: (text not in both, -named[text]))
        rare = often[MOST_LEVELS:] if len(often) > MOST_LEVELS + 1 else []
        kept = {text: share for text, share in named.items() if text not in rare}
        return kept | ({f"{len(rare)} others": sum(named[text] for text in rare)} if rare else {})

    def texts(self, feature: str) -> tuple[str, str]:
        """Return the old and the new value as text."""
        return self.names.pair(feature, self.factual[feature], self.counterfactual[feature])

    @property
    def unit(self) -> float:
        """The inches of a row, which is 1 on the y axis."""
        return INTERVAL_ROW if self.follows else ROW

    @cached_property
    def heights(self) -> list[float]:
        """The height of the row of each changed feature on the y axis."""
        return [self._height(feature) for feature in self.changed] or [1.0]

    def _height(self, feature: str) -> float:
        if feature not in self.shares:
            return 1.0
        return max((sum(_level_heights(self.level_names(feature))) + LEVEL_GAP) / self.unit, 1.0)

    def level_names(self, feature: str) -> list[str]:
        """Return the names of the levels with a bar, in lines: up to three for the old and the new one, else two."""
        both = self.texts(feature)
        return [fold(text, SHARE_WIDTH, 3 if text in both else 2) for text in self.shares[feature]]


def _level_heights(names: Sequence[str]) -> list[float]:
    """Return the inches that levels take, by the number of lines of their names."""
    return [LEVEL_ROW + LEVEL_LINE * name.count("\n") for name in names]


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
        Without a range, the old and the new number are written out.
    allowed : mapping, optional
        Numeric feature to the lowest and highest value that the constraints allow for this factual.
    alike : DataFrame, optional
        Reference rows: their numbers are shaded, the lines span most of them, and levels have bars of their shares.
    fixed : sequence of str
        The features that may not change; marked in the list of unchanged ones.
    along : sequence of str
        The features whose change is incidental: the decision does not need it.
    consequences : mapping, optional
        For recourse, whose other changes are actions: feature to the lowest and highest value that usually follows.
    cases : int, optional
        For recourse: the number of 100 cases in which the actions reach the decision.
    predictions : pair, optional
        The model's prediction before and after.
    decision : str
        The wanted decision, for the subtitle.
    name : object, optional
        The name of the factual in the title; by default the `name` of the series.
    names : Names, optional
        Labels, units and formats, as `Counterfactuals.names` has them.
    ax : Axes, optional
        Where to draw; by default a new figure whose height follows the number of changes.

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
    change = ShownChange(
        factual=factual,
        counterfactual=counterfactual,
        kinds=kinds,
        ranges=ranges,
        allowed=allowed,
        alike=alike,
        fixed=fixed,
        along=along,
        consequences=consequences,
        cases=cases,
        predictions=predictions,
        decision=decision,
        name=name,
        names=names or Names(),
    )
    return draw_change(change, ax)


def draw_change(change: ShownChange, ax: Axes | None = None) -> Axes:
    """Draw one counterfactual, by default on a new figure."""
    axes = list(draw_plans([change])) if ax is None else [ax]
    if ax is not None:
        _draw([change], axes)
    return axes[0]


def draw_plans(changes: Sequence[ShownChange], figure: Figure | None = None) -> Panels:
    """Draw several counterfactuals of one factual, a panel for each; the height of the figure is set to fit."""
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(WIDTH, 3.0), layout="constrained")
    inches = [each.unit * sum(each.heights) for each in changes]
    figure.set_figheight(2.0 + sum(inches) + len(changes))
    axes = list(figure.subplots(len(changes), 1, squeeze=False, height_ratios=inches)[:, 0])
    _draw(changes, axes)
    set_axes_height(axes, sum(inches))
    return as_array(axes)


@dataclass(frozen=True)
class _PanelFacts:
    """The contents of the panel of a counterfactual, for the notes below it."""

    is_shaded: bool
    logarithmic: list[str]
    is_barred: bool


def _draw(changes: Sequence[ShownChange], axes: Sequence[Axes]) -> None:
    """Draw the panels, a title above the first and the notes below the last."""
    drawn = [_draw_rows(ax, change) for ax, change in zip(axes, changes)]
    first, names = changes[0], changes[0].names
    _write_below(axes[-1], _notes(changes, drawn), _listed(changes))
    what = "What would have changed the decision"
    if first.consequences is not None:
        what = "Actions that may change the decision"
    name = first.factual.name if first.name is None else first.name
    title = what if name is None else f"{what} for {case_name(name)}"
    for k, (ax, change) in enumerate(zip(axes, changes)):
        subtitle = f"Plan {k + 1}, " if len(changes) > 1 else ""
        if change.predictions is not None:
            old, new = names.pair(PREDICTION, *change.predictions, 3)
            subtitle += f"{names.labels.get(PREDICTION, change.decision)}: {new} instead of {old}"
        if change.cases is not None:
            subtitle += f"; reached in {change.cases} of 100 cases"
        _write_title(ax, "" if k else title, subtitle)


def _draw_rows(ax: Axes, change: ShownChange) -> _PanelFacts:
    """Draw the rows of a counterfactual."""
    names, changed = change.names, change.changed
    tops = np.concatenate([[0.0], np.cumsum(change.heights)])
    rows = dict(zip(changed, tops[:-1] + np.array(change.heights) / 2 - 0.5))
    known = {f: change.reference(f) for f in changed if change.has_line(f)}
    aside = " (comes along)" if change.consequences is None else " (consequence)"
    labels = [names.label(f) + aside * change.is_aside(f) for f in changed]
    _style_axes(ax, labels, list(rows.values()), float(tops[-1]), has_scale=not all(known.values()))
    barred, bent = False, []
    for feature, row in rows.items():
        before, after = change.factual[feature], change.counterfactual[feature]
        texts, needed = change.texts(feature), not change.is_aside(feature)
        if feature in change.shares:
            _draw_shares(ax, row, change, feature)
            continue
        if feature not in known:
            _draw_words(ax, row, texts, needed=needed)
            continue
        usual = change.follows.get(feature, ())
        scale = scale_of_range(*change.ranges[feature], (before, after, *usual))
        if known[feature]:
            scale, ends = scale_of(known[feature], (before, after, *usual))
            _shade(ax, row, [scale.place(value) for value in known[feature]])
            _write_ends(ax, row, [names.text(feature, end, 3) for end in ends])
        bent += [] if scale.is_linear else [names.label(feature)]
        if change.allowed and feature in change.allowed:
            barred |= _bar(ax, row, *(scale.place(end) for end in change.allowed[feature]))
        outward = 1 if after >= before else -1
        marks = scale.place(before), scale.place(after)
        _draw_marks(ax, row, texts, outward, marks, needed=needed)
        if usual:
            _draw_interval(ax, row, names.pair(feature, *usual), [scale.place(end) for end in usual], marks[1])
        else:
            _arrow(ax, (marks[0], row), (marks[1], row), needed=needed)
    if not changed:
        ax.text(0.5, 0, "nothing changes", ha="center", va="center", fontsize=FONT)
    return _PanelFacts(any(known.values()), bent, barred)


def _notes(changes: Sequence[ShownChange], drawn: Sequence[_PanelFacts]) -> list[str]:
    """Return the explanations of the panels."""
    is_shaded, by_level = any(each.is_shaded for each in drawn), any(each.shares for each in changes)
    scales = []
    if is_shaded or by_level:
        alike = "the same fixed values and " if changes[0].fixed else ""
        scales.append(SHADED.format(alike, ON_LINE * is_shaded + BY_LEVEL * by_level))
    bent = list(dict.fromkeys(name for each in drawn for name in each.logarithmic))
    scales += [LOGARITHMIC.format(", ".join(bent))] if bent else []
    notes = [" ".join(scales)] if scales else []
    if any(each.is_barred for each in drawn):
        notes.append("Bar below a line: what the constraints on this feature allow.")
    asides = [(each, f) for each in changes for f in each.changed if each.is_aside(f)]
    if changes[0].consequences is not None:
        has_bar = [f in each.follows and each.has_line(f) for each, f in asides]
        notes.append(" ".join([ACTED, *[FOLLOWS] * any(has_bar), *[LEVEL_FOLLOWS] * (not all(has_bar))]))
    elif asides:
        notes.append(COMES_ALONG)
    return notes


def _listed(changes: Sequence[ShownChange]) -> dict[str, list[str]]:
    """Return the names of the features that have no row, by role."""
    names, fixed = changes[0].names, set(changes[0].fixed)
    more = dict.fromkeys(f for each in changes for f in each.all_changed[MOST_ROWS:])
    changed = {f for each in changes for f in each.all_changed}
    same = [names.label(f) + " (fixed)" * (f in fixed) for f in changes[0].counterfactual.index if f not in changed]
    return {f"{len(more)} more change": [names.label(f) for f in more], "Unchanged": same}


def _draw_shares(ax: Axes, row: float, change: ShownChange, feature: str) -> None:
    """Draw a bar for the share of each level, and an arrow from the old to the new level."""
    names, shares = change.level_names(feature), list(change.shares[feature].values())
    old, new = (list(change.shares[feature]).index(text) for text in change.texts(feature))
    heights = np.array(_level_heights(names)) / change.unit
    places = (row - heights.sum() / 2 + np.cumsum(heights) - heights / 2).tolist()
    needed, begin = not change.is_aside(feature), _points(ax, 9)
    style: dict[str, Any] = {"va": "center", "fontsize": SMALL, "parse_math": False}
    for k, (name, place, share) in enumerate(zip(names, places, shares)):
        end = begin + (1 - begin) * share / max(*shares, 1e-9)
        ax.barh(
            place, end - begin, 0.6 * LEVEL_ROW / change.unit, left=begin, color=DARK, alpha=0.75 if k == new else 0.28
        )
        weight = "bold" if k == new and needed else "normal"
        ax.text(-begin, place, name, ha="right", fontweight=weight, linespacing=1.0, **style)
        ax.text(end + begin / 2, place, _per_cent(share), ha="left", alpha=0.75, **style)
    _draw_ends(ax, (0.0, places[old]), (0.0, places[new]))
    _arrow(ax, (0.0, places[old]), (0.0, places[new]), needed=needed)


def _per_cent(share: float) -> str:
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def _shade(ax: Axes, row: float, places: Sequence[float]) -> None:
    """Shade the distribution of values over a line; the outer bars hold the values beyond its ends."""
    shares, edges = np.histogram(np.clip(places, 0, 1), N_BARS, (0, 1))
    heights = row - HILL * shares / max(shares.max(), 1)
    ax.stairs(heights, edges, baseline=row, fill=True, color=DARK, alpha=0.28, linewidth=0, zorder=0.4)


def _write_ends(ax: Axes, row: float, texts: Sequence[str]) -> None:
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
    ax: Axes, row: float, texts: tuple[str, str], outward: int, marks: tuple[float, float], *, needed: bool
) -> None:
    """Draw a line with two marks on it; each value stands below its mark, towards the outer side.

    `outward` is 1 if the new value is on the right, else -1.
    """
    ax.plot([0, 1], [row, row], color=ink(), alpha=0.2, linewidth=1, zorder=1, solid_capstyle="butt")
    _draw_ends(ax, (marks[0], row), (marks[1], row))
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


def _draw_ends(ax: Axes, old: tuple[float, float], new: tuple[float, float]) -> None:
    """Draw an open circle at the old and a filled one at the new value."""
    ax.plot(*old, "o", markersize=6, markerfacecolor="none", markeredgecolor=ink(), zorder=3)
    ax.plot(*new, "o", markersize=6, color=ink(), zorder=3)


def _draw_interval(ax: Axes, row: float, texts: tuple[str, str], ends: Sequence[float], place: float) -> None:
    """Draw a bar between two ends, and write both below the value at `place`; nothing if they are equal."""
    if texts[0] == texts[1]:
        return
    ax.plot(ends, [row, row], color=ink(), alpha=0.45, linewidth=5, solid_capstyle="butt", zorder=1.5)
    ax.plot(ends, [row, row], "|", color=ink(), markersize=10, markeredgewidth=1.2, zorder=2)
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


def _draw_words(ax: Axes, row: float, texts: tuple[str, str], *, needed: bool) -> None:
    """Write old and new value on the two sides of a short arrow in the middle."""
    old, new = (fold(t, min(LEVEL_WIDTH, count_fitting_letters(ax, t, 1.12 * FONT, 0.42))) for t in texts)
    style: dict[str, Any] = {"va": "center", "fontsize": FONT, "parse_math": False}
    gap = _points(ax, 15)
    ax.text(0.5 - gap, row, old, ha="right", **style)
    ax.text(0.5 + gap, row, new, ha="left", fontweight="bold" if needed else "normal", **style)
    _arrow(ax, (0.5 - 0.7 * gap, row), (0.5 + 0.7 * gap, row), needed=needed)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], *, needed: bool) -> None:
    if start[1] == end[1] and abs(end[0] - start[0]) < _points(ax, 14):  # the head of an arrow is longer than that
        return
    line = {
        "arrowstyle": "-|>",
        "color": ink(),
        "linewidth": 1.4,
        "linestyle": "-" if needed else (0, (3, 2)),
        "shrinkA": 3,
        "shrinkB": 3,
    }
    ax.annotate("", end, xytext=start, arrowprops=line, zorder=2)


def _style_axes(ax: Axes, labels: Sequence[str], rows: Sequence[float], height: float, has_scale: bool) -> None:
    """Label the rows and the ends of the training range, hide the spines, and leave space for values."""
    ax.set_ylim(height - 0.5, -0.5)
    narrow = _inches(ax) < NARROW
    names = [fold(str(f), NAME_WIDTH // 2 if narrow else NAME_WIDTH, 3 if narrow else 2) for f in labels]
    ax.set_yticks(rows, names, fontsize=FONT, parse_math=False)
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


def _bar(ax: Axes, row: float, low: float, high: float) -> bool:
    """Draw a bar below the allowed part of the line; return whether it is less than the whole line."""
    if low <= 0 and high >= 1:
        return False
    style: dict[str, Any] = {"color": ink(), "alpha": 0.4, "linewidth": 3, "solid_capstyle": "butt"}
    ax.plot([low, high], [row + BELOW, row + BELOW], zorder=0.5, **style)
    return True


def _write_below(ax: Axes, notes: Sequence[str], listed: Mapping[str, Sequence[str]]) -> None:
    """Write the notes, and below them the features that have no row."""
    lines = [line for note in notes for line in wrap_to_axes(ax, note, SMALL)]
    for what, features in listed.items():
        if not features:
            continue
        short = [fold(name, 34, 1).replace(" ", "\u00a0") for name in features]
        lines += wrap_to_axes(ax, f"{what}: " + ", ".join(short), SMALL)
    if lines:
        ax.set_xlabel("\n".join(lines), loc="left", fontsize=SMALL, labelpad=8, alpha=0.75, parse_math=False)
        ax.xaxis.label.set_multialignment("left")


def _write_title(ax: Axes, title: str, subtitle: str) -> None:
    if subtitle:
        subtitle = fold(subtitle, count_fitting_letters(ax, subtitle, FONT), lines=3)
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
    if not title:
        return
    title = fold(title, count_fitting_letters(ax, title, 11.5), lines=3 if _inches(ax) < NARROW else 2)
    pad = 8 + 1.4 * FONT * (subtitle.count("\n") + 1) * bool(subtitle)
    ax.set_title(title, loc="left", fontsize=10, fontweight="bold", pad=pad, parse_math=False)
