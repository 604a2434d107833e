"""`mcce.rcompat.explain_mcce` compared with mcceR on the same data: seconds by stage, and whether the rows are equal.

    python -m benchmarks.rcompat [--engine rpart,ctree] [--train N] [--test N] [--features P] [--K K] [--without-r]

The data are correlated Gaussians, the model is their sum, and the first two features are fixed. mcce is timed in the
second of two runs, without compilation. mcceR is run by Rscript, if installed (R_LIBS is R's library path).
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from mcce.rcompat import MCCEResult, explain_mcce

UNIT = 2.0**20
STAGES = ["fit.time", "generate.time", "process.time"]

MCCER = """
arguments <- commandArgs(TRUE)
read <- function(name) as.data.frame(data.table::fread(file.path(arguments[1], name))) / 2^20
found <- mcceR::explain_mcce(
  NULL, read("x_explain.csv"), read("x_train.csv"), function(model, newdata) round(rowSums(newdata), 6),
  fixed_features = c("x1", "x2"), c_int = c(0, Inf), fit.autoregressive_model = arguments[2], fit.seed = 1,
  generate.seed = 2, generate.K = as.integer(arguments[3]))
cat(sprintf("%.3f", as.numeric(found$time)), "\\n")
write.table(sapply(found$cf, sprintf, fmt = "%.17g"), file.path(arguments[1], "cf.csv"), sep = ",", row.names = FALSE)
"""


def gaussians(n: int, p: int, seed: int) -> pd.DataFrame:
    """Return correlated Gaussians, rounded to multiples of 2^-20: they are passed to R exactly, as integers."""
    rng = np.random.default_rng(seed)
    values = (rng.standard_normal((n, p)) + rng.standard_normal((n, 1))) / np.sqrt(2)
    return pd.DataFrame(np.round(values * UNIT) / UNIT, columns=[f"x{j + 1}" for j in range(p)])


def run_ours(x_explain: pd.DataFrame, x_train: pd.DataFrame, engine: str, K: int) -> tuple[MCCEResult, float]:
    """Return the result and the seconds from frame to frame, including model queries."""
    start = time.perf_counter()
    found = explain_mcce(
        None,
        x_explain,
        x_train,
        lambda model, frame: np.round(frame.sum(axis=1), 6),
        fixed_features=["x1", "x2"],
        c_int=(0, np.inf),
        fit_autoregressive_model=engine,
        fit_seed=1,
        generate_seed=2,
        generate_K=K,
    )
    return found, time.perf_counter() - start


def run_mccer(folder: str, engine: str, K: int) -> tuple[pd.DataFrame, list[float], float] | str:
    """Return mcceR's counterfactuals, its seconds by stage and in total; or why it was not run."""
    if shutil.which("Rscript") is None:
        return "Rscript is not on the path"
    start = time.perf_counter()
    script = Path(folder) / "mccer.R"
    script.write_text(MCCER)
    done = subprocess.run(["Rscript", str(script), folder, engine, str(K)], capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no message"])[0]
    cf = pd.read_csv(Path(folder) / "cf.csv", dtype=str).map(float)
    return cf, [float(seconds) for seconds in done.stdout.split()[-3:]], time.perf_counter() - start


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="rpart,ctree")
    parser.add_argument("--train", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--features", type=int, default=12)
    parser.add_argument("--K", type=int, default=1000)
    parser.add_argument("--without-r", action="store_true")
    options = parser.parse_args()
    data = gaussians(options.train + options.test, options.features, seed=1)
    x_train, x_explain = data.iloc[: options.train], data.iloc[options.train :].reset_index(drop=True)
    print(f"{'':16}{'fit':>8}{'generate':>10}{'process':>9}{'sum':>8}{'all':>8}   seconds; all: with predictions")
    for engine in options.engine.split(","):
        run_ours(x_explain.head(2), x_train, engine, 2)
        found, whole = run_ours(x_explain, x_train, engine, options.K)
        stages = [float(found.time[stage]) for stage in STAGES] if found.time is not None else []
        print(f"{engine + ', mcce':16}" + _row(stages, whole))
        if options.without_r:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name, frame in (("x_train", x_train), ("x_explain", x_explain)):
                (frame * UNIT).astype("int64").to_csv(Path(folder) / f"{name}.csv", index=False)
            theirs = run_mccer(folder, engine, options.K)
        if isinstance(theirs, str):
            print(f"{engine + ', mcceR':16}not run: {theirs}")
            continue
        cf, seconds, whole = theirs
        same = list(found.cf) == list(cf) and np.array_equal(found.cf.to_numpy(), cf.to_numpy())
        print(f"{engine + ', mcceR':16}" + _row(seconds, whole))
        print(f"{'':16}{sum(seconds) / sum(stages):.1f} times as fast; rows {'equal' if same else 'NOT EQUAL'}")
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def _row(stages: list[float], whole: float) -> str:
    fit, generate, process = stages
    return f"{fit:8.2f}{generate:10.2f}{process:9.2f}{sum(stages):8.2f}{whole:8.2f}"


if __name__ == "__main__":
    main()
