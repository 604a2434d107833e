"""A run that is killed at random times and resumed writes the bytes of an undisturbed run."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.batches.problem import ROWS, written

ROOT = Path(__file__).resolve().parents[2]


class Runs:
    """Runs in separate processes, one at a time."""

    def __init__(self, source):
        command = [sys.executable, "-m", "tests.batches.killed", str(source)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def run(self, folder, kill_after=""):
        """Return the signal that ended a run, 0 if it completed, and its duration in seconds."""
        self.process.stdin.write(f"{folder} {kill_after}\n")
        self.process.stdin.flush()
        ended, seconds = self.process.stdout.readline().split()
        return int(ended), float(seconds)

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def kill_often(tmp_path, n_kills, seed):
    """Kill runs `n_kills` times; return how many parts were finished each time."""
    source = tmp_path / "rows.parquet"
    ROWS.to_parquet(source, row_group_size=50)
    runs = Runs(source)
    rng = np.random.default_rng(seed)
    seen = []
    try:
        ended, seconds = runs.run(tmp_path / "whole")
        assert ended == 0
        whole = written(tmp_path / "whole")
        folder = 0
        while len(seen) < n_kills:
            out = tmp_path / f"out{folder}"
            ended, _ = runs.run(out, kill_after=rng.uniform(0, 0.7 * seconds))
            if ended == signal.SIGKILL:
                seen.append(len(list(out.glob("parts/*.json"))))
                continue
            assert written(out) == whole
            folder += 1
        assert runs.run(out)[0] == 0
        assert written(out) == whole
    finally:
        runs.end()
    return seen


@pytest.mark.slow
def test_killed_twice(tmp_path):
    assert len(kill_often(tmp_path, 2, seed=1)) == 2


@pytest.mark.nightly
def test_killed_fifty_times(tmp_path):
    seen = kill_often(tmp_path, 50, seed=2)
    print("finished parts when killed:", seen)
    assert len({*seen}) > 5  # at many different times
