"""Stability over redraws compared with brute force over explanations, and without variation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE
from mcce.diagnostics import stability
from mcce.exceptions import InputError
from tests.explainer.problem import DENIED, TABLE, differs, fitted


@pytest.fixture(scope="module")
def explainer():
    return fitted()


@pytest.mark.slow
def test_counts_match_the_explanations():
    """Rows and sets of changed features compared cell by cell; K is small: some factuals have none in some redraws."""
    explainer = fitted(condition_on_decision=False)
    s = stability(explainer, DENIED, n_seeds=4, n_samples=2)
    first = explainer.explain(DENIED, n_samples=2)
    found = [first.redrawn(r) for r in range(4)]
    some_without = False
    for id in DENIED.index:
        rows, sets, L0, gower = [], [], [], []
        for one in found:
            if id in one.unexplained.index:
                rows.append(None)
                sets.append(None)
                continue
            row = one.frame.loc[[(id, 1)]]
            changed = differs(DENIED.loc[[id]], row)[0]
            rows.append(tuple(str(v) for v in row.astype(object).iloc[0]))
            sets.append(tuple(changed))
            L0.append(changed.sum())
            gower.append(one.measures.loc[(id, 1), "gower"])
        line = s.factuals.loc[id]
        assert line["explained"] == len(L0) / 4
        assert (line["rows"], line["feature_sets"]) == (len(set(rows)), len(set(sets)))
        some_without |= 0 < len(L0) < 4
        if L0:
            assert line["L0"] == pytest.approx(np.mean(L0))
            assert line["gower"] == pytest.approx(np.mean(gower))
        if len(L0) > 1:
            assert line["L0_sd"] == pytest.approx(np.std(L0, ddof=1))
            assert line["gower_sd"] == pytest.approx(np.std(gower, ddof=1))
    assert some_without
    assert s.summary["same_row"] == (s.factuals["rows"] == 1).mean()
    assert s.summary["same_features"] == (s.factuals["feature_sets"] == 1).mean()
    always = s.factuals.index[s.factuals["explained"] == 1]
    assert s.redraws["L0"].tolist() == pytest.approx([one.measures["L0"].loc[always].mean() for one in found])


def test_single_possible_value_is_stable():
    """The only valid row for a factual is the one with flag 1 and its own group: every redraw finds it."""
    X = pd.DataFrame({"group": list("ab") * 50, "flag": np.repeat([0, 1], 50)})
    explainer = MCCE(lambda f: f["flag"].to_numpy(float), fixed=["group"], random_state=1).fit(X)
    s = stability(explainer, X, n_seeds=3, n_samples=20)
    assert len(s.factuals) == 50  # those without the wanted decision
    assert (s.summary[["same_row", "same_features", "same_L0", "L0"]] == 1).all()
    assert s.summary["se_L0"] == s.summary["se_gower"] == 0
    assert "Stability of 50 factuals over 3 redraws\nthe same row 100.0%" in repr(s)


@pytest.mark.slow
def test_more_draws_are_more_stable(explainer):
    few, many = (stability(explainer, DENIED, n_seeds=4, n_samples=n) for n in (20, 2000))
    assert many.summary["same_L0"] > few.summary["same_L0"]
    assert many.summary["se_gower"] < few.summary["se_gower"]
    assert many.factuals["gower_sd"].mean() < few.factuals["gower_sd"].mean()


@pytest.mark.nightly
def test_errors_match_the_spread_over_redraws(explainer):
    """Many redraws: the spread of the mean itself, and from pools, agree within 30 per cent."""
    s = stability(explainer, DENIED, n_seeds=40, n_samples=50)
    assert s.summary["se_gower"] == pytest.approx(s.redraws["gower"].std(), rel=0.3)
    own = stability(explainer, DENIED, n_seeds=40, n_samples=50, independent=True)
    assert own.summary["se_gower"] == pytest.approx(own.redraws["gower"].std(), rel=0.3)
    apart = own.factuals["gower_sd"]
    assert own.summary["se_gower"] == pytest.approx(np.sqrt((apart**2).sum()) / len(apart))


@pytest.mark.slow
def test_order_of_factuals_and_sparse_settings(explainer):
    one = stability(explainer, DENIED.iloc[:10], n_seeds=2, n_samples=50, sparse=True)
    two = stability(explainer, DENIED.iloc[:10][::-1], n_seeds=2, n_samples=50, sparse=True)
    pd.testing.assert_frame_equal(one.factuals, two.factuals.loc[one.factuals.index], check_exact=True)
    assert one.settings["sparse"] is True
    assert one.settings["n_seeds"] == 2


@pytest.mark.slow
def test_no_factuals_to_explain(explainer):
    happy = TABLE.drop(explainer.explain(TABLE, n_samples=5).draws.loc[lambda d: d > 0].index)
    s = stability(explainer, happy, n_seeds=2, n_samples=5)
    assert len(s.factuals) == 0
    assert s.summary.isna().all()


def test_invalid_settings_raise(explainer):
    with pytest.raises(InputError, match="n_seeds is 1; it must be a whole number of at least 2"):
        stability(explainer, DENIED, n_seeds=1)
    with pytest.raises(
        InputError, match="compares the best counterfactual of each factual; leave n_counterfactuals out"
    ):
        stability(explainer, DENIED, n_counterfactuals=3)
