"""Scores of fitted samplers on new rows: closed forms and invariance."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

import mcce
from mcce.exceptions import InputError
from mcce.judging import scores as conditional
from mcce.judging.scores import Scores, score_conditional
from mcce.table import Column, Schema
from tests.marks import slow

MEAN, SD = 3.0, 2.0


class Normal(mcce.ConditionalSampler):
    """The true conditional of `x` below, without a density."""

    handles = frozenset({"numeric"})

    def fit(self, given, target):
        return self

    def sample(self, given, rng, within=None):
        return MEAN + given.matrix[:, 0] + SD * rng.normal()


def encode(frame):
    return Schema.from_data(frame).encode(frame)


def normal_table(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return encode(pd.DataFrame({"z": z, "x": MEAN + z + SD * rng.normal(size=n)}))


def test_correct_conditional_has_uniform_pit_and_normal_crps():
    table = normal_table(2000, 1)
    scores = score_conditional(Normal(), table.first(1), table.column(1), seed=1, n_draws=100)
    assert stats.kstest(scores.pit, "uniform").pvalue > 0.01
    z = (table.matrix[:, 1] - MEAN - table.matrix[:, 0]) / SD
    exact = SD * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert abs((scores.crps - exact).mean()) < 3.5 * (scores.crps - exact).std() / np.sqrt(z.size)
    np.testing.assert_allclose(scores.spread.mean(), 2 * SD / np.sqrt(np.pi), rtol=0.01)
    assert scores.log_score is None
    assert scores.base_measure is None
    np.testing.assert_array_equal(scores.levels.levels, [np.nan])
    assert scores.from_draws is scores.crps


def test_log_scores_equal_the_densities_of_the_sampler():
    table = normal_table(400, 2)
    fitted = mcce.NormSampler().fit(table.first(1), table.column(1))
    new = normal_table(50, 3)
    scores = score_conditional(fitted, new.first(1), new.column(1), seed=1, n_draws=10)
    residual = new.matrix[:, 1] - LinearRegression().fit(table.matrix[:, :1], table.matrix[:, 1]).predict(
        new.matrix[:, :1]
    )
    exact = stats.norm.logpdf(residual, scale=fitted.sigma_)
    np.testing.assert_allclose(scores.log_score, exact, rtol=1e-4)  # mice has a small ridge
    assert scores.base_measure == "lebesgue"


@pytest.mark.parametrize("sampler", ["cart", *slow("marginal", "parametric")])
def test_scores_do_not_depend_on_row_order_or_block(sampler, monkeypatch):
    X = mcce.datasets.load_loans(260).X
    X = X[~X.iloc[:, :5].duplicated()].head(200)  # equal rows may exchange their scores
    table = encode(X)
    for k in (4, 5):
        if sampler == "parametric" and any(f.has_missing for f in table.features[: k + 1]):
            continue
        fitted = mcce.samplers.make_sampler(sampler).fit(table.first(k), table.column(k))
        first = score_conditional(fitted, table.first(k), table.column(k), seed=3, n_draws=20)
        order = np.random.default_rng(1).permutation(200)
        monkeypatch.setattr(conditional, "BLOCK_VALUES", 130)
        shuffled = table.take(order)
        again = score_conditional(fitted, shuffled.first(k), shuffled.column(k), seed=3, n_draws=20)
        for name in ("crps", "brier", "pit", "spread", "log_score"):
            one, other = getattr(first, name), getattr(again, name)
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one[order], other, rtol=1e-12)
        other_seed = score_conditional(fitted, shuffled.first(k), shuffled.column(k), seed=4, n_draws=20)
        assert (other_seed.from_draws != again.from_draws).any()


def test_equal_rows_have_different_draws():
    table = encode(pd.DataFrame({"z": [1.0] * 50, "x": [np.pi] * 50}))
    scores = score_conditional(Normal(), table.first(1), table.column(1), seed=1, n_draws=5)
    assert np.unique(scores.crps).size == 50


def test_point_masses_and_missing_values_are_counted_and_scored():
    rng = np.random.default_rng(1)
    x = np.where(rng.uniform(size=600) < 0.3, 0.0, rng.exponential(size=600))
    x[rng.uniform(size=600) < 0.2] = np.nan
    table = encode(pd.DataFrame({"x": x}))
    new = table.take(np.arange(300, 600))
    fitted = mcce.MarginalSampler().fit(table.take(np.arange(300)).first(0), table.take(np.arange(300)).column(0))
    scores = score_conditional(fitted, new.first(0), new.column(0), seed=1, n_draws=100)
    np.testing.assert_array_equal(scores.levels.levels, [0.0, np.nan])
    shares = [(x[:300] == 0).mean(), np.isnan(x[:300]).mean(), (x[:300] > 0).mean()]
    np.testing.assert_allclose((scores.levels.counts / scores.n_draws).mean(axis=0), shares, atol=0.015)
    np.testing.assert_array_equal(scores.levels.observed, np.where(np.isnan(x), 1, np.where(x == 0, 0, 2))[300:])
    assert np.isfinite(scores.crps).all()


def test_levels_have_brier_scores_and_ordered_levels_crps_and_pit():
    X = pd.DataFrame({"job": list("aab" * 20), "rank": pd.Categorical(list("lmh" * 20), list("lmh"), ordered=True)})
    table = encode(X)
    for k, has_brier in [(0, True), (1, False)]:
        fitted = mcce.MarginalSampler().fit(table.first(k), table.column(k))
        scores = score_conditional(fitted, table.first(k), table.column(k), seed=1, n_draws=50)
        assert (scores.brier is not None, scores.crps is None, scores.pit is None) == (has_brier,) * 3
        assert scores.levels.counts.shape == (60, 2 + k + 1)  # missing is a level
        assert (scores.levels.counts.sum(axis=1) == 50).all()


def test_draws_are_rounded_to_the_grid_before_scoring():
    frame = pd.DataFrame({"z": np.zeros(200), "x": np.random.default_rng(1).poisson(3, 200)})
    table = encode(frame)
    scores = score_conditional(Normal(), table.first(1), table.column(1), seed=1, n_draws=50)
    assert (scores.levels.counts[:, :-1].sum() / scores.levels.counts.sum()) > 0.8


@pytest.mark.parametrize("n_draws", [1, 2.5])
def test_too_few_draws_raise(n_draws):
    table = normal_table(5, 1)
    with pytest.raises(InputError, match=r"n_draws is .*; it must be a whole number of at least 2"):
        score_conditional(Normal(), table.first(1), table.column(1), seed=1, n_draws=n_draws)


def test_values_for_other_rows_raise():
    table = normal_table(5, 1)
    short = Column(table.features[1], table.matrix[:3, 1])
    with pytest.raises(InputError, match="given has 5 rows for 3 values; give one value per row"):
        score_conditional(Normal(), table.first(1), short, seed=1)


def test_joined_scores_equal_scores_of_all_rows():
    table = normal_table(60, 1)
    parts = [table.take(np.arange(25)), table.take(np.arange(25, 60))]
    scored = [score_conditional(Normal(), part.first(1), part.column(1), seed=1, n_draws=5) for part in parts]
    both = Scores.concatenate(scored)
    whole = score_conditional(Normal(), table.first(1), table.column(1), seed=1, n_draws=5)
    np.testing.assert_array_equal(both.crps, whole.crps)
    np.testing.assert_array_equal(both.levels.counts, whole.levels.counts)
    assert both.log_score is None
    np.testing.assert_array_equal(whole.take(np.array([7, 3])).pit, whole.pit[[7, 3]])


def test_log_scores_for_different_measures_are_not_joined():
    table = normal_table(60, 1)
    fitted = mcce.NormSampler().fit(table.first(1), table.column(1))
    one = score_conditional(fitted, table.first(1), table.column(1), seed=1, n_draws=5)
    other = dataclasses.replace(one, base_measure="counting")
    assert Scores.concatenate([one, one]).log_score.size == 120
    assert Scores.concatenate([one, other]).log_score is None
