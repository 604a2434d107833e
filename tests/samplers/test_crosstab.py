"""`catall` and `nested`: the joint distribution of a chain compared with the table by brute force."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import SamplerError, Within
from mcce.rng import RowStreams
from mcce.storage.state import from_state, to_state
from mcce.testing import check_sampler
from tests.samplers.parametric.problem import encode

LEVEL = 1e-3


def three_way(n=60):
    """A table with empty cells."""
    rng = np.random.default_rng(3)
    a = rng.choice(["a", "b"], n)
    b = np.where(a == "a", rng.choice(["u", "v"], n), rng.choice(["v", "w"], n))
    c = np.where(b == "u", "x", rng.choice(["x", "y", "z"], n))
    return pd.DataFrame({"a": a, "b": b, "c": c})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["catall", "nested"])
def test_conformance(name):
    check_sampler(name)


@pytest.mark.parametrize("prior", [0.5, 2.0])
def test_chain_has_the_posterior_mean_of_the_whole_table(prior):
    """The joint distribution is (n + prior / cells) / (N + prior), as of synthpop's catall, in any visit sequence."""
    X = three_way()
    counts = X.value_counts()
    for order in (["a", "b", "c"], ["c", "a", "b"]):
        chain = mcce.ChainModel(sampler=mcce.CatallSampler(prior=prior), visit_sequence=order, random_state=1).fit(X)
        cells = pd.DataFrame(list(itertools.product("ab", "uvw", "xyz")), columns=["a", "b", "c"])
        expected = (counts.reindex(pd.MultiIndex.from_frame(cells), fill_value=0) + prior / 18) / (60 + prior)
        np.testing.assert_allclose(np.exp(chain.log_density(cells)), expected, rtol=1e-12)


def test_weights_equal_repeated_rows_and_missing_is_a_level():
    X = three_way().assign(m=lambda x: x["a"].where(np.arange(60) % 7 > 0))
    given, target = encode(X, "m")
    counts = np.arange(60) % 3 + 1.0
    weighted = mcce.CatallSampler().fit(given, type(target)(target.feature, target.values, counts))
    rows = np.repeat(np.arange(60), counts.astype(int))
    copied = mcce.CatallSampler().fit(given.take(rows), target.take(rows))
    np.testing.assert_allclose(weighted.probabilities(given), copied.probabilities(given), rtol=1e-12)
    np.testing.assert_allclose(weighted.probabilities(given).sum(axis=1), 1.0)
    missing = np.exp(weighted.log_density(given, np.full(60, np.nan)))
    np.testing.assert_allclose(missing, weighted.probabilities(given)[:, -1])
    assert (missing > 0.0).all()


def test_numbers_are_counted_by_quantile_group():
    x = np.arange(100.0)
    given, target = encode(pd.DataFrame({"x": x, "y": np.where(x < 40, "low", "high")}))
    fitted = mcce.CatallSampler(prior=0.0, n_groups=5).fit(given, target)
    assert fitted.cuts_[0].size == 4
    truth = fitted.probabilities(given)[np.arange(100), target.values.astype(int)]
    assert (truth == 1.0).mean() >= 0.95
    far = type(given)(given.features, np.array([[-1e9], [1e9]]))
    np.testing.assert_array_equal(fitted.probabilities(far), fitted.probabilities(given.take(np.array([0, 99]))))


def towns(n=3000):
    """Towns within regions within countries, and a column that is not nested."""
    rng = np.random.default_rng(1)
    town = rng.choice(8, n, p=np.arange(1, 9) / 36)
    names = np.array([f"t{i}" for i in range(8)])
    return pd.DataFrame(
        {
            "country": np.array(["c0", "c1"])[town // 4],
            "sex": rng.choice(["f", "m"], n),
            "region": np.array([f"r{i}" for i in range(4)])[town // 2],
            "town": names[town],
        }
    )


def test_nested_finds_the_finest_coarse_column_and_keeps_its_shares():
    X = towns()
    given, target = encode(X, "town")
    fitted = mcce.NestedSampler().fit(given, target)
    assert given.features[fitted.columns_[0]].name == "region"
    drawn = fitted.sample(given, RowStreams.from_seed(1, 3000)).astype(int)
    table = pd.crosstab(X["region"], np.array(target.feature.levels)[drawn])
    observed = pd.crosstab(X["region"], X["town"])
    assert ((table == 0) == (observed == 0)).all(axis=None)
    for region in observed.index:
        seen = observed.loc[region] > 0
        assert stats.chisquare(table.loc[region][seen], observed.loc[region][seen]).pvalue > LEVEL
    again = from_state(to_state(fitted))
    np.testing.assert_array_equal(again.probabilities(given), fitted.probabilities(given))


def test_restricted_draws_are_renormalised_and_infeasible_ones_rejected():
    given, target = encode(towns(), "town")
    fitted = mcce.NestedSampler(within="region").fit(given, target)
    levels = np.tile(np.arange(8) % 2 == 0, (3000, 1))
    levels[:10] = np.arange(8) == 7
    found = fitted.sample_within(given, RowStreams.from_seed(1, 3000), Within(levels=levels, weighted=True))
    assert (found.values[10:] % 2 == 0).all()
    of_last = given.matrix[:10, 2] == 3
    np.testing.assert_array_equal(found.rejected[:10], ~of_last)
    share = (fitted.probabilities(given)[:, :-1] * levels).sum(axis=1)
    np.testing.assert_allclose(np.exp(found.log_mass), share)


def test_coarse_level_without_rows_has_the_overall_shares():
    given, target = encode(towns(), "town")
    keep = np.flatnonzero(given.matrix[:, 2] != 3)
    fitted = mcce.NestedSampler(within="region").fit(given.take(keep), target.take(keep))
    row = given.take(np.flatnonzero(given.matrix[:, 2] == 3)[:1])
    shares = np.bincount(target.values[keep].astype(int), minlength=8) / keep.size
    np.testing.assert_allclose(fitted.probabilities(row)[0, :-1], shares)


def test_errors_name_the_fix():
    given, target = encode(towns(), "town")
    with pytest.raises(
        SamplerError, match=r"needs 'regin' among its givens, with levels, before it in .*; did you mean 'region'"
    ):
        mcce.NestedSampler(within="regin").fit(given, target)
    wide = pd.DataFrame({f"x{j}": np.arange(20.0) for j in range(12)} | {"y": ["a", "b"] * 10})
    with pytest.raises(SamplerError, match=r"would cross 12 givens to .* cells.*Reduce the givens by predictors={'y'"):
        mcce.CatallSampler().fit(*encode(wide))
