"""A known value does not become missing unless this is allowed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import mcce
from tests.explainer.problem import DENIED, FIXED, TABLE
from tests.marks import nightly, nightly_rows

HOLED = [name for name in TABLE if TABLE[name].isna().any() and name not in FIXED]


def withheld(found):
    """Return the features that are missing in some counterfactual and known in its factual."""
    own = DENIED.loc[found.frame.index.get_level_values("id")]
    gone = found.frame.isna().to_numpy() & own.notna().to_numpy()
    return set(TABLE.columns[gone.any(axis=0)])


@pytest.mark.parametrize(
    ("sparse", "how"),
    [
        (False, {}),
        (True, {}),
        (False, {"diverse": True}),
        *nightly_rows((True, {"diverse": True}), (False, {"independent": True}), (True, {"independent": True})),
    ],
)
def test_known_values_never_become_missing(explainer, sparse, how):
    assert len(HOLED) > 2
    settings = {"n_samples": 60, "n_counterfactuals": 4, "sparse": sparse, **how}
    found = explainer.explain(DENIED, **settings)
    assert not withheld(found)
    assert DENIED[HOLED].isna().any().any()  # missing values may stay missing
    kept = DENIED.loc[found.frame.index.get_level_values("id")]
    assert (found.frame[HOLED].isna().to_numpy() & kept[HOLED].isna().to_numpy()).any()
    if not sparse:
        assert withheld(explainer.explain(DENIED, constraints=[mcce.allow("*", missing=True)], **settings))


def test_single_features_may_become_missing_if_allowed(explainer):
    one = HOLED[0]
    may = [mcce.allow(one, missing=True)]
    found = explainer.explain(DENIED, n_samples=60, n_counterfactuals=6, constraints=may)
    assert withheld(found) == {one}
    assert list(found.constraints.index) == [f"{one}: may become missing"]
    others = [mcce.allow("*", missing=True), mcce.allow(one, missing=False)]
    assert withheld(explainer.explain(DENIED, n_samples=60, n_counterfactuals=6, constraints=others)) == {*HOLED} - {
        one
    }


def test_factual_value_is_kept_if_hardly_any_known_value_can_be_drawn():
    """The column is missing in nearly all accepted rows: draws would be missing or rejected."""
    X = pd.DataFrame({"x": np.arange(200) / 2, "told": 5.0})
    X.loc[X["x"] >= 50, "told"] = float("nan")
    explainer = mcce.MCCE(None, decision=lambda rows: rows["x"] >= 50, random_state=1).fit(X)
    found = explainer.explain(X.iloc[:20], n_samples=50)
    assert len(found) == 20
    assert (found.frame["told"] == 5.0).all()
    assert (
        explainer.explain(X.iloc[:20], n_samples=50, constraints=[mcce.allow("*", missing=True)])
        .frame["told"]
        .isna()
        .all()
    )


@pytest.mark.parametrize("said", [[], [mcce.allow("told", direction="increase", step=5.0)]])
@pytest.mark.parametrize("sparse", [False, *nightly(True)])
def test_kept_values_do_not_depend_on_the_batch(sparse, said):
    """Regression: values of the first factual of a pool were used in the draws of all."""
    X = pd.DataFrame({"x": np.arange(200) / 2, "told": 3.0 + np.arange(200) % 7})
    X.loc[X["x"] >= 48, "told"] = float("nan")
    explainer = mcce.MCCE(None, decision=lambda rows: rows["x"] >= 50, random_state=1).fit(X)
    options = {"n_samples": 50, "sparse": sparse, "constraints": said}
    found = explainer.explain(X.iloc[:20], **options)
    assert len(found) == 20
    assert found.frame["told"].tolist() == X["told"].iloc[:20].tolist()
    for rows in (X.iloc[19::-1], X.iloc[3:4], X.iloc[7:12]):
        again = explainer.explain(rows, **options).frame
        assert_frame_equal(again, found.frame.loc[again.index.get_level_values("id")], check_exact=True)


def test_separate_steps_equal_explain(explainer):
    candidates = explainer.generate(DENIED, n_samples=40)
    found = explainer.explain(DENIED, n_samples=40)
    alone = explainer.select(candidates, DENIED)
    both = found.frame.index.intersection(alone.frame.index)  # factuals without an answer get individual draws
    assert len(both) == len(alone.frame)
    assert_frame_equal(found.frame.loc[both], alone.frame)


def test_invalid_names_raise(explainer):
    with pytest.raises(mcce.InputError, match="debts"):
        explainer.explain(DENIED, constraints=[mcce.allow("debts", missing=True)])
    with pytest.raises(mcce.InputError, match="stands for all features, for which only missing can be given"):
        explainer.explain(DENIED, constraints=[mcce.allow("*", low=0)])


def test_table_without_missing_values_gives_unchanged_draws():
    X = TABLE.dropna()
    explainer = mcce.MCCE(None, decision=lambda rows: rows["income"] > 35, fixed=FIXED, random_state=1).fit(X)
    people = X[X["income"] <= 35].iloc[:10]
    one, other = (
        explainer.explain(people, n_samples=50, constraints=[mcce.allow("*", missing=allowed)])
        for allowed in (False, True)
    )
    assert_frame_equal(one.frame, other.frame)
    assert one.run.settings == other.run.settings


@pytest.mark.parametrize("sparse", [False, True])
def test_column_without_levels_stays_missing(sparse):
    X = pd.DataFrame({"x": range(60), "empty": pd.Categorical([None] * 60)})
    explainer = mcce.MCCE(None, decision=lambda rows: rows["x"] >= 30, random_state=1).fit(X)
    found = explainer.explain(X.iloc[:5], n_samples=20, sparse=sparse)
    assert len(found) == 5
    assert found.frame["empty"].isna().all()
