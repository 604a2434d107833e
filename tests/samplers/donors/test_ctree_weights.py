"""Conditional inference trees of weighted rows, compared with R's party and with repeated rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.table import Column, Schema

FIXTURE = json.loads((Path(__file__).parents[2] / "fixtures" / "weights" / "weights.json").read_text())


@pytest.mark.parametrize("name", ["counts", "zeros"])
def test_leaves_match_weighted_ctree_of_party(name):
    X = pd.DataFrame(FIXTURE["data"]).assign(f=lambda x: pd.Categorical(x["f"], categories=list("uvw")))
    X = X[["a", "b", "f", "y"]]
    weights = np.array(FIXTURE["weights"][name], dtype=np.float64)
    table = Schema.from_data(X).encode(X)
    kept = np.flatnonzero(weights)
    target = Column(table.features[3], table.matrix[kept, 3], weights[kept])
    sampler = mcce.CtreeSampler(mincriterion=0.5).fit(table.first(3).take(kept), target)
    leaf = sampler.tree_.route(table.first(3).matrix)
    theirs = np.array(FIXTURE["fits"][name]["ctree"])
    assert len(set(theirs)) > 2
    assert len(set(zip(leaf, theirs))) == len(set(leaf)) == len(set(theirs))  # the same leaves with other numbers


def test_weights_that_are_not_counts_raise():
    X = mcce.datasets.load_loans(60).X[["age", "salary"]]
    chain = mcce.ChainModel(sampler="ctree", fixed=["age"])
    with pytest.raises(mcce.SamplerError, match=r"CtreeSampler\(\) for 'salary' .* must be counts"):
        chain.fit(X, sample_weight=np.tile([0.5, 1.2], 30))
