"""Versions of Python and of packages, for pages, manifests and records."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python and of installed packages by name.

    Examples
    --------
    >>> list(versions_of(["numpy"]))
    ['Python', 'numpy']
    """
    found = {"Python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    return found
