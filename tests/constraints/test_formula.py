"""Rules evaluated by mcce and, row by row, by Python's own `eval` (`tests.constraints.oracle`)."""

import pickle
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.constraints import read_formula
from mcce.exceptions import InputError
from mcce.table import Schema
from tests.constraints.oracle import EDUCATION, JOBS, holds, people

X = people(60)
SCHEMA = Schema.from_data(X)
MATRIX = SCHEMA.encode(X).matrix
FACTUALS = np.roll(MATRIX, 7, axis=0)


def both(text, code=None):
    """Return the text of mcce and that of Python."""
    code = text if code is None else code
    return text, code.replace("`hours per week`", "hours_per_week")


def pairs(strategy, *others):
    """Return a strategy of texts made by a function of parts, for both languages."""
    *parts, made = (strategy, *others)
    return st.tuples(*parts).map(lambda each: tuple(made(*side) for side in zip(*each)))


names = st.sampled_from(["age", "salary", "`hours per week`"]).map(both)
dates = st.sampled_from(["hired", "left"]).map(both)


def was(names):
    return names.map(lambda name: (f"was({name[0]})", f"was_{name[1]}"))


numbers = st.recursive(
    st.one_of(names, was(names), st.sampled_from(["0", "2", "10", "0.5", "24"]).map(lambda n: (n, f"cell({n})"))),
    lambda inner: st.one_of(
        pairs(inner, st.sampled_from("+-*/").map(both), inner, "({} {} {})".format),
        pairs(st.sampled_from(["abs", "round", "floor", "ceil", "sqrt"]).map(both), inner, "{}({})".format),
        pairs(st.sampled_from(["min", "max"]).map(both), inner, inner, "{}({}, {})".format),
        pairs(inner, "(-{})".format),
        pairs(inner, inner, inner, "({} if {} > 3 else {})".format),
        pairs(dates, dates, "({} - {})".format),
    ),
    max_leaves=5,
)
signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">="]).map(both)
quoted = {
    "job": st.sampled_from([repr(job) for job in JOBS]).map(both),
    "edu": st.sampled_from([repr(level) for level in EDUCATION]).map(both),
    "hired": st.sampled_from(["'2020-01-07'", "'2020-02-01'"]).map(both),
}


def lists(levels):
    # Python finds the same object in a list even if it is missing, so names in lists are new cells
    return st.lists(levels, min_size=1, max_size=3).map(lambda each: tuple(f"[{', '.join(s)}]" for s in zip(*each)))


comparisons = st.one_of(
    pairs(numbers, signs, numbers, "{} {} {}".format),
    pairs(numbers, signs, numbers, signs, numbers, "{} {} {} {} {}".format),
    pairs(names, lists(names.map(lambda name: (name[0], f"cell({name[1]}.value)"))), "{} in {}".format),
    pairs(was(names) | st.just(both("job")), "missing({})".format),
    pairs(st.just(both("edu")), signs, quoted["edu"], "{} {} {}".format),
    pairs(st.just(both("edu")), signs, st.just(("was(edu)", "was_edu")), "{} {} {}".format),
    pairs(st.just(both("job")), st.sampled_from(["==", "!="]).map(both), quoted["job"], "{} {} {}".format),
    pairs(st.just(both("job")), lists(quoted["job"]), "{} in {}".format),
    lists(quoted["job"]).map(lambda each: (f"job not in {each[0]}", f"not_in(job, {each[1]})")),
    pairs(dates, signs, st.one_of(dates, quoted["hired"]), "{} {} {}".format),
    pairs(
        dates, signs, dates, st.just(("{} + 3", "days_later({}, 3)")), lambda a, sign, b, f: f"{a} {sign} {f.format(b)}"
    ),
    st.just(both("owner")),
    st.just(("owner == true", "owner == True")),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        pairs(inner, st.sampled_from(["and", "or"]).map(both), inner, "({} {} {})".format),
        pairs(inner, "(not ({}))".format),
        pairs(inner, inner, inner, "({} if {} else {})".format),
    ),
    max_leaves=4,
)


@given(conditions)
def test_conditions_hold_where_python_says(texts):
    text, code = texts
    formula = read_formula(text, SCHEMA)
    expected = holds(compile(code, text, "eval"), SCHEMA.decode(MATRIX), SCHEMA.decode(FACTUALS))
    np.testing.assert_array_equal(formula.holds(MATRIX, FACTUALS), expected, err_msg=text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log(age)", np.log(X["age"])),
        ("exp(age / 10)", np.exp(X["age"] / 10)),
        ("salary ** 2 / age", X["salary"] ** 2 / X["age"]),
        ("age ** -0.5", X["age"] ** -0.5),
        ("round(salary / 7, 2)", (X["salary"] / 7).round(2)),
        ("log(age - 20)", np.log((X["age"] - 20).where(X["age"] > 20))),
        ("age / (age - 20)", X["age"] / (X["age"] - 20).where(X["age"] != 20)),
        ("left - hired", (X["left"] - X["hired"]) / pd.Timedelta(days=1)),
        ("max(left, hired + 5) - hired", np.maximum((X["left"] - X["hired"]) / pd.Timedelta(days=1), 5)),
        (
            "(hired if age > 25 else left) - hired",
            ((X["left"] - X["hired"]) / pd.Timedelta(days=1)).where(X["age"] <= 25, 0),
        ),
        ("exp(age ** 5)", np.full(60, np.nan)),
    ],
)
def test_numbers_are_those_of_pandas(text, expected):
    values = read_formula(text, SCHEMA).evaluate(MATRIX).data
    np.testing.assert_allclose(values, np.asarray(expected, dtype=float), rtol=1e-12)


def test_levels_are_chosen_and_compared_across_columns():
    Y = X.assign(other=np.where(X["age"] > 25, "cook", "baker"))
    schema = Schema.from_data(Y)
    rows = schema.encode(Y).matrix
    np.testing.assert_array_equal(read_formula("job == other", schema).holds(rows), Y["job"] == Y["other"])
    found = read_formula("other == ('cook' if age > 25 else 'baker')", schema).holds(rows)
    assert found.all()
    codes = read_formula("'cook' if age > 25 else 'pilot'", schema).encode(rows, schema.features[2])
    assert [JOBS[int(code)] for code in codes] == np.where(Y["age"] > 25, "cook", "pilot").tolist()


def test_numbers_may_be_levels():
    Y = pd.DataFrame({"rooms": [1, 2, 3, 3], "size": [10.0, 20.0, 30.0, 40.0]})
    schema = Schema.from_data(Y, kinds={"rooms": "ordered"})
    rows = schema.encode(Y).matrix
    assert read_formula("rooms >= 2", schema).holds(rows).tolist() == [False, True, True, True]
    with pytest.raises(InputError, match="5 is not a level of 'rooms'"):
        read_formula("rooms == 5", schema)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Oslo"])
def test_dates_compare_in_any_unit_and_time_zone(unit, zone):
    dates = (
        pd.Series(pd.to_datetime(["2024-03-30 12:00", "2024-03-31 12:00", None])).dt.tz_localize(zone).dt.as_unit(unit)
    )
    Y = pd.DataFrame({"begin": dates, "end": dates + pd.Timedelta(hours=36)})
    schema = Schema.from_data(Y)
    rows = schema.encode(Y).matrix
    assert read_formula("end - begin == 1.5", schema).holds(rows).tolist() == [True, True, False]
    assert read_formula("begin >= '2024-03-31 12:00'", schema).holds(rows).tolist() == [False, True, False]


def test_durations_are_days_and_periods_count_themselves():
    Y = pd.DataFrame(
        {"took": pd.to_timedelta([12, 36], unit="h"), "month": pd.PeriodIndex(["2024-01", "2024-05"], freq="M")}
    )
    schema = Schema.from_data(Y)
    rows = schema.encode(Y).matrix
    assert read_formula("took * 2 == 3", schema).holds(rows).tolist() == [False, True]
    assert read_formula("month > '2024-03'", schema).holds(rows).tolist() == [False, True]


def test_dates_before_1677():
    Y = pd.DataFrame({"born": np.array(["1503-01-01", "1650-05-05"], dtype="M8[s]")})
    schema = Schema.from_data(Y)
    assert read_formula("born < '1600-01-01'", schema).holds(schema.encode(Y).matrix).tolist() == [True, False]


def test_formula_reads_only_the_columns_that_it_names():
    formula = read_formula("salary > was(age) and missing(was(job))", SCHEMA)
    assert (formula.columns, formula.factual_columns) == ((1,), (0, 2))
    rows = MATRIX.copy()
    rows[:, [0, *range(2, 8)]] = np.nan
    np.testing.assert_array_equal(formula.holds(rows, FACTUALS), formula.holds(MATRIX, FACTUALS))


def test_formula_survives_pickle():
    formula = pickle.loads(pickle.dumps(read_formula("`hours per week` > 10 or owner", SCHEMA)))
    np.testing.assert_array_equal(formula.holds(MATRIX), (X["hours per week"] > 10) | X["owner"])


def test_arranged_columns_give_the_same_answers():
    schema = SCHEMA.arrange(["left", "owner", "edu", "salary", "hired", "job", "hours per week", "age"])
    text = "salary / age > 1 or hired < left and edu != 'phd'"
    np.testing.assert_array_equal(
        read_formula(text, schema).holds(schema.encode(X).matrix), read_formula(text, SCHEMA).holds(MATRIX)
    )


def nested(inner, outer, times):
    """Return a text put into another one again and again."""
    for _ in range(times):
        inner = outer.format(inner)
    return inner


PRODUCT = "(age * " + " * ".join(["salary"] * 11) + ")"
HOSTILE = {
    "product": (nested(PRODUCT, f"({{}} * {PRODUCT})", 60) + " > 0", 1_000),
    "power": (nested("age", "({}) ** 10", 90) + " > 0", 1_000),
    "chain": (nested("owner", "true == ({}) == true", 45), 1_000),
    "list": (nested("owner", "({}) in [true, false, true]", 45), 1_000),
    "choice": ("(" + nested("owner", "({} if age > 20 else age > 25)", 90) + ") == true", 1_000),
    "compared choice": (nested("age", "(salary if 0 < {} < 30 else age)", 45) + " > 0", 1_000),
    "chosen level": (nested("'cook'", "({} if age > 20 else 'clerk')", 90) + " == job", 1_000),
    "many rows": (nested(PRODUCT, f"({{}} * {PRODUCT})", 5) + " > 0", 100_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_and_memory_of_hostile_texts_are_bounded(name):
    """Each part is computed once: two evaluations of a part that is nested 45 deep would take 2 ** 45."""
    text, n = HOSTILE[name]
    rows = np.tile(MATRIX, (n // len(MATRIX) + 1, 1))[:n]
    tracemalloc.start()
    begin = time.process_time()
    read_formula(text, SCHEMA).holds(rows)
    seconds, most = time.process_time() - begin, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 2.0
    assert most < 3e6 + 200 * n  # a few dozen arrays of the rows


@pytest.mark.parametrize("power", ["20", "(age)", "(2 ** 9)", "-11", "'2'", "true"])
def test_exponents_are_small_numbers(power):
    with pytest.raises(InputError, match="an exponent is a number from -10 to 10"):
        read_formula(f"(age + salary) ** {power} > 0", SCHEMA)
