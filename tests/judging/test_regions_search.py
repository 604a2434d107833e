"""The search for regions of misfit compared with loops, and p-values with all permutations."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce.judging.calibration import calibrate, components
from mcce.judging.regions import SEARCHES, _p_value, find_regions, where_levels_fail, where_pit_fails
from mcce.judging.scores import LevelCounts
from mcce.table import Schema


def givens(n, seed=1):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "g": rng.choice(["u", "v", "w"], n)})
    return X, Schema.from_data(X).encode(X)


def largest_by_loops(table, pit):
    """The pooled two-sample statistic of every region, by a loop."""
    best = (0.0, None, None)
    regions = find_regions(table)
    for conditions, box in zip(regions.conditions, regions.boxes):
        inside = box == 1
        for k, phi in enumerate(components(pit)[:, :2].T):
            difference = phi[inside].mean() - phi[~inside].mean()
            z = abs(difference) / (phi.std() * np.sqrt(1 / inside.sum() + 1 / (~inside).sum()))
            best = max(best, (z, conditions, k), key=lambda each: each[0])
    return best


def test_region_maximises_the_two_sample_statistic():
    X, table = givens(300)
    bad = (X["a"] > 0.3) & (X["g"] == "v")
    pit = np.random.default_rng(3).uniform(size=300)
    pit[bad] = 0.8 + 0.2 * pit[bad]
    found = where_pit_fails(table, pit, np.random.default_rng(1))
    _, conditions, component = largest_by_loops(table, pit)
    assert found.conditions == conditions
    assert (found.residual, component) == (0, 0)
    np.testing.assert_array_equal(found.inside, np.logical_and.reduce([c.holds(table) for c in conditions]))
    assert found.p < 1e-4
    assert found.inside_z > 4
    phi = components(pit)[:, 0]
    assert found.inside_z == pytest.approx(phi[found.inside].sum() / np.sqrt(found.inside.sum()))
    assert found.outside_z == pytest.approx(phi[~found.inside].sum() / np.sqrt((~found.inside).sum()))


def test_side_with_the_larger_deviation_is_reported():
    X, table = givens(400)
    rng = np.random.default_rng(4)
    pit = np.where(X["a"] > 0.9, rng.beta(0.3, 0.3, 400), rng.uniform(size=400))
    found = where_pit_fails(table, pit, rng)
    assert len(found.conditions) == 1
    assert str(found).startswith("a is above")
    assert found.residual == 1
    assert found.inside_z > 5
    assert abs(found.outside_z) < 3


def test_levels_are_rejected_where_they_are_drawn_too_often():
    X, table = givens(500)
    rng = np.random.default_rng(5)
    p = np.tile([0.5, 0.3, 0.2], (500, 1))
    observed = rng.choice(3, 500, p=p[0])
    observed[(X["g"] == "w") & (observed == 0)] = 2
    counts = np.column_stack([rng.multinomial(100, p), np.zeros(500, dtype=int)])
    tested = calibrate(LevelCounts(np.array([0.0, 1.0, 2.0, np.nan]), False, counts, observed))
    found = where_levels_fail(table, tested, rng)
    assert str(found) == "g is w"
    assert found.p < 1e-3
    assert (found.residual, found.inside_z > 4) in [(2, True), (0, False)]


def test_p_value_is_the_share_of_searches_with_as_large_a_statistic():
    rng = np.random.default_rng(6)
    found = np.sort(rng.uniform(size=400))
    p = np.array([_p_value(float(each), lambda times: rng.uniform(size=times)) for each in found])
    # a search exceeds `each` with probability 1 - each; stopping at 20 keeps the relative error at 1 / sqrt(20)
    np.testing.assert_allclose(p, np.maximum(1 - found, 0), atol=0.35, rtol=1)
    assert abs(np.mean(p - (1 - found))) < 0.02
    for level in (0.01, 0.05, 0.1, 0.5):
        assert abs((p <= level).mean() - level) < 3 * np.sqrt(level / 400)


def test_p_value_beyond_the_searches_uses_the_normal_tail():
    rng = np.random.default_rng(7)

    def largest_of_50(times):
        return np.abs(rng.normal(size=(times, 50))).max(axis=1)

    p = _p_value(6.0, largest_of_50)
    assert p < 1 / (SEARCHES + 1)
    assert p == pytest.approx(50 * 2 * stats.norm.sf(6.0), rel=0.5)


@pytest.mark.slow
def test_thinned_rows_describe_the_regions_of_all_rows():
    X, table = givens(9000)
    rng = np.random.default_rng(8)
    pit = np.where(X["b"] > 0, rng.beta(2, 1, 9000), rng.uniform(size=9000))
    found = where_pit_fails(table, pit, rng)
    assert found.inside.size == 9000
    assert 0.4 < found.inside.mean() < 0.6


def test_no_region_without_givens():
    _, table = givens(100)
    assert where_pit_fails(table.first(0), np.linspace(0.01, 0.99, 100), np.random.default_rng(1)) is None
