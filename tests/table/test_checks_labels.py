import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import InputError
from mcce.table.checks import find_labels


def test_labels_of_any_type_are_found():
    overlapping = pd.IntervalIndex.from_tuples([(0, 2), (1, 3), (0, 5)])
    assert find_labels(overlapping, overlapping[[2, 0]]).tolist() == [2, 0]
    assert find_labels(overlapping, pd.Index([pd.Interval(1, 2)])).tolist() == [-1]
    mixed = pd.Index([b"a", None, True, "x"])
    assert find_labels(mixed, mixed[::-1]).tolist() == [3, 2, 1, 0]


def test_overlapping_intervals_name_rows():
    X = pd.DataFrame({"a": np.arange(60.0), "b": ["x", "y", "z"] * 20})
    explainer = mcce.MCCE(lambda rows: rows["a"] > 30, decision=True, fixed=["b"], random_state=1).fit(X)
    ids = pd.IntervalIndex.from_tuples([(0, 2), (1, 3), (0, 5)])
    found = explainer.explain(X.head(3).set_axis(ids), n_samples=50)
    assert found.frame.index.get_level_values("id").tolist() == list(ids)
    assert found.frame["b"].tolist() == X["b"].head(3).tolist()
    assert "a" in found.sentence(ids[1])
    assert found[ids[2]].frame["b"].tolist() == ["z"]


@pytest.mark.parametrize("further", [[1, 2], ["x", "y"], [pd.Timestamp("2020"), pd.Timestamp("2021")], [(1, 2), 3]])
def test_missing_label_names_a_row(further):
    X = pd.DataFrame({"a": np.arange(60.0), "b": ["x", "y", "z"] * 20})
    explainer = mcce.MCCE(lambda rows: rows["a"] > 30, decision=True, fixed=["b"], random_state=1).fit(X)
    ids = pd.Index([None, *further], dtype=object, tupleize_cols=False)
    mine = mcce.per_factual(pd.DataFrame({"feature": ["a"], "low": [50]}, index=pd.Index([None], dtype=object)))
    found = explainer.explain(X.head(3).set_axis(ids), n_samples=200, constraints=[mine])
    assert found.frame["b"].tolist() == ["x", "y", "z"]
    assert found[None].frame["a"].min() >= 50
    assert found.frame["a"].min() < 50
    assert found.sentence(None) == found.sentence(np.nan)
    both = X.head(2).set_axis(pd.Index([None, np.nan], dtype=object))
    with pytest.raises(InputError, match="the index of X holds None, nan, which are one missing label"):
        explainer.explain(both)


@pytest.mark.parametrize("order", ["data", "correlation"])
@pytest.mark.parametrize("further", ["b", 3, pd.Timestamp("2020-01-01")])
def test_column_without_a_label_raises(order, further):
    names = pd.Index([None, further, "c"], dtype=object)
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=names)
    with pytest.raises(
        InputError, match=r"X has no label for column 0 \(counted from 0\): it is None; give the column"
    ):
        mcce.ChainModel(visit_sequence=order).fit(X)
    with pytest.raises(InputError, match="X has no label for column 0"):
        mcce.diagnostics.correlations(X)
