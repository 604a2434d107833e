"""The Gaussian copula against exact conditionals of normal variables, linear discriminants and known processes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mcce.generators import ChainModel
from mcce.rng import RowStreams
from mcce.samplers import GaussianCopulaSampler
from mcce.samplers.copula import CopulaColumn, GaussianCopula
from mcce.table import Schema

from .processes import counts, excess_log_score, gamma, levels, linear, zeros

CORRELATION = np.array([[1.0, 0.5, -0.3, 0.6], [0.5, 1.0, 0.2, 0.4], [-0.3, 0.2, 1.0, -0.5], [0.6, 0.4, -0.5, 1.0]])
N, NEW = 20_000, 200


def normals(n, seed):
    return np.random.default_rng(seed).multivariate_normal(np.zeros(4), CORRELATION, n)


def exact(z, given=(0, 1, 2)):
    """Mean and standard deviation of the last variable given others."""
    given = list(given)
    slopes = np.linalg.solve(CORRELATION[np.ix_(given, given)], CORRELATION[given, 3])
    return z[:, given] @ slopes, np.sqrt(1.0 - CORRELATION[given, 3] @ slopes)


def skewed(z):
    """The four variables as columns of several distributions."""
    a, b, c, y = z.T
    return pd.DataFrame({"a": np.exp(0.5 * a), "b": np.sinh(b), "c": norm.cdf(c), "y": np.exp(0.5 * y)})


def fit(frame):
    table = Schema.from_data(frame).encode(frame)
    k = len(table.features) - 1
    return Schema.from_data(frame), GaussianCopulaSampler().fit(table.first(k), table.column(k))


@pytest.mark.parametrize("missing", [(), (0,), (1, 2), (0, 1, 2)])
def test_continuous_columns_have_the_exact_conditional(missing):
    schema, sampler = fit(skewed(normals(N, 1)))
    z = normals(NEW, 2)
    new = schema.encode(skewed(z)).matrix
    new[:, list(missing)] = np.nan
    mean, sd = exact(z, [j for j in range(3) if j not in missing])
    found = sampler.copula_.conditional(new[:, :3])
    error = np.abs(found.cdf(new[:, 3]) - norm.cdf(z[:, 3], mean, sd))
    assert error.mean() < 0.01
    assert np.quantile(error, 0.95) < 0.03  # margins are smoothed, which shows in the tails of skewed columns
    expected = norm.logpdf(z[:, 3], mean, sd) - np.log(0.5 * np.exp(0.5 * z[:, 3]))  # the density of exp(z / 2)
    assert np.median(np.abs(found.log_density(new[:, 3]) - expected)) < 0.1


def test_estimates_from_incomplete_rows():
    frame = skewed(normals(N, 1))
    holed = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.3)
    schema = Schema.from_data(frame)
    whole, part = (GaussianCopula.fit(schema.encode(each)) for each in (frame, holed))
    np.testing.assert_allclose(part.covariance, whole.covariance, atol=0.03)
    few = GaussianCopula.fit(schema.encode(holed.head(6)))
    assert np.linalg.eigvalsh(few.covariance)[0] > -1e-9


CUTS = np.array([-0.5, 0.3, 1.0])


@pytest.mark.parametrize("as_numbers", [True, False])
def test_coarse_targets_have_the_probabilities_of_a_probit(as_numbers):
    """The target is known in four intervals only; its latent correlations are recovered, as polyserial ones are."""
    z, new = normals(N, 1), normals(NEW, 2)
    codes = np.searchsorted(CUTS, z[:, 3])
    target = codes * 10.0 if as_numbers else pd.Categorical.from_codes(codes, list("lmnh"), ordered=True)
    schema, sampler = fit(skewed(z).assign(y=target))
    mean, sd = exact(new)
    given = schema.subset(["a", "b", "c"]).encode(skewed(new)[["a", "b", "c"]]).matrix
    found = sampler.copula_.conditional(given)
    for code, cut in enumerate(CUTS):
        expected = norm.cdf(cut, mean, sd)
        np.testing.assert_allclose(found.cdf(np.full(NEW, code * (10.0 if as_numbers else 1.0))), expected, atol=0.03)


def test_coarse_givens_enter_by_their_mean_score():
    """One given, known in intervals: the best linear predictor of the target's score is that of least squares."""
    z = normals(N, 1)
    frame = pd.DataFrame({"a": np.searchsorted(CUTS, z[:, 0]) * 1.0, "y": z[:, 3]})
    schema, sampler = fit(frame)
    table = schema.encode(frame)
    score = CopulaColumn.fit(table.column(0)).observe(table.matrix[:, 0])[:, 0]
    latent = CopulaColumn.fit(table.column(1)).observe(table.matrix[:, 1])[:, 0]
    parameters = sampler.distribution(table.first(1)).parameters
    slope, intercept = np.polyfit(score, latent / latent.std(), 1)
    np.testing.assert_allclose(parameters[0], slope * score + intercept, atol=0.005)
    assert parameters[1][0] == pytest.approx(np.std(latent / latent.std() - slope * score), abs=0.005)


def levels_table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    level = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [0.8, 0.3], [-0.2, 0.9]])[level]
    return pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "level": np.array(["u", "v", "w"])[level]})


def test_unordered_targets_are_linear_discriminants():
    frame = levels_table()
    schema, sampler = fit(frame)
    table = schema.encode(frame)
    scores = np.hstack([column.observe(v) for column, v in zip(sampler.copula_.columns[:2], table.matrix.T)])
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(scores, frame["level"])
    found = sampler.distribution(table.first(2))
    np.testing.assert_allclose(found.probabilities, reference.predict_proba(scores), atol=2e-3)


def test_unordered_givens_are_indicators_of_a_regression():
    frame = levels_table()[["level", "x1", "x2"]]
    schema, sampler = fit(frame)
    table = schema.encode(frame)
    score, latent = (column.observe(v)[:, 0] for column, v in zip(sampler.copula_.columns[1:], table.matrix[:, 1:].T))
    design = np.column_stack([pd.get_dummies(frame["level"]).to_numpy(float), score])
    slopes = np.linalg.lstsq(design, latent, rcond=None)[0]
    mean, sd = sampler.distribution(table.first(2)).parameters
    np.testing.assert_allclose(mean, design @ slopes / latent.std(), atol=0.02)
    assert sd[0] == pytest.approx(np.std(latent - design @ slopes), abs=0.02)


def test_rows_do_not_depend_on_each_other():
    frame = levels_table(500)[["level", "x1", "x2"]].mask(np.random.default_rng(0).random((500, 3)) < 0.2)
    schema, sampler = fit(frame.dropna(subset="x2"))
    given = schema.encode(frame).matrix[:, :2]
    whole = sampler.copula_.conditional(given)
    rows = np.random.default_rng(1).permutation(500)[:50]
    part = sampler.copula_.conditional(given[rows])
    assert all((a[rows] == b).all() for a, b in zip(whole.parameters, part.parameters))


def test_conditionals_of_a_chain_are_those_fitted_alone():
    frame = skewed(normals(500, 1)).assign(level=levels_table(500)["level"])
    chain = ChainModel(sampler="copula", fixed=["level"], random_state=1).fit(frame)
    arranged = frame[["level", "a", "b", "c", "y"]]
    for k, name in enumerate("abcy", 1):
        sampler = fit(arranged.iloc[:, : k + 1])[1]
        assert np.allclose(chain.conditional(name).copula_.covariance, sampler.copula_.covariance)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1.0], "y": ["x"]}),
        pd.DataFrame({"a": [1.0, 1.0, 1.0], "y": [2.0, 2.0, 2.0]}),
        pd.DataFrame({"a": [1.0, np.nan, np.nan], "b": [np.nan] * 3, "y": ["u", "v", "v"]}),
        pd.DataFrame({"a": np.arange(50.0), "b": 2 * np.arange(50.0), "c": np.arange(50) % 2, "y": np.arange(50.0)}),
        pd.DataFrame({"a": list("xy") * 30, "b": list("xy") * 30, "y": list("xy") * 30}),
        pd.DataFrame({"a": list("xy") * 30, "y": pd.Categorical(["m"] * 60, ["l", "m", "n"], ordered=True)}),
    ],
)
def test_degenerate_tables(frame):
    table = Schema.from_data(frame).encode(frame)
    k = len(table.features) - 1
    found = GaussianCopulaSampler().fit(table.first(k), table.column(k)).distribution(table.first(k))
    assert np.isfinite(found.log_density(table.matrix[:, k])).all()
    assert not found.sample(RowStreams.from_seed(1, len(frame)))[1].any()


def test_unobserved_levels_are_left_out():
    frame = levels_table(300).assign(extra=lambda f: pd.Categorical(f["level"], ["none", "u", "v", "w"]))
    schema = Schema.from_data(frame[["extra", "x1", "level"]])
    table = schema.encode(frame[["extra", "x1", "level"]])
    sampler = GaussianCopulaSampler().fit(table.first(1), table.column(1))
    unknown, missing = sampler.copula_.conditional(np.array([[0.0], [np.nan]])).parameters[0]
    assert unknown == missing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "worst"),
    [(linear, 0.04), (gamma, 0.05), (counts, 0.05), (zeros, 0.25), (levels, 0.2)],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_known_processes(process, worst):
    """Nats below the truth: zeros are drawn at a rate that does not depend enough on the givens, levels interact."""
    assert -worst < excess_log_score("copula", process) < 0.02
