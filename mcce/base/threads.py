"""Threads for independent pieces of work; results never depend on their number.

OpenMP and BLAS threads of models compete for cores: on two busy cores a hundred small queries to gradient boosting took
136 s with two threads and 6 s with one. `one_native_thread` limits these pools to one thread during a fit or
explanation. The BLAS limit is global to the process, so its users are counted and the last one restores it;
`without_warning` does the same for warning filters. `n_jobs` of a model is not changed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock, local
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from mcce.base.checks import check, is_whole
from mcce.base.progress import progress_bar
from mcce.wording import Value

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_own_pools = local()  # `pools`: the pools limited in this thread, if any


class _SharedLimit:
    """The BLAS limit, shared by all threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._pools: Any = None
        self._limit: Any = None

    def enter(self, pools: ThreadpoolController) -> None:
        with self._lock:
            if not self._users:
                self._pools = pools.select(user_api="blas")
                self._limit = self._pools.limit(limits=1)
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limit.restore_original_limits()
            # some versions let only the thread that set a limit restore it: release that right
            for pool in self._pools.lib_controllers:
                getattr(pool, "clear_controlling_thread", lambda: None)()


class _SharedFilters:
    """The warning filters, shared by all threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._former: Any = None

    def enter(self, message: str) -> None:
        with self._lock:
            if not self._users:
                self._former = warnings.catch_warnings()
                self._former.__enter__()
            self._users += 1
            there = [(each[0], getattr(each[1], "pattern", ""), each[2]) for each in warnings.filters]
            if ("ignore", message, Warning) not in there:  # adding it again removes it for a moment
                warnings.filterwarnings("ignore", message)

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._former.__exit__(None, None, None)


_blas = _SharedLimit()
_warning_filters = _SharedFilters()
_found: tuple[int, ThreadpoolController] | None = None  # with the number of modules loaded at that time


def _loaded_pools() -> ThreadpoolController:
    """Return the thread pools of the loaded libraries, looked up again after imports."""
    global _found
    n_modules = len(sys.modules)
    if _found is None or _found[0] != n_modules:
        _found = n_modules, ThreadpoolController()
    return _found[1]


@contextmanager
def without_warning(message: str) -> Iterator[None]:
    """Ignore warnings that begin with a message (a regular expression); safe in concurrent threads."""
    _warning_filters.enter(message)
    try:
        yield
    finally:
        _warning_filters.leave()


@contextmanager
def one_native_thread() -> Iterator[None]:
    """Limit OpenMP and BLAS to one thread, in this thread and those of `run_in_threads`; also as a decorator."""
    if getattr(_own_pools, "pools", None) is not None:
        yield
        return
    pools = _loaded_pools()
    _blas.enter(pools)
    try:
        # a limit restores all pools of its controller, so each needs its own controller
        openmp = pools.select(user_api="openmp")
        with openmp.limit(limits=1):
            _own_pools.pools = openmp
            yield
    finally:
        _own_pools.pools = None
        _blas.leave()


def _begin_thread(pools: ThreadpoolController | None) -> None:
    if pools is not None:
        pools.limit(limits=1)  # ends with the thread
        _own_pools.pools = pools


def count_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`, in scikit-learn's meaning.

    None is 1, or the number that `joblib.parallel_config` sets; -1 is all cores, -2 all but one.
    """
    import joblib.parallel  # already loaded by most models

    if n_jobs is None:
        n_jobs = joblib.parallel.get_active_backend()[1] or 1
    must_be = ("it must be a whole number other than 0 (-1 for all cores), or ", Value(None), " for 1.")
    check(is_whole(n_jobs) and n_jobs != 0, n_jobs, "n_jobs", *must_be)
    return int(n_jobs) if n_jobs > 0 else max(joblib.cpu_count() + 1 + n_jobs, 1)


def run_in_threads(
    work: Callable[[Item], Outcome], items: Sequence[Item], threads: int, label: str, progress: bool | None
) -> Iterator[Outcome]:
    """Yield work(item) in order, computed by several threads; a bar appears after a second."""
    with progress_bar(len(items), label, progress) as bar:
        if threads == 1 or len(items) < 2:
            for item in items:
                yield work(item)
                bar.update()
            return
        pools_before = getattr(_own_pools, "pools", None)
        with ThreadPoolExecutor(min(threads, len(items)), initializer=_begin_thread, initargs=(pools_before,)) as pool:
            for outcome in pool.map(work, items):
                yield outcome
                bar.update()
