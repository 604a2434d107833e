"""Work in threads: in order, complete, and with its errors."""

from __future__ import annotations

import threading
import time

import pytest

from mcce import InputError
from mcce.workers import count_jobs, run_in_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_outcomes_come_in_the_order_of_the_items(threads):
    def late_first(item):
        time.sleep(0.01 * (4 - item))
        return item * item

    assert list(run_in_threads(late_first, range(5), threads, "squaring", False)) == [0, 1, 4, 9, 16]
    assert list(run_in_threads(late_first, [], threads, "squaring", False)) == []


def test_two_threads_work_at_once():
    both = threading.Barrier(2, timeout=10)
    list(run_in_threads(lambda _: both.wait(), range(2), 2, "waiting", False))  # a single thread would wait in vain


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_thread_is_raised(threads):
    def refuse(item):
        if item == 1:
            raise InputError("item 1 is wrong")
        return item

    with pytest.raises(InputError, match="item 1 is wrong"):
        list(run_in_threads(refuse, range(4), threads, "checking", False))


def test_the_number_of_threads():
    assert count_jobs(3) == 3
    assert count_jobs(None) == count_jobs(-1) >= 1
    for wrong in (0, -2, 1.5, True, "2"):
        with pytest.raises(InputError, match=r"n_jobs is .*; it must be a whole number .*, or None for all cores"):
            count_jobs(wrong)
