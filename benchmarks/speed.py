"""Speed of mcce compared with the plain method.

    python -m benchmarks.speed [--data DIR] [--only NAME,...] [--quick] [--out FILE]

1. For each setting (`benchmarks.settings`) one process times both methods on the same problem: mcce once to
   warm up (kernels compiled or read from disk), then mcce twice, of which the faster is reported, then the plain
   method once. The ratio is the plain method's total over that of mcce.
2. Two more processes run one method each, from the stored problem, for its peak memory.
3. Further: 10,000 and 100,000 factuals (seconds and memory), exponents of growth, first call and import.

Every process is a worker (``--worker NAME METHOD``, `benchmarks.speed_worker`) that prints one line of JSON. Measures
of quality are computed from the returned rows, in the same way for both methods.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mcce
from benchmarks import report
from benchmarks.settings import MANY, ROOT, SETTINGS, find_data
from benchmarks.speed_worker import METHODS, work

EXTRAS = ["many", "scaling", "compile", "import"]
NAMES = [s.name for s in SETTINGS] + EXTRAS


class Workers:
    """Starts the workers of one run of the benchmark."""

    def __init__(self, *, quick: bool, folder: Path | None, cache: Path) -> None:
        self.arguments = ["--cache", str(cache), *(["--quick"] if quick else [])]
        self.arguments += ["--data", str(folder)] if folder else []
        self.cache = cache
        self.quick = quick

    def run(self, name: str, method: str, **environment: str) -> dict[str, Any]:
        """Return the output of the worker, or {"failed": why}."""
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
        """Measure many factuals, each number in a separate process."""
        results = []
        for setting in MANY[2:] if self.quick else MANY:
            if not self.quick:  # so that memory excludes building the problem
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


def run_benchmark(names: list[str], workers: Workers, write_line: Callable[[str], None]) -> dict[str, Any]:
    """Run the named settings, one worker at a time, and print each result when it is available."""
    results: dict[str, Any] = {"about": describe_machine(), "settings": []}
    write_line(report.about(results["about"]))
    sources = newest_source()
    extras = {
        "many": workers.many,
        "scaling": lambda: workers.run("scaling", "mcce"),
        "compile": workers.first_call,
        "import": workers.import_seconds,
    }
    # timings of tiny sizes are meaningless, so workers may run in parallel
    with ThreadPoolExecutor(os.cpu_count() if workers.quick else 1) as pool:
        chosen = [s.name for s in SETTINGS if s.name in names]
        settings = [
            pool.submit(workers.setting, name, memory=not workers.quick or name == chosen[0]) for name in chosen
        ]
        further = {name: pool.submit(extras[name]) for name in EXTRAS if name in names}
        write_line(report.head() if settings else "")
        for future in settings:
            results["settings"].append(future.result())
            write_line(report.setting(results["settings"][-1]))
        write_line(report.NOTES if settings else "")
        for name, future in further.items():
            results[name] = future.result()
            write_line(report.EXTRAS[name](results[name]))
    results["about"]["sources_changed"] = newest_source() != sources
    if results["about"]["sources_changed"]:
        write_line("mcce was edited during the run: kernels were compiled again, and the numbers mix two versions.")
    return results


def newest_source() -> float:
    """Return the time of the last change of a source file of mcce."""
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
            print("Tiny sizes (--quick): the numbers are not a measure of speed.")
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
