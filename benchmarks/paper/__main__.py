"""Run the paper's experiments, see `benchmarks.paper`."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import mcce
from benchmarks import paper, plain
from benchmarks.paper.problems import CODE, LADDERS, TEXT, make_case, networks, prepare, published, train_forest
from benchmarks.settings import DATA, Problem, Report, arguments
from mcce.diagnostics import compare_correlations, copies, discriminator, marginal_distances

SIZES = (10, 50, 100, 1000, 5000, 10_000, 25_000)
GRID = {"n_test": (1, 50), "n_train": (1000, 10_000), "p": (5, 30), "K": (10_000, 100_000)}
STEPS = ("fit", "generate", "select", "total")
MOST_ROWS = 10_000  # of each kind, for the discriminator
SHAPES = {  # n_train, p, number of fixed features, n_test
    "adult": (48_832, 13, 2, 1000),
    "gmc": (115_527, 10, 1, 1000),
    "german": (1000, 20, 3, 200),
    "fico": (9861, 23, 1, 1000),
}


class Sum:
    """The paper's simulated model: f(x) is the sum of the features, and f(x) > 0 is wanted."""

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the sums."""
        return np.asarray(rows.to_numpy().sum(axis=1))


def explain(
    problem: Problem, n_samples: int, *, repeats: int = 2, independent: bool = False, **options: Any
) -> tuple[Any, dict[str, float]]:
    """Return the counterfactuals, and the seconds of the fastest run by step."""
    best: dict[str, float] = {}
    is_simulated = isinstance(problem.model, Sum)
    options["decision"] = mcce.Interval(0, np.inf, closed="neither") if is_simulated else problem.decision
    score = problem.model if is_simulated else problem.score
    for _ in range(repeats):
        begun = time.perf_counter()
        explainer = mcce.MCCE(score, fixed=problem.fixed, kinds=problem.kinds, random_state=1, **options).fit(problem.X)
        found = explainer.explain(problem.factuals, n_samples=n_samples, independent=independent)
        seconds = {f"seconds_{step}": found.settings[f"seconds_{step}"] for step in STEPS[:3]}
        seconds["seconds_total"] = time.perf_counter() - begun
        best = seconds if not best else min(best, seconds, key=lambda run: run["seconds_total"])
    return found, best


def figures(problem: Problem, found: Any) -> dict[str, float]:
    """Return the columns of the paper's tables; L1 is the sum of range-scaled differences."""
    rows = found.frame.droplevel("rank")
    own = problem.factuals.loc[rows.index]
    steps = found.measures
    return {
        "L0": steps["L0"].mean(),
        "L0_sd": steps["L0"].std(),
        "L1": steps["gower_sum"].mean(),
        "L1_sd": steps["gower_sum"].std(),
        "violation": float((rows[problem.fixed] != own[problem.fixed]).sum(axis=1).mean()),
        "success": float(problem.wanted(rows).mean()),
        "N_CE": len(rows),
    }


def explain_plainly(problem: Problem, n_samples: int) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the rows of the plain method as numbers, and its L0 and seconds."""
    rows, seconds = plain.explain(
        problem.encode(problem.X),
        problem.encode(problem.factuals),
        wanted=lambda codes: problem.wanted(problem.decode(codes)),
        fixed=problem.fixed,
        categorical=problem.categorical,
        n_samples=n_samples,
    )
    own = problem.encode(problem.factuals.loc[rows.index])
    figures = {"plain_L0": float((rows != own).sum(axis=1).mean()), "plain_N_CE": len(rows)}
    return rows, {**figures, "plain_seconds": sum(seconds.values())}


def over_networks(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means over networks, and the lowest and highest L0 and L1."""
    each = pd.DataFrame(runs)
    means = {name: float(value) for name, value in each.mean(numeric_only=True).items()}
    ranges = {f"{name}_{end}": float(getattr(each[name], end)()) for name in ("L0", "L1") for end in ("min", "max")}
    return {**means, **ranges, "networks": len(runs)}


def beside(row: dict[str, Any], theirs: pd.DataFrame) -> dict[str, Any]:
    """Return a row with the published figures, and the gaps of L0 and L1, if there are any."""
    bar = {f"{name}_paper": value for name, value in (theirs.iloc[0] if len(theirs) else {}).items()}
    is_figure = {name: value for name, value in bar.items() if isinstance(value, (int, float, np.number))}
    gaps = {f"gap_{n}": row[n] / bar[f"{n}_paper"] - 1 for n in ("L0", "L1") if f"{n}_paper" in bar and n in row}
    return {**row, **is_figure, **gaps}


def problems_of(data: str, steps: Any, options: argparse.Namespace, **how: Any) -> Iterator[tuple[Problem, float]]:
    """Yield the problems of some networks, each with its AUC."""
    rows = prepare(data, options.data, steps, **how).head(1500 if options.quick else None)
    n_factuals = 20 if options.quick else SHAPES[data][3]
    for problem, auc in networks(rows, n_factuals, options.networks, quick=options.quick):
        explain(replace(problem, factuals=problem.factuals.head(5)), 10, repeats=1)  # compiles
        yield problem, auc


def experiment1(report: Report, options: argparse.Namespace) -> None:
    """MCCE on the four data sets (tab:results), from the text's preparation to that of the authors' code."""
    theirs = published("tab:results")
    for data in options.only:
        for steps in LADDERS[data]:
            runs: list[dict[str, Any]] = []
            for problem, auc in problems_of(data, steps, options):
                found, seconds = explain(problem, options.samples)
                plainly = {} if runs else explain_plainly(problem, options.samples)[1]
                runs.append({"auc": auc, **figures(problem, found), **seconds, **plainly})
            row = {"data": data, "preparation": "+".join(sorted(steps)) or "text", **over_networks(runs)}
            report.add(**beside(row, theirs[(theirs["data"] == data) & (theirs["method"] == "MCCE")]))


def growth(report: Report, options: argparse.Namespace, label: str, **how: Any) -> None:
    """More samples, on Adult as in the authors' code."""
    runs: dict[int, list[dict[str, Any]]] = {}
    for problem, _ in problems_of("adult", CODE, options):
        for n_samples in SIZES[:2] if options.quick else SIZES:
            found, seconds = explain(problem, n_samples, repeats=1, **how)
            runs.setdefault(n_samples, []).append({**figures(problem, found), **seconds})
    theirs = published(label)
    for n_samples, each in runs.items():
        row = {"part": label, "K": n_samples, **over_networks(each)}
        report.add(**beside(row, theirs[theirs["K"] == n_samples].drop(columns="K")))


def experiment2(report: Report, options: argparse.Namespace) -> None:
    """How results vary with K (tab:timing_increase_K)."""
    growth(report, options, "tab:timing_increase_K")


def experiment3(report: Report, options: argparse.Namespace) -> None:
    """Whether generated rows are realistic (section 3.3).

    new: a chain without the decision, fitted on one half of the rows, beside the other half, given its fixed values.
    seen: fitted on all rows, beside these. real: the two halves. The paper does not say which, nor the forest's sizes.
    """
    theirs = published("sec:quality")
    for data in options.only:
        rows = prepare(data, options.data, frozenset(["rows"])).head(1500 if options.quick else None)
        kinds: Any = dict.fromkeys(rows.categorical, "categorical")
        order = np.random.default_rng(1).permutation(len(rows.X))
        first, second = rows.X.iloc[order[: len(order) // 2]], rows.X.iloc[order[len(order) // 2 :]]
        for label, training, real in (("new", first, second), ("seen", rows.X, rows.X), ("real", first, second)):
            chain = mcce.ChainModel(fixed=rows.fixed, kinds=kinds, random_state=1)
            drawn = first if label == "real" else chain.fit(training).sample(given=real[rows.fixed])
            n = min(len(real), len(drawn), MOST_ROWS)
            some = np.random.default_rng(2).permutation(min(len(real), len(drawn)))[:n]
            pair = real.iloc[some], drawn.iloc[some]
            trials = 2 if options.quick else 5
            found = discriminator(*pair, paired=label != "real", kinds=kinds, n_trials=trials)["accuracy"]
            distances = marginal_distances(real, drawn, kinds=kinds)["distance"]
            steps = compare_correlations(real, drawn, kinds=kinds)["difference"].abs()
            row = {"data": data, "rows": label, "accuracy": found.mean(), "accuracy_sd": found.std(), "n_rows": n}
            row |= {"marginal_mean": distances.mean(), "marginal_largest": distances.max()}
            row |= {"correlation_mean": steps.mean(), "correlation_largest": steps.max()}
            report.add(**beside(row, theirs[theirs["data"] == data] if label != "real" else theirs.head(0)))


def simulate(n_train: int, p: int, n_test: int, n_fixed: int = 0) -> Problem:
    """Simulate as in section 3.4.1: normal features with correlation 0.5."""
    rng = np.random.default_rng(3)
    n = n_train + 3 * n_test + 100
    values = np.sqrt(0.5) * (rng.standard_normal((n, 1)) + rng.standard_normal((n, p)))
    table = pd.DataFrame(values, columns=[f"x{j}" for j in range(p)])
    X, others = table.iloc[:n_train], table.iloc[n_train:]
    refused = others[others.sum(axis=1) <= 0].iloc[:n_test]
    return Problem("gaussian", X, np.zeros(n_train), refused, Sum(), list(X.columns[:n_fixed]), [])


def experiment4(report: Report, options: argparse.Namespace) -> None:
    """Seconds by step against n_test, n_train, p and K (tab:simres), and the exponents of their growth.

    Every factual has draws of its own, as in the paper; `pool_total` is the default, one pool for all of them.
    """
    theirs = published("tab:simres")
    explain(simulate(200, 5, 5), 10, independent=True)  # compiles
    rows = []
    for values in itertools.product(*GRID.values()):
        sizes = dict(zip(GRID, values))
        is_same = (theirs[list(sizes)] == pd.Series(sizes)).all(axis=1)
        if options.quick:
            sizes |= {"K": sizes["K"] // 50, "n_train": sizes["n_train"] // 5}
        problem = simulate(sizes["n_train"], sizes["p"], sizes["n_test"])
        own = explain(problem, sizes["K"], repeats=2, independent=True)[1]
        pool = explain(problem, sizes["K"], repeats=2)[1]["seconds_total"]
        rows.append({**sizes, **own})
        report.add(**beside({**sizes, **own, "pool_total": pool}, theirs[is_same].drop(columns=list(GRID))))
    for step in STEPS[:3]:
        slopes = {"ours": exponents(pd.DataFrame(rows), step), "paper": exponents(theirs, step)}
        report.add(step=step, **{f"exponent_{q}_{who}": each[q] for who, each in slopes.items() for q in GRID})


def exponents(grid: pd.DataFrame, step: str) -> dict[str, float]:
    """Return the slopes of log seconds on the logs of the four quantities, by least squares."""
    design = np.column_stack([np.ones(len(grid)), np.log(grid[[*GRID]].to_numpy(dtype=float))])
    seconds = np.log(grid[f"seconds_{step}"].to_numpy(dtype=float).clip(1e-3))
    return dict(zip(GRID, np.linalg.lstsq(design, seconds, rcond=None)[0][1:].tolist()))


def appendix(report: Report, options: argparse.Namespace) -> None:
    """More levels, a random forest, no decision in the chain, simulations with the data sets' sizes, copies."""
    runs = []
    for problem, auc in problems_of("adult", frozenset(["unit"]), options, all_levels=True):
        found, seconds = explain(problem, options.samples)
        runs.append({"auc": auc, **figures(problem, found), **seconds})
    report.add(**beside({"part": "all levels", **over_networks(runs)}, published("tab:results_non_binary")))
    rows = prepare("adult", options.data, CODE).head(1500 if options.quick else None)
    runs = []
    for seed in range(options.networks):
        problem, auc = make_case(rows, train_forest, seed, 20 if options.quick else 1000)
        found, seconds = explain(problem, options.samples, repeats=1)
        runs.append({"auc": auc, **figures(problem, found), **seconds})
    report.add(**beside({"part": "forest", **over_networks(runs)}, published("tab:results_tree")))
    growth(report, options, "tab:timing_no_condition_response", condition_on_decision=False)
    theirs = published("tab:datasimres")
    for data, (n_train, p, n_fixed, n_test) in SHAPES.items():
        shrink = 50 if options.quick else 1
        problem = simulate(n_train // shrink, p, max(n_test // shrink, 1), n_fixed)
        row = {"part": "simulation", "data": data, **explain(problem, options.samples)[1]}
        report.add(**beside(row, theirs[theirs["data"] == data]))
    theirs = published("tab:copies")
    for data in options.only:
        problem, _ = next(problems_of(data, TEXT, options))
        found, _ = explain(problem, options.samples, repeats=1)
        plainly, _ = explain_plainly(problem, options.samples)
        is_copy = copies(found.frame, problem.X, kinds=problem.kinds)
        counts = {"copies": int(is_copy.sum()), "plain_copies": int(copies(plainly, problem.encode(problem.X)).sum())}
        report.add(**beside({"part": "copies", "data": data, **counts}, theirs[theirs["data"] == data]))


EXPERIMENTS = {
    "1": experiment1,
    "2": experiment2,
    "3": experiment3,
    "4": experiment4,
    "appendix": appendix,
}


def main() -> None:
    """Run the experiments."""
    parser = arguments(paper.__doc__, "paper")
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=f"of {', '.join(EXPERIMENTS)}; else all")
    parser.add_argument("--only", default=",".join(DATA), help="data sets (%(default)s)")
    parser.add_argument("--samples", type=int, default=1000, help="K of experiment 1 and the appendix (%(default)s)")
    parser.add_argument("--networks", type=int, default=3, help="for each data set and preparation (%(default)s)")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if options.quick:
        options.samples, options.networks = 50, 1
    for name in options.experiments or EXPERIMENTS:
        title = f"experiment {name}" if name.isdigit() else name
        print(f"\n{title}: {(EXPERIMENTS[name].__doc__ or '').strip()}")
        report = Report(f"paper_{name if name == 'appendix' else f'experiment{name}'}", options)
        EXPERIMENTS[name](report, options)
        report.write()


if __name__ == "__main__":
    main()
