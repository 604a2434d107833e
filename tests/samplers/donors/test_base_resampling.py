"""Proper and honest trees: the rows that grow them, the donors, and what stays unchanged."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.rng import RowStreams
from mcce.table import Column
from mcce.testing import check_sampler
from mcce.trees import cart
from mcce.trees.cart import with_donors
from tests.samplers.parametric.test_sampler import encode

PARAMETERS = [
    mcce.CartSampler(honest=True),
    mcce.CartSampler(proper=True, dialect="rpart", cp=0.001),
    mcce.CtreeSampler(honest=True, proper=True),
    mcce.ForestSampler(n_trees=3, honest=True),
    mcce.ForestSampler(n_trees=3, proper=True),
]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", PARAMETERS, ids=repr)
def test_conformance(sampler):
    # a single bootstrap sample fits only on average over samples
    check_sampler(sampler, goodness_of_fit=not sampler.proper)


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    job = np.array(["cook", "pilot", "clerk"])[rng.integers(0, 3, n)]
    y = np.where(x > 0, 3.0, 0.0) + (job == "cook") + rng.normal(size=n)
    return encode(pd.DataFrame({"x": x, "z": z, "job": job, "y": y}))


def leaf_rows(tree):
    return [tree.donors[a : a + n] for a, n in zip(tree.start[tree.stops], tree.size[tree.stops])]


@pytest.mark.parametrize("sampler", [mcce.CartSampler(honest=True), mcce.CtreeSampler(honest=True)], ids=repr)
def test_honest_tree_grows_on_one_half_and_takes_donors_from_the_other(sampler):
    given, target = data()
    tree = sampler.fit(given, target).tree_
    donors = np.sort(tree.donors)
    assert donors.size == 200
    assert np.unique(donors).size == 200
    growing = np.setdiff1d(np.arange(400), donors)
    # the values of the donors were not used for growing
    other = target.values.copy()
    other[donors] = np.random.default_rng(9).permutation(other[donors])
    again = sampler.clone().fit(given, Column(target.feature, other)).tree_
    np.testing.assert_array_equal(again.threshold, tree.threshold)
    np.testing.assert_array_equal(again.donors, tree.donors)
    other[growing] += np.random.default_rng(9).normal(0.0, 3.0, 200)
    assert sampler.clone().fit(given, Column(target.feature, other)).tree_.threshold.tolist() != tree.threshold.tolist()


def test_every_leaf_holds_the_rows_that_reach_it():
    given, target = data()
    grown = cart.grow(given, target, min_leaf=5)
    rows = np.arange(1, 400, 2)
    for least in (1, 4, 30, 1000):
        tree = with_donors(grown, given.matrix, rows, least)
        reached = tree.route(given.matrix[rows])
        leaves = np.flatnonzero(tree.stops)
        for leaf, donors in zip(leaves, leaf_rows(tree)):
            np.testing.assert_array_equal(donors, rows[reached == leaf])
        assert tree.size[leaves].min() >= min(least, 200)
        assert tree.size[leaves].sum() == tree.size[0] == 200
        for node in np.flatnonzero(~tree.stops):  # the rows of a node are those of its children
            left = tree.left[node]
            assert tree.start[node] == tree.start[left]
            assert tree.start[left + 1] == tree.start[left] + tree.size[left]
            assert tree.size[node] == tree.size[left] + tree.size[left + 1]
    assert tree.n_nodes == 1


def test_splits_leave_enough_rows_on_both_sides():
    given, target = data()
    grown = cart.grow(given, target, min_leaf=5)
    same = with_donors(grown, given.matrix, np.arange(400), 5)
    np.testing.assert_array_equal(same.feature, grown.feature)
    np.testing.assert_array_equal(same.size, grown.size)


def test_honest_leaves_are_as_dispersed_as_new_rows():
    """On noise, a tree with leaves of five finds narrow leaves; the other half has the true spread."""
    rng = np.random.default_rng(1)
    spreads = {}
    for honest in (False, True):
        inside = []
        for seed in range(5):
            x = rng.normal(size=(500, 5))
            frame = pd.DataFrame(x, columns=list("abcde")).assign(y=rng.normal(size=500))
            tree = mcce.CartSampler(honest=honest, random_state=seed).fit(*encode(frame)).tree_
            y = frame["y"].to_numpy()
            inside += [y[rows].var(ddof=1) for rows in leaf_rows(tree) if rows.size > 1]
        spreads[honest] = np.sqrt(np.mean(inside))
    assert spreads[False] < 0.8
    assert spreads[True] == pytest.approx(1.0, abs=0.06)


def test_forest_has_out_of_bag_donors():
    given, target = data()
    plain, honest = (mcce.ForestSampler(n_trees=4, honest=h).fit(given, target) for h in (False, True))
    for grown, donating in zip(plain.trees_, honest.trees_):
        assert not np.isin(donating.donors, grown.donors).any()  # the same seed grows the same trees
        assert np.union1d(donating.donors, grown.donors).size == 400
        assert donating.donors.size == pytest.approx(400 * np.exp(-1), abs=30)
        assert donating.n_nodes <= grown.n_nodes


@pytest.mark.parametrize(
    "sampler",
    [mcce.CartSampler(proper=True), mcce.CtreeSampler(proper=True), mcce.CartSampler(proper=True, dialect="rpart")],
    ids=repr,
)
def test_proper_tree_is_grown_on_a_bootstrap_sample(sampler):
    given, target = data()
    fitted = sampler.fit(given, target)
    donors = np.sort(fitted.tree_.donors)
    assert donors.size == 400
    assert np.unique(donors).size == pytest.approx(400 * (1 - np.exp(-1)), abs=30)
    # the same as the plain tree of these rows
    plain = type(sampler)(**{**sampler.get_params(), "proper": False})
    plain.fit(given.take(donors), Column(target.feature, target.values[donors]))
    np.testing.assert_array_equal(plain.tree_.threshold, fitted.tree_.threshold)
    drawn = [s.sample(given, RowStreams.from_seed(3, 400)) for s in (plain, fitted)]
    np.testing.assert_array_equal(*drawn)


@pytest.mark.slow
def test_proper_trees_reflect_the_uncertainty_of_a_share():
    """Over fits, the share of a level varies as over data sets: sqrt(p (1 - p) / n) beside the draws."""
    n, fits = 50, 300
    given, target = encode(pd.DataFrame({"x": np.zeros(n), "y": ["u"] * 20 + ["v"] * 30}))
    shares = [
        (mcce.CartSampler(proper=True, random_state=s).fit(given, target).donors_.forest.values == 0).mean()
        for s in range(fits)
    ]
    assert np.mean(shares) == pytest.approx(0.4, abs=0.02)
    assert np.std(shares) == pytest.approx(np.sqrt(0.4 * 0.6 / n), rel=0.15)


@pytest.mark.parametrize("sampler", [*PARAMETERS[2:], mcce.CartSampler(proper=True)], ids=repr)
def test_rows_follow_the_chain_seed(sampler):
    if isinstance(sampler, mcce.ForestSampler) and not sampler.proper:
        pytest.skip("the bootstrap samples of a forest come from its random_state alone")
    given, target = data(200)
    frame = pd.DataFrame({"x": given.matrix[:, 0], "y": target.values})

    def fitted(seed, n_jobs=1):
        chain = mcce.ChainModel(sampler={"y": sampler, "*": "marginal"}, fixed=["x"], random_state=seed, n_jobs=n_jobs)
        return chain.fit(frame).samplers_["y"].donors_.forest.values.tolist()

    assert fitted(1) == fitted(1, n_jobs=2)
    assert fitted(1) != fitted(2)


@pytest.mark.parametrize("kind", [mcce.CartSampler, mcce.CtreeSampler, mcce.ForestSampler])
def test_one_row_and_missing_targets(kind):
    for honest, proper in ((True, False), (False, True), (True, True)):
        sampler = kind(honest=honest, proper=proper)
        given, target = encode(pd.DataFrame({"x": [1.0], "y": [5.0]}))
        assert sampler.fit(given, target).sample(given, RowStreams.from_seed(1, 1)).tolist() == [5.0]
        x = np.random.default_rng(0).normal(size=300)
        given, target = encode(pd.DataFrame({"x": x, "y": pd.Series(x).mask(x > 0.5)}))
        drawn = sampler.fit(given, target).sample(given, RowStreams.from_seed(1, 300))
        assert np.isnan(drawn[x > 1.0]).mean() > 0.8
        assert np.isnan(drawn[x < 0.0]).mean() < 0.2
        given, target = encode(pd.DataFrame({"x": [1.0, 2.0], "y": [np.nan, np.nan]}))
        assert np.isnan(sampler.fit(given, target).sample(given, RowStreams.from_seed(1, 2))).all()


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (mcce.CartSampler(proper=1), "proper of CartSampler is 1; it must be True or False"),
        (mcce.CtreeSampler(honest="yes"), "honest of CtreeSampler is 'yes'"),
        (mcce.ForestSampler(honest=None), "honest of ForestSampler is None"),
        (mcce.CartSampler(random_state="a"), "random_state is 'a'"),
        (mcce.CartSampler(honest=True, dialect="rpart"), 'honest trees need the dialect "mcce"; leave out honest'),
    ],
    ids=str,
)
def test_invalid_parameters_raise(sampler, message):
    with pytest.raises(InputError, match=message):
        sampler.fit(*data(50))
