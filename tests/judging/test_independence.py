"""The test of conditional independence on known processes."""

import numpy as np
import pandas as pd
import pytest

from mcce.judging.independence import check_independences
from mcce.table import Schema
from tests.marks import nightly_but

NAMES = ["z", "w", "z2", "x", "y"]  # x and y given z (number), w (levels) and z2 (number)


def levels_of(letters, logits, rng):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return pd.Categorical(np.array(list(letters))[(p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)])


def process(kind, strength, n, rng):
    """Return rows in which y depends on x by `strength`, in standard deviations of its noise."""
    z, z2, ex, ey = rng.normal(size=(4, n))
    w = rng.integers(0, 3, n)
    shift = np.array([-0.7, 0.0, 0.8])[w]
    of_x, of_y = z + shift, 0.8 * z - shift
    if kind == "waves":
        of_x, of_y = np.sin(2 * z) + shift, np.sin(2 * z) + z2
    if kind == "products":
        of_x = of_y = 1.5 * z * shift
    if kind == "heteroscedastic":
        ex, ey = ex * np.exp(0.6 * z), ey * np.exp(0.6 * z)
    if kind == "strong parents":
        of_x, of_y = 4 * z + shift, 4 * z
    x, y = of_x + ex, of_y + strength * ex + ey
    if kind == "missing":
        x, y = (np.where(rng.random(n) < 1 / (1 + np.exp(2 - z2)), np.nan, each) for each in (x, y))
    if kind == "zeros":
        x, y = np.maximum(x, 0.0), np.maximum(y, 0.0)
    if kind == "levels":
        x = levels_of("klm", np.column_stack([0 * z, 0.8 * z, shift]), rng)
        y = of_y + strength * 1.3 * np.array([0.0, 1.0, -1.0])[x.codes] + ey
    if kind == "two of levels":
        x, y = (pd.Categorical(np.array(list("lkm"))[np.searchsorted([-0.7, 0.7], each)]) for each in (x, y))
    rows = pd.DataFrame({"z": z, "w": pd.Categorical(np.array(list("abc"))[w]), "z2": z2, "x": x, "y": y})
    return Schema.from_data(rows).encode(rows)


KINDS = ["waves", "products", "heteroscedastic", "strong parents", "missing", "zeros", "levels", "two of levels"]


def p_values(kind, strength, n_tables, n=1000):
    tables = (process(kind, strength, n, np.random.default_rng([9, i])) for i in range(n_tables))
    return np.array([check_independences(t, [(3, 4, (0, 1, 2))], level=0.05, seed=1)[0].p for t in tables])


@pytest.mark.slow
@pytest.mark.parametrize("kind", nightly_but(KINDS, KINDS[0]))
def test_level_is_kept(kind):
    """At most 12 of 100 (binomial probability of more at a level of 0.05: 0.0015)."""
    assert (p_values(kind, 0.0, 100) <= 0.05).sum() <= 12


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_moderate_dependence_is_detected(kind):
    """At a fifth of a standard deviation: at least 28 of 40 (probability of fewer at a power of 0.8: 0.04)."""
    assert (p_values(kind, 0.2, 40) <= 0.05).sum() >= 28


def test_dependent_and_independent_columns_are_distinguished():
    table = process("levels", 0.5, 800, np.random.default_rng(1))
    statements = [(3, 4, (0, 1, 2)), (2, 0, ()), (3, 0, ())]
    found = check_independences(table, statements, level=0.05, seed=1)
    assert {(each.feature, each.other) for each in found if each.p_adjusted <= 0.05} == {("x", "y"), ("x", "z")}
    assert [each.p for each in found] == sorted(each.p for each in found)
    assert found == check_independences(table, statements[::-1], level=0.05, seed=1)


def test_p_values_are_adjusted_by_holm():
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(100, 4)), columns=list("abcd"))
    found = check_independences(
        Schema.from_data(rows).encode(rows), [(i, j, ()) for i in range(4) for j in range(i)], level=0.05, seed=1
    )
    p = [each.p for each in found]
    holm = [max(min(1.0, (6 - k) * p[k]) for k in range(i + 1)) for i in range(6)]
    assert [each.p_adjusted for each in found] == pytest.approx(holm)


def test_p_value_without_parents_is_that_of_a_correlation_test():
    """Normal data: near that of Pearson's test for a moderate correlation, where permutations are many."""
    from scipy.stats import pearsonr

    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 200))
    c = 0.15 * a + b
    rows = pd.DataFrame({"a": a, "c": c})
    found = check_independences(Schema.from_data(rows).encode(rows), [(1, 0, ())], level=0.05, seed=1)[0]
    assert found.strength == pytest.approx(abs(pearsonr(a, c)[0]), abs=0.05)
    assert pearsonr(a, c)[1] * 0.3 < found.p < min(1.0, pearsonr(a, c)[1] * 6)


def test_rows_with_missing_parents_are_dropped():
    """Where the parent is missing, x and y depend on each other through it."""
    rng = np.random.default_rng(2)
    z, ex, ey = rng.normal(size=(3, 1500))
    rows = pd.DataFrame({"z": np.where(rng.random(1500) < 0.4, np.nan, z), "x": z + ex, "y": z + ey})
    table = Schema.from_data(rows).encode(rows)
    assert check_independences(table, [(2, 1, (0,))], level=0.05, seed=1)[0].p > 0.05
    assert check_independences(table, [(2, 1, ())], level=0.05, seed=1)[0].p < 0.05


def test_constant_is_not_tested():
    rows = pd.DataFrame({"a": np.arange(50.0), "b": np.ones(50), "c": pd.Categorical(["x"] * 50)})
    for j in (1, 2):
        found = check_independences(Schema.from_data(rows).encode(rows), [(j, 0, ())], level=0.05, seed=1)
        assert np.isnan(found[0].p)


def test_column_determined_by_its_parents_is_not_tested():
    rng = np.random.default_rng(3)
    w = rng.integers(0, 3, 300)
    rows = pd.DataFrame({"w": pd.Categorical(w), "x": w * 2.0, "y": rng.normal(size=300)})
    found = check_independences(Schema.from_data(rows).encode(rows), [(2, 1, (0,))], level=0.05, seed=1)
    assert np.isnan(found[0].p)


@pytest.mark.slow
def test_many_rows_are_thinned_and_many_parents_are_fitted():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(6000, 12))
    rows = pd.DataFrame(z, columns=[f"z{i}" for i in range(12)]).assign(
        x=z.sum(axis=1) + rng.normal(size=6000), y=z.sum(axis=1) + rng.normal(size=6000)
    )
    table = Schema.from_data(rows).encode(rows)
    assert check_independences(table, [(13, 12, tuple(range(12)))], level=0.05, seed=1)[0].p > 0.05
    assert check_independences(table, [(13, 12, tuple(range(11)))], level=0.05, seed=1)[0].p < 0.05
