"""`mcce.rcompat` beside mcceR, and ctree beside R's party, on the same data in the same run.

    python -m benchmarks.rcompat [--engines rpart,ctree] [--train N] [--test N] [--quick]

1. `explain_mcce`: correlated Gaussians, their sum as the model, the first two features fixed, the same seeds. Seconds
   of the three stages (the second of two runs of ours), and whether all rows are equal.
2. Trees: `ctree` of mcce and `party::ctree` with party's defaults on numbers and levels. CPU seconds of the fastest of
   some runs, and whether the nodes of all training rows are equal.

R is run by Rscript (R_LIBS is its library); without R, mcceR or party, only ours is measured, and the reason is given.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.settings import Report, arguments
from mcce.rcompat import explain_mcce
from mcce.table import Schema, Table
from mcce.trees.ctree import grow_ctree

UNIT = 2.0**20  # Gaussians are multiples of its inverse, which are passed to R exactly, as integers
STAGES = ("fit.time", "generate.time", "process.time")
MCCER = """
arguments <- commandArgs(TRUE)
read <- function(name) as.data.frame(data.table::fread(file.path(arguments[1], name))) / 2^20
answers <- mcceR::explain_mcce(
  NULL, read("explain.csv"), read("train.csv"), function(model, newdata) round(rowSums(newdata), 6),
  fixed_features = c("x1", "x2"), c_int = c(0, Inf), fit.autoregressive_model = arguments[2], fit.seed = 1,
  generate.seed = 2, generate.K = as.integer(arguments[3]))
cat(sprintf("%.3f", as.numeric(answers$time)), "\\n")
rows <- sapply(answers$cf, sprintf, fmt = "%.17g")
write.table(rows, file.path(arguments[1], "out.csv"), sep = ",", row.names = FALSE)
"""
PARTY = """
arguments <- commandArgs(TRUE)
data <- read.csv(file.path(arguments[1], "data.csv"), stringsAsFactors = TRUE)
seconds <- vapply(1:3, function(i) sum(system.time(tree <<- party::ctree(y ~ ., data))[1:2]), 0)
cat(min(seconds), "\\n")
write.csv(data.frame(node = party::where(tree)), file.path(arguments[1], "out.csv"), row.names = FALSE)
"""
TREES = {"number": 0, "two classes": 2, "five classes": 5}


def run_r(script: str, frames: dict[str, pd.DataFrame], *arguments: str) -> tuple[str, pd.DataFrame] | str:
    """Return what a script prints and its table; or why it did not run."""
    if shutil.which("Rscript") is None:
        return "Rscript is not on the path"
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in frames.items():
            frame.to_csv(Path(folder) / f"{name}.csv", index=False)
        path = Path(folder) / "script.R"
        path.write_text(script)
        done = subprocess.run(["Rscript", str(path), folder, *arguments], capture_output=True, text=True)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["no message"])[0]
        return done.stdout, pd.read_csv(Path(folder) / "out.csv", dtype=str).map(float)


def gaussians(n: int, p: int) -> pd.DataFrame:
    """Return correlated Gaussians."""
    rng = np.random.default_rng(1)
    values = (rng.standard_normal((n, p)) + rng.standard_normal((n, 1))) / np.sqrt(2)
    return pd.DataFrame(np.round(values * UNIT) / UNIT, columns=[f"x{j + 1}" for j in range(p)])


def compare_explanations(
    report: Report, engine: str, train: pd.DataFrame, people: pd.DataFrame, n_samples: int
) -> None:
    """Measure one engine of mcceR (step 1)."""
    for _ in range(2):  # the first one compiles
        ours = explain_mcce(
            None,
            people,
            train,
            lambda model, frame: np.round(frame.sum(axis=1), 6),
            fixed_features=["x1", "x2"],
            c_int=(0, np.inf),
            fit_autoregressive_model=engine,
            fit_seed=1,
            generate_seed=2,
            generate_K=n_samples,
        )
    assert ours.time is not None
    seconds = [float(ours.time[stage]) for stage in STAGES]
    row = {"what": "explain_mcce", "engine": engine, "seconds": sum(seconds), **dict(zip(STAGES, seconds))}
    frames = {"train": (train * UNIT).astype("int64"), "explain": (people * UNIT).astype("int64")}
    theirs = run_r(MCCER, frames, engine, str(n_samples))
    if isinstance(theirs, str):
        report.add(**row, r_seconds=np.nan, ratio=np.nan, equal=theirs)
        return
    r_seconds = sum(map(float, theirs[0].split()[-3:]))
    is_equal = list(ours.cf) == list(theirs[1]) and np.array_equal(ours.cf.to_numpy(), theirs[1].to_numpy())
    report.add(**row, r_seconds=r_seconds, ratio=r_seconds / sum(seconds), equal=is_equal)


def tree_table(n: int, n_classes: int) -> pd.DataFrame:
    """Return numbers and levels, and a response `y` with an interaction."""
    rng = np.random.default_rng(2)
    level = {f"c{j}": rng.integers(0, 3 + 2 * j, n) for j in range(3)}
    columns: dict[str, Any] = {f"x{j}": np.round(rng.normal(size=n), 3) for j in range(6)}
    score = columns["x0"] * (1 + (level["c0"] == 1)) + (level["c1"] == 2) + columns["x1"] + rng.normal(size=n)
    for name, codes in level.items():
        columns[name] = pd.Categorical.from_codes(codes, list("abcdefg")[: codes.max() + 1])
    if not n_classes:
        return pd.DataFrame({**columns, "y": score.round(6)})
    codes = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    return pd.DataFrame({**columns, "y": pd.Categorical.from_codes(codes, list("abcde")[:n_classes])})


def fastest(work: Callable[[], Any], runs: int = 5) -> tuple[float, Any]:
    """Return the CPU seconds of the fastest run, and the value of the last one."""
    seconds = []
    for _ in range(runs):
        begun = time.process_time()
        answer = work()
        seconds.append(time.process_time() - begun)
    return min(seconds), answer


def compare_trees(report: Report, n: int, response: str) -> None:
    """Measure one tree (step 2)."""
    frame = tree_table(n, TREES[response])
    table = Schema.from_data(frame).encode(frame)
    p = frame.shape[1] - 1
    given, target = Table(table.features[:p], table.matrix[:, :p]), table.column(p)
    grow_ctree(given, target)  # compiles
    seconds, tree = fastest(lambda: grow_ctree(given, target))
    row = {"what": "ctree", "engine": response, "n": n, "leaves": tree.n_leaves, "seconds": seconds}
    theirs = run_r(PARTY, {"data": frame})
    if isinstance(theirs, str):
        report.add(**row, r_seconds=np.nan, ratio=np.nan, equal=theirs)
        return
    r_seconds = float(theirs[0].split()[-1])
    nodes = pd.DataFrame({"ours": tree.training_node, "theirs": theirs[1]["node"]})
    is_equal = bool((nodes.drop_duplicates().shape[0] == nodes.nunique()).all())  # whatever the nodes' numbers
    report.add(**row, r_seconds=r_seconds, ratio=r_seconds / seconds, equal=is_equal)


def main() -> None:
    """Run the benchmark."""
    parser = arguments(__doc__, "rcompat")
    parser.add_argument("--engines", default="rpart,ctree")
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--features", type=int, default=12)
    parser.add_argument("--K", type=int, default=1000)
    options = parser.parse_args()
    n_train, n_test, n_samples = (300, 20, 50) if options.quick else (options.train, options.test, options.K)
    data = gaussians(n_train + n_test, options.features)
    report = Report("rcompat", options)
    for engine in options.engines.split(","):
        people = data.iloc[n_train:].reset_index(drop=True)
        compare_explanations(report, engine, data.iloc[:n_train], people, n_samples)
    for response in TREES:
        compare_trees(report, 400 if options.quick else 10_000, response)
    report.write()


if __name__ == "__main__":
    main()
