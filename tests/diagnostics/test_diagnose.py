"""All diagnostics of an explainer compared with brute force on its public parts."""

from __future__ import annotations

import pickle

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.diagnostics import Diagnostics
from mcce.diagnostics.pairs import candidate_table, draw_like


def score(frame: pd.DataFrame) -> np.ndarray:
    return (frame["salary"] / 100_000 + frame["savings"] / 200_000 - 0.4 * frame["defaulted_last_year"]).to_numpy(float)


pytestmark = pytest.mark.usefixtures("few_trees")
LOANS = mcce.datasets.load_loans(700).X
TRAINING, NEW = LOANS.iloc[:500], LOANS.iloc[500:]


@pytest.fixture(scope="module")
def explainer() -> mcce.MCCE:
    return mcce.MCCE(score, decision=(0.6, np.inf), fixed=["age", "sex"], random_state=1).fit(TRAINING)


@pytest.fixture(scope="module")
def diagnostics(explainer, few_trees) -> Diagnostics:
    return explainer.diagnose(NEW, n_samples=200, max_factuals=20)


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


@pytest.mark.slow
def test_generated_rows_have_the_fixed_values_of_the_real_ones(diagnostics):
    assert len(diagnostics.real) == len(diagnostics.generated) == 200
    pd.testing.assert_frame_equal(diagnostics.real, NEW)
    pd.testing.assert_frame_equal(diagnostics.generated[["age", "sex"]], NEW[["age", "sex"]])
    assert (diagnostics.generated.dtypes == NEW.dtypes).all()
    wanted = [score(table) >= 0.6 for table in (diagnostics.real, diagnostics.generated)]
    assert np.mean(wanted[0] == wanted[1]) > 0.8, "each was drawn given the decision of the real row"


@pytest.mark.slow
def test_realism_matches_the_functions(diagnostics):
    d = diagnostics
    pd.testing.assert_frame_equal(d.marginals, mcce.diagnostics.marginal_distances(d.real, d.generated))
    pd.testing.assert_frame_equal(d.tables, mcce.diagnostics.utility_tables(d.real, d.generated, fixed=["age", "sex"]))
    again = mcce.diagnostics.compare_correlations(d.real, d.generated)
    pd.testing.assert_frame_equal(d.correlations.difference, again.difference)
    assert d.pmse.pMSE == mcce.diagnostics.pmse(d.real, d.generated, max_order=0).pMSE
    assert d.pmse.expected == mcce.diagnostics.pmse(d.real, d.generated, fixed=["age", "sex"], max_order=0).expected
    assert d.pmse.drawn == d.pmse.size - 2, "age and sex are copied"
    assert d.discriminator == mcce.diagnostics.discriminator(d.real, d.generated, paired=True, random_state=0)


def test_candidates_match_hand_calculation(diagnostics, explainer):
    table = diagnostics.candidates
    factuals = NEW[score(NEW) < 0.6]
    assert len(table) == 20
    assert set(table.index) <= set(factuals.index)
    drawn = explainer.generate(factuals.loc[table.index], n_samples=200)
    for id, row in table.iterrows():
        rows = drawn.loc[id]
        valid = score(rows) >= 0.6
        assert (row["candidates"], row["distinct"]) == (200, len(rows.drop_duplicates()))
        assert (row["valid"], row["distinct_valid"]) == (valid.sum(), len(rows[valid].drop_duplicates()))
        assert row["validity"] == valid.mean()


def test_candidates_in_blocks_are_equal(explainer, monkeypatch):
    factuals = NEW[score(NEW) < 0.6].head(7)
    expected = candidate_table(explainer, factuals, 50)
    monkeypatch.setattr("mcce.diagnostics.pairs.BLOCK_CELLS", 1000)
    pd.testing.assert_frame_equal(candidate_table(explainer, factuals, 50), expected)


def test_evaluation_matches_the_counterfactuals(diagnostics, explainer):
    e = diagnostics.evaluation
    assert e.rows["success"].all()
    assert not e.rows["violation"].any()
    found = explainer.explain(NEW.loc[diagnostics.candidates.index], n_samples=200)
    pd.testing.assert_frame_equal(found.frame, diagnostics.found.frame)
    assert (e.n_factuals, e.n_explained) == (20, len(found))


@pytest.mark.slow
def test_same_seed_gives_same_answer_for_any_number_of_threads(diagnostics):
    other = mcce.MCCE(score, decision=(0.6, np.inf), fixed=["age", "sex"], random_state=1, n_jobs=1).fit(TRAINING)
    again = other.diagnose(NEW, n_samples=200, max_factuals=20)
    pd.testing.assert_frame_equal(again.generated, diagnostics.generated)
    pd.testing.assert_frame_equal(again.evaluation.rows, diagnostics.evaluation.rows)
    assert again.discriminator.accuracies == diagnostics.discriminator.accuracies


def test_texts_and_pages(diagnostics):
    text = repr(diagnostics)
    for word in ("discriminator accuracy", "S_pMSE", "valid candidates", "distance_wanted", "20 of 20"):
        assert word in text
    html = diagnostics._repr_html_()
    assert "discriminator accuracy" in html
    summary = diagnostics.summary()
    assert list(summary.columns) == ["value", "how to read it"]
    assert {"L0", "copy", "explained"} <= set(summary.index)


@pytest.mark.slow
def test_pictures(diagnostics):
    assert len(diagnostics.plot()) == 4
    assert len(diagnostics.plot("marginals")) == NEW.shape[1]
    for what in ("correlations", "difference", "changes"):
        assert diagnostics.plot(what).get_title(loc="left")
    with pytest.raises(mcce.InputError, match="which is 'all'; allowed: 'overview'"):
        diagnostics.plot("all")


@pytest.mark.slow
def test_selected_method_is_diagnosed(explainer):
    options = {"sparse": True, "floor": 0.1, "constraints": ["loan_amount <= was(loan_amount)"]}
    d = explainer.diagnose(NEW, n_samples=100, max_factuals=15, **options)
    found = explainer.explain(d.found.factuals, n_samples=100, **options)
    pd.testing.assert_frame_equal(d.found.frame, found.frame)
    assert d.evaluation.summary.loc["L0", "mean"] == found.measures["L0"].mean()
    assert "crossed with the cases" in repr(d)
    with pytest.raises(TypeError, match="flor"):
        explainer.diagnose(NEW, flor=0.1)


def test_training_rows_are_reported(explainer):
    d = explainer.diagnose(TRAINING.head(60), n_samples=20, max_factuals=3)
    assert any("100% of the rows of X are training rows" in note for note in d.notes)
    assert "note: 100%" in repr(d)


@pytest.mark.slow
def test_saved_explainer_does_not_hold_the_training_table(explainer):
    with_tree = mcce.MCCE(Steady(), decision=(0.6, np.inf), random_state=1).fit(TRAINING)
    saved = pickle.dumps(with_tree)
    loaded = pickle.loads(saved)
    d = loaded.diagnose(NEW, n_samples=20, max_factuals=3)
    assert "distance" not in d.evaluation.rows
    assert any("give them as `training`" in note for note in d.notes)
    assert len(d.plot()) == 3
    d = loaded.diagnose(NEW, training=TRAINING, n_samples=20, max_factuals=3)
    assert d.evaluation.rows["distance"].notna().all()


class Steady:
    """A model that can be pickled."""

    def predict(self, X):
        return score(X)


@pytest.mark.slow
def test_few_rows_and_nothing_to_explain(explainer):
    d = explainer.diagnose(NEW[score(NEW) < 0.6].head(3), n_samples=50)
    assert d.discriminator is None
    assert any("needs at least 10" in note for note in d.notes)
    assert d.evaluation.n_factuals == 3
    with pytest.raises(mcce.InputError, match="were not compared"):
        d.plot()
    fine = explainer.diagnose(NEW[score(NEW) >= 0.6].head(20), n_samples=50)
    assert fine.evaluation is None
    assert len(fine.plot()) == 2
    assert "no row was explained" in repr(fine)
    with pytest.raises(mcce.InputError, match="no counterfactuals to draw"):
        fine.plot("changes")


@pytest.mark.slow
def test_arrays_and_no_decision_to_condition_on():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    plain = mcce.MCCE(lambda rows: rows.sum(axis=1), decision=(0, np.inf), condition_on_decision=False, random_state=1)
    d = plain.fit(X).diagnose(X[:100], n_samples=50, max_factuals=5)
    assert d.evaluation.rows["success"].all()


def test_draws_depend_only_on_the_row(explainer):
    schema = explainer.generator_.schema_
    matrix = schema.encode(NEW).matrix
    wanted = score(NEW) >= 0.6
    all_rows = draw_like(explainer.generator_, matrix, wanted, 1)
    alone = draw_like(explainer.generator_, matrix[:1], wanted[:1], 1)
    assert np.array_equal(all_rows[:1], alone)


@pytest.mark.parametrize(
    ("X", "settings", "message"),
    [
        (NEW.iloc[:0], {}, "X has no rows"),
        (pd.concat([NEW, NEW]), {}, "the index of X holds .* more than once; it names the rows"),
        (NEW, {"n_samples": 0}, "n_samples is 0"),
        (NEW, {"max_rows": 1.5}, "max_rows is 1.5"),
        (NEW.drop(columns="age"), {}, "lacks the column"),
    ],
)
def test_invalid_input_raises(explainer, X, settings, message):
    with pytest.raises(mcce.InputError, match=message):
        explainer.diagnose(X, **settings)


def test_modified_training_table_raises():
    table = TRAINING.copy()
    explainer = mcce.MCCE(score, decision=(0.6, np.inf), random_state=1).fit(table)
    table["salary"] = 0.0 * table["salary"]
    with pytest.raises(mcce.InputError, match="has been changed since"):
        explainer.diagnose(NEW)
    with pytest.raises(mcce.NotFittedError):
        mcce.MCCE(score).diagnose(NEW)
