"""Histograms of generated rows over those of real rows, a panel for each feature (paper, figures of Experiment 3).

1. Filled bars are real rows, outlines are generated rows; heights are shares, so the sizes may differ.
2. Numbers and dates share the bars of both tables together. Few distinct whole numbers have a bar each. Where some
   rows lie far out, the first and last bar collect them, and the panel says so.
3. Levels are bars that lie; the rarest of many are put together. A missing value is one more level, and for numbers a
   line in words.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats
from mcce.canvas import DARK, SMALL, as_array, ink, new_panels
from mcce.exceptions import InputError, did_you_mean
from mcce.report.words import fold, value_text
from mcce.table import Data, Feature, Kind, Schema, as_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mcce.canvas import Panels

MOST_BARS, MOST_LEVELS = 30, 10
TAIL = 0.005  # share of the rows that may be collected at each end
FAR = 3.0  # times the width without the tails


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
        Which features to draw, in this order; by default all.
    kinds : dict, optional
        Overrides of column kinds, as for `ChainModel`.
    notes : mapping, optional
        Feature to a short text for its title, such as a distance.
    n_columns : int, optional
        Panels in a row; by default up to four.
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
        columns = n_columns or min(4, len(chosen))
        figure, panels = new_panels(len(chosen), columns, 2.7 if columns > 1 else 4.5, 2.15, extra=0.35)
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
    name = fold(str(feature.name), 28, 2)
    ax.set_title(name, loc="left", fontsize=SMALL + 0.5, fontweight="bold", parse_math=False)
    if words:
        ax.set_xlabel(fold("; ".join(words), 40, 2), fontsize=SMALL - 1, alpha=0.85, loc="left", parse_math=False)
    ax.tick_params(labelsize=SMALL - 1, length=2)
    ax.spines[["top", "right"]].set_visible(False)


def _draw_numbers(ax: Axes, real: Any, generated: Any) -> list[str]:
    """Draw two histograms; return what has to be said."""
    from matplotlib.ticker import MaxNLocator

    is_date = not pd.api.types.is_numeric_dtype(real.dtype)
    p, q = (_as_numbers(column, is_date) for column in (real, generated))
    missing = [float(np.isnan(values).mean()) for values in (p, q)]
    p, q = p[~np.isnan(p)], q[~np.isnan(q)]
    words = [f"missing: {missing[0]:.0%} real, {missing[1]:.0%} generated"] if max(missing) > 0 else []
    if not p.size + q.size:
        return words
    edges, collects = _edges(np.concatenate([p, q]))
    heights = [np.histogram(np.clip(v, edges[0], edges[-1]), edges)[0] / max(v.size, 1) for v in (p, q)]
    ax.stairs(heights[0], edges, fill=True, color=DARK, alpha=0.55)
    ax.stairs(heights[1], edges, color=ink(), linewidth=1.2)
    _as_percent(ax.yaxis)
    if is_date and not pd.api.types.is_timedelta64_dtype(real.dtype):
        places = edges[0] + (edges[-1] - edges[0]) * np.array([0.1, 0.5, 0.9])
        ax.set_xticks(places, _date_labels(places))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.xaxis.set_major_formatter(lambda value, _: value_text(float(value), 3))
        words += ["in days"] if is_date else []
    return words + (["the end bars collect what lies beyond"] if collects else [])


def _as_numbers(column: Any, is_date: bool) -> Floats:
    """Return numbers as they are, dates and durations in days."""
    if not is_date:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if isinstance(column.dtype, pd.ArrowDtype):
        column = column.astype("datetime64[ns]" if column.dtype.kind == "M" else "timedelta64[ns]")
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert(None)
    ticks = column.to_numpy()
    origin = np.datetime64(0, "s") if ticks.dtype.kind == "M" else np.timedelta64(0, "s")
    return np.asarray((ticks - origin) / np.timedelta64(1, "D"), dtype=np.float64)


def _date_labels(days: Floats) -> list[str]:
    """Return dates, as precise as their distance asks for."""
    form = "%Y-%m" if np.ptp(days) > 100 else "%Y-%m-%d" if np.ptp(days) > 3 else "%m-%d %H:%M"
    return [f"{pd.Timestamp(0) + pd.Timedelta(days=float(day)):{form}}" for day in days]


def _edges(values: Floats) -> tuple[Floats, bool]:
    """Return the edges of the bars, and whether the outer ones collect far values."""
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
    wanted = len(np.histogram_bin_edges(inside, bins="fd" if np.subtract(*np.quantile(inside, [0.75, 0.25])) else 10))
    return np.linspace(low, high, min(max(wanted, 10), MOST_BARS) + 1), collects


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
    """Return the share of each level; the rarest of many together, in the order of the levels, missing last."""
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
