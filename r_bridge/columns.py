"""Column types of R and units of time, for both directions of `r_bridge.frames`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

NA_INTEGER = -(2**31)
NA_INTEGER64 = -(2**63)
MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}  # a tick of each unit; nanoseconds are divided
DAY = 86_400


@dataclass(frozen=True)
class RColumn:
    """The type that R expects a column to have, with its levels if it is a factor.

    `type` is one of "numeric", "logical", "character", "factor", "ordered", "Date", "POSIXct", "difftime". A level of
    None is NA as a level, as created by R's `addNA`: missing values are then written as this level.
    """

    type: str
    levels: tuple[str | None, ...] = ()


def unit_of(dtype: Any) -> str:
    """Return the unit of time of a dtype: s, ms, us, ns or D."""
    if isinstance(dtype, pd.PeriodDtype):
        return "D"
    if isinstance(dtype, pd.ArrowDtype):
        return str(getattr(dtype.pyarrow_dtype, "unit", "D"))
    return str(dtype.unit if isinstance(dtype, pd.DatetimeTZDtype) else np.datetime_data(dtype)[0])
