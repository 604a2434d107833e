"""Progress bars on what takes longer than a second, in a terminal or a notebook."""

from __future__ import annotations

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # in a notebook without ipywidgets tqdm complains, and prints plain bars
    from tqdm.auto import tqdm


def progress_bar(total: int | None, what: str, progress: bool | None) -> Any:
    """Return a bar for `total` steps (None: not known); `progress` None shows it in a terminal or notebook."""
    disable = None if progress is None else not progress
    return tqdm(total=total, desc=what, delay=1.0, leave=False, disable=disable)
