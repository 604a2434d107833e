import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError, MCCEWarning
from mcce.plausibility.derived import Derived
from mcce.table import Schema


def bank(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "rent": rng.integers(100, 900, n),
            "instalment": rng.integers(0, 300, n),
            "income": rng.integers(1000, 9000, n),
            "hired": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "asked": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    )
    X["debt"] = X["rent"] + X["instalment"]
    X["dti"] = (X["debt"] / X["income"]).round(2)
    X["band"] = np.where(X["income"] > 5000, "high", "low")
    X["owes"] = X["instalment"] > 0
    X["probation"] = X["hired"] + pd.Timedelta(days=180)
    X["years"] = ((X["asked"] - X["hired"]).dt.days / 365.25).round(1)
    return X


FORMULAS = {
    "dti": "debt / income",
    "debt": "rent + instalment",
    "band": "'high' if income > 5000 else 'low'",
    "owes": "instalment > 0",
    "probation": "hired + 180",
    "years": "(asked - hired) / 365.25",
}


def read(X, derived, **options):
    schema = Schema.from_data(X)
    return Derived.read(derived, schema, schema.encode(X).matrix, **options), schema


def as_functions():
    return {
        "dti": lambda X: X["debt"] / X["income"],
        "debt": lambda X: X["rent"] + X["instalment"],
        "band": lambda X: np.where(X["income"] > 5000, "high", "low"),
        "owes": lambda X: X["instalment"] > 0,
        "probation": lambda X: X["hired"] + pd.Timedelta(days=180),
        "years": lambda X: (X["asked"] - X["hired"]).dt.days / 365.25,
    }


@pytest.mark.parametrize("formulas", [FORMULAS, as_functions()], ids=["texts", "functions"])
def test_columns_are_computed_from_their_inputs(formulas):
    X = bank()
    derived, schema = read(X, formulas)
    names = [step.feature.name for step in derived.steps]
    assert set(names) == set(FORMULAS)
    assert names.index("debt") < names.index("dti")
    changed = bank(seed=1)
    rows = schema.encode(changed).matrix
    rows[:, derived.columns] = np.nan
    pd.testing.assert_frame_equal(schema.decode(derived.complete(rows)), changed)


def test_function_reads_the_columns_that_it_needs():
    derived, schema = read(bank(), {"dti": lambda X: (X["rent"] + X["instalment"]) / X["income"]})
    assert [schema.names[j] for j in derived.steps[0].inputs] == ["rent", "instalment", "income"]


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        (lambda x: x.round(1), "nearest"),
        (lambda x: np.floor(10 * x + 0.5 + 1e-9) / 10, "half up"),
        (lambda x: np.floor(10 * x + 1e-9) / 10, "down"),
        (lambda x: np.ceil(10 * x - 1e-9) / 10, "up"),
    ],
)
def test_rounding_follows_the_training_rows(rounding, expected):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 400, 300)
    X = pd.DataFrame({"a": a, "b": rounding(a / 60)})
    derived, schema = read(X, {"b": "a / 60"})
    assert derived.steps[0].rounding == expected
    np.testing.assert_array_equal(schema.decode(derived.complete(schema.encode(X).matrix))["b"], X["b"])


def test_chain_of_thirty_four_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c0": rng.integers(0, 9, 50)})
    for k in range(1, 35):
        X[f"c{k}"] = X[f"c{k - 1}"] + k
    formulas = {f"c{k}": f"c{k - 1} + {k}" for k in rng.permutation(np.arange(1, 35))}
    derived, schema = read(X, formulas)
    rows = schema.encode(X).matrix
    rows[:, 1:] = -1.0
    np.testing.assert_array_equal(derived.complete(rows), schema.encode(X).matrix)


def test_undefined_values_are_missing():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, 1.0, 4.0, 2.0], "c": [0.5, 2.0, 0.75, 2.0]})
    derived, _ = read(X, {"c": "a / b"})
    rows = np.array([[1.0, 0.0, 3.0], [np.nan, 2.0, 3.0], [1.0, 4.0, 3.0]])
    np.testing.assert_array_equal(derived.complete(rows)[:, 2], [np.nan, np.nan, 0.25])


def test_wrong_row_is_told_and_stays_as_it_is_until_an_input_changes():
    X = bank()
    X.loc[7, "dti"] = 0.99
    with pytest.warns(
        MCCEWarning, match=r"disagrees with 1 of 400 training rows: in row 7 .* but the column has 0\.99"
    ):
        derived, schema = read(X, {"dti": "(rent + instalment) / income"})
    factuals = schema.encode(X).matrix[[7, 7, 8]]
    rows = factuals.copy()
    rows[1, 0] += 100
    dti = schema.decode(derived.complete(rows, factuals))["dti"]
    assert dti[0] == 0.99
    assert dti[1] == round((X["rent"][7] + 100 + X["instalment"][7]) / X["income"][7], 2)
    assert dti[2] == X["dti"][8]


@pytest.mark.parametrize(
    ("formulas", "said"),
    [
        ({"dti": "3"}, "the formula of 'dti' reads no column"),
        (
            {"dti": "debt / incme"},
            "formula of 'dti' 'debt / incme', at character 8: 'incme' is not a column; did you mean",
        ),
        ({"dti": "was(debt) / income"}, "it reads the factual (was), which only rules can"),
        ({"dti": "debt > 3"}, "cannot be used as a number"),
        ({"dti": "hired"}, "'hired' (dates) cannot be used as a number"),
        ({"band": "income"}, "'income' (numbers) cannot be a level of 'band'"),
        ({"band": "'mid' if income > 3 else 'low'"}, "'mid' is not a level of 'band'"),
        ({"dti": lambda X: 3}, "returned shape () for"),
        ({"dti": lambda X: X["band"]}, "are not numbers"),
        ({"dti": lambda X: np.arange(len(X))}, "the formula of 'dti' reads no column"),
    ],
)
def test_messages(formulas, said):
    with pytest.raises(InputError) as caught:
        read(bank(), formulas)
    assert said in str(caught.value)
