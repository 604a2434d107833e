"""The fixture scripts reproduce the stored files: a small case of each family with the installed R."""

import copy

import numpy as np
import pytest

from tests.diagnostics import reference
from tests.fixtures.again import differences, read
from tests.fixtures.ctree import make_sets as ctree
from tests.fixtures.rpart import make_sets as rpart
from tests.fixtures.synthpop import make_fits as synthpop
from tests.fixtures.utility import make_utility as utility

SMALL = [
    (ctree, "class3_rare_separated", "party"),
    (ctree, "numeric_rare_levels", "party"),
    (rpart, "cart_numeric_absent_levels", "rpart"),
    (rpart, "multi_iris", "rpart"),
    (synthpop, "bandwidth", "stats"),
    (synthpop, "logreg_separated", "stats"),
    (synthpop, "norm_edge_collinear_const_ties", "stats"),
    (synthpop, "normrank_edge_collinear_const", "stats"),
    (synthpop, "pmm_ties_duplicates", "stats"),
    (synthpop, "polr_rare3", "MASS"),
    (synthpop, "polyreg_collinear", "nnet"),
    (utility, "groups", "stats"),
    (utility, "levels", "rpart"),
]


@pytest.mark.parametrize(("script", "name", "package"), SMALL, ids=[name for _, name, _ in SMALL])
def test_regenerated_case_equals_the_stored_one(r, need, script, name, package):
    """To 1e-6: polr stops a step from the optimum, and other builds of R round differently. Text must be equal."""
    need(package)
    stored = read(script.FOLDER, name)
    made = script.make(r, stored)
    assert made
    new = stored | made if isinstance(stored, dict) else made
    assert {table: size for table, size in differences(stored, new).items() if size > 1e-6} == {}


def test_differences_are_reported():
    stored = read(reference.FOLDER, "levels")
    assert differences(stored, stored) == {}
    new = copy.deepcopy(stored)
    new["gen"]["U"][1] += 0.25
    new["twoway"]["df"] = new["twoway"]["df"][:-1]
    new["real"]["sex"][3] = "?"
    new["oneway"]["G"][0] = None
    del new["syn"]
    expected = {"gen": 0.25, "oneway": np.inf, "real": np.inf, "syn": np.inf, "twoway": np.inf}
    assert differences(stored, new) == expected
