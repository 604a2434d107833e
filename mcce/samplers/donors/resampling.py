"""Which rows a tree is grown on, and which are its donors, if not all rows are both.

proper   A bootstrap sample of the rows takes the place of the rows, as in synthpop: what is fitted varies from fit to
         fit as it would with other training data, and so the uncertainty of the trees reaches what is drawn.
honest   Half of the rows, drawn at random, grow the tree; the others are its donors (`mcce.trees.honest`). Donors that
         a tree was grown on have been sorted by their values, and are less spread out than new rows are. The trees of
         a forest have bootstrap samples of their own: the rows outside are the donors.
"""

from __future__ import annotations

import numpy as np

from mcce.arrays import Ints
from mcce.exceptions import InputError
from mcce.rng import RowStreams


def bootstrap(n: int, streams: RowStreams) -> Ints:
    """Return `n` rows drawn with replacement, ascending."""
    return np.sort(streams.integer(n)) if n else np.arange(0)


def halves(rows: Ints, streams: RowStreams) -> tuple[Ints, Ints]:
    """Return the rows that grow a tree, and its donors: a training row, and all its copies, is either; or all are both.

    Too few rows to be parted are both. `streams` has one stream a training row.
    """
    order = np.argsort(streams.uniform(), kind="stable")
    grows = np.zeros(order.size, dtype=bool)
    grows[order[: order.size // 2]] = True
    growing, donors = rows[grows[rows]], rows[~grows[rows]]
    return (growing, donors) if growing.size and donors.size else (rows, rows)


def outside(rows: Ints, growing: Ints) -> Ints:
    """Return the rows that are not among those that grow a tree; all, if there are none."""
    left = rows[~np.isin(rows, growing)]
    return left if left.size else rows


def check_resampling(owner: object, proper: object, honest: object) -> None:
    """Check the two parameters of a sampler."""
    for name, value in (("proper", proper), ("honest", honest)):
        if not isinstance(value, bool):
            raise InputError(f"{name} of {type(owner).__name__} is {value!r}; it must be True or False.")
