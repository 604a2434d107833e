"""Causal graphs compared with networkx and brute force."""

import itertools
import pickle

import numpy as np
import pytest

from mcce import Graph, InputError
from mcce.storage.state import from_state, to_state

LOANS = "age, sex -> education -> salary; age -> salary; salary -> savings"


def random_graph(seed, n=7, share=0.35, n_confounded=0):
    """Return a graph of letters, and its edges and pairs; names are not in causal order."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(list("abcdefg"[:n])).tolist()
    edges = [(a, b) for a, b in itertools.combinations(names, 2) if rng.random() < share]
    pairs = []
    for a, b in rng.permutation(list(itertools.combinations(names, 2)))[:n_confounded].tolist():
        try:
            Graph(edges, [*pairs, (a, b)], sorted(names))
        except InputError:
            continue
        pairs.append((a, b))
    return Graph(edges, pairs, sorted(names)), edges, pairs


@pytest.mark.parametrize("seed", range(8))
def test_relatives_and_order_match_networkx(seed):
    networkx = pytest.importorskip("networkx")
    graph, edges, _ = random_graph(seed)
    truth = networkx.DiGraph(edges)
    truth.add_nodes_from(graph.nodes)
    for name in graph.nodes:
        assert {*graph.descendants(name)} == networkx.descendants(truth, name)
        assert {*graph.ancestors(name)} == networkx.ancestors(truth, name)
        assert {*graph.parents(name)} == {*truth.predecessors(name)}
        assert {*graph.children(name)} == {*truth.successors(name)}
    assert graph.order() == list(networkx.lexicographical_topological_sort(truth))
    assert Graph.read(truth) == graph


def d_separated(edges, x, y, given):
    """Return whether no trail between two nodes is active, by enumerating all trails."""
    nodes = {each for edge in edges for each in edge}
    below = {name: {name} for name in nodes}
    for _ in nodes:
        for a, b in edges:
            below[a] |= below[b]

    def active(trail):
        for before, here, after in zip(trail, trail[1:], trail[2:]):
            collider = (before, here) in edges and (after, here) in edges
            if collider and below[here].isdisjoint(given):
                return False
            if not collider and here in given:
                return False
        return True

    def trails(path):
        if path[-1] == y:
            yield path
            return
        for name in nodes - {*path}:
            if (path[-1], name) in edges or (name, path[-1]) in edges:
                yield from trails([*path, name])

    if x not in nodes or y not in nodes:
        return True
    return not any(active(trail) for trail in trails([x]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_confounded", [0, 3])
def test_independences_are_d_separations(seed, n_confounded):
    """Of the graph with a node for each unmeasured cause; without such, every pair that is not joined is listed."""
    graph, edges, pairs = random_graph(seed, n=6, n_confounded=n_confounded)
    hidden = {(f"hidden {i}", name) for i, pair in enumerate(pairs) for name in pair}
    found = graph.independences()
    for each in found:
        assert d_separated({*edges} | hidden, each.feature, each.other, {*each.given}), each
    listed = [frozenset(each[:2]) for each in found]
    assert len({*listed}) == len(listed)
    if not pairs:
        joined = {frozenset(edge) for edge in edges}
        assert {*listed} == {frozenset(pair) for pair in itertools.combinations(graph.nodes, 2)} - joined


def test_order_is_stable_in_the_columns():
    graph = Graph.from_text("c -> a; d; b")
    assert graph.order(["a", "b", "c", "d"]) == ["b", "c", "a", "d"]
    assert graph.order(["d", "c", "b", "a"]) == ["d", "c", "b", "a"]


def test_features_with_a_common_cause_are_modelled_jointly():
    """Tian's factorisation: on earlier features of the group, and on the parents of all of them."""
    graph = Graph.from_text("p -> a; q -> b; a <-> b")
    assert graph.predictors(["p", "q", "a", "b"]) == {"p": [], "q": [], "a": ["p"], "b": ["p", "q", "a"]}
    apart = Graph.from_text("a <-> c; c <-> b")  # a and b are joined by c only, which comes after
    assert apart.predictors(["a", "b", "c"]) == {"a": [], "b": [], "c": ["a", "b"]}


def test_ordering_of_shapr():
    graph = Graph.from_ordering([["age", "sex"], "education", ["salary", "savings"]], [True, False, False])
    assert graph.predictors(graph.order()) == {
        "age": [],
        "sex": ["age"],
        "education": ["age", "sex"],
        "salary": ["age", "sex", "education"],
        "savings": ["age", "sex", "education"],
    }
    joint = Graph.from_ordering([["age", "sex"], "education", ["salary", "savings"]], True)
    assert joint.predictors(joint.order())["savings"] == ["age", "sex", "education", "salary"]
    assert joint.descendants("salary") == []  # they share a cause; neither causes the other
    assert Graph.read({"causal_ordering": [["age", "sex"]], "confounding": True}).confounded == (("age", "sex"),)


def test_ordering_with_an_outcome():
    ordering = [["age"], ["education", "salary"], ["savings", "default"]]
    graph = Graph.from_ordering(ordering, True, outcome="default")
    assert graph.nodes == ("age", "education", "salary", "savings")
    assert graph.causes == ["age", "education", "salary"]
    assert graph.confounded == (("education", "salary"),)
    assert Graph.read({"causal_ordering": ordering, "confounding": True, "outcome": "default"}) == graph
    with pytest.raises(InputError, match="graph has 'salary' -> 'savings', but an outcome has no effects"):
        Graph.from_ordering(ordering, outcome="salary")


@pytest.mark.parametrize(
    ("ordering", "confounding", "message"),
    [
        ("age", False, "causal_ordering is 'age'; give a list of lists"),
        ([["age"], ["age", "sex"]], False, "causal_ordering names 'age' more than once"),
        ([["age"], ["sex"]], [True], r"confounding is \[True\] for 2 groups; give True or False, or one for each"),
        ([["age"], ["sex"]], [1, 0], r"confounding is \[1, 0\] for 2 groups"),
        ([["age"], [None]], False, "causal_ordering has None, where the name of a feature belongs"),
    ],
)
def test_invalid_orderings_raise(ordering, confounding, message):
    with pytest.raises(InputError, match=message):
        Graph.from_ordering(ordering, confounding)


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ("x -> a -> b -> c -> a; c -> y", "'a' -> 'b' -> 'c' -> 'a'"),
        ("a -> a", "'a' -> 'a'"),
        ("a -> b -> a", "'a' -> 'b' -> 'a'"),
    ],
)
def test_cycle_is_named(edges, cycle):
    with pytest.raises(InputError, match=f"graph has the cycle {cycle}; remove one of these edges"):
        Graph.from_text(edges)


def test_effect_that_cannot_be_learned_raises():
    for text in ("a -> b; a <-> b", "a -> m -> b; a <-> b", "a -> b; a <-> c; c <-> b"):
        with pytest.raises(InputError, match="'a' causes 'b' and that both share an unmeasured cause"):
            Graph.from_text(text)
    with pytest.raises(InputError, match="joins 'a' with itself"):
        Graph([], [("a", "a")])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("age", "graph is 'age', which has no edge; give a text as 'education -> salary'"),
        (3, "graph is 3; give a text as"),
        ([("a", "b", "c")], r"graph has \('a', 'b', 'c'\); give pairs of features"),
        ([("a", ["b"])], r"graph has \['b'\], where the name of a feature belongs"),
        ({"edgse": []}, "graph has the entry 'edgse'; did you mean 'edges'?"),
        ({"nodes": ["a"]}, "graph has no list of directed edges"),
    ],
)
def test_invalid_graphs_raise(given, message):
    with pytest.raises(InputError, match=message):
        Graph.read(given)


def test_undirected_graph_raises():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(InputError, match=r"graph is a Graph, which has no directions; give a networkx\.DiGraph"):
        Graph.read(networkx.Graph([("a", "b")]))


def test_names_of_columns():
    assert Graph.from_text("0 -> 1").of_columns([1, 0, "x"]).edges == ((0, 1),)
    with pytest.raises(InputError, match=r"graph names 'salery', which is not a column of X; did you mean 'salary'\?"):
        Graph.from_text("age -> salery").of_columns(["age", "salary"])
    with pytest.raises(InputError, match="'job' is not a feature of the graph; known: 'age', 'sex', 'education'"):
        Graph.from_text(LOANS).parents("job")


@pytest.mark.parametrize("seed", range(4))
def test_text_state_and_pickle_round_trip(seed):
    graph = random_graph(seed, n_confounded=2)[0]
    assert Graph.from_text(graph.to_text()) == graph
    assert from_state(to_state(graph)) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert hash(from_state(to_state(graph))) == hash(graph)
    assert graph != Graph([("a", "b")])


def test_crafted_state_raises():
    state = to_state(Graph.from_text("a -> b"))
    for field, value in {"edges": 3, "nodes": [["a"]], "confounded": [["a", "a"]]}.items():
        with pytest.raises(InputError):
            from_state({**state, field: value})
    with pytest.raises(InputError, match="cycle"):
        from_state({**state, "edges": [["a", "b"], ["b", "a"]]})


# ---- the outcome


OUTCOME = "age -> salary; salary, debt -> default; region"


def test_outcome_is_neither_a_column_nor_visited():
    graph = Graph.from_text(OUTCOME, outcome="default")
    assert graph.nodes == ("age", "salary", "debt", "region")
    assert graph.causes == ["age", "salary", "debt"]
    assert graph.visit(["region", "debt", "salary", "age"], ["age"])[1] == {"salary": ["age"], "debt": [], "region": []}
    assert "default" not in {each.feature for each in graph.independences()}
    assert Graph.from_text("age -> salary").causes == []


def test_texts_and_other_forms_keep_the_outcome(tmp_path):
    graph = Graph.from_text(OUTCOME, outcome="default")
    assert Graph.from_text(graph.to_text(), outcome="default") == graph != Graph.from_text(OUTCOME)
    assert eval(repr(graph)) == graph
    assert graph.of_columns(["age", "salary", "debt", "region"]) == graph
    (tmp_path / "graph.dot").write_text("digraph { age -> salary; {salary debt} -> default; region }")
    (tmp_path / "graph.json").write_text(
        '{"edges": [["age", "salary"], ["salary", "default"], ["debt", "default"]], "nodes": ["region"],'
        ' "outcome": "default"}'
    )
    edges = [("age", "salary"), "salary, debt -> default", "region"]
    assert Graph.from_file(tmp_path / "graph.dot", outcome="default") == graph
    assert Graph.read(str(tmp_path / "graph.json")) == graph
    assert Graph.read(edges, outcome="default") == Graph.read(Graph.read(edges), outcome="default") == graph


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age -> salary", "outcome is 'default', which is not an effect in the graph; known: 'salary'"),
        ("age -> default -> salary", "graph has 'default' -> 'salary', but an outcome has no effects; remove the edge"),
        ("age -> default; default <-> salary", "graph has '<->' beside the outcome 'default', .* leave it out"),
    ],
)
def test_invalid_outcome_raises(text, message):
    with pytest.raises(InputError, match=message):
        Graph.from_text(text, outcome="default")


def test_outcome_that_is_a_column_raises():
    graph = Graph.from_text("age -> default", outcome="default")
    with pytest.raises(InputError, match="the outcome 'default' of the graph is a column of X; leave that column out"):
        graph.of_columns(["age", "default"])
