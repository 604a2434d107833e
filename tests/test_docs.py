"""The README: its code prints what it shows, and `mcce demo` is its first example.

Sphinx runs the cells of the pages, in CI; here only their table of contents is compared with the files.
"""

from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest

from mcce.cli import main

ROOT = Path(__file__).parents[1]


def examples():
    """Return (code, output) of the README's Python blocks; the block that follows each is its output."""
    blocks = (ROOT / "README.md").read_text(encoding="utf-8").split("```")[1::2]
    return [
        (block.removeprefix("python\n"), output.removeprefix("\n"))
        for block, output in pairwise(blocks)
        if block.startswith("python\n")
    ]


@pytest.mark.slow
def test_readme_prints_what_it_shows():
    namespace = {"__name__": "readme"}
    for code, output in examples():
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, namespace)
        assert printed.getvalue() == output


def test_demo_is_the_first_example_of_the_readme(capsys):
    assert main(["demo"]) == 0
    code, output = examples()[0]
    lines = "".join(f">>> {line}\n" for line in code.splitlines())
    assert capsys.readouterr().out.startswith(lines + output)


def test_every_page_is_in_the_table_of_contents():
    listed = (ROOT / "vignettes" / "index.md").read_text(encoding="utf-8").splitlines()
    pages = {page.stem for page in (ROOT / "vignettes").glob("*.md")} - {"index"}
    assert pages <= set(listed)
