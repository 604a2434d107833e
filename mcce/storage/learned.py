"""The fitted state of samplers: stored, restored and described by the declarations of their classes.

Attributes that end in an underscore are stored, each declared by `mcce.storage.fields.learned`. ``unstorable`` is why
a class cannot be stored. ``dispensable`` names the attributes with training values that become None in a file without
donors; None if the class needs them. ``discloses`` describes what the state reveals of training values; ``{donors_}``
and ``{margin_.values}`` stand for numbers of values.
"""

from __future__ import annotations

import copy
import re
from typing import Any, TypeVar

import numpy as np

from mcce import exceptions
from mcce.exceptions import InputError, SamplerError
from mcce.storage.state import from_state, to_state

Fitted = TypeVar("Fitted")


def learned_attributes(obj: object) -> dict[str, Any]:
    """Return the fitted attributes of an object; none before `fit`."""
    return {name: value for name, value in vars(obj).items() if _is_learned(name)}


def set_learned(obj: Fitted, attributes: dict[str, Any]) -> Fitted:
    """Replace the fitted attributes of an object."""
    for name in learned_attributes(obj):
        delattr(obj, name)
    for name, value in attributes.items():
        if not _is_learned(name):
            raise InputError(f"{name!r} is not a fitted attribute of {type(obj).__name__}; they end in an underscore.")
        setattr(obj, name, value)
    return obj


def check_storable(obj: Any) -> None:
    """Raise if the class declares that its objects cannot be stored."""
    if obj.unstorable:
        raise SamplerError(f"{obj!r} cannot be stored: {obj.unstorable}")


def get_state(obj: Any) -> dict[str, Any]:
    """Return the fitted attributes of an object by name, as plain values (`mcce.storage.state`)."""
    check_storable(obj)
    state = {}
    for name, value in learned_attributes(obj).items():
        try:
            state[name] = to_state(value, f"{type(obj).__name__}.{name}")
        except InputError as error:
            raise SamplerError(f"{type(obj).__name__}.{name} is a {type(value).__name__}; {error}") from error
    if not state:
        raise exceptions.NotFittedError(f"{obj!r} is not fitted; call fit(given, target) first.")
    return state


def set_state(obj: Fitted, state: dict[str, Any]) -> Fitted:
    """Set the state of `get_state` on an unfitted object."""
    return set_learned(obj, {name: from_state(value) for name, value in state.items()})


def without_training_values(obj: Fitted) -> Fitted:
    """Return a copy that draws the same and holds no training values; raise if there is none."""
    copied = copy.copy(obj)
    bare: Any = copied
    learned = learned_attributes(obj)
    if bare.dispensable is None:
        if not learned or not all(hasattr(type(part), "dispensable") for part in learned.values()):
            raise SamplerError(f"{obj!r} draws training values, or may draw them: it needs them.")
        learned = {name: without_training_values(part) for name, part in learned.items()}
    else:
        learned |= {name: None for name in bare.dispensable if name in learned}
    vars(bare).update(learned)
    return copied


def disclosed(obj: Any) -> str:
    """Return what the state of an object discloses of the training values, to follow the word "holds"."""
    return re.sub(r"{([\w.]+)}", lambda path: _filled(obj, path[1].split(".")), obj.discloses)


def _filled(obj: Any, path: list[str]) -> str:
    value = getattr(obj, path[0], None)
    if hasattr(type(value), "discloses"):
        return disclosed(value)
    return value if isinstance(value, str) else f"{_count(value, path[1:]):,}"


def _count(value: Any, path: list[str]) -> int:
    """Return the number of values that are not missing in a part of an object, or of each of its items."""
    if isinstance(value, (tuple, list)):
        return sum(_count(item, path) for item in value)
    if path:
        return _count(getattr(value, path[0], None), path[1:])
    return 0 if value is None else int(np.size(value) - np.isnan(value).sum())


def _is_learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")
