"""Noise in whole numbers, drawn exactly: the discrete Laplace and the discrete Gaussian distribution.

After Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", algorithms 1 to 3. Only
whole numbers are drawn, added and compared, which avoids the gaps of floating-point noise that distinguish a count from
its neighbour (Mironov 2012).

1. `happens_exp` is a coin with probability exp(-a / b): of coins with a / (k b), k = 1, 2, ..., the first failure has
   an odd k.
2. `discrete_laplace` with parameter epsilon draws x with probability proportional to exp(-epsilon |x|).
3. `discrete_gaussian` with parameter s2 draws x with probability proportional to exp(-x^2 / (2 s2)), by rejection from
   a discrete Laplace.
4. `choose` is the exponential mechanism (McSherry and Talwar 2007): it selects one of several options with probability
   proportional to exp(epsilon score / (2 sensitivity)), by rejection from a uniform choice.

The numbers come from the operating system (`SYSTEM`). A source with a seed is for tests: its noise can be removed by
anyone who knows the seed, so its draws are not private.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mcce.rng import derive_key

SYSTEM = random.SystemRandom()


def source_of(testing_seed: int | None, name: object) -> random.Random:
    """Return the source of the noise of a column: the system's, or one with a seed for tests."""
    return SYSTEM if testing_seed is None else random.Random(derive_key(testing_seed, name))


def happens_exp(a: int, b: int, source: random.Random = SYSTEM) -> bool:
    """Return True with probability exp(-a / b), exactly (step 1)."""
    while a > b:
        if not happens_exp(1, 1, source):
            return False
        a -= b
    k = 1
    while source.randrange(b * k) < a:
        k += 1
    return k % 2 == 1


def discrete_laplace(epsilon: Fraction, source: random.Random = SYSTEM) -> int:
    """Draw a whole number x with probability proportional to exp(-epsilon |x|) (step 2)."""
    s, t = epsilon.numerator, epsilon.denominator
    while True:
        rest = source.randrange(t)
        if not happens_exp(rest, t, source):
            continue
        whole = 0
        while happens_exp(1, 1, source):
            whole += 1
        size = (rest + t * whole) // s
        negative = source.randrange(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def discrete_gaussian(s2: Fraction, source: random.Random = SYSTEM) -> int:
    """Draw a whole number x with probability proportional to exp(-x^2 / (2 s2)) (step 3)."""
    p, q = s2.numerator, s2.denominator
    t = math.isqrt(p // q) + 1
    proposal = Fraction(1, t)
    while True:
        x = discrete_laplace(proposal, source)
        # (|x| - s2 / t)^2 / (2 s2), over the common denominator 2 p q t^2
        if happens_exp((abs(x) * t * q - p) ** 2, 2 * p * q * t * t, source):
            return x


def choose(scores: Sequence[int], epsilon: Fraction, sensitivity: int, source: random.Random = SYSTEM) -> int:
    """Return a position with probability proportional to exp(epsilon score / (2 sensitivity)), exactly (step 4).

    If one row changes no score by more than the sensitivity, the choice is epsilon-differentially private; and
    epsilon^2 / 8 in zero-concentrated differential privacy (Cesar and Rogers 2021).
    """
    best = max(scores)
    while True:
        place = source.randrange(len(scores))
        worse = epsilon * (best - scores[place]) / (2 * sensitivity)
        if happens_exp(worse.numerator, worse.denominator, source):
            return place


@dataclass(frozen=True)
class Mechanism:
    """Counts with independent noise; one row changes one count by 1.

    Attributes
    ----------
    epsilon : of the discrete Laplace distribution: the counts together are epsilon-differentially private; or None.
    rho : of the discrete Gaussian with variance parameter 1 / (2 rho): rho-zCDP; or None.
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None

    def noise(self, source: random.Random) -> Callable[[], int]:
        """Return a function that draws the noise of one count."""
        epsilon, rho = self.epsilon, self.rho
        if epsilon is not None:
            return lambda: discrete_laplace(epsilon, source)
        assert rho is not None
        s2 = 1 / (2 * rho)
        return lambda: discrete_gaussian(s2, source)

    def part(self, share: Fraction) -> Mechanism:
        """Return the mechanism that costs a share of this one."""
        return Mechanism(*(None if cost is None else cost * share for cost in (self.epsilon, self.rho)))

    @property
    def choosing(self) -> Fraction:
        """Epsilon of an exponential mechanism that costs as much as the counts."""
        if self.epsilon is not None:
            return self.epsilon
        assert self.rho is not None
        # epsilon^2 / 8 is at most rho, with the root rounded down
        scale = 10**12
        return Fraction(math.isqrt(math.floor(8 * self.rho * scale**2)), scale)

    @property
    def variance(self) -> float:
        """Variance of the noise of a count; for the Gaussian its parameter, which is nearly equal."""
        if self.epsilon is not None:
            q = math.exp(-min(float(self.epsilon), 700.0))
            return 2.0 * q / (1.0 - q) ** 2
        assert self.rho is not None
        s2 = 1.0 / (2.0 * float(self.rho))
        return s2 if s2 > 0.02 else math.exp(-0.5 / s2)  # so narrow that nearly all mass is at 0
