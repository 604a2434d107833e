"""Sizes of the experiments from the command line, and progress messages."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.settings import ROOT

DATA = ("adult", "gmc", "fico", "german")
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Options:
    """Sizes of a run. None means as in the paper, or as in the docstring of the experiment."""

    folder: Path | None = None
    names: tuple[str, ...] = DATA
    factuals: int | None = None
    rows: int | None = None
    samples: int = 1000
    networks: int = 5
    repeats: int | None = None
    peers: tuple[str, ...] = ()
    peers_python: str = sys.executable
    peers_factuals: int = 20
    peers_limit: float = 20.0
    quick: bool = False
    out: Path = RESULTS
    command: str = "python -m benchmarks.paper"
    begun: float = field(default_factory=time.perf_counter)

    def n_factuals(self, name: str) -> int:
        """Factuals to explain: 1000, of German 200."""
        return self.factuals or (200 if name == "german" else 1000)

    def absent(self, names: Sequence[str]) -> list[str]:
        """Return the data sets without a file, which are replaced by simulated stand-ins."""
        return [name for name in names if not has_data(name, self.folder)]

    def write_line(self, text: str) -> None:
        """Print the next step to stderr."""
        print(f"[{time.perf_counter() - self.begun:6.1f} s] {text}", file=sys.stderr, flush=True)


def has_data(name: str, folder: Path | None) -> bool:
    """Return whether the folder has a data set."""
    return folder is not None and any((folder / f"{name}{ending}").is_file() for ending in (".csv.gz", ".csv"))


def peers_python() -> str:
    """Return the Python that has the peers: MCCE_PEERS_PYTHON, else this one."""
    return os.environ.get("MCCE_PEERS_PYTHON") or sys.executable
