"""Getting parts explained by workers that joblib is set to, with the fitted explainer sent once a worker.

1. In this process, by one or several threads, the explainer is used as it is.
2. For other processes it is pickled once. joblib puts a large array into a file that all processes of a machine map, so
   the pickle travels as an array; a process reads it once and keeps the explainer for all its parts.
3. On a Dask cluster each worker gets it when it joins, also one that takes the place of another that died
   (`mcce.batches.cluster`).
4. A worker searches with one thread: there are as many workers as cores.
5. Parts come back one by one, or, from backends of joblib that cannot do so, a few for each worker at a time.

What is read or explained wrongly ends the run only after the parts under way have been handed over, so that nothing
that is finished gets lost.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

import numpy as np

from mcce.batches.parts import Explained, Request, explain_part
from mcce.batches.receiving import Pickled, Shipped
from mcce.batches.sources import Part
from mcce.exceptions import InputError, MCCEError
from mcce.explainer import Explainer

PARTS_A_ROUND = 4  # for each worker


def run_parts(explainer: Explainer, parts: Iterator[tuple[Request, Part]], n_jobs: int | None) -> Iterator[Explained]:
    """Yield what becomes of the parts, as it comes; at the end raise what stopped it."""
    reading = _Reading(parts)
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


def _run(explainer: Explainer, reading: _Reading, n_jobs: int | None) -> Iterator[Explained]:
    """Have the parts explained by whom joblib is set to (steps 1 to 5)."""
    from joblib import Parallel, delayed, effective_n_jobs
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    client = getattr(backend, "client", None)
    alone = copy.copy(explainer)
    alone.n_jobs = 1
    if client is not None:
        from mcce.batches.cluster import run_on_cluster

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
        with Parallel(n_jobs=n_jobs, batch_size=1) as parallel:  # Ray's hands over what is finished all at once
            while some := list(islice(work, PARTS_A_ROUND * effective_n_jobs(n_jobs))):
                yield from parallel(some)
    except BrokenProcessPool as error:
        raise MCCEError(
            "a worker process ended by itself: it was killed, or memory ran out. Finished parts are kept; run it "
            "again, with fewer workers if memory was the reason."
        ) from error


class _Reading:
    """Parts one after the other; joblib asks for them in threads that could not report an error."""

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
    """Return an explainer as bytes, and their checksum, by which workers know it."""
    from joblib import wrap_non_picklable_objects

    try:
        wrapped = wrap_non_picklable_objects(explainer, keep_wrapper=False)  # functions of a script or notebook, too
        pickled = np.frombuffer(pickle.dumps(wrapped), dtype=np.uint8)
    except Exception as error:
        problem = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(
            f"the explainer cannot be sent to other processes ({type(error).__name__}: {problem}). The model, the "
            "decision and everything else that it was made with must be picklable; or use threads, "
            '`with joblib.parallel_config("threading", n_jobs=...)`, or n_jobs=1.'
        ) from error
    return hashlib.sha256(pickled.data).hexdigest(), pickled
