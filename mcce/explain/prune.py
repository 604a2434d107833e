"""Every change is needed, and none makes the decision worse.

A change is needed if the row without it, completed, may not be returned: it is not admitted, not plausible or not
valid. A change is harmful if the row without it is admitted and farther inside the decision. `prune` reverts changes
that are not needed one by one, harmful ones first and then the one that leaves the row farthest inside the decision,
until every change is needed; it also tells which rows still have a harmful change.
"""

from __future__ import annotations

import numpy as np

from mcce._utils import Bools, Floats, Ints
from mcce.explain.acceptance import Acceptance

ROUNDING = 1e-12  # of margins


def without_one(acceptance: Acceptance, rows: Floats, owner: Ints) -> tuple[Ints, Floats]:
    """Return, for every change of every row, the row without it, completed; and the position of the row.

    Rows that do not change less are left out: reverting a column that an equation determines changes another one.
    """
    is_changed = acceptance.changes(rows, owner)
    at, column = np.nonzero(is_changed)
    reverted = rows[at]
    reverted[np.arange(at.size), column] = acceptance.factuals[owner[at], column]
    reverted = acceptance.complete(reverted, owner[at])
    is_less = acceptance.changes(reverted, owner[at]).sum(axis=1) < is_changed.sum(axis=1)[at]
    return at[is_less], reverted[is_less]


def prune(acceptance: Acceptance, rows: Floats, owner: Ints, *, at_floor: bool = True) -> tuple[Floats, Bools]:
    """Return valid rows without changes that are not needed, and which of them still have a harmful change."""
    rows, is_harmed = rows.copy(), np.zeros(len(rows), dtype=bool)
    open_rows = np.arange(len(rows))
    while open_rows.size:
        part, part_owner = rows[open_rows], owner[open_rows]
        at, reverted = without_one(acceptance, part, part_owner)
        answer = acceptance.query(reverted)
        margin = acceptance.query(part).margin
        with np.errstate(invalid="ignore"):
            gain = answer.margin - margin[at]
        admitted = acceptance.admits(reverted, part_owner[at])
        harms = admitted & (gain > ROUNDING)
        may_go = admitted & answer.wanted
        if at_floor:
            may_go[may_go] = acceptance.plausible(reverted[may_go], part_owner[at][may_go])
        is_harmed[open_rows] = np.bincount(at[harms], minlength=len(part)) > 0
        best = _best_of_each(at, may_go, np.where(np.isnan(gain), 0.0, gain))
        goes = at[best]
        rows[open_rows[goes]] = reverted[best]
        open_rows = open_rows[goes]
    return rows, is_harmed


def _best_of_each(at: Ints, may_go: Bools, gain: Floats) -> Ints:
    """Return, for each row with a change that may go, the position of the best of them; ties go to the first."""
    allowed = np.flatnonzero(may_go)
    order = allowed[np.lexsort((allowed, -gain[allowed], at[allowed]))]
    _, first = np.unique(at[order], return_index=True)
    return np.asarray(order[first])
