"""Numbers near a formula of others: ratios in a narrow band, and inconsistently rounded results."""

import numpy as np
import pandas as pd
import pytest

import mcce
from tests.plausibility.related_tables import rng
from tests.plausibility.test_soft_orders import KINDS, MARGINS, correlated


def near(X):
    return {each.says: each for each in mcce.find_relations(X).soft if each.kind == "near"}


def blood(n=600, seed=1, wrong=0):
    """Two fats and their quotient, which most laboratories round to whole numbers and some to two decimals."""
    r = rng(seed)
    total, hdl = r.normal(190, 35, n), r.normal(50, 13, n).clip(22)
    ratio = total / hdl
    X = pd.DataFrame({"total": total.round(), "hdl": hdl.round(), "age": r.integers(20, 80, n)})
    X["ratio"] = np.where(r.random(n) < 0.15, ratio.round(2), ratio.round())
    X.loc[X.index[:wrong], "ratio"] += 3
    return X


@pytest.mark.parametrize("wrong", [0, 4])
def test_inconsistently_rounded_quotient_is_near(wrong):
    X = blood(wrong=wrong)
    ((says, found),) = near(X).items()
    assert says.startswith("abs(ratio - total / hdl) <= 0.5")
    off = (X["ratio"] - X["total"] / X["hdl"]).abs()
    assert found.exceptions == (off > float(says.split()[-1])).sum() <= wrong + 6


@pytest.mark.slow
def test_answers_satisfy_near_relations():
    X = blood()

    def score(rows):
        return rows["hdl"] / 50 - rows["total"] / 400

    with pytest.warns(mcce.exceptions.AdviceWarning, match="total / hdl"):
        explainer = mcce.MCCE(score, decision=(0.8, np.inf), random_state=1).fit(X)
    (relation,) = explainer.relations_.soft
    most = float(relation.says.split()[-1])
    factuals = X[(score(X) < 0.8) & ((X["ratio"] - X["total"] / X["hdl"]).abs() <= most)].head(20)
    rows = explainer.explain(factuals, sparse=True, n_samples=300).frame
    assert len(rows) == 20
    assert ((rows["ratio"] - rows["total"] / rows["hdl"]).abs() <= most).all()


def cells(n=500, seed=1):
    """Cells that are nearly round, with measurement errors."""
    r = rng(seed)
    radius = r.lognormal(2.6, 0.25, n)
    return pd.DataFrame(
        {
            "radius": radius.round(2),
            "perimeter": (2 * np.pi * radius * np.exp(r.uniform(0, 0.1, n))).round(1),
            "area": (np.pi * radius**2 * np.exp(r.uniform(-0.1, 0, n))).round(1),
            "texture": r.lognormal(3, 0.3, n).round(2),
        }
    )


def test_ratios_in_a_narrow_band_are_near():
    found = list(near(cells()))
    bands = {text.split(" <= ")[1]: [float(text.split(" <= ")[k]) for k in (0, 2)] for text in found}
    assert list(bands) == ["perimeter / radius", "area / (radius * radius)"]
    assert np.allclose(bands["perimeter / radius"], [2 * np.pi, 2 * np.pi * np.exp(0.1)], rtol=0.01)
    assert np.allclose(bands["area / (radius * radius)"], [np.pi * np.exp(-0.1), np.pi], rtol=0.01)


def test_few_wrong_rows_do_not_hide_a_ratio():
    X = cells(2000)
    X.loc[X.index[::500], "perimeter"] = 1.0
    (found,) = [each for says, each in near(X).items() if "perimeter" in says]
    assert found.exceptions >= 4
    assert {0, 500, 1000} <= {*found.first}


def test_ratio_of_three_columns_is_near():
    r = rng(3)
    height, mass_index = r.normal(1.7, 0.1, 400).round(2), r.lognormal(3.2, 0.2, 400)
    X = pd.DataFrame({"height": height, "weight": (mass_index * height**2 * np.exp(r.uniform(0, 0.05, 400))).round(1)})
    X["index"] = mass_index.round(1)
    (found,) = near(X)
    assert " <= weight / (height * height * index) <= " in found


def test_equation_is_not_reported_as_near():
    r = rng(4)
    a, b = r.uniform(1, 90, (2, 500)).round(1)
    X = pd.DataFrame({"a": a, "b": b, "product": a * b})
    X.loc[[7, 300], "product"] += 100
    assert len(mcce.find_relations(X).proposals) == 1
    assert near(X) == {}


def unequal(seed, n=400):
    """Correlated columns with inconsistent rounding and no relation."""
    r = rng(seed)
    X = correlated(KINDS[seed % 4], ("real", "money")[seed // 4 % 2], n, seed)
    return pd.DataFrame({name: np.where(r.random(n) < 0.2, X[name].round(2), X[name].round()) for name in X})


@pytest.mark.nightly
def test_tables_without_relations_have_no_near_relation():
    tables = [unequal(seed) for seed in range(24)]
    tables += [correlated(kind, margin, 500, seed) for kind in KINDS for margin in MARGINS for seed in (1, 2)]
    assert [i for i, X in enumerate(tables) if near(X)] == []
