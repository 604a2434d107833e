"""Draws of ten conditionals made of R functions, tested against R's own distribution functions."""

import pytest

from benchmarks.r_draws import CONDITIONALS, LEVEL, measure


@pytest.mark.slow
@pytest.mark.parametrize("name", CONDITIONALS)
def test_draws_have_the_distribution_of_r(r, need, name):
    """At 0.001 for the ten together; a mean or scale 10% too large, or odds 50%, is rejected at the same level."""
    need(CONDITIONALS[name].package)
    found = measure(CONDITIONALS[name])
    assert found["p"] > LEVEL
    assert found["p_wrong"] < LEVEL
