"""Random mixed data sets for rpart, and the trees of R's rpart for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from r_bridge.frames import to_r
from tests.trees.rpart.rpart_cases import Answer

NEW_ROWS = 40
_KINDS = {  # of columns, and how often each is drawn
    "number": 4.0,
    "rounded": 4.0,
    "integer": 4.0,
    "binary": 2.0,
    "zeros": 1.0,
    "constant": 1.0,
    "neighbours": 0.5,
    "copy": 1.5,
    "mirror": 1.5,
    "factor": 6.0,
    "ordered": 3.0,
}

FIT = """function(data, new, control) {
  fit <- rpart::rpart(y ~ ., data, control = do.call(rpart::rpart.control, c(control, xval = 0)))
  numbered <- fit
  numbered$frame$yval <- seq_len(nrow(fit$frame))
  frame <- fit$frame
  splits <- if (length(fit$splits)) fit$splits else matrix(0, 0, 5)
  csplit <- if (length(fit$csplit)) fit$csplit else matrix(0L, 0, 0)
  list(
    text = list(as.character(frame$var), if (nrow(splits)) rownames(splits) else character()),
    frame = c(
      as.numeric(row.names(frame)), frame$n, frame$dev, frame$yval, frame$complexity, frame$ncompete, frame$nsurrogate
    ),
    splits = as.numeric(splits), csplit = as.numeric(csplit), n_csplit = nrow(csplit),
    where = as.numeric(fit$where), rows = as.numeric(setdiff(seq_len(nrow(data)), fit$na.action)),
    where_new = as.numeric(stats::predict(numbered, new, type = "vector"))
  )
}"""


@dataclass(frozen=True)
class RandomCase:
    """Training rows (response `y`), new rows with levels unseen in nodes, and rpart's settings."""

    frame: pd.DataFrame
    new: pd.DataFrame
    control: dict[str, float]


def draw_case(rng: np.random.Generator, most_rows: int = 300) -> RandomCase:
    """Draw a data set: mixed types, ties, copies, 2 to 12 levels, 2 to 5 classes, few rows, missing values."""
    n = int(rng.choice([k for k in (3, 8, 13, 20, 21, 30, 45, 70, 100, 150, 300, 1000) if k <= most_rows]))
    response = rng.choice(["number", "integer", "few", "two", "more"])
    most_levels = 12 if response != "more" else int(rng.choice([4, 7, 10], p=[0.5, 0.4, 0.1]))
    columns: list[Any] = []
    shares = np.array(list(_KINDS.values())) / sum(_KINDS.values())
    for kind in rng.choice(list(_KINDS), size=rng.choice([1, 2, 3, 4, 5, 8]), p=shares):
        columns.append(_column(rng, n, kind, columns, most_levels))
    frame = pd.DataFrame({f"x{j}": column for j, column in enumerate(columns)})
    signal = rng.normal(size=n) * rng.choice([0.0, 0.05, 0.5, 2.0])
    for column in columns:
        values = np.asarray(column.codes if isinstance(column, pd.Categorical) else column, dtype=float)
        shapes = [np.sin(3.0 * values), values > np.median(values), values % 2 == 0]
        signal += rng.normal() * shapes[rng.integers(3)]
    frame["y"] = _response(rng, signal, response)
    missing = rng.choice([0.0, 0.0, 0.0, 0.1, 0.4])
    new = {}
    for name in frame.columns.drop("y"):
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            codes = rng.integers(0, len(frame[name].cat.categories), NEW_ROWS)
            new[name] = pd.Series(pd.Categorical.from_codes(codes, dtype=frame[name].dtype))
        else:
            new[name] = pd.Series(rng.choice(frame[name], NEW_ROWS))
        new[name] = new[name].mask(rng.random(NEW_ROWS) < rng.choice([0.0, 0.3]))
        frame[name] = frame[name].mask(rng.random(n) < missing * rng.random())
    return RandomCase(frame, pd.DataFrame(new), _control(rng))


def _column(rng: np.random.Generator, n: int, kind: str, before: list[Any], most_levels: int) -> Any:
    if kind in ("copy", "mirror") and before:
        other = before[rng.integers(len(before))]
        return -other if kind == "mirror" and not isinstance(other, pd.Categorical) else other
    if kind in ("factor", "ordered"):
        k = int(rng.integers(2, most_levels + 1))
        codes = rng.integers(0, k, n) if rng.random() < 0.7 else (rng.random(n) ** 3 * k).astype(int)
        levels = [f"l{i}" for i in range(min(k + rng.choice([0, 0, 1, 2]), most_levels))]  # some are never used
        return pd.Categorical.from_codes(rng.permutation(len(levels))[codes], levels, ordered=kind == "ordered")
    numbers = {
        "rounded": lambda: rng.normal(size=n).round(1) + 0.0,
        "integer": lambda: rng.integers(-3, rng.integers(-1, 6), n).astype(float),
        "binary": lambda: rng.integers(0, 2, n).astype(float),
        "zeros": lambda: rng.choice([-0.0, 0.0, 1.0], n),
        "constant": lambda: np.full(n, 3.0),
        "neighbours": lambda: 1.0 + rng.integers(0, 10, n) * 2.0**-51,  # there is one float between them
    }
    return numbers.get(kind, lambda: rng.normal(size=n))()


def _response(rng: np.random.Generator, signal: np.ndarray, kind: str) -> Any:
    if kind == "number":
        return signal * rng.choice([1, 1e-3, 1e6]) + rng.choice([0, 0, 100, -1e4, 1e9])
    if kind == "integer":
        return np.round(3 * signal) + 0.0
    if kind == "few":
        return rng.choice([0.1, 0.2, 0.3], signal.size)
    k = 2 if kind == "two" else int(rng.integers(3, 6))
    codes = np.digitize(signal, np.sort(rng.normal(size=k - 1)))
    n_levels = k + int(rng.choice([0, 0, 1]))  # a class that is never used
    codes = rng.permutation(n_levels)[codes]
    codes[::3] = np.maximum(codes[::3], 1)  # with rows of the first class alone R's rpart fails
    return pd.Categorical.from_codes(codes, [f"c{i}" for i in range(n_levels)], ordered=bool(rng.random() < 0.2))


def _control(rng: np.random.Generator) -> dict[str, float]:
    control = {"minsplit": 20, "minbucket": 7, "cp": 0.01, "maxdepth": 30, "maxcompete": 4, "maxsurrogate": 5}
    choices = {
        "minsplit": [2, 5, 10, 30],
        "minbucket": [1, 2, 3, 5, 15],
        "cp": [0.0, 1e-8, 0.001, 0.05, 0.3],
        "maxdepth": [1, 2, 3, 5],
        "maxcompete": [0, 1, 2],
        "maxsurrogate": [0, 1, 2, 20],
    }
    for name, values in choices.items():
        if rng.random() < 0.4:
            control[name] = rng.choice(values).item()
    return control


def fit_with_r(r: Any, fit: Any, case: RandomCase) -> Answer:
    """Grow the tree in R; `fit` is `FIT`, evaluated by R."""
    return read_answer(r, fit(to_r(case.frame), to_r(case.new), r.vector(case.control)))


def read_answer(r: Any, found: Any) -> Answer:
    """Read what `FIT` returned."""
    parts = r.parts(found)
    variables, split_variables = (r.strings(text) for text in parts.pop("text"))
    read = {name: r.numbers(part) for name, part in parts.items()}
    names = ["node", "n", "dev", "yval", "complexity", "ncompete", "nsurrogate"]
    frame = pd.DataFrame(read["frame"].reshape(len(names), -1).T, columns=names)
    frame.insert(1, "var", variables)
    names = ["count", "ncat", "improve", "index", "adj"]
    splits = pd.DataFrame(read["splits"].reshape(len(names), -1).T, columns=names)
    splits.insert(0, "var", split_variables)
    n_csplit = int(read["n_csplit"][0])
    csplit = read["csplit"].reshape(-1, n_csplit).T if n_csplit else np.empty((0, 0))
    return Answer(frame, splits, csplit, read["where"], read["rows"].astype(np.int64) - 1, read["where_new"])
