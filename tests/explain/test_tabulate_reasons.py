"""Reasons why a factual has no counterfactual."""

import re

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.explain.tabulate import describe_failures


def row_of(chain, **values):
    model, X = chain
    return model.schema_.encode(X.iloc[[0]].assign(**values)).matrix


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"group": "c", "age": 30.0}, r"and no training row with its fixed values \(group = c, age = 30.0\) has it"),
        ({"group": "a", "age": 77.0}, r"and no training row has its fixed values \(group = a, age = 77.0\)"),
        ({"group": "a", "age": 30.0}, "though training rows with its fixed values do; draw more"),
        ({"group": "c", "age": np.nan}, r"and no training row with its fixed values \(group = c, age = nan\) has it"),
    ],
)
def test_reason_for_no_counterfactual(chain, values, words):
    (said,) = describe_failures(chain[0], row_of(chain, **values), 50)
    assert re.fullmatch(f"none of the 50 candidates has the wanted decision, {words}", said)


def test_reason_for_no_counterfactual_without_conditioning(chain):
    _, X = chain
    free = mcce.ChainModel(random_state=1).fit(X)
    (said,) = describe_failures(free, free.schema_.encode(X.iloc[[0]]).matrix, None)
    assert said == "no candidate has the wanted decision; give more candidates"


def test_dates_in_mixed_units_are_reported():
    n = 40
    X = pd.DataFrame(
        {
            "near": pd.to_datetime(["2020-01-01", "2021-01-01"] * (n // 2)).as_unit("ns"),
            "far": pd.to_datetime(pd.Series(["3612-09-12", "3612-09-13"] * (n // 2))).dt.as_unit("s"),
            "x": np.arange(n, dtype=float),
        }
    )
    wanted = np.arange(n) % 2 == 1
    model = mcce.ChainModel(fixed=["near", "far"], random_state=1).fit(X, decision=wanted)
    (said,) = describe_failures(model, model.schema_.encode(X.iloc[[0]]).matrix, 10)
    assert "(near = 2020-01-01 00:00:00, far = 3612-09-12 00:00:00) has it" in said
