"""Costs of constraints: seconds, pools, changes and answers, with and without five constraints.

    python -m benchmarks.constraints [--data FOLDER] [--quick] [--out FILE]

1. Adult with all its levels, a network as the model, 1000 factuals, K = 1000, in one process.
2. Five constraints: education may only rise; hours change by at most 20; a capital gain is at most 20,000; one class of
   work is never used; and a rule of two features and the factual: with five more years of schooling, at most 40 hours.
3. Explain the same factuals by the plain method and by sparse counterfactuals, free and constrained in turn; the faster
   of two warm runs is reported. With constraints, `explain` also analyses at most 20 factuals without a counterfactual;
   this is timed separately.
4. Check every returned row against the constraints, with pandas.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

import mcce
from benchmarks import report
from benchmarks.page import Page
from benchmarks.settings import SETTINGS, Problem, find_data, make_problem
from benchmarks.speed import describe_machine

WORK, EDUCATION, GAIN, HOURS = 1, 3, 9, 11  # columns of Adult, also of its stand-in
MOST_HOURS, MOST_GAIN, LONG, FULL_TIME = 20, 20_000, 5, 40
HEAD = ["", "seconds", "ratio", "with reasons", "pools", "L0", "L1", "explained", "breaking"]
NOTES = """\
seconds: CPU time. ratio: seconds constrained over seconds free, of the same method. with reasons: seconds including the
analysis of factuals without a counterfactual. pools: distinct sets of draws for all factuals. L0, L1 (gower_sum): mean
over the counterfactuals, which are fewer with constraints. breaking: returned rows that violate a constraint."""


def five_constraints(problem: Problem) -> list[Any]:
    """Return the constraints of step 2 for the columns of a problem."""
    work, education, gain, hours = (problem.X.columns[j] for j in (WORK, EDUCATION, GAIN, HOURS))
    return [
        mcce.allow(education, direction="increase"),
        mcce.allow(hours, max_step=MOST_HOURS),
        mcce.allow(gain, low=0, high=MOST_GAIN),
        mcce.allow(work, never=[never_used(problem)]),
        mcce.rule(f"`{education}` < was(`{education}`) + {LONG} or `{hours}` <= {FULL_TIME}"),
    ]


def never_used(problem: Problem) -> str:
    """Return the second rarest class of work, which occurs in some rows."""
    counts = problem.X.iloc[:, WORK].value_counts()
    return str(counts.index[counts.to_numpy() > 0][-2])


def count_breaking(problem: Problem, found: mcce.Counterfactuals) -> int:
    """Return how many returned rows violate a constraint, checked with pandas (step 4)."""
    rows = found.frame
    own = problem.factuals.loc[rows.index.get_level_values("id")].set_axis(rows.index)
    work, education, gain, hours = (problem.X.columns[j] for j in (WORK, EDUCATION, GAIN, HOURS))
    broken = rows[education] < own[education]
    broken |= (rows[hours] - own[hours]).abs() > MOST_HOURS
    broken |= ~rows[gain].between(0, MOST_GAIN)
    broken |= rows[work].astype(str) == never_used(problem)
    broken |= (rows[education] >= own[education] + LONG) & (rows[hours] > FULL_TIME)
    return int(broken.sum())


def measure(problem: Problem, n_samples: int, runs: int = 2) -> pd.DataFrame:
    """Return the figures of step 3, by kind and constraint."""
    explainer = mcce.MCCE(
        problem.score, decision=problem.decision, fixed=problem.fixed, kinds=problem.kinds, random_state=1
    ).fit(problem.X)
    constraints = five_constraints(problem)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for kind, sparse in (("plain", False), ("sparse", True)):
        options = {"n_samples": n_samples, "sparse": sparse, "progress": False}
        ways = {
            "free": {},
            "constrained": {"constraints": constraints},
            "reasons": {"constraints": constraints},
        }
        for way in ways.values():  # compiles, and fits cached parts
            explainer.explain(problem.factuals.iloc[:2], **options, **way)
        seconds, found = dict.fromkeys(ways, float("inf")), {}
        for _ in range(runs):
            for name, way in ways.items():
                begun = time.process_time()
                found[name] = explainer.explain(problem.factuals, **options, **way)
                if name == "reasons":
                    found[name] = found[name].with_why_unexplained()
                seconds[name] = min(seconds[name], time.process_time() - begun)
        for name in ("free", "constrained"):
            rows[kind, name] = {
                "seconds": seconds[name],
                "ratio": seconds[name] / seconds["free"],
                "reasons": seconds["reasons"] if name == "constrained" else float("nan"),
                "pools": found[name].run.settings["pools"],
                "L0": found[name].measures["L0"].mean(),
                "L1": found[name].measures["gower_sum"].mean(),
                "explained": len(found[name]) / len(problem.factuals),
                "breaking": count_breaking(problem, found[name]),
                "constraints": found[name].constraints,
            }
    return pd.DataFrame(rows).T


def cells(figures: pd.DataFrame) -> list[list[str]]:
    """Return the rows of the table as text."""
    lines = []
    for (kind, name), row in figures.iterrows():
        reasons = "" if pd.isna(row["reasons"]) else f"{row['reasons']:.2f}"
        counts = [f"{int(row['pools'])}", f"{row['L0']:.2f}", f"{row['L1']:.3f}", f"{row['explained']:.3f}"]
        timed = [f"{row['seconds']:.2f}", f"{row['ratio']:.2f}", reasons]
        lines.append([f"{kind}, {name}", *timed, *counts, f"{int(row['breaking'])}"])
    return lines


def binding_cells(constraints: pd.DataFrame) -> list[list[str]]:
    """Return the effect of each constraint, as text."""
    return [[str(c), f"{b:.3f}", f"{t}", f"{p}"] for c, b, t, p in constraints.itertuples()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constraints", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the command")
    parser.add_argument("--out", type=Path, help="write FILE.md")
    chosen = parser.parse_args(arguments)
    (setting,) = (s for s in SETTINGS if s.name == "adult-native")
    if chosen.quick:
        setting = replace(setting.tiny(), model="logistic")
    problem = make_problem(setting, find_data(chosen.data))
    page = Page("What constraints cost")
    page.write_line(report.about(describe_machine()))
    if chosen.quick:
        page.write_line(report.QUICK)
    if problem.standin:
        page.write_line(report.STANDIN)
    page.write_line(NOTES)
    figures = measure(problem, setting.n_samples)
    page.title(f"{setting.title}: {len(problem.factuals):,} factuals, K = {setting.n_samples:,}")
    page.table(HEAD, cells(figures))
    page.title("The constraints, plain method")
    page.table(["", "breaks", "tried", "passed"], binding_cells(figures.loc[("plain", "constrained"), "constraints"]))
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
