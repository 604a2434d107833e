"""A page of results, printed while a benchmark runs and written as Markdown."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


class Page:
    """Titles, texts and tables of at most 120 columns, printed and stored."""

    def __init__(self, title: str) -> None:
        self.parts = [f"# {title}"]

    def write_line(self, text: str) -> None:
        """Print and store a paragraph."""
        print(text, flush=True)
        self.parts.append(text.strip())

    def title(self, text: str) -> None:
        """Print and store the title of a section."""
        print(f"\n{text}", flush=True)
        self.parts.append(f"## {text}")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print and store a table of cells, with the first column left-aligned."""
        widths = [max(map(len, column)) for column in zip(head, *rows)]
        for row in (head, *rows):
            first, *others = (cell.rjust(width) for cell, width in zip(row, widths))
            print("  ".join([row[0].ljust(len(first)), *others]).rstrip(), flush=True)
        lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
        lines.insert(1, "|---|" + "---:|" * (len(head) - 1))
        self.parts.append("\n".join(lines))

    def write(self, path: Path) -> None:
        """Write the stored page."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(self.parts) + "\n", encoding="utf-8")


def read_names(
    parser: argparse.ArgumentParser, option: str, given: str, known: Sequence[str], separator: str = ","
) -> list[str]:
    """Return the names in a text, or exit with a message that lists the known ones."""
    names = [name for name in given.split(separator) if name]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        parser.error(f"{option} names {', '.join(unknown) or 'nothing'}; there are {', '.join(known)}")
    return names


def read_shares(parser: argparse.ArgumentParser, option: str, given: str) -> list[float]:
    """Return comma-separated numbers from 0 to 1, or exit with a message."""
    try:
        shares = [float(text) for text in given.split(",")]
    except ValueError:
        shares = [-1.0]
    if not all(0 <= share < 1 for share in shares):
        parser.error(f"{option} is {given!r}; give numbers from 0 to below 1, separated by commas")
    return shares
