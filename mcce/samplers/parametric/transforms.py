"""Transformations of a numeric target before a regression.

With t the transformation and z = t(y) normal given the row, y = t^-1(z) has the density f(t(y)) t'(y).

1. "log": t(y) = log(y + shift). The shift is 0 if all training values are positive, else half of the least positive
   one, as in synthpop's `lognorm`. "sqrt": t(y) = sqrt(y). Both need y >= 0.
2. "cuberoot": t(y) = cbrt(y), for any number.
3. The slope t'(y) of the roots is infinite at 0. It is evaluated at a distance of at least `least` from 0.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from mcce.base.arrays import Floats
from mcce.exceptions import InputError, SamplerError
from mcce.table import Column

Transform = Literal["log", "sqrt", "cuberoot"] | None
_NAMES = get_args(get_args(Transform)[0])


def check_transform(transform: object, owner: object) -> None:
    """Raise if the transformation is unknown."""
    if transform is not None and transform not in _NAMES:
        allowed = ", ".join(map(repr, _NAMES))
        raise InputError(f"transform of {type(owner).__name__} is {transform!r}; allowed: {allowed}, None.")


def check_domain(transform: Transform, target: Column, owner: object) -> None:
    """Raise if the target has values outside the domain of the transformation."""
    wrong = target.values < 0.0
    if transform in ("log", "sqrt") and wrong.any():
        raise SamplerError(
            f"{owner!r} needs non-negative values, and {target.feature.name!r} holds {target.values[wrong][0]:g} "
            f"({wrong.sum()} such of {wrong.size} rows). Use transform='cuberoot', 'norm' or 'normrank'."
        )


def shift_of(transform: Transform, values: Floats) -> float:
    """Return the constant to add before the logarithm (step 1)."""
    if transform != "log" or values.min() > 0.0:
        return 0.0
    return 0.5 * float(values[values > 0.0].min(initial=np.inf)) if (values > 0.0).any() else 1.0


def forward(transform: Transform, values: Floats, shift: float) -> Floats:
    """Return t(y); values below the domain are clipped to it."""
    if transform is None:
        return values
    if transform == "cuberoot":
        return np.cbrt(values)
    inside = np.maximum(values + shift, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(inside) if transform == "log" else np.sqrt(inside))


def backward(transform: Transform, values: Floats, shift: float) -> Floats:
    """Return t^-1(z), infinite on overflow."""
    with np.errstate(over="ignore"):
        if transform == "log":
            return np.asarray(np.exp(values) - shift)
        return values if transform is None else np.asarray(values**2 if transform == "sqrt" else values**3)


def log_slope(transform: Transform, values: Floats, shift: float, least: float) -> Floats:
    """Return log t'(y), with |y + shift| of at least `least` (step 3)."""
    at = np.log(np.maximum(np.abs(values + shift), least))
    if transform == "log":
        return -at
    if transform is None:
        return np.zeros(values.size)
    return np.asarray(-np.log(2.0) - at / 2.0 if transform == "sqrt" else -np.log(3.0) - at * 2.0 / 3.0)
