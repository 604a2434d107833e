"""The copula as a sampler: conditionals by brute force, densities, degenerate data, errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import mcce
from mcce import GaussianCopulaSampler, InputError, NotFittedError, SamplerError
from mcce.datasets import load_loans
from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.samplers.copula.latent import fit_latent
from mcce.storage.learned import get_state, set_state
from mcce.table import Schema
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from mcce.testing.samplers import through_json
from tests.marks import nightly, nightly_but_named
from tests.samplers.copula.simulated import LEVEL, draw, encode, fit, same_shares, simulate


@pytest.fixture(scope="module")
def joint():
    """A million rows to condition on by brute force."""
    return simulate(1_000_000, 11)


# ---- conditionals against brute force


@pytest.mark.parametrize(
    "target",
    ["income", *nightly("drink", "grade", "smoker")],
)
def test_draws_follow_the_conditional(training, joint, target):
    """Given discrete columns, draws and selected rows of a very large joint sample agree."""
    givens = [name for name in ("grade", "smoker", "drink") if name != target]
    sampler, given = fit(training[[*givens, target]], target)
    codes = encode(joint[[*givens, target]]).matrix
    for row in (0, 1, 2):
        truth = codes[(codes[:, :-1] == given.matrix[row]).all(axis=1), -1]
        n = 3000  # the fit, on 60,000 rows, has an error too
        drawn = draw(sampler, given, row, n)
        if target == "income":
            assert stats.ks_2samp(drawn, truth).pvalue > LEVEL
        else:
            assert same_shares(drawn, truth[: 10 * n])


@pytest.mark.slow
@pytest.mark.parametrize("target", ["grade", *nightly("smoker", "drink")])
def test_probabilities_follow_the_conditional(training, joint, target):
    """Within 0.02, the errors of the fit and of the joint sample included."""
    givens = [name for name in ("grade", "smoker", "drink") if name != target]
    sampler, given = fit(training[[*givens, target]], target)
    codes = encode(joint[[*givens, target]]).matrix
    some = given.take(np.arange(5))
    for row in range(5):
        truth = codes[(codes[:, :-1] == given.matrix[row]).all(axis=1), -1]
        for level in np.unique(truth):
            found = np.exp(sampler.log_density(some, np.full(5, level)))[row]
            assert found == pytest.approx((truth == level).mean(), abs=0.02)


def test_conditional_given_numbers_is_normal():
    sampler, given = fit(simulate(60_000, 3)[["income", "height"]], "height")
    row = 7
    z = np.log(given.matrix[row, 0])
    drawn = (draw(sampler, given, row, 3000) - 170.0) / 10.0
    assert stats.kstest(drawn, stats.norm(0.3 * z, np.sqrt(1 - 0.3**2)).cdf).pvalue > LEVEL
    at = np.array([160.0, 168.0, 175.0])
    density = np.exp(sampler.log_density(given.take(np.full(3, row)), at))
    truth = stats.norm(170 + 3 * z, 10 * np.sqrt(1 - 0.3**2)).pdf(at)
    np.testing.assert_allclose(density, truth, rtol=0.1)


@pytest.mark.slow
def test_nearly_equal_discrete_givens():
    """Strongly dependent latents: correlations of 0.95, distant thresholds."""
    rng = np.random.default_rng(4)
    correlation = np.full((4, 4), 0.95) + 0.05 * np.eye(4)
    z = rng.standard_normal((1_000_000, 4)) @ np.linalg.cholesky(correlation).T
    frame = pd.DataFrame({"a": z[:, 0] > 0.0, "b": z[:, 1] > 1.2, "c": z[:, 2] > 0.5})
    frame["y"] = pd.Categorical(np.digitize(z[:, 3], [0.3, 0.9]), ordered=True)
    sampler, given = fit(frame[:100_000], "y")
    for values in ((True, False, True), (True, False, False), (False, False, False)):
        truth = frame["y"][(frame[["a", "b", "c"]] == list(values)).all(axis=1)].cat.codes.to_numpy()
        row = int(np.flatnonzero((given.matrix == values).all(axis=1))[0])
        shares = [np.bincount(x.astype(int), minlength=3) / x.size for x in (draw(sampler, given, row, 20_000), truth)]
        np.testing.assert_allclose(*shares, atol=0.02)


def test_margins_are_reproduced(training):
    chain = mcce.ChainModel(sampler="copula", random_state=0).fit(training[:4000])
    drawn = chain.sample(n=4000)
    for name in training:
        observed = training[name][:4000]
        if name in ("income", "height"):
            assert stats.ks_2samp(drawn[name], observed).pvalue > LEVEL
            assert drawn[name].isin(observed).all()
        else:
            assert same_shares(drawn[name].astype(str), observed.astype(str))


def test_tied_numbers_are_intervals():
    """A zero-inflated given: its latent is truncated, not set to the middle of the zeros."""
    rng = np.random.default_rng(5)
    z = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 400_000)
    frame = pd.DataFrame({"gain": np.maximum(z[:, 0], 0.5) - 0.5, "y": z[:, 1]})
    sampler, given = fit(frame[:40_000], "y")
    zero = int(np.flatnonzero(given.matrix[:, 0] == 0.0)[0])
    assert stats.ks_2samp(draw(sampler, given, zero, 3000), frame["y"][frame["gain"] == 0.0]).pvalue > LEVEL


# ---- relabelling


@pytest.mark.parametrize("target", ["smoker", *nightly("drink", "grade", "income")])
def test_relabelling_unordered_levels_has_no_effect(target):
    frame = simulate(2000, 6)
    names = {"tea": "x3", "beer": "x1", "milk": "x2"}
    renamed = frame.assign(
        drink=pd.Categorical(frame["drink"].astype(str).map(names), categories=["x2", "x3", "x1"]),
        smoker=frame["smoker"].map({"yes": "a no", "no": "b yes"}),
    )
    drawn = []
    for version in (frame, renamed):
        schema = Schema.from_data(version)
        sampler, given = fit(version, target)
        values = sampler.sample(given, RowStreams.from_seed(1, 2000))
        column = pd.Series(schema.features[schema.position(target)].decode(values)).astype(str)
        drawn.append((column, sampler.log_density(given.take(np.arange(200)), values[:200])))
    mapped = drawn[0][0].replace({**names, "yes": "a no", "no": "b yes"})
    assert mapped.equals(drawn[1][0])
    np.testing.assert_array_equal(drawn[0][1], drawn[1][1])


# ---- densities


@pytest.mark.parametrize("target", ["smoker", *nightly("grade", "drink")])
def test_probabilities_sum_to_one(training, target):
    sampler, given = fit(training[:3000], target)
    some = given.take(np.arange(50))
    n_levels = training[target].nunique()
    total = sum(np.exp(sampler.log_density(some, np.full(50, float(level)))) for level in range(n_levels))
    np.testing.assert_allclose(total, 1.0, atol=1e-9)


@pytest.mark.slow
def test_density_of_numbers_integrates_to_one(training):
    sampler, given = fit(training[["smoker", "drink", "height"]][:3000], "height")
    row = given.take(np.zeros(4001, dtype=int))
    at = np.linspace(110.0, 230.0, 4001)
    density = np.exp(sampler.log_density(row, at))
    assert integrate.trapezoid(density, at) == pytest.approx(1.0, abs=1e-3)


def test_density_with_atoms_integrates_to_one():
    rng = np.random.default_rng(7)
    z = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 5000)
    sampler, given = fit(pd.DataFrame({"x": z[:, 0], "gain": np.maximum(z[:, 1], 0.0)}), "gain")
    at = np.linspace(-1.0, 6.0, 4001)
    at = at[np.abs(at) > 1e-9]
    for row in range(3):
        density = np.exp(sampler.log_density(given.take(np.full(at.size, row)), at))
        atom = np.exp(sampler.log_density(given.take(np.array([row])), np.zeros(1)))[0]
        assert integrate.trapezoid(density, at) + atom == pytest.approx(1.0, abs=5e-3)
        truth = stats.norm(0.8 * z[row, 0], 0.6).cdf(0.0)
        assert atom == pytest.approx(truth, abs=0.05)


@pytest.mark.slow
def test_impossible_values_have_zero_density(training):
    sampler, given = fit(training[:500], "height")
    assert sampler.log_density(given.take(np.arange(1)), np.array([1e6]))[0] == -np.inf
    frame = training[:500].assign(drink=training["drink"][:500].cat.add_categories("ale"))
    sampler, given = fit(frame, "drink")
    assert sampler.log_density(given.take(np.arange(1)), np.array([3.0]))[0] == -np.inf
    assert not sampler.supports(given.take(np.arange(1)), np.array([3.0]))[0]


# ---- odd data, chains


def test_constant_and_equal_columns():
    rng = np.random.default_rng(8)
    x = rng.normal(size=300)
    frame = pd.DataFrame({"one": 1.0, "x": x, "again": 2 * x, "level": "a", "up": x > 0, "too": x > 0, "y": x})
    chain = mcce.ChainModel(sampler="copula", fixed=["one"], random_state=0).fit(frame)
    drawn = chain.sample(given=frame[["one"]][:1], n=500)
    assert (drawn["level"] == "a").all()
    assert np.corrcoef(drawn["x"], drawn["again"])[0, 1] > 0.999
    assert (drawn["up"] == drawn["too"]).mean() > 0.97
    sampler, given = fit(frame, "level")
    assert (sampler.log_density(given, np.zeros(300)) == 0.0).all()
    assert np.isnan(draw(sampler, given, 0, 2, Within(levels=np.zeros((2, 1), dtype=bool)))).all()


def test_one_training_row():
    frame = pd.DataFrame({"x": [1.0], "y": ["a"]})
    sampler, given = fit(frame, "y")
    assert draw(sampler, given, 0, 3).tolist() == [0.0, 0.0, 0.0]


def test_no_givens():
    frame = simulate(2000, 9)
    for target in frame:
        sampler, given = fit(frame[[target]], target)
        drawn = draw(sampler, given, 0, 4000)
        observed = encode(frame[[target]]).matrix[:, 0]
        assert stats.ks_2samp(drawn, observed).pvalue > LEVEL


def test_unseen_values_and_levels():
    frame = simulate(500, 10)
    frame["drink"] = frame["drink"].cat.add_categories("ale")
    sampler, given = fit(frame, "height")
    matrix = given.take(np.zeros(2, dtype=int)).matrix.copy()
    matrix[:, 0], matrix[:, 3] = [1e9, -5.0], 3.0
    unseen = mcce.table.Table(given.features, matrix)
    assert np.isfinite(sampler.sample(unseen, RowStreams.from_seed(0, 2))).all()


def test_standalone_and_chained_estimates_are_equal():
    frame = simulate(1000, 13)
    table = encode(frame)
    chained = GaussianCopulaSampler().fit(table.first(4), table.column(4))
    alone = GaussianCopulaSampler().fit(table.first(4).take(np.arange(1000)), table.column(4))
    np.testing.assert_array_equal(chained.correlation_, alone.correlation_)


@pytest.mark.slow
def test_chain_shares_one_estimate(monkeypatch):
    calls = []
    monkeypatch.setattr("mcce.samplers.copula.sampler.fit_latent", lambda table: calls.append(1) or fit_latent(table))
    mcce.ChainModel(sampler="copula", fixed=["age"]).fit(load_loans().X[:200])
    assert len(calls) == 1


@pytest.mark.slow
def test_loans_with_the_decision():
    loans = load_loans()
    decision = (loans.X["salary"] > 60_000).to_numpy()
    chain = mcce.ChainModel(sampler="copula", fixed=["age", "sex"], random_state=1).fit(loans.X, decision)
    given = loans.X[["age", "sex"]][:50]
    yes, no = (chain.sample(given=given, n=200, decision=d) for d in (True, False))
    assert (yes["salary"] > 60_000).mean() > 0.95
    assert (no["salary"] > 60_000).mean() < 0.05
    assert (yes.dtypes == loans.X.dtypes).all()


@pytest.mark.slow
def test_row_depends_only_on_its_own_streams():
    sampler, given = fit(simulate(400, 14), "drink")
    drawn = sampler.sample(given, RowStreams.from_seed(2, 400))
    rows = np.arange(3, 400, 17)
    some = sampler.sample(given.take(rows), RowStreams.from_seed(2, 400).take(rows))
    np.testing.assert_array_equal(some, drawn[rows])
    density = sampler.log_density(given, drawn)
    np.testing.assert_array_equal(sampler.log_density(given.take(rows), drawn[rows]), density[rows])


@pytest.mark.slow
def test_state_contains_only_arrays_and_json():
    sampler, given = fit(simulate(400, 15), "height")
    state = get_state(sampler)
    again = set_state(GaussianCopulaSampler(), through_json(state))
    streams = RowStreams.from_seed(3, 400)
    drawn = sampler.sample(given, RowStreams.from_seed(3, 400))
    np.testing.assert_array_equal(again.sample(given, streams), drawn)
    np.testing.assert_array_equal(again.log_density(given, drawn), sampler.log_density(given, drawn))


CONFORMING = GaussianCopulaSampler()  # one object: checks that only draw share its fits


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], "check_conditional", "check_state"),
    ids=lambda check: check.__name__,
)
def test_conformance(check):
    check(CONFORMING, 0)


# ---- errors


def test_missing_values_raise():
    frame = simulate(50, 16)
    with_gaps = frame.assign(income=frame["income"].mask(np.arange(50) == 3))
    with pytest.raises(SamplerError, match=r"does not handle missing values, and 'income' has some"):
        fit(with_gaps, "height")
    with pytest.raises(SamplerError, match=r"'income' has some; fill them"):
        fit(with_gaps, "income")
    sampler, _ = fit(frame, "height")
    gaps = encode(with_gaps).select([0, 2, 3, 4])
    with pytest.raises(SamplerError, match=r"'income' has some; fill them, or use a sampler that does"):
        sampler.sample(gaps, RowStreams.from_seed(0, 50))


def test_columns_with_missing_values_elsewhere_in_the_chain():
    frame = simulate(300, 17)
    frame["late"] = np.where(np.arange(300) % 3 == 0, np.nan, frame["income"])
    chain = mcce.ChainModel(sampler={"late": "cart", "*": "copula"}, fixed=["income"], random_state=0).fit(frame)
    assert chain.sample(given=frame[["income"]][:3], n=10)["late"].isna().any()


@pytest.mark.parametrize("name", ["particles", "sweeps", "density_points"])
def test_invalid_parameters_raise(name):
    with pytest.raises(InputError, match=rf"{name} of GaussianCopulaSampler is 0; it must be a whole number"):
        fit(simulate(50, 18), "height", GaussianCopulaSampler(**{name: 0}))


def test_not_fitted():
    given = encode(simulate(5, 19))
    with pytest.raises(NotFittedError, match=r"GaussianCopulaSampler\(\) is not fitted"):
        GaussianCopulaSampler().sample(given, RowStreams.from_seed(0, 5))
    with pytest.raises(NotFittedError, match=r"GaussianCopulaSampler\(\) is not fitted"):
        GaussianCopulaSampler().log_density(given, np.zeros(5))
