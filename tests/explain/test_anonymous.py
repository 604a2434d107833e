"""Rows of keys widened until k people are in them: against all boxes of small tables, counted here once more."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce.exceptions import InputError
from mcce.explain.anonymous import Anonymity, TrainingKeys, Widening, anonymity_of, nice_step, points_of
from mcce.table import Schema

LEVELS = ["low", "middle", "high", "top"]


def people(rng, n):
    frame = pd.DataFrame(
        {
            "pay": rng.integers(0, 12, n) * 700.0,
            "grade": pd.Categorical(rng.choice(LEVELS, n), categories=LEVELS, ordered=True),
            "town": rng.choice(["Oslo", "Bergen", "Hamar"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(30 * rng.integers(0, 9, n), unit="D"),
        }
    )
    frame["pay"] = frame["pay"].mask(rng.random(n) < 0.15)
    frame["town"] = frame["town"].mask(rng.random(n) < 0.15)
    return frame


def widening(frame, k, names=None):
    schema = Schema.from_data(frame)
    columns = [schema.position(name) for name in names or frame.columns]
    matrix = schema.encode(frame).matrix
    keys = TrainingKeys.of(matrix, columns)
    return Widening(Anonymity(k, keys), [schema.features[j] for j in columns]), matrix[:, columns]


def count_inside(made, box, matrix):
    """Count the rows of a table in a box, cell by cell."""
    inside = 0
    for row in matrix:
        ok = True
        for j, cell in enumerate(row):
            if np.isnan(cell):
                ok &= bool(box.missing[j])
            elif made.unordered[j]:
                ok &= bool(box.levels[j][int(cell)])
            else:
                ok &= bool(box.low[j] <= cell <= box.high[j])
        inside += ok
    return inside


def cells_left_out(made, box, row, matrix):
    """Yield the boxes with less in one cell: the nearest smaller interval of training values, a level, missing."""
    for j in range(row.size):
        low, high = box.low.copy(), box.high.copy()
        if box.missing[j] and not np.isnan(row[j]):
            missing = box.missing.copy()
            missing[j] = False
            yield type(box)(low, high, missing, box.levels)
        if made.unordered[j]:
            for level in np.flatnonzero(box.levels[j]):
                if level != row[j]:
                    levels = [mask.copy() for mask in box.levels]
                    levels[j][level] = False
                    yield type(box)(low, high, box.missing, tuple(levels))
        elif box.low[j] < box.high[j] and not np.isnan(row[j]):
            inner = [v for v in matrix[:, j] if box.low[j] <= v <= box.high[j]] + [row[j]]
            for end, ends in (
                ("low", [v for v in inner if v > box.low[j]]),
                ("high", [v for v in inner if v < box.high[j]]),
            ):
                moved = (
                    box.with_interval(j, min(ends), high[j])
                    if end == "low"
                    else box.with_interval(j, low[j], max(ends))
                )
                if moved.low[j] <= row[j] <= moved.high[j]:
                    yield moved


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(5, 60), k=st.integers(2, 6), kept=st.integers(0, 3))
def test_a_box_has_k_people_and_nothing_that_they_do_not_need(seed, n, k, kept):
    rng = np.random.default_rng(seed)
    made, matrix = widening(people(rng, n), min(k, n))
    row = np.array([rng.choice(matrix[:, j]) for j in range(4)])
    free = np.ones(4, dtype=bool)
    free[rng.permutation(4)[:kept]] = False
    box = made.widen(row, free, np.ones(made.counts.size, dtype=bool))
    alike = [
        r for r in matrix if all(free[j] or r[j] == row[j] or (np.isnan(r[j]) and np.isnan(row[j])) for j in range(4))
    ]
    if box is None:
        assert len(alike) < made.k
        return
    assert count_inside(made, box, row[None, :]) == 1
    assert count_inside(made, box, matrix) == made.count(box) >= made.k
    for j in np.flatnonzero(~free):
        assert box.size(j) == 1
    for smaller in cells_left_out(made, box, row, matrix):
        assert count_inside(made, smaller, matrix) < made.k
    lost = made.loss(box)
    assert ((lost >= 0) & (lost <= 1)).all()
    assert (lost[~free] == 0).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 40), k=st.integers(2, 6))
def test_one_number_has_the_smallest_interval(seed, n, k):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"pay": rng.integers(0, 30, n) * 100})
    made, matrix = widening(frame, min(k, n))
    row = np.array([float(rng.integers(0, 30) * 100)])
    box = made.widen(row, np.array([True]), np.ones(made.counts.size, dtype=bool))
    ends = np.append(matrix[:, 0], row)
    widths = [
        high - low
        for low, high in itertools.product(ends, ends)
        if low <= row[0] <= high and ((matrix[:, 0] >= low) & (matrix[:, 0] <= high)).sum() >= made.k
    ]
    assert box.high[0] - box.low[0] == min(widths)
    assert made.count(box) >= made.k


def test_near_people_are_enough_where_there_are_many():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(3000, 3)).round(3), columns=list("abc"))
    made, matrix = widening(frame, 7)
    everybody = np.ones(made.counts.size, dtype=bool)
    for row in matrix[:3] + 0.0005:
        box = made.widen(row, np.ones(3, dtype=bool), everybody)
        assert count_inside(made, box, matrix) >= 7
        assert made.loss(box).mean() < 0.1


def test_ends_are_rounded_outwards_beside_the_factual():
    frame = pd.DataFrame(
        {"pay": [48_210, 52_340, 53_000, 59_870, 70_000], "since": pd.date_range("2019-05-04", periods=5, freq="70D")}
    )
    made, matrix = widening(frame, 2)
    box = made.exact(matrix[1]).with_interval(0, 52_340, 59_870).with_interval(1, matrix[1, 1], matrix[3, 1])
    told = made.rounded(box, 5.0, np.array([30_000.0, matrix[0, 1]]))
    assert (told.low[0], told.high[0]) == (52_000, 60_000)
    dates = pd.Series(made.features[1].decode(np.array([told.low[1], told.high[1]])))
    assert dates.dt.strftime("%Y-%m-%d").tolist() == ["2019-07-01", "2019-11-30"]
    beside = made.rounded(box, 5.0, np.array([52_100.0, np.nan]))
    assert 52_100 < beside.low[0] <= 52_340
    whole = made.rounded(box.with_interval(0, 48_210, 70_000), 5.0, np.array([np.nan, np.nan]))
    assert (whole.low[0], whole.high[0]) == (48_210, 70_000)  # no farther than the training rows go
    assert [nice_step(w) for w in (0.9, 0.1, 1234.0, 9.99)] == [0.5, 0.1, 1000.0, 5.0]


def test_values_are_spread_over_the_changed_keys():
    rng = np.random.default_rng(3)
    made, matrix = widening(people(rng, 40), 2)
    row = matrix[np.flatnonzero(~np.isnan(matrix).any(axis=1))[0]]
    box = made.exact(row).with_interval(0, 700.0, 4900.0)
    points = points_of(box, np.array([True, True, False, False]), row, made.features, 1)
    assert points[:, 0].min() == 700.0
    assert points[:, 0].max() == 4900.0
    assert (points[:, 1:] == row[1:]).all()
    assert box.contain(points).all()
    wide = box.with_interval(1, 0.0, 3.0)
    levels = tuple(np.ones(3, dtype=bool) if j == 2 else mask for j, mask in enumerate(wide.levels))
    wide = type(box)(wide.low, wide.high, np.array([True, False, True, False]), levels)
    points = points_of(wide, np.ones(4, dtype=bool), row, made.features, 1)
    assert wide.contain(points).all()
    for j, n in ((1, 4), (2, 4)):
        assert len({str(v) for v in points[:, j]}) == n  # all ranks; all levels and missing
    assert np.array_equal(points, points_of(wide, np.ones(4, dtype=bool), row, made.features, 1), equal_nan=True)


def test_keys_are_counted_and_more_people_than_there_are_refused():
    matrix = np.array([[1.0, 0.0, 9.0], [1.0, -0.0, 8.0], [2.0, np.nan, 9.0], [2.0, np.nan, 7.0], [3.0, 1.0, 9.0]])
    keys = TrainingKeys.of(matrix, (0, 1))
    assert keys.count(matrix).tolist() == [2, 2, 2, 2, 1]
    assert keys.count(np.array([[5.0, 0.0, 9.0]])).tolist() == [0]
    with pytest.raises(InputError, match="asks for 6 training people behind every row, and there are 5 training rows"):
        anonymity_of(6, keys)
