"""Seconds of `import mcce`, compared with those of numpy, pandas and numba together.

    python -m benchmarks.imports [--runs N] [--out FILE]

1. Run each line of code below in N fresh processes, in turn, so that other load affects all lines equally.
2. Take the CPU seconds of each process, minus those of a process without imports.
3. Report the medians and their ratios to the first line. The target for `import mcce` is below 1.3.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path
from statistics import median

from benchmarks.settings import ROOT

RESULTS = ROOT / "benchmarks" / "results" / "imports.md"
NOTHING = "pass"
CODE = [
    "import numpy, pandas, numba",
    "import mcce",
    "from mcce import MCCE",
    "from mcce import *",
]
NOTES = """
`python -m benchmarks.imports`: median CPU seconds in fresh processes, with bytecode and all files cached, minus those
of a process without imports; and the ratio to the first line.
"""


def cpu_seconds(code: str) -> float:
    """Return the CPU seconds of a fresh process that runs some code."""
    script = f"{code}\nimport os; spent = os.times(); print(spent.user + spent.system)"
    here = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT, env=here
    )
    return float(done.stdout)


def measure(runs: int) -> dict[str, float]:
    """Return the median seconds of each line of code (steps 1 and 2)."""
    for code in CODE:
        cpu_seconds(code)  # the first run writes bytecode
    seconds: dict[str, list[float]] = {code: [] for code in [NOTHING, *CODE]}
    for _ in range(runs):
        for code in seconds:
            seconds[code].append(cpu_seconds(code))
    medians = {code: median(each) for code, each in seconds.items()}
    return {code: medians[code] - medians[NOTHING] for code in CODE}


def describe(seconds: dict[str, float]) -> str:
    """Return the table (step 3)."""
    base = seconds[CODE[0]]
    lines = [f"| `{code}` | {each:.2f} | {each / base:.2f} |" for code, each in seconds.items()]
    return "\n".join(["| code | seconds | ratio |", "|---|---|---|", *lines])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11, help="fresh processes for each line of code")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of the table")
    options = parser.parse_args(arguments)
    table = describe(measure(options.runs))
    print(table)
    where = f"{date.today()}, Python {platform.python_version()}, {platform.machine()}, {options.runs} runs each."
    options.out.write_text(f"# Importing\n{NOTES}\n{where}\n\n{table}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
