"""Settings for all tests, and the count of live comparisons with R, over all processes that test."""

import os

import pytest
from hypothesis import HealthCheck, settings

# the small models of the tests gain nothing from OpenMP threads, and wait long for them on a busy machine
os.environ.setdefault("OMP_NUM_THREADS", "1")

# whether a test passes must not depend on how busy the machine is
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_compared = {}


@pytest.fixture(scope="session")
def compared():
    """Count values that were compared with R's; the counts are printed at the end."""
    return _count


def _count(what, n):
    _compared[what] = _compared.get(what, 0) + int(n)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # one of several processes
        session.config.workeroutput["compared"] = _compared


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node):
    for what, n in getattr(node, "workeroutput", {}).get("compared", {}).items():
        _count(what, n)


def pytest_terminal_summary(terminalreporter):
    if _compared:
        terminalreporter.write_line("live comparisons with R:")
        for what, n in _compared.items():
            terminalreporter.write_line(f"  {n:>10,}  {what}")
        terminalreporter.write_line(f"  {sum(_compared.values()):>10,}  in all")
