"""Schema and table: every dtype comes back exactly, and a table that does not fit is refused."""

from __future__ import annotations

import datetime
import decimal
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from mcce.exceptions import InputError
from mcce.table import Column, Schema
from tests.table.columns import DAYS, encoded, one

pa = pytest.importorskip("pyarrow")


def round_trip(frame, kinds=None):
    schema = Schema.from_data(frame, kinds)
    return schema.decode(schema.encode(frame).matrix, frame.index)


def assert_same(back, frame):
    assert_frame_equal(back, frame, check_exact=True, check_column_type=True)
    assert list(back.dtypes) == list(frame.dtypes)


# ------------------------------------------------------------------ round trips

TIMES = ["2020-01-01T10:00:01", "1969-05-05T00:00:00", "2031-12-31T23:59:59"]
UNITS = ["s", "ms", "us", "ns"]
EXACT = 2**53 - 1


def limits(name):
    info = np.iinfo(name)
    return [max(info.min, -EXACT), min(info.max, EXACT), 0, 7]


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]

COMPLETE = (
    {name: pd.Series(limits(name), dtype=name) for name in INTEGERS}
    | {
        name.title().replace("Uint", "UInt"): pd.Series(limits(name), dtype=name.title().replace("Uint", "UInt"))
        for name in INTEGERS
    }
    | {f"{name}[pyarrow]": pd.Series(limits(name), dtype=f"{name}[pyarrow]") for name in INTEGERS}
    | {name: pd.Series([0.1, -2.5, 0.0, 3e4], dtype=name) for name in ("float16", "float32", "float64")}
    | {name: pd.Series([0.1, -2.5e-300, 1.7e308], dtype=name) for name in ("Float64", "double[pyarrow]")}
    | {name: pd.Series([0.1, -2.5], dtype=name) for name in ("Float32", "float[pyarrow]")}
    | {name: pd.Series([True, False, True], dtype=name) for name in ("bool", "boolean", "bool[pyarrow]")}
    | {
        name: pd.Series(["b", "a", "", "b"], dtype=name)
        for name in ("object", "str", "string", "string[python]", "string[pyarrow]", "category")
    }
    | {f"datetime64[{u}]": pd.Series(np.array(TIMES, dtype=f"M8[{u}]")) for u in UNITS}
    | {
        f"datetime64[{u}, Oslo]": pd.Series(pd.DatetimeIndex(np.array(TIMES, dtype=f"M8[{u}]"), tz="Europe/Oslo"))
        for u in UNITS
    }
    | {f"timedelta64[{u}]": pd.Series(np.array([1, -500, 86_400], dtype=f"m8[{u}]")) for u in UNITS}
    | {
        f"arrow timestamp {u}": pd.Series(np.array(TIMES, dtype=f"M8[{u}]")).astype(pd.ArrowDtype(pa.timestamp(u)))
        for u in UNITS
    }
    | {
        f"arrow duration {u}": pd.Series(np.array([1, -500], dtype=f"m8[{u}]")).astype(pd.ArrowDtype(pa.duration(u)))
        for u in UNITS
    }
    | {f"period {f}": pd.Series(pd.PeriodIndex(TIMES, freq=f)) for f in ("Y", "Q", "M", "W", "D", "h", "s")}
    | {
        "arrow timestamp UTC": pd.Series(pd.to_datetime(TIMES, utc=True)).astype(
            pd.ArrowDtype(pa.timestamp("us", "UTC"))
        ),
        "arrow date32": pd.Series(DAYS, dtype=pd.ArrowDtype(pa.date32())),
        "arrow date64": pd.Series(DAYS, dtype=pd.ArrowDtype(pa.date64())),
        "object numbers and strings": pd.Series(["1", 1, 2.5, ("a", 1)], dtype=object),
        "object tuples": pd.Series([(1, 2), (3, 4), (1, 2)], dtype=object),
        "object booleans": pd.Series([True, False, True], dtype=object),
        "object integers": pd.Series([3, 1, 2**70], dtype=object),
        "object dates": pd.Series(DAYS, dtype=object),
        "object decimals": pd.Series([decimal.Decimal("0.10"), decimal.Decimal("2")], dtype=object),
        "category ordered": pd.Series(pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True)),
        "category unobserved": pd.Series(pd.Categorical(["b", "a"], ["z", "b", "a", "y"])),
        "category integers": pd.Series(pd.Categorical([3, 1, 3], [5, 3, 1])),
        "category floats": pd.Series(pd.Categorical([0.5, 0.25])),
        "category booleans": pd.Series(pd.Categorical([True, False])),
        "category dates": pd.Series(pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01"]))),
        "category intervals": pd.cut(pd.Series([1, 5, 9]), [0, 3, 6, 10]),
        "sparse integers": pd.Series(pd.arrays.SparseArray([0, 0, 5])),
        "sparse floats": pd.Series(pd.arrays.SparseArray([0.0, 1.5, 0.0], fill_value=0.0)),
        "sparse booleans": pd.Series(pd.arrays.SparseArray([True, False, False])),
        "object tuples of several lengths": pd.Series([(1, 2), (3,), (1, 2)], dtype=object),
        "object pairs": pd.Series([(1, 2), (3, 4), (1, 2)], dtype=object),
        "negative zero": pd.Series([-0.0, 0.0, 1.0]),
        "float extremes": pd.Series([5e-324, np.finfo(float).max, -np.finfo(float).max, 2.0**60]),
        "odd nanoseconds over years": pd.Series(
            np.array(["2001-01-01T00:00:00.000000001", "2021-01-01"], dtype="M8[ns]")
        ),
        "multiples of an odd month": pd.Series(np.arange(700) * np.timedelta64(2_600_000_000_000_003, "ns")),
    }
)

HOLDS_NO_MISSING = (*INTEGERS, "bool", "sparse integers", "sparse booleans", "category dates")
MISSING = {name: s for name, s in COMPLETE.items() if name not in HOLDS_NO_MISSING}


@pytest.mark.parametrize("name", COMPLETE)
def test_every_dtype_comes_back_exactly(name):
    frame = one(COMPLETE[name])
    back = round_trip(frame)
    assert_same(back, frame)
    if frame["c"].dtype == object:
        assert [type(v) for v in back["c"]] == [type(v) for v in frame["c"]]
    if name == "negative zero":
        assert np.array_equal(np.signbit(back["c"]), np.signbit(frame["c"]))


@pytest.mark.parametrize("name", MISSING)
def test_every_dtype_comes_back_exactly_with_missing_values(name):
    full = MISSING[name]
    some = full.reindex([0, -1, *full.index[1:], -2]).reset_index(drop=True)
    assert some.dtype == full.dtype
    assert some.isna().sum() == 2
    assert_same(round_trip(one(some)), one(some))
    schema = Schema.from_data(one(some))
    assert schema.features[0].has_missing
    assert np.isnan(schema.encode(one(some)).matrix[:, 0]).sum() == 2


@pytest.mark.parametrize("name", [name for name in MISSING if not name.startswith("object")] + ["object dates"])
def test_a_column_without_any_value_comes_back(name):
    empty = MISSING[name].reindex([-1, -2]).reset_index(drop=True)
    back = round_trip(one(empty))
    assert_same(back, one(empty))


@pytest.mark.parametrize("sentinel", [None, np.nan, pd.NA], ids=["None", "nan", "NA"])
def test_missing_is_written_as_the_training_column_writes_it(sentinel):
    frame = one(["b", sentinel, "a"], object)
    back = round_trip(frame)
    assert_same(back, frame)
    assert back["c"][1] is sentinel


@pytest.mark.parametrize("name", [n for n in COMPLETE if not n.startswith(("object", "category", "sparse"))])
def test_any_column_can_be_made_categorical(name):
    frame = one(COMPLETE[name])
    assert_same(round_trip(frame, {"c": "categorical"}), frame)
    if name in MISSING:
        frame = one(COMPLETE[name].reindex([0, 1, -1]).reset_index(drop=True))
        assert_same(round_trip(frame, {"c": "categorical"}), frame)


def test_integers_beyond_2_to_53_are_exact_as_levels():
    frame = one([2**60 + 1, 2**60, -(2**63)])
    assert_same(round_trip(frame, {"c": "categorical"}), frame)
    frame = one([2**64 - 1, 2**64 - 2], "uint64")
    assert_same(round_trip(frame, {"c": "categorical"}), frame)


COLUMNS = {
    "int8": st.integers(-128, 127),
    "int64": st.integers(-EXACT, EXACT),
    "UInt32": st.none() | st.integers(0, 2**32 - 1),
    "Int64": st.none() | st.integers(-EXACT, EXACT),
    "float32": st.floats(width=32, allow_infinity=False),
    "float64": st.floats(allow_infinity=False),
    "bool": st.booleans(),
    "boolean": st.none() | st.booleans(),
    "str": st.none() | st.text(st.characters(codec="utf-8"), max_size=3),
    "object": st.none() | st.text(st.characters(codec="utf-8"), max_size=3) | st.integers(2, 5) | st.booleans(),
    "category": st.none() | st.sampled_from(["lo", "mid", "hi"]),
    "datetime64[s]": st.none() | st.datetimes(datetime.datetime(1500, 1, 1), datetime.datetime(2500, 1, 1)),
    "datetime64[us]": st.none() | st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)),
    "timedelta64[ms]": st.none() | st.timedeltas(datetime.timedelta(-999), datetime.timedelta(999)),
}


@st.composite
def frames(draw):
    chosen = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6))
    n = draw(st.integers(1, 8))
    columns = {}
    for j, dtype in enumerate(chosen):
        values = draw(st.lists(COLUMNS[dtype], min_size=n, max_size=n))
        if dtype.endswith("]"):
            values = np.array(values, dtype)  # a list of dates may pass through nanoseconds, where 1500 has no place
        columns[f"{dtype}/{j}"] = pd.Series(values, dtype=dtype)
    index = draw(st.permutations(range(n)))
    return pd.DataFrame(columns).set_axis(pd.Index(index, name="id"))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(frame=frames())
def test_random_frames_come_back_exactly(frame):
    assert_same(round_trip(frame), frame)


# ------------------------------------------------------------------ numpy arrays


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8", "bool", "<U5", "M8[D]", "M8[s]"])
def test_an_array_comes_back_as_an_array_of_its_dtype(dtype):
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    schema = Schema.from_data(X)
    assert schema.names == ["x0", "x1"]
    back = schema.decode_for_model(schema.encode(X).matrix)
    assert isinstance(back, np.ndarray)
    assert back.dtype == X.dtype
    assert np.array_equal(back, X)
    assert list(schema.decode(schema.encode(X).matrix).columns) == ["x0", "x1"]


def test_the_columns_of_an_object_array_have_their_own_kinds():
    X = np.array([[1, "a", True, 0.5], [2, "b", False, None]], dtype=object)
    schema = Schema.from_data(X)
    assert list(schema.kinds.values()) == ["numeric", "categorical", "categorical", "numeric"]
    back = schema.decode_for_model(schema.encode(X[:1]).matrix)
    assert back.dtype == object
    assert back.tolist() == X[:1].tolist()


def test_an_array_and_a_frame_with_its_names_are_the_same_table():
    X = np.arange(6.0).reshape(3, 2)
    schema = Schema.from_data(X)
    frame = pd.DataFrame(X[:, ::-1], columns=["x1", "x0"])
    assert np.array_equal(schema.encode(frame).matrix, X)
    with pytest.raises(InputError, match=r"X has the column\(s\) 'x2', unknown to the training data"):
        schema.encode(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"X lacks the column\(s\) 'x1' of the training data"):
        schema.encode(np.ones((2, 1)))


# ------------------------------------------------------------------ kinds


def test_kinds():
    frame = pd.DataFrame(
        {
            "number": [1.5, 2.0],
            "count": [1, 2],
            "text": ["a", "b"],
            "yes": [True, False],
            "grade": pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True),
            "colour": pd.Categorical(["red", "blue"]),
            "day": pd.to_datetime(["2020-01-01", "2020-01-03"]),
        }
    )
    schema = Schema.from_data(frame)
    numeric, categorical = "numeric", "categorical"
    assert list(schema.kinds.values()) == [
        numeric, numeric, categorical, categorical, "ordered", categorical, numeric,
    ]  # fmt: skip
    assert [f.n_levels for f in schema.features] == [0, 0, 2, 2, 3, 2, 0]
    assert [f.is_numeric for f in schema.features] == [True, True, False, False, False, False, True]
    assert [f.span for f in schema.features] == [0.5, 1, 1, 1, 2, 1, 1]
    assert schema.encode(frame).matrix.tolist() == [[1.5, 1, 0, 1, 0, 1, 0], [2.0, 2, 1, 0, 2, 0, 1]]
    assert repr(schema).splitlines()[5] == "  grade: ordered (3 levels)"
    assert len(schema) == 7


def test_overridden_kinds():
    frame = pd.DataFrame({"n": [7, 3, 5], "g": pd.Categorical(["b", "a", "b"], ["b", "a"], ordered=True)})
    schema = Schema.from_data(frame, {"n": "ordered", "g": "categorical"})
    assert schema.kinds == {"n": "ordered", "g": "categorical"}
    assert list(schema.features[0].levels) == [3, 5, 7]
    assert schema.encode(frame).matrix.tolist() == [[2, 0], [0, 1], [1, 0]]
    assert_same(schema.decode(schema.encode(frame).matrix), frame)


def test_a_boolean_has_two_levels_even_if_one_is_seen():
    assert Schema.from_data(one([True, True])).features[0].n_levels == 2
    assert encoded([True, True], [False, True]).tolist() == [0, 1]


def test_levels_are_sorted_or_in_order_of_appearance_when_they_cannot_be():
    assert list(Schema.from_data(one(["b", "c", "a"])).features[0].levels) == ["a", "b", "c"]
    assert list(Schema.from_data(one(["b", 2, "a"], object)).features[0].levels) == ["b", 2, "a"]


@pytest.mark.parametrize(
    ("kinds", "match"),
    [
        ({"agee": "numeric"}, "kinds names 'agee', which is not a column of X; did you mean 'age'"),
        ({"age": "number"}, r"kinds\['age'\] is 'number'; allowed: 'numeric', 'categorical', 'ordered'"),
        ({"job": "numeric"}, "column 'job' of X has dtype (str|object) and cannot be numeric"),
        ({"yes": "numeric"}, "column 'yes' of X has dtype bool and cannot be numeric"),
        ({"job": "ordered"}, r"kinds\['job'\] is 'ordered', but dtype (str|object) has no order"),
        ({"yes": "ordered"}, r"kinds\['yes'\] is 'ordered', but dtype bool has no order"),
        ({"colour": "ordered"}, r"kinds\['colour'\] is 'ordered', but dtype category has no order"),
    ],
)
def test_bad_kinds(kinds, match):
    frame = pd.DataFrame({"age": [1, 2], "job": pd.Series(["a", "b"], dtype="str"), "yes": [True, False]})
    frame["colour"] = pd.Categorical(["red", "blue"])
    with pytest.raises(InputError, match=match):
        Schema.from_data(frame, kinds)


# ------------------------------------------------------------------ columns


def test_columns_are_found_by_name():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]})
    schema = Schema.from_data(frame)
    table = schema.encode(frame[["c", "a", "b"]])
    assert np.array_equal(table.matrix, schema.encode(frame).matrix)
    assert_same(schema.decode(table.matrix), frame)


def test_the_model_sees_the_training_frame():
    frame = pd.DataFrame(
        {"a": np.array([1, 2], "uint8"), 5: ["x", "y"], "g": pd.Categorical(["u", "v"], ["w", "v", "u"])}
    )
    schema = Schema.from_data(frame)
    new = pd.DataFrame({"g": ["v"], 5: pd.Categorical(["y"]), "a": [2.0]}, index=["someone"])
    seen = schema.decode_for_model(schema.encode(new).matrix)
    assert_same(seen, frame.iloc[[1]].reset_index(drop=True))


def test_labels_of_any_sort_come_back():
    for labels in (["a", "b"], [1, 0], [("a", 1), ("a", 2)], ["a", 3], [1.5, "z"]):
        frame = pd.DataFrame([[1, 2], [3, 4]])
        frame.columns = pd.Index(labels, tupleize_cols=False)
        assert_same(round_trip(frame), frame)


def test_no_rows_can_be_encoded_and_decoded():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "d": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    schema = Schema.from_data(frame)
    table = schema.encode(frame.iloc[:0])
    assert table.matrix.shape == (0, 3)
    assert_same(schema.decode(table.matrix), frame.iloc[:0].reset_index(drop=True))


def test_subset_and_position():
    schema = Schema.from_data(pd.DataFrame({"age": [1, 2], "job": ["x", "y"], "pay": [1.0, 2.0]}))
    assert schema.subset(["pay", "age"]).names == ["pay", "age"]
    assert schema.position("job") == 1
    with pytest.raises(InputError, match="fixed feature 'jobb' is not a column of X; did you mean 'job'"):
        schema.position("jobb", "fixed feature")


@pytest.mark.parametrize(
    ("X", "match"),
    [
        ([[1, 2]], "X is a list; give a pandas DataFrame or a two-dimensional numpy array"),
        (pd.Series([1, 2]), "X is a Series; give"),
        (np.arange(3), r"X is an array with 1 dimension\(s\); a table has two"),
        (np.zeros((2, 2, 2)), r"X is an array with 3 dimension\(s\)"),
        (pd.DataFrame({"a": []}), "X has 0 rows and 1 columns; it needs at least one of each"),
        (pd.DataFrame(index=[1, 2]), "X has 2 rows and 0 columns"),
        (np.empty((3, 0)), "X has 3 rows and 0 columns"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"column label\(s\) 'a' more than once; rename them"),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), "X has 2 levels of column"),
        (one([1 + 1j]), "column 'c' of X has dtype complex128, which is not supported; convert it"),
        (np.array([[1j]]), "column 'x0' of X has dtype complex128, which is not supported"),
        (one(np.array([0.1], dtype=np.longdouble)), r"column 'c' of X has dtype .*, which is not supported"),
        (one(pd.arrays.IntervalArray.from_breaks([0, 1])), r"'c' of X has dtype interval.* is not supported"),
        (one([[1], [2]]), "column 'c' of X holds values that cannot be levels: unhashable"),
        (one([1.0, np.inf, -np.inf]), r"column 'c' of X holds 2 infinite value\(s\), the first in row 1"),
        (one([2**53 + 1, 1]), r"'c' of X holds integers of 2\*\*53 or beyond.*kinds={'c': 'categorical'}"),
        (one([-(2**53) - 1, 1]), r"column 'c' of X holds integers of 2\*\*53 or beyond"),
        (one([2**53 + 1, None], "Int64"), r"column 'c' of X holds integers of 2\*\*53 or beyond"),
        (one([2**64 - 1], "uint64"), r"column 'c' of X holds integers of 2\*\*53 or beyond"),
        (
            one(np.array([0, 1, 2**62], dtype="M8[ns]")),
            "column 'c' of X spans more time than a float can count in its finest unit",
        ),
        (one(np.array(["1678-01-01", "2262-01-01"], dtype="M8[ns]")), "column 'c' of X spans more time"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read(X, match):
    with pytest.raises(InputError, match=match):
        Schema.from_data(X)


def test_tables_that_do_not_fit_the_schema():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    schema = Schema.from_data(frame)
    with pytest.raises(InputError, match=r"X lacks the column\(s\) 'b' of the training data; it has 'a'"):
        schema.encode(frame[["a"]])
    with pytest.raises(InputError, match=r"new has the column\(s\) 'c', unknown to the training data; drop them"):
        schema.encode(frame.assign(c=1), "new")
    with pytest.raises(InputError, match=r"X has the column label\(s\) 'b' more than once"):
        schema.encode(frame[["a", "b", "b"]])
    with pytest.raises(InputError, match=r"the level 'z' \(row 7\), unknown .*\(known: 'x', 'y'\)"):
        schema.encode(frame.assign(b="z").set_axis([7, 8]))
    flags = Schema.from_data(pd.DataFrame({"c": [True, False]}))
    for written, level in (("True", "'True'"), (2, "2")):
        with pytest.raises(InputError, match=rf"the level {level} \(row 0\), unknown .*\(known: False, True\)"):
            flags.encode(pd.DataFrame({"c": [written]}))
    with pytest.raises(InputError, match="X is a dict; give"):
        schema.encode({"a": [1], "b": ["x"]})


# ------------------------------------------------------------------ tables


@pytest.fixture
def table():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"], "c": [0.5, None, 1.5]})
    return Schema.from_data(frame).encode(frame)


def test_a_table_is_one_fortran_ordered_matrix(table):
    assert table.matrix.flags.f_contiguous
    assert table.matrix.dtype == np.float64
    assert table.n_rows == 3
    assert table.names == ["a", "b", "c"]


def test_columns_cut_from_a_table_know_where_they_stand(table):
    cut = table.select([2, 0]).first(1)
    assert cut.names == ["c"]
    assert cut.positions == (2,)
    assert cut.root is table
    np.testing.assert_array_equal(cut.matrix[:, 0], [0.5, np.nan, 1.5])
    assert np.shares_memory(table.first(2).matrix, table.matrix)
    column = table.column(1)
    assert isinstance(column, Column)
    assert column.feature.name == "b"
    assert column.values.tolist() == [0, 1, 0]


def test_rows_cut_from_a_table_are_a_table_of_their_own(table):
    for rows in (np.array([2, 0]), np.array([True, False, True])):
        cut = table.select([0, 1]).take(rows)
        assert cut.root is None
        assert cut.positions == (0, 1)
        assert sorted(cut.matrix[:, 0]) == [1, 3]
        assert cut.matrix.flags.f_contiguous


def test_shared_work_is_done_once_for_all_cuts_and_threads(table):
    asked = []

    def work(root):
        asked.append(root)
        return object()

    results = []
    cuts = [table, table.first(1), table.select([1]), table.select([1, 2]).first(1)]
    threads = [threading.Thread(target=lambda c=c: results.append(c.shared("work", work))) for c in cuts * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 1
    assert asked[0] is table
    assert len(set(map(id, results))) == 1
    assert table.take(np.array([0])).shared("work", work) is not results[0]
