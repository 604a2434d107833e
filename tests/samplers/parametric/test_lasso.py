"""`lasso.norm` and `lasso.logreg`: sparse known processes with many noise columns."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.storage.state import from_state, to_state
from mcce.testing import check_sampler
from tests.marks import nightly
from tests.samplers.parametric.problem import encode


def sparse(kind, n=400, noise=30, seed=1):
    """Only the first of many columns, on very different scales, matters."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, noise + 1))
    eta = 1.5 * x[:, 0]
    if kind == "numeric":
        y = 3.0 + eta + 0.5 * rng.normal(size=n)
    else:
        y = np.where(eta + rng.logistic(size=n) > 0.5, "yes", "no")
    columns = {f"x{j}": x[:, j] * 10.0 ** (j % 5) for j in range(noise + 1)}
    return encode(pd.DataFrame({**columns, "y": y}))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lasso.norm", *nightly("lasso.logreg")])
def test_conformance(name):
    check_sampler(name)


def test_lasso_excludes_noise_and_recovers_the_process():
    given, target = sparse("numeric")
    fitted = mcce.LassoNormSampler().fit(given, target)
    slopes = fitted.coef_[1:] * 10.0 ** (np.arange(31) % 5)
    assert slopes[0] == pytest.approx(1.5, abs=0.1)
    assert (slopes[1:] == 0.0).sum() >= 15
    assert np.abs(slopes[1:]).max() < 0.06
    assert fitted.sigma_ == pytest.approx(0.5, abs=0.04)
    again = from_state(to_state(fitted))
    np.testing.assert_array_equal(again.log_density(given, target.values), fitted.log_density(given, target.values))


def test_lasso_of_levels_beats_the_full_model_on_new_rows():
    given, target = sparse("levels", n=150)
    new_given, new_target = sparse("levels", n=2000, seed=2)
    score = {
        type(sampler).__name__: sampler.fit(given, target).log_density(new_given, new_target.values).mean()
        for sampler in (mcce.LassoLogregSampler(), mcce.LogregSampler())
    }
    assert score["LassoLogregSampler"] > score["LogregSampler"] + 0.05
    truth = np.where(new_target.values == 1.0, 1.0, -1.0) * (1.5 * new_given.matrix[:, 0] - 0.5)
    assert score["LassoLogregSampler"] == pytest.approx(-np.logaddexp(0.0, -truth).mean(), abs=0.08)


def test_levels_with_a_single_row_keep_their_share():
    frame = pd.DataFrame({"x": np.arange(20.0), "y": ["a"] * 19 + ["b"]})
    given, target = encode(frame)
    fitted = mcce.LassoLogregSampler().fit(given, target)
    np.testing.assert_allclose(np.exp(fitted.log_probabilities(given))[:, 1], 0.05)


def test_proper_fits_differ_by_seed():
    given, target = sparse("numeric", n=100, noise=2)
    fits = [mcce.LassoNormSampler(proper=True, random_state=seed).fit(given, target) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert (fits[0].coef_ != fits[2].coef_).any()


@pytest.mark.parametrize(("kind", "instead"), [("numeric", "norm"), ("levels", "polyreg")])
def test_non_convergence_is_reported_with_the_fix(kind, instead, monkeypatch):
    monkeypatch.setattr("mcce.samplers.parametric.lasso._MOST_ITERATIONS", 1)
    sampler = mcce.LassoNormSampler() if kind == "numeric" else mcce.LassoLogregSampler(n_folds=2, n_penalties=3)
    message = rf"for 'y' did not converge in 1 iterations .* Drop collinear givens by predictors=, or use '{instead}'"
    with pytest.raises(mcce.SamplerError, match=message):
        sampler.fit(*sparse(kind, n=100, noise=3))
