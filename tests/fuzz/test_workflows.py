"""Random workflows give an answer that keeps every promise, or an error that says why."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.workflows import cases, run

ANY_MACHINE = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def test_workflows():
    """The same workflows each time; most have an answer, so that the oracles are used."""
    outcomes = Counter()

    @settings(max_examples=15, derandomize=True, database=None, **ANY_MACHINE)
    @given(cases(), st.data())
    def check(case, data):
        outcomes[run(case, data)] += 1

    check()
    assert outcomes["explained"] > 7, outcomes


@pytest.mark.nightly
@settings(max_examples=2_000, **ANY_MACHINE)
@given(cases(), st.data())
def test_many_workflows(case, data):
    run(case, data)
