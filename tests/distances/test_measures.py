"""Measures compared with hand calculation and a plain loop over the cells of the frames."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import InputError, Schema, gower_distance
from mcce.distances.measures import MEASURES, changes, scales
from tests.marks import examples

SIZES = ["small", "medium", "large", "huge"]
CITIES = ["Oslo", "Bergen", "Tromsø"]
TRAINING = pd.DataFrame(
    {
        "income": [10.0, 30.0, 20.0, np.nan],
        "size": pd.Categorical(["small", "large", None, "small"], categories=SIZES, ordered=True),
        "city": ["Oslo", "Bergen", None, "Tromsø"],
        "rate": [7, 7, 7, 7],
        "owner": [True, False, True, True],
        "date": pd.to_datetime(["2024-01-01", "2024-01-11", "2024-01-04", "2024-01-01"]),
    }
)
SCHEMA = Schema.from_data(TRAINING)


def rows(**columns) -> pd.DataFrame:
    """Rows like the first of the training table except for the columns given."""
    n = max(len(values) for values in columns.values())
    frame = pd.concat([TRAINING.iloc[[0]]] * n, ignore_index=True)
    for name, values in columns.items():
        frame[name] = pd.array(values, dtype=TRAINING[name].dtype)
    return frame


def is_missing(value) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def cell_by_cell(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """The measures by their definitions: one cell at a time, on decoded values."""
    found = []
    for i in range(len(a)):
        steps, raw = [], []
        for name in a.columns:
            x, y = (f[name].astype(object).iloc[i] for f in (a, b))
            if is_missing(x) or is_missing(y):
                steps.append(float(not (is_missing(x) and is_missing(y))))
                raw.append(steps[-1])
            elif name == "size":
                raw.append(abs(SIZES.index(x) - SIZES.index(y)))
                steps.append(raw[-1] / (len(SIZES) - 1))
            elif name in ("city", "owner"):
                raw.append(float(x != y))
                steps.append(raw[-1])
            else:
                span = TRAINING[name].max() - TRAINING[name].min()
                steps.append(abs(x - y) / span if span else float(x != y))
                raw.append(abs(x - y) / pd.Timedelta("1D") if name == "date" else abs(x - y))
        found.append(
            {
                "L0": sum(s != 0 for s in steps),
                "gower": sum(steps) / len(steps),
                "gower_sum": sum(steps),
                "l1_raw": sum(raw),
                "l2_raw": math.sqrt(sum(r * r for r in raw)),
            }
        )
    return pd.DataFrame(found)


def measured(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    rows, factuals = SCHEMA.encode(a).matrix, SCHEMA.encode(b).matrix
    names = ["L0", "gower", "gower_sum", "l1_raw", "l2_raw"]
    known = {"features": SCHEMA.features}
    return pd.DataFrame({name: MEASURES.find(name).make(known).between(rows, factuals) for name in names})


@pytest.mark.parametrize(
    ("column", "value", "gower_sum", "raw"),
    [
        ("income", 10.0, 0, 0),
        ("income", 25.0, 0.75, 15),
        ("income", 50.0, 2.0, 40),  # outside the training range
        ("income", np.nan, 1, 1),
        ("size", "medium", 1 / 3, 1),  # a level that no training row has still counts as a rank
        ("size", "huge", 1, 3),
        ("size", None, 1, 1),
        ("city", "Bergen", 1, 1),
        ("city", None, 1, 1),
        ("rate", 8, 1, 1),
        ("rate", 1000, 1, 993),
        ("owner", False, 1, 1),
        ("date", pd.Timestamp("2024-01-06"), 0.5, 5),
    ],
)
def test_one_changed_cell(column, value, gower_sum, raw):
    figures = measured(rows(**{column: [value]}), TRAINING.iloc[[0]]).iloc[0]
    assert figures["L0"] == (gower_sum > 0)
    assert figures["gower_sum"] == pytest.approx(gower_sum, rel=1e-15)
    assert figures["gower"] == pytest.approx(gower_sum / 6, rel=1e-15)
    assert figures["l1_raw"] == figures["l2_raw"] == raw


def test_missing_against_missing_is_not_a_change():
    row = rows(income=[np.nan], city=[None], size=[None])
    assert (measured(row, row.copy()) == 0).all(axis=None)


def test_changes_are_summed():
    row = rows(income=[20.0], size=["large"], city=["Bergen"])
    figures = measured(row, TRAINING.iloc[[0]]).iloc[0]
    assert figures["L0"] == 3
    assert figures["gower_sum"] == pytest.approx(0.5 + 2 / 3 + 1)
    assert figures["gower"] == pytest.approx((0.5 + 2 / 3 + 1) / 6)
    assert figures["l1_raw"] == 10 + 2 + 1
    assert figures["l2_raw"] == pytest.approx(math.sqrt(100 + 4 + 1))


def test_l0_is_exact_equality():
    training = pd.DataFrame({"x": [0.0, 1.0]})
    schema = Schema.from_data(training)
    a, b = np.array([[0.1 + 0.2], [0.3], [0.0]]), np.array([[0.3], [0.3], [-0.0]])
    assert changes(schema.features).between(a, b).tolist() == [1, 0, 0]


def test_scales_are_zero_where_any_change_counts_one():
    expected = [1 / 20, 1 / 3, 0, 0, 0, 1 / 10]
    np.testing.assert_allclose(scales(SCHEMA.features), expected)


def test_range_too_small_to_divide_by_counts_as_constant():
    training = pd.DataFrame({"x": [0.0, 1e-310], "y": [0.0, 4.0]})
    other = training.assign(y=[1.0, 1.0])
    assert scales(Schema.from_data(training).features).tolist() == [0, 0.25]
    assert gower_distance(other, training.iloc[[0]], training=training).tolist() == [0.125, 0.625]


def test_single_level_and_all_missing_columns():
    training = pd.DataFrame({"one": pd.Categorical(["a", "a"], ordered=True), "none": [np.nan, np.nan]})
    other = pd.DataFrame({"one": pd.Categorical(["a"], ordered=True), "none": [3.0]})
    assert gower_distance(other, training.iloc[[0]], training=training).tolist() == [0.5]
    assert gower_distance(training, training, training=training).tolist() == [0, 0]


cells = {
    "income": st.sampled_from([10.0, 30.0, 12.5, np.nan, -3.0]),
    "size": st.sampled_from([*SIZES, None]),
    "city": st.sampled_from([*CITIES, None]),
    "rate": st.sampled_from([7, 8]),
    "owner": st.booleans(),
    "date": st.sampled_from([pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-08"), pd.NaT]),
}
tables = st.integers(1, 6).flatmap(
    lambda n: st.fixed_dictionaries({k: st.lists(s, min_size=n, max_size=n) for k, s in cells.items()})
)


@examples(7)
@given(tables, st.randoms(use_true_random=False))
def test_measures_follow_their_definitions(columns, random):
    a = rows(**columns)
    b = a.apply(lambda c: c.iloc[random.sample(range(len(a)), len(a))].reset_index(drop=True))
    expected = cell_by_cell(a, b)
    found = measured(a, b)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-12, atol=1e-15)
    assert (found["L0"] == expected["L0"]).all()
    np.testing.assert_allclose(gower_distance(a, b, training=TRAINING), expected["gower"], rtol=1e-12)
    pd.testing.assert_frame_equal(measured(b, a), found)  # symmetric


def test_gower_distance_compares_one_row_with_all():
    one, many = TRAINING.iloc[[1]], TRAINING
    expected = cell_by_cell(many, pd.concat([one] * len(many), ignore_index=True))["gower"]
    for found in (gower_distance(many, one, training=SCHEMA), gower_distance(one, many, training=SCHEMA)):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_gower_distance_ignores_column_order_and_index():
    shuffled = TRAINING[TRAINING.columns[::-1]].set_index(pd.Index(list("wxyz")))
    assert gower_distance(TRAINING, shuffled, training=TRAINING).tolist() == [0, 0, 0, 0]


def test_gower_distance_of_arrays_and_of_no_rows():
    training = np.array([[0.0, 1.0], [10.0, 5.0]])
    np.testing.assert_allclose(gower_distance(training, training[::-1], training=training), [1, 1])
    assert gower_distance(training[:0], training[:1], training=training).shape == (0,)
    assert gower_distance(training[:0], training[:0], training=training).shape == (0,)


def test_gower_distance_rejects_tables_of_different_lengths():
    with pytest.raises(InputError, match="X has 4 rows and Y 2; give equally many, or one row on one side"):
        gower_distance(TRAINING, TRAINING.iloc[:2], training=TRAINING)


def test_gower_distance_rejects_other_columns_and_levels():
    with pytest.raises(InputError, match=r"Y lacks the column\(s\) 'city' of the training data"):
        gower_distance(TRAINING, TRAINING.drop(columns="city"), training=TRAINING)
    with pytest.raises(InputError, match="column 'city' of X holds the level 'Paris'"):
        gower_distance(rows(city=["Paris"]), TRAINING.iloc[[0]], training=TRAINING)
    with pytest.raises(InputError, match="training is a list"):
        gower_distance(TRAINING, TRAINING, training=[1, 2])
