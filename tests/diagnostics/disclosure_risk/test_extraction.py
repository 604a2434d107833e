"""Extraction: the gain of a surrogate on known models, and none by chance."""

import numpy as np
import pytest

from mcce.diagnostics.disclosure_risk import extraction
from mcce.diagnostics.disclosure_risk.extraction import extract


def test_extraction_gains_by_answers_at_the_edge_and_not_by_repeated_queries():
    """The model accepts a band; answers at both its edges tell more of it than the decisions on 30 rows."""
    rng = np.random.default_rng(3)
    unseen, queries = rng.uniform(0, 1, (2000, 2)), rng.uniform(0, 1, (30, 2))
    truth, decisions = (np.abs(rows[:, 0] - 0.5) < 0.1 for rows in (unseen, queries))
    edge = np.column_stack([np.resize([0.401, 0.599], 30), rng.uniform(0, 1, 30)])
    found = extract(queries, decisions, edge, unseen, truth, 1, 0.95)
    assert found.gain.low > 0
    assert found.gain.value == pytest.approx(found.with_answers.share - found.labels_alone.share, abs=1e-3)
    again = extract(queries, decisions, queries[decisions], unseen, truth, 1, 0.95)
    assert again.gain.value == 0.0
    assert again.labels_alone.share > 0.7


@pytest.mark.slow
def test_extraction_is_not_taken_for_what_one_forest_gains_over_another_by_chance(monkeypatch):
    """Answers that are the accepted rows in another order tell nothing, and the forests are others.

    Forests of three trees, judged by thousands of rows: what they differ by is the chance of the forests. One in forty
    gains may be seen at 95 per cent; an interval of the rows alone sees nearly half.
    """
    monkeypatch.setattr(extraction, "N_TREES", 3)
    accused = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        unseen, queries = rng.normal(size=(4000, 4)), rng.normal(size=(40, 4))
        truth, decisions = (np.abs(rows[:, 0] - 0.3) < 0.6 for rows in (unseen, queries))
        answers = rng.permutation(np.resize(queries[decisions], (24, 4)))
        accused += extract(queries, decisions, answers, unseen, truth, seed, 0.95).gain.low > 0
    assert accused <= 3  # of 25: more by chance once in 300 times
