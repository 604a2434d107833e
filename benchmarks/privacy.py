"""Disclosure by explanations, and the cost of reducing it.

    python -m benchmarks.privacy [--only loans,adult] [--rows N] [--attacked N] [--data FOLDER] [--out FILE]

1. Train the paper's network on all rows, so that any disclosure is by the explainer, not by the model. A third of the
   rows are the training rows of the explainer, a third the holdout.
2. Fit explainers with different protection: leaves of 1 row, of 5 (the default) and of 50, at least 20 donors, smoothed
   values; counterfactuals that are not copies; and one fitted on the last third, which cannot disclose the attacked
   rows.
3. Attack each (`mcce.diagnostics.disclosure`), and measure the cost: changes and Gower distance of the counterfactuals.
4. Show the paper's table of copies, as reproduced by `benchmarks.paper`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import mcce
from benchmarks import report
from benchmarks.page import Page, read_names
from benchmarks.settings import ROOT, Problem, Setting, find_data, make_problem
from benchmarks.speed import describe_machine

RESULTS = ROOT / "benchmarks" / "results"
PARTS = {"loans": Setting("loans", "Loans, network", "loans", "mlp", 100, 1000, binarised=False)}
PARTS["adult"] = Setting("adult", "Adult, network", "adult", "mlp", 100, 1000)
OUTSIDE = "fitted on others"
NOTES = """\
copies, cells: share of counterfactuals that copy a training row, or contain a value that only one training person has.
AUC, found: repeated queries about people with the wanted decision; the probability that a training person scores above
another, and the true positive rate at a false positive rate of 1 per cent. one col., three, inference: risk (success of
the attack above the control) of singling out by one and by three columns, and of inference for its worst target, all on
as many drawn rows as there are training rows. A star: disclosure is significant at 95 per cent. L0, gower: of the
counterfactuals."""
HEAD = ["", "copies", "cells", "AUC", "found", "one col.", "three", "inference", "L0", "gower"]


@dataclass(frozen=True)
class Way:
    """The settings of an explainer and of its queries."""

    name: str
    sampler: Any = "cart"
    constraints: tuple[Any, ...] = ()
    release: str = "plain"


WAYS = (
    Way("leaves of 1", mcce.CartSampler(min_leaf=1, min_split=2)),
    Way("leaves of 5, the default"),
    Way("the same, sparse", release="sparse"),
    Way("the same, no copies", constraints=(mcce.no_copies(),)),
    Way("at least 20 donors", mcce.CartSampler(min_donors=20)),
    Way("leaves of 50", mcce.CartSampler(min_leaf=50)),
    Way("smoothed values", mcce.CartSampler(smoothing="density")),
    Way(OUTSIDE),
)


def attack(problem: Problem, way: Way, attacked: int) -> list[str]:
    """Return the cells of one line."""
    third = len(problem.X) // 3
    shuffled = problem.X.sample(frac=1, random_state=0).reset_index(drop=True)
    people, holdout, outside = shuffled[:third], shuffled[third : 2 * third], shuffled[2 * third :]
    explainer = mcce.MCCE(
        problem.score,
        decision=problem.decision,
        fixed=problem.fixed,
        kinds=problem.kinds or None,
        sampler=way.sampler,
        constraints=list(way.constraints),
        random_state=1,
    ).fit(outside if way.name == OUTSIDE else people, relations=())
    found = mcce.diagnostics.disclosure(
        explainer, people, holdout=holdout, releases=[way.release, "generated"], max_factuals=attacked
    )
    returned, drawn = found.table.loc[way.release], found.table.loc["generated"]
    refused = holdout[~problem.decision.contains(problem.score(holdout))].head(attacked)
    measures = explainer.explain(refused, sparse=way.release == "sparse", progress=False).measures

    def cell(lines: pd.DataFrame, name: str, column: str) -> str:
        star = "*" if lines.loc[name, "verdict"] == "leaks" else ""
        return f"{lines.loc[name, column]:.3f}{star}"

    queries = "membership by repeated queries"
    return [
        way.name,
        *(cell(returned, name, "value") for name in ("copies", "distinguishing cells", f"{queries}, AUC")),
        cell(returned, f"{queries}, found at 1.0%", "value"),
        *(cell(drawn, name, "risk") for name in ("singling out, one column", "singling out", "inference")),
        f"{measures['L0'].mean():.2f}",
        f"{measures['gower'].mean():.3f}",
    ]


def main(arguments: list[str] | None = None) -> int:
    """Attack the explainers of each part, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(PARTS), help=f"comma-separated, of: {', '.join(PARTS)}")
    parser.add_argument("--rows", type=int, default=6000, help="maximal number of rows of each data set")
    parser.add_argument("--attacked", type=int, default=100, help="number of attacked people, and of factuals")
    parser.add_argument("--data", help="folder with adult.csv.gz; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--out", type=Path, default=RESULTS / "privacy.md")
    options = parser.parse_args(arguments)
    page = Page("Disclosure by explanations")
    page.say("`python -m benchmarks.privacy`\n\n" + report.about(describe_machine()))
    for name in read_names(parser, "--only", options.only, list(PARTS)):
        setting = Setting(**{**vars(PARTS[name]), "n_train": options.rows})
        problem = make_problem(setting, find_data(options.data))
        page.title(setting.title)
        if problem.standin:
            page.say(report.STANDIN)
        page.say(f"{len(problem.X) // 3:,} training rows, as many in the holdout; {options.attacked} attacked people.")
        rows = []
        for way in WAYS:
            rows.append(attack(problem, way, options.attacked))
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
        page.table(HEAD, rows)
    page.say(NOTES)
    page.title("Copies of training rows, with the paper's (tab:copies)")
    copies = pd.read_csv(RESULTS / "paper_appendix_copies.csv", comment="#")
    beside = [[row.data, str(row.N_CE), f"{row.copies:.1f}", f"{row.copies_paper}"] for row in copies.itertuples()]
    page.table(["", "counterfactuals", "copies", "the paper's"], beside)
    page.write(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
