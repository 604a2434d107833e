"""The tree engine: numba kernels that grow, prune, route and draw. It knows encoded tables, not frames."""

from __future__ import annotations

import sys
from functools import cache
from threading import Lock

from mcce.trees import kernels

_lock = Lock()


def announce_compiling() -> None:
    """Say so, once, if the kernels are about to be compiled: the first call on a machine waits for it."""
    with _lock:
        _announce()


@cache
def _announce() -> None:
    if not kernels.compiled():
        print("mcce: compiling its kernels for this machine; this takes some seconds, once.", file=sys.stderr)
