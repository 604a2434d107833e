"""Draws of every sampler are checked and rounded to the column's grid by the chain."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from mcce import MCCE, ChainModel, ConditionalSampler, EstimatorSampler, SamplerError
from mcce.generators.requests import DrawRequest
from mcce.samplers import Within
from mcce.samplers.rounding import put_on_grid
from mcce.table import Schema


class Around(ConditionalSampler):
    """A plug-in without rounding: normal draws with the mean and spread of the training values."""

    ignores_given = True
    handles = frozenset({"numeric"})

    def fit(self, given, target):
        self.mean_, self.sd_ = float(np.nanmean(target.values)), float(np.nanstd(target.values))
        return self

    def sample(self, given, rng, within=None):
        return self.mean_ + self.sd_ * rng.normal()


class Draws(ConditionalSampler):
    """A sampler that always draws one value."""

    ignores_given = True

    def __init__(self, value):
        self.value = value

    def fit(self, given, target):
        return self

    def sample(self, given, rng, within=None):
        return np.full(given.n_rows, self.value)


def table(n=800):
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, n)
    return pd.DataFrame(
        {
            "age": age,
            "children": (age / 20 + rng.normal(3.0, 1.0, n)).round().clip(0).astype("uint8"),
            "salary": (1.0 * age + rng.normal(0, 9.0, n)).round(1),
            "height": rng.normal(170, 9, n).astype("float32"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "ratio": rng.normal(size=n),
        }
    )


SAMPLERS = {
    "plug-in": Around(),
    "norm": "norm",
    "residuals": EstimatorSampler(LinearRegression()),
    "cart": "cart",
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_are_unbiased_and_equal_the_returned_values(name):
    """Regression: draws were truncated on decoding, so integers were 0.45 too low."""
    X = table()
    chain = ChainModel(sampler=SAMPLERS[name], fixed=["age"], random_state=1).fit(X)
    givens = np.repeat(chain.givens_of(chain.schema_.encode(X).matrix), 10, axis=0)
    request = DrawRequest(givens, np.zeros(8000, dtype=np.uint64), np.arange(8000, dtype=np.uint64), 1)
    drawn = chain.draw(request).rows
    frame = chain.schema_.decode(drawn)
    np.testing.assert_array_equal(chain.schema_.encode(frame).matrix, drawn)
    assert (frame["salary"].round(1) == frame["salary"]).all()
    assert (frame["since"] == frame["since"].dt.normalize()).all()
    encoded = chain.schema_.encode(X).matrix
    for j, column in enumerate(X):
        spread = encoded[:, j].std() / np.sqrt(800)
        assert drawn[:, j].mean() == pytest.approx(encoded[:, j].mean(), abs=4 * spread), column
    # the spread is about 1.2: 0.45 would be ten standard errors
    assert frame["children"].mean() == pytest.approx(X["children"].mean(), abs=0.17)


@pytest.mark.parametrize("name", SAMPLERS)
def test_measures_match_the_returned_rows(name):
    X = table(400)
    model = lambda rows: (rows["salary"] + 5.0 * rows["children"] > 70).to_numpy() * 1.0  # noqa: E731
    explainer = MCCE(model, decision=1.0, fixed=["age"], sampler=SAMPLERS[name], random_state=1).fit(X)
    factuals = X[model(X) == 0.0].head(40)
    found = explainer.explain(factuals, n_samples=200)
    ids = found.frame.index.get_level_values(0)
    assert len(ids) > 20
    before = factuals.loc[ids].reset_index(drop=True)
    after = found.frame[list(X)].reset_index(drop=True)
    width = X.max() - X.min()
    gower = (
        sum(
            (after[c].astype(X[c].dtype) - before[c]).abs() / width[c]
            if c not in ("children", "height")
            else (after[c].astype(float) - before[c].astype(float)).abs() / float(width[c])
            for c in X
        )
        / X.shape[1]
    )
    np.testing.assert_array_equal(found.measures["L0"], (before != after).sum(axis=1))
    np.testing.assert_allclose(found.measures["gower"], gower, rtol=1e-12)


def test_draws_beyond_a_dtype_are_clipped():
    X = pd.DataFrame({"a": [1, 2, 3], "x": np.array([0, 1, 255], dtype="uint8")})
    for value, expected in ((1e9, 255), (-7.0, 0), (254.6, 255)):
        chain = ChainModel(sampler={"x": Draws(value)}, fixed=["a"], random_state=1).fit(X)
        assert chain.sample(n=5)["x"].tolist() == [expected] * 5


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (
            [1.5, 2.5],
            np.inf,
            r"Draws\(value=inf\) drew inf for 'x' \(7 of 7 draws\); every draw must be finite, or",
        ),
        ([1, 2], -np.inf, r"drew -inf for 'x'"),
        (["u", "v"], -1.0, r"drew -1 for 'x' .*must be the code of a level, a whole number from 0 to 1, or NaN"),
        (["u", "v"], 2.0, r"drew 2 for 'x' .*from 0 to 1"),
        (["u", "v"], 0.5, r"drew 0.5 for 'x' .*from 0 to 1"),
        (["u", "v"], np.inf, r"drew inf for 'x' .*from 0 to 1"),
        (pd.Categorical(["u", "v"], ordered=True), 7.0, r"drew 7 for 'x' .*from 0 to 1"),
    ],
)
def test_values_the_column_cannot_hold_raise(column, value, message):
    X = pd.DataFrame({"a": [1, 2], "x": column})
    chain = ChainModel(sampler={"x": Draws(value)}, fixed=["a"], random_state=1).fit(X)
    with pytest.raises(SamplerError, match=message):
        chain.sample(n=7)


def test_missing_draws_are_accepted():
    X = pd.DataFrame({"x": ["u", None, "v"], "y": [1.0, np.nan, 2.5]})
    rows = ChainModel(sampler=Missing(), random_state=1).fit(X).sample(n=4)
    assert rows.isna().all().all()


class Missing(Draws):
    handles_missing = True

    def __init__(self):
        self.value = np.nan


def test_overflowing_sum_is_not_an_infinite_draw():
    X = pd.DataFrame({"x": [1e149, -1e149, 0.5]})
    big = ChainModel(sampler=Draws(1.5e308), random_state=1).fit(X).sample(n=50)
    assert (big["x"] == 1.5e308).all()


def test_restricted_draws_are_rounded_within_their_bounds():
    X = pd.DataFrame({"x": [1, 2, 9]})
    feature = Schema.from_data(X).features[0]
    low, high = np.array([2.3, 2.3, 2.3, -np.inf]), np.array([4.4, 2.9, np.inf, 2.6])
    drawn = np.array([2.4, 2.4, 2.4, 2.55])
    on_grid = put_on_grid(drawn, Around(), feature, 4, Within(low=low, high=high))
    np.testing.assert_array_equal(on_grid, [3.0, np.nan, 3.0, 2.0])
