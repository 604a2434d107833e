"""Fitted objects as plain values, and back.

Plain are dicts with text keys, lists, str, int, float, bool, None, and numpy arrays without Python objects. `to_state`
writes anything else as a dict whose "type" names a registered class (`stateful`, `register`). `from_state` calls
constructors of registered classes only, and their checks (`add_check`): a file may have been manipulated.
`take_out_arrays` and `put_back_arrays` replace arrays by references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from dataclasses import fields as fields_of
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mcce.exceptions import InputError, did_you_mean
from mcce.storage.fields import NOT_STATE as NOT_STATE
from mcce.storage.fields import check_fields, declarations

Class = TypeVar("Class", bound=type[Any])
Fields = dict[str, Any]
Array = npt.NDArray[Any]

TYPE = "type"  # the key of a plain dict that names the class
_PLAIN = (str, int, float, bool, type(None))
_RESERVED = ("array", "dict", "objects", "tuple")
_LONGEST = 60


@dataclass(frozen=True)
class _Registered:
    """How objects of a class become fields, and fields become objects."""

    name: str
    cls: type[Any]
    write: Callable[[Any], Fields]
    read: Callable[[Fields], Any]
    is_checked: bool
    check: Callable[[Any], None] | None = None


_by_class: dict[type[Any], _Registered] = {}
_by_name: dict[str, _Registered] = {}
_families: list[_Registered] = []
_homes: list[str] = []


def register(
    name: str,
    cls: type[Any],
    write: Callable[[Any], Fields],
    read: Callable[[Fields], Any],
    *,
    family: bool = False,
    is_checked: bool = False,
) -> None:
    """Register how objects of a class become a dict of fields, and back.

    Parameters
    ----------
    name : str
        Unique name of the class in the state.
    cls : type
    write, read : callable
        Object to fields, and fields to object. A `write` may raise an `InputError` whose text ends a sentence.
    family : bool
        Whether subclasses are written the same way.
    is_checked : bool
        Whether an object is read back at once; another `repr` is an error.
    """
    known = _by_name.get(name)
    if name in _RESERVED or (known is not None and known.cls is not cls):
        owner = "a plain type" if known is None else f"{known.cls.__module__}.{known.cls.__qualname__}"
        raise InputError(f"the state name {name!r} is taken by {owner}; choose another name for {cls.__qualname__}.")
    _by_name[name] = registered = _Registered(name, cls, write, read, is_checked)
    if family:
        _families.append(registered)
    else:
        _by_class[cls] = registered


def is_registered(cls: type[Any]) -> bool:
    """Return whether objects of exactly this class can be written."""
    return cls in _by_class


def add_check(cls: type[Any], check: Callable[[Any], None] | None = None) -> None:
    """Register how an object is checked when it is read, after the declarations of its fields.

    A check raises an `InputError` for parts that are inconsistent; by default it is the method `check_state`.
    """
    registered = next(each for each in _by_name.values() if each.cls is cls)
    check = check or getattr(cls, "check_state", _check_nothing)
    _by_name[registered.name] = replace(registered, check=check)


def look_in(*modules: str) -> None:
    """Add modules that register more classes; they are imported when a state has an unknown type."""
    _homes.extend(modules)


def _load_homes() -> None:
    for module in _homes:
        import_module(module)


def checks_by_name() -> dict[str, bool]:
    """Return the registered names, and whether their objects are checked."""
    _load_homes()
    return {name: registered.check is not None for name, registered in _by_name.items()}


def stateful(name: str, fields: Sequence[str] | None = None) -> Callable[[Class], Class]:
    """Register the decorated class by its fields, which its constructor takes by name.

    Without `fields` it is a dataclass; fields with the metadata `NOT_STATE` are left to their defaults. An object that
    is read is checked by the declarations of its fields (`mcce.storage.fields.stored`), then by its method
    `check_state`, if it has one.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @stateful("example.Point")
    ... @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     labels: tuple
    >>> to_state(Point(1.0, ("a",)))
    {'type': 'example.Point', 'x': 1.0, 'labels': {'type': 'tuple', 'items': ['a']}}
    >>> from_state(to_state(Point(1.0, ("a",))))
    Point(x=1.0, labels=('a',))
    """

    def decorate(cls: Class) -> Class:
        if fields is None and not is_dataclass(cls):
            raise InputError(f"{cls.__qualname__} is not a dataclass; name the fields that its constructor takes.")
        names = fields or [f.name for f in fields_of(cls) if f.init and f.metadata.get("state", True)]
        register(name, cls, lambda obj: {each: getattr(obj, each) for each in names}, lambda read: cls(**read))
        if declarations(cls) or hasattr(cls, "check_state"):
            add_check(cls)
        return cls

    return decorate


def to_state(obj: object, where: str = "the object") -> Any:
    """Return an object as plain values; `where` names it in the message of an `InputError`."""
    kind = type(obj)
    if kind in _PLAIN:
        return obj
    if kind is list:
        return [to_state(item, f"{where}[{i}]") for i, item in enumerate(obj)]  # type: ignore[arg-type,var-annotated]
    if kind is tuple:
        return {TYPE: "tuple", "items": to_state(list(obj), where)}  # type: ignore[call-overload]
    if isinstance(obj, dict) and kind is dict:
        if all(type(key) is str for key in obj) and TYPE not in obj:
            return {key: to_state(value, f"{where}[{key!r}]") for key, value in obj.items()}
        return {TYPE: "dict", "items": [to_state([key, obj[key]], f"{where}[{key!r}]") for key in obj]}
    if isinstance(obj, np.ndarray) and kind in (np.ndarray, np.memmap):
        if not obj.dtype.hasobject:
            return obj
        if obj.dtype == object:
            return {TYPE: "objects", "shape": list(obj.shape), "items": to_state(obj.ravel().tolist(), where)}
    registered = _by_class.get(kind) or next((each for each in _families if isinstance(obj, each.cls)), None)
    if registered is None:
        raise InputError(f"{_found(where, obj)}, which cannot be written as arrays and JSON values.")
    try:
        written = registered.write(obj)
    except InputError as error:
        raise InputError(f"{_found(where, obj)}, {error}") from None
    state = {TYPE: registered.name}
    state |= {name: to_state(value, f"{where}.{name}") for name, value in written.items()}
    if registered.is_checked:
        _check_same(obj, state, where)
    return state


def from_state(state: Any) -> Any:
    """Return the object that `to_state` wrote."""
    if isinstance(state, list):
        return [from_state(item) for item in state]
    if not isinstance(state, dict):
        return state
    if TYPE not in state:
        return {key: from_state(value) for key, value in state.items()}
    name = state[TYPE]
    if name == "tuple":
        return tuple(from_state(state["items"]))
    if name == "dict":
        return dict(from_state(state["items"]))
    if name == "objects":
        array = np.empty(len(state["items"]), dtype=object)
        for i, item in enumerate(state["items"]):
            array[i] = from_state(item)
        return array.reshape(state["shape"])
    if name not in _by_name:
        _load_homes()
    if name not in _by_name:
        raise InputError(
            f"the state has an object of the type {name!r}, which is not registered; import the package "
            f"that it comes from, or {did_you_mean(name, _by_name)}"
        )
    registered = _by_name[name]
    made = registered.read({field: from_state(value) for field, value in state.items() if field != TYPE})
    if registered.check is not None:
        try:
            check_fields(made)
            registered.check(made)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    return made


def take_out_arrays(value: Any, refer: Callable[[Array], Fields]) -> Any:
    """Return a plain value with each array replaced by a reference: the fields that `refer` returns."""
    if isinstance(value, np.ndarray):
        return {TYPE: "array", **refer(value)}
    if isinstance(value, list):
        return [take_out_arrays(item, refer) for item in value]
    if isinstance(value, dict):
        return {key: take_out_arrays(item, refer) for key, item in value.items()}
    return value


def put_back_arrays(value: Any, find: Callable[[Fields], Array]) -> Any:
    """Return a plain value with each reference replaced by the array that `find` returns."""
    if isinstance(value, list):
        return [put_back_arrays(item, find) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(TYPE) == "array":
        return find(value)
    return {key: put_back_arrays(item, find) for key, item in value.items()}


def _check_nothing(made: object) -> None:
    """Check nothing besides the declarations."""


def _check_same(obj: object, state: Fields, where: str) -> None:
    back = from_state(state)
    if type(back) is not type(obj) or repr(back) != repr(obj):
        raise InputError(f"{_found(where, obj)}, which would come back from its state as {back!r}.")


def _found(where: str, obj: object) -> str:
    shown = repr(obj)
    shown = shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "..."
    return f"{where} is {shown} (a {type(obj).__module__}.{type(obj).__qualname__})"
