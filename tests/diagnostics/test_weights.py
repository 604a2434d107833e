"""Diagnostics that refit chains use the explainer's weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.table.weights import rows_by_weight


def rich(rows):
    return rows["salary"] > 45_000


@pytest.fixture(scope="module")
def loans():
    X = mcce.datasets.load_loans(900).X[["age", "sex", "education", "salary"]]
    return X.iloc[:500], X.iloc[500:]


@pytest.fixture(scope="module")
def counts():
    return np.random.default_rng(3).integers(0, 3, 400)


def repeated(X, counts):
    return X.iloc[np.repeat(np.arange(len(X)), counts)].reset_index(drop=True)


def test_weighted_rows_are_copied_or_thinned():
    assert rows_by_weight(np.array([2.0, 0.0, 1.0]), 1).tolist() == [0, 0, 2]
    weights = np.concatenate([np.full(500, 0.2), np.full(50, 1.8)])
    rows = rows_by_weight(weights, 1)
    assert np.unique(rows).size == rows.size
    assert (rows >= 500).sum() == 50  # the rows with the largest weights are kept
    assert (rows < 500).sum() == pytest.approx(500 / 9, abs=3 * np.sqrt(500 * 8 / 81))
    many = rows_by_weight(np.full(30, 1000.0), 1)  # such large counts have no more effect than rows
    np.testing.assert_array_equal(many, np.arange(30))


def test_criticism_of_counts_equals_repeated_rows(loans, counts):
    seen, new = loans
    chain = mcce.ChainModel(sampler="norm", fixed=["age"], random_state=1)
    chain = chain.fit(seen[["age", "salary"]], rich(seen))
    new = new[["age", "salary"]]
    decision = rich(new).to_numpy()
    found = chain.criticise(new, decision=decision, sample_weight=counts, n_draws=9)
    rows = np.repeat(np.arange(400), counts)
    expected = chain.criticise(repeated(new, counts), decision=decision[rows], n_draws=9)
    columns = found.table.columns.drop("seconds")
    pd.testing.assert_frame_equal(found.table[columns], expected.table[columns])
    with pytest.raises(mcce.InputError, match="sample_weight has 3 weights, and X has 400 rows"):
        chain.criticise(new, decision=decision, sample_weight=[1, 2, 3])


@pytest.mark.slow
def test_weighted_chain_is_correct_only_for_weighted_rows():
    """Weights that depend on the target: the conditional of the population is not that of the rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=1600)
    X = pd.DataFrame({"x": x, "y": x + rng.normal(size=1600)})
    weights = np.exp(0.8 * (X["y"] - X["x"])).to_numpy()  # tilts the residuals: their mean becomes 0.8
    chain = mcce.ChainModel(sampler="norm", fixed=["x"], random_state=1).fit(X[:800], sample_weight=weights[:800])
    assert not chain.criticise(X[800:], sample_weight=weights[800:]).rejected
    assert chain.criticise(X[800:]).rejected == ["y"]
    judged = mcce.diagnostics.conditionals(X[:800], sampler="norm", fixed=["x"], sample_weight=weights[:800])
    assert not judged.rejected
    result = mcce.diagnostics.conditionals(
        X[:800],
        sampler="norm",
        fixed=["x"],
        X_new=X[800:],
        sample_weight=weights[:800],
        sample_weight_new=weights[800:],
    )
    assert not result.rejected


def test_equal_weights_equal_no_weights_out_of_fold(loans):
    X = loans[0][["age", "salary"]].iloc[:150]
    plain, weighted = (
        mcce.diagnostics.conditionals(X, sampler="norm", fixed=["age"], n_draws=9, sample_weight=weights)
        for weights in (None, np.full(150, 0.3))
    )
    columns = plain.table.columns.drop("seconds")
    pd.testing.assert_frame_equal(plain.table[columns], weighted.table[columns], rtol=1e-6)


@pytest.mark.slow
def test_diagnostics_of_counts_equal_repeated_rows(loans, counts):
    seen, new = loans
    explainer = mcce.MCCE(rich, decision=True, fixed=["age"], random_state=1).fit(seen)
    options = {"n_samples": 30, "max_factuals": 10}
    found = explainer.diagnose(new, sample_weight=counts, **options)
    expected = explainer.diagnose(repeated(new, counts), **options)
    pd.testing.assert_frame_equal(found.marginals, expected.marginals)
    pd.testing.assert_frame_equal(found.evaluation.summary, expected.evaluation.summary)
    pd.testing.assert_frame_equal(found.candidates, expected.candidates)
    assert found.discriminator.accuracies == expected.discriminator.accuracies
    assert found.pmse.S_pMSE == expected.pmse.S_pMSE


def test_evaluation_of_counts_equals_repeated_factuals(loans, counts):
    seen, new = loans
    explainer = mcce.MCCE(rich, decision=True, fixed=["age"], random_state=1).fit(seen)
    poor = ~rich(new).to_numpy()
    factuals, weights = new[poor].head(30), counts[poor][:30]
    many = repeated(factuals, weights)
    found, expected = (
        mcce.diagnostics.evaluate(
            explainer.explain(rows, n_samples=40), rows, rich, decision=True, training=seen, sample_weight=times
        ).summary
        for rows, times in ((factuals, weights), (many, None))
    )
    pd.testing.assert_frame_equal(found, expected)
    relative = mcce.diagnostics.evaluate(
        explainer.explain(factuals, n_samples=40), factuals, rich, decision=True, sample_weight=0.37 * weights
    ).summary
    assert relative.loc["L0", "mean"] == pytest.approx(expected.loc["L0", "mean"])
