"""Files that describe the release agree with each other."""

import json
import re
from pathlib import Path

import pytest

import mcce

ROOT = Path(__file__).parent.parent

if not (ROOT / "CITATION.cff").exists():
    pytest.skip("the files of a checkout are not installed: run from a checkout", allow_module_level=True)


def test_every_file_names_the_same_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    codemeta = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    description = (ROOT / "r_bridge" / "r" / "DESCRIPTION").read_text(encoding="utf-8")
    versions = {
        "pyproject.toml": re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)[
            1
        ],
        "CITATION.cff": re.search(r"^version: (.+)$", citation, re.M)[1],
        "codemeta.json": codemeta["version"],
        "DESCRIPTION": re.search(r"^Version: (.+)$", description, re.M)[1],
        "mcce": mcce.__version__,
    }
    assert len(set(versions.values())) == 1, versions


def test_contributing_names_commands_and_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(
        r"`((?:\.ci|tests|mcce|r_bridge|benchmarks|vignettes)/[\w./]+)`", text
    )
    assert len(linked) > 10
    assert [name for name in linked if not (ROOT / name).exists()] == []
