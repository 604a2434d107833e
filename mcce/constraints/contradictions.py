"""Contradictions: constraints that nothing can meet for a factual, found before anything is drawn.

1. A value that has to stay (fixed, or kept by a constraint) breaks a limit of its own feature.
2. The limits on a mutable feature leave nothing: no level, no number inside the training range.
3. A rule names only values that have to stay, and does not hold for them.
4. A rule names one feature more, and what it leaves of that feature is nothing.

A factual with a contradiction is named with the constraints and the reason; if all have one, that is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce.arrays import Bools, Floats
from mcce.constraints.applying import Applied, within_of
from mcce.constraints.rules import ResolvedRule
from mcce.exceptions import spell
from mcce.samplers.within import Within
from mcce.table import Feature, Schema
from mcce.table.grid import common_multiple, is_multiple, put_on_multiples


def find_contradictions(
    schema: Schema,
    applied: Sequence[Applied],
    rules: Sequence[ResolvedRule],
    stays: Bools,
    factuals: Floats,
    index: pd.Index[Any],
) -> pd.DataFrame:
    """Return the contradictions of some factuals: by id, the constraint and the reason.

    Parameters
    ----------
    schema : Schema
    applied : limits, and the rows that they apply to
    rules : what has to hold for rows
    stays : which values have to stay, factuals by columns
    factuals, index : encoded rows, all columns in data order, and their ids
    """
    found = _Found(schema, applied, rules, stays, factuals, index)
    found.look_at_limits()
    found.look_at_rules()
    return found.table()


class _Found:
    def __init__(
        self,
        schema: Schema,
        applied: Sequence[Applied],
        rules: Sequence[ResolvedRule],
        stays: Bools,
        factuals: Floats,
        index: pd.Index[Any],
    ) -> None:
        self.schema = schema
        self.applied = applied
        self.rules = rules
        self.stays = stays
        self.factuals = factuals
        self.index = index
        self.rows: list[tuple[int, str, str]] = []

    def table(self) -> pd.DataFrame:
        self.rows.sort(key=lambda row: row[0])
        frame = pd.DataFrame(
            {
                "constraint": pd.Series([text for _, text, _ in self.rows], dtype=object),
                "reason": pd.Series([reason for _, _, reason in self.rows], dtype=object),
            }
        )
        frame.index = self.index[[i for i, _, _ in self.rows]].rename("id")
        return frame

    def own(self, i: int, column: int) -> str:
        """Return a factual's value in words."""
        feature = self.schema.features[column]
        if np.isnan(self.factuals[i, column]):
            return f"{feature.name} is missing"
        value = feature.decode(self.factuals[[i], column])[0]
        return f"{feature.name} is {spell(value) if isinstance(value, str) else value}"

    def look_at_limits(self) -> None:
        """Look for values and limits that leave nothing (steps 1 and 2)."""
        for column in sorted({limit.column for limit, _ in self.applied}):
            feature = self.schema.features[column]
            own = self.factuals[:, column]
            within = within_of(column, feature, self.factuals, self.applied)
            stays = self.stays[:, column]
            possible = np.where(stays, within.allows(own), something_left(within, feature, own))
            for i in np.flatnonzero(~possible).tolist():
                texts = self.texts(i, column)
                how = f"{self.own(i, column)} and has to stay" if stays[i] else self.own(i, column)
                self.rows.append((i, texts, f"{how}, but nothing that it may be is allowed by: {texts}"))

    def texts(self, i: int, column: int) -> str:
        """Return the constraints on a feature that apply to a factual, in words."""
        applied = (limit.text for limit, rows in self.applied if limit.column == column and (rows is None or i in rows))
        return "; ".join(dict.fromkeys(applied))

    def look_at_rules(self) -> None:
        """Look for rules that cannot hold (steps 3 and 4)."""
        for rule in self.rules:
            changes = [column for column in rule.columns if not self.stays[:, column].all()]
            n_open = (~self.stays[:, list(rule.columns)]).sum(axis=1)
            settled = np.flatnonzero(n_open == 0)
            broken = settled[~rule.holds(self.factuals[settled], self.factuals[settled])]
            for i in broken.tolist():
                values = ", ".join(self.own(i, column) for column in rule.columns)
                self.rows.append((i, rule.text, f"{values} and may not change, which breaks: {rule.text}"))
            for column in changes:
                rows = np.flatnonzero((n_open == 1) & ~self.stays[:, column])
                if rows.size:
                    self.look_at_last(rule, column, rows)

    def look_at_last(self, rule: ResolvedRule, column: int, rows: Any) -> None:
        """Step 4 for the factuals for which a rule leaves one column open."""
        factuals = self.factuals[rows]
        ruled = rule.within_for(column, factuals, factuals)
        if ruled is None:
            return
        feature = self.schema.features[column]
        within = within_of(column, feature, self.factuals, self.applied).take(rows) & ruled
        for i in rows[~something_left(within, feature, factuals[:, column])].tolist():
            others = ", ".join(self.own(i, other) for other in rule.columns if other != column) or "whatever it is"
            texts = "; ".join(filter(None, [rule.text, self.texts(i, column)]))
            self.rows.append((i, texts, f"{others}, and no value of {feature.name} is allowed by: {texts}"))


def something_left(within: Within, feature: Feature, own: Floats) -> Bools:
    """Return for which factuals a restriction leaves their own value, or something that the training data have."""
    n = own.size
    left = within.allows(own) | (within.allows_missing(n) & feature.has_missing)
    if not feature.is_numeric:
        return np.asarray(left | within.level_mask(n, feature.n_levels).any(axis=1))
    low, high = within.bounds(n)
    low, high = np.maximum(low, feature.low), np.minimum(high, feature.high)
    step = np.full(n, np.nan) if within.step is None else within.step.copy()
    if feature.decimals is not None:
        point = 10.0**-feature.decimals
        for each in np.unique(step[~np.isnan(step)]):
            step[step == each] = common_multiple(each, point)
        step[np.isnan(step)] = point
    stepped = ~np.isnan(step)
    first, last = put_on_multiples(low, step, low, high), put_on_multiples(high, step, low, high)
    with np.errstate(invalid="ignore"):
        n_points = np.where(stepped, np.rint((last - first) / step) + 1.0, np.where(low < high, np.inf, low == high))
    n_points = np.where(np.isnan(n_points), 0.0, n_points)
    if within.never is not None:
        for j in range(within.never.shape[1]):
            value = within.never[:, j]
            repeated = (within.never[:, :j] == value[:, None]).any(axis=1)
            n_points -= (value >= low) & (value <= high) & (is_multiple(value, step) | ~stepped) & ~repeated
    return np.asarray(left | (n_points > 0.0))
