"""Fitting a D-vine tree by tree, pair by pair, so that some pairs can be left out (pyvinecopulib).

1. A pair copula is chosen and fitted for each edge of the path, to the rows in which neither variable is missing.
2. Its two conditional functions (`mcce.samplers.vine.path`) give what the next tree is fitted to, and so on (Aas,
   Czado, Frigessi and Bakken 2009, section 4.2). In rows in which one is missing the other stays as it is.
3. Variables that stand `apart`, or of which one does not vary, are independent.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mcce.arrays import Bools, Floats
from mcce.samplers.vine.dvine import SETS, DVine, library
from mcce.samplers.vine.pair import Cover, Pair, joined

INDEPENDENT = "indep", 0, np.empty((0, 0))


def fit_path(
    covers: tuple[Floats, Floats],
    discrete: Bools,
    families: str,
    n_trees: int,
    apart: Collection[tuple[int, int]],
    weights: Floats | None,
) -> DVine:
    """Return the vine of variables in the order of the path; covers that are not known are missing (NaN)."""
    pv, d = library(), discrete.size
    names = [getattr(pv.families, name) for name in SETS[families]]
    method = "itau" if families in ("parametric", "student") else "mle"
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
            data = joined(one, other)
            complete = ~np.isnan(data).any(axis=1)
            weight = np.empty(0) if weights is None else weights[complete]
            controls = pv.FitControlsBicop(family_set=names, parametric_method=method, num_threads=1, weights=weight)
            types = ["d" if each else "c" for each in discrete[[p, q]]]
            bicop = pv.Bicop.from_data(np.asfortranarray(data[complete]), controls, var_types=types)
            parameters = np.array(bicop.parameters, dtype=np.float64, order="C")
            found.append((bicop.family.name, int(bicop.rotation), parameters))
            pair = Pair(bicop, (bool(discrete[p]), bool(discrete[q])))
            behind, ahead = pair.both(one, other)
            forward[p] = np.where(complete, ahead[0], one[0]), np.where(complete, ahead[1], one[1])
            backward[q] = np.where(complete, behind[0], other[0]), np.where(complete, behind[1], other[1])
    rotations = np.array([each[1] for each in found], dtype=np.int64)
    return DVine(discrete, tuple(each[0] for each in found), rotations, tuple(each[2] for each in found))


def _vary(one: Cover, other: Cover) -> bool:
    """Return whether both variables have several values in the rows that have both."""
    complete = ~np.isnan(one[1] + other[1])
    return all(bool((each[1][complete] != each[1][complete][:1]).any()) for each in (one, other))
