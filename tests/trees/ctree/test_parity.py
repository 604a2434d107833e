"""Our trees compared with those of R's party (every file of tests/fixtures/ctree)."""

from __future__ import annotations

import numpy as np
import pytest

from mcce.trees.ctree import CTree, grow_ctree
from tests.trees.ctree.ctree_cases import CASES, LOGICALS, STORED, Case, read_case, read_logicals, tied

RUNS = [(name, run) for name in CASES for run in STORED[name]["meta"]["runs"]]


def assert_close(ours, theirs):
    """Within 1e-10, relative for large ones; infinite ones equal."""
    finite = np.isfinite(theirs)
    assert np.array_equal(ours[~finite], theirs[~finite])
    assert (np.abs(ours[finite] - theirs[finite]) <= 1e-10 * np.maximum(1, np.abs(theirs[finite]))).all()


def test_no_file_is_left_out():
    assert len(CASES) >= 12
    assert {*STORED} == {*CASES, *LOGICALS, "prints"}  # prints: tests/trees/test_display.py


@pytest.fixture(scope="module", params=RUNS, ids="-".join)
def grown(request) -> tuple[Case, str, CTree]:
    name, run = request.param
    case = read_case(name)
    return case, run, grow_ctree(case.given, case.target, **case.settings(run))


def test_every_row_is_in_the_node_of_party(grown):
    case, run, tree = grown
    train, new = (case.numbers(f"where_{rows}_{run}", "node") for rows in ("train", "new"))
    number = np.flatnonzero(tree.is_leaf) + 1
    assert np.array_equal(number[tree.training_leaf], train)
    assert np.array_equal(number[tree.leaf(case.given.matrix)], train)
    assert np.array_equal(number[tree.leaf(case.new.matrix)], new)


def test_statistics_and_criteria_match_party(grown):
    case, run, tree = grown
    for ours, theirs in ((tree.statistics, "statistic"), (tree.criteria, "criterion")):
        assert_close(ours, case.numbers(f"tests_{run}", theirs).reshape(ours.shape))
    assert_close(tree.node["criterion"], case.numbers(f"nodes_{run}", "max_criterion"))


def test_every_split_matches_party(grown):
    case, run, tree = grown
    assert np.array_equal(tree.node["n"], case.numbers(f"nodes_{run}", "n"))
    nodes = tree.nodes()
    for i, row in enumerate(case.tables[f"nodes_{run}"].to_dict("records")):
        node, shown = tree.node[i], nodes.iloc[i]
        assert tree.is_leaf[i] == (row["terminal"] == "1")
        assert [shown["parent"], shown["depth"]] == [int(row["parent"] or 0), int(row["depth"])]
        if tree.is_leaf[i]:
            continue
        feature = case.given.features[node["variable"]]
        assert feature.name == row["split_var"]
        assert node["cut_statistic"] == pytest.approx(float(row["split_stat"]), rel=1e-12)
        assert [i + 2, node["right"] + 1] == [int(row["left"]), int(row["right"])]
        if row["split_kind"] == "factor":
            goes_left, seen = (levels[i, : feature.n_levels] for levels in (tree.goes_left, tree.seen))
            assert set(feature.levels[goes_left]) == set(row["left_levels"].split(";"))
            assert set(feature.levels[seen]) == set(row["present_levels"].split(";"))
        else:
            assert node["cut"] + (feature.kind == "ordered") == float(row["cut"])


def test_logicals_and_redundant_variables():
    """The tied statistics match party to the last bit, which determines the split variable."""
    n_tied = 0
    for case in read_logicals():
        tree = grow_ctree(case.given, case.target, mincriterion=case.mincriterion, minsplit=2, minbucket=1)
        assert np.array_equal((np.flatnonzero(tree.is_leaf) + 1)[tree.training_leaf], case.where)
        assert np.array_equal(tree.leaf(case.given.matrix), tree.training_leaf)
        in_doubt = tied(case.statistics)
        assert np.array_equal(tree.statistics[in_doubt], case.statistics[in_doubt])
        assert_close(tree.statistics, case.statistics)
        n_tied += in_doubt.sum()
    assert n_tied > 300
