"""The ctree sampler: its parameters; the trees are tested against party in tests/trees/ctree."""

from __future__ import annotations

import numpy as np
import pytest

from mcce.exceptions import InputError
from mcce.samplers.ctree import CtreeSampler
from mcce.trees.ctree import grow_ctree
from tests.samplers.test_cart import encode, problem


def test_parameters_reach_the_tree():
    given, target = encode(problem())
    for ours, theirs in (
        ({"mincriterion": 0.5}, {"mincriterion": 0.5}),
        ({"min_split": 200}, {"minsplit": 200}),
        ({"min_leaf": 60}, {"minbucket": 60}),
        ({"minprob": 0.3}, {"minprob": 0.3}),
        ({"max_depth": 2}, {"maxdepth": 2}),
        ({"p_values": "none", "mincriterion": 20.0}, {"testtype": "Teststatistic", "mincriterion": 20.0}),
    ):
        fitted = CtreeSampler(**ours).fit(given, target)
        expected = grow_ctree(given, target, **theirs)
        assert np.array_equal(fitted.grown_.training_leaf, expected.training_leaf), ours
    sizes = np.bincount(CtreeSampler().fit(given, target).grown_.training_leaf)
    assert sizes.size > 2
    assert sizes.min() >= 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mincriterion": 1.5}, "mincriterion is 1.5; it must be a number of at least 0 and at most 1"),
        ({"minprob": 0.5}, "minprob is 0.5; it must be a number of at least 0 and below 0.5"),
        ({"min_leaf": 2.5}, "min_leaf is 2.5; it must be a whole number"),
        ({"min_split": True}, "min_split is True; it must be a whole number"),
        ({"max_depth": -1}, "max_depth is -1; it must be a whole number"),
    ],
)
def test_invalid_parameters_raise_at_fit(options, message):
    with pytest.raises(InputError, match=message):
        CtreeSampler(**options).fit(*encode(problem()))
