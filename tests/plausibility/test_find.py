"""Relations are found where they are, and not where they are not."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from mcce.plausibility.find import find_relations
from mcce.plausibility.relations import Relations
from mcce.table import Schema
from tests.plausibility.test_relations import MATRIX, SCHEMA, TRUTH, shop


def noise(rng, n):
    """Return a column of any kind that depends on nothing."""
    columns = [
        lambda: rng.normal(size=n),
        lambda: rng.integers(0, rng.integers(2, 60), n),
        lambda: rng.poisson(rng.uniform(0.2, 5.0), n),
        lambda: rng.exponential(100, n).round(2),
        lambda: np.where(rng.random(n) < 0.7, 0, rng.integers(1, 500, n)),
        lambda: (rng.random(n) < rng.uniform(0.02, 0.5)).astype(int),
        lambda: rng.choice(list("abcde"), n),
        lambda: pd.Categorical.from_codes(rng.integers(0, 4, n), list("wxyz"), ordered=True),
        lambda: pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        lambda: rng.lognormal(8, 1, n).round(-2),
        lambda: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1)),
        lambda: np.where(rng.random(n) < 0.97, 0.0, rng.integers(1, 9, n)),
        lambda: rng.integers(1, 4, n) * 12,
        lambda: rng.random(n) < 0.5,
        lambda: rng.choice([f"z{k}" for k in range(n // 3 + 2)], n),
    ]
    return columns[rng.integers(0, len(columns))]()


def tables_of_noise(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, p = rng.choice([12, 30, 60, 200, 1000]), rng.choice([4, 8, 15])
        yield pd.DataFrame({f"c{j}": noise(rng, n) for j in range(p)})


@pytest.mark.parametrize("seeds", [range(15), pytest.param(range(15, 400), marks=pytest.mark.nightly)], ids=str)
def test_independent_columns_have_no_relations(seeds):
    found = [relations.texts for relations in map(find_relations, tables_of_noise(seeds)) if relations]
    assert len(found) <= 0.01 * len(seeds), found


def amounts(rng, n):
    """Return a column of positive numbers, on some grid."""
    columns = [
        lambda: rng.integers(1, 900, n),
        lambda: rng.lognormal(5, 1, n).round(2),
        lambda: rng.uniform(10, 200, n).round(1),
        lambda: rng.choice([12, 24, 36, 48, 60], n),
        lambda: np.maximum(1, rng.poisson(30, n)),
        lambda: rng.gamma(2, 100, n).round() + 1,
    ]
    return columns[rng.integers(0, len(columns))]().astype(float)


FORMS = {
    "sum": lambda a, b, c, d: (a + b).round(2),
    "four": lambda a, b, c, d: (a + b + c + d).round(2),
    "difference": lambda a, b, c, d: (a - b).round(2),
    "weighted": lambda a, b, c, d: (0.3 * a + 0.7 * b).round(2),
    "irrational": lambda a, b, c, d: a + np.pi * b,
    "whole": lambda a, b, c, d: (a + b).round(),
    "inches": lambda a, b, c, d: (a * 2.54).round(2),
    "product": lambda a, b, c, d: (a * b).round(2),
    "quotient": lambda a, b, c, d: (a / b).round(3),
    "percent": lambda a, b, c, d: (100 * a / b).round(1),
    "bmi": lambda a, b, c, d: (a / (b * b)).round(4),
    "debt to income": lambda a, b, c, d: ((a + b) / c).round(3),
    "growth": lambda a, b, c, d: ((a - b) / b).round(4),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dirty", [0.0, 0.008], ids=["clean", "dirty"])
def test_equations_are_found(form, dirty):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        n = (400, 3000)[seed]
        parts = {name: amounts(rng, n) for name in "abcdefgh"}
        target = FORMS[form](*(parts[name] for name in "abcd"))
        wrong = rng.choice(n, int(dirty * n), replace=False)
        target[wrong] = (target[wrong] * rng.choice([0.1, 10.0, -1.0], wrong.size)).round(1)
        X = pd.DataFrame({**parts, "t": target})
        found = find_relations(X)
        (text,) = found.texts
        (relation,) = found.relations
        assert X.shape[1] - 1 in relation.columns, text
        assert found.broken[0] <= wrong.size
        schema = Schema.from_data(X)
        rows = schema.encode(X).matrix
        fresh = rows.copy()  # the equation computes the target of other rows
        fresh[:, :8] = np.column_stack([amounts(rng, n) for _ in range(8)])
        fresh[:, 8] = FORMS[form](*fresh[:, :4].T)
        assert relation.holds(fresh).mean() > 0.99, text


def test_texts_are_found_and_can_be_pasted_back():
    X = shop()
    found = find_relations(X)
    true = Relations.read([text for text in TRUTH if text != "fee <= total"], SCHEMA, MATRIX)
    assert {each.columns for each in true.relations} <= {tuple(sorted(each.columns)) for each in found.relations} | {
        (11, 12)
    }
    schema = Schema.from_data(X)
    again = Relations.read(found, schema, schema.encode(X).matrix)
    assert again.texts == found.texts
    assert again.relations == found.relations


def test_a_column_follows_from_one_equation():
    """Relations that follow from others are not reported."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(1, 900, (600, 4)), columns=list("abcd"))
    X["s"] = X["a"] + X["b"]
    X["t"] = X["s"] + X["c"]
    X["u"] = X["t"] - X["d"]
    X["s2"] = X["s"] * 2
    texts = [text for text in find_relations(X).texts if "==" in text]
    assert len(texts) == 4, texts


def test_names_and_order_of_columns_play_no_part():
    X = shop()
    renamed = X.set_axis([f"x{j}" for j in range(X.shape[1])], axis=1)
    one, other = find_relations(X), find_relations(renamed)
    assert [each.columns for each in one.relations] == [each.columns for each in other.relations]
    turned = find_relations(X[X.columns[::-1]])
    assert len(turned) == len(one)


def test_names_that_are_odd():
    X = shop()[["price", "count", "cost", "kind", "code"]]
    X.columns = ["unit price", 7, "a -> b", "in", "x"]
    texts = find_relations(X).texts
    assert set(texts) == {"`a -> b` == `unit price` * `7`", "`in` <-> x"}
    X.columns = ["a`b", "7", 7, "in", "x"]  # no text can name these columns
    assert find_relations(X).texts == ("`in` <-> x",)


def test_dates_and_missing_values():
    X = shop(1000)
    rng = np.random.default_rng(0)
    X["one half"], X["the other"] = X["cost"].where(X.index < 500), X["cost"].where(X.index >= 500)  # never together
    for name in ("days", "end", "total", "kind"):
        X[name] = X[name].mask(rng.random(len(X)) < 0.3)
    texts = find_relations(X).texts
    assert "end == start + days" in texts
    assert "total == fee + cost" in texts
    assert "start <= end" not in texts


def test_encoded_tables_fixed_and_derived_columns():
    X = shop()
    schema = Schema.from_data(X).arrange(["price", "count", "cost", *X.columns.drop(["price", "count", "cost"])])
    table = schema.encode(X)
    found = find_relations(table, n_fixed=3, derived=[schema.position("total")])
    assert found
    assert not any("total" in text or "price *" in text for text in found.texts)
    assert found.kept_columns == {0, 1, 2, schema.position("total")}


def test_repeated_rows_are_no_evidence():
    X = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [2, 3, 4]})
    assert not find_relations(pd.concat([X] * 500, ignore_index=True))


def test_orders():
    rng = np.random.default_rng(0)
    low = rng.normal(size=500)
    X = pd.DataFrame({"low": low, "mid": low + rng.exponential(size=500)})
    X["high"] = X["mid"] + rng.exponential(size=500)
    X["far"] = rng.normal(100.0, 1.0, 500)
    assert find_relations(X).texts == ("low <= mid", "mid <= high")
    X.loc[[4, 9], "mid"] = -9.0
    assert repr(find_relations(X)) == "low <= mid  (broken by 2 training rows)\nmid <= high"


def test_one_way_maps():
    rng = np.random.default_rng(0)
    town = rng.integers(0, 30, 800)
    X = pd.DataFrame({"town": [f"t{k}" for k in town], "land": [f"l{k % 4}" for k in town], "half": town % 4 < 2})
    X["age"] = rng.normal(size=800)  # without it, most rows are repeated, and no evidence
    assert find_relations(X).texts == ("town -> land", "land -> half")


def test_cholesterol_is_the_sum_of_its_parts():
    X = load_diabetes(as_frame=True, scaled=False).data
    (text,) = find_relations(X).texts
    assert {"s1", "s2", "s3", "exp(s5)"} <= set(text.replace("(s5)", "(s5) ").split())
    assert not find_relations(load_diabetes(as_frame=True).data)


def test_worst_cells_are_no_smaller_than_mean_cells():
    X = load_breast_cancer(as_frame=True).data
    names = ["radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points"]
    found = find_relations(X)
    assert {f"`mean {name}` <= `worst {name}`" for name in names} <= set(found.texts)
    assert max(found.broken) <= 0.01 * len(X)


@pytest.mark.slow
def test_search_takes_a_second_of_thirty_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"c{j}": noise(rng, 4454) for j in range(30)})
    X["sum"] = np.arange(4454) + 0.5
    find_relations(X.head(50))
    begin = time.process_time()
    find_relations(X)
    assert time.process_time() - begin < 1.5


def test_wrong_rows_of_one_equation_bend_no_other():
    """In wrong rows income - salary - other is not 0, so that a multiple of it would fit them in any equation."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(100, 900, (1500, 4)), columns=["salary", "other", "rent", "loan"])
    X["income"] = X["salary"] + X["other"]
    X["burden"] = ((X["rent"] + X["loan"]) / X["income"]).round(3)
    X.loc[rng.choice(1500, 12, replace=False), "income"] += 1000
    found = find_relations(X)
    assert found.texts == ("income == salary + other", "burden == (rent + loan) / income")
    assert found.broken == (12, 12)
