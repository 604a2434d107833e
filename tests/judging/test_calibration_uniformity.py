"""The smooth test compared with explicit polynomials and simulated levels; bands with histograms."""

import numpy as np
import pytest
from scipy import stats

from mcce.judging.calibration import components, histogram, smooth_test
from tests.marks import slow_rows


def test_components_are_the_orthonormal_legendre_polynomials():
    u = np.linspace(0, 1, 7)
    wanted = [
        np.sqrt(3) * (2 * u - 1),
        np.sqrt(5) * (6 * u**2 - 6 * u + 1),
        np.sqrt(7) * (20 * u**3 - 30 * u**2 + 12 * u - 1),
        3 * (70 * u**4 - 140 * u**3 + 90 * u**2 - 20 * u + 1),
    ]
    np.testing.assert_allclose(components(u), np.transpose(wanted), atol=1e-12)


@pytest.mark.slow
def test_smooth_test_keeps_its_level():
    pits = np.random.default_rng(1).uniform(size=(2000, 60))
    p = np.array([smooth_test(each)[1] for each in pits])
    for level in (0.01, 0.05, 0.1):
        assert abs((p <= level).mean() - level) < 3 * np.sqrt(level / p.size)


@pytest.mark.parametrize(
    ("pit", "component", "sign"),
    [
        (stats.beta(2, 1), 0, 1),  # values above the draws
        (stats.beta(1, 2), 0, -1),
        (stats.beta(0.6, 0.6), 1, 1),  # values outside of the draws
        (stats.beta(2, 2), 1, -1),
    ],
)
def test_components_indicate_the_deviation(pit, component, sign):
    parts, p = smooth_test(pit.rvs(400, random_state=1))
    assert p < 1e-6
    assert np.abs(parts).argmax() == component
    assert np.sign(parts[component]) == sign


@pytest.mark.parametrize(("n", "n_bins"), [(60, 5), *slow_rows((200, 10), (5000, 20))])
def test_bars_of_a_uniform_histogram_lie_in_the_band_with_95_percent(n, n_bins):
    rng, inside = np.random.default_rng(2), []
    for _ in range(250):
        counts, (low, high) = histogram(rng.uniform(size=n))
        assert counts.size == n_bins
        assert counts.sum() == n
        inside.append(((counts >= low) & (counts <= high)).all())
    assert np.mean(inside) > 0.93
    assert high - low < n / 2
