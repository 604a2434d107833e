"""Every public name has an example: the names in `mcce.__all__` and on the API page.

A method has its own example or occurs in the example of its class. tests/test_docs.py runs them all.
"""

import doctest
import inspect
import pydoc
import re
from pathlib import Path

import pytest

import mcce

PAGE = Path(__file__).resolve().parents[1] / "vignettes" / "api.md"
DIRECTIVE = re.compile(r"^\.\. auto(class|function|module):: (mcce\S*)\n((?:   :.*\n)*)", re.MULTILINE)


def example(thing):
    """Return the source of the examples of a docstring under their heading; "" without."""
    text = inspect.getdoc(thing) or ""
    _, found, after = text.partition("Examples\n--------\n")
    return "".join(each.source for each in doctest.DocTestParser().get_examples(after)) if found else ""


def members(thing, options):
    """Return the names that a directive lists, or the public functions and properties if it lists none."""
    listed = re.search(r":members:(.*)", options)
    if listed is None:
        return []
    if listed[1].strip():
        return [name.strip() for name in listed[1].split(",")]
    if inspect.ismodule(thing):
        own = [name for name, found in vars(thing).items() if getattr(found, "__module__", "") == thing.__name__]
        return getattr(thing, "__all__", own)
    ours = [name for base in thing.__mro__ if base.__module__.startswith("mcce") for name in vars(base)]
    return [name for name in dict.fromkeys(ours) if not name.startswith("_") and is_code(thing, name)]


def is_code(cls, name):
    found = inspect.getattr_static(cls, name)
    return callable(found) or isinstance(found, property | classmethod | staticmethod)


def without_example(kind, name, options):
    """Return what a directive shows without an example."""
    thing = pydoc.locate(name)
    whole = example(thing)
    lacking = [] if whole or kind == "module" else [name]
    for member in members(thing, options):
        if not example(getattr(thing, member, None)) and not re.search(rf"\b{member}\b", whole):
            lacking.append(f"{name}.{member}")
    return lacking


def directives():
    return DIRECTIVE.findall(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else []


@pytest.mark.parametrize(("kind", "name", "options"), directives(), ids=lambda part: part if "mcce" in part else "")
def test_every_name_on_the_api_page_has_an_example(kind, name, options):
    if name != "mcce.report.names":  # a text, not a name to call
        assert without_example(kind, name, options) == []


def test_every_public_name_has_an_example():
    public = {name: getattr(mcce, name) for name in mcce.__all__}
    assert [name for name, thing in public.items() if not inspect.ismodule(thing) and not example(thing)] == []


def test_page_is_parsed():
    if not PAGE.exists():
        pytest.skip("the vignettes are not part of an installed package; test in a checkout")
    shown = {name for _, name, _ in directives()}
    assert {"mcce.MCCE", "mcce.Within", "mcce.table.Table", "mcce.table.Column", "mcce.plots"} <= shown
    assert len(shown) == PAGE.read_text(encoding="utf-8").count(":: mcce")


class Shown:
    """A class.

    Examples
    --------
    >>> Shown().used()
    """

    __module__ = "mcce.shown"

    def used(self):
        """Stands above."""

    def forgotten(self):
        """Has no example; >>> this is none."""


def test_member_without_an_example_is_found(monkeypatch):
    monkeypatch.setattr(pydoc, "locate", lambda name: Shown)
    assert without_example("class", "Shown", "   :members:\n") == ["Shown.forgotten"]
    assert without_example("class", "Shown", "   :members: used\n") == []
    assert without_example("class", "Shown", "") == []
