import numpy as np
import pandas as pd

import mcce
from mcce.table.checks import find_labels


def test_labels_are_found_whatever_they_are():
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
