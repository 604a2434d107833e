"""Exit codes, messages, types of arguments and text in columns, for all commands."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable

from mcce.base.files import checked_path
from mcce.exceptions import InputError, spell

DONE, BAD_INPUT, SOME_UNEXPLAINED, INTERRUPTED = 0, 2, 3, 130
MOST_DIGITS = 18  # of a count; Python's own limit is far above what an array counts to


def say(text: str) -> None:
    """Tell the user something that is no result: on standard error, in one line."""
    print("mcce:", " ".join(text.split()), file=sys.stderr)


def name_list(text: str) -> list[str]:
    """Read names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def positive_integer(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) < 1:
        most = f" and at most {MOST_DIGITS} digits" if len(text) > MOST_DIGITS else ""
        raise argparse.ArgumentTypeError(f"{spell(text)} is not a whole number of at least 1{most}")
    return int(text)


def path_name(text: str) -> str:
    """Read the name of a file or folder."""
    try:
        checked_path(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
    return text


def separator(text: str) -> str:
    """Read a single character; a tab may be spelled."""
    char = {r"\t": "\t", "tab": "\t"}.get(text, text)
    if len(char) != 1:
        raise argparse.ArgumentTypeError(f"{spell(text)} is not a single character")
    return char


def wrap(text: str, mark: str = "  ") -> str:
    """Break a text into lines behind a mark."""
    return textwrap.fill(text, 88, initial_indent=mark, subsequent_indent=" " * len(mark))


def aligned(rows: list[list[str]], left: Iterable[int] = (0,)) -> str:
    """Return rows of cells in columns; those of `left` begin, the others end at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    cells = [[c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths))] for row in rows]
    return "\n".join(f"  {'  '.join(row)}".rstrip() for row in cells)
