"""Reasons to withhold an answer, as rules on encoded rows; texts are in `tests/report/test_suspicious.py`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mcce.plausibility.stop_reasons import FAR_STEP, Edge, RuleColumn, StopRules, Usual

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
    assert [far_steps(rules, before, after) for rules in RULES.nested] == [[1, 2], [2], []]


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
