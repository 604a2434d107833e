"""Ranges in place of single values, and how they are told.

A counterfactual that has to be shared by k training people (`mcce.k_anonymous`) is told with ranges of numbers and
dates, and with several levels: "salary between 52,000 and 60,000 EUR", "job nurse or clerk". A sentence after it says
whether the decision holds all over the ranges, and which values it was asked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from mcce.base.checks import is_whole
from mcce.report.names import BEFORE, Names, listed
from mcce.storage.fields import stored
from mcce.storage.state import stateful

MOST_LISTED = 5  # levels in a sentence


@stateful("ToldRange")
@dataclass(frozen=True)
class ToldRange:
    """A cell of a counterfactual that is told as a range or as several levels.

    Attributes
    ----------
    row : the place of its row in the frame.
    feature : its column.
    low, high : the ends, of numbers, dates and ordered levels.
    levels : all levels in it; none of numbers and dates.
    missing : whether a missing value is in it.
    """

    row: int = stored(int, least=0)
    feature: Hashable = stored(Hashable)
    low: Any = None
    high: Any = None
    levels: tuple[Any, ...] = stored(tuple, default=())
    missing: bool = stored(bool, default=False)

    def text(self, names: Names) -> str:
        """Return the range in words."""
        parts = self._levels(names) if self.levels else self._ends(names)
        parts += [names.text(self.feature, float("nan"))] if self.missing else []
        return _either(parts)

    def _ends(self, names: Names) -> list[str]:
        if self.low is None:
            return []
        if self.low == self.high:
            return [names.pair(self.feature, None, self.low)[1]]
        if is_whole(self.low) and is_whole(self.high) and self.high - self.low == 1:
            return [names.text(self.feature, self.low, unit=False), names.text(self.feature, self.high)]
        if self.feature not in names.exact:  # an end that is rounded inwards would leave out who is at it
            names = replace(names, exact={**names.exact, self.feature: "float64"})
        both = names.units.get(self.feature) in BEFORE
        low = names.pair(self.feature, self.high, self.low, unit=both)[1]
        return [f"between {low} and {names.pair(self.feature, self.low, self.high)[1]}"]

    def _levels(self, names: Names) -> list[str]:
        texts = [names.text(self.feature, level) for level in self.levels]
        if self.low is not None and len(texts) > 2:
            return [f"between {texts[0]} and {texts[-1]}"]
        if len(texts) > MOST_LISTED:
            return [*texts[: MOST_LISTED - 1], f"one of {len(texts) - MOST_LISTED + 1} others"]
        return texts


def _either(parts: Sequence[str]) -> str:
    """Return texts as a sentence has them: "a", "a or b", "a, b or c"."""
    return " or ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def generalised_table(told: Sequence[ToldRange], frame: pd.DataFrame, own: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each range: id, rank, feature, the factual's own value, low, high, levels, missing."""
    at = [each.row for each in told]
    values = [own[each.feature].astype(object).iloc[each.row] for each in told]
    return pd.DataFrame(
        {
            "id": frame.index.get_level_values("id")[at],
            "rank": frame.index.get_level_values("rank")[at],
            "feature": pd.Series([each.feature for each in told], dtype=object),
            "from": pd.Series(values, dtype=object),
            "low": pd.Series([each.low for each in told], dtype=object),
            "high": pd.Series([each.high for each in told], dtype=object),
            "levels": pd.Series([", ".join(map(str, each.levels)) for each in told], dtype=object),
            "missing": pd.Series([each.missing for each in told], dtype=bool),
        }
    )


@dataclass(frozen=True)
class RangeNote:
    """The facts about the ranges of one counterfactual.

    Attributes
    ----------
    k : how many people have to be within them.
    changed : for each range of a changed feature, its label and the value that the model was asked at, in words.
    kept : for each range of a feature that does not change, its label and the range in words.
    stays_valid : the share of the values tried that have the wanted decision.
    """

    k: int
    changed: tuple[tuple[str, str], ...]
    kept: tuple[tuple[str, str], ...]
    stays_valid: float

    def sentence(self) -> str:
        """Return the note for the analyst."""
        kept = (
            f"with {_pairs(self.kept)}, which {_plural(len(self.kept), 'does', 'do')} not change" if self.kept else ""
        )
        if not self.changed:
            return f"At least {self.k} training people share it, {kept}."
        ranges = _plural(len(self.changed), "this range", "these ranges")
        text = f"At least {self.k} training people are within {ranges}{f', {kept}' if kept else ''}."
        if self.stays_valid == 1.0:
            return f"{text} All values tried within have the wanted decision; the prediction is that for {self._at()}."
        return (
            f"{text} Not all values within have the wanted decision: {self._share()} of those tried have it, among "
            f"them {self._at()}, which the prediction is for."
        )

    def for_person(self) -> str:
        """Return the note for the person whom the decision is about; nothing if no range is told."""
        if not self.changed:
            return ""
        ranges = _plural(len(self.changed), "this range", "these ranges")
        about = f"with {_pairs(self.kept)}" if self.kept else "so that it points to no single one of them"
        text = f"At least {self.k} known people are within {ranges}, {about}."
        if self.stays_valid == 1.0:
            return f"{text} All values within that were tried would have led to it, such as {self._at()}."
        return (
            f"{text} Not all values within would have led to it: {self._share()} of those that were tried would, such "
            f"as {self._at()}."
        )

    def _at(self) -> str:
        return _pairs(self.changed)

    def _share(self) -> str:
        percent = round(100 * self.stays_valid)
        return f"{min(max(percent, 1), 99)}%"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return listed([f"{label} {text}" for label, text in pairs])


def _plural(n: int, one: str, several: str) -> str:
    return one if n == 1 else several
