"""How long README's ten lines take on a machine that has not compiled any kernel yet.

    python -m benchmarks.first_use [--before FOLDER] [--wheel FILE] [--rounds N] [--out FILE]

1. The examples of README's section "Ten lines" are run in a new process with an empty folder of compiled kernels. The
   CPU time is that of its statements; the time of compiling is taken from numba's events.
2. With `--before`, the package in that folder is measured in turns with this one, on the same examples.
3. With `--wheel`, a wheel with compiled kernels is installed and measured too. `HATCH_BUILD_HOOKS_ENABLE=true python -m
   hatchling build -t wheel` builds it.
"""

from __future__ import annotations

import argparse
import doctest
import gc
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.page import Page
from benchmarks.settings import ROOT

STATEMENTS = {
    "explainer = ": "fit",
    "found = explainer.explain": "explain, sparse",
    "print(explainer": "explain, plain",
}
OTHERS = "imports, model and plot"


def measure() -> dict[str, Any]:
    """Run the examples; return the seconds by statement, those of compiling, and the signatures of each kernel."""
    from numba.core import event
    from numba.core.dispatcher import Dispatcher

    seconds = dict.fromkeys([*STATEMENTS.values(), OTHERS, "compiling"], 0.0)
    begun: list[float] = []

    class Compiling(event.Listener):  # type: ignore[misc]  # numba is not typed
        def on_start(self, _: event.Event) -> None:
            begun.append(time.process_time())

        def on_end(self, _: event.Event) -> None:
            since = begun.pop()
            if not begun:  # a called kernel is compiled within the compilation of its caller
                seconds["compiling"] += time.process_time() - since

    event.register("numba:compile", Compiling())
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Ten lines of Python\n")[1].split("\n```\n")[0]
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(text):
        statement = next((name for start, name in STATEMENTS.items() if example.source.startswith(start)), OTHERS)
        before = time.process_time()
        exec(example.source, names)
        seconds[statement] += time.process_time() - before
    called = [each for each in gc.get_objects() if isinstance(each, Dispatcher) and each.overloads]
    ours = [each for each in called if each.py_func.__module__.startswith("mcce.")]
    entries = [each for each in ours if not each.targetoptions.get("no_cpython_wrapper")]
    return {
        "seconds": seconds,
        "signatures": {each.py_func.__name__: len(each.overloads) for each in entries},
        "compiled": sorted(each.py_func.__name__ for each in entries if each.stats.cache_misses),
    }


def measure_apart(package: Path = ROOT, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Measure in a new process that imports the package from a folder."""
    path = os.pathsep.join([str(package), str(ROOT)])
    done = subprocess.run(
        [sys.executable, __file__, "--measure"],
        cwd=package,
        env={**os.environ, "MPLBACKEND": "agg", **(environment or {}), "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure_cold(package: Path) -> dict[str, Any]:
    """Measure with an empty folder of compiled kernels."""
    with TemporaryDirectory() as folder:
        return measure_apart(package, {"NUMBA_CACHE_DIR": folder})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_use", description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of an earlier version, measured in turns with this one")
    parser.add_argument("--wheel", type=Path, help="wheel of this version, measured in turns as installed")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each (%(default)s); their minimum is shown")
    parser.add_argument("--out", type=Path, help="write FILE.md")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        print(json.dumps(measure()))
        return 0
    packages = {"before": chosen.before} if chosen.before else {}
    packages["now"] = ROOT
    with TemporaryDirectory() as folder:
        if chosen.wheel:
            zipfile.ZipFile(chosen.wheel).extractall(folder)
            packages["wheel"] = Path(folder)
        runs = [{name: measure_cold(path) for name, path in packages.items()} for _ in range(chosen.rounds)]
    page = Page("First use")
    page.write_line(
        f"README's ten lines without compiled kernels: minimum CPU seconds of {chosen.rounds} process(es) in turns."
    )
    parts = [*STATEMENTS.values(), OTHERS, "compiling"]
    rows = []
    for name in packages:
        best = np.min([[run[name]["seconds"][part] for part in parts] for run in runs], axis=0)
        total = min(sum(run[name]["seconds"][part] for part in parts[:-1]) for run in runs)
        kernels = [str(len(runs[0][name][each])) for each in ("signatures", "compiled")]
        rows.append([name, *(f"{figure:.1f}" for figure in [*best, total]), *kernels])
    page.table(["", *parts, "all", "kernels", "compiled"], rows)
    if chosen.out:
        page.write(chosen.out.with_suffix(".md"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
