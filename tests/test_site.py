"""The site builds without a warning: every page, link and docstring; tests/test_docs.py runs the cells."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.site
def test_site_builds_without_a_warning(tmp_path):
    for package in ("sphinx", "myst_nb", "numpydoc", "furo", "latex2mathml", "sphinx_copybutton"):
        pytest.importorskip(package, reason="needs the site's tools: pip install '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "nb_execution_mode=off"]
    command += ["-D", "suppress_warnings=myst-nb.lexer", "-b", "html", ROOT / "vignettes", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in (ROOT / "vignettes").glob("*.md"):
        assert (tmp_path / f"{page.stem}.html").exists()
