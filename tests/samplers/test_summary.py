"""Summaries of fitted conditionals."""

import numpy as np
import pytest
import statsmodels.api as sm

import mcce
from mcce import InputError, NotFittedError
from mcce.samplers.summary import Summary
from tests.samplers.statsmodels.problem import FRAME, fitted


def test_coefficients_match_the_summary_of_statsmodels():
    """The lines of the coefficient table are those of statsmodels' own summary."""
    text = fitted(mcce.StatsmodelsSampler("Poisson"), "count").summary()
    x = sm.add_constant(FRAME.assign(**{"sex[T.m]": (FRAME["sex"] == "m") * 1.0})[["age", "sex[T.m]"]])
    theirs = str(sm.Poisson(FRAME["count"], x).fit(disp=0).summary())
    for name in ("const", "age", "sex[T.m]"):
        one, other = (
            next(line.split() for line in str(each).splitlines() if line.split()[:1] == [name])
            for each in (text, theirs)
        )
        assert one == other
    assert repr(text) == str(text)


def test_linear_and_logistic_regressions_show_coefficients():
    text = fitted(mcce.NormSampler(formula="~ age * sex"), "number").summary()
    assert "age:sex[T.m]" in text
    assert "age" in fitted(mcce.ParametricSampler(), "number").summary()
    text = fitted(mcce.LogregSampler(), "yes").summary()
    theirs = sm.Logit(FRAME["yes"].cat.codes, sm.add_constant(FRAME[["age"]])).fit(disp=0)
    shown = next(line.split() for line in text.splitlines() if " age " in line)
    assert float(shown[3]) == pytest.approx(theirs.params["age"], abs=0.02)
    assert "mid | high" not in fitted(mcce.PolrSampler(), "grade").summary()
    assert "level 1 | 2" in fitted(mcce.PolrSampler(), "grade").summary()
    assert "level 2: sex[T.m]" in fitted(mcce.PolyregSampler(), "grade").summary()


@pytest.mark.slow
def test_chain_returns_its_conditionals():
    X = FRAME[["age", "sex", "amount", "grade", "count"]]
    samplers = {"amount": "gamma", "grade": "cart", "count": "mixture"}
    chain = mcce.ChainModel(sampler=samplers, fixed=["age", "sex"], random_state=1).fit(X)
    assert "Gamma(Log)" in chain.conditional("amount").summary()
    assert chain.conditional("grade").summary() == str(chain.samplers_["grade"].tree)
    assert chain.conditional("count").summary().startswith("MixtureSampler() holds ")
    with pytest.raises(InputError, match=r"'amuont' has no conditional; did you mean 'amount'\?"):
        chain.conditional("amuont")
    with pytest.raises(NotFittedError, match="not fitted"):
        mcce.ChainModel(fixed=["age"]).conditional("amount")
    with pytest.raises(NotFittedError, match=r"MarginalSampler\(\) is not fitted"):
        mcce.MarginalSampler().summary()
    joint = mcce.available_generators()["mixture"](fixed=["age"], random_state=1).fit(X)
    with pytest.raises(InputError, match="has no conditionals; use a chain"):
        joint.conditional("amount")


def test_explainer_gives_access_to_conditionals():
    X = FRAME[["age", "sex", "amount"]]
    score = lambda rows: (rows["amount"] > 5).to_numpy(float)  # noqa: E731
    explainer = mcce.MCCE(score, fixed=["age", "sex"], sampler="gamma", random_state=1).fit(X)
    text = explainer.generator_.conditional("amount").summary()
    assert "decision[T.True]" in text or "<decision>[T.True]" in text
    assert isinstance(text, Summary)
    assert np.isfinite(explainer.generator_.conditional("amount").estimate_).all()


def test_joint_gaussian_shows_coefficients_without_standard_errors():
    """`covariance_` is that of the columns, not of the coefficients."""
    text = fitted(mcce.GaussianSampler(), "number").summary()
    assert next(line.split() for line in text.splitlines() if line.startswith("age"))[2:] == ["nan"] * 5
