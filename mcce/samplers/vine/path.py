"""Going along the path of a D-vine from its end: each variable given those that follow it.

With x_p, x_(p+1), ... the variables of the path, F(p | q) the distribution function of x_p given x_(p+1), ..., x_q, and
B(q | p) that of x_q given x_p, ..., x_(q-1), the pair copula of p and q has the two conditional functions

    F(p | q) = h_2(F(p | q - 1), B(q | p + 1)),     B(q | p) = h_1(F(p | q - 1), B(q | p + 1))

(Aas, Czado, Frigessi and Bakken 2009, algorithm 4).

1. `Known` has B(q | p + 1) of all variables q behind the next one, p: all that H(u) = F(p | last) needs.
2. When p is known as well, one pass gives B(q | p) for the next.
3. A discrete variable has both functions at the ends of what its value covers (`mcce.samplers.vine.pair`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mcce.arrays import Bools, Floats
from mcce.samplers.vine.pair import Cover, Pair

Pairs = Callable[[int, int], Pair]  # the pair copula of two places of the path


@dataclass(frozen=True)
class Known:
    """What is known of the variables behind place `at` of a path, of some rows.

    Attributes
    ----------
    pairs : the pair copulas.
    discrete : whether each variable of the path has point masses.
    at : the place of the next variable.
    n_trees : so many variables behind it count.
    behind : B of each of them, at both ends of what its value covers, the nearest first (step 1).
    """

    pairs: Pairs
    discrete: Bools
    at: int
    n_trees: int
    behind: tuple[Cover, ...] = ()

    def below(self, share: Floats) -> Floats:
        """Return H(share), the probability that the share of the next variable is at most so large, row by row."""
        inside = (share > 0.0) & (share < 1.0)
        if not inside.any():
            return np.clip(share, 0.0, 1.0)
        found = share
        for q, cover in enumerate(self.behind, self.at + 1):
            found = self.pairs(self.at, q).second(found, cover)
        return np.clip(np.where(inside, found, share), 0.0, 1.0)

    def and_next(self, below: Floats, upto: Floats) -> Known:
        """Return what is known if the value of the next variable covers the shares from `below` to `upto` (step 2)."""
        return self.passed(below, upto)[0]

    def passed(self, below: Floats, upto: Floats) -> tuple[Known, Cover]:
        """Return this and H at both ends."""
        forward = (below, upto)
        behind: list[Cover] = [forward]
        for q, cover in enumerate(self.behind, self.at + 1):
            backward, forward = self.pairs(self.at, q).both(forward, cover)
            behind.append(backward)
        return Known(self.pairs, self.discrete, self.at - 1, self.n_trees, tuple(behind[: self.n_trees])), forward
