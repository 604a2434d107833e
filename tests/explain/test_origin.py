"""Fingerprints are equal for the same model and explainer only; probes are not training rows."""

import hashlib

import numpy as np
import pytest

import mcce
from mcce.explain.origin import PROBES, probe_rows
from mcce.rng import hash_rows
from tests.records.problem import explainer, make_explainer, other_score, score, table


def test_probes_lie_in_the_ranges_and_are_not_training_rows():
    schema = explainer().generator_.schema_
    probes = probe_rows(schema)
    assert probes.shape == (PROBES, 6)
    assert np.array_equal(probes, probe_rows(schema), equal_nan=True)
    again = schema.encode(schema.decode(probes)).matrix
    np.testing.assert_array_equal(again, probes)
    training = schema.encode(table()).matrix
    assert not np.isin(hash_rows(probes), hash_rows(training)).any()
    for j, feature in enumerate(schema.features):
        low, high = (feature.low, feature.high) if feature.is_numeric else (0, feature.n_levels - 1)
        assert low <= probes[:, j].min() < probes[:, j].max() <= high


def test_training_table_hash_depends_on_rows_and_order():
    hashes = hash_rows(explainer().generator_.schema_.encode(table()).matrix)
    assert explainer().fingerprint()["training"] == {
        "rows": 120,
        "hash": hashlib.sha256(hashes.astype("<u8").tobytes()).hexdigest(),
    }


def test_refitted_or_loaded_explainer_has_the_same_fingerprint(tmp_path):
    before = explainer().fingerprint()
    assert make_explainer().fingerprint() == before
    explainer().save(tmp_path / "a.mcce")
    assert mcce.MCCE.load(tmp_path / "a.mcce", model=score).fingerprint() == before


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"model": other_score}, {"decision", "model", "explainer"}),
        ({"random_state": 2}, {"seed", "explainer"}),
        ({"sampler": "ctree"}, {"explainer"}),
        ({"constraints": ["debt <= was(debt) + 30"]}, {"explainer"}),
        ({"decision": (0.6, 1.0)}, {"decision", "explainer"}),
    ],
    ids=["model", "random_state", "sampler", "constraints", "decision"],
)
def test_fingerprint_shows_which_part_changed(changes, parts):
    before, after = explainer().fingerprint(), make_explainer(**changes).fingerprint()
    assert {name for name in before if before[name] != after[name]} == parts


def test_decision_is_stated_with_its_bounds_for_any_label():
    called = make_explainer(decision=mcce.Interval(0.5, 1, label="the loan is granted"))
    found = called.explain(table().head(1), n_samples=10)
    assert found.record(0)["decision"]["wanted"] == "the loan is granted"
    assert found.record(0)["decision"]["rule"] == called.fingerprint()["decision"] == "score from 0.5 to 1"


def test_fingerprint_ignores_last_digits_of_scores():
    shifted = make_explainer(lambda rows: score(rows) * (1 + 1e-13))
    assert shifted.fingerprint()["model"]["fingerprint"] == explainer().fingerprint()["model"]["fingerprint"]


@pytest.mark.slow
def test_private_fit_does_not_fingerprint_the_training_table():
    private = mcce.Privacy(2.0, bounds={"age": (18, 80), "income": (0, 120)})
    made = mcce.MCCE(lambda rows: rows["income"] / 100, sampler=private, fixed=["age"], random_state=1)
    assert made.fit(table()[["age", "income"]]).fingerprint()["training"] == {"rows": None, "hash": None}
