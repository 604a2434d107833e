"""Kernels without a cache, threads, checks of arguments, atomic files."""

import os
import subprocess
import sys
from threading import Barrier, Thread

import joblib
import numpy as np
import pytest
from numba.core.caching import CacheImpl
from threadpoolctl import threadpool_info

from mcce import _utils
from mcce._utils import (
    atomic_path,
    blocks,
    check_count,
    check_flag,
    check_number,
    count_jobs,
    jit,
    map_threads,
    one_native_thread,
)
from mcce.exceptions import InputError, MCCEWarning


def test_kernels_divide_by_zero_and_survive_a_folder_that_cannot_be_written(monkeypatch):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(_utils, "_without_cache", [])

    def divide(a, b):
        return a / b

    with pytest.warns(MCCEWarning, match="set NUMBA_CACHE_DIR to a folder that can be written") as caught:
        kernels = [jit(divide), jit(divide, fastmath=True)]
    assert len(caught) == 1
    assert [kernel(1.0, 0.0) for kernel in kernels] == [np.inf, np.inf]


@pytest.mark.slow
def test_kernels_are_cached(tmp_path):
    code = "import numpy as np; from mcce.rng import hash_rows; hash_rows(np.ones((1, 1)))"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, check=True)
    assert list(tmp_path.rglob("*.nbi"))


def native_threads():
    return {pool["num_threads"] for pool in threadpool_info()}


def test_native_threads_are_limited_inside_and_restored_outside():
    import sklearn.ensemble  # noqa: F401  # loads OpenMP

    before = [pool["num_threads"] for pool in threadpool_info()]
    with one_native_thread():
        assert native_threads() == {1}
        with one_native_thread():
            assert native_threads() == {1}
        assert native_threads() == {1}
    assert set.union(*map_threads(lambda _: native_threads(), range(4), n_jobs=3)) == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_limits_of_concurrent_threads_are_restored():
    before, barrier = [pool["num_threads"] for pool in threadpool_info()], Barrier(4)

    @one_native_thread()
    def work():
        barrier.wait()

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_map_threads_keeps_the_order_and_raises():
    assert map_threads(lambda k: k * k, list(range(50)), n_jobs=4) == [k * k for k in range(50)]
    assert map_threads(abs, []) == []
    with pytest.raises(ZeroDivisionError):
        map_threads(lambda k: 1 / k, [1, 0, 2], n_jobs=2)


def test_progress_is_shown_when_asked():
    for progress, is_hidden in [(None, True), (True, False), (False, True)]:  # pytest's standard error is no terminal
        with _utils.progress_bar(3, "fit", progress) as bar:
            assert (bar.disable, bar.total) == (is_hidden, 3)
    with pytest.raises(InputError, match="progress is 1; it must be True or False"):
        map_threads(abs, [1], progress=1)


def test_count_jobs():
    assert [count_jobs(None), count_jobs(3), count_jobs(-1)] == [1, 3, joblib.cpu_count()]
    assert count_jobs(-1000) == 1
    with joblib.parallel_config(n_jobs=2):
        assert count_jobs(None) == 2


def test_checks_return_plain_values():
    assert check_count(np.int8(3), "n") == 3
    assert check_number(np.float32(0.5), "p", 0, 1) == 0.5
    assert check_flag(np.True_, "sparse") is True


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: check_count(0, "n"), "n is 0; it must be a whole number of at least 1."),
        (lambda: check_count(2.0, "n"), "n is 2.0; it must be a whole number of at least 1."),
        (lambda: check_count(True, "n", 0, 9), "n is True; it must be a whole number of at least 0 and at most 9."),
        (lambda: check_number("a", "p"), "p is 'a'; it must be a finite number."),
        (lambda: check_number(np.inf, "p", 0), "p is inf; it must be a number of at least 0."),
        (lambda: check_number(np.nan, "p", 0), "p is nan; it must be a number of at least 0."),
        (lambda: check_number(0, "p", 0, above_low=True), "p is 0; it must be a number above 0."),
        (lambda: check_number(2, "p", 0, 1), "p is 2; it must be a number of at least 0 and at most 1."),
        (lambda: check_number(1, "p", 0, 1, below_high=True), "p is 1; it must be a number of at least 0 and below 1."),
        (lambda: check_flag(1, "sparse"), "sparse is 1; it must be True or False."),
        (lambda: atomic_path("").__enter__(), "'' is not a name of a file; give another one."),
    ],
)
def test_messages(call, text):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == text


def test_atomic_path(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o600)
    with pytest.raises(TypeError), atomic_path(path) as beside:
        beside.write_text("half") + None
    assert path.read_text() == "old"
    with atomic_path(path) as beside:
        beside.write_text("new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
    with atomic_path("/dev/null") as device:
        device.write_text("lost")


def test_blocks_cover_everything_once():
    for n in (0, 1, 7, 8):
        assert [k for block in blocks(n, 4) for k in range(block.start, block.stop)] == list(range(n))
