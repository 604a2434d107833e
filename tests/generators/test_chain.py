"""Chains against known processes, weights against repeated rows, and what draws may not depend on."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from mcce.exceptions import NotFittedError
from mcce.generators import ChainModel, draw
from mcce.generators.missing import WithMissing
from mcce.rng import derive_key
from tests.generators.problem import Constant, Uniform, request_for, table, with_gaps

X = table()
WANTED = (X["salary"] > 45).to_numpy()
MIXED = {"age": "norm", "school": "polr", "salary": "norm", "home": "logreg", "since": "cart"}


def normals(n, seed=1):
    """x ~ N(1, 2^2), y = 3 - x / 2 + N(0, 1), z = y + N(0, 0.5^2)."""
    rng = np.random.default_rng(seed)
    x = 1 + 2 * rng.normal(size=n)
    y = 3 - x / 2 + rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": y, "z": y + 0.5 * rng.normal(size=n)})


def test_normal_chain_has_the_moments_of_the_process():
    """Means and covariances of 40,000 draws, within five standard errors of estimates from 20,000 rows."""
    chain = ChainModel(sampler="norm", random_state=1).fit(normals(20_000))
    drawn = chain.sample(40_000)
    cov = np.array([[4, -2, -2], [-2, 2, 2], [-2, 2, 2.25]])
    np.testing.assert_allclose(drawn.mean(), [1, 2.5, 2.5], atol=5 * 2 / np.sqrt(13_000))
    np.testing.assert_allclose(drawn.cov(), cov, atol=5 * 4 * np.sqrt(2 / 13_000))
    assert stats.kstest((drawn["z"] - drawn["y"]) / 0.5, "norm").pvalue > 1e-4


def test_fixed_values_and_decision_are_conditioned_on():
    """With y' = 1{y > 2.5}, draws at x near 1 are distributed as the rows of the process with this decision there."""
    process = normals(40_000)
    wanted = (process["y"] > 2.5).to_numpy()
    chain = ChainModel(fixed=["x"], sampler="cart", random_state=1).fit(process, wanted)
    for decision in (True, False):
        near = process[(process["x"].between(0.9, 1.1)) & (wanted == decision)]
        drawn = chain.sample(20, given=near[["x"]], decision=decision)
        assert (drawn["x"] == near["x"].repeat(20).to_numpy()).all()
        assert ((drawn["y"] > 2.5) == decision).mean() > 0.99
        assert drawn["y"].mean() == pytest.approx(near["y"].mean(), abs=0.1)
        assert drawn["z"].std() == pytest.approx(near["z"].std(), abs=0.1)


def test_log_density_is_that_of_the_regressions():
    process = normals(3000)
    chain = ChainModel(fixed=["x"], sampler="norm", random_state=1).fit(process)
    found = chain.log_density(process.head(50))
    assert list(found) == ["y", "z"]
    for k, name in ((1, "y"), (2, "z")):
        design = np.column_stack([np.ones(3000), process.iloc[:, :k]])
        beta, rss, *_ = np.linalg.lstsq(design, process[name], rcond=None)
        sd = np.sqrt(rss[0] / (3000 - k - 1))
        expected = stats.norm.logpdf(process[name], design @ beta, sd)[:50]
        np.testing.assert_allclose(found[name], expected, atol=2e-3)  # norm has a small ridge


def test_predictors_restrict_what_a_conditional_sees():
    process = normals(4000)
    chain = ChainModel(sampler="norm", predictors={"z": ["x"], "y": []}, random_state=1).fit(process)
    drawn = chain.sample(20_000)
    assert abs(drawn[["y", "x"]].corr().iloc[0, 1]) < 0.05
    slope = np.cov(drawn["x"], drawn["z"])[0, 1] / drawn["x"].var()
    assert slope == pytest.approx(-0.5, abs=0.05)
    alone = ChainModel(fixed=["x"], sampler="norm", predictors={"y": []}, random_state=1)
    wanted = (process["y"] > 2.5).to_numpy()
    given = alone.fit(process, wanted).conditional_tables(alone.training_[:5], True)["y"][0]
    assert (given.n_rows, len(given.features)) == (5, 1)  # the decision


# ---------------------------------------------------------------- missing targets


def test_missing_targets_of_other_families_are_a_hurdle():
    """P(missing | x) rises with x, and known values keep their regression."""
    process = normals(8000)
    p_missing = 1 / (1 + np.exp(-(process["x"] - 1)))
    process["y"] = process["y"].mask(np.random.default_rng(4).random(8000) < p_missing)
    chain = ChainModel(fixed=["x"], sampler="norm", random_state=1).fit(process)
    assert isinstance(chain.conditional("y"), WithMissing)
    for x in (-1.0, 1.0, 3.0):
        drawn = chain.sample(8000, given=pd.DataFrame({"x": [x]}))["y"]
        assert drawn.isna().mean() == pytest.approx(1 / (1 + np.exp(1 - x)), abs=0.04)
        assert drawn.mean() == pytest.approx(3 - x / 2, abs=0.1)
        rows = pd.DataFrame({"x": [x, x], "y": [np.nan, 3 - x / 2], "z": [1.0, 1.0]})
        density = np.exp(chain.log_density(rows)["y"]).tolist()
        assert density[0] == pytest.approx(drawn.isna().mean(), abs=0.03)
        assert density[1] == pytest.approx((1 - density[0]) * stats.norm.pdf(0), abs=0.03)


@pytest.mark.parametrize("sampler", ["cart", MIXED, {"salary": Uniform(), "home": "logreg"}])
def test_missing_targets_are_drawn_as_often_as_they_occur(sampler):
    gaps = with_gaps(X)
    drawn = ChainModel(sampler=sampler, random_state=1).fit(gaps).sample(6000)
    assert drawn["salary"].isna().mean() == pytest.approx(gaps["salary"].isna().mean(), abs=0.05)
    assert drawn["home"].isna().mean() == pytest.approx(gaps["home"].isna().mean(), abs=0.05)
    assert drawn.dtypes.equals(gaps.dtypes)
    assert not drawn[["age", "school", "since"]].isna().any().any()


def test_column_without_a_known_value():
    gaps = X[["age"]].assign(nothing=np.nan)
    chain = ChainModel(sampler="norm", random_state=1).fit(gaps)
    assert chain.sample(5)["nothing"].isna().all()


# ---------------------------------------------------------------- weights


def repeated(frame, times):
    return frame.loc[frame.index.repeat(times)].reset_index(drop=True)


@pytest.mark.parametrize("sampler", ["cart", "norm"])
def test_weight_two_is_the_row_twice(sampler):
    rows, times = X[["age", "salary"]], np.arange(len(X)) % 3
    weighted = ChainModel(fixed=["age"], sampler=sampler, random_state=1).fit(rows, WANTED, sample_weight=times)
    twice = ChainModel(fixed=["age"], sampler=sampler, random_state=1).fit(
        repeated(rows, times), np.repeat(WANTED, times)
    )
    request = request_for(twice, 300)
    np.testing.assert_array_equal(weighted.draw(request).rows, twice.draw(request).rows)
    pd.testing.assert_frame_equal(weighted.sample(50), twice.sample(50))
    assert len(weighted.training_) == (times > 0).sum()
    assert weighted.training_decision_.tolist() == WANTED[times > 0].tolist()


def test_rows_of_weight_zero_leave_no_trace():
    rows = X.assign(home=X["home"].where(X.index != 3, "boat"))
    weights = np.where(rows["home"] == "boat", 0.0, 1.0)
    chain = ChainModel(random_state=1).fit(rows, sample_weight=weights)
    other = ChainModel(random_state=1).fit(rows[weights > 0])
    assert "boat" not in list(chain.schema_.features[3].levels)
    pd.testing.assert_frame_equal(chain.sample(100), other.sample(100))


def test_other_weights_shift_the_distribution():
    weights = np.where(X["home"] == "own", 2.5, 0.5)
    drawn = ChainModel(random_state=1).fit(X, sample_weight=weights).sample(20_000)
    expected = weights[X["home"] == "own"].sum() / weights.sum()
    assert (drawn["home"] == "own").mean() == pytest.approx(expected, abs=0.02)


# ---------------------------------------------------------------- invariances


def draws(frame, fixed=("age",), visit=("school", "salary", "home", "since"), n_jobs=None, sampler="cart"):
    sampler = {"school": "cart", "home": "cart", **sampler} if isinstance(sampler, dict) else sampler
    chain = ChainModel(
        fixed=list(fixed), visit_sequence=list(visit), sampler=sampler, random_state=1, n_jobs=n_jobs
    ).fit(frame, WANTED)
    return chain.sample(3000, decision=True)


REFERENCE = draws(X)


def test_names_do_not_matter():
    names = {name: f"x{j}" for j, name in enumerate(X)}
    found = draws(X.rename(columns=names), ["x0"], ["x1", "x2", "x3", "x4"])
    pd.testing.assert_frame_equal(found.set_axis(list(X), axis=1), REFERENCE)


def test_order_of_columns_does_not_matter():
    pd.testing.assert_frame_equal(draws(X[list(X)[::-1]])[list(X)], REFERENCE)


def test_dates_are_counted_from_their_first():
    later = draws(X.assign(since=X["since"] + pd.Timedelta(3653, "D")))
    pd.testing.assert_frame_equal(later.assign(since=later["since"] - pd.Timedelta(3653, "D")), REFERENCE)


def test_width_of_dtypes_does_not_matter():
    narrow = draws(X.astype({"age": "int32"}))
    pd.testing.assert_frame_equal(narrow.astype({"age": X["age"].dtype}), REFERENCE)


@pytest.mark.parametrize("sampler", ["cart", {"salary": "norm", "since": "norm"}])
def test_blocks_and_threads_do_not_matter(monkeypatch, sampler):
    whole = draws(X, sampler=sampler)
    monkeypatch.setattr(draw, "BLOCK_ROWS", 701)
    pd.testing.assert_frame_equal(draws(X, n_jobs=2, sampler=sampler), whole)


def test_draw_does_not_depend_on_other_draws():
    chain = ChainModel(fixed=["age"], sampler={"salary": "norm"}, random_state=1).fit(X, WANTED)
    request = request_for(chain, 200)
    rows = chain.draw(request).rows
    np.testing.assert_array_equal(chain.draw(request.take(slice(None, None, -3))).rows, rows[::-3])
    again = ChainModel(fixed=["age"], sampler={"salary": "norm"}, random_state=1).fit(X, WANTED)
    np.testing.assert_array_equal(again.draw(request).rows, rows)


# ---------------------------------------------------------------- sample and attributes


def test_sample_given_rows():
    chain = ChainModel(fixed=["since", "age"], random_state=1).fit(X)
    assert (chain.fixed_, chain.schema_.names[:2]) == (["since", "age"], ["since", "age"])
    assert chain.visit_sequence_ == ["school", "salary", "home"]
    given = X.loc[[7, 7, 9], ["age", "since"]].set_axis(["a", "b", "c"])
    drawn = chain.sample(40, given=given)
    assert list(drawn) == list(X)
    assert drawn.dtypes.equals(X.dtypes)
    assert (drawn.loc["c", "age"] == X.loc[9, "age"]).all()
    assert not drawn.loc["a"].equals(drawn.loc["b"])  # equal given rows have different draws
    pd.testing.assert_frame_equal(chain.sample(40, given=given.iloc[::-1]).loc["c"], drawn.loc["c"])
    assert not chain.sample(40, given=given, random_state=2).equals(drawn)


def test_without_given_rows_fixed_values_are_those_of_training_rows():
    chain = ChainModel(fixed=["age", "school"], random_state=1).fit(X, WANTED)
    drawn = chain.sample(2000, decision=True)
    pairs = set(zip(X["age"][WANTED], X["school"][WANTED]))
    assert set(zip(drawn["age"], drawn["school"])) <= pairs
    share = (chain.sample(4000)["salary"] > 45).mean()
    assert share == pytest.approx(WANTED.mean(), abs=0.04)


def test_fitted_attributes():
    chain = ChainModel(fixed=["home"], visit_sequence=["since", "age", "salary", "school"], random_state=5)
    with pytest.raises(NotFittedError, match="this ChainModel is not fitted"):
        chain.sample(1)
    chain.fit(X, WANTED)
    assert (chain.seed_, chain.n_fixed_, chain.conditions_on_decision_) == (5, 1, True)
    np.testing.assert_array_equal(chain.training_, chain.schema_.encode(X).matrix)
    assert chain.schema_.names == ["home", "since", "age", "salary", "school"]
    assert chain.givens_of(chain.training_[:1], False).tolist() == [[chain.training_[0, 0], 0.0]]
    pd.testing.assert_frame_equal(chain.schema_.decode(chain.training_), X)
    with pytest.raises(ValueError, match="not a column"):
        chain.set_params(fixed=["homes"]).fit(X)
    with pytest.raises(NotFittedError):
        chain.conditional("age")


def test_array_and_polars_tables():
    numbers = X[["age", "salary"]]
    for data in (numbers.to_numpy(), pl.from_pandas(numbers)):
        chain = ChainModel(random_state=1).fit(data, sample_weight=np.ones(len(X)) + (X["age"] > 30))
        assert chain.sample(9).shape == (9, 2)


def test_samplers_get_seeds_from_the_chain():
    chain = ChainModel(sampler="norm", random_state=1).fit(normals(50))
    seeds = [sampler.random_state for sampler in chain.samplers_]
    assert seeds == [derive_key(1, "fit", place) % 2**32 for place in range(3)]
    other = Constant(2.0)
    ChainModel(sampler={"x": other}, random_state=1).fit(normals(50))
    assert not hasattr(other, "fitted_")  # the user's object is not changed
