"""Frames of other libraries: lossless conversion to pandas and back for every supported type."""

import datetime as dt
import pickle

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.storage.state import from_state, to_state
from mcce.table import Schema, as_frame, frame_kind
from mcce.table.frames import build_frame, is_other_frame, own_frame, read_frame, take_rows

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

MISSING = {
    "whole": pl.Series([3, None, 5, 3], dtype=pl.UInt16),
    "number": pl.Series([0.5, None, 2.25, 0.5]),
    "nan": pl.Series([0.5, float("nan"), 2.25, 0.5]),
    "text": pl.Series(["b", None, "a", "b"]),
    "said": pl.Series([True, None, False, True]),
    "day": pl.Series([dt.date(2020, 2, 29), None, dt.date(1969, 7, 20), dt.date(2020, 2, 29)]),
    "moment": pl.Series([dt.datetime(2020, 1, 1, 5), None, dt.datetime(1969, 1, 1), dt.datetime(2020, 1, 1, 5)]),
    "zoned": pl.Series([dt.datetime(2020, 10, 25, h) for h in (0, 1, 2, 3)]).dt.replace_time_zone("UTC"),
    "span": pl.Series([dt.timedelta(1), None, dt.timedelta(seconds=3), dt.timedelta(1)]),
    "category": pl.Series(["x", None, "y", "x"], dtype=pl.Categorical),
    "grade": pl.Series(["low", None, "high", "low"], dtype=pl.Enum(["low", "mid", "high"])),
}


@pytest.fixture
def frame():
    return pl.DataFrame(MISSING)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [0, 2, 3]], ids=["with missing", "complete"])
def test_frame_round_trips(frame, library, rows):
    frame = frame[rows]
    X = frame if library == "polars" else frame.to_arrow()
    schema = Schema.from_data(X)
    back = schema.decode_for_model(schema.encode(X).matrix)
    assert type(back) is type(X)
    assert back.schema == X.schema
    pd.testing.assert_frame_equal(pl.DataFrame(back).to_pandas(), pl.DataFrame(X).to_pandas())
    assert pl.DataFrame(back).null_count().equals(frame.null_count()), "NaN stays NaN, null stays null"
    assert schema.kinds["grade"] == "ordered"
    assert schema.kinds["category"] == schema.kinds["said"] == schema.kinds["text"] == "categorical"
    assert schema.kinds["day"] == "numeric"


def test_schema_state_keeps_the_frame_type(frame):
    schema = Schema.from_data(frame)
    for again in (from_state(to_state(schema)), pickle.loads(pickle.dumps(schema))):
        assert again.decode_for_model(again.encode(frame).matrix).equals(frame, null_equal=True)


def test_null_and_nan_in_one_column_raise():
    X = pl.DataFrame({"a": [1.0, None, float("nan")]})
    with pytest.raises(mcce.InputError, match=r"column 'a' of X holds both null and NaN; .* fill_nan\(None\)"):
        Schema.from_data(X)


def test_lazy_frame_raises_with_a_fix():
    with pytest.raises(mcce.InputError, match=r"X is a LazyFrame, which is not computed; give X.collect\(\)"):
        Schema.from_data(pl.LazyFrame({"a": [1.0]}))


def test_duplicate_column_name_raises():
    X = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    with pytest.raises(mcce.InputError, match=r"X has the column label\(s\) 'a' more than once; rename them"):
        as_frame(X)


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="needs pip install 'pyarrow>=16', which has views")
def test_arrow_views_raise_and_name_the_type_to_cast_to():
    views = pa.array(["a", "b"]).cast(pa.string_view())
    with pytest.raises(mcce.InputError, match=r"column 'a' of X has Arrow's type string_view, .*; cast it, to string"):
        Schema.from_data(pa.table({"a": views}))
    with pytest.raises(mcce.InputError, match=r"column 'a' of X has dtype string_view\[pyarrow\], .* not supported"):
        Schema.from_data(pd.DataFrame({"a": pd.array(views, dtype=pd.ArrowDtype(pa.string_view()))}))


class OnlyProtocol:
    """An unknown frame type that implements one protocol."""

    columns = ()

    def __init__(self, table):
        self.table = table


class SpeaksArrow(OnlyProtocol):
    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class SpeaksInterchange(OnlyProtocol):
    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return self.table.__dataframe__(nan_as_null, allow_copy)


@pytest.mark.parametrize("speaks", [SpeaksArrow, SpeaksInterchange])
def test_interchange_protocol_frames_become_pandas(speaks):
    X = speaks(pa.table({"a": [1, 2, 3], "b": ["x", "y", None]}))
    assert is_other_frame(X)
    assert frame_kind(X) is None
    assert isinstance(own_frame(X), pd.DataFrame)
    assert read_frame(X)["a"].tolist() == [1, 2, 3]
    explainer = mcce.MCCE(lambda rows: rows["a"] > 1, decision=True, random_state=1).fit(X)
    assert isinstance(explainer.explain(X).to_frame(), pd.DataFrame)


def test_rows_by_position(frame):
    assert take_rows(frame, np.array([2, 0]))["text"].to_list() == ["a", "b"]
    assert take_rows(frame.to_arrow(), slice(1, 3)).num_rows == 2


def test_missing_package_is_named(frame, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "narwhals", None)
    with pytest.raises(mcce.InputError, match=r"X is a polars DataFrame, and .* needs narwhals; .*mcce\[frames\]"):
        Schema.from_data(frame)


@pytest.mark.parametrize("X", [pd.Series([1.0]), pd.DataFrame({"a": [1]}), np.ones((2, 2)), pl.Series([1.0]), pl, None])
def test_invalid_frames(X):
    assert not is_other_frame(X)


def test_built_frame_is_that_of_pandas_and_shares_no_names():
    columns = {"rows": np.array([2, 1]), "gower": np.array([0.5, np.nan])}
    index = pd.Index(["p", "q"], name="id")
    frame = build_frame(columns, index)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(columns, index))
    frame.columns.name = "measure"
    assert build_frame(columns).columns.name is None
