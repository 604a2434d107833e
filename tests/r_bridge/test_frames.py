"""Tables across the bridge: every dtype becomes R's type and round-trips."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import pandas as hpd

from mcce import MCCEError
from r_bridge import RColumn, from_r, to_r
from r_bridge.frames import columns_of
from tests.marks import examples

STAMPS = pd.to_datetime(["2020-01-01", "1950-05-06 12:01:02.123456", None], format="ISO8601")
# column, R's class, the values as formatted by R
COLUMNS = {
    "int8": (np.array([1, -2, 3], dtype=np.int8), "integer", ["1", "-2", "3"]),
    "int64": ([1, 2, 2**31 - 1], "integer", ["1", "2", "2147483647"]),
    "beyond 32 bits": ([2**40, 1, -(2**31)], "numeric", ["1099511627776", "1", "-2147483648"]),
    "uint32": (np.array([1, 2, 2**32 - 1], dtype=np.uint32), "numeric", ["1", "2", "4294967295"]),
    "Int64": (pd.array([1, None, 3], dtype="Int64"), "integer", ["1", "NA", "3"]),
    "Int64 beyond": (pd.array([1, None, 2**35], dtype="Int64"), "numeric", ["1", "NA", "34359738368"]),
    "arrow int": (pd.array([1, None, 3], dtype=pd.ArrowDtype(pa.int64())), "integer", ["1", "NA", "3"]),
    "float64": ([1.5, np.nan, np.inf], "numeric", ["1.5", "NA", "Inf"]),
    "whole floats": ([1.0, 2.0, 3.0], "numeric", ["1", "2", "3"]),
    "float32": (np.array([0.5, 0.25, np.nan], dtype=np.float32), "numeric", ["0.5", "0.25", "NA"]),
    "Float64": (pd.array([0.5, None, 1], dtype="Float64"), "numeric", ["0.5", "NA", "1"]),
    "bool": ([True, False, True], "logical", ["TRUE", "FALSE", "TRUE"]),
    "boolean": (pd.array([True, None, False], dtype="boolean"), "logical", ["TRUE", "NA", "FALSE"]),
    "object bool": (pd.Series([True, None, False], dtype=object), "logical", ["TRUE", "NA", "FALSE"]),
    "str": (["Ås", None, "x y"], "character", ["Ås", "NA", "x y"]),
    "object str": (pd.Series(["a", "b", None], dtype=object), "character", ["a", "b", "NA"]),
    "arrow str": (pd.array(["x", None, "y"], dtype=pd.ArrowDtype(pa.string())), "character", ["x", "NA", "y"]),
    "category": (pd.Categorical(["z", None, "a"], ["z", "a", "q"]), "factor", ["z", "NA", "a"]),
    "ordered": (pd.Categorical([5, 10, 5], [10, 5], ordered=True), "ordered", ["5", "10", "5"]),
    "float levels": (pd.Categorical([0.5, 1e5, 1e-7]), "factor", ["0.5", "100000", "1e-07"]),
    "datetime": (STAMPS, "POSIXct", None),
    "datetime[ns]": (STAMPS.astype("datetime64[ns]"), "POSIXct", None),
    "datetime[s]": (STAMPS.floor("s").astype("datetime64[s]"), "POSIXct", None),
    "zoned": (STAMPS.tz_localize("Europe/Oslo"), "POSIXct", None),
    "timedelta": (pd.to_timedelta([1, None, 3.5], unit="s"), "difftime", ["1", "NA", "3.5"]),
    "period": (
        pd.PeriodIndex(["2020-01-01", "1960-01-01", "NaT"], freq="D"),
        "Date",
        ["2020-01-01", "1960-01-01", "NA"],
    ),
    "date": (pd.array([0, None, 18000], dtype=pd.ArrowDtype(pa.date32())), "Date", ["1970-01-01", "NA", "2019-04-14"]),
}


SPELL = """
spell <- function(x) if (is.na(x)) "NA" else if (is.numeric(x)) format(x, digits = 15) else as.character(x)
vapply(seq_len(nrow(data)), function(i) spell(data$x[i]), "")
"""


@pytest.mark.parametrize("name", COLUMNS)
def test_every_dtype_round_trips(r, name, compared):
    values, r_class, spelled = COLUMNS[name]
    frame = pd.DataFrame({"x": values})
    data = to_r(frame)
    assert r.strings(r.call("evaluate", "class(data$x)[1]", data)) == [r_class]
    if spelled is not None:
        assert r.strings(r.call("evaluate", SPELL, data)) == spelled
    pd.testing.assert_frame_equal(from_r(data, like=frame), frame)
    pd.testing.assert_frame_equal(from_r(to_r(frame.iloc[:0]), like=frame), frame.iloc[:0])
    compared("values of tables, to R and back", len(frame))


def test_dates_are_the_same_instants_in_r(r):
    data = to_r(pd.DataFrame({"x": STAMPS.tz_localize("Europe/Oslo"), "y": STAMPS}))
    code = 'format(data$%s, "%%Y-%%m-%%d %%H:%%M:%%S")'
    assert r.strings(r.call("evaluate", code % "x", data)) == ["2020-01-01 00:00:00", "1950-05-06 12:01:02", ""]
    assert r.strings(r.call("evaluate", code % "y", data)) == ["2020-01-01 00:00:00", "1950-05-06 12:01:02", ""]


def test_r_tables_are_read_by_their_types(r):
    code = """data.frame(
        i = c(1L, NA), d = c(1, NA), l = c(TRUE, NA), s = c("a", NA), f = factor(c("b", NA), c("b", "a")),
        o = factor(c("b", "a"), c("b", "a"), ordered = TRUE), day = as.Date(c("2020-02-29", NA)),
        t = as.POSIXct(c("2020-02-29 12:00:00", NA), tz = "UTC"), lag = as.difftime(c(2, NA), units = "mins"))"""
    frame = from_r(r.call("evaluate", code, None))
    expected = pd.DataFrame(
        {
            "i": pd.array([1, None], dtype="Int64"),
            "d": [1.0, np.nan],
            "l": pd.array([True, None], dtype="boolean"),
            "s": pd.Series(["a", None], dtype="str"),
            "f": pd.Categorical(["b", None], ["b", "a"]),
            "o": pd.Categorical(["b", "a"], ["b", "a"], ordered=True),
            "day": pd.Series(pd.to_datetime(["2020-02-29", None])).astype("datetime64[us]"),
            "t": pd.Series(pd.to_datetime(["2020-02-29 12:00", None], utc=True)).astype("datetime64[us, UTC]"),
            "lag": pd.Series(pd.to_timedelta([120, None], unit="s")).astype("timedelta64[us]"),
        }
    )
    pd.testing.assert_frame_equal(frame, expected)


def test_integers_of_64_bits_are_read_by_their_bits(r):
    """bit64 stores them in the bits of doubles, and NA as the smallest; the package itself is not needed."""
    largest = np.array([1, 2**62 + 1, -5, -(2**63)]).view(np.float64)
    code = "frame <- data.frame(x = data); class(frame$x) <- 'integer64'; frame"
    frame = from_r(r.call("evaluate", code, r.ri.FloatSexpVector(largest)))
    expected = pd.array([1, 2**62 + 1, -5, None], dtype="Int64")
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"x": expected}))
    whole = from_r(r.call("evaluate", code, r.ri.FloatSexpVector(largest[:3])))
    pd.testing.assert_frame_equal(whole, pd.DataFrame({"x": [1, 2**62 + 1, -5]}))


def test_times_that_r_stores_as_integers(r):
    code = """data.frame(
        t = structure(c(1L, NA), class = c("POSIXct", "POSIXt"), tzone = "UTC"),
        day = structure(c(18321L, NA), class = "Date"),
        lag = structure(c(2L, NA), class = "difftime", units = "mins"))"""
    expected = pd.DataFrame(
        {
            "t": pd.Series(pd.to_datetime(["1970-01-01 00:00:01", None], utc=True)).astype("datetime64[us, UTC]"),
            "day": pd.Series(pd.to_datetime(["2020-02-29", None])).astype("datetime64[us]"),
            "lag": pd.Series(pd.to_timedelta([120, None], unit="s")).astype("timedelta64[us]"),
        }
    )
    pd.testing.assert_frame_equal(from_r(r.call("evaluate", code, None)), expected)


def test_missing_as_a_level_is_missing(r):
    code = 'data.frame(f = addNA(factor(c("a", NA, ""))), g = factor(c("b", NA, "a"), c("b", NA, "a"), exclude = NULL))'
    data = r.call("evaluate", code, None)
    expected = pd.DataFrame(
        {"f": pd.Categorical(["a", None, ""], ["", "a"]), "g": pd.Categorical(["b", None, "a"], ["b", "a"])}
    )
    pd.testing.assert_frame_equal(from_r(data), expected)
    columns = columns_of(data)
    assert columns["g"] == RColumn("factor", ("b", None, "a"))
    again = to_r(expected, columns)  # it is converted back to the same level
    assert list(r.parts(again)["f"]) == [2, 3, 1]
    assert list(r.parts(again)["g"]) == [1, 2, 3]
    assert bool(r.call("evaluate", "function(a, b) identical(a, b)", None)(again, data)[0])


def test_labels_need_not_be_text(r):
    frame = pd.DataFrame({3: [1, 2], "a b": [3, 4]})
    data = to_r(frame)
    assert r.strings(data.names) == ["3", "a b"]
    assert from_r(data, like=frame).columns.tolist() == [3, "a b"]
    assert from_r(data).columns.tolist() == ["3", "a b"]


def test_table_without_columns_or_rows(r):
    assert from_r(to_r(pd.DataFrame(index=range(4)))).shape == (4, 0)
    assert from_r(to_r(pd.DataFrame({"a": []}))).shape == (0, 1)


def test_types_and_levels_expected_by_r(r):
    frame = pd.DataFrame({"job": ["cook", "pilot"], "grade": [2, 10], "old": [True, False], "size": [1, 2]})
    wanted = {
        "job": RColumn("factor", ("pilot", "clerk", "cook")),
        "grade": RColumn("ordered", ("10", "2")),
        "old": RColumn("numeric"),
        "size": RColumn("character"),
    }
    data = to_r(frame, wanted)
    parts = r.parts(data)
    assert list(parts["job"]) == [3, 1]
    assert columns_of(data) == wanted
    assert list(parts["grade"]) == [2, 1]
    assert list(parts["old"]) == [1, 0]
    assert r.strings(parts["size"]) == ["1", "2"]


def test_levels_are_matched_by_number_if_r_spells_them_differently(r):
    data = to_r(pd.DataFrame({"x": [100000.0, 5.0]}), {"x": RColumn("factor", ("5", "1e+05"))})
    assert list(r.parts(data)["x"]) == [2, 1]


@pytest.mark.parametrize(
    ("frame", "columns", "message"),
    [
        ({"x": ["a", "new"]}, {"x": RColumn("factor", ("a",))}, r"'x' holds the level 'new' \(row 1\), unknown to R"),
        (
            {"x": ["a", "b"]},
            {"x": RColumn("numeric")},
            r"'x' has dtype (str|object) .character in R's terms.*R expects numeric",
        ),
        ({"x": [2**60, 1]}, None, "'x' holds integers beyond 2\\*\\*53"),
        ({"x": [1j, 2j]}, None, "'x' has dtype complex128, which R has no type for"),
        ({"x": pd.Series([1, "a"], dtype=object)}, None, "'x' has dtype object with mixed-integer values"),
        ({"x": pd.Categorical([1, "1"])}, None, "the levels '1', '1' of column 'x' are not unique as text"),
        ({1: [1], "1": [2]}, None, "not unique as text"),
        ({"x": pd.PeriodIndex(["2020-01"], freq="M")}, None, "of periods R has days only"),
        ({"x": pd.to_datetime(["2020-01-01"]).astype("M8[ns]") + pd.Timedelta(1)}, None, "'x' holds nanoseconds"),
    ],
)
def test_values_that_r_cannot_hold_raise(r, frame, columns, message):
    with pytest.raises(MCCEError, match=message):
        to_r(pd.DataFrame(frame), columns)


@pytest.mark.parametrize(
    ("code", "like", "message"),
    [
        ("list(1)", None, "not an R data.frame"),
        ("data.frame(x = I(list(1, 2)))", None, "cannot be read"),
        ("data.frame(x = c(1, 2.5))", {"x": [1, 2]}, "came from R as float64 and cannot be int64"),
        ("data.frame(x = 'new')", {"x": pd.Categorical(["a"])}, "'new' is not one of its categories"),
        ("data.frame(x = c(1L, NA))", {"x": [1, 2]}, "cannot be int64"),
        ("data.frame(a = 1:2, b = 0, a = 3:4, check.names = FALSE)", None, "more than one column is called 'a'"),
        ("data <- data.frame(x = 1:2); data$m <- matrix(1:4, 2); data", None, "'m' is a matrix .2 by 2.* of its own"),
        ("data <- data.frame(x = 1:2); data$x <- scale(data$x); data", None, "'x' is a matrix .2 by 1."),
        ("data.frame(x = as.Date(c(1, Inf), '1970-01-01'))", None, "'x' holds an infinite time"),
    ],
)
def test_values_that_cannot_be_returned_raise(r, code, like, message):
    with pytest.raises(MCCEError, match=message):
        from_r(r.call("evaluate", code, None), like=None if like is None else pd.DataFrame(like))


TABLES = hpd.data_frames(
    [
        hpd.column("i", dtype=np.int64, elements=st.integers(-(2**53), 2**53)),
        hpd.column("f", dtype=np.float64),
        hpd.column("b", dtype=bool),
        hpd.column("s", elements=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))),
    ],
    index=hpd.range_indexes(min_size=1, max_size=8),
)


@examples(15)
@given(frame=TABLES)
def test_any_table_round_trips(r, frame):
    frame = frame.assign(s=frame["s"].astype("str"), c=frame["s"].astype("str").astype("category"))
    pd.testing.assert_frame_equal(from_r(to_r(frame), like=frame), frame)
