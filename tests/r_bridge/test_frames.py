"""Tables across the bridge: every type becomes R's type and comes back as it was."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import pandas as hpd

from mcce import MCCE
from mcce.exceptions import InputError
from r_bridge import RColumn, RModel, from_r, to_r
from r_bridge.frames import columns_of

STAMPS = pd.to_datetime(["2020-01-01", "1950-05-06 12:01:02.123456", None], format="ISO8601")
# column, R's class, the values as R writes them
COLUMNS = {
    "int8": (np.array([1, -2, 3], dtype=np.int8), "integer", ["1", "-2", "3"]),
    "int64": ([1, 2, 2**31 - 1], "integer", ["1", "2", "2147483647"]),
    "beyond 32 bits": ([2**40, 1, -(2**31)], "numeric", ["1099511627776", "1", "-2147483648"]),
    "Int64": (pd.array([1, None, 3], dtype="Int64"), "integer", ["1", "NA", "3"]),
    "arrow int": (pd.array([1, None, 3], dtype=pd.ArrowDtype(pa.int64())), "integer", ["1", "NA", "3"]),
    "float64": ([1.5, np.nan, np.inf], "numeric", ["1.5", "NA", "Inf"]),
    "whole floats": ([1.0, 2.0, 3.0], "numeric", ["1", "2", "3"]),
    "float32": (np.array([0.5, 0.25, np.nan], dtype=np.float32), "numeric", ["0.5", "0.25", "NA"]),
    "bool": ([True, False, True], "logical", ["TRUE", "FALSE", "TRUE"]),
    "boolean": (pd.array([True, None, False], dtype="boolean"), "logical", ["TRUE", "NA", "FALSE"]),
    "object bool": (pd.Series([True, None, False], dtype=object), "logical", ["TRUE", "NA", "FALSE"]),
    "str": (["Ås", None, "x y"], "character", ["Ås", "NA", "x y"]),
    "object str": (pd.Series(["a", "b", None], dtype=object), "character", ["a", "b", "NA"]),
    "arrow str": (pd.array(["x", None, "y"], dtype=pd.ArrowDtype(pa.string())), "character", ["x", "NA", "y"]),
    "category": (pd.Categorical(["z", None, "a"], ["z", "a", "q"]), "factor", ["z", "NA", "a"]),
    "ordered": (pd.Categorical([5, 10, 5], [10, 5], ordered=True), "ordered", ["5", "10", "5"]),
    "datetime": (STAMPS, "POSIXct", ["2020-01-01 00:00:00", "1950-05-06 12:01:02", "NA"]),
    "datetime[ns]": (STAMPS.astype("datetime64[ns]"), "POSIXct", None),
    "zoned": (STAMPS.tz_localize("Europe/Oslo"), "POSIXct", ["2020-01-01 00:00:00", "1950-05-06 12:01:02", "NA"]),
    "period": (
        pd.PeriodIndex(["2020-01-01", "1960-01-01", "NaT"], freq="D"),
        "Date",
        ["2020-01-01", "1960-01-01", "NA"],
    ),
    "arrow date": (
        pd.array([0, None, 18000], dtype=pd.ArrowDtype(pa.date32())),
        "Date",
        ["1970-01-01", "NA", "2019-04-14"],
    ),
    "dates": (pd.Series([datetime.date(1066, 10, 14), None], dtype=object), "Date", ["1066-10-14", "NA"]),
}
SPELL = """
spell <- function(x) {
  if (is.na(x)) "NA" else if (is.numeric(x)) format(x, digits = 15) else if (inherits(x, "POSIXct")) {
    format(x, "%Y-%m-%d %H:%M:%S")
  } else as.character(x)
}
vapply(seq_len(nrow(data)), function(i) spell(data$x[i]), "")
"""


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_comes_back(r, name):
    values, r_class, spelled = COLUMNS[name]
    frame = pd.DataFrame({"x": values})
    data = to_r(frame)
    assert r.strings(r.evaluate("class(data$x)[1]", data)) == [r_class]
    if spelled is not None:
        assert r.strings(r.evaluate(SPELL, data)) == spelled
    pd.testing.assert_frame_equal(from_r(data, like=frame), frame)


def test_r_tables_are_read_by_their_types(r):
    code = """data.frame(
        i = c(1L, NA), j = 1:2, d = c(1, NA), l = c(TRUE, NA), s = c("a", NA), f = factor(c("b", NA), c("b", "a")),
        o = factor(c("b", "a"), c("b", "a"), ordered = TRUE), day = as.Date(c("2020-02-29", NA)),
        whole = structure(c(18321L, NA), class = "Date"), t = as.POSIXct(c("2020-02-29 12:00:00", NA), tz = "UTC"))"""
    frame = from_r(r.evaluate(code))
    expected = pd.DataFrame(
        {
            "i": pd.array([1, None], dtype="Int64"),
            "j": [1, 2],
            "d": [1.0, np.nan],
            "l": pd.array([True, None], dtype="boolean"),
            "s": pd.array(["a", None], dtype=pd.StringDtype("python")),
            "f": pd.Categorical(["b", None], pd.Index(["b", "a"], dtype=object)),
            "o": pd.Categorical(["b", "a"], pd.Index(["b", "a"], dtype=object), ordered=True),
            "day": pd.Series(pd.to_datetime(["2020-02-29", None])).astype("datetime64[s]"),
            "whole": pd.Series(pd.to_datetime(["2020-02-29", None])).astype("datetime64[s]"),
            "t": pd.Series(pd.to_datetime(["2020-02-29 12:00", None], utc=True)).astype("datetime64[s, UTC]"),
        }
    )
    pd.testing.assert_frame_equal(frame, expected)


def test_labels_and_empty_tables(r):
    frame = pd.DataFrame({3: [1, 2], "a b": [3, 4]})
    assert r.strings(to_r(frame).names) == ["3", "a b"]
    assert from_r(to_r(frame), like=frame).columns.tolist() == [3, "a b"]
    assert from_r(to_r(frame)).columns.tolist() == ["3", "a b"]
    assert from_r(to_r(pd.DataFrame(index=range(4)))).shape == (4, 0)
    assert from_r(to_r(pd.DataFrame({"a": [], "b": pd.Categorical([])}))).shape == (0, 2)


def test_types_and_levels_expected_by_r(r):
    frame = pd.DataFrame(
        {"job": ["cook", "pilot"], "grade": [2, 10], "old": [True, False], "size": [1, 2], "income": [100000.0, 5.0]}
    )
    expected = {
        "job": RColumn("factor", ("pilot", "clerk", "cook")),
        "grade": RColumn("ordered", ("10", "2")),
        "old": RColumn("numeric"),
        "size": RColumn("character"),
        "income": RColumn("factor", ("5", "1e+05")),  # as R writes 100000
    }
    data = to_r(frame, expected)
    parts = r.parts(data)
    assert columns_of(data) == expected
    assert list(parts["job"]) == [3, 1]
    assert list(parts["grade"]) == [2, 1]
    assert list(parts["old"]) == [1, 0]
    assert r.strings(parts["size"]) == ["1", "2"]
    assert list(parts["income"]) == [2, 1]


@pytest.mark.parametrize(
    ("frame", "columns", "message"),
    [
        ({"x": ["a", "new"]}, RColumn("factor", ("a",)), r"'x' holds the level 'new' \(row 1\), unknown to R"),
        ({"x": ["a", "b"]}, RColumn("numeric"), "'x' has dtype .* but R expects numeric"),
        ({"x": STAMPS}, RColumn("numeric"), "'x' has dtype .* but R expects numeric"),
        ({1: [1], "1": [2]}, None, "not distinct as text"),
    ],
)
def test_values_that_r_cannot_hold_raise(r, frame, columns, message):
    with pytest.raises(InputError, match=message):
        to_r(pd.DataFrame(frame), None if columns is None else {"x": columns})


@pytest.mark.parametrize(
    ("code", "like", "message"),
    [
        ("list(1)", None, "not an R data.frame"),
        ("data.frame(x = I(list(1, 2)))", None, "'x' is of R's type 'AsIs', which a DataFrame does not have"),
        ("data.frame(x = as.difftime(2, units = 'mins'))", None, "'x' is of R's type 'difftime'"),
        (
            "structure(list(x = 1), class = 'data.frame', row.names = 1L) -> d; class(d$x) <- 'integer64'; d",
            None,
            "integer64",
        ),
        ("data <- data.frame(x = 1:2); data$m <- matrix(1:4, 2); data", None, "'m' is of R's type 'matrix'"),
        ("data.frame(x = addNA(factor(c('a', NA))))", None, "'x' has NA as a level"),
        ("data.frame(a = 1:2, b = 0, a = 3:4, check.names = FALSE)", None, "more than one column is called 'a'"),
        ("data.frame(x = as.Date(c(1, Inf), '1970-01-01'))", None, "'x' holds a time that is infinite"),
        ("data.frame(x = c(1, 2.5))", {"x": [1, 2]}, "came from R as float64 and cannot be int64"),
        ("data.frame(x = 'new')", {"x": pd.Categorical(["a"])}, "'new' is not one of its categories"),
        ("data.frame(x = c(1L, NA))", {"x": [1, 2]}, "cannot be int64"),
        (
            "data.frame(x = as.POSIXct('2020-01-01 00:00:01.5', tz = 'UTC'))",
            {"x": STAMPS.astype("M8[s]")},
            "it would change times",
        ),
    ],
)
def test_values_that_cannot_be_returned_raise(r, code, like, message):
    with pytest.raises(InputError, match=message):
        from_r(r.evaluate(code), like=None if like is None else pd.DataFrame(like))


TABLES = hpd.data_frames(
    [
        hpd.column("i", dtype=np.int64, elements=st.integers(-(2**53), 2**53)),
        hpd.column("f", dtype=np.float64),
        hpd.column("b", dtype=bool),
        hpd.column("s", elements=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))),
    ],
    index=hpd.range_indexes(min_size=1, max_size=8),
)


@given(frame=TABLES)
def test_any_table_comes_back(r, frame):
    frame = frame.assign(s=frame["s"].astype("str"), c=frame["s"].astype("str").astype("category"))
    pd.testing.assert_frame_equal(from_r(to_r(frame), like=frame), frame)


HOSTILE = ["pi` + system('touch marker') + `pi", "x'); system('touch marker'); ('", "x\n#\\", "if", "%s", "straße ☃"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_levels_are_never_code(r, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = r.evaluate(f"setwd({str(tmp_path)!r})")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {name: rng.normal(size=80), "job": pd.Categorical.from_codes(rng.integers(0, 2, 80), [name, "other"])}
    )
    data = frame.assign(y=frame[name] + rng.normal(size=80))
    pd.testing.assert_frame_equal(from_r(to_r(data), like=data), data)
    model = RModel.from_code("lm(data$y ~ ., data[setdiff(names(data), 'y')])", data)
    result = MCCE(model, decision=(0.5, np.inf), random_state=1).fit(frame).explain(frame.head(5), n_samples=50)
    assert len(result.predictions) == 5
    r.call("evaluate", "setwd(data)", before)
    assert not list(tmp_path.iterdir())
