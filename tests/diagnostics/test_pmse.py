"""pMSE against synthpop's utility.gen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.diagnostics import pmse

from .reference import CASES, read


@pytest.mark.parametrize("max_order", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_regression_equals_synthpop(name, max_order):
    case = read(name)
    expected = case.tables["gen"].query("maxorder == @max_order").iloc[0]
    got = pmse(case.real, case.generated, max_order=max_order)
    for measure in ("pMSE", "S_pMSE", "SPECKS", "PO50", "U"):
        assert getattr(got, measure) == pytest.approx(expected[measure], rel=1e-9), measure
    assert got.size == expected["km1"]
    if "pMSE_expected" in expected:
        assert got.expected == pytest.approx(expected["pMSE_expected"])


@pytest.mark.parametrize("name", CASES)
def test_tree_equals_synthpop(name):
    case = read(name)
    rows = case.tables["gen"][case.tables["gen"]["model"].str.startswith("cart")]
    for _, expected in rows.iterrows():
        cp = 1e-8 if "1e-08" in expected["model"] else 1e-3
        got = pmse(case.real, case.generated, model="cart", cp=cp, n_permutations=0)
        for measure in ("pMSE", "SPECKS", "PO50", "U"):
            assert getattr(got, measure) == pytest.approx(expected[measure], rel=1e-9), measure
        assert np.isnan(got.S_pMSE)
        if "n_leaves" in expected:
            assert got.size == expected["n_leaves"]


def test_every_score_of_the_tree_equals_that_of_rpart():
    case = read("same_size")
    got = pmse(case.real, case.generated, model="cart", n_permutations=0)
    expected = case.tables["cart_score"]
    np.testing.assert_allclose(got.scores, expected["score"], atol=1e-12)
    assert got.size == expected["leaf"].nunique()


@pytest.mark.parametrize(("name", "in_r"), [("same_size", 0.04848466), ("smaller", 0.03462189), ("larger", 0.02837394)])
def test_the_expected_error_of_a_tree_is_that_of_synthpop(name, in_r):
    """R took 200 permutations; half the error of a permuted tree has a standard deviation of about 0.0035."""
    case = read(name)
    got = pmse(case.real, case.generated, model="cart", n_permutations=100)
    assert got.expected == pytest.approx(in_r, abs=4 * 0.0035 * np.sqrt(1 / 100 + 1 / 200))


def test_the_tree_is_standardised_by_permutations():
    case = read("same_size")
    one = pmse(case.real, case.generated, model="cart", n_permutations=20, n_jobs=1)
    assert one.S_pMSE == pytest.approx(one.pMSE / one.expected)
    assert pmse(case.real, case.generated, model="cart", n_permutations=20, n_jobs=3).expected == one.expected
    assert pmse(case.real, case.generated, model="cart", n_permutations=9, random_state=5).expected != one.expected
    assert "72 leaves" in repr(one)


def test_a_tree_that_cannot_split():
    real = pd.DataFrame({"same": 1.0, "x": [1.0, 2.0, 3.0]})
    got = pmse(real, real, model="cart", n_permutations=3)
    assert (got.pMSE, got.size, got.SPECKS, got.U) == (0.0, 1, 0.0, 4.5)
    assert np.isnan(got.S_pMSE)


def test_a_new_sample_is_as_expected():
    """Over many pairs of samples of one distribution the mean of S_pMSE is 1 / (1 - c): both tables vary."""
    rng = np.random.default_rng(1)
    values = []
    for _ in range(60):
        a, b = (pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd")) for n in (200, 100))
        values.append(pmse(a, b, max_order=0).S_pMSE)
    assert np.mean(values) == pytest.approx(1.5, abs=4 * np.std(values) / np.sqrt(60))


def test_result():
    case = read("smaller")
    got = pmse(case.real, case.generated, max_order=0)
    assert got.scores.shape == (550,)
    assert (got.settings["n_real"], got.settings["n_generated"], got.settings["model"]) == (400, 150, "logit")
    assert "15 coefficients: pMSE 0.00179, S_pMSE 0.455" in repr(got)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "forest"}, "model is 'forest'; allowed: 'logit', 'cart'"),
        ({"model": "cart", "cp": -1}, "cp is -1"),
        ({"model": "cart", "min_leaf": 0}, "min_leaf is 0"),
        ({"model": "cart", "n_permutations": -1}, "n_permutations is -1"),
        ({"max_order": 2}, "max_order is 2"),
        ({"max_order": True}, "max_order"),
    ],
)
def test_bad_input_is_refused(settings, message):
    case = read("levels")
    with pytest.raises(mcce.InputError, match=message):
        pmse(case.real, case.generated, **settings)
