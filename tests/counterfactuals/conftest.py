"""A small result made by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce.counterfactuals import Counterfactuals, Run
from tests.counterfactuals.problem import COLUMNS, DECISION


def indexed(rows, index):
    frame = pd.DataFrame(rows, columns=COLUMNS)
    frame["home"] = frame["home"].astype(pd.CategoricalDtype(["<script>", "own", "rent"]))
    return frame.set_index(index)


@pytest.fixture
def found() -> Counterfactuals:
    factuals = indexed(
        [(30, 68_000, True, "rent"), (40, 20_000, False, None), (50, 9_000, True, "own")],
        pd.Index(["ann", "bob", "cis"], name="person"),
    )
    pairs = pd.MultiIndex.from_tuples([("ann", 1), ("ann", 2), ("bob", 1)], names=["id", "rank"])
    frame = indexed([(30, 72_000, False, "rent"), (30, 90_000, True, "<script>"), (40, 20_000, False, "own")], pairs)
    measures = pd.DataFrame(
        {
            "prediction": [0.62, 0.7, 0.55],
            "L0": [2, 2, 1],
            "gower": [0.3, 0.4, 0.25],
            "gower_sum": [1.2, 1.6, 1.0],
        },
        index=pairs,
    )
    predictions = pd.Series([0.31, 0.4, 0.1], index=factuals.index)
    unexplained = pd.DataFrame(
        {"reason": ["no valid row among 1000 <samples>"], "prediction": [0.1]}, index=factuals.index[2:]
    )
    return Counterfactuals(
        frame=frame,
        measures=measures,
        factuals=factuals,
        unexplained=unexplained,
        factual_predictions=predictions,
        decision=DECISION,
        fixed=("age",),
        kinds={"age": "numeric", "salary": "numeric", "defaulted": "categorical", "home": "categorical"},
        ranges={"age": (18, 90), "salary": (0, 100_000)},
        run=Run(timings={"fit": 1.0, "generate": 2.0, "select": 0.5}),
    )
