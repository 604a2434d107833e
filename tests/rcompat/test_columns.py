"""Columns of R as bytes: every value round-trips; the R half is tested by testthat in r_bridge/r."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import MCCE, InputError
from mcce.rcompat.columns import (
    DATED,
    KINDS,
    LEVELLED,
    SentColumn,
    columns_of,
    join_texts,
    read_column,
    read_table,
    split_texts,
    write_table,
)
from tests.marks import examples, nightly

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
SECONDS = {"Date": [86400.0], "POSIXct": [1.0], "difftime": [1.0, 60.0, 3600.0, 86400.0, 604800.0]}


@st.composite
def columns(draw: Any, n_rows: int, name: str) -> dict[str, Any]:
    """A column as R sends it."""
    kind = draw(st.sampled_from(KINDS))
    sent: dict[str, Any] = {"name": name, "kind": kind, "unit": None}
    may_be_nan = kind in ("double", *DATED)
    states = draw(st.lists(st.sampled_from([0, 1, 2] if may_be_nan else [0, 1]), min_size=n_rows, max_size=n_rows))
    if kind in LEVELLED:
        texts = draw(st.lists(TEXTS, min_size=1, max_size=5, unique=True))
        if kind == "character":
            texts = texts[:n_rows] or texts[:1]
        sent["texts"] = bytes(join_texts(texts))
        sent["na_level"] = -1 if kind == "character" else draw(st.integers(-1, len(texts) - 1))
        values, width = st.integers(0, len(texts) - 1), "<i4"
    elif kind == "logical":
        values, width = st.integers(0, 1), "<i4"
    elif kind == "integer":
        values, width = st.integers(-(2**31) + 1, 2**31 - 1), "<i4"
    elif kind == "integer64":
        values, width = st.integers(-(2**63) + 1, 2**63 - 1), "<i8"
    elif kind == "double":
        values, width = st.floats(allow_nan=False), "<f8"
    else:
        sent["seconds"] = draw(st.sampled_from(SECONDS[kind]))
        sent["zone"] = draw(st.sampled_from(["UTC", "Europe/Oslo", "America/New_York", "No/Where", ""]))
        whole = st.integers(-(10**5), 10**5).map(float)
        values, width = draw(st.sampled_from([whole, whole.map(lambda x: x / 8), st.floats(allow_nan=False)])), "<f8"
    cells = draw(st.lists(values, min_size=n_rows, max_size=n_rows))
    cells = [0 if state else cell for cell, state in zip(cells, states)]
    sent["values"] = np.array(cells, dtype=width).tobytes()
    sent["states"] = bytes(states) if any(states) else b""
    return sent


@st.composite
def tables(draw: Any) -> tuple[int, list[dict[str, Any]]]:
    n_rows = draw(st.integers(0, 8))
    return n_rows, [draw(columns(n_rows, f"c{j}")) for j in range(draw(st.integers(1, 6)))]


def cells(sent: dict[str, Any], values: bytes, states: bytes, texts: bytes, n_rows: int) -> list[Any]:
    """The meaning of the bytes, cell by cell, in plain Python."""
    kind = sent["kind"]
    width = {"integer64": "<i8", **dict.fromkeys(("double", *DATED), "<f8")}.get(kind, "<i4")
    numbers = np.frombuffer(bytes(values), width).tolist()
    levels = split_texts(texts)
    said: list[Any] = []
    for row in range(n_rows):
        state = states[row] if states else 0
        if state:
            said.append(("NA", "NaN")[state - 1])
        elif kind in LEVELLED:
            is_na = numbers[row] == sent["na_level"]
            said.append(("level", "its NA" if is_na else levels[numbers[row]]))
        else:
            said.append((numbers[row], np.signbit(numbers[row])))
    return said


@pytest.mark.slow
@pytest.mark.parametrize("n_tables", [40, *nightly(160)])
def test_columns_of_r_round_trip(n_tables):
    settings(max_examples=n_tables)(given(tables())(comes_back))()


def comes_back(sent: tuple[int, list[dict[str, Any]]]) -> None:
    n_rows, table = sent
    frame, known = read_table(table, n_rows)
    assert frame.shape == (n_rows, len(table))
    for each, column, parts in zip(table, known, write_table(frame, known)):
        before = cells(each, each["values"], each["states"], each.get("texts", b""), n_rows)
        assert cells({**each, "na_level": column.na_level}, *map(bytes, parts), n_rows) == before, each


@pytest.mark.slow
@examples(100)
@given(tables(), st.randoms(use_true_random=False))
def test_subsets_of_rows_are_converted_like_the_whole(sent, random):
    """Rows selected, repeated or reordered in Python, as the engine does, equal the rows of R."""
    n_rows, table = sent
    frame, known = read_table(table, n_rows)
    chosen = [random.randrange(n_rows) for _ in range(5)] if n_rows else []
    written = write_table(frame.iloc[chosen].reset_index(drop=True), known)
    for each, column, parts in zip(table, known, written):
        before = cells(each, each["values"], each["states"], each.get("texts", b""), n_rows)
        after = cells({**each, "na_level": column.na_level}, *map(bytes, parts), len(chosen))
        assert after == [before[row] for row in chosen], each


def sent_as(kind: str, values: list[Any], width: str = "<f8", **more: Any) -> dict[str, Any]:
    missing = [value is None for value in values]
    bytes_of = np.array([0 if gone else value for value, gone in zip(values, missing)], dtype=width).tobytes()
    return {"name": "x", "kind": kind, "values": bytes_of, "states": bytes(missing), **more}


@pytest.mark.parametrize(
    ("sent", "dtype"),
    [
        (sent_as("integer", [1, None], "<i4"), "Int64"),
        (sent_as("logical", [1, None], "<i4"), "boolean"),
        (sent_as("Date", [1.0, None], seconds=86400.0), "datetime64[s]"),
        (sent_as("Date", [0.1], seconds=86400.0), "datetime64[s]"),
        (sent_as("Date", [1e-6], seconds=86400.0), "datetime64[us]"),
        (sent_as("POSIXct", [0.001, None], seconds=1.0, zone="Europe/Oslo"), "datetime64[ms, Europe/Oslo]"),
        (sent_as("POSIXct", [1.6e9 + 2**-22], seconds=1.0, zone="No/Where"), "datetime64[ns, UTC]"),
        (sent_as("POSIXct", [1 / 3 * 1e-3], seconds=1.0, zone="UTC"), "float64"),
        (sent_as("difftime", [1.5, None], seconds=604800.0), "timedelta64[s]"),
        (sent_as("difftime", [np.inf], seconds=1.0), "float64"),
    ],
)
def test_frame_has_the_coarsest_sufficient_dtype(sent, dtype):
    _, values = read_column(sent, len(sent["states"]))
    assert str(values.dtype) == dtype


def test_missing_number_becomes_na_and_nan_stays_nan():
    frame, known = read_table([{"name": "x", "kind": "double", "values": bytes(24), "states": b"\0\1\2"}], 3)
    frame.loc[3] = np.nan
    assert bytes(write_table(frame, known)[0][1]) == b"\0\1\2\1"


def test_level_that_is_na_is_a_separate_category():
    """Its label does not depend on the other levels: new rows may have others."""
    sent = sent_as("factor", [0, 1, None], "<i4", texts=b"NA\0\0", na_level=1)
    column, values = read_column(sent, 3)
    assert column.levels == ("NA", "<NA>")
    assert values.tolist()[:2] == ["NA", "<NA>"]
    assert pd.isna(values[2])
    with pytest.raises(InputError, match="'x' has a level that is NA and one that is the text '<NA>'"):
        read_column(sent_as("factor", [0], "<i4", texts=b"<NA>\0\0", na_level=1), 1)


def test_times_outside_the_training_unit_raise():
    with pytest.raises(InputError, match=r"'x' holds times that are no whole multiples of a s.*round them in R"):
        read_column(sent_as("POSIXct", [0.5], seconds=1.0, zone="UTC", unit="s"), 1)


def test_invalid_columns_raise():
    with pytest.raises(InputError, match="'x' has the kind 'complex'; known are 'double'"):
        read_column({"name": "x", "kind": "complex", "values": b"", "states": b""}, 0)
    with pytest.raises(InputError, match="'x' has 1 values and 2 states for 2 rows"):
        read_column({"name": "x", "kind": "double", "values": bytes(8), "states": b""}, 2)
    with pytest.raises(InputError, match="'x' has codes from 3 to 3 for 1 levels"):
        read_column(sent_as("factor", [3], "<i4", texts=b"a\0"), 1)
    with pytest.raises(InputError, match=r"column name\(s\) 'x' occur more than once"):
        read_table([sent_as("double", [1.0]), sent_as("double", [2.0])], 1)
    with pytest.raises(InputError, match="column 'x' holds 'b', which is not one of R's levels 'a'"):
        write_table(pd.DataFrame({"x": ["b"]}), [SentColumn("x", "factor", ("a",))])


def test_python_frames_become_the_nearest_r_vectors():
    frame = pd.DataFrame(
        {
            "n": [1, 2],
            "long": [2**40, 1],
            "x": [0.5, np.nan],
            "yes": [True, False],
            "text": ["a", None],
            "level": pd.Categorical(["u", "v"]),
            "rank": pd.Categorical(["u", "v"], ordered=True),
        }
    )
    kinds = ["integer", "double", "double", "logical", "character", "factor", "ordered"]
    assert [column.kind for column in columns_of(frame)] == kinds


@pytest.mark.slow
def test_nullable_columns_give_the_same_counterfactuals():
    """R's integers and logicals are nullable in Python; the answers equal those for plain ones."""
    rng = np.random.default_rng(1)
    plain = pd.DataFrame({"a": rng.integers(0, 50, 300), "b": rng.random(300) < 0.5, "c": rng.normal(size=300)})
    nullable = plain.astype({"a": "Int64", "b": "boolean"})
    found = [
        MCCE(lambda rows: np.asarray(rows["a"] + 20 * rows["b"], dtype=float) / 70, fixed=["c"], random_state=1)
        .fit(X)
        .explain(X.head(20), n_samples=100)
        for X in (plain, nullable)
    ]
    assert found[1].frame.astype(found[0].frame.dtypes).equals(found[0].frame)
    assert found[1].measures.equals(found[0].measures)
