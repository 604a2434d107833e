"""Every change is needed, and none makes the decision worse.

A change is needed if the row without it, completed, may not be returned: it is not admitted, not plausible or not
valid. A change is harmful if the row without it is admitted and farther inside the decision. `prune` reverts changes
that are not needed, in the order of how far inside the decision they leave the row, so harmful ones first: all at once,
or half of them, a quarter and so on if the row may not be returned then, and again until every change is needed. It
also tells which rows still have a harmful change.
"""

from __future__ import annotations

import numpy as np

from mcce._utils import Bools, Floats, Ints
from mcce.explain.acceptance import Acceptance

ROUNDING = 1e-12  # of margins


def without_one(acceptance: Acceptance, rows: Floats, owner: Ints) -> tuple[Ints, Ints, Floats]:
    """Return, for every change of every row, the position of the row, the column, and the row without it, completed.

    Rows that do not change less are left out: reverting a column that an equation determines changes another one.
    """
    at, column = np.nonzero(acceptance.changes(rows, owner))
    reverted = rows[at]
    reverted[np.arange(at.size), column] = acceptance.factuals[owner[at], column]
    reverted, is_less = _completed(acceptance, reverted, rows[at], owner[at])
    return at[is_less], column[is_less], reverted[is_less]


def _completed(acceptance: Acceptance, reverted: Floats, rows: Floats, owner: Ints) -> tuple[Floats, Bools]:
    """Return rows with changes reverted, completed, and which of them have fewer changes than before."""
    reverted = acceptance.complete(reverted, owner)
    n_changes = acceptance.changes(reverted, owner).sum(axis=1)
    return reverted, n_changes < acceptance.changes(rows, owner).sum(axis=1)


def prune(acceptance: Acceptance, rows: Floats, owner: Ints, *, at_floor: bool = True) -> tuple[Floats, Bools]:
    """Return valid rows without changes that are not needed, and which of them still have a harmful change."""
    rows, is_harmed = rows.copy(), np.zeros(len(rows), dtype=bool)
    open_rows = np.arange(len(rows))
    while open_rows.size:
        part, part_owner = rows[open_rows], owner[open_rows]
        at, column, reverted = without_one(acceptance, part, part_owner)
        answer = acceptance.query(reverted)
        with np.errstate(invalid="ignore"):
            gain = answer.margin - acceptance.query(part).margin[at]
        admitted = acceptance.admits(reverted, part_owner[at])
        is_harmed[open_rows] = np.bincount(at[admitted & (gain > ROUNDING)], minlength=len(part)) > 0
        may_go = admitted & answer.wanted
        if at_floor:
            may_go[may_go] = acceptance.plausible(reverted[may_go], part_owner[at][may_go])
        goes = np.flatnonzero(may_go)
        goes = goes[np.lexsort((-np.nan_to_num(gain[goes]), at[goes]))]
        single = goes[np.unique(at[goes], return_index=True)[1]]
        part[at[single]] = reverted[single]
        _revert_together(acceptance, rows[open_rows], part, part_owner, at[goes], column[goes], at_floor)
        rows[open_rows] = part
        open_rows = open_rows[at[single]]
    return rows, is_harmed


def _revert_together(
    acceptance: Acceptance, rows: Floats, best: Floats, owner: Ints, at: Ints, column: Ints, at_floor: bool
) -> None:
    """Write to `best` the rows without all, half, a quarter, ... of their first changes, if they may be returned.

    `at` and `column` are the changes that may go alone, row by row in the order of their reversal.
    """
    number = np.bincount(at, minlength=len(rows))
    place = np.arange(at.size) - np.searchsorted(at, at)
    parts, lengths = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    while (number > 1).any():
        parts.append(np.flatnonzero(number > 1))
        lengths.append(number[parts[-1]])
        number = number // 2
    which, length = np.concatenate(parts), np.concatenate(lengths)
    reverted = rows[which]
    first = np.searchsorted(at, which)
    for i in range(place.max(initial=-1) + 1):  # the i-th change of each row
        goes = np.flatnonzero(length > i)
        changes = column[first[goes] + i]
        reverted[goes, changes] = acceptance.factuals[owner[which[goes]], changes]
    reverted, is_less = _completed(acceptance, reverted, rows[which], owner[which])
    may_go = is_less & acceptance.admits(reverted, owner[which])
    may_go[may_go] = acceptance.query(reverted[may_go]).wanted
    if at_floor:
        may_go[may_go] = acceptance.plausible(reverted[may_go], owner[which[may_go]])
    longest = np.flatnonzero(may_go)[::-1]  # the shortest ones first, so that longer ones are written over them
    best[which[longest]] = reverted[longest]
