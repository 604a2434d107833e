"""Assignment of tests to runs."""

import subprocess
import sys

import pytest

from tests.marks import without_nightly


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("slow", "(slow) and not nightly"),
        ("slow or site", "(slow or site) and not nightly"),
        ("nightly", "nightly"),
        ("not slow and not nightly", "not slow and not nightly"),
        ("", ""),
    ],
)
def test_nightly_tests_are_selected_by_their_name_only(given, used):
    assert without_nightly(given) == used


@pytest.mark.slow
@pytest.mark.parametrize(("mark", "ids"), [("slow", ["[cart]"]), ("nightly", ["[all]"])])
def test_nightly_parameter_of_a_slow_test_is_not_slow(mark, ids):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-n",
        "0",
        "-m",
        mark,
        "tests/trees/test_kernels.py",
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line[line.index("[") :] for line in found.splitlines() if "::" in line] == ids
