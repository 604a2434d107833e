"""Singular values and vectors of a small square matrix, rounded the same way on every machine.

A choice between equivalent predictors depends on the last bit of their statistics, and the rounding of numpy's
decomposition depends on the processor and the library. This one runs sequentially, in the order of the reference
version of LAPACK (3.11, dgesdd for up to 25 rows), and so gives the same bits as an R with that version.

1. `_bidiagonalise`: Householder reflections from the left and the right in turn (Golub and Kahan 1965).
2. `_diagonalise`: implicit QR sweeps, with a zero shift where small values would lose accuracy (Demmel and Kahan 1990).
   A sweep runs from the larger end to the smaller one. Rotations are applied to the vectors at once.
3. Signs and order: values are positive, the largest first.
4. The reflections, applied to the vectors of the bidiagonal matrix.

LAPACK's algorithms are described in Anderson et al. (1999), "LAPACK Users' Guide"; LAPACK has a modified BSD licence.
"""

from __future__ import annotations

import numpy as np

from mcce._utils import Floats, jit
from mcce.trees.kernels import LEAN, inner

# mypy: disable-error-code="no-untyped-def"


MOST_ROWS = 25  # for larger matrices LAPACK uses divide and conquer
_EPS = 2.0**-53
_TINY = np.finfo(np.float64).tiny
_TOLERANCE = 2.0**6.625 * _EPS  # relative error of a singular value: eps^(-1/8) eps
_SWEEPS = 6  # the number of sweeps is at most this times the squared number of rows
_SMALL, _LARGE = np.sqrt(_TINY), np.sqrt(1.0 / _TINY / 2.0)


# ---------------------------------------------------------------- reflections


@inner
def _reflector(vectors, i, start):
    """Turn x, the i-th row from `start` on, into the v of I - tau vv', v[0] = 1, that maps x to (beta, 0, ...).

    Return beta and tau.
    """
    n, alpha, squares = vectors.shape[1], vectors[i, start], 0.0
    for k in range(start + 1, n):
        squares += vectors[i, k] * vectors[i, k]
    vectors[i, start] = 1.0
    norm = np.sqrt(squares)
    if norm == 0.0:
        return alpha, 0.0
    large, small = max(abs(alpha), norm), min(abs(alpha), norm)
    length = large if small == 0.0 else large * np.sqrt(1.0 + (small / large) ** 2)
    beta = -np.copysign(length, alpha)
    scale = 1.0 / (alpha - beta)
    for k in range(start + 1, n):
        vectors[i, k] *= scale
    return beta, (beta - alpha) / beta


@inner
def _reflect_columns(vectors, i, start, tau, c, first):
    """Reflect the columns of c, from `first` on, by the i-th vector."""
    n = c.shape[0]
    for j in range(first, n):
        product = 0.0
        for k in range(start, n):
            product += c[k, j] * vectors[i, k]
        if product != 0.0:  # a zero keeps its sign
            product *= -tau
            for k in range(start, n):
                c[k, j] += vectors[i, k] * product


@inner
def _reflect_rows(vectors, i, start, tau, c, first):
    """Reflect the rows of c, from `first` on, by the i-th vector; the factors in LAPACK's order for this side."""
    n = c.shape[0]
    for j in range(first, n):
        product = 0.0
        for k in range(start, n):
            product += vectors[i, k] * c[j, k]
        if product != 0.0:
            for k in range(start, n):
                c[j, k] += product * (-tau * vectors[i, k])


@inner
def _bidiagonalise(a, d, e, left, right, tau_left, tau_right):
    """Step 1: diagonal and superdiagonal; the rows of `left` and `right` get the vectors of the reflections."""
    n = d.size
    for i in range(n):
        for k in range(i, n):
            left[i, k] = a[k, i]
        d[i], tau_left[i] = _reflector(left, i, i)
        if i < n - 1:
            _reflect_columns(left, i, i, tau_left[i], a, i + 1)
            for k in range(i + 1, n):
                right[i, k] = a[i, k]
            e[i], tau_right[i] = _reflector(right, i, i + 1)
            _reflect_rows(right, i, i + 1, tau_right[i], a, i + 1)


# ---------------------------------------------------------------- rotations


@inner
def _rotation(f, g):
    """Return c, s, r with c f + s g = r and c g - s f = 0."""
    if g == 0.0:
        return 1.0, 0.0, f
    if f == 0.0:
        return 0.0, np.copysign(1.0, g), abs(g)
    unit = 1.0
    if not (_SMALL < abs(f) < _LARGE and _SMALL < abs(g) < _LARGE):
        unit = min(1.0 / _TINY, max(_TINY, abs(f), abs(g)))
        f, g = f / unit, g / unit
    length = np.sqrt(f * f + g * g)
    r = np.copysign(length, f)
    return abs(f) / length, g / r, r * unit


@inner
def _rotate(rows, k, c, s):
    """Rotate the rows k and k + 1."""
    for i in range(rows.shape[1]):
        x, y = rows[k, i], rows[k + 1, i]
        rows[k, i], rows[k + 1, i] = c * x + s * y, c * y - s * x


@inner
def _smaller_value(f, g, h):
    """Smaller singular value of the matrix (f g; 0 h)."""
    f, g, h = abs(f), abs(g), abs(h)
    least, most = min(f, h), max(f, h)
    if least == 0.0:
        return 0.0
    ratio, rest = 1.0 + least / most, (most - least) / most
    if g < most:
        square = (g / most) ** 2
        return least * (2.0 / (np.sqrt(ratio * ratio + square) + np.sqrt(rest * rest + square)))
    part = most / g
    if part == 0.0:
        return (least * most) / g
    half = (least * (1.0 / (np.sqrt(1.0 + (ratio * part) ** 2) + np.sqrt(1.0 + (rest * part) ** 2)))) * part
    return half + half


@inner
def _two_by_two(f, g, h):
    """Return larger and smaller value (with signs) of (f g; 0 h), then cosine and sine on the right and on the left."""
    swapped = abs(h) > abs(f)
    ft, ht = (h, f) if swapped else (f, h)
    fa, ha, ga = abs(ft), abs(ht), abs(g)
    largest = 3 if swapped else 1
    small, large, cos_left, cos_right, sin_left, sin_right = ha, fa, 1.0, 1.0, 0.0, 0.0
    if ga > fa:
        largest = 2
    if ga > fa and fa / ga < _EPS:
        large = ga
        small = fa / (ga / ha) if ha > 1.0 else (fa / ga) * ha
        sin_left, sin_right, cos_right = ht / g, 1.0, ft / g
    elif ga > 0.0:
        gap = fa - ha
        left = 1.0 if gap == fa else gap / fa
        m = g / ft
        t = 2.0 - left
        mm = m * m
        s = np.sqrt(t * t + mm)
        r = abs(m) if left == 0.0 else np.sqrt(left * left + mm)
        a = 0.5 * (s + r)
        small, large = ha / a, fa * a
        if mm > 0.0:
            t = (m / (s + t) + m / (r + left)) * (1.0 + a)
        elif left == 0.0:
            t = np.copysign(2.0, ft) * np.copysign(1.0, g)
        else:
            t = g / np.copysign(gap, ft) + m / t
        root = np.sqrt(t * t + 4.0)
        cos_right, sin_right = 2.0 / root, t / root
        cos_left = (cos_right + sin_right * m) / a
        sin_left = (ht / ft) * sin_right / a
    if swapped:
        cos_left, sin_left, cos_right, sin_right = sin_right, cos_right, sin_left, cos_left
    if largest == 1:
        sign = np.copysign(1.0, cos_right) * np.copysign(1.0, cos_left) * np.copysign(1.0, f)
    elif largest == 2:
        sign = np.copysign(1.0, sin_right) * np.copysign(1.0, cos_left) * np.copysign(1.0, g)
    else:
        sign = np.copysign(1.0, sin_right) * np.copysign(1.0, sin_left) * np.copysign(1.0, h)
    small = np.copysign(small, sign * np.copysign(1.0, f) * np.copysign(1.0, h))
    return np.copysign(large, sign), small, cos_right, sin_right, cos_left, sin_left


# ---------------------------------------------------------------- sweeps


@inner
def _least_bound(d, e):
    """Lower bound of the smallest singular value, times the root of the number of rows."""
    least = mu = abs(d[0])
    for i in range(1, d.size):
        if least == 0.0:
            break
        mu = abs(d[i]) * (mu / (mu + abs(e[i - 1])))
        least = min(least, mu)
    return least


@inner
def _converged(d, e, first, last, down):
    """Set a superdiagonal element to 0 if it is negligible; return whether one was, and a bound of the values."""
    end, at = (last, last - 1) if down else (first, first)
    if abs(e[at]) <= _TOLERANCE * abs(d[end]):
        e[at] = 0.0
        return True, 0.0
    mu = least = abs(d[first] if down else d[last])
    for i in range(last - first):
        k = first + i if down else last - 1 - i
        if abs(e[k]) <= _TOLERANCE * mu:
            e[k] = 0.0
            return True, 0.0
        mu = abs(d[k + 1] if down else d[k]) * (mu / (mu + abs(e[k])))
        least = min(least, mu)
    return False, least


@inner
def _sweep(d, e, first, last, down, shift, left, right):
    """One QR sweep over the block from `first` to `last`, with a shift; rotate the vectors, kept as rows."""
    step = 1 if down else -1
    start, stop = (first, last) if down else (last, first)
    beside = 0 if down else -1  # e[i + beside] is between d[i] and d[i + step]
    one, two = (right, left) if down else (left, right)
    if shift == 0.0:
        c = old_c = 1.0
        old_s = 0.0
        for i in range(start, stop, step):
            c, s, r = _rotation(d[i] * c, e[i + beside])
            if i != start:
                e[i + beside - step] = old_s * r
            old_c, old_s, d[i] = _rotation(old_c * r, d[i + step] * s)
            _rotate(one, i + beside, c, step * s)
            _rotate(two, i + beside, old_c, step * old_s)
        h = d[stop] * c
        d[stop], e[stop - 1 - beside if down else stop] = h * old_c, h * old_s
        return
    f = (abs(d[start]) - shift) * (np.copysign(1.0, d[start]) + shift / d[start])
    g = e[start + beside]
    for i in range(start, stop, step):
        k, after = i + beside, i + step
        c, s, r = _rotation(f, g)
        if i != start:
            e[k - step] = r
        f, e[k] = c * d[i] + s * e[k], c * e[k] - s * d[i]
        g, d[after] = s * d[after], c * d[after]
        _rotate(one, k, c, step * s)
        c, s, d[i] = _rotation(f, g)
        f, d[after] = c * e[k] + s * d[after], c * d[after] - s * e[k]
        if after != stop:
            g, e[k + step] = s * e[k + step], c * e[k + step]
        _rotate(two, k, c, step * s)
    e[last - 1 if down else first] = f


@inner
def _diagonalise(d, e, left, right):
    """Step 2: turn `d` into the singular values, not in order; return whether the sweeps converged."""
    n = d.size
    threshold = max(_TOLERANCE * (_least_bound(d, e) / np.sqrt(float(n))), _SWEEPS * (n * (n * _TINY)))
    last, old_first, old_last, down = n - 1, -2, -2, True
    for _ in range(_SWEEPS * n * n):
        if last <= 0:
            break
        first, largest = 0, abs(d[last])
        for k in range(last - 1, -1, -1):
            if abs(e[k]) <= threshold:
                e[k], first = 0.0, k + 1
                break
            largest = max(largest, abs(d[k]), abs(e[k]))
        if first == last:
            last -= 1
            continue
        if first == last - 1:
            d[first], d[last], c, s, c_left, s_left = _two_by_two(d[first], e[first], d[last])
            e[first] = 0.0
            _rotate(right, first, c, s)
            _rotate(left, first, c_left, s_left)
            last -= 2
            continue
        if first > old_last or last < old_first:
            down = abs(d[first]) >= abs(d[last])
        split, least = _converged(d, e, first, last, down)
        if split:
            continue
        old_first, old_last, shift = first, last, 0.0
        if n * _TOLERANCE * (least / largest) > max(_EPS, 0.01 * _TOLERANCE):
            at = last - 1 if down else first
            shift = _smaller_value(d[at], e[at], d[at + 1])
            begin = abs(d[first] if down else d[last])
            if begin > 0.0 and (shift / begin) ** 2 < _EPS:
                shift = 0.0
        _sweep(d, e, first, last, down, shift, left, right)
        end = last - 1 if down else first
        if abs(e[end]) <= threshold:
            e[end] = 0.0
    return last <= 0


@inner
def _exchange(d, left, right, i, j):
    d[i], d[j] = d[j], d[i]
    for k in range(d.size):
        left[i, k], left[j, k] = left[j, k], left[i, k]
        right[i, k], right[j, k] = right[j, k], right[i, k]


@inner
def _order(d, left, right):
    """Step 3: make the values positive and sort them, and the vectors.

    They are sorted down, up and down again, as in LAPACK, so that equal values have the same order.
    """
    n = d.size
    for k in range(n):
        if d[k] < 0.0:
            d[k] = -d[k]
            for i in range(n):
                right[k, i] = -right[k, i]
    for end in range(n - 1, 0, -1):
        smallest = 0
        for k in range(1, end + 1):
            if d[k] <= d[smallest]:
                smallest = k
        _exchange(d, left, right, smallest, end)
    for direction in (1.0, -1.0):
        for i in range(n - 1):
            first = i
            for k in range(i + 1, n):
                if direction * d[k] < direction * d[first]:
                    first = k
            _exchange(d, left, right, i, first)


@jit(**LEAN)
def _decompose(a, d, e, left, right, left_vectors, right_vectors, tau_left, tau_right):
    """All steps; `left` and `right` are the identity before, the singular vectors afterwards: columns, and rows.

    Return whether step 2 converged.
    """
    n = d.size
    _bidiagonalise(a, d, e, left_vectors, right_vectors, tau_left, tau_right)
    converged = _diagonalise(d, e, left, right)
    _order(d, left, right)
    for i in range(n):
        for k in range(i):
            left[i, k], left[k, i] = left[k, i], left[i, k]
    for i in range(n - 1, -1, -1):
        _reflect_columns(left_vectors, i, i, tau_left[i], left, 0)
        if i < n - 1:
            _reflect_rows(right_vectors, i, i + 1, tau_right[i], right, 0)
    return converged


def decompose(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """Return U, the singular values, the largest first, and V' of a square matrix, as numpy.linalg.svd does."""
    n = len(matrix)
    values, left, right = np.zeros(n), np.eye(n), np.eye(n)
    if n <= MOST_ROWS and _decompose(
        np.array(matrix, order="C"), values, np.zeros(n), left, right, np.zeros((n, n)), np.zeros((n, n)),
        np.zeros(n), np.zeros(n),
    ):  # fmt: skip
        return left, values, right
    left, values, right = np.linalg.svd(matrix)
    return left, values, right
