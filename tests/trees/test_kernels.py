"""Kernels stay within their arrays for any table, and compiling executes no file of the working folder.

Both need newly compiled kernels, with checks and without optimisation, so one process tests both.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mcce
from tests.marks import nightly
from tests.trees.bounds_fuzz import NAMES

FUZZ = Path(__file__).with_name("bounds_fuzz.py")  # started by its path, so the working folder is not searched
STANDARD = ("json", "random", "subprocess", "numba", "numpy", "pandas", "mcce")


def run_fuzz(cache, folder, n_tables, *names):
    # kernels with checks are not those in the cache; without optimisation no check is removed
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache), "NUMBA_OPT": "0"}
    settings["PYTHONPATH"] = os.pathsep.join([str(Path(mcce.__file__).parents[1]), str(FUZZ.parents[2])])
    command = [sys.executable, str(FUZZ), str(n_tables), *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | settings)
    assert done.returncode == 0, done.stdout + done.stderr
    runs, refused = map(int, re.search(r"(\d+) runs, (\d+) refused", done.stdout).groups())
    assert runs == n_tables * len(names), done.stdout
    assert refused <= runs / 4, done.stdout
    return done


@pytest.mark.slow
@pytest.mark.parametrize("names", [["cart"], *nightly(NAMES)], ids=["cart", "all"])
def test_kernels_stay_within_arrays_and_compiling_executes_no_local_files(names, tmp_path):
    """For the default conditional, which needs most kernels, or for every conditional and joint model."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in STANDARD:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\nraise SystemExit\n")
    done = run_fuzz(tmp_path / "kernels", folder, 8, *names)
    assert "compiling its kernels" in done.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
