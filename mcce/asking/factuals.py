"""The rows to explain: encoded, named by their index, and what the model says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats
from mcce.asking.asker import SpotCheck
from mcce.asking.decision import Answer, Decision
from mcce.exceptions import InputError
from mcce.table import Data, Schema, as_frame
from mcce.table.checks import check_magnitudes, check_missing, check_row_names


@dataclass(frozen=True)
class Factuals:
    """Encoded rows with the names that the user gave them, the model's scores, and who has the decision already."""

    index: pd.Index[Any]
    matrix: Floats
    scores: npt.NDArray[Any]
    wanted: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.index)


def encode_factuals(X: Data, schema: Schema) -> tuple[pd.Index[Any], Floats]:
    """Return the names and the encoded rows of a table to explain; a Series is one row, named by its name."""
    if isinstance(X, pd.Series):
        if not X.index.isin(schema.names).any():
            raise InputError(
                "X is a Series whose index holds none of the training columns; a Series is read as one row. Give a "
                "DataFrame with all columns."
            )
        X = X.to_frame().T.infer_objects()
    frame, _ = as_frame(X, "X")
    check_row_names(frame.index, "X", "factuals")
    table = schema.encode(frame, "X")
    check_magnitudes(table, "X")
    check_missing(table, frame.index, "X")
    return frame.index, table.matrix


def read_factuals(X: Data, schema: Schema, decision: Decision, spots: SpotCheck) -> Factuals:
    """Encode the factuals and ask the model about them, and about some training rows once more."""
    index, matrix = encode_factuals(X, schema)
    n = matrix.shape[0]
    if n == 0:
        return Factuals(index, matrix, np.empty(0), np.empty(0, dtype=bool))
    rows = schema.decode_for_model(np.concatenate([matrix, spots.rows]))
    if isinstance(rows, pd.DataFrame):  # so that an error names the user's rows
        rows.index = pd.Index([*index, *(f"training row {i}" for i in spots.positions)], dtype=object)
    asked = decision.ask(rows, f"the {n} factuals, and {len(spots.rows)} training rows again")
    spots.compare(Answer(asked.scores[n:], asked.wanted[n:]))
    return Factuals(index, matrix, asked.scores[:n], asked.wanted[:n])
