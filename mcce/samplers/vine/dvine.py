"""A D-vine whose first variable is the target: the distribution of that given all others (pyvinecopulib).

1. The variables stand in a path, the target first, then the givens. A pair copula stands on each edge of the path, and
   on each pair of variables given those between them (Bedford and Cooke 2002). Each is chosen among families by AIC.
2. H(u | givens), the probability that the target's share is at most u, is the target's part of the Rosenblatt
   transform (`mcce.samplers.vine.path`): exact, and all that draws and densities need.
3. Pair copulas are kept as arrays (family, rotation, parameters), and a vine is built of them again: a file holds
   nothing that the library reads by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mcce.arrays import Bools, Floats, Ints
from mcce.exceptions import SamplerError
from mcce.samplers.vine.pair import Pair
from mcce.samplers.vine.path import Known
from mcce.soundness import BOOL, FLOAT, INT, check_array, check_finite, check_type, require
from mcce.state import stateful
from mcce.table.weights import FINE, whole_counts

Families = Literal["parametric", "gaussian", "student", "nonparametric"]
# the one-parameter families and Student's t, estimated by Kendall's tau: the others take a hundred times as long
SETS = {
    "parametric": ("indep", "gaussian", "student", "clayton", "gumbel", "frank", "joe"),
    "gaussian": ("gaussian",),
    "student": ("student",),
    "nonparametric": ("tll",),
}
NAMES = tuple(dict.fromkeys(name for names in SETS.values() for name in names))
_LARGEST_GRID = 200


def library() -> Any:
    """Return pyvinecopulib; without it, say how to get it."""
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

    discrete: Bools
    families: tuple[str, ...]
    rotations: Ints
    parameters: tuple[Floats, ...]

    @classmethod
    def fit(
        cls,
        below: Floats,
        upto: Floats,
        discrete: Bools,
        families: str,
        weights: Floats | None = None,
    ) -> DVine:
        """Choose and fit the pair copulas (step 1); the columns are the variables in the order of the path.

        Weights that are counts repeat their rows; others weigh likelihoods and Kendall's tau.
        """
        d = discrete.size
        if d == 1:
            return cls(discrete, (), np.empty(0, dtype=np.int64), ())
        pv = library()
        counts = None if weights is None else whole_counts(weights, FINE * weights.size)
        if counts is not None:
            below, upto, weights = np.repeat(below, counts, axis=0), np.repeat(upto, counts, axis=0), None
        by_tau = families in ("parametric", "student")
        controls = pv.FitControlsVinecop(
            family_set=[getattr(pv.families, name) for name in SETS[families]],
            parametric_method="itau" if by_tau else "mle",
            num_threads=1,
            weights=np.empty(0) if weights is None else weights,
        )
        path = pv.DVineStructure([*range(1, d + 1)])
        vine = pv.Vinecop.from_data(_both(below, upto), controls, structure=path, var_types=_types(discrete))
        pairs = [vine.get_pair_copula(tree, edge) for tree in range(d - 1) for edge in range(d - 1 - tree)]
        return cls(
            discrete,
            tuple(pair.family.name for pair in pairs),
            np.array([pair.rotation for pair in pairs], dtype=np.int64),
            tuple(np.array(pair.parameters, dtype=np.float64, order="C") for pair in pairs),
        )

    def check_state(self) -> None:
        """Refuse what is no vine; what the library itself would refuse, too."""
        check_array(self.discrete, "discrete", BOOL, None)
        d = self.discrete.size
        n_pairs = d * (d - 1) // 2
        check_type(self.families, "families", tuple)
        check_type(self.parameters, "parameters", tuple)
        check_array(self.rotations, "rotations", INT, n_pairs)
        require(d > 0 and len(self.families) == len(self.parameters) == n_pairs, "families are not one for each pair")
        require(bool(np.isin(self.rotations, [0, 90, 180, 270]).all()), "rotations are no right angles")
        for name, parameters in zip(self.families, self.parameters):
            require(isinstance(name, str) and name in NAMES, "families holds one that is not known")
            check_array(parameters, "parameters", FLOAT, None, None)
            check_finite(parameters, "parameters")
            if name == "tll":
                size = parameters.shape[0]
                require(parameters.shape == (size, size) and 2 <= size <= _LARGEST_GRID, "parameters are no grid")
                require(bool((parameters >= 0.0).all() and parameters.sum() > 0.0), "parameters are no density")
        try:
            self.rebuilt  # noqa: B018
        except (RuntimeError, ValueError, TypeError, AttributeError) as error:
            require(False, f"pyvinecopulib does not take its pair copulas: {str(error).splitlines()[0]}")

    @cached_property
    def rebuilt(self) -> Any:
        """The library's own object; None of a target alone."""
        d = self.discrete.size
        if d == 1:
            return None
        pv = library()
        trees = [[self.pairs[edge, edge + tree + 1].bicop for edge in range(d - 1 - tree)] for tree in range(d - 1)]
        path = pv.DVineStructure([*range(1, d + 1)])
        return pv.Vinecop.from_structure(structure=path, pair_copulas=trees, var_types=_types(self.discrete))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], Pair]:
        """The pair copulas, by two places of the path."""
        pv, d = library(), self.discrete.size
        places = [(edge, edge + tree + 1) for tree in range(d - 1) for edge in range(d - 1 - tree)]
        # a library that has changed its grid, or its families, says so here
        return {
            place: Pair(
                pv.Bicop(
                    family=getattr(pv.families, name),
                    rotation=int(rotation),
                    parameters=np.asfortranarray(each),
                    var_types=_types(self.discrete[list(place)]),
                ),
                (bool(self.discrete[place[0]]), bool(self.discrete[place[1]])),
            )
            for place, name, rotation, each in zip(places, self.families, self.rotations, self.parameters)
        }

    def known(self, n_trees: int | None = None) -> Known:
        """Return what is known before any variable is: the next one is the last of the path."""
        last = self.discrete.size - 1
        pairs = self.pairs if last else {}
        return Known(lambda p, q: pairs[p, q], self.discrete, last, last if n_trees is None else n_trees)

    def given(self, below: Floats, upto: Floats) -> Known:
        """Return what is known of the target given all others, in the order of the path."""
        known = self.known()
        for k in range(below.shape[1] - 1, -1, -1):
            known = known.and_next(below[:, k], upto[:, k])
        return known

    def below(self, given_below: Floats, given_upto: Floats, share: Floats) -> Floats:
        """Return H(share | givens), row by row (step 2)."""
        return self.given(given_below, given_upto).below(share)


def _types(discrete: Bools) -> list[str]:
    return ["d" if each else "c" for each in discrete]


def _both(below: Floats, upto: Floats) -> Floats:
    return np.asfortranarray(np.hstack([upto, below]))
