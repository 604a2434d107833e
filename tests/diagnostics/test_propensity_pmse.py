"""pMSE compared with synthpop's utility.gen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.diagnostics import pmse
from tests.marks import slow

from .reference import CASES, read


@pytest.mark.parametrize("max_order", [1, *slow(0)])
@pytest.mark.parametrize("name", CASES)
def test_regression_matches_synthpop(name, max_order):
    case = read(name)
    expected = case.tables["gen"].query("maxorder == @max_order").iloc[0]
    got = pmse(case.real, case.generated, max_order=max_order)
    for measure in ("pMSE", "S_pMSE", "SPECKS", "PO50", "U"):
        assert getattr(got, measure) == pytest.approx(expected[measure], rel=1e-9), measure
    assert got.size == expected["km1"]
    if "pMSE_expected" in expected:
        assert got.expected == pytest.approx(expected["pMSE_expected"])


@pytest.mark.slow
def test_new_sample_scores_as_expected():
    """Over many pairs of samples of one distribution the mean of S_pMSE is 1 / (1 - c): both tables vary."""
    rng = np.random.default_rng(1)
    values = []
    for _ in range(60):
        a, b = (pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd")) for n in (200, 100))
        values.append(pmse(a, b, max_order=0).S_pMSE)
    assert np.mean(values) == pytest.approx(1.5, abs=4 * np.std(values) / np.sqrt(60))


def correlated(rng, n: int) -> np.ndarray:
    """Six normal columns, each correlated with all before it."""
    z = rng.normal(size=(n, 6))
    for j in range(1, 6):
        z[:, j] += 0.4 * z[:, :j].sum(axis=1)
    return z


@pytest.mark.slow
@pytest.mark.parametrize("n_fixed", [4, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 2, 5))])
def test_perfect_generator_scores_as_expected_for_any_number_of_fixed_columns(n_fixed):
    """The drawn columns follow the true process given the fixed ones; both tables vary, so the mean is 1 / (1 - c) = 2.

    With all coefficients counted, 4 of 6 fixed columns give 0.67.
    """
    rng = np.random.default_rng(n_fixed)
    values = []
    for _ in range(40):
        real = correlated(rng, 300)
        generated = real.copy()
        for j in range(n_fixed, 6):
            generated[:, j] = rng.normal(size=300) + 0.4 * generated[:, :j].sum(axis=1)
        a, b = (pd.DataFrame(rows, columns=list("abcdef")) for rows in (real, generated))
        values.append(pmse(a, b, fixed=list("abcdef")[:n_fixed], max_order=0).S_pMSE)
    assert np.mean(values) == pytest.approx(2.0, abs=4 * np.std(values) / np.sqrt(40))


@pytest.mark.slow
@pytest.mark.parametrize("n_fixed", [3, 1])
@pytest.mark.parametrize("max_order", [0, 1])
def test_rows_resampled_given_the_fixed_columns_score_1(n_fixed, max_order):
    """The drawn columns are those of a real row with the same fixed values, as a model of `real` gives."""
    rng = np.random.default_rng(n_fixed)
    values = []
    for _ in range(40):
        kept = pd.DataFrame(rng.integers(2, size=(600, n_fixed)), columns=[f"f{j}" for j in range(n_fixed)]).astype(str)
        noise = rng.normal(size=(600, 2)) + (kept == "1").sum(axis=1).to_numpy()[:, None]
        real = kept.assign(a=noise[:, 0], b=noise[:, 1] + noise[:, 0])
        other = kept.groupby(list(kept)).ngroup().to_numpy()
        donor = np.arange(600)
        for cell in np.unique(other):
            donor[other == cell] = rng.choice(donor[other == cell], (other == cell).sum())
        generated = kept.assign(a=real["a"].to_numpy()[donor], b=real["b"].to_numpy()[donor])
        values.append(pmse(real, generated, fixed=list(kept), max_order=max_order).S_pMSE)
    assert np.mean(values) == pytest.approx(1.0, abs=4 * np.std(values) / np.sqrt(40))


def test_coefficients_of_drawn_columns_are_counted():
    """For a, b (fixed) and x, y: x, y and their five products count; the copied columns and their product do not."""
    rng = np.random.default_rng(1)
    real = pd.DataFrame(rng.normal(size=(100, 4)), columns=list("axby"))
    generated = real.assign(x=rng.normal(size=100), y=rng.normal(size=100))
    got = pmse(real, generated, fixed=["a", "b"])
    assert (got.size, got.drawn) == (10, 7)
    assert got.expected == pytest.approx(7 / 8 / 200)
    # a drawn column that copies a later fixed column is not free
    tied = real.assign(x=real["a"])[["x", "a", "b", "y"]]
    got = pmse(tied, tied.assign(y=generated["y"]), fixed=["a", "b"], max_order=0)
    assert (got.size, got.drawn) == (3, 1)


def test_different_fixed_columns_raise():
    real = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 4.0]})
    with pytest.raises(mcce.InputError, match="fixed names 'a', but generated does not copy them from real: 2 of 3"):
        pmse(real, real.assign(a=[1.0, 2.0, 2.0]), fixed=["a"])
    with pytest.raises(mcce.InputError, match="fixed feature 'c' is not a column"):
        pmse(real, real, fixed=["c"])


def test_result():
    case = read("smaller")
    got = pmse(case.real, case.generated, max_order=0)
    assert got.scores.shape == (550,)
    assert (got.settings["n_real"], got.settings["n_generated"]) == (400, 150)
    assert "15 coefficients: pMSE 0.00179, S_pMSE 0.455" in repr(got)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_order": 2}, "max_order is 2"),
        ({"max_order": True}, "max_order"),
    ],
)
def test_invalid_input_raises(settings, message):
    case = read("levels")
    with pytest.raises(mcce.InputError, match=message):
        pmse(case.real, case.generated, **settings)
