"""An explainer that is fitted once."""

import pytest

from mcce.explore import ExplorerSession
from tests.explore import bank


@pytest.fixture(scope="session")
def fitted():
    return bank.explainer()


@pytest.fixture(scope="session")
def table():
    return bank.people()


@pytest.fixture(scope="module")
def session(fitted, table):
    return ExplorerSession(fitted, table)


@pytest.fixture(scope="session")
def refused(table):
    """The position of a rejected row."""
    return int((bank.risk(table) > 0.5).to_numpy().argmax())
