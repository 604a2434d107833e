"""The R package: what it exports, and the sources of the engine that `tools/add-engine` puts into it.

R CMD check (`.ci/r-package`) runs its examples, vignettes and tests.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

import mcce

ROOT = Path(__file__).parents[2]
R_PACKAGE = ROOT / "r_bridge" / "r"
EXPORTED = """allow class_probabilities explain explain_mcce has_mcce install_mcce interval load_loans mcce one_of
predict_label predict_score r_sampler sampler"""

IS_CHECKOUT = (R_PACKAGE / "tools").exists() and shutil.which("bash") and shutil.which("tar")
pytestmark = pytest.mark.skipif(not IS_CHECKOUT, reason="needs bash, tar and the folder r_bridge/r: run in a checkout")


def add_engine(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [R_PACKAGE / "tools" / "add-engine", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_every_exported_function_has_a_help_page():
    exported = re.findall(r"^export\((.+)\)$", (R_PACKAGE / "NAMESPACE").read_text(), re.M)
    assert exported == EXPORTED.split()
    pages = "".join(page.read_text(encoding="utf-8") for page in (R_PACKAGE / "man").glob("*.Rd"))
    assert set(exported) <= set(re.findall(r"\\alias\{(.+)\}", pages))


def test_archive_holds_the_sources_of_a_wheel(tmp_path):
    shutil.copy(R_PACKAGE / "DESCRIPTION", tmp_path)
    assert add_engine(tmp_path).returncode == 0
    name = f"mcce-{mcce.__version__}"
    with tarfile.open(tmp_path / "inst" / "engine" / f"{name}.tar.gz") as archive:
        files = {member.name for member in archive.getmembers() if member.isfile()}
    sources = {path for path in (ROOT / "mcce").rglob("*.*") if "__pycache__" not in path.parts}
    sources |= {*(ROOT / "r_bridge").glob("*.*"), R_PACKAGE / "R" / "conditionals.R"}
    sources |= {ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "LICENSE"}
    assert files == {f"{name}/{path.relative_to(ROOT)}" for path in sources}


def test_other_version_of_the_r_package_is_an_error(tmp_path):
    text = (R_PACKAGE / "DESCRIPTION").read_text()
    (tmp_path / "DESCRIPTION").write_text(text.replace(f"Version: {mcce.__version__}", "Version: 99.0.0"))
    outcome = add_engine(tmp_path)
    assert outcome.returncode == 1
    assert f"pyproject.toml has version {mcce.__version__}, DESCRIPTION has 99.0.0" in outcome.stderr
