"""Success rates of attacks with intervals, and the excess risk of training rows over control rows.

1. Wilson's interval (1927) has the middle (s + z^2/2) / (n + z^2) and the half width z / (n + z^2) sqrt(s (n - s) / n +
   z^2/4).
2. The risk is (r_attack - r_control) / (1 - r_control), r the middles (Giomi, Boenisch, Wehmeyer and Tasnadi 2023). Its
   error is propagated from both half widths; the ends are cut at 0 and 1.
3. AUC of a membership score has the error of DeLong, DeLong and Clarke-Pearson (1988); the rate of members found at few
   false positives is that of Carlini et al. (2022), "Membership inference attacks from first principles".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mcce.base.arrays import Floats

FALSE_POSITIVES = (0.001, 0.01)  # false positive rates of the membership attacks


@dataclass(frozen=True)
class Estimate:
    """A figure with an interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Rate:
    """The success rate of attacks, with the middle and half width of Wilson's interval."""

    n: int
    share: float
    middle: float
    error: float

    @property
    def estimate(self) -> Estimate:
        """The rate with its interval."""
        return Estimate(self.share, max(self.middle - self.error, 0.0), min(self.middle + self.error, 1.0))


def quantile(confidence: float) -> float:
    """Return the normal quantile of a two-sided interval."""
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


def wilson(successes: float, n: int, confidence: float = 0.95) -> Rate:
    """Return the rate of `successes` among `n` attacks; without attacks the interval is from 0 to 1.

    Examples
    --------
    >>> from mcce.diagnostics.disclosure_risk.rates import wilson
    >>> found = wilson(10, 100).estimate
    >>> round(found.low, 4), round(found.high, 4)
    (0.0552, 0.1744)
    """
    if n == 0:
        return Rate(0, math.nan, 0.5, 0.5)
    z = quantile(confidence)
    whole = n + z * z
    error = z / whole * math.sqrt(max(successes * (n - successes) / n, 0.0) + z * z / 4)
    return Rate(n, successes / n, (successes + z * z / 2) / whole, error)


def risk(attack: Rate, control: Rate) -> Estimate:
    """Return the excess of the attack over the control, as a share of its largest possible value."""
    left = 1 - control.middle
    ahead = (attack.middle - control.middle) / left
    error = math.hypot(attack.error / left, control.error * (1 - attack.middle) / left**2)
    value, low, high = (min(max(end, 0.0), 1.0) for end in (ahead, ahead - error, ahead + error))
    return Estimate(value, low, high)


def auc(members: Floats, others: Floats, confidence: float = 0.95) -> Estimate:
    """Return the area under the curve of a score that is higher for members."""
    if not members.size or not others.size:
        return Estimate(math.nan, 0.0, 1.0)
    above, below = _share_below(members, others), 1 - _share_below(others, members)
    value = float(above.mean())
    variance = sum(float(part.var(ddof=1)) / part.size if part.size > 1 else 0.25 for part in (above, below))
    error = quantile(confidence) * math.sqrt(variance)
    return Estimate(value, max(value - error, 0.0), min(value + error, 1.0))


def _share_below(scores: Floats, others: Floats) -> Floats:
    """Return for each score the share of the others below it; ties count half."""
    ordered = np.sort(others)
    both = np.searchsorted(ordered, scores, side="left") + np.searchsorted(ordered, scores, side="right")
    return np.asarray(both / (2 * others.size), dtype=np.float64)


def found_at(members: Floats, others: Floats, false_positives: float, confidence: float = 0.95) -> Rate:
    """Return the rate of members above the lowest threshold with at most this false positive rate."""
    allowed = math.floor(false_positives * others.size)
    threshold = np.sort(others)[others.size - allowed - 1] if others.size else math.inf
    return wilson(int((members > threshold).sum()), members.size, confidence)


def expected_at(n_others: int, false_positives: float) -> float:
    """Return the expected share of members above that threshold if members do not differ from others."""
    return (math.floor(false_positives * n_others) + 1) / (n_others + 1)


def chance_at(members: Floats, others: Floats, false_positives: float) -> float:
    """Return the p-value of the number of members above that threshold if members do not differ from others.

    At least s members are above the threshold if, of the s + a rows with the highest scores, at most a are others,
    where a is the number of others allowed above it.
    """
    allowed = math.floor(false_positives * others.size)
    above = round(found_at(members, others, false_positives).share * members.size) if members.size else 0
    return _few_of_second(members.size, others.size, above + allowed, allowed)


def chance_ahead(successes: int, n: int, on_control: int, n_control: int) -> float:
    """Return the one-sided p-value of Fisher's exact test of more successes than on the control."""
    return _few_of_second(n, n_control, successes + on_control, on_control)


def _few_of_second(first: int, second: int, taken: int, most: int) -> float:
    """Return the hypergeometric probability of at most `most` of the second group among `taken` draws."""
    from scipy.stats import hypergeom

    return float(hypergeom.cdf(most, first + second, second, taken)) if taken else 1.0
