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
from mcce.report.languages import Texts, read_texts
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

    def text(self, names: Names, texts: Texts | None = None) -> str:
        """Return the range in words, English unless texts of a language are given."""
        texts = read_texts() if texts is None else texts
        parts = self._levels(names, texts) if self.levels else self._ends(names, texts)
        parts += [names.text(self.feature, float("nan"))] if self.missing else []
        return texts.listed(parts, "or")

    def _ends(self, names: Names, texts: Texts) -> list[str]:
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
        return [texts.say("range.between", low=low, high=names.pair(self.feature, self.low, self.high)[1])]

    def _levels(self, names: Names, texts: Texts) -> list[str]:
        told = [names.text(self.feature, level) for level in self.levels]
        if self.low is not None and len(told) > 2:
            return [texts.say("range.between", low=told[0], high=told[-1])]
        if len(told) > MOST_LISTED:
            n_others = len(told) - MOST_LISTED + 1
            return [*told[: MOST_LISTED - 1], texts.say("range.others", n=names.count(n_others))]
        return told


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
            f"{text} Not all values within have the wanted decision: {self._percent()}% of those tried have it, among "
            f"them {self._at()}, which the prediction is for."
        )

    def for_person(self, texts: Texts) -> str:
        """Return the note for the person whom the decision is about, in a language; nothing if no range is told."""
        if not self.changed:
            return ""
        kept = texts.listed([f"{label} {text}" for label, text in self.kept])
        such_as = texts.listed([f"{label} {text}" for label, text in self.changed])
        within = "range.within_kept" if kept else "range.within"
        holds = "range.all" if self.stays_valid == 1.0 else "range.some"
        filled = {"changes": such_as} if self.stays_valid == 1.0 else {"changes": such_as, "percent": self._percent()}
        people = {"k": self.k, "kept": kept} if kept else {"k": self.k}
        return f"{texts.say(within, len(self.changed), **people)} {texts.say(holds, **filled)}"

    def _at(self) -> str:
        return _pairs(self.changed)

    def _percent(self) -> int:
        return min(max(round(100 * self.stays_valid), 1), 99)


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return listed([f"{label} {text}" for label, text in pairs])


def _plural(n: int, one: str, several: str) -> str:
    return one if n == 1 else several
