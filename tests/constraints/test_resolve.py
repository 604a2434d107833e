"""`allow`, rules and their intersection, against plain Python (`tests.constraints.oracle`)."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.constraints import allow, no_copies, resolve, rule
from mcce.exceptions import InputError
from mcce.table import Schema
from tests.constraints.oracle import EDUCATION, JOBS, obeys, people

X = people(60)
SCHEMA = Schema.from_data(X)
MATRIX = SCHEMA.encode(X).matrix
SHIFTED = [np.roll(MATRIX, k, axis=0) for k in range(4)]

directions = st.sampled_from(["increase", "decrease", "none"])
edges = {
    "age": (st.integers(16, 22), st.integers(22, 32), st.integers(0, 5)),
    "salary": (st.sampled_from([0.0, 10.5, 20.0]), st.sampled_from([20.0, 33.3, 60.0]), st.sampled_from([0, 0.3, 7.7])),
    "edu": (st.sampled_from(EDUCATION[:2]), st.sampled_from(EDUCATION[2:]), st.integers(0, 3)),
    "hired": (
        st.sampled_from([pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-14 12:00")]),
        st.sampled_from([pd.Timestamp("2020-01-31"), pd.Timestamp("2021-01-01")]),
        st.sampled_from([pd.Timedelta(0), pd.Timedelta(days=7)]),
    ),
}


@st.composite
def limits(draw):
    """Return a feature and the arguments of `allow` for it."""
    name = draw(st.sampled_from([*edges, "job", "owner"]))
    if name in edges:
        low, high, step = edges[name]
        options = {"low": low, "high": high, "max_step": step, "direction": directions, "missing": st.booleans()}
    else:
        levels = JOBS if name == "job" else [True, False]
        some = st.lists(st.sampled_from(levels), min_size=1, unique=True)
        options = {"levels": some, "direction": st.just("none"), "missing": st.booleans()}
    chosen = draw(st.lists(st.sampled_from(sorted(options)), min_size=1, unique=True))
    return name, {option: draw(options[option]) for option in chosen}


@given(limits())
def test_rows_within_limits_are_those_that_obey_them(given_limits):
    name, arguments = given_limits
    resolved = resolve(allow(name, **arguments), SCHEMA)
    j = SCHEMA.position(name)
    for rows in SHIFTED:
        changed = MATRIX.copy()
        changed[:, j] = rows[:, j]
        expected = [obeys(arguments, value, own) for value, own in zip(SCHEMA.decode(rows)[name], X[name])]
        np.testing.assert_array_equal(resolved.admits(changed, MATRIX), expected, err_msg=str(arguments))
        within = resolved.within(MATRIX)
        if j in within:  # truncation may let missing values through, which `admits` rejects
            known = ~np.isnan(changed[:, j])
            np.testing.assert_array_equal(within[j].allows(changed[:, j])[known], np.array(expected)[known])


@given(st.lists(limits(), min_size=2, max_size=5))
def test_several_limits_hold_together(several):
    several = [
        (name, {k: v for k, v in each.items() if k != "missing"} or {"direction": "none"}) for name, each in several
    ]
    try:
        resolved = resolve([allow(name, **each) for name, each in several], SCHEMA)
    except InputError:  # the limits have nothing in common
        return
    alone = [resolve(allow(name, **each), SCHEMA) for name, each in several]
    for rows in SHIFTED:
        rows = np.where(np.arange(8) % 3 == 0, rows, MATRIX)
        expected = np.all([each.admits(rows, MATRIX) for each in alone], axis=0)
        np.testing.assert_array_equal(resolved.admits(rows, MATRIX), expected)


def test_known_values_become_missing_only_if_allowed():
    rows = MATRIX.copy()
    rows[:, [1, 2]] = np.nan
    was_known = ~np.isnan(MATRIX[:, [1, 2]])
    np.testing.assert_array_equal(resolve((), SCHEMA).admits(rows, MATRIX), ~was_known.any(axis=1))
    salary = allow("salary", missing=True)
    one = resolve(salary, SCHEMA)
    np.testing.assert_array_equal(one.admits(rows, MATRIX), ~was_known[:, 1])
    denied = resolve([allow("salary", missing=True), allow("salary", missing=False, low=0)], SCHEMA)
    assert not denied.may_become_missing.any()
    assert resolve([allow("job", missing=True), salary], SCHEMA).admits(rows, MATRIX).all()


def test_shared_constraints_do_not_depend_on_the_factual():
    given_constraints = [
        allow("age", low=20, direction="increase"),
        allow("edu", max_step=1),
        "salary > 10",
        "age <= was(age) + 3",
        no_copies(),
    ]
    resolved = resolve(given_constraints, SCHEMA)
    shared = resolved.shared
    assert resolved.depends_on_factual
    assert not shared.depends_on_factual
    assert [rule.expression.text for rule in shared.rules] == ["salary > 10"]
    (within,) = shared.within(MATRIX[:3]).values()
    np.testing.assert_array_equal(within.allows(np.array([19.0, 20.0, 40.0])), [False, True, True])
    for rows in SHIFTED:
        assert (shared.admits(rows, MATRIX) >= resolved.admits(rows, MATRIX)).all()
    assert [each.column for each in resolved.without([0]).limits] == [3]
    assert resolved.without([0]).rules == shared.rules
    assert resolved.no_copies


def test_decimal_steps_reach_their_end():
    table = pd.DataFrame({"x": [0.7, 0.8, 0.9, 1.2]})
    schema = Schema.from_data(table)
    rows = schema.encode(table).matrix
    resolved = resolve(allow("x", max_step=0.1), schema)
    assert resolved.admits(rows, np.full((4, 1), 0.7)).tolist() == [True, True, False, False]
    third = np.array([[1 / 3]])  # has more digits than a bound
    assert resolve(allow("x", max_step=0), schema).admits(third, third).all()


@pytest.mark.parametrize(
    ("constraint", "shown", "said"),
    [
        (allow("age", low=20, high=40.0), "allow('age', low=20, high=40.0)", "age: from 20 to 40.0"),
        (allow("age", direction="increase", max_step=5), "allow('age', direction='increase', max_step=5)", None),
        (allow("job", levels=["cook"], missing=False), "allow('job', levels=('cook',), missing=False)", None),
        (
            allow("job", levels={"cook", "clerk"}),
            "allow('job', levels=('clerk', 'cook'))",
            "job: one of 'clerk', 'cook'",
        ),
        (
            allow("age", high=3, missing=True),
            "allow('age', high=3, missing=True)",
            "age: at most 3, may become missing",
        ),
        (allow("age", direction="none"), "allow('age', direction='none')", "age: stays as it is"),
        (rule(" age > 3 "), "rule('age > 3')", "age > 3"),
        (no_copies(), "no_copies()", "no copy of a training row"),
    ],
)
def test_constraints_are_shown_as_they_are_written(constraint, shown, said):
    assert repr(constraint) == shown
    assert said is None or str(constraint) == said
    assert hash(constraint) == hash(pickle.loads(pickle.dumps(constraint)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: allow("age", high=np.nan), "high is nan; give a number"),
        (
            lambda: resolve(allow("edu", low="x"), SCHEMA),
            "allow('edu'), low: 'x' is not a level of 'edu'; known: 'none'",
        ),
        (lambda: resolve(allow("job", direction="increase"), SCHEMA), "but its levels have no order"),
        (lambda: resolve(allow("age", max_step=-1), SCHEMA), "max_step: -1 is below 0"),
        (lambda: resolve(allow("hired", low="noon"), SCHEMA), "low: 'noon' cannot be read as a date of 'hired'"),
        (
            lambda: resolve([allow("age", low=25), allow("age", high=20)], SCHEMA),
            "allow('age', low=25) and allow('age', high=20)",
        ),
        (
            lambda: resolve([allow("job", levels=["cook"]), allow("job", levels=["clerk"])], SCHEMA),
            "none of the levels 'clerk', 'cook', 'pilot' is allowed",
        ),
        (lambda: resolve("was(age) > 20", SCHEMA), "reads no column of the counterfactual"),
        (lambda: resolve([["age > 3"]], SCHEMA), "constraints[0] is ['age > 3']; give allow(...)"),
    ],
)
def test_messages(make, said):
    with pytest.raises(InputError) as caught:
        make()
    assert said in str(caught.value)


def test_durations_may_be_texts():
    resolved = resolve(allow("hired", max_step="6 days"), SCHEMA)
    rows = MATRIX.copy()
    rows[:, 5] = (
        rows[:, 5] + SCHEMA.features[5].encode(pd.Series([pd.Timestamp("2020-01-07")]), "X")[0] - MATRIX[:, 5].min()
    )
    steps = SCHEMA.decode(rows)["hired"] - X["hired"]
    np.testing.assert_array_equal(resolved.admits(rows, MATRIX), steps <= pd.Timedelta(days=6))
