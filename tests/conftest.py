"""Settings for all tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

# the small models of the tests gain nothing from OpenMP threads, and wait long for them on a busy machine
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

# whether a test passes must not depend on how busy the machine is
ANY_MACHINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=20, **ANY_MACHINE)
settings.register_profile("thorough", max_examples=500, **ANY_MACHINE)


def pytest_configure(config: pytest.Config) -> None:
    """Try all hypothesis examples in `-m nightly`; other runs try a few."""
    nightly = "nightly" in config.option.markexpr.replace("not nightly", "")
    settings.load_profile("thorough" if nightly else "quick")
