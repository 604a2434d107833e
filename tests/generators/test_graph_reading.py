import json

import pytest

from mcce import Graph, InputError
from mcce.generators.graph_reading import parse_text, quoted


def test_text_with_chains_commas_quotes_and_single_names():
    found = parse_text('age, sex -> education -> salary\n "my -> column" <-> hours-per-week; ; rent \n')
    assert found.edges == [("age", "education"), ("sex", "education"), ("education", "salary")]
    assert found.confounded == [("my -> column", "hours-per-week")]
    assert found.nodes == ["age", "sex", "education", "salary", "my -> column", "hours-per-week", "rent"]


@pytest.mark.parametrize("name", ["a", "a b", "a->b", "x;y", 'say "hi"', " a ", "a,b", "line\nbreak", "\\", "<->", ""])
def test_every_name_can_be_quoted(name):
    assert parse_text(f"{quoted(name)} -> z").edges == [(name, "z")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a -> b; c ->", "graph, line 2: 'c ->' lacks a name beside '->'"),
        ("-> b", "graph, line 1: '-> b' lacks a name beside '->'"),
        ("a,, b -> c", "'a,, b -> c' lacks a name beside ','"),
        ('a -> "b', "graph, line 1: a name in quotes is not closed"),
        ('a "b" -> c', "has quotes inside a name; quote the whole name"),
    ],
)
def test_invalid_text_raises(text, message):
    with pytest.raises(InputError, match=message):
        parse_text(text)


DOT = """
strict digraph "loans" {
    rankdir=LR; node [shape=box, label="a ]; b"];
    // causes
    {age "sex of applicant"} -> education -> salary [color=red]
    # a comment
    savings -> rent [dir=both]; /* and
    another */
    subgraph cluster_0 { label="more"; town; region -> town }
}
"""


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_dot_file(tmp_path):
    graph = Graph.read(str(write(tmp_path, "loans.dot", DOT)))
    assert graph == Graph(
        [("age", "education"), ("sex of applicant", "education"), ("education", "salary"), ("region", "town")],
        [("savings", "rent")],
    )
    assert Graph.read(write(tmp_path, "d.gv", "dag { x [exposure] y -> x\n a <-> b }")) == Graph.from_text(
        "y -> x; a <-> b"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph { a -- b }", "graph of g.dot begins with 'graph'; give a directed graph"),
        ("", "graph of g.dot begins with ''"),
        ("digraph a -> b", "no '{' after 'digraph'"),
        ("digraph { a -> b", "ends before its closing brace"),
        ("digraph { a -> ; }", "expected a name, got ';'"),
        ("digraph { a -- b }", r"an edge \['a'\] -- has no direction"),
        ("digraph { a } b", "'b' stands after the closing brace"),
        ('digraph { "a -> b }', "cannot be read at"),
        ("digraph " + 30_000 * "{", "braces too deep inside each other"),
    ],
)
def test_invalid_dot_raises(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        Graph.read(write(tmp_path, "g.dot", text))


def test_json_files(tmp_path):
    truth = Graph.from_text("a -> b; b -> c; a <-> d")
    forms = {
        "edges": {"edges": [["a", "b"], ["b", "c"]], "confounded": [["a", "d"]]},
        "links": {"directed": True, "nodes": [{"id": "a"}], "links": [{"source": "a", "target": "b"}]},
        "list": [["a", "b"], "b -> c", "a <-> d"],
        "ordering": {"causal_ordering": [["a", "d"], ["b"]], "confounding": [True, False]},
    }
    read = {name: Graph.read(write(tmp_path, f"{name}.json", json.dumps(form))) for name, form in forms.items()}
    assert read["edges"] == read["list"] == truth
    assert read["links"] == Graph([("a", "b")])
    assert read["ordering"] == Graph.from_text("a, d -> b; a <-> d")


def test_networkx_node_link_format(tmp_path):
    networkx = pytest.importorskip("networkx")
    drawn = networkx.DiGraph([("a", "b"), ("b", "c")])
    path = write(tmp_path, "g.json", json.dumps(networkx.node_link_data(drawn, edges="edges")))
    assert Graph.from_file(path) == Graph.read(drawn)


def test_invalid_files_raise(tmp_path):
    with pytest.raises(InputError, match=r"a graph is read from .dot, .gv and .json files; got 'g.txt'"):
        Graph.from_file(write(tmp_path, "g.txt", "a -> b"))
    with pytest.raises(InputError, match=r"the graph in 'none.dot' cannot be read"):
        Graph.from_file(tmp_path / "none.dot")
    with pytest.raises(InputError, match=r"graph of g.json is not a JSON file"):
        Graph.from_file(write(tmp_path, "g.json", "{"))
    with pytest.raises(InputError, match=r"graph of g.json is a int"):
        Graph.from_file(write(tmp_path, "g.json", "3"))
    with pytest.raises(InputError, match=r"graph has None, where the name of a feature belongs|edges has None"):
        Graph.from_file(write(tmp_path, "g.json", '{"edges": [{"source": "a"}]}'))
