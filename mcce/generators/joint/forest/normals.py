"""The normal distributions of spread numbers in leaves: where they are cut, their means and deviations.

1. A leaf holds the numbers between the middles beyond its outermost codes; beyond the first and the last training value
   there is no end, but that of the sign (`mcce.generators.joint.forest.columns`).
2. Mean and deviation are those of the leaf's spread numbers. One more number, as far from the mean as a standard
   deviation of the normal distribution that fills the box, keeps the deviation from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from mcce.arrays import Floats, Ints
from mcce.generators.joint.forest.columns import Codes, Coding

INSIDE = 2.0 * 1.959964  # a normal distribution has 95 per cent of its mass in so many standard deviations


def find_boxes(codings: Sequence[Coding], low: Codes, high: Codes) -> Floats:
    """Return between what numbers each leaf holds each column: (leaves, columns, 2) (step 1)."""
    box = np.zeros((*low.shape, 2))
    for j, coding in enumerate(codings):
        if coding.values.size:
            edges = np.concatenate([[coding.ends[0]] * 2, coding.cuts, [coding.ends[1]]])
            box[:, j, 0] = edges[np.maximum(low[:, j], 1)]
            box[:, j, 1] = edges[high[:, j] + 1]
    return box


def find_moments(
    codings: Sequence[Coding], codes: Codes, weight: Floats, start: Ints, rows: Codes, box: Floats
) -> tuple[Floats, Floats]:
    """Return mean, deviation and mass inside the box, (leaves, columns, 3), and how many spread numbers there are."""
    normal, n_spread = np.ones((*box.shape[:2], 3)), np.zeros(box.shape[:2])
    weight = weight[rows]
    begins = start[:-1]
    leaf_of = np.repeat(np.arange(begins.size), np.diff(start))
    below = scipy.special.ndtr
    for j, coding in enumerate(codings):
        if not coding.values.size:
            continue
        mine = codes[j][rows]
        spread = ~coding.mass_of_code[mine]
        values = np.where(spread, coding.value_of_code[mine], 0.0)
        count = np.add.reduceat(weight * spread, begins)
        low, high = (np.clip(box[:, j, end], *coding.reach) for end in (0, 1))
        some = np.where(count > 0.0, count, 1.0)
        mean = np.where(count > 0.0, np.add.reduceat(weight * values, begins) / some, (low + high) / 2.0)
        off = np.where(spread, values - mean[leaf_of], 0.0)
        squares = np.add.reduceat(weight * off**2, begins) + ((high - low) / INSIDE) ** 2
        sd = np.where(high > low, np.sqrt(squares / (count + 1.0)), 1.0)
        a, b = ((box[:, j, end] - mean) / sd for end in (0, 1))
        held = np.where(a > 0.0, below(-a) - below(-b), below(b) - below(a))
        normal[:, j] = np.column_stack([mean, sd, held])
        n_spread[:, j] = count
    return normal, n_spread
