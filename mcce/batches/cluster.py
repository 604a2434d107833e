"""Giving the explainer to the workers of a Dask cluster: to each when it joins, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import WorkerPlugin

from mcce.batches.receiving import Pickled, receive


class Deliver(WorkerPlugin):
    """Receives the explainer where it is set up; Dask sets it up on workers that join later, too."""

    def __init__(self, explainer: str, pickled: Pickled) -> None:
        self.explainer = explainer
        self.pickled = pickled

    def setup(self, worker: Any) -> None:
        receive(self.explainer, self.pickled)


@contextmanager
def delivered(client: Any, name: str, pickled: Pickled) -> Iterator[None]:
    """Have every worker of a cluster hold the explainer."""
    plugin = f"mcce-{name}"
    client.register_plugin(Deliver(name, pickled), name=plugin)
    try:
        yield
    finally:
        client.unregister_worker_plugin(plugin)
