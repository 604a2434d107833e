"""No kernel reads or writes outside its arrays, whatever the table."""

import os
import re
import subprocess
import sys
from pathlib import Path

N_TABLES = 8


def test_kernels_stay_inside_their_arrays(tmp_path):
    # kernels with checks are others than those in the cache, and are checked as well when nothing is optimised away
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0"}
    script = str(Path(__file__).with_name("bounds_fuzz.py"))
    done = subprocess.run(
        [sys.executable, script, str(N_TABLES)], capture_output=True, text=True, env=os.environ | settings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    n_tables, n_refused = map(int, re.search(r"(\d+) tables, (\d+) refused", done.stdout).groups())
    assert n_tables == N_TABLES, done.stdout
    assert n_refused <= n_tables, done.stdout  # of four runs each
