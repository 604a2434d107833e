"""Work in threads: ordered, complete, and with its errors."""

from __future__ import annotations

import threading
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from mcce import MCCE, InputError
from mcce.base.threads import count_jobs, one_native_thread, run_in_threads, without_warning
from tests.marks import nightly


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_outcomes_are_in_the_order_of_the_items(threads):
    def late_first(item):
        time.sleep(0.01 * (4 - item))
        return item * item

    assert list(run_in_threads(late_first, range(5), threads, "squaring", False)) == [0, 1, 4, 9, 16]
    assert list(run_in_threads(late_first, [], threads, "squaring", False)) == []


def test_two_threads_work_at_once():
    both = threading.Barrier(2, timeout=10)
    list(run_in_threads(lambda _: both.wait(), range(2), 2, "waiting", False))  # a single thread would wait forever


@pytest.mark.parametrize("threads", [1, 2])
def test_error_in_a_thread_is_raised(threads):
    def refuse(item):
        if item == 1:
            raise InputError("item 1 is wrong")
        return item

    with pytest.raises(InputError, match="item 1 is wrong"):
        list(run_in_threads(refuse, range(4), threads, "checking", False))


def test_number_of_threads():
    """As in scikit-learn; the truth is joblib's count of threads."""
    with joblib.parallel_config("threading"):
        for n_jobs in (None, 1, 3, -1, -2):
            assert count_jobs(n_jobs) == joblib.effective_n_jobs(n_jobs)
    assert count_jobs(None) == 1
    with joblib.parallel_config(n_jobs=3):
        assert count_jobs(None) == 3
        assert count_jobs(2) == 2
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(InputError, match=r"n_jobs is .*; it must be a whole number other than 0 .*, or None for 1"):
            count_jobs(wrong)


def native_threads(api):
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == api}


def free(pools):
    for pool in pools.lib_controllers:
        getattr(pool, "clear_controlling_thread", lambda: None)()


@pytest.fixture
def two_native_threads():
    """A process in which every native pool has two threads, independent of the machine and its settings."""
    HistGradientBoostingClassifier(max_iter=1).fit([[0.0], [1.0]] * 20, [0, 1] * 20)  # so that OpenMP is loaded
    pools = ThreadpoolController()
    before = pools.limit(limits=2)
    free(pools)  # otherwise no other thread could limit BLAS
    yield
    assert native_threads("openmp") == native_threads("blas") == {2}, "the number that was found is left behind"
    before.restore_original_limits()
    free(pools)


@pytest.mark.usefixtures("two_native_threads")
class TestNativeThreads:
    @pytest.mark.slow
    def test_nested_calls_use_one_thread(self):
        seen = []

        def look(_):
            seen.append((native_threads("openmp"), native_threads("blas")))

        with one_native_thread():
            look(0)
            list(run_in_threads(look, range(4), 2, "looking", False))
            with one_native_thread():  # a second call has no effect
                look(0)
            look(0)
        assert seen == [({1}, {1})] * 7

    def test_error_restores_the_number_of_threads(self):
        with pytest.raises(ValueError, match="inside"), one_native_thread():
            raise ValueError("inside")
        assert native_threads("blas") == {2}

    def test_two_concurrent_threads_restore_the_setting(self):
        def two_of_openmp():
            return ThreadpoolController().select(user_api="openmp").limit(limits=2)

        inside, first_is_out = threading.Barrier(2, timeout=10), threading.Event()
        seen = []

        def first():
            with two_of_openmp(), one_native_thread():
                inside.wait()
            first_is_out.set()

        def second():
            with two_of_openmp():
                with one_native_thread():
                    inside.wait()
                    first_is_out.wait(10)
                    seen.append((native_threads("openmp"), native_threads("blas")))
                seen.append(native_threads("openmp"))

        threads = [threading.Thread(target=work) for work in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [({1}, {1}), {2}], "who ends first does not end it for the other"

    @pytest.mark.parametrize("sparse", [False, *nightly(True)])
    def test_model_is_queried_with_one_thread(self, sparse):
        seen = set()

        def model(rows):
            seen.add((frozenset(native_threads("openmp")), frozenset(native_threads("blas"))))
            return rows["a"] > 0

        X = pd.DataFrame(np.random.default_rng(1).normal(size=(300, 3)), columns=list("abc"))
        explainer = MCCE(model, decision=True, random_state=1, n_jobs=2).fit(X)
        found = explainer.explain(X, n_samples=50, sparse=sparse)
        found.contributions(next(iter(found)))
        assert seen == {(frozenset({1}), frozenset({1}))}

    @pytest.mark.slow
    def test_answers_match_several_threads(self):
        X = pd.DataFrame(np.random.default_rng(1).normal(size=(300, 3)), columns=list("abc"))
        with threadpool_limits(1):
            model = HistGradientBoostingClassifier(max_iter=4, random_state=0).fit(X, X["a"] + X["b"] > 0)

        def freely(rows):
            with threadpool_limits(2):  # a model that needs more threads sets them itself
                return model.predict_proba(rows)[:, 1]

        found = [MCCE(m, random_state=1).fit(X).explain(X.head(20), n_samples=20) for m in (model, freely)]
        pd.testing.assert_frame_equal(found[0].frame, found[1].frame)
        pd.testing.assert_frame_equal(found[0].measures, found[1].measures)


def test_first_thread_to_exit_keeps_warnings_of_the_other_muted():
    """`warnings.catch_warnings` in both threads would restore the filters in which warnings are errors."""
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()
    raised = []

    def first():
        with without_warning("a doubt"):
            first_is_in.set()
            second_is_in.wait(10)
        first_is_out.set()

    def second():
        first_is_in.wait(10)
        try:
            with without_warning("a doubt"):
                second_is_in.set()
                first_is_out.wait(10)
                warnings.warn("a doubt about classes", UserWarning, stacklevel=1)
        except UserWarning as warning:
            raised.append(warning)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        threads = [threading.Thread(target=work) for work in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not raised
        assert warnings.filters == before
        with pytest.raises(UserWarning):
            warnings.warn("a doubt about classes", UserWarning, stacklevel=1)


def test_existing_filter_is_kept():
    """Between the two, another thread's warning would be an error."""
    missing = []

    class Filters(list):
        def remove(self, each):
            super().remove(each)
            missing.append(each)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with without_warning("a doubt"):
            warnings.filters = Filters(warnings.filters)
            with without_warning("a doubt"), without_warning(""), without_warning("another"), without_warning(""):
                assert not missing
                assert [each[0] for each in warnings.filters[:4]] == ["ignore", "ignore", "ignore", "error"]
