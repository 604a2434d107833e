"""Reasons to withhold an answer, as rules on encoded rows; texts are in `tests/report/test_suspicious.py`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mcce.plausibility.stop_reasons import DURATION, FAR_AWAY, FAR_STEP, NO_WORK, Edge, RuleColumn, StopRules, Usual

NUMBERS = ["salary", "savings", "debt", "loan", "years_employed"]
COLUMNS = [RuleColumn(name, True, True, {}) for name in NUMBERS]
JOBS = {"none": 0.0, "nurse": 1.0, "Other": 2.0, "Other-service": 3.0, "unemployed": 4.0}
COLUMNS.append(RuleColumn("job", False, False, JOBS))
COLUMNS.append(RuleColumn("occupation", True, True, {}))
USUAL = Usual(
    directions={"salary": 1},
    spreads=dict.fromkeys([*NUMBERS, "occupation"], 10_000.0),
    highs={"salary": 60_000.0, "savings": 5_000.0, "loan": 50_000.0},
    factors={"salary": (-np.inf, 1.5), "savings": (0.5, 8.0), "loan": (0.125, np.inf)},
    edges=(
        Edge("salary", "job", "none", 0.0, 5_000.0, True),
        Edge("salary", None, None, 8_000.0, 45_000.0, False),
        Edge("savings", None, None, 0.0, 10_000.0, False),
        Edge("loan", None, None, 1_000.0, 60_000.0, False),
    ),
    durations={"years_employed": 1.0},
)
RULES = StopRules(COLUMNS, USUAL, {})
HER = [30_000.0, 1_000.0, 30_000.0, 20_000.0, 1.0, 1.0, 5.0]


def reasons_of(**changes):
    before, after = np.array([HER]), np.array([HER])
    names = [column.name for column in COLUMNS]
    for name, value in changes.items():
        after[0, names.index(name)] = value
    return {(stop.reason, names[stop.column]) for stop in RULES.find(before, after, before != after) if stop.rows.size}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"salary": 40_000.0}, set()),
        ({"salary": 45_001.0}, {("far step", "salary")}),
        ({"salary": 45_000.0}, set()),
        ({"loan": 4_000.0}, set()),
        ({"loan": 2_600.0}, {("far from the decision", "loan")}),
        ({"loan": 2_400.0}, {("far step", "loan"), ("far from the decision", "loan")}),
        ({"loan": 21_000.0}, set()),
        ({"debt": 15_000.0}, set()),
        ({"debt": 31_000.0}, {("opposite to the usual direction", "debt")}),
        ({"salary": 20_000.0}, {("opposite to the usual direction", "salary")}),
        ({"savings": 8_000.0}, set()),
        ({"savings": 8_001.0}, {("far step", "savings")}),
        ({"savings": 100.0}, {("opposite to the usual direction", "savings")}),
        ({"savings": 21_001.0}, {("far step", "savings"), ("unexplained money", "savings")}),
        ({"savings": 6_001.0, "loan": 5_000.0}, {("unexplained money", "savings")}),
        ({"years_employed": 3.0}, set()),
        ({"years_employed": 4.0}, {("duration", "years_employed")}),
        ({"years_employed": 0.0}, {("cannot fall", "years_employed")}),
        ({"job": 2.0}, {("unspecific level", "job")}),
        ({"job": 3.0}, set()),
        ({"job": 4.0}, {("worse situation", "job")}),
        ({"occupation": 2.0}, {("unspecific level", "occupation")}),
        ({"job": 0.0}, {("contradicts a level", "salary")}),
    ],
)
def test_reasons(changes, expected):
    assert reasons_of(**changes) == expected


def test_loan_above_nearly_all_others_may_fall_by_the_usual_factor_from_the_99_per_cent_point():
    before, after = np.array([HER, HER, HER]), np.array([HER, HER, HER])
    before[:, 3], after[:, 3] = [60_000.0, 200_000.0, 200_000.0], [7_000.0, 7_000.0, 8_000.0]
    assert far_steps(RULES, before, after) == [0, 1]


def far_steps(rules, before, after):
    return [row for stop in rules.find(before, after, before != after) if stop.reason == FAR_STEP for row in stop.rows]


def test_decision_is_far_if_an_income_more_than_doubles():
    usual = replace(USUAL, factors={**USUAL.factors, "salary": (0.5, 9.0)}, edges=(), directions={"debt": 1})
    rules = StopRules(COLUMNS, usual, {})
    before, after = np.array([HER] * 4), np.array([HER] * 4)
    after[:, 0] = [75_000.0, 76_000.0, 29_000.0, 30_000.0]  # 2.5 times as much is the most
    after[3, 2] = 31_000.0  # a direction of the model has precedence over the name
    reasons = [(stop.reason, stop.rows.tolist()) for stop in rules.find(before, after, before != after)]
    assert [each for each in reasons if each[1]] == [
        ("opposite to the usual direction", [2]),
        ("far from the decision", [1]),
    ]


def test_long_step_is_far_by_the_strictest_rules_only():
    before, after = np.array([HER, HER, HER]), np.array([HER, HER, HER])
    after[:, 3] = [4_000.0, 3_000.0, 2_000.0]  # 60 ** 0.4 is 5.1, and the usual factor 8
    assert [far_steps(rules, before, after) for rules in RULES.nested] == [[1, 2], [2], [2], []]


def far_rows(rules, before, after):
    stops = rules.find(before, after, before != after)
    return sorted(row for stop in stops if stop.reason == FAR_AWAY for row in stop.rows.tolist())


def test_steps_of_an_income_and_a_loan_are_combined_as_a_distance():
    usual = replace(USUAL, factors={"salary": (0.1, 9.0), "loan": (0.01, 9.0)}, edges=(), directions={})
    rules = StopRules(COLUMNS, usual, {})
    grid = [(times, part) for times in np.linspace(1.0, 3.0, 21) for part in np.linspace(1.0, 0.1, 19)]
    before = np.array([HER] * len(grid))
    after = before.copy()
    after[:, [0, 3]] *= grid
    steps = np.log(grid) / np.log([2.5, 0.2])
    for each, step, distance in zip(rules.nested, (0.85, 1.0, 1.5), (1.0, 1.0, 1.5)):
        far = (steps.max(axis=1) > step + 1e-6) | (np.hypot(*steps.T) > distance + 1e-6)
        assert far_rows(each, before, after) == np.flatnonzero(far).tolist()
    assert far_rows(rules.nested[3], before, after) == []


def test_debt_that_a_loan_may_repay_is_not_far():
    usual = replace(USUAL, factors={"debt": (-np.inf, np.inf)}, highs={**USUAL.highs, "debt": 90_000.0}, edges=())
    before = np.array([HER])
    after = before.copy()
    before[0, 2], after[0, 2] = 19_000.0, 0.0
    assert far_rows(StopRules(COLUMNS, usual, {}), before, after) == []
    assert far_rows(StopRules(COLUMNS, usual, {"loan": "NOK"}), before, after) == [0]
    without = [column._replace(name="amount") if column.name == "loan" else column for column in COLUMNS]
    assert far_rows(StopRules(without, usual, {}), before, after) == [0]


WITHOUT_WORK = [name for name in JOBS if name != "unemployed"]
PERSON = [c._replace(codes={k: JOBS[k] for k in WITHOUT_WORK}) if c.name == "job" else c for c in COLUMNS]
STATUS = RuleColumn("status", False, False, {"employed": 0.0, "unemployed": 1.0, "Retired": 2.0, "student": 3.0})


@pytest.mark.parametrize(
    ("own", "new", "salary", "expected"),
    [
        (0, 0, 74_000.0, set()),
        (0, 0, 76_000.0, {"far from the decision"}),
        (1, 1, 31_000.0, {"income without work"}),
        (1, 1, 29_000.0, {"opposite to the usual direction"}),
        (1, 0, 60_000.0, set()),  # the 90 per cent point, although the usual factor is 1.5
        (1, 0, 61_000.0, {"far step"}),
        (1, 2, 61_000.0, {"far step"}),
        (1, 2, 76_000.0, {"far step", "far from the decision"}),
        (2, 2, 47_000.0, set()),  # 2.5 ** 0.5 is 1.58
        (2, 2, 48_000.0, {"far from the decision"}),
        (2, 0, 48_000.0, {"far from the decision"}),
    ],
)
def test_income_depends_on_work(own, new, salary, expected):
    factor = 1.5 if own == 1 else 9.0
    usual = replace(USUAL, factors={"salary": (0.1, factor)}, edges=())
    rules = StopRules([*PERSON, STATUS], usual, {})
    before, after = np.array([[*HER, own]]), np.array([[*HER, new]])
    after[0, 0] = salary
    assert {stop.reason for stop in rules.find(before, after, before != after) if stop.rows.size} == expected | (
        {"worse situation"} if new == 1 and own != 1 else set()
    )


def test_unemployment_of_one_of_two_persons_does_not_exclude_an_income():
    other = STATUS._replace(name="status_husband")
    before = np.array([[*HER, 0.0, 1.0], [*HER, 1.0, 1.0]])
    after = before.copy()
    after[:, 0] = 40_000.0
    rules = StopRules([*PERSON, STATUS, other], USUAL, {})
    found = [stop for stop in rules.find(before, after, before != after) if stop.reason == NO_WORK]
    assert [stop.rows.tolist() for stop in found] == [[1]]


def test_missing_income_of_an_unemployed_person_does_not_rise():
    before = np.array([[*HER, 1.0]])
    after = before.copy()
    before[0, 0], after[0, 0] = np.nan, 9_000.0
    rules = StopRules([*PERSON, STATUS], USUAL, {})
    assert NO_WORK in {stop.reason for stop in rules.find(before, after, before != after) if stop.rows.size}


@pytest.mark.parametrize(
    ("own", "years", "job", "is_listed"),
    [(-1.0, 3.0, 2.0, True), (-1.0, 2.0, 2.0, False), (-1.0, 9.0, 1.0, False), (0.0, 3.0, 1.0, True)],
)
def test_duration_after_a_code_begins_if_a_level_changes(own, years, job, is_listed):
    before, after = np.array([HER, HER]), np.array([HER, HER])
    before[0, 4], after[0, 4], after[0, 5] = own, years, job
    found = [stop for stop in RULES.find(before, after, before != after) if stop.reason == DURATION]
    assert [stop.rows.tolist() for stop in found] == [[0] if is_listed else []]


def test_savings_and_a_debt_may_not_change_by_more_than_the_loan_together():
    rules = StopRules(COLUMNS, Usual(spreads=USUAL.spreads), {})
    before, after = np.array([HER] * 4), np.array([HER] * 4)
    after[:, 1] = [11_000.0, 11_000.0, 11_100.0, 22_000.0]
    after[:, 2] = [20_000.0, 30_000.0, 19_900.0, 30_000.0]  # the loan is 20,000
    found = [stop for stop in rules.find(before, after, before != after) if stop.reason == "unexplained money"]
    assert [stop.rows.tolist() for stop in found if stop.rows.size] == [[3], [2]]
    before[:, 1] = np.nan  # counts as 0
    found = [stop for stop in rules.find(before, after, before != after) if stop.reason == "unexplained money"]
    assert [stop.rows.tolist() for stop in found if stop.rows.size] == [[3], [0, 2]]


def test_fixed_number_below_a_level_with_high_values_contradicts_it():
    age, ends = RuleColumn("age", True, True, {}), {"Retired": (58.0, np.inf), "student": (-np.inf, 30.0)}
    edges = tuple(Edge("age", "status", level, *both, True) for level, both in ends.items())
    rules = StopRules([*PERSON, STATUS, age], replace(USUAL, edges=edges), {})
    people = zip([0.0, 0.0, 2.0, 0.0, 0.0], [28.0, 60.0, 57.0, 33.0, 30.0])  # the third is retired already
    before = np.array([[*HER, status, years] for status, years in people])
    after = before.copy()
    after[:, -2] = [2.0, 2.0, 2.0, 3.0, 3.0]
    after[:, 3] = 15_000.0
    found = [stop for stop in rules.find(before, after, before != after) if stop.reason == "contradicts a level"]
    assert [stop.rows.tolist() for stop in found] == [[0], [3]]


def test_values_within_the_bounds_have_no_reason():
    edges = [edge for edge in USUAL.edges if edge.feature != "salary"]  # a level that contradicts is not a bound
    rules = StopRules(COLUMNS, replace(USUAL, edges=edges), {})
    before = np.array([HER])
    for j in range(len(NUMBERS)):
        low, high = rules.bounds(j, before)
        for value in np.linspace(max(low[0], 0.0), min(high[0], 60_000.0), 7):
            after = before.copy()
            after[0, j] = value
            assert not rules.cells(before, after, before != after).any(), (NUMBERS[j], value)
