"""The distribution of a feature among similar people, as bars on an axis from 0 to 1.

The values are drawn given the person's fixed values and the wanted decision. The axis of numbers is even, or, where the
middle 90 per cent take less than half of the range, logarithmic for positive numbers and otherwise of quantiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mcce.base.arrays import Floats

Scale = Literal["even", "log", "quantiles"]
BARS = 24
MIDDLE = (0.05, 0.95)
LEAST_MIDDLE = 0.5  # of the range, that the middle takes up on an even axis
APART = 0.02  # of the axis, that her own value and the new one are apart
RANKS = 101


@dataclass(frozen=True)
class Axis:
    """An axis of numbers.

    Attributes
    ----------
    scale : how numbers are spread on it.
    ends : the lowest and the highest number.
    ranks : for quantiles, the numbers at equal distances.
    """

    scale: Scale
    ends: tuple[float, float]
    ranks: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Floats, marks: Floats) -> Axis:
        """Choose the axis for some numbers, long enough for some marks as well; none of them is missing."""
        both = np.concatenate([values, marks])
        low, high = float(both.min()), float(both.max())
        inner, outer = np.quantile(values if values.size else both, MIDDLE)
        plain: list[Scale] = ["even"] if not high > low or outer - inner >= LEAST_MIDDLE * (high - low) else []
        for scale in plain or (["log"] if low > 0.0 else []):
            axis = cls(scale, (low, high))
            if marks.size < 2 or not high > low or np.ptp(axis.place(marks)) >= APART:
                return axis
        ranks = np.unique(np.append(np.quantile(both, np.linspace(0.0, 1.0, RANKS)), marks))
        return cls("quantiles", (low, high), tuple(ranks.tolist()))

    def place(self, values: Floats) -> Floats:
        """Return where numbers stand, from 0 to 1."""
        low, high = self.ends
        if not high > low:
            return np.full(values.shape, 0.5)
        if self.scale == "quantiles":
            ranks = np.array(self.ranks)
            return np.asarray(np.interp(values, ranks, np.linspace(0.0, 1.0, ranks.size)))
        if self.scale == "log":
            return np.asarray(np.log(values / low) / np.log(high / low))
        return np.asarray((values - low) / (high - low))

    def value(self, places: Floats) -> Floats:
        """Return the numbers that stand at some places."""
        low, high = self.ends
        if self.scale == "quantiles":
            ranks = np.array(self.ranks)
            return np.asarray(np.interp(places, np.linspace(0.0, 1.0, ranks.size), ranks))
        if self.scale == "log":
            return np.asarray(low * (high / low) ** places)
        return np.asarray(low + places * (high - low))


def number_bars(values: Floats, before: float, after: float, write: Callable[[float], str]) -> dict[str, object]:
    """Return the distribution of numbers, with the places of her own value and of a new one; NaN has none."""
    known = values[~np.isnan(values)]
    marks = np.array([before, after])
    marked = marks[~np.isnan(marks)]
    if not known.size and not marked.size:
        return {"kind": "numbers", "scale": "even", "bars": [], "ends": ["", ""], "before": None, "after": None}
    axis = Axis.of(known, marked)
    edges = np.linspace(0.0, 1.0, BARS + 1)
    counts = np.histogram(axis.place(known), edges)[0]
    ends = [write(value) for value in axis.value(edges).tolist()]
    shares = counts / max(known.size, 1)
    bars = [
        {"from": edges[b], "to": edges[b + 1], "share": shares[b], "text": f"{ends[b]} to {ends[b + 1]}"}
        for b in range(BARS)
    ]
    places = [None if np.isnan(mark) else float(axis.place(np.array([mark]))[0]) for mark in marks]
    low, high = (write(end) for end in axis.ends)
    return {
        "kind": "numbers",
        "scale": axis.scale,
        "bars": bars,
        "ends": [low, high],
        "before": places[0],
        "after": places[1],
    }


def level_bars(values: Floats, texts: list[str], before: float, after: float) -> dict[str, object]:
    """Return the shares of levels, each marked if it is her own or the new one."""
    known = values[~np.isnan(values)].astype(np.int64)
    shares = np.bincount(known, minlength=len(texts)) / max(known.size, 1)
    return {
        "kind": "levels",
        "bars": [
            {"text": text, "share": float(share), "before": code == before, "after": code == after}
            for code, (text, share) in enumerate(zip(texts, shares))
        ],
    }
