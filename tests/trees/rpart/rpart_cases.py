"""Trees grown by R's rpart (tests/fixtures/rpart), and the bitwise comparison with them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.table import Column, Schema, Table
from mcce.trees.rpart import tree as rpart
from mcce.trees.rpart.tree import RpartTree

FOLDER = Path(__file__).parents[2] / "fixtures" / "rpart"
CONTROL = {
    "minsplit": "min_split",
    "minbucket": "min_leaf",
    "cp": "cp",
    "maxdepth": "max_depth",
    "maxcompete": "max_compete",
    "maxsurrogate": "max_surrogate",
}


@dataclass(frozen=True)
class Answer:
    """The result of rpart for a tree: its tables, and the row of the frame for each training row and each new row.

    `rows` are the training rows that took part; rpart leaves out those without any predictor. A tree without splits
    has empty tables of them.
    """

    frame: pd.DataFrame
    splits: pd.DataFrame
    csplit: np.ndarray
    where: np.ndarray
    rows: np.ndarray
    where_new: np.ndarray | None = None


def encode(frame: pd.DataFrame, response: str, new: pd.DataFrame | None = None) -> tuple[Table, Column, Table | None]:
    """Predictors and response of a frame, and the predictors of new rows."""
    predictors = frame.drop(columns=response)
    schema = Schema.from_data(predictors)
    target = Schema.from_data(frame[[response]]).encode(frame[[response]]).column(0)
    return schema.encode(predictors), target, None if new is None else schema.encode(new)


def grow(given: Table, target: Column, control: dict[str, Any], *, fused: bool = False) -> RpartTree:
    """Grow our tree by R's names of the settings."""
    settings = {ours: control[theirs] for theirs, ours in CONTROL.items() if theirs in control}
    return rpart.grow(given, target, **settings, fused=fused)


def where(tree: RpartTree) -> np.ndarray:
    """Return the row of rpart's frame of each training row, by our donors."""
    row = np.empty(tree.donors.size, dtype=np.int64)
    for node in tree.frame_order:  # a node before those below it
        row[tree.donors[tree.start[node] :][: tree.size[node]]] = tree.frame_row[node]
    return row


def differences(tree: RpartTree, given: Table, target: Column, answer: Answer, new: Table | None = None) -> list[str]:
    """Name the differences from rpart's answer, in any bit."""
    frame = tree.frame(given.names)
    frame["yval"] += 0 if target.feature.is_numeric else 1
    splits, csplit = tree.splits(given.names)
    if not np.array_equal(frame["node"], answer.frame["node"]):
        return ["nodes"]
    found = [f"frame {name}" for name in answer.frame if not _same(frame[name], answer.frame[name])]
    if len(splits) != len(answer.splits) or len(csplit) != len(answer.csplit):
        return [*found, "number of splits"]
    found += [f"splits {name}" for name in answer.splits if not _same(splits[name], answer.splits[name])]
    width = max(csplit.shape[1], answer.csplit.shape[1]) if len(csplit) else 0
    if not np.array_equal(_widened(csplit, width), _widened(answer.csplit, width)):
        found.append("csplit")
    if not np.array_equal(where(tree)[answer.rows], answer.where):
        found.append("where")
    if new is not None and not np.array_equal(tree.frame_row[tree.route(new.matrix)], answer.where_new):
        found.append("where of new rows")
    return found


def _same(ours: pd.Series, theirs: pd.Series) -> bool:
    return np.array_equal(ours.to_numpy(), theirs.to_numpy(), equal_nan=theirs.dtype.kind == "f")


def _widened(table: np.ndarray, width: int) -> np.ndarray:
    """R's table of level sides is as wide as its widest column, used or not; 2 means no side."""
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=2) if len(table) else np.empty((0, 0))


def read_stored(name: str) -> Any:
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


def typed(columns: dict[str, list[str]], types: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """A stored table with the column types of R."""
    frame = pd.DataFrame(columns, dtype=object)[list(types)]
    for name, column in types.items():
        if column["type"] in ("factor", "ordered"):
            frame[name] = pd.Categorical(frame[name], column["levels"], ordered=column["type"] == "ordered")
        else:
            frame[name] = frame[name].astype(float)
    return frame


def numbers(table: pd.DataFrame, text: tuple[str, ...] = ("var",)) -> pd.DataFrame:
    """A stored table of numbers except for the columns of text; `NA` is NaN."""
    as_float = {name: float for name in table if name not in text}  # to_numeric loses bits before pandas 3
    return table.replace("NA", "nan").astype(as_float)
