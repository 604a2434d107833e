"""Why a factual has no counterfactual."""

import re

import numpy as np
import pytest

import mcce
from mcce.explain.unexplained import why_none


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
def test_why_there_is_none(chain, values, words):
    (said,) = why_none(chain[0], row_of(chain, **values), 50)
    assert re.fullmatch(f"none of the 50 candidates has the wanted decision, {words}", said)


def test_why_there_is_none_without_a_condition(chain):
    _, X = chain
    free = mcce.ChainModel(random_state=1).fit(X)
    (said,) = why_none(free, free.schema_.encode(X.iloc[[0]]).matrix, None)
    assert said == "no candidate has the wanted decision; bring more of them"
