"""Numbers computed by R for pairs of tables (tests/fixtures/utility)."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

FOLDER = Path(__file__).parents[1] / "fixtures" / "utility"


@dataclass
class Case:
    meta: dict[str, Any]
    real: pd.DataFrame
    generated: pd.DataFrame
    tables: dict[str, pd.DataFrame]


def load(name: str) -> Any:
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


STORED = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))
CASES = [name for name in STORED if isinstance(load(name), dict)]  # pairs of tables
GROUPS = [name for name in STORED if isinstance(load(name), list)]  # how numbers are cut into groups


def read(name: str) -> Case:
    stored = load(name)
    tables = tables_of_case(stored)
    return Case(stored["meta"], tables.pop("real"), tables.pop("syn"), tables)


def tables_of_case(stored: dict[str, Any]) -> dict[str, pd.DataFrame]:
    """The tables of a stored case, row tables with their levels."""
    tables = {key: pd.DataFrame(columns) for key, columns in stored.items() if key != "meta"}
    for key in ("real", "syn"):
        for column, levels in stored["meta"]["levels"].items():
            ordered = column in stored["meta"]["ordered"]
            tables[key][column] = pd.Categorical(tables[key][column], levels, ordered=ordered)
    return tables
