"""Invalid input of a chain and the messages."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import CartSampler, ChainModel, InputError, MarginalSampler, NotFittedError, SamplerError
from tests.generators.problem import Plain


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.0, 1.7e308, -1.7e308], r"column 'b' of X holds numbers of size 1.7e\+308, whose squares are out of"),
        ([0.0, 1e-300, 5e-300], "column 'b' of X holds numbers in a range of 5e-300, whose squares"),
    ],
)
def test_numbers_with_overflowing_squares_raise(values, message):
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0] * 5, "b": values * 5})
    with pytest.raises(InputError, match=message):
        ChainModel().fit(table)
    chain = ChainModel(fixed=["a"]).fit(table.assign(b=[1.0, 2.0, 3.0] * 5))
    with pytest.raises(InputError, match="column 'a' of given holds numbers of size"):
        chain.sample(given=pd.DataFrame({"a": [1e308]}))


def test_missing_givens_that_the_dtype_cannot_hold_raise():
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
            r"sampler has no entry for 'b', 'c'; name one for the rest under '\*', as in sampler={'\*'",
        ),
        (
            {"sampler": Plain()},
            SamplerError,
            r"Plain\(\) cannot model 'a': it is categorical, .*handles 'numeric'",
        ),
        ({"random_state": 1.5}, InputError, "random_state is 1.5, but a seed is an integer"),
        ({"n_jobs": 0}, InputError, "n_jobs is 0; it must be a whole number other than 0"),
    ],
)
def test_invalid_parameters_raise_when_fitting(truth, parameters, error, message):
    with pytest.raises(error, match=message):
        ChainModel(**parameters).fit(truth.head(50))


def test_sampler_without_missing_value_support_raises():
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
def test_invalid_number_of_rows_raises(chain, n):
    with pytest.raises(InputError, match=rf"n is {n!r}; it must be a whole number of at least 1"):
        chain.sample(n)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda rows: rows.assign(job="cook"),
            "given has the column.* 'job', which are not fixed; leave",
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
def test_invalid_givens_raise(people, chain, change, message):
    with pytest.raises(InputError, match=message):
        chain.sample(given=change(people[["age", "sex"]].iloc[:2]))


def test_decision_of_the_wrong_length_raises(truth):
    with pytest.raises(
        InputError, match=r"decision has shape \(49,\) and dtype bool for 50 rows of X; give one boolean a row"
    ):
        ChainModel().fit(truth.head(50), np.ones(49, dtype=bool))


def test_invalid_seed_raises_when_sampling(chain):
    with pytest.raises(InputError, match="random_state is 'x', but a seed is an integer"):
        chain.sample(1, random_state="x")


def test_not_fitted():
    with pytest.raises(NotFittedError, match=r"this ChainModel is not fitted; call fit\(X\) first"):
        ChainModel().sample(1)


def test_repr_shows_the_settings():
    shown = repr(ChainModel(sampler={"a": CartSampler(min_leaf=9)}, fixed=("b",)))
    assert shown == "ChainModel(sampler={'a': CartSampler(min_leaf=9)}, fixed=['b'], visit_sequence='data')"


class TestBadCalls:
    X = pd.DataFrame({"g": [0.0, 1.0] * 50, "x": np.arange(100.0)})

    def chain(self, **parameters):
        return ChainModel(fixed=["g"], random_state=1, **parameters).fit(self.X)

    def test_repeated_index_of_given(self):
        rows = self.chain().sample(given=self.X.loc[[0, 0], ["g"]], n=2)
        assert list(rows.index) == [(0, 0), (0, 1), (0, 0), (0, 1)]

    def test_several_index_levels_raise(self):
        given = self.X[["g"]].set_index([self.X.index, self.X.index])
        with pytest.raises(InputError, match="several levels"):
            self.chain().sample(given=given)

    def test_failed_fit_leaves_the_chain_unfitted(self):
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

    def test_decision_for_an_unconditioned_chain_raises(self):
        with pytest.raises(InputError, match="without a decision"):
            self.chain().sample(decision=True)

    def test_other_decision_raises(self):
        chain = ChainModel(fixed=["g"]).fit(self.X, self.X["x"].to_numpy() > 50)
        with pytest.raises(InputError, match="True, False or None"):
            chain.sample(decision=2)

    @pytest.mark.parametrize("fixed", [None, 3, "g"])
    def test_fixed_must_be_a_list(self, fixed):
        with pytest.raises(InputError, match="give a list of column names"):
            ChainModel(fixed=fixed).fit(self.X)

    def test_invalid_number_of_draws_names_the_sampler(self):
        class TooFew(MarginalSampler):
            def sample(self, given, rng, within=None):
                return super().sample(given, rng)[1:]

        chain = ChainModel(sampler=TooFew(), fixed=["g"]).fit(self.X)
        with pytest.raises(SamplerError, match=r"TooFew.*'x'.*one value per row"):
            chain.sample(5)


def test_rows_exceeding_memory_raise(monkeypatch):
    chain = ChainModel(random_state=1).fit(pd.DataFrame({"x": range(30), "y": range(30)}))
    with pytest.raises(InputError, match=r"n is 1000000000000; it must be .* at most 1000000000"):
        chain.sample(10**12)

    def full(*arguments, **options):
        raise MemoryError("Unable to allocate 70 GiB")

    monkeypatch.setattr(chain, "draw", full)
    with pytest.raises(InputError, match=r"n is 50, more rows than fit into memory .*; draw fewer at a time"):
        chain.sample(50)
