"""What bad tables raise: calls and the texts of their errors."""

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError
from mcce.table import Schema
from mcce.table.checks import check_fixed

FITTED = pd.DataFrame({"age": [36, 52], "job": ["clerk", "manager"], "pay": [1.5, 2.0], "size": np.float32([1, 2])})


def read(column, **kinds):
    return lambda: Schema.from_data(pd.DataFrame({"a": column}), kinds=kinds or None)


def encode(**columns):
    frame = FITTED.assign(**columns).set_axis(["r3", "r4"])
    return lambda: Schema.from_data(FITTED).encode(frame)


CALLS = [
    # tables
    (lambda: Schema.from_data(FITTED.iloc[:0]), "X has 0 rows and 4 columns; give at least one of each."),
    (lambda: Schema.from_data(pd.DataFrame(index=[1])), "X has 1 rows and 0 columns; give at least one of each."),
    (lambda: Schema.from_data(np.zeros(3)), "X is an array with 1 dimension; give a table with two, rows and columns."),
    (
        lambda: Schema.from_data([[1, 2]]),
        "X is a list, which is not a table; give a pandas DataFrame or a two-dimensional numpy array.",
    ),
    (
        lambda: Schema.from_data(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])),
        "X has the column name(s) 'a' more than once; rename them.",
    ),
    (
        lambda: Schema.from_data(pd.DataFrame([[1, 2]], columns=["a", np.nan])),
        "X has no name for column 1 (counted from 0): it is nan; name it.",
    ),
    (
        lambda: Schema.from_data(pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")]))),
        "X has 2 levels of column names; flatten them to one.",
    ),
    # training columns
    (
        read([1.0, np.inf]),
        "column 'a' of X holds 1 infinite value(s), the first in row 1; replace them by missing or by finite numbers.",
    ),
    (
        read([1.0, -np.inf], a="categorical"),
        "column 'a' of X holds 1 infinite value(s), the first in row 1; replace them by missing or by finite numbers.",
    ),
    (
        read([1, 2**53]),
        "column 'a' of X holds integers of 2**53 or beyond, which floats cannot tell apart; drop it if it is an "
        "identifier, rescale it, or set kinds={'a': 'categorical'}.",
    ),
    (
        read([1j]),
        "column 'a' of X has dtype complex128, which is not supported; convert it to numbers, dates, strings or "
        "categories.",
    ),
    (
        read(np.array([1.0], dtype=">f8")),
        "column 'a' of X has dtype >f8, which is not supported; convert it to numbers, dates, strings or categories.",
    ),
    (
        read([[1], [2]]),
        "column 'a' of X holds values that cannot be levels, such as [1] (row 0); convert them to texts or numbers, or "
        "make a column of each part.",
    ),
    (
        read(pd.Series([1, True, "x"], dtype=object)),
        "column 'a' of X holds 1, True, which are equal and so one level; use one of them.",
    ),
    (
        read([str(k) for k in range(10_001)]),
        "column 'a' of X has 10,001 levels in 10,001 rows; more than 10,000 levels need two rows each on average. Drop "
        "the column, or merge rare levels.",
    ),
    (
        read(["x"], a="numeric"),
        "column 'a' of X has dtype str and cannot be numeric; convert it first, or leave it categorical.",
    ),
    (
        read(["x"], a="ordered"),
        "kinds['a'] is 'ordered', but column 'a' of X has dtype str, without an order; make it an ordered category of "
        "pandas.",
    ),
    (read([1], a="number"), "kinds['a'] is 'number'; give one of 'numeric', 'ordered', 'categorical'."),
    (read([1], b="numeric"), "kinds names 'b', which is not a column of X; known: 'a'"),
    (
        lambda: Schema.from_data(FITTED, kinds=["age"]),
        "kinds is ['age']; give kinds by column, for example kinds={'age': 'numeric'}.",
    ),
    (
        read(np.array(["1700-01-01", "2200-01-01T00:00:00.000000001"], dtype="M8[ns]")),
        "column 'a' of X spans more time than a float can count in its finest unit; round it, for example to "
        "microseconds, or use a coarser dtype.",
    ),
    # rows to encode
    (
        encode(job=["clerk", "pilot"]),
        "column 'job' of X holds the level 'pilot' (row 'r4'), unknown to the fitted table (known: 'clerk', "
        "'manager'). Refit with it, or drop the row.",
    ),
    (encode(age=["x", "y"]), "column 'age' of X has dtype str, but it was fitted as numbers; convert it."),
    (
        encode(age=[1.0, 1.5]),
        "column 'age' of X holds 1.5 (row 'r4'), which the fitted table's dtype int64 cannot hold exactly; convert it, "
        "or refit with a wider dtype.",
    ),
    (
        encode(age=[1.0, np.nan]),
        "column 'age' of X has a missing value (row 'r4'), which the fitted table's dtype int64 cannot hold; fill it, "
        "or refit with a dtype that can be missing (float64, Int64, boolean).",
    ),
    (
        encode(size=[0.1, 1.0]),
        "column 'size' of X holds 0.1 (row 'r3'), which the fitted table's dtype float32 cannot hold exactly; convert "
        "it, or refit with a wider dtype.",
    ),
    (
        lambda: Schema.from_data(FITTED).encode(FITTED.drop(columns="job"), "given"),
        "given lacks the column(s) 'job' of the fitted table; it has 'age', 'pay', 'size'.",
    ),
    (
        encode(extra=1),
        "X has the column(s) 'extra', unknown to the fitted table; drop them, or refit with them.",
    ),
    (
        lambda: Schema.from_data(FITTED).decode(np.full((1, 4), np.nan)),
        "column 'age' has a missing value, which the fitted table's dtype int64 cannot hold; refit with a dtype that "
        "can be missing (float64, Int64, boolean).",
    ),
    # names
    (
        lambda: Schema.from_data(FITTED).position("agee", "fixed feature"),
        "fixed feature 'agee' is not a column of X; did you mean 'age'?",
    ),
    (
        lambda: Schema.from_data(FITTED).arrange(["age", "age", "job", "pay"]),
        "names are 'age', 'age', 'job', 'pay'; give each of 'age', 'job', 'pay', 'size' once.",
    ),
    (lambda: check_fixed(["z"], ["age", 3]), "fixed names 'z', which is not a column of X; known: 'age', 3"),
    (lambda: check_fixed(["age", "age"], ["age"]), "fixed names 'age' more than once; name each feature once."),
]


@pytest.mark.parametrize(("call", "text"), CALLS, ids=[text[:40] for _, text in CALLS])
def test_message(call, text):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == text


def test_frames_of_other_libraries():
    pl = pytest.importorskip("polars")
    with pytest.raises(InputError, match=r"X is a LazyFrame, which is not computed; give X.collect\(\)"):
        Schema.from_data(pl.LazyFrame({"a": [1]}))
    with pytest.raises(InputError, match="column 'a' of X holds both null and NaN; use one of them for missing"):
        Schema.from_data(pl.DataFrame({"a": [1.0, None, float("nan")]}))
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match=r"X has the column name\(s\) 'a' more than once; rename them."):
        Schema.from_data(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))


def test_names_are_never_interpreted():
    names = ["*", "a'b", 'a"b', "a\nb", "{x}", "", 3, ("u", 1)]
    frame = pd.DataFrame([list("abcdefgh"), list("hgfedcba")], columns=pd.Index(names, tupleize_cols=False))
    schema = Schema.from_data(frame)
    assert schema.decode(schema.encode(frame).matrix).equals(frame)
    for name in names:
        row = frame.iloc[:1].copy()
        row.isetitem(names.index(name), ["?"])
        with pytest.raises(InputError) as error:
            schema.encode(row)
        assert str(error.value).startswith(f"column {name!r} of X holds the level '?' (row 0), unknown")
