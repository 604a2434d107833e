"""Whether PITs are uniform: a smooth test whose parts have a meaning, and a histogram with bands.

1. phi_1, ..., phi_4 are the Legendre polynomials, orthonormal on (0, 1); c_k = n^(-1/2) sum_i phi_k(u_i).
2. If the PITs are independent and uniform, c_1^2 + ... + c_4^2 is chi-squared with 4 degrees of freedom as n grows
   (Neyman 1937). c_1 > 0 says that values lie above the draws, c_2 > 0 that they lie outside of them more often than
   they should, c_3 and c_4 that the shape is another.
3. The counts of the bins of a histogram are binomial; each bin has an interval of level 1 - 0.05 / bins, so all of them
   hold together with a probability of at least 95 per cent (Bonferroni).
"""

from __future__ import annotations

import numpy as np
import scipy

from mcce.arrays import Floats, Ints

N_COMPONENTS = 4
LOCATION, SPREAD = 0, 1  # components that where it fails is looked for by
BAND = 0.95
FEW, MANY = 5, 20  # bins


def components(pit: Floats) -> Floats:
    """Return phi_1, ..., phi_4 of each PIT (step 1), one column each."""
    x = 2.0 * pit - 1.0
    found = np.polynomial.legendre.legvander(x, N_COMPONENTS)[:, 1:]
    return np.asarray(found * np.sqrt(2.0 * np.arange(1, N_COMPONENTS + 1) + 1.0))


def smooth_test(pit: Floats) -> tuple[Floats, float]:
    """Return c_1, ..., c_4 and the p-value of the smooth test (step 2)."""
    parts = components(pit).sum(axis=0) / np.sqrt(pit.size)
    return parts, float(scipy.stats.chi2.sf((parts**2).sum(), N_COMPONENTS))


def histogram(pit: Floats) -> tuple[Ints, tuple[int, int]]:
    """Return the counts of a histogram on (0, 1), of 20 rows a bin or more, and the band that they lie in (step 3)."""
    n_bins = int(np.clip(pit.size // 20, FEW, MANY))
    counts = np.histogram(pit, n_bins, (0.0, 1.0))[0].astype(np.int64)
    tail = 0.5 * (1.0 - BAND) / n_bins
    ends = np.asarray(scipy.stats.binom.ppf([tail, 1.0 - tail], pit.size, 1.0 / n_bins))
    return counts, (int(ends[0]), int(ends[1]))
