"""Every example in the README and in the docstrings runs and prints what it says."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import mcce

ROOT = Path(__file__).resolve().parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = ["mcce", *(m.name for m in pkgutil.walk_packages(mcce.__path__, "mcce."))]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.failed == 0


def test_readme_examples():
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("```", "")
    parser = doctest.DocTestParser()
    test = parser.get_doctest(text, {}, "README.md", "README.md", 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize("path", sorted((ROOT / "vignettes").glob("*.md")), ids=lambda path: path.stem)
def test_vignette_runs(path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    cells = re.findall(r"```\{code-cell\} python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    assert cells
    names = {}
    for cell in cells:
        exec(compile(cell, path.name, "exec"), names)
    plt.close("all")
