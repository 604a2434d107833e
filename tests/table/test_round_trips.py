"""Frames of every kind of column are encoded without loss, in any arrangement of the columns."""

import datetime
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from mcce.exceptions import InputError
from mcce.table import Schema

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
names = st.one_of(texts, st.integers(-3, 3), st.tuples(texts, st.integers(0, 2)), st.sampled_from(["*", "a'b", "a\nb"]))
floats = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-50, 50).map(lambda k: k / 100))
second = datetime.timedelta(seconds=1)
far_dates = st.integers(0, 315_537_811_200).map(lambda k: datetime.datetime(1, 1, 1) + k * second)
ns_dates = st.integers(0, 9 * 10**9).map(lambda k: datetime.datetime(1750, 1, 1) + k * second)
days = st.dates()


def numbers(dtype):
    def make(values):
        with np.errstate(over="ignore"):
            return pd.Series(np.nan_to_num(np.array(values, dtype=dtype)))

    return (floats, make, np.nan)


def integers(dtype):
    low, high = np.iinfo(dtype.lower()).min, np.iinfo(dtype.lower()).max
    cells = st.integers(max(low, 1 - 2**53), min(high, 2**53 - 1))
    return (cells, lambda values: pd.Series(values, dtype=dtype), pd.NA if dtype[0].isupper() else None)


def dates(dtype, cells=far_dates):
    return (cells, lambda values: pd.Series(np.array(values, dtype="M8[us]")).astype(dtype), pd.NaT)


# the cells of a column, how they become a column, and its missing value (None: it has none)
KINDS = {
    **{name: numbers(name) for name in ("float64", "float32", "float16")},
    **{name: integers(name) for name in ("int64", "int8", "uint16", "Int64", "UInt8")},
    "Float64": (floats, lambda values: pd.Series(values, dtype="Float64"), pd.NA),
    "double[pyarrow]": (floats, lambda values: pd.Series(values, dtype="double[pyarrow]"), pd.NA),
    "bool": (st.booleans(), lambda values: pd.Series(values, dtype=bool), None),
    "boolean": (st.booleans(), lambda values: pd.Series(values, dtype="boolean"), pd.NA),
    "text": (texts, lambda values: pd.Series(values, dtype="str"), np.nan),
    "text[pyarrow]": (texts, lambda values: pd.Series(values, dtype="string[pyarrow]"), pd.NA),
    "objects": (st.one_of(texts, st.tuples(texts)), lambda values: pd.Series(values, dtype=object), None),
    "texts as objects": (texts, lambda values: pd.Series(values, dtype=object), np.nan),
    "category": (texts, lambda values: pd.Series(values, dtype="category"), np.nan),
    "ordered": (st.sampled_from("xyz"), lambda values: pd.Series(pd.Categorical(values, list("zxwy"), True)), np.nan),
    "intervals": (st.floats(0, 9), lambda values: pd.Series(pd.cut(values, range(-1, 10))), np.nan),
    "M8[s]": dates("M8[s]"),
    "M8[ns]": dates("M8[ns]", ns_dates),
    "zoned": (ns_dates, lambda values: pd.Series(pd.to_datetime(values)).dt.tz_localize("UTC"), pd.NaT),
    "m8[ms]": (st.integers(-(10**15), 10**15), lambda values: pd.Series(np.array(values, dtype="m8[ms]")), pd.NaT),
    "date32": (days, lambda values: pd.Series(values, dtype="date32[pyarrow]"), pd.NA),
    "timestamp": (far_dates, lambda values: pd.Series(values, dtype="timestamp[us][pyarrow]"), pd.NA),
    "period": (ns_dates, lambda values: pd.Series(np.array(values, dtype="M8[us]")).dt.to_period("M"), pd.NaT),
    "Python's dates": (days, lambda values: pd.Series(values, dtype=object), None),
    "Python's times": (far_dates, lambda values: pd.Series(values, dtype=object), None),
}
MISSING_OBJECTS = ("objects", "Python's dates", "Python's times")


@st.composite
def columns(draw, kind, n):
    cells, make, sentinel = KINDS[kind]
    column = make(draw(st.lists(cells, min_size=n, max_size=n)))
    is_missing = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    if kind in MISSING_OBJECTS:
        column[np.array(is_missing)] = None
    elif sentinel is not None and any(is_missing):
        column[np.array(is_missing)] = sentinel
    return column


@st.composite
def frames(draw):
    n = draw(st.integers(1, 6))
    labels = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    chosen = [draw(columns(draw(st.sampled_from(list(KINDS))), n)) for _ in labels]
    frame = pd.concat(chosen, axis=1)
    frame.columns = pd.Index(labels, tupleize_cols=False)
    return frame


@given(frames(), st.randoms())
def test_decoding_gives_back_what_was_encoded(frame, rng):
    schema = Schema.from_data(frame)
    table = schema.encode(frame)
    assert (np.isnan(table.matrix) == frame.isna().to_numpy()).all()
    for feature, values in zip(schema.features, table.matrix.T):
        known = values[~np.isnan(values)]
        assert not known.size or (feature.low <= known.min() and known.max() <= feature.high)
        if feature.levels is not None:
            assert (known < feature.n_levels).all()
        elif feature.grid is not None:
            assert (feature.grid.round(values)[~np.isnan(values)] == known).all()

    order = list(frame)
    rng.shuffle(order)
    arranged = pickle.loads(pickle.dumps(schema.arrange(order)))
    shuffled = pd.concat([frame[name] for name in rng.sample(order, len(order))], axis=1)
    shuffled.columns = pd.Index([column for column in shuffled], tupleize_cols=False)
    matrix = arranged.encode(shuffled).matrix
    assert arranged.names == order
    assert np.array_equal(matrix, table.matrix[:, [list(frame).index(name) for name in order]], equal_nan=True)
    assert_frame_equal(arranged.decode(matrix, frame.index), frame, check_exact=True)
    assert_frame_equal(arranged.decode_for_model(matrix[:1]), frame.iloc[:1], check_exact=True)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_column_without_known_values(kind):
    _, make, sentinel = KINDS[kind]
    if sentinel is None and kind not in MISSING_OBJECTS:
        return
    column = make([]).reindex(range(2))
    frame = pd.DataFrame({"a": column if column.dtype == make([]).dtype else make([]).astype(object).reindex(range(2))})
    schema = Schema.from_data(frame)
    assert_frame_equal(schema.decode(schema.encode(frame).matrix), frame)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?", "O", "U3"])
def test_arrays_are_given_to_the_model_as_arrays(dtype):
    array = np.array([[1, 0, 1], [0, 0, 1]]).astype(dtype)
    schema = Schema.from_data(array).arrange(["x2", "x0", "x1"])
    assert list(schema.columns) == ["x0", "x1", "x2"]
    back = schema.decode_for_model(schema.encode(array).matrix)
    assert back.dtype == array.dtype
    assert (back == array).all()


def test_frames_of_other_libraries():
    pl, polars_testing = pytest.importorskip("polars"), pytest.importorskip("polars.testing")
    frame = pl.DataFrame(
        {
            "int": [1, 2, None],
            "bool": [True, None, False],
            "text": ["x", None, "y"],
            "day": [datetime.date(1500, 1, 1), datetime.date(2000, 1, 1), None],
            "time": [datetime.datetime(2000, 1, 1, 3), None, datetime.datetime(2000, 1, 2)],
            "float": [1.5, None, 2.0],
            "level": pl.Series(["lo", "hi", None], dtype=pl.Enum(["lo", "hi"])),
            "span": [datetime.timedelta(hours=3)] * 3,
        }
    )
    for table in (frame, frame.to_arrow()):
        schema = Schema.from_data(table).arrange(frame.columns[::-1])
        matrix = schema.encode(table).matrix
        assert isinstance(schema.decode(matrix), pd.DataFrame)
        assert schema.kinds["level"] == "ordered"
        back = schema.decode_for_model(matrix)
        assert type(back) is type(table)
        polars_testing.assert_frame_equal(pl.DataFrame(back), frame)


# ------------------------------------------------------------------ dates


@pytest.mark.parametrize("kind", ["M8[s]", "M8[ns]", "zoned", "date32", "timestamp", "period", "Python's dates"])
def test_a_shift_of_all_dates_changes_nothing(kind):
    base = np.array(["1990-01-01", "1995-06-11", "2001-03-01"], dtype="M8[D]")
    make = KINDS[kind][1]
    encoded = []
    for years in (0, 20):  # as many leap days in each
        shifted = [datetime.date(day.year + years, day.month, day.day) for day in base.astype(object)]
        if "date" not in kind:
            shifted = [datetime.datetime(*day.timetuple()[:3]) for day in shifted]
        frame = pd.DataFrame({"a": make(shifted)})
        schema = Schema.from_data(frame)
        encoded.append(schema.encode(frame).matrix.ravel().tolist())
    assert encoded[0] == encoded[1]
    assert encoded[0] == ([0, 65, 134] if kind == "period" else [0, 1987, 4077])


@pytest.mark.parametrize(
    ("dates", "encoded"),
    [
        (["2000-01-01", "2000-01-03"], [0, 2]),
        (["2000-01-01T05", "2000-01-02T05"], [0, 1]),
        (["2000-01-01T05", "2000-01-02T06"], [0, 25]),
        (["2000-01-01T00:00:00.5", "2000-01-01T00:00:01"], [0, 500]),
        (["0900-01-01", "0900-01-11"], [0, 10]),
    ],
)
def test_dates_are_counted_in_the_coarsest_exact_unit(dates, encoded):
    for unit in ("ms", "us"):
        frame = pd.DataFrame({"a": np.array(dates, dtype=f"M8[{unit}]")})
        assert Schema.from_data(frame).encode(frame).matrix.ravel().tolist() == encoded


def test_dates_of_other_dtypes_are_converted():
    schema = Schema.from_data(pd.DataFrame({"a": pd.Series(["2000-01-01", "2000-01-05"], dtype="M8[s]")}))
    day = datetime.date(2000, 1, 3)
    for column in ([day], np.array(["2000-01-03"], dtype="M8[ns]"), pd.Series([day], dtype="date32[pyarrow]")):
        assert schema.encode(pd.DataFrame({"a": column})).matrix.item() == 2
    noon = pd.DataFrame({"a": [pd.Timestamp("2000-01-03 12:00")]})
    assert schema.encode(noon).matrix.item() == 2.5
    assert schema.decode(np.array([[2.5]]))["a"].item() == pd.Timestamp("2000-01-03 12:00")
    for wrong in (pd.Timestamp("2000-01-03 12:00:00.5"), pd.Timestamp("2000-01-03", tz="UTC"), pd.Timedelta(1)):
        with pytest.raises(InputError, match="column 'a' of X h"):
            schema.encode(pd.DataFrame({"a": [wrong]}))


def test_rounded_dates_can_be_decoded():
    for kind in ("M8[s]", "M8[ns]", "date32", "Python's dates", "Python's times", "period"):
        day = datetime.datetime(2000, 1, 1) if kind not in ("date32", "Python's dates") else datetime.date(2000, 1, 1)
        schema = Schema.from_data(pd.DataFrame({"a": KINDS[kind][1]([day, day + datetime.timedelta(40)])}))
        grid = schema.features[0].grid
        for value in (-1e18, -3.4, 1e18):
            rounded = grid.round(np.array([[value]]))
            frame = schema.decode(rounded)
            assert schema.encode(frame).matrix.item() == rounded.item()
