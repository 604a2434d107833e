"""What the tests of the bridge share: R or a reason to skip, and a count of live comparisons."""

import os

import pytest

HOW = (
    "install R (Debian: apt install r-base-dev r-cran-rpart r-cran-party r-cran-data.table), then pip install 'mcce[r]'"
)
_compared = {}


@pytest.fixture(scope="session")
def r():
    """The R of this machine; tests that need it skip where there is none."""
    from r_bridge import RBridgeError
    from r_bridge.session import session

    try:
        return session()
    except RBridgeError as error:
        _missing(f"needs R and rpy2: {HOW} ({error})")


@pytest.fixture(scope="session")
def need(r):
    """Skip unless R has a package."""

    def check(package):
        if not r.has(package):
            source = "NorskRegnesentral/mcceR on GitHub" if package == "mcceR" else f'install.packages("{package}")'
            message = f"needs R's package {package}: {source}"
            _missing(message) if package in ("rpart", "party") else pytest.skip(message)

    return check


def _missing(message):
    """Skip; fail where R is required, as in continuous integration."""
    if os.environ.get("MCCE_REQUIRE_R"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def compared():
    """Count values that were compared with R's; the counts are printed at the end."""

    def count(what, n):
        _compared[what] = _compared.get(what, 0) + int(n)

    return count


def pytest_terminal_summary(terminalreporter):
    if _compared:
        terminalreporter.write_line("live comparisons with R:")
        for what, n in _compared.items():
            terminalreporter.write_line(f"  {n:>10,}  {what}")
