"""Parts learned from training rows: each is learned once, on first use, and kept without the rows."""

import pickle

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError
from mcce.plausibility.score import Plausibility


def accepted(rows):
    return rows["a"] + rows["b"] > 1.5


@pytest.fixture
def explainer():
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 3)), columns=list("abc"))
    return mcce.MCCE(accepted, decision=True, random_state=1, n_jobs=1).fit(X)


def test_each_part_is_learned_once_on_first_use(explainer, monkeypatch):
    fit, fitted = Plausibility.fit, []
    monkeypatch.setattr(Plausibility, "fit", lambda *given: fitted.append(1) or fit(*given))
    X = explainer.learned_.training.table
    explainer.explain(X.head(10), n_samples=50)
    assert not hasattr(explainer, "plausibility_")
    for caution in (1.0, 0.0):
        explainer.explain(X.head(10), n_samples=50, sparse=True, caution=caution)
    assert len(fitted) == 1
    assert explainer.plausibility_ is explainer.learned_.caution.plausibility
    explainer.fit(X)
    assert not hasattr(explainer, "plausibility_")


def test_copy_without_training_rows_keeps_learned_parts(explainer):
    X = explainer.learned_.training.table
    before = pickle.loads(pickle.dumps(explainer))
    found = explainer.explain(X.head(10), n_samples=50, sparse=True)
    after = pickle.loads(pickle.dumps(explainer))
    assert not after.learned_.has_rows
    pd.testing.assert_frame_equal(after.explain(X.head(10), n_samples=50, sparse=True).frame, found.frame)
    with pytest.raises(InputError, match=r"training rows are not stored with an explainer.*explain once with sparse="):
        before.explain(X.head(10), n_samples=50, sparse=True)
