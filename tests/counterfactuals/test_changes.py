"""The changes of a result, by hand and by a loop over the cells."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counterfactuals.problem import around
from tests.marks import examples


def test_changes_match_hand_calculation(found):
    expected = pd.DataFrame(
        [
            ("ann", 1, "salary", 68_000, 72_000),
            ("ann", 1, "defaulted", True, False),
            ("ann", 2, "salary", 68_000, 90_000),
            ("ann", 2, "home", "rent", "<script>"),
            ("bob", 1, "home", np.nan, "own"),
        ],
        columns=["id", "rank", "feature", "from", "to"],
    )
    changes = found.changes()
    pd.testing.assert_frame_equal(changes, expected, check_dtype=False)
    assert changes[["from", "to"]].dtypes.eq(object).all()


def test_changes_of_strings_stay_objects():
    before, after = (pd.DataFrame({"home": [level]}) for level in ("rent", "own"))
    assert around(before, after).changes()[["from", "to"]].dtypes.eq(object).all()


COLUMN_KINDS = {
    "int": lambda codes: pd.Series(codes, dtype="int64"),
    "float": lambda codes: pd.Series(np.where(codes == 0, np.nan, codes / 3)),
    "bool": lambda codes: pd.Series(codes % 2 == 0),
    "nullable": lambda codes: pd.Series(codes, dtype="Int64").mask(codes == 0),
    "string": lambda codes: pd.Series(np.array(["a", "b", "c", None], dtype=object)[codes]).astype("str"),
    "object": lambda codes: pd.Series(np.array(["a", 1, pd.NA, None], dtype=object)[codes], dtype=object),
    "category": lambda codes: pd.Series(pd.Categorical.from_codes(codes - 1, ["z", "y", "x"])),
    "ordered": lambda codes: pd.Series(pd.Categorical.from_codes(codes - 1, [3, 1, 2], ordered=True)),
    "date": lambda codes: pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(codes, "D")).mask(codes == 0),
    "zoned": lambda codes: pd.Series(pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(codes, "h")),
}


@examples(6)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 6), per_factual=st.integers(1, 3))
def test_changes_equal_a_loop_over_the_cells(seed, n, per_factual):
    rng = np.random.default_rng(seed)
    columns = [(name, make) for name, make in COLUMN_KINDS.items() if rng.random() < 0.7]
    before = pd.DataFrame({name: make(rng.integers(0, 4, n)) for name, make in columns}, index=range(n))
    before = before.set_axis(pd.Index(rng.permutation(n) + 100))
    after = pd.DataFrame({name: make(rng.integers(0, 4, n * per_factual)) for name, make in columns})
    if not columns:
        after = after.reindex(range(n * per_factual))
    found = around(before, after, per_factual)
    expected = []
    for (id, rank), row in zip(found.frame.index, range(len(found))):
        for name, _ in columns:
            old, new = before.loc[id, name], found.frame[name].iloc[row]
            both_missing = pd.isna(old) and pd.isna(new)
            either_missing = pd.isna(old) or pd.isna(new)
            if not both_missing and (either_missing or old != new):
                expected.append((id, rank, name, old, new))
    changes = found.changes()
    assert list(changes.columns) == ["id", "rank", "feature", "from", "to"]
    got = list(changes.itertuples(index=False, name=None))
    assert [cell[:3] for cell in got] == [cell[:3] for cell in expected]
    for (*_, old, new), (*_, old_expected, new_expected) in zip(got, expected):
        assert (pd.isna(old) and pd.isna(old_expected)) or old == old_expected
        assert (pd.isna(new) and pd.isna(new_expected)) or new == new_expected


def test_categories_listed_in_another_order_are_the_same_values():
    before = pd.DataFrame({"home": pd.Categorical(["a", "b"], categories=["a", "b"])})
    after = pd.DataFrame({"home": pd.Categorical(["a", "b"], categories=["b", "a"])})
    assert around(before, after).changes().empty


@pytest.mark.slow
def test_changes_of_many_rows_are_quick():
    rng = np.random.default_rng(1)
    n = 100_000

    def table() -> pd.DataFrame:
        numbers = {f"x{j}": rng.integers(0, 3, n) for j in range(8)}
        levels = pd.Categorical.from_codes(rng.integers(0, 3, n), ["a", "b", "c"])
        strings = pd.Series(np.array(["a", "b", "c"])[rng.integers(0, 3, n)], dtype="str")
        dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 3, n), "D")
        return pd.DataFrame({**numbers, "l": levels, "s": strings, "d": dates, "b": rng.random(n) < 0.5, "f": 0.5})

    found = around(table(), table())
    start = time.process_time()
    changes = found.changes()
    seconds = time.process_time() - start
    assert len(changes) == int((found.changed_features()["times"]).sum())
    assert seconds < 5, "about a second of computing is expected"


def test_changed_features_have_directions_and_typical_steps():
    before = pd.DataFrame(
        {
            "salary": [10, 20, 30, 40],
            "size": pd.Categorical(["S", "M", "L", "S"], ["S", "M", "L"], ordered=True),
            "home": ["rent", "rent", "own", "own"],
            "debt": [1.0, np.nan, 3.0, 4.0],
            "since": pd.Timestamp("2024-01-01"),
            "month": pd.PeriodIndex(["2024-01", "2024-02", "2024-03", "2024-04"], freq="M"),
        }
    )
    after = before.assign(
        salary=[15, 40, 30, 30],
        size=pd.Categorical(["M", "S", "L", "L"], ["S", "M", "L"], ordered=True),
        home=["own", "own", "rent", "own"],
        debt=[1.0, 2.0, 1.0, 4.0],
        since=pd.Timestamp("2024-01-11"),
        month=pd.PeriodIndex(["2024-02", "2024-02", "2024-02", "2024-02"], freq="M"),
    )
    table = around(before, after).changed_features()
    expected = {
        "salary": (0.5, 0.25, 0.0, 0.0, "median +5"),
        "size": (0.5, 0.25, 0.0, 0.0, "mostly to M"),
        "home": (0.0, 0.0, 0.75, 0.0, "mostly to own"),
        "debt": (0.0, 0.25, 0.0, 0.25, "median -2"),
        "since": (1.0, 0.0, 0.0, 0.0, "median +10 days"),
        "month": (0.25, 0.5, 0.0, 0.0, "to 2024-02"),
    }
    for name, row in expected.items():
        assert tuple(table.loc[name, ["up", "down", "other", "missing", "note"]]) == row
    assert (table[["up", "down", "other", "missing"]].sum(axis=1) == table["share"]).all()
