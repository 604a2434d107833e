"""The private sampler: conformance, shares by hand calculation, errors, and the privacy budget."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import DPSampler, InputError, SamplerError, Within
from mcce.rng import RowStreams
from mcce.samplers.dp import SENSITIVITY, _leaf_shares, _not_negative, split_scores
from mcce.storage.learned import disclosed
from mcce.table import Column, Table
from mcce.testing import CHECKS, GOODNESS_OF_FIT, check_sampler
from tests.marks import nightly_but_named
from tests.samplers.parametric.test_sampler import encode

EXACT = 10**6  # an epsilon without noise
PUBLIC = {
    "bounds": {"height": (100, 240), "target": (-50, 250)},
    "levels": "schema",  # targets of several levels share one name there; levels declared by their columns are public
    "missing": ["target"],
}
CONFORMING = DPSampler(epsilon=EXACT, **PUBLIC, n_bins=320, max_depth=1, testing_seed=1)


# the others share the code of other samplers
KEPT = ("check_conditional", "check_missing", "check_sample_within", "check_log_density", "check_state")


@pytest.mark.parametrize(
    "check", nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], *KEPT), ids=lambda check: check.__name__
)
def test_conformance(check):
    check(CONFORMING, 0)


@pytest.mark.nightly
def test_conformance_with_several_trees_and_gaussian_noise():
    check_sampler(
        DPSampler(**{**CONFORMING.get_params(), "n_trees": 3, "max_depth": 2, "delta": 1e-6}),
        goodness_of_fit=True,
        random_state=1,
    )


@pytest.mark.slow
def test_conformance_with_chosen_splits():
    check_sampler(DPSampler(**{**CONFORMING.get_params(), "choosing": 0.5}), goodness_of_fit=True, random_state=1)


def problem(n=400, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    job = np.where(rng.random(n) < 0.2 + 0.6 * sex, "clerk", "pilot")
    frame = pd.DataFrame({"sex": pd.Categorical(np.array(["f", "m"])[sex]), "age": rng.integers(20, 60, n), "job": job})
    return frame, *encode(frame, "job")


STATED = {"bounds": {"age": (18, 80)}, "levels": {"sex": ["f", "m"], "job": ["clerk", "pilot"]}}


def test_shares_without_noise_match_the_leaves():
    frame, given, target = problem()
    sampler = DPSampler(epsilon=EXACT, **STATED, first=["sex"], max_depth=1, testing_seed=1).fit(given, target)
    share = frame.groupby("sex", observed=True)["job"].apply(lambda jobs: (jobs == "pilot").mean())
    found = np.exp(sampler.log_density(given, np.ones(len(frame))))
    assert found == pytest.approx(share[frame["sex"]].to_numpy())


def test_shares_are_shrunk_towards_the_parent_node():
    """By hand: two leaves, two bins, noise of variance 4."""
    counts = np.array([[30, 10], [-3, 8]])
    root = np.array([27.0, 18.0])
    pull = np.sqrt(4 * 4)
    above = (root + pull * 0.5) / (45 + pull)
    pull = np.sqrt(4 * 2)
    left = (np.array([30, 10]) + pull * above) / (40 + pull)
    right = (np.array([0, 5]) + pull * above) / (5 + pull)
    found = _leaf_shares(counts, np.ones(2, dtype=bool), 4.0, np.array([0.5, 0.5]))
    assert found == pytest.approx(np.stack([left, right]))


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ([5.0, -1.0, 3.0], [4.5, 0.0, 2.5]),
        ([2.0, 3.0], [2.0, 3.0]),
        ([-4.0, 1.0], [0.0, 0.0]),
        ([9.0, -8.0, -0.5], [0.5, 0, 0]),
    ],
)
def test_counts_become_nonnegative_with_the_same_sum(counts, wanted):
    assert _not_negative(np.array(counts)).tolist() == pytest.approx(wanted)


def test_noise_is_fresh_and_draws_are_seeded():
    _, given, target = problem()
    sampler = DPSampler(epsilon=0.1, **STATED)
    one, two = (sampler.clone().fit(given, target) for _ in range(2))
    assert (one.counts_ != two.counts_).any()
    assert (one.trees_.column == two.trees_.column).all()
    drawn = [one.sample(given, RowStreams.from_seed(1, given.n_rows)) for _ in range(2)]
    assert (drawn[0] == drawn[1]).all()


def test_testing_seed_fixes_the_noise_and_is_reported():
    _, given, target = problem()
    one, two = (DPSampler(epsilon=0.1, **STATED, testing_seed=3).fit(given, target) for _ in range(2))
    assert (one.counts_ == two.counts_).all()
    assert one.account_.for_tests
    assert "noise from a testing seed, which are not private" in disclosed(one)
    private = DPSampler(epsilon=0.1, **STATED).fit(given, target)
    assert not private.account_.for_tests
    assert disclosed(private).endswith("noisy counts, epsilon = 0.1")


def test_trees_share_the_budget():
    _, given, target = problem()
    sampler = DPSampler(epsilon=0.3, n_trees=3, **STATED).fit(given, target)
    assert [spent.epsilon for spent in sampler.account_.spent] == [Fraction(1, 10)] * 3
    assert sampler.account_.left == 0
    gaussian = DPSampler(epsilon=0.3, delta=1e-6, n_trees=3, **STATED).fit(given, target)
    assert gaussian.account_.left == 0
    assert gaussian.account_.epsilon_spent == pytest.approx(0.3, rel=1e-5)


def test_structure_does_not_depend_on_the_data():
    frame, given, target = problem()
    other = frame.assign(age=frame["age"] // 2 + 10, job="clerk", sex=pd.Categorical(["f"] * 400, ["f", "m"]))
    other.loc[0, "job"] = "pilot"
    one = DPSampler(epsilon=1, **STATED, n_trees=3).fit(given, target)
    two = DPSampler(epsilon=1, **STATED, n_trees=3).fit(*encode(other, "job"))
    for name in ("column", "cut", "right", "missing_right"):
        assert (getattr(one.trees_, name) == getattr(two.trees_, name)).all()
    assert (one.bins_.codes == two.bins_.codes).all()


def table_of_scores(n=60, seed=0):
    """Return the side and the bin of each of some rows."""
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)) < rng.random(3), rng.integers(0, 4, n)


def scores_of(goes, place):
    right = np.stack([np.bincount(place[column], minlength=4) for column in goes.T])
    return split_scores(right, np.bincount(place, minlength=4))


@pytest.mark.parametrize("seed", range(20))
def test_split_score_matches_hand_calculation_and_sensitivity(seed):
    """The score is that of the table of sides and bins; no added row changes it by more than 2."""
    n = [0, 1, 2, 3, 5, 60][seed % 6]
    goes, place = table_of_scores(n, seed)
    found = scores_of(goes, place)
    for column, score in zip(goes.T, found, strict=True):
        counts = np.zeros((2, 4))
        np.add.at(counts, (column.astype(int), place), 1)
        away = np.abs(counts - np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(n, 1)).sum() / 2
        assert score == int(away + 1e-9)
    for side in (False, True):
        for bin_ in range(4):
            more = scores_of(np.vstack([goes, [side] * 3]), np.append(place, bin_))
            assert np.abs(more - found).max() <= SENSITIVITY


def test_one_row_changes_the_table_of_a_split_by_a_product():
    """The identity behind the sensitivity, and tables at which one row changes the score by the maximum."""
    rng = np.random.default_rng(0)
    for counts in rng.integers(0, 9, (50, 2, 4)):
        n = counts.sum()
        away = lambda counts: counts - np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1)  # noqa: E731
        for side, bin_ in np.ndindex(2, 4):
            row = np.zeros((2, 4))
            row[side, bin_] = 1
            ends = np.outer(row.sum(axis=1) - counts.sum(axis=1) / n, row.sum(axis=0) - counts.sum(axis=0) / n)
            assert away(counts + row) - away(counts) == pytest.approx(n / (n + 1) * ends)
    for before, after in (([[1, 0], [0, 9]], [[2, 0], [0, 9]]), ([[0, 33], [33, 1000]], [[1, 33], [33, 1000]])):
        scores = [int(split_scores(np.array(t)[1:], np.sum(t, axis=0))[0]) for t in (before, after)]
        assert abs(scores[1] - scores[0]) == SENSITIVITY


def test_chosen_split_separates_the_target():
    """One of nine givens matters; random splits of depth 1 would find it once in nine."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{k}": rng.integers(0, 10, 2000) for k in range(9)})
    frame["y"] = np.where(frame["x4"] > 4, "high", "low")
    stated = {"bounds": {f"x{k}": (0, 9) for k in range(9)}, "levels": {"y": ["high", "low"]}, "max_depth": 1}
    for seed in range(10):
        one = DPSampler(epsilon=1, **stated, choosing=0.5, random_state=seed, testing_seed=seed)
        assert one.fit(*encode(frame, "y")).trees_.column.tolist() == [[4]]
    columns = [
        int(DPSampler(epsilon=1, **stated, random_state=seed).fit(*encode(frame, "y")).trees_.column[0, 0])
        for seed in range(10)
    ]
    assert len(set(columns)) > 3


def test_choosing_and_counting_share_the_budget():
    _, given, target = problem()
    for options in ({}, {"delta": 1e-6}, {"max_depth": 0}, {"max_depth": 1, "first": ["sex"]}):
        sampler = DPSampler(epsilon=1, choosing=0.25, **STATED, **options)
        _, whole = sampler._budget(1)
        sampler.fit(given, target)
        assert sampler.account_.left == 0
        counting, level, depth = sampler._shares_of_the_budget(whole, given.features)
        spent = Fraction(0) if level is None else depth * (level if not options.get("delta") else level**2 / 8)
        counts = counting.epsilon or counting.rho
        whole_cost = whole.epsilon or whole.rho
        assert counts + spent <= whole_cost
        assert float(counts + spent) == pytest.approx(float(whole_cost), rel=1e-6)
        assert (level is None) == ("max_depth" in options)  # no split is chosen at a root that `first` splits


def test_missing_values_go_where_they_are_counted():
    """The rows sent to a side by a chosen split are those counted by its leaf."""
    frame, _, _ = problem(500)
    frame["age"] = frame["age"].astype("Int64").mask(np.arange(500) % 7 == 0)
    given, target = encode(frame, "job")
    sampler = DPSampler(epsilon=EXACT, **STATED, choosing=0.5, max_depth=4, testing_seed=1).fit(given, target)
    leaves = sampler.trees_.leaves(given)[0]
    assert sampler.counts_[0].sum(axis=1).tolist() == np.bincount(leaves, minlength=16).tolist()


def test_outside_values_count_as_bounds_and_missing_values_are_ignored():
    frame = pd.DataFrame({"y": [-5.0, 0.5, 99.0, np.nan]})
    empty, target = encode(frame)
    sampler = DPSampler(epsilon=EXACT, bounds={"y": (0, 1, 2, 3)}, max_depth=0, testing_seed=1).fit(empty, target)
    assert sampler.counts_.tolist() == [[[2, 0, 1]]]
    with_missing = DPSampler(epsilon=EXACT, bounds={"y": (0, 3)}, n_bins=1, missing=["y"], max_depth=0, testing_seed=1)
    assert with_missing.fit(empty, target).counts_.tolist() == [[[3, 1]]]


def test_integers_have_integer_bins():
    empty, target = encode(pd.DataFrame({"y": [0, 1, 5, 9]}))
    few = DPSampler(epsilon=EXACT, bounds={"y": (0, 9)}, max_depth=0, testing_seed=1).fit(empty, target)
    assert few.bins_.edges.tolist() == [k - 0.5 for k in range(11)]
    drawn = few.sample(Table((), np.empty((2000, 0))), RowStreams.from_seed(1, 2000))
    assert set(np.rint(drawn)) == {0.0, 1.0, 5.0, 9.0}
    edges = DPSampler(epsilon=EXACT, bounds={"y": (0, 1, 9)}, max_depth=0, testing_seed=1).fit(empty, target)
    assert edges.counts_.tolist() == [[[1, 3]]]


def test_restricted_draws_have_their_probability():
    _, given, target = problem()
    sampler = DPSampler(epsilon=1, bounds={"age": (18, 80)}, levels=STATED["levels"]).fit(given, target)
    n = given.n_rows
    only = Within(levels=np.tile([True, False], (n, 1)), weighted=True)
    found = sampler.sample_within(given, RowStreams.from_seed(1, n), only)
    assert (found.values == 0).all()
    assert found.log_mass == pytest.approx(sampler.log_density(given, np.zeros(n)))


def test_noise_is_not_drawn_from_floats():
    _, given, target = problem()
    assert DPSampler(epsilon=1e-12, **STATED).fit(given, target).counts_.dtype == np.int64


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (
            {"bounds": {}},
            SamplerError,
            r"no public bounds of 'age', and does not read them from the data; give bounds=",
        ),
        (
            {"levels": None},
            SamplerError,
            r"no public levels of 'job', and does not read them from the data; give levels=",
        ),
        (
            {"levels": {**STATED["levels"], "job": ["clerk", "cook"]}},
            SamplerError,
            "hold 'cook', which the column does not",
        ),
        (
            {"bounds": {"age": (80, 18)}},
            SamplerError,
            r"public bounds of 'age' are \(80, 18\); give two or more ascending numbers",
        ),
        ({"bounds": {"age": (18,)}}, SamplerError, "give two or more ascending numbers"),
        ({"bounds": {"age": (0, np.inf)}}, SamplerError, "give two or more ascending numbers"),
        ({"epsilon": 0}, InputError, "epsilon is 0; it must be a number above 0"),
        ({"rho": -1}, InputError, "rho is -1; it must be a number above 0"),
        ({"n_trees": 0}, InputError, "n_trees of DPSampler is 0"),
        ({"max_depth": 99}, InputError, "max_depth of DPSampler is 99"),
        ({"n_bins": 0}, InputError, "n_bins of DPSampler is 0"),
        ({"choosing": 1.5}, InputError, "choosing of DPSampler is 1.5; it must be a number from 0 to below 1"),
        ({"n_rows": -1}, InputError, "n_rows of DPSampler is -1"),
    ],
)
def test_invalid_arguments_raise(options, error, said):
    _, given, target = problem(50)
    with pytest.raises(error, match=said):
        DPSampler(**{**STATED, **options}).fit(given, target)


def test_weights_raise():
    _, given, target = problem(50)
    with pytest.raises(SamplerError, match="does not take sample_weight"):
        DPSampler(**STATED).fit(given, Column(target.feature, target.values, np.full(50, 2.0)))


def test_public_statements_are_required():
    _, given, target = problem(50)
    with pytest.raises(SamplerError, match=r"or use mcce\.Privacy"):
        DPSampler().fit(given, target)


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        (2**52 + np.arange(8), (2**52 + 1, 2**52 + 7)),  # half a unit cannot be distinguished
        (1e16 + 2.0 * np.arange(3), (1e16, 1e16 + 4)),
    ],
)
def test_indistinguishable_bins_are_merged(tmp_path, values, bounds):
    X = pd.DataFrame({"x": np.tile(values, 20), "y": np.linspace(0, 20, 20 * values.size)})
    private = mcce.Privacy(epsilon=EXACT, bounds={"x": bounds, "y": (0, 20)}, n_bins=16)
    explainer = mcce.MCCE(lambda rows: rows["y"] > 8, sampler=private).fit(X)
    edges = explainer.generator_.samplers_["x"].bins_.edges
    assert (np.diff(edges) > 0).all()
    assert edges[0] <= bounds[0]
    assert edges[-1] >= bounds[1]
    explainer.save(tmp_path / "private.mcce")
    loaded = mcce.MCCE.load(tmp_path / "private.mcce", model=explainer.model)
    found = loaded.explain(X[:3], constraints=[mcce.allow("x", low=bounds[0], high=bounds[1])])
    assert found.frame["x"].between(*bounds).all()
    assert len(found) == 3
