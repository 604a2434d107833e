"""Every dtype round-trips exactly through a schema."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.exceptions import InputError
from mcce.table import Schema
from tests.marks import examples
from tests.table.columns import DAYS, one
from tests.table.round_trips import assert_same, round_trip

pa = pytest.importorskip("pyarrow")


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
def test_every_dtype_round_trips_exactly(name):
    frame = one(COMPLETE[name])
    back = round_trip(frame)
    assert_same(back, frame)
    if frame["c"].dtype == object:
        assert [type(v) for v in back["c"]] == [type(v) for v in frame["c"]]
    if name == "negative zero":
        assert np.array_equal(np.signbit(back["c"]), np.signbit(frame["c"]))


@pytest.mark.parametrize("name", MISSING)
def test_every_dtype_round_trips_exactly_with_missing_values(name):
    full = MISSING[name]
    some = full.reindex([0, -1, *full.index[1:], -2]).reset_index(drop=True)
    assert some.dtype == full.dtype
    assert some.isna().sum() == 2
    assert_same(round_trip(one(some)), one(some))
    schema = Schema.from_data(one(some))
    assert schema.features[0].has_missing
    assert np.isnan(schema.encode(one(some)).matrix[:, 0]).sum() == 2


@pytest.mark.parametrize("name", [name for name in MISSING if not name.startswith("object")] + ["object dates"])
def test_column_without_values_round_trips(name):
    empty = MISSING[name].reindex([-1, -2]).reset_index(drop=True)
    back = round_trip(one(empty))
    assert_same(back, one(empty))


@pytest.mark.parametrize("sentinel", [None, np.nan, pd.NA], ids=["None", "nan", "NA"])
def test_missing_is_written_like_in_the_training_column(sentinel):
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
            values = np.array(values, dtype)  # a list of dates may be converted to nanoseconds, too narrow for 1500
        columns[f"{dtype}/{j}"] = pd.Series(values, dtype=dtype)
    index = draw(st.permutations(range(n)))
    return pd.DataFrame(columns).set_axis(pd.Index(index, name="id"))


@examples(20, derandomize=True)
@given(frame=frames())
def test_random_frames_round_trip_exactly(frame):
    assert_same(round_trip(frame), frame)


# ------------------------------------------------------------------ numpy arrays


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8", "bool", "<U5", "M8[D]", "M8[s]"])
def test_array_round_trips_with_its_dtype(dtype):
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    schema = Schema.from_data(X)
    assert schema.names == ["x0", "x1"]
    back = schema.decode_for_model(schema.encode(X).matrix)
    assert isinstance(back, np.ndarray)
    assert back.dtype == X.dtype
    assert np.array_equal(back, X)
    assert list(schema.decode(schema.encode(X).matrix).columns) == ["x0", "x1"]


def test_columns_of_an_object_array_have_individual_kinds():
    X = np.array([[1, "a", True, 0.5], [2, "b", False, None]], dtype=object)
    schema = Schema.from_data(X)
    assert list(schema.kinds.values()) == ["numeric", "categorical", "categorical", "numeric"]
    back = schema.decode_for_model(schema.encode(X[:1]).matrix)
    assert back.dtype == object
    assert back.tolist() == X[:1].tolist()


def test_array_and_frame_with_its_names_are_the_same_table():
    X = np.arange(6.0).reshape(3, 2)
    schema = Schema.from_data(X)
    frame = pd.DataFrame(X[:, ::-1], columns=["x1", "x0"])
    assert np.array_equal(schema.encode(frame).matrix, X)
    with pytest.raises(InputError, match=r"X has the column\(s\) 'x2', unknown to the training data"):
        schema.encode(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"X lacks the column\(s\) 'x1' of the training data"):
        schema.encode(np.ones((2, 1)))
