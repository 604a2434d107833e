"""Functions in rules, compared with plain Python, one row at a time."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce import InputError
from mcce.constraints.rules import resolve_rule
from mcce.table import Schema
from tests.marks import examples

NUMBERS = pd.DataFrame({"a": [-2.5, 0.0, 1.5, 2.5, np.nan, 800.0, 0.29], "b": [3.0, 0.5, 2.0, np.nan, 1.0, -1.0, 7.0]})


def computed(text, X):
    """Return the right side of ``target == text`` for each row."""
    X = X.assign(target=np.arange(len(X), dtype=float))
    schema = Schema.from_data(X)
    matrix = schema.encode(X).matrix
    return resolve_rule(mcce.rule(f"target == {text}"), schema).condition.right.of(matrix, matrix)


def held(text, X):
    schema = Schema.from_data(X)
    matrix = schema.encode(X).matrix
    return resolve_rule(mcce.rule(text), schema).holds(matrix, matrix).tolist()


def by_row(function, *columns):
    def one(*values):
        if any(math.isnan(value) for value in values):
            return math.nan
        try:
            return float(function(*values))
        except (ValueError, ZeroDivisionError, OverflowError):
            return math.nan

    return [one(*values) for values in zip(*(NUMBERS[name] for name in columns))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log(a)", by_row(math.log, "a")),
        ("exp(a)", by_row(math.exp, "a")),
        ("sqrt(a)", by_row(math.sqrt, "a")),
        ("abs(a)", by_row(abs, "a")),
        ("min(a, b)", by_row(min, "a", "b")),
        ("max(a, b, 1)", by_row(lambda a, b: max(a, b, 1), "a", "b")),
        ("round(a)", by_row(round, "a")),
        ("round(a, 1)", by_row(lambda a: round(a, 1), "a")),
        ("round(a, -2)", by_row(lambda a: round(a, -2), "a")),
        ("floor(a)", by_row(math.floor, "a")),
        ("ceil(a)", by_row(math.ceil, "a")),
        ("trunc(a)", by_row(math.trunc, "a")),
        ("floor(100 * a) / 100", [-2.5, 0.0, 1.5, 2.5, math.nan, 800.0, 0.29]),  # 100 * 0.29 is below 29
        ("trunc(a, 2)", [-2.5, 0.0, 1.5, 2.5, math.nan, 800.0, 0.29]),
        ("floor(a, -1)", [-10.0, 0.0, 0.0, 0.0, math.nan, 800.0, 0.0]),
        ("if(a > 1, a, -b)", [-3.0, -0.5, 1.5, 2.5, -1.0, 800.0, -7.0]),  # a comparison with a missing value is false
        ("if(missing(b), 0, b) * 2", [6.0, 1.0, 4.0, 0.0, 2.0, -2.0, 14.0]),
        ("sqrt(if(a > b, a - b, log(b)))", by_row(lambda a, b: math.sqrt(a - b if a > b else math.log(b)), "a", "b")),
    ],
)
def test_functions_of_numbers(text, expected):
    got = computed(text, NUMBERS)
    if text.startswith("sqrt(if"):  # a comparison with a missing value is false, so the second value is used
        expected = [
            math.sqrt(math.log(b)) if math.isnan(a) and b >= 1 else e for a, b, e in zip(NUMBERS.a, NUMBERS.b, expected)
        ]
    np.testing.assert_allclose(got, expected, rtol=1e-15)


def completed(later, earlier, unit):
    """Count the complete months or years between two dates, day by day."""
    if later < earlier:
        return -completed(earlier, later, unit)
    months = 12 * (later.year - earlier.year) + later.month - earlier.month
    months -= (later.day, later.time()) < (earlier.day, earlier.time())
    return months if unit == "months" else months // 12


days = st.datetimes(datetime.datetime(1930, 1, 1), datetime.datetime(2060, 1, 1))


@given(st.lists(st.tuples(days, days), min_size=2, max_size=20), st.sampled_from(["h", "D"]))
@examples(50)
def test_months_and_years_are_completed_units(pairs, unit):
    later, earlier = (pd.Series(pd.to_datetime(list(each))).dt.floor(unit).astype("M8[ns]") for each in zip(*pairs))
    X = pd.DataFrame({"later": later, "earlier": earlier})
    for what in ("months", "years"):
        assert computed(f"{what}(later - earlier)", X).tolist() == [
            completed(*each, what) for each in zip(later, earlier)
        ]
    assert computed("days(later - earlier)", X).tolist() == ((later - earlier) / pd.Timedelta("1D")).tolist()


def test_end_of_month_and_29_february():
    X = pd.DataFrame(
        {"a": pd.to_datetime(["2021-02-28", "2021-03-01", "2021-02-28", "2021-03-01", "2024-02-29", None])}
    )
    X["b"] = pd.to_datetime(["2021-01-31", "2021-01-31", "2020-02-29", "2020-02-29", "2020-02-29", "2020-02-29"])
    np.testing.assert_array_equal(computed("months(a - b)", X), [0, 1, 11, 12, 48, np.nan])
    np.testing.assert_array_equal(computed("years(a - b)", X), [0, 0, 0, 1, 4, np.nan])
    np.testing.assert_array_equal(computed("years('2024-05-31' - b)", X), [3, 3, 4, 4, 4, 4])


def test_months_follow_the_time_zone():
    local = pd.DataFrame(
        {"a": pd.to_datetime(["2020-07-01", "2021-01-01"]), "b": pd.to_datetime(["2020-01-01", "2020-07-01"])}
    )
    zoned = local.apply(lambda dates: dates.dt.tz_localize("Europe/Oslo"))
    assert computed("months(a - b)", zoned).tolist() == [6, 6]


def test_levels_and_conditions_are_computed():
    X = pd.DataFrame({"age": [10, 20, 30], "band": ["minor", "adult", "minor"], "old": [False, True, True]})
    assert held("band == if(age >= 18, 'adult', 'minor')", X) == [True, True, False]
    assert held("if(age >= 18, 'adult', 'minor') != band", X) == [False, False, True]
    assert held("old == (age >= 18)", X) == [True, True, True]
    assert held("if (age >= 18) then old", X) == [True, True, True]
    assert held("if(age >= 18, 1, 0) + if(old, 1, 0) == 2", X) == [False, True, True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("log(a, b) > 1", r"at character 1: log\(\) takes 1 value, got 2"),
        ("round(a, 1, 2) > 1", r"round\(\) takes 1 to 2 values, got 3"),
        ("if(a > 1, 2) > 1", r"if\(\) takes 3 values, got 2"),
        (
            "round(a, b) > 1",
            r"at character 10: the decimals of round\(\) are not a whole number from -12 to 12; write for ex",
        ),
        ("years(a) > 1", r"years\(\) takes a difference of two dates, as in years\(applied_on - hired_on\)"),
        ("days(a - b) > 1", r"at character 6: days\(\) takes a difference of two dates"),
        ("log('x') > 1", r"at character 5: 'x' \(text\) is not a number, and cannot be used in arithmetic"),
        ("if(a, 1, 2) > 1", r"at character 4: 'a' \(a column of numbers\) is neither true nor false"),
        ("a == if(b > 1, 'x', 'y')", r"if\(...\) of levels cannot be compared with 'a' \(a column of numbers\)"),
        ("a ^ 2 > 1", r"'\^' is not valid here; write x \* x"),
        ("logg(a) > 1", r"there is no function 'logg'; did you mean 'log'\?"),
    ],
)
def test_type_errors_report_the_position(text, said):
    with pytest.raises(InputError, match=said):
        held(text, NUMBERS)
