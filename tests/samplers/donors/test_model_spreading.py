"""Trees with smoothing: draws follow the kernel density of the leaf, on the grid, within the range."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mcce
from mcce import InputError, Within
from mcce.rng import RowStreams
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from tests.marks import nightly_but_named
from tests.samplers.parametric.test_sampler import encode

SMOOTHED = [
    mcce.CartSampler(smoothing="density"),
    mcce.ForestSampler(n_trees=3, pooling="trees", smoothing="density"),
]
QUICK = ("check_grid", "check_marginal", "check_rounded", "check_supports", "check_state", "check_missing")


@pytest.mark.parametrize(
    "check",
    nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], *QUICK, "check_sample_within"),
    ids=lambda check: check.__name__,
)
def test_conformance(check):
    check(SMOOTHED[0], 0)
    if check.__name__ in QUICK:
        check(SMOOTHED[1], 0)


def frame_of(n=300):
    """Return a target with a point mass whose spread differs a hundredfold between two leaves."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, n).astype(float)
    y = np.where(x > 0, 100.0 + 10.0 * rng.normal(size=n), 0.1 * rng.normal(size=n))
    return pd.DataFrame({"x": x, "y": np.where(rng.random(n) < 0.2, 50.0, y)})


@pytest.mark.parametrize("make", [mcce.CartSampler, mcce.CtreeSampler, mcce.ForestSampler])
def test_draws_follow_the_kernel_density_of_their_leaf(make):
    given, target = encode(frame_of())
    options = {"n_trees": 1, "max_features": None} if make is mcce.ForestSampler else {}
    fitted = make(smoothing="density", max_depth=1, **options).fit(given, target)
    tree = fitted.donors_.forest.trees[0]
    for at in (0.0, 1.0):
        row = given.take(np.full(20_000, np.flatnonzero(given.matrix[:, 0] == at)[0]))
        drawn = fitted.sample(row, RowStreams.from_seed(1, 20_000))
        leaf = tree.route(row.matrix[:1])[0]
        donors = fitted.donors_.forest.values[tree.start[leaf] : tree.start[leaf] + tree.size[leaf]]
        assert (drawn == 50.0).mean() == pytest.approx((donors == 50.0).mean(), abs=0.015)
        others = donors[donors != 50.0]
        low, high = np.quantile(others, [0.25, 0.75])
        width = 0.9 * min(others.std(ddof=1), (high - low) / 1.34) * others.size**-0.2
        moved = drawn[drawn != 50.0]
        assert not np.isin(moved, target.values).any()

        def below(x, others=others, width=width):
            """Return the mean over the donors of normal cdfs truncated to the training range."""
            ends = [stats.norm.cdf((end - others) / width) for end in (target.values.min(), target.values.max())]
            each = (stats.norm.cdf((np.asarray(x)[:, None] - others) / width) - ends[0]) / (ends[1] - ends[0])
            return each.mean(axis=1)

        assert stats.kstest(moved[:4000], below).pvalue > 1e-3
        assert fitted.supports(row, drawn).all()
        assert not fitted.supports(row.take(np.arange(1)), others.max() + 9 * np.array([width])).any()


def test_forest_moves_a_donor_by_the_bandwidth_of_its_leaf():
    """Pooled over trees: a donor from a narrow leaf never moves as far as one from a wide leaf."""
    given, target = encode(frame_of())
    fitted = mcce.ForestSampler(n_trees=4, max_features=None, smoothing="density").fit(given, target)
    row = given.take(np.full(4000, np.flatnonzero(given.matrix[:, 0] == 0)[0]))
    drawn = fitted.sample(row, RowStreams.from_seed(1, 4000))
    moved = drawn[drawn != 50.0]
    assert np.abs(moved).max() < 0.8
    donors = np.unique(fitted.donors_.forest.values)
    assert not np.isin(moved, donors).any()


def test_restricted_draws_are_truncated():
    given, target = encode(frame_of())
    fitted = mcce.CartSampler(smoothing="density").fit(given, target)
    n = 4000
    row = given.take(np.full(n, np.flatnonzero(given.matrix[:, 0] == 1)[0]))
    within = Within(low=np.full(n, 95.0), high=np.full(n, 104.0), weighted=True)
    free = fitted.sample(row, RowStreams.from_seed(1, n))
    found = fitted.sample_within(row, RowStreams.from_seed(2, n), within)
    inside = free[within.allows(free)]
    assert within.allows(found.values[~found.rejected]).all()
    assert stats.ks_2samp(inside, found.values[~found.rejected]).pvalue > 1e-3
    assert np.exp(found.log_mass).mean() == pytest.approx(inside.size / n, abs=0.03)


def test_chain_rounds_draws_to_the_grid_and_keeps_levels():
    loans = mcce.datasets.load_loans()
    chain = mcce.ChainModel(sampler=mcce.CartSampler(smoothing="density"), fixed=["age"], random_state=1)
    drawn = chain.fit(loans.X).sample(500)
    assert (drawn.dtypes == loans.X.dtypes).all()
    assert drawn["salary"].isin(loans.X["salary"]).mean() < 0.9
    assert drawn["salary"].between(loans.X["salary"].min(), loans.X["salary"].max()).all()
    assert drawn["housing"].isin(loans.X["housing"]).all()


@pytest.mark.parametrize("make", [mcce.CartSampler, mcce.CtreeSampler, mcce.ForestSampler])
def test_invalid_smoothing_raises(make):
    with pytest.raises(InputError, match=rf'smoothing of {make.__name__} is True; it must be None or "density"'):
        make(smoothing=True).fit(*encode(frame_of()))


@pytest.mark.parametrize("sampler", [*SMOOTHED, mcce.CtreeSampler(smoothing="density")], ids=lambda s: type(s).__name__)
def test_always_missing_column_is_drawn_missing(sampler):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=50), "nothing": np.full(50, np.nan), "b": rng.normal(size=50)})
    drawn = mcce.ChainModel(sampler=sampler, fixed=["a"], random_state=1).fit(X).sample(30)
    assert drawn["nothing"].isna().all()
    assert drawn["b"].between(X["b"].min(), X["b"].max()).all()
