"""Candidates that a user brings: matched to the factuals they are for, and checked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Ints
from mcce.asking.factuals import Factuals
from mcce.exceptions import InputError, spell
from mcce.selection.candidates import Candidates
from mcce.table import Schema
from mcce.table.frames import is_other_frame, read_frame
from mcce.table.labels import find_labels


def match_candidates(
    candidates: pd.DataFrame, factuals: Factuals, members: npt.NDArray[np.intp], schema: Schema, mutable: Ints
) -> Candidates:
    """Return the candidates of the factuals at `members`; rows for others, or with other fixed values, are errors."""
    if is_other_frame(candidates):
        candidates = _indexed(read_frame(candidates, "candidates"), schema)
    if not isinstance(candidates, pd.DataFrame):
        raise InputError(f"candidates is a {type(candidates).__name__}; give a DataFrame, as `generate` returns it.")
    ids = candidates.index.get_level_values(0)
    owner = find_labels(factuals.index, ids)
    if (owner < 0).any():
        raise InputError(f"candidates has rows for {spell(ids[owner < 0][0])}, which is not in the index of X.")
    matrix = schema.encode(candidates, "candidates").matrix
    fixed = [j for j in range(matrix.shape[1]) if j not in mutable]
    before, after = factuals.matrix[owner][:, fixed], matrix[:, fixed]
    meddled = (after != before) & ~(np.isnan(after) & np.isnan(before))
    if meddled.any():
        row, column = np.argwhere(meddled)[0]
        name = schema.names[fixed[column]]
        raise InputError(
            f"candidates changes the fixed feature {name!r} of {spell(ids[row])}; fixed features must stay as in X."
        )
    by_owner = np.argsort(owner, kind="stable")
    begin = np.searchsorted(owner[by_owner], members)
    end = np.searchsorted(owner[by_owner], members, side="right")
    return Candidates(np.asfortranarray(matrix[by_owner]), begin, end)


def _indexed(candidates: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return candidates whose labels stand in columns, as `generate` writes them beside the features, in an index."""
    labels = [name if name not in schema.names else f"{name}_" for name in ("id", "draw")]
    if labels[0] not in candidates.columns:
        raise InputError(
            f"candidates has no column {labels[0]!r}, which says whom each row is for; give a frame as `generate` "
            "returns it."
        )
    return candidates.set_index([name for name in labels if name in candidates.columns])
