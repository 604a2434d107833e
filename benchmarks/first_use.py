"""CPU seconds of the first use: README's lines and `mcce demo` with an empty cache of compiled kernels.

    python -m benchmarks.first_use [--other PYTHON] [--rounds N] [--quick]

1. The first lines of README that fit an explainer are run in a new process, whose NUMBA_CACHE_DIR is an empty folder,
   and again with the cache that this filled. `statements` is their time without imports, `compiling` that of numba's
   compiler in it, `kernels` the number of compiled functions. Another version has its own README.
2. `mcce demo` in the same two ways, as a whole process. The least of the rounds counts.
"""

from __future__ import annotations

import ast
import doctest
import gc
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.settings import Report, arguments, emit, interpreters, run_worker


def examples() -> list[str]:
    """Return the statements of the first block of the package's README that fits an explainer."""
    import mcce

    text = (Path(mcce.__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    block = next(block for block in text.split("```")[1::2] if "mcce.MCCE(" in block).removeprefix("python\n")
    if ">>>" in block:
        return [example.source for example in doctest.DocTestParser().get_examples(block)]
    return [ast.get_source_segment(block, statement) or "" for statement in ast.parse(block).body]


def measure_readme(statements: list[str]) -> None:
    """Run statements; emit their seconds apart from imports, those of compiling, and the number of kernels."""
    from numba.core import event
    from numba.core.dispatcher import Dispatcher

    begun: list[float] = []
    seconds = {"statements": 0.0, "compiling": 0.0}

    class Compiling(event.Listener):
        def on_start(self, _: Any) -> None:
            begun.append(time.process_time())

        def on_end(self, _: Any) -> None:
            since = begun.pop()
            if not begun:  # a called kernel is compiled within the compilation of its caller
                seconds["compiling"] += time.process_time() - since

    event.register("numba:compile", Compiling())
    names: dict[str, Any] = {}
    for statement in statements:
        before = time.process_time()
        exec(statement, names)
        if not statement.startswith(("import ", "from ")):
            seconds["statements"] += time.process_time() - before
    kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher) and each.stats.cache_misses]
    emit(**seconds, kernels=len(kernels))


def measure_demo(python: str, cache: str) -> float:
    """Return the CPU seconds of `mcce demo` in a folder of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PATH": "/usr/bin:/bin"}
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "mcce", "demo"]
        subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run the benchmark, or one of its workers."""
    parser = arguments(__doc__, "first_use")
    parser.add_argument("--other", help="interpreter with another version of mcce")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", action="store_true", help="(internal)")
    options = parser.parse_args()
    if options.worker:
        measure_readme(examples())
        return
    report = Report("first_use", options)
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for _ in range(1 if options.quick else options.rounds):
        for version, python in interpreters(options.other).items():
            for what in ("README", "demo"):
                with tempfile.TemporaryDirectory() as cache:
                    for state in ("cold", "warm"):
                        if what == "README":
                            (figures,) = run_worker(python, "benchmarks.first_use", ["--worker"], NUMBA_CACHE_DIR=cache)
                        else:
                            figures = {"statements": measure_demo(python, cache)}
                        runs.setdefault((version, what, state), []).append(figures)
    columns = ["statements", "compiling", "kernels"]
    for (version, what, state), figures in runs.items():
        best = min(figures, key=lambda one: one["statements"])
        report.add(version=version, what=what, cache=state, **{name: best.get(name, "") for name in columns})
    report.write()


if __name__ == "__main__":
    main()
