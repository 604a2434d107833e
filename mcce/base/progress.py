"""Progress bars of tqdm in a terminal, notebook or log, for work that takes longer than a second.

`progress_bar` counts steps, `working` shows elapsed time, and `report` gives the progress inside a step. A thread
redraws the bar, except in a notebook, where only the cell's thread may draw.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Event, Lock, Thread
from typing import Any, Literal, TypeAlias

from mcce.base.checks import check_flag

SECONDS = 1.0
LOGGED_EVERY = 10.0  # seconds

Progress: TypeAlias = bool | Literal["log"] | None


@cache
def _bar_class() -> Any:
    """Return tqdm's bar for a terminal or a notebook; imported at the first use, since it imports asyncio."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets tqdm warns, and prints plain bars
        from tqdm.auto import tqdm
    return tqdm


def tqdm(**options: Any) -> Any:
    """Return a bar with these options."""
    return _bar_class()(**options)


@cache
def _hidden_bar() -> Any:
    """Return the bar that is never shown, which all steps without progress share."""
    return _bar_class()(disable=True)


class _Lines:
    """Standard error, with a new line for each update of a bar."""

    def write(self, text: str) -> None:
        sys.stderr.write(text.replace("\r", "\n"))

    def flush(self) -> None:
        sys.stderr.flush()


@contextmanager
def progress_bar(total: int | None, what: str, progress: Progress, **options: Any) -> Iterator[Any]:
    """Yield a bar for `total` steps, None if unknown; `progress` None shows it in a terminal or notebook."""
    is_log = progress == "log"
    if progress is not None and not is_log:
        check_flag(progress, "progress")
        if not progress:
            yield _hidden_bar()
            return
    if is_log:
        options |= {"mininterval": LOGGED_EVERY, "ncols": 100, "file": _Lines()}
    disable = None if progress is None else False
    with tqdm(total=total, desc=what, delay=SECONDS, leave=is_log, disable=disable, **options) as bar:
        if is_log or bar.disable or type(bar).__module__.endswith("notebook"):
            yield bar
            return
        ended = Event()

        def keep_up() -> None:
            while not ended.wait(SECONDS):
                bar.refresh()

        keeping = Thread(target=keep_up, daemon=True)
        keeping.start()
        try:
            yield bar
        finally:
            ended.set()
            keeping.join()


@contextmanager
def working(what: str, progress: bool | None) -> Iterator[None]:
    """Show a label and the elapsed time of work that takes longer than a second."""
    with progress_bar(1, what, progress, bar_format="{desc} [{elapsed}]"):
        yield


_reporting: ContextVar[Callable[[float], object] | None] = ContextVar("progress inside a step", default=None)


def report(share: float) -> None:
    """Report the finished share of the current step, from 0 to 1."""
    callback = _reporting.get()
    if callback is not None:
        callback(share)


@contextmanager
def within(first: float, last: float) -> Iterator[None]:
    """Map the shares reported inside the block to the part of the current step from `first` to `last`."""
    callback = _reporting.get()
    token = _reporting.set(None if callback is None else lambda share: callback(first + share * (last - first)))
    try:
        yield
    finally:
        _reporting.reset(token)
    report(last)


class Shares:
    """Work shared by several threads, reported to the step that was current when the object was made."""

    def __init__(self, total: float) -> None:
        self._callback, self._total, self._done, self._lock = _reporting.get(), max(total, 1e-9), 0.0, Lock()

    def add(self, amount: float) -> None:
        """Count an amount of work as done."""
        if self._callback is not None:
            with self._lock:
                self._done += amount
                self._callback(self._done / self._total)


@contextmanager
def reported(advance: Callable[[float], object], size: int) -> Iterator[None]:
    """Advance a bar by the shares reported inside the block, by `size` steps at the end."""
    done = 0

    def publish(share: float) -> None:
        nonlocal done
        reached = int(min(max(share, 0.0), 1.0) * size)
        if reached > done:
            advance(reached - done)
            done = reached

    token = _reporting.set(publish)
    try:
        yield
    finally:
        _reporting.reset(token)
    if done < size:
        advance(size - done)
