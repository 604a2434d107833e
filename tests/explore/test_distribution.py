"""Axes: linear where possible, with marks separated."""

import numpy as np
import pytest

from mcce.explore.distribution import level_bars, number_bars

rng = np.random.default_rng(1)
EVEN, HEAVY = rng.uniform(10, 20, 500), np.exp(rng.normal(9, 2, 500))


@pytest.mark.parametrize(
    ("values", "marks", "scale"),
    [
        (EVEN, [11, 18], "even"),
        (HEAVY, [500, 90_000], "log"),
        (np.append(HEAVY, 0.0), [0, 90_000], "log"),
        (np.full(5, 3.0), [3, 3], "even"),
    ],
)
def test_axis_covers_the_numbers(values, marks, scale):
    bars = number_bars(np.asarray(values), *map(float, marks), str)
    assert bars["scale"] == scale
    assert 0 <= bars["before"] <= bars["after"] <= 1
    assert sum(bar["share"] for bar in bars["bars"]) == pytest.approx(1)
    for bar in bars["bars"]:  # each bar counts the values between its ends
        low, high = map(float, bar["text"].split(" to "))
        inside = ((values >= low * (1 - 1e-9)) & (values <= high * (1 + 1e-9))).mean()
        assert bar["share"] <= inside + 1e-12


def test_marks_under_a_heavy_tail_are_separated():
    bars = number_bars(np.append(HEAVY, 0.0), 5000.0, 9000.0, str)
    assert bars["after"] - bars["before"] > 0.02
    even = (9000 - 5000) / HEAVY.max()
    assert bars["after"] - bars["before"] > 5 * even


def test_bars_count_each_row_once():
    bars = number_bars(np.append(HEAVY, np.nan), 5.0, np.nan, str)
    assert sum(bar["share"] for bar in bars["bars"]) == pytest.approx(1)
    assert bars["after"] is None
    levels = level_bars(np.array([0, 1, 1, np.nan]), ["a", "b", "c"], 0, 2)["bars"]
    assert [bar["share"] for bar in levels] == [1 / 3, 2 / 3, 0]
    assert [(bar["before"], bar["after"]) for bar in levels] == [(True, False), (False, False), (False, True)]
