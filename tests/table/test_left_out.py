"""Rows with an unknown level are unexplained with the reason; other rows are unaffected."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.exceptions import InputError, MCCEWarning


def score(rows):
    return rows["pay"].to_numpy(dtype=float) / 100


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "pay": rng.integers(0, 100, 200),
            "job": pd.Categorical(rng.choice(["clerk", "driver"], 200)),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], 200), ["s", "m", "l"], ordered=True),
            "old": rng.random(200) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def explainer(table):
    return mcce.MCCE(score, fixed=["old"], random_state=1).fit(table)


@pytest.mark.parametrize("column", ["job", "size"])
def test_unknown_level_skips_only_its_row(explainer, table, column):
    people = table[table["pay"] < 40].head(6).astype({column: object})
    who = people.index[2]
    people.loc[who, column] = "pilot"
    rules = [mcce.allow("pay", high=95)]
    with pytest.warns(MCCEWarning, match=rf"X has a row with a level that is not known: {who} \(column"):
        found = explainer.explain(people, n_samples=50, constraints=rules)
    others = explainer.explain(
        people.drop(index=who).astype({column: table[column].dtype}), n_samples=50, constraints=rules
    )
    pd.testing.assert_frame_equal(found.frame, others.frame)
    pd.testing.assert_frame_equal(found.measures, others.measures)
    assert found.factuals.index.tolist() == people.index.tolist()
    assert found.factuals.loc[who, column] == "pilot"
    assert found.factuals["pay"].tolist() == people["pay"].tolist()
    reason = found.unexplained["reason"][who]
    assert reason.startswith(
        f"it could not be read: column {column!r} holds 'pilot', which is not a known level (known:"
    )
    assert pd.isna(found.factual_predictions[who])
    assert found.draws[who] == 0
    assert who not in mcce.report.letters(found, all=True).index
    assert mcce.report.unlettered(found, all=True)[who] == reason
    with pytest.raises(InputError, match=r"there is no letter for .*: it could not be read"):
        mcce.report.letter(found, who)
    assert "could not be read" in found.sentence(who)
    again = found.redrawn(0)
    pd.testing.assert_frame_equal(again.frame, found.frame)
    assert again.factuals.index.equals(found.factuals.index)


def test_table_of_only_unknown_levels_raises(explainer, table):
    with pytest.raises(InputError, match="holds the level 'pilot'"):
        explainer.explain(table.head(3).assign(job="pilot"))


def test_separate_steps_equal_explain_for_the_other_rows(explainer, table):
    people = table[table["pay"] < 40].head(6).astype({"job": object})
    who = people.index[2]
    people.loc[who, "job"] = "pilot"
    with pytest.warns(MCCEWarning, match="X has a row with a level that is not known: .* Such rows have no candidates"):
        candidates = explainer.generate(people, n_samples=50)
    assert candidates.index.unique("id").tolist() == people.index.drop(who).tolist()
    with pytest.warns(MCCEWarning, match="Such rows are not explained"):
        found, together = explainer.select(candidates, people), explainer.explain(people, n_samples=50)
    pd.testing.assert_frame_equal(found.frame, together.frame)
    pd.testing.assert_frame_equal(found.unexplained, together.unexplained)
    mine = candidates.loc[[people.index[0]]].rename(index={people.index[0]: who}, level="id")
    with (
        pytest.warns(MCCEWarning, match="Such rows are not explained"),
        pytest.raises(InputError, match=f"candidates has rows for {who}, which has an unknown level"),
    ):
        explainer.select(mine, people)


def test_reasons_of_the_other_rows_are_computed(explainer, table):
    people = table[table["pay"] < 20].head(4).astype({"job": object})
    people.iloc[0, 1] = "pilot"
    with pytest.warns(MCCEWarning, match="level that is not known"):
        found = explainer.explain(people, n_samples=50, constraints=[mcce.allow("pay", high=30)]).with_why_unexplained()
    unexplained = found.unexplained
    assert unexplained.index.tolist() == people.index.tolist()
    assert unexplained["would_help"].notna().tolist() == [False, True, True, True]


@pytest.mark.slow
def test_conditionals_and_diagnostics_drop_such_rows(explainer, table):
    new = table.head(120).astype({"job": object})
    new.iloc[5, 1] = "pilot"
    chain = mcce.ChainModel(fixed=["old"], random_state=1).fit(table.iloc[120:])
    weights = np.arange(1, 121)
    with pytest.warns(MCCEWarning, match="X_new has a row with a level"):
        judged = chain.criticise(new, n_draws=5, sample_weight=weights)
    kept = np.arange(120) != 5
    same = chain.criticise(table.head(120)[kept], n_draws=5, sample_weight=weights[kept])
    pd.testing.assert_frame_equal(judged.table.drop(columns="seconds"), same.table.drop(columns="seconds"))
    diagnosed = explainer.diagnose(new, n_samples=20, max_factuals=5)
    assert any("with a level that is not known: 5 (column 'job' holds 'pilot')" in note for note in diagnosed.notes)
