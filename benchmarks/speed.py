"""Speed of mcce beside the plain method.

    python -m benchmarks.speed [--data DIR] [--only NAME,...] [--quick] [--out FILE]

1. For each setting (`benchmarks.settings`) one process times both methods on the same problem: mcce once to
   warm up (kernels compiled or read from disk), then mcce twice, of which the faster counts, then the plain
   method once. The ratio is the plain method's total over that of mcce.
2. Two more processes run one method each, from the stored problem, for its peak memory.
3. Further: 10,000 and 100,000 factuals (seconds and memory), exponents of growth, first call and import.

Every process is a worker of this module (``--worker NAME METHOD``) that prints one line of JSON. Measures of
quality are computed here from the returned rows, in the same way for both methods.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import mcce
from benchmarks import plain, report
from benchmarks.settings import MANY, ROOT, SETTINGS, Problem, Setting, find_data, make_problem, simulate
from mcce.datasets import load_loans

EXTRAS = ["many", "scaling", "compile", "import"]
NAMES = [s.name for s in SETTINGS] + EXTRAS


# ---------------------------------------------------------------- one run of a method


@dataclass(frozen=True)
class Run:
    """Seconds by step and in all, the rows found as numbers, and how many rows the model was asked."""

    seconds: dict[str, float]
    rows: pd.DataFrame
    asked: int


class Counted:
    """A model that counts the rows it is asked about."""

    def __init__(self, score: Callable[[pd.DataFrame], np.ndarray]) -> None:
        self.score = score
        self.asked = 0

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        self.asked += len(rows)
        return self.score(rows)


def run_mcce(problem: Problem, setting: Setting) -> Run:
    """Run mcce as a user does."""
    model = Counted(problem.score)
    begun = time.perf_counter()
    explainer = mcce.MCCE(
        model, decision=problem.decision, fixed=problem.fixed, kinds=problem.kinds, random_state=1
    ).fit(problem.X)
    asked_by_fit = model.asked
    found = explainer.explain(problem.factuals, n_samples=setting.n_samples, independent=setting.independent)
    total = time.perf_counter() - begun
    return Run(
        {**found.timings, "total": total},
        problem.encode(found.frame.droplevel("rank")),
        model.asked - asked_by_fit,
    )


def run_plain(problem: Problem, setting: Setting) -> Run:
    """Run the plain method; categories that are not binarised are codes to it."""
    model = Counted(problem.score)
    rows, seconds = plain.explain(
        problem.encode(problem.X),
        problem.encode(problem.factuals),
        wanted=lambda codes: problem.decision.contains(model(problem.decode(codes))),
        fixed=problem.fixed,
        categorical=problem.categorical,
        n_samples=setting.n_samples,
    )
    return Run({**seconds, "total": sum(seconds.values())}, rows, model.asked - len(problem.X))


METHODS = {"plain": run_plain, "mcce": run_mcce}


def judge(problem: Problem, run: Run) -> dict[str, Any]:
    """Return what the rows are worth: mean L0 and summed Gower distance, changed fixed values, valid rows."""
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
        "asked_per_factual": run.asked / len(factuals),
    }


# ---------------------------------------------------------------- the workers


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
    if method == "mcce":  # read the kernels from disk before the clock starts
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

    Where there is no /proc both are ru_maxrss. It is second best: Linux hands it on from the process that
    starts another one, so a small worker of a large parent would show the parent's.
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
    """Do what the worker NAME METHOD is for."""
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
        unfinished.replace(stored)  # at once: another worker may be looking for it
    if method == "prepare":
        return {}
    return compare(problem, setting) if method == "both" else run_alone(problem, setting, method)


# ---------------------------------------------------------------- the parent


class Workers:
    """Starts the workers of one run of the benchmark."""

    def __init__(self, *, quick: bool, folder: Path | None, cache: Path) -> None:
        self.arguments = ["--cache", str(cache), *(["--quick"] if quick else [])]
        self.arguments += ["--data", str(folder)] if folder else []
        self.cache = cache
        self.quick = quick

    def run(self, name: str, method: str, **environment: str) -> dict[str, Any]:
        """Return what the worker printed, or {"failed": why}."""
        command = [sys.executable, "-m", "benchmarks.speed", "--worker", name, method, *self.arguments]
        return _last_line(command, environment)

    def setting(self, name: str, *, memory: bool = True) -> dict[str, Any]:
        """Step 1 and, for the memory, step 2 for one setting."""
        title = next(s.title for s in SETTINGS if s.name == name)
        result = self.run(name, "both")
        if "failed" not in result:
            for method in METHODS if memory else ():
                alone = self.run(name, method)
                if "failed" in alone:
                    return {"name": name, "title": title, **alone}
                result[method] |= {"start_mb": alone["start_mb"], "peak_mb": alone["peak_mb"]}
        return {"name": name, "title": title, **result}

    def many(self) -> list[dict[str, Any]]:
        """Many factuals, each number in a process of its own."""
        results = []
        for setting in MANY[2:] if self.quick else MANY:
            if not self.quick:  # so that building the problem does not count as memory
                self.run(setting.name, "prepare")
            alone = self.run(setting.name, "mcce")
            results.append({"name": setting.name, "independent": setting.independent, **alone})
        return results

    def first_call(self) -> dict[str, Any]:
        """First call with an empty cache of compiled kernels, then with the cache that this one filled."""
        kernels = str(self.cache / "kernels")
        fresh = self.run("compile", "mcce", NUMBA_CACHE_DIR=kernels)
        return {"fresh": fresh, "cached": self.run("compile", "mcce", NUMBA_CACHE_DIR=kernels)}

    def import_seconds(self) -> dict[str, Any]:
        """Seconds of ``import mcce``, the best of five processes."""
        code = "import time; begun = time.perf_counter(); import mcce; print(time.perf_counter() - begun)"
        return {"seconds": min(_last_line([sys.executable, "-c", code], {}) for _ in range(5))}


def _last_line(command: list[str], environment: dict[str, str]) -> Any:
    """Run a command and read the JSON on its last line; {"failed": why} if it failed."""
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"failed": f"exit code {done.returncode}: {last}"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def describe_machine() -> dict[str, Any]:
    """Return versions, cores, date."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = {name: version(name) for name in ("numpy", "pandas", "scikit-learn", "numba")}
    return {
        "date": date.today().isoformat(),
        "cores": cores,
        "machine": f"{platform.system()} {platform.machine()}",
        "versions": {"python": platform.python_version(), **packages, "mcce": mcce.__version__},
    }


def run_benchmark(names: list[str], workers: Workers, say: Callable[[str], None]) -> dict[str, Any]:
    """Run what is named, one worker at a time, and say each result when it is there."""
    results: dict[str, Any] = {"about": describe_machine(), "settings": []}
    say(report.about(results["about"]))
    sources = newest_source()
    extras = {
        "many": workers.many,
        "scaling": lambda: workers.run("scaling", "mcce"),
        "compile": workers.first_call,
        "import": workers.import_seconds,
    }
    # tiny sizes measure nothing, so their workers may disturb each other
    with ThreadPoolExecutor(os.cpu_count() if workers.quick else 1) as pool:
        chosen = [s.name for s in SETTINGS if s.name in names]
        settings = [
            pool.submit(workers.setting, name, memory=not workers.quick or name == chosen[0]) for name in chosen
        ]
        further = {name: pool.submit(extras[name]) for name in EXTRAS if name in names}
        say(report.head() if settings else "")
        for future in settings:
            results["settings"].append(future.result())
            say(report.setting(results["settings"][-1]))
        say(report.NOTES if settings else "")
        for name, future in further.items():
            results[name] = future.result()
            say(report.EXTRAS[name](results[name]))
    results["about"]["sources_changed"] = newest_source() != sources
    if results["about"]["sources_changed"]:
        say("mcce was edited during the run: kernels were compiled again, and the numbers mix two versions.")
    return results


def newest_source() -> float:
    """Return when a source file of mcce was last written."""
    return max(path.stat().st_mtime for path in (ROOT / "mcce").rglob("*.py"))


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark, or one of its workers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", help=f"comma-separated, of: {', '.join(NAMES)}")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="tiny sizes, to try the command; memory of the first setting only",
    )
    parser.add_argument("--out", help="write FILE.md and FILE.json (an ending of FILE is replaced)")
    parser.add_argument("--worker", nargs=2, metavar=("NAME", "METHOD"), help=argparse.SUPPRESS)
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    folder = find_data(chosen.data)
    if chosen.worker:
        print(json.dumps(work(*chosen.worker, quick=chosen.quick, folder=folder, cache=Path(chosen.cache))))
        return 0
    names = chosen.only.split(",") if chosen.only else NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        parser.error(f"--only names {', '.join(unknown)}; there are {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory() as cache:
        workers = Workers(quick=chosen.quick, folder=folder, cache=Path(cache))
        if chosen.quick:
            print("Tiny sizes (--quick): the numbers say nothing about speed.")
        results = {
            "quick": chosen.quick,
            **run_benchmark(names, workers, lambda text: print(text, flush=True)),
        }
    if chosen.out:
        out = Path(chosen.out)
        out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
        out.with_suffix(".md").write_text(report.markdown(results))
    return 1 if "failed" in json.dumps(results) else 0


if __name__ == "__main__":
    sys.exit(main())
