"""Exit codes, messages and text in columns, for all commands."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable

DONE, BAD_INPUT, SOME_UNEXPLAINED, NOT_VERIFIED, INTERRUPTED = 0, 2, 3, 4, 130


def notify(text: str) -> None:
    """Print a message on standard error, in one line."""
    print("mcce:", " ".join(text.split()), file=sys.stderr)


def wrap(text: str, mark: str = "  ") -> str:
    """Wrap a text into lines after a mark."""
    return textwrap.fill(text, 88, initial_indent=mark, subsequent_indent=" " * len(mark))


def align_columns(rows: list[list[str]], left: Iterable[int] = (0,)) -> str:
    """Return rows of cells in columns; those of `left` are aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    cells = [[c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths))] for row in rows]
    return "\n".join(f"  {'  '.join(row)}".rstrip() for row in cells)


def escape_controls(text: str) -> str:
    """Return a text with control characters escaped, except line breaks."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
