"""Speed of densities of tree donors: `log_density` and `supports` compared with plain numpy, on one thread.

    python -m benchmarks.density [--data FOLDER] [--rows N] [--out FILE] [--quick]

1. Fit a chain of CART trees to Give Me Some Credit (115,527 rows, `age` fixed, nine mutable features).
2. Draw N of its rows with replacement; query the row's own value or, half of the time, that of another row.
3. Time the chain's nine densities, the same with each row left out, and nine supports; the first call, which fills
   caches, is timed separately. Time `benchmarks.plain_donors` on the same rows.
4. Compare the values.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numba
import numpy as np

from benchmarks import plain_donors
from benchmarks.report import QUICK, STANDIN
from benchmarks.settings import ROOT, find_data, load_data
from mcce import ChainModel
from mcce.samplers.donors.base import LeafDonorSampler
from mcce.storage.learned import get_state, set_state
from mcce.table import Table

RESULTS = ROOT / "benchmarks" / "results" / "density.md"
HEAD = f"{'':40}{'leaf':>7}{'first':>8}{'log_density':>13}{'left out':>10}{'supports':>10}"
NOTES = """
`python -m benchmarks.density`: a chain of CART trees on Give Me Some Credit, its nine mutable features, one thread.
CPU seconds for all rows; first: the first call, which fills caches. leaf: donors of the largest leaf. left out:
`log_density` of training rows, each left out of its own density. plain: numpy, leaf by leaf
(`benchmarks.plain_donors`), one run; mcce is the best of three. Differences are relative if the absolute log density is
above 1.
"""


@dataclass(frozen=True)
class Question:
    """The query of one conditional: givens, values, and the training rows of the givens."""

    name: str
    sampler: LeafDonorSampler
    given: Table
    values: np.ndarray
    rows: np.ndarray

    @property
    def largest_leaf(self) -> int:
        """Return the number of donors of the largest leaf."""
        tree = self.sampler.tree_
        return int(tree.size[tree.stops].max())


@dataclass(frozen=True)
class Timing:
    """Seconds of one implementation, and its values."""

    first: float
    seconds: tuple[float, float, float]
    answers: tuple[np.ndarray, np.ndarray, np.ndarray]


def make_questions(folder: Path | None, n_rows: int, n_train: int | None) -> tuple[list[Question], bool]:
    """Fit the chain and draw the rows (steps 1 and 2); also return whether the data are a stand-in."""
    data, standin = load_data("gmc", folder)
    X = data.X if n_train is None else data.X.iloc[:n_train]
    chain = ChainModel(sampler="cart", fixed=data.fixed, random_state=1).fit(X)
    encoded = chain.schema_.encode(X)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(X), n_rows)
    queried = []
    for name, sampler in chain.samplers_.items():
        before = [*data.fixed, *chain.visit_sequence_[: chain.visit_sequence_.index(name)]]
        given = encoded.select([encoded.names.index(column) for column in before]).take(rows)
        own = encoded.matrix[rows, encoded.names.index(name)]
        values = np.where(rng.random(n_rows) < 0.5, own, own[rng.permutation(n_rows)])
        queried.append(Question(str(name), sampler, given, values, rows))
    return queried, standin


def query_kernels(question: Question) -> Timing:
    """Query the sampler; the first call fills caches (step 3)."""
    sampler, given, values = question.sampler, question.given, question.values
    few = np.arange(2)
    first, _ = _timed(
        lambda: (
            sampler.log_density(given.take(few), values[few]),
            sampler.log_density(given.take(few), values[few], question.rows[few]),
            sampler.supports(given.take(few), values[few]),
        )
    )
    calls = (
        lambda: sampler.log_density(given, values),
        lambda: sampler.log_density(given, values, question.rows),
        lambda: sampler.supports(given, values),
    )
    best = [min((_timed(call) for _ in range(3)), key=lambda one: one[0]) for call in calls]
    return Timing(first, *zip(*best))


def query_plain_numpy(question: Question) -> Timing:
    """Query plain numpy, once."""
    model, given, values = question.sampler.donors_, question.given, question.values
    calls = (
        lambda: plain_donors.log_density(model, given, values, None),
        lambda: plain_donors.log_density(model, given, values, question.rows),
        lambda: plain_donors.supports(model, given, values),
    )
    return Timing(0.0, *zip(*(_timed(call) for call in calls)))


def compare(ours: Timing, plain: Timing) -> tuple[float, float, int]:
    """Return the largest differences of log densities, relative above 1, and the count of unequal supports (step 4)."""
    apart = []
    for found, expected in zip(ours.answers[:2], plain.answers[:2]):
        impossible = np.isneginf(expected)
        if (impossible != np.isneginf(found)).any():
            apart.append(np.inf)
            continue
        found, expected = found[~impossible], expected[~impossible]
        apart.append(float((np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)).max(initial=0.0)))
    return apart[0], apart[1], int((ours.answers[2] != plain.answers[2]).sum())


def _timed(call):
    start = time.thread_time()
    answer = call()
    return time.thread_time() - start, answer


def _line(label: str, leaf: str, timing: Timing) -> str:
    first = f"{timing.first:8.2f}" if timing.first else " " * 8
    return f"{label:40}{leaf:>7}{first}" + "".join(f"{s:{w}.3f}" for s, w in zip(timing.seconds, (13, 10, 10)))


def run(folder: Path | None, n_rows: int, n_train: int | None = None) -> str:
    """Print the report line by line, and return it."""
    questions, standin = make_questions(folder, n_rows, n_train)
    query_kernels(questions[0])  # compiles
    questions = [_without_caches(question) for question in questions]
    lines: list[str] = []

    def write_line(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    write_line(HEAD)
    sums = {"plain": np.zeros(4), "mcce": np.zeros(4)}
    worst = np.zeros(3)
    for question in questions:
        ours, plain = query_kernels(question), query_plain_numpy(question)
        write_line(_line(question.name, f"{question.largest_leaf:,}", ours))
        write_line(_line("  plain", "", plain))
        sums["mcce"] += [ours.first, *ours.seconds]
        sums["plain"] += [0.0, *plain.seconds]
        found = compare(ours, plain)
        worst = np.array([max(worst[0], found[0]), max(worst[1], found[1]), worst[2] + found[2]])
    for name, total in sums.items():
        write_line(_line(f"all nine, {name}", "", Timing(total[0], tuple(total[1:]), ())))
    ratio = sums["plain"] / np.maximum(sums["mcce"], 1e-9)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    write_line(f"times as fast: log_density {ratio[1]:.0f}, left out {ratio[2]:.0f}, supports {ratio[3]:.0f}")
    write_line(
        f"largest difference of log densities: {worst[0]:.1e}, left out {worst[1]:.1e}; other supports: {worst[2]:.0f}"
    )
    write_line(f"{n_rows:,} rows; {questions[0].sampler.tree_.donors.size:,} training rows; peak memory {peak:.0f} MB")
    if standin:
        write_line(STANDIN)
    return "\n".join(lines)


def _without_caches(question: Question) -> Question:
    """Return the query with a sampler without caches."""
    fresh = set_state(question.sampler.clone(), get_state(question.sampler))
    return Question(question.name, fresh, question.given, question.values, question.rows)


def main(arguments: list[str] | None = None) -> int:
    """Run, print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of the data; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the command")
    options = parser.parse_args(arguments)
    folder = find_data(options.data)
    report = run(folder, 2000, 3000) if options.quick else run(folder, options.rows)
    versions = f"numpy {np.__version__}, numba {numba.__version__}, Python {platform.python_version()}"
    about = f"{date.today().isoformat()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores; {versions}."
    page = ["# Densities and supports of donors", NOTES.strip(), about, *([QUICK] if options.quick else [])]
    options.out.write_text("\n\n".join([*page, f"```\n{report}\n```"]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
