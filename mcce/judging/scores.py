"""Scores of conditional distributions on rows that they were not fitted on.

For a row with the value y and the distribution function F of its conditional:

1. Log score: log((1 - e) p(y) + e q(y)), where p is the density (or probability) relative to the column's base measure,
   e = 0.001, and q is uniform: 1 / (number of point masses + 1) at a value with point mass, 1 / span elsewhere. So an
   impossible value costs about log 0.001, not infinity. For a missing value p = P(missing), q = 1. Higher is better.
2. CRPS, the integral of (F(x) - 1{y <= x})^2: for numbers 2 sum_i (1{y < x_i} - u_i)(x_i - y) / M over quantiles x_i at
   the levels u_i = (i - 1/2) / M, M = 50; for ordered levels the sum over the codes. Unordered levels have the Brier
   score, sum_k (p_k - 1{y = k})^2. Lower is better. Missing values are left out.
3. PIT: F(y-) + U (F(y) - F(y-)), U uniform; levels in the order of their codes. Uniform, and independent of the
   givens, if the conditional is right. Missing values are left out.
4. Calibration is tested by Neyman's smooth test: with the orthonormal Legendre polynomials phi_1, ..., phi_4, the sum
   of n mean(phi_k)^2 is asymptotically chi-squared with four degrees of freedom.

A sampler that only draws is scored by 200 draws for each row, and has no log score.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from mcce._utils import Floats, Ints, blocks
from mcce.rng import RowStreams
from mcce.samplers import Distribution, Donors, Margin
from mcce.table import Feature

UNIFORM_PART = 1e-3
LEVELS = (np.arange(50) + 0.5) / 50  # of the quantiles that CRPS is computed from
DRAWS = 200  # for each row, of a sampler without a distribution
BLOCK = 200_000  # quantiles at once
COMPONENTS = 4  # of the smooth test


def score_rows(
    distribution: Distribution, values: Floats, feature: Feature, margin: Margin, rng: RowStreams
) -> pd.DataFrame:
    """Return the scores of each row: `log_score`, `crps`, `pit`; NaN where there is none.

    Parameters
    ----------
    distribution : of the rows.
    values : the values of the rows.
    feature : the column.
    margin : of the column's training values.
    rng : one stream for each row.
    """
    log_scores = np.full(values.size, np.nan)
    if distribution.has_density:
        log_scores = log_score(distribution, values, margin)
    else:
        distribution = by_draws(distribution, rng.child("draws"))
    is_known = ~np.isnan(values)
    crps, pits = np.full((2, values.size), np.nan)
    part, known = distribution.take(is_known), values[is_known]
    crps[is_known] = crps_of_numbers(part, known) if feature.is_numeric else crps_of_levels(part, known, feature)
    pits[is_known] = pit(part, known, rng.child("pit").uniform()[is_known])
    return pd.DataFrame({"log_score": log_scores, "crps": crps, "pit": pits})


def by_draws(distribution: Distribution, rng: RowStreams) -> Distribution:
    """Return the empirical distributions of 200 draws for each row, of a sampler that only draws."""
    n = len(distribution)
    draws = np.empty((n, DRAWS))
    for i in range(DRAWS):
        draws[:, i] = distribution.sample(rng.child(i))[0]
    begin = np.arange(n) * DRAWS
    return Donors(np.sort(draws, axis=1).ravel(), begin, begin + DRAWS)


def log_score(distribution: Distribution, values: Floats, margin: Margin) -> Floats:
    """Return the log scores of the rows' values (step 1)."""
    span = float(np.ptp(margin.known)) if margin.known.size else 0.0
    uniform = np.where(margin.has_mass(values), 1.0 / (margin.atoms.size + 1), 1.0 / (span or 1.0))
    uniform = np.where(np.isnan(values), 1.0, uniform)
    return np.asarray(
        np.logaddexp(np.log1p(-UNIFORM_PART) + distribution.log_density(values), np.log(UNIFORM_PART * uniform))
    )


def crps_of_numbers(distribution: Distribution, values: Floats) -> Floats:
    """Return the CRPS of known numbers (step 2)."""
    crps = np.empty(values.size)
    for block in blocks(values.size, BLOCK // LEVELS.size):
        y = values[block, None]
        rows = np.repeat(np.arange(values.size)[block], LEVELS.size)
        x = distribution.take(rows).ppf(np.tile(LEVELS, len(y))).reshape(len(y), LEVELS.size)
        crps[block] = 2.0 * (((y < x) - LEVELS) * (x - y)).mean(axis=1)
    return crps


def crps_of_levels(distribution: Distribution, values: Floats, feature: Feature) -> Floats:
    """Return the CRPS of ordered levels, or the Brier score of unordered ones (step 2)."""
    scores, below = np.zeros(values.size), np.zeros(values.size)
    for code in range(feature.n_levels):
        upto = distribution.cdf(np.full(values.size, float(code)))
        if feature.kind == "ordered":
            scores += (upto - (values <= code)) ** 2
        else:
            scores += (upto - below - (values == code)) ** 2
        below = upto
    return scores


def pit(distribution: Distribution, values: Floats, uniform: Floats) -> Floats:
    """Return the randomised PIT of known values (step 3)."""
    below, upto = distribution.cdf(values, below=True), distribution.cdf(values)
    return np.clip(below + uniform * (upto - below), 0.0, 1.0)


def legendre(pits: Floats, n_components: int = COMPONENTS) -> Floats:
    """Return the orthonormal polynomials phi_1, phi_2, ... of each PIT, one column each.

    The mean of phi_1 is positive if values tend to lie above their distribution, that of phi_2 if they lie in its tails
    too often.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.judging.scores import legendre
    >>> legendre(np.array([0.0, 0.5, 1.0]), 2).round(2).tolist()
    [[-1.73, 2.24], [0.0, -1.12], [1.73, 2.24]]
    """
    polynomials = np.polynomial.legendre.legvander(2.0 * pits - 1.0, n_components)[:, 1:]
    return np.asarray(polynomials * np.sqrt(2.0 * np.arange(1, n_components + 1) + 1.0))


def smooth_test(pits: Floats) -> float:
    """Return the p-value of the smooth test of uniform PITs (step 4); NaN without rows."""
    if not pits.size:
        return float("nan")
    sums = legendre(pits).sum(axis=0)
    return float(chdtrc(COMPONENTS, (sums**2).sum() / pits.size))


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted for their number by Holm's method; NaN is not counted."""
    adjusted = np.full(p_values.size, np.nan)
    tested: Ints = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return adjusted
