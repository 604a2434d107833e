"""Principal reasons of a result: requests and errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError

ROWS = pd.DataFrame(
    {
        "age": np.repeat([30, 40, 50], 50),
        "usd": np.tile(np.arange(10, 60), 3) * 1000.0,
        "eur": np.tile(np.arange(10, 60), 3) * 900.0,
        "rent": np.tile(np.arange(1, 6), 30) * 1000.0,
        "home": pd.Categorical(np.tile(["own", "rent", "rent"], 50)),
    }
)
ROWS["burden"] = (ROWS["rent"] / ROWS["usd"]).round(3)


@pytest.fixture(scope="module")
def found() -> mcce.Counterfactuals:
    """A factual rejected for a high burden, and an accepted one."""
    explainer = mcce.MCCE(
        lambda rows: rows["burden"] < 0.1,
        decision=True,
        fixed=["age"],
        derived={"burden": "rent / usd"},
        random_state=1,
    )
    explainer.fit(ROWS, relations=[mcce.tied("usd", "eur")])
    people = ROWS.iloc[[12, 90]].set_axis(["refused", "accepted"])  # of burdens of 0.136 and 0.02
    return explainer.explain(people, n_samples=200)


def test_derived_columns_are_not_reasons(found):
    table = found.principal_reasons("refused", every=True, n_draws=200)
    assert sorted(table.index) == ["age", "eur", "home", "rent"]  # usd is a function of eur
    assert table.loc[["age", "home"], "repair"].tolist() == ["fixed", "no effect"]
    assert table.loc["eur", "repair"] == "alone"
    assert table.loc["eur", "value"] == 19_800
    listed = found.principal_reasons("refused", n=1, n_draws=200)
    assert len(listed) == 1
    assert listed["shapley"].iloc[0] == table["shapley"].max()


def test_same_seed_gives_same_answer_for_one_factual_or_many(found):
    table = found.principal_reasons("refused", n_draws=100)
    pd.testing.assert_frame_equal(found["refused"].principal_reasons("refused", n_draws=100), table)


def test_factual_without_counterfactual_has_reasons_within_its_constraints():
    explainer = mcce.MCCE(lambda rows: rows["usd"] > 50_000, decision=True, fixed=["age"], random_state=1)
    explainer.fit(ROWS[["age", "usd", "home"]], relations=())
    nothing = explainer.explain(ROWS[["age", "usd", "home"]].head(1), constraints=[mcce.allow("usd", high=40_000)])
    assert not len(nothing)
    table = nothing.principal_reasons(0, every=True, n_draws=100)
    assert table["shapley"].idxmax() == "usd"
    assert table.loc["usd", ["share", "repair"]].tolist() == [0.0, "none"]
    assert nothing.principal_reasons(0, n_draws=100).empty
    assert "none was found whose change" in mcce.report.letter(nothing, 0, reasons=True).replace("\n", " ")


def test_unanswerable_requests_raise(found, tmp_path):
    with pytest.raises(InputError, match="'accepted' has the wanted decision; there are no reasons for a refusal"):
        found.principal_reasons("accepted")
    with pytest.raises(InputError, match="n is 0"):
        found.principal_reasons("refused", 0)
    found.save(tmp_path / "found.mcce")
    with pytest.raises(InputError, match="was loaded from a file or built by hand; explain again"):
        mcce.Counterfactuals.load(tmp_path / "found.mcce").principal_reasons("refused")
