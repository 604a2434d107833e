"""The samplers beside each other: seconds, realism, and what becomes of the counterfactuals.

    python -m benchmarks.samplers [--data DIR] [--only adult,...] [--samplers cart,...] [--rows N] [--limit S]
                                  [--quick] [--out FILE]
    python -m benchmarks.samplers --visit [...]

For each data set of the paper (categories not binarised, the paper's fixed features, a random `--rows` of its
rows) and the loans, and each sampler, in a process of its own:

1. Fit a chain on all rows and draw one row given the fixed values of each: seconds for the fit and for 1000
   rows. A small chain goes first, so that compiling does not count.
2. Realism: accuracy of the discriminator (`mcce.diagnostics`, five seeds), 0.5 the best.
   "new": the chain is fitted on one half of the rows and compared with the other, given its fixed values.
   "seen": the rows of step 1 against the rows the chain was fitted on. Below 0.5 it shows near-copies.
3. Scores of the half that was held out (`benchmarks.scores`): log score of whole rows, skill from draws. What "auto"
   gains over the best single sampler and over cart is told below each data set.
4. Counterfactuals for factuals without the wanted decision, by `MCCE` with this sampler: L0, summed Gower
   distance, share that is valid when asked again, and how many factuals got one. The model is scikit-learn's
   histogram gradient boosting with its defaults, the same for all samplers.
   As in the paper, the factuals are rows that the chain was fitted on, whose own values can come back to them.
   "new": the factuals in five parts, each explained by a chain fitted on all rows but these, as a new customer is;
   by the plain method and by the sparse one. "auto" chooses once, on all rows, for all parts.

A sampler that fails, or needs longer than `--limit` seconds, is reported with the reason and with what it had
finished by then.

`--visit` compares the visit sequences "data" and "correlation" instead, for trees: accuracy of the
discriminator against new rows, with five seeds for the draws, splits and forests, the same for both.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import mcce
from benchmarks import report
from benchmarks.scores import AUTO, compare_rows, held_out_scores
from benchmarks.settings import LOADERS, ROOT, Problem, Setting, find_data, make_problem
from benchmarks.speed import describe_machine
from mcce.diagnostics import Discriminator, discriminator

Result = dict[str, Any]

DATA = [*LOADERS, "loans"]
SAMPLERS = ["cart", "ctree", "forest", "empirical", "boosting", "parametric", "norm", "gaussian", "pmm", "copula"]
SAMPLERS += ["marginal", AUTO]
NUMERIC_ONLY = ("norm", "gaussian", "normrank", "pmm")  # the other features of such a chain are "parametric"
VISIT = "visit"
N_FACTUALS, N_SAMPLES, N_SEEDS, N_TREES = 200, 1000, 5, 100
N_PARTS = 5  # of the factuals, each left out once


# ---------------------------------------------------------------- the workers


def make_setting(name: str, rows: int, quick: bool) -> Setting:
    """Return the data set in its native form, with a model that trains in seconds."""
    if quick:
        return Setting(name, name, name, "boosting", 20, 50, binarised=False, n_train=min(rows, 300))
    return Setting(name, name, name, "boosting", N_FACTUALS, N_SAMPLES, binarised=False, n_train=rows)


def chain_samplers(sampler: Any, X: pd.DataFrame) -> Any:
    """Return what to hand to a chain over `X`: some samplers model numbers only."""
    if not isinstance(sampler, str) or sampler not in NUMERIC_ONLY:
        return sampler
    kinds = mcce.Schema.from_data(X).kinds
    return {**{c: sampler for c, kind in kinds.items() if kind == "numeric"}, "*": "parametric"}


def make_chain(sampler: Any, problem: Problem, X: pd.DataFrame, **more: Any) -> mcce.ChainModel:
    """Fit a chain with the problem's fixed features on the rows `X`."""
    chosen = chain_samplers(sampler, X.drop(columns=problem.fixed))
    return mcce.ChainModel(sampler=chosen, fixed=problem.fixed, random_state=1, **more).fit(X)


def halves(X: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows at random in two halves."""
    order = np.random.default_rng(1).permutation(len(X))
    return X.iloc[order[: len(X) // 2]], X.iloc[order[len(X) // 2 :]]


def measure(problem: Problem, setting: Setting, sampler: str, seeds: int, trees: int) -> Iterator[Result]:
    """Yield what is found about one sampler, step by step, each with the name of the next step."""

    def tell(real: pd.DataFrame, generated: pd.DataFrame) -> Result:
        return _figures(discriminator(real, generated, paired=True, n_seeds=seeds, n_trees=trees))

    X, fixed = problem.X, problem.fixed
    yield {"next": "warming up"}
    with contextlib.suppress(mcce.MCCEError):  # too few rows for this sampler; if it always fails, step 1 says so
        small: Any = mcce.Auto(folds=2, max_rows=100) if sampler == AUTO else sampler
        make_chain(small, problem, X.iloc[:200]).sample(given=X[fixed].iloc[:10])
    yield {"next": "fit"}
    begun = time.perf_counter()
    chain = make_chain(sampler, problem, X)
    yield {"fit": time.perf_counter() - begun, "next": "draw"}
    begun = time.perf_counter()
    generated = chain.sample(given=X[fixed])
    yield {"draw": (time.perf_counter() - begun) / len(X) * 1000, "next": "discriminator, seen rows"}
    yield {"seen": tell(X, generated), "next": "discriminator, new rows"}
    first, second = halves(X)
    halved = make_chain(sampler, problem, first)
    yield {"new": tell(second, halved.sample(given=second[fixed])), "next": "scores"}
    yield {**held_out_scores(halved, first, second), "next": "counterfactuals"}
    chosen = None if chain.choice_ is None else chain.choice_.table["sampler"].to_dict()
    yield {"chosen": chosen} if chosen else {}
    yield explain(problem, setting, chosen or chain.sampler)


def explain(problem: Problem, setting: Setting, sampler: Any) -> Result:
    """Explain the factuals with this sampler, as rows that the chain has seen and as new ones; judge what was found."""

    def explainer(training: pd.DataFrame) -> mcce.MCCE:
        return mcce.MCCE(
            problem.score, decision=problem.decision, fixed=problem.fixed, sampler=sampler, random_state=1
        ).fit(training)

    found = explainer(problem.X).explain(problem.factuals, n_samples=setting.n_samples)
    valid = problem.decision.contains(problem.score(found.frame)) if len(found) else np.zeros(0)
    parts = [problem.factuals.iloc[k::N_PARTS] for k in range(min(N_PARTS, len(problem.factuals)))]
    without = [explainer(problem.X.drop(index=part.index)) for part in parts]
    as_new, sparse = (
        pd.concat(
            each.explain(part, n_samples=setting.n_samples, sparse=is_sparse).measures
            for each, part in zip(without, parts)
        )
        for is_sparse in (False, True)
    )
    both = [each.droplevel("rank") for each in (as_new, found.measures)]
    apart = (both[0]["L0"] - both[1]["L0"]).dropna()
    rise = [float(apart.mean()), float(apart.std() / np.sqrt(len(apart)))] if len(apart) > 1 else None
    return {
        "L0_new": float(as_new["L0"].mean()) if len(as_new) else None,
        "gower_sum_new": float(as_new["gower_sum"].mean()) if len(as_new) else None,
        "explained_new": len(as_new),
        "L0_sparse": float(sparse["L0"].mean()) if len(sparse) else None,
        "gower_sum_sparse": float(sparse["gower_sum"].mean()) if len(sparse) else None,
        "explained_sparse": len(sparse),
        "L0_rise": rise,
        "seconds": dict(found.timings),
        "L0": float(found.measures["L0"].mean()) if len(found) else None,
        "gower_sum": float(found.measures["gower_sum"].mean()) if len(found) else None,
        "success": float(valid.mean()) if len(found) else None,
        "explained": len(found),
    }


def compare_visits(problem: Problem, seeds: int, trees: int) -> Iterator[Result]:
    """Yield the orders, then the accuracies by seed of both visit sequences."""
    first, second = halves(problem.X)
    for visit in ("data", "correlation"):
        yield {"next": f"visit sequence {visit}"}
        chain = make_chain("cart", problem, first, visit_sequence=visit)
        accuracies = []
        for seed in range(seeds):
            drawn = chain.sample(given=second[problem.fixed], random_state=seed)
            told = discriminator(second, drawn, paired=True, n_seeds=1, n_trees=trees, random_state=seed)
            accuracies.append(told.accuracy)
        yield {visit: {"order": list(chain.visit_sequence_), "accuracies": accuracies}}


def describe(problem: Problem, seeds: int, trees: int) -> Result:
    """Return the sizes, and what the discriminator says of two halves of the real rows."""
    first, second = halves(problem.X)
    return {
        "n_rows": len(problem.X),
        "n_features": problem.X.shape[1],
        "n_factuals": len(problem.factuals),
        "standin": problem.standin,
        "real": _figures(discriminator(first, second, n_seeds=seeds, n_trees=trees)),
    }


def _figures(told: Discriminator) -> Result:
    return {
        "accuracy": told.accuracy,
        "sd": told.sd,
        "accuracies": list(told.accuracies),
        **{name: told.settings[name] for name in ("n_rows", "n_test", "n_trees", "min_leaf", "test_size")},
    }


def work(name: str, what: str, *, rows: int, quick: bool, folder: Path | None, cache: Path) -> Iterator[Result]:
    """Do what the worker NAME WHAT is for: "prepare", "visit" or a sampler."""
    setting = make_setting(name, rows, quick)
    seeds, trees = (2, 10) if quick else (N_SEEDS, N_TREES)
    stored = cache / f"{name}.joblib"
    if what == "prepare":
        problem = make_problem(setting, folder)
        joblib.dump(problem, stored)
        yield describe(problem, seeds, trees)
        return
    problem = joblib.load(stored)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", mcce.exceptions.MCCEWarning)
        if what == VISIT:
            yield from compare_visits(problem, N_SEEDS if not quick else seeds, trees)
        else:
            yield from measure(problem, setting, what, seeds, trees)
    yield {"warnings": sorted({str(w.message).splitlines()[0] for w in heard})}


# ---------------------------------------------------------------- the parent


class Workers:
    """Starts the workers of one run of the benchmark."""

    def __init__(self, *, rows: int, limit: float, quick: bool, folder: Path | None, cache: Path) -> None:
        self.arguments = ["--cache", str(cache), "--rows", str(rows), *(["--quick"] if quick else [])]
        self.arguments += ["--data", str(folder)] if folder else []
        self.limit = limit
        self.quick = quick

    def run(self, name: str, what: str) -> Result:
        """Return what the worker printed, with "failed" if it did not come to its end in time."""
        return self._run(name, what, self.limit)

    def _run(self, name: str, what: str, limit: float | None) -> Result:
        command = [sys.executable, "-m", "benchmarks.samplers", "--worker", name, what, *self.arguments]
        failed = error = None
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as told:
            try:
                code = subprocess.run(command, cwd=ROOT, stdout=out, stderr=told, timeout=limit).returncode
            except subprocess.TimeoutExpired:
                code, failed = 0, f"took longer than {limit:g} s"
            out.seek(0)
            told.seek(0)
            lines, error = out.read().splitlines(), told.read().strip()
        if code:
            failed = f"exit code {code}: {(error.splitlines() or ['no message'])[-1]}"
        result: Result = {}
        for line in lines:
            with contextlib.suppress(json.JSONDecodeError):  # a line that was cut off
                result |= json.loads(line)
        step = result.pop("next", "start")
        return {**result, "failed": f"{failed} (step: {step})"} if failed else result

    def data_set(self, name: str, whats: list[str]) -> Iterator[Result]:
        """Prepare a data set; then yield it, and what each worker found on it."""
        prepared = {"name": name, **self._run(name, "prepare", None)}
        yield prepared
        if "failed" in prepared:
            return
        # tiny sizes measure nothing, so their workers may disturb each other
        with ThreadPoolExecutor((os.cpu_count() or 1) if self.quick else 1) as pool:
            for what, found in zip(whats, pool.map(lambda what: self.run(name, what), whats)):
                yield {"sampler": what, **found}


def run_benchmark(names: list[str], whats: list[str], workers: Workers, say: Callable[[str], None]) -> Result:
    """Run the workers, and say each result when it is there."""
    results: Result = {"about": describe_machine(), "data": []}
    say(report.about(results["about"]))
    visit = whats == [VISIT]
    say("" if visit else report.samplers_head())
    for name in names:
        found = workers.data_set(name, whats)
        results["data"].append({**next(found), "visit" if visit else "samplers": []})
        one = results["data"][-1]
        say(report.data_set(one))
        for each in found:
            one["visit" if visit else "samplers"].append(each)
            say(report.visit(each) if visit else report.sampler(each))
        if not visit:
            one["auto"] = compare_rows(one["samplers"])
            say(report.choice(one["auto"]))
    say(report.visit_finding(results) if visit else report.SAMPLER_NOTES)
    return results


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark, or one of its workers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.samplers", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", help=f"comma-separated, of: {', '.join(DATA)}")
    parser.add_argument(
        "--samplers",
        help=f"comma-separated names that mcce knows; without it {','.join(SAMPLERS)}. "
        f"{', '.join(NUMERIC_ONLY)}: for numbers, with parametric for the rest",
    )
    parser.add_argument("--rows", type=int, default=10_000, help="rows to take of each data set at most")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds that a sampler may take on a data set")
    parser.add_argument("--visit", action="store_true", help="compare the visit sequences instead, for trees")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the command")
    parser.add_argument("--out", help="write FILE.md and FILE.json (an ending of FILE is replaced)")
    parser.add_argument("--worker", nargs=2, metavar=("NAME", "WHAT"), help=argparse.SUPPRESS)
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    folder = find_data(chosen.data)
    if chosen.worker:
        name, what = chosen.worker
        sizes = {"rows": chosen.rows, "quick": chosen.quick}
        for found in work(name, what, folder=folder, cache=Path(chosen.cache), **sizes):
            print(json.dumps(found), flush=True)
        return 0
    names = _names(parser, "--only", chosen.only, DATA, DATA)
    samplers = _names(parser, "--samplers", chosen.samplers, SAMPLERS, [*sorted(mcce.available_samplers()), AUTO])
    with tempfile.TemporaryDirectory() as cache:
        workers = Workers(rows=chosen.rows, limit=chosen.limit, quick=chosen.quick, folder=folder, cache=Path(cache))
        if chosen.quick:
            print(report.QUICK)
        results = {
            "quick": chosen.quick,
            "settings": {"rows": chosen.rows, "limit": chosen.limit},
            **run_benchmark(
                names, [VISIT] if chosen.visit else samplers, workers, lambda text: print(text, flush=True)
            ),
        }
    if chosen.out:
        out = Path(chosen.out)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
        out.with_suffix(".md").write_text(report.samplers_markdown(results))
    return 1 if '"failed"' in json.dumps(results) else 0


def _names(
    parser: argparse.ArgumentParser, option: str, given: str | None, default: list[str], known: list[str]
) -> list[str]:
    names = given.split(",") if given else default
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"{option} names {', '.join(unknown)}; there are {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
