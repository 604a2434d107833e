"""Complete workflows with random tables and settings give a correct result or an error with a reason."""

from __future__ import annotations

import collections
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mcce
from tests.fuzz.workflows import OURS, main, try_case
from tests.marks import nightly_but

# models of statsmodels raise for numbers outside their family, and for fewer rows than coefficients
REFUSING = {name for name in OURS if mcce.available_samplers()[name].__module__.startswith("mcce.samplers.statsmodels")}
QUICK, NIGHTLY = range(100_015, 100_020), range(20_000)


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
def test_workflows_shrunk_by_hypothesis(chance):
    try_case(chance)


def test_workflows_by_number():
    """The same numbers each time; some give answers, so that the oracles are used."""
    outcomes = collections.Counter(try_case(random.Random(number))[1] for number in QUICK)
    assert outcomes["answered"] > len(QUICK) / 3


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but([*OURS, "private"], "cart", "norm", "private"))
def test_workflows_with_each_conditional(name):
    outcomes = collections.Counter(try_case(random.Random(number), name)[1] for number in range(200_000, 200_008))
    assert outcomes["answered"] > 0 or name in REFUSING, outcomes


@pytest.mark.nightly
def test_many_workflows(capsys):
    outcomes = main(NIGHTLY.start, NIGHTLY.stop)
    assert outcomes["FAILED"] == 0, capsys.readouterr().out
