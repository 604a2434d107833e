"""Trees on encoded tables: numba kernels that grow, prune and route."""

from __future__ import annotations

import sys
from collections.abc import Callable
from multiprocessing import parent_process
from threading import Lock

from mcce.trees import kernels

_lock = Lock()
_looked_at: set[Callable[[], bool]] = set()
_announced: list[bool] = []


def announce_compiling(compiled: Callable[[], bool] = kernels.compiled) -> None:
    """Print one message if the kernels are not `compiled` yet: the first call on a machine waits for the compiler."""
    with _lock:
        if compiled not in _looked_at and not compiled() and not _announced and parent_process() is None:
            print("mcce: compiling its kernels for this machine; this takes some seconds, once.", file=sys.stderr)
            _announced.append(True)  # once for all kernels, and not in child processes
        _looked_at.add(compiled)
