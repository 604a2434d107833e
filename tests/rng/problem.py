"""Many streams at a fixed seed."""

from __future__ import annotations

from mcce.rng import RowStreams

N = 200_000


MASK = 2**64 - 1


def streams(n=N, seed=1):
    return RowStreams.from_seed(seed, n)
