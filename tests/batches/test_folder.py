"""The lock of a folder: concurrent runs raise, dead runs and removed locks do not block."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mcce import InputError
from mcce.base.locks import hold_lock
from tests.batches.problem import ROWS, SETTINGS, explainer

HOLD = """
import sys, importlib.util
spec = importlib.util.spec_from_file_location("locking", sys.argv[1])
sys.path.insert(0, sys.argv[3])
locking = importlib.util.module_from_spec(spec)
spec.loader.exec_module(locking)
from pathlib import Path
with locking.hold_lock(Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(folder):
    """Start another process that holds the lock of a folder."""
    import mcce.base.locks

    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-c", HOLD, mcce.base.locks.__file__, str(folder), root]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "held\n"
    return other


@pytest.mark.slow
def test_concurrent_run_raises_until_the_first_is_dead(tmp_path):
    with hold(tmp_path) as other:
        with pytest.raises(InputError, match=rf"is being written by process {other.pid} on .*Wait until it is done"):
            explainer().explain_batches([ROWS], tmp_path, **SETTINGS)
        assert not (tmp_path / "manifest.json").exists()
        other.kill()
        other.wait()
    assert f"process {other.pid} " in (tmp_path / ".lock").read_text()  # a stale file without a lock
    explainer().explain_batches([ROWS], tmp_path, **SETTINGS)
    assert not (tmp_path / ".lock").exists()


def test_two_threads_of_one_process_are_two_runs(tmp_path):
    with hold_lock(tmp_path), pytest.raises(InputError, match=f"process {os.getpid()} "), hold_lock(tmp_path):
        pass
    with hold_lock(tmp_path):
        pass


@pytest.mark.slow
def test_concurrent_runs_never_hold_the_lock_together(tmp_path):
    """The file is removed by each holder, so some runs lock a removed file."""
    inside, most, entered = 0, 0, 0
    counting = threading.Lock()

    def try_often():
        nonlocal inside, most, entered
        for _ in range(300):
            try:
                with hold_lock(tmp_path):
                    with counting:
                        inside += 1
                        entered += 1
                        most = max(most, inside)
                    with counting:
                        inside -= 1
            except InputError:
                pass

    threads = [threading.Thread(target=try_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert entered > 0
