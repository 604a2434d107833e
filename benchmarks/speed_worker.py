"""One process of `benchmarks.speed`: run a method, or both, on one problem, and measure it.

1. `run_mcce` and `run_plain` are the methods; `judge` measures the quality of the returned rows.
2. `compare` times both in one process; `run_alone` runs one of them, for its memory.
3. `measure_scaling` and `measure_first_call` measure mcce only.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import mcce
from benchmarks import plain
from benchmarks.settings import MANY, SETTINGS, Problem, Setting, make_problem, simulate
from mcce.datasets import load_loans


@dataclass(frozen=True)
class Run:
    """Seconds by step and in total, the rows found as numbers, and the number of rows passed to the model."""

    seconds: dict[str, float]
    rows: pd.DataFrame
    queried: int


class Counted:
    """A model that counts the rows passed to it."""

    def __init__(self, score: Callable[[pd.DataFrame], np.ndarray]) -> None:
        self.score = score
        self.queried = 0

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        self.queried += len(rows)
        return self.score(rows)


def run_mcce(problem: Problem, setting: Setting) -> Run:
    """Run mcce as a user does."""
    model = Counted(problem.score)
    begun = time.perf_counter()
    explainer = mcce.MCCE(
        model, decision=problem.decision, fixed=problem.fixed, kinds=problem.kinds, random_state=1
    ).fit(problem.X)
    queried_by_fit = model.queried
    found = explainer.explain(problem.factuals, n_samples=setting.n_samples, independent=setting.independent)
    total = time.perf_counter() - begun
    return Run(
        {**found.run.timings, "total": total},
        problem.encode(found.frame.droplevel("rank")),
        model.queried - queried_by_fit,
    )


def run_plain(problem: Problem, setting: Setting) -> Run:
    """Run the plain method; categories that are not binarised are passed as codes."""
    model = Counted(problem.score)
    rows, seconds = plain.explain(
        problem.encode(problem.X),
        problem.encode(problem.factuals),
        wanted=lambda codes: problem.decision.contains(model(problem.decode(codes))),
        fixed=problem.fixed,
        categorical=problem.categorical,
        n_samples=setting.n_samples,
    )
    return Run({**seconds, "total": sum(seconds.values())}, rows, model.queried - len(problem.X))


METHODS = {"plain": run_plain, "mcce": run_mcce}


def judge(problem: Problem, run: Run) -> dict[str, Any]:
    """Return the quality of the rows: mean L0 and summed Gower distance, changed fixed values, valid rows."""
    rows, factuals = run.rows, problem.encode(problem.factuals)
    training = problem.encode(problem.X)
    steps = (rows - factuals.loc[rows.index]).abs()
    changed = steps > 0
    span = (training.max() - training.min()).mask(training.columns.isin(problem.categorical), 0.0)
    distance = (steps / span).where(changed & (span > 0), changed.astype(float))
    valid = problem.decision.contains(problem.score(problem.decode(rows))) if len(rows) else np.zeros(0)
    return {
        "seconds": run.seconds,
        "L0": float(changed.sum(axis=1).mean()),
        "gower_sum": float(distance.sum(axis=1).mean()),
        "violations": int(changed[problem.fixed].to_numpy().sum()),
        "success": float(valid.mean()) if len(rows) else None,
        "explained": len(rows),
        "queried_per_factual": run.queried / len(factuals),
    }


def compare(problem: Problem, setting: Setting) -> dict[str, Any]:
    """Time both methods in this process (step 1)."""
    run_mcce(problem, setting)
    gc.collect()
    ours = min((run_mcce(problem, setting) for _ in range(2)), key=lambda run: run.seconds["total"])
    gc.collect()
    theirs = run_plain(problem, setting)
    return {
        "n_train": len(problem.X),
        "n_features": problem.X.shape[1],
        "n_factuals": len(problem.factuals),
        "n_samples": setting.n_samples,
        "standin": problem.standin,
        "ratio": theirs.seconds["total"] / ours.seconds["total"],
        "plain": judge(problem, theirs),
        "mcce": judge(problem, ours),
    }


def run_alone(problem: Problem, setting: Setting, method: str) -> dict[str, Any]:
    """Run one method once, for its memory (steps 2 and 3)."""
    if method == "mcce":  # read the kernels from disk before timing
        few = replace(problem, X=problem.X.iloc[:1000], factuals=problem.factuals.iloc[:10])
        run_mcce(few, replace(setting, n_samples=10))
    start = memory_mb("VmRSS")
    run = METHODS[method](problem, setting)
    return {
        "start_mb": start,
        "peak_mb": memory_mb("VmHWM"),
        "seconds": run.seconds,
        "explained": len(run.rows),
        "n_factuals": len(problem.factuals),
        "n_samples": setting.n_samples,
    }


def memory_mb(field: str) -> float:
    """Return this process's memory: "VmRSS" now, "VmHWM" the peak.

    Without /proc both are ru_maxrss, which is less reliable: on Linux a process inherits it from its parent, so a small
    worker of a large parent would show the parent's.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith(field))
        return int(line.split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def measure_scaling(quick: bool) -> dict[str, Any]:
    """Seconds against size, the faster of two runs each, and the slope of log seconds on log size.

    The data are the paper's simulation with 10 features; every factual has its own draws.
    """
    shrink, doublings = (50, 3) if quick else (1, 5)
    n_train, n_samples, n_factuals = 10_000 // shrink, 1000 // shrink, 250 // (shrink // 5 or 1)
    factors = [2**i for i in range(doublings)]

    def seconds_of(work: Callable[[], object]) -> float:
        times = []
        for _ in range(2):
            begun = time.perf_counter()
            work()
            times.append(time.perf_counter() - begun)
        return min(times)

    def explainer_of(problem: Problem) -> mcce.MCCE:
        return mcce.MCCE(problem.score, decision=problem.decision, random_state=1).fit(problem.X)

    largest = simulate(n_train * factors[-1], 10, n_factuals * factors[-1])
    fitted = explainer_of(simulate(n_train, 10, 1))
    few = largest.factuals.iloc[:n_factuals]
    fitted.explain(few, n_samples=10, independent=True)
    curves = {
        ("fit", "n_train"): {n_train * f: lambda f=f: explainer_of(simulate(n_train * f, 10, 1)) for f in factors},
        ("explain", "K"): {
            n_samples * f: lambda f=f: fitted.explain(few, n_samples=n_samples * f, independent=True) for f in factors
        },
        ("explain", "factuals"): {
            n_factuals * f: lambda f=f: fitted.explain(
                largest.factuals.iloc[: n_factuals * f], n_samples=n_samples, independent=True
            )
            for f in factors
        },
    }
    out = []
    for (step, by), work in curves.items():
        sizes, seconds = list(work), [seconds_of(w) for w in work.values()]
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        out.append({"step": step, "by": by, "sizes": sizes, "seconds": seconds, "exponent": slope})
    return {"curves": out}


def measure_first_call() -> dict[str, Any]:
    """Seconds of the first and of the second fit and explain in this process, on 500 loans."""
    loans = load_loans(500)

    def score(rows: pd.DataFrame) -> np.ndarray:
        return (rows["salary"] > 60_000).to_numpy().astype(float)

    def once() -> float:
        begun = time.perf_counter()
        explainer = mcce.MCCE(score, fixed=loans.fixed, random_state=1).fit(loans.X)
        explainer.explain(loans.X.iloc[:20], n_samples=100)
        return time.perf_counter() - begun

    return {"first": once(), "second": once()}


def work(name: str, method: str, *, quick: bool, folder: Path | None, cache: Path) -> dict[str, Any]:
    """Run the task of the worker NAME METHOD."""
    if name == "scaling":
        return measure_scaling(quick)
    if name == "compile":
        return measure_first_call()
    setting = next(s for s in [*SETTINGS, *MANY] if s.name == name)
    setting = setting.tiny() if quick else setting
    stored = cache / f"{setting.problem_name}.joblib"
    if stored.exists():
        problem = joblib.load(stored)
    else:
        problem = make_problem(setting, folder)
        unfinished = cache / f"{name}-{os.getpid()}"
        joblib.dump(problem, unfinished)
        unfinished.replace(stored)  # atomically: another worker may be reading it
    if method == "prepare":
        return {}
    return compare(problem, setting) if method == "both" else run_alone(problem, setting, method)
