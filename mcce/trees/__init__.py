"""The tree engine: numba kernels that grow, prune, route and draw. It knows encoded tables, not frames."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from threading import Lock

from mcce.trees import kernels

_lock = Lock()


def announce_compiling(compiled: Callable[[], bool] = kernels.compiled) -> None:
    """Say so, once, if kernels are not `compiled` yet: the first call on a machine waits for it."""
    with _lock:
        _announce(compiled)


@cache
def _announce(compiled: Callable[[], bool]) -> None:
    if not compiled():
        print("mcce: compiling its kernels for this machine; this takes some seconds, once.", file=sys.stderr)
