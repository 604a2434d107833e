"""Finding one counterfactual of a result, by the label of its factual and its rank."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Indices
from mcce.exceptions import InputError, spell, spell_all
from mcce.report.words import case_name
from mcce.table.labels import find_labels


def check_indexes(
    frame: pd.DataFrame, measures: pd.DataFrame, factuals: pd.DataFrame, predictions: pd.Series[Any]
) -> None:
    """Refuse the tables of a result whose rows do not belong together."""
    if not measures.index.equals(frame.index):
        raise InputError("measures and frame must have the same (id, rank) index; build both in one order.")
    if not predictions.index.equals(factuals.index):
        raise InputError("factual_predictions and factuals must have the same index; build both in one order.")
    ids = frame.index.get_level_values("id")
    if not factuals.index.is_unique or (find_labels(factuals.index, ids) < 0).any():
        raise InputError("every id of frame must occur exactly once in the index of factuals.")


def find_row(
    ids: pd.Index[Any], factual_of_row: Indices, ranks: pd.Index[Any], id: Hashable, rank: int
) -> tuple[int, int | None]:
    """Return the places of a factual among `ids` and of its counterfactual; None if it has none at all."""
    try:
        factual = int(find_labels(ids, pd.Index([id], tupleize_cols=False))[0])
    except (TypeError, ValueError):
        factual = -1
    if factual < 0:
        raise InputError(
            f"no factual has the id {spell(id)}; the ids are the index of the explained table: {spell_all(ids)}."
        )
    rows = np.flatnonzero(factual_of_row == factual)
    known = ranks[rows]
    if len(rows) and rank not in known:
        raise InputError(
            f"factual {spell(id)} has no counterfactual of rank {rank!r}, only {spell_all(known)}; "
            "ask for one of these, or explain with a larger n_counterfactuals."
        )
    return factual, int(rows[known == rank][0]) if len(rows) else None


def why_unexplained(unexplained: pd.DataFrame, id: Hashable) -> str:
    """Return why a factual has no counterfactual, as a sentence."""
    reason = "no reason was recorded"
    place = find_labels(unexplained.index, pd.Index([id], tupleize_cols=False))[0]
    if place >= 0:
        reason = str(unexplained["reason"].iloc[place]).rstrip(".")
    who = spell(id) if isinstance(id, str) else case_name(id)
    return f"No counterfactual was found for {who}: {reason}."


def reasons_in_lines(unexplained: pd.DataFrame) -> list[str]:
    """Return one line for each reason why factuals stayed unexplained."""
    groups = unexplained.groupby("reason", sort=False).groups.items()
    return [f"not explained, {reason}: {spell_all(ids)}" for reason, ids in groups]
