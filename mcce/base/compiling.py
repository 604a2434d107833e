"""Compile numba kernels, or load compiled ones: from the package, then from numba's cache on disk.

A wheel may contain compiled kernels (`hatch_build.py`). They are used only if Python, numba, llvmlite, the platform and
all sources of the package are those of the build; otherwise a kernel is compiled and cached on disk, or in memory with
a note if no cache folder is writable. Kernels of the package are pickles, trusted like the package's code beside them.

Ctrl-C waits until a kernel is compiled, because numba fails later after an interrupted compilation. Garbage collection
waits too: numba creates many small objects, and collecting them took a tenth of the time. Kernels without allocations
and array expressions are compiled without reference counts and rewriting, which is a tenth faster: `entry` for those
called from Python, `inner` for those called from kernels only, `reordered` for those of them whose sums may be computed
in any order.
"""

from __future__ import annotations

import gc
import hashlib
import pickle
import signal
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite.binding import get_process_triple
from numba import config, njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache

PACKAGE = Path(__file__).parents[1]
PACKAGED = PACKAGE / "_kernels"


class _KernelCache(NullCache):  # type: ignore[misc]  # numba is not typed
    """The compiled forms of one kernel in the package and on disk; errors of the cache do not stop the kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._disk: Any = None
        self._why_not = ""
        try:
            self._disk = FunctionCache(function)  # what `cache=True` does
        except (RuntimeError, OSError) as error:
            self._why_not = str(error).split(":")[0]

    @property
    def cache_path(self) -> Any:
        """The folder of the cache on disk."""
        return self._disk and self._disk.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for a signature, None if there is none or it cannot be read."""
        return self._load_packaged(sig, target_context) or self._load_cached(sig, target_context)

    def _load_packaged(self, sig: Any, target_context: Any) -> Any:
        try:
            data = _packaged(self._function, PACKAGED).load(sig) if PACKAGED.is_dir() else None
            target_context.refresh()
            return data and CompileResultCacheImpl.rebuild(self, target_context, data)
        except Exception:  # a damaged file fails in many ways; the kernel is compiled instead
            return None

    def _load_cached(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel from disk. An index of another version may name types that no longer exist; it is emptied."""
        try:
            return self._disk and self._disk.load_overload(sig, target_context)
        except (AttributeError, ImportError, pickle.UnpicklingError):
            self._disk.flush()
            return None
        except OSError as error:
            _warn_once(str(error))
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a kernel on disk, if possible."""
        if self._disk is None:
            _warn_once(self._why_not)
            return
        try:
            self._disk.save_overload(sig, data)
        except OSError as error:
            _warn_once(str(error))

    def is_empty(self) -> bool:
        """Return whether no signature is compiled; False if the cache on disk cannot be read."""
        try:
            found = PACKAGED.is_dir() and _packaged(self._function, PACKAGED)._load_index()
            return not found and self._disk is not None and not self._disk._cache_file._load_index()
        except (AttributeError, OSError, pickle.UnpicklingError):
            return False


def _packaged(function: Callable[..., Any], folder: Path) -> IndexDataCacheFile:
    """Return the files of a function's compiled forms, which are ignored if numba's version or `_stamp` differs."""
    return IndexDataCacheFile(str(folder), f"{function.__module__}.{function.__qualname__}", _stamp())


@cache
def _stamp() -> tuple[str, ...]:
    """Return what compiled kernels depend on, except numba's version and the signature.

    The whole package is hashed, because a kernel contains the kernels and constants that it uses from other modules.
    """
    sources = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        sources.update(f"{path.relative_to(PACKAGE).as_posix()}:{path.stat().st_size}:".encode() + path.read_bytes())
    platform = [get_process_triple(), str(sysconfig.get_config_var("SOABI")), llvmlite.__version__]
    settings = [str(each) for each in (config.OPT, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT)]
    return (*platform, *settings, sources.hexdigest())


def pack(kernels: Iterable[Any], folder: Path) -> int:
    """Write all compiled forms of the kernels into a folder for a wheel; return their number."""
    forms = [(kernel, sig, form) for kernel in kernels for sig, form in kernel.overloads.items()]
    for kernel, sig, form in forms:
        _packaged(kernel.py_func, folder).save(sig, form._reduce())
    return len(forms)


def is_compiled(kernel: Any) -> bool:
    """Return whether a kernel is compiled for some signature, in memory, in the package or on disk; True if unknown."""
    return bool(kernel.signatures) or not kernel._cache.is_empty()


def cached(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function with these options of numba's `njit`, cached on disk."""

    def compile(function: Callable[..., Any]) -> Any:
        compiled = njit(**options)(function)
        compiled.compile = _uninterrupted(compiled.compile)
        compiled._cache = _KernelCache(function)
        return compiled

    return compile


def _uninterrupted(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compile function of a kernel with interrupts and garbage collection deferred."""

    def compile_uninterrupted(signature: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            with _defer_interrupts():
                return compile(signature)
        finally:
            if collects:
                gc.enable()

    return compile_uninterrupted


@contextmanager
def _defer_interrupts() -> Iterator[None]:
    """Defer an interrupt to the end of the block; only the main thread receives interrupts."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    received: list[Any] = []
    signal.signal(signal.SIGINT, lambda *arguments: received.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if received:
            before(*received[0])


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
