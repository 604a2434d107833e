"""Comparison of samplers: seconds, realism, and counterfactuals.

    python -m benchmarks.samplers [--data DIR] [--only adult,...] [--samplers cart,...] [--rows N] [--factuals N]
                                  [--limit S] [--quick] [--out FILE]
    python -m benchmarks.samplers --visit [...]

For each data set of the paper (categories not binarised, the paper's fixed features, a random `--rows` of its
rows) and the loans, and each sampler, or joint generator in place of a chain, in a separate process:

1. Fit a chain on all rows and draw one row given the fixed values of each: seconds of CPU for the fit and for 1000
   rows. A small chain is fitted first, so that compiling is excluded.
2. Realism: accuracy of the discriminator (`mcce.diagnostics`, five seeds), 0.5 the best.
   "new": the chain is fitted on one half of the rows and compared with the other, given its fixed values.
   "seen": the rows of step 1 against the rows the chain was fitted on. Below 0.5 it shows near-copies. S_pMSE, by a
   logistic regression on single columns: new rows as well; 2 at best.
3. Scores of the half that was held out (`benchmarks.scores`): log score of whole rows, skill from draws. What "auto"
   and "stack" gain over the best single sampler, and "auto" over cart, is reported below each data set.
4. Counterfactuals for factuals without the wanted decision, by `MCCE` with this sampler: L0, summed Gower
   distance, share that is valid when queried again, and number of explained factuals. The model is scikit-learn's
   histogram gradient boosting with its defaults, the same for all samplers.
   As in the paper, the factuals are rows that the chain was fitted on; their own values can be drawn for them.
   "new": the factuals in five parts, each explained by a chain fitted on all rows but these, as for a new customer,
   by the plain method and by the sparse one. "auto" chooses once, on all rows, for all parts. `--factuals 0` skips
   this step.

A sampler that fails, or needs longer than `--limit` seconds, is reported with the reason and its finished steps.

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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mcce
from benchmarks import report
from benchmarks.samplers_worker import GENERATORS, N_FACTUALS, VISIT, Result, work
from benchmarks.scores import AUTO, compare_rows
from benchmarks.settings import LOADERS, ROOT, find_data
from benchmarks.speed import describe_machine

DATA = [*LOADERS, "loans"]
SAMPLERS = ["cart", "ctree", "forest", "empirical", "boosting", "parametric", "norm", "gaussian", "pmm", "copula"]
SAMPLERS += ["vine", "mixture", "marginal", *GENERATORS, AUTO]


class Workers:
    """Starts the workers of one run of the benchmark."""

    def __init__(
        self,
        *,
        rows: int,
        limit: float,
        quick: bool,
        folder: Path | None,
        cache: Path,
        factuals: int = N_FACTUALS,
    ) -> None:
        self.arguments = ["--cache", str(cache), "--rows", str(rows), "--factuals", str(factuals)]
        self.arguments += ["--quick"] if quick else []
        self.arguments += ["--data", str(folder)] if folder else []
        self.limit = limit
        self.quick = quick

    def run(self, name: str, what: str) -> Result:
        """Return the output of the worker, with "failed" if it did not finish in time."""
        return self._run(name, what, self.limit)

    def _run(self, name: str, what: str, limit: float | None) -> Result:
        command = [sys.executable, "-m", "benchmarks.samplers", "--worker", name, what, *self.arguments]
        failed = error = None
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as caught:
            try:
                code = subprocess.run(command, cwd=ROOT, stdout=out, stderr=caught, timeout=limit).returncode
            except subprocess.TimeoutExpired:
                code, failed = 0, f"took longer than {limit:g} s"
            out.seek(0)
            caught.seek(0)
            lines, error = out.read().splitlines(), caught.read().strip()
        if code:
            failed = f"exit code {code}: {(error.splitlines() or ['no message'])[-1]}"
        result: Result = {}
        for line in lines:
            with contextlib.suppress(json.JSONDecodeError):  # a truncated line
                result |= json.loads(line)
        step = result.pop("next", "start")
        return {**result, "failed": f"{failed} (step: {step})"} if failed else result

    def data_set(self, name: str, whats: list[str]) -> Iterator[Result]:
        """Prepare a data set; yield it, then the result of each worker."""
        prepared = {"name": name, **self._run(name, "prepare", None)}
        yield prepared
        if "failed" in prepared:
            return
        # timings of tiny sizes are meaningless, so workers may run in parallel
        with ThreadPoolExecutor((os.cpu_count() or 1) if self.quick else 1) as pool:
            for what, found in zip(whats, pool.map(lambda what: self.run(name, what), whats)):
                yield {"sampler": what, **found}


def run_benchmark(names: list[str], whats: list[str], workers: Workers, write_line: Callable[[str], None]) -> Result:
    """Run the workers, and print each result when it is available."""
    results: Result = {"about": describe_machine(), "data": []}
    write_line(report.about(results["about"]))
    visit = whats == [VISIT]
    write_line("" if visit else report.samplers_head())
    for name in names:
        found = workers.data_set(name, whats)
        results["data"].append({**next(found), "visit" if visit else "samplers": []})
        one = results["data"][-1]
        write_line(report.data_set(one))
        for each in found:
            one["visit" if visit else "samplers"].append(each)
            write_line(report.visit(each) if visit else report.sampler(each))
        if not visit:
            one["auto"] = compare_rows(one["samplers"])
            write_line(report.choice(one["auto"]))
    write_line(report.visit_finding(results) if visit else report.SAMPLER_NOTES)
    return results


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark, or one of its workers."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.samplers", description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with adult.csv.gz, ...; else MCCE_DATA, else ../shared/data")
    parser.add_argument("--only", help=f"comma-separated, of: {', '.join(DATA)}")
    parser.add_argument(
        "--samplers",
        help=f"comma-separated names that mcce knows; without it {','.join(SAMPLERS)}. What a sampler does not model "
        "(levels, or numbers that are not positive, counts or shares) has parametric",
    )
    parser.add_argument("--rows", type=int, default=10_000, help="rows to take of each data set at most")
    parser.add_argument("--factuals", type=int, default=N_FACTUALS, help="factuals to explain; 0 to skip step 4")
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
        sizes = {"rows": chosen.rows, "quick": chosen.quick, "factuals": chosen.factuals}
        for found in work(name, what, folder=folder, cache=Path(chosen.cache), **sizes):
            print(json.dumps(found), flush=True)
        return 0
    names = _names(parser, "--only", chosen.only, DATA, DATA)
    known = [*sorted(mcce.available_samplers()), *GENERATORS, AUTO]
    samplers = _names(parser, "--samplers", chosen.samplers, SAMPLERS, known)
    with tempfile.TemporaryDirectory() as cache:
        sizes = {"rows": chosen.rows, "limit": chosen.limit, "quick": chosen.quick, "factuals": chosen.factuals}
        workers = Workers(**sizes, folder=folder, cache=Path(cache))
        if chosen.quick:
            print(report.QUICK)
        results = {
            "quick": chosen.quick,
            "settings": {"rows": chosen.rows, "factuals": chosen.factuals, "limit": chosen.limit},
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
