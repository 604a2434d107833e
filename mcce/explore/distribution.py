"""The distribution of a feature among similar people, as bars on an axis from 0 to 1.

The values are drawn given the person's fixed values and the wanted decision. The axis of numbers is even, or
logarithmic where values crowd at one end (`mcce.report.plots.scale`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcce.base.arrays import Floats
from mcce.report.plots.scale import bent_scale

BARS = 24


def number_bars(values: Floats, before: float, after: float, write: Callable[[float], str]) -> dict[str, object]:
    """Return the distribution of numbers, with the positions of the old and the new value, None if missing."""
    known = values[~np.isnan(values)]
    marks = np.array([before, after])
    both = np.concatenate([known, marks[~np.isnan(marks)]])
    if not both.size:
        return {"kind": "numbers", "scale": "even", "bars": [], "ends": ["", ""], "before": None, "after": None}
    low, high = float(both.min()), float(both.max())
    line = bent_scale(known if known.size else both, low, high)

    def place(numbers: Floats) -> Floats:
        return np.clip(line.shares(numbers), 0.0, 1.0) if high > low else np.full(numbers.shape, 0.5)

    edges = np.linspace(0.0, 1.0, BARS + 1)
    ends = [write(value) for value in line.values(edges).tolist()]
    shares = np.histogram(place(known), edges)[0] / max(known.size, 1)
    bars = [
        {"from": edges[b], "to": edges[b + 1], "share": shares[b], "text": f"{ends[b]} to {ends[b + 1]}"}
        for b in range(BARS)
    ]
    places = [None if np.isnan(mark) else float(place(np.array([mark]))[0]) for mark in marks]
    return {
        "kind": "numbers",
        "scale": "even" if line.is_linear else "log",
        "bars": bars,
        "ends": [write(low), write(high)],
        "before": places[0],
        "after": places[1],
    }


def level_bars(values: Floats, texts: list[str], before: float, after: float) -> dict[str, object]:
    """Return the shares of levels, with marks for the old and the new one."""
    known = values[~np.isnan(values)].astype(np.int64)
    shares = np.bincount(known, minlength=len(texts)) / max(known.size, 1)
    return {
        "kind": "levels",
        "bars": [
            {"text": text, "share": float(share), "before": code == before, "after": code == after}
            for code, (text, share) in enumerate(zip(texts, shares))
        ],
    }
