"""Files that describe the release agree with each other."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import mcce

ROOT = Path(__file__).parent.parent

if not (ROOT / "CITATION.cff").exists():
    pytest.skip("the files of a checkout are not installed: run from a checkout", allow_module_level=True)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def field(name, pattern):
    return re.search(pattern, read(name), re.M)[1]


def test_every_file_names_the_same_version():
    versions = {
        "pyproject.toml": field("pyproject.toml", r'^version = "(.+)"$'),
        "CITATION.cff": field("CITATION.cff", r"^version: (.+)$"),
        "codemeta.json": json.loads(read("codemeta.json"))["version"],
        "DESCRIPTION": field("r_bridge/r/DESCRIPTION", r"^Version: (.+)$"),
        "NEWS.md": field("r_bridge/r/NEWS.md", r"^# mcce (.+)$"),
        "CHANGELOG.md": field("CHANGELOG.md", r"^## \[(.+?)\]"),
        "recipe.yaml": field(".conda/recipe.yaml", r'^  version: "(.+)"$'),
        "mcce": mcce.__version__,
    }
    assert len(set(versions.values())) == 1, versions


def test_every_file_names_the_same_lowest_python():
    classified = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', read("pyproject.toml"))
    lowest = min(classified, key=lambda version: int(version.split(".")[1]))
    named = {
        "requires-python": field("pyproject.toml", r'^requires-python = ">=(.+)"$'),
        "mypy": field("pyproject.toml", r'^python_version = "(.+?)"'),
        "ruff": field("pyproject.toml", r'^target-version = "py(.+)"$').replace("3", "3.", 1),
        "codemeta.json": json.loads(read("codemeta.json"))["runtimePlatform"].removeprefix("Python >= "),
        "DESCRIPTION": field("r_bridge/r/DESCRIPTION", r"^SystemRequirements: Python \(>= (.+?)\)"),
        "R's README": field("r_bridge/r/README.md", r"needs Python (\S+) or later"),
        "recipe.yaml": field(".conda/recipe.yaml", r"^    - python >=(.+)$"),
    }
    assert set(named.values()) == {lowest}, named


@pytest.mark.parametrize(
    "name", ["README.md", "CITATION.cff", "codemeta.json", "joss/paper.bib", "r_bridge/r/inst/CITATION"]
)
def test_every_file_cites_the_published_paper(name):
    text = read(name)
    assert "10.1007/s10618-024-01017-y" in text
    assert "arXiv:2111.09790" not in text


def test_changelog_describes_a_first_release():
    text = read("CHANGELOG.md")
    assert re.findall(r"^## \[(.+?)\]", text, re.M) == [mcce.__version__]
    assert set(re.findall(r"^### (.+)$", text, re.M)) == {"Added"}
    assert len(text.splitlines()) <= 110


@pytest.mark.parametrize(("page", "least"), [("CONTRIBUTING.md", 20), ("SECURITY.md", 3)])
def test_pages_for_developers_name_files_that_exist(page, least):
    text = read(page)
    linked = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(
        r"`((?:\.ci|\.conda|joss|tests|mcce|r_bridge|benchmarks|vignettes)/[\w./-]+)`", text
    )
    assert len(linked) > least
    assert [name for name in linked if not (ROOT / name).exists()] == []
    assert set(re.findall(r"`(test_\w+\.py)`", text)) == set()  # a name without its folder is not checked


def test_contributing_has_two_screens_and_the_methods_of_a_sampler():
    text = read("CONTRIBUTING.md")
    assert len(text.splitlines()) <= 100
    methods = sorted(mcce.ConditionalSampler.__abstractmethods__)
    assert " and ".join(f"`{name}`" for name in methods) in text


PAGES = [*ROOT.glob("*.md"), *(ROOT / "vignettes").glob("*.md"), *(ROOT / "r_bridge" / "r").glob("*.md")]
PAGES += (ROOT / "r_bridge" / "r" / "vignettes").glob("*.Rmd")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_that_install_mcce_by_name_say_how_to_install_a_checkout(page):
    text = page.read_text(encoding="utf-8")
    by_name = re.search(r"pip install ['\"]?mcce\b", text)
    assert by_name is None or re.search(r"pip install (-e )?['\"]?\.", text), by_name


def test_conda_recipe_has_the_requirements_of_the_package():
    named = read("pyproject.toml").partition("dependencies = [\n")[2].partition("\n]")[0]
    required = dict(re.findall(r'^ +"([\w-]+)>=([\d.]+)', named, re.M))
    assert len(required) > 10
    renamed = {"lazy_loader": "lazy-loader", "matplotlib": "matplotlib-base"}
    recipe = dict(re.findall(r"^    - ([\w-]+) >=([\d.]+)$", read(".conda/recipe.yaml").partition("  run:")[2], re.M))
    assert {renamed.get(name, name): lowest for name, lowest in required.items()} == {
        name: lowest for name, lowest in recipe.items() if name != "python"
    }


def test_conda_recipe_renders():
    rattler = pytest.importorskip("rattler_build", reason="needs pip install py-rattler-build")
    (rendered,) = rattler.Stage0Recipe.from_file(ROOT / ".conda" / "recipe.yaml").render(rattler.VariantConfig())
    assert str(rendered.recipe.package.version) == mcce.__version__


def test_r_universe_registry_names_the_r_package():
    (entry,) = json.loads(read("r_bridge/r/packages.json"))
    description = read(f"{entry['subdir']}/DESCRIPTION")
    assert re.search(rf"^Package: {entry['package']}$", description, re.M)
    assert re.search(rf"^URL: {re.escape(entry['url'])}$", description, re.M)


def test_every_exported_r_function_has_a_pkgdown_topic():
    exported = re.findall(r"^export\((.+)\)$", read("r_bridge/r/NAMESPACE"), re.M)
    listed = re.findall(r"^  - (\S+)$", read("r_bridge/r/_pkgdown.yml"), re.M)
    documented = {
        alias
        for page in (ROOT / "r_bridge" / "r" / "man").glob("*.Rd")
        if page.stem in listed
        for alias in re.findall(r"^\\alias\{(.+)\}$", page.read_text(encoding="utf-8"), re.M)
    }
    assert len(exported) > 20
    assert set(exported) <= documented


def test_paper_is_short_and_cites_its_bibliography():
    paper, known = read("joss/paper.md"), set(re.findall(r"^@\w+\{(\w+),", read("joss/paper.bib"), re.M))
    body = paper.split("---", 2)[2]
    assert 250 <= len(body.split()) <= 1000
    assert set(re.findall(r"@(\w+)", body)) == known
    for section in ("# Summary", "# Statement of need", "# State of the field", "# Evidence", "# References"):
        assert section in body


@pytest.mark.skipif(shutil.which("pandoc") is None, reason="needs pandoc")
def test_paper_is_built_by_pandoc(tmp_path):
    page = tmp_path / "paper.html"
    command = ["pandoc", "--citeproc", "--fail-if-warnings", "--standalone", "paper.md", "-o", str(page)]
    done = subprocess.run(command, cwd=ROOT / "joss", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Løland" in page.read_text(encoding="utf-8")
