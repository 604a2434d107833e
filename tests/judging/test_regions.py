"""Regions: the rows inside match the description."""

import numpy as np
import pandas as pd
import pytest

from mcce.judging.regions import Condition, find_regions
from mcce.table import Schema


def encoded(n=400, missing=0.0):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": np.where(rng.uniform(size=n) < missing, np.nan, 1e5 * rng.exponential(size=n)),
            "job": rng.choice(["clerk", "pilot", "cook"], n, p=[0.5, 0.3, 0.2]),
            "sex": rng.choice(["f", "m"], n),
            "rank": pd.Categorical(rng.choice(["low", "mid", "top"], n), ["low", "mid", "top"], ordered=True),
        }
    )
    return X, Schema.from_data(X).encode(X)


def holds(X, condition):
    """The meaning of a condition, parsed from its text."""
    name, _, rest = str(condition).partition(" is ")
    column = X[name]
    if rest == "missing":
        return column.isna()
    if rest == "known":
        return column.notna()
    if rest.startswith(("at most ", "above ")):
        value = condition.feature.levels[int(condition.value)] if name == "rank" else condition.value
        return column <= value if rest.startswith("at most") else column > value
    return column != rest[4:] if rest.startswith("not ") else column == rest


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_rows_inside_a_region_match_its_description(missing):
    X, table = encoded(missing=missing)
    regions = find_regions(table)
    assert {len(conditions) for conditions in regions.conditions} == {1, 2}
    assert {c.feature.name for conditions in regions.conditions for c in conditions} == set(X.columns)
    for conditions, inside in zip(regions.conditions, regions.boxes):
        wanted = np.logical_and.reduce([holds(X, condition) for condition in conditions])
        np.testing.assert_array_equal(inside == 1, wanted, err_msg=str(conditions))
        assert 15 <= inside.sum() <= len(X) - 15
        assert len({c.column for c in conditions}) == len(conditions)


def test_missing_values_satisfy_no_inequality():
    _, table = encoded(missing=0.2)
    is_missing = np.isnan(table.matrix[:, 1])
    condition = Condition(1, table.features[1], "at most", 1e5)
    assert not (condition.holds(table) & is_missing).any()
    assert not (condition.opposite().holds(table) & is_missing).any()
    assert "income is missing" in {str(*c) for c in find_regions(table).conditions if len(c) == 1}


def test_other_of_two_levels_is_named():
    _, table = encoded()
    assert str(Condition(3, table.features[3], "is", 0.0).opposite()) == "sex is m"
    assert str(Condition(2, table.features[2], "is", 0.0).opposite()) == "job is not clerk"


@pytest.mark.parametrize(("value", "text"), [(123456.0, "123,456"), (0.123456, "0.1235"), (1e5, "100,000")])
def test_numbers_are_formatted_for_readers(value, text):
    _, table = encoded()
    assert str(Condition(1, table.features[1], "above", value)) == f"income is above {text}"


def test_dates_are_formatted_as_dates():
    X = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=100)})
    table = Schema.from_data(X).encode(X)
    texts = {str(*conditions) for conditions in find_regions(table).conditions}
    assert "day is at most 2024-02-19" in texts


def test_no_regions_without_givens_or_with_few_rows():
    _, table = encoded()
    assert find_regions(table.first(0)).boxes.shape == (0, 400)
    assert not find_regions(table.take(np.arange(25))).conditions
