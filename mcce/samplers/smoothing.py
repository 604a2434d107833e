"""Kernel smoothing of donors (synthpop's `syn.smooth`, method "density"), and normal draws inside an interval.

The bandwidth h is that of Sheather and Jones (1991), equation (12), R's `bw.SJ`, with Silverman's rule (`bw.nrd0`) as
fallback. A donor y is replaced by a normal draw with mean y and standard deviation h inside the observed range, rounded
to the decimals of the data. Values held by more than 5 % of the rows are not smoothed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import InputError, SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import REACH, distance_to
from mcce.samplers.density import DRAWN_AS_IT_IS, silverman
from mcce.storage.fields import FLOAT, check_number, stored
from mcce.storage.state import stateful
from mcce.table.grid import MOST_DECIMALS, decimals_of
from mcce.table.weights import count_distinct, deviation_of, quantiles
from mcce.wording import Value

Smoothing = Literal["density"] | None

_BINS = 1000
_WIDENINGS = 10
_LEAST_UNIFORM = 2.0**-54
_FAR = 40.0  # in bandwidths: kernels underflow beyond


@stateful("Smoother")
@dataclass(frozen=True)
class Smoother:
    """Kernel smoothing of drawn donors."""

    bandwidth: float = stored(float, least=0.0)
    low: float = stored(float)
    high: float = stored(float)
    decimals: int = stored(int, least=0, most=MOST_DECIMALS)
    atoms: Floats = stored(FLOAT, None, rising=True)

    @classmethod
    def read(cls, observed: Floats, weights: Floats | None = None) -> Smoother:
        """Learn bandwidth, range, decimals and point masses from the observed values; weights count as copies."""
        values, counts = count_distinct(observed, weights)
        atoms = values[counts > DRAWN_AS_IT_IS * (observed.size if weights is None else weights.sum())]
        is_spread = ~np.isin(observed, atoms)
        spread = observed[is_spread]
        width = bandwidth(spread, None if weights is None else weights[is_spread]) if spread.size > 1 else 0.0
        places = decimals_of(observed)
        return cls(width, float(values[0]), float(values[-1]), MOST_DECIMALS if places is None else places, atoms)

    def check_state(self) -> None:
        """Raise if the range is not ascending."""
        check_number(self.high, "high", self.low)

    def smooth(self, donors: Floats, rng: RowStreams) -> Floats:
        """Return a draw around each donor; a missing donor stays missing."""
        if self.bandwidth == 0.0:
            return donors
        low, high = np.full(donors.size, self.low), np.full(donors.size, self.high)
        around = truncated_normal(donors, self.bandwidth, low, high, rng.uniform())
        around = np.clip(np.round(around, self.decimals), self.low, self.high)
        return np.where(np.isin(donors, self.atoms), donors, around)

    def supports(self, donors: Floats, values: Floats) -> Bools:
        """Return whether each value is in the observed range and within the reach of a donor's kernel."""
        reach = REACH * self.bandwidth + 0.5 * 10.0**-self.decimals if self.bandwidth else 0.0
        inside = (values >= self.low) & (values <= self.high)
        return np.asarray(inside & (distance_to(np.sort(donors), values) <= reach))


def check_smoothing(smoothing: object, owner: object) -> None:
    if smoothing is not None and smoothing != "density":
        raise InputError(f'smoothing of {type(owner).__name__} is {smoothing!r}; it must be None or "density".')


def smoothed_without_ranks(owner: object) -> SamplerError:
    """Return the error for smoothed draws, which have no distribution function."""
    return SamplerError(Value(owner), " has no ranks, because its draws are smoothed; leave smoothing out.")


def bandwidth(values: Floats, weights: Floats | None = None) -> float:
    """Return the bandwidth; 0 if all values are equal."""
    n = values.size if weights is None else max(float(weights.sum()), 2.0)
    sd = float(deviation_of(values, weights, ddof=1))
    quartiles = quantiles(values, [0.25, 0.75], weights)
    iqr = float(quartiles[1] - quartiles[0]) / 1.349
    scale = min(sd, iqr) if iqr > 0.0 else sd
    if scale == 0.0:
        return 0.0
    unit = 2.0 ** int(np.frexp(scale)[1])  # the seventh power of a bandwidth near 1e45 overflows
    return unit * _sheather_jones(values / unit, scale / unit, n, weights)


def _sheather_jones(values: Floats, scale: float, n: float, weights: Floats | None) -> float:
    """Return the bandwidth of values whose spread `scale` is about 1."""
    gaps, pairs = _binned_gaps(values, weights)

    def s(a: float) -> float:
        """Estimate the integral of the squared second derivative of the density."""
        t = np.minimum(gaps / a, _FAR) ** 2
        kernel = np.exp(-t / 2.0) * (t**2 - 6.0 * t + 3.0)
        return float((2.0 * pairs @ kernel + 3.0 * n) / (n * (n - 1) * a**5 * np.sqrt(2.0 * np.pi)))

    def t(b: float) -> float:
        """Estimate the integral of the squared third derivative of the density."""
        u = np.minimum(gaps / b, _FAR) ** 2
        kernel = np.exp(-u / 2.0) * (u**3 - 15.0 * u**2 + 45.0 * u - 15.0)
        return float((15.0 * n - 2.0 * pairs @ kernel) / (n * (n - 1) * b**7 * np.sqrt(2.0 * np.pi)))

    rule_of_thumb = silverman(scale, 0.0, n)
    curvature, slope = s(1.24 * scale * n ** (-1 / 7)), t(1.23 * scale * n ** (-1 / 9))
    if not (curvature > 0.0 and slope > 0.0):
        return rule_of_thumb
    ratio = 1.357 * (curvature / slope) ** (1 / 7)

    def equation(h: float) -> float:
        inner = s(ratio * h ** (5 / 7))
        return float((2.0 * np.sqrt(np.pi) * n * inner) ** -0.2 - h) if inner > 0.0 else np.inf

    high = 1.144 * scale * float(n) ** -0.2  # optimal for a normal density with spread `scale`
    low = 0.1 * high
    for _ in range(_WIDENINGS):
        low, high = (low if equation(low) > 0.0 else low / 2.0), (high if equation(high) < 0.0 else high * 2.0)
    if not np.inf > equation(low) > 0.0 > equation(high):
        return rule_of_thumb
    return float(scipy.optimize.brentq(equation, low, high, xtol=1e-10 * rule_of_thumb))


def _binned_gaps(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return the distances between bins and the number of pairs of values at each distance."""
    width = (values.max() - values.min()) * 1.01 / _BINS
    bins = np.trunc(values / width)
    counts = np.bincount((bins - bins.min()).astype(np.intp), weights, minlength=_BINS).astype(np.float64)
    pairs = np.correlate(counts, counts, "full")[counts.size - 1 :]
    pairs[0] = np.maximum(counts * (counts - 1.0), 0.0).sum() / 2.0  # weights may be below 1
    return np.arange(pairs.size) * width, pairs


def truncated_normal(mean: Floats, sd: float | Floats, low: Floats, high: Floats, uniform: Floats) -> Floats:
    """Return normal draws restricted to [low, high] by inversion, accurate far in the tails."""
    a, b = (low - mean) / sd, (high - mean) / sd
    mirrored = a > -b  # work in the lower tail, where logarithms of probabilities are accurate
    a, b = np.where(mirrored, -b, a), np.where(mirrored, -a, b)
    u = np.maximum(uniform, _LEAST_UNIFORM)
    log_p = np.logaddexp(scipy.special.log_ndtr(a) + np.log1p(-u), scipy.special.log_ndtr(b) + np.log(u))
    z = np.clip(scipy.special.ndtri_exp(np.minimum(log_p, 0.0)), a, b)
    return np.asarray(mean + sd * np.where(mirrored, -z, z))


def truncated_normal_quantile(mean: Floats, sd: float | Floats, low: Floats, high: Floats, u: Floats) -> Floats:
    """Return quantiles of normal distributions restricted to [low, high], increasing in `u`."""
    falls = (low - mean) / sd > -(high - mean) / sd  # `truncated_normal` mirrors these
    return truncated_normal(mean, sd, low, high, np.where(falls, 1.0 - u, u))


def log_normal_mass(a: Floats, b: Floats) -> Floats:
    """Return the log of the standard normal probability between a and b, without cancellation."""
    mirrored = a > -b
    a, b = np.where(mirrored, -b, a), np.where(mirrored, -a, b)
    lower, upper = scipy.special.log_ndtr(a), scipy.special.log_ndtr(b)
    with np.errstate(divide="ignore", invalid="ignore"):
        mass = upper + np.log(-np.expm1(np.where(np.isneginf(upper), 0.0, lower - upper)))
    return np.asarray(mass)
