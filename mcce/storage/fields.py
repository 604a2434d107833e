"""Declarations of the fields of stored objects, which are checked when a file is loaded.

Kernels index without bounds checks, so everything from a file is checked before it is used. Fields of a stored
dataclass are declared by `stored`, attributes of a sampler by `learned`::

    feature: Int32s = stored(INT32, "nodes", least=-1, filled=True)
    left: Int32s = stored(INT32, "nodes", least=-1, index_of="nodes")
    edges: tuple[Floats, ...] = stored(tuple, "columns", of=stored(FLOAT, None, rising=True))

A named length is set by the first field that has it, or by the caller; all others must agree. Bounds may be named
lengths; `index_of` means from 0 to below the length. `check_fields` runs before the object's own `check_state`, which
relates several fields.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mcce import exceptions
from mcce.base.checks import is_whole
from mcce.exceptions import InputError, spell

FLOAT, BOOL = np.dtype(np.float64), np.dtype(np.bool_)
INT, INT32 = np.dtype(np.int64), np.dtype(np.int32)
INT8, UINT8, UINT64 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.uint64)
Array = npt.NDArray[Any]
Bound = float | str | None

NOT_STATE = {"state": False}  # metadata of a dataclass field that is not stored
_HOLDS = "holds"


def require(holds: bool | np.bool_, what: str) -> None:
    """Raise an error with this text unless a condition holds."""
    if not holds:
        raise InputError(what)


def check_type(value: object, name: str, *types: type[Any]) -> None:
    """Require an object of one of these classes."""
    if not isinstance(value, types):
        wanted = " or a ".join(t.__name__ for t in types)
        raise InputError(f"{name} is a {type(value).__name__}; expected a {wanted}")


def check_array(value: object, name: str, dtype: np.dtype[Any], *shape: int | None) -> None:
    """Require an array of a dtype and a shape; None for any length."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        found = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise InputError(f"{name} is {found}; expected an array of {dtype}")
    fits = value.ndim == len(shape) and all(n is None or n == found for n, found in zip(shape, value.shape))
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise InputError(f"{name} has the shape {value.shape}; expected ({wanted})")


def check_between(values: Array, name: str, low: float, high: float) -> None:
    """Require numbers from `low` to `high`, both included; NaN is outside."""
    if values.size and not (values.min() >= low and values.max() <= high):
        wrong = values[~((values >= low) & (values <= high))].flat[0]
        raise InputError(f"{name} holds {spell(wrong)}, which is not from {low} to {high}")


def check_finite(values: Array, name: str) -> None:
    """Require numbers that are neither infinite nor missing."""
    if not np.isfinite(values).all():
        raise InputError(f"{name} holds {spell(values[~np.isfinite(values)].flat[0])}; expected finite numbers")


def check_rising(values: Array, name: str, *, strictly: bool = True) -> None:
    """Require finite numbers in ascending order."""
    check_finite(values, name)
    with np.errstate(over="ignore"):
        steps = np.diff(values)
    if not (steps > 0 if strictly else steps >= 0).all():
        raise InputError(f"{name} is not in ascending order")


def check_codes(values: Array, name: str, n_levels: int) -> None:
    known = values[~np.isnan(values)]
    check_between(known, name, 0, n_levels - 1)
    if (np.floor(known) != known).any():
        raise InputError(f"{name} holds {spell(known[np.floor(known) != known][0])}, which is not a code of a level")


def check_number(value: object, name: str, low: float = -math.inf, high: float = math.inf) -> None:
    """Require a finite number from `low` to `high`."""
    is_number = isinstance(value, (float, int)) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and low <= value <= high):  # type: ignore[arg-type,operator]
        raise InputError(f"{name} is {_short(value)}; expected a number from {low:g} to {high:g}")


def check_count_of(value: object, name: str, low: float, high: float) -> None:
    """Require a whole number from `low` to `high`."""
    if not (is_whole(value) and low <= value <= high):
        raise InputError(f"{name} is {_short(value)}; expected a whole number from {low} to {high}")


def check_flag(value: object, name: str) -> None:
    """Require True or False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} is {_short(value)}; expected True or False")


def _short(value: object) -> str:
    if isinstance(value, (int, float, str, type(None))):
        shown = spell(value) if not isinstance(value, int) or abs(value) < 10**30 else "a very large number"
        return shown if len(shown) <= 60 else shown[:60] + "..."
    return f"a {type(value).__name__}"


def check_weights(weights: object, name: str, n: int | None) -> None:
    """Require positive, finite weights of `n` rows."""
    check_array(weights, name, FLOAT, n)
    assert isinstance(weights, np.ndarray)
    check_finite(weights, name)
    require(bool((weights > 0.0).all()), f"{name} holds a weight that is not positive")


@dataclass(frozen=True)
class Holds:
    """The declaration of a field.

    Attributes
    ----------
    what : dtype of an array; or float, int, bool, a class, a tuple of classes.
    shape : of an array: lengths, None for any, or their names ("nodes", "nodes + 1"); of a tuple: its length.
    least, most : inclusive bounds of numbers, or names of lengths.
    above : exclusive lower bound.
    index_of : the length that whole numbers are indices of, from 0, or from `least`.
    finite : whether numbers must be finite, or finite "or missing".
    rising : whether values must increase strictly, or "weakly".
    distinct : whether values must be unique.
    filled : whether the field must not be empty.
    of : declaration of the items of a tuple or list.
    parts : declarations of the items of a tuple, one by one.
    longest : largest number of letters of a text.
    optional : whether it may be None.
    """

    what: Any
    shape: tuple[int | str | None, ...] = ()
    least: Bound = None
    most: Bound = None
    above: float | None = None
    index_of: str | None = None
    finite: bool | Literal["or missing"] = False
    rising: bool | Literal["weakly"] = False
    distinct: bool = False
    filled: bool = False
    of: Holds | None = None
    parts: tuple[Holds, ...] = ()
    longest: int | None = None
    optional: bool = False

    def check_kind(self, value: Any, name: str, lengths: dict[str, int]) -> None:
        """Require the type and shape; new named lengths are added to `lengths`."""
        if value is None and self.optional:
            return
        if isinstance(self.what, np.dtype):
            check_array(value, name, self.what, *self._known(lengths))
            self._learn(value.shape, lengths)
            require(value.size > 0 or not self.filled, f"{name} is empty")
        elif self.what is bool:
            check_flag(value, name)
        elif self.what is not int and not (self.what is float and self.finite):
            check_type(value, name, *_types(self.what), *([type(None)] if self.optional else []))
            if self.shape:
                wanted = self._known(lengths)[0]
                require(wanted is None or len(value) == wanted, f"{name} has {len(value)} items; expected {wanted}")
                self._learn((len(value),), lengths)
                require(len(value) > 0 or not self.filled, f"{name} is empty")
            if self.parts:
                require(len(value) == len(self.parts), f"{name} has {len(value)} parts; expected {len(self.parts)}")
            for holds, item in self._items(value):
                holds.check_kind(item, name, lengths)

    def check_contents(self, value: Any, name: str, lengths: Mapping[str, int]) -> None:
        """Require the bounds, the order and the finiteness of numbers."""
        if value is None and self.optional:
            return
        least, most = _bound(self.least, lengths), _bound(self.most, lengths)
        if self.index_of is not None:
            least, most = 0 if least is None else least, _bound(self.index_of, lengths) - 1
        low, high = -math.inf if least is None else least, math.inf if most is None else most
        if self.what is int:
            check_count_of(value, name, low, high)
        elif self.what is float and self.finite:
            check_number(value, name, low, high)
        elif isinstance(self.what, np.dtype):
            self._check_array(value, name, low, high)
        elif self.longest is not None:
            require(len(value) <= self.longest, f"{name} has {len(value)} letters; at most {self.longest} are allowed")
        for holds, item in self._items(value):
            holds.check_contents(item, name, lengths)

    def _known(self, lengths: Mapping[str, int]) -> list[int | None]:
        parts = map(_parts, self.shape)
        return [more if not of else lengths[of] + (more or 0) if of in lengths else None for of, more in parts]

    def _learn(self, shape: tuple[int, ...], lengths: dict[str, int]) -> None:
        lengths.update({of: size - (more or 0) for (of, more), size in zip(map(_parts, self.shape), shape) if of})

    def _items(self, value: Any) -> list[tuple[Holds, Any]]:
        """Return the items of a tuple or list, each with its declaration."""
        if self.of is not None:
            return [(self.of, item) for item in value]
        return list(zip(self.parts, value)) if self.parts else []

    def _check_array(self, value: Array, name: str, low: float, high: float) -> None:
        if self.finite == "or missing":
            require(not np.isinf(value).any(), f"{name} holds an infinite number")
        elif self.finite:
            check_finite(value, name)
        if (low, high) != (-math.inf, math.inf):
            check_between(value, name, low, high)
        if self.above is not None and not (value > self.above).all():
            raise InputError(
                f"{name} holds {spell(value[~(value > self.above)].flat[0])}, which is not above {self.above:g}"
            )
        if self.rising:
            check_rising(value, name, strictly=self.rising is True)
        if self.distinct:
            require(np.unique(value).size == value.size, f"{name} holds a value twice")


def stored(
    what: Any,
    *shape: int | str | None,
    of: Any = None,
    parts: tuple[Any, ...] = (),
    default: Any = dataclasses.MISSING,
    default_factory: Any = dataclasses.MISSING,
    repr: bool = True,
    **demands: Any,
) -> Any:
    """Return a stored dataclass field with its declaration.

    Parameters
    ----------
    what, shape, of, parts, **demands
        See `Holds`; `of` and `parts` may be classes or declarations (`stored`). Single numbers are finite by default.
    default, default_factory, repr : as in `dataclasses.field`.
    """
    inside: Any = {"of": None if of is None else _holds(of), "parts": tuple(map(_holds, parts))}
    holds = Holds(what, shape, **{"finite": what is float, **demands}, **inside)
    made: Any = {"default_factory": default_factory} if default is dataclasses.MISSING else {"default": default}
    return dataclasses.field(metadata={_HOLDS: holds}, repr=repr, **made)


def learned(what: Any, *shape: int | str | None, default: Any = dataclasses.MISSING, **more: Any) -> Any:
    """Return an attribute that `fit` sets, with its declaration; the parameters are those of `stored`.

    Before `fit` the attribute is its default, or raises `NotFittedError`.
    """
    return _Learned(stored(what, *shape, **more).metadata[_HOLDS], default)


class _Learned:
    """Descriptor of a declared attribute; an object's own attribute takes precedence."""

    def __init__(self, holds: Holds, default: Any) -> None:
        self.holds, self.default = holds, default

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, obj: object, owner: type[Any]) -> Any:
        if obj is None:
            return self
        if self.default is dataclasses.MISSING:
            if not any(name.endswith("_") for name in vars(obj)):
                raise exceptions.NotFittedError(f"{obj!r} is not fitted; call fit(given, target) first.")
            raise AttributeError(f"{type(obj).__name__!r} object has no attribute {self.name!r}")
        return self.default


def declarations(cls: type[Any]) -> dict[str, Holds]:
    """Return the declarations of the fields of a class, those of its bases first."""
    if dataclasses.is_dataclass(cls):
        return {f.name: f.metadata[_HOLDS] for f in dataclasses.fields(cls) if _HOLDS in f.metadata}
    found: dict[str, Holds] = {}
    for base in reversed(cls.__mro__):
        found |= {name: each.holds for name, each in vars(base).items() if isinstance(each, _Learned)}
    return found


def check_fields(obj: object, of: type[Any] | None = None, **lengths: int) -> None:
    """Raise if a field does not agree with its declaration.

    `of` is the class whose declarations are checked, by default that of the object; `lengths` are known lengths.
    """
    declared = declarations(of or type(obj))
    values = {name: getattr(obj, name, dataclasses.MISSING) for name in declared}
    for name, holds in declared.items():
        require(values[name] is not dataclasses.MISSING, f"{name} is missing")
        holds.check_kind(values[name], name, lengths)
    for name, holds in declared.items():
        holds.check_contents(values[name], name, lengths)


def _holds(declared: Any) -> Holds:
    """Return the declaration of a field made by `stored`, or of a class."""
    if isinstance(declared, dataclasses.Field):
        found: Holds = declared.metadata[_HOLDS]
        return found
    return Holds(declared)


def _types(of: Any) -> tuple[type[Any], ...]:
    return of if isinstance(of, tuple) else (of,)


def _parts(length: int | str | None) -> tuple[str, int | None]:
    """Return the name in a length and the number added to it; the name of a plain length is ""."""
    if not isinstance(length, str):
        return "", length
    name, _, more = length.partition("+")
    return name.strip(), int(more or 0)


def _bound(bound: Bound, lengths: Mapping[str, int]) -> Any:
    return lengths[bound] if isinstance(bound, str) else bound
