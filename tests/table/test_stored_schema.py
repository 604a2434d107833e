from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import InputError, Schema
from mcce.storage.state import from_state, to_state
from mcce.testing.samplers import through_json
from tests.marks import examples

N = 6


def column(draw):
    """Return a random column of one of the dtypes that a table may have."""
    kind = draw(st.sampled_from(sorted(MAKERS)))
    items = draw(st.lists(st.integers(0, 200), min_size=N, max_size=N))
    missing = draw(st.lists(st.booleans(), min_size=N, max_size=N))
    made = MAKERS[kind](np.array(items))
    may_be_missing = kind not in ("int64", "uint8", "bool")
    return made.mask(np.array(missing)) if may_be_missing and draw(st.booleans()) else made


def words(items, dtype):
    return pd.Series([f"w{item % 4}" for item in items], dtype=dtype)


MAKERS = {
    "int64": pd.Series,
    "uint8": lambda items: pd.Series(items, dtype="uint8"),
    "float": lambda items: pd.Series(items / 7.0),
    "float32": lambda items: pd.Series(items / 7.0, dtype="float32"),
    "bool": lambda items: pd.Series(items % 2 == 0),
    "boolean": lambda items: pd.Series(items % 2 == 0, dtype="boolean"),
    "Int64": lambda items: pd.Series(items, dtype="Int64"),
    "Float64": lambda items: pd.Series(items / 3.0, dtype="Float64"),
    "object": lambda items: words(items, object),
    "mixed": lambda items: pd.Series([[1, "one", 2.5, ("a", 1)][item % 4] for item in items], dtype=object),
    "str": lambda items: words(items, "str"),
    "string": lambda items: words(items, "string"),
    "categories": lambda items: pd.Series(pd.Categorical(items % 3, categories=[2, 0, 1, 9])),
    "ordered": lambda items: pd.Series(pd.Categorical(items % 3, categories=[2, 0, 1, 9], ordered=True)),
    "bins": lambda items: pd.Series(pd.cut(items.astype(float), [-1.0, 50.0, 201.0])),
    "days": lambda items: pd.Series(pd.Categorical(pd.Timestamp("2020-01-01") + pd.to_timedelta(items % 3, unit="D"))),
    "dates": lambda items: pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(items, unit="h")),
    "zoned": lambda items: pd.Series(pd.Timestamp("2020-01-01", tz="Europe/Oslo") + pd.to_timedelta(items, unit="h")),
    "durations": lambda items: pd.Series(pd.to_timedelta(items, unit="s")),
    "periods": lambda items: pd.Series(pd.PeriodIndex([pd.Period(ordinal=int(i), freq="M") for i in items], freq="M")),
    "arrow": lambda items: pd.Series(items, dtype="int64[pyarrow]"),
}
LABELS = st.one_of(
    st.text(max_size=4),
    st.integers(-3, 99),
    st.tuples(st.text(max_size=2), st.integers(0, 3)),
    st.dates().map(pd.Timestamp),
    st.floats(0.5, 0.75),
)


@st.composite
def frames(draw):
    labels = draw(st.lists(LABELS, min_size=1, max_size=4, unique=True))
    columns = {j: column(draw) for j in range(len(labels))}
    frame = pd.DataFrame(columns)
    frame.columns = pd.Index(labels, dtype=object, tupleize_cols=False)
    return frame


def through_a_file(value):
    return from_state(through_json(to_state(value)))


def shown(feature):
    levels = None if feature.levels is None else [(type(level), repr(level)) for level in feature.levels]
    rest = (feature.kind, repr(feature.dtype), feature.low, feature.high, feature.origin, feature.unit)
    return repr((type(feature.name), feature.name, levels, rest, feature.has_missing, feature.missing))


@examples(25)
@given(frames())
def test_schema_round_trips_and_writes_the_same_frame(frame):
    schema = Schema.from_data(frame)
    again = through_a_file(schema)
    assert list(map(shown, again.features)) == list(map(shown, schema.features))
    encoded = again.encode(frame)
    np.testing.assert_array_equal(encoded.matrix, schema.encode(frame).matrix)
    decoded = again.decode(encoded.matrix)
    pd.testing.assert_frame_equal(decoded, schema.decode(encoded.matrix))
    pd.testing.assert_frame_equal(decoded, frame, check_column_type=False)


def test_array_dtype_round_trips():
    schema = Schema.from_data(np.array([[1, 2], [3, 4]], dtype=np.int16))
    again = through_a_file(schema)
    assert again.array_dtype == np.int16
    assert again.decode_for_model(np.ones((1, 2))).dtype == np.int16


class Label:
    def __repr__(self):
        return "Label()"


def test_unstorable_labels_and_levels_are_named():
    with pytest.raises(InputError, match=r"the schema.features\[0\].name is Label\(\) \(a tests.*Label"):
        to_state(Schema.from_data(pd.DataFrame({Label(): [1, 2]})), "the schema")
    with pytest.raises(InputError, match=r"the schema.features\[0\].levels.values\[0\] is Label\(\)"):
        to_state(Schema.from_data(pd.DataFrame({"x": [Label(), Label()]})), "the schema")


def test_text_dtype_of_another_pandas_maps_to_the_nearest_dtype(monkeypatch):
    """Before 2.3, text with NaN had a separate storage, and no choice of the missing value."""
    nan = {"type": "pandas.StringDtype", "missing": float("nan")}
    old, new = (from_state({**nan, "storage": storage}) for storage in ("pyarrow_numpy", "pyarrow"))
    assert old == new
    assert np.isnan(old.na_value)
    monkeypatch.setattr(pd, "StringDtype", lambda storage: f"string[{storage}]")  # the earlier form: one parameter
    assert from_state({**nan, "storage": "pyarrow"}) == "string[pyarrow_numpy]"
