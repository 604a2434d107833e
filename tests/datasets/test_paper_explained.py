"""The paper's data sets: valid counterfactuals, as near as those of the plain method.

The plain method is `benchmarks.plain`: scikit-learn's trees, a query for every candidate, no code of the package.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

from benchmarks import plain
from mcce import MCCE, gower_distance
from mcce.datasets import load_adult, load_fico, load_german
from tests.datasets.paper_data import paper_folder

DRAWS = 300


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread: OpenMP threads that wait for a busy core make small models slow."""
    with threadpool_limits(1):
        yield


def explain_both_ways(X, wanted_of, factuals, fixed, coded):
    """Explain with the package and with the plain method; return both results with their measures."""
    explainer = MCCE(None, decision=wanted_of, fixed=fixed, random_state=1).fit(X)
    ours = explainer.explain(factuals, n_samples=DRAWS)
    theirs, _ = plain.explain(
        X.astype(float),
        factuals.astype(float),
        wanted=lambda f: wanted_of(f.astype(X.dtypes.to_dict())),
        fixed=fixed,
        categorical=coded,
        n_samples=DRAWS,
    )
    beside = factuals.loc[theirs.index].astype(float)
    figures = pd.DataFrame(
        {
            "L0": (theirs != beside).sum(axis=1),
            "gower_sum": X.shape[1] * gower_distance(theirs, beside, training=X.astype(float)),
        }
    )
    return ours, figures


def check_quality(ours, theirs, X, wanted_of, factuals, fixed):
    ids = ours.frame.index.get_level_values("id")
    assert ids.tolist() == factuals.index.tolist()  # all are explained
    assert len(ours.unexplained) == 0
    assert wanted_of(ours.frame).all()  # success 1
    assert (ours.frame[fixed].to_numpy() == factuals[fixed].to_numpy()).all()  # violations 0
    assert ours.frame.dtypes.equals(X.dtypes)
    for name in ("L0", "gower_sum"):
        mine, other = ours.measures.droplevel("rank")[name].align(theirs[name], join="inner")
        assert len(mine) > 0.95 * len(factuals)
        # four standard errors of the paired differences, plus a tolerance for ties in two tree engines
        difference = mine - other
        error = difference.std() / np.sqrt(len(difference))
        assert abs(difference.mean()) < 4 * error + 0.02 * other.mean()


@pytest.mark.slow
def test_german():
    data = load_german(paper_folder("german"), binarise=True)
    X, fixed = data.X, data.fixed
    model = RandomForestClassifier(60, min_samples_leaf=3, random_state=0).fit(X, data.wanted)

    def wanted_of(frame):
        return model.predict_proba(frame)[:, 1] > 0.7

    factuals = X[~wanted_of(X)].iloc[:200]
    assert len(factuals) == 200
    coded = [name for name in X if X[name].nunique() == 2]
    ours, theirs = explain_both_ways(X, wanted_of, factuals, fixed, coded)
    check_quality(ours, theirs, X, wanted_of, factuals, fixed)


@pytest.mark.slow
def test_german_with_all_its_levels():
    """No factual is dropped and no level lost if the categorical features are not coded as 0 and 1."""
    data = load_german(paper_folder("german"))
    model = HistGradientBoostingClassifier(max_iter=12, random_state=0, categorical_features="from_dtype").fit(
        data.X, data.y
    )
    bad = data.X[model.predict(data.X) == "bad"].iloc[:200]
    found = MCCE(model, decision="good", fixed=["age", "personal_status_sex"], random_state=1).fit(data.X).explain(bad)
    assert len(found) == len(bad) > 100
    assert (model.predict(found.frame) == "good").all()
    assert (
        found.frame[["age", "personal_status_sex"]].to_numpy() == bad[["age", "personal_status_sex"]].to_numpy()
    ).all()
    assert found.measures["L0"].mean() < 8


def test_adult():
    data = load_adult(paper_folder("adult"), binarise=True)
    rows = np.random.default_rng(0).choice(len(data.X), 6000, replace=False)
    X, y = data.X.iloc[rows], data.wanted[rows]
    model = HistGradientBoostingClassifier(max_iter=15, random_state=0).fit(X, y)

    def wanted_of(frame):
        return model.predict_proba(frame)[:, 1] >= 0.5

    common = X.groupby(data.fixed)[data.fixed[0]].transform("size") > 30  # few donors at low and high ages
    factuals = X[~wanted_of(X) & common & (X["age"] > 25)].iloc[:150]
    coded = [name for name in X if X[name].nunique() == 2]
    ours, theirs = explain_both_ways(X, wanted_of, factuals, data.fixed, coded)
    check_quality(ours, theirs, X, wanted_of, factuals, data.fixed)


@pytest.mark.slow
def test_fico_rows_without_a_record_are_reported():
    """ExternalRiskEstimate = -9 means no record; if the model rejects all such rows, no counterfactual exists."""
    data = load_fico(paper_folder("fico"))
    no_record = (data.X["ExternalRiskEstimate"] == -9).to_numpy()
    assert no_record.sum() > 500
    model = HistGradientBoostingClassifier(max_iter=12, random_state=0, categorical_features="from_dtype").fit(
        data.X, data.wanted
    )

    def wanted_of(frame):
        return (model.predict_proba(frame)[:, 1] >= 0.5) & (frame["ExternalRiskEstimate"] != -9).to_numpy()

    factuals = pd.concat([data.X[no_record].iloc[:5], data.X[~no_record & ~wanted_of(data.X)].iloc[:40]])
    found = (
        MCCE(None, decision=wanted_of, fixed=data.fixed, random_state=1).fit(data.X).explain(factuals, n_samples=DRAWS)
    )
    unexplained = found.unexplained.loc[factuals.index[:5], "reason"]
    assert set(unexplained) == {
        f"none of the {DRAWS} candidates has the wanted decision, and no training row with its fixed values "
        "(ExternalRiskEstimate = -9) has it"
    }
    explained = found.frame.index.get_level_values("id")
    assert not set(explained) & set(factuals.index[:5])
    assert len(explained) + len(found.unexplained) == len(factuals)
    assert len(explained) > 35
    assert wanted_of(found.frame).all()
