"""The words of the explorer, for readers who know the people but not the method.

1. Figures, measures and reasons of a result are translated here.
2. Other texts, such as errors and warnings, contain the names of features and levels in the data. `relabel` replaces
   them by those of the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pandas as pd

from mcce.plausibility.stop_reasons import AT_LEVEL, DURATION, FALLS, UNSPECIFIC, UNUSUAL_DIRECTION
from mcce.report.names import Names, value_text
from mcce.report.reasons import NO_ROOM, NONE_ALIKE, NONE_ALIKE_WANTED
from mcce.report.suspicious import BELOW
from mcce.table import Schema

FIGURES = {
    "factuals": "refused people",
    "explained": "with a plan",
    "unexplained": "without a plan",
    "mean L0": "changes in a plan, on average",
    "mean gower": "distance of a plan, on average (0: nothing changes, 1: everything differs as much as possible)",
    "mean plausibility": "plausibility of a plan, on average",
    "rows below the floor of plausibility": "plans that are less plausible than required",
    "same changed features if drawn again": "people whose plan changes the same features when the search is repeated",
    "copies of training rows": "plans that are equal to a row of the training data",
}
MEASURES = {
    "L0": "changes",
    "gower": "distance",
    "distance": "distance to real people",
    "plausibility": "plausibility",
    "explained": "with a plan",
    "above_floor": "as plausible as required",
    "rows_queried": "queries of the model for each person",
}
SHARES = ("plausibility", "explained", "above_floor")  # measures that are shares
SHARES_IN_FIGURES = ("mean plausibility", "same changed features if drawn again")
CAUTIONS = {
    BELOW: "less plausible than required",
    UNUSUAL_DIRECTION: "a change opposite to the usual direction",
    FALLS: "education or a duration falls",
    DURATION: "a duration that grows by years",
    AT_LEVEL: "a number that people of that group do not have",
    UNSPECIFIC: 'a change to "other" or "unknown"',
}


def measure_text(name: str, value: Any, shares: Collection[str] = SHARES) -> str:
    """Return a measure, or a figure with other names of shares, as text; empty if missing."""
    if pd.isna(value):
        return ""
    return share_text(float(value)) if name in shares else value_text(value, 3)


def interval_text(name: str, mean: float, low: float, high: float) -> str:
    middle, begin, end = (measure_text(name, value) for value in (mean, low, high))
    return f"{middle} ({begin} to {end})" if begin and end else middle


def share_text(share: float) -> str:
    """Return a share in per cent, small ones with a decimal."""
    return f"{100 * share:.{1 if share < 0.1 else 0}f}".removesuffix(".0") + "%"


def reason_text(reason: str, fixed: str) -> str:
    """Return why there is no plan; `fixed` lists the fixed features."""
    if reason.startswith(NO_ROOM):
        return f"no row can meet all limits{reason.removeprefix(NO_ROOM)}"
    if NONE_ALIKE in reason:
        return f"no person in the training data has the same {fixed}"
    if NONE_ALIKE_WANTED in reason:
        return f"no person in the training data with the same {fixed} has the wanted decision"
    tried = re.match(r"none of the (\d+) candidates", reason)
    if tried is None:
        return reason
    return f"none of the {int(tried[1]):,} rows tried has the wanted decision and satisfies all limits"


def relabel(schema: Schema, names: Names) -> Callable[[str], str]:
    """Return a function that replaces features, and quoted levels, in a text by the names of the page."""
    called: dict[str, str] = {}
    for feature in schema.features:
        called |= _differing({str(feature.name): names.label(feature.name)})
        if feature.levels is not None:
            called |= _differing({f"'{level}'": f"'{names.text(feature.name, level)}'" for level in feature.levels})
    if not called:
        return str
    known = "|".join(sorted(map(re.escape, called), key=len, reverse=True))
    return lambda text: re.sub(rf"(?<!\w)(?:{known})(?!\w)", lambda found: called[found[0]], text)


def _differing(texts: Mapping[str, str]) -> dict[str, str]:
    return {before: after for before, after in texts.items() if before != after}
