"""Forests with equal weight per tree: Meinshausen's weights by brute force."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError, Within
from mcce.rng import RowStreams
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from tests.marks import nightly_but_named
from tests.samplers.parametric.test_sampler import encode

BY_TREE = mcce.ForestSampler(n_trees=4, pooling="trees")


# the others share the code of other samplers
KEPT = ("check_conditional", "check_missing", "check_sample_within", "check_log_density", "check_state")


@pytest.mark.parametrize(
    "check", nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], *KEPT), ids=lambda check: check.__name__
)
def test_conformance(check):
    check(BY_TREE, 0)


def frame_of(kind, n=200):
    """Return givens with one noise column: trees that split on it have large leaves for the other."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, n))
    y = np.round(3.0 * (x > 0) + rng.normal(size=n) * 0.5, 1)
    y = y if kind == "numeric" else pd.Categorical.from_codes(np.digitize(y, [0.0, 1.5, 3.0]), list("abcd"))
    return pd.DataFrame({"x": x, "noise": np.round(noise), "y": y})


def fitted_of(kind, **options):
    given, target = encode(frame_of(kind))
    return mcce.ForestSampler(n_trees=5, max_features=1, pooling="trees", **options).fit(given, target), given, target


def weights_of(fitted, given, row):
    """Return each value's weight: the mean over the trees of its share among the donors of the leaf, tree by tree."""
    trees = zip(fitted.trees_, fitted.donor_values_)
    shares = []
    for tree, values in trees:
        leaf = tree.route(given.matrix[[row]])[0]
        donors = values[tree.start[leaf] : tree.start[leaf] + tree.size[leaf]]
        shares.append(pd.Series(1.0 / donors.size, index=donors).groupby(level=0).sum())
    return pd.concat(shares).groupby(level=0).sum() / len(shares), shares


@pytest.mark.parametrize("kind", ["numeric", "categorical"])
def test_draws_follow_the_weights(kind):
    fitted, given, _ = fitted_of(kind)
    pooled = mcce.ForestSampler(n_trees=5, max_features=1).fit(*encode(frame_of(kind)))
    n, apart = 20_000, 0.0
    for row in (0, 3, 8):
        expected, _ = weights_of(fitted, given, row)
        rows = given.take(np.full(n, row))
        seen = pd.Series(fitted.sample(rows, RowStreams.from_seed(row, n))).value_counts() / n
        assert set(seen.index) <= set(expected.index)
        gap = (seen.reindex(expected.index, fill_value=0.0) - expected).abs()
        assert gap.max() < 0.015
        alike = pd.Series(pooled.sample(rows, RowStreams.from_seed(row, n))).value_counts() / n
        apart = max(apart, (alike.reindex(expected.index, fill_value=0.0) - expected).abs().max())
    assert apart > 0.03  # a pool of all leaves has other weights


@pytest.mark.parametrize("kind", ["numeric", "categorical"])
def test_restricted_draws_choose_among_the_allowed_weights(kind):
    fitted, given, _ = fitted_of(kind)
    n = 20_000
    for row in (0, 3):
        expected, _ = weights_of(fitted, given, row)
        if kind == "numeric":
            within = Within(low=np.full(n, expected.index[1]), high=np.full(n, expected.index[-2]), weighted=True)
        else:
            within = Within(levels=np.tile([True, False, True, False], (n, 1)), weighted=True)
        codes = expected.index.to_numpy(dtype=float)
        allowed = expected[within.take(np.zeros(codes.size, dtype=int)).allows(codes)]
        found = fitted.sample_within(given.take(np.full(n, row)), RowStreams.from_seed(row, n), within)
        np.testing.assert_allclose(np.exp(found.log_mass), allowed.sum(), rtol=1e-9)
        seen = pd.Series(found.values).value_counts() / n
        assert (seen.reindex(allowed.index, fill_value=0.0) - allowed / allowed.sum()).abs().max() < 0.02
    nothing = Within(low=np.full(3, 1e6)) if kind == "numeric" else Within(levels=np.zeros((3, 4), dtype=bool))
    assert fitted.sample_within(given.take(np.arange(3)), RowStreams.from_seed(1, 3), nothing).rejected.all()


def test_level_density_is_the_mean_over_the_trees():
    """With five pseudo-donors from the margin in each tree, by hand."""
    fitted, given, target = fitted_of("categorical")
    margin = np.exp(mcce.MarginalSampler().fit(given, target).log_density(given.take(np.arange(4)), np.arange(4.0)))
    for row in (0, 3, 8):
        _, shares = weights_of(fitted, given, row)
        sizes = [tree.size[tree.route(given.matrix[[row]])[0]] for tree in fitted.trees_]
        for level in range(4):
            by_hand = np.mean([(s.get(level, 0.0) * m + 5 * margin[level]) / (m + 5) for s, m in zip(shares, sizes)])
            density = fitted.log_density(given.take([row]), np.array([float(level)]))
            assert np.exp(density[0]) == pytest.approx(by_hand, rel=1e-9)


def test_missing_targets_have_the_mean_share_of_the_trees():
    frame = frame_of("numeric", 400)
    rng = np.random.default_rng(1)
    frame["y"] = frame["y"].mask(rng.random(400) < np.where(frame["x"] > 0, 0.6, 0.1))
    given, target = encode(frame)
    fitted = mcce.ForestSampler(n_trees=5, pooling="trees").fit(given, target)
    n = 20_000
    for row in (0, 5):
        decider = fitted.donors_.decider
        shares = []
        for tree, values in zip(decider.trees, decider.values_by_tree):
            leaf = tree.route(given.matrix[[row]])[0]
            shares.append(values[tree.start[leaf] : tree.start[leaf] + tree.size[leaf]].mean())
        drawn = fitted.sample(given.take(np.full(n, row)), RowStreams.from_seed(row, n))
        assert np.isnan(drawn).mean() == pytest.approx(np.mean(shares), abs=0.015)


def test_one_tree_gives_equal_results_and_refit_is_fresh():
    given, target = encode(frame_of("numeric"))
    one, pooled = (mcce.ForestSampler(n_trees=1, pooling=how).fit(given, target) for how in ("trees", "donors"))
    values = target.values
    np.testing.assert_allclose(one.log_density(given, values), pooled.log_density(given, values), rtol=1e-12)
    before = one.log_density(given, values)
    one.fit(given.take(np.arange(100)), type(target)(target.feature, target.values[:100]))
    assert not np.allclose(one.log_density(given, values), before)


def test_invalid_choice_raises():
    with pytest.raises(InputError, match="pooling of ForestSampler is 'leaves'; known: 'donors', 'trees'"):
        mcce.ForestSampler(pooling="leaves").fit(*encode(frame_of("numeric")))
