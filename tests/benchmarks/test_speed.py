"""The plain method is a fair baseline, and the benchmark runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mcce
from benchmarks import plain, report, samplers, samplers_worker, settings, speed, standins

FIXED = ["age"]
CATEGORICAL = ["home"]


def simulated(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n)
    home = (rng.random(n) < 0.3 + 0.005 * (age - 20)).astype(int)
    salary = np.round(20 + 0.5 * age + 10 * home + 8 * rng.standard_normal(n))
    savings = np.round(np.exp(1 + 0.03 * salary + 0.5 * rng.standard_normal(n)))
    return pd.DataFrame({"age": age, "home": home, "salary": salary, "savings": savings})


def score(rows):
    return rows["salary"].to_numpy() + rows["savings"].to_numpy() + 5 * rows["home"].to_numpy()


DECISION = mcce.Interval(70, np.inf)


def wanted(rows):
    return DECISION.contains(score(rows))


@pytest.fixture(scope="module")
def found_by_plain():
    X = simulated().astype(float)
    factuals = X[~wanted(X)].iloc[:300]
    rows, seconds = plain.explain(
        X, factuals, wanted=wanted, fixed=FIXED, categorical=CATEGORICAL, n_samples=50, seed=1
    )
    return X, factuals, rows, seconds


def test_plain_returns_valid_rows(found_by_plain):
    X, factuals, rows, seconds = found_by_plain
    assert list(rows.columns) == list(X.columns)
    assert rows.index.is_unique
    assert rows.index.isin(factuals.index).all()
    assert len(rows) > 0.9 * len(factuals)
    assert wanted(rows).all()
    assert (rows[FIXED] == factuals.loc[rows.index, FIXED]).all(axis=None)
    for column in X.columns:
        assert rows[column].isin(X[column]).all()
    assert list(seconds) == ["fit", "generate", "select"]


def test_plain_selects_fewest_changes_then_nearest():
    # every training row with the wanted decision has a = 1, so the trees can draw b = 0, 1 or 2 beside it
    X = pd.DataFrame({"a": [0.0] * 30 + [1.0] * 30, "b": [0.0, 1.0, 2.0] * 20})
    factuals = pd.DataFrame({"a": [0.0], "b": [1.0]}, index=["ann"])
    rows, _ = plain.explain(
        X, factuals, wanted=lambda d: d["a"].to_numpy() > 0, fixed=[], categorical=[], n_samples=200
    )
    assert rows.loc["ann"].tolist() == [1.0, 1.0]


def test_plain_and_mcce_agree_in_distribution(found_by_plain):
    """Paired over factuals with individual draws; two-sided z tests at the level 0.001 each, seeds fixed."""
    X, factuals, rows, _ = found_by_plain
    explainer = mcce.MCCE(
        score, decision=DECISION, fixed=FIXED, kinds=dict.fromkeys(CATEGORICAL, "categorical"), random_state=1
    ).fit(X)
    found = explainer.explain(factuals, n_samples=50, independent=True).frame.droplevel("rank")
    both = rows.index.intersection(found.index)
    assert len(both) > 0.9 * len(factuals)
    for measure in (sparsity, gower_sum):
        difference = measure(found.loc[both], factuals, X) - measure(rows.loc[both], factuals, X)
        z = difference.mean() / (difference.std() / np.sqrt(len(both)))
        assert abs(z) < 3.29, (measure.__name__, z)


def sparsity(rows, factuals, X):
    return (rows != factuals.loc[rows.index]).sum(axis=1)


def gower_sum(rows, factuals, X):
    return ((rows - factuals.loc[rows.index]).abs() / (X.max() - X.min())).sum(axis=1)


@pytest.mark.parametrize("name", ["german", "fico"])
def test_standin_has_the_shape_it_documents(name):
    n, share, fixed, columns = standins.SHAPES[name]
    data = standins.load_standin(name)
    assert data.X.shape == (n, len(columns.split()))
    assert data.wanted.mean() == pytest.approx(share, abs=0.005)
    assert len(data.fixed) == len(fixed)
    for column, shape in zip(data.X.columns, columns.split()):
        distinct, most_frequent = shape[1:].split(":")
        assert data.X[column].nunique() <= int(distinct)
        share = data.X[column].value_counts(normalize=True).iloc[0]
        assert share >= float(most_frequent) - 0.06
        assert (data.X[column].dtype == "category") == (shape[0] == "c")


@pytest.mark.slow
def test_codes_and_frames_round_trip():
    problem = settings.make_problem(
        settings.Setting("t", "t", "german", "mlp", 5, 10, binarised=False, n_train=200), None
    )
    assert problem.standin
    pd.testing.assert_frame_equal(problem.decode(problem.encode(problem.X)), problem.X)


@pytest.mark.nightly
def test_quick_run_on_a_standin(tmp_path, capsys):
    out = tmp_path / "speed.md"
    assert speed.main(["--quick", "--only", "german", "--data", str(tmp_path), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "STAND-IN" in printed
    assert max(map(len, printed.splitlines())) <= 120
    assert "| mcce |" in out.read_text()
    (result,) = json.loads(out.with_suffix(".json").read_text())["settings"]
    assert result["standin"]
    for method in ("plain", "mcce"):
        one = result[method]
        assert (one["violations"], one["success"]) == (0, 1.0)
        assert 0 < one["explained"] <= result["n_factuals"]
        assert one["peak_mb"] > 50
    assert result["plain"]["queried_per_factual"] == result["n_samples"]
    assert result["ratio"] == pytest.approx(result["plain"]["seconds"]["total"] / result["mcce"]["seconds"]["total"])


def test_unknown_names_raise(capsys):
    with pytest.raises(SystemExit):
        speed.main(["--only", "adlut"])
    assert "there are adult" in capsys.readouterr().err


@pytest.mark.slow
def test_failed_worker_is_reported(tmp_path):
    workers = speed.Workers(quick=True, folder=None, cache=tmp_path / "absent")
    result = workers.setting("german")
    assert "exit code 1" in result["failed"]


@pytest.mark.nightly
def test_quick_run_of_samplers_on_a_standin(tmp_path, capsys):
    out = tmp_path / "results" / "samplers.md"
    arguments = ["--quick", "--only", "german", "--samplers", "cart,arf", "--data", str(tmp_path)]
    assert samplers.main([*arguments, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "STAND-IN" in printed
    assert max(map(len, printed.splitlines())) <= 120
    assert "| cart |" in out.read_text()
    (result,) = json.loads(out.with_suffix(".json").read_text())["data"]
    assert result["standin"]
    assert [one["sampler"] for one in result["samplers"]] == ["cart", "arf"]
    for one in result["samplers"]:
        assert one["success"] == 1.0
        assert 0 < one["explained"] <= result["n_factuals"]
        assert min(one["fit"], one["draw"], one["L0"], one["gower_sum"]) > 0
        assert len(one["new"]["accuracies"]) == len(one["seen"]["accuracies"]) == 2
        assert 0 < one["explained_new"] <= result["n_factuals"]
        assert one["L0_rise"][0] == pytest.approx(one["L0_new"] - one["L0"]), "all were explained both ways"


@pytest.mark.slow
def test_new_factuals_are_held_out_of_the_chain():
    """Every factual is unique: if seen, its own values are drawn; if new, they cannot be."""
    X = pd.DataFrame(
        {"a": np.r_[np.zeros(40), np.arange(1.0, 11.0)], "b": np.r_[np.full(40, 5.0), np.arange(1.0, 11.0)]}
    )
    X["ok"] = np.where(np.arange(50) % 2 == 0, "yes", "no")
    problem = settings.Problem(
        X,
        X[(X["ok"] == "no") & (X["a"] > 0)],
        lambda rows: (rows["ok"] == "yes").to_numpy(float),
        mcce.Interval(0.5, 1.0),
        [],
        ["ok"],
        False,
    )
    setting = samplers_worker.make_setting("german", 300, quick=True)
    found = samplers_worker.explain(problem, setting, sampler=mcce.MarginalSampler(), random_state=1)
    assert found["explained"] == found["explained_new"] == 5
    assert found["L0_new"] == 3.0, "no other row has these values"
    assert found["L0"] < 3.0


def work_here(workers, name, what, limit):
    """Run the tasks of `Workers` in this process."""
    cache, rows = (workers.arguments[workers.arguments.index(option) + 1] for option in ("--cache", "--rows"))
    found = {}
    for step in samplers.work(name, what, folder=None, cache=Path(cache), rows=int(rows), quick=workers.quick):
        found |= json.loads(json.dumps(step))
    found.pop("next", None)
    return found


@pytest.mark.slow
def test_quick_run_of_visit_sequences(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(samplers.Workers, "_run", work_here)  # the run above starts processes
    out = tmp_path / "visit"
    assert samplers.main(["--visit", "--quick", "--only", "german", "--data", str(tmp_path), "--out", str(out)]) == 0
    assert "Trees in correlation order compared with trees in data order" in capsys.readouterr().out
    (result,) = json.loads(out.with_suffix(".json").read_text())["data"]
    (found,) = result["visit"]
    assert sorted(found["data"]["order"]) == sorted(found["correlation"]["order"])
    assert found["data"]["order"] != found["correlation"]["order"]
    assert "correlation minus data" in out.with_suffix(".md").read_text()


def test_finding_on_visit_sequences_states_its_direction():
    def one(name, differences):
        return {
            "name": name,
            "visit": [
                {"data": {"accuracies": [0.6] * 5}, "correlation": {"accuracies": [0.6 + d for d in differences]}}
            ],
        }

    better, worse = [-0.02, -0.021, -0.019, -0.02, -0.02], [0.03, 0.031, 0.029, 0.03, 0.03]
    neither = [-0.1, 0.1, 0, 0, 0]
    said = report.visit_finding({"data": [one("adult", better), one("gmc", worse), one("fico", neither)]})
    assert "more realistic on adult (-2.0 points); less realistic on gmc (+3.0 points)" in said
    assert "no clear difference on fico (+0.0 points)" in said


@pytest.mark.nightly
def test_failing_or_slow_sampler_is_reported(tmp_path):
    sizes = {"rows": 100, "quick": True, "folder": None, "cache": tmp_path}
    broken = samplers.Workers(limit=60, **sizes).run("german", "cart")  # no preparation was run
    assert "exit code 1: FileNotFoundError" in broken["failed"]
    slow = samplers.Workers(limit=0.05, **sizes).run("german", "prepare")
    assert slow["failed"] == "took longer than 0.05 s (step: start)"
    line = report.sampler({"sampler": "cart", "fit": 1.25, "failed": "took longer than 9 s (step: draw)"})
    assert "1.250" in line
    assert "FAILED: took longer than 9 s (step: draw)" in line


def test_numeric_samplers_leave_other_columns_to_parametric():
    X = pd.DataFrame({"n": [1.0, 2.0], "level": ["a", "b"]})
    assert samplers_worker.chain_samplers("pmm", X) == {"n": "pmm", "*": "parametric"}
    assert samplers_worker.chain_samplers("cart", X) == "cart"


def test_samplers_of_some_columns_leave_the_others_to_parametric():
    X = pd.DataFrame({"count": [0.0, 2.0], "amount": [1.5, 2.0], "share": [0.1, 0.2], "level": ["a", "b"]})
    modelled = {"negbin": ["count"], "gamma": ["amount", "share"], "beta": ["share"], "catall": ["level"]}
    for sampler, names in modelled.items():
        wanted = {**dict.fromkeys(names, sampler), "*": "parametric"}
        assert samplers_worker.chain_samplers(sampler, X) == wanted


def test_unknown_samplers_raise(capsys):
    with pytest.raises(SystemExit):
        samplers.main(["--samplers", "crat"])
    said = capsys.readouterr().err
    assert "--samplers names crat; there are " in said
    assert " cart," in said


def test_many_new_loans_are_distinct_refusals():
    problem = settings._new_loans(300, 200)
    assert len(problem.factuals.drop_duplicates()) == 200
    assert not problem.decision.contains(problem.score(problem.factuals)).any()
