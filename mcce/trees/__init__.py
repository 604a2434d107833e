"""The tree engine: numba kernels that grow, prune, route and draw. It knows encoded tables, not frames."""

from __future__ import annotations

import sys
from collections.abc import Callable
from multiprocessing import parent_process
from threading import Lock

from mcce.trees import kernels

_lock = Lock()
_looked_at: set[Callable[[], bool]] = set()
_told: list[bool] = []


def announce_compiling(compiled: Callable[[], bool] = kernels.compiled) -> None:
    """Say so, once, if kernels are not `compiled` yet: the first call on a machine waits for it."""
    with _lock:
        if compiled not in _looked_at and not compiled() and not _told and parent_process() is None:
            print("mcce: compiling its kernels for this machine; this takes some seconds, once.", file=sys.stderr)
            _told.append(True)  # of other kernels, and in other processes, it is not said again
        _looked_at.add(compiled)
