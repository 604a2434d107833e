"""Rows with a level that no training row has: set aside, so that the other rows are explained.

Such rows cannot be encoded, and neither model nor generator has seen them. If all rows of a table are like this, none
is set aside, and encoding the table raises.
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
    frame : all rows, these among them
    reasons : by place of such a row, why
    """

    frame: pd.DataFrame
    reasons: Mapping[int, str]

    @property
    def kept(self) -> Bools:
        """Which rows were not left out."""
        kept = np.ones(len(self.frame), dtype=bool)
        kept[list(self.reasons)] = False
        return kept

    def words(self) -> str:
        """Return a sentence about the rows of a table, but for its subject."""
        index = self.frame.index
        some = [f"{spell(index[place])} ({why})" for place, why in list(self.reasons.items())[:SHOWN]]
        more = f" and {len(self.reasons) - SHOWN} more" if len(self.reasons) > SHOWN else ""
        rows = "a row" if len(self.reasons) == 1 else f"{len(self.reasons)} rows"
        return f"has {rows} with a level that is not known: {'; '.join(some)}{more}."

    def tell(self, where: str, then: str) -> None:
        """Warn of the rows, once for all; `then` says what becomes of them."""
        warn(Parameter(where), f" {self.words()} {then}")

    def cut(self, values: Any) -> Any:
        """Return values of the rows that were not left out; what is not one for each row stays as it is."""
        array = np.asarray(values)
        return values if array.ndim != 1 or array.size != len(self.frame) else array[self.kept]


def without_unknown_levels(X: Data, schema: Schema, *, or_all: bool = False) -> tuple[Any, LeftOut | None]:
    """Return a table without the rows that hold an unknown level, and these; None if there are none.

    Nor are there any where all rows hold one, unless `or_all`: for a part of a table, which others belong to.
    """
    if isinstance(X, pd.Series):
        return X, None
    frame, _ = as_frame(X, "X")
    if any(name not in frame.columns for name in schema.names):
        return X, None  # whoever encodes it says so
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
    except TypeError:  # cells that cannot be compared at all
        return np.zeros(len(column), dtype=bool)
