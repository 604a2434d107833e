"""Compile numba kernels, cached on disk if the cache folder is writable, otherwise in memory with a note.

Ctrl-C waits until a kernel is compiled, because numba fails later after an interrupted compilation. Kernels without
allocations and array expressions are compiled without reference counts and rewriting, which is a tenth faster: `entry`
for those called from Python, `inner` for those called from kernels only, `reordered` for those of them whose sums may
be computed in any order.
"""

from __future__ import annotations

import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache


class _DiskCache(FunctionCache):  # type: ignore[misc]  # numba is not typed
    """Numba's disk cache of one kernel; errors of the cache do not stop the kernel."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached kernel for a signature, None if there is none or it cannot be read.

        An index written by another version may name types that no longer exist; it is emptied.
        """
        try:
            return super().load_overload(sig, target_context)
        except (AttributeError, ImportError, pickle.UnpicklingError):
            self.flush()
            return None
        except OSError as error:
            _warn_once(str(error))
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a kernel, if possible."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn_once(str(error))


def cached(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function with these options of numba's `njit`, cached on disk."""

    def compile(function: Callable[..., Any]) -> Any:
        compiled = njit(**options)(function)
        compiled.compile = _whole(compiled.compile)
        try:
            compiled._cache = _DiskCache(function)  # what `cache=True` does
        except (RuntimeError, OSError) as error:
            _warn_once(str(error).split(":")[0])
        return compiled

    return compile


def _whole(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compile function of a kernel with interrupts deferred."""

    def compile_whole(signature: Any) -> Any:
        with _interrupts_put_off():
            return compile(signature)

    return compile_whole


@contextmanager
def _interrupts_put_off() -> Iterator[None]:
    """Defer an interrupt to the end of the block; only the main thread receives interrupts."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])


_warned: set[str] = set()


def _warn_once(why: str) -> None:
    """Print once why kernels are not cached."""
    if not _warned:
        print(
            f"mcce: compiled kernels cannot be cached on disk ({why}) and are compiled again by each process; set "
            "NUMBA_CACHE_DIR to a folder that can be written.",
            file=sys.stderr,
        )
    _warned.add(why)


entry = cached(nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False, no_rewrites=True)
INNER = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
    "no_rewrites": True,
}
inner = njit(**INNER)
reordered = njit(**INNER, fastmath=True)
