"""Vines as objects of the library."""

from mcce.samplers.vine.dvine import library, types_of


def in_library(vine):
    """Return a fitted vine as an object of pyvinecopulib."""
    pv, d = library(), vine.discrete.size
    trees = [[vine.pairs[edge, edge + tree + 1].bicop for edge in range(d - 1 - tree)] for tree in range(d - 1)]
    path = pv.DVineStructure([*range(1, d + 1)])
    return pv.Vinecop.from_structure(structure=path, pair_copulas=trees, var_types=types_of(vine.discrete))
