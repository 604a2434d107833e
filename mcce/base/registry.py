"""Registry of the members of a family by name; each member registers itself in its own file.

A name can be taken once. Unknown names are looked up in modules of the package that are not loaded yet (`homes`), then
among the entry points of the family's group, ``name = "module:member"``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from mcce.exceptions import InputError, MCCEError, did_you_mean, spell

Member = TypeVar("Member")


class Registry(Generic[Member]):
    """The members of one family by name.

    Parameters
    ----------
    family : noun for a member, in messages.
    group : group of the entry points.
    register : function that registers a member of a plug-in under its name.
    error : exception for names that are taken or unknown.

    Attributes
    ----------
    homes : modules that register members when they are imported, which the first lookup does.
    known : the registered members, including those of all homes.

    Examples
    --------
    >>> from mcce.base.registry import Registry
    >>> fruits = Registry("fruit", "example.fruits", lambda name, fruit: fruits.add(name, fruit))
    >>> fruits.add("apple", str)
    >>> fruits.find("apple")
    <class 'str'>
    >>> fruits.add("apple", int)
    Traceback (most recent call last):
    mcce.exceptions.InputError: the fruit name 'apple' is taken by builtins.str; choose another name for builtins.int.
    """

    def __init__(
        self, family: str, group: str, register: Callable[[str, Any], object], error: type[MCCEError] = InputError
    ) -> None:
        self.family = family
        self.group = group
        self.register = register
        self.error = error
        self.homes: tuple[str, ...] = ()
        self._known: dict[str, Member] = {}

    @property
    def known(self) -> dict[str, Member]:
        """The registered members, including those of all homes."""
        for home in self.homes:
            import_module(home)
        return self._known

    @known.setter
    def known(self, members: dict[str, Member]) -> None:
        self._known = members

    def add(self, name: str, member: Member) -> None:
        """Register a member."""
        if not isinstance(name, str) or not name:
            raise InputError(f"the name of a {self.family} is {spell(name)}; give a text.")
        ours = getattr(member, "__module__", "").startswith(f"{self.group}.")
        taken = (self._known if ours else self.known).get(name)
        if taken is not None and taken != member:
            raise self.error(
                f"the {self.family} name {name!r} is taken by {_qualified_name(taken)}; choose another name for "
                f"{_qualified_name(member)}."
            )
        self._known[name] = member

    def all(self) -> dict[str, Member]:
        """Return the members by name, including those of installed packages."""
        for point in installed(self.group):
            try:
                plug_in = point.load()
            except Exception as error:
                raise self.error(
                    f"the {self.family} {point.name!r} of a plug-in, {point.value}, cannot be loaded: {error}"
                ) from error
            self.register(point.name, plug_in)
        return dict(self.known)

    def find(self, name: str) -> Member:
        found = self._known.get(name)
        found = self.known.get(name) if found is None else found
        found = self.all().get(name) if found is None else found
        if found is None:
            raise self.error(f"there is no {self.family} {spell(name)}; {did_you_mean(name, sorted(self.known))}")
        return found

    def names_that(self, declares: Callable[[Member], object]) -> str:
        """Return the names of the members for which `declares` is true, for a message; "none" if there are none."""
        return ", ".join(sorted(name for name, member in self.known.items() if declares(member))) or "none"


def installed(group: str) -> list[EntryPoint]:
    """Return the entry points of installed packages in a group."""
    return _entry_points(_folders()).get(group, [])


def _folders() -> tuple[tuple[str, int], ...]:
    """Return the folders of `sys.path` with the times of their last changes; 0 for those that do not exist."""
    return tuple(
        (folder, os.stat(folder or ".").st_mtime_ns if os.path.exists(folder or ".") else 0) for folder in sys.path
    )


@lru_cache(maxsize=1)
def _entry_points(folders: tuple[tuple[str, int], ...]) -> dict[str, list[EntryPoint]]:
    """Return the entry points of mcce's groups; cached, because reading them is slow."""
    groups: dict[str, list[EntryPoint]] = {}
    found = entry_points()
    for group in found.groups:
        if group.startswith("mcce."):
            groups[group] = list(found.select(group=group))
    return groups


def _qualified_name(member: object) -> str:
    """Return the qualified name of a class or function."""
    member = member if isinstance(member, type) else getattr(member, "function", member)
    if hasattr(member, "__qualname__"):
        return f"{member.__module__}.{member.__qualname__}"
    return spell(member)
