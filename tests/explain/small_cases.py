"""Small tables, models and pools for the sparse search, and all their crossings by plain loops."""

from __future__ import annotations

import functools
import math
import zlib
from dataclasses import dataclass
from itertools import combinations
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd

from mcce.explain.acceptance import Acceptance
from mcce.explain.draw import Candidates
from mcce.explain.order import Caution, resolve_measures
from mcce.explain.problem import Problem, Settings
from mcce.explain.sparse import SparseSearch
from mcce.plausibility.score import Plausibility
from mcce.table import Schema

NAN = math.nan
VALUES = [
    [0.0, 1.0, 2.0, 8.0, NAN],
    [0.0, 1.0, 2.0, NAN],
    [0.0, 1.0, 2.0],
    [0.0, 1.0],  # fixed
    [5.0],
    [0.0, 0.5, 1.0, 1.5, 4.0],
]
RANGE = [8.0, None, 2.0, 1.0, None, 4.0]  # None: any change counts 1; sums of such steps are exact
MUTABLE = np.array([0, 1, 2, 4, 5])
WEIGHTS = {"number": 0.5, "level": 2.0, "other": 0.0}


class Bounds(NamedTuple):
    """The largest number of changes and the largest Gower distance; None for any."""

    max_changes: int | None = None
    max_gower: float | None = None


UNBOUNDED = Bounds()
BY_COLUMN = [0.5, 2.0, 1.0, 1.0, 1.0, 0.0]


def training(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    codes = {f"c{j}": rng.choice(values, n) for j, values in enumerate(VALUES)}
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.8, np.minimum(codes["c2"], codes["c3"]) * 8, codes["c0"]),
            "level": pd.Series(codes["c1"]).map({0.0: "a", 1.0: "b", 2.0: "c"}),
            "grade": pd.Categorical.from_codes(codes["c2"].astype(int), ["low", "middle", "high"], ordered=True),
            "kept": codes["c3"],
            "still": codes["c4"],
            "other": codes["c5"],
        }
    )


SCHEMA = Schema.from_data(training())
FEATURES = SCHEMA.features


@functools.cache
def plausibility() -> Plausibility:
    return Plausibility.fit(SCHEMA.encode(training()).matrix, FEATURES, MUTABLE, 1)


@dataclass(frozen=True)
class Model:
    """A model that accepts random rows, determined by their values, but no factual."""

    seed: int
    share: float
    factuals: tuple[tuple[float, ...], ...]

    def score(self, row) -> float:
        if any(same_row(row, factual) for factual in self.factuals):
            return 1.0
        return zlib.crc32(f"{self.seed} {[float(cell) for cell in row]}".encode()) / 2**32

    def wants(self, row) -> bool:
        return self.score(row) < self.share

    def __call__(self, rows):
        scores = np.array([self.score(row) for row in rows])
        return scores, scores < self.share


def same(a, b) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def same_row(one, two) -> bool:
    return all(same(a, b) for a, b in zip(one, two, strict=True))


def changes(row, factual) -> int:
    return sum(not same(a, b) for a, b in zip(row, factual, strict=True))


def gower_sum(row, factual, weights=(1.0,) * 6) -> float:
    total = 0.0
    for j, (a, b) in enumerate(zip(row, factual, strict=True)):
        if not same(a, b):
            whole = RANGE[j] is None or math.isnan(a) or math.isnan(b)
            total += weights[j] * (1.0 if whole else abs(a - b) / RANGE[j])
    return total


def plausibility_of(rows, factual):
    scale, own = plausibility(), np.array([factual])
    fold, places = np.repeat(scale.fold_of(own), len(rows)), np.zeros(len(rows), dtype=np.int64)
    return scale.score(np.array(rows).reshape(-1, 6), fold, scale.origins(own, places, own=scale.own(own)))


def quantiles(rows, factual) -> list[float]:
    calibration = plausibility().calibration.values
    return [(1 + (calibration <= score).sum()) / (len(calibration) + 1) for score in plausibility_of(rows, factual)]


def crossings(pool, factual):
    """Return every crossing with real changes and no known value set to missing, by size, draw and columns."""
    found, seen = [], set()
    for size in range(1, len(MUTABLE) + 1):
        for draw in pool:
            for columns in combinations(MUTABLE, size):
                if any(math.isnan(draw[j]) or draw[j] == factual[j] for j in columns):
                    continue
                row = tuple(draw[j] if j in columns else factual[j] for j in range(6))
                written = str(row)
                if written not in seen:
                    seen.add(written)
                    found.append(row)
    return found


@dataclass(frozen=True)
class Case:
    pools: Candidates
    factuals: np.ndarray
    model: Model

    @classmethod
    def of(cls, pools, factuals, seed, share, **_) -> Case:
        """Factuals that share a pool have its fixed value."""
        pools = [[(*row[:3], float(p), *row[4:]) for row in pool] for p, pool in enumerate(pools)]
        factuals = [(i, (*row[:3], float(i % len(pools)), *row[4:])) for i, row in factuals]
        sizes = np.array([len(pool) for pool in pools])
        which = np.array([i % len(pools) for i, _ in factuals])
        ends = np.cumsum(sizes)
        matrix = np.asfortranarray([row for pool in pools for row in pool])
        candidates = Candidates(matrix, (ends - sizes)[which], ends[which])
        return cls(
            candidates, np.array([row for _, row in factuals]), Model(seed, share, tuple(r for _, r in factuals))
        )

    def pool(self, f: int):
        return [tuple(row) for row in self.pools.rows[self.pools.begin[f] : self.pools.end[f]].tolist()]


MEASURES = {
    "default": (("L0", "gower"), None),
    "weighted": (("L0", "gower"), WEIGHTS),
    "gower": (("gower",), None),
    "realism": (("plausibility", "gower"), None),
    "callable": (("L0", lambda candidates, factual: candidates["still"] + candidates["other"]), None),
}


COUNTS_CHANGES_FIRST = ("default", "weighted", "callable")


def order_keys(name, rows, factual):
    """The order of the rows."""
    if name == "gower":
        return [(gower_sum(row, factual),) for row in rows]
    if name == "realism":
        return [(-q, gower_sum(row, factual)) for row, q in zip(rows, quantiles(rows, factual), strict=True)]
    if name == "callable":
        return [(changes(row, factual), row[4] + row[5]) for row in rows]
    weights = BY_COLUMN if name == "weighted" else [1.0] * 6
    return [(changes(row, factual), gower_sum(row, factual, weights)) for row in rows]


def problem_of(features, mutable, query, ordering, caution, floor=0.0, bound=UNBOUNDED):
    """Return a problem for a model that is a function of encoded rows; nothing is drawn."""
    fixed = [feature.name for j, feature in enumerate(features) if j not in mutable]
    generator = SimpleNamespace(schema_=Schema(features), fixed_=fixed)
    settings = Settings(0, floor=floor, max_changes=bound.max_changes, max_gower=bound.max_gower)
    return Problem(generator, None, SimpleNamespace(predict_encoded=query), settings, ordering, caution=caution)


def search(case, k, floor, bound=UNBOUNDED, name="default", caution=None):
    measures, weights = MEASURES[name]
    ordering = resolve_measures(
        measures, FEATURES, feature_weights=weights, scorers={"plausibility": plausibility().of_candidates}
    )
    caution = caution or Caution(plausibility(), strength=0.0)
    problem = problem_of(FEATURES, MUTABLE, case.model, ordering, caution, floor, bound)
    found = SparseSearch(Acceptance(problem, case.factuals)).search(case.pools, k)
    assert (np.diff(found.owner) >= 0).all()
    np.testing.assert_array_equal(found.scores, [case.model.score(row) for row in found.rows])
    for f, row, score in zip(found.owner, found.rows, found.plausibility, strict=True):
        assert score == plausibility_of([row], case.factuals[f])[0]
    return [[tuple(row) for row in found.rows[found.owner == f].tolist()] for f in range(len(case.factuals))]


def within(row, factual, bound):
    return (bound.max_changes is None or changes(row, factual) <= bound.max_changes) and (
        bound.max_gower is None or gower_sum(row, factual) / 6 <= bound.max_gower
    )
