"""One column: its kind, its levels, and its conversion to floats and back."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import InputError
from mcce.table.feature import read_feature


def read(values, kind=None, **options):
    return read_feature(pd.Series(values, name="c", **options), kind, "X")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "numeric"),
        ([1.5, np.nan], "numeric"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "numeric"),
        ([True, False], "categorical"),
        (["a", None], "categorical"),
        (pd.Categorical(["a", "b"]), "categorical"),
        (pd.Categorical(["a", "b"], ordered=True), "ordered"),
    ],
)
def test_kinds(values, kind):
    feature = read(values)
    assert feature.kind == kind
    assert feature.is_numeric == (kind == "numeric")
    assert (feature.levels is None) == feature.is_numeric


def test_levels_and_span():
    feature = read(["b", "a", None, "b"])
    assert feature.levels.tolist() == ["a", "b"]
    assert feature.n_levels == 2
    codes = feature.encode(pd.Series(["b", None, "a"], name="c"), "X")
    np.testing.assert_array_equal(codes, [1.0, np.nan, 0.0])
    ordered = read(pd.Categorical(["lo", "hi"], categories=["lo", "mid", "hi"], ordered=True))
    assert (ordered.n_levels, ordered.span) == (3, 2.0)
    assert read([3.0, -1.0, np.nan]).span == 4.0
    assert read([5, 5]).span == 0.0


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False, width=64)), min_size=1))
def test_floats_round_trip_exactly(values):
    column = pd.Series(values, dtype="float64", name="c")
    feature = read_feature(column, None, "X")
    back = pd.Series(feature.decode(feature.encode(column, "X")), name="c")
    pd.testing.assert_series_equal(back, column, check_exact=True)


@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1).filter(lambda values: any(values)))
def test_levels_round_trip(values):
    column = pd.Series(pd.Categorical(values, categories=["c", "a", "b"]), name="c")
    feature = read_feature(column, None, "X")
    back = pd.Series(feature.decode(feature.encode(column, "X")), name="c", dtype=feature.dtype)
    pd.testing.assert_series_equal(back, column)


@given(
    st.lists(st.integers(-5, 5), min_size=1),
    st.lists(st.integers(-7, 7)),
    st.sampled_from(["int64", "int8", "uint8", "uint64", "bool"]),
)
def test_integers_as_levels(train, new, dtype):
    """The code is the position among the sorted distinct values, and unknown values are named."""
    train, new = (pd.Series(np.abs(v) if dtype[0] == "u" else v, dtype="int64").astype(dtype) for v in (train, new))
    feature = read(train, "categorical", dtype=dtype)
    known = {False, True} if dtype == "bool" else set(train.tolist())  # a boolean column has both levels
    code_of = {value: code for code, value in enumerate(sorted(known))}
    assert feature.encode(train, "X").tolist() == [code_of[value] for value in train.tolist()]
    unknown = [value for value in new.tolist() if value not in code_of]
    if unknown:
        with pytest.raises(InputError, match=f"column 'c' of Y holds the level {unknown[0]} .*unknown here"):
            feature.encode(new, "Y")
    else:
        assert feature.encode(new, "Y").tolist() == [code_of[value] for value in new.tolist()]


def test_numbers_may_be_levels_in_order():
    feature = read([10, 2, 10], "ordered")
    assert feature.levels.tolist() == [2, 10]
    np.testing.assert_array_equal(feature.encode(pd.Series([2, 10], name="c"), "X"), [0.0, 1.0])


@pytest.mark.parametrize(
    ("train", "new", "message"),
    [
        (
            ["a", "b"],
            ["z"],
            r"column 'c' of new holds the level 'z' \(row 0\), unknown here \(known: 'a', 'b'\)",
        ),
        ([1.0, 2.0], [np.inf], r"column 'c' of new holds 1 infinite value\(s\), the first in row 0"),
        ([1.0, 2.0], ["x"], "column 'c' of new is numeric in the training data"),
        ([1, 2], [1.5], "column 'c' of new holds 1.5 in row 0, which the training data's int64 cannot hold"),
        (
            pd.to_datetime(["2020-01-01", "2020-01-03"]),
            [3.0],
            "column 'c' of new has dtype float64, which does not convert",
        ),
    ],
)
def test_invalid_values_are_named(train, new, message):
    feature = read(train)
    with pytest.raises(InputError, match=message):
        feature.encode(pd.Series(new, name="c"), "new")


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (["a", "b"], "numeric", "column 'c' of X has dtype .* and cannot be numeric; convert it first"),
        (
            ["a", "b"],
            "ordered",
            r"kinds\['c'\] is 'ordered', but dtype .* has no order; use an ordered pandas category",
        ),
        ([2**60, 1], None, r"column 'c' of X holds integers of 2\*\*53 or beyond, which cannot be compared exactly"),
        ([np.inf, 1.0], None, r"column 'c' of X holds 1 infinite value\(s\), the first in row 0"),
    ],
)
def test_unreadable_columns(values, kind, message):
    with pytest.raises(InputError, match=message):
        read(values, kind)


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}, {3}])
def test_new_cells_that_are_collections_are_named(cell):
    feature = read(["a", "b"])
    message = f"column 'c' of X holds .* unhashable type: '{type(cell).__name__}', as .* in row 1. Convert the column"
    with pytest.raises(InputError, match=message):
        feature.encode(pd.Series(["a", cell], name="c"), "X")
