"""What a user should know about a training table before it is learned from.

1. A column that looks like an identifier: nearly every row has a value of its own, of text, or of whole numbers that
   run on (one after the other, or rising from row to row). Advice to change it is none, and it teaches nothing.
2. A level of a feature that may change, seen in one training row only: nothing is learned of it, and a counterfactual
   that takes it points at one person.

Each is said once for all columns. Tables of fewer than 200 rows are left alone: there such things are nothing unusual.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from mcce.arrays import Floats
from mcce.exceptions import spell, warn
from mcce.table.dtypes import is_dated
from mcce.table.feature import Feature
from mcce.table.schema import Table

FEWEST_ROWS = 200
DISTINCT = 0.95  # share of the values that differ from all others
PEEK = 200  # rows that settle most columns
SHOWN = 5


def warn_of_columns(table: Table, fixed: Sequence[Hashable]) -> None:
    """Warn of identifiers and of levels seen once in a training table."""
    if table.n_rows < FEWEST_ROWS:
        return
    names = {f.name: what for j, f in enumerate(table.features) if (what := _identifies(f, table.matrix[:, j]))}
    if names:
        found = ", ".join(f"{name!r} ({what})" for name, what in list(names.items())[:SHOWN])
        first = next(iter(names))
        warn(
            f"X has columns that look like identifiers: {found}{_more(len(names) - SHOWN)}. To change one is no "
            f"advice, and nothing can be learned from it. Leave it out of X and of the model's features; as the index, "
            f"X.set_index({first!r}), it names the rows."
        )
    rare = [
        (f, levels)
        for j, f in enumerate(table.features)
        if not f.is_numeric and f.name not in (*fixed, *names) and (levels := _seen_once(f, table.matrix[:, j]))
    ]
    if rare:
        found = "; ".join(f"{f.name!r}: {', '.join(levels[:SHOWN])}{_more(len(levels) - SHOWN)}" for f, levels in rare)
        warn(
            f"X has levels that one row only has, {found}. Nothing can be learned of them, and a counterfactual with "
            f"such a level points at one person. Join them with others, or forbid them, as in "
            f"mcce.allow({rare[0][0].name!r}, never=[{rare[0][1][0]}])."
        )


def _identifies(feature: Feature, column: Floats) -> str | None:
    """Return why a column looks like an identifier, None if it does not."""
    values = column[~np.isnan(column)]
    if values.size < FEWEST_ROWS or is_dated(feature.dtype) or (feature.is_numeric and feature.decimals != 0):
        return None
    if np.unique(values[:PEEK]).size < DISTINCT * min(PEEK, values.size):
        return None
    n_distinct = np.unique(values).size
    if n_distinct < DISTINCT * values.size:
        return None
    if not feature.is_numeric:
        return f"{n_distinct} levels in {column.size} rows"
    one_after_the_other = feature.span < 2 * n_distinct
    rising = bool((np.diff(values) > 0).all() or (np.diff(values) < 0).all())
    runs = "one after the other" if one_after_the_other else "in order"
    return f"{n_distinct} whole numbers in {column.size} rows, {runs}" if one_after_the_other or rising else None


def _seen_once(feature: Feature, column: Floats) -> list[str]:
    assert feature.levels is not None
    counts = np.bincount(column[~np.isnan(column)].astype(np.intp), minlength=feature.n_levels)
    return [spell(feature.levels[code]) for code in np.flatnonzero(counts == 1).tolist()]


def _more(n: int) -> str:
    return f" and {n} more" if n > 0 else ""
