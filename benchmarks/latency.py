"""Latency of one sparse counterfactual from a fitted explainer, and the part of it spent in the model.

    python -m benchmarks.latency [--before FOLDER] [--rounds N] [--people N] [--out FILE]
    python -m benchmarks.latency --wide COLUMNS ROWS [--people N]

1. Loans, 1,500 rows, a pipeline of scikit-learn with a logistic regression. Some people are explained one at a time,
   sparse, after a warm-up. The CPU time is that of a call; that of the model is measured separately.
2. The same with a different constraint in every call.
3. With `--before`, an earlier version of the package in that folder is measured in turns with this one, each time in a
   process, so that other load affects both.
4. With `--wide`, the CPU time and peak memory of `fit` and of explaining some people together, on a simulated table;
   the time of finding relations and of learning plausibility and usual values is listed separately.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.page import Page
from benchmarks.settings import ROOT

HEAD = ["", "ms per call", "of the model", "other", "queries", "rows"]
CASES = ("no constraint", "a new constraint in every call")


class Timed:
    """A model that counts its queries, their rows and its CPU time."""

    def __init__(self, model: Callable[[Any], np.ndarray]) -> None:
        self.model = model
        self.questions, self.rows, self.seconds = 0, 0, 0.0

    def __call__(self, rows: Any) -> np.ndarray:
        begun = time.process_time()
        answer = self.model(rows)
        self.seconds += time.process_time() - begun
        self.questions += 1
        self.rows += len(rows)
        return answer


def measure(people: int) -> dict[str, list[float]]:
    """Explain some people one at a time; return the figures of each case (steps 1 and 2)."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    import mcce

    loans = mcce.datasets.load_loans(1500)
    numbers = StandardScaler(), make_column_selector(dtype_include="number")
    encoder = make_column_transformer(numbers, remainder=OneHotEncoder(handle_unknown="ignore"))
    pipeline = make_pipeline(encoder, LogisticRegression(max_iter=1000)).fit(loans.X, loans.y)
    model = Timed(lambda rows: pipeline.predict_proba(rows)[:, 1])
    refused = loans.X[model(loans.X) >= 0.1].head(people)
    explainer = mcce.MCCE(model, decision=(0.0, 0.1), fixed=["age", "sex", "defaulted_last_year"], n_jobs=1).fit(
        loans.X
    )
    found = {}
    for case in CASES:
        for i in [*range(3), *range(people)]:
            if i == 0:
                model.questions, model.rows, model.seconds = 0, 0, 0.0
                begun = time.process_time()
            high = 80_000.0 + 500.0 * i
            constraints = [] if case == CASES[0] else [mcce.allow("salary", high=high)]
            explainer.explain(refused.iloc[[i]], sparse=True, constraints=constraints, progress=False)
        seconds = time.process_time() - begun
        beside = seconds - model.seconds
        found[case] = [1e3 * seconds, 1e3 * model.seconds, 1e3 * beside, model.questions, model.rows]
        found[case] = [figure / people for figure in found[case]]
    return found


def simulate_wide(columns: int, rows: int) -> pd.DataFrame:
    """Return columns that of eight factors and noise: 70 per cent numbers, half of them skewed, and levels."""
    rng = np.random.default_rng(1)
    factors, n_numbers = rng.normal(size=(rows, 8)), columns * 7 // 10
    latent = factors @ rng.normal(size=(8, columns)) + rng.normal(size=(rows, columns))
    latent[:, 1:n_numbers:2] = 100.0 * np.exp(latent[:, 1:n_numbers:2] / 3.0)
    return pd.DataFrame(
        {f"x{j}": latent[:, j].round(3) for j in range(n_numbers)}
        | {f"c{j}": pd.qcut(latent[:, j], 5, labels=list("abcde")) for j in range(n_numbers, columns)}
    )


def measure_wide(columns: int, rows: int, people: int) -> None:
    """Print the CPU time and the peak memory of each step on a simulated table (step 4)."""
    import resource  # not on Windows

    import mcce.explainer
    from mcce.explain.learned import LearnedParts

    parts: dict[str, float] = {}
    time_part(mcce.explainer, "find_in", "relations", parts)
    time_part(LearnedParts, "learn_caution", "plausibility", parts)
    time_part(LearnedParts, "learn_usual", "usual values", parts)
    table = simulate_wide(columns, rows)
    used = [f"x{j}" for j in range(0, 20, 2)]
    center, scale = table[used].mean(), table[used].std()
    model = Timed(lambda asked: 1.0 / (1.0 + np.exp(-((asked[used] - center) / scale).sum(axis=1).to_numpy())))
    refused = table[model(table) < 0.5].head(people)
    explainer = mcce.MCCE(model, decision=(0.5, 1.0), n_jobs=1, random_state=1)
    steps: dict[str, Callable[[], object]] = {"fit": partial(explainer.fit, table)}
    for name, sparse in (("plain", False), ("sparse", True), ("sparse, again", True)):
        steps[name] = partial(explainer.explain, refused, sparse=sparse, progress=False)
    for name, step in steps.items():
        begun, before = time.process_time(), model.seconds
        parts.clear()
        step()
        seconds, peak = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        shown = "".join(f", {part} {spent:.1f} s" for part, spent in parts.items() if spent >= 0.05)
        print(
            f"{name}: {seconds:.1f} s, of the model {model.seconds - before:.1f} s{shown}, peak {peak:.2f} GB",
            flush=True,
        )


def time_part(owner: Any, name: str, part: str, seconds: dict[str, float]) -> None:
    """Add the CPU time of a function of a module or class to the seconds of a part."""
    function = getattr(owner, name)

    @wraps(function)
    def timed(*arguments: Any, **options: Any) -> Any:
        begun = time.process_time()
        answer = function(*arguments, **options)
        seconds[part] = seconds.get(part, 0.0) + time.process_time() - begun
        return answer

    setattr(owner, name, timed)


def measure_apart(package: Path, people: int) -> dict[str, list[float]]:
    """Measure in a separate process that imports the package from a folder."""
    command = [sys.executable, __file__, "--people", str(people), "--measure"]
    path = os.pathsep.join([str(package), str(ROOT)])
    done = subprocess.run(
        command, cwd=package, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True
    )
    result: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of an earlier version, measured in turns with this one")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each (%(default)s); their minimum is shown")
    parser.add_argument("--people", type=int, default=20, help="number of people to explain (%(default)s)")
    parser.add_argument("--wide", nargs=2, type=int, metavar=("COLUMNS", "ROWS"), help="measure a simulated table")
    parser.add_argument("--out", type=Path, help="write FILE.md")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.wide:
        measure_wide(chosen.wide[0], chosen.wide[1], chosen.people)
        return 0
    if chosen.measure:
        print(json.dumps(measure(chosen.people)))
        return 0
    packages = {"before": chosen.before} if chosen.before else {}
    packages["now"] = ROOT
    runs = [{name: measure_apart(path, chosen.people) for name, path in packages.items()} for _ in range(chosen.rounds)]
    page = Page("Latency of one counterfactual")
    page.write_line(
        f"CPU time, the minimum of {chosen.rounds} process(es) in turns, {chosen.people} people one at a time, sparse."
    )
    rows = []
    for case in CASES:
        for name in packages:
            best = np.min([run[name][case] for run in runs], axis=0)
            rows.append([f"{name}, {case}", *(f"{figure:.1f}" for figure in best)])
    page.table(HEAD, rows)
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
