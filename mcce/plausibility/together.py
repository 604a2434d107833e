"""Search for values that come together: 0, a code, a missing value or a level, if and only if another column has one.

The chance is one over the number of patterns with as many marked rows. For a soft relation, all patterns count that
differ from the pattern of the other column in as many rows or fewer; for a column of levels, from the pattern of any
set of its levels. At most a fifth of the rarer value may be exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from mcce.base.arrays import Bools, Ints
from mcce.plausibility.relations import Relation
from mcce.plausibility.searched_columns import MOST_SOFT, SearchedColumns, level_text, log_chance, log_choices

FREQUENT, MOST_MARKED = 0.02, 8  # least share of a marked level, and most marked values of a column
MOST_LEVELS = 50  # most levels of a column whose sets of levels are tried


class TogetherSearch:
    """The marked values of some columns, and which of them come together."""

    def __init__(self, columns: SearchedColumns) -> None:
        self.columns, self.features = columns, columns.features
        self.marks = [(j, value) for j in columns.columns for value in self._marked(j)]
        levels = [j for j in columns.varying if not self.features[j].is_numeric]
        self.levels = [j for j in levels if self.features[j].n_levels <= MOST_LEVELS]
        self.n_tried = len(self.marks) * (len(self.levels) + len(self.marks))
        rows = columns.sample
        shown = [np.isnan(rows[:, j]) if np.isnan(value) else rows[:, j] == value for j, value in self.marks]
        self.shown: Bools = np.array(shown, dtype=bool).reshape(len(shown), rows.shape[0]).T
        self.is_level = np.array([self._is_level(j, value) for j, value in self.marks], dtype=bool)

    def exact(self) -> list[Relation]:
        """Return which marked values come together in all rows, with one another and with levels."""
        found: list[Relation] = []
        groups: dict[bytes, int] = {}
        possible = self._possible_levels()
        for place, (j, value) in enumerate(self.marks):
            chance = log_chance(np.bincount(self.shown[:, place], minlength=2))
            if chance > self.columns.least(self.n_tried):
                continue
            is_level = self._is_level(j, value)
            for at in np.flatnonzero(possible[:, place]):
                if self.levels[at] != j:
                    found.extend(self._with_levels(j, value, self.shown[:, place], self.levels[at]))
            first = groups.setdefault(self.shown[:, place].tobytes(), place)
            i, other = self.marks[first]
            if (i in self.levels and not is_level) or (j in self.levels and is_level and not self._is_level(i, other)):
                continue  # found by levels
            if first != place and i != j and (not self.columns.is_explained(i, j) or np.isnan(value)):
                says = self._text_of_coincidence(i, other, j, value)
                found.extend(self._kept(says, (i, j), chance + np.log(2.0)))
        return found

    def soft(self, kept: Sequence[Relation]) -> list[Relation]:
        """Return which marked values come together in nearly all rows, except those in `kept`."""
        if not self.marks:
            return []
        done = {frozenset(self.columns.places(each)) for each in kept}
        found: dict[frozenset[int], Relation] = {}
        for errors, n_sets, columns, marked, says in sorted(self._soft_pairs(), key=lambda each: each[0]):
            pair = frozenset(columns)
            counts = np.bincount(marked, minlength=2)
            if pair in done or pair in found or self.columns.is_explained(*columns):
                continue
            if not 0 < errors <= counts.min() / 5.0:
                continue
            chance = log_choices(marked.size, errors) + np.log(2.0) * n_sets + log_chance(counts)
            relation = self._relation(says(), columns, chance)
            checked = None if relation is None else self.columns.checked(relation, (), MOST_SOFT)
            if checked is not None and checked.exceptions:
                found[pair] = checked
        return list(found.values())

    def _soft_pairs(self) -> Iterator[tuple[int, int, tuple[int, int], Bools, Callable[[], str | None]]]:
        """Yield pairs of a mark and another mark or levels: errors, ways, columns, marked rows, and the text."""
        marks, shown, n = self.marks, self.shown, self.shown.shape[0]
        patterns = {each.tobytes(): place for place, each in reversed(list(enumerate(shown.T)))}
        firsts = sorted(patterns.values())  # one mark of each pattern
        held = shown[:, firsts].astype(np.float32)
        counts = held.sum(axis=0)
        differ = counts[:, None] + counts[None, :] - 2.0 * (held.T @ held)
        for at, to in zip(*np.nonzero(np.triu(differ <= MOST_SOFT * n, 1))):
            (i, value), (j, other) = marks[firsts[at]], marks[firsts[to]]
            if i != j:
                says = partial(self._text_of_coincidence, i, value, j, other)
                yield int(differ[at, to]), 1, (i, j), shown[:, firsts[to]], says
        places = np.flatnonzero(~self.is_level[firsts])
        held = held[:, places]
        for by in self.levels if places.size else ():
            indicators = self._indicators(by)
            total = indicators.sum(axis=0)[:, None]
            with_it = indicators.T @ held
            most = with_it > total / 2.0
            errors = np.minimum(with_it, total - with_it).sum(axis=0)
            n_sets = int((total > 0).sum())
            likely = (errors <= MOST_SOFT * n) & ~most[0] & most.any(axis=0) & (most.sum(axis=0) < n_sets)
            for at in np.flatnonzero(likely):
                place = firsts[places[at]]
                j, value = marks[place]
                if j != by:
                    says = partial(self._text_with_levels, by, np.flatnonzero(most[1:, at]), j, value)
                    yield int(errors[at]), n_sets, (by, j), shown[:, place], says

    def _indicators(self, by: int) -> npt.NDArray[np.float32]:
        """Return the indicators of missing values and of each level of a column; their sums are exact."""
        codes = np.where(np.isnan(self.columns.sample[:, by]), -1.0, self.columns.sample[:, by])
        return (codes[:, None] == np.arange(-1.0, self.features[by].n_levels)).astype(np.float32)

    def _possible_levels(self) -> Bools:
        """Return for each column of levels and mark whether the mark holds in all or none of the rows of each level.

        Marks that are levels have a separate search.
        """
        found = np.zeros((len(self.levels), len(self.marks)), dtype=bool)
        places = np.flatnonzero(~self.is_level)
        shown = self.shown[:, places].astype(np.float32)
        known = [np.isnan(self.marks[k][1]) | ~np.isnan(self.columns.sample[:, self.marks[k][0]]) for k in places]
        shown_or_not = np.array(known, dtype=np.float32).reshape(shown.T.shape).T
        for at, by in enumerate(self.levels if places.size else ()):
            levels = self._indicators(by)[:, 1:].T
            with_it = levels @ shown
            found[at, places] = ~((with_it > 0) & (with_it < levels @ shown_or_not)).any(axis=0)
        return found

    def _text_with_levels(self, by: int, codes: Ints, j: int, value: float) -> str | None:
        """Return the text that a value occurs with some levels of another column."""
        texts = [level_text(self.features[by], int(code)) for code in codes]
        one, has = self.columns.text[by], self._has(j, value)
        if None in texts or one is None or has is None:
            return None
        where = f"{one} == {texts[0]}" if len(texts) == 1 else f"{one} in [{', '.join(map(str, texts))}]"
        return f"if {where} then {has[0]} else {has[1]}"

    def _with_levels(self, j: int, value: float, marked: Bools, by: int) -> Iterator[Relation]:
        """Yield the relation that a value occurs with some levels of another column, and with no others."""
        codes = self.columns.sample[:, by]
        known = ~np.isnan(codes)
        if not np.isnan(value):
            known &= ~np.isnan(self.columns.sample[:, j])
        total = np.bincount(codes[known].astype(np.intp), minlength=self.features[by].n_levels)
        with_it = np.bincount(codes[known & marked].astype(np.intp), minlength=self.features[by].n_levels)
        mixed = (with_it > 0) & (with_it < total)
        if mixed.any() or not with_it.any() or (with_it == total).all() or self.columns.is_explained(by, j):
            return
        chance = log_chance(np.array([with_it.sum(), total.sum() - with_it.sum()])) + np.log(2.0) * (total > 0).sum()
        says = self._text_with_levels(by, np.flatnonzero(with_it > 0), j, value)
        yield from self._kept(says, (by, j), chance)

    def _text_of_coincidence(self, i: int, value: float, j: int, other: float) -> str | None:
        one, two = self._has(i, value), self._has(j, other)
        return None if one is None or two is None else f"if {one[0]} then {two[0]} else {two[1]}"

    def _has(self, j: int, value: float) -> tuple[str, str] | None:
        """Return the texts that a column has a marked value, and that it does not; None if rules cannot express it."""
        name = self.columns.text[j]
        if name is None:
            return None
        if np.isnan(value):
            return f"missing({name})", f"not missing({name})"
        text = level_text(self.features[j], int(value)) if self._is_level(j, value) else f"{value:g}"
        return None if text is None else (f"{name} == {text}", f"{name} != {text}")

    def _is_level(self, j: int, value: float) -> bool:
        return not self.columns.is_number(j) and not np.isnan(value)

    def _kept(self, says: str | None, columns: tuple[int, int], chance: float) -> Iterator[Relation]:
        """Yield a relation that holds in all rows and that chance does not explain."""
        relation = self._relation(says, columns, chance)
        if relation is not None and self.columns.is_kept(relation):
            yield relation

    def _relation(self, says: str | None, columns: tuple[int, int], chance: float) -> Relation | None:
        """Return a relation unless chance explains it, or rules cannot express it."""
        if says is None or chance > self.columns.least(self.n_tried):
            return None
        adjusted = self.columns.adjusted(chance, self.n_tried)
        return Relation("together", says, self.columns.names(*columns), self.columns.matrix.shape[0], adjusted)

    def _marked(self, j: int) -> list[float]:
        """Return the marked values of a column: 0, codes, frequent levels, and NaN."""
        column = self.columns.sample[:, j]
        found = [np.nan] if np.isnan(column).any() and not np.isnan(column).all() else []
        if j in self.columns.codes:
            found += [value for value in (0.0, *sorted(self.columns.codes[j])) if (column == value).any()]
        if not self.columns.is_number(j) and j in self.columns.varying:
            counts = np.bincount(column[~np.isnan(column)].astype(np.intp), minlength=self.features[j].n_levels)
            frequent = np.flatnonzero(counts >= FREQUENT * column.size)
            found += frequent[np.argsort(-counts[frequent], kind="stable")][:MOST_MARKED].astype(float).tolist()
        return found
