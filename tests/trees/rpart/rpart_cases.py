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
from mcce.trees.rpart import RpartTree, grow_rpart
from mcce.trees.rpart.kernels import LEAF, LEFT, RIGHT

FOLDER = Path(__file__).parents[2] / "fixtures" / "rpart"
CONTROL = ("minsplit", "minbucket", "cp", "maxdepth", "maxsurrogate")  # competitors do not affect a tree


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

    def main_splits(self) -> pd.DataFrame:
        """Primary splits and surrogates, without competitors; `sides` instead of the row of csplit."""
        first = np.cumsum(
            [0, *np.where(self.frame["var"] == "<leaf>", 0, 1 + self.frame["ncompete"] + self.frame["nsurrogate"])]
        )
        is_competitor = np.zeros(int(first[-1]), dtype=bool)
        assert is_competitor.size == len(self.splits)
        for at, n, var in zip(first.astype(int), self.frame["ncompete"].astype(int), self.frame["var"]):
            if var != "<leaf>":
                is_competitor[at + 1 : at + 1 + n] = True
        kept = self.splits[~is_competitor].reset_index(drop=True)
        on_levels = (kept["ncat"].abs() >= 2).to_numpy(dtype=bool)
        sides = [
            tuple(self.csplit[int(index) - 1][: int(ncat)]) if by_level else None
            for index, ncat, by_level in zip(kept["index"], kept["ncat"], on_levels)
        ]
        return kept.assign(sides=sides, index=np.where(on_levels, np.nan, kept["index"]))


def our_frame(tree: RpartTree) -> pd.DataFrame:
    """Our nodes as R's table of them."""
    is_leaf = tree.node["variable"] == LEAF
    return pd.DataFrame(
        {
            "node": tree.node["number"],
            "var": ["<leaf>" if leaf else tree.given[j].name for leaf, j in zip(is_leaf, tree.node["variable"])],
            "n": tree.node["n"],
            "dev": tree.node["risk"],
            "yval": tree.node["value"] + (0 if tree.target.is_numeric else 1),
            "complexity": tree.node["complexity"],
            "nsurrogate": tree.node["n_surrogates"],
        }
    )


def our_splits(tree: RpartTree) -> pd.DataFrame:
    """Our splits as R's table of them; an ordered column has sides of its levels there."""
    rows = []
    for split, sides in zip(tree.split, tree.sides):
        feature = tree.given[split["variable"]]
        n_levels = feature.n_levels
        shown, cut = None, split["cut"]
        if feature.kind == "categorical":
            shown, cut = tuple(sides[:n_levels]), np.nan
        elif feature.kind == "ordered":
            goes_left = (np.arange(n_levels) < cut) == (split["below"] < 0)
            shown, cut = tuple(np.where(goes_left, LEFT, RIGHT)), np.nan
        row = {"var": feature.name, "count": split["n"], "ncat": n_levels or split["below"]}
        rows.append(row | {"improve": split["improve"], "index": cut, "adj": split["adjusted"], "sides": shown})
    return pd.DataFrame(rows, columns=["var", "count", "ncat", "improve", "index", "adj", "sides"])


def encode(frame: pd.DataFrame, response: str, new: pd.DataFrame | None = None) -> tuple[Table, Column, Table | None]:
    """Predictors and response of a frame, and the predictors of new rows."""
    predictors = frame.drop(columns=response)
    schema = Schema.from_data(predictors)
    target = Schema.from_data(frame[[response]]).encode(frame[[response]]).column(0)
    return schema.encode(predictors), target, None if new is None else schema.encode(new)


def grow(given: Table, target: Column, control: dict[str, Any]) -> RpartTree:
    """Grow our tree by R's control."""
    return grow_rpart(given, target, **{name: control[name] for name in CONTROL if name in control})


def differences(tree: RpartTree, answer: Answer, new: Table | None = None) -> list[str]:
    """Name the differences from rpart's answer, in any bit."""
    frame, splits = our_frame(tree), our_splits(tree)
    theirs = answer.main_splits()
    if not np.array_equal(frame["node"], answer.frame["node"]):
        return ["nodes"]
    found = [f"frame {name}" for name in frame if not _same(frame[name], answer.frame[name])]
    if len(splits) != len(theirs):
        return [*found, "number of splits"]
    found += [f"splits {name}" for name in splits if name != "sides" and not _same(splits[name], theirs[name])]
    if splits["sides"].tolist() != theirs["sides"].tolist():
        found.append("sides of levels")
    if not np.array_equal(tree.training_node[answer.rows] + 1, answer.where):
        found.append("where")
    if new is not None and not np.array_equal(tree.node_of(new.matrix) + 1, answer.where_new):
        found.append("where of new rows")
    return found


def _same(ours: pd.Series, theirs: pd.Series) -> bool:
    return np.array_equal(ours.to_numpy(), theirs.to_numpy(), equal_nan=ours.dtype.kind == "f")


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


def read_frame(columns: dict[str, Any]) -> pd.DataFrame:
    """A table of `random.json.gz`."""

    def column(stored: dict[str, Any]) -> Any:
        if "values" in stored:
            return stored["values"]
        return pd.Categorical.from_codes(stored["codes"], stored["levels"], ordered=stored["ordered"])

    return pd.DataFrame({name: column(stored) for name, stored in columns.items()})


def numbers(table: pd.DataFrame, text: tuple[str, ...] = ("var",)) -> pd.DataFrame:
    """A stored table of numbers except for the columns of text; `NA` is NaN."""
    as_float = {name: float for name in table if name not in text}  # to_numeric loses bits before pandas 3
    return table.replace("NA", "nan").astype(as_float)
