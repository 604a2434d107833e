"""Weights in the empirical conditional, the mixture and the vine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.rng import RowStreams
from mcce.samplers.empirical.sampler import Scaling
from mcce.samplers.mixture.model import fit_mixture
from mcce.storage.learned import get_state
from mcce.table import Column, Schema
from tests.extras import NO_VINE, needs_vine
from tests.weighted_loans import FIXED, N, some_counts, some_loans

VINE = {"savings": mcce.VineSampler(max_givens=2), "*": "cart"}
SAMPLERS = [
    pytest.param("empirical", id="empirical"),
    pytest.param(mcce.EmpiricalSampler(bandwidth=0.3, keep=1.0), id="empirical, all donors"),
    pytest.param(mcce.MixtureSampler(max_components=4), id="mixture", marks=pytest.mark.nightly),
    pytest.param(VINE, id="vine", marks=[pytest.mark.nightly, needs_vine]),
]


@pytest.fixture(scope="module")
def loans():
    return some_loans()


@pytest.fixture(scope="module")
def counts():
    return some_counts()


def chain_of(sampler, X, weights=None):
    if isinstance(sampler, dict):  # vines do not support missing values
        X = X.fillna({"salary": 1.0})
    return mcce.ChainModel(sampler=sampler, fixed=FIXED, random_state=1).fit(X, sample_weight=weights)


def repeated(X, counts):
    return X.iloc[np.repeat(np.arange(len(X)), counts)].reset_index(drop=True)


@pytest.mark.filterwarnings("ignore:.*rows could not be drawn within")
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_counts_draw_the_same_as_repeated_rows(sampler, loans, counts):
    weighted, expected = chain_of(sampler, loans, counts), chain_of(sampler, repeated(loans, counts))
    given, within = loans[FIXED].iloc[:40], {"savings": (1_000, 30_000)}
    pd.testing.assert_frame_equal(weighted.sample(10, given), expected.sample(10, given))
    pd.testing.assert_frame_equal(weighted.sample(200), expected.sample(200))
    found, wanted = (chain.sample(3, given, within=within, importance=True) for chain in (weighted, expected))
    pd.testing.assert_frame_equal(found[0], wanted[0])
    pd.testing.assert_series_equal(found[1], wanted[1], rtol=1e-9)
    rows = loans
    if isinstance(sampler, dict):  # the slope of a margin jumps at training values, which rounding assigns to one side
        rows = loans.fillna({"salary": 1.0}).assign(savings=loans["savings"] + 37 * (loans["savings"] > 0))
    found, wanted = (chain.log_density(rows, per_feature=True) for chain in (weighted, expected))
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-8)


@pytest.mark.slow
def test_bandwidth_equals_repeated_rows(loans, counts):
    """Mixed givens use Gower's distance, numeric ones Mahalanobis'; both by AICc, with more than 500 rows."""
    for columns in (["age", "sex", "savings"], ["age", "savings"]):
        X = pd.concat([loans[columns]] * 2, ignore_index=True)
        copies = np.concatenate([counts, counts[::-1]])
        chains = [
            mcce.ChainModel(sampler="empirical", fixed=columns[:-1], random_state=1).fit(rows, sample_weight=weights)
            for rows, weights in ((X, copies), (repeated(X, copies), None))
        ]
        found, wanted = (chain.samplers_["savings"] for chain in chains)
        assert copies.sum() > 500
        assert found.bandwidth_ == wanted.bandwidth_
        np.testing.assert_allclose(np.abs(found.scaling_.factor), np.abs(wanted.scaling_.factor), rtol=1e-9)


def test_mahalanobis_scales_match_the_weighted_covariance():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)), columns=list("abc"))
    weights = rng.uniform(0.2, 3.0, 60)
    table = Schema.from_data(X).encode(X)
    covariance = np.cov(X.T, aweights=weights, ddof=0) * weights.sum() / (weights.sum() - 1.0)
    factor = Scaling.of(table, weights).factor
    np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(covariance) / 3, rtol=1e-9)


@pytest.mark.parametrize("name", ["empirical", "vine"])
def test_counts_support_the_same_as_repeated_rows(name, loans, counts):
    if name == "vine":
        pytest.importorskip("pyvinecopulib", reason=NO_VINE)
    numbers = loans[["age", "savings"]]
    chains = [
        mcce.ChainModel(sampler=name, fixed=["age"]).fit(rows, sample_weight=weights)
        for rows, weights in ((numbers, counts), (repeated(numbers, counts), None))
    ]
    table = chains[0].schema_.encode(numbers)
    values = table.matrix[:, 1] + np.random.default_rng(0).normal(0, 300, N) * (np.arange(N) % 2)
    found, expected = (chain.samplers_["savings"].supports(table.first(1), values) for chain in chains)
    np.testing.assert_array_equal(found, expected)
    assert found.any()
    assert not found.all()


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_weights_are_relative_and_zeros_are_absent(sampler, loans):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N)
    weights[:40] = 0.0
    plain = chain_of(sampler, loans.iloc[40:], weights[40:]).sample(150)
    for scale in (1.0, 4096.7):
        pd.testing.assert_frame_equal(chain_of(sampler, loans, scale * weights).sample(150), plain)


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param("empirical", marks=pytest.mark.nightly),
        pytest.param("mixture", marks=pytest.mark.nightly),
        pytest.param("vine", marks=needs_vine),
    ],
)
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_draws_follow_the_weights_of_a_known_process(sampler, share):
    """y = 3 x + e in one group of rows, y = 30 - x + e in the other: the weights decide which one dominates."""
    rng = np.random.default_rng(0)
    n = 1000
    group, x = np.arange(n) % 2, rng.normal(size=n)
    y = np.where(group == 1, 30.0 - x, 3.0 * x) + rng.normal(size=n)
    weights = np.where(group == 1, share, 1.0 - share) * 3.7
    X = pd.DataFrame({"x": x, "y": y})
    chain = mcce.ChainModel(sampler=sampler, fixed=["x"], random_state=1).fit(X, sample_weight=weights)
    given = pd.DataFrame({"x": rng.normal(size=2000)})
    drawn = chain.sample(1, given)["y"].to_numpy()
    assert abs((drawn > 15.0).mean() - share) < 0.05
    mine, slope = (drawn < 15.0, 3.0) if share == 0.1 else (drawn > 15.0, -1.0)
    assert np.polyfit(given["x"][mine], drawn[mine], 1)[0] == pytest.approx(slope, abs=0.6)


def test_em_of_fractional_weights_equals_copies():
    """Weights w and rows repeated 10 w times have the same maximum with 10 times as many pseudo-rows."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"x": rng.normal(size=300), "level": rng.choice(["a", "b", "c"], 300)})
    tenths = rng.integers(1, 20, 300)
    table = Schema.from_data(X).encode(X)
    by_weight = fit_mixture(replace(table, weights=tenths / 10.0), 1, 1)
    by_copies = fit_mixture(replace(table, weights=tenths.astype(float)), 1, 1)
    np.testing.assert_allclose(by_weight.shares, by_copies.shares, atol=0.01)
    shares = np.bincount(np.searchsorted(["a", "b", "c"], X["level"]), tenths) / tenths.sum()
    codes = [list(table.features[1].levels).index(level) for level in "abc"]
    np.testing.assert_allclose(by_weight.shares[0, 1:][codes], shares, atol=1e-12)


def test_leave_one_out_removes_the_weight():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"x": rng.normal(size=400), "y": rng.normal(size=400)})
    weights = rng.integers(1, 4, 400).astype(float)
    table = Schema.from_data(X).encode(X)
    sampler = mcce.EmpiricalSampler(bandwidth=5.0, keep=1.0)
    left_out = sampler.fit(table.first(1), Column(table.features[1], table.matrix[:, 1], weights)).log_density(
        table.first(1), table.matrix[:, 1], np.arange(400)
    )
    heavy = int(np.argmax(weights == 3))
    others = table.take(np.delete(np.arange(400), heavy))
    sampler.fit(others.first(1), Column(table.features[1], others.matrix[:, 1], np.delete(weights, heavy)))
    expected = sampler.log_density(table.first(1).take([heavy]), table.matrix[[heavy], 1])
    assert left_out[heavy] == pytest.approx(expected[0], abs=0.05)  # bandwidths and scales are unchanged


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_weighted_chains_round_trip(sampler, loans, counts, tmp_path):
    chain = chain_of(sampler, loans, 1.5 * counts)
    chain.save(tmp_path / "chain")
    again = mcce.ChainModel.load(tmp_path / "chain")
    pd.testing.assert_frame_equal(again.sample(60), chain.sample(60))
    rows = loans.dropna().head(30)
    pd.testing.assert_series_equal(again.log_density(rows), chain.log_density(rows))


def test_refit_without_weights_discards_them(loans):
    table = Schema.from_data(loans).encode(loans)
    sampler = mcce.EmpiricalSampler(bandwidth=0.3)
    sampler.fit(table.first(2), Column(table.features[3], table.matrix[:, 3], np.full(N, 2.0)))
    sampler.fit(table.first(2), table.column(3))
    assert "weights_" not in get_state(sampler)


@pytest.mark.slow
def test_mixture_with_missing_scores_round_trips(tmp_path):
    """Covariances of imputed scores are symmetric up to rounding."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)), columns=list("abcd"))
    X = X.mask(rng.random(X.shape) < 0.2)
    chain = mcce.ChainModel(sampler="mixture", fixed=["a"], random_state=1).fit(X)
    chain.save(tmp_path / "chain")
    pd.testing.assert_frame_equal(mcce.ChainModel.load(tmp_path / "chain").sample(20), chain.sample(20))


def test_draws_of_a_stream_do_not_depend_on_other_rows(loans, counts):
    table = Schema.from_data(loans).encode(loans)
    kept = np.flatnonzero(counts)
    sampler = mcce.EmpiricalSampler().fit(
        table.take(kept).first(2), Column(table.features[3], table.matrix[kept, 3], 0.7 * counts[kept])
    )
    streams = RowStreams.from_seed(1, N)
    whole = sampler.sample(table.first(2), streams)
    some = np.arange(0, N, 7)
    np.testing.assert_array_equal(
        sampler.sample(table.first(2).take(some), RowStreams.from_seed(1, N).take(some)), whole[some]
    )
