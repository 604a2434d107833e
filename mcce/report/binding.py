"""What each constraint does, in the words of a reader: for a page and a terminal alike."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from mcce.report.words import value_text

NEARLY_ALL = 0.995  # more would be rounded to all of the draws


class Bound(NamedTuple):
    """One constraint: what was asked, how much it asks of draws that do not know it, and what passed it."""

    asked: str
    breaks: str
    passed: str


def binding_words(constraints: pd.DataFrame | None) -> list[Bound]:
    """Return the rows of `Counterfactuals.constraints` in words; none if there are no constraints.

    Parameters
    ----------
    constraints : DataFrame or None
        `breaks`, `tried` and `passed`, by constraint.
    """
    if constraints is None:
        return []
    rows = zip(constraints.index, constraints["breaks"], constraints["tried"], constraints["passed"])
    return [
        Bound(str(asked), _share_text(breaks), _passed_text(tried, passed)) for asked, breaks, tried, passed in rows
    ]


def binding_lines(constraints: pd.DataFrame | None) -> list[str]:
    """Return one line for each constraint."""
    return [
        f"{each.asked}: broken by {each.breaks} of the free draws; rows that could go on: {each.passed}"
        for each in binding_words(constraints)
    ]


def _share_text(share: float) -> str:
    if pd.isna(share):
        return "an unknown share"
    if share in (0.0, 1.0):
        return "all" if share else "none"
    return "over 99%" if share >= NEARLY_ALL else "under 1%" if share < 1 - NEARLY_ALL else f"{100 * share:.0f}%"


def _passed_text(tried: float, passed: float) -> str:
    if pd.isna(tried) or not tried:
        return "none came to it"
    tried, passed = int(tried), int(passed)
    if passed == tried:
        return f"all of {value_text(tried)}"
    return f"{value_text(passed)} of {value_text(tried)}"
