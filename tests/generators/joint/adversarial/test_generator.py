"""Adversarial forests compared with brute force over their leaves."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from mcce import InputError, SamplerError, Within
from mcce.generators import AdversarialForest
from mcce.generators.joint.adversarial.leaves import INSIDE
from mcce.generators.requests import DrawRequest
from tests.marks import nightly

RNG = np.random.default_rng(8)
N = 350
GROUP = RNG.integers(0, 2, N)
X = pd.DataFrame(
    {
        "y": np.round(RNG.normal(10 + 6 * GROUP, 2 + GROUP), 4),
        "group": np.where(GROUP == 1, "b", "a"),
        "rooms": 1 + RNG.poisson(1 + GROUP),
        "gain": np.where(RNG.random(N) < 0.5, 0.0, np.round(RNG.gamma(2, 30, N), 2)),
        "job": pd.Categorical.from_codes((GROUP + RNG.integers(0, 2, N)) % 3, ["x", "y", "z", "never"]),
        "debt": np.where(RNG.random(N) < 0.25, np.nan, np.round(RNG.normal(50, 9, N), 3)),
    }
)
WANTED = np.asarray(X["y"] + RNG.normal(size=N) > 13)
SMOOTHING = 0.7


@pytest.fixture(scope="module")
def forest():
    made = AdversarialForest(fixed=["group", "rooms"], n_trees=4, min_leaf=8, smoothing=SMOOTHING, random_state=2)
    return made.fit(X, WANTED)


def naive_factor(leaves, leaf, j, value):
    """The density of one column in one leaf, from the rows of the leaf and its bounds, by a plain loop."""
    coding = leaves.codings[j]
    lo, hi = leaves.low[leaf, j], leaves.high[leaf, j]
    decoded = coding.value_of_code
    mine = decoded[leaves.codes[j, leaves.rows[leaves.start[leaf] : leaves.start[leaf + 1]]]]
    all_rows = decoded[leaves.codes[j][(leaves.codes[j] >= lo) & (leaves.codes[j] <= hi)]]
    atoms = set() if coding.n_levels else set(coding.values[coding.has_mass])

    def share(test):
        return (test(mine).sum() + SMOOTHING * test(all_rows).mean()) / (mine.size + SMOOTHING)

    if np.isnan(value):
        return share(np.isnan) if lo == 0 else 0.0
    if coding.n_levels:
        return share(lambda x: x == value) if lo <= value + 1 <= hi else 0.0
    known = coding.values
    left = coding.ends[0] if lo <= 1 else (known[lo - 2] + known[lo - 1]) / 2
    right = coding.ends[1] if hi == known.size else (known[hi - 1] + known[hi]) / 2
    if not (left <= value <= right) or hi == 0:
        return 0.0
    if value in atoms:
        return share(lambda x: x == value)
    spread = mine[~np.isnan(mine) & ~np.isin(mine, list(atoms))]
    weight = share(lambda x: ~np.isnan(x) & ~np.isin(x, list(atoms)))
    inner = np.clip([left, right], *coding.reach)
    mean = spread.mean() if spread.size else inner.mean()
    sd = np.sqrt((((spread - mean) ** 2).sum() + (np.diff(inner)[0] / INSIDE) ** 2) / (spread.size + 1))
    return weight * stats.truncnorm((left - mean) / sd, (right - mean) / sd, mean, sd).pdf(value)


def naive_density(generator, row, columns):
    leaves = generator.model_
    return sum(
        np.exp(leaves.log_weight[leaf]) * np.prod([naive_factor(leaves, leaf, j, row[j]) for j in columns])
        for leaf in range(leaves.log_weight.size)
    )


@pytest.mark.slow
@pytest.mark.parametrize("places", [[3, 5], *nightly([0, 40, 100])], ids=str)
def test_densities_match_brute_force(forest, places):
    rows = X.copy()
    rows.iloc[3, rows.columns.get_loc("gain")] = 33.333  # an unseen number
    rows.iloc[5, rows.columns.get_loc("y")] = 25.5
    rows = rows.iloc[places]
    ordered = forest._layout.order(forest.schema_.encode(rows).matrix, WANTED[places]).matrix
    found = forest.log_density(rows, decision=WANTED[places], per_feature=True).to_numpy()
    for i, row in enumerate(ordered):
        sums = [naive_density(forest, row, range(j)) for j in range(3, 8)]
        np.testing.assert_allclose(found[i], np.log(np.array(sums[1:]) / sums[:-1]), rtol=1e-9)


def test_density_does_not_depend_on_other_rows(forest):
    """Rows with equal values query a leaf once; single, joint and reversed evaluation agree."""
    rows = X.head(40)
    together = forest.log_density(rows)
    pd.testing.assert_series_equal(forest.log_density(rows[::-1])[::-1], together, rtol=1e-13)
    alone = pd.concat([forest.log_density(rows.iloc[[i]]) for i in range(0, 40, 7)])
    pd.testing.assert_series_equal(alone, together[::7], rtol=1e-13)


def test_leaves_partition_the_rows_and_their_weights_sum_to_one(forest):
    leaves = forest.model_
    assert np.exp(leaves.log_weight).sum() == pytest.approx(1.0)
    assert np.diff(leaves.start).min() >= 8
    per_tree = np.bincount(leaves.rows)
    assert set(per_tree) == {5}  # four trees, and the leaf of all rows
    for leaf in range(leaves.log_weight.size):
        mine = leaves.codes[:, leaves.rows[leaves.start[leaf] : leaves.start[leaf + 1]]]
        assert (mine >= leaves.low[leaf][:, None]).all()
        assert (mine <= leaves.high[leaf][:, None]).all()


def request_of(generator, n, row=0, wanted=True, **more):
    matrix = generator.schema_.encode(X.iloc[[row]]).matrix
    givens = np.repeat(generator.givens_of(matrix, wanted), n, axis=0)
    return DrawRequest(givens, np.full(n, 3, dtype=np.uint64), np.arange(n, dtype=np.uint64), 7, **more)


def conditional(generator, name, values, row=0):
    """Density of values of the first mutable feature, given the fixed ones of a row."""
    rows = X.iloc[[row] * len(values)].copy().reset_index(drop=True)
    rows[name] = values
    return np.exp(generator.log_density(rows, per_feature=True)[name].to_numpy())


def test_draws_follow_the_density_of_a_number(forest):
    n = 4000
    drawn = forest.draw(request_of(forest, n)).rows[:, 0]
    grid = np.linspace(*forest.model_.codings[3].reach, 6001)
    cdf = integrate.cumulative_trapezoid(conditional(forest, "y", grid), grid, initial=0.0)
    assert cdf[-1] == pytest.approx(1.0, abs=2e-3)
    assert stats.kstest(drawn, lambda x: np.interp(x, grid, cdf / cdf[-1])).pvalue > 1e-4


def test_restricted_draws_match_filtered_draws(forest):
    """Exact conditioning of the joint, also of unrestricted features, compared with rejection."""
    n = 30_000
    free = forest.draw(request_of(forest, n)).rows
    frame = forest.schema_.decode(free)
    allowed = (
        frame["y"].between(9, 13) & (frame["gain"] > 20) & (frame["debt"].isna() | (frame["debt"] < 50))
    ).to_numpy()
    share, k = allowed.mean(), 3000
    within = {
        "y": Within(low=np.full(k, 9.0), high=np.full(k, 13.0)),
        "gain": Within(low=np.full(k, 20.0000001)),
        "debt": Within(high=np.full(k, 50.0), missing=np.full(k, True)),
    }
    drawn = forest.draw(request_of(forest, k, restrictions=within, weighted=True))
    assert not drawn.rejected.any()
    assert len({*drawn.log_weight}) == 1
    assert abs(np.exp(drawn.log_weight[0]) - share) < 4 * np.sqrt(share * (1 - share) / n)
    for j, name in enumerate(X.columns):
        a, b = drawn.rows[:, j], free[allowed, j]
        assert abs(np.isnan(a).mean() - np.isnan(b).mean()) < 0.05
        if name == "job":
            table = [np.bincount(part.astype(int), minlength=3) for part in (a, b)]
            assert stats.chi2_contingency(table).pvalue > 1e-4
        elif name not in ("group", "rooms"):
            assert stats.ks_2samp(a[~np.isnan(a)], b[~np.isnan(b)]).pvalue > 1e-4


@pytest.mark.slow
def test_single_allowed_number_is_conditioned_on(forest):
    """Given y = 17, the leaves are those of the rows of group b: brute force over the densities of the leaves."""
    n = 4000
    single = Within(low=np.full(n, 17.25), high=np.full(n, 17.25))
    drawn = forest.draw(request_of(forest, n, restrictions={"y": single}))
    assert (drawn.rows[:, 0] == 17.25).all()
    rows = X.iloc[[0] * 3].assign(y=17.25).reset_index(drop=True)
    rows["job"] = pd.Categorical(["x", "y", "z"], categories=X["job"].cat.categories)
    ordered = forest._layout.order(forest.schema_.encode(rows).matrix, True).matrix
    joint = [naive_density(forest, row, (0, 1, 2, 3, 5)) for row in ordered]
    counts = np.bincount(drawn.rows[:, 4].astype(int), minlength=3)
    assert stats.chisquare(counts, np.array(joint) / sum(joint) * n).pvalue > 1e-4


@pytest.mark.slow
def test_infeasible_rows_are_rejected_with_a_cause(forest):
    n = 12
    within = {
        "job": Within(levels=np.tile([True, True, False, False], (n, 1))),
        "gain": Within(low=np.where(np.arange(n) < 4, 1e6, 0.0)),
    }
    drawn = forest.draw(request_of(forest, n, restrictions=within))
    assert drawn.rejected.tolist() == [True] * 4 + [False] * 8
    assert drawn.rejected_by.tolist() == [1] * 4 + [-1] * 8
    assert np.isfinite(drawn.rows[:, [0, 3, 4]]).all()


def test_unseen_given_values_report_their_leaves(forest):
    """No training row has 40 rooms: a number with point mass, whose likelihood is 0 in every leaf."""
    far = forest.sample(300, pd.DataFrame({"group": ["b"], "rooms": [40]}))
    most = forest.sample(300, pd.DataFrame({"group": ["b"], "rooms": [int(X["rooms"].max())]}))
    assert (far["rooms"] == 40).all()
    assert abs(far["y"].mean() - most["y"].mean()) < 3
    assert far["y"].mean() > forest.sample(300, pd.DataFrame({"group": ["a"], "rooms": [40]}))["y"].mean() + 1


def test_odd_tables():
    odd = pd.DataFrame(
        {
            "same": np.ones(60),
            "gone": np.full(60, np.nan),
            "one level": ["a"] * 60,
            "y": np.arange(60.0),
            "negative": -np.abs(np.random.default_rng(0).normal(size=60)),
        }
    )
    made = AdversarialForest(n_trees=3, random_state=1).fit(odd)
    rows = made.sample(200)
    assert (rows["same"] == 1).all()
    assert rows["gone"].isna().all()
    assert (rows["negative"] <= 0).all()
    assert (rows["y"] >= 0).all()
    assert np.isfinite(made.log_density(odd)).all()
    few = AdversarialForest(random_state=1, n_trees=2).fit(X.head(3))
    assert len(few.sample(5)) == 5


@pytest.mark.slow
def test_independent_features_are_indistinguishable_and_dependent_ones_are_not():
    rng = np.random.default_rng(1)
    apart = pd.DataFrame(rng.normal(size=(400, 3)))
    apart.columns = list("abc")
    alone = AdversarialForest(n_trees=20, random_state=1).fit(apart).model_.accuracies
    assert alone[0] < 0.56
    u = rng.normal(size=400)
    together = pd.DataFrame({"a": u, "b": u + 0.1 * rng.normal(size=400), "c": -u + 0.1 * rng.normal(size=400)})
    forest = AdversarialForest(n_trees=20, random_state=1).fit(together)
    assert forest.model_.accuracies[0] > 0.9
    assert forest.model_.accuracies[-1] < 0.6
    rows = forest.sample(2000)
    assert np.abs(np.corrcoef(rows.T)).min() > 0.85


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_trees": 0}, "n_trees of AdversarialForest is 0"),
        ({"min_leaf": 2.5}, "min_leaf of AdversarialForest is 2.5"),
        ({"delta": 1}, "delta is 1; it must be a number from 0 to below 1"),
        ({"smoothing": -1}, "smoothing is -1"),
        ({"max_rounds": "x"}, "max_rounds of AdversarialForest is 'x'"),
    ],
)
def test_invalid_settings_raise(settings, message):
    with pytest.raises(InputError, match=message):
        AdversarialForest(**settings).fit(X)


def test_no_row_is_left_out_of_its_density(forest):
    with pytest.raises(SamplerError, match="cannot leave a training row out of its density"):
        forest.log_density(X, decision=WANTED, training=True)


def test_same_seed_gives_same_rows_and_another_seed_differs():
    made = AdversarialForest(fixed=["group"], n_trees=3, random_state=2).fit(X)
    again = AdversarialForest(fixed=["group"], n_trees=3, random_state=2).fit(X)
    pd.testing.assert_frame_equal(made.sample(50), again.sample(50))
    assert not made.sample(50).equals(made.sample(50, random_state=9))
