"""R for the tests of the bridge, or a reason to skip; where ``MCCE_REQUIRE_R`` is set, a failure."""

import functools
import os

import pytest

from r_bridge import RError
from r_bridge.session import WHERE_FROM, session

HOW = "pip install 'mcce[r]', and R with its packages (Debian: r-base-dev r-cran-rpart r-cran-party r-cran-ranger)"
NOT_REQUIRED = ("mcceR", "synthpop")  # not available as Debian packages


@functools.cache
def why_no_r():
    """Return why R cannot be used; None if it can."""
    try:
        session()
    except RError as error:
        return str(error)
    return None


def pytest_runtest_setup(item):
    """Skip tests that need R without it; here and not in a fixture, so that one line reports all."""
    if "r" in item.fixturenames and why_no_r() is not None:
        _missing(f"needs R: {HOW}")


@pytest.fixture(scope="session")
def r():
    """The installed R."""
    return session()


@pytest.fixture(scope="session")
def need(r):
    """Skip unless R has a package; where R is required, only `NOT_REQUIRED` may be missing."""

    def check(package):
        if not r.has(package):
            code = WHERE_FROM.get(package, f'install.packages("{package}")')
            message = f"needs R's package {package}; in R: {code}"
            pytest.skip(message) if package in NOT_REQUIRED else _missing(message)

    return check


def _missing(message):
    """Skip; fail where R is required, as in continuous integration."""
    if os.environ.get("MCCE_REQUIRE_R"):
        pytest.fail(f"{message} ({why_no_r()})")
    pytest.skip(message)
