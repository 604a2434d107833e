"""Fitting a mixture: expectation and maximisation, the number of components by rows that were held out.

1. For 1, 2, 4, 8, ... components, fit four rows in five, drawn at random, and take the mean log density of the others;
   stop when two of these in a row are worse than one before. Fit all rows with the best number.
2. A fit begins at rows that lie far apart (Arthur and Vassilvitskii 2007, "k-means++": each next one drawn with a
   chance proportional to its squared distance from the nearest one before; different symbols are at distance 1), each
   row in the component of the nearest.
3. E: the share of each component in each row (`Mixture.log_joint`), scores that a row does not have filled by their
   means given its others, with their covariance (Ghahramani and Jordan 1994, "Supervised learning from incomplete data
   via an EM approach"). M: weights, shares of symbols, means and covariances of these. Until the mean log density
   grows by less than 1e-4, or 100 times.
4. Each component has pseudo-rows beside its own: 2 with symbols as in all rows, and d + 2, for d scores and K
   components, with covariance K^(-2/d) I (the scale of Fraley and Raftery 2007, "Bayesian regularization for normal
   mixture estimation and model-based clustering"). So no component shrinks to a point, and no symbol that rows have is
   impossible.
5. Weights that are counts repeat their rows, copies are held out one by one. Other weights multiply the shares of step
   3, the log densities of all means, and the chances of step 2; rows are held out as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy

from mcce.arrays import Floats, Ints
from mcce.rng import derive_key
from mcce.samplers.mixture import kernels
from mcce.samplers.mixture.columns import Levels, Numbers, read_column
from mcce.samplers.mixture.model import Mixture, Patterns, Seen, find_patterns
from mcce.table import Table
from mcce.table.weights import as_copies, copies_at, mean_of

HELD_OUT = 5  # one row in so many
FEWEST_ROWS = 20  # to hold any of them out, and for each component
PSEUDO_ROWS = 2.0
MOST_STEPS, LEAST_GAIN = 100, 1e-4


def fit_mixture(table: Table, seed: int, max_components: int = 16) -> Mixture:
    """Fit a mixture to all columns of a table; what is random in it comes from the seed."""
    table = as_copies(table)
    columns = tuple(read_column(table.column(j)) for j in range(len(table.features)))
    blank = _blank(columns)
    seen = replace(blank.see(table.matrix), weights=table.weights)
    margin = _margin(blank, seen)
    chance = np.random.default_rng(derive_key(seed, "mixture"))
    n = table.n_rows
    held_out = chance.permutation(n)[: n // HELD_OUT] if n >= FEWEST_ROWS else np.empty(0, dtype=np.int64)
    training = seen.take(np.setdiff1d(np.arange(n), held_out))
    tried = seen.take(np.sort(held_out))
    best, best_score, k = 1, -np.inf, 1
    while k <= max_components and k * FEWEST_ROWS <= max(n, FEWEST_ROWS) and held_out.size:
        fitted = _fit(blank, training, margin, k, np.random.default_rng(derive_key(seed, "mixture", k)))
        score = float(mean_of(scipy.special.logsumexp(fitted.log_joint(tried), axis=1), tried.weights))
        if score > best_score:
            best, best_score = k, score
        elif k == 4 * best:
            break
        k *= 2
    return _fit(blank, seen, margin, best, np.random.default_rng(derive_key(seed, "mixture", best)))


def _blank(columns: tuple[Levels | Numbers, ...]) -> Mixture:
    """Return a mixture of one component that knows nothing yet but its columns."""
    none = np.empty(0)
    one = Mixture(columns, np.ones(1), none, none, none)
    d = int(one.place[-1])
    return Mixture(one.columns, one.weights, np.zeros((1, one.first[-1])), np.zeros((1, d)), np.eye(d)[None])


def _margin(blank: Mixture, seen: Seen) -> Floats:
    """Return the shares of the symbols among all rows."""
    counts = np.zeros((1, int(blank.first[-1])))
    weights = np.ones(len(seen.symbols)) if seen.weights is None else seen.weights
    kernels.add_counts(seen.symbols, blank.first, weights[:, None], counts)
    return np.asarray(counts[0] / (max(len(seen.symbols), 1) if seen.weights is None else weights.sum()))


def _fit(blank: Mixture, seen: Seen, margin: Floats, n_components: int, chance: np.random.Generator) -> Mixture:
    """Fit so many components (steps 2 and 3)."""
    d = int(blank.place[-1])
    shares = np.eye(n_components)[_nearest_starts(seen, n_components, chance)]
    repeat = (n_components, 1)
    start = Mixture(
        blank.columns,
        np.full(n_components, 1.0 / n_components),
        np.tile(margin, repeat),
        np.zeros((n_components, d)),
        np.tile(np.eye(d), (n_components, 1, 1)),
    )
    which = find_patterns(~np.isnan(seen.scores))
    fitted = _maximise(start, seen, Patterns.among(*which, start.covariances), shares, margin)
    before = -np.inf
    for _ in range(MOST_STEPS):
        patterns = Patterns.among(*which, fitted.covariances)
        joint = fitted.log_joint(seen, patterns)
        total = scipy.special.logsumexp(joint, axis=1, keepdims=True)
        mean = float(total.mean() if seen.weights is None else mean_of(total[:, 0], seen.weights))
        if mean < before + LEAST_GAIN:
            break
        before = mean
        fitted = _maximise(fitted, seen, patterns, np.exp(joint - total), margin)
    return fitted


def _nearest_starts(seen: Seen, n_components: int, chance: np.random.Generator) -> Ints:
    """Choose rows that lie far apart, and return which of them is the nearest to each row (step 2)."""
    n = len(seen.symbols)
    scores = np.nan_to_num(seen.scores)
    nearest, least = np.zeros(n, dtype=np.int64), np.full(n, np.inf)
    row = int(chance.integers(max(n, 1)))
    if seen.weights is not None:
        row = int(copies_at(seen.weights, np.array(row), n))
    for k in range(n_components):
        away = ((scores - scores[row]) ** 2).sum(axis=1) + (seen.symbols != seen.symbols[row]).sum(axis=1)
        nearest[away < least] = k
        least = np.minimum(least, away)
        if not least.any():
            break
        likely = least if seen.weights is None else seen.weights * least
        row = int(chance.choice(n, p=likely / likely.sum()))
    return nearest


def _maximise(old: Mixture, seen: Seen, patterns: Patterns, shares: Floats, margin: Floats) -> Mixture:
    """Return the parameters that fit rows with these shares of the components best (steps 3 and 4)."""
    k, d = old.means.shape
    if seen.weights is not None:
        shares = shares * seen.weights[:, None]
    size = shares.sum(axis=0)
    counts = np.zeros(old.shares.shape)
    kernels.add_counts(seen.symbols, old.first, shares, counts)
    symbols = (counts + PSEUDO_ROWS * margin) / (size[:, None] + PSEUDO_ROWS)
    sums, squares = np.zeros((k, d)), np.zeros((k, d, d))
    kernels.add_moments(
        *(seen.scores, patterns.of_row, patterns.known, old.means, patterns.slopes),
        *(shares, np.empty(d), sums, squares),
    )
    squares = squares + np.tril(squares, -1).transpose(0, 2, 1)
    inside = np.stack([np.bincount(patterns.of_row, share, len(patterns.known)) for share in shares.T])
    squares += np.einsum("kq,qkab->kab", inside, patterns.rest)
    moved = sums / np.maximum(size, 1e-9)[:, None]
    scatter = squares - size[:, None, None] * moved[:, :, None] * moved[:, None, :]
    pseudo = d + 2.0
    spread = k ** (-2.0 / max(d, 1))
    covariances = (scatter + pseudo * spread * np.eye(d)) / (size + pseudo)[:, None, None]
    weights = (size + 1.0) / (size.sum() + k)
    return Mixture(old.columns, weights, symbols, old.means + moved, covariances)
