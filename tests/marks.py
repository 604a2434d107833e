"""Slow ones among the parameters of a test: `parametrize("name", ["cart", *slow("forest", "boosting")])`."""

import pytest


def slow(*values):
    """Return slow parameters, for a test of one argument."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def slow_rows(*rows):
    """Return slow parameters, for a test of several arguments."""
    return [pytest.param(*row, marks=pytest.mark.slow) for row in rows]


def slow_but(values, *quick):
    """Return the values of a list, slow all but the quick ones."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


def slow_but_named(functions, *quick):
    """Return the functions of a list, slow all but those of the quick names."""
    return slow_but(functions, *(each for each in functions if each.__name__ in quick))
