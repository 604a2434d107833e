"""Search for numbers near a formula of others: ratios in a narrow band, and results with unequal rounding.

Both kinds are soft relations: a counterfactual satisfies those that its factual satisfies.

1. Ratios. A monomial of two or three positive columns, with exponents 1, 2, -1 and -2, lies in a narrow band:
   ``6.2 <= perimeter / radius <= 7``. The band excludes 0.25 % of the rows on each side. On the logarithmic scale it is
   at most `NARROW` times as wide as the same band of one of its columns, as with a correlation of 0.99, and without any
   of its columns it would be at least twice as wide. Columns that are already connected by ratios with fewer factors,
   or by narrower ones, are not connected again. Candidates are screened on small subsets of the rows, because a few per
   cent of wrong rows inflate a variance.
2. Unequal rounding. Most values of a column have fewer decimals than the column: ``4, 3, 3.61, 5``. Equations are
   searched with half of that coarser digit as tolerance (`mcce.plausibility.equations`). Inputs may have been rounded
   as well, so 99 % of the rows must lie within `WIDER` times that tolerance: ``abs(s4 - s1 / s3) <= 0.53``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from mcce.base.arrays import Floats
from mcce.plausibility.equations import CONSTANTS, MOST_TERMS, EquationCandidate, find_candidates
from mcce.plausibility.relations import Relation
from mcce.plausibility.searched_columns import MOST_SOFT, SearchedColumns, values_of

NARROW = 0.15  # largest width of a band, as a share of the width of a column
OUTSIDE = 0.0025  # share of the rows outside a band, on each side
NEEDED = 2.0  # a band without one of its columns is at least this many times as wide
FEWEST_ROWS, FEWEST_VALUES = 100, 30  # rows and distinct values of a column in a ratio
MOST_IN_PAIRS, MOST_IN_TRIPLES = 250, 60  # columns whose ratios are tried
SUBSETS, SUBSET_ROWS = 5, 60
SCREENED = 1.5  # factor by which a band may be wider in the screening
EXPONENTS = {
    size: [each for each in product((1, 2), *[(1, -1, 2, -2)] * (size - 1)) if 1 in map(abs, each)] for size in (2, 3)
}
COARSE = 0.5  # least share of the values that have fewer decimals
MOST_COARSER = 4  # most decimals fewer
WIDER = 1.25  # tolerance, in halves of the coarser digit
LEAST_FIT = 0.9  # least share of the variance of a coarsely rounded column that an equation explains


class NearSearch:
    """The near relations of columns that no other relation explains.

    Parameters
    ----------
    columns : the columns, with the relations found before.
    known : sets of columns connected by equations, kept or proposed.
    """

    def __init__(self, columns: SearchedColumns, known: Sequence[Collection[Hashable]]) -> None:
        self.columns = columns
        names = columns.schema.names
        self.known = [{names.index(name) for name in some} for some in known]
        self.plain = [j for j in columns.leads(columns.numbers) if columns.is_plain(j)]
        self.sample = columns.in_units(columns.sample)

    def soft(self) -> list[Relation]:
        """Return the near relations of the columns."""
        if self.sample.shape[0] < FEWEST_ROWS:
            return []
        return [*self.ratios(), *self.roundings()]

    # ---- ratios

    def ratios(self) -> Iterator[Relation]:
        """Yield ratios in a narrow band, those with the fewest columns and factors first, then the narrowest."""
        of = [j for j in self.plain if self._is_positive(j)]
        if len(of) > MOST_IN_PAIRS:
            return
        logs = np.log(np.where(self.sample[:, of] > 0.0, self.sample[:, of], np.nan))
        widths = np.array([_width(column) for column in logs.T])
        part = {j: j for j in of}  # the first of the columns connected by ratios
        for size in (2, 3):
            if size == 3 and len(of) > MOST_IN_TRIPLES:
                return
            n_tried = len(EXPONENTS[size]) * len(of) ** size
            found = []
            for at, weights in _screened_ratios(logs, size):
                places = [of[k] for k in at]
                widest = float((np.abs(weights) * widths[at]).max())
                width = _width(logs[:, at] @ weights) if len({part[j] for j in places}) == size else np.inf
                if width > NARROW * widest:
                    continue
                without = (_width(logs[:, at] @ np.where(np.arange(size) == k, 0, weights)) for k in range(size))
                if all(each >= NEEDED * width for each in without):
                    found.append((sum(map(abs, weights)), width / widest, places, weights))
            for _, _, places, weights in sorted(found, key=lambda each: each[:2]):
                parts = {part[j] for j in places}
                if len(parts) < size or self._is_known(places):
                    continue
                relation = self._ratio(places, weights, n_tried)
                if relation is not None:
                    part = {j: min(parts) if first in parts else first for j, first in part.items()}
                    yield relation

    def _is_positive(self, j: int) -> bool:
        values = self.sample[~np.isnan(self.sample[:, j]), j]
        enough = values.size >= FEWEST_ROWS and self.columns.n_values[j] >= FEWEST_VALUES
        return bool(enough and (values > 0.0).mean() >= 1.0 - MOST_SOFT)

    def _is_known(self, places: Sequence[int]) -> bool:
        """Return whether equations connect some columns."""
        return any(some.issuperset(places) for some in self.known)

    def _ratio(self, places: Sequence[int], weights: Sequence[int], n_tried: int) -> Relation | None:
        texts = [self.columns.text[j] for j in places]
        if None in texts:
            return None
        n_above = sum(each for each in weights if each > 0)
        if n_above > n_above - sum(weights) > 0 or not n_above:  # fewer factors above than below
            weights = [-each for each in weights]
        above, below = (
            [text for text, weight in zip(texts, weights) for _ in range(sign * weight)] for sign in (1, -1)
        )
        over = f" / {below[0]}" if len(below) == 1 else f" / ({' * '.join(map(str, below))})" if below else ""
        ratio = " * ".join(map(str, above)) + over
        values = np.exp(np.log(self.sample[:, places]) @ np.asarray(weights, dtype=np.float64))
        low, high = _band(values[np.isfinite(values)])
        return self._soft(f"{low} <= {ratio} <= {high}", places, n_tried)

    # ---- unequal rounding

    def roundings(self) -> Iterator[Relation]:
        """Yield columns near an equation of others, of which most values have fewer decimals than the column."""
        coarse = [self._coarser_digit(j) for j in self.plain]
        rows = self.sample[:, self.plain]
        if not np.isfinite(coarse).any() or not 2 <= len(self.plain) <= MOST_IN_PAIRS:
            return
        slack = np.tile(WIDER * 0.5 * np.array(coarse), (rows.shape[0], 1))
        fine = self.columns.n_values[self.plain] >= FEWEST_VALUES
        may_divide = fine & ((rows != 0.0).mean(axis=0) > 0.9)
        candidates = find_candidates(rows, slack, [None] * len(self.plain), may_divide, least_fit=LEAST_FIT)
        n_tried = max(len(self.plain), 2) ** (MOST_TERMS + 1)
        done: set[int] = set()
        for each in sorted(candidates, key=lambda one: (one.n_constants, len(one.inputs), one.text)):
            target = self.plain[each.target]
            if target not in done:
                relation = self._rounding(each, coarse[each.target], n_tried * CONSTANTS**each.n_constants)
                if relation is not None:
                    done.add(target)
                    yield relation

    def _coarser_digit(self, j: int) -> float:
        """Return the coarsest last digit of most values of a column if it is not that of the column; else infinity."""
        decimals = self.columns.features[j].decimals
        values = self.sample[~np.isnan(self.sample[:, j]), j]
        values = values[values != 0.0]
        if decimals is None or values.size < FEWEST_ROWS:
            return np.inf
        for fewer in range(MOST_COARSER, 0, -1):
            scaled = values * 10.0 ** (decimals - fewer)
            if (np.abs(scaled - np.rint(scaled)) < 1e-6).mean() >= COARSE:
                return float(10.0 ** (fewer - decimals))
        return np.inf

    def _rounding(self, candidate: EquationCandidate, digit: float, n_tried: float) -> Relation | None:
        places = [self.plain[k] for k in (*candidate.inputs, candidate.target)]
        texts = [self.columns.text[j] for j in places]
        if None in texts or self._is_known(places):
            return None
        formula = candidate.text.format(*texts[:-1])
        off = np.abs(values_of(formula, self.sample, self.columns.schema) - self.sample[:, places[-1]])
        most = float(np.quantile(off[np.isfinite(off)], 0.99, method="higher"))
        if most > WIDER * 0.5 * digit:
            return None
        shown = formula if " + " not in formula and " - " not in formula else f"({formula})"
        return self._soft(f"abs({texts[-1]} - {shown}) <= {_rounded(most, 2, np.ceil)}", places, n_tried)

    def _soft(self, says: str, places: Sequence[int], n_tried: float) -> Relation | None:
        """Return a near relation if chance does not explain it."""
        made = Relation("near", says, self.columns.names(*places), 0)
        relation = self.columns.checked(made, places, MOST_SOFT)
        if relation is None:
            return None
        chance = self.columns.chance_of_equation(relation, places)
        if chance > self.columns.least(n_tried):
            return None
        return replace(relation, chance=self.columns.adjusted(chance, n_tried))


def _screened_ratios(logs: Floats, size: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield columns and exponents of monomials that hardly vary in a subset of the rows."""
    n, d = logs.shape
    columns = np.array(list(combinations(range(d), size)), dtype=np.intp).reshape(-1, size)
    weights = np.array(EXPONENTS[size], dtype=np.float64)
    pairs = np.triu_indices(size)
    products = (weights[:, pairs[0]] * weights[:, pairs[1]] * np.where(pairs[0] == pairs[1], 1.0, 2.0)).T
    narrow = np.zeros((columns.shape[0], weights.shape[0]), dtype=bool)
    for start in range(SUBSETS):
        rows = logs[np.unique(np.linspace(start, n - SUBSETS + start, SUBSET_ROWS).astype(np.intp))]
        covariance = _covariance(rows)
        scale = np.sqrt(np.diag(covariance))
        variance = covariance[columns[:, pairs[0]], columns[:, pairs[1]]] @ products
        widest = np.full(variance.shape, -np.inf)
        for k in range(size):
            np.maximum(widest, scale[columns[:, k], None] * np.abs(weights[:, k]), out=widest)
        narrow |= variance <= (SCREENED * NARROW * widest) ** 2
    for at, form in zip(*np.nonzero(narrow)):
        yield columns[at].tolist(), list(EXPONENTS[size][form])


def _covariance(rows: Floats) -> Floats:
    """Return the covariance of columns; missing values are replaced by the mean."""
    known = ~np.isnan(rows)
    count = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, rows - np.where(known, rows, 0.0).sum(axis=0) / count, 0.0)
    return np.asarray(centred.T @ centred / rows.shape[0])


def _width(logs: Floats) -> float:
    """Return the width of the band of a column; infinite if too few rows are known."""
    known = logs[~np.isnan(logs)]
    if known.size < FEWEST_ROWS:
        return np.inf
    low, high = np.quantile(known, [OUTSIDE, 1.0 - OUTSIDE])
    return float(high - low)


def _band(values: Floats) -> tuple[str, str]:
    """Return the ends of the band of a ratio, rounded outwards."""
    low = float(np.quantile(values, OUTSIDE, method="lower"))
    high = float(np.quantile(values, 1.0 - OUTSIDE, method="higher"))
    digits = max(2, int(np.ceil(2.0 - np.log10(max(high / low - 1.0, 1e-9)))))
    return _rounded(low, digits, np.floor), _rounded(high, digits, np.ceil)


def _rounded(value: float, digits: int, to: Callable[[float], float]) -> str:
    """Return a positive number with some digits."""
    unit = 10.0 ** (int(np.floor(np.log10(value))) + 1 - digits)
    return f"{to(value / unit) * unit:.{digits}g}"
