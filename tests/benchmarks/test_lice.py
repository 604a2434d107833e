"""`benchmarks.lice` on a constructed table in the layout of the stored results."""

import io
import os
import pickle

import numpy as np
import pandas as pd
import pytest

from benchmarks import lice

TASK = lice.Task(
    ordered={"school": ["none", "some", "all"]}, fixed=("sex",), rising=("age", "school"), older=("school",), age="age"
)


def table(n=400):
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(20, 61, n),
        "school": rng.choice(["none", "some", "all"], n),
        "sex": rng.choice(["f", "m"], n),
        "hours": rng.integers(10, 51, n),
    }
    return pd.DataFrame(columns)


def make_network(training):
    # columns: age, school (none, some, all), sex is m, hours
    weights = np.array([1, 0, 0.5, 1, 0, 2])
    return lice.Network(lambda encoded: encoded @ weights - 1.9, training, TASK)


def test_rows_are_encoded_by_ranges_and_indicators():
    training = pd.DataFrame({"age": [20, 60], "school": ["none", "all"], "sex": ["f", "m"], "hours": [10, 50]})
    row = pd.DataFrame({"age": [30], "school": ["some"], "sex": ["m"], "hours": [50]})
    assert make_network(training).encode(row).tolist() == [[0.25, 0, 1, 0, 1, 1]]


def test_best_rated_row_within_the_rules_is_chosen():
    training = table()
    network = make_network(training)
    factual = pd.DataFrame({"age": [30], "school": ["some"], "sex": ["f"], "hours": [20]}, index=[7])
    assert network(factual)[0] < 0
    rows = [
        [30, "some", "m", 50],  # another sex
        [25, "some", "f", 50],  # younger
        [30, "some", "f", 48],
        [30, "some", "f", None],  # equal to the factual: not valid
        [30, "some", "f", 50],  # rated higher than the third row
    ]
    stored = {
        7: {"CE": [np.array(r, dtype=object) for r in rows], "time": 3.0, "stats": {"ll_computed": [9, 8, 1, 7, 2]}}
    }
    found, seconds = lice.read_stored(io.BytesIO(pickle.dumps(stored)), factual, network)
    assert found.loc[7].tolist() == [30, "some", "f", 50]
    assert seconds.to_dict() == {7: 3.0}


def test_only_arrays_are_read():
    class Attack:
        def __reduce__(self):
            return os.system, ("true",)

    with pytest.raises(pickle.UnpicklingError, match="only arrays are read"):
        lice.ArraysOnly(io.BytesIO(pickle.dumps(Attack()))).load()


@pytest.mark.slow
def test_own_rows_satisfy_the_rules_and_match_hand_calculation():
    training = table()
    network = make_network(training)
    scores = network(training)
    factuals = pd.concat([training[scores <= 0].iloc[:5], training[scores > 0].iloc[:5]])
    rows, _ = lice.explain(training, factuals, network)
    assert not lice.explain(training, factuals, network, floor=0.95)[0].equals(rows)
    assert set(rows.index) <= set(factuals.index)
    assert len(rows) >= 8
    was = factuals.loc[rows.index]
    level = {name: place for place, name in enumerate(TASK.ordered["school"])}
    more_school = rows["school"].astype(str).map(level) - was["school"].map(level)
    assert (rows["sex"] == was["sex"]).all()
    assert (rows["age"] >= was["age"]).all()
    assert (more_school >= 0).all()
    assert (rows["age"] > was["age"])[more_school > 0].all()
    assert ((network(rows) > 0) != (network(was) > 0)).all()
    figures = lice.Judges(network, training, scores > 0, table(200)).judge(rows[factuals.columns], factuals)
    for label in rows.index:
        row, factual = rows.loc[label], factuals.loc[label]
        steps = [abs(row["age"] - factual["age"]) / 40, row["school"] != factual["school"], 0]
        steps.append(abs(row["hours"] - factual["hours"]) / 40)
        assert figures.loc[label, "L0"] == np.count_nonzero(steps)
        assert figures.loc[label, "L1"] == pytest.approx(sum(steps), abs=1e-6)
    (line,) = lice.compare({lice.OURS: figures, "other": figures.iloc[:5]})
    assert line == ["other", "5", *6 * ["+0.000 (0.000)"]]
