"""The vine as a joint model: the path compared with the library, known processes, storage."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import InputError, SamplerError, Within
from mcce.generators import JointGenerator, VineGenerator
from mcce.generators.requests import DrawRequest
from mcce.samplers.vine.dvine import DVine
from mcce.samplers.vine.joint import JointColumn
from mcce.storage.state import from_state, to_state
from mcce.testing import GENERATOR_CHECKS, check_generator
from tests.extras import NO_VINE
from tests.generators.joint.processes import atoms, clusters, skewed, skewed_log_density
from tests.samplers.vine.whole import in_library

pytest.importorskip("pyvinecopulib", reason=NO_VINE)

SMALL = VineGenerator(n_trees=4, random_state=1, n_jobs=1)
QUICK = ("check_storage", "check_rows", "check_conditioning", "check_densities")  # the slow test below has all


def mixed(n, seed):
    """Return a number, levels that depend on it, and a number that is missing for a level."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    job = np.array(["a", "b", "c"])[np.digitize(x + 0.7 * rng.normal(size=n), [-0.3, 1.0])]
    grade = pd.Categorical.from_codes(
        np.digitize(x + rng.normal(size=n), [-1, 0.5]), ["low", "mid", "high"], ordered=True
    )
    y = np.round(2.0 * x + rng.normal(size=n), 3)
    return pd.DataFrame(
        {"x": x, "job": job, "grade": grade, "y": np.where(rng.random(n) < 0.4 * (job == "b"), np.nan, y)}
    )


@pytest.fixture(scope="module")
def vine():
    return VineGenerator(fixed=["x"], random_state=1).fit(mixed(800, 1))


@pytest.mark.parametrize("check", [c for c in GENERATOR_CHECKS if c.__name__ in QUICK], ids=lambda c: c.__name__)
def test_conformance(check):
    check(SMALL, 0)


@pytest.mark.nightly
def test_generator_conforms():
    check_generator(VineGenerator(random_state=1))


def test_path_matches_the_rosenblatt_transform_of_the_library():
    """All variables, some of them intervals, with rotated and asymmetric pair copulas; to the last bit or two."""
    rng = np.random.default_rng(0)
    u = stats.norm.cdf(rng.multivariate_normal(np.zeros(5), 0.4 + 0.6 * np.eye(5), 300) * [1, 1, -1, 1, 1])
    steps = np.array([1, 3, 1, 2, 4])
    discrete = steps > 1
    below = np.where(discrete, np.floor(u * steps) / steps, u)
    upto = np.where(discrete, below + 1.0 / steps, u)
    fitted = DVine.fit((below, upto), discrete, "parametric")
    assert {90, 270} & set(fitted.rotations.tolist())
    expected = in_library(fitted).rosenblatt(np.asfortranarray(np.hstack([upto, below])), randomize_discrete=False)
    known = fitted.known()
    for k in range(4, -1, -1):
        np.testing.assert_allclose(known.below(upto[:, k]), expected[:, k], atol=1e-12)
        known = known.and_next(below[:, k], upto[:, k])


def test_missing_given_is_not_a_condition():
    fitted = DVine(np.array([False, True]), ("gaussian",), np.zeros(1, dtype=np.int64), (np.array([[0.8]]),))
    share = np.linspace(0.05, 0.95, 10)
    found = fitted.given(np.zeros((10, 1)), np.ones((10, 1))).below(share)
    np.testing.assert_allclose(found, share, atol=1e-6)


R = np.array([[1.0, 0.6, 0.3], [0.6, 1.0, 0.5], [0.3, 0.5, 1.0]])


def test_correct_model_is_learned_nearly_exactly():
    """Numbers whose scores are jointly normal, one of them skewed; given one of them."""

    def rows(n, seed):
        z = stats.multivariate_normal(cov=R, seed=seed).rvs(n)
        frame = pd.DataFrame({"x": z[:, 0], "y": np.exp(0.5 * z[:, 1]), "z": z[:, 2]})
        truth = stats.multivariate_normal(cov=R).logpdf(z) - stats.norm.logpdf(z[:, 0])
        return frame, truth - np.log(0.5 * frame["y"])

    made = VineGenerator(fixed=["x"], random_state=1).fit(rows(1500, 1)[0])
    new, truth = rows(1000, 2)
    found = made.log_density(new)
    known = np.isfinite(found)
    assert known.mean() > 0.99
    assert 0 <= (truth - found)[known].mean() < 0.08
    correlations = [pair[0, 0] for pair in made.model_.vine.parameters]
    inverse = np.linalg.inv(R)
    partial = -inverse[0, 2] / np.sqrt(inverse[0, 0] * inverse[2, 2])
    np.testing.assert_allclose(correlations, [0.5, 0.6, partial], atol=0.06)  # z with y, y with x, z with x given y


def test_skewed_number_is_learned_except_for_its_spread():
    """The spread grows fivefold: a Gaussian pair copula cannot represent it, kernel estimates can."""
    new = skewed(1000, 2)
    lost = {}
    for families in ("gaussian", "nonparametric"):
        made = VineGenerator(fixed=["x"], families=families, random_state=1).fit(skewed(1500, 1))
        found = skewed_log_density(new) - made.log_density(new)
        lost[families] = found[np.isfinite(found)].mean()
        drawn = made.sample(2000)
        assert drawn["y"].isin(skewed(1500, 1)["y"]).all()
    assert 0 < lost["nonparametric"] < 0.1
    assert lost["nonparametric"] < lost["gaussian"] < 0.25


def test_atoms_and_integers():
    real = atoms(1500, 1)
    drawn = VineGenerator(random_state=1).fit(real).sample(4000)
    assert drawn["k"].dtype == real["k"].dtype
    shares = [part["k"].value_counts(normalize=True).reindex(range(5)) for part in (drawn, real)]
    np.testing.assert_allclose(*shares, atol=0.03)
    assert (drawn["amount"] == 0).mean() == pytest.approx((real["amount"] == 0).mean(), abs=0.03)
    for k in (0, 1, 2, 3):
        mine = drawn.loc[drawn["k"] == k, "amount"]
        assert (mine == 0).mean() == pytest.approx(0.8 / (1 + k), abs=0.12)


@pytest.mark.slow
def test_levels_and_missing_values_are_drawn_by_their_probabilities(vine):
    """Given a number, the probabilities of all combinations of the levels sum to 1 and match the draws."""
    combinations = pd.MultiIndex.from_product([["a", "b", "c"], ["low", "mid", "high"]], names=["job", "grade"])
    for x in (-0.5, 1.2):
        rows = combinations.to_frame(index=False).assign(x=x, y=np.nan)
        rows["grade"] = pd.Categorical(rows["grade"], ["low", "mid", "high"], ordered=True)
        scored = vine.log_density(rows, per_feature=True)
        shares = np.exp(scored["job"] + scored["grade"]).to_numpy()
        assert shares.sum() == pytest.approx(1.0)
        drawn = vine.sample(4000, pd.DataFrame({"x": [x]}))
        counts = drawn.groupby(["job", "grade"], observed=False).size().reindex(combinations).to_numpy()
        assert stats.chisquare(counts, shares * 4000).pvalue > 1e-4
        gone = np.exp(scored["y"]).to_numpy()
        missing = drawn["y"].isna().groupby([drawn["job"], drawn["grade"]], observed=False).mean().reindex(combinations)
        often = counts > 150
        np.testing.assert_allclose(gone[often], missing.to_numpy()[often], atol=0.08)
    known = mixed(4000, 2)
    drawn = vine.sample(1, known[["x"]])
    for job in ("a", "b", "c"):
        assert (drawn["job"] == job).mean() == pytest.approx((known["job"] == job).mean(), abs=0.04)
    by_job = drawn["y"].isna().groupby(drawn["job"]).mean()
    assert by_job["b"] > by_job["a"] + 0.1
    both = drawn["y"].notna().to_numpy()
    x, y = known["x"].to_numpy()[both], drawn["y"].to_numpy()[both]
    assert np.corrcoef(x, y)[0, 1] == pytest.approx(2.0 / np.sqrt(5.0), abs=0.05)


@pytest.mark.slow
def test_weighted_restricted_draws_follow_the_joint_distribution(vine):
    n, k = 3000, 1500

    def request(size, **more):
        return DrawRequest(
            np.zeros((size, 1)), np.full(size, 3, np.uint64), np.arange(size, dtype=np.uint64), 7, **more
        )

    free = vine.draw(request(n)).rows
    allowed = free[:, 3] >= 1.0
    drawn = vine.draw(request(k, restrictions={"y": Within(low=np.full(k, 1.0))}, weighted=True))
    weight = np.exp(drawn.log_weight)
    assert (drawn.rows[~drawn.rejected, 3] >= 1.0).all()
    assert abs(weight.mean() - allowed.mean()) < 0.04
    for level in (0, 2):  # the grade precedes y: truncation does not change it, the weights condition it
        inside = (free[allowed, 2] == level).mean()
        assert np.average(drawn.rows[:, 2] == level, weights=weight) == pytest.approx(inside, abs=0.05)
    rejected = vine.draw(request(5, restrictions={"y": Within(low=np.full(5, 1e6))}))
    assert rejected.rejected.all()


def test_fewer_trees_capture_part_of_the_dependence():
    """On a path of one tree a column depends only on the preceding one: z on y, not on x given y."""
    z = stats.multivariate_normal(cov=R, seed=3).rvs(600)
    X = pd.DataFrame(z, columns=["x", "y", "z"])
    made = VineGenerator(fixed=["x"], n_trees=1, random_state=1).fit(X)
    given = pd.DataFrame({"x": [-1.5, 1.5], "y": [0.2, 0.2], "z": [0.1, 0.1]})
    by_feature = made.log_density(given, per_feature=True)
    assert by_feature["z"].iloc[0] == pytest.approx(by_feature["z"].iloc[1])
    assert abs(by_feature["y"].iloc[0] - by_feature["y"].iloc[1]) > 0.1


def test_odd_tables():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "one": np.ones(60),
            "gone": np.full(60, np.nan),
            "level": ["only"] * 60,
            "number": rng.normal(size=60),
            "hole": pd.Series(["x"] * 60).mask(rng.random(60) < 0.3),
        }
    )
    made = VineGenerator(random_state=1).fit(X)
    drawn = made.sample(40)
    assert (drawn["one"] == 1.0).all()
    assert drawn["gone"].isna().all()
    assert (drawn["level"] == "only").all()
    assert 0 < drawn["hole"].isna().mean() < 1
    assert np.isfinite(made.log_density(X)).mean() > 0.9


def test_state_round_trips_and_modified_state_raises(vine, tmp_path):
    vine.save(tmp_path / "a.mcce")
    again = JointGenerator.load(tmp_path / "a.mcce")
    pd.testing.assert_frame_equal(again.sample(30), vine.sample(30))
    rows = mixed(50, 3)
    pd.testing.assert_series_equal(again.log_density(rows), vine.log_density(rows))
    state, model = to_state(vine), vine.model_
    turned = replace(model.columns[1], shares=2.0 * model.columns[1].shares)
    for spoiled, message in (
        (replace(model, columns=model.columns[:-1]), "vine does not match the columns"),
        (
            replace(model, columns=(model.columns[1], model.columns[0], *model.columns[2:])),
            "vine does not|is_number does",
        ),
        (replace(model, columns=(model.columns[0], turned, *model.columns[2:])), "shares do not add up to 1"),
        (replace(model, n_trees=0), "n_trees"),
    ):
        with pytest.raises(InputError, match=message):
            from_state(state | {"model_": to_state(spoiled)})


def test_invalid_settings_and_missing_library_raise(monkeypatch):
    X = clusters(60, 1)
    with pytest.raises(InputError, match="families of VineGenerator is 'normal'"):
        VineGenerator(families="normal").fit(X)
    with pytest.raises(InputError, match="n_trees of VineGenerator is 0"):
        VineGenerator(n_trees=0).fit(X)
    monkeypatch.setitem(sys.modules, "pyvinecopulib", None)
    with pytest.raises(SamplerError, match=r"a vine needs pyvinecopulib; pip install 'mcce\[vine\]'"):
        VineGenerator().fit(X)


def test_columns_cover_their_shares():
    column = JointColumn(True, None, np.empty(0), np.empty(0), 1.0)
    assert column.discrete.size == 0
    assert column.cover(np.full(3, np.nan))[0].shape == (3, 0)
