"""One fitted explainer and one explanation, which no test modifies."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from mcce import MCCE
from tests.explainer.problem import DENIED, fitted


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Use one thread: OpenMP threads that wait for a busy core make small models slow."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def explainer() -> MCCE:
    return fitted()


@pytest.fixture(scope="session")
def found(explainer):
    return explainer.explain(DENIED, n_samples=200, n_counterfactuals=3)
