"""Every change is needed, and none makes the decision worse.

A change is needed if the row without it, completed, may not be returned: it is not admitted, not plausible or not
valid. A change is harmful if the row without it is admitted and farther inside the decision. `prune` reverts changes
that are not needed, in the order of how far inside the decision they leave the row, so harmful ones first: as many at
once as leave a row that may be returned, and again until every change is needed. It also tells which rows still have a
harmful change.
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
    """Write to `best` the rows with the most first changes reverted that may be returned.

    `at` and `column` are the changes that may go alone, row by row in the order of their reversal.
    """
    reverted, place = rows[at], np.arange(at.size) - np.searchsorted(at, at)
    for i in range(1, place.max(initial=-1) + 1):  # the changes before each one
        later = np.flatnonzero(place >= i)
        earlier = later - i
        reverted[later, column[earlier]] = acceptance.factuals[owner[at[later]], column[earlier]]
    reverted[np.arange(at.size), column] = acceptance.factuals[owner[at], column]
    reverted, is_less = _completed(acceptance, reverted, rows[at], owner[at])
    may_go = (place > 0) & is_less & acceptance.admits(reverted, owner[at])
    may_go[may_go] = acceptance.query(reverted[may_go]).wanted[:]
    while may_go.any():  # from the longest
        last = np.flatnonzero(may_go)
        last = last[np.append(at[last[1:]] != at[last[:-1]], True)]
        passes = acceptance.plausible(reverted[last], owner[at[last]]) if at_floor else np.ones(last.size, dtype=bool)
        best[at[last[passes]]] = reverted[last[passes]]
        may_go[last[~passes]] = False
        may_go[np.isin(at, at[last[passes]])] = False
