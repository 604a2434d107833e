"""The fixtures of R in tests/fixtures/synthpop, and tables for the tests of the parametric samplers."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcce.samplers.base import make_sampler
from mcce.table import Column, Schema, Table

FOLDER = Path(__file__).parents[2] / "fixtures" / "synthpop"
CASES = sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*_*.json.gz"))


@dataclass
class Case:
    """One case of R: its settings and tables, the encoded training rows and the rows to draw."""

    meta: dict[str, Any]
    tables: dict[str, pd.DataFrame]
    given: Table
    target: Column
    new: Table

    @classmethod
    def read(cls, name):
        stored = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
        meta = stored.pop("meta")
        tables = {key: pd.DataFrame(columns) for key, columns in stored.items()}
        train, new = (typed(tables[key], [meta["y"], *meta["predictors"]]) for key in ("train", "new"))
        schema = Schema.from_data(train.drop(columns="y"))
        target = Schema.from_data(train[["y"]]).encode(train[["y"]]).column(0)
        return cls(meta, tables, schema.encode(train.drop(columns="y")), target, schema.encode(new))

    def __getitem__(self, table):
        return self.tables[table]

    def numbers(self, table, *dropped):
        """Return a table of R without its row numbers or labels, as floats."""
        return self.tables[table].drop(columns=list(dropped)).astype(float).to_numpy()

    def column(self, table, name):
        """Return a column of a table of R; an empty cell is NaN."""
        return pd.to_numeric(self.tables[table][name]).to_numpy(dtype=float)

    def fit(self):
        return make_sampler(self.meta["method"]).fit(self.given, self.target)


def typed(table, variables):
    frame = table.drop(columns="row")
    for v in (v for v in variables if v["name"] in frame):
        if v["type"] == "numeric":
            frame[v["name"]] = frame[v["name"]].astype(float)
        else:
            frame[v["name"]] = pd.Categorical(frame[v["name"]], v["levels"], ordered=v["type"] == "ordered")
    return frame


def of(*methods):
    """Parametrise a test by the cases of some methods."""
    return pytest.mark.parametrize("case", [c for c in CASES if c.split("_")[0] in methods], indirect=True)


def encode(frame, target="y"):
    """Return the givens and the target of a frame."""
    table = Schema.from_data(frame).encode(frame)
    j = table.names.index(target)
    return table.select([k for k in range(len(table.names)) if k != j]), table.column(j)


def at(given, row, n):
    """Return n rows with the same givens."""
    return Table(given.features, np.asfortranarray(np.tile(np.asarray(row, dtype=float), (n, 1))))


def with_gaps(kind, seed=0, n=2000):
    """x drives the target y of a kind; x and the level f of the givens have missing values."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    codes = np.digitize(x + rng.logistic(size=n), [-1.0, 0.5, 2.0])
    f = pd.Series(rng.choice(["u", "v"], n)).mask(rng.random(n) < 0.2)
    y = codes * 1.5 if kind == "numeric" else pd.Categorical.from_codes(codes, list("abcd"), ordered=kind == "ordered")
    return pd.DataFrame({"x": pd.Series(x).mask(rng.random(n) < 0.1), "f": f, "y": y})
