"""logreg, polyreg, polr and parametric: calibration, `proper`, relabelling, falling back. Level of all tests: 1e-4."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.rng import RowStreams
from mcce.samplers import logistic
from mcce.samplers.logistic import LogregSampler, Multinomial, PolrSampler, PolyregSampler, Rows
from mcce.samplers.parametric import ParametricSampler
from mcce.samplers.within import Within
from tests.samplers.parametric.fixtures import at, encode, with_gaps

LEVEL = 1e-4
ALL = pytest.mark.parametrize("sampler", [LogregSampler(), PolyregSampler(), PolrSampler()], ids=repr)


def softmax_data(n=2000, seed=0, levels=3):
    """Return log odds against level a: 0.5 + x, and -0.5 - x + [f = w] for further levels."""
    rng = np.random.default_rng(seed)
    x, f = rng.normal(size=n), rng.integers(0, 3, n)
    eta = np.column_stack([np.zeros(n), 0.5 + x, -0.5 - x + (f == 2)])[:, :levels]
    y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    return pd.DataFrame({"x": x, "f": pd.Categorical.from_codes(f, list("uvw")), "y": np.array(list("abc"))[y]})


def ordered_data(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = np.digitize(1.2 * x + rng.logistic(size=n), [-1.0, 0.5, 2.0])
    return pd.DataFrame({"x": x, "y": pd.Categorical.from_codes(y, list("abcd"), ordered=True)})


def probabilities(sampler, frame, rows=None):
    given, target = encode(frame)
    return sampler.fit(given, target).probabilities(given if rows is None else rows)


def draw(fitted, rows, within=None):
    return fitted.distribution(rows).sample(RowStreams.from_seed(1, rows.n_rows), within)


# ---- calibration


@pytest.mark.parametrize("sampler", [LogregSampler(), PolyregSampler()], ids=repr)
@pytest.mark.parametrize("levels", [2, 3])
def test_multinomial_is_calibrated(sampler, levels):
    given, target = encode(softmax_data(n=30_000, levels=levels))
    drawn, _ = draw(sampler.fit(given, target), at(given, [0.7, 2.0], 3000))
    p = np.exp([0.0, 1.2, -0.2][:levels])
    assert stats.chisquare(np.bincount(drawn.astype(int), minlength=levels), p / p.sum() * 3000).pvalue > LEVEL


def test_polr_is_calibrated():
    given, target = encode(ordered_data(n=30_000))
    drawn, _ = draw(PolrSampler().fit(given, target), at(given, [0.7], 3000))
    below = stats.logistic.cdf(np.array([-np.inf, -1.0, 0.5, 2.0, np.inf]) - 1.2 * 0.7)
    assert stats.chisquare(np.bincount(drawn.astype(int)), np.diff(below) * 3000).pvalue > LEVEL


@ALL
def test_probabilities_without_givens_are_the_shares(sampler):
    y = pd.Categorical(["a"] * 5 + ["b"] * 3 + ["d"] * 2, categories=list("abcd"), ordered=True)
    np.testing.assert_allclose(probabilities(sampler, pd.DataFrame({"y": y}))[0], [0.5, 0.3, 0.0, 0.2], atol=1e-12)


def test_all_agree_for_two_levels():
    frame = softmax_data(levels=2).assign(y=lambda f: pd.Categorical(f["y"], ordered=True))
    logreg, polyreg, polr = (probabilities(s, frame) for s in (LogregSampler(), PolyregSampler(), PolrSampler()))
    np.testing.assert_allclose(logreg, polyreg, atol=1e-7)
    np.testing.assert_allclose(logreg, polr, atol=1e-7)


@ALL
def test_separation_keeps_probabilities_moderate(sampler):
    y = pd.Categorical(np.where(np.arange(40) < 20, "a", "b"), ordered=True)
    p = probabilities(sampler, pd.DataFrame({"x": np.arange(40.0), "y": y}))[:, 1]
    assert (np.diff(p) > 0).all()
    assert ((p > 0.5) == (np.arange(40) >= 20)).all()
    assert p.min() > 1e-6


def crossed_levels(n=800, seed=4):
    """Return levels that all depend on each other, with a three-way interaction."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, n), rng.integers(0, 2, n)
    y = np.where(rng.random(n) < 0.4, rng.integers(0, 3, n), (a + b * (a == 1)) % 3)
    return pd.DataFrame({"a": np.array(list("uvw"))[a], "b": np.array(list("pq"))[b], "y": np.array(list("klm"))[y]})


def test_polyreg_is_the_conditional_of_iterative_proportional_fitting(monkeypatch):
    """Without the augmentation, it has the two-way margins of a log-linear model without three-way term."""
    monkeypatch.setattr(logistic, "augmented", lambda x, y, n_classes: Rows(x, y, np.ones(y.size)))
    given, target = encode(crossed_levels())
    a, b, y = (column.astype(int) for column in (*given.matrix.T, target.values))
    counts = np.zeros((3, 2, 3))
    np.add.at(counts, (a, b, y), 1)
    table = np.ones(counts.shape)
    for _ in range(2000):
        for axis in range(3):
            table *= counts.sum(axis, keepdims=True) / table.sum(axis, keepdims=True)
    conditional = table / table.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(PolyregSampler().fit(given, target).probabilities(given), conditional[a, b], atol=1e-6)


# ---- proper


def test_covariance_is_the_inverse_information():
    given, target = encode(softmax_data(n=300))
    x = np.column_stack([given.matrix[:, 0], given.matrix[:, 1] == 1, given.matrix[:, 1] == 2]).astype(float)
    rows = Rows(x, target.values.astype(int), np.linspace(0.5, 2.0, 300))
    fitted = Multinomial.fit(rows, 3)
    z = np.column_stack([np.ones(300), x])
    p = fitted.probabilities(fitted.intercept + x @ fitted.coef.T)[:, 1:]
    information = sum(w * np.kron(np.diag(q) - np.outer(q, q), np.outer(zi, zi)) for w, q, zi in zip(rows.weight, p, z))
    np.testing.assert_allclose(fitted.covariance(rows), np.linalg.inv(information), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_proper_logreg_is_normal_around_the_estimate():
    given, target = encode(softmax_data(n=200, levels=2))
    plain = LogregSampler().fit(given, target)
    rows = logistic.augmented(plain.design_.matrix(given) - plain.shift_, target.values.astype(int), 2)
    estimate = np.append(plain.model_.intercept, plain.model_.coef)
    drawn = [LogregSampler(proper=True, random_state=s).fit(given, target).model_ for s in range(300)]
    moved = np.array([np.append(d.intercept, d.coef) - estimate for d in drawn])
    z = np.linalg.solve(np.linalg.cholesky(plain.model_.covariance(rows)), moved.T)
    assert all(stats.kstest(row, "norm").pvalue > LEVEL for row in z)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [PolyregSampler, PolrSampler])
def test_bootstrap_variance_matches_the_likelihood(sampler):
    """The spread of bootstrapped log odds against the spread over fresh data sets, within a third."""
    make = ordered_data if sampler is PolrSampler else lambda **options: softmax_data(levels=2, **options)
    encoded = encode(make(n=400))
    rows = at(encoded[0], [0.0] * len(encoded[0].features), 1)

    def odds(fitted):
        p = fitted.probabilities(rows)[0, 0]
        return np.log(p / (1.0 - p))

    boot = [odds(sampler(proper=True, random_state=s).fit(*encoded)) for s in range(80)]
    fresh = [odds(sampler().fit(*encode(make(n=400, seed=s)))) for s in range(100, 180)]
    assert 0.67 < np.std(boot) / np.std(fresh) < 1.5


# ---- levels without training rows


@ALL
def test_unobserved_levels_are_never_drawn(sampler):
    frame = softmax_data(n=300)
    frame["y"] = pd.Categorical(frame["y"], categories=["z", "a", "q", "b", "c"], ordered=True)
    given, target = encode(frame)
    fitted = sampler.fit(given, target)
    assert fitted.classes_.tolist() == [1, 3, 4]
    assert (fitted.distribution(given).log_density(np.full(300, 0.0)) == -np.inf).all()
    only = Within(levels=np.tile([True, False, True, False, False], (300, 1)))
    assert draw(fitted, given, only)[1].all()


@ALL
@pytest.mark.parametrize("n", [1, 2, 6])
def test_few_rows_and_one_level(sampler, n):
    y = pd.Categorical(["b"] * n, categories=["a", "b"], ordered=True)
    assert (probabilities(sampler, pd.DataFrame({"x": np.arange(float(n)), "y": y})) == [0.0, 1.0]).all()
    if n > 1:
        both = pd.Categorical(["a", "b"] * (n // 2), ordered=True)
        assert (probabilities(sampler, pd.DataFrame({"x": np.arange(float(n)), "y": both})) > 0.0).all()


# ---- relabelled givens and targets


@pytest.mark.parametrize("sampler", [LogregSampler(), PolyregSampler()], ids=repr)
def test_relabelling_a_given(sampler):
    """Other names and another order with the same base have no effect. Another base moves the augmented rows."""
    frame = softmax_data(n=300)
    expected = probabilities(sampler, frame)
    renamed = frame.assign(f=frame["f"].cat.rename_categories({"u": "zz", "v": "a", "w": "m"}))
    np.testing.assert_array_equal(probabilities(sampler, renamed), expected)
    same_base = frame.assign(f=frame["f"].cat.reorder_categories(["u", "w", "v"]))
    np.testing.assert_allclose(probabilities(sampler, same_base), expected, atol=1e-7)
    other_base = frame.assign(f=frame["f"].cat.reorder_categories(["w", "v", "u"]))
    assert 0.0 < np.abs(probabilities(sampler, other_base) - expected).max() < 0.02


def test_relabelling_the_target_permutes_the_probabilities():
    frame = softmax_data(n=300)
    expected = probabilities(PolyregSampler(), frame)
    frame["y"] = pd.Categorical(frame["y"], categories=["c", "a", "b"])
    np.testing.assert_allclose(probabilities(PolyregSampler(), frame)[:, [1, 2, 0]], expected, atol=1e-7)


# ---- falling back, parametric


def test_polr_falls_back_to_polyreg(monkeypatch):
    given, target = encode(ordered_data(n=200))
    assert not PolrSampler().fit(given, target).fell_back_
    expected = PolyregSampler().fit(given, target).probabilities(given)
    monkeypatch.setattr(logistic, "MOST_HALVINGS", 0)
    fitted = PolrSampler().fit(given, target)
    assert fitted.fell_back_
    np.testing.assert_array_equal(fitted.probabilities(given), expected)


@pytest.mark.parametrize(
    ("kind", "chosen"), [("numeric", "NormRank"), ("categorical", "Polyreg"), ("ordered", "Polr"), ("two", "Logreg")]
)
def test_parametric_takes_the_sampler_of_the_kind(kind, chosen):
    frame = with_gaps("categorical" if kind == "two" else kind, n=300)
    if kind == "two":
        frame["y"] = np.where(frame["y"] == "a", "yes", "no")
    given, target = encode(frame)
    fitted = ParametricSampler(formula="x + f", proper=True, random_state=2).fit(given, target)
    assert type(fitted.sampler_).__name__ == f"{chosen}Sampler"
    alone = type(fitted.sampler_)(formula="x + f", proper=True, random_state=2).fit(given, target)
    np.testing.assert_array_equal(draw(fitted, given)[0], draw(alone, given)[0])
