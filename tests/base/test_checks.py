"""The checks of integers and of numbers: valid values and messages."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from mcce import InputError, MarginalSampler
from mcce.base.checks import check_count, check_not_negative, check_share, is_number, is_whole


@pytest.mark.parametrize("value", [0, -3, 2**70, np.int8(4), np.uint64(2**63)])
def test_valid_integers(value):
    assert is_whole(value)
    assert is_number(value)


@pytest.mark.parametrize("value", [True, np.True_, 2.0, np.float64(2), "2", None, Fraction(4, 2), [2], np.array([2])])
def test_invalid_integers(value):
    assert not is_whole(value)


def test_duration_is_not_a_number():
    assert not is_number(np.timedelta64(3, "D"))
    assert not is_whole(np.timedelta64(3, "D"))


@pytest.mark.parametrize("value", [1.5, np.float32(1.5), float("nan"), float("inf"), Fraction(1, 3)])
def test_valid_numbers(value):
    assert is_number(value)


@pytest.mark.parametrize(
    "value", [False, np.False_, 1j, Decimal(1), "1", None, np.array(1.0), 10**400, -(10**400), Fraction(10**400)]
)
def test_invalid_numbers(value):
    assert not is_number(value)


def test_count_is_returned_as_python_int():
    found = check_count(np.int16(7), "n", least=7, most=7)
    assert (found, type(found)) == (7, int)


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (0, {}, r"^n is 0; it must be a whole number of at least 1\.$"),
        (True, {}, r"^n is True; it must be a whole number of at least 1\.$"),
        (np.int64(-1), {"least": 0}, r"^n is -1; it must be a whole number of at least 0\.$"),
        (np.float64(2), {}, r"^n is 2.0; it must be a whole number of at least 1\.$"),
        (2**63, {}, r"^n is 9223372036854775808; .* of at least 1 and at most 9223372036854775807\.$"),
        (10**400, {"most": 30}, r"^n is a whole number of about 401 digits, more than a float holds; .* at most 30\.$"),
        (31, {"most": 30}, r"^n is 31; it must be a whole number of at least 1 and at most 30\.$"),
        (
            "3",
            {"owner": MarginalSampler()},
            r"^n of MarginalSampler is '3'; it must be a whole number",
        ),
        (None, {"or_else": ", or 'all'"}, r"^n is None; it must be a whole number of at least 1, or 'all'\.$"),
    ],
)
def test_messages(value, options, message):
    with pytest.raises(InputError, match=message):
        check_count(value, "n", **options)


@pytest.mark.parametrize("value", [0, 0.0, 0.05, np.float32(0.5), Fraction(1, 3), np.nextafter(1.0, 0.0)])
def test_share_is_returned_as_python_float(value):
    found = check_share(value, "floor")
    assert (found, type(found)) == (float(value), float)


@pytest.mark.parametrize("value", [1, 1.0, -1e-9, np.nan, np.inf, True, "0.1", None, [0.1]])
def test_invalid_shares(value):
    with pytest.raises(InputError, match=r"^floor is .*; it must be a number from 0 to below 1\.$"):
        check_share(value, "floor")


@pytest.mark.parametrize("value", [0, 0.0, np.float32(0.5), 3, np.inf])
def test_nonnegative_number_is_returned_as_float(value):
    found = check_not_negative(value, "x")
    assert (found, type(found)) == (float(value), float)


@pytest.mark.parametrize("value", [-1, -1e-300, np.nan, True, "1", None, 1j])
def test_number_of_at_least_0(value):
    with pytest.raises(InputError, match=rf"^x is {re.escape(repr(value))}; it must be a number of at least 0\.$"):
        check_not_negative(value, "x")
