"""The benchmark of the floor: exact levels, corrupted rows, and scorers that detect them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from benchmarks import floor, floor_scores
from benchmarks.floor_scores import SCORERS, Fitted, Rows, power, wrong_rows
from mcce.table import Schema


def related(n, seed):
    """Dependent numbers, a level, and a fixed column."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n)
    a = age + rng.normal(0, 2, n)
    b = 2 * a + rng.normal(0, 2, n)
    level = pd.Categorical(np.where(b + rng.normal(0, 5, n) > 80, "high", "low"), categories=["high", "low"])
    return pd.DataFrame({"age": age, "a": a, "b": b, "level": level})


@pytest.fixture(scope="module")
def split():
    return floor.split_rows(related(2000, 1), ["age"], None, np.random.default_rng(0))


def test_fresh_rows_are_not_among_the_training_rows(split):
    rows, fresh = split
    assert (len(rows.matrix), len(fresh)) == (1500, 500)
    assert not set(map(tuple, fresh)) & set(map(tuple, rows.matrix))
    assert rows.mutable.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name == "isolation forest")) for name in SCORERS]
)
def test_every_scorer_keeps_the_level_and_detects_shuffled_rows(split, name):
    """Real rows are exchangeable with the calibration rows: at 0.25 within 4 standard errors, for honest halves."""
    rows, fresh = split
    fitted = SCORERS[name](rows, np.random.default_rng(5))
    real = fitted.score(fresh)
    rejected = (fitted.quantile(real) < 0.25).mean()
    if not name.startswith("density"):  # its trees were fitted on the calibration rows
        assert abs(rejected - 0.25) < 4 * np.sqrt(0.25 * 0.75 * (1 / 500 + 1 / 750))
    wrong = wrong_rows(fresh, rows, np.random.default_rng(6))
    found = power(fitted.score(wrong["shuffled"]), real, 0.05)
    assert found > (0.1 if name == "isolation forest" else 0.5)


def test_corrupted_rows_match_their_description(split):
    rows, fresh = split
    wrong = wrong_rows(fresh, rows, np.random.default_rng(2))
    assert list(wrong) == list(floor.WRONG)
    for changed in wrong.values():
        kept = {tuple(row) for row in fresh[:, [0]]}
        assert {tuple(row) for row in changed[:, [0]]} <= kept  # the fixed column
    shuffled = wrong["shuffled"]
    for j in rows.mutable:
        assert np.array_equal(np.sort(shuffled[:, j]), np.sort(fresh[:, j]))
    assert abs(np.corrcoef(shuffled[:, 1], shuffled[:, 2])[0, 1]) < 0.2
    assert ((wrong["one shuffled"] != fresh).sum(axis=1) <= 1).all()
    crossed = wrong["crossed"]
    assert len(crossed) == len(fresh)
    assert ((crossed != fresh).sum(axis=1) == 1).all()
    rare = wrong["rare"]
    assert len(rare) > 0.9 * len(fresh)
    assert all(np.isin(rare[:, j], np.concatenate([rows.matrix[:, j], fresh[:, j]])).all() for j in (1, 2))
    spread = rare[:, 1][~np.isin(rare[:, 1], fresh[:, 1])]
    low, high = rows.matrix[:, 1].min(), rows.matrix[:, 1].max()
    assert np.histogram(spread, 4, (low, high))[0].min() > spread.size / 8  # uniform over the range


def test_rows_without_a_mutable_number_have_no_rare_variant():
    X = pd.DataFrame({"age": [20.0, 30.0] * 20, "level": pd.Categorical(["a", "b", "b", "a"] * 10)})
    schema = Schema.from_data(X)
    rows = Rows(schema.encode(X).matrix, schema, ["age"])
    assert list(wrong_rows(rows.matrix, rows, np.random.default_rng(0))) == ["shuffled", "one shuffled", "crossed"]


def test_power_is_at_the_exact_level_with_ties():
    real = np.repeat([0.0, 1.0, 2.0], [10, 40, 50])
    assert power(real, real, 0.05) == pytest.approx(0.05)
    assert power(np.array([0.0, 0.0, 5.0, 5.0]), real, 0.05) == pytest.approx(0.25)  # half of the ties
    assert power(np.array([-1.0, 5.0]), real, 0.05) == 0.5
    assert power(np.array([0.0, 1.0]), real, 0.3) == pytest.approx((1 + 0.5) / 2)


def test_quantiles_are_conformal():
    fitted = Fitted(lambda matrix: matrix[:, 0], np.array([3.0, 1.0, 2.0]))
    assert fitted.quantile(np.array([0.0, 1.0, 2.5, 9.0])).tolist() == [0.25, 0.5, 0.75, 1.0]


def test_value_unknown_to_every_leaf_has_a_low_finite_score(split):
    rows, fresh = split
    far = fresh[:2].copy()
    far[:, 1] = 1e6
    for name in ("density, cart", "ratio, ctree"):
        fitted = SCORERS[name](rows, np.random.default_rng(0))
        assert np.isfinite(fitted.score(far)).all()
    density = SCORERS["density, cart"](rows, np.random.default_rng(0))
    assert (density.score(far) < np.quantile(density.score(fresh), 0.05)).all()
    assert density.score(far).min() >= floor_scores.LEAST * 3


@pytest.mark.slow
def test_small_run_on_the_loans(tmp_path, capsys):
    out = tmp_path / "floor"
    arguments = ["--only", "loans", "--rows", "400", "--splits", "1", "--fresh", "150"]
    assert floor.main([*arguments, "--scorers", "plausibility;density, cart", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 120
    assert "loans: 300 rows to fit, 100 fresh ones, 2 split(s)" in said  # two for 150 new rows
    levels = re.search(r"^plausibility +(\S+) +(\S+) +(\S+) +(\S+)", said, re.MULTILINE).groups()
    at, at_quarter, least, most = map(float, levels)
    assert least <= at <= most
    assert at < at_quarter
    assert re.search(r"rejects \d+\.\d\d times as many as density, cart", said)
    assert "| plausibility |" in out.with_suffix(".md").read_text()


def test_unknown_scorers_raise(capsys):
    with pytest.raises(SystemExit):
        floor.main(["--scorers", "plausible"])
    assert "--scorers names plausible; there are plausibility, density, cart" in capsys.readouterr().err
