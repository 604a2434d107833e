"""Every example in the bridge's docstrings runs and prints the shown output."""

import doctest
import importlib
import pkgutil

import pytest

import r_bridge

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = ["r_bridge", *(m.name for m in pkgutil.walk_packages(r_bridge.__path__, "r_bridge."))]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(r, need, name):
    need("rpart")
    need("party")
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0
