"""Models from files: joblib, which executes code, and formats that do not."""

import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from mcce.cli import main

FEATURES = ["income", "rent", "age"]
GET_ONNX = "pip install onnx onnxruntime, or pip install 'mcce[onnx]' for onnxruntime alone"
GET_SKOPS = "pip install 'mcce[skops]'"


class Own(DecisionTreeClassifier):
    """A type unknown to skops."""


@pytest.fixture
def table(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    n = 200
    table = pd.DataFrame({name: rng.integers(1, 100, n) for name in FEATURES})
    table["loan"] = np.where(table["income"] > table["rent"], "yes", "no")
    table.to_csv(tmp_path / "train.csv", index=False)
    table[table["loan"] == "no"].head(8).to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return table


def explain(model, *more):
    arguments = ["--train", "train.csv", "--explain", "new.csv", "--response", "loan", "--n-samples", "100"]
    return main(["explain", *arguments, "--model", model, *more])


def fitted(table):
    return LogisticRegression(max_iter=1000).fit(table[FEATURES], table["loan"])


def onnx_of(model, path, *, named=False, scores="map", labels=("no", "yes")):
    """Write a logistic regression as ONNX by hand; the truth is scikit-learn's answer."""
    pytest.importorskip("onnxruntime", reason=GET_ONNX)
    onnx = pytest.importorskip("onnx", reason=GET_ONNX)
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes, matrix = [], "X"
    if named:
        inputs = [helper.make_tensor_value_info(name, kinds.FLOAT, [None, 1]) for name in FEATURES]
        nodes.append(helper.make_node("Concat", FEATURES, ["all"], axis=1))
        matrix = "all"
    else:
        inputs = [helper.make_tensor_value_info("X", kinds.FLOAT, [None, len(FEATURES)])]
    halves = np.vstack([-model.coef_, model.coef_]) / 2  # its softmax is the logistic function
    classifier = {
        "coefficients": halves.ravel().tolist(),
        "intercepts": [-model.intercept_[0] / 2, model.intercept_[0] / 2],
        "classlabels_strings": list(labels),
        "post_transform": "SOFTMAX",
    }
    nodes.append(helper.make_node("LinearClassifier", [matrix], ["label", "score"], domain="ai.onnx.ml", **classifier))
    outputs = [helper.make_tensor_value_info("label", kinds.STRING, [None])]
    if scores == "map":
        nodes.append(
            helper.make_node("ZipMap", ["score"], ["by class"], domain="ai.onnx.ml", classlabels_strings=list(labels))
        )
        value = helper.make_map_type_proto(kinds.STRING, helper.make_tensor_type_proto(kinds.FLOAT, []))
        outputs.append(helper.make_value_info("by class", helper.make_sequence_type_proto(value)))
    else:
        outputs.append(helper.make_tensor_value_info("score", kinds.FLOAT, [None, 2]))
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    domains = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=domains)
    made.ir_version = 8
    onnx.save(made, path)


def test_joblib_executes_code_and_warns(table, capsys):
    joblib.dump(fitted(table), "m.joblib")
    assert explain("m.joblib", "--decision", "yes", "--out", "-") == 0
    said = capsys.readouterr().err
    assert "opening --model m.joblib runs the code that it holds; .skops and .onnx files run none" in said


def test_all_features_missing_from_a_file_are_named(table, capsys):
    joblib.dump(fitted(table), "m.joblib")
    table.drop(columns=["rent", "age"]).to_csv("train.csv", index=False)
    assert explain("m.joblib", "--decision", "yes") == 2
    said = capsys.readouterr().err
    assert (
        "the feature of --model m.joblib 'rent', 'age' are not columns of train.csv, which has 'income', 'loan'" in said
    )


@pytest.mark.slow
def test_skops_loads_only_trusted_types(table, capsys):
    io = pytest.importorskip("skops.io", reason=GET_SKOPS)
    io.dump(fitted(table), "m.skops")
    assert explain("m.skops", "--decision", "yes", "--out", "-") == 0
    of_skops = capsys.readouterr()
    assert "runs the code" not in of_skops.err
    joblib.dump(fitted(table), "m.joblib")
    assert explain("m.joblib", "--decision", "yes", "--out", "-") == 0
    assert capsys.readouterr().out == of_skops.out
    io.dump(Own(max_depth=3).fit(table[FEATURES], table["loan"]), "own.skops")
    assert explain("own.skops", "--decision", "yes") == 2
    name = f"sklearn.tree._tree.Tree,{Own.__module__}.Own"
    said = capsys.readouterr().err
    assert f"not trusted: 'sklearn.tree._tree.Tree', '{Own.__module__}.Own'. If you trust" in said
    assert f"add --trusted {name}." in said
    assert explain("own.skops", "--decision", "yes", "--trusted", name, "--out", "-") in (0, 3)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("scores", ["map", "matrix"])
def test_onnx_answers_match_the_original_model(named, scores, table, capsys):
    model = fitted(table)
    onnx_of(model, "m.onnx", named=named, scores=scores)
    if named:  # by name, not by position
        table[["rent", "loan", "age", "income"]].to_csv("train.csv", index=False)
    assert explain("m.onnx", "--decision", "[0.8,1]", "--of", "yes", "--out", "cf.csv") in (0, 3)
    assert "runs the code" not in capsys.readouterr().err
    found = pd.read_csv("cf.csv")
    assert len(found)
    np.testing.assert_allclose(model.predict_proba(found[FEATURES])[:, 1], found["prediction"], atol=1e-5)


def test_onnx_regression(table, capsys):
    pytest.importorskip("onnxruntime", reason=GET_ONNX)
    onnx = pytest.importorskip("onnx", reason=GET_ONNX)
    helper, kinds = onnx.helper, onnx.TensorProto
    model = LinearRegression().fit(table[FEATURES], 2 * table["income"] - table["age"])
    inputs = [helper.make_tensor_value_info("X", kinds.DOUBLE, [None, 3])]
    held = [
        helper.make_tensor("w", kinds.DOUBLE, [3, 1], model.coef_),
        helper.make_tensor("b", kinds.DOUBLE, [1], [model.intercept_]),
    ]
    nodes = [helper.make_node("MatMul", ["X", "w"], ["xw"]), helper.make_node("Add", ["xw", "b"], ["y"])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", kinds.DOUBLE, [None, 1])], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])
    made.ir_version = 8
    onnx.save(made, "r.onnx")
    assert explain("r.onnx", "--decision", "[100,inf)", "--out", "cf.csv") in (0, 3), capsys.readouterr().err
    found = pd.read_csv("cf.csv")
    np.testing.assert_allclose(2 * found["income"] - found["age"], found["prediction"])


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda t: t.assign(more=1), [], "m.onnx takes 3 features, but there are 4: 'income', 'rent', 'age', 'more'"),
        (
            lambda t: t.assign(age="old"),
            [],
            "m.onnx takes one matrix of numbers, but 'age' are not numeric. Export it with one",
        ),
        (lambda t: t, ["--trusted", "a.B"], "--trusted goes with a model saved by skops, but --model is m.onnx"),
    ],
)
def test_tables_unsupported_by_an_onnx_file(change, options, message, table, capsys):
    onnx_of(fitted(table), "m.onnx")
    for name in ("train.csv", "new.csv"):
        change(pd.read_csv(name)).to_csv(name, index=False)
    assert explain("m.onnx", "--decision", "yes", *options) == 2
    assert message in capsys.readouterr().err


def test_onnx_file_without_class_labels(table, capsys):
    onnx_of(fitted(table), "m.onnx", scores="matrix")
    table[table["income"] > table["rent"] + 20].to_csv("train.csv", index=False)
    assert explain("m.onnx", "--decision", "yes") == 2
    said = capsys.readouterr().err
    assert "has scores for 2 classes without their names" in said
    assert "Export it with scores by class (zipmap)" in said


@pytest.mark.parametrize("name", ["m.onnx", "m.skops"])
def test_invalid_model_file(name, table, tmp_path, capsys):
    pytest.importorskip({"m.onnx": "onnxruntime", "m.skops": "skops"}[name], reason="; ".join([GET_ONNX, GET_SKOPS]))
    (tmp_path / name).write_bytes(b"no model")
    assert explain(name, "--decision", "yes") == 2
    assert f"--model {name} cannot be loaded (" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "package"), [("m.onnx", "onnxruntime"), ("m.skops", "skops")])
def test_missing_package(name, package, table, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"")
    assert explain(name, "--decision", "yes") == 2
    assert f"pip install 'mcce[{name[2:]}]'" in capsys.readouterr().err
