"""Every call in the decision trees of the page "Which sampler? Which option?" runs in page order."""

import re
from pathlib import Path

import pytest

from tests import pages

PAGE = Path(__file__).resolve().parents[1] / "vignettes" / "which-option.md"
BEFORE = """
import polars
from mcce.cli import main
X.assign(outcome=y).to_csv("customers.csv", index=False)
refused.to_csv("refused.csv", index=False)
"""


def leaves(text):
    """Return the trees of a page: the leaves, and the calls."""
    lines = [
        line for tree in re.findall(r"```\{container\} tree\n(.*?)```", text, re.DOTALL) for line in tree.splitlines()
    ]
    indent = [len(line) - len(line.lstrip()) for line in lines] + [0]
    ends = [line for line, own, following in zip(lines, indent, indent[1:]) if following <= own]
    calls = [found[1] for line in lines if (found := re.search(r"→ `([^`]+)`$", line))]
    return ends, calls


def test_every_leaf_has_a_call():
    ends, calls = leaves(PAGE.read_text(encoding="utf-8"))
    assert len(calls) > 40
    assert [line for line in ends if not line.endswith("`") or "→" not in line] == []


def test_leaf_without_a_call_is_found():
    ends, calls = leaves("```{container} tree\n* a\n  * b → `f()`\n  * c\n* d → `g()`\n```")
    assert ends == ["  * b → `f()`", "  * c", "* d → `g()`"]
    assert calls == ["f()", "g()"]


@pytest.mark.nightly
def test_every_call_runs(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    cells = re.findall(r"```\{code-cell\} python\n(?::[^\n]*\n)*(.*?)```", text, re.DOTALL)
    calls = [
        f"assert main({call.split()[1:]!r}) in (0, None)" if call.startswith("mcce ") else call
        for call in leaves(text)[1]
        if call != "mcce demo"  # slow, and tested separately
    ]
    program = tmp_path / "calls.py"
    program.write_text("\n".join([*cells, BEFORE, *calls]), encoding="utf-8")
    exit_code, said = pages.run(program, tmp_path)
    assert exit_code == 0, said


@pytest.mark.parametrize("call", ["mcce demo", "mcce inspect loans.mcce"])
def test_command_line_is_among_the_calls(call):
    assert call in leaves(PAGE.read_text(encoding="utf-8"))[1]
