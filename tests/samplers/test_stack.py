"""Stacking compared with an analytic mixture of two normals; conformance, errors, storage."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import ConditionalSampler, InputError, RestrictedDraw, SamplerError, Within
from mcce.rng import RowStreams
from mcce.samplers.stack import stacking_weights
from mcce.table import Schema
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from tests.marks import nightly_but_named

CONFORMING = mcce.StackSampler(["ctree", "parametric"], n_folds=2)
KEPT = ("check_conditional", "check_log_density")


@pytest.mark.parametrize(
    "check", nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], *KEPT), ids=lambda check: check.__name__
)
def test_conformance(check):
    check(CONFORMING, 0)


class Normal(ConditionalSampler):
    """A normal distribution with known mean, independent of the data."""

    ignores_given = True
    thread_safe = True

    def __init__(self, *, mean=0.0):
        self.mean = mean

    def fit(self, given, target):
        self.law_ = stats.norm(self.mean)
        return self

    def sample(self, given, rng, within=None):
        return self.law_.ppf(rng.uniform())

    def sample_within(self, given, rng, within):
        low, high = map(self.law_.cdf, within.bounds(given.n_rows))
        return RestrictedDraw.of(self.law_.ppf(low + (high - low) * rng.uniform()), high <= low, np.log(high - low))

    def log_density(self, given, values, training_rows=None):
        return self.law_.logpdf(values)

    def base_measure(self):
        return "lebesgue"


class WithoutMass(Normal):
    """The same, with restricted draws by rejection."""

    def sample_within(self, given, rng, within):
        return ConditionalSampler.sample_within(self, given, rng, within)


N = 4000


def two_normals(n=N):
    """Return rows of 0.3 N(-2, 1) + 0.7 N(2, 1)."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=n) + np.where(rng.random(n) < 0.3, -2.0, 2.0)
    frame = pd.DataFrame({"x": rng.normal(size=n), "y": y})
    return Schema.from_data(frame).encode(frame)


@pytest.fixture(scope="module")
def fitted():
    table = two_normals()
    stack = mcce.StackSampler({"low": Normal(mean=-2.0), "high": Normal(mean=2.0)}, max_rows=N)
    return stack.fit(table.first(1), table.column(1)), table


def mixture_cdf(stack, values):
    return stats.norm.cdf(values[:, None], [-2.0, 2.0]) @ stack.weights_


@pytest.mark.slow
def test_weights_maximise_the_mean_log_density():
    rng = np.random.default_rng(2)
    log_densities, rows = rng.normal(size=(300, 2)), rng.uniform(0.5, 2.0, 300)
    grid = np.linspace(1e-4, 1 - 1e-4, 9999)
    for weights in (None, rows):
        of_grid = [
            np.average(np.logaddexp(np.log(a), np.log1p(-a) + np.diff(log_densities)[:, 0]), weights=weights)
            for a in grid
        ]
        assert stacking_weights(log_densities, weights)[0] == pytest.approx(grid[np.argmax(of_grid)], abs=2e-3)


def test_weights_and_density_match_the_mixture(fitted):
    stack, table = fitted
    assert stack.labels_ == ("low", "high")
    assert stack.weights_[0] == pytest.approx(0.3, abs=4 * np.sqrt(0.3 * 0.7 / N))
    values = np.linspace(-5, 5, N)
    density = stats.norm.pdf(values[:, None], [-2.0, 2.0]) @ stack.weights_
    np.testing.assert_allclose(stack.log_density(table.first(1), values), np.log(density), rtol=1e-12)
    assert stack.base_measure() == "lebesgue"


def test_draws_follow_the_mixture(fitted):
    stack, table = fitted
    drawn = stack.sample(table.first(1), RowStreams.from_seed(3, N))
    assert stats.kstest(drawn, lambda values: mixture_cdf(stack, values)).pvalue > 0.01
    some = np.arange(0, N, 7)
    of_some = stack.sample(table.first(1).take(some), RowStreams.from_seed(3, N).take(some))
    np.testing.assert_array_equal(of_some, drawn[some])


def test_restricted_draws_weight_components_by_allowed_probability(fitted):
    stack, table = fitted
    low, high = mixture_cdf(stack, np.array([-1.0, 1.0]))
    within = Within(low=np.full(N, -1.0), high=np.full(N, 1.0))
    drawn = stack.sample_within(table.first(1), RowStreams.from_seed(4, N), within)
    assert not drawn.rejected.any()
    np.testing.assert_allclose(drawn.log_mass, np.log(high - low), rtol=1e-9)
    law = stats.kstest(drawn.values, lambda values: (mixture_cdf(stack, values) - low) / (high - low))
    assert law.pvalue > 0.01
    asymmetric = Within(low=np.full(N, -0.5))  # by the weights alone, 30 % of the draws would come from "low"
    values = stack.sample(table.first(1), RowStreams.from_seed(5, N), asymmetric)
    below = mixture_cdf(stack, np.array([-0.5]))[0]
    law = stats.kstest(values, lambda values: (mixture_cdf(stack, values) - below) / (1 - below))
    assert law.pvalue > 0.01


@pytest.mark.slow
def test_components_without_probabilities_use_an_estimate(fitted):
    _, table = fitted
    stack = mcce.StackSampler({"low": WithoutMass(mean=-2.0), "high": Normal(mean=2.0)}, max_rows=N)
    stack.fit(table.first(1), table.column(1))
    drawn = stack.sample_within(table.first(1), RowStreams.from_seed(4, N), Within(low=np.zeros(N)))
    mass = 1 - mixture_cdf(stack, np.zeros(1))[0]
    estimates = np.exp(drawn.log_mass)
    assert estimates.mean() == pytest.approx(mass, abs=4 * estimates.std() / np.sqrt(N))
    assert (drawn.values >= 0).all()


@pytest.mark.slow
def test_chain_specified_by_name_round_trips(tmp_path):
    X = mcce.datasets.load_loans(200).X[["age", "salary", "housing"]]
    chain = mcce.ChainModel(sampler="stack", fixed=["age"], random_state=1).fit(X)
    chain.save(tmp_path / "chain.mcce")
    loaded = mcce.ChainModel.load(tmp_path / "chain.mcce")
    pd.testing.assert_frame_equal(loaded.sample(50), chain.sample(50))
    pd.testing.assert_series_equal(loaded.log_density(X), chain.log_density(X))


def test_features_of_a_chain_share_the_folds(monkeypatch):
    from mcce.samplers.mixture import sampler

    fits = []
    fit_mixture = sampler.fit_mixture
    monkeypatch.setattr(sampler, "fit_mixture", lambda *given: fits.append(1) or fit_mixture(*given))
    X = mcce.datasets.load_loans(200).X[["age", "sex", "salary", "savings", "housing"]]
    stack = mcce.StackSampler([mcce.MixtureSampler(max_components=1), "marginal"], n_folds=3)
    mcce.ChainModel(sampler=stack, fixed=["age"], random_state=1).fit(X)
    assert len(fits) == 3 + 1


def test_candidates_that_cannot_model_the_target_are_dropped():
    X = mcce.datasets.load_loans(200).X[["age", "housing"]]
    table = Schema.from_data(X).encode(X)
    stack = mcce.StackSampler(["norm", "marginal"]).fit(table.first(1), table.column(1))
    assert stack.labels_ == ("marginal",)
    assert "cannot model 'housing'" in stack.left_out_["norm"]
    with pytest.raises(
        SamplerError, match=r"no candidate of StackSampler.* can model 'housing' \(norm: .*cannot model"
    ):
        mcce.StackSampler(["norm"]).fit(table.first(1), table.column(1))


def test_missing_values_drop_candidates_that_cannot_handle_them():
    X = mcce.datasets.load_loans(200).X[["age", "salary"]].astype(float)
    X.loc[:20, "salary"] = np.nan
    table = Schema.from_data(X).encode(X)
    stack = mcce.StackSampler(["copula", "parametric"]).fit(table.first(1), table.column(1))
    assert "does not handle missing values" in stack.left_out_["copula"]


def test_invalid_parameters_and_modified_state_raise(fitted):
    _, table = fitted
    given, target = table.first(1), table.column(1)
    with pytest.raises(InputError, match="candidates of StackSampler: the list is empty"):
        mcce.StackSampler([]).fit(given, target)
    with pytest.raises(InputError, match="n_folds of StackSampler is 1"):
        mcce.StackSampler(n_folds=1).fit(given, target)
    broken = mcce.StackSampler(["marginal", "parametric"]).fit(given, target)
    broken.weights_ = broken.weights_ * 0.5
    with pytest.raises(InputError, match="weights_ do not sum to 1"):
        broken.check_state(given.features, target.feature, N)


def test_private_sampler_raises():
    sampler = mcce.StackSampler([mcce.DPSampler(epsilon=1.0), "norm"])
    with pytest.raises(SamplerError, match="would not be private"):
        mcce.ChainModel(sampler=sampler, random_state=1).fit(mcce.datasets.load_loans(300).X[["age", "salary"]])
