"""The trade-off compared with figures recomputed row by row."""

from __future__ import annotations

import pickle

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, InputError, gower_distance

FIXED = ["age"]
COLUMNS = ["floor", "L0", "gower", "gower_sum", "distance", "plausibility", "explained", "above_floor", "rows_queried"]


class Rule:
    """A model that accepts if salary and home add up, and counts the queried rows."""

    def __init__(self) -> None:
        self.n_queried = 0

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        self.n_queried += len(rows)
        return (rows["salary"] / 10 + 2.0 * (rows["home"] == "own") - rows["loan"] > 5).to_numpy(dtype=float)


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 30, n)
    salary = (age + rng.normal(0, 6, n) + 20).round()
    return pd.DataFrame(
        {
            "age": age,
            "salary": salary,
            "home": pd.Categorical(np.where(salary + rng.normal(0, 8, n) > 48, "own", "rent"), ["rent", "own"]),
            "loan": rng.integers(0, 4, n),
        }
    )


@pytest.fixture(scope="module")
def training() -> pd.DataFrame:
    return people(300, 1)


@pytest.fixture(scope="module")
def explainer(training) -> MCCE:
    return MCCE(Rule(), decision=(0.5, 1.0), fixed=FIXED, random_state=1).fit(training)


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    yield
    plt.close("all")


def refused(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[Rule()(frame) == 0]


def five_nearest(row: pd.DataFrame, factual: pd.Series, training: pd.DataFrame) -> float:
    """All distances, sorted; one row equal to the factual is left out."""
    others = training.drop(index=training.index[(training.astype(object) == factual).all(axis=1)][:1])
    sums = gower_distance(others, row, training=training) * training.shape[1]
    return float(np.sort(sums)[:5].mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    "seen",
    [pytest.param(True, id="training rows", marks=pytest.mark.nightly), pytest.param(False, id="new rows")],
)
def test_every_column_matches_a_loop(explainer, training, seen):
    X = training.head(90) if seen else people(60, 2).set_axis([f"new {i}" for i in range(60)])
    costs = explainer.trade_off(X, floors=(0, 0.3, 0.8), n_samples=60, max_factuals=1000)
    factuals = refused(X)
    assert costs.n_factuals == len(factuals)
    assert costs.table.index.tolist() == ["plain", "floor 0", "floor 0.3", "floor 0.8"]
    assert costs.table.columns.tolist() == COLUMNS
    settings = {f"floor {floor}": {"sparse": True, "floor": floor} for floor in (0, 0.3, 0.8)} | {"plain": {}}
    for name, options in settings.items():
        before = explainer.model.n_queried
        found = explainer.explain(factuals, n_samples=60, **options)
        got = costs.table.loc[name]
        changes, sums, distances = [], [], []
        for (id, _), row in found.frame.iterrows():
            factual = factuals.loc[id].astype(object)
            moved = row.astype(object) != factual
            steps = [
                abs(row["salary"] - factual["salary"]) / (training["salary"].max() - training["salary"].min()),
                float(row["home"] != factual["home"]),
                abs(row["loan"] - factual["loan"]) / 3,
            ]
            changes.append(int(moved.sum()))
            sums.append(sum(steps))
            distances.append(five_nearest(found.frame.loc[[(id, 1)]], factual, training))
        assert got["L0"] == pytest.approx(np.mean(changes))
        assert got["gower_sum"] == pytest.approx(np.mean(sums))
        assert got["gower"] == pytest.approx(np.mean(sums) / 4)
        assert got["distance"] == pytest.approx(np.mean(distances))
        assert got["explained"] == len(found) / len(factuals)
        assert got["rows_queried"] * len(factuals) == pytest.approx(found.run.settings["rows_queried"])
        assert got["rows_queried"] * len(factuals) <= explainer.model.n_queried - before
        if options:
            assert got["floor"] == options["floor"]
            assert got["plausibility"] == pytest.approx(found.measures["plausibility"].mean())
            assert got["above_floor"] == (found.measures["plausibility"] >= options["floor"]).mean()
    assert 0 < costs.table.at["floor 0.8", "above_floor"] < 1
    assert np.isnan(costs.table.loc["plain", ["floor", "above_floor"]].astype(float)).all()
    own = [five_nearest(factuals.loc[[id]], factuals.loc[id].astype(object), training) for id in factuals.index]
    assert costs.factual_distance == pytest.approx(np.mean(own))


@pytest.mark.slow
def test_floor_trades_changes_for_plausibility(explainer, training):
    table = explainer.trade_off(training, floors=(0.5, 0.1, 0), n_samples=200).table
    sparse = table.drop(index="plain").sort_values("floor")
    assert sparse["L0"].is_monotonic_increasing
    assert sparse["L0"].iloc[0] == sparse["L0"].min()
    assert sparse["L0"].iloc[0] < table.at["plain", "L0"]
    assert sparse["plausibility"].is_monotonic_increasing
    assert sparse["plausibility"].iloc[0] < sparse["plausibility"].iloc[-1]
    assert sparse["explained"].eq(1).all()


@pytest.mark.nightly
def test_options_are_passed_to_the_search(explainer, training):
    wide = explainer.trade_off(training, 0.2, n_samples=100, max_factuals=1000)
    bounded = explainer.trade_off(training, 0.2, n_samples=100, max_factuals=1000, max_gower=0.1)
    row = bounded.table.loc["floor 0.2"]
    assert row["explained"] < 1
    assert row["gower"] <= 0.1
    factuals = refused(training)
    found = explainer.explain(factuals, n_samples=100, sparse=True, floor=0.2, max_gower=0.1)
    assert row["explained"] == len(found) / len(factuals)
    assert bounded.table.loc["plain"].equals(wide.table.loc["plain"])
    nothing = explainer.trade_off(training, 0.2, n_samples=100, max_gower=0.0)
    assert nothing.table.loc["floor 0.2", "explained"] == 0
    assert nothing.table.loc["floor 0.2", ["L0", "distance", "above_floor"]].isna().all()


@pytest.mark.slow
def test_large_tables_are_sampled(explainer, training):
    costs = explainer.trade_off(training, [0.05], n_samples=50, max_factuals=7, max_rows=20)
    assert (costs.n_factuals, costs.n_training) == (7, 20)
    everything = explainer.trade_off(training, [0.05], n_samples=50, max_factuals=7)
    assert (everything.n_factuals, everything.n_training) == (7, 300)
    assert everything.table["distance"].lt(costs.table["distance"]).all()


def test_repr_and_plot(explainer, training):
    costs = explainer.trade_off(training, [0, 0.1], n_samples=50, max_factuals=20)
    text = repr(costs)
    assert text.startswith("Trade-off of plausibility: 20 factuals, 50 draws each, 300 training rows")
    assert "floor 0.1" in text
    assert f"distance of the factuals themselves: {costs.factual_distance:.3g}" in text
    assert "floor 0.1" in costs._repr_html_()
    assert len(costs.plot()) == 4
    axes = plt.subplots(2, 2)[1].ravel()
    assert list(costs.plot(axes)) == list(axes)


def test_invalid_input_raises(explainer, training):
    granted = training[Rule()(training) == 1]
    with pytest.raises(InputError, match=f"none of the {len(granted)} rows of X lacks the wanted decision"):
        explainer.trade_off(granted)
    with pytest.raises(InputError, match="floors is empty"):
        explainer.trade_off(training, [])
    with pytest.raises(InputError, match=r"floor is 1; it must be a number from 0 to below 1"):
        explainer.trade_off(training, [1], n_samples=10)
    with pytest.raises(InputError, match="max_rows is 0"):
        explainer.trade_off(training, max_rows=0)
    with pytest.raises(InputError, match="index of X has duplicate labels"):
        explainer.trade_off(training.set_axis([0] * len(training)))
    with pytest.raises(mcce.NotFittedError, match="not fitted"):
        MCCE(Rule(), decision=(0.5, 1.0)).trade_off(training)


def test_saved_explainer_accepts_its_training_rows(explainer, training):
    explainer.explain(training.head(1), n_samples=10, sparse=True)
    loaded = pickle.loads(pickle.dumps(explainer))
    with pytest.raises(InputError, match="pass them as `training`"):
        loaded.trade_off(training, 0.1)
    again = loaded.trade_off(training, 0.1, n_samples=50, max_factuals=20, training=training)
    first = explainer.trade_off(training, 0.1, n_samples=50, max_factuals=20)
    pd.testing.assert_frame_equal(again.table, first.table)
