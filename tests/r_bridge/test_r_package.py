"""Documentation and metadata of the R package: examples are run, and the index is complete."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mcce

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "r_bridge" / "r"
NOT_INDEXED = {"mcce-package"}


def r_blocks(path):
    """Return the R code of a Markdown page, block by block."""
    return re.findall(r"```r\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture(scope="module")
def run_r(tmp_path_factory):
    """Return a function that runs R code with the package installed, and returns what it prints."""
    command = shutil.which("Rscript")
    needed = 'stopifnot(requireNamespace("reticulate"), requireNamespace("knitr"))'
    if command is None or subprocess.run([command, "-e", needed], capture_output=True, check=False).returncode:
        message = "needs R with the packages reticulate and knitr (Debian: r-cran-reticulate r-cran-knitr)"
        pytest.fail(message) if os.environ.get("MCCE_REQUIRE_R") else pytest.skip(message)
    library = tmp_path_factory.mktemp("library")
    install = [shutil.which("R"), "CMD", "INSTALL", "--no-test-load", f"--library={library}", str(PACKAGE)]
    subprocess.run(install, check=True, capture_output=True)
    environment = os.environ | {
        "R_LIBS": os.pathsep.join([str(library), os.environ.get("R_LIBS", "")]),
        "RETICULATE_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(mcce.__file__).parents[1]),
        "LC_ALL": "C.UTF-8",
    }

    def run(code, folder):
        (folder / "run.R").write_text(code, encoding="utf-8")
        done = subprocess.run(
            [command, "--no-init-file", "run.R"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr, done.stderr
        return done.stdout

    return run


@pytest.mark.slow
def test_readme_shows_what_r_prints(run_r, tmp_path):
    install, block = r_blocks(PACKAGE / "README.md")
    code = [line for line in block.splitlines() if not line.startswith("#>")]
    shown = [line.removeprefix("#>").removeprefix(" ").rstrip() for line in block.splitlines() if line.startswith("#>")]
    printed = [line.rstrip() for line in run_r("\n".join(code), tmp_path).splitlines()]
    assert printed == shown
    assert (len(install.splitlines()), len(code)) == (2, 5)
    assert r_blocks(ROOT / "README.md") == [install, "\n".join(code) + "\n"]


@pytest.mark.nightly
def test_vignettes_print_no_warning(run_r, tmp_path):
    for page in sorted((PACKAGE / "vignettes").glob("*.Rmd")):
        run_r(f"knitr::knit({str(page)!r}, 'page.md', quiet = TRUE)", tmp_path)
        text = (tmp_path / "page.md").read_text(encoding="utf-8")
        assert "#> " in text
        assert "Warning" not in text


def test_examples_are_run():
    """Only installation examples are hidden."""
    for page in sorted((PACKAGE / "man").glob("*.Rd")):
        text = page.read_text(encoding="utf-8")
        if page.stem != "install_mcce":
            assert "dontrun" not in text, page.name
        assert "donttest" not in text, page.name


def test_every_help_page_is_in_the_index_of_the_site():
    index = (PACKAGE / "_pkgdown.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"^  - (\S+)$", index, flags=re.MULTILINE))
    pages = {page.stem for page in (PACKAGE / "man").glob("*.Rd")} - NOT_INDEXED
    articles = {page.stem for page in (PACKAGE / "vignettes").glob("*.Rmd")}
    assert pages | articles <= listed


def test_metadata_name_a_role_and_addresses():
    text = (PACKAGE / "DESCRIPTION").read_text(encoding="utf-8")
    for field in ("Authors@R", "URL", "BugReports"):
        assert re.search(rf"^{field}: \S", text, flags=re.MULTILINE), field
    assert 'person("mcce developers"' in text
    assert "10.1007/s10618-024-01017-y" in (PACKAGE / "inst" / "CITATION").read_text(encoding="utf-8")
