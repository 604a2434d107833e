"""Conditional inference trees compared with the installed party: random tables, every node of every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcce.table import Schema
from mcce.trees.ctree.tree import CtreeTree, grow
from mcce.trees.display import FittedTree
from r_bridge.frames import to_r
from tests.marks import nightly_rows
from tests.r_bridge.random_tables import logical_table, new_rows, random_table
from tests.trees.ctree.ctree_cases import as_in_r, tied

N_TABLES, N_WITH_MISSING, N_MAXIMUM, N_LOGICAL = 240, 80, 24, 200
TEST_STATISTIC = {"quadratic": "quad", "maximum": "max"}
P_VALUES = {"bonferroni": "Bonferroni", "univariate": "Univariate", "none": "Teststatistic"}
TIED = 1e-9

PARTY = """function(data, new, teststat, testtype, mincriterion, minsplit, minbucket, maxdepth, minprob) {
  data <- as.data.frame(data)
  control <- party::ctree_control(teststat = teststat, testtype = testtype, mincriterion = mincriterion,
    minsplit = minsplit, minbucket = minbucket, maxdepth = maxdepth)
  control@splitctrl@minprob <- minprob
  fit <- party::ctree(y ~ ., data, controls = control)
  nodes <- list()
  walk <- function(node) {
    place <- length(nodes) + 1L
    nodes[[place]] <<- node
    if (!node$terminal) {
      walk(node$left)
      walk(node$right)
    }
  }
  walk(fit@tree)
  each <- function(value) as.double(unlist(lapply(nodes, value)))
  list(
    number = each(function(node) node$nodeID),
    variable = each(function(node) if (node$terminal) 0 else node$psplit$variableID),
    left = each(function(node) if (node$terminal) 0 else node$left$nodeID),
    right = each(function(node) if (node$terminal) 0 else node$right$nodeID),
    statistics = each(function(node) node$criterion$statistic),
    criteria = each(function(node) node$criterion$criterion),
    train = as.double(party::where(fit)),
    new = as.double(party::where(fit, newdata = as.data.frame(new))),
    printed = utils::capture.output(print(fit))
  )
}"""


@pytest.fixture(scope="module")
def party(r, need):
    """The result of party for a table, in one call of R."""
    need("party")
    function = r.ri.evalr(PARTY)

    def query(table: pd.DataFrame, new: pd.DataFrame, settings: dict[str, Any]) -> dict[str, Any]:
        arguments = [
            TEST_STATISTIC[settings["statistic"]],
            P_VALUES[settings["p_values"]],
            float(settings["mincriterion"]),
            float(settings["min_split"]),
            float(settings["min_leaf"]),
            settings["max_depth"] or 0,
            float(settings["minprob"]),
        ]
        answer = r.parts(function(to_r(table), to_r(new), *(r.vector(value) for value in arguments)))
        printed = r.strings(answer.pop("printed"))
        return {name: r.numbers(part) for name, part in answer.items()} | {"printed": printed}

    return query


@dataclass(frozen=True)
class Pair:
    """Our tree and party's for the same table."""

    tree: CtreeTree
    view: FittedTree
    theirs: dict[str, Any]
    train: np.ndarray
    new: np.ndarray

    @property
    def same_nodes(self) -> bool:
        return np.array_equal(self.train, self.theirs["train"]) and np.array_equal(self.new, self.theirs["new"])

    @property
    def same_partition(self) -> bool:
        pairs = set(zip(self.train, self.theirs["train"]))
        return len(pairs) == len(set(self.train)) == len(set(self.theirs["train"]))

    def tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Statistics and criteria of both trees, nodes in the order of party."""
        order, shape = np.argsort(self.tree.number), self.tree.statistics.shape
        statistics, criteria = (self.theirs[name].reshape(-1, shape[1]) for name in ("statistics", "criteria"))
        return self.tree.statistics[order], statistics, self.tree.criteria[order], criteria

    def first_choice(self) -> tuple[int, int, np.ndarray]:
        """Our variable and party's in the first node where they differ, and our statistics there."""
        row = {number: k for k, number in enumerate(self.theirs["number"].astype(int))}
        waiting = [(0, 0)]
        while waiting:
            ours, theirs = waiting.pop()
            chosen = int(self.tree.feature[ours]), int(self.theirs["variable"][theirs]) - 1
            if chosen[0] != chosen[1]:
                return *chosen, self.tree.statistics[ours]
            if chosen[0] >= 0:
                places = [row[int(self.theirs[side][theirs])] for side in ("left", "right")]
                waiting += zip(self.view.children(ours), places)
        raise AssertionError("the same variables in all nodes, but other cuts")


def compare(party: Any, seed: int, *, missing: bool = False, statistic: str = "quadratic") -> Pair:
    rng = np.random.default_rng(seed)
    table = random_table(rng, missing)
    new = new_rows(rng, table)
    settings = {
        "statistic": statistic,
        "p_values": str(rng.choice(["bonferroni", "bonferroni", "univariate", "none"])),
        "mincriterion": float(rng.choice([0.95, 0.9, 0.5, 0.99])),
        "min_split": int(rng.choice([20, 10, 5, 50])),
        "min_leaf": int(rng.choice([7, 2, 3, 20])),
        "max_depth": [None, None, 1, 3][rng.integers(0, 4)],
        "minprob": float(rng.choice([0.01, 0.01, 0.1])),
    }
    if settings["p_values"] == "none":
        settings["mincriterion"] = float(rng.choice([1.13, 4.07, 10.3]))
    encoded = Schema.from_data(table).encode(table)
    p = len(encoded.names) - 1
    given, target = encoded.first(p), encoded.column(p)
    tree = grow(given, target, **settings)
    view = FittedTree(tree, given.features, target.feature, target.values[tree.donors])
    new_matrix = Schema(given.features).encode(new).matrix
    train, new_nodes = (tree.number[tree.route(matrix)] for matrix in (given.matrix, new_matrix))
    return Pair(tree, view, party(table, new, settings), train, new_nodes)


def compare_logicals(party: Any, seed: int) -> Pair:
    """Few rows, many ties, small nodes; columns as in the call of mcceR."""
    rng = np.random.default_rng(seed)
    table = logical_table(rng)
    settings = {
        "statistic": "quadratic",
        "p_values": "bonferroni",
        "mincriterion": float(rng.choice([0.95, 0.9, 0.5])),
        "min_split": 2,
        "min_leaf": int(rng.choice([1, 1, 3])),
        "max_depth": None,
        "minprob": 0.01,
    }
    given, target = as_in_r(table)
    tree = grow(given, target, **settings)
    view = FittedTree(tree, given.features, target.feature, target.values[tree.donors])
    train = tree.number[tree.route(given.matrix)]
    theirs = party(table, table.drop(columns="y"), settings)
    return Pair(tree, view, theirs, train, train)


def assert_same_tree(pair: Pair) -> bool:
    """The same node for all rows; otherwise the first difference is a choice between equal statistics."""
    if pair.same_nodes:
        return True
    if not pair.same_partition:
        ours, theirs, statistics = pair.first_choice()
        assert ours >= 0
        assert theirs >= 0
        assert statistics[ours] == pytest.approx(statistics[theirs], rel=TIED)
    return False


@pytest.mark.nightly
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_every_row_is_in_the_node_of_party(party, fused, compared, missing):
    n_tables = N_WITH_MISSING if missing else N_TABLES
    ties = nodes = rows = tests = 0
    for seed in range(n_tables):
        pair = compare(party, seed + 10_000 * missing, missing=missing)
        if not assert_same_tree(pair):
            ties += 1
            continue
        nodes += pair.tree.n_nodes
        rows += pair.train.size + pair.new.size
        ours, theirs, our_criteria, their_criteria = pair.tables()
        assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-10)
        failed = np.isneginf(their_criteria) | np.isneginf(our_criteria)  # the first candidate may be a tie
        near = 1e-9 if fused else 1e-10  # on ARM a p-value near 1 has 8e-10 less
        assert our_criteria[~failed] == pytest.approx(their_criteria[~failed], rel=near, abs=near)
        tests += ours.size
        assert str(pair.view).split("\n") == [line.rstrip() for line in pair.theirs["printed"]]
    assert ties <= 0.02 * n_tables
    compared(f"tables for party ({'with' if missing else 'without'} missing values; {ties} with a tie)", n_tables)
    compared("rows whose node is party's", rows)
    compared("nodes, printed as party does", nodes)
    compared("tests of a variable, statistic and criterion", tests)


@pytest.mark.nightly
def test_logicals_and_redundant_variables(party, compared, has_our_lapack):
    """R with the reference LAPACK agrees in the last bits; then only its p-values break ties differently."""
    ties = tests = 0
    for seed in range(N_LOGICAL):
        pair = compare_logicals(party, seed + 30_000)
        if not assert_same_tree(pair):
            ties += 1
            continue
        ours, theirs, _, _ = pair.tables()
        assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-10)
        if has_our_lapack:
            in_doubt = tied(theirs)
            assert np.array_equal(ours[in_doubt], theirs[in_doubt])
            tests += in_doubt.sum()
    assert ties <= (0.01 if has_our_lapack else 0.1) * N_LOGICAL
    compared(f"tables with logicals for party ({ties} with a tie)", N_LOGICAL)
    compared("statistics of variables that say the same, to the last bit", tests)


@pytest.mark.parametrize(("first", "last"), [(0, N_MAXIMUM // 4), *nightly_rows((N_MAXIMUM // 4, N_MAXIMUM))])
def test_maximum_statistic(party, compared, first, last):
    for seed in range(first, last):
        pair = compare(party, seed + 20_000, statistic="maximum")
        ours, theirs, our_criteria, their_criteria = (table[0] for table in pair.tables())
        assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-10)
        compares = np.isfinite(our_criteria) & np.isfinite(their_criteria)
        assert our_criteria[compares] == pytest.approx(their_criteria[compares], abs=1e-3)
    compared("tables for party, maximum statistic", last - first)
