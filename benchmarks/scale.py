"""Scaling: a million factuals in batches, a million training rows, 300 columns, a factor of 5,000 levels.

    python -m benchmarks.scale [--cases plain,sparse,rows,columns,levels] [--factuals N] [--n-jobs N] [--data FOLDER]
                               [--quick] [--out FILE]

1. plain, sparse: Adult with all its levels and a logistic regression, as points that are added up: scikit-learn's
   pipeline would take most of the time. N factuals are denied rows drawn with replacement, each with one value of a
   mutable feature taken from another row; K = 100. `explain_batches` writes them to a folder in parts of 10,000. The
   finishing times of the parts give the time to the first one, and the cost of a factual in the last quarter of the
   parts relative to the first; memory is measured after a quarter and at the end. Three parts are explained again
   without files, in one thread. The overhead of a batch is the CPU time of the process that reads, sends and writes,
   which serves all workers; with a single worker, the time of a part minus that of its explanation. The time of many
   workers is the time of the explanations divided by their number, or the sum of the overheads, whichever is larger.
2. rows, columns, levels: fit and explain 100 factuals with K = 100, for three sizes each; the exponent b of
   seconds = a n^b is fitted by least squares on logarithms. 1 is linear; n log n looks like 1.1. The same factuals are
   explained with sparse=True, after the plausibility is fitted: CPU milliseconds per factual, without those of the
   model.
3. Each measurement has a separate process, whose peak memory includes libraries, data, model and results.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mcce
from benchmarks import report
from benchmarks.latency import Timed
from benchmarks.page import Page, read_names
from benchmarks.settings import ROOT, SETTINGS, find_data, make_problem
from benchmarks.speed import describe_machine

FACTUALS, PART, N_SAMPLES, SOME = 1_000_000, 10_000, 100, 100
SEVERAL, WORKERS = 3, 100  # parts explained again without files; number of workers for the extrapolation
SIZES = {
    "rows": (250_000, 500_000, 1_000_000),
    "columns": (75, 150, 300),
    "levels": (1_250, 2_500, 5_000),
}
TINY = {"rows": (300, 600, 1_200), "columns": (4, 8, 16), "levels": (10, 20, 40)}
COLUMN_ROWS, LEVEL_ROWS = 20_000, 100_000  # training rows of the cases
CASES = ("plain", "sparse", *SIZES)
HEAD = [
    "",
    "factuals",
    "explained",
    "seconds",
    "per second",
    "first part",
    "last/first quarter",
    "MB at a quarter",
    "MB at the end",
]
SIZE_HEAD = ["", "size", "fit", "explain", "sparse, ms a factual", "peak MB"]
NOTES = """\
explained: the others already have the wanted decision, by the one changed value, or no counterfactual was found. per
second: factuals. first part: seconds until it is written. last/first: seconds per factual over the last quarter of the
parts, over those of the first. MB at a quarter, at the end: the peak until then, of the process that reads and writes,
or of a worker; the first process has also created the table of all factuals. peak MB: of a separate process."""


def peak_megabytes() -> float:
    """Return the peak memory of this process or of a finished child process."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024


class Scorecard:
    """A logistic regression as a scorecard: points for each level, and for a unit of each number (step 1).

    Parameters
    ----------
    score : the probabilities of a logistic regression, whose log odds are sums over the columns.
    X : rows to query it for.
    """

    def __init__(self, score: Callable[[pd.DataFrame], np.ndarray], X: pd.DataFrame) -> None:
        first = X.iloc[[0]]
        (self.base,) = _log_odds(score(first))
        self.points: dict[Any, np.ndarray] = {}
        self.slopes: dict[Any, tuple[float, float]] = {}
        for name in X.columns:
            of_levels = isinstance(X[name].dtype, pd.CategoricalDtype)
            values = X[name].cat.categories if of_levels else [X[name].min(), X[name].max()]
            tried = first.iloc[np.zeros(len(values), dtype=int)].assign(**{name: pd.Series(values).to_numpy()})
            found = _log_odds(score(tried.astype({name: X[name].dtype}))) - self.base
            if of_levels:
                self.points[name] = found
            elif values[1] > values[0]:
                self.slopes[name] = float(first[name].iloc[0]), float(np.diff(found)[0] / (values[1] - values[0]))

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        total = np.full(len(rows), self.base)
        for name, points in self.points.items():
            total += points[rows[name].cat.codes.to_numpy()]
        for name, (at, slope) in self.slopes.items():
            total += (rows[name].to_numpy() - at) * slope
        return 1.0 / (1.0 + np.exp(-total))


def _log_odds(probability: np.ndarray) -> np.ndarray:
    return np.log(probability / (1.0 - probability))


def many_factuals(factuals: pd.DataFrame, mutable: Sequence[str], n: int) -> pd.DataFrame:
    """Return rows drawn with replacement, each with one mutable value of another row (step 1)."""
    rng = np.random.default_rng(1)
    rows = factuals.iloc[rng.integers(len(factuals), size=n)].reset_index(drop=True)
    swapped = rng.integers(len(mutable), size=n)
    for j, name in enumerate(mutable):
        mine = np.flatnonzero(swapped == j)
        places = np.arange(n)
        places[mine] = rng.integers(n, size=mine.size)
        rows[name] = rows[name].take(places).array
    return rows


def measure_batches(sparse: bool, n: int, quick: bool, jobs: int, data: str | None) -> dict[str, Any]:
    """Explain many factuals of Adult in batches (step 1)."""
    (setting,) = (s for s in SETTINGS if s.name == "adult-native")
    setting = replace(setting.tiny() if quick else setting, model="logistic", n_factuals=n)
    problem = make_problem(setting, find_data(data))
    explainer = mcce.MCCE(
        Scorecard(problem.score, problem.X),
        decision=problem.decision,
        fixed=problem.fixed,
        kinds=problem.kinds,
        random_state=1,
        n_jobs=1,
    ).fit(problem.X)
    options = {"n_samples": N_SAMPLES, "sparse": sparse}
    explainer.explain(problem.factuals.iloc[:2], **options)  # compiles, and fits cached parts
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "rows.parquet", Path(folder) / "out"
        mutable = [c for c in problem.X if c not in problem.fixed]
        many_factuals(problem.factuals, mutable, n).to_parquet(source, row_group_size=100_000)
        size = min(PART, max(1, n // 8))
        quarter: list[float] = []
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.05):
                if len(list(out.glob("parts/*.json"))) >= max(1, n // size // 4):
                    quarter.append(peak_megabytes())
                    return

        watching = threading.Thread(target=watch)
        watching.start()
        begun, own = time.time(), time.process_time()
        result = explainer.explain_batches(source, out, batch_size=size, n_jobs=jobs, progress=None, **options)
        seconds, own = time.time() - begun, time.process_time() - own
        end_mb = peak_megabytes()
        ended.set()
        watching.join()
        at = np.sort([path.stat().st_mtime for path in out.glob("parts/*.json")]) - begun
        some = pd.read_parquet(source).iloc[: SEVERAL * size]
        begun = time.perf_counter()
        for first in range(0, len(some), size):
            explainer.explain(some.iloc[first : first + size], progress=False, **options)
        part_seconds = (time.perf_counter() - begun) / SEVERAL
    k = max(1, at.size // 4)
    return {
        "factuals": n,
        "seconds": seconds,
        "per_second": n / seconds,
        "first": float(at[0]),
        "quarters": float((at[-1] - at[-1 - k]) / max(at[k] - at[0], 1e-9)),
        "quarter_mb": quarter[0] if quarter else end_mb,
        "end_mb": end_mb,
        "explained": result.totals["explained"],
        "parts": int(at.size),
        "part_seconds": part_seconds,
        "overhead": own / at.size if jobs > 1 else max(seconds / at.size - part_seconds, 0.0),
        "standin": problem.standin,
    }


def on_workers(found: dict[str, Any], workers: int) -> float:
    """Return the seconds that many workers would take: they explain; one process reads, sends and writes (step 1)."""
    return max(found["parts"] * found["overhead"], found["parts"] * found["part_seconds"] / workers)


def training_table(case: str, size: int, quick: bool) -> tuple[pd.DataFrame, list[str]]:
    """Return a table of a size, and its fixed features (step 2)."""
    rng = np.random.default_rng(2)
    if case == "rows":
        n, p = size, 10
    elif case == "columns":
        n, p = (500 if quick else COLUMN_ROWS), size
    else:
        n, p = (500 if quick else LEVEL_ROWS), 6
    common = rng.standard_normal(n)
    X = pd.DataFrame({f"x{j}": np.round(common + rng.standard_normal(n), 2) for j in range(p)})
    X["group"] = pd.Categorical(rng.choice(["a", "b", "c"], n))
    if case == "levels":
        X["place"] = pd.Categorical([f"place {i}" for i in rng.integers(size, size=n)])
    return X, ["group"]


def measure_size(case: str, size: int, quick: bool) -> dict[str, Any]:
    """Fit and explain a table of a size (step 2)."""
    X, fixed = training_table(case, size, quick)
    model = Timed(first_two)
    explainer = mcce.MCCE(model, decision=(1.0, np.inf), fixed=fixed, random_state=1)
    small = mcce.MCCE(first_two, decision=(1.0, np.inf), fixed=fixed, random_state=1).fit(X.iloc[:200])
    for sparse in (False, True):
        small.explain(X.iloc[:5], n_samples=5, sparse=sparse)  # compiles
    begun = time.perf_counter()
    explainer.fit(X)
    fitted = time.perf_counter()
    first = X.iloc[: 10 * SOME]
    refused = first[first_two(first) < 1.0].iloc[:SOME]
    explainer.explain(refused, n_samples=N_SAMPLES)
    explained = time.perf_counter()
    explainer.explain(refused.iloc[:2], n_samples=N_SAMPLES, sparse=True)  # fits the plausibility
    own, model.seconds = time.process_time(), 0.0
    explainer.explain(refused, n_samples=N_SAMPLES, sparse=True)
    own = time.process_time() - own - model.seconds
    return {"size": size, "fit": fitted - begun, "explain": explained - fitted, "sparse": own / len(refused)}


def first_two(rows: pd.DataFrame) -> np.ndarray:
    """The model of step 2: a sum of two features."""
    return (rows["x0"] + rows["x1"]).to_numpy()


def measure_apart(**call: Any) -> dict[str, Any]:
    """Measure in a separate process (step 3)."""
    command = [sys.executable, "-m", "benchmarks.scale", "--measure", json.dumps(call)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(call: dict[str, Any]) -> dict[str, Any]:
    """Measure one case."""
    case = call.pop("case")
    if case in SIZES:
        found = measure_size(case, call["size"], call["quick"])
    else:
        found = measure_batches(case == "sparse", **call)
    return {**found, "peak_mb": peak_megabytes()}


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return b of seconds = a n^b, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def batch_cells(case: str, found: dict[str, Any]) -> list[str]:
    """Return the row of a case of step 1."""
    counts = [f"{found['factuals']:,}", f"{found['explained']:,}"]
    figures = [f"{found['seconds']:.1f}", f"{found['per_second']:,.0f}"]
    rest = [f"{found['first']:.2f}", f"{found['quarters']:.2f}", f"{found['quarter_mb']:,.0f}"]
    return [case, *counts, *figures, *rest, f"{found['end_mb']:,.0f}"]


def size_cells(case: str, found: dict[str, Any]) -> list[str]:
    """Return a row of a case of step 2."""
    figures = [f"{found['fit']:.2f}", f"{found['explain']:.2f}", f"{1e3 * found['sparse']:.1f}"]
    return [case, f"{found['size']:,}", *figures, f"{found['peak_mb']:,.0f}"]


def run(cases: Sequence[str], chosen: argparse.Namespace, page: Page, apart: Callable[..., dict[str, Any]]) -> None:
    """Measure the cases and print the results."""
    n = 400 if chosen.quick else chosen.factuals
    batches = [case for case in cases if case not in SIZES]
    if batches:
        page.title(f"Adult in batches, K = {N_SAMPLES}, {chosen.n_jobs} worker(s)")
        found = [apart(case=c, n=n, quick=chosen.quick, jobs=chosen.n_jobs, data=chosen.data) for c in batches]
        if any(one["standin"] for one in found):
            page.write_line(report.STANDIN)
        page.table(HEAD, [batch_cells(case, one) for case, one in zip(batches, found)])
        for case, one in zip(batches, found):
            page.write_line(
                f"{case}: a part takes {one['part_seconds']:.3f} s to explain and {one['overhead']:.3f} s to read, "
                f"send and write. Extrapolated, not measured: {on_workers(one, WORKERS):.1f} s with {WORKERS} workers."
            )
    for case in (case for case in cases if case in SIZES):
        sizes = (TINY if chosen.quick else SIZES)[case]
        found = [apart(case=case, size=size, quick=chosen.quick) for size in sizes]
        page.title(f"Training table: {case}")
        page.table(SIZE_HEAD, [size_cells(case, one) for one in found])
        page.write_line(f"seconds of fit grow as n^{exponent(sizes, [f['fit'] for f in found]):.2f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES), help="which, separated by commas (%(default)s)")
    parser.add_argument("--factuals", type=int, default=FACTUALS, help="of plain and sparse (%(default)s)")
    parser.add_argument("--n-jobs", type=int, default=1, help="worker processes of plain and sparse (%(default)s)")
    parser.add_argument("--data", help="folder with adult.csv.gz; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the command")
    parser.add_argument("--out", type=Path, help="write FILE.md")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        print(json.dumps(measure(json.loads(chosen.measure))))
        return 0
    cases = read_names(parser, "--cases", chosen.cases, CASES)
    page = Page("How it scales")
    page.write_line(report.about(describe_machine()))
    if chosen.quick:
        page.write_line(report.QUICK)
    page.write_line(NOTES)
    run(cases, chosen, page, measure_apart)
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
