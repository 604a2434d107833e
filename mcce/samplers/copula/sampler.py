"""Gaussian copula: empirical margins, one latent correlation matrix for the whole chain.

1. Each column is a function of latent normal variables (`margins`), whose correlation matrix is estimated once on the
   chain's whole table (`latent`).
2. Draws, restricted draws and densities are those of `conditional`: given the latents z of the givens, the target's
   latents are N(B'z, C); the target is the training value at share Phi(z_t), or the argmax of its utilities.
3. The next copula sampler of a chain conditions on the same values and the target, so it reuses (z, z_t) instead of
   drawing all latents again (`DrawnLatents`, `ConditionalSampler.sample_carrying`): a block is one draw from a
   multivariate normal distribution. This requires the same correlations, all former givens and the drawn value.

References: Song (2000), "Multivariate dispersion models generated from Gaussian copula"; Hoff (2007), "Extending the
rank likelihood for semiparametric copula estimation"; in explanations: Aas, Jullum and Loland (2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.rng import RowStreams
from mcce.samplers.base import (
    IMPOSSIBLE,
    BaseMeasure,
    ConditionalSampler,
    RestrictedDraw,
    Within,
    refuse_missing,
    supported_by,
)
from mcce.samplers.copula.conditional import GIVEN_CALLS, LatentConditional
from mcce.samplers.copula.latent import check_correlations, fit_latent
from mcce.samplers.copula.margins import Margin, Utilities, place_numbers
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.restricted import log_of
from mcce.storage.fields import FLOAT, learned, require
from mcce.table import Column, Feature, Table


@dataclass(frozen=True)
class DrawnLatents:
    """Latents of the columns `positions` of a block and of the column drawn given them, with their correlation."""

    positions: tuple[int, ...]
    values: Floats
    correlation: Floats
    z: Floats

    def without(self, rows: Bools) -> DrawnLatents:
        """Return the latents without those of some rows, whose value was drawn in another way."""
        return replace(self, values=np.where(rows, np.nan, self.values))


def take_over(carried: object, given: Table, correlation: Floats) -> tuple[Floats, Bools] | None:
    """Return carried latents of the givens, and the rows they are valid for; None if they are of other columns.

    `correlation` is that of the givens' latents.
    """
    if not isinstance(carried, DrawnLatents) or given.positions[:-1] != carried.positions:
        return None
    if not np.array_equal(carried.correlation, correlation):
        return None
    return carried.z, np.asarray(given.matrix[:, -1] == carried.values)


Self = TypeVar("Self", bound="GaussianCopulaSampler")

MOST_REPEATS = 100_000  # particles, sweeps or points: more would be too slow to be useful


@register_sampler("copula")
class GaussianCopulaSampler(ConditionalSampler):
    """Draws from the conditional of a Gaussian copula with empirical margins.

    Parameters
    ----------
    particles : int
        Candidates for the initial state of the latents of discrete givens; one is chosen by weight.
    sweeps : int
        Gibbs sweeps before a draw.
    density_points : int
        Weighted lattice points that `log_density` averages over.

    Notes
    -----
    Margins and correlations of all columns of a chain are estimated once. Draws are observed values. With continuous
    givens only, draws and densities are exact. With discrete givens, `log_density` is a mean over weighted lattice
    points or, with many discrete givens, over Gibbs states, the same at every call; its error is about 0.01 (of the
    logarithm) with four mixed givens and correlations of 0.5.

    In a chain of copula samplers only the first one sweeps; the others reuse its latents. Otherwise (`predictors`,
    other samplers in between) draws with many discrete givens depend on `sweeps`: on the German credit data with all 20
    columns, six sweeps left an error of up to 0.04 in the share of a level. Increase `sweeps` in such cases.

    The model has no interactions and no tail dependence. Use trees where that is too restrictive.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler="copula", fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.sample(given=loans.X.loc[[0], ["age", "sex"]], n=2).shape
    (2, 10)
    """

    thread_safe = True
    draws_observed = True
    carries_over = True
    takes_weights = True
    discloses = (
        "the {target_margin_.values} distinct training values of it with their shares, "
        "and {given_margins_.values} of the columns it is drawn given"
    )

    given_margins_: tuple[Margin | Utilities, ...] = learned(tuple, of=(Margin, Utilities))
    target_margin_: Margin | Utilities = learned((Margin, Utilities))
    correlation_: Floats = learned(
        FLOAT, "latents", "latents", finite=True
    )  # of the givens' latents, then the target's
    is_number_: bool = learned(bool)

    def __init__(self, *, particles: int = 10, sweeps: int = 6, density_points: int = 256) -> None:
        self.particles = particles
        self.sweeps = sweeps
        self.density_points = density_points

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.check_training(target)
        refuse_missing(self, given, target)
        place = place_in_root(given, target)
        if place is None:
            model = fit_latent(joint_table(given, target))
            columns = list(range(len(model.margins)))
        else:
            model = given.shared("copula", fit_latent)
            columns = [*given.positions, place]
        margins = [margin for j in columns if (margin := model.margins[j]) is not None]
        latents = [model.first[j] + k for j, margin in zip(columns, margins) for k in range(margin.n_latents)]
        self.given_margins_, self.target_margin_ = tuple(margins[:-1]), margins[-1]
        self.correlation_ = model.correlation[np.ix_(latents, latents)]
        self.is_number_ = target.feature.is_numeric
        vars(self).pop("_conditional", None)
        return self

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        if within is not None:
            return self.sample_within(given, rng, within).values
        return self.sample_carrying(given, rng, None)[0]

    def sample_carrying(self, given: Table, rng: RowStreams, carried: object) -> tuple[Floats, object]:
        refuse_missing(self, given)
        z = self._draw_given(given, rng, carried)
        latent = self._conditional.draw_target(z, rng)
        drawn = self.target_margin_.values_of(latent)
        return drawn, DrawnLatents(given.positions, drawn, self.correlation_, np.hstack([z, latent]))

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        refuse_missing(self, given)
        margin, n = self.target_margin_, given.n_rows
        low, high = within.bounds(n)
        if self.is_number_ and isinstance(margin, Margin):
            first = np.searchsorted(margin.values, low)
            last = np.searchsorted(margin.values, high, side="right") - 1
            possible, cells = last >= first, None
        else:
            cells = within.level_mask(n, int(margin.values.max()) + 1)[:, margin.values.astype(np.intp)]
            possible = np.asarray(cells.any(axis=1))
        if margin.n_latents == 0:
            return RestrictedDraw.of(np.full(n, margin.values[0]), ~possible, np.zeros(n))
        if cells is not None:
            free = cells | ~possible[:, None]
            chosen, mass = self._conditional.draw_level_within(given.matrix, free, rng)
        else:
            assert isinstance(margin, Margin)
            low, high = (np.where(possible, margin.cuts[end], 0.0) for end in (first * possible, last * possible + 1))
            latent = self._conditional.draw_number_within(given.matrix, low, high, self.sweeps, rng)
            mass = self._conditional.mass_within(given.matrix, low, high, rng) if within.weighted else np.ones(n)
            # rounding may move a latent out of its interval
            chosen = np.clip(
                margin.positions_of(latent), first * possible, np.where(possible, last, margin.values.size)
            )
            chosen = np.where(possible, chosen, 0)
        return RestrictedDraw.of(margin.values[chosen], ~possible, log_of(mass) if within.weighted else None)

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether each value is within the local spacing of an observed one and not too extreme.

        A value is too extreme if the probability of values at least as extreme is below 1e-12.
        """
        margin = self.target_margin_
        if isinstance(margin, Utilities) or not self.is_number_:
            return np.asarray(self.log_density(given, values) > np.log(IMPOSSIBLE))
        refuse_missing(self, given)
        drawable, weights = margin.training_values
        supported = supported_by(drawable, values, is_number=True, weights=weights)
        if margin.n_latents == 0:
            return supported
        low, high = margin.bounds(np.where(supported, values, margin.values[0]))
        below_it = self._probability(given, np.full_like(low, -np.inf), high)
        above_it = self._probability(given, low, np.full_like(low, np.inf))
        return np.asarray(supported & (np.minimum(below_it, above_it) > IMPOSSIBLE))

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log probability of levels and atoms, the log density of other numbers.

        The density is that of the margin, a kernel estimate (`mcce.samplers.copula.margins.kernel_margin`), times that
        of the copula. It integrates to 1. It is 0 outside the kernel estimate, and for unobserved levels.
        """
        self.refuse_training_rows(training_rows)
        refuse_missing(self, given)
        margin = self.target_margin_
        at = margin.position(values)
        if margin.n_latents == 0:
            return np.where(at >= 0, 0.0, -np.inf)
        if isinstance(margin, Utilities):
            each = self._conditional.level_probabilities(given.matrix, self.density_points)
            density = each[np.arange(at.size), at]
        elif self.is_number_:
            density, at = self._number_density(given, values, margin)
        else:
            density = self._probability(given, margin.cuts[at], margin.cuts[at + 1])
        with np.errstate(divide="ignore", invalid="ignore"):  # values without a position are set to -inf
            return np.where(at >= 0, np.log(density), -np.inf)

    def distribution(self, given: Table) -> DistributionFunctions:
        """Return the distribution of each row over the observed values, integrated over `density_points` points."""
        refuse_missing(self, given)
        margin, n = self.target_margin_, given.n_rows
        if margin.n_latents == 0:
            only = margin.values[0]
            return DistributionFunctions(lambda high: (high >= only) * 1.0, lambda u: np.full(u.size, only))
        if isinstance(margin, Utilities) or not self.is_number_:
            codes = np.argsort(margin.values)
            each = self._conditional.level_probabilities(given.matrix, self.density_points)
            return DistributionFunctions.of_levels(each[:, codes], margin.values[codes])
        lowest = np.full(n, -np.inf)
        return DistributionFunctions.of_atoms(
            margin.values,
            lambda high: self._probability(
                given, lowest, margin.cuts[np.searchsorted(margin.values, high, side="right")]
            ),
            n_donors=margin.values.size,
        )

    def base_measure(self) -> BaseMeasure:
        margin = self.target_margin_
        if not self.is_number_ or margin.n_latents == 0 or isinstance(margin, Utilities):
            return "counting"
        return margin.base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        require(self.is_number_ == target.is_numeric, "is_number_ does not match the target")
        require(len(self.given_margins_) == len(given), "the number of given_margins_ is not that of the givens")
        margins = [*self.given_margins_, self.target_margin_]
        for margin, feature in zip(margins, [*given, target]):
            margin.check_column(feature, n_rows)
        check_correlations(self.correlation_, sum(margin.n_latents for margin in margins))

    @cached_property
    def _conditional(self) -> LatentConditional:
        return LatentConditional(self.given_margins_, self.target_margin_, self.correlation_, self.particles)

    def _draw_given(self, given: Table, rng: RowStreams, carried: object) -> Floats:
        """Return latents of the givens: those of the previous sampler of the chain if valid, else new ones."""
        d = len(self.correlation_) - self.target_margin_.n_latents
        taken = take_over(carried, given, self.correlation_[:d, :d])
        if taken is None:
            return self._conditional.draw_given(given.matrix, self.sweeps, rng)
        z, fits = taken
        if not fits.all():
            z = z.copy()
            z[~fits] = self._conditional.draw_given(given.matrix[~fits], self.sweeps, rng.take(~fits))
        for _ in range(GIVEN_CALLS):  # later random numbers of a row must not depend on whether its latents were reused
            rng.next_key()
        return z

    def _probability(self, given: Table, low: Floats, high: Floats) -> Floats:
        return self._conditional.interval_probability(given.matrix, low, high, self.density_points)

    def _number_density(self, given: Table, values: Floats, margin: Margin) -> tuple[Floats, Ints]:
        """Return probabilities of atoms and densities of other numbers, and -1 where both are 0."""
        places = place_numbers(margin, values)
        is_atom, density = places.is_atom, np.where(places.is_atom, 1.0, places.slope)
        if is_atom.any():
            density[is_atom] = self._probability(given, places.low, places.high)[is_atom]
        if not is_atom.all():
            at = np.where(np.isfinite(places.low), places.low, 0.0)  # an atom may have an infinite end
            ratio = self._conditional.point_density(given.matrix, at, self.density_points)
            density = np.where(is_atom, density, density * ratio)
        return density, np.where(places.possible, 0, -1)

    def check_parameters(self) -> None:
        for name in ("particles", "sweeps", "density_points"):
            check_count(getattr(self, name), name, self, 1, MOST_REPEATS)


def joint_table(given: Table, target: Column) -> Table:
    """Return a table of the givens and the target."""
    matrix = np.asfortranarray(np.column_stack([given.matrix, target.values]))
    return Table((*given.features, target.feature), matrix, weights=target.weights)


def place_in_root(given: Table, target: Column) -> int | None:
    """Return the column of the target in the table that the givens were taken from; None if it is not there.

    The weights of the target must be those of the table.
    """
    if given.root is None or given.root.weights is not target.weights:
        return None
    for j, feature in enumerate(given.root.features):
        if feature.name == target.feature.name and np.array_equal(given.root.matrix[:, j], target.values):
            return j
    return None
