"""Checks of single parameters: numbers, whole numbers, shares and their bounds."""

from __future__ import annotations

from numbers import Real
from typing import Any, TypeGuard

import numpy as np

from mcce.exceptions import InputError
from mcce.wording import Parameter, Part, Value

MOST_DRAWS = 10_000_000  # for one factual, held in memory together
MOST = 2**63 - 1  # the largest length of an array


def is_number(value: object) -> bool:
    """Return whether a value is a number that a float can hold, not a boolean."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.timedelta64)) and not is_too_large(value)


def is_too_large(value: object) -> bool:
    """Return whether a value is a number beyond the largest float, as 10**400."""
    if isinstance(value, Real) and not isinstance(value, np.timedelta64):  # a subclass of np.integer
        try:
            float(value)
        except OverflowError:
            return True
    return False


def is_whole(value: object) -> TypeGuard[int | np.integer[Any]]:
    """Return whether a value is an integer, not a boolean."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def check_count(
    value: object, name: str, owner: object = None, least: int = 1, most: int | None = None, or_else: Part = ""
) -> int:
    """Return a parameter that must be a whole number of at least `least`.

    Parameters
    ----------
    value, name
        The parameter.
    owner : object
        The object that has the parameter, for the message; None for a parameter of a function.
    least, most : int
        Smallest and largest value; without `most`, the largest length of an array.
    or_else : str or parts
        End of the message: what else the parameter may be.

    Examples
    --------
    >>> from mcce.base.checks import check_count
    >>> from mcce.wording import Value
    >>> check_count(0, "n_samples", or_else=(", or ", Value("auto")))
    Traceback (most recent call last):
    mcce.exceptions.InputError: n_samples is 0; it must be a whole number of at least 1, or 'auto'.
    """
    most = MOST if most is None and is_whole(value) and value > MOST else most
    fits = is_whole(value) and least <= value <= (MOST if most is None else most)
    upper = "" if most is None else f" and at most {most}"
    check(fits, value, name, f"it must be a whole number of at least {least}{upper}", or_else, ".", owner=owner)
    whole: int = int(value)  # type: ignore[call-overload]
    return whole


def check(fits: object, value: object, name: str, *must_be: Part, owner: object = None) -> None:
    """Raise unless a parameter of a function, or of `owner`, fits; `must_be` states what it must be.

    Examples
    --------
    >>> from mcce.base.checks import check
    >>> check(False, 2, "share", "it must be a number from 0 to 1.")
    Traceback (most recent call last):
    mcce.exceptions.InputError: share is 2; it must be a number from 0 to 1.
    """
    if not fits:
        whose = "" if owner is None else (" of ", Value(type(owner)))
        raise InputError(Parameter(name), whose, " is ", Value(value), "; ", *must_be)


def check_flag(value: object, name: str) -> None:
    """Raise if a parameter is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(Parameter(name), " is ", Value(value), "; it must be ", Value(True), " or ", Value(False), ".")


def check_share(value: Any, name: str) -> float:
    """Return a parameter that must be a number from 0 to below 1."""
    check(is_number(value) and 0 <= value < 1, value, name, "it must be a number from 0 to below 1.")
    return float(value)


def check_not_negative(value: float, name: str) -> float:
    """Return a parameter that must be a number of at least 0."""
    check(is_number(value) and value >= 0, value, name, "it must be a number of at least 0.")
    return float(value)
