"""An environment without the paper's data."""

from __future__ import annotations

from urllib.error import URLError

import pytest

from mcce.datasets import paper as openml


@pytest.fixture
def no_data(monkeypatch):
    """Neither MCCE_DATA nor a network."""

    def offline(data_id):
        raise URLError("no route to host")

    monkeypatch.delenv("MCCE_DATA", raising=False)
    monkeypatch.setattr(openml, "fetch", offline)
