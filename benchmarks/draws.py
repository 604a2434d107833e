"""How many draws are enough: `n_samples="auto"` and fixed numbers, Monte Carlo errors, stability over redraws.

    python -m benchmarks.draws [--data FOLDER] [--factuals N] [--redraws N] [--out FILE] [--quick]

1. Take the loans with gradient boosting and Adult with the paper's network. Skip the first 300 factuals, on which the
   rule of "auto" was chosen, with another seed.
2. Explain them, whole draws and sparse, with 1000 and 10,000 draws, with "auto", and with a fixed number that draws as
   many rows as "auto". Count the drawn rows (the size of a pool is that of its factual with the most draws).
3. Compare the standard errors reported by `explain` with the spread of the means over redraws.
4. Count the factuals that keep their row and their set of changed features over five redraws.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.report import QUICK, STANDIN
from benchmarks.settings import ROOT, SETTINGS, Setting, find_data, make_problem
from mcce import MCCE
from mcce.diagnostics import stability

KNOWN = 300  # factuals on which the rule was chosen
RESULTS = ROOT / "benchmarks" / "results" / "draws.md"
PROBLEMS = [
    Setting("loans", "loans, gradient boosting", "loans", "boosting", 300, 1000, False, False, 3000),
    next(s for s in SETTINGS if s.name == "adult"),
]
NOTES = """
`python -m benchmarks.draws`; one thread. draws: mean over the factuals; rows: total over the pools. queried: rows
passed to the model. "equal" is the fixed number with the rows of "auto". se: Monte Carlo standard errors as reported by
`summary()` (root mean square of five), spread: standard deviation of the mean over redraws. same row, same features,
same L0: per cent of the factuals that keep them over five redraws.

With whole draws "auto" draws a quarter of the rows of `n_samples=10_000`, more than `n_samples=1000`, and its L0 and
distance are between theirs. At equal numbers of rows a fixed number has the lower L0: a pool has the size needed by its
most demanding factual, and early stopping is partly random. Sparse counterfactuals nearly always converge at the first
doubling, so "auto" draws about 1000 rows; it searches twice and is slower than `n_samples=1000`, but much faster than
10,000.
"""


def compare_draws(explainer: MCCE, X: pd.DataFrame, title: str, fixed: list[Any], small: int) -> Iterator[str]:
    """Yield the lines of step 2."""
    for sparse in (False, True):
        mode = "sparse" if sparse else "whole draws"
        explainer.explain(X.iloc[:3], n_samples=10, sparse=sparse)  # compiles, and fits cached parts
        equal = 0
        for n in (1000 // small, 10_000 // small, "auto", "equal"):
            begun = time.perf_counter()
            found = explainer.explain(X, n_samples=equal if n == "equal" else n, sparse=sparse, progress=False)
            seconds = time.perf_counter() - begun
            pools = found.draws[found.draws > 0].groupby([X[name] for name in fixed], observed=True).max()
            if n == "auto":
                equal = max(1, round(pools.sum() / len(pools)))
            best = found.measures.xs(1, level="rank")
            yield (
                f"{title:15}{mode:13}{n if isinstance(n, str) else format(n, ','):>7}{found.draws.mean():8,.0f}"
                f"{int(found.draws.max()):8,}{int(pools.sum()):12,}{found.run.settings['rows_queried']:10,}{seconds:9.2f}"
                f"{best['L0'].mean():8.3f}{best['gower'].mean():9.4f}{len(best):7}"
            )


def compare_errors(explainer: MCCE, X: pd.DataFrame, title: str, n_redraws: int, n_samples: int) -> Iterator[str]:
    """Yield the lines of step 3."""
    for sparse in (False, True):
        how = {"n_samples": n_samples, "sparse": sparse, "progress": False}
        found = explainer.explain(X, **how)
        means = [found.redrawn(10 + r).measures[["L0", "gower"]].mean() for r in range(n_redraws)]
        truth = pd.DataFrame(means).std()
        errors = [found.redrawn(r).standard_errors() for r in range(min(5, n_redraws))]
        said = np.sqrt((pd.DataFrame(errors) ** 2).mean())
        yield (
            f"{title:15}{'sparse' if sparse else 'whole draws':13}{said['L0']:9.4f}{truth['L0']:9.4f}"
            f"{said['gower']:12.5f}{truth['gower']:10.5f}"
        )


def report_stability(explainer: MCCE, X: pd.DataFrame, title: str, small: int) -> Iterator[str]:
    """Yield the lines of step 4."""
    for sparse in (False, True):
        for n in (250 // small, 1000 // small, 4000 // small, "auto"):
            s = stability(explainer, X, n_samples=n, sparse=sparse).summary
            shares = "".join(f"{100 * s[name]:{w}.1f}" for name, w in (("same_row", 10), ("same_features", 15)))
            yield (
                f"{title:15}{'sparse' if sparse else 'whole draws':13}{n!s:>7}{shares}{100 * s['same_L0']:9.1f}"
                f"{s['L0']:9.3f}{s['gower']:9.4f}"
            )


def run(folder: Path | None, n_factuals: int, n_redraws: int, quick: bool) -> str:
    """Print the report line by line, and return it."""
    lines: list[str] = []

    def write_line(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    explained: list[tuple[MCCE, pd.DataFrame, str, list[Any]]] = []
    for setting in PROBLEMS:
        n_known = 0 if quick else KNOWN
        sizes = replace(setting, n_factuals=n_known + n_factuals, n_train=1500 if quick else setting.n_train)
        problem = make_problem(sizes, folder)
        explainer = MCCE(
            problem.score, decision=problem.decision, fixed=problem.fixed, kinds=problem.kinds, random_state=2, n_jobs=1
        ).fit(problem.X)
        explained.append((explainer, problem.factuals.iloc[n_known:], setting.name, problem.fixed))
        if problem.standin:
            write_line(f"{setting.name}: {STANDIN}")
    parts: list[tuple[str, Callable[..., Iterator[str]]]] = [
        (
            f"{'':28}{'n':>7}{'draws':>8}{'most':>8}{'rows':>12}{'queried':>10}{'seconds':>9}"
            f"{'L0':>8}{'gower':>9}{'found':>7}",
            lambda *problem: compare_draws(*problem, 10 if quick else 1),
        ),
        (
            f"{'':28}{'se L0':>9}{'spread':>9}{'se gower':>12}{'spread':>10}",
            lambda e, X, title, _: compare_errors(e, X, title, n_redraws, 50 if quick else 250),
        ),
        (
            f"{'':28}{'n':>7}{'same row':>10}{'same features':>15}{'same L0':>9}{'L0':>9}{'gower':>9}",
            lambda e, X, title, _: report_stability(e, X, title, 10 if quick else 1),
        ),
    ]
    for head, part in parts:
        write_line(head)
        for one in explained:
            for line in part(*one):
                write_line(line)
        write_line("")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark and write its report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of the data")
    parser.add_argument("--factuals", type=int, default=200)
    parser.add_argument("--redraws", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="small tables, to try the command")
    args = parser.parse_args(argv)
    report = run(
        find_data(args.data), 4 if args.quick else args.factuals, 2 if args.quick else args.redraws, args.quick
    )
    stamp = f"{date.today()}, Python {platform.python_version()}, {args.factuals} factuals"
    note = f"\n{QUICK}\n" if args.quick else ""
    args.out.write_text(f"# How many draws are enough\n{NOTES}\n{stamp}\n{note}\n```\n{report}```\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
