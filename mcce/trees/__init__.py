"""Trees on encoded tables: numba kernels that grow, prune and route."""

from __future__ import annotations

import sys
from multiprocessing import parent_process
from threading import Lock
from typing import Any

from mcce.base.compiling import is_compiled
from mcce.trees import kernels

_lock = Lock()
_looked_at: set[Any] = set()
_announced: list[bool] = []


def announce_compiling(kernel: Any = kernels.grow_nodes) -> None:
    """Print one message if the kernel is not compiled yet: the first call on a machine waits for the compiler."""
    with _lock:
        if kernel not in _looked_at and not is_compiled(kernel) and not _announced and parent_process() is None:
            print("mcce: compiling its kernels for this machine; this takes some seconds, once.", file=sys.stderr)
            _announced.append(True)  # once for all kernels, and not in child processes
        _looked_at.add(kernel)
