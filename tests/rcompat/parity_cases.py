"""Runs of mcceR written by R (tests/fixtures/parity): every number is the same double."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce import rcompat

FOLDER = Path(__file__).parents[1] / "fixtures" / "parity"
CASES = sorted(path.stem for path in (FOLDER / "cases").glob("*.zip"))


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


@dataclass
class Case:
    """One recorded run of mcceR."""

    name: str
    meta: dict[str, Any]

    @property
    def c_int(self) -> tuple[float, float]:
        low, high = (float(end) for end in self.meta["c_int"])
        return low, high

    def read(self, table: str) -> pd.DataFrame:
        columns = self.meta["columns"]
        factors = [name for name, column in columns.items() if column["type"] in ("factor", "ordered")]
        frame = read_table(self.name, table, text=factors)
        for name in columns.keys() & set(frame.columns):
            kinds = {"integer": "int64", "double": "float64"}
            kind = columns[name]["type"]
            ordered = kind == "ordered"
            frame[name] = frame[name].astype(
                kinds.get(kind) or pd.CategoricalDtype(columns[name]["levels"], ordered=ordered)
            )
        return frame

    def explain(self, predict: Any = None, **changes: Any) -> rcompat.MCCEResult:
        meta = self.meta
        arguments = {
            "fixed_features": meta["fixed_features"],
            "c_int": self.c_int,
            "fit_autoregressive_model": meta["engine"],
            "fit_decision": meta["decision"],
            "fit_seed": meta["fit_seed"],
            "generate_seed": meta["generate_seed"],
            "generate_K": meta["K"],
            "process_measures": meta["sort_orders"]["default"],
            **dict(meta["engine_arguments"] or {}),
            **changes,
        }
        recorded = iter([self.read("pred_train")["pred"], self.read("sim")["pred"]])
        lookup = predict or (lambda model, frame: next(recorded))
        return rcompat.explain_mcce(None, self.read("x_explain"), self.read("x_train"), lookup, **arguments)


@cache
def load(name: str) -> Case:
    return Case(name, read_meta(name))


@cache
def found(name: str) -> rcompat.MCCEResult:
    return load(name).explain(return_featuremodel_object=True, return_sim_data=True)
