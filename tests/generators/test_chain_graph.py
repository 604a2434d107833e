"""Chains with a causal graph: order, predictors, known processes, storage, and the graph test."""

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import ChainModel, Graph, InputError


def linear(n=4000, seed=0):
    """Return rows of a linear structural model: a -> b -> c, a -> c, and e, which depends on all."""
    rng = np.random.default_rng(seed)
    a, b, c, e = rng.normal(size=(4, n))
    b += 0.8 * a
    c += 0.7 * b - 0.5 * a
    return pd.DataFrame({"c": c, "a": a, "e": e + a + b + c, "b": b})


X = linear()


def modelled_on(chain):
    """Return the predictors of each mutable feature."""
    layout = chain._layout
    names = [feature.name for feature in layout.features]
    return {names[k]: [names[j] for j in layout.columns_given(k)] for k in range(layout.n_given, len(names))}


def test_order_and_predictors_match_the_graph():
    chain = ChainModel(sampler="norm", graph="a -> b -> c", random_state=1).fit(X)
    assert chain.visit_sequence_ == ["a", "b", "c", "e"]
    assert modelled_on(chain) == {"a": [], "b": ["a"], "c": ["b"], "e": ["a", "b", "c"]}
    assert chain.graph_ == Graph([("a", "b"), ("b", "c")])


def test_features_outside_the_graph_come_last_given_all_before():
    """A fixed feature outside the graph is given only to them."""
    chain = ChainModel(sampler="norm", fixed=["e"], graph="b -> c", random_state=1).fit(X)
    assert modelled_on(chain) == {"b": [], "c": ["b"], "a": ["e", "b", "c"]}


def test_decision_is_always_given():
    chain = ChainModel(sampler="norm", fixed=["a"], graph="a -> b; c", random_state=1).fit(X, (X["e"] > 0).to_numpy())
    decision = "<decision>"
    assert modelled_on(chain) == {"c": [decision], "b": ["a", decision], "e": ["a", decision, "c", "b"]}


def test_draws_follow_a_linear_structural_model():
    """Covariances match the true process; without the edge a -> c they match the process without it."""
    drawn = ChainModel(sampler="norm", graph="a -> b -> c; a -> c", random_state=1).fit(X).sample(n=40_000)
    weights = np.array([[0, 0, 0], [0.8, 0, 0], [-0.5, 0.7, 0]])
    inverse = np.linalg.inv(np.eye(3) - weights)
    assert np.cov(drawn[["a", "b", "c"]].T) == pytest.approx(inverse @ inverse.T, abs=0.12)
    dropped = ChainModel(sampler="norm", graph="a -> b -> c", random_state=1).fit(X).sample(n=40_000)
    r = dropped[["a", "b", "c"]].corr()
    assert r.loc["a", "c"] == pytest.approx(r.loc["a", "b"] * r.loc["b", "c"], abs=0.02)


def test_groups_are_drawn_jointly_or_independently():
    rng = np.random.default_rng(1)
    hidden, p = rng.normal(size=(2, 3000))
    rows = pd.DataFrame({"p": p, "x": p + hidden + rng.normal(size=3000), "y": p + hidden + rng.normal(size=3000)})
    for confounded, truth in ((True, 1 / 2), (False, 0.0)):
        graph = Graph.from_ordering([["p"], ["x", "y"]], confounded)
        drawn = ChainModel(sampler="norm", graph=graph, random_state=1).fit(rows).sample(n=20_000)
        assert np.corrcoef(drawn["x"] - drawn["p"], drawn["y"] - drawn["p"])[0, 1] == pytest.approx(truth, abs=0.05)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"graph": "a -> b -> a"}, "graph has the cycle 'a' -> 'b' -> 'a'; remove one of these edges"),
        ({"graph": "a -> bb"}, "graph names 'bb', which is not a column of X; did you mean 'b'"),
        ({"graph": "a -> b", "visit_sequence": "reversed"}, "visit_sequence is 'reversed', but graph sets the order"),
        ({"graph": "a -> b", "predictors": {"b": []}}, "predictors is .* but graph sets the order"),
        (
            {"graph": "a -> b", "fixed": ["b"]},
            "graph has 'a' -> 'b', but 'b' is fixed and its cause is not.*Fix 'a' too",
        ),
        ({"graph": 5}, "graph is 5; give a text as 'education -> salary'"),
    ],
)
def test_invalid_graphs_raise(settings, message):
    with pytest.raises(InputError, match=message):
        ChainModel(**settings).fit(X)


@pytest.mark.parametrize("form", ["text", "list", "file", "networkx", "confounded"])
def test_chain_with_a_graph_round_trips(tmp_path, form):
    """Without its file, and without networkx."""
    networkx = pytest.importorskip("networkx")
    (tmp_path / "g.json").write_text('{"edges": [["a", "b"], ["b", "c"]]}')
    forms = {"text": "a -> b -> c", "list": [("a", "b"), ("b", "c")], "file": tmp_path / "g.json"}
    forms |= {"networkx": networkx.DiGraph([("a", "b"), ("b", "c")]), "confounded": "a -> b; c -> e; b <-> c"}
    chain = ChainModel(sampler="norm", graph=forms[form], random_state=1).fit(X[:300])
    chain.save(tmp_path / "chain.mcce")
    (tmp_path / "g.json").unlink()
    again = ChainModel.load(tmp_path / "chain.mcce")
    assert again.graph_ == chain.graph_ == again.graph
    assert modelled_on(again) == modelled_on(chain)
    assert again.sample(n=50).equals(chain.sample(n=50))


def test_stored_order_inconsistent_with_the_graph_raises(tmp_path):
    chain = ChainModel(sampler="norm", graph="a -> b", random_state=1).fit(X[:300])
    chain.visit_sequence_ = ["b", "a", "c", "e"]
    with pytest.raises(InputError, match="visit_sequence_ is not that of the graph"):
        chain.save(tmp_path / "chain.mcce")


def test_settings_of_results_name_the_graph():
    chain = ChainModel(sampler="norm", graph="a -> b -> c", random_state=1).fit(X[:300])
    assert chain.describe()["graph"] == "a -> b\nb -> c"
    assert "graph='a -> b -> c'" in repr(chain)
    assert "graph" not in ChainModel(sampler="norm", random_state=1).fit(X[:300]).describe()


@pytest.mark.slow
def test_graph_test_finds_the_omitted_edge():
    right = ChainModel(sampler="norm", graph="a -> b -> c; a -> c; a, b, c -> e", random_state=1).fit(X[:1000])
    assert len(right.check_graph(X[:1000])) == 0
    assert "it implies no independence" in repr(right.check_graph(X[:1000]))
    wrong = ChainModel(sampler="norm", graph="a -> b -> c; b, c -> e", random_state=1).fit(X[:1000])
    check = wrong.check_graph(X[:1000])
    assert sorted(check.rejected) == [("c", "a"), ("e", "a")]
    assert check.table["p_adjusted"].is_monotonic_increasing
    assert "are dependent given 'b' (correlation" in check.table.set_index("feature").loc["c", "says"]
    assert repr(check) == repr(wrong.check_graph(X[:1000]))
    assert "A graph is an assumption" in repr(check)


def test_untestable_graphs_raise():
    with pytest.raises(InputError, match="this chain has no graph to check; fit it with graph='a -> b'"):
        ChainModel(sampler="norm").fit(X[:300]).check_graph(X)
    chain = ChainModel(sampler="norm", graph="a -> b; c").fit(X[:300])
    with pytest.raises(InputError, match="X has 5 rows; testing a graph needs at least 20"):
        chain.check_graph(X[:5])
    joint = mcce.generators.MixtureGenerator(fixed=["a"], random_state=1).fit(X[:100])
    with pytest.raises(InputError, match=r"check_graph\(\) needs the graph of a chain; a MixtureGenerator has none"):
        joint.check_graph(X)
