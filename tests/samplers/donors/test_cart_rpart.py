"""Donors from the leaves of a tree in the rpart dialect."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from mcce import CartSampler, InputError
from mcce.storage.learned import get_state, set_state
from mcce.table import Schema
from mcce.testing import check_sampler
from mcce.trees.rpart import tree as rpart
from tests.marks import nightly
from tests.samplers.donors.cart_problem import draw, fit


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        CartSampler(dialect="rpart", cp=0.01, min_split=20, min_leaf=7, max_depth=30),
        *nightly(CartSampler(dialect="rpart"), CartSampler(dialect="rpart", cp=0.0, min_leaf=1)),
    ],
    ids=repr,
)
def test_rpart_dialect_conforms(sampler):
    check_sampler(sampler, goodness_of_fit=True)


def test_rpart_dialect_has_the_defaults_of_rpart(noisy):
    plain, given = fit(noisy, sampler=CartSampler(dialect="rpart"))
    spelt, _ = fit(noisy, sampler=CartSampler(dialect="rpart", cp=0.01, min_split=20, min_leaf=7, max_depth=30))
    names = ("feature", "threshold", "number", "complexity", "donors")
    for name in names:
        assert np.array_equal(getattr(plain.tree_, name), getattr(spelt.tree_, name)), name
    small_leaves, _ = fit(noisy, sampler=CartSampler(dialect="rpart", min_leaf=3, cp=0.0))
    grown = rpart.grow(given, noisy_target(noisy), min_split=9, min_leaf=3, cp=0.0)
    assert np.array_equal(small_leaves.tree_.donors, grown.donors)


def noisy_target(frame):
    return Schema.from_data(frame[["y"]]).encode(frame[["y"]]).column(0)


def test_ordered_targets_are_classes_in_the_rpart_dialect():
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    y = pd.Categorical.from_codes(np.digitize(x + rng.normal(size=400), [-1, 1]), ["low", "mid", "high"], ordered=True)
    sampler, _ = fit(pd.DataFrame({"x": x, "y": y}), sampler=CartSampler(dialect="rpart"))
    tree = sampler.tree_
    root = np.bincount(y.codes, minlength=3)
    assert tree.impurity[0] == 400 - root.max()  # rows outside the most frequent class, not a sum of squares


def test_fitted_rpart_tree_round_trips(noisy):
    gaps = noisy.assign(job=np.array(list("abcd"))[np.arange(1000) % 4], x=noisy["x"].mask(np.arange(1000) % 5 == 0))
    sampler, given = fit(gaps, sampler=CartSampler(dialect="rpart", cp=1e-4))
    again = set_state(CartSampler(dialect="rpart", cp=1e-4), get_state(sampler))
    assert again.tree_.n_surrogate.sum() > 0
    assert np.array_equal(draw(again, given, 0, 500), draw(sampler, given, 0, 500))
    values = noisy["y"].to_numpy()
    assert np.array_equal(again.log_density(given, values), sampler.log_density(given, values))
    assert np.isfinite(again.log_density(given, values, training_rows=np.arange(1000))).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"dialect": "rpat"}, "dialect of CartSampler is 'rpat'; did you mean 'rpart'?"),
        ({"dialect": "rpart", "max_depth": 31}, "max_depth of CartSampler is 31; a tree of rpart is at most 30 deep"),
        ({"dialect": "rpart", "min_leaf": 0}, "min_leaf of CartSampler is 0; it must be a whole number of at least 1"),
        ({"dialect": "rpart", "cp": float("nan")}, "cp of CartSampler is nan; it must be None or a number"),
    ],
)
def test_invalid_parameters_of_the_rpart_dialect_raise_when_fitting(parameters, message):
    with pytest.raises(InputError, match=re.escape(message)):
        fit(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}), sampler=CartSampler(**parameters))


def test_negative_cp_keeps_every_split_in_the_rpart_dialect(noisy):
    kept, _ = fit(noisy, sampler=CartSampler(dialect="rpart", cp=-1.0))
    cut, _ = fit(noisy, sampler=CartSampler(dialect="rpart"))
    assert kept.tree_.n_leaves > cut.tree_.n_leaves == 2


def test_missing_targets_in_the_rpart_dialect(noisy):
    gaps = noisy.assign(y=noisy["y"].mask(noisy["z"] > 0.5))
    sampler, given = fit(gaps, sampler=CartSampler(dialect="rpart"))
    for row in (int(np.argmin(noisy["z"])), int(np.argmax(noisy["z"]))):
        share = np.isnan(draw(sampler, given, row, 400)).mean()
        assert share == float(noisy["z"][row] > 0.5)
