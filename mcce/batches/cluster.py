"""The workers of a Dask cluster.

1. Each gets the explainer when it joins, once: also one that joins later, or takes the place of another that died.
2. Parts are handed out as bytes, two for each core at a time. Those of a worker that died go to others.

joblib's own way to Dask is not taken: it waits forever for a part that failed, and loses what was sent to a worker that
died.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from mcce.batches.parts import Explained, Request, explain_part
from mcce.batches.receiving import Pickled, receive
from mcce.batches.sources import Part
from mcce.exceptions import MCCEError

Plugin: Any
try:
    import cloudpickle
    import distributed
except ModuleNotFoundError:  # the extra `cluster`, without which there is no client to come here with
    Plugin = object
else:
    Plugin = distributed.WorkerPlugin


def run_on_cluster(
    client: Any, name: str, pickled: Pickled, parts: Iterator[tuple[Request, Part]]
) -> Iterator[Explained]:
    """Yield what becomes of the parts, as it comes."""
    with _delivered(client, name, pickled):
        under_way = distributed.as_completed()

        def hand_out(n: int) -> None:
            for task in islice(parts, n):
                under_way.add(client.submit(_explain_bytes, name, cloudpickle.dumps(task), pure=False))

        hand_out(2 * max(1, sum(client.ncores().values())))
        for future in under_way:
            try:
                explained = future.result()
            except distributed.KilledWorker as error:
                raise MCCEError(
                    f"workers of the cluster died again and again over one part: {error} Finished parts are kept; run "
                    "it again, with more memory for each worker if that was the reason."
                ) from error
            yield explained
            hand_out(1)


def _explain_bytes(name: str, task: bytes) -> Explained:
    request, part = pickle.loads(task)
    return explain_part(receive(name), request, part)


class Deliver(Plugin):
    """Receives the explainer where it is set up; Dask sets it up on workers that join later, too."""

    def __init__(self, explainer: str, pickled: Pickled) -> None:
        self.explainer = explainer
        self.pickled = pickled

    def setup(self, worker: Any) -> None:
        """Make the explainer."""
        receive(self.explainer, self.pickled)


@contextmanager
def _delivered(client: Any, name: str, pickled: Pickled) -> Iterator[None]:
    """Have every worker hold the explainer (step 1)."""
    plugin = f"mcce-{name}"
    client.register_plugin(Deliver(name, pickled), name=plugin)
    try:
        yield
    finally:
        client.unregister_worker_plugin(plugin)
