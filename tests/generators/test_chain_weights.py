"""Chains of weighted rows: counts are repeated rows, zeros are absent, others are relative."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.generators.visit import association_matrix
from mcce.table import Schema
from tests.marks import nightly, nightly_but

N = 240
FIXED = ["age", "sex"]


@pytest.fixture(scope="module")
def X():
    """Numbers with ties and atoms, levels, missing values in givens and targets."""
    rng = np.random.default_rng(3)
    X = mcce.datasets.load_loans(N).X.copy()
    X.loc[rng.random(N) < 0.15, "salary"] = np.nan
    X.loc[rng.random(N) < 0.1, "housing"] = np.nan
    return X


@pytest.fixture(scope="module")
def counts():
    return np.random.default_rng(4).integers(0, 4, N)


def _repeated(X, counts):
    return X.iloc[np.repeat(np.arange(len(X)), counts)].reset_index(drop=True)


def _same(a: pd.DataFrame, b: pd.DataFrame) -> float:
    return float(((a == b) | (a.isna() & b.isna())).to_numpy().mean())


EXACT = {
    "cart": "cart",
    "small leaves": mcce.CartSampler(min_leaf=1),
    "proper cart": mcce.CartSampler(proper=True),
    "ctree": mcce.CtreeSampler(mincriterion=0.5),
    "marginal": "marginal",
    "forest": "forest",
    "proper forest": mcce.ForestSampler(proper=True),
}


@pytest.mark.filterwarnings("ignore:.*rows could not be drawn within")
@pytest.mark.parametrize("name", nightly_but(EXACT, "small leaves", "proper cart", "marginal"))
def test_integer_weights_draw_the_same_as_repeated_rows(name, X, counts):
    """Bit for bit: the same trees, random numbers and donors, and the same densities."""
    weighted = mcce.ChainModel(sampler=EXACT[name], fixed=FIXED, random_state=1).fit(X, sample_weight=counts)
    repeated = mcce.ChainModel(sampler=EXACT[name], fixed=FIXED, random_state=1).fit(_repeated(X, counts))
    given = X[FIXED].iloc[:40]
    assert _same(weighted.sample(10, given), repeated.sample(10, given)) == 1.0
    assert _same(weighted.sample(300), repeated.sample(300)) == 1.0
    within = {"salary": (30_000, None), "housing": ["rent"]}
    drawn = [chain.sample(5, given, within=within, importance=True) for chain in (weighted, repeated)]
    assert _same(drawn[0][0], drawn[1][0]) == 1.0
    np.testing.assert_allclose(drawn[0][1], drawn[1][1], rtol=1e-12)
    pd.testing.assert_frame_equal(
        weighted.log_density(X, per_feature=True), repeated.log_density(X, per_feature=True), rtol=1e-10
    )


@pytest.mark.parametrize("name", ["cart", "marginal"])
def test_integer_weights_support_the_same_as_repeated_rows(name, X, counts):
    numbers = X[["age", "salary", "savings"]]
    weighted = mcce.ChainModel(sampler=name, fixed=["age"]).fit(numbers, sample_weight=counts)
    repeated = mcce.ChainModel(sampler=name, fixed=["age"]).fit(_repeated(numbers, counts))
    table = weighted.schema_.encode(numbers)
    noise = np.random.default_rng(0).normal(0, 300, N)
    values = np.concatenate([table.matrix[:, 1], table.matrix[:, 1] + noise, [np.nan]])
    given = table.first(1).take(np.concatenate([np.arange(N), np.arange(N), [0]]))
    found, expected = (chain.samplers_["salary"].supports(given, values) for chain in (weighted, repeated))
    np.testing.assert_array_equal(found, expected)
    assert found.any()
    assert not found.all()


def test_leave_one_out_removes_the_weight(X, counts):
    """A row of weight 3 is three rows in its own density: all three are left out."""
    numbers = X[["age", "salary"]].dropna().reset_index(drop=True)
    weights = np.random.default_rng(8).integers(1, 4, len(numbers))
    for sampler in (mcce.CartSampler(max_depth=0), "marginal"):
        chain = mcce.ChainModel(sampler=sampler, fixed=["age"]).fit(numbers, sample_weight=weights)
        left_out = chain.log_density(numbers, training=True)
        heavy = int(np.argmax(weights == 3))
        without = mcce.ChainModel(sampler=sampler, fixed=["age"])
        without.fit(numbers.drop(index=heavy), sample_weight=np.delete(weights, heavy))
        density = without.log_density(numbers.iloc[[heavy]]).iloc[0]
        assert abs(left_out[heavy] - density) < 0.15  # bandwidths are unchanged


def test_rows_of_weight_zero_are_absent(X):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N)
    weights[:60] = 0.0
    X = X.copy()
    X.loc[X.index[:60], "savings"] = 1e9  # absent rows do not extend the range
    with_zeros = mcce.ChainModel(fixed=FIXED, random_state=1).fit(X, sample_weight=weights)
    without = mcce.ChainModel(fixed=FIXED, random_state=1).fit(X.iloc[60:], sample_weight=weights[60:])
    assert _same(with_zeros.sample(200), without.sample(200)) == 1.0
    assert with_zeros.schema_.features[X.columns.get_loc("savings")].high < 1e9
    assert with_zeros.training_givens_.shape[0] == N - 60


@pytest.mark.parametrize("sampler", ["cart", "forest", "marginal"])
def test_relative_weights_have_no_scale(sampler, X):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N)
    drawn = [
        mcce.ChainModel(sampler=sampler, fixed=FIXED, random_state=1).fit(X, sample_weight=scale * weights).sample(200)
        for scale in (1.0, 1e-7, 12_345.678)
    ]
    assert _same(drawn[0], drawn[1]) == _same(drawn[0], drawn[2]) == 1.0


def test_equal_relative_weights_have_no_effect(X):
    plain = mcce.ChainModel(fixed=FIXED, random_state=1).fit(X)
    equal = mcce.ChainModel(fixed=FIXED, random_state=1).fit(X, sample_weight=np.full(N, 0.3))
    assert _same(plain.sample(200), equal.sample(200)) == 1.0


@pytest.mark.slow
def test_draws_follow_the_weights():
    """A leaf of three values drawn 1 : 2.5 : 6.5, chi-square at the level 0.001."""
    X = pd.DataFrame({"group": ["a"] * 3 + ["b"] * 3, "value": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    X = pd.concat([X] * 10, ignore_index=True)
    weights = np.tile([1.0, 2.5, 6.5, 1.0, 1.0, 0.5], 10)
    for sampler in ("cart", mcce.ForestSampler(n_trees=200)):
        chain = mcce.ChainModel(sampler=sampler, fixed=["group"], random_state=1).fit(X, sample_weight=weights)
        drawn = chain.sample(5000, pd.DataFrame({"group": ["a"]}))["value"].value_counts().reindex([1.0, 2.0, 3.0])
        expected = np.array([0.1, 0.25, 0.65]) * 5000
        slack = 1.0 if sampler == "cart" else 30.0  # the bootstrap samples of a forest add an error
        assert ((drawn - expected) ** 2 / expected).sum() < 13.8 * slack


def test_associations_equal_repeated_rows(X, counts):
    schema = Schema.from_data(X)
    kept = counts > 0
    weighted = replace(schema.encode(X[kept]), weights=counts[kept].astype(float))
    expected = association_matrix(schema.encode(_repeated(X, counts)))
    pd.testing.assert_frame_equal(association_matrix(weighted), expected, rtol=1e-12)


def test_min_donors_counts_rows_not_weights(X):
    weights = np.full(N, 7)
    chain = mcce.ChainModel(fixed=["age"], min_donors=6, random_state=1).fit(X, sample_weight=weights)
    for sampler in chain.samplers_.values():
        tree = sampler.tree_
        assert tree.size[tree.stops].min() >= 6


@pytest.mark.parametrize(
    "sampler", ["marginal", mcce.ForestSampler(n_trees=3, honest=True), *nightly("cart", "forest")]
)
def test_weighted_chain_round_trips(sampler, X, counts, tmp_path):
    chain = mcce.ChainModel(sampler=sampler, fixed=FIXED, random_state=1).fit(X, sample_weight=1.5 * counts)
    chain.save(tmp_path / "chain")
    again = mcce.ChainModel.load(tmp_path / "chain")
    np.testing.assert_array_equal(again.training_weights_, chain.training_weights_)
    assert again.sample(100).equals(chain.sample(100))
    rows = X[counts > 0]
    assert again.log_density(rows, training=True).equals(chain.log_density(rows, training=True))


class Unweighted(mcce.ConditionalSampler):
    """A plug-in without support for weights."""

    def fit(self, given, target):
        self.values_ = target.values
        return self

    def sample(self, given, rng, within=None):
        return self.values_[rng.integer(self.values_.size)]


@pytest.mark.parametrize("sampler", [Unweighted()])
def test_sampler_that_ignores_weights_raises(sampler, X, counts):
    name = type(sampler).__name__
    chain = mcce.ChainModel(sampler={"savings": sampler, "*": "cart"}, fixed=FIXED)
    with pytest.raises(mcce.SamplerError, match=rf"^{name}\(.*\) for 'savings' does not take sample_weight"):
        chain.fit(X, sample_weight=counts)


def test_explainers_accept_weights_and_drop_rows_without_weight(X, counts):
    numbers = X.select_dtypes("number").fillna(0)

    def rich(rows):
        return rows["salary"] > 45_000

    weighted = mcce.MCCE(rich, decision=True, fixed=["age"], random_state=1).fit(numbers, sample_weight=counts)
    repeated = mcce.MCCE(rich, decision=True, fixed=["age"], random_state=1).fit(_repeated(numbers, counts))
    poor = numbers[numbers["salary"] < 40_000].iloc[:5]
    found, expected = (explainer.explain(poor, n_samples=100) for explainer in (weighted, repeated))
    assert found.frame.equals(expected.frame)
    with pytest.raises(mcce.InputError, match="sample_weight has 3 weights"):
        mcce.MCCE(rich, decision=True).fit(numbers, sample_weight=[1, 2, 3])


def test_generator_without_weight_support_raises(X, counts):
    class Joint(mcce.ChainModel):
        takes_weights = False

        def fit(self, X, decision=None, *, progress=None):
            return super().fit(X, decision, progress=progress)

    explainer = mcce.MCCE(lambda rows: rows["salary"] > 0, decision=True, generator=Joint())
    with pytest.raises(mcce.SamplerError, match=r"ChainModel\(.*\) does not take sample_weight"):
        explainer.fit(X, sample_weight=counts)
