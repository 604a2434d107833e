"""Workers that explain parts: threads, processes and Dask clusters.

Other processes receive the pickled explainer once, as an array that joblib maps into memory. Each worker uses one
thread. Workers of a Dask cluster receive it when they join; joblib's Dask backend is not used because it hangs on
failed parts. After an error, the running parts are finished and written.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.batches.parts import Explained, Request, explain_part
from mcce.batches.sources import Part
from mcce.exceptions import InputError, MCCEError
from mcce.explain.protocol import Explainer
from mcce.wording import PythonOnly, Setting

Pickled = npt.NDArray[np.uint8]

_kept: dict[str, Explainer] = {}  # the last received explainer, by the checksum of its pickle
_keeping = Lock()


class Shipped:
    """An explainer that is pickled as its checksum and bytes.

    It is unpickled at the first use, not by intermediate processes such as a cluster's scheduler.
    """

    def __init__(self, explainer: Explainer | None, name: str = "", pickled: Pickled | None = None) -> None:
        self._explainer = explainer
        self.name = name
        self.pickled = pickled

    @property
    def explainer(self) -> Explainer:
        """The explainer, unpickled once per process."""
        if self._explainer is None:
            self._explainer = receive(self.name, self.pickled)
        return self._explainer

    def __reduce__(self) -> tuple[Any, ...]:
        return Shipped, (None, self.name, self.pickled)


def receive(name: str, pickled: Pickled | None = None) -> Explainer:
    """Return an explainer in another process; `pickled` is None if it was received before."""
    with _keeping:
        if name not in _kept:
            if pickled is None:
                raise MCCEError("this worker did not receive the explainer; restart the cluster, and run it again.")
            _kept.clear()
            _kept[name] = pickle.loads(pickled.data)
        return _kept[name]


PARTS_A_ROUND = 4  # for each worker


def run_parts(explainer: Explainer, parts: Iterator[tuple[Request, Part]], n_jobs: int | None) -> Iterator[Explained]:
    """Yield the explained parts in order of completion; at the end raise the first error."""
    reading = _PartReader(parts)
    first: Explained | None = None
    for explained in _run(explainer, reading, n_jobs):
        if explained.problem is None:
            yield explained
            continue
        reading.stop()
        if first is None or explained.part.number < first.part.number:
            first = explained
    if first is not None:
        assert first.problem is not None
        raise first.problem
    if reading.problem is not None:
        raise reading.problem


def _run(explainer: Explainer, reading: _PartReader, n_jobs: int | None) -> Iterator[Explained]:
    """Explain the parts with the active joblib backend."""
    from joblib import Parallel, delayed, effective_n_jobs
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    client = getattr(backend, "client", None)
    alone = copy.copy(explainer)
    alone.n_jobs = 1
    if client is not None:
        yield from run_on_cluster(client, *_pickle(alone), iter(reading))
        return
    if effective_n_jobs(n_jobs) == 1:
        shipped = Shipped(explainer)
    elif getattr(backend, "supports_sharedmem", False):
        shipped = Shipped(alone)
    else:
        shipped = Shipped(alone, *_pickle(alone))
    work = (delayed(_explain_shipped)(shipped, request, part) for request, part in reading)
    try:
        if getattr(backend, "supports_return_generator", False):
            yield from Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")(work)
            return
        with Parallel(n_jobs=n_jobs, batch_size=1) as parallel:  # Ray's backend returns all results at once
            while some := list(islice(work, PARTS_A_ROUND * effective_n_jobs(n_jobs))):
                yield from parallel(some)
    except BrokenProcessPool as error:
        raise MCCEError(
            "a worker process ended: it was killed, or memory ran out. Finished parts are kept; run it "
            "again, with fewer workers if memory was the reason."
        ) from error


class _PartReader:
    """An iterator of parts that keeps its error, since joblib consumes it in other threads."""

    def __init__(self, parts: Iterator[tuple[Request, Part]]) -> None:
        self._parts = parts
        self._stopped = False
        self.problem: Exception | None = None

    def stop(self) -> None:
        self._stopped = True

    def __iter__(self) -> Iterator[tuple[Request, Part]]:
        try:
            for part in self._parts:
                yield part
                if self._stopped:
                    return
        except Exception as problem:
            self.problem = problem


def _explain_shipped(shipped: Shipped, request: Request, part: Part) -> Explained:
    return explain_part(shipped.explainer, request, part)


def _pickle(explainer: Explainer) -> tuple[str, Pickled]:
    """Return the checksum and the bytes of a pickled explainer."""
    from joblib import wrap_non_picklable_objects

    try:
        wrapped = wrap_non_picklable_objects(explainer, keep_wrapper=False)  # also functions of a script or notebook
        pickled = np.frombuffer(pickle.dumps(wrapped), dtype=np.uint8)
    except Exception as error:
        problem = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(
            f"the explainer cannot be sent to other processes ({type(error).__name__}: {problem}). "
            "The model, the decision and all other parameters must be picklable; or "
            "use ",
            PythonOnly('threads, `with joblib.parallel_config("threading", n_jobs=...)`, or '),
            Setting("n_jobs", 1),
            ".",
        ) from error
    return hashlib.sha256(pickled.data).hexdigest(), pickled


Plugin: Any
try:
    import cloudpickle
    import distributed
except ModuleNotFoundError:  # the extra `cluster`
    Plugin = object
else:
    Plugin = distributed.WorkerPlugin


def run_on_cluster(
    client: Any, name: str, pickled: Pickled, parts: Iterator[tuple[Request, Part]]
) -> Iterator[Explained]:
    """Yield the explained parts in order of completion."""
    with _delivered(client, name, pickled):
        running = distributed.as_completed()

        def hand_out(n: int) -> None:
            for task in islice(parts, n):
                running.add(client.submit(_explain_bytes, name, cloudpickle.dumps(task), pure=False))

        hand_out(2 * max(1, sum(client.ncores().values())))
        for future in running:
            try:
                explained = future.result()
            except distributed.KilledWorker as error:
                raise MCCEError(
                    f"workers of the cluster died repeatedly on one part: {error} Finished parts are kept; run "
                    "it again, with more memory for each worker if that was the reason."
                ) from error
            yield explained
            hand_out(1)


def _explain_bytes(name: str, task: bytes) -> Explained:
    request, part = pickle.loads(task)
    return explain_part(receive(name), request, part)


class Deliver(Plugin):
    """Dask plugin that delivers the explainer to all workers, including those that join later."""

    def __init__(self, explainer: str, pickled: Pickled) -> None:
        self.explainer = explainer
        self.pickled = pickled

    def setup(self, worker: Any) -> None:
        receive(self.explainer, self.pickled)


@contextmanager
def _delivered(client: Any, name: str, pickled: Pickled) -> Iterator[None]:
    """Deliver the explainer to every worker during the block."""
    plugin = f"mcce-{name}"
    client.register_plugin(Deliver(name, pickled), name=plugin)
    try:
        yield
    finally:
        client.unregister_worker_plugin(plugin)
