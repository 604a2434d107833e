"""The score is calibrated, its parts are what they say, and the floor and the level agree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.distances import Gower
from mcce.plausibility.score import Judged, Nearest, Residuals, Score
from mcce.table import Schema, Table


def draw(rng: np.random.Generator, n: int) -> pd.DataFrame:
    x = rng.standard_normal(n)
    y = x + 0.3 * rng.standard_normal(n)
    level = np.where(rng.random(n) < 0.95, x > 0, rng.random(n) < 0.5)
    gaps = np.where(rng.random(n) < 0.1, np.nan, rng.exponential(size=n))
    return pd.DataFrame({"x": x, "y": y, "level": np.where(level, "high", "low"), "gaps": gaps})


@pytest.fixture(scope="module")
def learned() -> tuple[Schema, Score, Table]:
    frame = draw(np.random.default_rng(0), 3000)
    schema = Schema.from_data(frame)
    table = schema.encode(frame)
    return schema, Score.learn(table, 1), table


def judged_as_a_whole(score: Score, rows: np.ndarray) -> Judged:
    """Return bounds that no number reaches, so that every number of a row counts."""
    return Judged(rows, tuple(np.full_like(bounds, np.inf) for bounds in score.judge(rows).bounds))


@pytest.mark.parametrize("floor", [0.05, 0.25])
def test_a_floor_rejects_its_share_of_fresh_rows(learned, floor):
    schema, score, _ = learned
    rows = schema.encode(draw(np.random.default_rng(1), 4000)).matrix
    passes = score.at_floor(rows, judged_as_a_whole(score, rows), np.arange(len(rows)), floor)
    error = np.sqrt(floor * (1 - floor) * (1 / 1500 + 1 / 4000))  # of the calibration and of the fresh rows
    assert abs((~passes).mean() - floor) < 4 * error


def test_floor_and_level_agree(learned):
    _, score, table = learned
    rng = np.random.default_rng(2)
    factuals, owner = table.matrix[:40], np.repeat(np.arange(40), 50)
    rows = factuals[owner]
    column = rng.integers(0, rows.shape[1], len(rows))
    rows[np.arange(len(rows)), column] = table.matrix[rng.integers(0, 3000, len(rows)), column]
    judged = score.judge(factuals)
    level = score.level(rows, judged, owner)
    assert (score.level(factuals, judged, np.arange(40)) == 1.0).all()  # nothing is changed
    for floor in (0.01, 0.05, 0.3):
        passes = score.at_floor(rows, judged, owner, floor)
        assert level[passes].min() >= floor > level[~passes].max() - 1 / 1500
    assert level.min() < 0.01


def test_rows_that_contradict_the_dependence_are_not_plausible(learned):
    schema, score, _ = learned
    typical = {"x": 1.0, "y": 1.0, "level": "high", "gaps": 0.5}
    changes = [{}, {"y": -1.0}, {"level": "low", "x": 2.0}, {"gaps": 50.0}]
    rows = schema.encode(pd.DataFrame([{**typical, **change} for change in changes])).matrix
    level = score.level(rows, judged_as_a_whole(score, rows), np.arange(len(rows)))
    assert level[0] > 0.2
    assert (level[1:] < 0.05).all()


def test_nearness_is_that_of_brute_force(learned):
    _, _, table = learned
    rows, real = table.matrix[:60], table.take(np.arange(100, 400))
    gower = Gower.fit(real)
    distances = [np.sort(gower.sums(real.matrix, np.tile(row, (300, 1))))[:5].mean() for row in rows]
    np.testing.assert_allclose(-Nearest.fit(real).numbers(rows)[:, 0], distances, rtol=1e-12)


def test_residuals_of_two_numbers_are_those_of_their_regression():
    x = np.random.default_rng(3).multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 20_000)
    schema = Schema.from_data(pd.DataFrame(x, columns=["a", "b"]))
    numbers = Residuals.fit(schema.encode(pd.DataFrame(x, columns=["a", "b"]))).numbers(
        np.array([[1.0, -0.5], [0.0, 0.6]])
    )
    expected = [[1 + 0.4, 0.5 + 0.8], [0.48, 0.6]]  # |a - 0.8 b| and |b - 0.8 a|, both with the variance 1 - 0.8^2
    np.testing.assert_allclose(-numbers[:, :2], np.array(expected) / 0.6, atol=0.06)


def test_a_number_that_levels_determine_is_judged_by_them():
    rng = np.random.default_rng(4)
    services = rng.random((3000, 5)) < [0.2, 0.4, 0.5, 0.6, 0.8]
    frame = pd.DataFrame(services, columns=list("abcde"))
    frame["price"] = 20 + services @ [5, 8, 10, 12, 20] + rng.standard_normal(3000)
    schema = Schema.from_data(frame)
    score = Score.learn(schema.encode(frame), 1)
    rows = schema.encode(frame.head(200).assign(price=lambda rows: rows["price"] + 10)).matrix
    judged = score.judge(schema.encode(frame.head(200)).matrix)
    passes = score.at_floor(rows, judged, np.arange(200), 0.05)
    assert passes.mean() < 0.05
