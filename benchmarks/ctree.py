"""Conditional inference trees compared with R's party (C) on the same data, and drawing compared with CART.

    python -m benchmarks.ctree [--quick] [--out FILE]

1. Grow a tree on mixed columns (numbers, whole numbers, factors, ordered factors) by `mcce.trees.ctree.tree` and by
   `party::ctree`, with party's defaults, for a numeric, a two-class and a five-class response. mcce starts from an
   encoded table and ranks its columns; party starts from a data frame in R. The transfer to R is not counted.
2. Compare the node of every training row.
3. Draw a million values from the leaves, by the ctree and by the CART sampler.

Without R, party or rpy2, only mcce is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mcce
from benchmarks import report
from benchmarks.speed import describe_machine
from mcce.rng import RowStreams
from mcce.table import Column, Schema, Table
from mcce.trees.ctree import tree as ctree
from r_bridge import RBridgeError, to_r
from r_bridge.session import session

SIZES = [(10_000, 12), (1_000, 30)]
QUICK = [(400, 6)]
RESPONSES = {"number": 0, "two classes": 2, "five classes": 5}
OURS, THEIRS = 7, 3  # number of runs; the fastest is reported
DRAWS = 1_000_000

PARTY = """function(data, runs) {
  data <- as.data.frame(data)
  grow <- function(i) sum(system.time(fit <<- party::ctree(y ~ ., data))[c("user.self", "sys.self")])
  seconds <- vapply(seq_len(runs), grow, 0)
  list(min(seconds), as.double(party::where(fit)), as.character(utils::packageVersion("party")))
}"""


def make_table(n: int, p: int, n_classes: int, seed: int = 1) -> pd.DataFrame:
    """Return mixed columns and a response `y` that depends on six of them, with interactions."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    score = rng.normal(size=n)
    for j in range(p):
        kind = ("normal", "rounded", "whole", "factor", "two", "ordered")[j % 6]
        n_levels = 2 if kind == "two" else 3 + j % 7
        codes = rng.choice(n_levels, n, p=rng.dirichlet(np.full(n_levels, 3.0)))
        values = {
            "normal": rng.normal(size=n),
            "rounded": np.round(rng.normal(40, 12, n), 1),
            "whole": rng.integers(0, 25, n).astype(float),
        }.get(kind, codes.astype(float))
        if j < 6:
            effect = rng.normal(size=n_levels)[codes] if kind in ("factor", "two") else values
            score += (
                rng.choice([0.5, 1.0]) * (effect - effect.mean()) / effect.std() * (1 + (columns["x0"] > 0) if j else 1)
            )
        levels = [f"l{k}" for k in range(n_levels)]
        is_number = kind in ("normal", "rounded", "whole")
        columns[f"x{j}"] = values if is_number else pd.Categorical.from_codes(codes, levels, ordered=kind == "ordered")
    if n_classes:
        codes = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
        columns["y"] = pd.Categorical.from_codes(codes, [f"k{k}" for k in range(n_classes)])
    else:
        columns["y"] = score
    return pd.DataFrame(columns)


def seconds_of(work: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Return the CPU seconds of the fastest of some runs, and the value of the last one."""
    fastest, result = np.inf, None
    for _ in range(runs):
        begun = time.process_time()
        result = work()
        fastest = min(fastest, time.process_time() - begun)
    return fastest, result


def encode(frame: pd.DataFrame) -> tuple[Table, Column]:
    """Return the givens and the response as in a chain, before ranking."""
    table = Schema.from_data(frame).encode(frame)
    return table.first(frame.shape[1] - 1), table.column(frame.shape[1] - 1)


def measure(n: int, p: int, response: str, party: Callable[[pd.DataFrame], Any] | None, draws: int) -> dict[str, Any]:
    """Run steps 1 to 3 for one table."""
    frame = make_table(n, p, RESPONSES[response])
    ctree.grow(*encode(frame.head(100)))  # reads the kernels from disk, or compiles them
    tables = iter([encode(frame) for _ in range(OURS)])
    ours, tree = seconds_of(lambda: ctree.grow(*next(tables)), OURS)
    given, target = encode(frame)
    result: dict[str, Any] = {
        "n": n,
        "p": p,
        "response": response,
        "leaves": tree.n_leaves,
        "mcce": ours,
        "draw": {name: draw_seconds(name, given, target, draws) for name in ("ctree", "cart")},
    }
    if party is not None:
        theirs, where, version = party(frame)
        same = bool(np.array_equal(where, tree.number[tree.route(given.matrix)]))
        result |= {"party": theirs, "ratio": theirs / ours, "same_nodes": same, "party_version": version}
    return result


def draw_seconds(name: str, given: Table, target: Column, draws: int) -> float:
    """Return the seconds to draw values for repeated rows of the table with a fitted sampler; the best of two runs."""
    sampler = mcce.available_samplers()[name]().fit(given, target)
    rows = given.take(np.arange(draws) % given.n_rows)
    complete = Table(rows.features, rows.matrix, complete=True)
    return seconds_of(lambda: sampler.sample(complete, RowStreams.from_seed(1, draws)), 2)[0]


def find_party() -> Callable[[pd.DataFrame], Any] | None:
    """Return a function that times party on a table, or None if it is not installed."""
    try:
        r = session()
        r.need("party", "this benchmark")
    except RBridgeError as error:
        print(textwrap.fill(f"party is not measured: {error}", 120))
        return None
    function = r.ri.evalr(PARTY)

    def party(frame: pd.DataFrame) -> tuple[float, Any, str]:
        seconds, where, version = function(to_r(frame), r.vector(THEIRS))
        return float(seconds[0]), r.numbers(where), r.strings(version)[0]

    return party


# ---------------------------------------------------------------- the report

COLUMNS = ["leaves", "mcce", "party", "ratio", "same nodes", "draw ctree", "draw cart"]
NOTES = f"""\
CPU seconds to grow one tree with party's defaults, the fastest of {OURS} runs (mcce) and of {THEIRS} (party), in one
process. ratio: party over mcce. same nodes: whether every training row is in the same node. draw: seconds to draw
{DRAWS:,} values from the leaves of the ctree and of the CART sampler, both with their defaults."""


def cells(result: dict[str, Any]) -> list[str]:
    """Return the cells of one line."""
    has_party = "party" in result
    return [
        str(result["leaves"]),
        f"{result['mcce']:.4f}",
        f"{result['party']:.3f}" if has_party else "-",
        f"{result['ratio']:.1f}" if has_party else "-",
        ("yes" if result["same_nodes"] else "NO") if has_party else "-",
        *(f"{result['draw'][name]:.3f}" for name in ("ctree", "cart")),
    ]


def title(result: dict[str, Any]) -> str:
    """Return the title of the line."""
    return f"n = {result['n']:,}, p = {result['p']}, {result['response']}"


def line(result: dict[str, Any]) -> str:
    """Return one line of text."""
    return title(result).ljust(36) + "".join(cell.rjust(12) for cell in cells(result))


def markdown(results: dict[str, Any]) -> str:
    """Return everything as one Markdown page."""
    table = [f"| | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    table += [f"| {title(one)} | {' | '.join(cells(one))} |" for one in results["trees"]]
    parts = ["# Conditional inference trees compared with party", report.about(results["about"])]
    parts += [report.QUICK] if results["quick"] else []
    return "\n\n".join([*parts, "\n".join(table), NOTES]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ctree", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the command")
    parser.add_argument("--out", help="write FILE.md and FILE.json (an ending of FILE is replaced)")
    chosen = parser.parse_args(arguments)
    results: dict[str, Any] = {"about": describe_machine(), "quick": chosen.quick, "trees": []}
    print(report.about(results["about"]))
    party = find_party()
    print(" " * 36 + "".join(name.rjust(12) for name in COLUMNS), flush=True)
    for n, p in QUICK if chosen.quick else SIZES:
        for response in RESPONSES:
            results["trees"].append(measure(n, p, response, party, DRAWS // 100 if chosen.quick else DRAWS))
            print(line(results["trees"][-1]), flush=True)
    print(NOTES)
    if party is not None:
        results["about"]["versions"]["party"] = results["trees"][0]["party_version"]
    if chosen.out:
        out = Path(chosen.out)
        out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
        out.with_suffix(".md").write_text(markdown(results))
    return 0 if all(one.get("same_nodes", True) for one in results["trees"]) else 1


if __name__ == "__main__":
    sys.exit(main())
