"""Candidates given by the user: how they are matched to factuals, and invalid ones."""

import numpy as np
import pandas as pd
import pytest

from mcce import InputError
from mcce.explain.draw import match_candidates
from mcce.explain.problem import Factuals

MUTABLE = np.array([2, 3])


@pytest.fixture
def factuals(chain):
    model, X = chain
    rows = X.iloc[[5, 9, 20, 33]].set_axis(["p", "q", "r", "s"])
    matrix = model.schema_.encode(rows).matrix
    return Factuals(rows.index, matrix, np.zeros(4), np.array([False, True, False, False])), rows


def brought(rows, ids, **values):
    return rows.loc[ids].assign(**values)


def test_candidates_are_matched_to_factuals_in_given_order(chain, factuals):
    model, _ = chain
    encoded, rows = factuals
    ids = ["s", "p", "s", "q", "p", "p"]
    candidates = brought(rows, ids, x=np.arange(6.0), y=4.0)
    found = match_candidates(candidates, encoded, np.array([0, 2, 3]), model.schema_, MUTABLE)
    own = [found.rows[b:e, 2].tolist() for b, e in zip(found.begin, found.end)]
    assert own == [[1.0, 4.0, 5.0], [], [0.0, 2.0]]  # p, r and s; q has the decision already
    assert found.rows.flags.f_contiguous


def test_first_level_of_multiindex_names_the_factual(chain, factuals):
    model, _ = chain
    encoded, rows = factuals
    candidates = brought(rows, ["r", "r"], x=[1.0, 2.0])
    candidates.index = pd.MultiIndex.from_arrays([["r", "r"], [7, 3]], names=["id", "draw"])
    found = match_candidates(candidates, encoded, np.array([2]), model.schema_, MUTABLE)
    assert found.rows[found.begin[0] : found.end[0], 2].tolist() == [1.0, 2.0]


def test_empty_candidates(chain, factuals):
    model, _ = chain
    encoded, rows = factuals
    found = match_candidates(rows.iloc[:0], encoded, np.array([0, 3]), model.schema_, MUTABLE)
    assert (found.end - found.begin).tolist() == [0, 0]


def test_a_missing_fixed_value_stays_missing(chain):
    model, X = chain
    rows = X[X["age"].isna()].iloc[:2].set_axis(["m", "n"])
    encoded = Factuals(rows.index, model.schema_.encode(rows).matrix, np.zeros(2), np.zeros(2, dtype=bool))
    members = np.array([0, 1])
    kept = match_candidates(rows.assign(x=9.0), encoded, members, model.schema_, MUTABLE)
    assert kept.rows[:, 2].tolist() == [9.0, 9.0]
    with pytest.raises(InputError, match=r"^candidates changes the fixed feature 'age' of 'n'; fixed"):
        match_candidates(rows.assign(age=[np.nan, 30.0]), encoded, members, model.schema_, MUTABLE)


def test_invalid_candidates_raise(chain, factuals):
    model, _ = chain
    encoded, rows = factuals
    members = np.array([0])
    wrong = [
        (rows.rename({"q": "z"}), r"candidates has rows for 'z', which is not in the index of X"),
        (rows.assign(group="b"), r"candidates changes the fixed feature 'group' of '[pqrs]'"),
        (rows.to_numpy(), r"candidates is a ndarray; give a DataFrame as returned by `generate`"),
        (rows.drop(columns="y"), r"candidates lacks .*'y'"),
    ]
    for candidates, message in wrong:
        with pytest.raises(InputError, match=message):
            match_candidates(candidates, encoded, members, model.schema_, MUTABLE)
