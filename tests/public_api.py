"""The public names of the package and how each is called, read from what is imported."""

from __future__ import annotations

import inspect
import pydoc
from typing import Any

MODULES = (
    "mcce",
    "mcce.datasets",
    "mcce.diagnostics",
    "mcce.exceptions",
    "mcce.plots",
    "mcce.rcompat",
    "mcce.rng",
    "mcce.samplers",
    "mcce.testing",
)


def public_api() -> dict[str, Any]:
    """Return every public name: for what can be called, its parameters (name, kind, default); else what it is."""
    api: dict[str, Any] = {}
    for module_name in MODULES:
        module = pydoc.locate(module_name)
        for name in getattr(module, "__all__", None) or _own_names(module):
            found = getattr(module, name)
            api[f"{module_name}.{name}"] = _describe(found)
            if inspect.isclass(found):
                api |= {f"{module_name}.{name}.{member}": what for member, what in _members(found).items()}
    return api


def _members(cls: type) -> dict[str, Any]:
    """Return the public methods, properties and class attributes that a class has from us, not from Python."""
    members = {}
    for name in dir(cls):
        ours = any(name in vars(base) and base.__module__.startswith("mcce") for base in cls.__mro__)
        if ours and not name.startswith("_"):
            is_property = isinstance(inspect.getattr_static(cls, name), property)
            members[name] = "property" if is_property else _describe(getattr(cls, name))
    return members


def _own_names(module: Any) -> list[str]:
    return [
        name
        for name, found in vars(module).items()
        if not name.startswith("_") and getattr(found, "__module__", "").startswith("mcce")
    ]


def _describe(found: Any) -> Any:
    if inspect.ismodule(found):
        return "module"
    if not callable(found):
        return type(found).__name__
    try:
        parameters = inspect.signature(found).parameters.values()
    except ValueError:  # an exception takes what Python's do
        return "callable"
    empty = inspect.Parameter.empty
    return [[p.name, p.kind.name, None if p.default is empty else repr(p.default)] for p in parameters]
