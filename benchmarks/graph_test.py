"""Level and power of the test behind `check_graph`.

    python -m benchmarks.graph_test [--only PAIR,...] [--tables N] [--dependent N] [--seed SEED] [--out FILE]

1. x and y are two numbers, a number and levels, or two columns of levels. Both depend on up to three common parents, a
   number, levels and a count, by curves and by products of the first two. A column of levels is its latent number cut
   into three parts, with names that do not follow the order.
2. Independent tables have no other edges. Dependent ones also have the edge x -> y: the latent y changes by `STRENGTH`
   of its noise for each standard deviation of the noise of the latent x (a partial correlation of 0.2 of the latent
   numbers), and the tested graph lacks this edge.
3. Report the share of the tables, 1,000 rows each, in which the independence given the parents is rejected at the level
   0.05. The seeds begin at 90,000; they were used neither in tests of the package nor to choose the method.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import report
from benchmarks.page import Page, read_names
from benchmarks.speed import describe_machine
from mcce.judging.independence import check_independences
from mcce.table import Schema, Table

PAIRS = {"number-number": (False, False), "number-levels": (False, True), "levels-levels": (True, True)}
PARENTS = ("a number", "levels", "a count")
STRENGTH, N_ROWS, LEVEL = 0.2, 1000, 0.05
FIRST_SEED = 90_000
NOTES = f"""\
Share of tables with {N_ROWS:,} rows in which the independence of two columns given their parents is rejected at the
level {LEVEL:g} (standard error). independent: the graph is correct. dependent: the graph lacks the edge between them,
by which one changes by {STRENGTH:g} of its noise for each standard deviation of the noise of the other, before numbers
are cut into levels. parents: number of parents, in the order {", ".join(PARENTS)}."""


def make_table(pair: tuple[bool, bool], n_parents: int, strength: float, seed: int) -> Table:
    """Return a table of the parents, x and y (steps 1 and 2)."""
    rng = np.random.default_rng(seed)
    a, noise_x, noise_y = rng.normal(size=(3, N_ROWS))
    b, c = rng.integers(0, 3, N_ROWS), rng.poisson(2.0, N_ROWS)
    shift = np.array([-0.7, 0.0, 0.8])[b]
    of_x = [np.sin(1.5 * a), shift * (1 + 0.5 * a), 0.3 * c]
    of_y = [0.5 * a + 0.3 * a**2, shift * (0.5 - 0.5 * a), -0.4 * np.sqrt(c)]
    x = sum(of_x[:n_parents]) + noise_x
    y = sum(of_y[:n_parents]) + strength * noise_x + noise_y
    parents = {"a": a, "b": pd.Categorical(np.array(list("abc"))[b]), "c": c}
    ends = {name: _cut(value) if cut else value for name, value, cut in zip("xy", (x, y), pair)}
    rows = pd.DataFrame({**dict(list(parents.items())[:n_parents]), **ends})
    return Schema.from_data(rows).encode(rows)


def _cut(values: np.ndarray) -> pd.Categorical:
    place = np.searchsorted(values.mean() + values.std() * np.array([-0.5, 0.5]), values)
    return pd.Categorical(np.array(["l", "k", "m"])[place])


def rejected(pair: tuple[bool, bool], n_parents: int, strength: float, seeds: range) -> float:
    """Return the share of tables in which the independence is rejected (step 3)."""
    statement = (n_parents, n_parents + 1, tuple(range(n_parents)))
    tables = (make_table(pair, n_parents, strength, seed) for seed in seeds)
    found = [check_independences(table, [statement], level=LEVEL, seed=1)[0].p <= LEVEL for table in tables]
    return float(np.mean(found))


def with_error(share: float, n: int) -> str:
    """Return a share and its standard error."""
    return f"{share:.3f} ({np.sqrt(share * (1 - share) / n):.3f})"


def main(arguments: list[str] | None = None) -> int:
    """Run all pairs and numbers of parents, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph_test", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(PAIRS), help=f"pairs of columns: {', '.join(PAIRS)}")
    parser.add_argument("--tables", type=int, default=200, help="independent tables of each cell")
    parser.add_argument("--dependent", type=int, default=100, help="dependent tables of each cell")
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="the first seed")
    parser.add_argument("--out", type=Path, help="a Markdown file to write")
    chosen = parser.parse_args(arguments)
    page = Page("Level and power of the test behind check_graph")
    page.write_line(report.about(describe_machine()))
    page.write_line(NOTES)
    rows, first = [], chosen.seed
    for name in read_names(parser, "--only", chosen.only, list(PAIRS)):
        for n_parents in range(len(PARENTS) + 1):
            begun = time.perf_counter()
            shares = []
            for strength, n in ((0.0, chosen.tables), (STRENGTH, chosen.dependent)):
                shares.append(with_error(rejected(PAIRS[name], n_parents, strength, range(first, first + n)), n))
                first += n
            rows.append([name, str(n_parents), *shares])
            print(rows[-1], f"{time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    tables = f"independent, {chosen.tables} tables", f"dependent, {chosen.dependent} tables"
    page.table(["columns", "parents", *tables], rows)
    page.write_line(f"Seeds {chosen.seed:,} to {first - 1:,}.")
    if chosen.out is not None:
        page.write(chosen.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
