"""Rows with unknown levels are left out, so that the other rows can be explained.

Such rows cannot be encoded, and neither model nor generator has seen the level. If all rows of a table have unknown
levels, none is left out, and encoding the table raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools
from mcce.exceptions import spell, warn
from mcce.table.feature import Feature
from mcce.table.schema import Data, Schema, as_frame
from mcce.wording import Parameter

SHOWN = 5


@dataclass(frozen=True)
class LeftOut:
    """Rows that were left out.

    Attributes
    ----------
    frame : all rows, including those left out
    reasons : the reason for each row that was left out, by position
    """

    frame: pd.DataFrame
    reasons: Mapping[int, str]

    @property
    def kept(self) -> Bools:
        """Mask of the rows that were not left out."""
        kept = np.ones(len(self.frame), dtype=bool)
        kept[list(self.reasons)] = False
        return kept

    def words(self) -> str:
        """Return a sentence about the rows, without its subject, the table."""
        index = self.frame.index
        some = [f"{spell(index[place])} ({why})" for place, why in list(self.reasons.items())[:SHOWN]]
        more = f" and {len(self.reasons) - SHOWN} more" if len(self.reasons) > SHOWN else ""
        rows = "a row" if len(self.reasons) == 1 else f"{len(self.reasons)} rows"
        return f"has {rows} with a level that is not known: {'; '.join(some)}{more}."

    def warn(self, where: str, then: str) -> None:
        """Warn about the rows in one warning that ends with `then`."""
        warn(Parameter(where), f" {self.words()} {then}")

    def cut(self, values: Any) -> Any:
        """Return the values of rows that were not left out; objects other than arrays of row values are unchanged."""
        array = np.asarray(values)
        return values if array.ndim != 1 or array.size != len(self.frame) else array[self.kept]


def without_unknown_levels(X: Data, schema: Schema, *, or_all: bool = False) -> tuple[Any, LeftOut | None]:
    """Return a table without the rows with unknown levels, and the rows left out; None if there are none.

    If all rows have unknown levels, none is left out unless `or_all`, which is meant for parts of a table.
    """
    if isinstance(X, pd.Series):
        return X, None
    frame, _ = as_frame(X, "X")
    if any(name not in frame.columns for name in schema.names):
        return X, None  # encoding the table raises
    reasons: dict[int, str] = {}
    for feature in schema.features:
        unknown = _unknown(feature, frame[feature.name])
        for place in np.flatnonzero(unknown).tolist():
            reasons.setdefault(place, f"column {feature.name!r} holds {spell(frame[feature.name].iloc[place])}")
    if not reasons or (len(reasons) == len(frame) and not or_all):
        return X, None
    left_out = LeftOut(frame, dict(sorted(reasons.items())))
    return frame[left_out.kept], left_out


def _unknown(feature: Feature, column: pd.Series[Any]) -> Bools:
    try:
        return feature.is_unknown(column)
    except TypeError:  # cells that cannot be compared
        return np.zeros(len(column), dtype=bool)
