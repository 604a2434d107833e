"""Errors and warnings, and the words of their messages."""

import warnings

import numpy as np
import pytest
import sklearn.exceptions

from mcce.exceptions import InputError, MCCEError, MCCEWarning, NotFittedError, did_you_mean, listing, spell, warn


def test_classes():
    assert issubclass(InputError, MCCEError)
    assert issubclass(InputError, ValueError)
    assert issubclass(NotFittedError, MCCEError)
    assert issubclass(NotFittedError, sklearn.exceptions.NotFittedError)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (did_you_mean("sallary", ["age", "salary"]), "did you mean 'salary'?"),
        (did_you_mean("z", ["age", 3, ("a", 1)]), "known: 'age', 3, ('a', 1)"),
        (did_you_mean("z", [f"x{k}" for k in range(12)])[-24:], "'x8', 'x9', ... (12 in all)"[-24:]),
        (did_you_mean(5, []), "there are none"),
        (listing(["a", "b", "c", "d", "e"], most=2), "'a', 'b' and 3 more"),
        (listing([np.int64(1), np.str_("b")]), "1, 'b'"),
        (spell("x" * 200)[-6:], "xx ..."),
        (spell("two\nlines"), "'two\\nlines'"),
    ],
)
def test_words(text, expected):
    assert text == expected


def test_a_warning_names_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("careful")
    assert caught[0].category is MCCEWarning
    assert caught[0].filename == __file__
