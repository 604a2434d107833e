"""One pass through a masked network, column by column and row by row: a row's bytes do not depend on other rows.

A hidden unit of degree d depends on the columns before column d, so it is computed once, when these are known: a row
takes one pass, not one for each column.
"""

import math

import numpy as np
from numba import njit

from mcce.base.compiling import cached

# mypy: disable-error-code="no-untyped-def"


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _draw(logits, observed, begin, end, largest, whole, allowed, is_restricted, u, log_mass, i):
    """Draw a code in proportion to its probability times the share of it that is allowed."""
    total = whole
    if is_restricted:
        total = 0.0
        for o in range(begin, end):
            if observed[o]:
                total += math.exp(logits[o] - largest) * allowed[o]
        log_mass[i] += math.log(total / whole)
        if total == 0.0:  # a rejected row continues with a code that is not allowed
            is_restricted, total = False, whole
    target, last = u * total, -1
    for o in range(begin, end):
        if observed[o]:
            weight = math.exp(logits[o] - largest) * (allowed[o] if is_restricted else 1.0)
            if weight > 0.0:
                last = o - begin
                target -= weight
                if target < 0.0:
                    break
    return last


@cached(nogil=True, error_model="numpy")
def run(codes, n_given, first, first_out, observed, degree, input_weights, input_bias, hidden_weights, hidden_bias,
        output_weights, output_bias, direct_weights, allowed, is_restricted, uniform, log_probability,
        log_mass):  # fmt: skip
    """Draw each code that is -1, and write the log probabilities of all codes.

    Codes of restricted columns are drawn in proportion to the share of them that is allowed. The log mass of the
    allowed codes in the conditional is added to `log_mass`: -inf if no code is allowed.
    """
    n, p = codes.shape
    width = degree.size
    first_sum, inner, hidden = np.empty(width), np.empty(width), np.empty(width)
    direct = np.empty(output_bias.size)
    for i in range(n):
        for k in range(width):
            first_sum[k] = input_bias[k]
        for o in range(output_bias.size):
            direct[o] = output_bias[o]
        known = 0
        for j in range(n_given, p):
            while known < j:
                at = first[known] + codes[i, known]
                for k in range(width):
                    first_sum[k] += input_weights[at, k]
                for o in range(first_out[max(known + 1 - n_given, 0)], output_bias.size):
                    direct[o] += direct_weights[at, o]
                known += 1
            for k in range(width):
                if degree[k] == j or (j == n_given and degree[k] < j):
                    inner[k] = max(first_sum[k], 0.0)
            for k in range(width):
                if degree[k] == j or (j == n_given and degree[k] < j):
                    total = hidden_bias[k]
                    for m in range(width):
                        if degree[m] <= degree[k]:
                            total += hidden_weights[m, k] * inner[m]
                    hidden[k] = max(total, 0.0)
            begin, end = first_out[j - n_given], first_out[j - n_given + 1]
            largest = -math.inf
            for o in range(begin, end):
                if observed[o]:
                    total = direct[o]
                    for k in range(width):
                        if degree[k] <= j:
                            total += output_weights[k, o] * hidden[k]
                    direct[o] = total
                    largest = max(largest, total)
            whole = 0.0
            for o in range(begin, end):
                if observed[o]:
                    whole += math.exp(direct[o] - largest)
            if codes[i, j] < 0:
                row = allowed[i if is_restricted[j - n_given] else 0]
                codes[i, j] = _draw(
                    direct, observed, begin, end, largest, whole, row, is_restricted[j - n_given],
                    uniform[i, j - n_given], log_mass, i
                )  # fmt: skip
            o = begin + codes[i, j]
            if observed[o]:
                log_probability[i, j - n_given] = direct[o] - largest - math.log(whole)
            else:
                log_probability[i, j - n_given] = -math.inf
