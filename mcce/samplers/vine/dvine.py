"""A D-vine whose first variable is the target: the distribution of the target given all others (pyvinecopulib).

1. The variables form a path, the target first. Each edge, and each pair given the variables in between, has a pair
   copula chosen by AIC (Bedford and Cooke 2002), tree by tree (Aas, Czado, Frigessi and Bakken 2009, section 4.2). Pair
   copulas are stored as arrays (family, rotation, parameters).
2. H(u | givens) is the component of the Rosenblatt transform for the target. With F(p | q) the distribution function of
   x_p given x_(p+1), ..., x_q, and B(q | p) that of x_q given x_p, ..., x_(q-1) (Aas, Czado, Frigessi and Bakken 2009,
   algorithm 4): F(p | q) = h_2(F(p | q - 1), B(q | p + 1)), B(q | p) = h_1(F(p | q - 1), B(q | p + 1)). `Known` has B(q
   | p + 1) for the next p.
3. For one share in (a, b] and the other in (c, d], h_1(v) = (C(b, v) - C(a, v)) / (b - a) and h_2(u) = (C(u, d) - C(u,
   c)) / (d - c) (Panagiotelis, Czado and Joe 2012); for points, derivatives of C. For points, and intervals too narrow
   for a difference, the library computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.exceptions import SamplerError
from mcce.storage.fields import BOOL, FLOAT, INT, check_array, check_finite, require, stored
from mcce.storage.state import stateful
from mcce.table.weights import FINE, whole_counts

Cover = tuple[Floats, Floats]
_NARROW = 1e-6  # C is accurate to 1e-15


@dataclass(frozen=True)
class Pair:
    """A pair copula of the library, and which of its two variables are discrete."""

    bicop: Any
    discrete: tuple[bool, bool]

    def second(self, share: Floats, other: Cover) -> Floats:
        """Return h_2 at shares of the first variable, given the shares covered by the second."""
        if self._is_independence:
            return share
        if not self.discrete[1]:
            return self._by_library(2, share, other)
        return self._by_difference(2, share, other, self._copula(share, other[0]), self._copula(share, other[1]))

    def both(self, one: Cover, other: Cover) -> tuple[Cover, Cover]:
        """Return h_1 at both ends of the second variable, and h_2 at both ends of the first."""
        if self._is_independence:
            return other, one
        ends, others = ((0, 1) if each else (1,) for each in self.discrete)
        corners = {(i, j): self._copula(one[i], other[j]) for i in ends for j in others} if any(self.discrete) else {}
        first = [
            self._by_difference(1, other[j], one, corners[0, j], corners[1, j])
            if self.discrete[0]
            else self._by_library(1, other[j], one)
            for j in others
        ]
        second = [
            self._by_difference(2, one[i], other, corners[i, 0], corners[i, 1])
            if self.discrete[1]
            else self._by_library(2, one[i], other)
            for i in ends
        ]
        return (first[0], first[-1]), (second[0], second[-1])

    def _by_difference(self, side: int, at: Floats, cover: Cover, low: Floats, high: Floats) -> Floats:
        """Return h_1 or h_2 from C at both ends of the conditioning interval."""
        width = cover[1] - cover[0]
        found = np.clip((high - low) / np.maximum(width, _NARROW), 0.0, 1.0)
        narrow = width < _NARROW
        if narrow.any():
            found[narrow] = self._by_library(side, at[narrow], (cover[0][narrow], cover[1][narrow]))
        return np.asarray(found)

    def _by_library(self, side: int, at: Floats, cover: Cover) -> Floats:
        if side == 1:
            return np.asarray(self.bicop.hfunc1(joined(cover, (at, at))))
        return np.asarray(self.bicop.hfunc2(joined((at, at), cover)))

    def _copula(self, u: Floats, v: Floats) -> Floats:
        found = np.where(v >= 1.0, u, np.where(u >= 1.0, v, 0.0))
        inside = (u > 0.0) & (u < 1.0) & (v > 0.0) & (v < 1.0)
        if inside.any():
            found[inside] = self._of_points.cdf(np.asfortranarray(np.column_stack([u[inside], v[inside]])))
        return found

    @cached_property
    def _of_points(self) -> Any:
        own = {name: getattr(self.bicop, name) for name in ("family", "rotation", "parameters")}
        return type(self.bicop)(**own, var_types=["c", "c"])

    @cached_property
    def _is_independence(self) -> bool:
        return bool(self.bicop.family.name == "indep")


def joined(one: Cover, other: Cover) -> Floats:
    """Return the columns that the library expects: both values, then both left limits."""
    return np.asfortranarray(np.column_stack([one[1], other[1], one[0], other[0]]))


Pairs = Callable[[int, int], Pair]  # the pair copula of two positions of the path


@dataclass(frozen=True)
class Known:
    """The known variables after position `at` of a path, for some rows.

    Attributes
    ----------
    pairs : the pair copulas.
    discrete : whether each variable of the path has point masses.
    at : the position of the next variable.
    n_trees : number of variables after it that it depends on.
    behind : B of each of them, at both ends of the shares that its value covers, the nearest first.
    """

    pairs: Pairs
    discrete: Bools
    at: int
    n_trees: int
    behind: tuple[Cover, ...] = ()

    def below(self, share: Floats) -> Floats:
        """Return H(share), the distribution function of the next variable, for each row."""
        inside = (share > 0.0) & (share < 1.0)
        if not inside.any():
            return np.clip(share, 0.0, 1.0)
        found = share
        for q, cover in enumerate(self.behind, self.at + 1):
            found = self.pairs(self.at, q).second(found, cover)
        return np.clip(np.where(inside, found, share), 0.0, 1.0)

    def and_next(self, below: Floats, upto: Floats) -> Known:
        """Return the state after the value of the next variable, which covers the shares from `below` to `upto`."""
        return self.passed(below, upto)[0]

    def passed(self, below: Floats, upto: Floats) -> tuple[Known, Cover]:
        """Return the same state as `and_next`, and H at both ends."""
        forward = (below, upto)
        behind: list[Cover] = [forward]
        for q, cover in enumerate(self.behind, self.at + 1):
            backward, forward = self.pairs(self.at, q).both(forward, cover)
            behind.append(backward)
        return Known(self.pairs, self.discrete, self.at - 1, self.n_trees, tuple(behind[: self.n_trees])), forward


Families = Literal["parametric", "gaussian", "student", "nonparametric"]
# the one-parameter families and Student's t, estimated by Kendall's tau; others take a hundred times as long
SETS = {
    "parametric": ("indep", "gaussian", "student", "clayton", "gumbel", "frank", "joe"),
    "gaussian": ("gaussian",),
    "student": ("student",),
    "nonparametric": ("tll",),
}
NAMES = tuple(dict.fromkeys(name for names in SETS.values() for name in names))
INDEPENDENT = "indep", 0, np.empty((0, 0))
_LARGEST_GRID = 200
_ALL = 2**31  # trees


def library() -> Any:
    """Return pyvinecopulib; raise with installation instructions if it is missing."""
    try:
        import pyvinecopulib
    except ImportError:
        raise SamplerError("a vine needs pyvinecopulib; pip install 'mcce[vine]'.") from None
    return pyvinecopulib


@stateful("vine.DVine")
@dataclass(frozen=True)
class DVine:
    """A fitted vine.

    Attributes
    ----------
    discrete : whether each variable, the target first, has point masses.
    families, rotations, parameters : of the pair copulas, tree by tree, along the path in each.
    """

    discrete: Bools = stored(BOOL, None, filled=True)
    families: tuple[str, ...] = stored(tuple, of=str)
    rotations: Ints = stored(INT, None)
    parameters: tuple[Floats, ...] = stored(tuple, of=np.ndarray)

    @classmethod
    def fit(
        cls,
        covers: Cover,
        discrete: Bools,
        families: str,
        *,
        n_trees: int = _ALL,
        apart: Collection[tuple[int, int]] = (),
        weights: Floats | None = None,
    ) -> DVine:
        """Choose and fit the pair copulas tree by tree, each to the rows in which both variables are observed.

        Parameters
        ----------
        covers : two (rows, variables) arrays
            Shares below, and up to and including, each value, in the order of the path; NaN where it is not observed.
        discrete : array
            Whether each variable has point masses.
        families : a key of `SETS`
        n_trees : int
            Trees beyond it have independent pairs.
        apart : pairs of positions of the path that are independent.
        weights : array or None
            Integer weights repeat rows; others weight likelihoods and Kendall's tau.
        """
        d = discrete.size
        counts = None if weights is None else whole_counts(weights, FINE * weights.size)
        if counts is not None:
            covers, weights = (np.repeat(covers[0], counts, axis=0), np.repeat(covers[1], counts, axis=0)), None
        forward: list[Cover] = [(covers[0][:, k], covers[1][:, k]) for k in range(d)]
        backward = list(forward)
        found: list[tuple[str, int, Floats]] = []
        for tree in range(d - 1):
            ends = list(forward), list(backward)
            for p in range(d - 1 - tree):
                q = p + tree + 1
                one, other = ends[0][p], ends[1][q]
                if tree >= n_trees or (p, q) in apart or not _vary(one, other):
                    found.append(INDEPENDENT)
                    continue
                pair, complete = _fit_pair(one, other, discrete[[p, q]], families, weights)
                parameters = np.array(pair.bicop.parameters, dtype=np.float64, order="C")
                found.append((pair.bicop.family.name, int(pair.bicop.rotation), parameters))
                behind, ahead = pair.both(one, other)
                forward[p] = np.where(complete, ahead[0], one[0]), np.where(complete, ahead[1], one[1])
                backward[q] = np.where(complete, behind[0], other[0]), np.where(complete, behind[1], other[1])
        rotations = np.array([each[1] for each in found], dtype=np.int64)
        return cls(discrete, tuple(each[0] for each in found), rotations, tuple(each[2] for each in found))

    def check_state(self) -> None:
        """Raise if the parts do not form a vine, or pyvinecopulib rejects them."""
        d = self.discrete.size
        check_array(self.rotations, "rotations", INT, d * (d - 1) // 2)
        sizes = {len(self.families), len(self.parameters), self.rotations.size}
        require(len(sizes) == 1, "families has not one entry for each pair")
        require(bool(np.isin(self.rotations, [0, 90, 180, 270]).all()), "rotations are not multiples of 90 degrees")
        for name, parameters in zip(self.families, self.parameters):
            require(name in NAMES, "families holds an unknown family")
            check_array(parameters, "parameters", FLOAT, None, None)
            check_finite(parameters, "parameters")
            if name == "tll":
                size = parameters.shape[0]
                require(parameters.shape == (size, size) and 2 <= size <= _LARGEST_GRID, "parameters are not a grid")
                require(bool((parameters >= 0.0).all() and parameters.sum() > 0.0), "parameters are not a density")
        try:
            self.pairs  # noqa: B018
        except (RuntimeError, ValueError, TypeError, AttributeError) as error:
            require(False, f"pyvinecopulib rejects the pair copulas: {str(error).splitlines()[0]}")

    @cached_property
    def pairs(self) -> dict[tuple[int, int], Pair]:
        """The pair copulas, by two positions of the path."""
        d = self.discrete.size
        pv: Any = library() if d > 1 else None
        places = [(edge, edge + tree + 1) for tree in range(d - 1) for edge in range(d - 1 - tree)]
        return {
            place: Pair(
                pv.Bicop(
                    family=getattr(pv.families, name),
                    rotation=int(rotation),
                    parameters=np.asfortranarray(each),
                    var_types=types_of(self.discrete[list(place)]),
                ),
                (bool(self.discrete[place[0]]), bool(self.discrete[place[1]])),
            )
            for place, name, rotation, each in zip(places, self.families, self.rotations, self.parameters)
        }

    def known(self, n_trees: int | None = None) -> Known:
        """Return the state without known variables: the next one is the last of the path."""
        last, pairs = self.discrete.size - 1, self.pairs
        return Known(lambda p, q: pairs[p, q], self.discrete, last, last if n_trees is None else n_trees)

    def given(self, below: Floats, upto: Floats) -> Known:
        """Return the state of the target given all others, in the order of the path."""
        known = self.known()
        for k in range(below.shape[1] - 1, -1, -1):
            known = known.and_next(below[:, k], upto[:, k])
        return known


def _fit_pair(one: Cover, other: Cover, discrete: Bools, families: str, weights: Floats | None) -> tuple[Pair, Bools]:
    """Return the pair copula of two variables, and the rows in which both are observed."""
    pv, data = library(), joined(one, other)
    complete: Bools = np.asarray(~np.isnan(data).any(axis=1))
    controls = pv.FitControlsBicop(
        family_set=[getattr(pv.families, name) for name in SETS[families]],
        parametric_method="itau" if families in ("parametric", "student") else "mle",
        num_threads=1,
        weights=np.empty(0) if weights is None else weights[complete],
    )
    bicop = pv.Bicop.from_data(np.asfortranarray(data[complete]), controls, var_types=types_of(discrete))
    return Pair(bicop, (bool(discrete[0]), bool(discrete[1]))), complete


def _vary(one: Cover, other: Cover) -> bool:
    """Return whether both variables vary in the rows where both are observed."""
    complete = ~np.isnan(one[1] + other[1])
    return all(bool((each[1][complete] != each[1][complete][:1]).any()) for each in (one, other))


def types_of(discrete: Bools) -> list[str]:
    """Return the variable types as the library names them."""
    return ["d" if each else "c" for each in discrete]
