"""Warnings about identifiers and levels seen once; ordinary columns do not warn."""

import warnings

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.table import Schema
from mcce.table.checks import warn_of_columns

N = 400
RNG = np.random.default_rng(3)


def said_of(X, fixed=()):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_columns(Schema.from_data(X).encode(X), fixed)
    return [str(w.message) for w in caught]


IDENTIFIERS = {
    "counted": np.arange(N),
    "shuffled": RNG.permutation(N) + 70_000,
    "with gaps": np.sort(RNG.choice(10 * N, N, replace=False)),
    "counted as floats": np.arange(N, 0, -1.0),
    "with missing ones": pd.array([None, *range(1, N)], dtype="Int64"),
    "text": [f"customer {i}" for i in range(N)],
    "nearly all different": [f"customer {max(i, 10)}" for i in range(N)],
    "category": pd.Categorical([f"{i:05d}" for i in range(N)]),
}

ORDINARY = {
    "age": RNG.integers(18, 90, N),
    "amounts": RNG.integers(500, 200_000, N),
    "cents": np.arange(N) / 100,
    "measured": RNG.normal(size=N),
    "dates": pd.date_range("2020-01-01", periods=N),
    "levels": RNG.choice(list("abcdef"), N),
    "half different": [f"job {i // 2}" for i in range(N)],
    "constant": np.ones(N),
    "missing": np.full(N, np.nan),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_identifier_is_detected(name):
    (said,) = said_of(pd.DataFrame({"age": ORDINARY["age"], "id": IDENTIFIERS[name]}))
    assert said.startswith("X has columns that look like identifiers: 'id' (")
    assert "X.set_index('id'), it names the rows" in said
    assert "'age'" not in said


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_column_does_not_warn(name):
    assert said_of(pd.DataFrame({"x": ORDINARY[name]})) == []


def test_all_identifiers_are_reported_at_once():
    X = pd.DataFrame({f"id{k}": np.arange(N) for k in range(7)})
    (said,) = said_of(X)
    assert said.count("whole numbers in 400 rows, one after the other") == 5
    assert "and 2 more" in said


def test_level_seen_once_is_named():
    X = pd.DataFrame({"job": ["clerk"] * (N - 2) + ["pilot", "nurse"], "sex": ["m"] * (N - 1) + ["f"]})
    (said,) = said_of(X, fixed=["sex"])
    assert said.startswith("X has levels that only one row has, 'job': 'nurse', 'pilot'. Nothing can be learned")
    assert said.endswith("mcce.allow('job', never=['nurse']).")
    assert "'sex'" not in said, "a fixed feature is never moved to a level"


def test_unused_levels_are_not_reported():
    X = pd.DataFrame({"job": pd.Categorical(["clerk"] * N, categories=["clerk", "pilot"])})
    assert said_of(X) == []


def test_small_tables_do_not_warn():
    assert said_of(pd.DataFrame({"id": range(50), "job": ["clerk"] * 49 + ["pilot"]})) == []


def test_warning_points_to_the_line_of_fit():
    X = pd.DataFrame({"id": np.arange(N), "age": ORDINARY["age"]})
    for fit in (
        mcce.ChainModel(random_state=1).fit,
        mcce.MCCE(lambda rows: rows["age"] > 40, decision=True, fixed=["age"]).fit,
    ):
        with pytest.warns(mcce.MCCEWarning, match="look like identifiers: 'id' ") as caught:
            fit(X)
        assert [w.filename for w in caught] == [__file__]


def test_remedies_of_the_warning_are_effective():
    X = pd.DataFrame({"id": np.arange(N), "age": ORDINARY["age"], "job": ["clerk"] * (N - 1) + ["pilot"]})
    explainer = mcce.MCCE(lambda rows: rows["age"] > 40, decision=True, random_state=1)
    with pytest.warns(mcce.MCCEWarning, match="levels that only one row has"):
        explainer.fit(X.set_index("id"))
    found = explainer.explain(X.set_index("id").head(30), constraints=[mcce.allow("job", never=["pilot"])])
    assert (found.frame["job"] == "clerk").all()
    assert set(found) <= set(X["id"])
