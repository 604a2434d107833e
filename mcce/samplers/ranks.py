"""Ranks of values in conditional distributions, and the values at given ranks.

For a row with the distribution function F(y) = P(Y <= y) of its known values and the probability m of a missing one:

1. The rank of a number or level y is (1 - m) [F(y-) + V (F(y) - F(y-))], V uniform: it is randomised within point
   masses, so that the rank of a draw is uniform. Levels are ordered by their codes, as in ``feature.levels``.
2. A missing value follows all others: its rank is 1 - m + V m.
3. A number that is not one of the n donors of a row is treated as one more donor: F(y-) and F(y) become n F(y) / (n +
   1) and (n F(y) + 1) / (n + 1). So the ranks of new rows are also uniform, if these are exchangeable with the donors.
   The value at such a rank is a neighbouring donor.
4. The value at rank u is missing if u > 1 - m; else it is the least y with F(y) >= u / (1 - m).

So the value at the rank of y is y: exactly for levels and donors, up to rounding for other numbers. The resolution of a
rank near 1 is 1e-16, which does not distinguish values more than 8 standard deviations above their prediction.

For unordered levels the order is a convention. It determines the level of a row at its rank under other givens, and
cannot be checked against data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mcce.base.arrays import Bools, Floats

LEAST_RANK = 2.0**-54
MOST_RANK = 1.0 - 2.0**-53
_MARGIN = 1e-9  # relative to a point mass: randomised ranks stay inside it in spite of rounding
_HALVINGS = 200  # limit; floats are equal after fewer steps


@dataclass(frozen=True)
class DistributionFunctions:
    """The distribution functions of some rows.

    Attributes
    ----------
    upto : function
        The probability F(y) of values up to a number or level code of each row, given that the value is not missing.
    inverse : function
        The least value y of each row with F(y) >= u, for u between 0 and 1.
    missing : array or float
        The probability of a missing value in each row.
    n_donors : array, int or None
        The number of donors of each row; None if values are not drawn from donors.
    before : function or None
        The probability F(y-) of values below y; None: that of values up to the float before y.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.samplers.ranks import DistributionFunctions
    >>> two_levels_or_missing = np.array([[0.3, 0.5, 0.2]])
    >>> functions = DistributionFunctions.of_levels(two_levels_or_missing, missing_last=True)
    >>> functions.ranks(np.array([1.0]), uniform=np.array([0.5])).round(3).tolist()
    [0.55]
    >>> [functions.at(np.array([u])).tolist() for u in (0.1, 0.55, 0.9)]
    [[0.0], [1.0], [nan]]
    """

    upto: Callable[[Floats], Floats]
    inverse: Callable[[Floats], Floats]
    missing: Floats | float = 0.0
    n_donors: Floats | int | None = None
    before: Callable[[Floats], Floats] | None = None

    @classmethod
    def of_atoms(
        cls,
        atoms: Floats,
        upto: Callable[[Floats], Floats],
        *,
        missing: Floats | float = 0.0,
        n_donors: Floats | int | None = None,
    ) -> DistributionFunctions:
        """Return distributions over ascending values common to all rows; the inverse is by bisection."""
        return cls(upto, lambda u: _bisect_atoms(atoms, upto, u), missing, n_donors)

    @classmethod
    def of_levels(
        cls, probabilities: Floats, codes: Floats | None = None, *, missing_last: bool = False
    ) -> DistributionFunctions:
        """Return distributions of levels from the probabilities of each row.

        Parameters
        ----------
        probabilities : (rows, levels) array
        codes : array or None
            The level of each column, ascending; None: 0, 1, ...
        missing_last : bool
            Whether the last column is the probability of a missing value.
        """
        shares = probabilities / probabilities.sum(axis=1, keepdims=True)
        missing = shares[:, -1] if missing_last else 0.0
        cumulative = np.cumsum(shares[:, :-1] if missing_last else shares, axis=1)
        known = cumulative[:, -1:]
        cumulative = np.divide(cumulative, known, out=np.zeros_like(cumulative), where=known > 0.0)
        levels = np.arange(cumulative.shape[1], dtype=np.float64) if codes is None else codes

        def upto(values: Floats) -> Floats:
            n_below = np.searchsorted(levels, values, side="right")
            padded = np.column_stack([np.zeros(len(cumulative)), cumulative])
            return np.asarray(padded[np.arange(values.size), n_below])

        def inverse(u: Floats) -> Floats:
            reached = cumulative >= np.minimum(u, cumulative[:, -1])[:, None]
            return np.asarray(levels[reached.argmax(axis=1)], dtype=np.float64)

        return cls(upto, inverse, missing)

    @classmethod
    def always_missing(cls, n_rows: int) -> DistributionFunctions:
        """Return distributions whose values are all missing."""
        return cls(np.ones_like, lambda u: np.full(u.size, np.nan), np.ones(n_rows))

    @classmethod
    def mixed(cls, parts: Sequence[DistributionFunctions], weights: Floats) -> DistributionFunctions:
        """Return mixtures of distributions, with weights that sum to 1; values at ranks are found by bisection."""
        known = [weight * (1.0 - part.missing) for part, weight in zip(parts, weights)]
        total = np.asarray(sum(known))

        def upto(values: Floats) -> Floats:
            mass = np.asarray(sum(share * part.upto(values) for part, share in zip(parts, known)))
            return np.asarray(np.divide(mass, total, out=np.zeros_like(mass), where=total > 0.0))

        def inverse(u: Floats) -> Floats:
            each = np.stack([part.inverse(u) for part in parts])
            return _bisect_numbers(np.fmin.reduce(each), np.fmax.reduce(each), upto, u)

        return cls(upto, inverse, 1.0 - total)

    def with_missing(self, missing: Floats) -> DistributionFunctions:
        """Return the distributions with other probabilities of missing values."""
        return replace(self, missing=missing)

    def ranks(self, values: Floats, uniform: Floats) -> Floats:
        """Return the randomised rank of each row's value, from one uniform number per row (steps 1 to 3)."""
        is_missing = np.isnan(values)
        known = np.where(is_missing, 0.0, values)
        below = self.upto(np.nextafter(known, -np.inf)) if self.before is None else self.before(known)
        upto = self.upto(known)
        if self.n_donors is not None:
            slot = (upto <= below) & (np.asarray(self.n_donors) > 0)
            n = np.maximum(self.n_donors, 1)
            below, upto = np.where(slot, below * n / (n + 1), below), np.where(slot, (upto * n + 1) / (n + 1), upto)
        inside = np.clip(uniform, _MARGIN, 1.0 - _MARGIN)
        ranks = (1.0 - self.missing) * (below + inside * (upto - below))
        return np.where(is_missing, 1.0 - self.missing + inside * self.missing, ranks)

    def at(self, u: Floats) -> Floats:
        """Return the value of each row at a rank (step 4)."""
        share = np.broadcast_to(1.0 - np.asarray(self.missing), u.shape)
        is_missing = u > share
        inner = np.divide(u, share, out=np.full(u.size, 0.5), where=~is_missing & (share > 0.0))
        is_missing |= share <= 0.0
        return np.where(is_missing, np.nan, self.inverse(np.clip(inner, LEAST_RANK, MOST_RANK)))


def _bisect_atoms(atoms: Floats, upto: Callable[[Floats], Floats], u: Floats) -> Floats:
    """Return the first of the ascending values with a probability of at least u, for each row; else the last."""
    if not atoms.size:
        return np.full(u.size, np.nan)
    first, last = np.zeros(u.size, dtype=np.intp), np.full(u.size, atoms.size - 1)
    while (first < last).any():
        middle = (first + last) // 2
        reached = upto(atoms[middle]) >= u
        first, last = np.where(reached, first, middle + 1), np.where(reached, middle, last)
        first = np.minimum(first, last)
    return np.asarray(atoms[first])


def _bisect_numbers(low: Floats, high: Floats, upto: Callable[[Floats], Floats], u: Floats) -> Floats:
    """Return the least number between bounds with a probability of at least u, for each row."""
    reached_at_low: Bools = upto(low) >= u
    high = np.where(reached_at_low, low, high)
    for _ in range(_HALVINGS):
        middle = low + 0.5 * (high - low)
        if ((middle <= low) | (middle >= high)).all():
            break
        reached = upto(middle) >= u
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high
