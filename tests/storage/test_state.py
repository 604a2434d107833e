from __future__ import annotations

import datetime
import decimal
import zoneinfo
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import InputError, Interval
from mcce.storage.state import NOT_STATE, from_state, register, stateful, to_state
from mcce.testing.samplers import through_json
from tests.marks import examples


@stateful("tests.Pair")
@dataclass(frozen=True)
class Pair:
    first: object
    second: object
    scratch: object = field(default=None, compare=False, metadata=NOT_STATE)


def same(a, b):
    """Return whether two values have equal type, bits and shape, recursively."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return all(map(same, a.ravel().tolist(), b.ravel().tolist()))
        return a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if isinstance(a, Pair):
        return same((a.first, a.second), (b.first, b.second))
    if isinstance(a, pd.Index):
        return a.dtype == b.dtype and same(a.name, b.name) and same(list(a), list(b))
    return repr(a) == repr(b)


def is_plain(value):
    if isinstance(value, dict):
        return all(type(key) is str for key in value) and all(map(is_plain, value.values()))
    if isinstance(value, list):
        return all(map(is_plain, value))
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    return type(value) in (str, int, float, bool, type(None))


def through_a_file(value):
    return from_state(through_json(to_state(value)))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.decimals(),
    st.sampled_from([pd.NA, pd.NaT, np.float32(0.1), np.int8(3), np.True_, np.str_("a"), np.datetime64("2020-01-01")]),
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)).map(pd.Timestamp),
    st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2020, 1, 1)).map(
        lambda t: pd.Timestamp(t, tz="UTC").tz_convert("Europe/Oslo")
    ),
    st.timedeltas(datetime.timedelta(-9999), datetime.timedelta(9999)).map(pd.Timedelta),
    st.integers(-500, 5000).map(lambda month: pd.Period(ordinal=month, freq="M")),
    st.tuples(st.integers(0, 9), st.integers(10, 99), st.sampled_from(["left", "right", "both"])).map(
        lambda parts: pd.Interval(*parts)
    ),
)
HASHABLES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
ARRAYS = st.one_of(
    st.lists(st.floats(), max_size=5).map(np.array),
    st.lists(st.integers(-5, 5), min_size=2, max_size=2).map(lambda items: np.array([items, items], dtype=np.int8)),
    st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=3), max_size=4).map(
        lambda items: np.array(items, dtype="U3")
    ),
    st.just(np.array(["2020-01-01", "NaT"], dtype="M8[D]")),
)


def containers(inner):
    keys = st.one_of(st.text(max_size=5), st.just("type"), st.sampled_from(["a.b", "a", "items", "name"]))
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(st.integers(), inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.lists(inner, max_size=3).map(objects),
    )


def objects(items):
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array


@examples(50)
@given(st.recursive(st.one_of(HASHABLES, ARRAYS), containers, max_leaves=12))
def test_nested_values_round_trip(value):
    state = to_state(value)
    assert is_plain(state)
    assert same(from_state(state), value)
    assert same(through_a_file(value), value)


def test_arrays_are_not_copied():
    one, two = np.arange(3), np.arange(4.0)
    back = from_state(to_state({"a": one, "b": {"c": (two,)}}))
    assert back["a"] is one
    assert back["b"]["c"][0] is two


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["a", "b"], dtype=object),
        pd.Index(["a", "b"], name="levels"),
        pd.Index([True, False]),
        pd.Index([True, False], dtype=object),
        pd.Index([1, "one", 1.5, None, ("a", 1)], dtype=object, tupleize_cols=False),
        pd.Index([("a", 1), ("b", 2)], dtype=object, tupleize_cols=False),
        pd.Index([1, 2], dtype="Int64"),
        pd.Index([1, 2], dtype="int16"),
        pd.Index([0.5, np.nan], dtype="float32"),
        pd.Index(["a"], dtype="string"),
        pd.RangeIndex(3, 9, 2, name="r"),
        pd.date_range("2020-01-31", periods=3, freq="ME", tz="Europe/Oslo"),
        pd.DatetimeIndex(["2020-01-01", "1999-12-31", None], dtype="M8[s]"),
        pd.to_timedelta([5, 1], unit="h"),
        pd.period_range("2020Q1", periods=3, freq="Q"),
        pd.cut([1.0, 2.0, 3.0], 2).categories,
        pd.interval_range(pd.Timestamp("2020-01-01"), periods=2, closed="left"),
        pd.Index([datetime.date(2020, 1, 1), decimal.Decimal("0.10")], dtype=object),
    ],
    ids=repr,
)
def test_levels_round_trip_with_their_dtype(index):
    for back in (from_state(to_state(index)), through_a_file(index)):
        assert same(back, index)
        assert getattr(back, "freqstr", None) == getattr(index, "freqstr", None)


@pytest.mark.parametrize(
    "dtype",
    [
        *("int8", "float32", "bool", "object", "M8[us]", "m8[ns]", "U5", ">f8"),
        *("Int64", "boolean", "Float32", "string", "string[pyarrow]", "period[M]", "interval[int64, right]"),
        *("datetime64[us, Europe/Oslo]", "int64[pyarrow]", "timestamp[ns][pyarrow]"),
        pd.SparseDtype("int64", 7),
        pd.SparseDtype("float64"),
        pd.CategoricalDtype([3, 1, 2], ordered=True),
        pd.CategoricalDtype(["b", "a"]),
    ],
    ids=str,
)
def test_dtypes_round_trip(dtype):
    dtype = pd.api.types.pandas_dtype(dtype)
    back = through_a_file(dtype)
    assert type(back) is type(dtype)
    assert back == dtype
    assert repr(back) == repr(dtype)


@pytest.mark.parametrize(
    "interval", [Interval(0, 0.1, closed="left", of="default"), Interval(0.5, np.inf), Interval(-1, 1, of=("a", 1))]
)
def test_interval_round_trips(interval):
    assert through_a_file(interval) == interval


def test_marked_values_are_not_stored():
    state = to_state(Pair(1, 2, scratch=object()))
    assert state == {"type": "tests.Pair", "first": 1, "second": 2}
    assert from_state(state).scratch is None


class Label:
    def __repr__(self):
        return "Label()"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            [{"a": Label()}],
            r"the object\[0\]\['a'\] is Label\(\) \(a tests.storage.test_state.Label\), which cannot be written",
        ),
        (Pair(1, (2, {1})), r"the object.second\[1\] is \{1\} \(a builtins.set\), which cannot be written"),
        (objects([lambda: 1]), r"the object\[0\] is <function .*\(a builtins.function\), which cannot be written"),
        (Interval(0, 1, of=Label()), r"the object.of is Label\(\)"),
        (datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Oslo")), "would come back from its state as"),
        (np.zeros(2, dtype=[("a", "f8"), ("b", "O")]), r"\(a numpy.ndarray\), which cannot be written"),
        (np.ma.masked_array([1, 2], [True, False]), r"MaskedArray\), which cannot be written"),
        (pd.arrays.SparseArray([1, 2]), r"SparseArray\), which cannot be written"),
        (np.dtype([("a", "f8")]), "a dtype that cannot be written as text"),
    ],
)
def test_unstorable_values_raise_with_their_path(value, message):
    with pytest.raises(InputError, match=message):
        to_state(value)


def test_state_names_only_registered_types():
    with pytest.raises(InputError, match=r"an object of the type 'os.system', which is not registered"):
        from_state({"type": "os.system", "command": "true"})
    with pytest.raises(InputError, match=r"did you mean 'tests.Pair'"):
        from_state([{"type": "tests.pair", "first": 1, "second": 2}])


def test_duplicate_name_raises():
    register("tests.Pair", Pair, lambda pair: {"first": pair.first, "second": pair.second}, lambda read: Pair(**read))
    for name, owner in (("tests.Pair", r"tests.storage.test_state.Pair"), ("tuple", "a plain type")):
        with pytest.raises(InputError, match=f"the state name '{name}' is taken by {owner}; choose another"):
            register(name, Label, vars, lambda read: Label())
    with pytest.raises(InputError, match="Label is not a dataclass; name the fields"):
        stateful("tests.Label")(Label)
