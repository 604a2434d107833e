"""Marks that assign tests and parameters to the quick, slow or nightly run.

- Parameters of a test that are slow or nightly: `parametrize("name", ["cart", *slow("forest"), *nightly("boosting")])`.
- Most examples of hypothesis: `@examples(25)`. The quick run tries a fifth of them, the nightly run all.
"""

import pytest
from hypothesis import settings

THOROUGH = 25  # default number of examples in the nightly run
QUICK = 5  # and in the quick run


def examples(most, **more):
    """Return hypothesis settings: that many examples in the nightly run, elsewhere a fifth and at least three."""
    return settings(max_examples=max(3, most * settings.default.max_examples // THOROUGH), **more)


def without_nightly(expression):
    """Return an expression for `pytest -m` that excludes nightly tests unless it names them."""
    return f"({expression}) and not nightly" if expression and "nightly" not in expression else expression


def slow(*values):
    """Return slow parameters for a test of one argument."""
    return _marked("slow", values)


def slow_rows(*rows):
    """Return slow parameters for a test of several arguments."""
    return [pytest.param(*row, marks=pytest.mark.slow) for row in rows]


def slow_but(values, *quick):
    """Return the values with all but the quick ones marked slow."""
    return _marked_but("slow", values, quick)


def nightly(*values):
    """Return nightly parameters for a test of one argument."""
    return _marked("nightly", values)


def nightly_rows(*rows):
    """Return nightly parameters for a test of several arguments."""
    return [pytest.param(*row, marks=pytest.mark.nightly) for row in rows]


def nightly_but(values, *others):
    """Return the values with all but the others marked nightly."""
    return _marked_but("nightly", values, others)


def nightly_but_named(functions, *others):
    """Return the functions with all but those of the given names marked nightly."""
    return nightly_but(functions, *(each for each in functions if each.__name__ in others))


def _marked(mark, values):
    return [pytest.param(value, marks=getattr(pytest.mark, mark)) for value in values]


def _marked_but(mark, values, others):
    return [value if value in others else pytest.param(value, marks=getattr(pytest.mark, mark)) for value in values]
