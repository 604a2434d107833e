"""The rows of a mixture, as numba kernels: each row is computed separately, so its bits do not depend on other rows.

Rows are grouped into *patterns* by which of their d scores are known. For a pattern and a component, `precision` is the
inverse of the covariance of the known scores, 0 in all other rows and columns; `slopes` has the coefficients of the
unknown scores on the known ones; `constant` is the log of the normal density at its mean.
"""

from __future__ import annotations

from mcce.base.compiling import entry

# mypy: disable-error-code="no-untyped-def"


@entry
def add_normal(scores, pattern, known, means, precision, constant, out):
    """Add the log normal density of the known scores of each row, by component: out[row, component]."""
    d = means.shape[1]
    for i in range(scores.shape[0]):
        q = pattern[i]
        for k in range(means.shape[0]):
            total = 0.0
            for a in range(d):
                if known[q, a]:
                    away = scores[i, a] - means[k, a]
                    part = 0.0
                    for b in range(d):
                        if known[q, b]:
                            part += precision[q, k, a, b] * (scores[i, b] - means[k, b])
                    total += away * part
            out[i, k] += constant[q, k] - 0.5 * total


@entry
def add_symbols(symbols, first, log_shares, out):
    """Add the log probabilities of the symbols of each row; log_shares[component, first[j] + symbol of column j]."""
    for i in range(symbols.shape[0]):
        for j in range(symbols.shape[1]):
            if symbols[i, j] >= 0:
                for k in range(out.shape[1]):
                    out[i, k] += log_shares[k, first[j] + symbols[i, j]]


@entry
def predict_score(scores, pattern, known, means, slopes, target, out):
    """Write the mean of one score given the known ones, by component."""
    for i in range(scores.shape[0]):
        q = pattern[i]
        for k in range(means.shape[0]):
            total = means[k, target]
            for b in range(means.shape[1]):
                if known[q, b]:
                    total += slopes[q, k, target, b] * (scores[i, b] - means[k, b])
            out[i, k] = total


@entry
def add_moments(scores, pattern, known, means, slopes, shares, filled, sums, squares):
    """Add up the scores of each component, unknown ones filled by their means given the others, around its mean."""
    d = means.shape[1]
    for i in range(scores.shape[0]):
        q = pattern[i]
        for k in range(means.shape[0]):
            share = shares[i, k]
            if share < 1e-12:
                continue
            for a in range(d):
                filled[a] = 0.0
                if known[q, a]:
                    filled[a] = scores[i, a] - means[k, a]
                else:
                    for b in range(d):
                        if known[q, b]:
                            filled[a] += slopes[q, k, a, b] * (scores[i, b] - means[k, b])
            for a in range(d):
                sums[k, a] += share * filled[a]
                for b in range(a + 1):
                    squares[k, a, b] += share * filled[a] * filled[b]


@entry
def add_counts(symbols, first, shares, counts):
    """Add up the symbols of each component: counts[component, first[j] + symbol of column j]."""
    for i in range(symbols.shape[0]):
        for j in range(symbols.shape[1]):
            if symbols[i, j] >= 0:
                for k in range(shares.shape[1]):
                    counts[k, first[j] + symbols[i, j]] += shares[i, k]
