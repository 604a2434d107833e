"""Names of R and of mcce: complete and translated."""

from __future__ import annotations

import inspect

import pytest

from mcce import MCCE
from mcce.rcompat import names
from mcce.trees.ctree import tree as ctree
from mcce.trees.rpart import tree as rpart


def test_every_name_of_the_table_exists():
    ours = {
        *inspect.signature(MCCE).parameters,
        *inspect.signature(MCCE.fit).parameters,
        *inspect.signature(MCCE.explain).parameters,
    }
    assert {*names.CALL.values()} - {None} <= ours
    for engine, grow in (("rpart", rpart.grow), ("ctree", ctree.grow)):
        parameters = inspect.signature(grow).parameters
        for argument in names.TREES[engine].values():
            assert argument.name is None or argument.name in parameters, argument


@pytest.mark.parametrize(
    ("engine", "given", "expected"),
    [
        ("rpart", {}, {"cp": 0.01, "min_split": None, "min_leaf": None, "max_depth": 30}),
        ("rpart", {"minbucket": 4}, {"min_split": None, "min_leaf": 4}),
        ("rpart", {"minsplit": 8}, {"min_split": 8, "min_leaf": None}),
        ("rpart", {"minsplit": 8, "minbucket": 1.0}, {"min_split": 8, "min_leaf": 1}),
        ("rpart", {"control": {"cp": 0.1, "maxdepth": 3}, "cp": 0}, {"cp": 0.0, "max_depth": 3}),
        ("ctree", {}, {"mincriterion": 0.95, "min_split": 20, "min_leaf": 7, "max_depth": None}),
        ("ctree", {"controls": {"mincriterion": 0.5}}, {"mincriterion": 0.5}),
        ("ctree", {"testtype": "Univariate", "maxdepth": 2}, {"p_values": "univariate", "max_depth": 2}),
    ],
)
def test_tree_arguments_are_translated(engine, given, expected):
    assert names.translate(engine, given).grow.items() >= expected.items()
