"""Corrupted files never crash, hang or raise anything but an `MCCEError`; see `tests.storage.fuzz`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.fuzz import run

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_hundred_corrupted_files():
    failed = []
    outcomes = run(0, 100, failed.append)
    assert failed == []
    assert outcomes["refused", "entries"] > 25  # the files were corrupted
    assert outcomes["used", "entries"] > 5  # and some remain usable


@pytest.mark.nightly
@pytest.mark.parametrize("bounds", ["", "1"])
def test_thousands_of_corrupted_files(bounds, tmp_path):
    n_files = 1000 if bounds else 6000  # kernels with bounds checks are slow
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"} if bounds else {}
    done = subprocess.run(
        [sys.executable, "-m", "tests.storage.fuzz", "1000", str(1000 + n_files)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | settings,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "case" not in done.stdout, done.stdout
