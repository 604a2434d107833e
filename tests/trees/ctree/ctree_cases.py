"""Reading the cases grown by party (tests/fixtures/ctree)."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.rcompat.stages import encode_columns, party_response, read_columns
from mcce.table import Column, Schema, Table

FOLDER = Path(__file__).parents[2] / "fixtures" / "ctree"
CASES = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*_*.json.gz"))


@dataclass(frozen=True)
class Case:
    meta: dict[str, Any]
    tables: dict[str, pd.DataFrame]
    frame: pd.DataFrame
    given: Table
    target: Column
    new: Table

    def settings(self, run: str) -> dict[str, Any]:
        stored = self.meta["runs"][run]
        return {
            "mincriterion": stored["mincriterion"],
            "min_split": stored["minsplit"],
            "min_leaf": stored["minbucket"],
            "minprob": self.meta["minprob"],
        }

    def numbers(self, table: str, column: str) -> np.ndarray:
        """A column of an R table; cells that do not apply are NaN."""
        return np.array([float(cell or "nan") for cell in self.tables[table][column]])


def read_stored(name: str) -> Any:
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


def read_case(name: str) -> Case:
    stored = read_stored(name)
    meta = stored.pop("meta")
    tables = {table: pd.DataFrame(columns, dtype=object) for table, columns in stored.items()}
    train, new = (_typed(tables[table], [meta["y"], *meta["predictors"]]) for table in ("train", "new"))
    schema = Schema.from_data(train)
    table = schema.encode(train)
    predictors = [p["name"] for p in meta["predictors"]]
    given = table.select([table.names.index(p) for p in predictors])
    return Case(meta, tables, train, given, table.column(table.names.index("y")), schema.subset(predictors).encode(new))


def _typed(table: pd.DataFrame, variables: list[dict[str, Any]]) -> pd.DataFrame:
    columns = {}
    for v in variables:
        if v["name"] in table:
            cells = table[v["name"]]
            columns[v["name"]] = (
                np.array([float(cell) for cell in cells])
                if v["type"] == "numeric"
                else pd.Categorical(cells, categories=v["levels"], ordered=v["type"] == "ordered")
            )
    return pd.DataFrame(columns)


@dataclass(frozen=True)
class LogicalCase:
    """A table with logicals, and the tree that party grew on it: leaf of each row, statistics of each node."""

    given: Table
    target: Column
    mincriterion: float
    where: np.ndarray
    statistics: np.ndarray


def read_logicals() -> list[LogicalCase]:
    cases = []
    for stored in read_stored("logicals"):
        given, target = as_in_r(pd.DataFrame({name: _column(c) for name, c in stored["columns"].items()}))
        where, statistics = np.array(stored["where"]), np.array(stored["statistics"])
        cases.append(LogicalCase(given, target, stored["mincriterion"], where, statistics))
    return cases


def as_in_r(table: pd.DataFrame) -> tuple[Table, Column]:
    """Encode a table, the response last, as mcceR passes it to party: bool columns are logicals."""
    features = read_columns(table, "the table")
    encoded = Table(tuple(features), encode_columns(table, features, "the table"), complete=True)
    return encoded.first(len(features) - 1), party_response(encoded.column(len(features) - 1))


def tied(statistics: np.ndarray) -> np.ndarray:
    """Return which variables of a node have the same statistic as another one up to rounding."""
    near = np.isclose(statistics[:, :, None], statistics[:, None, :], rtol=1e-10, atol=0)
    return (near.sum(axis=2) > 1) & (statistics > 1e-10)


def _column(stored: dict[str, Any]) -> Any:
    if "levels" in stored:
        return pd.Categorical.from_codes(stored["values"], stored["levels"], ordered=stored["type"] == "ordered")
    return np.array(stored["values"], dtype=stored["type"])
