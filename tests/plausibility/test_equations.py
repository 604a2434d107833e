"""Equations of several columns are found with the true coefficients, also with some wrong rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import mcce
from mcce.plausibility.equations import find_candidates, shortest_between
from tests.marks import nightly, nightly_but, slow_but
from tests.plausibility.related_tables import rng


def base(n=800, seed=0):
    r = rng(seed)
    X = pd.DataFrame(
        {
            "weight": r.normal(75, 15, n).round(1),
            "height": r.normal(172, 10, n).round(),
            "a": r.integers(10, 900, n),
            "b": r.integers(5, 700, n),
            "c": r.integers(1, 300, n),
            "d": r.integers(1, 2000, n),
            "money": r.lognormal(8, 1, n).round(2),
            "x": r.normal(size=n),
            "age": r.integers(18, 90, n),
            "job": r.choice(list("uvw"), n),
            "start": pd.Timestamp("2015-01-01") + pd.to_timedelta(r.integers(0, 3000, n), unit="D"),
        }
    )
    return X.assign(end=X["start"] + pd.to_timedelta(r.integers(0, 3000, n), unit="D"))


def days(X):
    return (X["end"] - X["start"]).dt.days


def months(X):
    pairs = zip(X["end"], X["start"])
    return [12 * (e.year - s.year) + e.month - s.month - (e.day < s.day) for e, s in pairs]


FORMS = {
    "t == 10000 * weight / (height * height)": lambda X: (X["weight"] / (X["height"] / 100) ** 2).round(1),
    "t == a + b + c": lambda X: X["a"] + X["b"] + X["c"],
    "a == c + d + t - b": lambda X: X["a"] + X["b"] - X["c"] - X["d"],
    "t == 1.25 * a - 0.37 * money + 12.5": lambda X: (1.25 * X["a"] - 0.37 * X["money"] + 12.5).round(2),
    "t == 0.5 * a + 2 * age + 0.33 * b": lambda X: (0.5 * X["a"] + 0.33 * X["b"] + 2 * X["age"]).round(2),
    "t == (a + b + c) / 3": lambda X: ((X["a"] + X["b"] + X["c"]) / 3).round(1),
    "t == 100 * a / d": lambda X: (100 * X["a"] / X["d"]).round(1),
    "t == floor(100 * a / d)": lambda X: 100 * X["a"] // X["d"],
    "t == (a + b) / d": lambda X: ((X["a"] + X["b"]) / X["d"]).round(3),
    "t == 100 * (a + b) / d": lambda X: (100 * (X["a"] + X["b"]) / X["d"]).round(),
    "t == (a + b - c) / d": lambda X: ((X["a"] + X["b"] - X["c"]) / X["d"]).round(3),
    "t == a * b * c": lambda X: X["a"] * X["b"] * X["c"],
    "t == log(a / d)": lambda X: np.log(X["a"] / X["d"]).round(4),
    "t == log(a + b)": lambda X: np.log(X["a"] + X["b"]).round(4),
    "t == days(end - start)": days,
    "t == months(end - start)": months,
    "t == floor(days(end - start) / 7)": lambda X: days(X) // 7,
    "t == days(end - start) / 365.25": lambda X: (days(X) / 365.25).round(1),
}
ONE_COLUMN = {
    "t == log(money)": lambda X: np.log(X["money"]).round(4),
    "t == (a >= 500)": lambda X: X["a"] >= 500,
    "t == if(age >= 65, 'old', 'young')": lambda X: np.where(X["age"] >= 65, "old", "young"),
    "t == if(a >= 600, 0, 1)": lambda X: (X["a"] < 600).astype(int),
}
QUICK = [*FORMS, *ONE_COLUMN][::6]


@pytest.mark.parametrize("words", slow_but([*FORMS, *ONE_COLUMN], *QUICK))
def test_equations_are_found(words):
    X = base()
    X["t"] = (FORMS | ONE_COLUMN)[words](X)
    found = mcce.find_relations(X)
    assert [each.says for each in found if each.kind != "order"] == [words]
    assert not found.proposals
    (one,) = [each for each in found if each.kind != "order"]
    assert (one.rows, one.exceptions) == (800, 0)


@pytest.mark.parametrize("words", nightly_but([*FORMS, *ONE_COLUMN], *QUICK))
def test_equations_with_few_exceptions_are_proposed(words):
    X = base()
    X["t"] = (FORMS | ONE_COLUMN)[words](X)
    wrong = np.array([5, 77, 200, 411, 640, 799])
    values = X["t"].tolist()
    for k in wrong:  # the next distinct value
        values[k] = next(each for each in np.roll(values, -k).tolist() if each != values[k])
    X["t"] = pd.Series(values, dtype=X["t"].dtype)
    X = X.set_index("r" + X.index.astype(str))
    found = mcce.find_relations(X)
    assert [each.says for each in found if each.kind != "order"] == []
    assert [each.says for each in found.proposals] == [words]
    (one,) = found.proposals
    assert 1 <= one.exceptions <= 6
    assert one.rows + one.exceptions == 800
    assert set(one.first) <= {f"r{k}" for k in wrong}
    assert f"{words} (proposed, {one.kind}, {one.rows} rows, {one.exceptions} exceptions, the first: " in str(found)
    assert found.frame.query("status == 'proposed'")["relation"].tolist() == [words]


def test_more_than_one_percent_of_exceptions_is_too_many():
    X = base().assign(t=lambda X: X["a"] + X["b"] + X["c"])
    X.loc[X.index[::80], "t"] += 17
    found = mcce.find_relations(X)
    assert not found.proposals
    assert "t" not in [name for each in found for name in each.columns if each.kind != "order"]


@pytest.mark.slow
def test_identity_of_diabetes_holds_in_all_rows():
    X = load_diabetes(as_frame=True, scaled=False).frame
    assert mcce.find_relations(X).frame[["relation", "rows"]].to_numpy().tolist() == [
        ["s1 == s2 + s3 + 0.2 * exp(s5)", 442],  # Friedewald's equation; s5 is the logarithm of the triglycerides
        ["abs(s4 - s1 / s3) <= 0.53", 440],  # the quotient, rounded to a whole number in most rows
    ]
    assert ((X["s1"] - X["s2"] - X["s3"] - 0.2 * np.exp(X["s5"])).abs() < 0.5).all()


def explained(X, score, decision, n, **more):
    explainer = mcce.MCCE(score, decision=decision, random_state=1)
    with pytest.warns(mcce.exceptions.AdviceWarning):
        explainer.fit(X)
    return explainer.explain(X[score(X) < decision[0]].head(n), sparse=True, n_samples=300, **more)


@pytest.mark.slow
def test_no_answer_on_diabetes_violates_its_identity():
    X = load_diabetes(as_frame=True, scaled=False).data

    def score(rows):
        return 2 - rows["bmi"] / 25 - rows["s5"] / 5 - rows["s1"] / 400 + rows["s3"] / 200

    found = explained(X, score, (-0.2, np.inf), 40, n_counterfactuals=2)
    assert len(found) > 60
    rows = found.frame
    assert ((rows["s1"] - rows["s2"] - rows["s3"] - 0.2 * np.exp(rows["s5"])).abs() < 0.5).all()
    assert found.computed == ("s1",)
    assert "s1" not in set(found.changes()["feature"])


@pytest.mark.nightly
def test_no_answer_on_breast_cancer_violates_an_order():
    X = load_breast_cancer(as_frame=True).data

    def score(rows):
        return 3 - rows["worst perimeter"] / 60 - rows["worst concave points"] * 5 - rows["mean texture"] / 60

    found = explained(X, score, (0.1, np.inf), 40).frame
    assert len(found) == 40
    measures = {name.removeprefix("mean ") for name in X if name.startswith("mean ")}
    always = {each for each in measures if (X[f"mean {each}"] <= X[f"worst {each}"]).all()}
    assert len(always) >= 7
    for each in always:
        assert (found[f"mean {each}"] <= found[f"worst {each}"]).all(), each


@pytest.mark.slow
def test_means_are_below_worst_values_in_breast_cancer():
    X = load_breast_cancer(as_frame=True).frame
    said = {each.says for each in mcce.find_relations(X) if each.kind == "order"}
    measures = ["radius", "texture", "perimeter", "area", "compactness", "concavity", "concave points"]
    assert said >= {f"`mean {each}` <= `worst {each}`" for each in measures}
    assert {each for each in said if "mean" not in each.split("<=")[0] and "error" not in each.split("<=")[0]} == set()


@pytest.mark.parametrize("name", ["diabetes", *nightly("breast cancer", "fair", "mixed")])
def test_shuffled_columns_have_no_relation(name):
    if name == "fair":
        X = pytest.importorskip("statsmodels.api").datasets.fair.load_pandas().data
    else:
        load = {"diabetes": load_diabetes, "breast cancer": load_breast_cancer}.get(name)
        X = base() if load is None else load(as_frame=True).frame
    for seed in range(3):
        r = rng(seed)
        shuffled = pd.DataFrame({column: r.permutation(X[column].to_numpy()) for column in X})
        found = mcce.find_relations(shuffled)
        assert (len(found), found.soft, found.proposals) == (0, (), ())


def test_shortest_number_in_an_interval():
    assert shortest_between(-1, 1) == 0
    assert shortest_between(0.5, 20) == 1
    assert shortest_between(64.0001, 65) == 65
    assert shortest_between(99.98, 100.05) == 100
    assert shortest_between(0.123, 0.1239) == 0.123
    assert shortest_between(2, 1) is None
    assert shortest_between(np.nan, 1) is None


def test_candidates_from_subsets_without_wrong_rows():
    r = rng(4)
    rows = r.integers(1, 500, (300, 6)).astype(float)
    rows[:, 5] = rows[:, 0] + rows[:, 1] - rows[:, 2]
    rows[::100, 5] = 9e5
    found = find_candidates(rows, np.full(rows.shape, 0.5), [0] * 6, np.zeros(6, dtype=bool))
    texts = [each.text.format(*(f"x{j}" for j in each.inputs)) for each in found if each.target == 5]
    assert texts == ["x0 + x1 - x2"]
