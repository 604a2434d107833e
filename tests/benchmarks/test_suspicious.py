"""The benchmark of suspicious answers: planted errors are listed, and few other answers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.suspicious import ERRORS, PAPER, are_accepted, main, make_question, real_pairs, recall
from mcce.report.rows import held_back


@pytest.mark.nightly
def test_planted_errors_are_listed_and_few_other_answers():
    question = make_question("loans", 1, 200, None)
    found = question.explainer().explain(question.factuals, sparse=True)
    assert len(found.suspicious()) <= 0.15 * len(found)
    good = ~found.frame.index.isin(held_back(found).index)
    for kind, error in ERRORS["loans"].items():
        n_planted, stopped, noted = recall(found, good, question.X, *error)
        assert n_planted >= 20, kind
        assert noted >= 0.8, kind
        assert stopped >= 0.8, kind


@pytest.mark.slow
def test_pairs_of_real_rows_differ_in_what_the_decision_needs():
    question = make_question("loans", 1, 100, None)
    (whole, accepted), (needed, same) = real_pairs(question).values()
    assert accepted.equals(same)
    assert are_accepted(question, accepted).all()
    assert not are_accepted(question, whole).any()
    assert not are_accepted(question, needed).any()
    for name in ("age", "sex", "years_employed", "defaulted_last_year"):
        assert (whole[name].astype(object) == accepted[name].astype(object)).all()
    for name in question.X.columns:  # with one more value of the accepted row, every row is accepted
        nearer = needed.assign(**{name: accepted[name]})
        differ = (nearer[name].astype(object) != needed[name].astype(object)).to_numpy()
        assert are_accepted(question, nearer)[differ].all()
    assert np.mean(needed.astype(object) != accepted.astype(object)) < np.mean(
        whole.astype(object) != accepted.astype(object)
    )


def test_parts_without_data_are_skipped(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("benchmarks.suspicious.find_data", lambda folder: None)
    assert main(["--only", ",".join(PAPER), "--out", str(tmp_path / "page")]) == 0
    assert (tmp_path / "page.md").read_text().count("Skipped") == len(PAPER)
