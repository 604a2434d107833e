"""Progress bars in a terminal or notebook, or lines in a log, for work that takes longer than a second.

`progress_bar` counts steps, `working` shows elapsed time, and `report` gives the progress inside a step. A thread
redraws the bar, but in a notebook, where only the cell's thread may draw.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Event, Lock, Thread
from typing import Any, Literal, TypeAlias

SECONDS = 1.0
LOGGED_EVERY = 10.0  # seconds, at first; twice as rarely after ten lines

Progress: TypeAlias = bool | Literal["log"] | None


@cache
def _kind_of_bar() -> Any:
    """Return tqdm's bar for a terminal or a notebook; loaded at the first use, since it brings asyncio along."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook without ipywidgets tqdm complains, and prints plain bars
        from tqdm.auto import tqdm
    return tqdm


def tqdm(**options: Any) -> Any:
    """Return a bar with these options."""
    return _kind_of_bar()(**options)


@contextmanager
def progress_bar(total: int | None, what: str, progress: Progress, **options: Any) -> Iterator[Any]:
    """Lend a bar for `total` steps, None if that is not known; `progress` None shows one in a terminal or notebook."""
    if progress == "log":
        logged = LoggedBar(total, what)
        yield logged
        logged.close()
        return
    disable = None if progress is None else not progress
    with tqdm(total=total, desc=what, delay=SECONDS, leave=False, disable=disable, **options) as bar:
        if bar.disable or type(bar).__module__.endswith("notebook"):
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
    """Say what is being done, and for how long, if it takes longer than a second."""
    with progress_bar(1, what, progress, bar_format="{desc} [{elapsed}]"):
        yield


class LoggedBar:
    """Progress as lines: steps done, how many a second, time left. It has of a bar what we use."""

    disable = False

    def __init__(self, total: int | None, what: str, now: Callable[[], float] = time.monotonic) -> None:
        self.total, self.what, self.n, self.initial = total, what, 0, 0
        self._now, self._begun = now, now()
        self._next, self._every, self._lines = LOGGED_EVERY, LOGGED_EVERY, 0

    def update(self, n: float = 1) -> None:
        """Count steps, and say how it is going if it is time to."""
        self.n += int(n)
        if self._now() - self._begun >= self._next:
            self._tell()
            self._lines += 1
            self._every *= 2 if self._lines % 10 == 0 else 1
            self._next = self._now() - self._begun + self._every

    def close(self) -> None:
        """Say how it went, if anything was said before."""
        if self._lines:
            self._tell()

    def _tell(self) -> None:
        seconds = max(self._now() - self._begun, 1e-9)
        rate = (self.n - self.initial) / seconds
        whole = "" if self.total is None else f" of {self.total:,} ({self.n / max(self.total, 1):.0%})"
        left = ""
        if self.total is not None and rate > 0 and self.n < self.total:
            left = f", about {in_words((self.total - self.n) / rate)} left"
        print(f"mcce: {self.what}: {self.n:,}{whole}, {rate:,.1f} a second{left}", file=sys.stderr, flush=True)


def in_words(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> in_words(7), in_words(150), in_words(9000)
    ('7 s', '2 min 30 s', '2 h 30 min')
    """
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


_reporting: ContextVar[Callable[[float], object] | None] = ContextVar("progress inside a step", default=None)


def report(share: float) -> None:
    """Say how much of the present step is done, from 0 to 1."""
    tell = _reporting.get()
    if tell is not None:
        tell(share)


@contextmanager
def within(first: float, last: float) -> Iterator[None]:
    """Let what is reported inside the block be about a stretch of the present step, from one share to another."""
    tell = _reporting.get()
    token = _reporting.set(None if tell is None else lambda share: tell(first + share * (last - first)))
    try:
        yield
    finally:
        _reporting.reset(token)
    report(last)


class Shares:
    """Work that several threads share: what each adds is reported to whoever waited when it was made."""

    def __init__(self, total: float) -> None:
        self._tell, self._total, self._done, self._lock = _reporting.get(), max(total, 1e-9), 0.0, Lock()

    def add(self, amount: float) -> None:
        """Count some of the work as done."""
        if self._tell is not None:
            with self._lock:
                self._done += amount
                self._tell(self._done / self._total)


@contextmanager
def reported(advance: Callable[[float], object], size: int) -> Iterator[None]:
    """Let work inside the block move a bar on, by up to `size` steps; at the end it has moved by all of them."""
    done = 0

    def tell(share: float) -> None:
        nonlocal done
        reached = int(min(max(share, 0.0), 1.0) * size)
        if reached > done:
            advance(reached - done)
            done = reached

    token = _reporting.set(tell)
    try:
        yield
    finally:
        _reporting.reset(token)
    if done < size:
        advance(size - done)
