"""Tests of equal distributions of two samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Floats

FEWEST_EXPECTED = 5.0
CHUNK = 4_000_000  # numbers permuted at once


def chi_square(a: Floats, b: Floats) -> tuple[float, float]:
    """Return statistic and p-value for two samples of level codes; NaN is a level, rare levels are pooled."""
    from scipy.stats import chi2_contingency

    codes = np.unique(np.concatenate([a, b]), return_inverse=True, equal_nan=True)[1]
    counts = np.array([np.bincount(part, minlength=codes.max() + 1) for part in (codes[: a.size], codes[a.size :])])
    expected = counts.sum(axis=0) * min(a.size, b.size) / (a.size + b.size)
    rare = expected < FEWEST_EXPECTED
    if rare.any():
        # if the pooled rare levels are still too few, add the rarest common level
        if expected[rare].sum() < FEWEST_EXPECTED and (~rare).any():
            rare |= expected == expected[~rare].min()
        counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    if counts.shape[1] < 2:
        return 0.0, 1.0
    tested = chi2_contingency(counts, correction=False)
    return float(tested.statistic), float(tested.pvalue)


def permuted_ks(a: Floats, b: Floats, n_permutations: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the distance and its permutation p-value; missing values are smaller than all others."""
    values = np.concatenate([a, b])
    order = np.argsort(np.where(np.isnan(values), -np.inf, values), kind="stable")
    ordered = values[order]
    is_a = (order < a.size).astype(np.int8)
    ends = np.flatnonzero(np.append((ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[:-1]), True))
    ends = np.union1d(ends, np.flatnonzero(np.diff(np.isnan(ordered).astype(np.int8)) != 0))
    below = ends + 1

    def distance(labels: npt.NDArray[np.int8]) -> Floats:
        from_a = np.cumsum(labels, axis=1, dtype=np.int32)[:, ends]
        gaps: Floats = np.abs(from_a / a.size - (below - from_a) / b.size).max(axis=1)
        return gaps

    observed = float(distance(is_a[None, :])[0])
    at_least = 0
    for size in _chunks(n_permutations, values.size):
        permuted = rng.permuted(np.broadcast_to(is_a, (size, is_a.size)), axis=1)
        at_least += int((distance(permuted) >= observed - 1e-12).sum())
    return observed, (1 + at_least) / (1 + n_permutations)


def _chunks(total: int, width: int) -> list[int]:
    size = max(CHUNK // max(width, 1), 1)
    return [min(size, total - begin) for begin in range(0, total, size)]
