from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import mcce.generators.chain
from mcce import (
    CartSampler,
    ChainModel,
    ConditionalSampler,
    InputError,
    MarginalSampler,
    NotFittedError,
    SamplerError,
)
from mcce.generators.base import DrawRequest
from mcce.samplers import Within

N = 40_000
P_A = np.array([0.5, 0.3, 0.2])
P_B = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])  # b given a
P_C = np.array([[0.2, 0.8], [0.6, 0.4]])  # c given b; so a and c depend only through b
JOINT = P_A[:, None, None] * P_B[:, :, None] * P_C[None, :, :]


def draw_truth(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.choice(3, n, p=P_A)
    b = (rng.random(n) > P_B[a, 0]).astype(int)
    c = (rng.random(n) > P_C[b, 0]).astype(int)
    return pd.DataFrame({"a": np.array(["x", "y", "z"])[a], "b": b.astype(bool), "c": c})


def count_cells(frame):
    counts = np.zeros((3, 2, 2))
    np.add.at(counts, (frame["a"].map({"x": 0, "y": 1, "z": 2}), frame["b"].astype(int), frame["c"]), 1)
    return counts


@pytest.fixture(scope="module")
def truth():
    return draw_truth(N, 0)


@pytest.fixture(scope="module")
def people():
    """A small mixed table with missing values and dtypes worth keeping."""
    rng = np.random.default_rng(1)
    n = 400
    age = rng.integers(18, 80, n).astype(np.int16)
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": pd.Categorical(rng.choice(["f", "m"], n)),
            "born": pd.Timestamp("2000-01-01") - pd.to_timedelta(age.astype(int) * 365, unit="D"),
            "pay": np.where(rng.random(n) < 0.1, np.nan, 1000.0 * age + rng.normal(0, 5000, n)).astype(np.float32),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True),
            "job": rng.choice(["clerk", "cook", None], n),
            "owner": rng.random(n) < 0.5,
            "kids": pd.array(rng.integers(0, 4, n), dtype="Int64"),
        }
    )
    frame.loc[frame["age"] > 70, "kids"] = pd.NA
    return frame


@pytest.fixture(scope="module")
def chain(people):
    return ChainModel(fixed=["age", "sex"], random_state=1).fit(people)


class Plain(ConditionalSampler):
    """A plug-in of two methods, for numbers without missing values, not thread-safe."""

    handles = frozenset({"numeric"})

    def __init__(self, *, shift=0.0):
        self.shift = shift

    def fit(self, given, target):
        self.donors_ = np.sort(target.values)
        return self

    def sample(self, given, rng, within=None):
        return self.donors_[rng.integer(self.donors_.size)] + self.shift


# ---- the distribution drawn


@pytest.mark.parametrize("order", ["data", "correlation", ["c", "a", "b"]])
def test_the_joint_distribution_is_recovered(truth, order):
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


def test_without_givens_the_fixed_features_are_drawn_jointly(truth):
    chain = ChainModel(fixed=["a", "b"], random_state=1).fit(truth)
    drawn = chain.sample(N)
    assert stats.chi2_contingency([count_cells(drawn).ravel(), count_cells(truth).ravel()]).pvalue > 1e-4


def test_a_numeric_regression_is_recovered():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 10, 20_000)
    frame = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(0, 1, x.size)})
    chain = ChainModel(fixed=["x"], sampler=CartSampler(min_leaf=100), random_state=1).fit(frame)
    drawn = chain.sample(given=frame[["x"]].iloc[:4000])
    slope, intercept, *_ = stats.linregress(drawn["x"], drawn["y"])
    assert slope == pytest.approx(2.0, abs=0.03)
    assert intercept == pytest.approx(0.0, abs=0.15)
    assert (drawn["y"] - 2 * drawn["x"]).std() == pytest.approx(1.0, abs=0.1)


def test_the_decision_is_conditioned_on(truth):
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


def test_without_fixed_features_the_decision_alone_is_conditioned_on(truth):
    chain = ChainModel(random_state=1).fit(truth, (truth["a"] == "z").to_numpy())
    assert (chain.sample(500, decision=True)["a"] == "z").all()
    assert (chain.sample(500, decision=False)["a"] != "z").all()
    share = (chain.sample(10_000)["a"] == "z").sum()
    assert stats.binomtest(int(share), 10_000, float((truth["a"] == "z").mean())).pvalue > 1e-4
    assert (chain.sample(given=pd.DataFrame(index=["ann", "bob"]), n=50)["a"] == "z").all()


def test_a_decision_that_nobody_has_cannot_be_bootstrapped(truth):
    chain = ChainModel(random_state=1).fit(truth.head(100), np.ones(100, dtype=bool))
    with pytest.raises(InputError, match="no training row has the decision False"):
        chain.sample(5, decision=False)


@pytest.mark.parametrize("name", ["<decision>", "decision", "<<decision>>", "*"])
def test_no_column_name_is_taken_for_the_decision(truth, name):
    frame = truth.rename(columns={"c": name})
    decision = (truth["a"] == "z").to_numpy()
    chain = ChainModel(fixed=[name], random_state=1).fit(frame, decision)
    drawn = chain.sample(given=pd.DataFrame({name: [0, 1]}), n=100)
    assert list(drawn.columns) == ["a", "b", name]
    assert (drawn["a"] == "z").all()
    assert drawn[name].tolist() == [0] * 100 + [1] * 100
    mutable = ChainModel(fixed=["b"], random_state=1).fit(frame, decision)
    assert (mutable.sample(given=pd.DataFrame({"b": [True]}), n=100)["a"] == "z").all()


# ---- the table drawn


def test_rows_keep_columns_dtypes_and_fixed_values(people, chain):
    some = people.iloc[[5, 3, 8]]
    drawn = chain.sample(given=some[["age", "sex"]], n=4)
    pd.testing.assert_series_equal(drawn.dtypes, people.dtypes)
    pd.testing.assert_frame_equal(
        drawn[["age", "sex"]].reset_index(drop=True),
        some.loc[[5] * 4 + [3] * 4 + [8] * 4, ["age", "sex"]].reset_index(drop=True),
    )
    assert drawn.index.names == ["id", "draw"]
    assert drawn.index.tolist() == [(i, k) for i in (5, 3, 8) for k in range(4)]


def test_the_columns_of_given_may_stand_in_any_order(people, chain):
    some = people.iloc[:3]
    pd.testing.assert_frame_equal(chain.sample(given=some[["sex", "age"]]), chain.sample(given=some[["age", "sex"]]))


def test_draws_without_givens_are_numbered(people, chain):
    drawn = chain.sample(7)
    assert drawn.index.tolist() == list(range(7))
    pd.testing.assert_series_equal(drawn.dtypes, people.dtypes)


def test_every_value_drawn_was_observed(people, chain):
    drawn = chain.sample(1000)
    for name in people.columns:
        assert drawn[name].dropna().isin(people[name]).all()


def test_ids_of_any_type(people, chain):
    some = people[["age", "sex"]].iloc[:2].set_axis(pd.Index(["ann", "bob"], name="person"))
    assert chain.sample(given=some, n=1).index.tolist() == [("ann", 0), ("bob", 0)]


def test_no_row_to_draw_for(people, chain):
    drawn = chain.sample(given=people[["age", "sex"]].iloc[:0], n=3)
    assert drawn.shape == (0, 8)
    pd.testing.assert_series_equal(drawn.dtypes, people.dtypes)


def test_equal_rows_get_independent_draws(people, chain):
    twins = people[["age", "sex"]].iloc[[0, 0, 0]].set_axis(["a", "b", "c"])
    drawn = chain.sample(given=twins, n=200)
    values = [drawn.loc[name, "pay"].to_numpy() for name in "abc"]
    assert not np.array_equal(values[0], values[1], equal_nan=True)
    assert not np.array_equal(values[1], values[2], equal_nan=True)
    alone = chain.sample(given=twins.iloc[:1], n=200)
    pd.testing.assert_frame_equal(alone, drawn.loc[["a"]])


@pytest.mark.parametrize("names", [[3, 0, 7], ["a b", "x[0]", "é%"], [("q"), 1, 2.5]])
def test_column_labels_of_any_kind(truth, names):
    frame = truth.head(500).set_axis(names, axis=1)
    for order in ("data", "correlation", [names[2], names[0]]):
        chain = ChainModel(fixed=[names[1]], visit_sequence=order, random_state=1).fit(frame)
        drawn = chain.sample(given=frame[[names[1]]].iloc[:2], n=3)
        assert list(drawn.columns) == names
        assert (drawn.dtypes == frame.dtypes).all()


def test_a_numpy_array_is_a_table_too():
    matrix = np.random.default_rng(0).normal(size=(100, 3))
    drawn = ChainModel(fixed=["x0"], random_state=1).fit(matrix).sample(5)
    assert list(drawn.columns) == ["x0", "x1", "x2"]


# ---- samplers and orders


def test_the_visit_sequence_decides_who_sees_whom(truth):
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


def test_samplers_of_the_user_are_cloned_not_fitted(truth):
    sampler = CartSampler(min_leaf=30)
    chain = ChainModel(sampler=sampler).fit(truth.head(500))
    assert vars(sampler) == {
        "dialect": "mcce",
        "min_split": None,
        "min_leaf": 30,
        "max_depth": None,
        "cp": None,
        "min_donors": 1,
    }
    assert all(fitted is not sampler and fitted.min_leaf == 30 for fitted in chain.samplers_.values())
    assert len({id(fitted) for fitted in chain.samplers_.values()}) == 3


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_a_sampler_that_is_not_thread_safe_works(n_jobs):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=list("xyz"))
    chain = ChainModel(sampler=Plain(shift=10.0), fixed=["x"], random_state=1, n_jobs=n_jobs).fit(frame)
    drawn = chain.sample(given=frame[["x"]], n=100)
    assert drawn[["y", "z"]].min().min() > 5
    assert drawn["x"].to_numpy().tolist() == frame["x"].repeat(100).tolist()


# ---- randomness


@pytest.mark.parametrize("n_jobs", [2, 4, None])
def test_the_number_of_threads_changes_nothing(people, n_jobs, monkeypatch):
    monkeypatch.setattr(mcce.generators.chain, "BLOCK_ROWS", 64)
    one = ChainModel(fixed=["age"], random_state=1, n_jobs=1).fit(people)
    more = ChainModel(fixed=["age"], random_state=1, n_jobs=n_jobs).fit(people)
    pd.testing.assert_frame_equal(one.sample(500), more.sample(500), check_exact=True)
    rows = people[["age"]].iloc[:20]
    pd.testing.assert_frame_equal(one.sample(given=rows, n=30), more.sample(given=rows, n=30), check_exact=True)


def test_the_size_of_blocks_changes_nothing(people, chain, monkeypatch):
    rows = people[["age", "sex"]].iloc[:30]
    whole = chain.sample(given=rows, n=5), chain.sample(100)
    monkeypatch.setattr(mcce.generators.chain, "BLOCK_ROWS", 7)
    pd.testing.assert_frame_equal(chain.sample(given=rows, n=5), whole[0], check_exact=True)
    pd.testing.assert_frame_equal(chain.sample(100), whole[1], check_exact=True)


def test_order_and_company_of_the_given_rows_change_nothing(people, chain):
    rows = people[["age", "sex"]].drop_duplicates()
    drawn = chain.sample(given=rows, n=5)
    shuffled = rows.sample(frac=0.5, random_state=0)
    pd.testing.assert_frame_equal(chain.sample(given=shuffled, n=5), drawn.loc[shuffled.index], check_exact=True)


def test_fewer_draws_are_the_first_of_more(people, chain):
    rows = people[["age", "sex"]].drop_duplicates().iloc[:10]
    few, many = chain.sample(given=rows, n=3), chain.sample(given=rows, n=8)
    pd.testing.assert_frame_equal(few, many[many.index.get_level_values("draw") < 3], check_exact=True)
    pd.testing.assert_frame_equal(chain.sample(20), chain.sample(50).head(20), check_exact=True)


def test_the_seed_decides(people):
    first = ChainModel(random_state=1).fit(people)
    pd.testing.assert_frame_equal(first.sample(50), first.sample(50))
    pd.testing.assert_frame_equal(first.sample(50), ChainModel(random_state=1).fit(people).sample(50))
    assert not first.sample(50).equals(ChainModel(random_state=2).fit(people).sample(50))
    assert not first.sample(50).equals(first.sample(50, random_state=7))
    pd.testing.assert_frame_equal(first.sample(50, random_state=7), first.sample(50, random_state=7))
    fresh = ChainModel().fit(people), ChainModel().fit(people)
    assert fresh[0].seed_ != fresh[1].seed_


def test_global_random_state_is_neither_read_nor_moved(people):
    np.random.seed(1)  # noqa: NPY002
    before = repr(np.random.get_state())  # noqa: NPY002
    drawn = ChainModel(random_state=1).fit(people).sample(20)
    assert repr(np.random.get_state()) == before  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    pd.testing.assert_frame_equal(ChainModel(random_state=1).fit(people).sample(20), drawn)


def test_the_training_table_is_left_as_it_was(people):
    before = people.copy(deep=True)
    ChainModel(fixed=["age"], random_state=1).fit(people).sample(10)
    pd.testing.assert_frame_equal(people, before)


@settings(max_examples=25, deadline=None)
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


# ---- bad input


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.0, 1.7e308, -1.7e308], r"column 'b' of X holds numbers of size 1.7e\+308, whose squares are out of"),
        ([0.0, 1e-300, 5e-300], "column 'b' of X holds numbers in a range of 5e-300, whose squares"),
    ],
)
def test_numbers_whose_squares_leave_the_range_of_floats(values, message):
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0] * 5, "b": values * 5})
    with pytest.raises(InputError, match=message):
        ChainModel().fit(table)
    chain = ChainModel(fixed=["a"]).fit(table.assign(b=[1.0, 2.0, 3.0] * 5))
    with pytest.raises(InputError, match="column 'a' of given holds numbers of size"):
        chain.sample(given=pd.DataFrame({"a": [1e308]}))


def test_missing_givens_that_the_dtype_cannot_hold():
    chain = ChainModel(fixed=["a"]).fit(pd.DataFrame({"a": [1, 2, 3] * 5, "b": [1.0, 2.0, 3.0] * 5}))
    with pytest.raises(InputError, match=r"column 'a' of given has 1 missing .* row 'q', which .* int64 cannot hold"):
        chain.sample(given=pd.DataFrame({"a": [1.0, np.nan]}, index=["p", "q"]))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"fixed": ["aa"]}, InputError, "fixed feature 'aa' is not a column of X; did you mean 'a'"),
        ({"fixed": "a"}, InputError, r"fixed is 'a'; give a list of column names"),
        ({"fixed": ["a", "b", "a"]}, InputError, "fixed names 'a' more than once"),
        ({"fixed": ["a", "b", "c"]}, InputError, "all 3 columns of X are fixed; leave at least one mutable"),
        ({"visit_sequence": "alphabet"}, InputError, "visit_sequence is 'alphabet'; allowed: 'data'"),
        ({"visit_sequence": ["a", "b"]}, InputError, "left out: 'c'"),
        ({"fixed": ["a"], "visit_sequence": ["a", "b", "c"]}, InputError, "names 'a', which is fixed"),
        ({"kinds": {"aa": "numeric"}}, InputError, "kinds names 'aa', which is not a column of X"),
        ({"sampler": "crat"}, SamplerError, "there is no sampler 'crat'; did you mean 'cart'"),
        ({"sampler": 3}, InputError, "sampler is 3; give a name, a ConditionalSampler, or a dict"),
        (
            {"sampler": {"d": "cart", "*": "cart"}},
            InputError,
            "sampler names 'd', which is not a column of X",
        ),
        (
            {"fixed": ["a"], "sampler": {"a": "cart", "*": "cart"}},
            InputError,
            "sampler names 'a', which is fixed and has no sampler",
        ),
        (
            {"sampler": {"a": "cart"}},
            InputError,
            r"sampler says nothing of 'b', 'c'; add \"\*\": ... for the rest",
        ),
        (
            {"sampler": Plain()},
            SamplerError,
            r"Plain\(\) cannot model 'a': it is categorical, .*handles 'numeric'",
        ),
        ({"random_state": 1.5}, InputError, "random_state is 1.5, but a seed is an integer"),
        ({"n_jobs": 0}, InputError, "n_jobs is 0; it must be a whole number of at least 1, or None for all cores"),
    ],
)
def test_wrong_parameters_are_refused_when_fitting(truth, parameters, error, message):
    with pytest.raises(error, match=message):
        ChainModel(**parameters).fit(truth.head(50))


def test_a_sampler_that_does_not_handle_missing_values_is_refused():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=list("xyz"))
    frame.loc[3, "y"] = np.nan
    message = r"Plain\(\) for 'z' does not handle missing values, and 'y' has some; fill them"
    with pytest.raises(SamplerError, match=message):
        ChainModel(fixed=["y"], visit_sequence=["z", "x"], sampler=Plain()).fit(frame)
    with pytest.raises(SamplerError, match=r"Plain\(\) for 'y' does not handle missing values, and 'y' has some"):
        ChainModel(sampler=Plain()).fit(frame)
    ChainModel(sampler={"x": Plain(), "*": "cart"}).fit(frame)
    with pytest.raises(SamplerError, match=r"Plain\(\) for 'x' does not handle missing values, and 'y' has some"):
        ChainModel(sampler={"x": Plain(), "*": "cart"}, visit_sequence=["y", "z", "x"]).fit(frame)


@pytest.mark.parametrize("n", [0, -1, 2.0, "3", None])
def test_a_wrong_number_of_rows_is_refused(chain, n):
    with pytest.raises(InputError, match=rf"n is {n!r}; it must be a whole number of at least 1"):
        chain.sample(n)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda rows: rows.assign(job="cook"),
            "given has the column.* 'job', which are not fixed in this chain",
        ),
        (lambda rows: rows[["age"]], "given lacks the column.* 'sex' of the training data"),
        (lambda rows: rows.assign(sex="x"), "column 'sex' of given holds the level 'x'"),
        (lambda rows: rows.assign(age=20.5), "column 'age' of given holds 20.5"),
        (lambda rows: rows.assign(age="old"), "column 'age' of given is numeric in the training data"),
        (
            lambda rows: rows.to_numpy(),
            "given is a ndarray; give a DataFrame with the fixed features 'age', 'sex'",
        ),
    ],
)
def test_wrong_givens_are_refused(people, chain, change, message):
    with pytest.raises(InputError, match=message):
        chain.sample(given=change(people[["age", "sex"]].iloc[:2]))


def test_a_decision_of_the_wrong_length_is_refused(truth):
    with pytest.raises(
        InputError, match=r"decision has shape \(49,\) and dtype bool for 50 rows of X; give one boolean a row"
    ):
        ChainModel().fit(truth.head(50), np.ones(49, dtype=bool))


def test_a_wrong_seed_is_refused_when_sampling(chain):
    with pytest.raises(InputError, match="random_state is 'x', but a seed is an integer"):
        chain.sample(1, random_state="x")


def test_not_fitted():
    with pytest.raises(NotFittedError, match=r"this ChainModel is not fitted; call fit\(X\) first"):
        ChainModel().sample(1)


def test_repr_says_what_it_is():
    shown = repr(ChainModel(sampler={"a": CartSampler(min_leaf=9)}, fixed=("b",)))
    assert shown == "ChainModel(sampler={'a': CartSampler(min_leaf=9)}, fixed=['b'], visit_sequence='data')"


class TestBadCalls:
    X = pd.DataFrame({"g": [0.0, 1.0] * 50, "x": np.arange(100.0)})

    def chain(self, **parameters):
        return ChainModel(fixed=["g"], random_state=1, **parameters).fit(self.X)

    def test_repeated_index_of_given(self):
        rows = self.chain().sample(given=self.X.loc[[0, 0], ["g"]], n=2)
        assert list(rows.index) == [(0, 0), (0, 1), (0, 0), (0, 1)]

    def test_several_index_levels_are_refused(self):
        given = self.X[["g"]].set_index([self.X.index, self.X.index])
        with pytest.raises(InputError, match="several levels"):
            self.chain().sample(given=given)

    def test_failed_fit_leaves_no_half_fitted_chain(self):
        chain = self.chain()
        chain.sampler = "crat"
        with pytest.raises(SamplerError, match="did you mean 'cart'"):
            chain.fit(self.X)
        with pytest.raises(NotFittedError):
            chain.sample()

    @pytest.mark.parametrize("decision", [np.full(100, 2.5), np.full(99, True), np.array(["yes"] * 100)])
    def test_decision_must_be_boolean(self, decision):
        with pytest.raises(InputError, match="one boolean a row"):
            ChainModel(fixed=["g"]).fit(self.X, decision)

    def test_decision_without_one_is_refused(self):
        with pytest.raises(InputError, match="without a decision"):
            self.chain().sample(decision=True)

    def test_other_decision_is_refused(self):
        chain = ChainModel(fixed=["g"]).fit(self.X, self.X["x"].to_numpy() > 50)
        with pytest.raises(InputError, match="True, False or None"):
            chain.sample(decision=2)

    @pytest.mark.parametrize("fixed", [None, 3, "g"])
    def test_fixed_must_be_a_list(self, fixed):
        with pytest.raises(InputError, match="give a list of column names"):
            ChainModel(fixed=fixed).fit(self.X)

    def test_wrong_number_of_draws_names_the_sampler(self):
        class TooFew(MarginalSampler):
            def sample(self, given, rng, within=None):
                return super().sample(given, rng)[1:]

        chain = ChainModel(sampler=TooFew(), fixed=["g"]).fit(self.X)
        with pytest.raises(SamplerError, match=r"TooFew.*'x'.*one value a row"):
            chain.sample(5)


# ---- restricted draws


WITHIN_SAMPLERS = {
    "cart": "cart",
    "norm": {"kids": "norm", "grade": "parametric", "pay": "norm"},
    "copula": "copula",
}


@pytest.fixture(scope="module")
def families():
    rng = np.random.default_rng(5)
    age = rng.integers(18, 80, 1500)
    kids = np.rint(age / 12 + rng.normal(0, 1.5, 1500)).clip(0).astype(int)
    grade = pd.Categorical.from_codes(rng.integers(0, 3, 1500), ["low", "mid", "high"], ordered=True)
    return pd.DataFrame({"age": age, "kids": kids, "grade": grade, "pay": 10.0 * kids + rng.normal(0, 3, 1500)})


@pytest.mark.parametrize("name", WITHIN_SAMPLERS)
def test_restricted_draws_stay_inside_and_rows_without_any_are_dead(families, name, monkeypatch):
    chain = ChainModel(sampler=WITHIN_SAMPLERS[name], fixed=["age"], random_state=1).fit(families)
    n = 4000
    request = DrawRequest(np.full((n, 1), 48.0), np.zeros(n, dtype=np.uint64), np.arange(n, dtype=np.uint64), 1)
    free = chain.draw(request).rows
    numbers = np.arange(n)
    no_kids = numbers % 4 == 0  # nothing between two whole numbers
    low = np.where(no_kids, 3.2, np.where(numbers % 4 == 1, 3.2, -np.inf))
    high = np.where(no_kids, 3.7, np.where(numbers % 4 == 1, 6.4, 4.0))
    levels = np.ones((n, 3), dtype=bool)
    levels[numbers % 5 == 0] = [True, False, True]
    no_grade = numbers % 7 == 0
    levels[no_grade] = False
    restrictions = {"kids": Within(low=low, high=high), "grade": Within(levels=levels)}
    drawn = chain.draw(replace(request, restrictions=restrictions))
    np.testing.assert_array_equal(drawn.dead, no_kids | no_grade)
    assert np.isfinite(drawn.rows).all()  # dead rows too: the conditionals that follow need not take missing values
    alive = drawn.rows[~drawn.dead]
    kids, grade, pay = drawn.rows[:, 1], drawn.rows[:, 2], drawn.rows[:, 3]
    assert ((kids >= low) & (kids <= high) & (kids == np.rint(kids)))[~drawn.dead].all()
    assert levels[numbers, grade.astype(int)][~drawn.dead].all()
    # the pay follows the kids that were drawn, not those that would have been
    assert (alive[:, 3] - 10.0 * alive[:, 1]).mean() == pytest.approx(0.0, abs=1.0)
    assert np.corrcoef(pay[~drawn.dead], kids[~drawn.dead])[0, 1] > 0.9
    # kids are drawn first: from the free ones that are allowed
    for rows, allowed in ((numbers % 4 == 1, (4, 5, 6)), (numbers % 4 > 1, (0, 1, 2, 3, 4))):
        counts = [[(part == k).sum() for k in allowed] for part in (kids[rows], free[:, 1])]
        seen = np.array(counts)[:, np.sum(counts, axis=0) > 9]
        assert stats.chi2_contingency(seen).pvalue > 1e-3

    monkeypatch.setattr(mcce.generators.chain, "BLOCK_ROWS", 700)
    again = chain.draw(replace(request, restrictions=restrictions), n_jobs=2)
    np.testing.assert_array_equal(again.rows, drawn.rows)
    np.testing.assert_array_equal(again.dead, drawn.dead)
