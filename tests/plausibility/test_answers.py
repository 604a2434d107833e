"""No sparse answer breaks a relation that its factual keeps; whether it does is computed by numpy and pandas."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mcce

pytestmark = pytest.mark.slow


def bank(n=1500, seed=0):
    """Loans with a sum, two quotients, a difference of dates, an order and two columns that determine each other."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "salary": rng.lognormal(8, 0.4, n).round(),
            "other": np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(6, 0.5, n).round()),
            "rent": rng.integers(200, 1200, n),
            "months": rng.choice([12, 24, 36, 48], n),
            "amount": rng.integers(10, 200, n) * 100,
            "begin": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, n), unit="D"),
            "days": rng.integers(20, 90, n),
            "branch": rng.choice(["north", "south", "east"], n),
        }
    )
    X["income"] = X["salary"] + X["other"]
    X["monthly"] = (X["amount"] / X["months"]).round(2)
    X["burden"] = ((X["rent"] + X["monthly"]) / X["income"]).round(3)
    X["end"] = X["begin"] + pd.to_timedelta(X["days"], unit="D")
    X["code"] = X["branch"].map({"north": 1, "south": 2, "east": 3})
    return X


BANK = {
    "income": lambda X: (X["income"] - X["salary"] - X["other"]).abs() < 1e-9,
    "monthly": lambda X: (X["monthly"] - X["amount"] / X["months"]).abs() < 0.0051,
    "burden": lambda X: (X["burden"] - (X["rent"] + X["monthly"]) / X["income"]).abs() < 0.00051,
    "end": lambda X: X["end"] == X["begin"] + pd.to_timedelta(X["days"], unit="D"),
    "code": lambda X: X["code"] == X["branch"].map({"north": 1, "south": 2, "east": 3}),
}


def breaking(X, model, truth):
    """Return the share of the sparse answers that break what their factual keeps, and that of the factuals answered."""
    factuals = X[np.asarray(model(X)) < 0.5].head(40)
    found = mcce.MCCE(model, random_state=1).fit(X).explain(factuals, sparse=True, n_samples=200)
    answers = found.frame.droplevel("rank")
    broken = np.zeros(len(answers), dtype=bool)
    for holds in truth.values():
        broken |= (holds(factuals).loc[answers.index] & ~holds(answers)).to_numpy()
    return broken.mean(), len(answers) / len(factuals)


def score_of_bank(X):
    return 1.0 / (1.0 + np.exp(8.0 * (X["burden"].to_numpy() - 0.35) + 0.4 * (X["months"].to_numpy() / 12 - 3)))


@pytest.mark.parametrize("n_wrong", [0, 12])
def test_bank_table(n_wrong):
    """Also if nearly one in a hundred of the training rows breaks an equation."""
    X = bank()
    wrong = np.random.default_rng(5).choice(len(X), n_wrong, replace=False)
    X.loc[wrong, "income"] += 1000
    X.loc[wrong, "monthly"] += 7
    share, answered = breaking(X, score_of_bank, BANK)
    assert share == 0.0
    assert answered > 0.9


def logistic(X, y):
    fitted = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(X, y)
    return lambda rows: fitted.predict_proba(rows)[:, 1]


def test_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    measures = [name.removeprefix("mean ") for name in X if name.startswith("mean ")]
    truth = {
        name: lambda rows, name=name: rows[f"mean {name}"] <= rows[f"worst {name}"]
        for name in measures
        if (X[f"mean {name}"] <= X[f"worst {name}"]).mean() > 0.99
    }
    share, answered = breaking(X, logistic(X, y), truth)
    assert len(truth) >= 8
    assert share == 0.0
    assert answered > 0.9


def test_diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    friedewald = {"s2": lambda X: (X["s2"] - X["s1"] + X["s3"] + np.exp(X["s5"]) / 5).abs() < 0.051}
    share, answered = breaking(X, logistic(X, y < y.median()), friedewald)
    assert share == 0.0
    assert answered > 0.9
