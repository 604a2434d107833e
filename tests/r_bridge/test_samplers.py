"""Conditionals fitted by R: conformance, R's leaves, and the equivalent arrays."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCEError, SamplerError
from mcce.rng import RowStreams
from mcce.storage.learned import get_state, set_state
from mcce.table import Column, Schema
from mcce.testing import CHECKS, GOODNESS_OF_FIT
from r_bridge import PartyCtreeSampler, RBridgeError, RpartSampler, to_r
from r_bridge.trees import RTree, as_columns, training_frame
from tests.marks import nightly_but_named, nightly_rows

SAMPLERS = [RpartSampler(), PartyCtreeSampler()]

# the others share the code of the donor samplers, which has its own tests
KEPT = (
    "check_conditional",
    "check_missing",
    "check_sample_within",
    "check_log_density",
    "check_state",
    "check_weights",
)


@pytest.mark.parametrize(
    "check", nightly_but_named([*CHECKS, *GOODNESS_OF_FIT], *KEPT), ids=lambda check: check.__name__
)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_conformance(r, need, sampler, check):
    need("rpart" if isinstance(sampler, RpartSampler) else "party")
    check(sampler, 0)


def make_table(seed):
    """Mixed columns with ties, levels unseen in some nodes and, often, missing values; a target of any kind."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 300))
    columns = {}
    for j in range(int(rng.integers(1, 6))):
        n_levels = int(rng.integers(2, 9))
        codes = rng.choice(n_levels, n, p=rng.dirichlet(np.ones(n_levels)))
        kinds = {
            "normal": rng.normal(size=n),
            "ties": rng.integers(0, 8, n).astype(float),
            "levels": pd.Categorical.from_codes(codes, list("abcdefghi")[:n_levels]),
            "ordered": pd.Categorical.from_codes(codes, list("abcdefghi")[:n_levels], ordered=True),
        }
        columns[f"x{j}"] = kinds[str(rng.choice(list(kinds)))]
    X = pd.DataFrame(columns)
    numbers = [(X[c].cat.codes if isinstance(X[c].dtype, pd.CategoricalDtype) else X[c]).to_numpy() for c in X]
    signal = sum(rng.normal() * column for column in numbers)
    y = signal + 3 * np.sin(signal) + rng.normal(size=n)
    kind = rng.choice(["numeric", "categorical", "ordered"])
    if kind != "numeric":
        cuts = np.quantile(y, np.linspace(0, 1, int(rng.integers(3, 7)))[1:-1])
        y = pd.Categorical.from_codes(np.digitize(y, cuts), list("uvwxyz"), ordered=kind == "ordered")
    if rng.random() < 0.6:
        X = X.apply(lambda column: column.mask(rng.random(n) < rng.choice([0, 0.1, 0.3])))
    table = Schema.from_data(X.assign(y=y)).encode(X.assign(y=y))
    new = np.column_stack([rng.permutation(column) for column in table.matrix[:, :-1].T])
    for j, feature in enumerate(table.features[:-1]):
        if feature.levels is not None:
            new[:, j] = np.where(np.isnan(new[:, j]), np.nan, rng.integers(0, feature.n_levels, n))
    return table.first(X.shape[1]), table.column(X.shape[1]), np.asfortranarray(new)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "n_tables"), [("rpart", 10), *nightly_rows(("rpart", 40), ("party", 40))])
def test_arrays_route_like_r(r, need, engine, n_tables, compared, monkeypatch):
    need(engine)
    call, grown = r.call, []

    def remember(name, *arguments):
        value = call(name, *arguments)
        grown.extend([value] if name == f"fit_{engine}" else [])
        return value

    monkeypatch.setattr(r, "call", remember)
    leaves = 0
    for seed in range(n_tables):
        given, target, new = make_table(seed)
        rng = np.random.default_rng(seed)
        least = {"min_split": int(rng.choice([5, 20])), "min_leaf": int(rng.choice([2, 7]))}
        if engine == "rpart":
            sampler = RpartSampler(cp=float(rng.choice([0, 0.01])), **least)
        else:
            sampler = PartyCtreeSampler(mincriterion=float(rng.choice([0.5, 0.95])), **least)
        tree = sampler.fit(given, target).tree_
        for matrix in (given.matrix, new):
            by_r = r.numbers(call(f"{engine}_where", grown[-1], to_r(as_columns(given.features, matrix))))
            np.testing.assert_array_equal(tree.leaf_number[tree.route(matrix)], by_r, err_msg=f"seed {seed}, {sampler}")
            compared(f"leaves of {engine}, along our arrays and by R", matrix.shape[0])
        assert np.array_equal(np.sort(tree.donors), np.arange(given.n_rows))
        assert tree.size[0] == given.n_rows
        leaves += tree.n_leaves
    assert leaves > 200 * n_tables / 60


OWN_CALLS = {
    "rpart": (
        RpartSampler(cp=0.02, min_leaf=9, min_split=30),
        "rpart::rpart(target ~ ., data = data, cp = 0.02, minbucket = 9, minsplit = 30)$where",
    ),
    "party": (
        PartyCtreeSampler(min_leaf=9),
        "party::where(party::ctree(target ~ ., data = data, controls = party::ctree_control(minbucket = 9)))",
    ),
}


@pytest.mark.parametrize("engine", OWN_CALLS)
def test_donors_match_the_call_of_r(r, need, engine):
    need(engine)
    sampler, code = OWN_CALLS[engine]
    given, target, _ = make_table(8)
    tree = sampler.fit(given, target).tree_
    where = r.numbers(r.call("evaluate", code, to_r(training_frame(given, target))))
    assert np.unique(where).size == tree.n_leaves > 2
    leaf = tree.route(given.matrix)
    assert len(set(zip(where, leaf))) == tree.n_leaves
    for node in np.unique(leaf):
        donors = tree.donors[tree.start[node] : tree.start[node] + tree.size[node]]
        np.testing.assert_array_equal(np.sort(donors), np.flatnonzero(leaf == node))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_restored_state_needs_no_r(r, need, sampler, monkeypatch):
    need("rpart" if isinstance(sampler, RpartSampler) else "party")
    given, target, new = make_table(4)
    fitted = sampler.clone().fit(given, target)
    rows = type(given)(given.features, new)
    drawn = fitted.sample(rows, RowStreams.from_seed(1, rows.n_rows))
    restored = set_state(sampler.clone(), get_state(fitted))
    assert isinstance(restored.tree_, RTree)
    monkeypatch.setattr("r_bridge.trees.session", lambda: pytest.fail("R was called"))
    again = restored.sample(rows, RowStreams.from_seed(1, rows.n_rows))
    np.testing.assert_array_equal(again, drawn)


@pytest.mark.slow
def test_in_a_chain_and_an_explainer(r, need):
    need("rpart")
    need("party")
    loans = mcce.datasets.load_loans(400)
    mixed = {"salary": PartyCtreeSampler(), "housing": "cart", "*": RpartSampler()}
    drawn = [
        mcce.ChainModel(sampler=mixed, fixed=["age", "sex"], random_state=5, n_jobs=jobs)
        .fit(loans.X)
        .sample(given=loans.X[["age", "sex"]].head(6), n=20)
        for jobs in (1, 4)
    ]
    pd.testing.assert_frame_equal(*drawn)
    explainer = mcce.MCCE(
        lambda X: X["salary"].to_numpy(float), decision=(60_000, np.inf), fixed=["age"], sampler=mixed, random_state=1
    ).fit(loans.X)
    poor = loans.X[loans.X["salary"] < 60_000].head(4)
    found = explainer.explain(poor, n_samples=200)
    assert (found.frame["salary"] >= 60_000).all()
    pd.testing.assert_frame_equal(
        found.frame.loc[[poor.index[2]]], explainer.explain(poor.iloc[[2]], n_samples=200).frame
    )


@pytest.mark.filterwarnings("ignore:R warns. cmvnorm")
def test_random_state_of_r_is_unchanged(r, need):
    need("rpart")
    need("party")
    given, target, _ = make_table(5)
    r.call("evaluate", "set.seed(9)", None)
    expected = list(r.call("evaluate", "runif(3)", None))
    r.call("evaluate", "set.seed(9)", None)
    for sampler in (RpartSampler(), PartyCtreeSampler(statistic="maximum")):
        fitted = sampler.fit(given, target)
        fitted.sample(given, RowStreams.from_seed(1, given.n_rows))
    assert list(r.call("evaluate", "runif(3)", None)) == expected


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (RpartSampler(cp="much"), "cp of RpartSampler is 'much'; it must be a number"),
        (RpartSampler(min_leaf=0), "min_leaf of RpartSampler is 0"),
        (RpartSampler(max_depth=31), "rpart allows 30 at most"),
        (PartyCtreeSampler(mincriterion=1.5), "mincriterion of PartyCtreeSampler is 1.5"),
        (
            PartyCtreeSampler(statistic="huge"),
            "statistic of PartyCtreeSampler is 'huge'; allowed: 'quadratic', 'maximum'",
        ),
        (PartyCtreeSampler(max_depth=0), "max_depth of PartyCtreeSampler is 0"),
    ],
    ids=repr,
)
def test_invalid_parameters_raise(sampler, message):
    given, target, _ = make_table(1)
    with pytest.raises(MCCEError, match=message):
        sampler.fit(given, target)


def test_too_many_subsets_raise(r, need):
    need("rpart")
    rng = np.random.default_rng(0)
    many = pd.Categorical.from_codes(rng.integers(0, 20, 300), [f"level {k}" for k in range(20)])
    frame = pd.DataFrame({"town": many, "y": pd.Categorical.from_codes(rng.integers(0, 3, 300), list("abc"))})
    table = Schema.from_data(frame).encode(frame)
    with pytest.raises(SamplerError, match="every partition of the 20 levels of 'town'"):
        RpartSampler().fit(table.first(1), table.column(1))
    numbers = Column(Schema.from_data(pd.DataFrame({"y": [0.0]})).features[0], rng.normal(size=300))
    assert RpartSampler().fit(table.first(1), numbers).tree_.n_nodes >= 1


def test_fit_without_r_reports_what_is_missing(monkeypatch):
    def missing():
        raise RBridgeError("the bridge to R needs the Python package rpy2")

    monkeypatch.setattr("r_bridge.samplers.session", missing)
    given, target, _ = make_table(1)
    with pytest.raises(RBridgeError, match="needs the Python package rpy2"):
        RpartSampler().fit(given, target)
