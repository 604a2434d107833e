"""Reading the tables that R wrote (tests/fixtures/parity): every number comes back as the same double."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parents[1] / "fixtures" / "parity"


def read_table(path: Path, text: Collection[str] = ()) -> pd.DataFrame:
    """Read a gzipped table; columns named in `text` stay text, whole numbers are integers, `NA` is missing."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines)
    columns = dict(zip(header, zip(*rows))) if rows else {name: () for name in header}
    return pd.DataFrame({name: _values(list(column), name in text) for name, column in columns.items()})


def _values(cells: list[str], is_text: bool) -> np.ndarray:
    if is_text:
        return np.array(cells, dtype=object)
    numbers = np.array([np.nan if cell == "NA" else float(cell) for cell in cells])
    whole = not any("." in cell or "e" in cell or cell in ("NA", "Inf", "-Inf") for cell in cells)
    return numbers.astype(np.int64) if whole else numbers
