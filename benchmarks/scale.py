"""Large tables: a million rows with Dask, 300 columns, 10,000 levels, a column of a million distinct texts.

    python -m benchmarks.scale [--cases rows,columns,levels,texts] [--rows N] [--processes N] [--quick]

1. rows: `fit` on a million rows of ten columns, and a million sparse answers by `mcce.distributed.explain` in two
   processes of one thread, written to Parquet. Seconds of the clock; the peak memory of this process and the largest of
   a worker, which is flat if it does not grow with the rows.
2. columns: `fit`, and the sparse answers of three people, on 2,000 rows of 300 columns. levels: the same on 100,000
   rows with a column of 10,000 levels. CPU seconds beside the model.
3. texts: a column of a million distinct texts is refused by `fit`; the seconds until then, and the message.

Each case has a process of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.settings import Report, Timed, arguments, emit, run_worker

CASES = {"rows": 1_000_000, "columns": 300, "levels": 10_000, "texts": 1_000_000}
TINY = {"rows": 2_000, "columns": 12, "levels": 50, "texts": 20_000}
MALLOC = {  # of workers, which by default return memory to the system at every chance: a quarter slower
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**30,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
}
FACTORS = 8
PARTITION = 10_000


def table(n: int, p: int, seed: int = 1) -> pd.DataFrame:
    """Return columns of eight factors and noise: seven tenths numbers, half of them skewed, and levels."""
    factors = np.random.default_rng(seed).normal(size=(n, FACTORS))
    loadings = np.random.default_rng(0).normal(size=(FACTORS, p))
    latent = factors @ loadings + np.random.default_rng(seed + 1).normal(size=(n, p))
    n_numbers = 7 * p // 10
    latent[:, 1:n_numbers:2] = 100 * np.exp(latent[:, 1:n_numbers:2] / 3)
    columns: dict[str, Any] = {f"x{j}": latent[:, j].round(3) for j in range(n_numbers)}
    cuts = [-3.0, -1.0, 1.0, 3.0]
    for j in range(n_numbers, p):
        columns[f"c{j}"] = pd.Categorical.from_codes(np.searchsorted(cuts, latent[:, j]), list("abcde"))
    return pd.DataFrame(columns)


def score(rows: pd.DataFrame) -> np.ndarray:
    """Return the probability of a logistic model of three numbers."""
    total = rows["x0"].to_numpy() + rows["x2"].to_numpy() + np.log(rows["x1"].to_numpy() / 100)
    return np.asarray(1 / (1 + np.exp(-(total - 3))))


def megabytes() -> float:
    """Return the peak memory of this process; `getrusage` would count the parent's before a worker was started."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure_rows(n: int, processes: int) -> None:
    """Emit the figures of a million rows (step 1)."""
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import mcce
    import mcce.distributed

    X = table(n, 10)
    begun = time.perf_counter()
    explainer = mcce.MCCE(score, fixed=["c9"], random_state=1).fit(X)
    fitted = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        people = table(3 * n, 10, seed=11)
        people = people[score(people) < 0.5].head(n).reset_index(drop=True)
        dd.from_pandas(people, chunksize=min(PARTITION, n // 4)).to_parquet(f"{folder}/people")
        options = {"n_workers": processes, "threads_per_worker": 1, "dashboard_address": ":0"}
        with dask.config.set(MALLOC), LocalCluster(**options) as cluster, Client(cluster) as client:
            prepared = time.perf_counter()
            rows = dd.read_parquet(f"{folder}/people", calculate_divisions=True)
            answers = mcce.distributed.explain(explainer, rows, sparse=True, n_samples=100)
            answers.to_parquet(f"{folder}/answers")
            explained = time.perf_counter()
            largest = max(client.run(megabytes).values())
        codes = dd.read_parquet(f"{folder}/answers", columns=["code"])["code"].value_counts().compute()
    seconds = {"fit": fitted - begun, "explain": explained - prepared, "total": fitted - begun + explained - prepared}
    emit(
        size=n, people=len(people), explained=int(codes["explained"]), **seconds, peak_mb=megabytes(), worker_mb=largest
    )


def measure_table(X: pd.DataFrame, size: int) -> None:
    """Emit CPU seconds beside the model of `fit` and of three people (step 2)."""
    import mcce

    model = Timed(score)
    small = mcce.MCCE(score, random_state=1).fit(X.head(500))
    for sparse in (False, True):
        small.explain(X[score(X) < 0.5].head(1), n_samples=20, sparse=sparse)  # compiles
    explainer, of_fit = model.measure(mcce.MCCE(model, random_state=1).fit, X)
    people = X[score(X) < 0.5].head(3)
    costs = {"fit": of_fit}
    for name, how in (("plain", {}), ("first_sparse", {"sparse": True}), ("sparse", {"sparse": True})):
        found, costs[name] = model.measure(explainer.explain, people, **how)
    seconds = {name: cost["seconds"] - cost["model"] for name, cost in costs.items()}
    emit(size=size, people=len(people), explained=len(found), **seconds, peak_mb=megabytes())


def measure_texts(n: int) -> None:
    """Emit the seconds until a column of distinct texts is refused, and the message (step 3)."""
    import mcce

    X = table(n, 10).assign(name=[f"person {i}" for i in range(n)])
    begun = time.perf_counter()
    try:
        mcce.MCCE(score, random_state=1).fit(X)
        message = "not refused"
    except mcce.exceptions.InputError as error:
        message = str(error)
    emit(size=n, fit=time.perf_counter() - begun, message=message, peak_mb=megabytes())


def main() -> None:
    """Run the benchmark, or one of its workers."""
    parser = arguments(__doc__, "scale")
    parser.add_argument("--cases", default=",".join(CASES), help="(%(default)s)")
    parser.add_argument("--rows", type=int, default=CASES["rows"], help="training rows, and people, of the case rows")
    parser.add_argument("--processes", type=int, default=2, help="of the case rows (%(default)s)")
    parser.add_argument("--worker", help="(internal)")
    options = parser.parse_args()
    if options.worker:
        task = json.loads(options.worker)
        case, size, rows = task["case"], task["size"], 1000 if task["quick"] else None
        if case == "rows":
            measure_rows(size, task["processes"])
        elif case == "columns":
            measure_table(table(rows or 2_000, size), size)
        elif case == "levels":
            X = table(rows or 100_000, 6)
            place = np.random.default_rng(3).integers(size, size=len(X))
            measure_table(X.assign(place=pd.Categorical([f"place {i}" for i in place])), size)
        else:
            measure_texts(size)
        return
    report = Report("scale", options)
    sizes = TINY if options.quick else {**CASES, "rows": options.rows}
    for case in options.cases.split(","):
        task = {"case": case, "size": sizes[case], "quick": options.quick, "processes": options.processes}
        for record in run_worker(sys.executable, "benchmarks.scale", ["--worker", json.dumps(task)]):
            report.add(case=case, **record)
    report.write()


if __name__ == "__main__":
    main()
