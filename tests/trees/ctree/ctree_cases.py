"""Reading the cases grown by party (tests/fixtures/ctree)."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.table import Column, Schema, Table

FOLDER = Path(__file__).parents[2] / "fixtures" / "ctree"


def read_stored(name: str) -> Any:
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


STORED = {
    name: read_stored(name) for name in sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.gz"))
}
CASES = [name for name, stored in STORED.items() if "meta" in stored and "train" in stored]
LOGICALS = [name for name, stored in STORED.items() if isinstance(stored, list) and "statistics" in stored[0]]


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
        control = {name: stored[name] for name in ("mincriterion", "minsplit", "minbucket")}
        return {**control, "minprob": self.meta["minprob"], "testtype": self.meta["testtype"]}

    def numbers(self, table: str, column: str) -> np.ndarray:
        """A column of an R table; cells that do not apply are NaN."""
        return np.array([float(cell or "nan") for cell in self.tables[table][column]])


def read_case(name: str) -> Case:
    stored = dict(STORED[name])
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
    for stored in (case for name in LOGICALS for case in STORED[name]):
        given, target = as_in_r(pd.DataFrame({name: _column(c) for name, c in stored["columns"].items()}))
        where, statistics = np.array(stored["where"]), np.array(stored["statistics"])
        cases.append(LogicalCase(given, target, stored["mincriterion"], where, statistics))
    return cases


def as_in_r(table: pd.DataFrame) -> tuple[Table, Column]:
    """Encode a table, the response last: bool columns are R's logicals, numbers as predictors, levels as response."""
    logicals = [name for name in table if table[name].dtype == bool]
    as_numbers = table.astype(dict.fromkeys(logicals, float))
    encoded = Schema.from_data(as_numbers).encode(as_numbers)
    features = [replace(f, dtype=np.dtype(bool)) if f.name in logicals else f for f in encoded.features]
    given, target = Table(features, encoded.matrix).first(len(features) - 1), encoded.column(len(features) - 1)
    if target.feature.name in logicals:
        target = Column(replace(target.feature, kind="categorical", levels=pd.Index([False, True])), target.values)
    return given, target


def tied(statistics: np.ndarray) -> np.ndarray:
    """Return which variables of a node have the same statistic as another one up to rounding."""
    near = np.isclose(statistics[:, :, None], statistics[:, None, :], rtol=1e-10, atol=0)
    return (near.sum(axis=2) > 1) & (statistics > 1e-10)


def _column(stored: dict[str, Any]) -> Any:
    if "levels" in stored:
        return pd.Categorical.from_codes(stored["values"], stored["levels"], ordered=stored["type"] == "ordered")
    return np.array(stored["values"], dtype=stored["type"])


def encode(frame: pd.DataFrame, target: str = "y") -> tuple[Table, Column]:
    table = Schema.from_data(frame).encode(frame)
    at = table.names.index(target)
    return table.select([j for j in range(len(table.names)) if j != at]), table.column(at)
