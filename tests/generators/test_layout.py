"""Which sampler and which columns each feature has."""

import numpy as np
import pytest

from mcce.exceptions import InputError
from mcce.generators import ChainModel
from mcce.generators.layout import Layout
from mcce.table import Schema
from tests.generators.problem import Constant, table

X = table(60)
WANTED = (X["salary"] > 45).to_numpy()


def families(sampler, frame=X, **settings):
    chain = ChainModel(sampler=sampler, random_state=1, **settings).fit(frame)
    return {name: type(chain.conditional(name)).__name__ for name in chain.visit_sequence_}


def test_one_sampler_for_all_or_some():
    numbers = X[["age", "salary"]]
    assert families("norm", numbers) == {"age": "NormSampler", "salary": "NormSampler"}
    assert families(Constant, numbers) == {"age": "Constant", "salary": "Constant"}
    assert families({"salary": "norm"}, numbers) == {"age": "CartSampler", "salary": "NormSampler"}
    assert families({"salary": Constant(1.0), "*": "norm"}, numbers) == {"age": "NormSampler", "salary": "Constant"}


def test_a_column_named_star_is_that_column():
    numbers = X[["age", "salary"]].set_axis(["*", "salary"], axis=1)
    assert families({"*": "norm"}, numbers) == {"*": "NormSampler", "salary": "CartSampler"}
    with pytest.raises(InputError, match=r"sampler names '\*', which is fixed and has no sampler"):
        families({"*": "norm"}, numbers, fixed=["*"])


def test_columns_of_a_chain():
    schema = Schema.from_data(X).arrange(["home", "age", "salary", "school", "since"])
    layout = Layout.of(schema, 2, True, {"school": ["age"], "since": ["salary", "home"]})
    assert [feature.name for feature in layout.features] == ["home", "age", "<decision>", "salary", "school", "since"]
    rows = schema.encode(X).matrix
    table = layout.chain_table(rows, WANTED)
    seen = {column: layout.given(table, column).names for column in (3, 4, 5)}
    assert seen == {
        3: ["home", "age", "<decision>"],
        4: ["age", "<decision>"],
        5: ["home", "<decision>", "salary"],
    }
    np.testing.assert_array_equal(table.matrix[:, 2], WANTED)
    np.testing.assert_array_equal(np.delete(table.matrix, 2, axis=1), rows)
    assert [layout.place(column) for column in (3, 4, 5)] == [2, 3, 4]
    assert [layout.column(place) for place in range(5)] == [0, 1, 3, 4, 5]


def test_no_column_is_named_like_the_decision():
    frame = X[["age", "salary"]].set_axis(["<decision>", "salary"], axis=1)
    chain = ChainModel(fixed=["<decision>"], random_state=1).fit(frame, WANTED)
    assert chain.sample(4, decision=True).shape == (4, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampler": 3}, "a sampler is 3; give a registered name"),
        ({"sampler": "norm"}, "does not model .* 'school'"),
        ({"predictors": {"agee": []}}, "predictors names 'agee', which is not a column of X; did you mean 'age'"),
        ({"predictors": {"age": []}, "fixed": ["age"]}, "predictors names 'age', which is fixed"),
        ({"predictors": {"home": ["agee"]}}, r"predictors\['home'\] names 'agee', which is not a column of X"),
    ],
)
def test_messages(settings, message):
    with pytest.raises(InputError, match=message):
        ChainModel(**settings).fit(X)


def test_missing_givens_that_a_sampler_does_not_accept():
    class Strict(Constant):
        accepts_missing = False

    gaps = X.assign(age=X["age"].where(X["age"] > 30))
    with pytest.raises(InputError, match=r"Strict, the sampler of column 'home', does not accept missing.*'age'"):
        ChainModel(sampler={"home": Strict()}).fit(gaps)
    ChainModel(sampler={"home": Strict()}, predictors={"home": ["school"]}, random_state=1).fit(gaps)
