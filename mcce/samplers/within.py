"""What a restricted draw may return: the restriction of each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcce._utils import Bools, Floats


@dataclass(frozen=True, eq=False)
class Within:
    """Restrictions of each row's draw; all that are given hold together.

    Attributes
    ----------
    low, high : (rows,) floats or None
        Inclusive bounds, in encoded units (a level's code for an ordered target); infinite where there is none.
    levels : (rows, levels) bools or None
        Allowed levels.
    values : floats or None
        The finite set of allowed numbers, ascending; the same for all rows.
    missing : (rows,) bools or None
        Whether the value may be missing; None: yes.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.samplers.within import Within
    >>> within = Within(low=np.array([2.0, 2.0]), missing=np.array([True, False]))
    >>> within.allows(np.array([1.0, np.nan])).tolist()
    [False, False]
    >>> (within & Within(high=np.array([9.0, 9.0]))).allows(np.array([9.5, 9.0])).tolist()
    [False, True]
    >>> within.take([0]).allows(np.array([np.nan])).tolist()
    [True]
    >>> Within(values=np.array([0.0, 500.0])).allows(np.array([500.0, 501.0])).tolist()
    [True, False]
    """

    low: Floats | None = None
    high: Floats | None = None
    levels: Bools | None = None
    values: Floats | None = None
    missing: Bools | None = None

    def allows(self, values: Floats) -> Bools:
        """Return whether each row's value is allowed."""
        is_missing = np.isnan(values)
        allowed = ~is_missing
        if self.low is not None:
            allowed &= values >= self.low
        if self.high is not None:
            allowed &= values <= self.high
        if self.values is not None:
            allowed &= np.isin(values, self.values)
        if self.levels is not None:
            rows = np.flatnonzero(allowed)  # a missing value has no code
            allowed[rows] = self.levels[rows, values[rows].astype(np.intp)]
        return allowed | is_missing if self.missing is None else allowed | (is_missing & self.missing)

    def take(self, rows: Any) -> Within:
        """Return the restrictions of some rows: indices, a mask or a slice."""

        def part(restriction: Any) -> Any:
            return None if restriction is None else restriction[rows]

        return Within(part(self.low), part(self.high), part(self.levels), self.values, part(self.missing))

    def __and__(self, other: Within) -> Within:
        return Within(
            _both(self.low, other.low, np.maximum),
            _both(self.high, other.high, np.minimum),
            _both(self.levels, other.levels, np.logical_and),
            _both(self.values, other.values, np.intersect1d),
            _both(self.missing, other.missing, np.logical_and),
        )

    def bounds(self, n_rows: int) -> tuple[Floats, Floats]:
        """Return the bounds of each row, infinite where there are none."""
        low = np.full(n_rows, -np.inf) if self.low is None else np.asarray(self.low, dtype=np.float64)
        return low, np.full(n_rows, np.inf) if self.high is None else np.asarray(self.high, dtype=np.float64)

    def allowed_levels(self, n_rows: int, n_levels: int) -> Bools:
        """Return which levels are allowed by bounds, set and levels together: (rows, levels)."""
        low, high = self.bounds(n_rows)
        codes = np.arange(n_levels, dtype=np.float64)
        allowed = (codes >= low[:, None]) & (codes <= high[:, None])
        if self.values is not None:
            allowed &= np.isin(codes, self.values)
        return allowed if self.levels is None else allowed & self.levels

    def allows_missing(self, n_rows: int) -> Bools:
        """Return whether each row's value may be missing."""
        return np.full(n_rows, True) if self.missing is None else np.asarray(self.missing, dtype=bool)


def _both(a: Any, b: Any, join: Callable[[Any, Any], Any]) -> Any:
    return b if a is None else a if b is None else join(a, b)
