"""The kernels for ranking and searching, compared with sorting and all pairs in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import Schema
from mcce.distances import measures as distances
from mcce.distances.kernels import Top, best_within, find_nearest, sort_within
from tests.marks import examples


@examples(15)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_keys=st.integers(1, 4),
    n_factuals=st.integers(1, 4),
    K=st.integers(1, 40),
    most=st.integers(1, 12),
)
def test_first_rows_and_ranks_match_a_stable_sort(seed, n_keys, n_factuals, K, most):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 3, (n_keys, n_factuals * K)).astype(float)
    keys[0, :K] = np.nan  # shared by all rows of a factual: no effect on the order
    kept = rng.random(n_factuals * K) < 0.7
    order = rng.permutation(n_keys)
    most = min(most, K)
    top = Top.room_for(n_keys, n_factuals, most)
    best_within(keys, kept, K, order, top)
    ranked = np.empty(n_factuals * K, dtype=np.int64)
    sort_within(keys, K, order, np.empty(K, dtype=np.int64), ranked)
    for f in range(n_factuals):
        rows = range(f * K, (f + 1) * K)
        expected = sorted(rows, key=lambda i: [np.nan_to_num(keys[v, i]) for v in order])
        assert ranked[f * K : (f + 1) * K].tolist() == expected
        first = [i for i in expected if kept[i]][:most]
        assert top.n_rows[f] == len(first)
        assert top.rows[f].tolist() == first + [-1] * (most - len(first))


@pytest.mark.slow
@examples(10)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    k=st.integers(1, 6),
    name=st.sampled_from(["gower_sum", "l2", "hvdm", "ivdm"]),
)
def test_nearest_rows_for_any_distance(seed, n, k, name):
    rng = np.random.default_rng(seed)
    training = rng.integers(0, 4, (n, 3)).astype(float)
    training[rng.random((n, 3)) < 0.1] = np.nan
    features = Schema.from_data(training).features
    decision = rng.random(n) < 0.5
    make = getattr(distances, name)
    distance = make(features, training, decision) if name in ("hvdm", "ivdm") else make(features)
    rows = rng.integers(0, 4, (5, 3)).astype(float)
    own = rng.integers(-1, n, 5)
    nearest = np.empty((5, k), dtype=np.int64)
    find_nearest(rows, 0, 5, training, *distances.stack([distance]), own, np.empty(k), nearest)
    for i in range(5):
        sums = distance.sums(training, np.tile(rows[i], (n, 1)))
        if own[i] >= 0:
            sums[own[i]] = np.inf
        expected = [t for t in np.argsort(sums, kind="stable")[:k] if sums[t] < np.inf]
        assert nearest[i].tolist() == expected + [-1] * (k - len(expected))
