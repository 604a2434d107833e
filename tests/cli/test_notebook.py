"""`mcce notebook`: the cells of the page, the file, and Jupyter where it is installed."""

import json
import os
import sys
from pathlib import Path

import pytest

from mcce.cli import main, notebook

PAGE = Path(__file__).parents[2] / "vignettes" / "getting-started.md"


@pytest.fixture
def started(monkeypatch):
    """Record the programs that the command would start."""
    programs = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: programs.append(arguments))
    return programs


def installed(monkeypatch, *names):
    monkeypatch.setattr(notebook, "find_spec", lambda name: name in names or None)


@pytest.mark.skipif(not PAGE.exists(), reason="needs the pages of a checkout")
def test_notebook_has_the_code_and_the_text_of_the_page(tmp_path, capsys, monkeypatch, started):
    installed(monkeypatch)
    path = tmp_path / "new.ipynb"
    assert main(["notebook", "--out", str(path)]) == 0
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    shown = [part.split("```")[0] for part in PAGE.read_text(encoding="utf-8").split("```{code-cell} python")[1:]]
    assert [cell["source"] for cell in cells if cell["cell_type"] == "code"] == [code.strip() for code in shown]
    text = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    assert text.startswith("# Getting started\n")
    assert "(Sparse counterfactuals)" in text
    assert ".md)" not in text
    assert "code-cell" not in text
    said = capsys.readouterr().err
    assert f"wrote the notebook {path}" in said
    assert f"Jupyter is not installed: run `pip install jupyterlab`, then `jupyter lab {path}`." in said
    assert started == []


@pytest.mark.parametrize(
    ("names", "application"), [(["jupyterlab", "notebook"], "jupyterlab"), (["notebook"], "notebook")]
)
def test_notebook_is_opened_by_jupyter_of_the_same_python(tmp_path, monkeypatch, started, names, application):
    installed(monkeypatch, *names)
    path = str(tmp_path / "new.ipynb")
    assert main(["notebook", "--out", path]) == 0
    assert started == [[sys.executable, "-m", application, path]]
    assert main(["notebook", "--out", path, "--force", "--no-open"]) == 0
    assert len(started) == 1


def test_existing_notebook_is_kept(tmp_path, capsys, started):
    path = tmp_path / "mine.ipynb"
    path.write_text("my own")
    assert main(["notebook", "--out", str(path)]) == 2
    assert "the file exists; give another name, or add --force" in capsys.readouterr().err
    assert path.read_text() == "my own"
    assert started == []


@pytest.mark.nightly
def test_notebook_runs_in_a_kernel(tmp_path):
    why = "needs a kernel: pip install nbclient ipykernel"
    nbformat, nbclient = (pytest.importorskip(name, reason=why) for name in ("nbformat", "nbclient"))
    pytest.importorskip("ipykernel", reason=why)
    path = tmp_path / "getting-started.ipynb"
    assert main(["notebook", "--no-open", "--out", str(path)]) == 0
    made = nbformat.read(path, as_version=4)
    nbformat.validate(made)
    nbclient.NotebookClient(made, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in made.cells for output in cell.get("outputs", [])]
    assert "instead of" in "".join(output.get("text", "") for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
