"""Reading the tables written by R (tests/fixtures/parity): every number is the same double."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parents[1] / "fixtures" / "parity"


def cases_of(engine: str = "") -> list[str]:
    """Return the names of the runs of mcceR, all or those of one engine."""
    return sorted(path.stem for path in (FOLDER / "cases").glob(f"*{engine}.zip"))


def read_meta(case: str) -> dict[str, Any]:
    """Return the settings of a run."""
    with zipfile.ZipFile(FOLDER / "cases" / f"{case}.zip") as stored:
        return json.loads(stored.read("meta.json"))


def has_table(case: str, table: str) -> bool:
    """Return whether a run has a table."""
    with zipfile.ZipFile(FOLDER / "cases" / f"{case}.zip") as stored:
        return f"{table}.csv" in stored.namelist()


def read_table(case: str, table: str, text: Collection[str] = ()) -> pd.DataFrame:
    """Read a table of a run, or of `rng`; columns in `text` stay text, integers are integers, `NA` is missing."""
    place = FOLDER / "rng.zip" if case == "rng" else FOLDER / "cases" / f"{case}.zip"
    with zipfile.ZipFile(place) as stored:
        lines = stored.read(f"{table}.csv").decode().splitlines()
    header, *rows = csv.reader(lines)
    columns = dict(zip(header, zip(*rows))) if rows else {name: () for name in header}
    return pd.DataFrame({name: _values(list(column), name in text) for name, column in columns.items()})


def _values(cells: list[str], is_text: bool) -> np.ndarray:
    if is_text:
        return np.array(cells, dtype=object)
    numbers = np.array([np.nan if cell == "NA" else float(cell) for cell in cells])
    whole = not any("." in cell or "e" in cell or cell in ("NA", "Inf", "-Inf") for cell in cells)
    return numbers.astype(np.int64) if whole else numbers
