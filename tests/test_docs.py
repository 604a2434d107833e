"""Every example in the README and in the docstrings runs and prints the shown output."""

import ast
import doctest
import functools
import importlib
import pkgutil
import pydoc
import re
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from matplotlib.text import Text
from PIL import Image, ImageChops, ImageStat

import mcce
from tests import pages
from tests.extras import NO_VINE
from tests.marks import slow_but
from tests.plain_words import assert_plain

ROOT = Path(__file__).resolve().parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = ["mcce", *(m.name for m in pkgutil.walk_packages(mcce.__path__, "mcce."))]
WITH_EXAMPLES = [name for name in MODULES if ">>>" in Path(find_spec(name).origin).read_text(encoding="utf-8")]


def test_every_module_can_be_imported():
    for name in MODULES:
        importlib.import_module(name)


NEEDS = {
    "mcce.generators.joint.made.generator": ("torch", "torch is not installed: pip install 'mcce[deep]'"),
    "mcce.generators.joint.vine_generator": ("pyvinecopulib", NO_VINE),
    "mcce.samplers.vine.sampler": ("pyvinecopulib", NO_VINE),
}
SLOW_FOLDERS = ("mcce.diagnostics", "mcce.generators.joint", "mcce.report", "mcce.samplers", "mcce.testing")
SLOW_FOLDERS += ("mcce.counterfactuals", "mcce.explainer", "mcce.rcompat.explain", "mcce.generators.base")


@pytest.mark.parametrize("name", slow_but(WITH_EXAMPLES, *(n for n in WITH_EXAMPLES if not n.startswith(SLOW_FOLDERS))))
def test_docstring_examples(name):
    if name in NEEDS:
        package, why = NEEDS[name]
        pytest.importorskip(package, reason=why)
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    plt.close("all")  # matplotlib warns at more than twenty open figures
    assert result.failed == 0


def test_readme_examples_and_picture(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("```", "")
    parser = doctest.DocTestParser()
    test = parser.get_doctest(text, {}, "README.md", "README.md", 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, clear_globs=False)
    assert runner.failures == 0
    check_picture(test.globs["axes"], ROOT / "vignettes" / "images" / "change.png", tmp_path / "change.png")
    plt.close("all")


def check_picture(axes, shown, drawn):
    """Compare a picture with the current plot: its embedded text exactly, and its lines roughly."""
    texts = [text.get_text() for text in axes.figure.findobj(Text) if text.get_visible() and text.get_text()]
    axes.figure.savefig(drawn, dpi=150, metadata={"Software": None, "Description": "\n".join(texts)})
    with Image.open(shown) as now, Image.open(drawn) as new:
        copy = f"{shown} is older than the code: copy {drawn}"
        assert now.info.get("Description") == new.info["Description"], copy
        assert now.size == new.size, copy
        assert ImageStat.Stat(ImageChops.difference(now.convert("L"), new.convert("L"))).mean[0] < 0.5, copy


def test_page_for_caseworkers_has_no_internal_words():
    assert_plain((ROOT / "vignettes" / "for-caseworkers.md").read_text(encoding="utf-8"))


PAGES = sorted((ROOT / "vignettes").glob("*.md"))
WITHOUT_CELLS = ("api", "architecture", "benchmarks", "glossary", "index")


def read_cells(path):
    return re.findall(r"```\{code-cell\} python\n(?::[^\n]*\n)*(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_vignette_is_python_with_valid_imports(path):
    cells = read_cells(path)
    assert bool(cells) == (path.stem not in WITHOUT_CELLS)
    for node in ast.walk(ast.parse("\n".join(cells))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            if ast.unparse(node).startswith("from skops") and find_spec("skops") is None:
                pytest.skip("skops is not installed: pip install 'mcce[skops]'")
            exec(ast.unparse(node), {})


def live_with_r(path):
    """Mark the page that compares with R as slow too: the site's environment has no R and shows recorded output."""
    return pytest.param(path, marks=pytest.mark.slow) if path.stem == "cross-checking-with-r" else path


@pytest.mark.site
@pytest.mark.parametrize(
    "path", [live_with_r(page) for page in PAGES if read_cells(page)], ids=lambda path: getattr(path, "stem", None)
)
def test_vignette_runs(path, tmp_path):
    cells = read_cells(path)
    program = tmp_path / f"{path.stem}.py"
    program.write_text("\n".join(cells), encoding="utf-8")
    exit_code, said = pages.run(program, path.parent)
    assert exit_code == 0, said


@pytest.mark.slow
def test_page_that_warns_fails_with_cause_and_position(tmp_path):
    program = tmp_path / "page.py"
    program.write_text("import warnings\nopen('here', 'w').close()\nwarnings.warn('an old call', FutureWarning)\n")
    exit_code, said = pages.run(program, tmp_path)
    assert exit_code == 1
    assert 'page.py", line 3' in said
    assert "FutureWarning: an old call" in said
    assert (tmp_path / "here").is_file()


LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(path):
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES], ids=lambda path: path.stem)
def test_links_are_valid(path):
    for name, anchor in LINK.findall(re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)):
        target = path.parent / name if name else path
        assert target.exists(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


TEXTS = [ROOT / "README.md", *(ROOT / "vignettes").glob("*.md"), *(ROOT / "mcce").rglob("*.py")]
GROUPS = {"mcce.commands", "mcce.constraints", "mcce.generators", "mcce.measures", "mcce.samplers"}  # entry points


def test_names_of_the_package_in_a_text_exist():
    located = functools.cache(pydoc.locate)
    unknown = {}
    for path in sorted(TEXTS):
        names = {*re.findall(r"\bmcce(?:\.[A-Za-z_]\w*)+", path.read_text(encoding="utf-8"))} - GROUPS
        unknown[path] = [name for name in sorted(names) if located(name) is None]
    assert {path: names for path, names in unknown.items() if names} == {}
