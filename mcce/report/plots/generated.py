"""Generated and real rows: distributions, correlations, and an overview of the diagnostics.

`marginal_plot`: histograms of both tables, in shares (paper, Experiment 3). Both have the same bars; outliers are
collected in the first and last bar, rare levels in one bar, and missing values are a level or a note.

`correlation_plot`: circles whose area is the absolute correlation, filled if positive (paper, Experiment 3).

`overview_plot`: distances of the marginals; correlations of generated against real rows; distances of counterfactuals
to training rows; share of valid candidates.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats, Indices
from mcce.base.canvas import (
    DARK,
    FONT,
    LIGHT,
    PANEL,
    SMALL,
    as_array,
    count_fitting_letters,
    ink,
    lay_out,
    new_axes,
    new_panels,
    write_caption,
    write_title,
)
from mcce.exceptions import InputError, did_you_mean
from mcce.report.names import fold, value_text
from mcce.report.plots.scale import LineScale, bent_scale
from mcce.table import Data, Feature, Kind, Schema, as_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mcce.base.canvas import Panels

MOST_NUMBERS = 12
CELL, CELL_WITH_NUMBER = 0.24, 0.43  # inches per feature


def correlation_plot(
    matrix: pd.DataFrame, *, title: str = "Correlations", scale: float = 1.0, ax: Axes | None = None
) -> Axes:
    """Draw a correlation matrix, or a difference of two, as circles.

    Parameters
    ----------
    matrix : DataFrame
        Symmetric, with the same features in rows and columns, as returned by `mcce.diagnostics.correlations`.
    title : str
    scale : float
        The absolute value that fills a cell; less than 1 shows small differences.
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
    if p <= MOST_NUMBERS and count_fitting_letters(ax, "-0.00", SMALL, 1 / p, least=0) > len("-0.00"):
        for i, j in itertools.combinations(range(p), 2):
            ax.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", fontsize=SMALL)
    write_caption(ax, f"Area: absolute value, {scale:g} fills a cell. Filled: positive. Open: negative.")
    lay_out(ax)  # the caption moves the square axes
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


MOST_BARS, MOST_LEVELS = 30, 10
TAIL = 0.005  # share of the rows collected at each end
FAR = 3.0  # least range of the values, in widths without the tails, for which the tails are collected
COUNTED = 100  # the largest range of whole numbers on a linear scale


def marginal_plot(
    real: Data,
    generated: Data,
    *,
    features: Sequence[Hashable] | None = None,
    kinds: Mapping[Any, Kind] | None = None,
    notes: Mapping[Any, str] | None = None,
    n_columns: int | None = None,
    ax: Axes | None = None,
) -> Panels:
    """Draw the distribution of each feature in generated rows over that in real rows.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes.
    features : list of column names, optional
        The features to draw, in this order; by default all.
    kinds : dict, optional
        Overrides of column kinds, as for `ChainModel`.
    notes : mapping, optional
        Feature to a short text for its title, such as a distance.
    n_columns : int, optional
        Panels in a row; by default up to two.
    ax : Axes, optional
        Where to draw a single feature.

    Returns
    -------
    array of Axes
        One for each feature.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(200).X[["age", "salary", "savings"]]
    >>> generated = mcce.ChainModel(random_state=1).fit(X).sample(200)
    >>> mcce.plots.marginal_plot(X, generated).size
    3
    """
    left, _ = as_frame(real, "real")
    right, _ = as_frame(generated, "generated")
    schema = Schema.from_data(left, kinds, "real")
    chosen = [schema.features[schema.position(name, where="real")] for name in (features or schema.names)]
    for feature in chosen:
        if feature.name not in right.columns:
            raise InputError(
                f"generated lacks the column {feature.name!r} of real; {did_you_mean(feature.name, right.columns)}"
            )
    if ax is not None and len(chosen) > 1:
        raise InputError(f"ax is given for {len(chosen)} features; name one in `features`, or leave out ax.")
    if ax is None:
        columns = n_columns or min(2, len(chosen))
        figure, panels = new_panels(len(chosen), columns, PANEL if columns > 1 else 4.5, 2.15, extra=0.35)
        _write_legend(figure, len(left), len(right))
    else:
        panels = [ax]
    for panel, feature in zip(panels, chosen):
        _draw_feature(panel, feature, left[feature.name], right[feature.name], (notes or {}).get(feature.name, ""))
    return as_array(panels)


def _write_legend(figure: Any, n_real: int, n_generated: int) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=DARK, alpha=0.55, label=f"real ({n_real:,} rows)"),
        Patch(facecolor="none", edgecolor=ink(), linewidth=1.2, label=f"generated ({n_generated:,} rows)"),
    ]
    legend = figure.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=SMALL, frameon=False)
    legend.set_title("Generated over real rows, in per cent of the rows", {"size": 11, "weight": "bold"})
    legend.set_alignment("left")


def _draw_feature(ax: Axes, feature: Feature, real: Any, generated: Any, note: str) -> None:
    words = [note] if note else []
    if feature.is_numeric:
        words += _draw_numbers(ax, real, generated)
    else:
        _draw_levels(ax, feature, real, generated)
    name = fold(str(feature.name), 22, 2)
    ax.set_title(name, loc="left", fontsize=SMALL + 0.5, fontweight="bold", parse_math=False)
    if words:
        ax.set_xlabel(fold("; ".join(words), 40, 2), fontsize=SMALL - 1, alpha=0.85, loc="left", parse_math=False)
    ax.tick_params(labelsize=SMALL - 1, length=2)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_numbers(ax: Axes, real: Any, generated: Any) -> list[str]:
    """Draw two histograms; return the notes for the panel."""
    from matplotlib.ticker import MaxNLocator

    is_date = not pd.api.types.is_numeric_dtype(real.dtype)
    p, q = (_as_numbers(column, is_date) for column in (real, generated))
    missing = [float(np.isnan(values).mean()) for values in (p, q)]
    p, q = p[~np.isnan(p)], q[~np.isnan(q)]
    words = [f"missing: {missing[0]:.0%} real, {missing[1]:.0%} generated"] if max(missing) > 0 else []
    if not p.size + q.size:
        return words
    edges, collects = _edges(np.concatenate([p, q]))
    ends = float(edges[0]), float(edges[-1])
    is_even = is_date or not p.size or _is_counted(p)
    scale = LineScale(*ends) if is_even else bent_scale(p, *ends)
    edges = edges if scale.is_linear else scale.values(np.linspace(0, 1, edges.size))
    heights = [np.histogram(np.clip(v, edges[0], edges[-1]), edges)[0] / max(v.size, 1) for v in (p, q)]
    ax.stairs(heights[0], edges, fill=True, color=DARK, alpha=0.55)
    ax.stairs(heights[1], edges, color=ink(), linewidth=1.2)
    _as_percent(ax.yaxis)
    if is_date and not pd.api.types.is_timedelta64_dtype(real.dtype):
        places = edges[0] + (edges[-1] - edges[0]) * np.array([0.1, 0.5, 0.9])
        ax.set_xticks(places, _date_labels(places))
    else:
        if scale.is_linear:
            ax.xaxis.set_major_locator(MaxNLocator(4))
        else:
            ax.set_xscale("function", functions=(scale.shares, scale.values))
            ax.set_xticks(_round_values(scale), minor=False)
            words.append("logarithmic scale")
        ax.xaxis.set_major_formatter(lambda value, _: value_text(float(value), 3))
        words += ["in days"] if is_date else []
    return words + (["the end bars collect values beyond"] if collects else [])


def _is_counted(values: Floats) -> bool:
    """Return whether numbers are whole with a small range: bars of unequal width would hold one or two of them."""
    return bool(np.ptp(values) <= COUNTED and (values == np.round(values)).all())


def _round_values(scale: LineScale) -> list[float]:
    """Return ticks of one significant digit for a logarithmic scale."""
    values = np.array([float(f"{value:.0e}") for value in scale.values(np.array([0.05, 0.5, 0.95]))])
    return [float(value) for value in np.unique(values) if scale.low <= value <= scale.high]


def _as_numbers(column: Any, is_date: bool) -> Floats:
    """Return numbers unchanged, dates and durations in days."""
    if not is_date:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if isinstance(column.dtype, pd.ArrowDtype):
        column = column.astype("datetime64[us]" if column.dtype.kind == "M" else "timedelta64[us]")
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert(None)
    ticks = column.to_numpy()
    origin = np.datetime64(0, "s") if ticks.dtype.kind == "M" else np.timedelta64(0, "s")
    return np.asarray((ticks - origin) / np.timedelta64(1, "D"), dtype=np.float64)


def _date_labels(days: Floats) -> list[str]:
    """Return dates as texts, with the precision that their distance needs."""
    stamps = np.floor(days * 86_400).astype("M8[s]")  # nanoseconds would end in 2262
    if np.ptp(days) <= 3:
        return [text[-11:].replace("T", " ") for text in np.datetime_as_string(stamps, unit="m")]
    return list(np.datetime_as_string(stamps, unit="M" if np.ptp(days) > 100 else "D"))


def _edges(values: Floats) -> tuple[Floats, bool]:
    """Return the edges of the bars, and whether the outer bars collect distant values."""
    distinct = np.unique(values)
    if distinct.size <= MOST_BARS and (distinct == np.round(distinct)).all() and np.ptp(distinct) <= 2 * MOST_BARS:
        return np.arange(distinct[0] - 0.5, distinct[-1] + 1), False
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    collects = bool(distinct[-1] - distinct[0] > FAR * (high - low) > 0)
    if not collects:
        low, high = distinct[0], distinct[-1]
    if high == low:
        low, high = low - 0.5, high + 0.5
    inside = values[(values >= low) & (values <= high)]
    # Freedman and Diaconis; the rule of numpy would allocate all bars of a long tail
    each = 2.0 * float(np.subtract(*np.quantile(inside, [0.75, 0.25]))) / inside.size ** (1 / 3)
    wanted = float(np.ptp(inside)) / each + 1 if each else 11.0
    return np.linspace(low, high, math.ceil(min(max(wanted, 10), MOST_BARS)) + 1), collects


def _draw_levels(ax: Axes, feature: Feature, real: Any, generated: Any) -> None:
    shares = _level_shares(feature, real, generated)
    places = np.arange(len(shares))
    ax.barh(places, shares["real"], height=0.7, color=DARK, alpha=0.55)
    ax.barh(places, shares["generated"], height=0.7, facecolor="none", edgecolor=ink(), linewidth=1.2)
    names = [fold(str(name), 16, 1) for name in shares.index]
    ax.set_yticks(places, names, parse_math=False)
    ax.set_ylim(len(shares) - 0.5, -0.5)
    _as_percent(ax.xaxis)


def _as_percent(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")


def _level_shares(feature: Feature, real: Any, generated: Any) -> pd.DataFrame:
    """Return the share of each level, in the order of the levels, missing and pooled rare levels last."""
    counts: list[npt.NDArray[np.float64]] = []
    known = list(feature.levels if feature.levels is not None else [])
    further = [level for level in pd.unique(generated.dropna()) if level not in set(known)]
    levels = known + further
    place = {level: k for k, level in enumerate(levels)}
    for column in (real, generated):
        codes = column.astype(object).map(place).to_numpy(dtype=np.float64, na_value=len(levels))
        counts.append(np.bincount(codes.astype(np.intp), minlength=len(levels) + 1) / max(len(column), 1))
    names = pd.Index([value_text(level) for level in levels] + ["missing"], dtype=object)
    shares = pd.DataFrame({"real": counts[0], "generated": counts[1]}, index=names)
    shares = shares[(shares > 0).any(axis=1)]
    if len(shares) <= MOST_LEVELS:
        return shares
    kept = np.sort(np.argsort(-shares.sum(axis=1).to_numpy(), kind="stable")[: MOST_LEVELS - 1])
    rest = shares.drop(index=shares.index[kept])
    others = pd.DataFrame([rest.sum()], index=pd.Index([f"{len(rest)} others"], dtype=object))
    return pd.concat([shares.iloc[kept], others])


MOST_BARS_OF_ALL = 12


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
        The panels.

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
    _, axes = new_panels(n_panels, n_columns, PANEL, 2.6, figure=figure)
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
    """Write title and labels in lines that fit into the panel."""
    ax.set_ylabel(y, fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    lay_out(ax)
    title, label = (
        "\n".join(textwrap.wrap(t, count_fitting_letters(ax, t, s, 1.0))) for t, s in ((text, 10.5), (x, SMALL))
    )
    ax.set_title(title, loc="left", fontsize=FONT + 0.5, fontweight="bold")
    ax.set_xlabel(label, fontsize=SMALL)


def _draw_distances(ax: Axes, distances: pd.Series[Any]) -> None:
    shown = distances.sort_values(ascending=False, kind="stable").head(MOST_BARS_OF_ALL)
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
    styles = (("distance", "any row", "-", DARK), ("distance_wanted", "wanted decision", "--", ink()))
    for name, label, dash, color in styles:
        values = np.sort(neighbours[name].dropna().to_numpy(float))
        if values.size:
            steps = np.arange(1, values.size + 1) / values.size
            ax.step(np.append(0, values), np.append(0, steps), where="post", linestyle=dash, color=color, label=label)
    ax.set_ylim(0, 1.02)
    ax.set_xlim(left=0)
    ax.legend(fontsize=SMALL, frameon=False, loc="best", handlelength=1.3)
    _title(ax, "Distance to the nearest training row", "Gower distance", "share of the counterfactuals")


def _draw_validity(ax: Axes, validity: pd.Series[Any]) -> None:
    ax.hist(validity.to_numpy(float), [k / 20 for k in range(21)], color=LIGHT, edgecolor=ink(), linewidth=0.7)
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    _title(ax, "Valid candidates", "share of the draws with the wanted decision", "cases")
