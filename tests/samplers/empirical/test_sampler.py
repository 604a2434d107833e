"""Weighted donors: conformance; weights, draws, densities and bandwidth by brute force; ties, missing."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import InputError, Within
from mcce.rng import RowStreams
from mcce.samplers.empirical.sampler import CANDIDATES
from mcce.table import Column, Table
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from tests.marks import nightly_but_named
from tests.samplers.parametric.test_sampler import encode

N = 120
H = 0.3


FIXED, CHOSEN = mcce.EmpiricalSampler(bandwidth=0.3), mcce.EmpiricalSampler()
OF_THE_CHOICE = ("check_marginal", "check_conditional", "check_seeds", "check_state")  # others add nothing


KEPT = ("check_conditional", "check_missing", "check_sample_within", "check_training_rows", "check_grid")


@pytest.mark.parametrize(
    "check", nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], *KEPT), ids=lambda check: check.__name__
)
def test_conformance(check):
    check(FIXED, 0)
    if check.__name__ in OF_THE_CHOICE:
        check(CHOSEN, 0)


def numbers(n=N, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = scale * (0.8 * a + 0.6 * rng.normal(size=n))
    return pd.DataFrame({"a": a, "b": b, "y": a + rng.normal(size=n)})


def mixed(n=N, seed=0):
    rng = np.random.default_rng(seed)
    grade = pd.Categorical.from_codes(rng.integers(0, 4, n), ["a", "b", "c", "d"], ordered=True)
    job = np.array(["cook", "pilot", "clerk"])[rng.integers(0, 3, n)]
    age = pd.Series(rng.integers(20, 60, n).astype(float)).mask(rng.random(n) < 0.2)
    return pd.DataFrame({"age": age, "grade": grade, "job": job, "c": 1.0, "y": rng.normal(size=n)})


def mahalanobis(frame, i):
    x = frame[["a", "b"]].to_numpy()
    inverse = np.linalg.inv(np.cov(x.T))
    return np.array([np.sqrt((row - x[i]) @ inverse @ (row - x[i]) / 2) for row in x])


def gower(frame, i):
    age, grade, job = (
        frame["age"].to_numpy(),
        frame["grade"].cat.codes.to_numpy().astype(float),
        frame["job"].to_numpy(),
    )
    unlike = np.abs(age - age[i]) / (np.nanmax(age) - np.nanmin(age))
    unlike = np.where(np.isnan(unlike), np.isnan(age) != np.isnan(age[i]), unlike)
    return (unlike + np.abs(grade - grade[i]) / 3 + (job != job[i])) / 4


def kept_weights(distances, h=H, keep=0.95):
    """Return weights by sorting, including ties of the last one kept."""
    weights = np.exp(-0.5 * (distances / h) ** 2)
    order = np.argsort(-weights, kind="stable")
    last = np.searchsorted(np.cumsum(weights[order]) / weights.sum(), keep)
    weights = np.where(weights >= weights[order[last]] * (1 - 1e-12), weights, 0.0)
    return weights / weights.sum()


CASES = [(numbers(), mahalanobis), (numbers(scale=1e5), mahalanobis), (mixed(), gower)]
of_both_distances = pytest.mark.parametrize(("frame", "distance"), CASES, ids=["numbers", "other units", "mixed"])


def fit(frame, **options):
    given, target = encode(frame)
    return mcce.EmpiricalSampler(bandwidth=H, **options).fit(given, target), given, target


@of_both_distances
def test_draws_follow_the_weights(frame, distance):
    fitted, given, _ = fit(frame)
    for i in (0, 7):
        expected = pd.Series(kept_weights(distance(frame, i))).groupby(frame["y"]).sum()
        drawn = pd.Series(fitted.sample(given.take(np.full(20_000, i)), RowStreams.from_seed(i, 20_000)))
        seen = drawn.value_counts().reindex(expected.index, fill_value=0)
        assert seen[expected == 0].sum() == 0
        likely = expected * 20_000 > 5
        rest = [seen[~likely].sum()], [expected[~likely].sum() * 20_000]
        counts, hoped = np.append(seen[likely], rest[0]), np.append(expected[likely] * 20_000, rest[1])
        assert stats.chi2.sf(((counts - hoped)[hoped > 0] ** 2 / hoped[hoped > 0]).sum(), (hoped > 0).sum() - 1) > 1e-4


@pytest.mark.slow
@of_both_distances
def test_restricted_draws_and_their_probability(frame, distance):
    fitted, given, target = fit(frame)
    low, high = np.quantile(target.values, [0.3, 0.5])
    within = Within(low=np.full(N, low), high=np.full(N, high), weighted=True)
    found = fitted.sample_within(given, RowStreams.from_seed(1, N), within)
    inside = (target.values >= low) & (target.values <= high)
    mass = np.array([kept_weights(distance(frame, i))[inside].sum() for i in range(N)])
    np.testing.assert_allclose(np.exp(found.log_mass), mass, rtol=1e-9)
    np.testing.assert_array_equal(found.rejected, mass == 0)
    assert within.take(~found.rejected).allows(found.values[~found.rejected]).all()


@of_both_distances
def test_densities_match_brute_force(frame, distance):
    fitted, given, target = fit(frame)
    values = target.values
    margin = mcce.MarginalSampler().fit(given, target)
    prior = np.exp(margin.log_density(given, values))
    quartiles = np.quantile(values, [0.25, 0.75])
    margin_width = 0.9 * min(values.std(ddof=1), np.ptp(quartiles) / 1.34) * N**-0.2
    density = fitted.log_density(given, values)
    for i in range(0, N, 9):
        w = kept_weights(distance(frame, i))
        m = 1 / (w**2).sum()
        order = np.argsort(values)
        low, high = (values[order][np.searchsorted(np.cumsum(w[order]), q)] for q in (0.25, 0.75))
        h = margin_width  # of a single donor
        if (w > 0).sum() > 1:
            sd = np.sqrt(w @ (values - w @ values) ** 2 * m / (m - 1))
            h = 0.9 * min(spread for spread in (sd, (high - low) / 1.34) if spread > 0) * m**-0.2
        share = w @ stats.norm(values, h).pdf(values[i])
        assert density[i] == pytest.approx(np.log((m * share + 5 * prior[i]) / (m + 5)), rel=1e-6)


def test_probabilities_of_levels_match_brute_force():
    frame = numbers()
    frame["y"] = pd.cut(frame["y"], [-9, -0.5, 0.5, 9], labels=["low", "mid", "high"]).cat.as_unordered()
    fitted, given, target = fit(frame)
    margin = mcce.MarginalSampler().fit(given, target)
    for i in (3, 50):
        w = kept_weights(mahalanobis(frame, i))
        m = 1 / (w**2).sum()
        for level in range(3):
            prior = np.exp(margin.log_density(given.take([i]), np.array([float(level)])))
            share = (m * w[target.values == level].sum() + 5 * prior) / (m + 5)
            assert fitted.log_density(given.take([i]), np.array([float(level)])) == pytest.approx(np.log(share))


def test_left_out_training_row_has_no_influence():
    frame = mixed().drop(columns="c")
    fitted, given, target = fit(frame)
    left_out = fitted.log_density(given, target.values, training_rows=np.arange(N))
    for i in (0, 5, 70):
        others = np.delete(np.arange(N), i)
        alone = mcce.EmpiricalSampler(bandwidth=H).fit(
            given.take(others), Column(target.feature, target.values[others])
        )
        # the margin's kernel density is read from a grid, with a fixed bandwidth
        assert left_out[i] == pytest.approx(alone.log_density(given.take([i]), target.values[[i]])[0], abs=0.05)
    assert (left_out < fitted.log_density(given, target.values)).mean() > 0.9


def test_equal_weights_are_kept_or_dropped_together():
    """Without givens all rows have equal weight: none may be cut off because of its position."""
    frame = pd.DataFrame({"y": np.arange(50.0)})
    given, target = encode(frame)
    fitted = mcce.EmpiricalSampler(bandwidth=H, keep=0.5).fit(given, target)
    drawn = fitted.sample(Table(given.features, np.empty((5000, 0))), RowStreams.from_seed(1, 5000))
    assert np.unique(drawn).size == 50


def test_distant_rows_draw_from_the_nearest():
    fitted, given, _ = fit(numbers())
    far = Table(given.features, np.array([[1e6, 1e6], [-1e6, -1e6]]))
    high, low = fitted.sample(far, RowStreams.from_seed(1, 2))
    assert high > low


@pytest.mark.slow
def test_missing_targets_are_drawn_by_weight():
    rng = np.random.default_rng(1)
    g = rng.integers(0, 2, 2000)
    y = pd.Series(rng.normal(size=2000)).mask(rng.random(2000) < np.where(g == 1, 0.6, 0.1))
    given, target = encode(pd.DataFrame({"g": np.array(["u", "v"])[g], "y": y}))
    fitted = mcce.EmpiricalSampler(bandwidth=0.1).fit(given, target)
    drawn = fitted.sample(given, RowStreams.from_seed(1, 2000))
    for level, share in ((0, 0.1), (1, 0.6)):
        assert np.isnan(drawn[g == level]).mean() == pytest.approx(share, abs=0.05)
        rows = given.take(np.flatnonzero(g == level)[:1])
        assert np.exp(fitted.log_density(rows, np.array([np.nan]))) == pytest.approx(share, abs=0.03)
        assert fitted.supports(rows, np.array([np.nan])).all()
    within = Within(low=np.full(2000, 0.0), missing=np.ones(2000, dtype=bool))
    found = fitted.sample_within(given, RowStreams.from_seed(2, 2000), within)
    for level, share in ((0, 0.1), (1, 0.6)):
        assert np.isnan(found.values[g == level]).mean() == pytest.approx(share / (share + (1 - share) / 2), abs=0.05)


@pytest.mark.slow
def test_bandwidth_minimises_the_criterion():
    frame = numbers(n=150)
    given, target = encode(frame)
    fitted = mcce.EmpiricalSampler().fit(given, target)
    distances = np.array([mahalanobis(frame, i) for i in range(150)])
    below = target.values[:, None] <= np.quantile(target.values, np.arange(1, 10) / 10)

    def criterion(h):
        hat = np.exp(-0.5 * (distances / h) ** 2)
        hat /= hat.sum(axis=1)[:, None]
        used = hat.trace()
        if used >= 148:
            return np.inf
        return np.log(((below - hat @ below) ** 2).sum() / 150) + 1 + 2 * (used + 1) / (150 - used - 2)

    scores = np.array([criterion(h) for h in CANDIDATES])
    assert fitted.bandwidth_ == CANDIDATES[scores.argmin()]
    assert 0 < scores.argmin() < CANDIDATES.size - 1


@pytest.mark.slow
def test_bandwidth_depends_on_the_givens():
    """For noise the bandwidth is the widest; if only the spread depends on the given, it is not."""
    rng = np.random.default_rng(2)
    x, e = rng.normal(size=(2, 800))
    noise, spread = (
        mcce.EmpiricalSampler().fit(*encode(pd.DataFrame({"x": x, "y": y}))).bandwidth_
        for y in (e, e * np.exp(2.0 * x))
    )
    assert noise > 0.7 > 0.5 > spread


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0.0}, "bandwidth of EmpiricalSampler is 0.0; it must be 'aicc', or a number from 1e-100 to 1e"),
        ({"bandwidth": 1e-200}, "bandwidth of EmpiricalSampler is 1e-200"),
        ({"bandwidth": 1e308}, r"bandwidth of EmpiricalSampler is 1e\+308"),
        ({"bandwidth": "AIC"}, "bandwidth of EmpiricalSampler is 'AIC'"),
        ({"keep": 1.5}, "keep of EmpiricalSampler is 1.5; it must be a share above 0, at most 1"),
        ({"random_state": "x"}, "random_state is 'x'"),
    ],
)
def test_invalid_parameters_raise(options, message):
    with pytest.raises(InputError, match=message):
        mcce.EmpiricalSampler(**options).fit(*encode(numbers()))
