"""Which rows a tree is grown on, and which are its donors, if not all rows are both.

proper   A bootstrap sample of the rows takes the place of the rows, as in synthpop: what is fitted varies from fit to
         fit as it would with other training data, and so the uncertainty of the trees reaches what is drawn.
honest   Half of the rows, drawn at random, grow the tree; the others are its donors (`mcce.trees.honest`). Donors that
         a tree was grown on have been sorted by their values, and are less spread out than new rows are. The trees of
         a forest have bootstrap samples of their own: the rows outside are the donors.

Rows with weights are drawn by these, as many as the weights sum up to: a sample of the repeated rows. The rows that an
honest forest's tree is grown on are chosen whatever their weight first, so that those outside are like all others.
"""

from __future__ import annotations

import numpy as np

from mcce.arrays import Floats, Ints
from mcce.exceptions import InputError
from mcce.rng import RowStreams
from mcce.table.weights import place_of_copy


def bootstrap(n: int, streams: RowStreams, weights: Floats | None = None) -> Ints:
    """Return rows drawn with replacement, ascending: `n` of them, or by weight as many as there are streams."""
    return np.sort(draw_rows(np.arange(n), streams, weights)) if n else np.arange(0)


def draw_rows(rows: Ints, streams: RowStreams, weights: Floats | None = None) -> Ints:
    """Return one of the rows for each stream, uniformly or by their weights: as if each row stood there so often."""
    if weights is None:
        return rows[streams.integer(rows.size)]
    upto = np.cumsum(weights)
    return rows[place_of_copy(upto, streams.uniform() * upto[-1])]


def n_copies(weights: Floats) -> int:
    """Return how many rows weighted ones stand for: so many has a bootstrap sample of them."""
    return max(round(float(weights.sum())), 1)


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
