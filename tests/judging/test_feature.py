"""Correct conditionals pass at their level; wrong ones are detected with the stated power.

At level 0.05, 300 new rows and 40 draws, over 200 seeds: too narrow (sd 0.75 for 1) 1.00, biased (by 0.3 sd) 0.99,
heteroscedastic (log sd 0.5 z) 1.00, a missing interaction (0.6 sd) 1.00, wrong atoms (20 for 30 per cent) 0.94.
Correct ones, over 1000 seeds, are rejected at levels 0.01, 0.05, 0.1: numbers 0.011, 0.051, 0.109; numbers with point
mass 0.007, 0.035, 0.092; levels 0.010, 0.044, 0.096. The tests below use fewer seeds.
"""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from mcce.judging.feature import adjust, criticise_feature, sentence
from mcce.judging.scores import score_conditional
from tests.judging.processes import RIGHT, RIGHT_LEVELS, RIGHT_WITH_ZEROS, WRONG, Known, Levels, criticise, table_of
from tests.marks import nightly_rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "tests", "seeds"),
    [
        pytest.param(RIGHT, ("p_shape", "p_where", "p"), 200, marks=pytest.mark.nightly),
        (RIGHT_WITH_ZEROS, ("p_shape", "p_levels", "p_where", "p"), 60),
        pytest.param(RIGHT_LEVELS, ("p_levels", "p_where", "p"), 120, marks=pytest.mark.nightly),
    ],
    ids=["numbers", "zeros", "levels"],
)
def test_correct_conditional_passes_at_its_level(right, tests, seeds):
    found = [criticise(right, right, seed, n=120, n_draws=19) for seed in range(seeds)]
    for name in tests:
        p = np.array([getattr(each, name) for each in found])
        assert stats.kstest(p, "uniform").pvalue > 0.005, name
        for level in (0.01, 0.05, 0.1):
            assert (p <= level).sum() <= stats.binom.ppf(0.998, seeds, level), (name, level)
    if "p_shape" in tests:  # the same permutations apply to all columns
        assert abs(stats.spearmanr([each.p_shape for each in found], [each.p_where for each in found])[0]) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "power", "words"),
    [
        ("heteroscedastic", 0.9, "where z1 is"),
        *nightly_rows(
            ("too narrow", 0.9, "y: too narrow"),
            ("biased", 0.9, "y: too high"),
            ("a missing interaction", 0.9, " and z"),
            ("wrong atoms", 0.8, "y: 0 too seldom ("),
        ),
    ],
)
def test_wrong_conditional_is_detected_with_the_stated_power_and_reported(wrong, power, words):
    truth, conditional = WRONG[wrong]
    found = [adjust([criticise(truth, conditional, seed)])[0] for seed in range(25)]
    assert np.mean([each.p <= 0.05 for each in found]) >= power
    said = [sentence(each, 0.05) for each in found]
    assert np.mean([words in each for each in said]) >= 0.7, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conditional", "words"),
    [(Levels(slope=2.0), "y: probabilities too extreme"), (Levels(more=0.8), "y: 'low' too often (")],
)
def test_wrong_levels_are_detected_and_reported(conditional, words):
    found = [adjust([criticise(RIGHT_LEVELS, conditional, seed)])[0] for seed in range(10)]
    assert np.mean([sentence(each, 0.05).startswith(words) for each in found]) >= 0.8


def test_level_too_frequent_in_one_group_is_detected_there():
    found = adjust([criticise(Levels(more_in_b=2.0), Levels(more=1.0), 1)])[0]
    assert sentence(found, 0.05).endswith(("'low' too seldom where group is b", "'low' too often where group is a"))


def mean_pairwise(values):
    return np.mean([abs(a - b) for i, a in enumerate(values) for j, b in enumerate(values) if i != j])


def test_skill_and_sharpness_are_relative_to_the_marginal():
    found, values = criticise(RIGHT, RIGHT, 1, n=80, n_draws=60), table_of(RIGHT, 1, 80).matrix[:, 3]
    assert found.skill == pytest.approx(1 - found.score / (mean_pairwise(values) / 2))
    scores = score_conditional(
        Known(), table_of(RIGHT, 1, 80).first(3), table_of(RIGHT, 1, 80).column(3), seed=1, n_draws=60
    )
    assert found.sharpness == pytest.approx(scores.spread.mean() / mean_pairwise(values))
    # the variance of y is 2, that given z1 is 1
    large = criticise(RIGHT, RIGHT, 1, n=3000)
    assert large.skill == pytest.approx(1 - 1 / np.sqrt(2), abs=0.03)
    assert large.sharpness == pytest.approx(1 / np.sqrt(2), abs=0.03)


def test_skill_of_levels_is_relative_to_the_share_of_differing_pairs():
    found, values = criticise(RIGHT_LEVELS, RIGHT_LEVELS, 1, n=80), table_of(RIGHT_LEVELS, 1, 80).matrix[:, 3]
    differ = np.mean([a != b for i, a in enumerate(values) for j, b in enumerate(values) if i != j])
    assert found.skill == pytest.approx(1 - found.score / differ)


@pytest.mark.slow
def test_p_values_are_adjusted_like_statsmodels():
    found = [criticise(RIGHT, RIGHT, seed, n=60, n_draws=5) for seed in range(6)]
    p = [each.p for each in found]
    np.testing.assert_allclose([each.p_adjusted for each in adjust(found)], multipletests(p, method="holm")[1])


def test_smallest_p_value_is_adjusted_for_the_number_of_tests():
    found = criticise(RIGHT_WITH_ZEROS, RIGHT_WITH_ZEROS, 3)
    smallest = min(found.p_shape, found.p_levels, found.p_where)
    assert found.p == pytest.approx(1 - (1 - smallest) ** 3)


def test_constant_column_has_no_test():
    table = table_of(RIGHT, 1, 60)
    constant = np.zeros((60, 4))
    constant[:, :3] = table.matrix[:, :3]
    given = type(table)(table.features, constant)

    class Zero(Known):
        def sample(self, given, rng, within=None):
            return np.zeros(given.n_rows)

    levels = table_of(RIGHT_LEVELS, 1, 60).features[3]
    target = type(given.column(3))(levels, constant[:, 3])
    scores = score_conditional(Zero(), given.first(3), target, seed=1, n_draws=5)
    found = adjust([criticise_feature(scores, given.first(3), constant[:, 3], "Zero()", 1)])[0]
    assert np.isnan(found.p)
    assert np.isnan(found.p_adjusted)
    assert sentence(found, 0.05) == "y: nothing to test, it is constant"
