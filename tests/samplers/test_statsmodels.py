"""Models of statsmodels: densities against scipy, recovery of known processes, refusals. Level of all tests: 1e-4."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import special, stats
from sklearn.base import clone

from mcce.exceptions import InputError, MCCEWarning
from mcce.rng import RowStreams
from mcce.samplers.base import make_sampler
from mcce.samplers.statsmodels import QUANTILES, QuantileGrid, QuantileSampler, StatsmodelsSampler
from mcce.samplers.within import Within
from tests.samplers.parametric.fixtures import at, encode
from tests.samplers.parametric.test_logistic import ordered_data

LEVEL = 1e-4
LOG = sm.families.links.Log()


def process(law, n=4000, seed=0):
    """Return a frame whose linear predictor is .5 + .6 x - .4 [f = v], and that predictor."""
    rng = np.random.default_rng(seed)
    x, f = rng.normal(size=n), rng.integers(0, 2, n)
    eta = 0.5 + 0.6 * x - 0.4 * f
    y = true_law(law, eta).rvs(random_state=rng)
    if law == "zip":
        y = np.where(rng.random(n) < 0.3, 0, y)
    return pd.DataFrame({"x": x, "f": np.array(["u", "v"])[f], "y": y.astype(float)}), eta


def true_law(law, eta):
    mu = np.exp(eta)
    return {
        "norm": lambda: stats.norm(eta, 0.8),
        "poisson": lambda: stats.poisson(mu),
        "zip": lambda: stats.poisson(mu),
        "negbin": lambda: stats.nbinom(2.0, 2.0 / (2.0 + mu)),
        "gamma": lambda: stats.gamma(2.0, scale=mu / 2.0),
        "inverse gaussian": lambda: stats.invgauss(mu / 4.0, scale=4.0),
        "beta": lambda: stats.beta(6.0 * special.expit(eta), 6.0 * special.expit(-eta)),
    }[law]()


SAMPLERS = {
    "norm": StatsmodelsSampler("OLS"),
    "poisson": make_sampler("poisson"),
    "zip": make_sampler("zip"),
    "negbin": make_sampler("negbin"),
    "gamma": make_sampler("gamma"),
    "beta": make_sampler("beta"),
    "inverse gaussian": StatsmodelsSampler(sm.GLM, options={"family": sm.families.InverseGaussian(LOG)}),
}
LAWS = pytest.mark.parametrize("law", SAMPLERS)


@LAWS
def test_a_known_process_is_recovered(law):
    """The coefficients, and the distribution of draws by the probability integral transform."""
    frame, _ = process(law)
    given, target = encode(frame)
    fitted = clone(SAMPLERS[law]).fit(given, target)
    np.testing.assert_allclose(fitted.coef_, [0.5, 0.6, -0.4], atol=0.15)
    fresh, eta = process(law, seed=1)
    values, rejected = fitted.distribution(encode(fresh)[0]).sample(RowStreams.from_seed(2, len(fresh)))
    assert not rejected.any()
    truth = true_law(law, eta)
    low = truth.cdf(values - 1.0) if hasattr(truth, "pmf") else truth.cdf(values)
    if law == "zip":
        zero = np.where(values > 0, 0.3, 0.0)
        low, high = zero + 0.7 * low, 0.3 + 0.7 * truth.cdf(values)
    else:
        high = truth.cdf(values)
    pit = low + np.random.default_rng(3).random(low.size) * (high - low)
    assert stats.kstest(pit, "uniform").pvalue > LEVEL


@LAWS
def test_densities_are_those_of_statsmodels_and_scipy(law):
    """The twin and our families against the distribution that statsmodels itself returns for all columns."""
    given, target = encode(process(law, n=300)[0])
    fitted = clone(SAMPLERS[law]).fit(given, target)
    assert fitted.twin_ is not None
    exog = fitted.columns_.matrix(fitted.design_.matrix(given))
    extra = {"zip": {"exog_infl": np.ones((300, 1))}, "beta": {"exog_precision": np.ones((300, 1))}}.get(law, {})
    if law == "norm":
        theirs = fitted.results_.model.get_distribution(fitted.results_.params, fitted.results_.scale, exog)
    else:
        theirs = fitted.results_.get_distribution(exog, **extra)
    ours = fitted.distribution(given)
    is_count = hasattr(theirs.dist, "pmf")
    y = target.values
    np.testing.assert_allclose(ours.log_density(y), theirs.logpmf(y) if is_count else theirs.logpdf(y), atol=1e-6)
    np.testing.assert_allclose(ours.cdf(y), theirs.cdf(y), atol=1e-8)
    u = np.random.default_rng(0).random(300)
    np.testing.assert_allclose(ours.ppf(u), theirs.ppf(u), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("NegativeBinomial", {"loglike_method": "nb1"}),
        ("NegativeBinomialP", {"p": 1}),
        pytest.param("GeneralizedPoisson", {}, marks=pytest.mark.slow),
        ("ZeroInflatedNegativeBinomialP", {"p": 2}),
        (sm.GLM, {"family": sm.families.NegativeBinomial(alpha=0.5)}),
    ],
    ids=["nb1", "nbp", "generalized poisson", "zero-inflated", "glm"],
)
def test_further_models_of_counts(model, options):
    frame, _ = process("negbin", n=800)
    if model == "ZeroInflatedNegativeBinomialP":
        frame["y"] *= np.random.default_rng(1).random(800) < 0.7
    given, target = encode(frame)
    fitted = StatsmodelsSampler(model, options=options).fit(given, target)
    rows = at(given, [0.3, 1.0], 60)
    distribution, counts = fitted.distribution(rows), np.arange(60.0)
    p = np.exp(distribution.log_density(counts))
    assert p.sum() == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(np.cumsum(p), distribution.cdf(counts), atol=1e-8)
    assert fitted.distribution(given).sample(RowStreams.from_seed(1, 800))[0].mean() == pytest.approx(
        target.values.mean(), rel=0.2
    )


# ---- levels


@pytest.mark.parametrize(
    "model", ["Logit", "Probit", "MNLogit", pytest.param("OrderedModel", marks=pytest.mark.slow), "GLM"]
)
def test_levels(model):
    frame = ordered_data(3000)
    if model not in ("MNLogit", "OrderedModel"):
        frame["y"] = pd.Categorical(np.where(frame["y"] > "b", "yes", "no"))
    options = {"OrderedModel": {"distr": "logit"}, "GLM": {"family": sm.families.Binomial()}}.get(model)
    given, target = encode(frame)
    fitted = StatsmodelsSampler(model, options=options).fit(given, target)
    assert "numeric" not in fitted.handles
    p = fitted.probabilities(at(given, [0.4], 1))[0]
    below = stats.logistic.cdf(np.array([-np.inf, -1.0, 0.5, 2.0, np.inf]) - 1.2 * 0.4)
    truth = np.diff(below) if p.size == 4 else np.array([below[2], 1.0 - below[2]])
    np.testing.assert_allclose(p, truth, atol=0.05)
    assert p.sum() == pytest.approx(1.0)


def test_unobserved_levels_have_probability_zero():
    frame = ordered_data(500)
    frame["y"] = frame["y"].cat.set_categories(["z", *"abcd"], ordered=True)
    given, target = encode(frame)
    p = StatsmodelsSampler("OrderedModel").fit(given, target).probabilities(given)
    assert (p[:, 0] == 0.0).all()
    assert (p[:, 1:] > 0.0).all()


# ---- formulas, links, one's own


def test_formula_and_summary():
    given, target = encode(process("gamma")[0])
    fitted = make_sampler("gamma").set_params(formula="y ~ x * f").fit(given, target)
    assert fitted.names_ == ("const", "x", "f[T.v]", "x:f[T.v]")
    np.testing.assert_allclose(fitted.coef_, [0.5, 0.6, -0.4, 0.0], atol=0.08)
    assert "Log-Likelihood" in str(fitted.results_.summary())
    through_origin = StatsmodelsSampler("OLS", formula="x - 1").fit(given, target)
    expected = (given.matrix[:, 0] @ target.values) / (given.matrix[:, 0] @ given.matrix[:, 0])
    assert through_origin.coef_[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("link", "clipped"),
    [(sm.families.links.Identity(), False), (LOG, True), (sm.families.links.InversePower(), True)],
    ids=["identity", "log", "inverse"],
)
def test_the_link_decides_the_clipping(link, clipped):
    """Far outside of the training rows: predictors are clipped, and those of an inverse stay positive."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, 2000)
    y = rng.gamma(50.0, link.inverse(1.0 + 0.5 * x) / 50.0)
    given, target = encode(pd.DataFrame({"x": x, "y": y}))
    sampler = StatsmodelsSampler("GLM", options={"family": sm.families.Gamma(link)}).fit(given, target)
    u = np.full(3, 0.5)
    middle = sampler.distribution(type(given)(given.features, np.array([[100.0], [50.0], [-0.9]]))).ppf(u)
    ends = link.inverse(1.0 + 0.5 * np.array([2.0, 2.0, -0.9]))
    if clipped:
        np.testing.assert_allclose(middle, ends, rtol=0.1)
        assert np.isfinite(sampler.distribution(at(given, [-100.0], 3)).ppf(u)).all()
    else:
        assert middle[0] == pytest.approx(51.0, rel=0.15)


class Laplace:
    """One's own model: least absolute deviations, with the distribution in the results only."""

    def __init__(self, endog, exog):
        self.endog, self.exog = endog, exog

    def fit(self):
        self.params = sm.QuantReg(self.endog, self.exog).fit(q=0.5).params
        self.model = self
        self.width = np.abs(self.endog - self.exog @ self.params).mean()
        return LaplaceResults(self)


class LaplaceResults:
    def __init__(self, model):
        self.params, self.width = model.params, model.width
        self.model = object()

    def get_distribution(self, exog):
        return stats.laplace(exog @ self.params, self.width)


def test_ones_own_model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    given, target = encode(pd.DataFrame({"x": x, "y": 1.0 + 2.0 * x + rng.laplace(size=2000)}))
    fitted = StatsmodelsSampler(Laplace).fit(given, target)
    assert fitted.twin_ is None
    np.testing.assert_allclose(
        fitted.distribution(given).log_density(target.values), stats.laplace.logpdf(target.values, 1 + 2 * x), atol=0.3
    )
    drawn = fitted.distribution(given).sample(RowStreams.from_seed(0, 2000))[0]
    assert stats.kstest(drawn - 1.0 - 2.0 * x, "laplace").pvalue > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("law", ["norm", "gamma", "negbin"])
def test_proper_parameters_vary_like_the_estimates(law):
    given, target = encode(process(law, n=300)[0])
    fits = [clone(SAMPLERS[law]).set_params(proper=True, random_state=s).fit(given, target) for s in range(100)]
    estimate, covariance = np.asarray(fits[0].results_.params), np.asarray(fits[0].results_.cov_params())
    z = np.linalg.solve(np.linalg.cholesky(covariance)[:3, :3], (np.array([f.params_ for f in fits]) - estimate).T[:3])
    assert all(stats.kstest(row, "norm").pvalue > LEVEL for row in z)
    again = clone(SAMPLERS[law]).set_params(proper=True, random_state=0).fit(given, target)
    np.testing.assert_array_equal(again.params_, fits[0].params_)


# ---- refusals


def test_collinear_columns_are_reported():
    frame, _ = process("poisson", n=300)
    given, target = encode(frame.assign(twice=2.0 * frame["x"] + 1.0))
    with pytest.warns(MCCEWarning, match=r"Poisson of statsmodels for column 'y' does not use .* 'twice', which"):
        fitted = make_sampler("poisson").fit(given, target)
    assert fitted.aliased_ == ("twice",)
    alone = make_sampler("poisson").fit(*encode(frame))
    np.testing.assert_allclose(fitted.coef_, [*alone.coef_[:2], 0.0, alone.coef_[2]], atol=1e-6)


def separated():
    x = np.arange(60.0)
    return pd.DataFrame({"x": x, "y": np.where(x < 30, "a", "b")})


@pytest.mark.parametrize(
    ("sampler", "frame", "message"),
    [
        (StatsmodelsSampler("Logit"), separated(), "separat"),
        (make_sampler("gamma"), process("norm", 50)[0], r"models positive numbers, and the column holds -?\d.*twopart"),
        (make_sampler("beta"), process("gamma", 50)[0], "numbers strictly between 0 and 1"),
        (StatsmodelsSampler("Logit"), ordered_data(50), "models two levels, and the column has more"),
        (
            StatsmodelsSampler("Poisson", options={"exposure": np.ones(50)}),
            process("poisson", 50)[0],
            "option 'exposure'.*one entry for each training row",
        ),
        (make_sampler("poisson"), process("poisson", 2)[0], "coefficients and 2 rows"),
        (StatsmodelsSampler("RLM"), process("norm", 50)[0], "get_distribution"),
        (make_sampler("negbin"), pd.DataFrame({"x": np.arange(200.0), "y": np.arange(200) % 3}), "use poisson"),
        (
            StatsmodelsSampler("Poisson", fit_options={"method": "bfgs", "maxiter": 1, "disp": 0}),
            process("poisson", 200)[0],
            "has not converged.*fit_options",
        ),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_refusals(sampler, frame, message):
    with pytest.raises(InputError, match=message):
        clone(sampler).fit(*encode(frame))


def test_a_constant_target():
    given, target = encode(pd.DataFrame({"x": np.arange(9.0), "y": np.full(9, 4.0)}))
    for name in ("poisson", "gamma", "quantile"):
        drawn = make_sampler(name).fit(given, target).distribution(given).sample(RowStreams.from_seed(0, 9))[0]
        assert (drawn == 4.0).all()


# ---- quantiles


def test_quantile_grid_is_a_distribution():
    """ppf inverts cdf, the density is its slope and integrates to one."""
    knots = np.array([-3.0, -1.5, -1.0, -0.4, 0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
    family = QuantileGrid(np.array([0.7, 1.3]))
    u = np.linspace(0.001, 0.999, 997)
    rows = np.tile(knots, (u.size, 1))
    np.testing.assert_allclose(family.cdf(family.ppf(u, rows), rows), u, atol=1e-12)
    np.testing.assert_allclose(family.ppf(QUANTILES, rows[:10]), knots, atol=1e-12)
    y = np.linspace(-15.0, 25.0, 40_001)
    density = np.exp(family.log_density(y, np.tile(knots, (y.size, 1))))
    assert density.sum() * (y[1] - y[0]) == pytest.approx(1.0, abs=1e-3)
    assert stats.expon(scale=1.3).sf(2.0) * 0.05 == pytest.approx(1.0 - family.cdf(np.array([6.0]), knots[None])[0])


def test_quantile_regression_follows_a_changing_spread():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 2.0, 4000)
    given, target = encode(pd.DataFrame({"x": x, "y": 1.0 + x + (0.2 + x) * rng.normal(size=4000)}))
    fitted = QuantileSampler().fit(given, target)
    theirs = sm.QuantReg(target.values, sm.add_constant(x)).fit(q=QUANTILES[7]).params
    np.testing.assert_allclose(fitted.coef_[7], theirs, atol=1e-3)
    for value in (0.2, 1.5):
        drawn = fitted.distribution(at(given, [value], 2000)).sample(RowStreams.from_seed(1, 2000))[0]
        assert stats.kstest((drawn - 1.0 - value) / (0.2 + value), "norm").statistic < 0.05
    within = Within(low=np.full(2000, 2.0), high=np.full(2000, 3.0))
    drawn, rejected = fitted.distribution(at(given, [1.0], 2000)).sample(RowStreams.from_seed(1, 2000), within)
    assert not rejected.any()
    assert within.allows(drawn).all()
