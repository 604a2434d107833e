"""pMSE and tables of counts compared with synthpop's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.diagnostics import pmse, utility_tables
from mcce.diagnostics.utility import group_breaks
from mcce.exceptions import InputError

from .reference import CASES, GROUPS, load, read

MEASURES = [
    "pMSE", "S_pMSE", "df", "VW", "FT", "JSD", "SPECKS", "WMabsDD", "U", "G", "PO50", "MabsDD", "dBhatt", "S_VW",
    "S_FT", "S_JSD", "S_WMabsDD", "S_G", "dfG",
]  # fmt: skip


@pytest.mark.parametrize("max_order", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_propensity_matches_synthpop(name, max_order):
    case = read(name)
    expected = case.tables["gen"].query("maxorder == @max_order").iloc[0]
    found = pmse(case.real, case.generated, max_order=max_order)
    for measure in ("pMSE", "S_pMSE", "SPECKS", "PO50", "U"):
        assert getattr(found, measure) == pytest.approx(expected[measure], rel=1e-9), measure
    assert found.n_coefficients == found.n_counted == expected["km1"]
    assert found.converged
    if "pMSE_expected" in expected:
        assert found.expected == pytest.approx(expected["pMSE_expected"])
    if f"logit{max_order}_score" in case.tables:
        np.testing.assert_allclose(found.scores, case.tables[f"logit{max_order}_score"]["score"], atol=1e-9)


@pytest.mark.parametrize("tables", ["oneway", "twoway"])
@pytest.mark.parametrize("name", CASES)
def test_tables_match_synthpop(name, tables):
    case = read(name)
    expected = case.tables[tables]
    found = utility_tables(case.real, case.generated, tables=tables)
    assert list(found.columns) == MEASURES
    np.testing.assert_allclose(found.to_numpy(), expected[MEASURES].to_numpy(float), rtol=1e-9, atol=1e-12)
    labels = [".".join(map(str, label)) if isinstance(label, tuple) else label for label in found.index]
    if "pair" in expected:  # "1.age:2.hours"
        names = [".".join(part.partition(".")[2] for part in pair.split(":")) for pair in expected["pair"]]
    else:
        names = [a if not b else f"{a}.{b}" for a, b in zip(expected["var1"], expected["var2"])]
    assert labels == names


@pytest.mark.parametrize("name", [name for name in CASES if "group_breaks" in read(name).tables])
def test_breaks_match_synthpop(name):
    case = read(name)
    for variable, rows in case.tables["group_breaks"].groupby("variable"):
        both = pd.concat([case.real[variable], case.generated[variable]]).to_numpy(float)
        np.testing.assert_allclose(group_breaks(both, 5), rows["brk"], rtol=1e-14)


@pytest.mark.parametrize("name", GROUPS)
def test_groups_match_synthpop(name):
    for case in load(name):
        real, generated = (np.array(case[key], dtype=float) for key in ("real", "syn"))
        both = np.concatenate([real, generated])
        inner = group_breaks(both, case["n_groups"])[1:-1]
        for values, expected in ((real, case["obs"]), (generated, case["gen"])):
            missing = np.isnan(values)
            counts = np.bincount(np.searchsorted(inner, values[~missing], side="right"), minlength=inner.size + 1)
            assert [*counts, *([missing.sum()] if np.isnan(both).any() else [])] == expected, case


def test_separated_and_equal_tables():
    real, generated = pd.DataFrame({"x": np.arange(20.0)}), pd.DataFrame({"x": np.arange(30.0, 50.0)})
    scores = pmse(real, generated).scores
    assert (scores[:20] > 0.999999).all()
    assert (scores[20:] < 1e-6).all()
    frame = read(CASES[0]).real
    found = utility_tables(frame, frame)
    assert (found[["pMSE", "VW", "FT", "JSD", "SPECKS", "WMabsDD", "G", "MabsDD"]].abs() < 1e-9).all(axis=None)
    assert (found["U"] == len(frame) ** 2 / 2).all()
    none_in_common = utility_tables(pd.DataFrame({"x": ["a"] * 5}), pd.DataFrame({"x": ["b"] * 5}), tables="oneway")
    assert none_in_common[["SPECKS", "JSD", "df"]].to_numpy().tolist() == [[1.0, 1.0, 1]]
    assert none_in_common["G"].isna().all()


def test_constant_and_dependent_columns_add_nothing():
    rng = np.random.default_rng(1)
    tables = [pd.DataFrame({"x": rng.normal(size=n)}) for n in (50, 40)]
    more = [frame.assign(same=3.0, one="a", twice=2 * frame["x"] + 1, gone=np.nan) for frame in tables]
    plain, extended = (pmse(*pair, max_order=0) for pair in (tables, more))
    assert plain.n_coefficients == extended.n_coefficients == 1
    np.testing.assert_allclose(plain.scores, extended.scores, atol=1e-9)
    found = utility_tables(*more, tables="oneway").loc[["same", "one", "gone"]]
    assert found["df"].to_list() == [0, 0, 0]
    assert found[["S_pMSE", "S_VW", "S_G"]].isna().all(axis=None)
    assert (found[["pMSE", "VW", "SPECKS"]] == 0).all(axis=None)


def test_coefficients_of_drawn_columns_are_counted():
    """For a, b (fixed) and x, y: x, y and their five products count; the copied columns and their product do not."""
    rng = np.random.default_rng(1)
    real = pd.DataFrame(rng.normal(size=(100, 4)), columns=list("axby"))
    generated = real.assign(x=rng.normal(size=100), y=rng.normal(size=100))
    found = pmse(real, generated, fixed=["a", "b"])
    assert (found.n_coefficients, found.n_counted) == (10, 7)
    assert found.expected == pytest.approx(7 / 8 / 200)
    tied = real.assign(x=real["a"])[["x", "a", "b", "y"]]  # a drawn column that copies a fixed one is not free
    found = pmse(tied, tied.assign(y=generated["y"]), fixed=["a", "b"], max_order=0)
    assert (found.n_coefficients, found.n_counted) == (3, 1)
    frame = pd.DataFrame({"a": list("xxyy") * 5, "b": list("xyxy") * 5, "c": list("pqqp") * 5})
    tables = utility_tables(frame, frame.assign(c="r"), fixed=["a", "b"])
    assert tables["df"].to_list() == [0, 4, 4]
    assert np.isnan(tables.loc[("a", "b"), "S_pMSE"])


@pytest.mark.slow
@pytest.mark.parametrize("n_fixed", [0, 2])
def test_perfect_generator_scores_as_expected(n_fixed):
    """Columns are drawn from the true process given the fixed ones; both tables vary: the mean is 1 / (1 - c) = 2."""
    rng = np.random.default_rng(n_fixed)
    found = []
    for _ in range(40):
        kept = pd.DataFrame(rng.integers(4, size=(400, 2)), columns=["a", "b"]).astype(str)
        chance = 0.2 + 0.2 * kept["a"].astype(int)
        real = kept.assign(x=rng.binomial(2, chance), z=rng.normal(chance))
        other = kept if n_fixed else kept.sample(400, replace=True, random_state=rng)
        chance = 0.2 + 0.2 * other["a"].astype(int)
        generated = other.assign(x=rng.binomial(2, chance), z=rng.normal(chance))
        fixed = ["a", "b"][:n_fixed]
        tables = utility_tables(real, generated, fixed=fixed).loc[("a", "x"), "S_VW"]
        found.append((pmse(real, generated, fixed=fixed, max_order=0).S_pMSE, tables))
    error = np.std(found, axis=0) / np.sqrt(40)
    assert (np.abs(np.mean(found, axis=0) - 2.0) < 4 * error + (0.0 if n_fixed else 1.0)).all()


@pytest.mark.parametrize(
    ("measure", "settings", "message"),
    [
        (pmse, {"max_order": 2}, r"max_order is 2; allowed: 0 \(columns alone\), 1 \(and their products\)"),
        (pmse, {"max_order": True}, "max_order is True"),
        (pmse, {"fixed": ["c"]}, "fixed names 'c', which is not a column; known: 'x'"),
        (pmse, {"fixed": ["x"]}, "fixed names 'x', but generated does not copy them from real: 20 of 20 distinct rows"),
        (utility_tables, {"tables": "threeway"}, "tables is 'threeway'; allowed: 'oneway', 'twoway'"),
        (utility_tables, {"n_groups": 0}, "n_groups is 0"),
        (utility_tables, {"tables": "twoway"}, "real has one column; tables='twoway' needs two"),
    ],
)
def test_invalid_input_raises(measure, settings, message):
    frame = pd.DataFrame({"x": np.arange(20.0)})
    with pytest.raises(InputError, match=message):
        measure(frame, frame.iloc[:-1], **settings)


def test_model_exceeding_memory_raises():
    frame = pd.DataFrame({f"x{j}": pd.Categorical(np.arange(3000) % 100) for j in range(10)})
    with pytest.raises(InputError, match=r"max_order=1 makes 442036 columns for 6000 rows.*use max_order=0"):
        pmse(frame, frame)
