"""How counterfactuals keep relations: solved columns and checked rows, against pandas."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.distances import changed
from mcce.exceptions import InputError, MCCEWarning
from mcce.plausibility.relations import Relations
from mcce.table import Schema


def shop(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "price": rng.integers(100, 9000, n) / 100,
            "count": rng.integers(1, 9, n),
            "fee": rng.integers(0, 500, n) / 100,
            "months": rng.choice([12, 24, 36, 48], n),
            "start": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "days": rng.integers(1, 60, n),
            "kind": rng.choice(["book", "food", "toy"], n),
        }
    )
    X["cost"] = (X["price"] * X["count"]).round(2)
    X["total"] = (X["cost"] + X["fee"]).round(2)
    X["monthly"] = (X["total"] / X["months"]).round(2)
    X["end"] = X["start"] + pd.to_timedelta(X["days"], unit="D")
    X["code"] = X["kind"].map({"book": 3, "food": 7, "toy": 5})
    X["taxed"] = np.where(X["kind"] == "food", "no", "yes")
    X["sort"] = X["kind"]
    return X


TRUTH = {
    "cost == price * count": lambda X: (X["cost"] - X["price"] * X["count"]).abs() < 0.00501,
    "total == cost + fee": lambda X: (X["total"] - X["cost"] - X["fee"]).abs() < 0.00501,
    "monthly == total / months": lambda X: (X["monthly"] - X["total"] / X["months"]).abs() < 0.00501,
    "end == start + days": lambda X: X["end"] == X["start"] + pd.to_timedelta(X["days"], unit="D"),
    "kind <-> code": lambda X: X["code"] == X["kind"].map({"book": 3, "food": 7, "toy": 5}),
    "kind -> taxed": lambda X: (X["kind"] == "food") == (X["taxed"] == "no"),
    "sort == kind": lambda X: X["sort"] == X["kind"],
    "fee <= total": lambda X: X["fee"] <= X["total"],
}
X = shop()
SCHEMA = Schema.from_data(X)
MATRIX = SCHEMA.encode(X).matrix
RELATIONS = Relations.read(TRUTH, SCHEMA, MATRIX)
FACTUALS = SCHEMA.encode(shop(seed=1)).matrix


def crossed(n_changes, seed):
    """Return the factuals with some cells of other rows."""
    rng = np.random.default_rng(seed)
    rows = FACTUALS.copy()
    for _ in range(n_changes):
        columns = rng.integers(0, rows.shape[1], len(rows))
        rows[np.arange(len(rows)), columns] = MATRIX[rng.integers(0, len(MATRIX), len(rows)), columns]
    return rows


def are_true(rows):
    decoded = SCHEMA.decode(rows)
    return {text: np.asarray(truth(decoded)) for text, truth in TRUTH.items()}


@given(st.integers(1, 4), st.integers(0, 1000))
def test_rows_hold_what_is_true_of_them(n_changes, seed):
    rows = crossed(n_changes, seed)
    for text, truth in are_true(rows).items():
        alone = Relations.read([text], SCHEMA, MATRIX)
        np.testing.assert_array_equal(alone.holds(rows, FACTUALS), truth, err_msg=text)
    np.testing.assert_array_equal(RELATIONS.holds(rows, FACTUALS), np.all([*are_true(rows).values()], axis=0))


@given(st.integers(1, 4), st.integers(0, 1000))
def test_completed_rows_keep_their_changes(n_changes, seed):
    rows = crossed(n_changes, seed)
    before = rows.copy()
    completed = RELATIONS.complete(rows, FACTUALS)
    np.testing.assert_array_equal(rows, before)
    drawn = changed(rows, FACTUALS)
    np.testing.assert_array_equal(completed[drawn], rows[drawn])
    untouched = RELATIONS.holds(rows, FACTUALS)
    np.testing.assert_array_equal(completed[untouched], rows[untouched])
    assert (RELATIONS.holds(completed, FACTUALS) >= untouched).all()


def test_most_single_changes_are_completed():
    rows = crossed(1, 5)
    column = changed(rows, FACTUALS)
    held = RELATIONS.holds(RELATIONS.complete(rows, FACTUALS), FACTUALS)
    shares = {name: held[column[:, j]].mean() for j, name in enumerate(X.columns)}
    for name in ("fee", "months", "start", "days", "kind", "code", "sort", "end"):
        assert shares[name] > 0.9, (name, shares)
    assert held.mean() > 0.8


def change(frame, **values):
    """Return one row after changes, completed, as a dict of the columns that differ."""
    factual = SCHEMA.encode(frame).matrix
    row = SCHEMA.encode(frame.assign(**values)).matrix
    completed = SCHEMA.decode(RELATIONS.complete(row, factual))
    assert RELATIONS.holds(SCHEMA.encode(completed).matrix, factual).all()
    return {name: completed[name][0] for name in frame.columns if completed[name][0] != frame[name].iloc[0]}


def test_last_unchanged_column_is_solved_and_chains_follow():
    one = X[(X["count"] == 2) & (X["months"] == 12)].head(1)
    price, fee = one["price"].iloc[0], one["fee"].iloc[0]
    found = change(one, count=3)
    cost = round(3 * price, 2)
    total = round(cost + fee, 2)
    assert found == {"count": 3, "cost": cost, "total": total, "monthly": round(total / 12, 2)}
    assert set(change(one, end=one["end"] + pd.Timedelta(days=1))) == {"end", "days"}
    assert change(one.assign(kind="toy", code=5, taxed="yes", sort="toy"), code=7) == {
        "kind": "food",
        "code": 7,
        "taxed": "no",
        "sort": "food",
    }


def test_fixed_and_derived_columns_are_not_solved():
    for options in ({"n_fixed": 3}, {"derived": [0, 1, 2]}):
        texts = ["cost == price * count", "price >= 0"]
        relations = Relations.read(texts, SCHEMA, MATRIX, **options)
        assert len(relations) == (1 if "n_fixed" in options else 2)
        rows = FACTUALS.copy()
        rows[:, 7] = MATRIX[:, 7]
        np.testing.assert_array_equal(relations.complete(rows, FACTUALS), rows)


def test_factual_that_breaks_a_relation_is_free_of_it():
    factual = FACTUALS[:1].copy()
    factual[0, 8] += 1.0  # total
    row = factual.copy()
    row[0, 2] += 1.0  # fee
    kept = RELATIONS.complete(row, factual)
    np.testing.assert_array_equal(kept, row)
    assert RELATIONS.holds(kept, factual).all()


def test_missing_values_keep_every_relation():
    factual = FACTUALS[:2].copy()
    rows = factual.copy()
    rows[:, 0] = np.nan
    np.testing.assert_array_equal(RELATIONS.complete(rows, factual), rows)
    assert RELATIONS.holds(rows, factual).all()
    rows[0, 0], factual[0, 0] = 20.5, np.nan  # a missing price becomes known, so the cost follows
    completed = RELATIONS.complete(rows, factual)
    assert completed[0, 7] == round(20.5 * rows[0, 1], 2)


def test_solutions_lie_in_the_training_range():
    rows, factuals = FACTUALS.copy(), FACTUALS
    rows[:, 9] = np.median(MATRIX[:, 9])  # monthly
    completed = RELATIONS.complete(rows, factuals)
    solved = changed(completed, rows)
    assert solved.any()
    low, high = (np.array([getattr(feature, end) for feature in SCHEMA.features]) for end in ("low", "high"))
    assert ((completed >= low) & (completed <= high))[solved].all()


def test_continuous_numbers_and_columns_inside_functions():
    rng = np.random.default_rng(0)
    Y = pd.DataFrame({"a": rng.lognormal(size=200), "b": rng.lognormal(size=200)})
    Y["c"] = Y["a"] / (3 * Y["b"])
    Y["d"] = Y["a"] + np.pi * Y["b"]
    schema = Schema.from_data(Y)
    rows = schema.encode(Y).matrix
    relations = Relations.read(["c == a / (3 * b)", "d == a + 3.141592653589793 * b"], schema, rows)
    assert relations.broken == (0, 0)
    moved = rows.copy()
    moved[:, 2] *= 1.01
    completed = relations.complete(moved, rows)
    held = relations.holds(completed, rows)
    assert held.mean() > 0.9
    np.testing.assert_allclose((completed[:, 0] / completed[:, 1] / 3)[held], moved[held, 2])


def test_dirty_rows_are_counted():
    Y = X.copy()
    Y.loc[[3, 5], "total"] += 1
    schema = Schema.from_data(Y)
    relations = Relations.read(["total == cost + fee", "fee <= total"], schema, schema.encode(Y).matrix)
    assert relations.broken == (2, 0)
    assert repr(relations) == "total == cost + fee  (broken by 2 training rows)\nfee <= total"
    assert list(relations) == list(relations.texts) == ["total == cost + fee", "fee <= total"]
    with pytest.warns(MCCEWarning, match="500 of 500 training rows break the relation 'total < fee'"):
        Relations.read(["total < fee"], SCHEMA, MATRIX)


def test_arrangement_decides_which_column_is_solved():
    schema = SCHEMA.arrange(sorted(X.columns))  # price is the last of cost, count and price
    factuals = schema.encode(X.head(9)).matrix
    rows = factuals.copy()
    rows[:, schema.position("cost")] = (
        factuals[:, schema.position("cost")] + 2.0 * factuals[:, schema.position("count")]
    )
    relations = Relations.read(["cost == price * count"], schema, schema.encode(X).matrix)
    completed = schema.decode(relations.complete(rows, factuals))
    np.testing.assert_allclose(completed["price"], X["price"].head(9) + 2)


@pytest.mark.parametrize(
    ("relations", "said"),
    [
        (["total = cost"], "relation 'total = cost', at character 7: '=' is not an operator; write '=='"),
        (["total == was(total)"], "it reads the factual (was), which only rules can"),
        (["1 < 2"], "reads no column"),
        ([3], "relations holds 3; give texts"),
        (3, "relations is 3; give a list of texts such as 'a <= b', () for none, or None to find them"),
    ],
)
def test_messages(relations, said):
    with pytest.raises(InputError) as caught:
        Relations.read(relations, SCHEMA, MATRIX)
    assert said in str(caught.value)
