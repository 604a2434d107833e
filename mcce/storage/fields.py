"""What fitted numbers have to be before anything is computed with them, when they come from a file.

A kernel reads where an index points, without looking. So every class whose state holds indices, offsets or codes has a
check of it (`mcce.storage.state.add_check`), made of these: each raises an `InputError` that names the part and what was found.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mcce.base.checks import is_whole
from mcce.exceptions import InputError, spell

FLOAT, BOOL = np.dtype(np.float64), np.dtype(np.bool_)
INT, INT32 = np.dtype(np.int64), np.dtype(np.int32)
Array = npt.NDArray[Any]


def require(holds: bool | np.bool_, what: str) -> None:
    """Raise an error that says what should hold, unless it does."""
    if not holds:
        raise InputError(what)


def check_type(value: object, name: str, *types: type[Any]) -> None:
    """Require an object of one of these classes."""
    if not isinstance(value, types):
        wanted = " or a ".join(t.__name__ for t in types)
        raise InputError(f"{name} is a {type(value).__name__}, where a {wanted} belongs")


def check_array(value: object, name: str, dtype: np.dtype[Any], *shape: int | None) -> None:
    """Require an array of a dtype and a shape; None for a length that is not known."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        found = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise InputError(f"{name} is {found}, where an array of {dtype} belongs")
    fits = value.ndim == len(shape) and all(n is None or n == found for n, found in zip(shape, value.shape))
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise InputError(f"{name} has the shape {value.shape}, where ({wanted}) belongs")


def check_between(values: Array, name: str, low: int, high: int) -> None:
    """Require whole numbers from `low` to `high`, both included; NaN is outside."""
    if values.size and not (values.min() >= low and values.max() <= high):
        wrong = values[~((values >= low) & (values <= high))].flat[0]
        raise InputError(f"{name} holds {spell(wrong)}, which is not from {low} to {high}")


def check_finite(values: Array, name: str) -> None:
    """Require numbers that are neither infinite nor missing."""
    if not np.isfinite(values).all():
        raise InputError(f"{name} holds {spell(values[~np.isfinite(values)].flat[0])}, where finite numbers belong")


def check_rising(values: Array, name: str, *, strictly: bool = True) -> None:
    """Require finite numbers in ascending order."""
    check_finite(values, name)
    with np.errstate(over="ignore"):
        steps = np.diff(values)
    if not (steps > 0 if strictly else steps >= 0).all():
        raise InputError(f"{name} is not in ascending order")


def check_codes(values: Array, name: str, n_levels: int) -> None:
    """Require codes of levels, or missing values."""
    known = values[~np.isnan(values)]
    check_between(known, name, 0, n_levels - 1)
    if (np.floor(known) != known).any():
        raise InputError(f"{name} holds {spell(known[np.floor(known) != known][0])}, which is no code of a level")


def check_number(value: object, name: str, low: float = -math.inf, high: float = math.inf) -> None:
    """Require a finite number from `low` to `high`."""
    is_number = isinstance(value, (float, int)) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and low <= value <= high):  # type: ignore[arg-type,operator]
        raise InputError(f"{name} is {_short(value)}, where a number from {low:g} to {high:g} belongs")


def check_count_of(value: object, name: str, low: int, high: int) -> None:
    """Require a whole number from `low` to `high`."""
    if not (is_whole(value) and low <= value <= high):
        raise InputError(f"{name} is {_short(value)}, where a whole number from {low} to {high} belongs")


def check_flag(value: object, name: str) -> None:
    """Require True or False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} is {_short(value)}, where True or False belongs")


def _short(value: object) -> str:
    if isinstance(value, (int, float, str, type(None))):
        shown = spell(value) if not isinstance(value, int) or abs(value) < 10**30 else "a very large number"
        return shown if len(shown) <= 60 else shown[:60] + "..."
    return f"a {type(value).__name__}"


def check_weights(weights: object, name: str, n: int | None) -> None:
    """Refuse what are no positive, finite weights of so many rows."""
    check_array(weights, name, FLOAT, n)
    assert isinstance(weights, np.ndarray)
    check_finite(weights, name)
    require(bool((weights > 0.0).all()), f"{name} holds a weight that is not positive")
