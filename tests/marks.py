"""What the quick run leaves to the slow one.

- Slow ones among the parameters of a test: `parametrize("name", ["cart", *slow("forest", "boosting")])`.
- Most examples of hypothesis: `@examples(25)`. Every test of hypothesis runs in both; the profile says how many.
"""

import pytest
from hypothesis import settings

THOROUGH = 25  # examples of a test in the slow run, unless it says otherwise
QUICK = 5  # and in the quick one


def examples(most, **more):
    """Return settings for hypothesis: that many examples in the slow run, a fifth, three at least, in the quick one."""
    return settings(max_examples=max(3, most * settings.default.max_examples // THOROUGH), **more)


def slow(*values):
    """Return slow parameters, for a test of one argument."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def slow_rows(*rows):
    """Return slow parameters, for a test of several arguments."""
    return [pytest.param(*row, marks=pytest.mark.slow) for row in rows]


def slow_but(values, *quick):
    """Return the values of a list, slow all but the quick ones."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


def slow_among(values, *slow):
    """Return the values of a list, quick all but the slow ones."""
    return slow_but(values, *(value for value in values if value not in slow))


def slow_but_named(functions, *quick):
    """Return the functions of a list, slow all but those of the quick names."""
    return slow_but(functions, *(each for each in functions if each.__name__ in quick))
