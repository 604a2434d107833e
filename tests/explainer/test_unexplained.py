"""Factuals without a counterfactual, and the reasons."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce import MCCE, InputError
from tests.explainer.problem import DENIED, SMALL, TABLE, fitted, label, score


def test_factual_with_the_wanted_decision_is_reported(explainer):
    content = TABLE[score(TABLE) > 0.5].iloc[:3]
    both = pd.concat([content, DENIED.iloc[:3]])
    found = explainer.explain(both, n_samples=300)
    assert found.unexplained.index.tolist() == content.index.tolist()
    assert set(found.unexplained["reason"]) == {"already has the wanted decision"}
    assert (found.unexplained["prediction"] == score(content)).all()
    assert found.frame.index.get_level_values("id").tolist() == DENIED.index[:3].tolist()
    nobody = explainer.explain(content)
    assert len(nobody) == 0
    assert nobody.frame.dtypes.equals(TABLE.dtypes)
    assert nobody.frame.index.names == ["id", "rank"]


def why(explainer, factual, **settings) -> str:
    found = explainer.explain(factual, **settings)
    assert len(found) == 0
    assert repr(found)
    return found.unexplained["reason"].iloc[0]


def only_a(frame):
    return ((frame["group"] == "a") & (frame["x"] > 3)).to_numpy(dtype=float)


def test_reason_no_training_row_with_these_fixed_values_is_accepted():
    explainer = MCCE(only_a, fixed=["group"], random_state=1).fit(SMALL)
    reason = why(explainer, SMALL.iloc[[4]], n_samples=50)
    assert reason == (
        "none of the 50 candidates has the wanted decision, "
        "and no training row with its fixed values (group = b) has it"
    )
    chosen = explainer.select(explainer.generate(SMALL.iloc[[4]], n_samples=5), SMALL.iloc[[4]])
    assert chosen.unexplained["reason"].iloc[0] == (
        "no candidate has the wanted decision, and no training row with its fixed values (group = b) has it"
    )


def test_reason_fixed_values_were_never_seen():
    explainer = MCCE(only_a, fixed=["group", "y"], random_state=1).fit(SMALL)
    reason = why(explainer, SMALL.iloc[[4]].assign(y=100.0), n_samples=10)
    assert reason.endswith(", and no training row has its fixed values (group = b, y = 100.0)")


def test_reason_no_draw_accepted_although_training_rows_are():
    rare = MCCE(
        lambda f: (f["x"] == 40).to_numpy(dtype=float), fixed=["group"], random_state=1, sampler="marginal"
    ).fit(SMALL)
    reason = why(rare, SMALL.iloc[[0]], n_samples=2)
    assert reason == (
        "none of the 2 candidates has the wanted decision, though training rows with its fixed values do; draw more"
    )


@pytest.mark.parametrize("fixed", [[], ["group"]])
def test_reason_without_conditioning(fixed):
    rare = MCCE(
        lambda f: (f["x"] == 40).to_numpy(dtype=float),
        fixed=fixed,
        random_state=1,
        condition_on_decision=False,
    ).fit(SMALL)
    assert why(rare, SMALL.iloc[[0]], n_samples=2) == "none of the 2 candidates has the wanted decision; draw more"


def test_reason_with_missing_fixed_values():
    table = SMALL.assign(group=SMALL["group"].where(SMALL["group"] == "a"))
    explainer = MCCE(only_a, fixed=["group"], random_state=1).fit(table)
    reason = why(explainer, table.iloc[[4]], n_samples=10)
    assert ", and no training row with its fixed values (group = " in reason


def test_no_accepted_training_row_raises():
    low, high = score(TABLE).min(), score(TABLE).max()
    with pytest.raises(InputError, match=r"no training row has the wanted decision, score from 2 to 3") as error:
        fitted(decision=(2, 3))
    assert f"the scores go from {low:.4g} to {high:.4g}" in str(error.value)
    assert "condition_on_decision=False" in str(error.value)
    with pytest.raises(InputError, match="the answers are 'denied', 'granted'"):
        fitted(label, "refused")
    found = fitted(decision=(2, 3), condition_on_decision=False).explain(DENIED.iloc[:2], n_samples=10)
    assert len(found.unexplained) == 2


@pytest.mark.slow
def test_bounds_are_named_in_the_reason():
    found = fitted().explain(DENIED, n_samples=50, max_gower=0.0)
    assert len(found) == 0
    assert found.unexplained["reason"].str.contains("has the wanted decision and lies within the bounds").all()
