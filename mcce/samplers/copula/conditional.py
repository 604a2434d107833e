"""The conditional of the latent variables of a target given observed values of the other columns.

1. The givens' latents z are known for continuous values; others are drawn inside their intervals and cones by Gibbs
   sweeps (`mcce.samplers.copula.kernels`).
2. The target's latents are z_t | z ~ N(B'z, C), with B = R_gg^-1 R_gt and C = R_tt - R_tg B.
3. A restricted number is one of the Gibbs variables, because z depends on the restriction. A restricted level is drawn
   by its probability.
4. A probability or density is the mean over weighted lattice particles of z. A row whose effective number of particles
   is below a tenth uses Gibbs states instead (`_average_swept`). With utilities, C = delta I + E: given a draw of N(0,
   E), the utilities are independent, and their argmax probabilities are one-dimensional integrals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams, derive_key, hash_rows
from mcce.samplers.copula.kernels import start_rows, sweep_rows, weigh_rows
from mcce.samplers.copula.margins import Margin, Utilities, choice_probabilities

_LARGE_AXIS = 1.3  # variance along an axis, relative to single variables


def lattice(points: int, dimensions: int) -> Floats:
    """Return evenly spread points of (0, 1)^dimensions: multiples of roots of primes (Genz and Bretz 2009)."""
    candidates = np.arange(2, 30 + 12 * dimensions)
    primes = [p for p in candidates if all(p % q for q in range(2, int(p**0.5) + 1))][:dimensions]
    return np.asarray((np.outer(np.arange(1, points + 1), np.sqrt(primes)) + 0.25) % 1.0)


def times(rows: Floats, matrix: Floats) -> Floats:
    """Return a matrix product whose rows are bitwise independent of each other, unlike those of a BLAS."""
    product = np.zeros((len(rows), matrix.shape[1]))
    for k in range(matrix.shape[0]):
        product += rows[:, k : k + 1] * matrix[k]
    return product


def main_axes(precision: Floats, free: Bools) -> Floats:
    """Return the principal axes of the free variables, given the others, with a large variance."""
    if free.sum() < 2:
        return np.empty((0, free.size))
    covariance = np.linalg.inv(precision[np.ix_(free, free)])
    sd = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(sd, sd))
    chosen = values >= _LARGE_AXIS
    axes = np.zeros((int(chosen.sum()), free.size))
    axes[:, free] = (vectors[:, chosen] * sd[:, None]).T
    return axes


RESTRICTED_PARTICLES = 4  # factor of the number of particles with a restricted target
RESTRICTED_POINTS = 64
GIVEN_CALLS = 2  # calls on the streams to draw the givens' latents: initial state and sweeps
LEAST_WEIGHT = 0.1  # effective number of particles, relative to their number
FIRST_SWEEPS = 20  # burn-in
STATES = 0.5  # Gibbs states per point


@dataclass
class GibbsState:
    """Latents of some rows, their restrictions and their precision matrix."""

    z: Floats
    low: Floats
    high: Floats
    allowed: Bools
    group_start: Ints
    group_end: Ints
    offset: Floats
    precision: Floats
    axes: Floats

    def sweep(self, sweeps: int, rng: RowStreams) -> None:
        groups = self.group_start, self.group_end, self.offset
        sweep_rows(
            *(self.z, self.low, self.high, self.allowed, self.precision, self.axes, self.axes @ self.precision),
            *(*groups, sweeps, rng.next_key(), rng.draws, rng.rows),
        )

    @property
    def is_known(self) -> bool:
        """Whether all latents are known."""
        return bool((self.group_end == 0).all() and (self.low == self.high).all())


class LatentConditional:
    """The conditional for margins of givens and target, and the correlations of their latents, the target's last."""

    def __init__(
        self, givens: Sequence[Margin | Utilities], target: Margin | Utilities, correlation: Floats, particles: int
    ) -> None:
        self.givens, self.target, self.particles = givens, target, particles
        # points first, utilities last: the initial state conditions on the variables before
        order = sorted(range(len(givens)), key=lambda j: _freedom(givens[j]))
        self.columns = [j for j in order if givens[j].n_latents]
        first = np.cumsum([0, *(margin.n_latents for margin in givens)])
        d = int(first[-1])
        moved = [first[j] + k for j in self.columns for k in range(givens[j].n_latents)]
        self.back = np.argsort(moved)  # from this order to that of the columns
        moved += range(d, d + target.n_latents)
        R = correlation[np.ix_(moved, moved)] if moved else np.empty((0, 0))
        self.joint_precision: Floats = np.asarray(np.linalg.inv(R), dtype=np.float64)
        self.precision: Floats = np.asarray(np.linalg.inv(R[:d, :d]), dtype=np.float64)
        free = np.repeat([_freedom(givens[j]) > 0 for j in self.columns], [givens[j].n_latents for j in self.columns])
        self.axes = main_axes(self.precision, free.astype(bool))
        with_target = np.append(free, np.ones(target.n_latents)).astype(bool)
        self.joint_axes = main_axes(self.joint_precision, with_target)
        self.slopes = self.precision @ R[:d, d:]
        self.rest = R[d:, d:] - R[d:, :d] @ self.slopes
        self.rest_root: Floats = np.asarray(np.linalg.cholesky(self.rest), dtype=np.float64)
        inverse_root = np.linalg.inv(np.linalg.cholesky(R))
        self.start_sd = 1.0 / np.diag(inverse_root)
        self.start_slopes = -np.tril(inverse_root, -1) * self.start_sd[:, None]
        self._read_groups([*(givens[j] for j in self.columns), target])

    def _read_groups(self, margins: list[Margin | Utilities]) -> None:
        """Set the groups of latents that are utilities of one column, and their offsets."""
        sizes = [margin.n_latents for margin in margins]
        ends = np.cumsum(sizes)
        is_utility = np.array([isinstance(margin, Utilities) for margin in margins])
        self.group_start: Ints = np.repeat(ends - sizes, sizes).astype(np.int64)
        self.group_end: Ints = np.repeat(np.where(is_utility, ends, 0), sizes).astype(np.int64)
        self.offset = np.zeros(int(ends[-1]))
        for end, margin in zip(ends, margins):
            if isinstance(margin, Utilities):
                self.offset[end - margin.n_latents : end] = margin.offsets

    def start(self, given: Floats, rng: RowStreams) -> GibbsState:
        """Return the initial Gibbs state for some rows."""
        return self._start(*self._read(given), rng)

    def draw_given(self, given: Floats, sweeps: int, rng: RowStreams) -> Floats:
        """Draw the givens' latents, in the order of the columns, by `GIVEN_CALLS` calls on the streams."""
        state = self.start(given, rng)
        if state.is_known:
            rng.next_key()  # otherwise later random numbers of a row would depend on other rows
        else:
            state.sweep(sweeps, rng)
        return state.z[:, self.back]

    def draw_target(self, z: Floats, rng: RowStreams) -> Floats:
        """Draw the target's latents given the others, in the order of the columns."""
        noise = np.empty((len(z), len(self.rest)))
        for k in range(len(self.rest)):
            noise[:, k] = rng.normal()
        return times(z, self.slopes[self.back]) + times(noise, self.rest_root.T)

    def draw_number_within(self, given: Floats, low: Floats, high: Floats, sweeps: int, rng: RowStreams) -> Floats:
        """Draw a single target latent between bounds."""
        lows, highs, allowed = self._read(given)
        always = np.ones((len(low), 1), dtype=bool)
        columns = np.column_stack([lows, low]), np.column_stack([highs, high]), np.hstack([allowed, always])
        joint = self._start(*columns, rng)
        joint.sweep(sweeps, rng)
        return joint.z[:, -1]

    def mass_within(self, given: Floats, low: Floats, high: Floats, rng: RowStreams) -> Floats:
        """Return the probability of a single target latent between bounds, with random lattice shifts."""
        return self.interval_probability(given, low, high, RESTRICTED_POINTS, self._shifts(rng.child("mass")))

    def draw_level_within(self, given: Floats, levels: Bools, rng: RowStreams) -> tuple[Ints, Floats]:
        """Draw the position of an allowed level of the target; also return the probability of the allowed levels."""
        probabilities = self.level_probabilities(given, RESTRICTED_POINTS, self._shifts(rng))
        weights = np.where(levels, probabilities, 0.0)
        # if all allowed probabilities underflow, use the marginal shares
        shares = self.target.shares if isinstance(self.target, Utilities) else np.diff(self.target.shares)
        lost = ~(weights > 0.0).any(axis=1, keepdims=True)
        mass = weights.sum(axis=1) / probabilities.sum(axis=1)
        return rng.categorical(np.where(lost, levels * shares, weights)), mass

    def _shifts(self, rng: RowStreams) -> Floats:
        """Return the random lattice shift of each row."""
        return np.column_stack([rng.uniform() for _ in range(len(self.precision) + len(self.rest))])

    def _read(self, given: Floats) -> tuple[Floats, Floats, Bools]:
        """Return bounds of the givens' latents, and which of their utilities may be the largest."""
        n, d = given.shape[0], len(self.precision)
        low, high = np.full((n, d), -np.inf), np.full((n, d), np.inf)
        allowed = np.ones((n, d), dtype=bool)
        j = 0
        for column in self.columns:
            margin = self.givens[column]
            if isinstance(margin, Margin):
                low[:, j], high[:, j] = margin.bounds(given[:, column])
            else:
                at = margin.position(given[:, column])[:, None]
                allowed[:, j : j + margin.n_latents] = (at == np.arange(margin.n_latents)) | (at < 0)
            j += margin.n_latents
        return low, high, allowed

    def _start(self, low: Floats, high: Floats, allowed: Bools, rng: RowStreams) -> GibbsState:
        """Draw the initial state of the givens' latents, or of the givens' and the target's."""
        d = low.shape[1]
        joint = d > len(self.precision)
        z = np.empty_like(low)
        groups = self.group_start[:d], self.group_end[:d], self.offset[:d]
        regressions = np.ascontiguousarray(self.start_slopes[:d, :d]), self.start_sd[:d]
        particles = self.particles * (RESTRICTED_PARTICLES if joint else 1)
        streams = rng.next_key(), rng.draws, rng.rows
        start_rows(z, low, high, allowed, *regressions, *groups, particles, *streams)
        moves = (self.joint_precision, self.joint_axes) if joint else (self.precision, self.axes)
        return GibbsState(z, low, high, allowed, *groups, *moves)

    def interval_probability(
        self, given: Floats, low: Floats, high: Floats, points: int, shift: Floats | None = None
    ) -> Floats:
        """Return the probability that the single latent of the target is between low and high."""
        sd = float(np.sqrt(self.rest[0, 0]))

        def mass(means: Floats, extra: Floats) -> Floats:
            a, b = (low - means[:, 0]) / sd, (high - means[:, 0]) / sd
            upper = a > 0.0  # avoid cancellation near 1
            a, b = np.where(upper, -b, a), np.where(upper, -a, b)
            return np.asarray(scipy.special.ndtr(b) - scipy.special.ndtr(a))

        return self._average(mass, given, points, shift=shift)

    def point_density(self, given: Floats, at: Floats, points: int) -> Floats:
        """Return the density of the single latent of the target, relative to the standard normal density."""
        sd = float(np.sqrt(self.rest[0, 0]))

        def density(means: Floats, extra: Floats) -> Floats:
            return np.asarray(np.exp(0.5 * at**2 - 0.5 * ((at - means[:, 0]) / sd) ** 2) / sd)

        return self._average(density, given, points)

    def level_probabilities(self, given: Floats, points: int, shift: Floats | None = None) -> Floats:
        """Return the probability of each level of the target; `shift` moves the lattice points of each row."""
        if isinstance(self.target, Margin):
            sd, cuts = float(np.sqrt(self.rest[0, 0])), self.target.cuts

            def between(means: Floats, extra: Floats) -> Floats:
                return np.asarray(np.diff(scipy.special.ndtr((cuts - means) / sd), axis=1))

            return self._average(between, given, points, shift=shift)
        offsets = self.target.offsets
        values, vectors = np.linalg.eigh(self.rest)
        common = np.asarray(vectors * np.sqrt(np.maximum(values - values[0], 0.0)) @ vectors.T, dtype=np.float64)
        has_common = bool(np.abs(common).max() > 1e-9)

        def chosen(means: Floats, extra: Floats) -> Floats:
            moved = means + offsets + (times(extra, common) if has_common else 0.0)
            return choice_probabilities(moved, float(np.sqrt(values[0])))

        return self._average(chosen, given, points, values.size if has_common else 0, shift)

    def _average(
        self,
        function: Callable[[Floats, Floats], Floats],
        given: Floats,
        points: int,
        extra: int = 0,
        shift: Floats | None = None,
    ) -> Floats:
        """Return the mean of a function of the target's conditional means and of `extra` normal numbers.

        One point is used if the givens' latents are known and `extra` is 0.
        """
        low, high, allowed = self._read(given)
        n, d = low.shape
        groups = self.group_start[:d], self.group_end[:d], self.offset[:d]
        regressions = np.ascontiguousarray(self.start_slopes[:d, :d]), self.start_sd[:d]
        if extra == 0 and not groups[1].any() and (low == high).all():
            points = 1
        shift = np.zeros((n, d + extra)) if shift is None else shift
        own = np.ascontiguousarray(shift[:, :d])
        z, weight = np.empty_like(low), np.empty(n)
        highest, total_weight, total = np.full(n, -np.inf), np.zeros(n), np.zeros(1)
        squares = np.zeros(n)
        for point in lattice(points, d + extra):
            weigh_rows(z, weight, low, high, allowed, *regressions, *groups, point[:d], own)
            folded = np.abs(2.0 * ((point[d:] + shift[:, d : d + extra]) % 1.0) - 1.0)
            found = function(times(z, self.slopes), scipy.special.ndtri(np.clip(folded, 1e-12, 1.0 - 1e-12)))
            before, highest = highest, np.maximum(highest, weight)
            rescaled, added = np.exp(before - highest), np.exp(weight - highest)
            total_weight = total_weight * rescaled + added
            squares = squares * rescaled**2 + added**2
            total = total * _across(rescaled, found) + found * _across(added, found)
        mean = np.asarray(total / _across(total_weight, total))
        poor = np.flatnonzero(total_weight**2 < LEAST_WEIGHT * points * squares) if points > 1 else np.empty(0, np.intp)
        if poor.size:
            # random numbers that depend on the row only, the same at every call
            rng = RowStreams(
                derive_key(0, "copula"),
                hash_rows(np.column_stack([given, shift])[poor]),
                np.zeros(poor.size, np.uint64),
            )
            mean[poor] = self._average_swept(
                function, (low[poor], high[poor], allowed[poor]), poor, n, points, extra, rng
            )
        return mean

    def _average_swept(
        self,
        function: Callable[[Floats, Floats], Floats],
        observed: tuple[Floats, Floats, Bools],
        which: Ints,
        n: int,
        points: int,
        extra: int,
        rng: RowStreams,
    ) -> Floats:
        """Return the mean of a function of all `n` rows over Gibbs states, for the rows at `which`."""
        state = self._start(*observed, rng)
        state.sweep(FIRST_SWEEPS, rng)
        means, noise = np.zeros((n, self.slopes.shape[1])), np.zeros((n, extra))
        total, n_states = np.zeros(1), max(1, int(STATES * points))
        for _ in range(n_states):
            state.sweep(1, rng)
            means[which] = times(state.z, self.slopes)
            for k in range(extra):
                noise[which, k] = rng.normal()
            total = total + function(means, noise)[which]
        return np.asarray(total / n_states)


def _across(rows: Floats, like: Floats) -> Floats:
    """Return one number per row in a shape that broadcasts with `like`, a vector or a matrix."""
    return rows if like.ndim == 1 else rows[:, None]


def _freedom(margin: Margin | Utilities) -> int:
    """Return 0 for a margin of points, 1 with intervals, 2 for utilities."""
    return 2 if isinstance(margin, Utilities) else int(margin.atoms.any())
