"""The latent correlation matrix of a table with columns of mixed kinds.

1. Complete columns have one latent variable, or one utility for each of three or more unordered levels (`margins`).
2. Two continuous columns: the correlation of the normal scores, which is semiparametrically efficient (Klaassen and
   Wellner 1997) and positive semidefinite. Continuous and discrete: polyserial; two discrete: polychoric, both by
   two-step maximum likelihood (Olsson 1979; Olsson, Drasgow and Dorans 1982), on at most 16 cells and 256 scores.
3. Unordered levels: by matching moments E[s_a s_b'] of indicators (or cell means); in closed form with a continuous
   column, else by damped Gauss-Newton on Latin hypercube points, with the ridge |G|^2 / n.
4. Project to the nearest correlation matrix with uncorrelated utilities (Higham 2002, with Dykstra's correction) and
   eigenvalues of at least 1e-4 and (d / n)^2 (at most 0.25) for d latents and n rows: the smallest sample eigenvalue is
   too small by about (1 - sqrt(d / n))^2.

Weights of rows count as copies; n is then their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from mcce.base.arrays import Floats, Ints
from mcce.samplers.copula.kernels import CDF, PDF, mean_below
from mcce.samplers.copula.margins import Margin, Utilities, choice_probabilities, read_margin, winning_noise
from mcce.storage.fields import FLOAT, check_array, require
from mcce.table import Table
from mcce.table.weights import deviation_of, mean_of

SMALLEST_EIGENVALUE, LARGEST_FLOOR = 1e-4, 0.25
_DISCRETE_SHARE = 0.05  # share of the rows in atoms from which a column counts as discrete
_CELLS, _SCORES = 16, 256
_LARGEST = 0.999  # largest polychoric or polyserial correlation: the likelihood may have no maximum below 1
_LARGEST_NORM = 0.98
_POINTS = 32_768  # of the utilities' noise; an eighth if each point needs an integral
_ALMOST_ZERO = 1e-15


@dataclass(frozen=True)
class LatentModel:
    """Margins and latent correlations of the columns of a table; the latents of column j begin at `first[j]`."""

    margins: tuple[Margin | Utilities | None, ...]
    first: tuple[int, ...]
    correlation: Floats


@dataclass(frozen=True)
class _ObservedColumn:
    """A column coded by cells, with their scores and thresholds."""

    margin: Margin | Utilities
    codes: Ints
    scores: Floats  # mean of Z in each cell; an identity matrix for utilities
    cuts: Floats  # thresholds of the cells; empty for utilities and continuous columns
    normal_scores: Floats  # of each row; empty unless continuous
    weights: Floats | None  # of the rows

    @property
    def is_continuous(self) -> bool:
        return self.normal_scores.size > 0

    @cached_property
    def noise(self) -> Floats:
        """The utilities' noise given each level."""
        return self._noise(_POINTS)

    @cached_property
    def thin_noise(self) -> Floats:
        """Noise at fewer points, where every point needs an integral."""
        return self._noise(_POINTS // 8)

    def _noise(self, points: int) -> Floats:
        assert isinstance(self.margin, Utilities)
        k = self.margin.n_latents
        return winning_noise(self.margin, _latin_hypercube(max(points // k, 64), k))


def fit_latent(table: Table) -> LatentModel:
    """Estimate margins and latent correlations of all complete columns of a table."""
    complete = ~np.asarray(np.isnan(table.matrix).any(axis=0))
    margins = tuple(read_margin(table.column(j)) if complete[j] else None for j in range(len(table.features)))
    sizes = [0 if margin is None else margin.n_latents for margin in margins]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    seen = [
        _see(margin, table.matrix[:, j], table.weights) if margin is not None and margin.n_latents else None
        for j, margin in enumerate(margins)
    ]
    correlation = np.eye(first[-1])
    n = table.n_rows if table.weights is None else float(table.weights.sum())
    for i, a in enumerate(seen):
        for j, b in enumerate(seen[:i]):
            if a is not None and b is not None:
                block = _correlate(a, b, n)
                rows, columns = slice(first[i], first[i + 1]), slice(first[j], first[j + 1])
                correlation[rows, columns], correlation[columns, rows] = block, block.T
    groups = np.repeat(np.arange(len(sizes)), sizes)
    least = float(np.clip((first[-1] / max(n, 1)) ** 2, SMALLEST_EIGENVALUE, LARGEST_FLOOR))
    return LatentModel(margins, tuple(first[:-1].tolist()), nearest_correlation(correlation, groups, least))


def bivariate_normal_cdf(h: Floats, k: Floats, rho: float) -> Floats:
    """Return P(X <= h, Y <= k) of standard normals with correlation rho, |rho| < 1, by Owen's T (Owen 1956)."""
    h, k = (np.where(np.abs(x) < _ALMOST_ZERO, _ALMOST_ZERO, np.clip(x, -38.0, 38.0)) for x in (h, k))
    s = np.sqrt((1.0 - rho) * (1.0 + rho))
    owen = scipy.special.owens_t(h, (k - rho * h) / (h * s)) + scipy.special.owens_t(k, (h - rho * k) / (k * s))
    halves = 0.5 * (scipy.special.ndtr(h) + scipy.special.ndtr(k)) - 0.5 * (h * k < 0.0)
    return np.asarray(np.clip(halves - owen, 0.0, 1.0))


def polychoric(counts: Floats, row_cuts: Floats, column_cuts: Floats) -> float:
    """Return the correlation that maximises the likelihood of a table of counts, with known thresholds."""
    h, k = row_cuts[:, None], column_cuts[None, :]

    def minus_log_likelihood(rho: float) -> float:
        cdf = bivariate_normal_cdf(h, k, rho)
        cells = np.diff(np.diff(cdf, axis=0), axis=1)
        return -float((counts * np.log(np.maximum(cells, 1e-15))).sum())

    return _maximise(minus_log_likelihood)


def polyserial(counts: Floats, scores: Floats, cuts: Floats) -> float:
    """Return the correlation of normal scores (rows of `counts`) and a variable cut at `cuts` (its columns)."""

    def minus_log_likelihood(rho: float) -> float:
        s = np.sqrt((1.0 - rho) * (1.0 + rho))
        cells = np.diff(scipy.special.ndtr((cuts - rho * scores[:, None]) / s), axis=1)
        return -float((counts * np.log(np.maximum(cells, 1e-15))).sum())

    return _maximise(minus_log_likelihood)


def nearest_correlation(matrix: Floats, groups: Ints, least: float = SMALLEST_EIGENVALUE) -> Floats:
    """Return the nearest correlation matrix, eigenvalues at least `least`, with identity blocks within each group."""
    if matrix.size == 0 or np.linalg.eigvalsh(matrix)[0] >= least:
        return matrix
    within = groups[:, None] == groups
    projected, correction = matrix, np.zeros_like(matrix)
    for _ in range(200):
        tried = projected - correction
        values, vectors = np.linalg.eigh(tried)
        definite = (vectors * np.maximum(values, least)) @ vectors.T
        correction = definite - tried
        projected = np.where(within, np.eye(len(matrix)), (definite + definite.T) / 2)
        if np.abs(projected - definite).max() < 1e-7:
            break
    smallest = np.linalg.eigvalsh(projected)[0]
    # shrink towards the identity, which preserves the identity blocks
    weight = max(0.0, (least - smallest) / (1.0 - smallest))
    return np.asarray((1.0 - weight) * projected + weight * np.eye(len(matrix)))


def check_correlations(matrix: Floats, size: int) -> None:
    """Raise if the matrix is not a positive definite correlation matrix of `size` latents."""
    check_array(matrix, "correlation_", FLOAT, size, size)
    if size:
        require(np.abs(np.diag(matrix) - 1.0).max() < 1e-6, "correlation_ has no unit diagonal")
        require(np.abs(matrix - matrix.T).max() < 1e-6, "correlation_ is not symmetric")
        require(np.linalg.eigvalsh(matrix)[0] > 0.1 * SMALLEST_EIGENVALUE, "correlation_ is not positive definite")


def _maximise(minus_log_likelihood: Callable[[float], float]) -> float:
    found = scipy.optimize.minimize_scalar(
        minus_log_likelihood, bounds=(-_LARGEST, _LARGEST), method="bounded", options={"xatol": 1e-6}
    )
    return float(found.x)


def _see(margin: Margin | Utilities, values: Floats, weights: Floats | None) -> _ObservedColumn:
    codes = margin.position(values)
    none = np.empty(0)
    if isinstance(margin, Utilities):
        return _ObservedColumn(margin, codes, np.eye(margin.n_latents), none, none, weights)
    masses = np.diff(margin.shares)
    if masses[margin.atoms].sum() < _DISCRETE_SHARE:
        middle = scipy.special.ndtri((margin.shares[1:] + margin.shares[:-1]) / 2)[codes]
        normal_scores = (middle - mean_of(middle, weights)) / deviation_of(middle, weights)
        rank = ((margin.shares[1:] + margin.shares[:-1]) / 2)[codes]
        bins = np.unique(np.floor(rank * _SCORES), return_inverse=True)[1].astype(np.int64)
        counted = normal_scores if weights is None else weights * normal_scores
        scores = np.bincount(bins, counted) / np.bincount(bins, weights)
        if margin.count <= _SCORES:
            scores, bins = np.unique(normal_scores, return_inverse=True)
        return _ObservedColumn(margin, bins, scores, none, normal_scores, weights)
    cell = _coarsen(masses)
    shares = np.concatenate([[0.0], np.cumsum(np.bincount(cell, masses))])
    shares[-1] = 1.0
    cuts = scipy.special.ndtri(shares)
    density = np.exp(-0.5 * cuts**2) / np.sqrt(2 * np.pi)
    return _ObservedColumn(margin, cell[codes], -np.diff(density) / np.diff(shares), cuts, none, weights)


def _coarsen(masses: Floats) -> Ints:
    """Return the cell of each value: at most 16 cells of neighbouring values with about equal mass."""
    if masses.size <= _CELLS:
        return np.arange(masses.size)
    middle = np.cumsum(masses) - masses / 2
    return np.unique(np.floor(middle * _CELLS), return_inverse=True)[1].astype(np.int64)


def _correlate(a: _ObservedColumn, b: _ObservedColumn, n: float) -> Floats:
    """Return the block of correlations between the latents of two columns."""
    if isinstance(a.margin, Utilities) or isinstance(b.margin, Utilities):
        # stratify by the column with more levels; the levels of the other need an integral at every point
        if not isinstance(a.margin, Utilities) or (isinstance(b.margin, Utilities) and len(a.scores) < len(b.scores)):
            return _correlate(b, a, n).T
        return _match_moments(a, b, n)
    if a.is_continuous and b.is_continuous:
        counted = a.normal_scores if a.weights is None else a.weights * a.normal_scores
        return np.array([[float(counted @ b.normal_scores) / n]])
    counts = _cross(a, b, n) * n
    if a.is_continuous:
        return np.array([[polyserial(counts, a.scores, b.cuts)]])
    if b.is_continuous:
        return np.array([[polyserial(counts.T, b.scores, a.cuts)]])
    return np.array([[polychoric(counts, a.cuts, b.cuts)]])


def _cross(a: _ObservedColumn, b: _ObservedColumn, n: float) -> Floats:
    """Return the shares of the rows in each pair of cells."""
    shape = len(a.scores), len(b.scores)
    counts = np.bincount(a.codes * shape[1] + b.codes, a.weights, minlength=shape[0] * shape[1])
    return counts.reshape(shape) / n


def _match_moments(a: _ObservedColumn, b: _ObservedColumn, n: float) -> Floats:
    """Match the moments E[s_a s_b'] for the utilities of `a` by a damped Gauss-Newton iteration."""
    assert isinstance(a.margin, Utilities)
    map_a, spread_a = a.margin.jacobian, a.margin.shares
    if isinstance(b.margin, Utilities):
        map_b, spread_b = b.margin.jacobian, b.margin.shares
        observed = _cross(a, b, n) - np.outer(spread_a, spread_b)
        model = _levels_by_levels(a.margin, b.margin, a.thin_noise)
    elif b.is_continuous:
        map_b, spread_b = np.ones((1, 1)), np.ones(1)
        counted = b.normal_scores if b.weights is None else b.weights * b.normal_scores
        observed = np.bincount(a.codes, counted)[:, None] / n
        model = None
    else:
        mass = np.bincount(b.codes, b.weights, minlength=b.scores.size) / n
        spread_b = np.array([mass @ b.scores**2])
        map_b = spread_b[:, None]
        observed = (_cross(a, b, n) @ b.scores)[:, None]
        model = _levels_by_cells(a.margin, a.noise, b.scores, b.cuts)
    left, right = map_a / spread_a, map_b / spread_b  # J D^-1
    (root_a, axes_a), (root_b, axes_b) = np.linalg.eigh(left @ map_a), np.linalg.eigh(right @ map_b)
    information = np.maximum(np.outer(root_a, root_b), 0.0) + 1.0 / n
    weight = np.outer(1.0 / spread_a, 1.0 / spread_b)

    def step(residual: Floats, found: Floats) -> Floats:
        gradient = left @ residual @ right.T - found / n
        return np.asarray(axes_a @ (axes_a.T @ gradient @ axes_b / information) @ axes_b.T)

    found = np.zeros_like(observed)
    residual = observed
    if model is None:
        return _shorten(step(residual, found))
    loss, damping = float((weight * residual**2).sum()), 1.0
    for _ in range(50):
        change = damping * step(residual, found)
        tried = _shorten(found + change)
        tried_residual = observed - model(tried)
        tried_loss = float((weight * tried_residual**2).sum() + (tried**2).sum() / n)
        if tried_loss <= loss:
            found, residual, loss, damping = tried, tried_residual, tried_loss, min(1.0, 2 * damping)
        else:
            damping /= 4
        if np.abs(change).max() < 5e-4:
            break
    return found


def _shorten(block: Floats) -> Floats:
    """Return the block, scaled so that its largest singular value is below 1."""
    norm = float(np.linalg.norm(block, 2))
    return block * min(1.0, _LARGEST_NORM / max(norm, _ALMOST_ZERO))


def _levels_by_cells(a: Utilities, noise: Floats, scores: Floats, cuts: Floats) -> Callable[[Floats], Floats]:
    """Return E[1{level k} s(Z)] as a function of the correlations of the utilities with Z."""
    inner, jumps = cuts[1:-1], np.diff(scores)

    def moments(block: Floats) -> Floats:
        s = np.sqrt(1.0 - float((block**2).sum()))
        below = np.empty((a.n_latents, inner.size))
        mean_below(inner, (noise @ block)[:, :, 0], s, CDF, PDF, below)
        return np.asarray(a.shares * (scores[-1] - below @ jumps))[:, None]

    return moments


def _levels_by_levels(a: Utilities, b: Utilities, noise: Floats) -> Callable[[Floats], Floats]:
    """Return P(k, m) - p_k q_m as a function of the correlations between the utilities of two columns."""
    uniforms = _latin_hypercube(noise.shape[1], a.n_latents + b.n_latents)
    rest = scipy.special.ndtri(uniforms[:, a.n_latents :])

    def moments(block: Floats) -> Floats:
        # residual noise of the second column: a common part, and independent parts of equal variance
        values, vectors = np.linalg.eigh(np.eye(b.n_latents) - block.T @ block)
        common = vectors * np.sqrt(np.maximum(values - values[0], 0.0)) @ vectors.T
        means = b.offsets + noise @ block + rest @ common
        chosen = choice_probabilities(means.reshape(-1, b.n_latents), float(np.sqrt(max(values[0], 0.0))))
        joint = a.shares[:, None] * chosen.reshape(means.shape).mean(axis=1)
        return np.asarray(joint - np.outer(a.shares, joint.sum(axis=0)))

    return moments


def _latin_hypercube(points: int, dimensions: int) -> Floats:
    """Return a Latin hypercube sample of (0, 1)^dimensions, the same at every call."""
    rng = np.random.default_rng(0)
    columns = [rng.permutation(points) for _ in range(dimensions)]
    return np.column_stack(columns).astype(np.float64) / points + 0.5 / points
