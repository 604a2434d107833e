"""The cells of a CSV as values of the training columns.

1. A cell that is empty, or one of the texts said to mean so, is missing.
2. What a column is was found from the training rows: numbers, dates and durations are read as such, levels by how they
   are written. A text that is no number or date is a problem of its row. An unknown level stays the text that it is, to
   be refused as any other table's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce.exceptions import InputError, spell
from mcce.table import Feature, Schema
from mcce.table.dtypes import date_family, is_dated

TRUTHS = {"true": True, "false": False}


def read_texts(
    texts: pd.DataFrame, schema: Schema, missing: Sequence[str], where: str
) -> tuple[pd.DataFrame, dict[int, str]]:
    """Return the values of text cells, and the problem of each row that has one, by its place.

    Columns that are none of the schema, such as ids, stay text.
    """
    marked = texts.mask(texts.isin(["", *missing]), None)
    features = {feature.name: feature for feature in schema.features}
    columns: dict[Any, Any] = {}
    problems: dict[int, str] = {}
    for name in texts.columns:
        if name not in features:
            columns[name] = marked[name]
            continue
        feature = features[name]
        columns[name] = _values(feature, marked[name], where)
        if feature.is_numeric:
            for i in np.flatnonzero((columns[name].isna() & marked[name].notna()).to_numpy()).tolist():
                what = "date or duration" if is_dated(feature.dtype) else "number"
                problems.setdefault(i, f"column {name!r} holds {spell(texts[name].iloc[i])}, which is no {what}.")
    return pd.DataFrame(columns, index=texts.index), problems


def _values(feature: Feature, cells: pd.Series[Any], where: str) -> pd.Series[Any]:
    if not feature.is_numeric:
        known = _spellings(feature)
        return cells.map(lambda cell: known.get(cell, cell), na_action="ignore").astype(object)
    if not is_dated(feature.dtype):
        return pd.to_numeric(cells, errors="coerce")
    if isinstance(feature.dtype, pd.PeriodDtype):
        raise InputError(f"column {feature.name!r} has periods, which are not read from {where}; give Parquet.")
    if feature.dtype.kind == "m":
        return pd.to_timedelta(cells, errors="coerce")
    zoned = bool(date_family(feature.dtype) == ("M", True))
    return pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=zoned)


def _spellings(feature: Feature) -> dict[Any, Any]:
    """Return the level that each text stands for; whole numbers also without a point."""
    assert feature.levels is not None
    known: dict[Any, Any] = {}
    for level in feature.levels:
        if isinstance(level, (float, np.floating)) and float(level).is_integer():
            known[str(int(level))] = level
        if isinstance(level, (bool, np.bool_)):
            known |= {text: level for text, truth in TRUTHS.items() if truth == bool(level)}
            known |= {text.upper(): level for text, truth in TRUTHS.items() if truth == bool(level)}
    return known | {str(level): level for level in feature.levels}
