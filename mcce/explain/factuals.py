"""Read the rows to explain: encode them, and query the model for them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mcce._utils import Floats
from mcce.exceptions import InputError, spell
from mcce.explain.problem import Factuals
from mcce.generators import Generator
from mcce.model import Query
from mcce.table import Data, Schema, as_frame
from mcce.table.checks import check_row_names


def read_factuals(X: Data, generator: Generator, query: Query) -> Factuals:
    """Return the rows to explain; rows with a level that no training row has are kept apart."""
    frame = read_rows(X)
    matrix, unknown = _encode(frame, generator.schema_)
    prediction = np.full(len(frame), np.nan, dtype=object)
    wanted = np.zeros(len(frame), dtype=bool)
    readable = np.setdiff1d(np.arange(len(frame)), list(unknown))
    if readable.size:
        answer = query(matrix[readable], "the rows to explain")
        prediction[readable], wanted[readable] = answer.prediction, answer.wanted
        if not unknown:
            prediction = answer.prediction
        elif answer.prediction.dtype.kind == "f":
            prediction = prediction.astype(np.float64)
    return Factuals(frame.index, matrix, prediction, wanted, unknown)


def read_rows(X: Data) -> pd.DataFrame:
    """Return a table whose index names its rows; a Series is one row."""
    if isinstance(X, pd.Series):
        X = X.to_frame().T.infer_objects()
    frame = as_frame(X, "X")
    check_row_names(frame.index, "X")
    return frame


def _encode(frame: pd.DataFrame, schema: Schema) -> tuple[Floats, dict[int, str]]:
    """Return the encoded rows, and by position the unknown level of the rows that have one, which are NaN."""
    try:
        return np.ascontiguousarray(schema.encode(frame, "X").matrix), {}
    except InputError as error:
        refusal = error
    unknown: dict[int, str] = {}
    for feature in schema.features:
        if feature.levels is not None and feature.name in frame.columns:
            column = frame[feature.name]
            for row in np.flatnonzero(feature.is_unknown(column, "X")).tolist():
                level = spell(column.iloc[row])
                unknown.setdefault(row, f"column {spell(feature.name)} holds the unknown level {level}")
    if not unknown:
        raise refusal
    readable = np.setdiff1d(np.arange(len(frame)), list(unknown))
    if not readable.size:
        raise InputError(
            f"no row of X can be explained: {next(iter(unknown.values()))} (row "
            f"{spell(frame.index[next(iter(unknown))])}). Refit with its levels, or drop such rows."
        )
    matrix = np.full((len(frame), len(schema)), np.nan)
    matrix[readable] = schema.encode(frame.iloc[readable], "X").matrix
    return matrix, unknown
