"""Counts on keys: against synthpop's output, tables counted by hand, a brute force, and the paper on synthpop's."""

import gzip
import io
import itertools
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.diagnostics import disclosure_tables
from mcce.diagnostics.disclosure_risk import counts
from mcce.exceptions import InputError

DATA = Path(os.environ.get("MCCE_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "disclosure"
STORED = json.loads(gzip.decompress((FIXTURES / "synthpop.json.gz").read_bytes()))
SAME = [
    *[
        "UiO",
        "UiS",
        "UiOiS",
        "Dorig",
        "Dsyn",
        "iS",
        "DiS",
        "DiSCO",
        "DiSDiO",
        "mean_denom",
        "max_denom",
        "baseCAPd",
        "CAPd",
        "CAPs",
        "DCAP",
        "TCAP",
    ]
]


def read(text):
    return pd.read_csv(io.StringIO(text))


@pytest.mark.parametrize("told", STORED["measures"], ids=lambda told: f"{told['case']}-{told['target']}")
def test_measures_are_those_of_synthpop(told):
    original, synthetic = (read(STORED["tables"][told["case"]][which]) for which in ("original", "synthetic"))
    ours = disclosure_tables(original, synthetic, keys=told["keys"].split(), targets=[told["target"]]).iloc[0]
    for name in SAME:
        expected = np.nan if told[name] is None else told[name]
        assert ours[name] == pytest.approx(expected, rel=1e-12, nan_ok=True), name
    assert ours["RepU"] == pytest.approx(told["repU"], rel=1e-12)
    assert ours["check_1way"] == (told["check1"].split()[-1] if told["check1"] else None)
    assert ours["check_2way"] == (int(told["check2"].split()[0]) if told["check2"] else 0)


def test_a_table_counted_by_hand():
    # keys: a twice and b once in the original; a once, b once and c once among the released rows
    original = pd.DataFrame({"key": ["a", "a", "b", "d"], "t": ["x", "y", "x", "x"]})
    released = pd.DataFrame({"key": ["a", "b", "c"], "t": ["x", "y", "x"]})
    ours = disclosure_tables(original, released, keys=["key"]).loc["t"]
    assert (ours["UiO"], ours["UiS"], ours["UiOiS"], ours["RepU"]) == (50, 100, 25, 25)
    assert (ours["Dorig"], ours["iS"], ours["DiS"], ours["DiSCO"], ours["DiSDiO"]) == (50, 75, 75, 25, 0)
    assert ours["TCAP"] == pytest.approx(100 / 3)
    assert (ours["max_denom"], ours["mean_denom"]) == (1, 1)


def brute_force(original, released, keys, target):
    """Count person by person."""
    n = len(original)
    unique = repeated = certain = right = 0
    for _, person in original.iterrows():
        of_keys = [row for _, row in original.iterrows() if all(row[k] == person[k] for k in keys)]
        found = [row for _, row in released.iterrows() if all(row[k] == person[k] for k in keys)]
        unique += len(of_keys) == 1
        repeated += len(of_keys) == 1 and len(found) == 1
        told = {row[target] for row in found}
        certain += len(told) == 1
        right += told == {person[target]}
    return {"UiO": 100 * unique / n, "RepU": 100 * repeated / n, "DiS": 100 * certain / n, "DiSCO": 100 * right / n}


@pytest.mark.parametrize("seed", range(4))
def test_measures_are_those_of_counting_person_by_person(seed):
    rng = np.random.default_rng(seed)
    tables = [
        pd.DataFrame({"a": rng.integers(0, 8, n), "b": rng.choice(list("uvw"), n), "t": rng.integers(0, 3, n)})
        for n in (40, 25)
    ]
    ours = disclosure_tables(*tables, keys=["a", "b"]).loc["t"]
    for name, value in brute_force(*tables, ["a", "b"], "t").items():
        assert ours[name] == pytest.approx(value), name


def test_groups_of_numbers_are_compared_instead_of_numbers():
    rng = np.random.default_rng(1)
    real, released = (pd.DataFrame({"key": rng.integers(0, 3, 90), "t": rng.normal(size=90)}) for _ in range(2))
    exact = disclosure_tables(real, released, keys=["key"]).loc["t"]
    grouped = disclosure_tables(real, released, keys=["key"], n_groups={"t": 2}).loc["t"]
    assert exact["DCAP"] == 0
    assert 40 < grouped["DCAP"] < 60


def test_copies_and_distinguishing_cells_by_hand():
    original = np.array([[1.0, 5.0], [1.0, 6.0], [np.nan, 7.0]])
    released = np.array([[1.0, 6.0], [np.nan, 7.0], [1.0, 7.0], [2.0, 9.0]])
    assert counts.copies_of(released, original).tolist() == [True, True, False, False]
    cells = counts.distinguishing_cells(released, original, np.ones((4, 2), dtype=bool))
    assert cells.tolist() == [[False, True], [False, True], [False, True], [False, False]]
    none = counts.distinguishing_cells(released, original, np.zeros((4, 2), dtype=bool))
    assert not none.any()


@pytest.mark.parametrize("k", [1, 2, 5])
def test_linkage_is_that_of_comparing_all_pairs(k):
    rng = np.random.default_rng(k)
    original, released = rng.integers(0, 4, (60, 3)).astype(float), rng.integers(0, 5, (40, 3)).astype(float)
    ours = counts.linked(released, original, [0, 2], k)
    for row, linked in zip(released, ours):
        matched = sum((row[[0, 2]] == person[[0, 2]]).all() for person in original)
        assert linked == (1 <= matched <= k)


PRINTED = {  # "Practical privacy metrics for synthetic data", its table of the Adult data, column "No excl, orig"
    "capital-gain": 22.55,
    "capital-loss": 30.61,
    "education-num": 3.71,
    "fnlwgt": 2.70,
    "hours-per-week": 4.36,
    "marital-status": 8.23,
    "native-country": 17.09,
    "relationship": 5.17,
    "workclass": 14.27,
}


@pytest.mark.skipif(not (DATA / "adult.csv.gz").is_file(), reason="the Adult data are not here; MCCE_DATA says where")
def test_the_original_adult_data_have_the_printed_figures():
    adult = mcce.datasets.load_adult(DATA)
    keys = ["age", "occupation", "race", "sex"]
    ours = disclosure_tables(adult.X, adult.X, keys=keys, targets=list(PRINTED))
    assert ours["UiO"].iloc[0] == pytest.approx(2.68, abs=0.005)
    for target, printed in PRINTED.items():
        assert ours.loc[target, "Dorig"] == pytest.approx(printed, abs=0.005), target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": "a"}, r"keys is the text 'a'; give a list"),
        ({"keys": []}, r"keys is empty; name at least 1 of the columns 'a', 'b', 't'"),
        ({"keys": ["A"]}, r"keys names 'A', which is no column; did you mean 'a'\?|known"),
        ({"keys": ["a", "a"]}, r"keys names a column twice"),
        ({"targets": ["b", "a"]}, r"'a' is among keys and targets"),
        ({"n_groups": {"b": 3}}, r"n_groups names 'b', which has levels"),
        ({"n_groups": {"t": 1}}, r"n_groups of 't' is 1; it must be a whole number of at least 2"),
    ],
)
def test_bad_input_is_told(change, message):
    table = pd.DataFrame(list(itertools.product([1, 2], "uv", [1.5, 2.5])), columns=["a", "b", "t"])
    with pytest.raises(InputError, match=message):
        disclosure_tables(table, table, **{"keys": ["a"], **change})
