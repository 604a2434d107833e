"""Threads for work that falls into independent pieces; the results never depend on their number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mcce.checks import check_count
from mcce.progress import progress_bar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def count_jobs(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`."""
    if n_jobs is None or n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return check_count(n_jobs, "n_jobs", or_else=", or None for all cores")


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
        with ThreadPoolExecutor(min(threads, len(items))) as pool:
            for outcome in pool.map(work, items):
                yield outcome
                bar.update()
