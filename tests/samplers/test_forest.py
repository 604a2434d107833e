"""The forest sampler: bootstrap samples, weights of the trees, seeds, and columns tried."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from mcce.exceptions import InputError
from mcce.rng import RowStreams
from mcce.samplers.forest import ForestSampler, n_features
from tests.samplers.test_cart import encode, problem


def fitted(frame, **options):
    given, target = encode(frame)
    return ForestSampler(**({"n_trees": 5, "random_state": 1} | options)).fit(given, target), given, target


def shares_by_hand(sampler, given, target, i):
    """The probability of each value for one row: the mean, over trees, of its share in the row's leaf."""
    shares = {}
    for tree in sampler.trees_:
        leaf = tree.leaf(given.matrix[[i]])[0]
        donors = target.values[tree.rows[tree.start[tree.leaves[leaf]] :][: tree.size[tree.leaves[leaf]]]]
        for value in donors:
            key = "missing" if np.isnan(value) else value
            shares[key] = shares.get(key, 0.0) + 1.0 / donors.size / len(sampler.trees_)
    return shares


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_every_tree_counts_equally(gaps):
    sampler, given, target = fitted(problem(gaps=gaps))
    rows = np.repeat([2, 5], 5000)
    drawn = sampler.sample(given.take(rows), RowStreams.from_seed(1, rows.size))
    for i in (2, 5):
        shares = shares_by_hand(sampler, given, target, i)
        own = drawn[rows == i]
        counts = [np.isnan(own).sum() if value == "missing" else (own == value).sum() for value in shares]
        assert np.sum(counts) == own.size
        assert stats.chisquare(counts, own.size * np.array(list(shares.values()))).pvalue > 1e-3
        known = {value: share for value, share in shares.items() if value != "missing"}
        below = sum(share for value, share in known.items() if value <= 1.0) / sum(known.values())
        assert sampler.distribution(given.take([i])).cdf(np.array([1.0]))[0] == pytest.approx(below)


def test_trees_grow_on_bootstrap_samples():
    sampler, _, target = fitted(problem(2000), n_trees=8)
    shares = [np.unique(tree.rows).size / target.values.size for tree in sampler.trees_]
    np.testing.assert_allclose(shares, 1 - np.exp(-1), atol=0.03)
    assert len({tree.rows.tobytes() for tree in sampler.trees_}) == 8
    assert all(tree.size[tree.leaves].min() >= 5 for tree in sampler.trees_)


def test_the_seed_decides_and_names_do_not():
    frame = problem()
    one, given, _ = fitted(frame)
    renamed, _, _ = fitted(frame.rename(columns={"x": "u", "job": "v", "y": "w"}))
    other, _, _ = fitted(frame, random_state=2)
    assert np.array_equal(one.distribution(given).begin, renamed.distribution(given).begin)
    assert not np.array_equal(one.pool_, other.pool_)
    assert clone(ForestSampler()).random_state is None
    free = [ForestSampler(n_trees=1).fit(*encode(frame)).pool_ for _ in range(2)]
    assert not np.array_equal(*free)


def test_columns_tried_by_a_node():
    assert [n_features(each, 9) for each in ("third", "sqrt", 0.5, 2, 1.0, None)] == [3, 3, 4, 2, 9, None]
    assert [n_features(each, 1) for each in ("third", "sqrt", 0.1)] == [1, 1, 1]
    given, target = encode(problem()[["y"]])
    assert ForestSampler(random_state=1).fit(given, target).trees_[0].n_leaves == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_trees": 0}, "n_trees is 0; it must be a whole number of at least 1"),
        ({"max_features": 1.5}, "max_features is 1.5; it must be a number above 0 and at most 1"),
        ({"max_features": 0}, "max_features is 0; it must be a whole number of at least 1"),
        ({"max_features": True}, "max_features is True; give"),
        ({"min_leaf": 0}, "min_leaf is 0"),
        ({"min_split": 1}, "min_split is 1"),
        ({"max_depth": -2}, "max_depth is -2"),
        ({"random_state": "one"}, "random_state"),
    ],
)
def test_invalid_parameters_raise_at_fit(options, message):
    with pytest.raises(InputError, match=message):
        ForestSampler(**options).fit(*encode(problem()))
