"""Names of a package that are loaded when they are first used: importing the package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def loaded_when_used(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names, and the modules that have them, are loaded when asked for.

    Examples
    --------
    >>> find = loaded_when_used("json", {"json.tool": ("main",)})
    >>> find("main").__module__
    'json.tool'
    >>> find("mian")
    Traceback (most recent call last):
    AttributeError: module 'json' has no attribute 'mian'
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name in home_of:
            found = getattr(import_module(home_of[name]), name)
        elif f"{package}.{name}" in homes:
            found = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, found)  # the next use finds it at once
        return found

    return find
