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
        ({"model": "forest"}, "model is 'forest'"),
        ({"max_order": 2}, "max_order is 2"),
        ({"max_order": True}, "max_order"),
    ],
)
def test_bad_input_is_refused(settings, message):
    case = read("levels")
    with pytest.raises(mcce.InputError, match=message):
        pmse(case.real, case.generated, **settings)
