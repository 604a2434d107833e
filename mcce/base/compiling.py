"""Compile numba kernels, cached on disk where a cache folder can be written, otherwise in memory with a note.

Ctrl-C waits until a kernel is compiled, because numba fails later on an interrupted compilation. Kernels that allocate
nothing and have no array expressions are compiled without reference counts and rewriting, a tenth faster: `entry` for
those that Python calls, `inner` for those that only kernels call.
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
    """Numba's cache of one kernel, without which the kernel works as well."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel that is kept for a signature, None if there is none or it cannot be read.

        An index that another version wrote may name types that are gone; it is emptied.
        """
        try:
            return super().load_overload(sig, target_context)
        except (AttributeError, ImportError, pickle.UnpicklingError):
            self.flush()
            return None
        except OSError as error:
            _tell(str(error))
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel, if there is room."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell(str(error))


def cached(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function with these options of numba's `njit`, and keeps it on disk."""

    def compile(function: Callable[..., Any]) -> Any:
        compiled = njit(**options)(function)
        compiled.compile = _whole(compiled.compile)
        try:
            compiled._cache = _DiskCache(function)  # what `cache=True` does
        except (RuntimeError, OSError) as error:
            _tell(str(error).split(":")[0])
        return compiled

    return compile


def _whole(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Return how a kernel is compiled for a signature, without interrupts."""

    def compile_whole(signature: Any) -> Any:
        with _interrupts_put_off():
            return compile(signature)

    return compile_whole


@contextmanager
def _interrupts_put_off() -> Iterator[None]:
    """Put an interrupt off to the end of the block; only the main thread gets any."""
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


_told: set[str] = set()


def _tell(why: str) -> None:
    """Say once why kernels are not kept."""
    if not _told:
        print(
            f"mcce: its compiled kernels cannot be kept on disk ({why}), and are compiled in memory each time; set "
            "NUMBA_CACHE_DIR to a folder that can be written.",
            file=sys.stderr,
        )
    _told.add(why)


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
