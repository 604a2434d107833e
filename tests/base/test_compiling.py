"""Kernels without a writable cache, and kernels in the package."""

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
    shutil.copytree(Path(mcce.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "_kernels"))
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


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """Write `_twice` of a package with one source file into the folder of compiled kernels, as for a wheel."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "source.py").write_text("CONSTANT = 1\n")
    monkeypatch.setattr(compiling, "PACKAGE", package)
    monkeypatch.setattr(compiling, "PACKAGED", package / "_kernels")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "disk"))
    compiling._stamp.cache_clear()
    kernel = compiling.cached(nogil=True)(_twice)
    assert kernel(3.0) == 6.0
    (package / "_kernels").mkdir()
    assert compiling.pack([kernel], package / "_kernels") == 1
    shutil.rmtree(tmp_path / "disk")
    yield package
    compiling._stamp.cache_clear()


def count_compiled(argument=3.0):
    """Return how often a new `_twice` is compiled for one call, and whether it was known as compiled before."""
    compiling._stamp.cache_clear()
    kernel = compiling.cached(nogil=True)(_twice)
    known = compiling.is_compiled(kernel)
    assert kernel(argument) == 2 * argument
    return sum(kernel.stats.cache_misses.values()), known


def test_packaged_kernel_is_loaded_for_its_signature_only(packaged, tmp_path):
    assert count_compiled() == (0, True)
    assert not list(tmp_path.rglob("disk/**/*.nb?"))
    assert count_compiled(3) == (1, True)


def test_packaged_kernel_is_loaded_without_a_writable_cache(packaged, monkeypatch, capsys, tmp_path):
    def nowhere(*_):
        raise RuntimeError("cannot cache function: no locator")

    monkeypatch.setattr(FunctionCache, "__init__", nowhere)
    monkeypatch.setattr(compiling, "_warned", set())
    assert count_compiled() == (0, True)
    assert capsys.readouterr().err == ""
    assert count_compiled(3) == (1, True)
    assert "cannot be cached on disk (cannot cache function)" in capsys.readouterr().err


def change_source(package, _):
    (package / "source.py").write_text("CONSTANT = 2\n")


def rename_source(package, _):
    (package / "source.py").rename(package / "other.py")


def damage_kernel(package, _):
    (data,) = package.rglob("*.nbc")
    data.write_bytes(data.read_bytes()[:100])


def damage_index(package, _):
    (index,) = package.rglob("*.nbi")
    index.write_bytes(b"\x80")


def check_bounds(_, monkeypatch):
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)


def another_python(_, monkeypatch):
    monkeypatch.setattr(compiling.sysconfig, "get_config_var", lambda _: "cpython-399-x86_64-linux-gnu")


def another_platform(_, monkeypatch):
    monkeypatch.setattr(compiling, "get_process_triple", lambda: "aarch64-unknown-linux-gnu")


def another_llvmlite(_, monkeypatch):
    monkeypatch.setattr(compiling.llvmlite, "__version__", "0.0.1")


def another_numba(_, monkeypatch):
    monkeypatch.setattr(numba, "__version__", "0.0.1")


CHANGES = [
    change_source, rename_source, damage_kernel, damage_index, check_bounds, another_python, another_platform,
    another_llvmlite, another_numba,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_packaged_kernel_of_another_build_is_not_used(change, packaged, monkeypatch):
    change(packaged, monkeypatch)
    assert count_compiled()[0] == 1
