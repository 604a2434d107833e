"""Failing models, interrupts, threads and processes leave the explainer usable."""

from __future__ import annotations

import itertools
import multiprocessing
import threading
import time

import numpy as np
import pytest

import mcce
from mcce import ModelError
from tests.explainer.problem import DENIED, TABLE, assert_same, fitted, score
from tests.marks import nightly, nightly_but, nightly_rows

MODES = {
    "plain": {},
    "sparse": {"sparse": True},
    "constrained": {"constraints": [mcce.allow("income", direction="increase"), mcce.rule("debt <= was(debt)")]},
}
SOME = DENIED.iloc[:6]


@pytest.fixture(params=nightly_but(MODES, "constrained", "sparse"))
def options(request):
    return {"n_samples": 30, **MODES[request.param]}


class Troubled:
    """A model that answers correctly for some queries, then fails as `how` says."""

    def __init__(self, how):
        self.how, self.trouble = how, False

    def __call__(self, rows):
        answer = score(rows)
        return self.how(answer) if self.trouble else answer


def raise_(error):
    raise error


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda a: None, "None"),
        *nightly_rows(
            (lambda a: raise_(MemoryError("out of it")), "raised MemoryError: out of it"),
            (
                lambda a: np.where(np.arange(a.size) == a.size - 1, np.nan, a),
                r"returned missing values \(NaN or None\)",
            ),
            (lambda a: a[:-1], "expected .*, one per row"),
            (lambda a: np.column_stack([a, a, a]), "3"),
        ),
    ],
)
def test_late_model_failure_is_reported_and_explainer_stays_usable(how, message, options):
    model = Troubled(how)
    explainer = fitted(model)
    before = explainer.explain(SOME, **options)
    model.trouble = True
    with pytest.raises(ModelError, match=message):
        explainer.explain(SOME, **options)
    model.trouble = False
    assert_same(explainer.explain(SOME, **options), before)


@pytest.mark.slow
def test_lists_and_infinities_are_valid_answers(options):
    wanted = (0.5, np.inf)
    found = fitted(score, wanted).explain(SOME, **options)
    as_list = fitted(lambda rows: score(rows).tolist(), wanted).explain(SOME, **options)
    assert_same(as_list, found)
    endless = fitted(lambda rows: np.where(score(rows) >= 0.5, np.inf, -np.inf), wanted).explain(SOME, **options)
    assert (endless.measures["prediction"] == np.inf).all()
    assert len(endless) == len(found)


@pytest.mark.slow
def test_interrupt_at_any_query_leaves_explainer_usable(options):
    def interrupted(rows):
        if next(calls) == at:
            raise KeyboardInterrupt
        return score(rows)

    calls, at = itertools.count(), -1
    explainer = fitted(interrupted)
    explainer.explain(SOME, **options)  # the first sparse call also learns the usual values
    begun = next(calls)
    before = explainer.explain(SOME, **options)
    n_calls = next(calls) - begun - 1
    for k in {0, 1, n_calls // 2, n_calls - 1}:
        calls, at = itertools.count(), k
        with pytest.raises(KeyboardInterrupt):
            explainer.explain(SOME, **options)
        at = -1
        assert_same(explainer.explain(SOME, **options), before)
    at = next(calls) + 1  # and in fit: the next fit is unaffected
    with pytest.raises(KeyboardInterrupt):
        explainer.fit(TABLE)
    at = -1
    assert_same(explainer.fit(TABLE).explain(SOME, **options), before)


@pytest.mark.slow
def test_two_threads_can_share_an_explainer(options):
    explainer = fitted(n_jobs=2)
    parts = [SOME, DENIED.iloc[6:12]]
    alone = [explainer.explain(part, **options) for part in parts]
    fresh = fitted(n_jobs=2)  # both learn the parts of the first call at the same time
    found, both = {}, threading.Barrier(2, timeout=60)

    def work(i):
        both.wait()
        found[i] = fresh.explain(parts[i], **options)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(2):
        assert_same(found[i], alone[i])


@pytest.mark.slow
def test_model_is_never_queried_by_two_threads_at_once(options):
    inside = threading.Lock()

    def unsafe(rows):
        assert inside.acquire(blocking=False), "queried by two threads at once"
        time.sleep(0.001)  # slow enough for another thread to query too
        answer = score(rows)
        inside.release()
        return answer

    found = fitted(unsafe, n_jobs=4).explain(SOME, **options)
    assert_same(found, fitted(n_jobs=1).explain(SOME, **options))


def in_a_process(explainer, options, sending):
    sending.send(explainer.explain(SOME, **options))
    sending.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", *nightly("spawn")])
def test_other_processes_give_the_same_result(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    options = {"n_samples": 30, "sparse": True, **MODES["constrained"]}
    explainer = fitted(n_jobs=1)
    before = explainer.explain(SOME, **options)
    context = multiprocessing.get_context(method)
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=in_a_process, args=(explainer, options, sending))
    process.start()
    sending.close()
    found = receiving.recv()
    process.join()
    assert process.exitcode == 0
    assert_same(found, before)
