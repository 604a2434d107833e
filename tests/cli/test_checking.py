"""Constraints, sparse counterfactuals and a floor from the command line."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from tests.cli.problem import customers

RULES = """
[[allow]]
feature = "income"
direction = "increase"
step = 10

[[rule]]
says = "rent <= was(rent)"
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Accept customers whose income exceeds three rents and some savings."""
    table = customers(400).drop(columns="size")
    table["loan"] = np.where(table["income"] + table["savings"] > 3 * table["rent"], "yes", "no")
    table.drop(columns="who").to_csv(tmp_path / "train.csv", index=False)
    refused = table[table["loan"] == "no"].drop(columns="loan").assign(who=lambda t: range(1, len(t) + 1))
    refused.head(12).to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "rules.toml").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explain(*more):
    arguments = ["--response", "loan", "--decision", "yes", "--fixed", "job", "--id", "who", "--n-samples", "200"]
    return main(["explain", "--train", "train.csv", "--explain", "new.csv", *arguments, *more])


def read_both(folder):
    before = pd.read_csv(folder / "new.csv").set_index("who")
    after = pd.read_csv(folder / "cf.csv").set_index("id")
    return before.loc[after.index], after


@pytest.mark.slow
def test_rows_satisfy_the_file_and_binding_constraints_are_reported(files, capsys):
    assert explain("--out", "free.csv") in (0, 3)
    capsys.readouterr()
    assert explain("--constraints", "rules.toml", "--sparse", "--out", "cf.csv") in (0, 3)
    before, after = read_both(files)
    assert len(after)
    changed = after["income"] != before["income"]
    assert (after["income"] >= before["income"]).all()
    assert (after["income"][changed] % 10 == 0).all()
    assert (after["rent"] <= before["rent"]).all()
    free = pd.read_csv("free.csv").set_index("id")
    own = pd.read_csv("new.csv").set_index("who").loc[free.index]
    assert (free["rent"] > own["rent"]).any() or (free["income"] % 10 != 0).any()
    said = capsys.readouterr().err
    assert re.search(
        r"constraint income: in steps of 10, may only rise: violated by \d+% of the unconstrained draws; ", said
    )
    assert re.search(r"constraint rent <= was\(rent\): violated by .*; draws with an allowed value: ", said)


@pytest.mark.slow
def test_sparse_changes_fewer_features_and_respects_the_floor(files):
    assert explain("--out", "plain.csv") in (0, 3)
    assert explain("--sparse", "--floor", "0.3", "--out", "cf.csv") in (0, 3)
    plain, sparse = pd.read_csv("plain.csv"), pd.read_csv("cf.csv")
    assert sparse["L0"].mean() < plain["L0"].mean()
    assert (sparse["plausibility"] >= 0.3 - 1e-9).any()
    assert "plausibility" not in plain


@pytest.mark.slow
def test_numeric_ids_work_and_unexplained_rows_state_what_would_help(files):
    said = {"only": [{"id": 1, "features": ["savings"]}, {"id": 2, "features": []}]}
    (files / "rules.json").write_text(json.dumps(said))
    assert explain("--constraints", "rules.json", "--sparse", "--out", "cf.csv") == 3
    before, after = read_both(files)
    stays = ["income", "rent", "job"]
    assert after.loc[1, stays].tolist() == before.loc[1, stays].tolist()
    assert after.loc[1, "savings"] > before.loc[1, "savings"]
    rest = pd.read_csv("cf.unexplained.csv").set_index("id")
    assert {"drawn", "rejected", "plausible", "queried", "nearest", "would_help"} <= {*rest.columns}
    assert rest.loc[2, "would_help"] == "without the constraint 'nothing may change'"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.toml", None, "--constraints none.toml: there is no such file; check its name and folder"),
        (
            "rules.txt",
            "income >= 3",
            "--constraints rules.txt: .*from .toml and .json files; got 'rules.txt'; convert",
        ),
        ("r.toml", "[[allow]\nfeature = 1", r"--constraints r.toml: .*not a TOML file: .*line 1"),
        ("r.json", "{", r"--constraints r.json: .*not a JSON file: .*line 1"),
        ("r.toml", "", r"--constraints r.toml has no constraints; give \[\[allow\]\]"),
        ("r.toml", "[[alow]]\nfeature = 'a'", "--constraints r.toml: there is no 'alow'; did you mean 'allow'"),
        ("r.toml", "[[allow]]\nhigh = 3", "--constraints r.toml: allow 1: allow lacks 'feature'"),
        ("r.toml", "[[allow]]\nfeature = 'rent'\nhi = 3", "r.toml: allow 1: allow has no 'hi'; did you mean 'high'"),
        ("r.toml", "[[rule]]\nsays = 'rent <= '", "--constraints r.toml: rule 1: .*'rent <='"),
        ("r.toml", "[[rule]]\nsays = 'rnt <= 3'", "--constraints r.toml: .*'rnt' is not a column; did you mean 'rent'"),
        ("r.toml", "[[allow]]\nfeature = 'incme'\nlow = 3", "--constraints r.toml: .*'incme' .*did you mean 'income'"),
        (
            "r.toml",
            "[[allow]]\nfeature = 'income'\nlow = 95\nmax_step = 1",
            "r.toml: .*leave no value for any of the 12",
        ),
        (
            "r.toml",
            "[[only]]\nid = 99\nfeatures = ['rent']",
            "--constraints r.toml: .*factual.* '99', which are not in the index",
        ),
    ],
)
def test_invalid_file_is_named_with_line_and_problem(name, content, message, files, capsys):
    if content is not None:
        (files / name).write_text(content)
    assert explain("--constraints", name) == 2
    said = capsys.readouterr().err
    assert "cross-validated" not in said  # nothing was trained
    errors = [line for line in said.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert re.search(message, errors[0]), errors[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--floor", "0.1"], "--sparse"),
        (["--sparse", "--floor", "1.5"], "--floor is 1.5; it must be a number from 0 to below 1"),
        (["--constraints", "rules.toml", "--html", "rules.toml"], "is the file of --constraints rules.toml, which is"),
    ],
)
def test_incompatible_options(arguments, message, files, capsys):
    assert explain(*arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())
