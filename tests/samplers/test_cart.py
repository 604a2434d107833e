"""Donors of leaves: the CART sampler in both dialects, and what all samplers of leaves share."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from mcce.exceptions import InputError
from mcce.rng import RowStreams
from mcce.samplers.cart import CartSampler, sorted_segments
from mcce.samplers.ctree import CtreeSampler
from mcce.table import Schema
from mcce.trees import cart

DONORS = [CartSampler(), CartSampler(dialect="rpart"), CtreeSampler()]


def encode(frame):
    """Return (given, target column); the target is the last column."""
    table = Schema.from_data(frame).encode(frame)
    return table.first(len(frame.columns) - 1), table.column(len(frame.columns) - 1)


def problem(n=600, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=n), "job": pd.Categorical(rng.choice(list("abc"), n))})
    frame["y"] = np.round(2.0 * (frame["x"] > 0) + (frame["job"] == "b") + rng.normal(size=n), 1)
    frame.loc[rng.random(n) < gaps, "y"] = np.nan
    return frame


def donors_of(distribution, i):
    return distribution.pool[distribution.begin[i] : distribution.end[i]]


@pytest.mark.parametrize("seed", range(5))
def test_segments_are_the_sorted_values_of_each_leaf(seed):
    rng = np.random.default_rng(seed)
    values, leaf = rng.choice([0.0, 1.5, -2.0, np.nan, 1e9], 60), rng.integers(0, 6, 60)
    pool, begin = sorted_segments(values, leaf, 7)
    for k in range(7):
        assert np.array_equal(pool[begin[k] : begin[k + 1]], np.sort(values[leaf == k]), equal_nan=True)


@pytest.mark.parametrize("sampler", DONORS, ids=str)
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_donors_are_the_rows_of_a_leaf(sampler, gaps):
    frame = problem(gaps=gaps)
    given, target = encode(frame)
    fitted = clone(sampler).fit(given, target)
    distribution = fitted.distribution(given)
    leaf = fitted.grown_.leaf(given.matrix)
    assert np.unique(leaf).size == fitted.grown_.n_leaves > 1
    for i in range(0, len(frame), 37):
        expected = np.sort(target.values[leaf == leaf[i]])
        assert np.array_equal(donors_of(distribution, i), expected, equal_nan=True)
    assert fitted.tree_.to_frame()["n"].iloc[0] == len(frame)
    again = pickle.loads(pickle.dumps(fitted)).distribution(given)
    assert np.array_equal(again.begin, distribution.begin)


def test_missing_responses_are_drawn_where_they_occur():
    """Whether y is missing depends on the job, its value on x: one tree finds both."""
    rng = np.random.default_rng(2)
    frame = problem(3000, 2)
    is_missing = rng.random(3000) < np.where(frame["job"] == "b", 0.9, 0.05)
    frame["y"] = np.where(is_missing, np.nan, frame["y"])
    given, target = encode(frame)
    new = problem(2000, 3)
    distribution = (
        CartSampler().fit(given, target).distribution(Schema.from_data(frame[["x", "job"]]).encode(new[["x", "job"]]))
    )
    drawn, _ = distribution.sample(RowStreams.from_seed(1, 2000))
    for job, share in (("b", 0.9), ("a", 0.05)):
        assert np.isnan(drawn[new["job"] == job]).mean() == pytest.approx(share, abs=0.04)
    known = ~np.isnan(drawn)
    jump = drawn[known & (new["x"] > 0)].mean() - drawn[known & (new["x"] < 0)].mean()
    assert jump == pytest.approx(2.0, abs=0.25)


@pytest.mark.parametrize("kind", ["levels", "ordered", "all missing"])
@pytest.mark.parametrize("sampler", DONORS, ids=str)
def test_missing_levels_and_columns_without_values(sampler, kind):
    frame = problem()
    level = np.where(frame["x"] > 0, "v", np.where(frame["job"] == "b", "u", "t")).astype(object)
    level[frame["x"] > 0.8] = None
    y = {
        "levels": pd.Categorical(level),
        "ordered": pd.Categorical(level, list("tuv"), ordered=True),
        "all missing": np.nan,
    }
    given, target = encode(frame.assign(y=y[kind]))
    distribution = clone(sampler).fit(given, target).distribution(given)
    drawn, rejected = distribution.sample(RowStreams.from_seed(1, 600))
    assert not rejected.any()
    share = np.isnan(drawn).mean()
    assert share == 1.0 if kind == "all missing" else share == pytest.approx(np.isnan(target.values).mean(), abs=0.05)
    if kind != "all missing":
        assert (np.isnan(drawn) == np.isnan(target.values)).mean() > 0.95


def test_parameters_reach_the_tree():
    given, target = encode(problem())
    for options in ({"min_leaf": 30}, {"min_split": 100}, {"max_depth": 2}, {"cp": 0.02}):
        expected = cart.grow(given, target, **options)
        assert np.array_equal(CartSampler(**options).fit(given, target).grown_.threshold, expected.threshold)
    assert np.bincount(CartSampler().fit(given, target).grown_.training_leaf).min() >= 5
    like_r = [CartSampler(dialect="rpart", cp=cp).fit(given, target).grown_.n_leaves for cp in (0.2, None, -1)]
    assert like_r == sorted(like_r)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_split": 1}, "min_split is 1; it must be a whole number of at least 2"),
        ({"max_depth": -1}, "max_depth is -1; it must be a whole number of at least 0"),
        (
            {"max_depth": 31, "dialect": "rpart"},
            "max_depth is 31; it must be a whole number of at least 0 and at most 30",
        ),
        ({"cp": -0.1}, "cp is -0.1; it must be a number of at least 0"),
    ],
)
def test_invalid_parameters_raise_at_fit(options, message):
    with pytest.raises(InputError, match=message):
        CartSampler(**options).fit(*encode(problem()))
