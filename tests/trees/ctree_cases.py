"""Reading the cases that party grew (tests/fixtures/ctree)."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.schema import Column, Schema, Table

FOLDER = Path(__file__).parents[1] / "fixtures" / "ctree"
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
        """A column of a table of R; what does not apply is NaN."""
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
