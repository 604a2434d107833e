"""Distances between the distributions of each feature in generated and real rows.

1. Numbers and dates: `ks` (Kolmogorov-Smirnov) and `wasserstein` (in standard deviations of the real column), without
   missing values, which are counted separately.
2. Levels, with missing as a level: `total_variation` and `hellinger`; ordered levels have a `ks` as well.
3. `distance` is ks for numbers and total variation for levels, both a largest difference in probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats
from mcce.diagnostics.pairs import read_pair
from mcce.table import Data, Feature, Kind


def marginal_distances(real: Data, generated: Data, *, kinds: Mapping[Any, Kind] | None = None) -> pd.DataFrame:
    """Compare two tables column by column.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes.
    kinds : dict or None
        Overrides of column kinds, as for `ChainModel`.

    Returns
    -------
    DataFrame
        Indexed by feature, the columns in data order: kind, distance, ks, wasserstein, total_variation, hellinger
        (missing where they are not defined), missing_real and missing_generated (shares of missing values). The
        distances lie between 0 and 1, except for `wasserstein`.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> real = pd.DataFrame({"age": [20, 30, 40, 50], "job": ["clerk", "clerk", "pilot", "pilot"]})
    >>> generated = pd.DataFrame({"age": [20, 30, 40, 40], "job": ["clerk", "pilot", "pilot", "pilot"]})
    >>> mcce.diagnostics.marginal_distances(real, generated)["distance"].to_dict()
    {'age': 0.25, 'job': 0.25}
    """
    pair = read_pair(real, generated, kinds)
    rows = [_compare(f, pair.real[:, j], pair.generated[:, j]) for j, f in enumerate(pair.features)]
    return pd.DataFrame(rows, index=pd.Index(pair.names, name="feature", tupleize_cols=False))


def _compare(feature: Feature, real: Floats, generated: Floats) -> dict[str, Any]:
    missing = [float(np.isnan(values).mean()) for values in (real, generated)]
    p, q = (values[~np.isnan(values)] for values in (real, generated))
    ks = variation = hellinger = wasserstein = np.nan
    if feature.kind != "categorical":
        ks = largest_gap(p, q)
    if feature.is_numeric:
        wasserstein = _moved(p, q)
    else:
        shares = [_shares(feature, values) for values in (real, generated)]
        variation = float(np.abs(shares[0] - shares[1]).sum() / 2)
        hellinger = float(np.sqrt(((np.sqrt(shares[0]) - np.sqrt(shares[1])) ** 2).sum() / 2))
    return {
        "kind": feature.kind,
        "distance": ks if feature.is_numeric else variation,
        "ks": ks,
        "wasserstein": wasserstein,
        "total_variation": variation,
        "hellinger": hellinger,
        "missing_real": missing[0],
        "missing_generated": missing[1],
    }


def _shares(feature: Feature, values: Floats) -> Floats:
    codes = np.where(np.isnan(values), feature.n_levels, values).astype(np.intp)
    return np.bincount(codes, minlength=feature.n_levels + 1) / values.size


def largest_gap(p: Floats, q: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples."""
    if not (p.size and q.size):
        return 0.0 if p.size == q.size else 1.0
    at = np.unique(np.concatenate([p, q]))  # ks_2samp of scipy warns for small samples
    below = [np.searchsorted(np.sort(values), at, "right") / values.size for values in (p, q)]
    return float(np.abs(below[0] - below[1]).max())


def _moved(p: Floats, q: Floats) -> float:
    if not (p.size and q.size):
        return 0.0 if p.size == q.size else np.nan
    from scipy.stats import wasserstein_distance

    area, spread = float(wasserstein_distance(p, q)), float(p.std())
    if spread > 0:
        return area / spread
    return 0.0 if area == 0 else np.inf
