"""Nothing in the working folder runs, whatever its files are called."""

import os
import subprocess
import sys
from pathlib import Path

import mcce

PROGRAM = """
import mcce
X = mcce.datasets.load_loans(200).X
explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, fixed=["age"], random_state=1).fit(X)
assert len(explainer.explain(X.head(20), n_samples=20))
"""
STANDARD = ("json", "random", "subprocess", "numba", "numpy", "pandas", "mcce")


def test_compiling_runs_nothing_from_the_working_folder(tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in STANDARD:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\nraise SystemExit\n")
    (tmp_path / "program.py").write_text(PROGRAM)  # started by its path, so the working folder is not searched
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels"), "PYTHONPATH": str(Path(mcce.__file__).parents[1])}
    settings["NUMBA_OPT"] = "0"  # the kernels need not be fast, only compiled
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "compiling its kernels" in done.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
