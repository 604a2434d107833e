"""Counts on keys compared with synthpop's output, hand counts, brute force, and its paper."""

import gzip
import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce.diagnostics.disclosure_risk import counts
from mcce.diagnostics.pairs import read_pair
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


def measured(original, released, keys, target):
    pair = read_pair(original, released, None)
    return counts.measure_target(
        pair.real, pair.generated, [pair.names.index(k) for k in keys], pair.names.index(target)
    )


@pytest.mark.parametrize("stored", STORED["measures"], ids=lambda stored: f"{stored['case']}-{stored['target']}")
def test_measures_match_synthpop(stored):
    original, synthetic = (read(STORED["tables"][stored["case"]][which]) for which in ("original", "synthetic"))
    ours = measured(original, synthetic, stored["keys"].split(), stored["target"])
    for name in SAME:
        expected = np.nan if stored[name] is None else stored[name]
        assert ours[name] == pytest.approx(expected, rel=1e-12, nan_ok=True), name
    assert ours["RepU"] == pytest.approx(stored["repU"], rel=1e-12)


def test_measures_match_a_table_counted_by_hand():
    # keys: a twice and b once in the original; a once, b once and c once among the released rows
    original = pd.DataFrame({"key": ["a", "a", "b", "d"], "t": ["x", "y", "x", "x"]})
    released = pd.DataFrame({"key": ["a", "b", "c"], "t": ["x", "y", "x"]})
    ours = measured(original, released, ["key"], "t")
    assert (ours["UiO"], ours["UiS"], ours["UiOiS"], ours["RepU"]) == (50, 100, 25, 25)
    assert (ours["Dorig"], ours["iS"], ours["DiS"], ours["DiSCO"], ours["DiSDiO"]) == (50, 75, 75, 25, 0)
    assert ours["TCAP"] == pytest.approx(100 / 3)
    assert (ours["max_denom"], ours["mean_denom"]) == (1, 1)


def brute_force(original, released, keys, target):
    """Count row by row."""
    n = len(original)
    unique = repeated = certain = right = 0
    for _, person in original.iterrows():
        of_keys = [row for _, row in original.iterrows() if all(row[k] == person[k] for k in keys)]
        found = [row for _, row in released.iterrows() if all(row[k] == person[k] for k in keys)]
        unique += len(of_keys) == 1
        repeated += len(of_keys) == 1 and len(found) == 1
        values = {row[target] for row in found}
        certain += len(values) == 1
        right += values == {person[target]}
    return {"UiO": 100 * unique / n, "RepU": 100 * repeated / n, "DiS": 100 * certain / n, "DiSCO": 100 * right / n}


@pytest.mark.parametrize("seed", range(4))
def test_measures_match_counting_row_by_row(seed):
    rng = np.random.default_rng(seed)
    tables = [
        pd.DataFrame({"a": rng.integers(0, 8, n), "b": rng.choice(list("uvw"), n), "t": rng.integers(0, 3, n)})
        for n in (40, 25)
    ]
    ours = measured(*tables, ["a", "b"], "t")
    for name, value in brute_force(*tables, ["a", "b"], "t").items():
        assert ours[name] == pytest.approx(value), name


def test_copies_and_distinguishing_cells_match_hand_calculation():
    original = np.array([[1.0, 5.0], [1.0, 6.0], [np.nan, 7.0]])
    released = np.array([[1.0, 6.0], [np.nan, 7.0], [1.0, 7.0], [2.0, 9.0]])
    assert counts.copies_of(released, original).tolist() == [True, True, False, False]
    cells = counts.distinguishing_cells(released, original, np.ones((4, 2), dtype=bool))
    assert cells.tolist() == [[False, True], [False, True], [False, True], [False, False]]
    none = counts.distinguishing_cells(released, original, np.zeros((4, 2), dtype=bool))
    assert not none.any()


@pytest.mark.parametrize("k", [1, 2, 5])
def test_linkage_matches_comparison_of_all_pairs(k):
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


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "adult.csv.gz").is_file(), reason="the Adult data are not here; MCCE_DATA says where")
def test_original_adult_data_match_the_printed_figures():
    adult = mcce.datasets.load_adult(DATA)
    keys = ["age", "occupation", "race", "sex"]
    for target, printed in PRINTED.items():
        ours = measured(adult.X, adult.X, keys, target)
        assert ours["UiO"] == pytest.approx(2.68, abs=0.005)
        assert ours["Dorig"] == pytest.approx(printed, abs=0.005), target


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("a", r"keys is the text 'a'; give a list"),
        ([], r"keys is empty; name at least one of the columns 'a', 'b', 't'"),
        (["A"], r"keys names 'A', which is not a column; did you mean 'a'\?|known"),
        (["a", "a"], r"keys names a column twice"),
    ],
)
def test_invalid_names_raise(names, message):
    with pytest.raises(InputError, match=message):
        counts.find_columns(names, ["a", "b", "t"], "keys")
