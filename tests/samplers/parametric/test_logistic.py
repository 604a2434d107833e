"""logreg, polyreg and polr: calibration, `proper`, restriction, relabelling, falling back. Level of all tests: 1e-4."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import Within
from mcce.rng import RowStreams
from mcce.samplers.parametric import glm, logistic
from mcce.samplers.parametric.design import Rows, augmentation
from mcce.storage.learned import get_state, set_state
from mcce.table import Table
from tests.samplers.parametric.problem import encode

LEVEL = 1e-4


def softmax_data(n=2000, seed=0, levels=3):
    """Return log odds against level a: 0.5 + x, and -0.5 - x + [f = w] for further levels."""
    rng = np.random.default_rng(seed)
    x, f = rng.normal(size=n), rng.integers(0, 3, n)
    eta = np.column_stack([np.zeros(n), 0.5 + x, -0.5 - x + (f == 2)])[:, :levels]
    y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    f = pd.Categorical.from_codes(f, ["u", "v", "w"])
    return pd.DataFrame({"x": x, "f": f, "y": np.array(["a", "b", "c"])[y]})


def ordered_data(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = np.digitize(1.2 * x + rng.logistic(size=n), [-1.0, 0.5, 2.0])
    return pd.DataFrame({"x": x, "y": pd.Categorical.from_codes(y, ["a", "b", "c", "d"], ordered=True)})


def probabilities(sampler, frame, at=None):
    given, target = encode(frame)
    return np.exp(sampler.fit(given, target).log_probabilities(given if at is None else at))


# ---- calibration


@pytest.mark.parametrize("sampler", [mcce.LogregSampler(), mcce.PolyregSampler()], ids=repr)
@pytest.mark.parametrize("levels", [2, 3])
def test_multinomial_is_calibrated(sampler, levels):
    given, target = encode(softmax_data(n=30_000, levels=levels))
    fitted = sampler.fit(given, target)
    rows = Table(given.features, np.tile([0.7, 2.0], (3000, 1)))
    drawn = fitted.sample(rows, RowStreams.from_seed(1, 3000))
    p = np.exp([0.0, 1.2, -0.2][:levels])
    counts = np.bincount(drawn.astype(int), minlength=levels)
    assert stats.chisquare(counts, p / p.sum() * 3000).pvalue > LEVEL


def test_polr_is_calibrated():
    given, target = encode(ordered_data(n=30_000))
    fitted = mcce.PolrSampler().fit(given, target)
    rows = Table(given.features, np.full((3000, 1), 0.7))
    drawn = fitted.sample(rows, RowStreams.from_seed(1, 3000))
    below = stats.logistic.cdf(np.array([-np.inf, -1.0, 0.5, 2.0, np.inf]) - 1.2 * 0.7)
    assert stats.chisquare(np.bincount(drawn.astype(int)), np.diff(below) * 3000).pvalue > LEVEL


def test_probabilities_without_givens_are_the_shares():
    y = pd.Categorical(["a"] * 5 + ["b"] * 3 + ["d"] * 2, categories=["a", "b", "c", "d"], ordered=True)
    for sampler in (mcce.LogregSampler(), mcce.PolyregSampler(), mcce.PolrSampler()):
        p = probabilities(sampler, pd.DataFrame({"y": y}))
        np.testing.assert_allclose(p[0], [0.5, 0.3, 0.0, 0.2], atol=1e-12)


def test_logreg_polyreg_and_polr_agree_for_two_levels():
    frame = softmax_data(levels=2)
    frame["y"] = pd.Categorical(frame["y"], ordered=True)
    logreg, polyreg, polr = (
        probabilities(s, frame) for s in (mcce.LogregSampler(), mcce.PolyregSampler(), mcce.PolrSampler())
    )
    np.testing.assert_allclose(logreg, polyreg, atol=1e-10)
    np.testing.assert_allclose(logreg, polr, atol=1e-10)


def test_separation_keeps_coefficients_finite():
    frame = pd.DataFrame({"x": np.arange(40.0), "y": np.where(np.arange(40) < 20, "a", "b")})
    given, target = encode(frame)
    fitted = mcce.LogregSampler().fit(given, target)
    assert abs(fitted.model_.coef[0, 0]) < 5
    p = np.exp(fitted.log_probabilities(given))[:, 1]
    assert (np.diff(p) > 0).all()
    assert ((p > 0.5) == (target.values == 1)).all()


# ---- the fits


def test_conjugate_gradients_reach_the_dense_solution(monkeypatch):
    frame = softmax_data(n=500)
    dense = probabilities(mcce.PolyregSampler(), frame)
    monkeypatch.setattr(glm, "DENSE", 0)
    np.testing.assert_allclose(probabilities(mcce.PolyregSampler(), frame), dense, atol=1e-9)


def test_equal_rows_are_merged():
    """Two factors of 150 levels took 100 seconds: 45,000 augmented rows, of which 300 differ."""
    p = k = 30
    rng = np.random.default_rng(1)
    x = np.eye(p)[rng.permutation(p)]
    added = augmentation(x, k)
    rows = Rows(np.vstack([x, added.x]), np.append(rng.permutation(k), added.y), np.append(np.ones(p), added.weight))
    distinct, of_class = glm._grouped(rows.x, rows, k)
    assert len(rows.x) == p + 2 * p * k
    assert len(distinct) <= p + 2 * p
    for i in (0, 7, p + 3):
        alike = (rows.x == distinct[i]).all(axis=1)
        np.testing.assert_allclose(of_class[i], np.bincount(rows.y[alike], rows.weight[alike], k))


def test_logreg_covariance_is_the_inverse_information():
    given, target = encode(softmax_data(n=300))
    fitted = mcce.LogregSampler(proper=True).fit(given, target)
    plain = mcce.LogregSampler().fit(given, target)
    x = np.column_stack([np.ones(300), fitted.design_.matrix(given) - fitted.shift_])
    p = np.exp(plain.log_probabilities(given))[:, 1:]
    information = np.zeros((8, 8))
    for xi, pi in zip(x, p):
        information += np.kron(np.diag(pi) - np.outer(pi, pi), np.outer(xi, xi))
    # the augmented rows add a little information
    ratio = np.diag(fitted.model_.covariance) / np.diag(np.linalg.inv(information))
    assert ((ratio > 0.85) & (ratio < 1.0)).all()


# ---- proper


@pytest.mark.nightly
def test_proper_logreg_is_normal_around_the_estimate():
    given, target = encode(softmax_data(n=200, levels=2))
    estimate = mcce.LogregSampler().fit(given, target).model_
    drawn = [mcce.LogregSampler(proper=True, random_state=s).fit(given, target).model_ for s in range(800)]
    moved = np.array([np.append(d.intercept - estimate.intercept, d.coef - estimate.coef) for d in drawn])
    z = np.linalg.solve(np.linalg.cholesky(estimate.covariance), moved.T)
    for row in z:
        assert stats.kstest(row, "norm").pvalue > LEVEL
    assert stats.kstest((z**2).sum(axis=0), stats.chi2(z.shape[0]).cdf).pvalue > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "frame"),
    [
        (mcce.PolyregSampler, softmax_data(n=400, levels=2)),
        pytest.param(mcce.PolrSampler, ordered_data(n=400), marks=pytest.mark.nightly),
    ],
)
def test_bootstrap_variance_matches_the_likelihood(sampler, frame):
    """The spread of bootstrapped log odds against the spread over fresh data sets, within a third."""
    at = Table(encode(frame)[0].features, np.zeros((1, frame.shape[1] - 1)))
    make = softmax_data if sampler is mcce.PolyregSampler else ordered_data
    options = {"levels": 2} if make is softmax_data else {}

    def odds(fitted):
        p = np.exp(fitted.log_probabilities(at))[0, 0]
        return np.log(p / (1 - p))

    encoded = encode(frame)
    boot = [odds(sampler(proper=True, random_state=s).fit(*encoded)) for s in range(120)]
    fresh = [odds(sampler().fit(*encode(make(n=400, seed=s, **options)))) for s in range(100, 220)]
    assert 0.67 < np.std(boot) / np.std(fresh) < 1.5


# ---- restricted draws


@pytest.mark.parametrize("sampler", [mcce.LogregSampler(), mcce.PolyregSampler(), mcce.PolrSampler()], ids=repr)
def test_within_renormalises(sampler):
    given, target = encode(ordered_data())
    fitted = sampler.fit(given, target)
    n = 6000
    rows = Table(given.features, np.full((n, 1), 0.4))
    p = np.exp(fitted.log_probabilities(rows))[0]
    levels = np.tile([True, False, True, True], (n, 1))
    levels[::4] = [True, False, False, False]
    within = Within(low=np.ones(n), levels=levels)
    drawn = fitted.sample(rows, RowStreams.from_seed(1, n), within)
    assert np.isnan(drawn[::4]).all()
    kept = drawn[~np.isnan(drawn)]
    expected = p[2:] / p[2:].sum() * kept.size
    assert stats.chisquare([(kept == v).sum() for v in (2, 3)], expected).pvalue > LEVEL


def test_within_reaches_very_improbable_levels():
    frame = pd.DataFrame({"x": np.arange(40.0), "y": np.where(np.arange(40) < 20, "a", "b")})
    given, target = encode(frame)
    fitted = mcce.LogregSampler().fit(given, target)
    rows = Table(given.features, np.full((5, 1), -1e6))
    within = Within(levels=np.tile([False, True], (5, 1)))
    assert (fitted.sample(rows, RowStreams.from_seed(1, 5), within) == 1).all()
    assert not fitted.supports(rows, np.ones(5)).any()


def test_unobserved_levels_are_never_drawn():
    frame = softmax_data(n=300)
    frame["y"] = pd.Categorical(frame["y"], categories=["z", "a", "q", "b", "c"], ordered=True)
    for sampler in (mcce.LogregSampler(), mcce.PolyregSampler(), mcce.PolrSampler()):
        given, target = encode(frame)
        fitted = sampler.fit(given, target)
        assert fitted.classes_.tolist() == [1, 3, 4]
        assert not fitted.supports(given, np.full(300, 2.0)).any()
        assert (fitted.log_density(given, np.full(300, 0.0)) == -np.inf).all()
        only = Within(levels=np.tile([True, False, True, False, False], (300, 1)))
        assert np.isnan(fitted.sample(given, RowStreams.from_seed(1, 300), only)).all()


# ---- relabelled givens


@pytest.mark.parametrize("sampler", [mcce.LogregSampler(), mcce.PolyregSampler()], ids=repr)
def test_relabelling_a_given(sampler):
    """Other names and another order with the same base have no effect. Another base moves the augmented rows."""
    frame = softmax_data(n=300)
    expected = probabilities(sampler, frame)
    renamed = frame.assign(f=frame["f"].cat.rename_categories({"u": "zz", "v": "a", "w": "m"}))
    np.testing.assert_array_equal(probabilities(sampler, renamed), expected)
    same_base = frame.assign(f=frame["f"].cat.reorder_categories(["u", "w", "v"]))
    np.testing.assert_allclose(probabilities(sampler, same_base), expected, atol=1e-10)
    other_base = frame.assign(f=frame["f"].cat.reorder_categories(["w", "v", "u"]))
    moved = np.abs(probabilities(sampler, other_base) - expected).max()
    assert 0.0 < moved < 0.02


def test_relabelling_the_target_permutes_the_probabilities():
    frame = softmax_data(n=300)
    expected = probabilities(mcce.PolyregSampler(), frame)
    frame["y"] = pd.Categorical(frame["y"], categories=["c", "a", "b"])
    np.testing.assert_allclose(probabilities(mcce.PolyregSampler(), frame)[:, [1, 2, 0]], expected, atol=1e-10)


# ---- falling back


def test_polr_falls_back_to_polyreg(monkeypatch):
    def fails(*args):
        raise glm.NoMaximumError("no")

    frame = ordered_data(n=200)
    given, target = encode(frame)
    assert mcce.PolrSampler().fit(given, target).fell_back_ is False
    monkeypatch.setattr(logistic, "fit_cumulative", fails)
    fitted = mcce.PolrSampler().fit(given, target)
    assert fitted.fell_back_ is True
    expected = mcce.PolyregSampler().fit(given, target).log_probabilities(given)
    np.testing.assert_array_equal(fitted.log_probabilities(given), expected)
    restored = set_state(mcce.PolrSampler(), get_state(fitted))
    np.testing.assert_array_equal(restored.log_probabilities(given), expected)
    assert restored.fell_back_ is True


def test_cumulative_fit_reports_failure(monkeypatch):
    given, target = encode(ordered_data(n=200))
    monkeypatch.setattr(glm, "_MOST_STEPS", 1)
    fitted = mcce.PolrSampler().fit(given, target)
    assert fitted.fell_back_ is True
    assert fitted.model_.converged is False


def fitted_by_ipf(counts, rounds=2000):
    """Return the table with all two-way margins of the counts, by iterative proportional fitting from ones."""
    fitted = np.ones(counts.shape)
    for _ in range(rounds):
        for axis in range(3):
            fitted *= counts.sum(axis, keepdims=True) / fitted.sum(axis, keepdims=True)
    return fitted


def crossed_levels(n=800, seed=4):
    """Return levels that all depend on each other, with a three-way interaction."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, n), rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.3, (a > 0).astype(int), b)
    y = np.where(rng.random(n) < 0.4, rng.integers(0, 3, n), (a + b * (a == 1)) % 3)
    return pd.DataFrame({"a": np.array(list("uvw"))[a], "b": np.array(list("pq"))[b], "y": np.array(list("klm"))[y]})


@pytest.mark.parametrize("augment", [False, True])
def test_polyreg_has_the_two_way_margins_and_the_conditional_of_ipf(augment, monkeypatch):
    """Exact without the augmentation; with it, the margins differ at most by the weight of its rows."""
    if not augment:
        monkeypatch.setattr(logistic, "augmented", lambda x, y, n_classes, weights=None: Rows(x, y, np.ones(y.size)))
    frame = crossed_levels()
    p = probabilities(mcce.PolyregSampler(), frame)
    given, target = encode(frame)
    a, b, y = (column.astype(int) for column in (*given.matrix.T, target.values))
    tolerance = 5.0 if augment else 1e-4  # rows: an intercept, two columns of a, one of b, and the rest by rounding
    for codes in (a, b):
        fitted = np.array([p[codes == level].sum(axis=0) for level in np.unique(codes)])
        observed = np.array([np.bincount(y[codes == level], minlength=3) for level in np.unique(codes)])
        assert np.abs(fitted - observed).max() < tolerance
    counts = np.zeros((3, 2, 3))
    np.add.at(counts, (a, b, y), 1)
    table = fitted_by_ipf(counts)
    conditional = table / table.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(p, conditional[a, b], atol=0.02 if augment else 1e-6)
    saturated = counts / counts.sum(axis=2, keepdims=True)
    assert np.abs(saturated - conditional).max() > 0.05
