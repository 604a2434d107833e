"""The conditional functions of a pair copula, of points and of intervals (pyvinecopulib).

With C the copula, one share in (a, b] and the other in (c, d],

    h_1(v) = (C(b, v) - C(a, v)) / (b - a),     h_2(u) = (C(u, d) - C(u, c)) / (d - c)

are the distribution functions of the other and of the one (Panagiotelis, Czado and Joe 2012); of points, slopes of C.

1. Both functions at both ends need C at the four corners only; and C(u, 0) = 0, C(u, 1) = u need no copula: one end of
   an indicator is always such.
2. Points are left to the library, and intervals that are too narrow for a difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mcce.arrays import Floats

Cover = tuple[Floats, Floats]
_NARROW = 1e-6  # C is good to 1e-15


@dataclass(frozen=True)
class Pair:
    """A pair copula of the library, and which of its two variables have point masses."""

    bicop: Any
    discrete: tuple[bool, bool]

    def second(self, share: Floats, other: Cover) -> Floats:
        """Return h_2 at shares of the one variable, given what the value of the other covers."""
        if self._is_independence:
            return share
        if not self.discrete[1]:
            return self._by_library(2, share, other)
        return self._by_difference(2, share, other, self._copula(share, other[0]), self._copula(share, other[1]))

    def both(self, one: Cover, other: Cover) -> tuple[Cover, Cover]:
        """Return h_1 at both ends of the other variable, and h_2 at both ends of the one (step 1)."""
        if self._is_independence:
            return other, one
        ends, others = ((0, 1) if each else (1,) for each in self.discrete)
        corners = {(i, j): self._copula(one[i], other[j]) for i in ends for j in others} if any(self.discrete) else {}
        first = [
            self._by_difference(1, other[j], one, corners[0, j], corners[1, j])
            if self.discrete[0]
            else self._by_library(1, other[j], one)
            for j in others
        ]
        second = [
            self._by_difference(2, one[i], other, corners[i, 0], corners[i, 1])
            if self.discrete[1]
            else self._by_library(2, one[i], other)
            for i in ends
        ]
        return (first[0], first[-1]), (second[0], second[-1])

    def _by_difference(self, side: int, at: Floats, cover: Cover, low: Floats, high: Floats) -> Floats:
        """Return h_1 or h_2 from C at both ends of what is given."""
        width = cover[1] - cover[0]
        found = np.clip((high - low) / np.maximum(width, _NARROW), 0.0, 1.0)
        narrow = width < _NARROW
        if narrow.any():
            found[narrow] = self._by_library(side, at[narrow], (cover[0][narrow], cover[1][narrow]))
        return np.asarray(found)

    def _by_library(self, side: int, at: Floats, cover: Cover) -> Floats:
        if side == 1:
            return np.asarray(self.bicop.hfunc1(joined(cover, (at, at))))
        return np.asarray(self.bicop.hfunc2(joined((at, at), cover)))

    def _copula(self, u: Floats, v: Floats) -> Floats:
        """Return C(u, v)."""
        found = np.where(v >= 1.0, u, np.where(u >= 1.0, v, 0.0))
        inside = (u > 0.0) & (u < 1.0) & (v > 0.0) & (v < 1.0)
        if inside.any():
            found[inside] = self._of_points.cdf(np.asfortranarray(np.column_stack([u[inside], v[inside]])))
        return found

    @cached_property
    def _of_points(self) -> Any:
        own = {name: getattr(self.bicop, name) for name in ("family", "rotation", "parameters")}
        return type(self.bicop)(**own, var_types=["c", "c"])

    @cached_property
    def _is_independence(self) -> bool:
        return bool(self.bicop.family.name == "indep")


def joined(one: Cover, other: Cover) -> Floats:
    """Return what the library takes: both values, then both left limits."""
    return np.asfortranarray(np.column_stack([one[1], other[1], one[0], other[0]]))
