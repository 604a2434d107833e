import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcce.report.plots.scale import LineScale, as_number, bent_scale, scale_of, scale_of_range


def position(value, low, high):
    return LineScale(as_number(low), as_number(high)).place(value)


def test_position_on_a_linear_scale():
    assert position(5, 0, 10) == 0.5
    assert position(3, 3, 3) == 0.5
    assert -0.1 < position(-100, 0, 10) < 0
    assert 1 < position(100, 0, 10) < 1.1
    dates = [pd.Timestamp(d) for d in ("2020-01-02", "2020-01-01", "2020-01-05")]
    assert position(*dates) == 0.25
    assert position(dates[0].to_datetime64(), *dates[1:]) == 0.25
    assert position(*(d.date() for d in dates)) == 0.25  # an Arrow date in Python
    assert position(*(d.to_period("D") for d in dates)) == 0.25
    assert position(*(d - dates[1] for d in dates)) == 0.25


def test_marks_are_separated_under_heavy_tails():
    """Lognormal with a standard deviation of 2: on its range, one and two are the same point."""
    values = np.exp(2 * np.random.default_rng(1).standard_normal(1000))
    assert position(2, values.min(), values.max()) - position(1, values.min(), values.max()) < 0.01
    scale, ends = scale_of(values, (1.0, 2.0))
    assert not scale.is_linear
    assert ends == (scale.low, scale.high) == pytest.approx(np.quantile(values, [0.01, 0.99]), rel=0.2)
    assert scale.place(2.0) - scale.place(1.0) > 0.05
    mirrored, _ = scale_of(-values, (-1.0, -2.0))
    assert mirrored.place(-2.0) == pytest.approx(1 - scale.place(2.0))
    places = [scale.place(value) for value in np.sort(values)]
    assert places == sorted(places)


def test_scale_of_mostly_zeros_separates_the_others():
    scale, _ = scale_of([0.0] * 90 + [3000.0, 5000.0, 7000.0, 9000.0, 99_999.0] * 2, (0.0, 5000.0))
    assert 0.15 < scale.place(5000.0) < 0.8
    same, ends = scale_of([4.0] * 50, (4.0, 9.0))
    assert (same.place(4.0), same.place(9.0), ends) == (0.0, 1.0, (4.0, 9.0))


def test_even_spread_stays_linear_and_includes_the_marks():
    scale, ends = scale_of(range(101), (-50, 60))
    assert scale == LineScale(-50.0, 99.0)
    assert ends == (-50, 99)


def test_marks_near_one_end_of_the_training_range_are_separated():
    assert scale_of_range(0, 100, (20, 40)).is_linear
    low, high = scale_of_range(0, 1e6, (100, 200)), scale_of_range(0, 1e6, (1e6 - 100, 1e6 - 200))
    assert low.place(200) - low.place(100) > 0.03
    assert high.place(1e6 - 100) - high.place(1e6 - 200) == pytest.approx(low.place(200) - low.place(100))


@pytest.mark.parametrize("mirrored", [False, True])
def test_values_at_positions_round_trip(mirrored):
    scale = LineScale(-3.0, 50.0, 0.5, mirrored)
    shares = np.linspace(-0.2, 1.2, 50)
    assert scale.shares(scale.values(shares)) == pytest.approx(shares)
    values = np.sort(np.random.default_rng(1).exponential(size=100))
    bent = bent_scale(values, values[0], values[-1])
    assert bent.shares(values) == pytest.approx([bent.place(value) for value in values])


ODD = [0.0, 4.0, 5e-324, -5e-324, 1e-310, 1e-200, 1.0, np.nextafter(1.0, 2.0), 1e150, -1e150, 1.7e308, -1.7e308]
NUMBERS = st.sampled_from(ODD) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(NUMBERS, min_size=1, max_size=12), NUMBERS, NUMBERS)
@example([0.0, 1e-200, 1e-200, 1e150], 0.0, 1e150)  # beyond the range of floats
@example([0.0] * 3 + [1e-310, 1e150], 0.0, 1e150)
@example([4.0] * 5, 4.0, 4.0)
@example([-1.7e308, 1.7e308], -1.7e308, 1.7e308)  # the width overflows
@example([0.0, 0.0, 0.0, 5e-324], 0.0, 5e-324)
def test_numbers_of_any_size_have_a_position_without_a_warning(values, before, after):
    low, high = min(*values, before, after), max(*values, before, after)
    for scale in (scale_of(values, (before, after))[0], scale_of_range(low, high, (before, after))):
        places = [scale.place(value) for value in sorted([*values, before, after])]
        assert all(-0.1 < place < 1.1 for place in places)
        assert places == pytest.approx(sorted(places), abs=1e-12)
        if scale.high > scale.low:
            assert (scale.place(scale.low), scale.place(scale.high)) == (0.0, 1.0)
            ends = scale.values(np.array([0.0, 1.0]))
            largest = max(abs(scale.low), abs(scale.high))
            assert ends == pytest.approx([scale.low, scale.high], rel=0, abs=1e-9 * largest)
