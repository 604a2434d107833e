"""Known processes to compare with fitted generators."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats


def clusters(n, seed):
    """Two clusters with independent features inside: the model of an adversarial forest."""
    rng = np.random.default_rng(seed)
    which = rng.random(n) < 0.4
    frame = pd.DataFrame(
        {
            "side": np.where(rng.random(n) < np.where(which, 0.9, 0.2), "left", "right"),
            "x": rng.normal(np.where(which, 0.0, 6.0), 1.0),
            "y": rng.normal(np.where(which, 5.0, -1.0), 1.5),
        }
    )
    return frame


def clusters_log_density(rows):
    """log p(x, y | side)."""
    parts = []
    for share, left, x, y in ((0.4, 0.9, 0.0, 5.0), (0.6, 0.2, 6.0, -1.0)):
        side = np.where(rows["side"] == "left", left, 1 - left)
        parts.append((share * side, stats.norm.pdf(rows["x"], x, 1.0) * stats.norm.pdf(rows["y"], y, 1.5)))
    return np.log(sum(p * d for p, d in parts) / sum(p for p, _ in parts))


def skewed(n, seed):
    """A skewed number whose spread grows with another."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, n)
    return pd.DataFrame({"x": x, "y": (0.5 + 2 * x) * rng.exponential(size=n)})


def skewed_log_density(rows):
    """log p(y | x)."""
    return stats.expon.logpdf(rows["y"], scale=0.5 + 2 * rows["x"])


def atoms(n, seed):
    """A count, and an amount with many zeros, fewer for larger counts."""
    rng = np.random.default_rng(seed)
    k = rng.poisson(2.0, n)
    zero = rng.random(n) < 0.8 / (1 + k)
    return pd.DataFrame({"k": k, "amount": np.where(zero, 0.0, np.round(rng.gamma(4, 5, n) + 5 * k, 3))})
