"""Defects found by random workflows, each reduced to a minimal case."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import mcce
from mcce.report.names import Names
from mcce.report.plots.scale import scale_of_range
from mcce.report.words import measure_figures

N = 60


def people(**columns):
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=N), "b": rng.choice(list("xyz"), N), "c": rng.integers(0, 9, N)}
    return pd.DataFrame(table | columns)


def fitted(X, sampler="cart", **settings):
    explainer = mcce.MCCE(lambda rows: rows["c"] > 4, decision=True, sampler=sampler, random_state=1, **settings)
    return explainer.fit(X), X[X["c"] <= 4].head(5)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"diverse": True}])
def test_more_counterfactuals_than_possible(options):
    """A billion rows were allocated."""
    explainer, factuals = fitted(people())
    most = explainer.explain(factuals, n_samples=15, n_counterfactuals=10**9, **options)
    enough = explainer.explain(factuals, n_samples=15, n_counterfactuals=500, **options)
    pd.testing.assert_frame_equal(most.frame, enough.frame)
    assert len(most) > len(factuals)


def test_more_counterfactuals_than_possible_in_rounds():
    explainer, factuals = fitted(people())
    found = explainer.explain(factuals.head(1), n_samples="auto", n_counterfactuals=10**9)
    distinct = explainer.generate(factuals.head(1), n_samples=int(found.draws.iloc[0])).drop_duplicates()
    assert len(found) == (distinct["c"] > 4).sum()


@pytest.mark.parametrize("values", [1e15 + np.arange(N) / 8, 2.0**52 + np.arange(N) % 2 * 4 + np.arange(N) % 9])
def test_numbers_a_few_units_in_the_last_place_apart(values):
    """The grid of the density had steps of 0."""
    explainer, factuals = fitted(people(a=values))
    found = explainer.explain(factuals, n_samples=20, sparse=True)
    assert len(found) == len(factuals)
    assert np.isfinite(explainer.generator_.log_density(people(a=values), training=True)).any()


def test_constraints_beside_a_column_without_levels():
    nothing = pd.Categorical([None] * N, categories=[])
    explainer, factuals = fitted(people(b=nothing))
    found = explainer.explain(factuals, n_samples=20, constraints=mcce.allow("a", direction="none"), sparse=True)
    assert found.frame["b"].isna().all()


@pytest.mark.parametrize("sampler", ["norm", "normrank", "pmm", "parametric"])
@pytest.mark.parametrize("missing", [False, True])
def test_constant_whose_square_is_zero(sampler, missing):
    a = np.where(np.arange(N) % 3 == 0, np.nan, 1e-200) if missing else np.full(N, 1e-200)
    explainer, factuals = fitted(people(a=a), {"c": sampler, "*": "cart"}, fixed=["a"])
    plain, _ = fitted(people(a=a * 0.0), {"c": sampler, "*": "cart"}, fixed=["a"])
    drawn, as_zero = (e.generator_.sample(50)["c"].tolist() for e in (explainer, plain))
    assert drawn == as_zero
    assert len(explainer.explain(factuals, n_samples=50)) == len(factuals)


def test_text_for_the_smallest_int8():
    """The absolute value of -128 is not an int8."""
    assert Names().pair("a", np.int8(-128), np.int8(127)) == ("-128", "127")


def test_reserved_names_used_as_columns():
    explainer, factuals = fitted(people().rename(columns={"a": "id", "b": "id_"}).assign(L0=1.0, L0_=2.0))
    table = explainer.explain(factuals, n_samples=20).to_frame()
    assert table.columns.is_unique
    assert table["id__"].tolist() == factuals.index.tolist()
    assert table["L0__"].dtype == np.int64


def test_dates_outside_nanosecond_range():
    low, high = pd.Timestamp("2300-01-01").as_unit("s"), pd.Timestamp("2500-01-01").as_unit("s")
    assert scale_of_range(low, high, (low, high)).place(low + (high - low) / 4) == 0.25
    most, some = (pd.Timedelta(days=days).as_unit("s") for days in (800_000, 200_000))
    assert scale_of_range(pd.Timedelta(0), most, (some, most)).place(some) == 0.25


@pytest.mark.parametrize("method", ["residuals", "pmm"])
def test_missing_fixed_values_rejected_by_an_estimator(method):
    sampler = mcce.EstimatorSampler(LinearRegression(), method=method)
    explainer, factuals = fitted(people(), {"c": sampler, "*": "cart"}, fixed=["a"])
    with pytest.raises(mcce.SamplerError, match=r"LinearRegression\(\) cannot predict rows with missing values"):
        explainer.explain(factuals.assign(a=np.nan), n_samples=20)


@pytest.mark.slow
def test_constraints_on_features_named_by_tuples():
    X = people().rename(columns={"a": ("a", 1)})
    X.columns = pd.Index(X.columns, tupleize_cols=False)
    explainer, factuals = fitted(X)
    said = [mcce.allow(("a", 1), low=-1.0), mcce.allow("c", high=7)]
    found = explainer.explain(factuals, n_samples=40, constraints=said)
    assert [*found.allowed.columns] == [(("a", 1), "low"), (("a", 1), "high"), ("c", "low"), ("c", "high")]
    assert found.allowed.iloc[0, 0] == -1.0
    assert found.allowed.iloc[0, 3] == 7
    assert "what the constraints on this feature allow" in found.plot().get_xlabel()


def test_spread_of_measures_with_an_infinite_value():
    best = pd.DataFrame({"prediction": [1, 1], "L0": [1, 3], "log_density": [-np.inf, -2.0]})
    figures = measure_figures(best, {})
    assert figures["mean log_density"] == -np.inf
    assert np.isnan(figures["sd log_density"])
    assert figures["sd L0"] == pytest.approx(2**0.5)
