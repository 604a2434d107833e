"""Explainers with a causal graph."""

import json

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, InputError

GRAPH = "age -> education -> salary; age -> salary; salary -> savings"


def score(rows):
    return rows["savings"] / 10


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(2)
    age = rng.integers(20, 65, 500)
    education = rng.integers(0, 3, 500)
    salary = np.round(20 + 8 * education + age / 5 + rng.normal(0, 3, 500))
    savings = np.round(salary / 8 + rng.normal(0, 1, 500), 1)
    return pd.DataFrame(
        {
            "savings": savings,
            "salary": salary,
            "age": age,
            "education": pd.Categorical(np.array(["none", "school", "degree"])[education]),
            "pets": rng.integers(0, 4, 500),
        }
    )


@pytest.fixture(scope="module")
def explainer(people):
    return MCCE(score, fixed=["age"], graph=GRAPH, random_state=1).fit(people, relations=())


def refused(people):
    return people[people["savings"] < 4].head(8)


def test_results_name_the_graph_and_count_its_edges(explainer, people):
    found = explainer.explain(refused(people), n_samples=100)
    assert explainer.generator_.visit_sequence_ == ["education", "salary", "savings", "pets"]
    assert found.run.settings["graph"] == "age -> education\nage, education -> salary\nsalary -> savings"
    assert found.summary().loc["edges of the assumed causal graph", "value"] == 4
    assert (found.frame["savings"] >= 5).all()


@pytest.mark.slow
def test_saved_explainer_keeps_the_outcome(people, tmp_path):
    graph = mcce.Graph.from_text(GRAPH + "; savings -> default", outcome="default")
    explainer = MCCE(score, fixed=["age"], graph=graph, random_state=1).fit(people, relations=())
    assert explainer.generator_.visit_sequence_ == ["education", "salary", "savings", "pets"]
    explainer.save(tmp_path / "explainer.mcce")
    assert MCCE.load(tmp_path / "explainer.mcce", model=score).generator_.graph_ == graph


def test_saved_explainer_keeps_the_graph(explainer, people, tmp_path):
    explainer.save(tmp_path / "explainer.mcce")
    again = MCCE.load(tmp_path / "explainer.mcce", model=score)
    assert again.graph == again.generator_.graph_ == explainer.generator_.graph_
    rows = refused(people)
    assert again.explain(rows, n_samples=50).frame.equals(explainer.explain(rows, n_samples=50).frame)


@pytest.mark.slow
def test_batches_give_the_same_rows(explainer, people, tmp_path):
    pytest.importorskip("pyarrow")
    rows = refused(people).reset_index(drop=True)
    rows.to_parquet(tmp_path / "rows.parquet")
    done = explainer.explain_batches(
        tmp_path / "rows.parquet", tmp_path / "out", batch_size=3, n_jobs=1, n_samples=50, progress=False
    )
    alone = explainer.explain(rows, n_samples=50)
    assert done.totals["explained"] == len(alone)


def test_check_graph_rejects_only_the_wrong_graph(explainer, people):
    assert explainer.check_graph(people).rejected == []
    wrong = MCCE(score, fixed=["age"], graph="age -> education; age -> salary", random_state=1).fit(
        people, relations=()
    )
    assert wrong.check_graph(people).rejected == [("education", "salary")]  # in the order of the columns


def test_derived_column_in_the_graph_raises(people):
    rows = people.assign(total=people["salary"] + people["pets"])
    wrong = MCCE(score, graph="salary -> total", derived={"total": "salary + pets"}, random_state=1)
    with pytest.raises(InputError, match="graph names 'total', which is derived from other columns and not drawn"):
        wrong.fit(rows)
    right = MCCE(score, graph="salary -> savings", derived={"total": "salary + pets"}, random_state=1).fit(rows)
    found = right.explain(refused(rows), n_samples=50)
    assert (found.frame["total"] == found.frame["salary"] + found.frame["pets"]).all()


def test_relations_hold_with_a_graph(people):
    """The graph draws both independently; counterfactuals satisfy the given relation."""
    rows = people.assign(highest=people["salary"] + people["pets"] % 3)
    explained = MCCE(score, graph="salary; highest -> savings", random_state=1).fit(
        rows, relations=["salary <= highest"]
    )
    found = explained.explain(refused(rows), n_samples=200, sparse=True)
    assert (found.frame["salary"] <= found.frame["highest"]).all()


def test_graph_with_a_generator_raises(people):
    with pytest.raises(InputError, match="graph is 'age -> salary', a setting of the chain, but generator="):
        MCCE(score, generator="mixture", graph="age -> salary").fit(people)


def test_sensitivity_keeps_the_graph(explainer, people):
    with pytest.raises(InputError, match="visit_sequence is 'reversed', but graph sets the order"):
        explainer.sensitivity(refused(people), samplers=["cart"], visit_sequences=["reversed"])


@pytest.mark.slow
def test_command_line_accepts_a_graph_file(people, tmp_path, capsys):
    from mcce.cli import main

    people.assign(good=people["savings"] > 5).to_csv(tmp_path / "train.csv", index=False)
    refused(people).to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "graph.json").write_text(json.dumps({"edges": [["age", "salary"], ["salary", "savings"]]}))
    job = ["explain", "--train", "train.csv", "--explain", "new.csv", "--response", "good", "--decision", "True"]
    job = [str(tmp_path / each) if each.endswith(".csv") else each for each in job]
    out = tmp_path / "out.csv"
    assert main([*job, "--fixed", "age", "--graph", str(tmp_path / "graph.json"), "--out", str(out)]) == 0
    assert 'graph = "graph.json"' in (tmp_path / "out.job.toml").read_text()
    capsys.readouterr()
    assert main([*job, "--fixed", "salary", "--graph", str(tmp_path / "graph.json")]) == 2
    assert "graph has 'age' -> 'salary', but 'salary' is fixed and its cause is not" in capsys.readouterr().err
    (tmp_path / "graph.dot").write_text("digraph { agee -> salary }")
    assert main([*job, "--graph", str(tmp_path / "graph.dot")]) == 2
    assert "--graph names 'agee', which is not a column of the table; did you mean 'age'?" in capsys.readouterr().err


def test_graph_is_only_an_option_of_the_constructor():
    assert mcce.MCCE(score, graph=GRAPH).get_params()["graph"] == GRAPH
