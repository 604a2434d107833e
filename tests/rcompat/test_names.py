"""R's arguments of the trees, translated."""

from __future__ import annotations

import inspect

import pytest

from mcce.rcompat import names
from mcce.trees.ctree import grow_ctree
from mcce.trees.rpart import grow_rpart


@pytest.mark.parametrize(("engine", "grow"), [("rpart", grow_rpart), ("ctree", grow_ctree)])
def test_every_argument_is_a_parameter_of_the_trees_or_without_effect(engine, grow):
    without_effect = {"teststat", "maxcompete", "xval"}
    assert {*names.TREES[engine]} - without_effect <= {*inspect.signature(grow).parameters}


@pytest.mark.parametrize(
    ("engine", "given", "expected"),
    [
        ("rpart", {}, {}),
        ("rpart", {"minbucket": 4}, {"minbucket": 4}),
        ("rpart", {"minsplit": 8, "minbucket": 1.0}, {"minsplit": 8, "minbucket": 1}),
        ("rpart", {"control": {"cp": 0.1, "maxdepth": 3}, "cp": 0}, {"cp": 0.0, "maxdepth": 3}),
        ("rpart", {"maxcompete": 3, "xval": 2}, {}),
        ("ctree", {"controls": {"mincriterion": 0.5}}, {"mincriterion": 0.5}),
        (
            "ctree",
            {"teststat": "quad", "testtype": "Univariate", "maxdepth": 2},
            {"testtype": "Univariate", "maxdepth": 2},
        ),
        ("ctree", {"maxdepth": 0}, {"maxdepth": None}),
    ],
)
def test_tree_arguments_are_translated(engine, given, expected):
    assert names.translate(engine, given).grow == expected
