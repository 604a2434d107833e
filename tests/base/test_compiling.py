"""Kernels without a writable cache."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache

import mcce
from mcce.base import compiling
from mcce.rng import hash_rows

SCRIPT = """
import numpy as np, mcce
from mcce.rng import hash_rows
print(mcce.__file__, hash_rows(np.arange(6.0).reshape(3, 2)).tolist())
"""


@pytest.mark.slow
def test_unwritable_cache(tmp_path):
    """Files occupy the paths of folders that would be created: permissions do not restrict every user."""
    package = tmp_path / "mcce"
    shutil.copytree(Path(mcce.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    (tmp_path / "home").touch()
    nowhere = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "MPLCONFIGDIR")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=os.environ | nowhere | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    where, hashes = done.stdout.split(" ", 1)
    assert Path(where).parent == package
    said = [line for line in done.stderr.splitlines() if line.startswith("mcce: ")]
    assert len(said) == 1, done.stderr
    assert "cannot be cached on disk" in said[0]
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in said[0]
    assert hashes.strip() == str(hash_rows(np.arange(6.0).reshape(3, 2)).tolist())


@pytest.fixture
def heeded_interrupts():
    """Make interrupts raise, also if the parent process ignores them, as a shell does in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_interrupts")
@pytest.mark.parametrize("what", ["load_overload", "save_overload"])
def test_interrupt_waits_for_the_kernel(what, monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    done = getattr(FunctionCache, what)

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return done(*arguments)

    monkeypatch.setattr(FunctionCache, what, interrupted)
    before = signal.getsignal(signal.SIGINT)
    kernel = compiling.cached(nogil=True)(_twice)
    with pytest.raises(KeyboardInterrupt):
        kernel(1.0)
    assert len(kernel.signatures) == 1
    assert kernel(2.0) == 4.0
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("what", ["load_overload", "save_overload"])
def test_full_disk_disables_only_the_cache(what, monkeypatch, capsys, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FunctionCache, what, full)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "_warned", set())
    kernels = [compiling.cached(nogil=True)(_twice), compiling.cached(nogil=True)(_thrice)]
    assert [kernel(21) for kernel in kernels] == [42, 63]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "cannot be cached on disk ([Errno 28] No space left on device)" in said


def _twice(x):
    return 2 * x


def _thrice(x):
    return 3 * x


def test_index_with_a_type_of_another_version_is_rewritten(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    misses = []
    for spoil in (False, True, False):
        if spoil:
            (index,) = tmp_path.rglob("*_twice*.nbi")
            version = index.read_bytes().split(b"\x80", 1)[0]
            index.write_bytes(version + b"\x80\x04cmcce.plausibility.kernels\nGoneInThisVersion\n.")
        kernel = compiling.cached(nogil=True)(_twice)
        assert kernel(3) == 6
        misses.append(sum(kernel.stats.cache_misses.values()))
    assert misses == [1, 1, 0]
