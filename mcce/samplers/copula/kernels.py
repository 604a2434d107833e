"""Draws of latent normal variables within observed bounds, and integrals over normal utilities: numba kernels.

1. `start_rows` draws a first state, one of several particles. The variables of a particle are drawn in sequence, each
   from its conditional given the preceding ones, inside its bounds; the weight is the product of the masses inside the
   bounds (Geweke, Hajivassiliou and Keane; Hajivassiliou, McFadden and Ruud 1996). One particle is drawn by weight.
2. `sweep_rows` makes Gibbs sweeps: each variable in turn is drawn from its conditional given all others, a normal
   truncated to its bounds (Geweke 1991; for utilities McCulloch and Rossi 1994). Then all variables move along the main
   axes of their conditional covariance, by a normal step truncated to the bounds: strongly correlated variables mix
   slowly one by one, and move jointly.

The bounds are `low <= z <= high` (a point if they are equal); for a group of utilities, the largest one is among the
`allowed`. `weigh_rows` makes the particles of step 1 from given points, for integrals. A row's random numbers are
Philox words keyed by the stream and the row, so a draw does not depend on other rows.

Integrals over normal utilities:

`choose_rows`: the probability that each of several independent utilities is the largest. For means m_k and one standard
deviation, with s_k = (m_k - max m) / sd:

    P_k = integral of phi(x - s_k) prod_{l != k} Phi(x - s_l) dx,

by the trapezoid rule on an even grid, which is spectrally accurate here; the probabilities are then normalised.
On that grid phi is a recurrence, phi(t + h) = phi(t) q(t), q(t + h) = q(t) exp(-h^2). Phi is read from a table at the
nearest knot and corrected by three terms of its Taylor series, in which phi is known: an error below 2e-11.

`mean_below`: the mean of Phi over rows of points, from the same table.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, uint64

from mcce.base.compiling import cached
from mcce.rng import philox
from mcce.rng.normal import normal_quantile

# mypy: disable-error-code="no-untyped-def,untyped-decorator"


_FIRST, _STEP, _N_GRID = -6.0, 0.5, 27
_KNOTS_PER_UNIT = 128
_LAST_KNOT = 8.0  # Phi is 1 from here on
_ROOT = 1.0 / math.sqrt(2.0 * math.pi)
CDF = np.array(
    [0.5 * math.erfc(-(_FIRST + i / _KNOTS_PER_UNIT) * math.sqrt(0.5)) for i in range(14 * _KNOTS_PER_UNIT + 1)]
)

PDF = np.exp(-0.5 * (np.arange(int(_LAST_KNOT) * _KNOTS_PER_UNIT + 1) / _KNOTS_PER_UNIT) ** 2) * _ROOT  # from 0 on


@cached(nogil=True, error_model="numpy")
def choose_rows(means, sd, cdf, found):
    """Fill `found` with P(argmax_k (means_k + sd e_k) = k), e ~ N(0, I), for each row of `means`; `cdf` is `CDF`."""
    n, levels = means.shape
    at, density, growth, dx = np.empty(levels), np.empty(levels), np.empty(levels), np.empty(levels)
    below, ratio = np.empty(levels), np.empty(levels)
    knot = np.empty(levels, dtype=np.int64)
    decay, knots_per_step = math.exp(-_STEP * _STEP), int(_STEP * _KNOTS_PER_UNIT)
    for i in range(n):
        largest = means[i, 0]
        for k in range(1, levels):
            largest = max(largest, means[i, k])
        for k in range(levels):
            t = min(_FIRST + (largest - means[i, k]) / sd, _LAST_KNOT)
            knot[k] = int((t - _FIRST) * _KNOTS_PER_UNIT + 0.5)
            at[k], dx[k] = t, t - (_FIRST + knot[k] / _KNOTS_PER_UNIT)
            # at the last knot and beyond, the density is below 1e-14 on the whole grid
            density[k] = math.exp(-0.5 * t * t) * _ROOT if t < _LAST_KNOT else 0.0
            growth[k] = math.exp(-_STEP * t - 0.5 * _STEP * _STEP)
            found[i, k] = 0.0
        for _ in range(_N_GRID):
            for k in range(levels):
                t, h = at[k], dx[k]
                taylor = 1.0 + h * (0.5 * t + h * (t * t - 1.0) / 6.0)
                below[k] = cdf[min(knot[k], cdf.size - 1)] + density[k] * h * taylor
                ratio[k] = density[k] / below[k]
                density[k] *= growth[k]
                growth[k] *= decay
                at[k] += _STEP
                knot[k] += knots_per_step
            product = 1.0
            for k in range(levels):
                product *= below[k]
            for k in range(levels):
                found[i, k] += ratio[k] * product
        total = 0.0
        for k in range(levels):
            total += found[i, k]
        for k in range(levels):
            found[i, k] /= total


@cached(nogil=True, error_model="numpy")
def mean_below(cuts, means, sd, cdf, pdf, found):
    """Fill `found` (rows, cuts) with the mean of Phi((cut - mean) / sd) over each row of `means`.

    `cdf` and `pdf` are the tables `CDF` and `PDF`.
    """
    zero = int(-_FIRST * _KNOTS_PER_UNIT)
    for k in range(means.shape[0]):
        for c in range(cuts.size):
            total = 0.0
            for i in range(means.shape[1]):
                x = (cuts[c] - means[k, i]) / sd
                t = min(abs(x), _LAST_KNOT)
                knot = int(t * _KNOTS_PER_UNIT + 0.5)
                at = knot / _KNOTS_PER_UNIT
                h = t - at
                above = cdf[zero + knot] + pdf[knot] * h * (1.0 + h * (h * (at * at - 1.0) / 6.0 - 0.5 * at))
                total += above if x > 0.0 else 1.0 - above
            found[k, c] = total / means.shape[1]


# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"


_inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
_entry = cached(nogil=True, error_model="numpy")

_ROOT_HALF = math.sqrt(0.5)
_TO_UNIT = 2.0**-53
_NO_MASS = 1e-290


@_inner
def _normal_cdf(x):
    return 0.5 * math.erfc(-x * _ROOT_HALF)


@_inner
def _cut_normal(mean, sd, low, high, u):
    """Draw a normal number between low and high, and return their mass; without mass, the end nearer to the mean."""
    a = (low - mean) / sd
    b = (high - mean) / sd
    upper = a + b > 0.0
    if upper:
        a, b = -b, -a
    below = _normal_cdf(a) if a > -np.inf else 0.0
    mass = _normal_cdf(b) - below
    x = b
    if mass > _NO_MASS:
        x = min(max(normal_quantile(below + u * mass), a), b)
    found = mean - sd * x if upper else mean + sd * x
    return min(max(found, low), high), mass


@_inner
def _uniform(key, step, row):
    return (np.float64(philox(key, uint64(step), row)[0] >> uint64(11)) + 0.5) * _TO_UNIT


@_inner
def _propose(z, low, high, winner, slope, sd, group_start, offset, uniforms):
    """Turn uniform numbers into one particle, in place; return its log weight."""
    weight = 0.0
    product = 1.0
    for j in range(z.size):
        mean = 0.0
        for k in range(j):
            mean += slope[j, k] * z[k]
        floor, ceiling = low[j], high[j]
        if winner[j] >= 0:
            if j == winner[j]:
                for k in range(group_start[j], j):
                    floor = max(floor, z[k] + offset[k] - offset[j])
            elif j > winner[j]:
                ceiling = z[winner[j]] + offset[winner[j]] - offset[j]
        if floor == ceiling:
            z[j] = floor
            weight -= 0.5 * ((floor - mean) / sd[j]) ** 2
        elif floor == -np.inf and ceiling == np.inf:
            z[j] = mean + sd[j] * normal_quantile(uniforms[j])
        else:
            z[j], mass = _cut_normal(mean, sd[j], floor, ceiling, uniforms[j])
            product *= max(mass, _NO_MASS)
            if product < 1e-10:
                weight += math.log(product)
                product = 1.0
    return weight + math.log(product)


@_inner
def _find_winners(allowed, group_start, group_end, winner):
    """Write for each utility which one of its group is the largest; -1 if unknown, and for other variables."""
    for j in range(allowed.size):
        winner[j] = -1
        n_allowed = 0
        for k in range(group_start[j], group_end[j]):
            if allowed[k]:
                winner[j] = k
                n_allowed += 1
        if n_allowed != 1:
            winner[j] = -1


@_entry
def weigh_rows(z, weight, low, high, allowed, slope, sd, group_start, group_end, offset, point, shift):
    """Make one particle for each row, with its log weight, from a point of (0, 1)^d, shifted (rows, d) and folded."""
    d = z.shape[1]
    uniforms = np.empty(d)
    winner = np.empty(d, dtype=np.int64)
    for i in range(z.shape[0]):
        _find_winners(allowed[i], group_start, group_end, winner)
        for j in range(d):
            at = point[j] + shift[i, j]
            uniforms[j] = min(max(abs(2.0 * (at - math.floor(at)) - 1.0), 1e-12), 1.0 - 1e-12)
        weight[i] = _propose(z[i], low[i], high[i], winner, slope, sd, group_start, offset, uniforms)


@_entry
def start_rows(z, low, high, allowed, slope, sd, group_start, group_end, offset, particles, key, draws, rows):
    """Step 1. `slope` (lower triangle) and `sd` regress each variable on those before it.

    group_end[j] is 0 for a variable with bounds, else the end of its group of utilities.
    """
    d = z.shape[1]
    tried, uniforms = np.empty(d), np.empty(d)
    winner = np.empty(d, dtype=np.int64)
    for i in range(z.shape[0]):
        _find_winners(allowed[i], group_start, group_end, winner)
        word, row = philox(key, draws[i], rows[i])
        is_known = True
        for j in range(d):
            is_known &= low[i, j] >= high[i, j]
        total = -np.inf
        for particle in range(1 if is_known else particles):
            step = particle * (d + 1)
            for j in range(d):
                uniforms[j] = _uniform(word, step + j, row)
            weight = _propose(tried, low[i], high[i], winner, slope, sd, group_start, offset, uniforms)
            high_weight = max(total, weight)
            total = high_weight + math.log(math.exp(total - high_weight) + math.exp(weight - high_weight))
            if particle == 0 or _uniform(word, step + d, row) < math.exp(weight - total):
                for j in range(d):
                    z[i, j] = tried[j]


@_inner
def _move(z, axis, pull, low, high, group_start, group_end, offset, u):
    """Move along an axis as far as the bounds and the utilities' present winners allow."""
    d = z.size
    first, last = -np.inf, np.inf
    drift = spread = 0.0
    for j in range(d):
        drift -= pull[j] * z[j]
        spread += pull[j] * axis[j]
        if group_end[j] == 0:
            if axis[j] != 0.0:
                a, b = (low[j] - z[j]) / axis[j], (high[j] - z[j]) / axis[j]
                first, last = max(first, min(a, b)), min(last, max(a, b))
        elif j == group_start[j]:
            winner = j
            for k in range(j, group_end[j]):
                if z[k] + offset[k] > z[winner] + offset[winner]:
                    winner = k
            for k in range(j, group_end[j]):
                closing = axis[k] - axis[winner]
                if closing != 0.0:
                    t = (z[winner] + offset[winner] - z[k] - offset[k]) / closing
                    if closing > 0.0:
                        last = min(last, t)
                    else:
                        first = max(first, t)
    if first < last:
        t = _cut_normal(drift / spread, 1.0 / math.sqrt(spread), first, last, u)[0]
        for j in range(d):
            moved = z[j] + t * axis[j]
            z[j] = min(max(moved, low[j]), high[j]) if group_end[j] == 0 else moved


@_entry
def sweep_rows(z, low, high, allowed, precision, axes, pulls, group_start, group_end, offset, sweeps, key, draws, rows):
    """Step 2, in place. `axes` (any number, d) are the directions of joint moves, `pulls` the precision times them."""
    d = z.shape[1]
    for i in range(z.shape[0]):
        word, row = philox(key, draws[i], rows[i])
        step = 0
        for _ in range(sweeps):
            for j in range(d - 1, -1, -1):
                is_utility = group_end[j] > 0
                if not is_utility and low[i, j] >= high[i, j]:
                    continue
                mean = 0.0
                for k in range(d):
                    mean -= precision[j, k] * z[i, k]
                mean = mean / precision[j, j] + z[i, j]
                sd = 1.0 / math.sqrt(precision[j, j])
                u = _uniform(word, step, row)
                step += 1
                if is_utility:
                    best = best_other = -np.inf  # among the allowed utilities, and the others
                    for k in range(group_start[j], group_end[j]):
                        if k != j:
                            utility = z[i, k] + offset[k]
                            if allowed[i, k]:
                                best = max(best, utility)
                            else:
                                best_other = max(best_other, utility)
                    floor, ceiling = -np.inf, np.inf
                    if not allowed[i, j]:
                        ceiling = best - offset[j]
                    elif best <= best_other:
                        floor = best_other - offset[j]
                    z[i, j] = _cut_normal(mean, sd, floor, ceiling, u)[0]
                else:
                    z[i, j] = _cut_normal(mean, sd, low[i, j], high[i, j], u)[0]
            for a in range(axes.shape[0]):
                u = _uniform(word, step, row)
                step += 1
                _move(z[i], axes[a], pulls[a], low[i], high[i], group_start, group_end, offset, u)
