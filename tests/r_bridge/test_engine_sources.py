"""The sources of the Python package that the R package is built with (`r_bridge/r/tools/add-engine`)."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

import mcce

ROOT = Path(__file__).parents[2]
R_PACKAGE = ROOT / "r_bridge" / "r"

NEEDED = (R_PACKAGE / "tools").exists() and shutil.which("bash") and shutil.which("tar")
pytestmark = pytest.mark.skipif(not NEEDED, reason="the checkout, bash and tar are needed")


def add_engine(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [R_PACKAGE / "tools" / "add-engine", folder], capture_output=True, text=True, check=False, cwd=folder
    )


def test_archive_holds_the_sources_of_a_wheel(tmp_path):
    shutil.copy(R_PACKAGE / "DESCRIPTION", tmp_path)
    assert add_engine(tmp_path).returncode == 0
    name = f"mcce-{mcce.__version__}"
    with tarfile.open(tmp_path / "inst" / "engine" / f"{name}.tar.gz") as archive:
        held = {member.name for member in archive.getmembers() if member.isfile()}
    sources = [*(ROOT / "mcce").rglob("*.py"), *(ROOT / "r_bridge").glob("*.*"), ROOT / "pyproject.toml"]
    sources.append(ROOT / "vignettes" / "getting-started.md")  # included in the wheel
    needed = {f"{name}/{path.relative_to(ROOT)}" for path in sources}
    assert needed | {f"{name}/README.md", f"{name}/LICENSE", f"{name}/r_bridge/r/R/conditionals.R"} <= held
    assert not [path for path in held if "__pycache__" in path or path.endswith((".pyc", ".nbi", ".nbc"))]


def test_other_version_of_the_r_package_raises(tmp_path):
    text = (R_PACKAGE / "DESCRIPTION").read_text()
    (tmp_path / "DESCRIPTION").write_text(text.replace(f"Version: {mcce.__version__}", "Version: 99.0.0"))
    done = add_engine(tmp_path)
    assert done.returncode == 1
    assert f"pyproject.toml has version {mcce.__version__}, DESCRIPTION has 99.0.0" in done.stderr
