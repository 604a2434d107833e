"""The benchmark of quality scores correctly, its walk is greedy, and it runs on the loans."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mcce
from benchmarks import judging, quality, walk
from benchmarks.paper import peers
from benchmarks.paper.options import Options
from benchmarks.settings import Problem, Setting, make_problem
from mcce.plausibility.stop_reasons import RuleColumn, StopRules, Usual
from tests.marks import nightly

LEVELS = ["flat", "house", "tent"]


def table(n=120, seed=3):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 24, n),
            "salary": rng.integers(0, 40, n),
            "home": pd.Categorical(rng.choice(LEVELS, n), categories=LEVELS),
            "savings": rng.integers(0, 12, n).astype(float),
        }
    )


def score(rows):
    salary, savings = rows["salary"].to_numpy(), rows["savings"].to_numpy()
    return salary / 40 + (rows["home"] == "house").to_numpy() / 3 + savings * (rows["age"].to_numpy() > 20) / 30


def make(X, n_factuals=25):
    decision = mcce.Interval(0.9, np.inf)
    factuals = X[~decision.contains(score(X))].iloc[:n_factuals]
    return Problem(X, factuals, score, decision, ["age"], ["home"], False)


def steps(a, b, X):
    """Range-scaled differences of two rows, by hand."""
    out = []
    for name in X.columns:
        if name == "home":
            out.append(float(a[name] != b[name]))
        else:
            out.append(abs(a[name] - b[name]) / (X[name].max() - X[name].min()))
    return np.array(out)


def walk_by_hand(problem, held):
    """One factual and one feature at a time."""
    X, found = problem.X, {}
    wanted = X[problem.decision.contains(score(X))]
    for label, factual in problem.factuals.iterrows():
        pool = wanted[wanted["age"] == factual["age"]] if held else wanted
        if pool.empty:
            continue
        goal = pool.loc[min(pool.index, key=lambda i: steps(factual, pool.loc[i], X).sum())]
        now = factual.copy()
        while True:
            tries = []
            for name in X.columns[[now[c] != goal[c] for c in X.columns]]:
                one = now.copy()
                one[name] = goal[name]
                tries.append((score(pd.DataFrame([one]))[0], one))
            best, now = max(tries, key=lambda pair: pair[0])
            if best >= 0.9:
                break
        found[label] = now
    return pd.DataFrame(found).T


@pytest.mark.parametrize("held", [True, *nightly(False)])
def test_walk_is_greedy(held):
    X = table()
    X = X[(X["age"] != 22) | (score(X) < 0.9)].reset_index(drop=True)  # no row of age 22 has the wanted decision
    problem = make(X)
    assert (problem.factuals["age"] == 22).any()
    run = walk.run_walk(problem, held=held)
    expected = walk_by_hand(problem, held)
    assert run.rows.index.tolist() == expected.index.tolist()
    got = problem.decode(run.rows)
    for name in X.columns:
        assert got[name].astype(object).tolist() == expected[name].tolist(), name
    changed = (got["age"] != problem.factuals.loc[got.index, "age"]).sum()
    assert (len(got) < len(problem.factuals), changed == 0) == ((True, True) if held else (False, False))
    assert run.queried > len(run.rows)


def test_restricted_walk_uses_no_values_with_a_reason():
    X = table()
    problem = make(X)
    columns = [RuleColumn(name, name != "home", name != "home", {}) for name in X.columns]
    usual = Usual(directions={"savings": -1}, spreads={"savings": 10.0}, unchangeable={"salary": "a fact"})
    rules = StopRules(columns, usual, {})
    rows = problem.decode(walk.run_walk(problem, held=True, rules=rules).rows)
    own = problem.factuals.loc[rows.index]
    assert 0 < len(rows) < len(problem.factuals)
    assert (rows[["age", "salary"]] == own[["age", "salary"]]).all(axis=None)
    assert (rows["savings"] <= own["savings"]).all()
    assert (score(rows) >= 0.9).all()
    reachable = score(problem.factuals.assign(home="house")) >= 0.9
    assert set(rows.index) == set(problem.factuals.index[reachable])


def test_held_and_free_walk_agree_without_fixed_features():
    problem = replace(make(table()), fixed=[])
    held, free = (walk.run_walk(problem, held=held).rows for held in (True, False))
    pd.testing.assert_frame_equal(held, free)


@pytest.mark.slow
@pytest.mark.parametrize("seen", [pytest.param(True, marks=pytest.mark.nightly), False], ids=["training", "held out"])
def test_scores_of_rows_match_hand_calculation(seen):
    X = table()
    X.loc[len(X)] = X.loc[0]  # a row equal to the first
    whole = make(X)
    problem = whole if seen else replace(whole, X=X.drop(index=whole.factuals.index))
    factuals = problem.factuals
    others = X.iloc[np.random.default_rng(0).permutation(len(X))[: len(factuals)]].set_axis(factuals.index)
    rows = factuals.assign(home=others["home"], savings=others["savings"])
    rows.loc[rows.index[:3], "age"] = others["age"].iloc[:3]
    rows.iloc[5] = factuals.iloc[5]
    figures = judging.Judge(problem).judge(problem.encode(rows))
    wanted = score(problem.X) >= 0.9
    for label in factuals.index[:6]:
        row, factual = rows.loc[label], factuals.loc[label]
        step = steps(row, factual, problem.X)
        assert figures.loc[label, "L0"] == (step > 0).sum()
        assert figures.loc[label, "L1"] == pytest.approx(step.sum())
        assert figures.loc[label, "violations"] == (row["age"] != factual["age"])
        assert figures.loc[label, "success"] == (score(pd.DataFrame([row]))[0] >= 0.9)
        others_than_it = problem.X.drop(index=label, errors="ignore")
        distances = np.sort([steps(row, other, problem.X).sum() for _, other in others_than_it.iterrows()])
        assert figures.loc[label, "near"] == pytest.approx(distances[0], abs=1e-12)
        assert figures.loc[label, "near5"] == pytest.approx(distances[:5].mean(), abs=1e-12)
        best = np.sort([steps(row, other, problem.X).sum() for _, other in problem.X[wanted].iterrows()])
        assert figures.loc[label, "near wanted"] == pytest.approx(best[0], abs=1e-12)
        assert figures.loc[label, "near5 wanted"] == pytest.approx(best[:5].mean(), abs=1e-12)
    assert figures["plausibility"].between(0, 1).all()
    assert figures["L0"].iloc[5] == 0


def found(method, figures, floor=None):
    return quality.Found(method, quality.Run({"total": 1.0}, figures, 0), figures, 9, floor)


def test_comparison_uses_factuals_that_both_methods_explain():
    def figures(values, index):
        return pd.DataFrame(dict.fromkeys(quality.GAPS, values), index=index).assign(refits=0.5)

    held = found(quality.HELD, figures([1.0, 3.0], ["ann", "bob"]))
    better = found("sparse", figures([2.0, 2.0, 90.0], ["ann", "bob", "cy"]), 0.05)  # the walk does not explain cy
    worse = found("sparse", figures([1.5, 3.5], ["ann", "bob"]), 0.25)
    fewer = found("sparse", figures([1.0, 3.0], ["ann", "bob"]).assign(refits=0.25), 0.5)
    lines, said = quality.compare([better, worse, fewer, held])
    level = "+0.000 (0.000)"
    assert lines[0] == ["0.05", "2", *4 * ["+0.000 (1.000)"], level]
    assert lines[1] == ["0.25", "2", *4 * ["+0.500 (0.000)"], level]
    assert lines[2] == ["0.5", "2", *4 * [level], "-0.250 (0.000)"]
    assert said.endswith("two standard errors: at the floor(s) 0.05.")
    assert quality.compare([worse, held])[1].endswith("at none of these floors.")


def network():
    return make_problem(Setting("t", "t", "german", "mlp", 6, 10, n_train=200), None)


@pytest.mark.slow
def test_peers_are_run_on_the_model_and_judged(monkeypatch):
    problem = network()
    copied = problem.encode(problem.X[problem.decision.contains(problem.score(problem.X))]).iloc[0].tolist()

    def answer(folder, method, options):
        if method != "nice":
            return [], "ModuleNotFoundError: No module named 'dice_ml'"
        read = np.load(folder / "problem.npz")
        assert read["y"].tolist() == problem.decision.contains(problem.score(problem.X)).tolist()
        lines = [{"place": k, "row": copied, "why": None, "seconds": 0.5} for k in range(2)]
        return [{"prepared": 1.0, "version": "NICEx 9"}, *lines], ""

    monkeypatch.setattr(peers, "run_peer", answer)
    options = Options(peers=("nice", "dice-random", "dice-kdtree"), peers_factuals=3)
    nice, versions, absent = quality.run_peers(problem, options)
    assert nice.cells[:2] == ["NICEx", "2/2"]
    assert versions.startswith("NICEx 9; each peer has")
    assert nice.cells[-1] == "2.00"
    assert (nice.figures["near wanted"] == 0).all()
    assert nice.figures["success"].all()
    assert absent.startswith("Not installed: DiCE, random; DiCE, kdtree.\n")
    assert "pip install dice-ml NICEx" in absent


def test_peers_are_not_run_on_other_models():
    logistic = make_problem(Setting("t", "t", "german", "logistic", 6, 10, n_train=200), None)
    (why,) = quality.run_peers(logistic, Options(peers=("nice",)))
    assert why.startswith("NICEx and DiCE are run for networks on numbers only")
    assert list(quality.run_peers(logistic, Options(peers=()))) == []


@pytest.mark.parametrize("model", ["boosting", "logistic", *nightly("mlp", "forest")])
def test_models_accept_the_loans_with_their_levels(model):
    problem = make_problem(Setting("t", "t", "loans", model, 5, 10, binarised=False, n_train=300), None)
    scores = problem.score(problem.X)
    assert len(problem.factuals) == 5
    assert (scores >= 0).all()
    assert (scores <= 1).all()
    assert not problem.decision.contains(problem.score(problem.factuals)).any()
    assert "housing" in problem.categorical


@pytest.mark.nightly
def test_quick_run_on_the_loans(tmp_path, capsys):
    out = tmp_path / "results" / "quality.md"
    quality.main(["--quick", "--only", "loans", "--floors", "0,0.25", "--models", "boosting", "--out", str(out)])
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 120
    tables = re.split(r"\n\n(?=loans)", said)[1:]
    assert [re.search(r"8 factuals (.*) \(n", one)[1] for one in tables] == ["among the training rows", "held out"]
    for one in tables:
        lines = {re.split(r"\s\s+", line)[0]: re.split(r"\s\s+", line) for line in one.splitlines()}
        for method in ("plain", "mcce", "sparse, floor 0", "sparse, floor 0.25"):
            explained, changes, _, violations, success = lines[method][1:6]
            assert (violations, success) == ("0", "1.000")
            assert explained == "8/8"
            assert float(changes) >= 1
        assert float(lines["sparse, floor 0"][2]) <= float(lines["mcce"][2])
        assert lines["plain"][-2] == "50.0"
        assert {"walk, held", "walk, free"} <= set(lines)
        assert lines["factuals"][2:4] == ["0.000", "0.000"]
    page = out.read_text()
    assert "mcce 0" in page
    assert "| sparse, floor 0.25 | 8/8 |" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "adlut"], "--only names adlut; there are adult"),
        (["--models", "svm"], "--models names svm; there are mlp"),
        (["--sources", ""], "--sources names nothing; there are training, held-out"),
        (["--floors", "0.05,two"], "--floors is '0.05,two'; give numbers from 0 to below 1"),
        (["--floors", "5"], "--floors is '5'; give numbers from 0 to below 1"),
        (["--peers", "carla"], "--peers names carla; there are nice"),
    ],
)
def test_invalid_arguments_raise(arguments, message, capsys):
    with pytest.raises(SystemExit):
        quality.main(arguments)
    assert message in capsys.readouterr().err
