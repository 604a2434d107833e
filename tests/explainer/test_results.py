"""Results of `explain`: rows, measures, settings; fixed features never change."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from mcce import MCCE, Interval, gower_distance
from tests.explainer.problem import DENIED, FIXED, SIZES, TABLE, differs, fitted, score
from tests.marks import examples

# ---------------------------------------------------------------- the result


def test_result_has_the_training_columns_and_dtypes(found):
    assert found.frame.dtypes.equals(TABLE.dtypes)
    assert found.frame.columns.equals(TABLE.columns)
    assert found.frame["size"].cat.categories.tolist() == SIZES
    assert_frame_equal(found.factuals, DENIED)


def test_result_is_indexed_by_id_and_rank(found):
    assert found.frame.index.names == ["id", "rank"]
    assert found.measures.index.equals(found.frame.index)
    assert found.measures.columns.tolist() == ["prediction", "L0", "gower", "gower_sum"]
    ids = found.frame.index.get_level_values("id")
    assert ids.unique().tolist() == [i for i in DENIED.index if i in set(ids)]  # in the order of X
    for _, ranks in found.frame.index.to_frame().groupby(level="id", sort=False)["rank"]:
        assert ranks.tolist() == list(range(1, len(ranks) + 1))
    assert set(ids) | set(found.unexplained.index) == set(DENIED.index)
    assert not set(ids) & set(found.unexplained.index)


def test_every_row_is_valid_when_the_model_is_queried_again(found):
    again = score(found.frame)
    assert ((again >= 0.5) & (again <= 1)).all()
    assert (again == found.measures["prediction"]).all()
    assert (found.factual_predictions == score(DENIED)).all()


def test_counterfactuals_of_a_factual_are_distinct_and_sorted(found):
    for _, rows in found.frame.groupby(level="id"):
        assert not rows.duplicated().any()
    for _, rows in found.measures.groupby(level="id"):
        pairs = list(zip(rows["L0"], rows["gower_sum"]))
        assert pairs == sorted(pairs)


def test_measures_match_the_returned_rows(found):
    beside = DENIED.loc[found.frame.index.get_level_values("id")]
    assert (differs(found.frame, beside).sum(axis=1) == found.measures["L0"]).all()
    np.testing.assert_allclose(gower_distance(found.frame, beside, training=TABLE), found.measures["gower"])
    np.testing.assert_allclose(found.measures["gower_sum"], found.measures["gower"] * TABLE.shape[1])


def test_values_occur_in_the_training_table(found):
    for name in TABLE:
        assert set(found.frame[name].dropna()) <= set(TABLE[name].dropna())


def test_settings_and_timings_are_reported(found):
    assert set(found.run.timings) == {"fit", "generate", "select"}
    assert found.run.settings["n_samples"] == 200
    assert found.run.settings["random_state"] == 1
    assert found.run.settings["pools"] == len(DENIED[FIXED].drop_duplicates())
    assert found.decision == "score from 0.5 to 1"
    assert found.fixed == ("age", "sex")
    assert found.ranges["since"] == (TABLE["since"].min(), TABLE["since"].max())


def test_repr_states_the_request(explainer):
    assert repr(explainer) == "MCCE(function, decision=(0.5, 1.0), fixed=['age', 'sex'], sampler='cart')"
    assert "score of class 1 at least 0 and below 1" in repr(MCCE(score, decision=Interval(0, 1, closed="left", of=1)))


def test_training_table_is_not_modified():
    before = TABLE.copy(deep=True)
    fitted().explain(DENIED, n_samples=20)
    assert_frame_equal(TABLE, before)


# ---------------------------------------------------------------- the fixed features


@examples(5)
@given(fixed=st.sets(st.sampled_from(list(TABLE)), max_size=len(TABLE.columns) - 1), seed=st.integers(0, 2**31))
def test_fixed_features_never_change(fixed, seed):
    table = TABLE.iloc[:120]
    explainer = fitted(X=table, fixed=sorted(fixed), random_state=seed)
    denied = table[score(table) < 0.5].iloc[:15]
    candidates = explainer.generate(denied, n_samples=20)
    beside = denied.loc[candidates.index.get_level_values("id")]
    names = sorted(fixed)
    assert not differs(candidates[names], beside[names]).any()
    explained = explainer.explain(denied, n_samples=20, n_counterfactuals=2)
    beside = denied.loc[explained.frame.index.get_level_values("id")]
    assert not differs(explained.frame[names], beside[names]).any()
    assert (score(explained.frame) >= 0.5).all()


@pytest.mark.parametrize("condition_on_decision", [True, False])
def test_independent_factuals_with_equal_fixed_values(condition_on_decision):
    # the fixed values and the decision, (a, c, 1), are the same numbers as the row (a, b, c) wherever b = c = 1
    table = pd.DataFrame(np.array([*itertools.product([False, True], repeat=3)] * 20), columns=["a", "b", "c"])
    settings = {"fixed": ["a", "c"], "condition_on_decision": condition_on_decision}
    explainer = fitted(lambda f: 1.0 - f["b"], X=table, **settings)
    factuals = table.iloc[:8]
    candidates = explainer.generate(factuals, n_samples=20, independent=True)
    beside = factuals.loc[candidates.index.get_level_values("id")]
    assert not differs(candidates[["a", "c"]], beside[["a", "c"]]).any()
    found = explainer.explain(factuals, n_samples=20, independent=True)
    assert (found.measures["L0"] == 1).all()
    assert found.run.settings["pools"] == 4


def test_one_pool_without_fixed_features(explainer):
    free = fitted(fixed=[])
    found = free.explain(DENIED, n_samples=100)
    assert found.run.settings["pools"] == 1
    assert len(found) == len(DENIED)
    assert found.fixed == ()
    candidates = free.generate(DENIED.iloc[:2], n_samples=50)
    assert_frame_equal(candidates.loc[DENIED.index[0]], candidates.loc[DENIED.index[1]])


def test_all_but_one_fixed():
    explainer = fitted(fixed=[c for c in TABLE if c != "income"])
    found = explainer.explain(DENIED, n_samples=100)
    assert len(found) > 0
    assert (found.measures["L0"] == 1).all()
    assert (found.changes()["feature"] == "income").all()
