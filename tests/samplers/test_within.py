"""Restrictions of draws."""

import numpy as np

from mcce.samplers import Within

NAN = np.nan


def test_nothing_is_restricted_by_default():
    assert Within().allows(np.array([-np.inf, 3.0, NAN])).all()


def test_bounds_are_inclusive_and_all_restrictions_hold_together():
    within = Within(low=np.full(4, 1.0), high=np.full(4, 3.0), values=np.array([0.0, 1.0, 2.5, 3.0]))
    assert within.allows(np.array([1.0, 2.0, 3.0, 0.0])).tolist() == [True, False, True, False]


def test_levels_and_missing_values():
    levels = np.array([[True, False], [False, True], [False, False]])
    within = Within(levels=levels, missing=np.array([False, True, True]))
    assert within.allows(np.array([0.0, 0.0, NAN])).tolist() == [True, False, True]
    assert within.allows(np.array([NAN, NAN, 1.0])).tolist() == [False, True, False]


def test_take_keeps_the_common_set_of_values():
    within = Within(low=np.array([1.0, 5.0]), values=np.array([2.0, 7.0]), missing=np.array([True, False])).take([1])
    assert within.allows(np.array([2.0])).tolist() == [False]
    assert within.allows(np.array([7.0])).tolist() == [True]
    assert within.allows(np.array([NAN])).tolist() == [False]


def test_and_is_the_intersection():
    rng = np.random.default_rng(1)
    n, values = 500, rng.choice([0.0, 1.0, 2.0, 3.0, NAN], 500)

    def random_within():
        return Within(
            low=rng.integers(0, 3, n).astype(float),
            high=rng.integers(1, 4, n).astype(float),
            levels=rng.random((n, 4)) < 0.7,
            values=np.array([0.0, 1.0, 3.0]) if rng.random() < 0.5 else None,
            missing=rng.random(n) < 0.5,
        )

    for one, other in ((random_within(), random_within()), (random_within(), Within()), (Within(), random_within())):
        assert ((one & other).allows(values) == (one.allows(values) & other.allows(values))).all()


def test_allowed_levels_agrees_with_allows():
    rng = np.random.default_rng(2)
    n = 50
    levels, low = rng.random((n, 4)) < 0.6, rng.integers(0, 3, n).astype(float)
    within = Within(low=low, levels=levels, values=np.array([0.0, 2.0, 3.0]))
    brute = np.column_stack([within.allows(np.full(n, code)) for code in np.arange(4.0)])
    assert (within.allowed_levels(n, 4) == brute).all()
    assert Within().allows_missing(2).tolist() == [True, True]
