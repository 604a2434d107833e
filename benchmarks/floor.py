"""Level and power of the floor: the shares of real and of wrong rows that it rejects, compared with other scores.

    python -m benchmarks.floor [--only NAME,...] [--rows N] [--splits S] [--fresh M] [--out FILE]

1. For each data set (categories binarised as in the paper, the loans with their levels) and split take N random rows;
   at most 3000 of them, and at most a quarter, are held out as fresh rows. Small data sets are split more often, until
   M fresh rows have been scored.
2. Level. Fit each scorer (`benchmarks.floor_scores`) on the other rows; count the fresh rows that it rejects at the
   floors 0.05 and 0.25 by its own calibration.
3. Power. Perturb fresh rows in four ways; count those rejected by the threshold that rejects exactly one fresh row in
   twenty, so that all scorers have the same level.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import report
from benchmarks.floor_scores import SCORERS, Rows, power, wrong_rows
from benchmarks.page import Page, read_names
from benchmarks.settings import find_data, load_data
from benchmarks.speed import describe_machine
from mcce.table import Schema

DATA = ("adult", "gmc", "fico", "german", "loans")
FLOORS = (0.05, 0.25)
MOST_FRESH = 3000
WRONG = ("shuffled", "one shuffled", "crossed", "rare")
HEAD = ["", *(f"at {floor:g}" for floor in FLOORS), "least", "most", *WRONG, "seconds"]
NOTES = """\
at 0.05, at 0.25: share of fresh real rows that the floor rejects, by the scorer's own calibration, mean over splits; it
should be 0.05 and 0.25. least, most: of the splits, at 0.05. The other columns are shares of wrong rows that are
rejected if exactly one fresh row in twenty is. shuffled: all mutable features from other rows; one shuffled: one of
them; crossed: one other value from another row; rare: one number anywhere in its range, with equal probability.
seconds: to fit and calibrate. The scorers are described in benchmarks/floor_scores.py."""


def load_rows(name: str, folder: Path | None) -> tuple[pd.DataFrame, list[str], bool]:
    """Return the features of a data set, its fixed features, and whether it is a stand-in."""
    data, standin = load_data(name, folder)
    X = data.X.copy()
    if name != "loans":
        for c in X.select_dtypes("category"):
            X[c] = pd.Categorical(X[c] == X[c].mode()[0], categories=[False, True])
    return X, list(data.fixed), standin


def split_rows(
    X: pd.DataFrame, fixed: list[str], most: int | None, rng: np.random.Generator
) -> tuple[Rows, np.ndarray]:
    """Return training rows and fresh rows (step 1)."""
    schema = Schema.from_data(X)
    matrix = schema.encode(X).matrix[rng.permutation(len(X))[:most]]
    n_fresh = min(MOST_FRESH, len(matrix) // 4)
    return Rows(matrix[n_fresh:], schema, fixed), matrix[:n_fresh]


def measure(rows: Rows, fresh: np.ndarray, names: list[str], seed: int) -> Iterator[dict[str, object]]:
    """Yield the figures of each scorer on one split (steps 2 and 3)."""
    wrong = wrong_rows(fresh, rows, np.random.default_rng([seed, 1]))
    for name in names:
        begun = time.perf_counter()
        fitted = SCORERS[name](rows, np.random.default_rng([seed, 2]))
        seconds = time.perf_counter() - begun
        real = fitted.score(fresh)
        quantiles = fitted.quantile(real)
        yield {
            "scorer": name,
            **{f"at {floor:g}": float((quantiles < floor).mean()) for floor in FLOORS},
            **{kind: power(fitted.score(some), real, FLOORS[0]) for kind, some in wrong.items()},
            "seconds": seconds,
        }


def table(figures: pd.DataFrame, names: list[str]) -> list[list[str]]:
    """Return the cells of a table: means over splits."""
    at = f"at {FLOORS[0]:g}"
    lines = []
    for name in names:
        one = figures[figures["scorer"] == name]
        levels = [one[f"at {floor:g}"].mean() for floor in FLOORS]
        powers = [one[kind].mean() if kind in one else np.nan for kind in WRONG]
        cells = [f"{value:.3f}" for value in (*levels, one[at].min(), one[at].max(), *powers)]
        lines.append([name, *cells, f"{one['seconds'].mean():.1f}"])
    return lines


def compare(figures: pd.DataFrame) -> str:
    """Report the ratio of the plausibility's power on shuffled rows to that of the summed density of cart."""
    ours, density = (
        figures.loc[figures["scorer"] == name, "shuffled"].mean() for name in ("plausibility", "density, cart")
    )
    return f"Shuffled rows: plausibility rejects {ours / density:.2f} times as many as density, cart."


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floor", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", default=",".join(DATA), help=f"comma-separated, of: {', '.join(DATA)}")
    parser.add_argument("--scorers", default=";".join(SCORERS), help="separated by semicolons; without it all")
    parser.add_argument("--rows", type=int, default=20_000, help="maximal number of rows of each data set; 0 for all")
    parser.add_argument("--splits", type=int, default=2, help="minimal number of splits of each data set")
    parser.add_argument("--fresh", type=int, default=3000, help="minimal number of fresh rows, over the splits")
    parser.add_argument("--out", type=Path, help="write FILE.md")
    chosen = parser.parse_args(arguments)
    names = read_names(parser, "--only", chosen.only, DATA)
    scorers = read_names(parser, "--scorers", chosen.scorers, list(SCORERS), separator=";")
    folder = find_data(chosen.data)
    page = Page("Level and power of the floor")
    page.write_line(report.about(describe_machine()))
    page.write_line(NOTES)
    for name in names:
        X, fixed, standin = load_rows(name, folder)
        found, seed, n_fresh = [], 0, 0
        while seed < chosen.splits or n_fresh < chosen.fresh:
            rows, fresh = split_rows(X, fixed, chosen.rows or None, np.random.default_rng([seed, 0]))
            found += list(measure(rows, fresh, scorers, seed))
            seed, n_fresh = seed + 1, n_fresh + len(fresh)
        page.title(f"{name}: {len(rows.matrix):,} rows to fit, {len(fresh):,} fresh ones, {seed} split(s)")
        if standin:
            page.write_line(report.STANDIN)
        figures = pd.DataFrame(found)
        page.table(HEAD, table(figures, scorers))
        if {"plausibility", "density, cart"} <= set(scorers):
            page.write_line(compare(figures))
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
