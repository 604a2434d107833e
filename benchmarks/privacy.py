"""Disclosure by explanations, and the cost of reducing it.

    python -m benchmarks.privacy [--only loans,adult] [--rows N] [--attacked N] [--splits N] [--data FOLDER]
        [--out FILE]

1. Train the paper's network on all rows, so that any disclosure is by the explainer, not by the model. A third of the
   rows are the training rows of the explainer, a third the holdout.
2. Fit explainers with different protection: leaves of 1 row, of 5 (the default) and of 50, at least 20 donors, smoothed
   values; counterfactuals that are not copies; and one fitted on the last third, which cannot disclose the attacked
   rows.
3. Attack each (`mcce.diagnostics.disclosure`), and measure the cost: changes and Gower distance of the counterfactuals.
4. Repeat the attack by repeated queries on all people with the wanted decision, for several splits of the rows. With
   100 people, the threshold of the attack is the second highest score of 100 others, which is very variable.
5. Show the paper's table of copies, as reproduced by `benchmarks.paper`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mcce
from benchmarks import report
from benchmarks.page import Page, read_names
from benchmarks.settings import ROOT, Problem, Setting, find_data, make_problem
from benchmarks.speed import describe_machine
from mcce.base.arrays import Floats
from mcce.diagnostics.disclosure_risk.membership import explain_rows, queries_about, surprise
from mcce.diagnostics.disclosure_risk.rates import auc, found_at

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
QUERIES = "Repeated queries about all people with the wanted decision, others being all remaining rows; {} splits."
QUERIES_HEAD = ["", "people", "others", "AUC", "found", "low", "high", "p-value"]
QUERIES_NOTES = """\
AUC: mean over splits. found: as above, over all splits, with a bootstrap interval at 95 per cent and the p-value of a
permutation test within splits; guessing finds 1 per cent."""
N_QUERIES = 4  # per person
N_RESAMPLES = 999
FALSE_POSITIVES = 0.01


@dataclass(frozen=True)
class Way:
    """The settings of an explainer and of its queries."""

    name: str
    sampler: Any = "cart"
    constraints: tuple[Any, ...] = ()
    release: str = "plain"
    options: Mapping[str, Any] = field(default_factory=dict)


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
QUERIED = (
    Way("leaves of 5, the default"),
    Way("sparse", release="sparse"),
    Way("sparse, floor=0", release="sparse", options={"floor": 0}),
    Way("sparse, caution=0", release="sparse", options={"caution": 0}),
    Way("sparse, floor=0, caution=0", release="sparse", options={"floor": 0, "caution": 0}),
    Way("sparse, at least 20 donors", mcce.CartSampler(min_donors=20), release="sparse"),
    Way("sparse, smoothed values", mcce.CartSampler(smoothing="density"), release="sparse"),
)


def split_rows(X: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return three random thirds of the rows."""
    third = len(X) // 3
    shuffled = X.sample(frac=1, random_state=seed).reset_index(drop=True)
    return shuffled[:third], shuffled[third : 2 * third], shuffled[2 * third :]


def fit(problem: Problem, way: Way, rows: pd.DataFrame) -> mcce.MCCE:
    """Return the explainer of a way, fitted to rows."""
    return mcce.MCCE(
        problem.score,
        decision=problem.decision,
        fixed=problem.fixed,
        kinds=problem.kinds or None,
        sampler=way.sampler,
        constraints=list(way.constraints),
        random_state=1,
    ).fit(rows, relations=())


def attack(problem: Problem, way: Way, attacked: int) -> list[str]:
    """Return the cells of one line."""
    people, holdout, outside = split_rows(problem.X, 0)
    explainer = fit(problem, way, outside if way.name == OUTSIDE else people)
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


def query_people(problem: Problem, way: Way, seed: int) -> tuple[Floats, Floats]:
    """Return the scores of training people and of others by repeated queries, for one split of the rows."""
    people, holdout, outside = split_rows(problem.X, seed)
    explainer = fit(problem, way, people)
    schema, fixed_names = explainer.generator_.schema_, explainer.generator_.fixed_
    fixed = np.array([schema.names.index(name) for name in fixed_names])
    mutable = np.setdiff1d(np.arange(len(schema.names)), fixed)
    order = np.random.default_rng(0).permutation(len(holdout))
    control, own = holdout.iloc[order[: len(order) // 2]], holdout.iloc[order[len(order) // 2 :]]

    def encode(rows: pd.DataFrame, wanted: bool) -> Floats:
        return schema.encode(rows[problem.decision.contains(problem.score(rows)) == wanted], "the rows").matrix

    known, refused = schema.encode(own, "the rows").matrix[:, mutable], encode(own, wanted=False)
    options = {**way.options, "sparse": way.release == "sparse"}

    def score(targets: Floats, rng: np.random.Generator) -> Floats:
        queries = queries_about(targets, refused, fixed, N_QUERIES, rng)
        returned, owner, _ = explain_rows(explainer, queries, options)
        disclosed, person = (returned != queries[owner])[:, mutable], owner // N_QUERIES
        returned = returned[:, mutable]
        return np.array(
            [
                surprise(row[mutable], returned[person == i], disclosed[person == i], known)
                for i, row in enumerate(targets)
            ]
        )

    others = np.concatenate([encode(control, wanted=True), encode(outside, wanted=True)])
    members = score(encode(people, wanted=True), np.random.default_rng(10 + seed))
    return members, score(others, np.random.default_rng(20 + seed))


def count_found(members: Floats, others: Floats) -> int:
    """Return the number of members found at a false positive rate of 1 per cent."""
    return round(found_at(members, others, FALSE_POSITIVES).share * members.size)


def summarise(name: str, splits: list[tuple[Floats, Floats]]) -> list[str]:
    """Return the cells of one line of repeated queries."""
    rng = np.random.default_rng(0)
    n, n_others = (sum(pair[i].size for pair in splits) for i in (0, 1))
    found = sum(count_found(*pair) for pair in splits)
    resampled, permuted = np.zeros((2, N_RESAMPLES))
    for members, others in splits:
        both = np.concatenate([members, others])
        for b in range(N_RESAMPLES):
            resampled[b] += count_found(rng.choice(members, members.size), rng.choice(others, others.size))
            shuffled = rng.permutation(both)
            permuted[b] += count_found(shuffled[: members.size], shuffled[members.size :])
    low, high = np.quantile(resampled / n, [0.025, 0.975])
    chance = (1 + (permuted >= found).sum()) / (1 + N_RESAMPLES)
    area = np.mean([auc(*pair).value for pair in splits])
    figures = [f"{figure:.3f}" for figure in (area, found / n, low, high, chance)]
    return [name, f"{n:,}", f"{n_others:,}", *figures]


def main(arguments: list[str] | None = None) -> int:
    """Attack the explainers of each part, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(PARTS), help=f"comma-separated, of: {', '.join(PARTS)}")
    parser.add_argument("--rows", type=int, default=6000, help="maximal number of rows of each data set")
    parser.add_argument("--attacked", type=int, default=100, help="number of attacked people, and of factuals")
    parser.add_argument("--splits", type=int, default=4, help="number of splits for repeated queries about all people")
    parser.add_argument("--data", help="folder with adult.csv.gz; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--out", type=Path, default=RESULTS / "privacy.md")
    options = parser.parse_args(arguments)
    page = Page("Disclosure by explanations")
    page.write_line("`python -m benchmarks.privacy`\n\n" + report.about(describe_machine()))
    for name in read_names(parser, "--only", options.only, list(PARTS)):
        setting = Setting(**{**vars(PARTS[name]), "n_train": options.rows})
        problem = make_problem(setting, find_data(options.data))
        page.title(setting.title)
        if problem.standin:
            page.write_line(report.STANDIN)
        page.write_line(
            f"{len(problem.X) // 3:,} training rows, as many in the holdout; {options.attacked} attacked people."
        )
        rows = []
        for way in WAYS:
            rows.append(attack(problem, way, options.attacked))
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
        page.table(HEAD, rows)
        page.write_line(QUERIES.format(options.splits))
        queried = []
        for way in QUERIED:
            splits = [query_people(problem, way, seed) for seed in range(options.splits)]
            queried.append(summarise(way.name, splits))
            print(*queried[-1], sep="  ", file=sys.stderr, flush=True)
        page.table(QUERIES_HEAD, queried)
    page.write_line(NOTES)
    page.write_line(QUERIES_NOTES)
    page.title("Copies of training rows, with the paper's (tab:copies)")
    copies = pd.read_csv(RESULTS / "paper_appendix_copies.csv", comment="#")
    beside = [[row.data, str(row.N_CE), f"{row.copies:.1f}", f"{row.copies_paper}"] for row in copies.itertuples()]
    page.table(["", "counterfactuals", "copies", "the paper's"], beside)
    page.write(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
