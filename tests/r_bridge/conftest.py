"""Fixtures shared by the tests of the bridge: R, or a reason to skip."""

import functools
import os

import pytest

HOW = "pip install 'mcce[r]', and R with its packages rpart and party (Debian: r-base-dev r-cran-rpart r-cran-party)"

NOT_REQUIRED = ("mcceR", "synthpop")  # not available as Debian packages


@functools.cache
def why_no_r():
    """Return why R cannot be used; None if it can."""
    from r_bridge import RBridgeError
    from r_bridge.session import session

    try:
        session()
    except RBridgeError as error:
        return str(error)
    return None


def pytest_runtest_setup(item):
    """Skip tests that need R without it; here and not in a fixture, so that one line reports all."""
    if "r" in item.fixturenames and why_no_r() is not None:
        _missing(f"needs R: {HOW}")


@pytest.fixture(scope="session")
def r():
    """The installed R."""
    from r_bridge.session import session

    return session()


@pytest.fixture(scope="session")
def need(r):
    """Skip unless R has a package; where R is required, only `NOT_REQUIRED` may be missing."""

    def check(package):
        if not r.has(package):
            source = "NorskRegnesentral/mcceR on GitHub" if package == "mcceR" else f'install.packages("{package}")'
            message = f"needs R's package {package}: {source}"
            pytest.skip(message) if package in NOT_REQUIRED else _missing(message)

    return check


@pytest.fixture(scope="session")
def fused(r):
    """Return whether R was compiled with fused multiply-adds, as on ARM: the kernels then have a variant for it."""
    from r_bridge import arithmetic

    found = arithmetic()
    assert found != "other", "R rounds neither as on x86 nor as on ARM: nothing can be compared to the bit"
    return found == "fused"


@pytest.fixture(scope="session")
def has_our_lapack(r, fused):
    """Return whether R rounds decompositions as `svd_kernels` does: the reference LAPACK 3.11, not fused."""
    library = r.strings(r.call("evaluate", "La_library()", None))[0]
    return "/lapack/" in library and "3.11" in library and not fused


def _missing(message):
    """Skip; fail where R is required, as in continuous integration."""
    if os.environ.get("MCCE_REQUIRE_R"):
        pytest.fail(f"{message} ({why_no_r()})")
    pytest.skip(message)
