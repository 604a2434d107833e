"""Numbers of printed trees compared with R's format."""

from __future__ import annotations

from mcce.trees.nodes import format_numbers
from tests.trees.ctree.ctree_cases import read_stored


def test_numbers_are_formatted_as_in_r():
    for stored in read_stored("prints")["numbers"]:
        assert format_numbers(stored["values"]) == stored["text"]
