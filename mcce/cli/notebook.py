"""`mcce notebook`: the page "Getting started" as a Jupyter notebook.

The page is `vignettes/getting-started.md`, which the wheel contains. Its code cells become code cells, the text between
them becomes Markdown, and links to other pages become plain text. JupyterLab or Jupyter Notebook of the same Python
replaces this process and opens the file, if one of them is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mcce.base.files import atomic_write
from mcce.cli.console import DONE, notify
from mcce.cli.outputs import check_outputs

PACKAGE = Path(__file__).parent.parent
PLACES = (PACKAGE / "data" / "getting-started.md", PACKAGE.parent / "vignettes" / "getting-started.md")
APPLICATIONS = ("jupyterlab", "notebook")
CODE = "```{code-cell} python\n"


def run_notebook(arguments: argparse.Namespace) -> int:
    """Write the notebook and open it."""
    path = Path(arguments.out)
    check_outputs({"--out": path}, {}, force=arguments.force)
    page = next(place for place in PLACES if place.exists()).read_text(encoding="utf-8")
    with atomic_write(path) as beside:
        beside.write_text(json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    notify(f"wrote the notebook {path}")
    application = next((name for name in APPLICATIONS if find_spec(name)), None)
    if application is None:
        notify(f"Jupyter is not installed: run `pip install jupyterlab`, then `jupyter lab {path}`.")
    elif not arguments.no_open:
        os.execv(sys.executable, [sys.executable, "-m", application, str(path)])
    return DONE


def notebook(page: str) -> dict[str, Any]:
    """Return a page of MyST Markdown as a notebook of format 4.4.

    Examples
    --------
    >>> page = "---\\nfile_format: mystnb\\n---\\n\\n# Title\\n\\n```{code-cell} python\\nimport mcce\\n```\\n"
    >>> [(cell["cell_type"], cell["source"]) for cell in notebook(page)["cells"]]
    [('markdown', '# Title'), ('code', 'import mcce')]
    """
    _, _, text = page.removeprefix("---\n").partition("\n---\n")
    first, *parts = text.split(CODE)
    cells = [_cell("markdown", first)]
    for part in parts:
        code, _, after = part.partition("\n```\n")
        cells += [_cell("code", code, execution_count=None, outputs=[]), _cell("markdown", after)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "cells": [cell for cell in cells if cell["source"]],
    }


def _cell(kind: str, text: str, **parts: Any) -> dict[str, Any]:
    if kind == "markdown":
        text = re.sub(r"\[([^\[\]]+)\]\([\w-]+\.md\)", r"\1", text)
    return {"cell_type": kind, "metadata": {}, "source": text.strip("\n"), **parts}
