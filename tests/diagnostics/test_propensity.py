"""Scores of the logistic regression compared with R's glm."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.diagnostics.pairs import read_pair
from mcce.diagnostics.propensity import logit_scores
from tests.marks import slow

from .reference import CASES, read


@pytest.mark.parametrize("max_order", [1, *slow(0)])
@pytest.mark.parametrize("name", CASES)
def test_size_and_error_match_glm(name, max_order):
    case = read(name)
    expected = case.tables["gen"].query("maxorder == @max_order").iloc[0]
    scores = logit_scores(read_pair(case.real, case.generated), max_order)
    share = len(case.generated) / scores.values.size
    assert scores.size == expected["km1"]
    assert np.mean((scores.values - share) ** 2) == pytest.approx(expected["pMSE"], rel=1e-9)
    assert scores.converged


@pytest.mark.parametrize("max_order", [0, 1])
def test_every_score_matches_glm(max_order):
    case = read("same_size")
    scores = logit_scores(read_pair(case.real, case.generated), max_order)
    np.testing.assert_allclose(scores.values, case.tables[f"logit{max_order}_score"]["score"], atol=1e-9)


def test_separated_tables_are_scored_as_separated():
    real, generated = pd.DataFrame({"x": np.arange(20.0)}), pd.DataFrame({"x": np.arange(30.0, 50.0)})
    scores = logit_scores(read_pair(real, generated), 1)
    assert (scores.values[:20] > 0.999999).all()
    assert (scores.values[20:] < 1e-6).all()


def test_constant_and_dependent_columns_add_nothing():
    rng = np.random.default_rng(1)
    tables = [pd.DataFrame({"x": rng.normal(size=n)}) for n in (50, 40)]
    more = [f.assign(same=3.0, one="a", twice=2 * f["x"] + 1, gone=np.nan) for f in tables]
    plain, extended = (logit_scores(read_pair(*pair), 0) for pair in (tables, more))
    assert plain.size == extended.size == 1
    np.testing.assert_allclose(plain.values, extended.values, atol=1e-9)


def test_model_exceeding_memory_raises():
    frame = pd.DataFrame({f"x{j}": pd.Categorical(np.arange(3000) % 100) for j in range(10)})
    with pytest.raises(mcce.InputError, match=r"max_order=1 has 442036 columns for 6000 rows.*use max_order=0"):
        logit_scores(read_pair(frame, frame), 1)
