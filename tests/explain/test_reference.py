"""Warnings about factuals far from the training rows; the included data sets do not warn."""

import warnings

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.explain import reference
from mcce.plausibility.stop_reasons import Edge
from mcce.table import Schema
from mcce.table.weights import quantiles
from tests.datasets.paper_data import PAPER, paper_folder
from tests.marks import nightly_but

N = 400


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(4)
    sex = rng.choice(["f", "m"], N)
    pregnant = (sex == "f") & (rng.random(N) < 0.2)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, N),
            "sex": pd.Categorical(sex, categories=["f", "m", "x"]),
            "pregnant": pregnant,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 100, N), "D"),
            "income": rng.normal(40, 5, N).round(1),
        }
    )


@pytest.fixture(scope="module")
def explainer(people):
    fixed = ["age", "sex", "pregnant"]
    return mcce.MCCE(lambda rows: rows["income"] > 45, decision=True, fixed=fixed, random_state=1).fit(people)


def said_of(explainer, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explainer.explain(X, n_samples=20)
    assert {w.filename for w in caught} <= {__file__}
    return [str(w.message) for w in caught]


def test_ordinary_factuals_do_not_warn(explainer, people):
    assert said_of(explainer, people) == []
    assert said_of(explainer, people.assign(age=people["age"].max() + 5)) == [], "not far"
    assert said_of(explainer, people.head(0)) == []


def test_out_of_range_factual_is_named_with_the_training_range(explainer, people):
    X = people.head(3).set_axis(["a", "b", "c"])
    X.loc["b", "age"] = 130
    low, high = people["age"].min(), people["age"].max()
    (said,) = said_of(explainer, X)
    assert said.startswith(
        f"X has a row far outside the training data: 'b' (age 130, in training {low} to {high}). Neither the model"
    )
    X.loc["c", "since"] = pd.Timestamp("1999-01-01")
    X.loc["b", "income"] = -400.0
    (said,) = said_of(explainer, X)
    assert said.startswith("X has 2 rows far outside the training data: 'b' (age 130, ")
    assert "income -400.0, in training" in said
    assert "'c' (since 1999-01-01 00:00:00, in training 2020-01-01" in said


def test_next_value_of_a_long_tail_does_not_warn():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {"loan": np.exp(rng.normal(10, 0.8, 2000)).round(-2), "age": rng.normal(45, 13, 2000).clip(18, 90)}
    )
    explainer = mcce.MCCE(lambda rows: rows["loan"] < 9000, decision=True, random_state=1).fit(X)
    higher = 1.4 * X["loan"].max()
    assert higher - X["loan"].max() > 0.2 * (X["loan"].max() - X["loan"].min())
    one = X.head(1)
    assert said_of(explainer, one.assign(loan=higher)) == []
    assert "loan" in said_of(explainer, one.assign(loan=4 * X["loan"].max()))[0]
    assert "age 130.0" in said_of(explainer, one.assign(age=130.0))[0], "as much more than the oldest, but no long tail"


def test_unseen_fixed_values_are_named(explainer, people):
    one = people[people["sex"] == "m"].head(1).set_axis(["a"])
    (said,) = said_of(explainer, one.assign(sex=pd.Categorical(["x"], categories=["f", "m", "x"])))
    assert said.startswith("X has a row with fixed values that no training row has: 'a' (sex 'x'). Their draws")
    (said,) = said_of(explainer, one.assign(pregnant=True))
    assert "'a' (sex 'm' with pregnant True)" in said
    assert "check the values, or fix fewer features" in said


def test_pair_of_rare_levels_does_not_warn():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.integers(0, 30, N).astype(str), "b": rng.integers(0, 30, N).astype(str)})
    X["c"] = rng.normal(size=N)
    explainer = mcce.MCCE(lambda rows: rows["c"] > 0, decision=True, fixed=["a", "b"], random_state=1).fit(X)
    new = X.assign(b=rng.permutation(X["b"]))  # most pairs are new, and no pair is expected five times
    assert said_of(explainer, new) == []


def test_many_rows_are_counted(explainer, people):
    (said,) = said_of(explainer, people.assign(age=140).head(30))
    assert said.startswith("X has 30 rows far outside")
    assert said.count("age 140") == 5
    assert " and 25 more. " in said


# correct warnings for the data sets, trained on three quarters of each
KNOWN = {
    "loans": ["unchangeable facts may change: 'defaulted_last_year' (a past event). Name"],
    "adult": [
        "'native-country': 'Holand-Netherlands'",
        "1 soft relation between columns found",  # occupation and workclass are unknown together
        "'marital-status' (a fact of the person), 'race' (a fact",
    ],
    "gmc": [
        "1 relation between columns found",
        "'NumberOfTime30-59DaysPastDueNotWorse' (a past event), 'NumberOfTimes90DaysLate' (a past event)",
    ],
    "german": ["'credit_history' (a past event)"],
    "fico": [
        "5 relations between columns found",  # accounts with high utilisation are a subset of those with a balance
        "3 soft relations between columns found",  # among them AverageMInFile <= MSinceOldestTradeOpen
        "'MSinceOldestTradeOpen' (a past event)",
        "MSinceMostRecentTradeOpen 383, in training -9 to 227",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but(list(KNOWN), "loans", "german"))
def test_included_data_sets_warn_only_where_expected(name):
    data = mcce.datasets.load_loans() if name == "loans" else PAPER[name](paper_folder(name))
    cut = len(data.X) * 3 // 4
    first = next(name for name in data.X if name not in data.fixed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explainer = mcce.MCCE(
            lambda rows: rows[first] == data.X[first].iloc[0], decision=True, fixed=data.fixed, random_state=1
        )
        explainer.fit(data.X.iloc[:cut]).explain(data.X.iloc[cut:], n_samples=2)
    assert len(caught) == len(KNOWN[name]), [str(w.message) for w in caught]
    assert all(words in str(w.message) for words, w in zip(KNOWN[name], caught))


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_are_the_quantiles_of_each_group_and_read_once_for_all_columns(weighted, monkeypatch):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(N, 70)).round(2)).rename(columns="x{}".format)
    frame.loc[::7, "x1"] = np.nan
    frame["kind"] = pd.Categorical(rng.choice(["a", "b", "rare"], N, p=[0.5, 0.45, 0.05]))
    schema = Schema.from_data(frame)
    matrix = schema.encode(frame, "X").matrix
    weights = rng.integers(1, 4, N).astype(float) if weighted else None
    calls = []
    monkeypatch.setattr(reference, "quantiles", lambda *args: calls.append(1) or quantiles(*args))
    edges = reference._edges(matrix, schema.features, range(70), weights, {*range(70)})
    found = [Edge._make(edge) for edge in edges]
    assert len(calls) == 70 + 2 + 2 * 2, "one of each column, of each quartile, two of each frequent level"
    assert [(edge.feature, edge.level) for edge in found] == [
        (f"x{j}", level) for j in range(70) for level in (None, "a", "b")
    ]
    for edge in found:
        filled = frame[edge.feature].fillna(frame[edge.feature].min() - 1.0)
        column = frame[edge.feature].dropna() if edge.level is None else filled[frame["kind"] == edge.level]
        if weighted:
            column = column.repeat(pd.Series(weights.astype(int))[column.index])
            filled = filled.repeat(weights.astype(int))
        assert [edge.low, edge.high] == pytest.approx(np.quantile(column, [0.01, 0.99]), abs=1e-12)
        assert edge.contradicts == (edge.level is not None and edge.high < np.quantile(filled, 0.75))


def test_low_and_high_levels_contradict_numbers_beyond_one_edge_and_fixed_numbers_have_no_other_edges():
    rng = np.random.default_rng(4)
    age = rng.integers(18, 80, 1500)
    work = np.select([age < 26, age > 70], ["student", "retired"], "employed")
    frame = pd.DataFrame({"age": age, "salary": rng.normal(size=1500).round(3), "work": pd.Categorical(work)})
    schema = Schema.from_data(frame)
    matrix = schema.encode(frame, "X").matrix
    edges = [Edge._make(edge) for edge in reference._edges(matrix, schema.features, [0, 1], None, {1})]
    of_age = {edge.level: (edge.low, edge.high) for edge in edges if edge.feature == "age"}
    assert of_age == {"retired": (71.0, np.inf), "student": (-np.inf, 25.0)}
    of_salary = [(edge.level, edge.contradicts) for edge in edges if edge.feature == "salary"]
    assert of_salary == [(level, False) for level in (None, "employed", "retired", "student")]


def test_usual_factors_are_those_of_the_most_similar_accepted_rows():
    rng = np.random.default_rng(3)
    size = 300
    loan = np.exp(rng.normal(9.0, 0.6, size)).round(-2) + 100
    frame = pd.DataFrame(
        {
            "loan": loan,
            "salary": np.exp(rng.normal(10.0, 0.4, size)).round(-2),
            "kind": pd.Categorical(rng.choice(["a", "b"], size)),
            "code": rng.integers(1, 4, size),
            "rarely": np.where(rng.random(size) < 0.02, 7.5, 0.0),
        }
    )
    explainer = mcce.MCCE(lambda rows: rows["loan"] < 0.35 * rows["salary"], decision=True, random_state=1)
    factors = explainer.fit(frame).learned_.learn_usual().factors
    assert {*factors} == {"loan", "salary", "rarely"}
    assert factors["rarely"] == (-np.inf, np.inf), "too few pairs"

    numbers = frame[["loan", "salary", "code", "rarely"]]
    middle = numbers.quantile(0.95) - numbers.quantile(0.05)
    span = np.ptp(numbers, axis=0)
    scales = np.sqrt(span * middle.where(middle > 0.0, span))
    accepted = frame["loan"] < 0.35 * frame["salary"]
    refused = np.flatnonzero(~accepted)
    pairs = []
    for i in refused[np.unique(np.linspace(0, refused.size - 1, 256).astype(int))]:
        steps = (numbers[accepted] - numbers.loc[i]).abs() / scales
        apart = steps.sum(axis=1) + (frame.loc[accepted, "kind"] != frame.loc[i, "kind"])
        pairs += [(i, k) for k in apart.sort_values(kind="stable").index[:5]]
    ours, theirs = (frame.loc[[pair[side] for pair in pairs]].reset_index(drop=True) for side in (0, 1))
    for name in ("loan", "salary"):
        ratio = theirs[name] / ours[name]
        lower, higher = ratio[ratio < 1.0], ratio[ratio > 1.0]
        assert factors[name][0] == pytest.approx(lower.quantile(0.025) if lower.size >= 50 else -np.inf)
        assert factors[name][1] == pytest.approx(higher.quantile(0.975) if higher.size >= 50 else np.inf)
    assert np.isfinite(factors["loan"][0])
    assert np.isfinite(factors["salary"][1])


def test_directions_are_those_with_derived_columns_computed():
    rng = np.random.default_rng(4)
    size = 400
    frame = pd.DataFrame(
        {"income": rng.lognormal(8.0, 0.4, size).round(-1), "rent": rng.lognormal(6.7, 0.3, size).round(-1)}
    )
    frame["share"] = (frame["rent"] / frame["income"]).round(3)

    def score(rows):  # a higher income lowers the score, unless the share is computed from it
        return -rows["share"] - rows["income"] / 40_000

    def directions(**options):
        relations = options.pop("relations", None)
        explainer = mcce.MCCE(score, decision=(-0.3, 0), random_state=1, **options).fit(frame, relations=relations)
        return explainer.learned_.learn_usual().directions

    assert directions(relations=())["income"] == -1
    for found in (directions(), directions(derived={"share": "rent / income"})):
        assert found == {"income": 1, "rent": -1}
