"""Compiled kernels, threads, progress, checks of single arguments, and atomic files."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from numbers import Real
from pathlib import Path
from threading import Lock, local
from typing import Any, TypeVar

import joblib
import numba
import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from mcce.exceptions import InputError, spell, warn

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
UInts = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_without_cache: list[str] = []  # the first kernel that could not be cached, once it was warned of


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function with numba, cached on disk; `options` are passed to `numba.njit`.

    Where no folder can be written, kernels are compiled in each process, and one warning says so. numba looks only at
    the file of a kernel to see whether its cached form is out of date: after a change in a kernel that kernels of other
    files call, delete their ``__pycache__/*.nb?``.
    """
    if function is None:
        return lambda wrapped: jit(wrapped, **options)
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        return numba.njit(cache=True, **options)(function)
    except (RuntimeError, OSError) as error:
        if not _without_cache:
            _without_cache.append(function.__name__)
            warn(
                f"compiled kernels cannot be cached on disk ({str(error).partition(':')[0]}) and are compiled again by "
                "each process; set NUMBA_CACHE_DIR to a folder that can be written."
            )
        return numba.njit(**options)(function)


def jit_inline(function: Callable[..., Any]) -> Any:
    """Compile a small function into the kernels that call it."""
    return numba.njit(inline="always")(function)


# ---------------------------------------------------------------------------------------------------------------------
# threads
# ---------------------------------------------------------------------------------------------------------------------


def count_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs` in scikit-learn's meaning.

    None is 1, or the number that `joblib.parallel_config` sets; -1 is all cores, -2 all but one.

    Examples
    --------
    >>> from mcce._utils import count_jobs
    >>> count_jobs(None), count_jobs(3)
    (1, 3)
    """
    if n_jobs is None:
        n_jobs = joblib.parallel.get_active_backend()[1] or 1
    if not is_whole(n_jobs) or n_jobs == 0:
        raise InputError(
            f"n_jobs is {spell(n_jobs)}; it must be a whole number other than 0 (-1 for all cores), or None for 1."
        )
    return int(n_jobs) if n_jobs > 0 else max(joblib.cpu_count() + 1 + int(n_jobs), 1)


class _BlasLimit:
    """One thread for BLAS: a limit of the whole process, so its users are counted and the last one lifts it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.n_users = 0
        self.limit: Any = None

    def enter(self, pools: Any) -> None:
        with self.lock:
            if not self.n_users:
                self.limit = pools.limit(limits=1)
                for pool in pools.lib_controllers:  # another thread may be the one that lifts the limit
                    getattr(pool, "clear_controlling_thread", lambda: None)()
            self.n_users += 1

    def leave(self) -> None:
        with self.lock:
            self.n_users -= 1
            if not self.n_users:
                self.limit.restore_original_limits()


_blas = _BlasLimit()
_thread = local()  # `.is_limited`: whether this thread is limited already


@lru_cache(maxsize=1)
def _native_pools(n_modules: int) -> Any:
    """Return the thread pools of the loaded libraries, looked up again when more modules are loaded."""
    return ThreadpoolController()


@contextmanager
def one_native_thread() -> Iterator[None]:
    """Limit the threads of OpenMP and BLAS to one; also a decorator.

    They compete for cores with our own: a hundred small queries to gradient boosting took 136 s with two threads of
    OpenMP on two busy cores, and 6 s with one. OpenMP's limit holds in this thread (and those of `map_threads`).
    """
    if getattr(_thread, "is_limited", False):
        yield
        return
    pools = _native_pools(len(sys.modules))
    _blas.enter(pools.select(user_api="blas"))
    _thread.is_limited = True
    try:
        with pools.select(user_api="openmp").limit(limits=1):
            yield
    finally:
        _thread.is_limited = False
        _blas.leave()


def map_threads(
    function: Callable[[Item], Outcome],
    items: Sequence[Item],
    n_jobs: int | None = None,
    what: str = "",
    progress: bool | None = None,
) -> list[Outcome]:
    """Return `function(item)` of all items in order, computed by `n_jobs` threads with one native thread each.

    Parameters
    ----------
    what : str
        Label of the progress bar, which appears after a second.
    progress : bool, optional
        Whether to show the bar; None shows it in a terminal or notebook only.

    Examples
    --------
    >>> from mcce._utils import map_threads
    >>> map_threads(abs, [-1, 2], n_jobs=2)
    [1, 2]
    """

    def run(item: Item) -> Outcome:
        with one_native_thread():
            return function(item)

    n_threads = min(count_jobs(n_jobs), len(items))
    with progress_bar(len(items), what, progress) as bar, one_native_thread():
        if n_threads < 2:
            outcomes: Iterator[Outcome] = map(run, items)
        else:
            parallel = joblib.Parallel(n_threads, backend="threading", return_as="generator")
            outcomes = parallel(joblib.delayed(run)(item) for item in items)
        results = []
        for outcome in outcomes:
            results.append(outcome)
            bar.update()
    return results


def progress_bar(total: int, what: str, progress: bool | None = None) -> Any:
    """Return tqdm's bar, which appears after a second; `progress` None shows it in a terminal or notebook only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook without ipywidgets, whose absence only means no bar
        from tqdm.auto import tqdm

    if progress is not None:
        check_flag(progress, "progress")
    return tqdm(total=total, desc=what, delay=1.0, leave=False, disable=None if progress is None else not progress)


# ---------------------------------------------------------------------------------------------------------------------
# checks of single arguments
# ---------------------------------------------------------------------------------------------------------------------


def is_whole(value: object) -> bool:
    """Return whether a value is an integer, not a boolean."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_number(value: object) -> bool:
    """Return whether a value is a real number that a float can be, not a boolean."""
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_, np.timedelta64)):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """Return an argument that must be a whole number of at least `least`.

    Examples
    --------
    >>> from mcce._utils import check_count
    >>> check_count(0, "n_samples")
    Traceback (most recent call last):
    mcce.exceptions.InputError: n_samples is 0; it must be a whole number of at least 1.
    """
    if not is_whole(value) or value < least or (most is not None and value > most):
        upper = "" if most is None else f" and at most {most}"
        raise InputError(f"{name} is {spell(value)}; it must be a whole number of at least {least}{upper}.")
    return int(value)


def check_number(
    value: Any,
    name: str,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    above_low: bool = False,
    below_high: bool = False,
) -> float:
    """Return an argument that must be a finite number from `low` to `high`; `above_low`, `below_high` exclude them.

    Examples
    --------
    >>> from mcce._utils import check_number
    >>> check_number(1, "floor", 0, 1, below_high=True)
    Traceback (most recent call last):
    mcce.exceptions.InputError: floor is 1; it must be a number of at least 0 and below 1.
    """
    is_within = is_number(value) and abs(value) < np.inf and low <= value <= high
    if not is_within or (above_low and value == low) or (below_high and value == high):
        bounds = []
        if low > -np.inf:
            bounds.append(f"above {low:g}" if above_low else f"of at least {low:g}")
        if high < np.inf:
            bounds.append(f"below {high:g}" if below_high else f"at most {high:g}")
        must_be = "a number " + " and ".join(bounds) if bounds else "a finite number"
        raise InputError(f"{name} is {spell(value)}; it must be {must_be}.")
    return float(value)


def check_flag(value: Any, name: str) -> bool:
    """Return an argument that must be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} is {spell(value)}; it must be True or False.")
    return bool(value)


# ---------------------------------------------------------------------------------------------------------------------
# files and blocks
# ---------------------------------------------------------------------------------------------------------------------


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` if the block raises nothing.

    A link is followed, permissions of a replaced file are kept, and pipes and devices are written directly.
    """
    name = os.fspath(path)
    if not name or "\0" in name:
        raise InputError(f"{spell(name)} is not a name of a file; give another one.")
    target = Path(os.path.realpath(name))
    if target.is_dir():
        raise InputError(f"{spell(name)} is a folder; give the name of a file.")
    if not target.parent.is_dir():
        raise InputError(f"{spell(name)} lies in a folder that does not exist; create {str(target.parent)!r} first.")
    if target.exists() and not target.is_file():
        yield target
        return
    temporary = target.with_name(f".{secrets.token_hex(4)}-{target.name}")
    try:
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def blocks(n: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` that cover 0..n-1.

    Examples
    --------
    >>> from mcce._utils import blocks
    >>> list(blocks(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))
