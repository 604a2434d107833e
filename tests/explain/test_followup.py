"""Stability reported by `summary`, compared with many real redraws."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

from tests.explainer.problem import DENIED, MODELS, assert_same, fitted

SAME, AGAIN = "same changed features if drawn again", "factuals drawn again"


@pytest.fixture(scope="module")
def explainer():
    return fitted()


def changed_sets(found):
    best = found.changes().query("rank == 1").groupby("id")["feature"].agg(frozenset)
    return [best.get(id) for id in found.factuals.index]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "how"),
    [
        ("rare", 40, {}),
        pytest.param("score", 40, {}, marks=pytest.mark.nightly),
        pytest.param("rare", 6, {"sparse": True}, marks=pytest.mark.nightly),
    ],
)
def test_stability_is_the_agreement_rate_of_two_redraws(name, n, how):
    """Eight answers from two redraws each, compared with all pairs of eight redraws: 40 factuals, so within 0.1."""
    explainer = fitted(*MODELS[name])
    X = DENIED.iloc[:40]
    first = explainer.explain(X, n_samples=n, **how)
    found = [first, *(first.redrawn(r) for r in range(1, 8))]
    sets = [changed_sets(one) for one in found]
    truth = np.mean([[a == b for a, b in zip(one, other)] for one, other in itertools.combinations(sets, 2)])
    said = [one.summary()["value"][SAME] for one in found]
    assert found[0].summary()["value"][AGAIN] == 40
    assert 0.05 < truth < 0.95
    assert np.mean(said) == pytest.approx(truth, abs=0.1)


@pytest.mark.slow
def test_more_draws_are_more_stable_with_standard_errors(explainer):
    few, many = (explainer.explain(DENIED, n_samples=n).summary()["value"] for n in (10, 2000))
    assert few[SAME] < many[SAME]
    n_refused = int((explainer.explain(DENIED, n_samples=10).draws > 0).sum())
    assert few[AGAIN] == min(n_refused, 100)
    all_again = explainer.explain(DENIED, n_samples=10).summary(standard_errors=True)["value"]
    assert all_again[AGAIN] == n_refused


@pytest.mark.slow
def test_stability_leaves_result_unchanged_and_saved_result_has_none(explainer):
    plain = explainer.explain(DENIED.iloc[:5], n_samples=50)
    again = explainer.explain(DENIED.iloc[:5], n_samples=50)
    first = plain.summary()
    assert_same(plain, again)
    assert first["value"][SAME] == plain.summary()["value"][SAME]
    saved = pickle.loads(pickle.dumps(plain))
    assert SAME not in saved.summary().index
    nobody = explainer.explain(DENIED.iloc[:0])
    assert SAME not in nobody.summary().index
    brought = explainer.select(explainer.generate(DENIED.iloc[:2], n_samples=20), DENIED.iloc[:2])
    assert SAME not in brought.summary().index
