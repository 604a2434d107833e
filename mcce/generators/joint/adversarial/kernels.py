"""Kernels of leaves: likelihoods of values in each leaf, and draws from it.

Columns are concatenated: column j has the codes `first[j]` to `first[j + 1] - 1` of `has_mass`, `value_of_code` and
of `below` and `spread_below`, which count the training rows (all, and those of spread numbers) with a lower code;
these two have one entry more, at `first[j + 1] + j`. A training row counts by its `weight`, 1 if rows have none.

In a leaf with n training rows (its `size`), n_c of which have the code c with point mass,

    p(c) = (n_c + a m_c) / (n + a),

where m_c is its share among all training rows whose code lies in the leaf's box, and a the smoothing. Spread numbers
together have the probability p(s) of the same form, and the density of a normal distribution truncated at the box.
"""

import math

from numba import njit

from mcce.base.compiling import cached
from mcce.rng.normal import normal_quantile

# mypy: disable-error-code="no-untyped-def"


_ROOT_TWO = math.sqrt(2.0)
_LEAST, _MOST = 1e-300, 1.0 - 2.0**-53  # probabilities whose quantiles are finite
_MOST_RANK = 1.0 - 1e-12  # upper bound of a relative rank, so that rounding cannot exceed the last code
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@njit(inline="always")
def _below(z):
    return 0.5 * math.erfc(-z / _ROOT_TWO)


@njit(inline="always")
def _between(a, b):
    """Return the probability of a standard normal variable between a and b, exact in both tails."""
    if a > 0.0:
        return _below(-a) - _below(-b)
    return _below(b) - _below(a)


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _cut_normal(mean, sd, held, low, high, a, b):
    """Return the probability of [a, b] under a normal distribution truncated at [low, high], of mass `held`."""
    a, b = max(a, low), min(b, high)
    if a >= b:
        return 0.0
    return _between((a - mean) / sd, (b - mean) / sd) / held


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _cut_normal_density(mean, sd, held, low, high, x):
    if x < low or x > high:
        return 0.0
    z = (x - mean) / sd
    return math.exp(-0.5 * z * z - _LOG_ROOT_TWO_PI) / (sd * held)


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _draw_cut_normal(mean, sd, low, high, a, b, u):
    """Draw from a normal distribution truncated at [low, high] and at [a, b], by inversion from the nearer tail."""
    a, b = max(a, low), min(b, high)
    za, zb = (a - mean) / sd, (b - mean) / sd
    if za > 0.0:
        upper, lower = _below(-za), _below(-zb)
        z = -normal_quantile(max(upper - u * (upper - lower), _LEAST))
    else:
        lower, upper = _below(za), _below(zb)
        z = normal_quantile(min(max(lower + u * (upper - lower), _LEAST), _MOST))
    return min(max(mean + sd * z, a), b)


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _probability(leaf, j, code, spread, value, count, first, below, spread_below, size, low, high, box, normal,
                 n_spread, smoothing):  # fmt: skip
    """Return the probability, or the density, of a value in a leaf whose box it is in; `count` rows there have it."""
    lo, hi = low[leaf, j], high[leaf, j]
    n = size[leaf]
    at = first[j] + j
    region = below[at + hi + 1] - below[at + lo]
    if spread:
        inside = spread_below[at + hi + 1] - spread_below[at + lo]
        share = (n_spread[leaf, j] + smoothing * inside / region) / (n + smoothing)
        if share == 0.0:
            return 0.0
        return share * _cut_normal_density(
            normal[leaf, j, 0], normal[leaf, j, 1], normal[leaf, j, 2], box[leaf, j, 0], box[leaf, j, 1], value
        )
    return (count + smoothing * (below[at + code + 1] - below[at + code]) / region) / (n + smoothing)


@cached(nogil=True, error_model="numpy")
def leaf_likelihoods(columns, code, spread, value, log_weight, first, has_mass, below, spread_below, codes, weight,
                     start, rows, size, low, high, box, normal, n_spread, smoothing, out):  # fmt: skip
    """Add the log likelihoods of one row's values of some columns to the log weights of the leaves."""
    for leaf in range(out.size):
        total = log_weight[leaf]
        for k in range(columns.size):
            j, p, count = columns[k], 0.0, 0.0
            if low[leaf, j] <= code[k] <= high[leaf, j]:
                if not spread[k]:
                    for r in range(start[leaf], start[leaf + 1]):
                        if codes[j, rows[r]] == code[k]:
                            count += weight[rows[r]]
                p = _probability(leaf, j, code[k], spread[k], value[k], count, first, below, spread_below, size, low,
                                 high, box, normal, n_spread, smoothing)  # fmt: skip
            if p <= 0.0:
                total = -math.inf
                break
            total += math.log(p)
        out[leaf] = total


@cached(nogil=True, error_model="numpy")
def leaf_masses(j, allowed, allowed_below, low_bound, high_bound, first, has_mass, below, spread_below, codes, weight,
                start, rows, size, low, high, box, normal, n_spread, smoothing, out):  # fmt: skip
    """Add the log probabilities of a restricted column: allowed codes with point mass, and numbers between bounds.

    Equal bounds give the density of the number.
    """
    at = first[j] + j
    for leaf in range(out.size):
        if out[leaf] == -math.inf:
            continue
        out[leaf] += math.log(
            _allowed_mass(leaf, j, at, allowed, allowed_below, low_bound, high_bound, has_mass[first[j] :], below,
                          spread_below, codes, weight, start, rows, size, low, high, box, normal, n_spread, smoothing)
        )  # fmt: skip


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _allowed_spread(leaf, j, low_bound, high_bound, box, normal):
    mean, sd, held, a, b = normal[leaf, j, 0], normal[leaf, j, 1], normal[leaf, j, 2], box[leaf, j, 0], box[leaf, j, 1]
    if low_bound == high_bound:
        return _cut_normal_density(mean, sd, held, a, b, low_bound)
    return _cut_normal(mean, sd, held, a, b, low_bound, high_bound)


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _allowed_mass(leaf, j, at, allowed, allowed_below, low_bound, high_bound, has_mass, below, spread_below, codes,
                  weight, start, rows, size, low, high, box, normal, n_spread, smoothing):  # fmt: skip
    lo, hi = low[leaf, j], high[leaf, j]
    count = 0.0
    for r in range(start[leaf], start[leaf + 1]):
        code = codes[j, rows[r]]
        if has_mass[code] and allowed[code]:
            count += weight[rows[r]]
    region = below[at + hi + 1] - below[at + lo]
    inside = spread_below[at + hi + 1] - spread_below[at + lo]
    total = count + smoothing * (allowed_below[hi + 1] - allowed_below[lo]) / region
    n_all = n_spread[leaf, j] + smoothing * inside / region
    if n_all > 0.0:
        total += n_all * _allowed_spread(leaf, j, low_bound, high_bound, box, normal)
    return total / (size[leaf] + smoothing)


@njit(inline="always")
def _code_at(counts, at, lo, hi, rank):
    """Return the code of the training row at a rank, by counts of the rows below each code."""
    while lo < hi:
        middle = (lo + hi + 1) // 2
        if counts[at + middle] <= rank:
            lo = middle
        else:
            hi = middle - 1
    return lo


@cached(nogil=True, error_model="numpy")
def draw_free(j, leaf_of, u_code, u_spread, first, has_mass, value_of_code, below, codes, weight, start, rows, size,
              low, high, box, normal, smoothing, out):  # fmt: skip
    """Draw a column in each row's leaf."""
    at = first[j] + j
    for i in range(leaf_of.size):
        leaf = leaf_of[i]
        n = size[leaf]
        u = u_code[i] * (n + smoothing)
        if u < n:
            r = start[leaf]
            while u >= weight[rows[r]] and r + 1 < start[leaf + 1]:
                u -= weight[rows[r]]
                r += 1
            code = codes[j, rows[r]]
        else:
            lo, hi = low[leaf, j], high[leaf, j]
            region = below[at + hi + 1] - below[at + lo]
            rank = min((u - n) / smoothing, _MOST_RANK) * region
            code = _code_at(below, at, lo, hi, below[at + lo] + rank)
        if has_mass[first[j] + code]:
            out[i] = value_of_code[first[j] + code]
        else:
            a, b = box[leaf, j, 0], box[leaf, j, 1]
            out[i] = _draw_cut_normal(normal[leaf, j, 0], normal[leaf, j, 1], a, b, a, b, u_spread[i])


@cached(nogil=True, error_model="numpy")
def draw_inside(j, leaf_of, u_code, u_spread, allowed, allowed_below, low_bound, high_bound, first, has_mass,
                value_of_code, below, spread_below, codes, weight, start, rows, size, low, high, box, normal, n_spread,
                smoothing, out):  # fmt: skip
    """Draw an allowed value of a column in the leaf of each row; there must be one."""
    at = first[j] + j
    for i in range(leaf_of.size):
        leaf = leaf_of[i]
        lo, hi = low[leaf, j], high[leaf, j]
        u = u_code[i] * (size[leaf] + smoothing) * _allowed_mass(
            leaf, j, at, allowed, allowed_below, low_bound, high_bound, has_mass[first[j] :], below, spread_below,
            codes, weight, start, rows, size, low, high, box, normal, n_spread, smoothing
        )  # fmt: skip
        found = -1
        for r in range(start[leaf], start[leaf + 1]):
            code = codes[j, rows[r]]
            if has_mass[first[j] + code] and allowed[code]:
                if u < weight[rows[r]]:
                    found = code
                    break
                u -= weight[rows[r]]
        region = below[at + hi + 1] - below[at + lo]
        if found < 0:
            by_margin = allowed_below[hi + 1] - allowed_below[lo]
            if u < smoothing * by_margin / region:
                rank = min(u / smoothing * region, _MOST_RANK * by_margin)
                found = _code_at(allowed_below, 0, lo, hi, allowed_below[lo] + rank)
        if found >= 0:
            out[i] = value_of_code[first[j] + found]
            continue
        a, b = box[leaf, j, 0], box[leaf, j, 1]
        if low_bound == high_bound:
            out[i] = low_bound
        elif min(b, high_bound) > max(a, low_bound):
            out[i] = _draw_cut_normal(normal[leaf, j, 0], normal[leaf, j, 1], a, b, low_bound, high_bound, u_spread[i])
        else:  # u is positive only by rounding and there are no spread numbers: the last allowed code
            for code in range(lo, hi + 1):
                if allowed_below[code + 1] > allowed_below[code]:
                    found = code
            out[i] = value_of_code[first[j] + found]


@cached(nogil=True, error_model="numpy")
def multiply_column(j, order, group, code, spread, value, mine, first, has_mass, below, spread_below, codes, weight,
                    start, rows, size, low, high, box, normal, n_spread, smoothing, living, n_living, likely, known,
                    log_scale, log_total):  # fmt: skip
    """Multiply the weights of each row's leaves by the probability or density of its value of a column.

    Row i has the value `value[group[i]]`; rows are visited in the `order` of their groups, so that a value of several
    rows is evaluated once in each leaf (`known`). `mine` are the codes of the column, in the order of `rows`. The
    leaves in which the values so far are possible are ``living[i, :n_living[i]]``, fewer with each column, and `likely`
    their weights, over exp(log_scale[i]); `log_total` is the log of their sum.
    """
    for at in range(order.size):
        i, g = order[at], group[order[at]]
        is_first = at == 0 or group[order[at - 1]] != g
        shared = not is_first or (at + 1 < order.size and group[order[at + 1]] == g)
        if shared and is_first:
            known[:] = -1.0
        left, largest = 0, 0.0
        for k in range(n_living[i]):
            leaf = living[i, k]
            if code[g] < low[leaf, j] or code[g] > high[leaf, j]:
                continue
            if shared and known[leaf] >= 0.0:
                p = known[leaf]
            else:
                count = 0.0
                if not spread[g]:
                    for r in range(start[leaf], start[leaf + 1]):
                        if mine[r] == code[g]:
                            count += weight[rows[r]]
                p = _probability(leaf, j, code[g], spread[g], value[g], count, first, below, spread_below, size, low,
                                 high, box, normal, n_spread, smoothing)  # fmt: skip
                if shared:
                    known[leaf] = p
            now = likely[i, k] * p
            if now > 0.0:
                living[i, left], likely[i, left] = leaf, now
                left += 1
                largest = max(largest, now)
        total = 0.0
        for k in range(left):
            likely[i, k] /= largest
            total += likely[i, k]
        n_living[i] = left
        log_scale[i] += math.log(largest) if left else 0.0
        log_total[i] = log_scale[i] + math.log(total) if left else -math.inf


@cached(nogil=True, error_model="numpy")
def cut_back(codes, weight, left, right, feature, cut, min_leaf, low, high, order, stack, leaf_of_row, leaf_node):
    """Find the leaves of a tree that have enough real rows, by weight; return how many there are.

    A split with no real row on one side narrows the box; with too few on one side it is skipped, with too few on both
    its node is a leaf. `low` and `high` of the root are set, those of the nodes that are reached are written, as
    are the leaf of each row, and the node of each leaf. `order` has all rows; `stack` has room for every node.
    """
    n_leaves, top = 0, 1
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, order.size
    while top > 0:
        top -= 1
        node, begin, end = stack[top, 0], stack[top, 1], stack[top, 2]
        while left[node] >= 0:
            a, b, f, c = left[node], right[node], feature[node], cut[node]
            i, k = begin, end
            n_left, n_right = 0.0, 0.0
            while i < k:
                if codes[f, order[i]] <= c:
                    n_left += weight[order[i]]
                    i += 1
                else:
                    k -= 1
                    n_right += weight[order[i]]
                    order[i], order[k] = order[k], order[i]
            if 0 < n_left < min_leaf and 0 < n_right < min_leaf:
                break
            for j in range(low.shape[1]):
                low[a, j] = low[b, j] = low[node, j]
                high[a, j] = high[b, j] = high[node, j]
            if (n_left == 0 or n_left >= min_leaf) and (n_right == 0 or n_right >= min_leaf):
                high[a, f] = c
                low[b, f] = c + 1
            if n_left >= min_leaf and n_right >= min_leaf:
                stack[top, 0], stack[top, 1], stack[top, 2] = b, i, end
                top += 1
                node, end = a, i
            else:
                node = a if n_left > n_right else b
        for i in range(begin, end):
            leaf_of_row[order[i]] = n_leaves
        leaf_node[n_leaves] = node
        n_leaves += 1
    return n_leaves
