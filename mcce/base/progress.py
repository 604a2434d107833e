"""Progress on the screen, as soon as it takes longer than a second, in a terminal or a notebook.

1. `progress_bar` counts steps. It appears after a second, also while the first step still runs: a thread keeps it up to
   date. In a notebook, where only the cell's own thread may draw, it appears with the next step.
2. `working` is a line for work whose steps nobody counts: what it is, and for how long.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event, Thread
from typing import Any

SECONDS = 1.0


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
def progress_bar(total: int | None, what: str, progress: bool | None, **options: Any) -> Iterator[Any]:
    """Lend a bar for `total` steps, None if that is not known; `progress` None shows one in a terminal or notebook."""
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
