"""Tables of counts compared with synthpop."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, ks_2samp, mannwhitneyu

import mcce
from mcce.diagnostics import utility_tables
from mcce.diagnostics.tables import group_breaks

from .reference import CASES, load, read

MEASURES = [
    "pMSE", "S_pMSE", "df", "VW", "FT", "JSD", "SPECKS", "WMabsDD", "U", "G", "PO50", "MabsDD", "dBhatt", "S_VW",
    "S_FT", "S_JSD", "S_WMabsDD", "S_G", "dfG",
]  # fmt: skip


@pytest.mark.parametrize("tables", ["oneway", "twoway"])
@pytest.mark.parametrize("name", CASES)
def test_measures_match_synthpop(name, tables):
    case = read(name)
    expected = case.tables[tables]
    got = utility_tables(case.real, case.generated, tables=tables)
    assert list(got.columns) == MEASURES
    np.testing.assert_allclose(got.to_numpy(), expected[MEASURES].to_numpy(float), rtol=1e-9, atol=1e-12)
    labels = [".".join(map(str, label)) if isinstance(label, tuple) else label for label in got.index]
    if "pair" in expected:  # "1.age:2.hours"
        names = [".".join(part.partition(".")[2] for part in pair.split(":")) for pair in expected["pair"]]
    else:
        names = [a if not b else f"{a}.{b}" for a, b in zip(expected["var1"], expected["var2"])]
    assert labels == names


def test_breaks_match_synthpop():
    case = read("same_size")
    expected = case.tables["group_breaks"]
    for variable, rows in expected.groupby("variable"):
        both = pd.concat([case.real[variable], case.generated[variable]]).to_numpy(float)
        np.testing.assert_allclose(group_breaks(both, 5), rows["brk"], rtol=1e-14)


def test_groups_of_few_and_of_tied_numbers():
    for case in load("groups"):
        real, generated = (np.array(case[key], dtype=float) for key in ("real", "syn"))
        inner = group_breaks(np.concatenate([real, generated]), case["n_groups"])[1:-1]
        for values, expected in ((real, case["obs"]), (generated, case["gen"])):
            missing = np.isnan(values)
            counts = np.bincount(np.searchsorted(inner, values[~missing], side="right"), minlength=inner.size + 1)
            either = np.isnan(np.concatenate([real, generated])).any()
            assert [*counts, *([missing.sum()] if either else [])] == expected, case


def test_other_packages_agree_where_they_have_the_measure():
    """VW is chi-square's statistic over the share of real rows: here both tables are random."""
    rng = np.random.default_rng(1)
    real = pd.DataFrame({"x": rng.choice(list("abcd"), 300)})
    generated = pd.DataFrame({"x": rng.choice(list("abcd"), 200, p=[0.1, 0.2, 0.3, 0.4])})
    got = utility_tables(real, generated, tables="oneway").iloc[0]
    o, s = (f["x"].value_counts().sort_index().to_numpy() for f in (real, generated))
    assert got["VW"] == pytest.approx(chi2_contingency(np.array([o, s]))[0] * 500 / 300)
    score = dict(zip("abcd", s / (s + o)))
    of_real, of_generated = (f["x"].map(score).to_numpy(float) for f in (real, generated))
    assert got["SPECKS"] == pytest.approx(ks_2samp(of_real, of_generated).statistic)
    assert got["U"] == mannwhitneyu(of_generated, of_real).statistic
    assert got["pMSE"] == pytest.approx(np.mean((np.concatenate([of_real, of_generated]) - 0.4) ** 2))


def test_equal_tables_do_not_differ():
    X = mcce.datasets.load_loans(300).X
    got = utility_tables(X, X)
    assert (got[["pMSE", "VW", "FT", "JSD", "SPECKS", "WMabsDD", "G", "MabsDD"]].abs() < 1e-9).all(axis=None)
    assert (got["U"] == 300**2 / 2).all()


def test_constant_columns_have_nothing_to_standardise_by():
    frame = pd.DataFrame({"same": 1.0, "one": "a", "all": np.nan, "x": np.arange(20.0)})
    got = utility_tables(frame, frame.iloc[:15], tables="oneway")
    assert got["df"].to_list() == [0, 0, 0, 4]
    assert got.loc[["same", "one", "all"], ["S_pMSE", "S_VW", "S_G"]].isna().all(axis=None)
    assert (got.loc[["same", "one", "all"], ["pMSE", "VW", "SPECKS"]] == 0).all(axis=None)
    assert utility_tables(frame, frame.iloc[:15]).loc[("same", "x"), "df"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("fixed", [("a", "b"), ("a",)])
def test_perfect_generator_scores_as_expected_with_fixed_features(fixed):
    """Over new draws given the fixed features the standardised measures have mean 2: both tables vary."""
    rng = np.random.default_rng(len(fixed))
    found = []
    for _ in range(50):
        kept = pd.DataFrame(rng.integers(4, size=(600, 2)), columns=["a", "b"]).astype(str)
        chance = 0.2 + 0.2 * kept["a"].astype(int)
        real, generated = (kept.assign(x=rng.binomial(2, chance)).astype(str) for _ in range(2))
        if "b" not in fixed:
            generated["b"] = rng.integers(4, size=600).astype(str)
        found.append(utility_tables(real, generated, fixed=list(fixed)).loc[("a", "x")])
    means = pd.DataFrame(found)[["S_pMSE", "S_VW"]]
    assert ((means.mean() - 2).abs() < 4 * means.std() / np.sqrt(50)).all()
    assert found[0]["df"] == 12 - 4


def test_table_of_fixed_features_has_zero_difference():
    frame = pd.DataFrame({"a": list("xxyy") * 5, "b": list("xyxy") * 5, "c": list("pqqp") * 5})
    got = utility_tables(frame, frame.assign(c="r"), fixed=["a", "b"])
    assert got["df"].to_list() == [0, 4, 4]
    assert np.isnan(got.loc[("a", "b"), "S_pMSE"])


def test_tables_without_a_common_level():
    got = utility_tables(pd.DataFrame({"x": ["a"] * 5}), pd.DataFrame({"x": ["b"] * 5}), tables="oneway").iloc[0]
    assert (got["SPECKS"], got["JSD"], got["df"]) == (1.0, 1.0, 1)
    assert np.isnan(got["G"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tables": "threeway"}, "tables is 'threeway'; allowed: 'oneway', 'twoway'"),
        ({"n_groups": 0}, "n_groups is 0"),
        ({"tables": "twoway"}, "real has one column"),
    ],
)
def test_invalid_input_raises(settings, message):
    frame = pd.DataFrame({"x": np.arange(20.0)})
    with pytest.raises(mcce.InputError, match=message):
        utility_tables(frame, frame, **settings)
