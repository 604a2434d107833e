"""Contributions of changes to the decision, compared with queries of rows written by hand."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import mcce
from mcce.exceptions import InputError
from tests.marks import nightly

LOANS = mcce.datasets.load_loans(500).X
NUMBERS = LOANS.select_dtypes("number")
MODEL = RandomForestClassifier(20, max_depth=6, random_state=1).fit(NUMBERS, NUMBERS["savings"] > 12_000)
REFUSED = LOANS[~MODEL.predict(NUMBERS)].iloc[:8]


class OfNumbers:
    """A model of some columns that requires the training dtypes."""

    classes_ = np.array([False, True])

    def predict_proba(self, rows):
        assert (rows.dtypes == LOANS.dtypes).all()
        return MODEL.predict_proba(rows[NUMBERS.columns])


@pytest.fixture(scope="module")
def found():
    explainer = mcce.MCCE(OfNumbers(), fixed=["age", "sex"], random_state=1).fit(LOANS)
    return explainer.explain(REFUSED, n_samples=100, n_counterfactuals=2)


def score(row):
    return MODEL.predict_proba(pd.DataFrame([row])[NUMBERS.columns].astype(NUMBERS.dtypes))[0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, *nightly(2)])
def test_each_change_is_applied_alone_and_left_out(found, rank):
    lost = 0
    for id in found.factuals.index:
        table = found.contributions(id, rank)
        factual = REFUSED.loc[id].astype(object)
        counterfactual = found.frame.loc[(id, rank)].astype(object)
        changed = [name for name in LOANS if factual[name] != counterfactual[name]]
        assert table.index.tolist() == changed
        for name in changed:
            alone, without = factual.copy(), counterfactual.copy()
            alone[name], without[name] = counterfactual[name], factual[name]
            assert table.at[name, "alone"] == pytest.approx(score(alone))
            assert table.at[name, "without"] == pytest.approx(score(without))
            assert table.at[name, "enough"] == (score(alone) >= 0.5)
            assert table.at[name, "needed"] == (score(without) < 0.5)
            assert table.at[name, "from"] == factual[name]
            assert table.at[name, "to"] == counterfactual[name]
            lost += table.at[name, "needed"]
    assert lost > 5


def test_contributions_for_a_numeric_table():
    array = NUMBERS.to_numpy(dtype=float)
    model = RandomForestClassifier(20, max_depth=6, random_state=1).fit(array, array[:, 0] > 45)
    found = mcce.MCCE(model, random_state=1).fit(array).explain(array[~model.predict(array)][:3], n_samples=50)
    assert found.contributions(0)["needed"].any()


def test_unavailable_contributions_raise(found):
    id = found.factuals.index[0]
    with pytest.raises(InputError, match="was loaded from a file or built by hand"):
        pickle.loads(pickle.dumps(found)).contributions(id)
    with pytest.raises(InputError, match="rank"):
        found.contributions(id, rank=9)
    happy = LOANS[MODEL.predict(NUMBERS)].iloc[:1]
    explainer = mcce.MCCE(OfNumbers(), random_state=1).fit(LOANS)
    with pytest.raises(InputError, match="already has the wanted decision"):
        explainer.explain(happy, n_samples=5).contributions(happy.index[0])
