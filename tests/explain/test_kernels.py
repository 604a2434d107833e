"""The kernels of the search against sorting in numpy."""

from itertools import combinations

import numpy as np
import pytest

from mcce.explain.kernels import mark_distinct, nearest_draws, nearest_tuples


def steps_of(rows, own, scale):
    with np.errstate(invalid="ignore"):
        steps = np.where(scale == 0, 1.0, np.abs(rows - own) * scale)
    steps[np.isnan(steps)] = 1.0
    steps[(rows == own) | (np.isnan(rows) & np.isnan(own))] = 0.0
    return steps


def table(seed, n=200):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 20, n) / 4, rng.integers(0, 2, n)]).astype(float)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows, np.array([0.0, 0.2, 0.0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bounds", [(np.inf, np.inf), (2.0, 1.5)])
def test_nearest_draws(seed, bounds):
    rows, scale = table(seed)
    factuals = table(seed + 100, 6)[0]
    columns, n_rows = np.arange(3), np.empty(6, dtype=np.int64)
    begin, end = np.zeros(6, dtype=np.int64), np.full(6, len(rows))
    for missing_allowed in (np.zeros(3, dtype=bool), np.ones(3, dtype=bool)):
        found = np.empty((6, 30), dtype=np.int64)
        cells = np.ascontiguousarray(rows.T)
        nearest_draws(cells, begin, end, factuals, columns, scale, missing_allowed, *bounds, found, n_rows)
        for f, own in enumerate(factuals):
            steps = steps_of(rows, own, scale)
            changes = (rows != own) & ~(np.isnan(rows) & np.isnan(own))
            sums = sum(steps.T, start=np.zeros(len(rows)))
            bad = (np.isnan(rows) & ~np.isnan(own) & ~missing_allowed).any(axis=1)
            bad |= (changes.sum(axis=1) > bounds[0]) | (sums > bounds[1])
            order = np.lexsort((sums, changes.sum(axis=1)))
            order = order[~bad[order]]
            seen, expected = set(), []
            for row in order:
                key = tuple(np.nan_to_num(rows[row], nan=-9.0))
                if key not in seen:
                    expected.append(row)
                seen.add(key)
            assert found[f, : n_rows[f]].tolist() == expected[:30]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_distinct_and_nearest_tuples(size):
    rows, scale = table(1)
    own = np.array([1.0, 2.0, 0.0])
    codes = np.where(
        np.isnan(rows), -1, np.unique(np.nan_to_num(rows, nan=-1), return_inverse=True)[1].reshape(rows.shape)
    )
    sets = np.array(list(combinations(range(3), size)))
    is_first, slots = np.empty((len(rows), len(sets)), dtype=bool), np.empty(512, dtype=np.int64)
    mark_distinct(np.ascontiguousarray(codes.T.astype(np.int64)), sets, slots, is_first)
    for s, columns in enumerate(sets):
        values = rows[:, columns]
        seen = set()
        for row in range(len(rows)):
            is_new = not np.isnan(values[row]).any() and tuple(values[row]) not in seen
            assert is_first[row, s] == is_new
            seen.add(tuple(values[row]))
    draws, which = np.nonzero(is_first)
    cells = steps_of(rows, own, scale)
    sums = np.array(
        [cells[d, sets[w]].sum() if (cells[d, sets[w]] > 0).all() else np.inf for d, w in zip(draws, which)]
    )
    spread = np.arange(0, sums.size, 3)
    chosen, steps = np.empty((2, 7 + spread.size), dtype=np.int64), np.empty((2, 7 + spread.size))
    room = np.empty((3, len(rows))), np.empty(sums.size)
    both, stored = np.array([own, own]), np.ascontiguousarray(rows.T)
    nearest_tuples(stored, 0, both, np.arange(3), scale, draws, which, sets, 7, spread, *room, chosen, steps)
    order = np.lexsort((np.arange(sums.size), sums))[: np.isfinite(sums).sum()][:7]
    further = [t for t in spread if np.isfinite(sums[t]) and t not in order]
    n = len(order) + len(further)
    for f in range(2):
        assert sorted(chosen[f, : len(order)]) == sorted(order)
        assert chosen[f, len(order) : n].tolist() == further
        assert np.allclose(steps[f, :n], sums[chosen[f, :n]])
        assert (chosen[f, n:] == -1).all()
        assert np.isinf(steps[f, n:]).all()
