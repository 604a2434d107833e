"""Measurements against a setting: quality against K and the floor; run time against p, K, n_train and n_test.

`samples_plot` is the paper's Experiment 2, `runtime_plot` its Experiment 4, with the fitted power of each quantity.
`trade_off_plot` has the floor on an axis of square roots. Lines differ in marker and dash, not only in colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.base.canvas import DARK, FONT, SMALL, as_array, given_panels, ink
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.report.names import fold, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mcce.base.canvas import Panels

QUANTITIES = {
    "p": "features, p",
    "K": "draws for each case, K",
    "n_train": "training rows",
    "n_test": "cases to explain",
}
STEPS = ("fit", "generate", "select", "total")
MEASURES = {
    "L0": "features changed, L0",
    "L1": "Gower distance, summed (L1)",
    "gower": "Gower distance",
    "distance": "Gower distance to the training rows",
}
FLOOR_MEASURES = {
    "L0": "features changed, L0",
    "gower_sum": "Gower distance, summed (L1)",
    "distance": "summed Gower distance, 5 nearest rows",
}
SHARES = {"explained": "explained", "above_floor": "of these at or above the floor"}
STYLES = (
    ("o", "-"),
    ("s", "--"),
    ("^", ":"),
    ("D", "-."),
    ("v", (0, (5, 1))),
    ("P", (0, (1, 1))),
    ("X", (0, (3, 1, 1, 1))),
)


def samples_plot(
    results: pd.DataFrame,
    *,
    measures: Sequence[str] = ("L0", "L1"),
    group: str | None = None,
    axes: Sequence[Axes] | None = None,
) -> Panels:
    """Draw L0 and distance against the number of draws K.

    Parameters
    ----------
    results : DataFrame
        A column `K` and one for each measure: means, as `Evaluation.to_frame` has them. Several rows with one K are
        averaged.
    measures : sequence of str
        The columns to draw, a panel each.
    group : str, optional
        Column that names the lines, such as a method or a data set.
    axes : sequence of Axes, optional
        Where to draw, one for each measure.

    Returns
    -------
    array of Axes
        One for each measure.

    Examples
    --------
    >>> import mcce
    >>> import pandas as pd
    >>> means = pd.DataFrame({"K": [100, 1000], "L0": [2.9, 2.4], "L1": [0.8, 0.6]})
    >>> [ax.get_title("left") for ax in mcce.plots.samples_plot(means)]
    ['L0 against K', 'L1 against K']
    """
    _check_columns(results, ["K", *measures, *([group] if group else [])])
    panels = given_panels(axes, len(measures), 4.6, 3.3)
    for ax, measure in zip(panels, measures):
        for k, (name, rows) in enumerate(results.groupby(group, sort=False) if group else [("", results)]):
            line = rows.groupby("K")[measure].mean()
            _draw_line(ax, line, str(name), k)
        _as_logarithm(ax, results["K"])
        ax.set_ylim(bottom=0)
        _style_axes(ax, QUANTITIES["K"], MEASURES.get(measure, measure), bool(group))
        ax.set_title(f"{measure} against K", loc="left", fontsize=FONT, fontweight="bold", parse_math=False)
    return as_array(panels)


def runtime_plot(
    times: pd.DataFrame,
    *,
    against: Sequence[str] | str | None = None,
    steps: Sequence[str] | None = None,
    least: float = 0.0,
    axes: Sequence[Axes] | None = None,
) -> Panels:
    """Draw seconds of each step against p, K, n_train and n_test.

    Parameters
    ----------
    times : DataFrame
        Columns among p, K, n_train, n_test, and the seconds of each step: fit, generate, select, total (or
        seconds_fit, ...). Repeated settings are averaged.
    against : str or sequence of str, optional
        The quantities to draw, a panel each; by default all that vary.
    steps : sequence of str, optional
        The steps to draw; by default those there are.
    least : float
        Seconds below which a point is drawn but does not count for the power; with fewer than three left none is told.
    axes : sequence of Axes, optional
        Where to draw, one for each quantity.

    Returns
    -------
    array of Axes
        One for each quantity.

    Examples
    --------
    >>> import mcce
    >>> import pandas as pd
    >>> times = pd.DataFrame({"K": [100, 1000], "generate": [0.01, 0.1], "select": [0.02, 0.2]})
    >>> ax, = mcce.plots.runtime_plot(times)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['generate: power 1.00', 'select: power 1.00']
    """
    times = times.rename(columns={f"seconds_{step}": step for step in STEPS if step not in times})
    present = [name for name in QUANTITIES if name in times]
    if against is None:
        chosen = [name for name in present if times[name].min() < times[name].max()]
        if not chosen:
            raise InputError(f"none of {listing(QUANTITIES)} varies in times; measure at two or more values of one.")
    else:
        chosen = [against] if isinstance(against, str) else list(against)
    drawn = list(steps) if steps is not None else [step for step in STEPS if step in times]
    _check_columns(times, [*chosen, *drawn])
    if not drawn:
        raise InputError(f"times has no column of seconds; it needs some of {listing(STEPS)}.")
    from matplotlib.ticker import NullFormatter

    panels = given_panels(axes, len(chosen), 4.6, 3.3)
    for ax, quantity in zip(panels, chosen):
        rows, rest = _vary_one(times, quantity, [name for name in present if name != quantity])
        for k, step in enumerate(drawn):
            line = rows.groupby(quantity)[step].mean()
            line = line[line > 0]
            power = _power(line[line >= least], 3 if least else 2)
            label = step if np.isnan(power) else f"{step}: power {power:.2f}"
            _draw_line(ax, line, label, k)
        _as_logarithm(ax, rows[quantity])
        ax.set_yscale("log")
        ax.yaxis.set_minor_formatter(NullFormatter())
        _style_axes(ax, QUANTITIES.get(quantity, quantity), "seconds", True)
        held = ", ".join(f"{name} = {value_text(value)}" for name, value in rest.items())
        ax.set_title(
            f"Run time against {quantity}", loc="left", fontsize=FONT, fontweight="bold", pad=18 if held else 6
        )
        ax.annotate(
            held, (0, 1), xytext=(0, 5), xycoords="axes fraction", textcoords="offset points", fontsize=SMALL - 0.5
        )
    return as_array(panels)


def _power(seconds: pd.Series[Any], fewest: int) -> float:
    """Return the slope of the log of seconds on the log of what they are indexed by; NaN for too few points."""
    if len(seconds) < fewest:
        return np.nan
    return float(np.polyfit(np.log(seconds.index.to_numpy(float)), np.log(seconds), 1)[0])


def trade_off_plot(table: pd.DataFrame, factual_distance: float, *, axes: Sequence[Axes] | None = None) -> Panels:
    """Draw what a floor of plausibility costs, as `TradeOff.table` has it.

    Parameters
    ----------
    table : DataFrame
        A row for each floor and one without, the plain method's: `floor`, L0, gower_sum, distance, explained,
        above_floor.
    factual_distance : float
        The distance to the data of the factuals themselves.
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
    panels = given_panels(axes, len(FLOOR_MEASURES) + 1, 4.6, 3.3)
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
    titles = ("Changes", "Distance to the case", "Distance to the data", "Whom it reaches")
    for ax, title in zip(panels, titles):
        ax.set_title(title, loc="left", fontsize=FONT, fontweight="bold")
    return as_array(panels)


def _draw_level(ax: Axes, value: float, label: str, dash: str) -> None:
    ax.axhline(value, color=ink(), linestyle=dash, linewidth=1.1, label=label)


def _against_floors(ax: Axes, floors: pd.Index[Any], y: str) -> None:
    """Set an x axis of square roots with ticks at the floors."""
    ax.set_xscale("function", functions=(lambda v: np.sign(v) * np.sqrt(np.abs(v)), lambda v: np.sign(v) * v**2))
    highest = max(float(floors.max()), 0.01)
    ax.set_xlim(-0.002 * highest, 1.1 * highest)
    ax.set_xticks(floors.to_numpy(float), [value_text(float(v)) if v else "0" for v in floors])
    ax.minorticks_off()
    _style_axes(ax, "floor of plausibility", y, True)


def _vary_one(times: pd.DataFrame, quantity: str, others: list[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the rows with those values of the other quantities for which this one was varied most, and these."""
    if not others:
        return times, {}
    varied = times.groupby(others)[quantity].nunique()
    best: Any = varied.index[int(np.argmax(varied.to_numpy()))]
    values = dict(zip(others, best if isinstance(best, tuple) else (best,)))
    return times[(times[others] == pd.Series(values)).all(axis=1)], values


def _draw_line(ax: Axes, line: pd.Series[Any], label: str, k: int) -> None:
    marker, dash = STYLES[k % len(STYLES)]
    ax.plot(
        line.index.to_numpy(float),
        line.to_numpy(float),
        marker=marker,
        linestyle=dash,
        color=(DARK, ink())[k % 2],
        markersize=4.5,
        linewidth=1.3,
        markerfacecolor="none" if k % 2 else DARK,
        label=fold(label, 30, 1),
    )


def _as_logarithm(ax: Axes, values: pd.Series[Any]) -> None:
    """Set a logarithmic x axis, with ticks at the values themselves where they span less than two decades."""
    from matplotlib.ticker import NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_minor_formatter(NullFormatter())
    distinct = np.unique(values.to_numpy(dtype=np.float64))
    if distinct[-1] < 100 * distinct[0] and distinct.size <= 8:
        ax.set_xticks(distinct, [value_text(float(v)) for v in distinct])
    else:
        ax.xaxis.set_major_formatter(lambda value, _: value_text(float(value)))


def _style_axes(ax: Axes, x: str, y: str, legend: bool) -> None:
    ax.set_xlabel(x, fontsize=SMALL)
    ax.set_ylabel(y, fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.3, linewidth=0.6)
    if legend:
        ax.legend(fontsize=SMALL - 0.5, frameon=False)


def _check_columns(frame: pd.DataFrame, names: list[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise InputError(f"the table has no column {name!r}; {did_you_mean(name, frame.columns)}")
