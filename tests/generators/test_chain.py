"""The chain draws its fitted distribution, independent of threads, blocks and batches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import mcce.generators.chain
from mcce import CartSampler, ChainModel, InputError, MarginalSampler
from tests.generators.problem import P_A, P_B, P_C, N, Plain
from tests.marks import examples

JOINT = P_A[:, None, None] * P_B[:, :, None] * P_C[None, :, :]


def count_cells(frame):
    counts = np.zeros((3, 2, 2))
    np.add.at(counts, (frame["a"].map({"x": 0, "y": 1, "z": 2}), frame["b"].astype(int), frame["c"]), 1)
    return counts


# ---- the distribution drawn


@pytest.mark.parametrize("order", ["data", "correlation", ["c", "a", "b"]])
def test_joint_distribution_is_recovered(truth, order):
    drawn = ChainModel(visit_sequence=order, random_state=1).fit(truth).sample(N)
    trained = count_cells(truth)
    counts = count_cells(drawn)
    # training frequencies and draws are both noisy samples of the truth
    assert stats.chi2_contingency([counts.ravel(), trained.ravel()]).pvalue > 1e-4
    assert 0.5 * np.abs(counts / N - JOINT).sum() < 0.015


def test_fixed_values_are_conditioned_on(truth):
    chain = ChainModel(fixed=["a"], random_state=1).fit(truth)
    drawn = chain.sample(given=pd.DataFrame({"a": ["x", "y", "z"]}), n=6000)
    for k, level in enumerate(["x", "y", "z"]):
        counts = count_cells(drawn.loc[[k]])
        assert (drawn.loc[k, "a"] == level).all()
        assert stats.chisquare(counts[k].ravel(), 6000 * (JOINT[k] / P_A[k]).ravel()).pvalue > 1e-4


def test_fixed_features_are_drawn_jointly_without_givens(truth):
    chain = ChainModel(fixed=["a", "b"], random_state=1).fit(truth)
    drawn = chain.sample(N)
    assert stats.chi2_contingency([count_cells(drawn).ravel(), count_cells(truth).ravel()]).pvalue > 1e-4


def test_numeric_regression_is_recovered():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 10, 20_000)
    frame = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(0, 1, x.size)})
    chain = ChainModel(fixed=["x"], sampler=CartSampler(min_leaf=100), random_state=1).fit(frame)
    drawn = chain.sample(given=frame[["x"]].iloc[:4000])
    slope, intercept, *_ = stats.linregress(drawn["x"], drawn["y"])
    assert slope == pytest.approx(2.0, abs=0.03)
    assert intercept == pytest.approx(0.0, abs=0.15)
    assert (drawn["y"] - 2 * drawn["x"]).std() == pytest.approx(1.0, abs=0.1)


def test_decision_is_conditioned_on(truth):
    decision = (truth["c"] == 1).to_numpy()
    chain = ChainModel(fixed=["a"], random_state=1).fit(truth, decision)
    people = pd.DataFrame({"a": ["x", "z"]})
    # P(b | a, c): by Bayes from the truth
    for wanted in (True, False):
        drawn = chain.sample(given=people, n=4000, decision=wanted)
        assert (drawn["c"] == wanted).all()
        for k, a in ((0, 0), (1, 2)):
            p = JOINT[a, :, int(wanted)] / JOINT[a, :, int(wanted)].sum()
            n_true = int(drawn.loc[k, "b"].sum())
            assert stats.binomtest(n_true, 4000, p[1]).pvalue > 1e-4
    pd.testing.assert_frame_equal(chain.sample(given=people, n=10), chain.sample(given=people, n=10, decision=True))


def test_only_the_decision_is_conditioned_on_without_fixed_features(truth):
    chain = ChainModel(random_state=1).fit(truth, (truth["a"] == "z").to_numpy())
    assert (chain.sample(500, decision=True)["a"] == "z").all()
    assert (chain.sample(500, decision=False)["a"] != "z").all()
    share = (chain.sample(10_000)["a"] == "z").sum()
    assert stats.binomtest(int(share), 10_000, float((truth["a"] == "z").mean())).pvalue > 1e-4
    assert (chain.sample(given=pd.DataFrame(index=["ann", "bob"]), n=50)["a"] == "z").all()


def test_unseen_decision_cannot_be_bootstrapped(truth):
    chain = ChainModel(random_state=1).fit(truth.head(100), np.ones(100, dtype=bool))
    with pytest.raises(InputError, match="no training row has the decision False"):
        chain.sample(5, decision=False)


@pytest.mark.parametrize("name", ["<decision>", "decision", "<<decision>>", "*"])
def test_no_column_name_clashes_with_the_decision(truth, name):
    frame = truth.rename(columns={"c": name})
    decision = (truth["a"] == "z").to_numpy()
    chain = ChainModel(fixed=[name], random_state=1).fit(frame, decision)
    drawn = chain.sample(given=pd.DataFrame({name: [0, 1]}), n=100)
    assert list(drawn.columns) == ["a", "b", name]
    assert (drawn["a"] == "z").all()
    assert drawn[name].tolist() == [0] * 100 + [1] * 100
    mutable = ChainModel(fixed=["b"], random_state=1).fit(frame, decision)
    assert (mutable.sample(given=pd.DataFrame({"b": [True]}), n=100)["a"] == "z").all()


# ---- samplers and orders


def test_visit_sequence_determines_the_predictors(truth):
    chain = ChainModel(fixed=["b"], visit_sequence=["c", "a"]).fit(truth)
    assert chain.visit_sequence_ == ["c", "a"]
    assert chain.fixed_ == ["b"]
    assert chain.associations_ is None
    by_correlation = ChainModel(fixed=["b"], visit_sequence="correlation").fit(truth)
    assert sorted(by_correlation.visit_sequence_) == ["a", "c"]
    assert by_correlation.associations_.shape == (3, 3)


def test_each_feature_may_have_its_own_sampler(truth):
    chain = ChainModel(fixed=["a"], sampler={"b": "marginal", "*": CartSampler(min_leaf=50)}, random_state=1)
    chain.fit(truth)
    assert type(chain.samplers_["b"]) is MarginalSampler
    assert chain.samplers_["c"].min_leaf == 50
    drawn = chain.sample(given=pd.DataFrame({"a": ["x", "z"]}), n=4000)
    share = truth["b"].mean()  # b no longer depends on a
    for k in (0, 1):
        assert stats.binomtest(int(drawn.loc[k, "b"].sum()), 4000, share).pvalue > 1e-4


def test_given_samplers_are_cloned_and_not_fitted(truth):
    sampler = CartSampler(min_leaf=30)
    chain = ChainModel(sampler=sampler).fit(truth.head(500))
    assert vars(sampler) == {
        "dialect": "mcce",
        "min_split": None,
        "min_leaf": 30,
        "max_depth": None,
        "cp": None,
        "min_donors": 1,
        "proper": False,
        "honest": False,
        "smoothing": None,
        "random_state": 0,
    }
    assert all(fitted is not sampler and fitted.min_leaf == 30 for fitted in chain.samplers_.values())
    assert len({id(fitted) for fitted in chain.samplers_.values()}) == 3


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_sampler_that_is_not_thread_safe_works(n_jobs):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=list("xyz"))
    chain = ChainModel(sampler=Plain(shift=10.0), fixed=["x"], random_state=1, n_jobs=n_jobs).fit(frame)
    drawn = chain.sample(given=frame[["x"]], n=100)
    assert drawn[["y", "z"]].min().min() > 5
    assert drawn["x"].to_numpy().tolist() == frame["x"].repeat(100).tolist()


# ---- randomness


@pytest.mark.parametrize("n_jobs", [2, 4, -1])
def test_number_of_threads_does_not_matter(people, n_jobs, monkeypatch):
    monkeypatch.setattr(mcce.generators.chain, "BLOCK_ROWS", 64)
    one = ChainModel(fixed=["age"], random_state=1, n_jobs=1).fit(people)
    more = ChainModel(fixed=["age"], random_state=1, n_jobs=n_jobs).fit(people)
    pd.testing.assert_frame_equal(one.sample(500), more.sample(500), check_exact=True)
    rows = people[["age"]].iloc[:20]
    pd.testing.assert_frame_equal(one.sample(given=rows, n=30), more.sample(given=rows, n=30), check_exact=True)


def test_block_size_does_not_matter(people, chain, monkeypatch):
    rows = people[["age", "sex"]].iloc[:30]
    whole = chain.sample(given=rows, n=5), chain.sample(100)
    monkeypatch.setattr(mcce.generators.chain, "BLOCK_ROWS", 7)
    pd.testing.assert_frame_equal(chain.sample(given=rows, n=5), whole[0], check_exact=True)
    pd.testing.assert_frame_equal(chain.sample(100), whole[1], check_exact=True)


def test_order_and_batch_of_given_rows_do_not_matter(people, chain):
    rows = people[["age", "sex"]].drop_duplicates()
    drawn = chain.sample(given=rows, n=5)
    shuffled = rows.sample(frac=0.5, random_state=0)
    pd.testing.assert_frame_equal(chain.sample(given=shuffled, n=5), drawn.loc[shuffled.index], check_exact=True)


def test_fewer_draws_are_the_first_of_more_draws(people, chain):
    rows = people[["age", "sex"]].drop_duplicates().iloc[:10]
    few, many = chain.sample(given=rows, n=3), chain.sample(given=rows, n=8)
    pd.testing.assert_frame_equal(few, many[many.index.get_level_values("draw") < 3], check_exact=True)
    pd.testing.assert_frame_equal(chain.sample(20), chain.sample(50).head(20), check_exact=True)


@pytest.mark.slow
def test_draws_depend_on_the_seed(people):
    first = ChainModel(random_state=1).fit(people)
    pd.testing.assert_frame_equal(first.sample(50), first.sample(50))
    pd.testing.assert_frame_equal(first.sample(50), ChainModel(random_state=1).fit(people).sample(50))
    assert not first.sample(50).equals(ChainModel(random_state=2).fit(people).sample(50))
    assert not first.sample(50).equals(first.sample(50, random_state=7))
    pd.testing.assert_frame_equal(first.sample(50, random_state=7), first.sample(50, random_state=7))
    fresh = ChainModel().fit(people), ChainModel().fit(people)
    assert fresh[0].seed_ != fresh[1].seed_


def test_global_random_state_is_neither_read_nor_changed(people):
    np.random.seed(1)  # noqa: NPY002
    before = repr(np.random.get_state())  # noqa: NPY002
    drawn = ChainModel(random_state=1).fit(people).sample(20)
    assert repr(np.random.get_state()) == before  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    pd.testing.assert_frame_equal(ChainModel(random_state=1).fit(people).sample(20), drawn)


def test_training_table_is_not_modified(people):
    before = people.copy(deep=True)
    ChainModel(fixed=["age"], random_state=1).fit(people).sample(10)
    pd.testing.assert_frame_equal(people, before)


@examples(6)
@given(data=st.data(), seed=st.integers(0, 10_000))
def test_fixed_columns_never_change(people, data, seed):
    fixed = data.draw(st.lists(st.sampled_from(list(people.columns)), unique=True, max_size=7))
    rows = data.draw(st.lists(st.integers(0, len(people) - 1), min_size=1, max_size=4))
    n = data.draw(st.integers(1, 5))
    order = data.draw(st.sampled_from(["data", "correlation"]))
    chain = ChainModel(sampler="marginal", fixed=fixed, visit_sequence=order, random_state=seed).fit(people)
    some = people.iloc[rows].reset_index(drop=True)
    drawn = chain.sample(given=some[fixed], n=n)
    expected = some.loc[some.index.repeat(n), fixed].reset_index(drop=True)
    pd.testing.assert_frame_equal(drawn[fixed].reset_index(drop=True), expected)
