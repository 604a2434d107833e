"""The vine: conformance; H compared with the normal; densities, restrictions, storage."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import mcce
from mcce import InputError, SamplerError, Within
from mcce.rng import RowStreams
from mcce.samplers.vine import dvine
from mcce.samplers.vine.dvine import DVine
from mcce.table import Table
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from tests.extras import NO_VINE
from tests.marks import nightly_but_named
from tests.samplers.parametric.test_sampler import encode
from tests.samplers.vine.whole import in_library

pytest.importorskip("pyvinecopulib", reason=NO_VINE)

CONFORMING = mcce.VineSampler(families="gaussian", max_givens=3)  # one object: checks that only draw share its fits
R = np.array([[1.0, 0.6, 0.3, 0.2], [0.6, 1.0, 0.5, 0.1], [0.3, 0.5, 1.0, 0.4], [0.2, 0.1, 0.4, 1.0]])


# the others share the code of other samplers
KEPT = ("check_conditional", "check_missing", "check_sample_within", "check_log_density", "check_state")


@pytest.mark.parametrize(
    "check", nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], *KEPT), ids=lambda check: check.__name__
)
def test_conformance(check):
    check(CONFORMING, 0)


def partial_correlations():
    """Return the correlation of each pair of a path given those between, and the number of these."""
    for tree in range(3):
        for i in range(3 - tree):
            pair, between = [i, i + tree + 1], [*range(i + 1, i + tree + 1)]
            inverse = np.linalg.inv(R[np.ix_(pair + between, pair + between)])
            yield -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1]), tree


def gaussian_vine(discrete):
    """Return the D-vine of a Gaussian copula with correlations R: each pair has its partial correlation."""
    parameters = tuple(np.array([[rho]]) for rho, _ in partial_correlations())
    vine = DVine(np.array(discrete), ("gaussian",) * 6, np.zeros(6, dtype=np.int64), parameters)
    vine.check_state()
    return vine


def test_t_copula_is_a_vine_of_student_pairs():
    """Given d numbers, a t with nu degrees of freedom has nu + d degrees of freedom; density by scipy."""
    nu = 4.0
    parameters = tuple(np.array([[rho], [nu + between]]) for rho, between in partial_correlations())
    vine = DVine(np.zeros(4, dtype=bool), ("student",) * 6, np.zeros(6, dtype=np.int64), parameters)
    vine.check_state()
    x = stats.multivariate_t(shape=R, df=nu, seed=1).rvs(40)
    u = stats.t.cdf(x, nu)
    inverse = np.linalg.inv(R[1:, 1:])
    far = np.einsum("ij,jk,ik->i", x[:, 1:], inverse, x[:, 1:])
    scale = np.sqrt((nu + far) / (nu + 3) * (1.0 - R[0, 1:] @ inverse @ R[1:, 0]))
    mean = x[:, 1:] @ inverse @ R[1:, 0]
    found = vine.given(u[:, 1:], u[:, 1:]).below(u[:, 0])
    np.testing.assert_allclose(found, stats.t.cdf((x[:, 0] - mean) / scale, nu + 3), atol=1e-7)
    density = in_library(vine).pdf(np.asfortranarray(u))
    by_scipy = stats.multivariate_t(shape=R, df=nu).logpdf(x) - stats.t.logpdf(x, nu).sum(axis=1)
    np.testing.assert_allclose(np.log(density), by_scipy, atol=1e-7)


def test_jointly_extreme_numbers_have_few_degrees_of_freedom():
    x = stats.multivariate_t(shape=[[1, 0.5], [0.5, 1]], df=3, seed=2).rvs(1500)
    frame = pd.DataFrame(x, columns=["x", "y"])
    train, new = encode(frame.iloc[:1000]), encode(frame.iloc[1000:])
    student = mcce.VineSampler(families="student").fit(*train)
    rho, nu = student.vine_.parameters[0].ravel()
    assert rho == pytest.approx(0.5, abs=0.08)
    assert 2.0 < nu < 5.0
    normal = mcce.VineSampler(families="gaussian").fit(*train)
    scores = [sampler.log_density(new[0], new[1].values) for sampler in (student, normal)]
    known = np.isfinite(scores).all(axis=0)
    assert known.mean() > 0.98
    assert scores[0][known].mean() - scores[1][known].mean() > 0.03


def test_target_given_points_matches_the_normal():
    z = np.random.default_rng(0).multivariate_normal(np.zeros(4), R, 50)
    slopes = np.linalg.solve(R[1:, 1:], R[1:, 0])
    sd = np.sqrt(1.0 - R[0, 1:] @ slopes)
    u = stats.norm.cdf(z)
    found = gaussian_vine([False] * 4).given(u[:, 1:], u[:, 1:]).below(u[:, 0])
    np.testing.assert_allclose(found, stats.norm.cdf((z[:, 0] - z[:, 1:] @ slopes) / sd), atol=1e-6)


def test_target_given_an_interval_matches_the_normal():
    """For one interval given: P(T <= t | a < G <= b), by scipy's bivariate normal."""
    vine = DVine(np.array([False, True]), ("gaussian",), np.zeros(1, dtype=np.int64), (np.array([[0.6]]),))
    for t, a, b in ((0.3, 0.2, 0.7), (0.9, 0.0, 0.4), (0.05, 0.55, 1.0)):
        bound = stats.norm.ppf(np.clip([t, a, b], 1e-12, 1 - 1e-12))
        joint = stats.multivariate_normal(cov=[[1, 0.6], [0.6, 1]])
        expected = (joint.cdf(bound[[0, 2]]) - joint.cdf(bound[[0, 1]])) / (b - a)
        found = vine.given(np.array([[a]]), np.array([[b]])).below(np.array([t]))
        assert found[0] == pytest.approx(expected, abs=1e-4)


def frame_of(n=500, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], n).T
    job = np.array(["a", "b", "c"])[np.digitize(z + rng.normal(size=n), [-0.5, 0.7])]
    y = np.exp(0.8 * z + 0.3 * rng.normal(size=n))
    return pd.DataFrame({"x": x, "job": job, "n": np.floor(3 * stats.norm.cdf(x)), "y": np.where(z < -1, 0.0, y)})


@pytest.fixture(scope="module")
def fitted():
    given, target = encode(frame_of())
    return mcce.VineSampler(max_givens=3).fit(given, target), given, target


def test_densities_integrate_to_one_and_draws_follow_them(fitted):
    sampler, given, _ = fitted
    assert sampler.base_measure() == "mixed"
    for row in (0, 5):
        n = 8000
        rows = given.take(np.full(n, row))
        grid = np.linspace(1e-6, 20.0, n)
        density = np.exp(sampler.log_density(rows, grid))
        zero = np.exp(sampler.log_density(rows.take([0]), np.zeros(1)))[0]
        assert zero + integrate.trapezoid(density, grid) == pytest.approx(1.0, abs=0.03)
        drawn = sampler.sample(rows, RowStreams.from_seed(row, n))
        assert (drawn == 0.0).mean() == pytest.approx(zero, abs=0.02)
        below = zero + integrate.cumulative_trapezoid(density, grid, initial=0.0)
        at = np.searchsorted(np.sort(drawn), grid, side="right") / n
        assert np.abs(at - below).max() < 0.06


def test_restricted_draws_are_truncated(fitted):
    sampler, given, target = fitted
    n = 4000
    rows = given.take(np.full(n, 5))
    low, high = np.quantile(target.values, [0.3, 0.7])
    within = Within(low=np.full(n, low), high=np.full(n, high), weighted=True)
    free = sampler.sample(rows, RowStreams.from_seed(1, n))
    found = sampler.sample_within(rows, RowStreams.from_seed(2, n), within)
    inside = free[within.allows(free)]
    assert within.allows(found.values).all()
    assert np.exp(found.log_mass[0]) == pytest.approx(inside.size / n, abs=0.02)
    assert stats.ks_2samp(inside, found.values).pvalue > 1e-3
    far = Within(low=np.full(3, 1e6))
    assert sampler.sample_within(rows.take(np.arange(3)), RowStreams.from_seed(1, 3), far).rejected.all()


def test_ordered_levels_among_the_givens():
    frame = frame_of()
    frame["y"] = pd.cut(frame["y"], [-1, 0.5, 1.0, 2.0, 99])
    given, target = encode(frame)
    sampler = mcce.VineSampler(families="gaussian", max_givens=2).fit(given, target)
    n = 4000
    rows = given.take(np.full(n, 3))
    each = np.exp(sampler.log_density(given.take(np.full(4, 3)), np.arange(4.0)))
    assert each.sum() == pytest.approx(1.0, abs=1e-6)
    levels = np.tile([True, False, True, False], (n, 1))
    found = sampler.sample_within(rows, RowStreams.from_seed(1, n), Within(levels=levels, weighted=True))
    assert set(found.values) <= {0.0, 2.0}
    assert (found.values == 2.0).mean() == pytest.approx(each[2] / (each[0] + each[2]), abs=0.03)
    assert np.exp(found.log_mass[0]) == pytest.approx(each[0] + each[2], abs=0.01)


def test_strongest_givens_are_kept_first(fitted):
    sampler, _, _ = fitted
    assert len(sampler.variables_) == 3
    assert sampler.variables_[0].source == 0  # x is more informative about y than a job
    none = mcce.VineSampler(max_givens=0).fit(*encode(frame_of()))
    assert none.variables_ == ()


def test_unseen_values_of_givens_lie_between_seen_ones(fitted):
    sampler, given, target = fitted
    rows = np.tile(given.matrix[:1], (3, 1))
    rows[:, 0] = [-9.0, 0.12345, 9.0]
    rows[:, 2] = [0.5, 1.5, 7.0]
    drawn = sampler.log_density(Table(given.features, rows), np.full(3, np.median(target.values)))
    assert np.isfinite(drawn).all()


def test_small_and_constant_targets():
    for values in ([5.0], [1.0, 2.0], [3.0] * 30):
        given, target = encode(pd.DataFrame({"x": np.arange(len(values), dtype=float), "y": values}))
        sampler = mcce.VineSampler().fit(given, target)
        assert np.isin(sampler.sample(given, RowStreams.from_seed(1, len(values))), values).all()
        assert np.isfinite(sampler.log_density(given, target.values)).all()


def test_invalid_input_raises(monkeypatch):
    given, target = encode(frame_of(60))
    with pytest.raises(InputError, match=r"families of VineSampler is 'normal'; known: 'parametric', .*"):
        mcce.VineSampler(families="normal").fit(given, target)
    gaps = frame_of(60)
    gaps.loc[3, "x"] = np.nan
    with pytest.raises(SamplerError, match="does not handle missing values, and 'x' has some"):
        mcce.VineSampler().fit(*encode(gaps))
    monkeypatch.setitem(__import__("sys").modules, "pyvinecopulib", None)
    with pytest.raises(SamplerError, match=r"needs pyvinecopulib; pip install 'mcce\[vine\]'"):
        dvine.library()


def spoilt(vine, **changes):
    from dataclasses import replace

    return replace(vine, **changes)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"families": ("gaussian",)}, "families has not one entry for each pair"),
        ({"families": ("os",) * 6}, "families holds an unknown family"),
        ({"rotations": np.full(6, 45)}, "rotations are not multiples of 90 degrees"),
        ({"parameters": (np.array([[7.0]]),) * 6}, "rejects the pair copulas: parameters exceed upper bound"),
        ({"parameters": (np.array([[np.nan]]),) * 6}, "parameters holds nan"),
        ({"families": ("tll",) * 6}, "parameters are not a grid"),
        ({"families": ("tll",) * 6, "parameters": (-np.ones((3, 3)),) * 6}, "parameters are not a density"),
        ({"families": ("student",) * 6}, "rejects the pair copulas"),
    ],
)
def test_invalid_vine_raises(changes, match):
    with pytest.raises(InputError, match=match):
        spoilt(gaussian_vine([False] * 4), **changes).check_state()
