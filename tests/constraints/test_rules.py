from __future__ import annotations

import itertools
import operator
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce import InputError, Schema
from mcce.constraints import resolve
from mcce.constraints.rules import resolve_rule
from tests.constraints.reader import EDUCATION, JOBS, known, people
from tests.marks import examples

X = people()
SCHEMA = Schema.from_data(X)
MATRIX = SCHEMA.encode(X).matrix
SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def resolved(text):
    return resolve_rule(mcce.rule(text), SCHEMA)


def or_missing(function):
    """Return a function that is missing where one of its arguments is."""
    return lambda *values: None if any(value is None for value in values) else function(*values)


def divide(a, b):
    return None if b == 0 else a / b


COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": divide}


@st.composite
def numbers(draw, depth=2):
    """A text for a number, and a function of (row, was) that computes it in plain Python."""
    kind = draw(st.integers(0, 7 if depth else 3))
    if kind == 0:
        value = draw(st.sampled_from([0, 1, 2.5, 20, 24, 300]))
        return str(value), lambda row, was: float(value)
    if kind in (1, 2, 3):
        name = draw(st.sampled_from(["age", "salary", 7]))
        text = "`7`" if name == 7 else name
        if kind == 3:
            return f"was({text})", lambda row, was: known(was[name])
        return text, lambda row, was: known(row[name])
    (a, first), (b, second) = draw(numbers(depth - 1)), draw(numbers(depth - 1))
    if kind in (4, 5):
        sign = draw(st.sampled_from(sorted(COMPUTE)))
        compute = or_missing(COMPUTE[sign])
        return f"({a}) {sign} ({b})", lambda row, was: known(compute(first(row, was), second(row, was)))
    if kind == 6:
        which = draw(st.sampled_from(["min", "max"]))
        choose = or_missing({"min": min, "max": max}[which])
        return f"{which}({a}, {b})", lambda row, was: choose(first(row, was), second(row, was))
    negate = draw(st.booleans())
    change = or_missing(operator.neg if negate else abs)
    return (f"-({a})" if negate else f"abs({a})"), lambda row, was: change(first(row, was))


def comparing(sign, first, second):
    compare = or_missing(SIGNS[sign])
    return lambda row, was: bool(compare(first(row, was), second(row, was)))


@st.composite
def conditions(draw, depth=2):
    """A text for a condition, and a function of (row, was) that evaluates it in plain Python."""
    kind = draw(st.integers(0, 11 if depth else 7))
    sign = draw(st.sampled_from(sorted(SIGNS)))
    if kind == 0:
        level = draw(st.sampled_from(EDUCATION))
        rank = or_missing(EDUCATION.index)
        return f"edu {sign} '{level}'", comparing(
            sign, lambda row, was: rank(known(row["edu"])), lambda *_: rank(level)
        )
    if kind == 1:
        sign, level = draw(st.sampled_from(["==", "!="])), draw(st.sampled_from(JOBS))
        return f'"{level}" {sign} job', comparing(sign, lambda row, was: known(row["job"]), lambda *_: level)
    if kind == 2:
        among, negated = draw(st.lists(st.sampled_from(JOBS), min_size=1)), draw(st.booleans())
        text = f"job {'not ' * negated}in [{', '.join(map(repr, among))}]"
        return text, lambda row, was: known(row["job"]) is not None and (row["job"] in among) != negated
    if kind == 3:
        day = draw(st.sampled_from(["2020-01-01", "2020-01-12", "2020-02-10 10:00"]))
        days = draw(st.sampled_from([0, 3, 10.5]))
        left, right = draw(
            st.sampled_from(
                [
                    ("hired", f"'{day}'"),
                    (f"'{day}'", "left"),
                    ("left", "hired"),
                    ("left - hired", str(days)),
                    ("hired", f"was(left) + {days}"),
                    ("max(left, hired)", "was(hired)"),
                ]
            )
        )
        meaning = {
            f"'{day}'": lambda row, was: pd.Timestamp(day),
            "hired": lambda row, was: row["hired"],
            "left": lambda row, was: row["left"],
            "left - hired": lambda row, was: (row["left"] - row["hired"]) / pd.Timedelta(days=1),
            str(days): lambda row, was: days,
            f"was(left) + {days}": lambda row, was: was["left"] + pd.Timedelta(days=days),
            "max(left, hired)": lambda row, was: max(row["left"], row["hired"]),
            "was(hired)": lambda row, was: was["hired"],
        }
        return f"{left} {sign} {right}", comparing(sign, meaning[left], meaning[right])
    if kind == 4:
        if draw(st.booleans()):
            return "owner", lambda row, was: bool(row["owner"])
        return "was(owner) != true", lambda row, was: not was["owner"]
    if kind == 5:
        name = draw(st.sampled_from(["salary", "job", "edu", "age"]))
        return f"missing({name})", lambda row, was: known(row[name]) is None
    if kind in (6, 7):
        (a, first), (b, second), (c, third) = draw(numbers()), draw(numbers()), draw(numbers(0))
        once = comparing(sign, first, second)
        if kind == 6:
            return f"{a} {sign} {b}", once
        other = draw(st.sampled_from(sorted(SIGNS)))
        twice = comparing(other, second, third)
        return f"{a} {sign} {b} {other} {c}", lambda row, was: once(row, was) and twice(row, was)
    (a, first), (b, second) = draw(conditions(depth - 1)), draw(conditions(depth - 1))
    if kind == 8:
        return f"({a}) and ({b})", lambda row, was: first(row, was) and second(row, was)
    if kind == 9:
        return f"({a}) or ({b})", lambda row, was: first(row, was) or second(row, was)
    if kind == 10:
        return f"not ({a})", lambda row, was: not first(row, was)
    (c, third) = draw(conditions(0))
    if draw(st.booleans()):
        return f"if ({a}) then {b}", lambda row, was: second(row, was) if first(row, was) else True
    return f"if ({a}) then ({b}) else {c}", lambda row, was: (second if first(row, was) else third)(row, was)


def rules():
    """Conditions that read a column; others are refused."""
    names = [f"`{name}`" if isinstance(name, int) else name for name in X.columns]
    return conditions().filter(lambda condition: any(name in condition[0] for name in names))


@given(rules(), st.integers(0, 1000))
@examples(40)
def test_rule_holds_where_plain_python_agrees(condition, seed):
    text, predicate = condition
    factual = np.random.default_rng(seed).permutation(len(X))
    expected = [predicate(X.iloc[i], X.iloc[f]) for i, f in enumerate(factual)]
    assert resolved(text).holds(MATRIX, MATRIX[factual]).tolist() == expected


@given(rules(), st.integers(0, 1000))
@examples(40)
def test_bounds_allow_exactly_the_values_that_satisfy_the_rule(condition, seed):
    rng = np.random.default_rng(seed)
    rule = resolved(condition[0])
    factuals = MATRIX[rng.permutation(len(X))]
    for column in range(len(SCHEMA)):
        within = rule.within_for(column, MATRIX, factuals)
        if within is None:
            continue
        for _ in range(4):
            rows = MATRIX.copy()
            rows[:, column] = rng.permutation(MATRIX[:, column])
            np.testing.assert_array_equal(within.allows(rows[:, column]), rule.holds(rows, factuals))


@pytest.mark.parametrize(
    "text",
    [
        "age >= 20",
        "2 * salary < age",
        "if job == 'cook' then salary <= age",
        "18 <= age <= was(age) and age != 20",
        "edu >= was(edu)",
        "job in ['cook', 'pilot']",
        "owner or edu > 'none'",
        "hired <= left",
    ],
)
def test_simple_rules_have_bounds_for_their_last_column(text):
    rule = resolved(text)
    assert any(rule.within_for(column, MATRIX, MATRIX) is not None for column in rule.columns)


@pytest.mark.parametrize("text", ["salary * age < 40", "age / salary < 2", "abs(salary - 30) > 2", "0 * salary < age"])
def test_other_rules_have_no_bounds(text):
    assert resolved(text).within_for(1, MATRIX, MATRIX) is None


CHANGES = [
    "abs(salary - was(salary)) <= {c}",
    "abs(was(salary) - salary) < {c}",
    "salary - was(salary) <= {c}",
    "{c} > was(salary) - salary",
    "salary <= was(salary) + {c}",
    "salary >= was(salary) - {c}",
    "salary + {c} == was(salary)",
    "-3 * (salary - was(salary)) / 7 < {c}",
    "abs(salary - was(salary)) <= {c} * was(salary)",
    "if was(salary) > 1 then abs(salary - was(salary)) <= {c}",
]


@pytest.mark.parametrize("text", CHANGES)
@pytest.mark.parametrize("c", [0, 0.1, 0.3, 50, 1e-320, 1e17])
def test_bounds_of_changes_are_exact_to_the_last_float(text, c):
    rule = resolved(text.format(c=f"{c:.400f}".rstrip("0").rstrip(".")))
    own = np.array([0.7, 0.1, -0.3, 0.0, 1e-310, 1e17, -1e17, 3.0, 1e290, np.nan])
    factuals = np.tile(MATRIX[:1], (own.size, 1))
    factuals[:, 1] = own
    within = rule.within_for(1, factuals, factuals)
    bounds = [*within.bounds(own.size), own - c, own + c, own - c * own, own + c * own, own + 7 * c / 3, np.zeros(10)]
    for value in [*bounds, *(np.nextafter(b, end) for b in bounds for end in (-np.inf, np.inf))]:
        rows = factuals.copy()
        rows[:, 1] = np.clip(value, -1.7e308, 1.7e308)
        np.testing.assert_array_equal(within.allows(rows[:, 1]), rule.holds(rows, factuals))


@pytest.mark.parametrize("text", [*CHANGES, "abs(hired - was(hired)) <= {c}", "hired - was(hired) <= {c}"])
def test_rules_about_the_change_of_one_feature_bound_its_draws(text):
    """Bounds are applied to the draws: violating rows are not drawn and rejected."""
    constraints = resolve([text.format(c=50)], SCHEMA)
    assert not constraints.open_rules
    assert constraints.within(MATRIX)


def test_rule_lists_the_columns_it_reads():
    rule = resolved("if was(job) == 'cook' then salary >= was(salary) + age")
    assert (rule.columns, rule.factual_columns, rule.reads_factual) == ((0, 1), (1, 2), True)
    assert not resolved("age > 3").reads_factual
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert hash(rule) == hash(resolved("if was(job) == 'cook' then salary >= was(salary) + age"))


def test_levels_of_two_columns_are_compared_by_value():
    frame = pd.DataFrame({"a": ["x", "y", "z", None], "b": ["y", "y", "w", "y"], "c": ["w", "y", "w", "y"]})
    schema = Schema.from_data(frame)
    matrix = schema.encode(frame).matrix
    holds = lambda text: resolve_rule(mcce.rule(text), schema).holds(matrix, matrix).tolist()  # noqa: E731
    assert holds("a == b") == [False, True, False, False]
    assert holds("a != b") == [True, False, True, False]
    assert holds("b == c") == [False, True, True, True]


def test_level_may_be_a_number_or_contain_spaces():
    frame = pd.DataFrame({"grade": [1, 2, 3], "say": ["a  b", "c", "c"]})
    schema = Schema.from_data(frame, kinds={"grade": "ordered"})
    matrix = schema.encode(frame).matrix
    holds = lambda text: resolve_rule(mcce.rule(text), schema).holds(matrix, matrix).tolist()  # noqa: E731
    assert holds("grade >= 2") == [False, True, True]
    assert holds(" say == 'a  b'") == [True, False, False]


def test_function_gets_its_columns_and_those_of_the_factuals():
    seen = []

    def not_less(rows, was):
        seen.append((list(rows), list(was), rows["age"].dtype))
        return rows["age"] >= was["age"]

    rule = resolve_rule(mcce.rule(not_less, features=["age", "job"]), SCHEMA)
    assert (rule.text, rule.columns, rule.reads_factual) == ("not_less", (0, 2), True)
    order = np.arange(len(X))[::-1]
    assert rule.holds(MATRIX, MATRIX[order]).tolist() == (X["age"] >= X["age"].to_numpy()[::-1]).tolist()
    assert seen == [(["age", "job"], ["age", "job"], X["age"].dtype)]
    assert rule.within_for(0, MATRIX, MATRIX) is None


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda rows, was: rows["nothing"], "rule '<lambda>' raised KeyError: 'nothing'"),
        (lambda rows, was: True, "returned an array of shape .* return one boolean for each"),
        (lambda rows, was: rows["age"], "dtype int64 for 40 rows; return one boolean for each"),
        (lambda rows, was: [True] * 39 + [None], "returned a value that is not boolean: None"),
    ],
)
def test_function_without_boolean_result_raises(function, said):
    with pytest.raises(InputError, match=said):
        resolve_rule(mcce.rule(function), SCHEMA).holds(MATRIX, MATRIX)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age >= salry", r"rule 'age >= salry', at character 8: 'salry' is not a column; did you mean 'salary'\?"),
        ("job == 'coook'", r"'coook' is not a level of 'job'; did you mean 'cook'\?"),
        ("job == cook", "'cook' is not a column but a level of 'job'; put levels in quotes: 'cook'"),
        ("job < 'cook'", "the levels of 'job' have no order, so < cannot compare them"),
        ("edu < job", "'job' has other levels than 'edu': they have no order"),
        ("job == age", r"'age' \(a column of numbers\) cannot be compared with the levels of 'job'"),
        ("age == 'old'", r"'old' \(text\) cannot be compared with 'age' \(a column of numbers\)"),
        ("job + 1 > 2", r"'job' \(a column of levels\) is not a number, and cannot be used in arithmetic"),
        ("age", r"'age' \(a column of numbers\) is neither true nor false; compare it with something"),
        ("hired > 3", "3 cannot be compared with the dates of 'hired'; write a date in quotes"),
        ("hired > 'soon'", "'soon' cannot be read as a date of 'hired'"),
        ("(age > 1) == (age < 2)", "a condition cannot be compared with a condition"),
        ("was(agee) > 1", r"'agee' is not a column; did you mean 'age'\?"),
    ],
)
def test_rules_inconsistent_with_the_table_raise(text, said):
    with pytest.raises(InputError, match=said):
        resolved(text)


def test_label_is_named_by_its_text_if_unambiguous():
    frame = pd.DataFrame([[1, 2, 3]], columns=pd.Index([(1,), 5, "5"], dtype=object, tupleize_cols=False))
    schema = Schema.from_data(frame)
    assert resolve_rule(mcce.rule("`(1,)` > `5`"), schema).columns == (0, 2)
    frame.columns = pd.Index([b"a", "b'a'", 5], dtype=object)
    assert resolve_rule(mcce.rule("`b'a'` > `5`"), Schema.from_data(frame)).columns == (1, 2)
    frame.columns = pd.Index([(5,), Odd(), 5], dtype=object, tupleize_cols=False)
    with pytest.raises(InputError, match="'5' names 2 columns; rename all but one of them"):
        resolve_rule(mcce.rule("`5` > 1"), Schema.from_data(frame))


class Odd:
    """A text label that is written like a number."""

    def __str__(self):
        return "5"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"expression": 3}, "a rule is 3; give a text such as"),
        ({"expression": "age > 2", "features": ["age"]}, "names its columns itself; leave features out"),
        ({"expression": len, "features": "age"}, r"features of a rule is 'age'; give a list, for example \['age'\]"),
        ({"expression": "age > 2", "name": 3}, "name of a rule is 3; give a text"),
    ],
)
def test_rule_is_a_text_or_a_function(arguments, said):
    with pytest.raises(InputError, match=said):
        mcce.rule(arguments.pop("expression"), **arguments)


def test_function_must_name_existing_columns():
    with pytest.raises(InputError, match=r"feature of the rule 'len', 'agee' is not .* did you mean 'age'\?"):
        resolve_rule(mcce.rule(len, features=["agee"]), SCHEMA)


def test_transitions_only_go_forward_along_a_chain():
    levels = ["none", "primary", "secondary", "it's", None]
    was, now = zip(*itertools.product(levels, repeat=2))
    before, after = pd.DataFrame({"my school": was}), pd.DataFrame({"my school": now})
    schema = Schema.from_data(before)
    resolved = resolve_rule(mcce.transitions("my school", "none -> primary -> it's"), schema)
    held = resolved.holds(*(schema.encode(frame).matrix for frame in (after, before)))
    chain = ["none", "primary", "it's"]
    truth = [a == b or (a in chain and b in chain and chain.index(a) < chain.index(b)) for a, b in zip(was, now)]
    assert held.tolist() == truth


@pytest.mark.parametrize("steps", ["none", "none -> ", "none -> none", 3])
def test_invalid_transitions_raise(steps):
    with pytest.raises(InputError, match=r"transitions of 'school' are .*; give different levels as 'none -> primary"):
        mcce.transitions("school", steps)


def test_transitions_of_a_number_raise():
    with pytest.raises(InputError, match="feature of transitions is 3; give the name of a column, a text"):
        mcce.transitions(3, "none -> primary")


@pytest.mark.parametrize(
    ("feature", "steps", "message"),
    [
        (
            "school",
            "none -> primry",
            "transitions of 'school': 'primry' is not a level of 'school'; did you mean",
        ),
        ("school", "none -> 9", "transitions of 'school': '9' is not a level of 'school'; .*'none', 'primary'"),
        ("scool", "none -> primary", "transitions of 'scool': there is no such column; did you mean 'school'"),
        ("age", "1 -> 2", "transitions of 'age': the column has no levels; use mcce.allow\\('age', ...\\) to limit it"),
    ],
)
def test_transitions_that_do_not_fit_the_table_raise(feature, steps, message):
    schema = Schema.from_data(pd.DataFrame({"school": ["none", "primary"], "age": [1, 2]}))
    with pytest.raises(InputError, match=f"^{message}"):
        resolve_rule(mcce.transitions(feature, steps), schema)


@pytest.mark.parametrize("text", ["1 < 2", "true", "not missing(a) or 1 == 1"])
def test_rules_without_a_column_raise(text):
    schema = Schema.from_data(pd.DataFrame({"a": [1.0, 2.0]}))
    if "a)" in text:
        resolve_rule(mcce.rule(text), schema)
        return
    with pytest.raises(InputError, match=f"rule '{text}' reads no column, so it holds in all rows or in none"):
        resolve_rule(mcce.rule(text), schema)
