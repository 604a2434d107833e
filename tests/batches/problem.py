"""The rows and the explainer shared by the tests of batches, and the comparison of folders."""

from __future__ import annotations

import functools
from pathlib import Path

import pandas as pd

from mcce import MCCE
from tests.explainer.problem import fitted, mixed_table

ROWS = mixed_table(120, seed=3).reset_index(names="who")
SETTINGS = {"id": "who", "batch_size": 16, "n_samples": 40}


@functools.cache
def explainer() -> MCCE:
    return fitted(n_jobs=1)


def written(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder with its contents."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    return tuple(pd.read_parquet(folder / name) for name in ("counterfactuals", "unexplained"))
