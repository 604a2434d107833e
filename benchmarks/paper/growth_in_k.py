"""L0, L1, N_CE and seconds of each step as K grows, with and without the decision in the chain."""

from __future__ import annotations

from typing import Any

import pandas as pd

from benchmarks.paper.measuring import judge, make_explainer, warm_up
from benchmarks.paper.options import Options
from benchmarks.paper.output import Table, fixed_point, mean_sd, per_cent, whole
from benchmarks.paper.problems import CODE, Case, networks, prepare
from benchmarks.paper.published import published

SIZES = (10, 50, 100, 1000, 5000, 10_000, 25_000)
QUICK_SIZES = (10, 50)
SECONDS = ("seconds_fit", "seconds_generate", "seconds_select", "seconds_total")


def measure_growth(options: Options, *, condition_on_decision: bool) -> pd.DataFrame:
    """Explain the factuals of Adult with increasing K, for each network of the authors' preparation."""
    rows = prepare("adult", options.folder, CODE, most=options.rows)
    runs: list[dict[str, Any]] = []
    for k, case in enumerate(networks(rows, options.n_factuals("adult"), options.networks)):
        if k == 0:
            warm_up(case)
        options.write_line(f"adult: network {case.seed}, {'with' if condition_on_decision else 'without'} the decision")
        runs += [{"network": case.seed, **run} for run in _grow(case, options, condition_on_decision)]
    each = pd.DataFrame(runs)
    means = each.groupby("K", as_index=False).mean(numeric_only=True).drop(columns="network")
    for name in ("L0", "L1"):
        means[f"{name}_low"], means[f"{name}_high"] = each.groupby("K")[name].agg(["min", "max"]).to_numpy().T
    return means


def _grow(case: Case, options: Options, condition_on_decision: bool) -> list[dict[str, Any]]:
    explainer = make_explainer(case.problem, condition_on_decision=condition_on_decision)
    explainer.fit(case.problem.X, progress=False)
    runs = []
    for n_samples in QUICK_SIZES if options.quick else SIZES:
        found = explainer.explain(case.problem.factuals, n_samples=n_samples, progress=False)
        runs.append({"K": n_samples, **judge(case.problem, found, dict(found.run.timings), manifold=False)})
    return runs


def growth_table(name: str, title: str, ours: pd.DataFrame, label: str, n_networks: int) -> Table:
    """Return our figures and the paper's."""
    theirs = published(label)
    numbers = ours.merge(theirs, on="K", how="left", suffixes=("", "_paper"))
    for measure in ("L0", "L1"):
        numbers[f"gap_{measure}"] = numbers[measure] / numbers[f"{measure}_paper"] - 1
    shown = pd.DataFrame({"K": whole(numbers, "K")})
    for measure in ("L0", "L1"):
        paper = numbers.rename(columns={f"{measure}_paper": "p", f"{measure}_sd_paper": "p_sd"})
        shown[measure] = mean_sd(numbers, measure)
        shown[f"p. {measure}"] = mean_sd(paper, "p")
        shown[f"gap {measure}"] = numbers[f"gap_{measure}"].map(per_cent)
    shown["N_CE"] = fixed_point(numbers, "N_CE", 0)
    shown["p."] = fixed_point(numbers, "N_CE_paper", 0)
    for step, short in zip(SECONDS, ("fit", "gen.", "select", "all")):
        shown[short] = fixed_point(numbers, step)
    shown["p. all"] = fixed_point(numbers, "seconds_total_paper")
    numbers_of = "one network" if n_networks == 1 else f"{n_networks} networks"
    notes = (
        f"Adult, prepared as in the authors' code; means over {numbers_of}. violation 0 and success 1 throughout: "
        f"{'yes' if (numbers['violation'] == 0).all() and (numbers['success'] == 1).all() else 'NO'}. "
        "p.: the paper's. Seconds: fit, generate, select, all; the fit is one for all K."
    )
    return Table(name, title, numbers, shown, notes)
