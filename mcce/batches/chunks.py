"""Rows of a file as they are read, cut where parts begin.

1. A reader yields chunks: consecutive rows of a file, some of which may be bad.
2. `cut_into_parts` cuts and joins them so that each holds the rows of one part: those whose number in the file, divided
   by the size of a batch, is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mcce.arrays import Ints


@dataclass(frozen=True)
class BadRows:
    """Rows that cannot be explained, consecutive and for the same reason.

    Attributes
    ----------
    begin, end : first row in the file, and the one after the last.
    place : what a user finds them by in the file, "row 8" or "line 10".
    problem : what is wrong.
    """

    begin: int
    end: int
    place: str
    problem: str


@dataclass(frozen=True)
class Chunk:
    """The rows `begin` to `end` of a file; the index of `frame` is their number, those of `bad` are not in it.

    `lines` says for each row of `frame` on which line it stands, if it has lines.
    """

    begin: int
    end: int
    frame: pd.DataFrame
    bad: tuple[BadRows, ...] = ()
    lines: Ints | None = None

    def place(self, i: int) -> str:
        """Return what a user finds the i-th row of `frame` by in the file."""
        return f"row {self.frame.index[i]}" if self.lines is None else f"line {self.lines[i]}"

    def drop(self, bad: Sequence[tuple[int, str]]) -> Chunk:
        """Return the chunk without some rows of `frame`, given by place and problem, which are then among the bad."""
        if not bad:
            return self
        rows = self.frame.index.to_numpy()
        kept = np.setdiff1d(np.arange(len(self.frame)), [i for i, _ in bad])
        listed = [BadRows(int(rows[i]), int(rows[i]) + 1, self.place(i), problem) for i, problem in bad]
        return replace(
            self,
            frame=self.frame.iloc[kept],
            bad=tuple(sorted([*self.bad, *listed], key=lambda b: b.begin)),
            lines=None if self.lines is None else self.lines[kept],
        )

    def cut(self, at: int) -> tuple[Chunk, Chunk]:
        """Return what comes before a row, and the rest."""
        at = min(at, self.end)
        place = int(np.searchsorted(self.frame.index.to_numpy(), at))
        before = tuple(replace(b, end=min(b.end, at)) for b in self.bad if b.begin < at)
        after = tuple(replace(b, begin=max(b.begin, at)) for b in self.bad if b.end > at)
        lines = (None, None) if self.lines is None else (self.lines[:place], self.lines[place:])
        return (
            Chunk(self.begin, at, self.frame.iloc[:place], before, lines[0]),
            Chunk(at, self.end, self.frame.iloc[place:], after, lines[1]),
        )


def cut_into_parts(chunks: Iterable[Chunk], size: int) -> Iterator[Chunk]:
    """Yield the rows of each part of a file, in order."""
    held: list[Chunk] = []
    for chunk in chunks:
        rest = chunk
        while rest.begin < rest.end:
            boundary = (rest.begin // size + 1) * size
            now, rest = rest.cut(boundary)
            held.append(now)
            if now.end == boundary:
                yield _join(held)
                held = []
    if held:
        yield _join(held)


def _join(chunks: Sequence[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    frames = [chunk.frame for chunk in chunks if len(chunk.frame)] or [chunks[0].frame]
    bad = tuple(b for chunk in chunks for b in chunk.bad)
    lines = [chunk.lines for chunk in chunks if chunk.lines is not None]
    return Chunk(
        chunks[0].begin,
        chunks[-1].end,
        pd.concat(frames) if len(frames) > 1 else frames[0],
        bad,
        np.concatenate(lines) if lines else None,
    )
