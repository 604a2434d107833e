"""Families of numbers for `Continuous`: plain functions of arrays of parameters, by `scipy.special`.

A family has `log_density`, `cdf` and `ppf` of values and parameters; everything else follows. Each parameter has one
entry for each row (or several: a mixture's weights). A further family is a subclass with these three methods; what all
rows share, such as the residuals of `LocationScale`, is an attribute of the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from mcce._utils import Floats
from mcce.rng import RowStreams
from mcce.samplers.margin import Margin

LOG_ROOT_TAU = 0.5 * float(np.log(2.0 * np.pi))
JUST_BELOW = 1.0 - 1e-13  # so that ppf(cdf(k)) is k for counts
TINY, MOST = 2.0**-1000, 1.0 - 2.0**-53  # the range of probabilities whose quantiles are finite


class Family:
    """A family of distributions of a number."""

    is_discrete = False  # counts: `log_density` is a log probability, and `cdf` has jumps

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        """Return the log density, or the log probability of a count."""
        raise NotImplementedError

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        """Return P(Y <= y)."""
        raise NotImplementedError

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        """Return the least y with P(Y <= y) >= u, for 0 < u < 1."""
        raise NotImplementedError

    def below(self, y: Floats, *parameters: Floats) -> Floats:
        """Return P(Y < y)."""
        return self.cdf(np.ceil(y) - 1.0, *parameters) if self.is_discrete else self.cdf(y, *parameters)

    def mass(self, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        """Return P(low <= Y <= high)."""
        return np.maximum(self.cdf(high, *parameters) - self.below(low, *parameters), 0.0)

    def draw(self, rng: RowStreams, *parameters: Floats) -> Floats:
        """Draw by inversion."""
        return self.ppf(open_uniform(rng), *parameters)

    def draw_between(self, rng: RowStreams, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        """Draw from the part with low <= Y <= high, by inversion."""
        first = self.below(low, *parameters)
        last = self.cdf(high, *parameters)
        return self.ppf(np.clip(first + open_uniform(rng) * (last - first), TINY, MOST), *parameters)


def open_uniform(rng: RowStreams) -> Floats:
    """Return uniform numbers between 0 and 1, both excluded."""
    return np.minimum(rng.uniform() + 2.0**-54, MOST)


class Normal(Family):
    """Parameters: mean, standard deviation."""

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        mean, sd = parameters
        return np.asarray(-0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - LOG_ROOT_TAU)

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        mean, sd = parameters
        return np.asarray(special.ndtr((y - mean) / sd))

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        mean, sd = parameters
        return np.asarray(mean + sd * special.ndtri(u))

    def draw(self, rng: RowStreams, *parameters: Floats) -> Floats:
        mean, sd = parameters
        return np.asarray(mean + sd * rng.normal())

    def mass(self, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        a, b, _ = self._lower_tail(low, high, *parameters)
        return np.maximum(special.ndtr(b) - special.ndtr(a), 0.0)

    def draw_between(self, rng: RowStreams, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        mean, sd = parameters
        a, b, mirrored = self._lower_tail(low, high, mean, sd)
        first, last = special.ndtr(a), special.ndtr(b)
        z = special.ndtri(np.clip(first + open_uniform(rng) * (last - first), TINY, MOST))
        return np.asarray(mean + sd * np.where(mirrored, -z, z))

    @staticmethod
    def _lower_tail(low: Floats, high: Floats, mean: Floats, sd: Floats) -> tuple[Floats, Floats, Any]:
        """Return standardised ends, mirrored into the lower tail, where differences of probabilities are exact."""
        a, b = (low - mean) / sd, (high - mean) / sd
        mirrored = a > -b
        return np.where(mirrored, -b, a), np.where(mirrored, -a, b), mirrored


class NormalMixture(Family):
    """Parameters: weights, means and standard deviations of the components, each (rows, components)."""

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        weights, means, sds = parameters
        log_densities = Normal().log_density(y[:, None], means, sds)
        return np.asarray(special.logsumexp(log_densities, b=weights, axis=1))

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        weights, means, sds = parameters
        return np.asarray((weights * special.ndtr((y[:, None] - means) / sds)).sum(axis=1))

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        _, means, sds = parameters
        z = special.ndtri(u)[:, None]
        low, high = (means + sds * z).min(axis=1), (means + sds * z).max(axis=1)
        for _ in range(64):  # bisection between the components' quantiles
            middle = 0.5 * (low + high)
            reached = self.cdf(middle, *parameters) >= u
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.asarray(high)

    def draw(self, rng: RowStreams, *parameters: Floats) -> Floats:
        weights, means, sds = parameters
        component = rng.child("component").categorical(weights)[:, None]
        mean, sd = (np.take_along_axis(part, component, axis=1)[:, 0] for part in (means, sds))
        return Normal().draw(rng, mean, sd)

    def mass(self, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        return np.asarray(self._masses(low, high, *parameters).sum(axis=1))

    def draw_between(self, rng: RowStreams, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        _, means, sds = parameters
        masses = self._masses(low, high, *parameters)
        masses[masses.sum(axis=1) <= 0.0] = 1.0  # the caller rejects these rows
        component = rng.child("component").categorical(masses)[:, None]
        mean, sd = (np.take_along_axis(part, component, axis=1)[:, 0] for part in (means, sds))
        return Normal().draw_between(rng, low, high, mean, sd)

    @staticmethod
    def _masses(low: Floats, high: Floats, weights: Floats, means: Floats, sds: Floats) -> Floats:
        return np.asarray(weights * Normal().mass(low[:, None], high[:, None], means, sds))


class Poisson(Family):
    """Parameter: mean."""

    is_discrete = True

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        (mean,) = parameters
        return _of_counts(y, lambda k: special.xlogy(k, mean) - mean - special.gammaln(k + 1.0))

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        (mean,) = parameters
        return np.where(y < 0.0, 0.0, special.pdtr(np.floor(np.maximum(y, 0.0)), mean))

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        (mean,) = parameters
        return _least_count(self, u, special.pdtrik(u, mean), parameters)


class NegativeBinomial(Family):
    """Parameters: mean, dispersion a; the variance is mean + a mean^2."""

    is_discrete = True

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        mean, dispersion = parameters
        size = 1.0 / dispersion
        p = 1.0 / (1.0 + dispersion * mean)

        def log_probability(k: Floats) -> Floats:
            ways = special.gammaln(k + size) - special.gammaln(size) - special.gammaln(k + 1.0)
            return np.asarray(ways + special.xlogy(size, p) + special.xlog1py(k, -p))

        return _of_counts(y, log_probability)

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        mean, dispersion = parameters
        k = np.floor(np.maximum(y, 0.0))
        upto = special.betainc(1.0 / dispersion, k + 1.0, 1.0 / (1.0 + dispersion * mean))
        return np.where(y < 0.0, 0.0, np.where(np.isposinf(y), 1.0, upto))

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        mean, dispersion = parameters
        start = np.asarray(special.nbdtrik(u, 1.0 / dispersion, 1.0 / (1.0 + dispersion * mean)), dtype=np.float64)
        return _least_count(self, u, start, parameters)


class Gamma(Family):
    """Parameters: shape, scale."""

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        shape, scale = parameters
        x = np.maximum(y / scale, 0.0)
        log_density = special.xlogy(shape - 1.0, x) - x - special.gammaln(shape) - np.log(scale)
        return np.where(y > 0.0, log_density, -np.inf)

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        shape, scale = parameters
        return np.asarray(special.gammainc(shape, np.maximum(y / scale, 0.0)))

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        shape, scale = parameters
        return np.asarray(scale * special.gammaincinv(shape, u))


class Beta(Family):
    """Parameters: a, b."""

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        a, b = parameters
        x = np.clip(y, 0.0, 1.0)
        log_density = special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x) - special.betaln(a, b)
        return np.where((y > 0.0) & (y < 1.0), log_density, -np.inf)

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        a, b = parameters
        return np.asarray(special.betainc(a, b, np.clip(y, 0.0, 1.0)))

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        a, b = parameters
        return np.asarray(special.betaincinv(a, b, u))


@dataclass(frozen=True)
class LocationScale(Family):
    """A location and a scale of each row, and residuals / scale distributed as a `Margin` of all rows.

    Parameters: location, scale.
    """

    residuals: Margin

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        location, scale = parameters
        with np.errstate(divide="ignore"):
            return np.log(self.residuals.density((y - location) / scale)) - np.log(scale)

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        location, scale = parameters
        return self.residuals.cdf((y - location) / scale)

    def below(self, y: Floats, *parameters: Floats) -> Floats:
        location, scale = parameters
        return self.residuals.cdf((y - location) / scale, below=True)

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        location, scale = parameters
        return np.asarray(location + scale * self.residuals.ppf(u))


@dataclass(frozen=True)
class Scipy(Family):
    """A distribution of `scipy.stats`, such as ``scipy.stats.weibull_min``; parameters are its shapes, loc and scale.

    Slow; for models that return frozen distributions.
    """

    distribution: Any

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether it has probabilities in place of densities."""
        return hasattr(self.distribution, "pmf")

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        law = self.distribution
        return np.asarray(law.logpmf(y, *parameters) if self.is_discrete else law.logpdf(y, *parameters))

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        return np.asarray(self.distribution.cdf(y, *parameters))

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        u = u * JUST_BELOW if self.is_discrete else u
        return np.asarray(self.distribution.ppf(u, *parameters), dtype=np.float64)


FAMILIES: dict[str, Family] = {
    "normal": Normal(),
    "normal mixture": NormalMixture(),
    "poisson": Poisson(),
    "negative binomial": NegativeBinomial(),
    "gamma": Gamma(),
    "beta": Beta(),
}


def _of_counts(y: Floats, log_probability: Any) -> Floats:
    is_count = (y >= 0.0) & (np.floor(y) == y)
    return np.where(is_count, log_probability(np.where(is_count, y, 0.0)), -np.inf)


def _least_count(family: Family, u: Floats, start: Floats, parameters: tuple[Floats, ...]) -> Floats:
    """Return the least count k with P(Y <= k) >= u, near the real number `start`."""
    u = u * JUST_BELOW
    k = np.maximum(np.ceil(np.nan_to_num(start) - 1e-8), 0.0)
    k = np.where((k > 0.0) & (family.cdf(k - 1.0, *parameters) >= u), k - 1.0, k)
    return np.where(family.cdf(k, *parameters) < u, k + 1.0, k)
