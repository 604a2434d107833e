"""`norm.boot`: the parameters of one bootstrap sample compared with mice."""

import numpy as np
import pandas as pd
import pytest

import mcce
from tests.samplers.parametric.mice import MICE, air
from tests.samplers.parametric.problem import encode


def test_parameters_of_the_same_rows_match_mice(monkeypatch):
    given, target, new = air()
    rows = np.array(MICE["norm_boot"]["rows"])
    monkeypatch.setattr(mcce.NormBootSampler, "bootstrap", lambda *_: rows)
    fitted = mcce.NormBootSampler().fit(given, target)
    # mice solves by QR without the ridge of 1e-5 that norm has here
    np.testing.assert_allclose(fitted.predict(new), MICE["norm_boot"]["prediction"], rtol=2e-3)
    assert fitted.sigma_ == pytest.approx(MICE["norm_boot"]["sd"], rel=1e-4)


@pytest.mark.slow
def test_parameters_vary_by_their_standard_errors():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    given, target = encode(pd.DataFrame({"x": x, "y": 1.0 + 2.0 * x + rng.normal(size=200)}))
    fits = [mcce.NormBootSampler(random_state=seed).fit(given, target) for seed in range(300)]
    spread = np.std([fit.coef_ for fit in fits], axis=0)
    errors = np.sqrt(np.diag(fits[0].covariance_)) * mcce.NormSampler().fit(given, target).sigma_
    np.testing.assert_allclose(spread, errors, rtol=0.2)


def test_name_with_a_dot_accepts_a_formula():
    frame = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) % 7})
    chain = mcce.ChainModel(sampler={"y": "norm.boot(~ poly(x, 2))"}, fixed=["x"], random_state=1).fit(frame)
    assert chain.samplers_["y"].coef_.size == 3
