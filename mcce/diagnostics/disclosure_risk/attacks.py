"""Singling out, linkability and inference: attacks with released rows, on training rows and on control rows.

As in anonymeter (Giomi, Boenisch, Wehmeyer and Tasnadi 2023, "A unified framework for quantifying privacy risk in
synthetic data"). Successes are counted on training rows, on equally many control rows, and for random guesses (the
baseline); `rates` computes the risk.

1. Singling out. A query is a conjunction of conditions that exactly one released row satisfies; it succeeds if exactly
   one training row satisfies it. Several columns: conditions from a released row (>= its number above the median, <=
   otherwise, its level, missing). One column: extreme numbers, and values of a single released row. The baseline uses
   random conditions.
2. Linkability. The columns are split in two. The attack succeeds if a released row is among the nearest of a person by
   both halves.
3. Inference. The secret is guessed from the released row that is nearest in the known columns; a level must be equal, a
   number within 5 per cent.

Queries are not independent, so singling out is tested by permuting training and control rows, the other attacks by
Fisher's test. Unlike anonymeter, relative errors divide by the size of the guess, and both tables have as many rows.
Distances are Gower's, with the ranges of the training rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.diagnostics.disclosure_risk.rates import Estimate, Rate, chance_ahead, risk, wilson
from mcce.diagnostics.neighbours import find_nearest
from mcce.rng import hash_rows
from mcce.table import Feature
from mcce.table.dtypes import is_dated

TOLERANCE = 0.05  # relative error of a guessed number
N_SHUFFLES = 199  # permutations of training and control rows
MOST_TRIES = 20  # attempts per query
COMPARISONS: dict[str, Callable[[Floats, float], Bools]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "missing": lambda column, _: np.isnan(column),
    "known": lambda column, _: ~np.isnan(column),
}

Query = tuple[tuple[int, str, float], ...]


@dataclass(frozen=True)
class Attack:
    """Rates of an attack on training rows, on control rows, and of its baseline.

    `chance` is the p-value of the excess of successes on training rows over the control.
    """

    attack: Rate
    control: Rate
    baseline: Rate
    chance: float

    @classmethod
    def of_people(cls, right: Bools, on_control: Bools, by_chance: Bools, confidence: float) -> Attack:
        """Return the rates of independent attacks on single people, given the released rows."""
        attack, control, baseline = (
            wilson(int(each.sum()), each.size, confidence) for each in (right, on_control, by_chance)
        )
        chance = chance_ahead(int(right.sum()), right.size, int(on_control.sum()), on_control.size)
        return cls(attack, control, baseline, chance)

    @property
    def risk(self) -> Estimate:
        """The excess of the attack over the control."""
        return risk(self.attack, self.control)

    @property
    def is_worthless(self) -> bool:
        """Whether the attack is not better than guessing, and so gives no evidence."""
        return self.attack.middle <= self.baseline.middle


def count_matches(query: Query, table: Floats) -> int:
    return int(_matching_rows([query], table).sum())


def distinct_rows(table: Floats) -> Floats:
    return np.asarray(table[np.sort(np.unique(hash_rows(table), return_index=True)[1])])


def queries_of_rows(
    released: Floats, features: Sequence[Feature], n: int, n_columns: int, rng: np.random.Generator
) -> list[Query]:
    """Return up to `n` queries on several columns that single out a released row."""
    known = [~np.isnan(released[:, j]) for j in range(released.shape[1])]
    medians = [float(np.median(released[held, j])) if held.any() else np.nan for j, held in enumerate(known)]
    found: dict[Query, None] = {}
    for _ in range(MOST_TRIES * n):
        row = released[rng.integers(released.shape[0])]
        columns = np.sort(rng.choice(released.shape[1], size=min(n_columns, released.shape[1]), replace=False))
        query = tuple((int(j), _comparison(row[j], medians[j], features[j]), float(row[j])) for j in columns)
        if query not in found and count_matches(query, released) == 1:
            found[query] = None
        if len(found) == n:
            break
    return list(found)


def _comparison(value: float, median: float, feature: Feature) -> str:
    if np.isnan(value):
        return "missing"
    if not feature.is_numeric:
        return "=="
    return ">=" if value > median else "<="


def queries_of_columns(released: Floats, features: Sequence[Feature], n: int, rng: np.random.Generator) -> list[Query]:
    """Return up to `n` queries on one column that single out a released row."""
    queries: list[Query] = []
    for j, feature in enumerate(features):
        values, counts = np.unique(released[:, j], return_counts=True)
        values, counts = values[~np.isnan(values)], counts[: (~np.isnan(values)).sum()]
        queries.append(((j, "missing", np.nan),))
        if feature.is_numeric and values.size:
            queries += [((j, "<=", float(values[0])),), ((j, ">=", float(values[-1])),)]
        queries += [((j, "==", float(value)),) for value in values[counts == 1]]
    order = rng.permutation(len(queries))
    return [queries[i] for i in order if count_matches(queries[i], released) == 1][:n]


def random_queries(
    released: Floats, features: Sequence[Feature], n: int, n_columns: int, rng: np.random.Generator
) -> list[Query]:
    """Return queries with random values and comparisons, for the baseline."""
    values = [np.unique(released[:, j]) for j in range(released.shape[1])]
    queries = []
    for _ in range(n):
        parts = []
        for j in rng.choice(released.shape[1], size=min(n_columns, released.shape[1]), replace=False):
            value = float(rng.choice(values[j]))
            allowed = ["==", "!=", ">", "<", ">=", "<="] if features[j].is_numeric else ["==", "!="]
            parts.append((int(j), str(rng.choice(["missing", "known"] if np.isnan(value) else allowed)), value))
        queries.append(tuple(parts))
    return queries


def singling_out(
    released: Floats,
    training: Floats,
    control: Floats,
    features: Sequence[Feature],
    *,
    n_attacks: int,
    n_columns: int,
    rng: np.random.Generator,
    confidence: float,
) -> Attack:
    """Attack by queries on `n_columns` columns; training and control should have equally many rows."""
    rows, people, others = (distinct_rows(table) for table in (released, training, control))
    if n_columns == 1:
        queries = queries_of_columns(rows, features, n_attacks, rng)
    else:
        queries = queries_of_rows(rows, features, n_attacks, n_columns, rng)
    guesses = random_queries(rows, features, len(queries), n_columns, rng)
    n = len(queries)
    met, by_chance = (_matching_rows(some, np.concatenate([people, others])) for some in (queries, guesses))
    first = np.arange(met.shape[1]) < len(people)

    def hits(meets: Bools, among: Bools) -> int:
        return int((meets[:, among].sum(axis=1) == 1).sum())

    ahead = hits(met, first) - hits(met, ~first)
    as_far = 1
    for _ in range(N_SHUFFLES):
        shuffled = rng.permutation(first)
        as_far += ahead <= 0 or hits(met, shuffled) - hits(met, ~shuffled) >= ahead
    found = (hits(met, first), hits(met, ~first), hits(by_chance, first))
    attack, control_rate, baseline = (wilson(each, n, confidence) for each in found)
    return Attack(attack, control_rate, baseline, as_far / (N_SHUFFLES + 1))


def _matching_rows(queries: Sequence[Query], table: Floats) -> Bools:
    meets = np.ones((len(queries), table.shape[0]), dtype=bool)
    for i, query in enumerate(queries):
        for column, comparison, value in query:
            meets[i] &= COMPARISONS[comparison](table[:, column], value)
    return meets


def linkability(
    released: Floats,
    training: Floats,
    control: Floats,
    features: Sequence[Feature],
    halves: tuple[Sequence[int], Sequence[int]],
    *,
    n_neighbours: int = 1,
    rng: np.random.Generator,
    confidence: float,
) -> Attack:
    """Attack all given rows by linking their two halves."""
    k = min(n_neighbours, released.shape[0])

    def linked(first: Ints, second: Ints) -> Bools:
        return np.asarray((first[:, :, None] == second[:, None, :]).any(axis=(1, 2)))

    def nearest(people: Floats, half: Sequence[int]) -> Ints:
        return _nearest(people, released, features, half, k)

    n = training.shape[0]
    drawn = [np.stack([rng.choice(released.shape[0], size=k, replace=False) for _ in range(n)]) for _ in range(2)]
    found = [linked(nearest(people, halves[0]), nearest(people, halves[1])) for people in (training, control)]
    return Attack.of_people(found[0], found[1], linked(drawn[0], drawn[1]), confidence)


def inference(
    released: Floats,
    training: Floats,
    control: Floats,
    features: Sequence[Feature],
    known: Sequence[int],
    secret: int,
    *,
    rng: np.random.Generator,
    confidence: float,
) -> Attack:
    """Attack all given rows by guessing the secret column from the known ones."""
    found = []
    for people in (training, control):
        guesses = released[_nearest(people, released, features, known, 1)[:, 0], secret]
        found.append(guessed_right(guesses, people[:, secret], features[secret]))
    blind = released[rng.integers(released.shape[0], size=training.shape[0]), secret]
    by_chance = guessed_right(blind, training[:, secret], features[secret])
    return Attack.of_people(found[0], found[1], by_chance, confidence)


def guessed_right(guesses: Floats, secrets: Floats, feature: Feature) -> Bools:
    """Mark the correct guesses: the same level or date, or a number within 5 per cent of the guess."""
    tolerance = TOLERANCE if feature.is_numeric and not is_dated(feature.dtype) else 0.0
    near = np.abs(guesses - secrets) <= tolerance * np.abs(guesses)
    return np.asarray(near | (np.isnan(guesses) & np.isnan(secrets)))


def _nearest(people: Floats, released: Floats, features: Sequence[Feature], columns: Sequence[int], k: int) -> Ints:
    few = [features[j] for j in columns]
    return find_nearest(people[:, columns], released[:, columns], few, k, n_jobs=1).row
