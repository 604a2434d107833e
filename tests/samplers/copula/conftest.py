"""Rows from a known copula."""

from __future__ import annotations

import pytest

from tests.samplers.copula.simulated import simulate


@pytest.fixture(scope="module")
def training():
    return simulate(60_000, 12)
