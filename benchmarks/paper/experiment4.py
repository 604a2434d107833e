"""Experiment 4: seconds of the three steps against n_test, n_train, p and K (the paper's section 3.4.1).

Data and model are the paper's simulation (`benchmarks.settings.simulate`): normal features with correlation 0.5,
f(x) their sum, f(x) > 0 wanted, no fixed features. Without fixed values, mcce draws one pool for all factuals, and the
paper one for each; both are measured: "own draws" (`independent=True`) and "one pool".

1. The grid of tab:simres, all 16 settings.
2. Curves: one quantity varies, the others stay at the paper's n_test = 1, n_train = 1000, p = 10, K = 10,000.
3. Exponents: the slope of log seconds on the log of a quantity, by least squares; for the grid on all four logs at
   once, for the paper's table and for ours.

The fastest of up to three runs is reported (the paper: mean of ten); a setting that takes over ten seconds is run once.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.paper.measuring import STEPS, explain
from benchmarks.paper.options import Options
from benchmarks.paper.output import Table, fixed_point, save_figure, whole, write
from benchmarks.paper.published import published
from benchmarks.settings import simulate

QUANTITIES = ["n_test", "n_train", "p", "K"]
GRID = {"n_test": (1, 50), "n_train": (1000, 10_000), "p": (5, 30), "K": (10_000, 100_000)}
CENTRE = {"n_test": 1, "n_train": 1000, "p": 10, "K": 10_000}
CURVES = {
    "p": (5, 10, 20, 40, 80, 120),
    "K": (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    "n_train": (1000, 3000, 10_000, 30_000, 100_000, 300_000),
    "n_test": (1, 3, 10, 30, 100, 300, 1000),
}
QUICK = 50  # divisor of sizes for a trial run
WORTH = 0.005  # seconds; below it, overhead dominates
SECONDS = [f"seconds_{step}" for step in (*STEPS, "total")]
# the paper's section 3.4.2
THEORY = {
    ("fit", "p"): "2",
    ("fit", "n_train"): "1, with a log",
    ("generate", "p"): "1",
    ("generate", "K"): "1",
    ("generate", "n_test"): "1",
    ("generate", "n_train"): "0, a log",
    ("select", "p"): "1",
    ("select", "K"): "1",
    ("select", "n_test"): "1",
}


def run(options: Options) -> None:
    """Run the experiment, write its tables and draw the curves."""
    measure(dict.fromkeys(QUANTITIES, 5) | {"n_train": 200}, options, independent=True)  # compiles
    grid = measure_grid(options)
    curves = measure_curves(options)
    tables = [grid_table(grid), exponents_table(grid, curves), curves_table(curves)]
    draw(curves, options)
    write("experiment4", "Experiment 4: run time", tables, options)


def measure(sizes: dict[str, int], options: Options, *, independent: bool) -> dict[str, Any]:
    """Return sizes and seconds by step of the fastest run."""
    problem = simulate(sizes["n_train"], sizes["p"], sizes["n_test"])
    best: dict[str, float] = {"total": np.inf}
    begun = time.perf_counter()
    for _ in range(options.repeats or 3):
        _, seconds = explain(problem, sizes["K"], repeats=1, independent=independent)
        best = min(best, seconds, key=lambda run: run["total"])
        if time.perf_counter() - begun > 10:
            break
    return {**sizes, **{f"seconds_{step}": best[step] for step in (*STEPS, "total")}}


def measure_grid(options: Options) -> pd.DataFrame:
    """Run the 16 settings of tab:simres, with separate draws and with one pool."""
    runs = []
    for values in itertools.product(*GRID.values()):
        sizes = dict(zip(GRID, values))
        options.write_line("grid: " + ", ".join(f"{name} = {value:,}" for name, value in sizes.items()))
        if options.quick:
            sizes |= {"K": sizes["K"] // QUICK, "n_train": sizes["n_train"] // 5}
        own = measure(sizes, options, independent=True)
        pool = measure(sizes, options, independent=False) if sizes["n_test"] > 1 else own
        runs.append({**own, "seconds_total_one_pool": pool["seconds_total"]})
    return pd.DataFrame(runs)


def measure_curves(options: Options) -> pd.DataFrame:
    """Vary one quantity at a time, with separate draws for each factual."""
    runs = []
    for varied, values in CURVES.items():
        options.write_line(f"curve: {varied} from {values[0]:,} to {values[-1]:,}")
        for value in values[:3] if options.quick else values:
            sizes = {**CENTRE, varied: value}
            if options.quick:
                sizes |= {"K": sizes["K"] // QUICK}
            runs.append({"varied": varied, **measure(sizes, options, independent=True)})
    return pd.DataFrame(runs)


def grid_table(ours: pd.DataFrame) -> Table:
    """Return the paper's tab:simres and ours."""
    theirs = published("tab:simres").add_suffix("_paper").rename(columns={f"{q}_paper": q for q in QUANTITIES})
    numbers = ours.merge(theirs, on=QUANTITIES, how="left")
    numbers["ratio"] = numbers["seconds_total_paper"] / numbers["seconds_total"]
    shown = pd.DataFrame({name: whole(numbers, name) for name in QUANTITIES})
    for step in SECONDS:
        shown[step.removeprefix("seconds_")] = fixed_point(numbers, step, 3)
    shown["one pool"] = fixed_point(numbers, "seconds_total_one_pool", 3)
    for step, short in zip(SECONDS, ("p. fit", "p. gen.", "p. sel.", "p. total")):
        shown[short] = fixed_point(numbers, f"{step}_paper")
    shown["p. / ours"] = fixed_point(numbers, "ratio", 0)
    notes = (
        "Seconds. fit, generate, select, total: every factual has its own draws, as in the paper. one pool: total"
        " with mcce's default, one pool of draws for factuals with the same fixed values. p.: the paper's, on a "
        "16-core desktop."
    )
    return Table("experiment4_grid", "The grid (tab:simres)", numbers, shown, notes)


def exponents_of_grid(grid: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Regress log seconds on the logs of the four quantities."""
    design = np.column_stack([np.ones(len(grid)), np.log(grid[QUANTITIES].to_numpy(dtype=float))])
    found = {}
    for step in STEPS:
        slopes = np.linalg.lstsq(design, np.log(grid[f"seconds_{step}"].to_numpy(dtype=float)), rcond=None)[0][1:]
        found |= {(step, name): float(slope) for name, slope in zip(QUANTITIES, slopes)}
    return found


def exponents_of_curves(curves: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Fit the slope of each curve over the sizes where a step takes long enough to be measured."""
    found = {}
    for varied, rows in curves.groupby("varied"):
        for step in STEPS:
            seconds = rows[f"seconds_{step}"]
            long = rows[seconds >= WORTH]
            if len(long) >= 3:
                found[step, varied] = np.polyfit(np.log(long[varied]), np.log(long[f"seconds_{step}"]), 1)[0]
    return found


def exponents_table(grid: pd.DataFrame, curves: pd.DataFrame) -> Table:
    """Return the exponents of the paper's table, of ours, of our curves, and those derived in the paper."""
    of_paper, of_grid = exponents_of_grid(published("tab:simres")), exponents_of_grid(grid)
    of_curves = exponents_of_curves(curves)
    numbers = pd.DataFrame(
        [
            {
                "step": step,
                "quantity": quantity,
                "theory": THEORY[step, quantity],
                "grid_paper": of_paper[step, quantity],
                "grid": of_grid[step, quantity],
                "curve": of_curves.get((step, quantity), np.nan),
            }
            for step, quantity in THEORY
        ]
    )
    shown = pd.DataFrame(
        {
            "": numbers["step"] + " in " + numbers["quantity"],
            "theory": numbers["theory"],
            "paper's grid": fixed_point(numbers, "grid_paper"),
            "our grid": fixed_point(numbers, "grid"),
            "our curve": fixed_point(numbers, "curve"),
        }
    )
    notes = (
        "Exponents: seconds grow like quantity^exponent. theory: the paper's section 3.4.2. Grids: least squares on "
        f"the logs of all four quantities. Curve: over the sizes at which the step takes at least {1000 * WORTH:g} ms."
    )
    return Table("experiment4_growth", "Growth", numbers, shown, notes)


def curves_table(curves: pd.DataFrame) -> Table:
    """Return the seconds of the curves."""
    shown = pd.DataFrame(
        {
            "": [f"{varied} = {value:,}" for varied, value in zip(curves["varied"], _varied_values(curves))],
            **{step.removeprefix("seconds_"): fixed_point(curves, step, 4) for step in SECONDS},
        }
    )
    notes = "Seconds; the quantities that are not named are n_test = 1, n_train = 1000, p = 10, K = 10,000. Own draws."
    return Table("experiment4_curves", "One quantity at a time", curves, shown, notes)


def _varied_values(curves: pd.DataFrame) -> list[int]:
    return [int(row[row["varied"]]) for _, row in curves.iterrows()]


def draw(curves: pd.DataFrame, options: Options) -> None:
    """Save the four curves as one figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9.2, 6.6), layout="constrained")
    for ax, varied in zip(axes.flat, CURVES):
        rows = curves[curves["varied"] == varied]
        rows.plot(varied, [f"seconds_{step}" for step in STEPS], loglog=True, marker="o", ax=ax)
    save_figure(figure, "experiment4_curves", options)
    plt.close(figure)
