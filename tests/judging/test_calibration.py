"""Level probabilities compared with independent chi-squared tests and simulated levels."""

import numpy as np
import pytest
from scipy import stats

from mcce.judging.calibration import calibrate
from mcce.judging.scores import LevelCounts
from tests.marks import nightly

LEVELS = np.array([0.0, 1.0, 2.0, np.nan])


def counted(p, truth, n_draws, seed, levels=LEVELS):
    """Draws by the rows' probabilities `p`, values by `truth`; the last level, missing, never."""
    rng = np.random.default_rng(seed)
    counts = np.column_stack([rng.multinomial(n_draws, p), np.zeros(len(p), dtype=int)])
    observed = (rng.uniform(size=(len(p), 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return LevelCounts(levels, False, counts, observed)


def probabilities(n, seed, slope=1.0):
    z = np.random.default_rng(seed).normal(size=n)
    weights = np.exp(slope * np.column_stack([z, -z, 0 * z]))
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [100, *nightly(5)])
def test_correct_probabilities_pass_at_the_level_with_few_draws(n_draws):
    p = [calibrate(counted(q, q, n_draws, seed)).p for seed in range(250) for q in [probabilities(150, seed)]]
    assert stats.kstest(p, "uniform").pvalue > 0.01
    for level in (0.01, 0.05, 0.1):
        assert abs(np.mean(np.array(p) <= level) - level) < 3 * np.sqrt(level / len(p))


def test_equal_rows_give_pearsons_test():
    # with very many draws the probabilities are known, and evenness adds no information to the shares
    q = np.tile([0.5, 0.2, 0.3], (400, 1))
    counts = np.column_stack([(q * 1_000_000).astype(int), np.zeros(400, dtype=int)])
    observed = np.repeat([0, 1, 2], [220, 60, 120])
    found = calibrate(LevelCounts(LEVELS, False, counts, observed))
    wanted = stats.chisquare([220, 60, 120], [200, 80, 120]).pvalue
    assert found.p == pytest.approx(wanted, rel=1e-3)
    assert abs(found.evenness) < 0.05
    np.testing.assert_allclose(found.z, [20 / np.sqrt(100), -20 / np.sqrt(64), 0], atol=1e-2)
    np.testing.assert_allclose(found.seen, [0.55, 0.15, 0.3])
    np.testing.assert_allclose(found.drawn, [0.5, 0.2, 0.3])


@pytest.mark.parametrize(("slope", "sign"), [(2.0, -1), (0.4, 1)])
def test_too_extreme_and_too_even_probabilities_are_distinguished(slope, sign):
    truth, drawn = probabilities(500, 1), probabilities(500, 1, slope)
    found = calibrate(counted(drawn, truth, 100, 2))
    assert found.p < 1e-4
    assert sign * found.evenness > 4
    assert np.abs(found.z).max() < 4


def test_level_that_is_never_drawn_is_detected():
    truth, drawn = np.tile([0.6, 0.3, 0.1], (200, 1)), np.tile([0.9, 0.0, 0.1], (200, 1))
    found = calibrate(counted(drawn, truth, 100, 1))
    assert found.p < 1e-10
    assert found.columns[int(found.z.argmax())] == 1


def test_rare_levels_are_pooled():
    q = np.tile([0.95, 0.02, 0.03], (150, 1))
    found = calibrate(counted(q, q, 1000, 3))
    assert found.columns == (0, -1)
    np.testing.assert_allclose(found.drawn.sum(), 1)
    np.testing.assert_allclose(found.cells.sum(axis=1), 1)
    assert set(found.observed) <= {0, 1}


def test_constant_column_has_no_test():
    counts = np.column_stack([np.full(50, 10), np.zeros((50, 3), dtype=int)])
    assert np.isnan(calibrate(LevelCounts(LEVELS, False, counts, np.zeros(50, dtype=int))).p)
