"""The errors and warnings of the package, and the words that their messages share.

Every message says what is wrong, where, what was found, and how to fix it, in one plain sentence.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import sklearn.exceptions

__all__ = ["InputError", "MCCEError", "MCCEWarning", "NotFittedError", "did_you_mean", "listing", "spell", "warn"]

LONGEST = 80  # characters of a value that a message shows


class MCCEError(Exception):
    """Base class of all errors of the package.

    Examples
    --------
    >>> from mcce.exceptions import InputError, MCCEError, NotFittedError
    >>> issubclass(InputError, MCCEError), issubclass(NotFittedError, MCCEError)
    (True, True)
    """


class InputError(MCCEError, ValueError):
    """A table, an argument, a model or a file is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.exceptions import InputError
    >>> from mcce.table import Schema
    >>> try:
    ...     Schema.from_data(np.array([1.0, 2.0]))
    ... except InputError as error:
    ...     print(error)
    X is an array with 1 dimension; give a table with two, rows and columns.
    """


class NotFittedError(MCCEError, sklearn.exceptions.NotFittedError):  # type: ignore[misc]
    """A method that needs `fit` was called before `fit`; also scikit-learn's error of this name.

    Examples
    --------
    >>> import sklearn.exceptions
    >>> from mcce.exceptions import NotFittedError
    >>> issubclass(NotFittedError, sklearn.exceptions.NotFittedError)
    True
    """


class MCCEWarning(UserWarning):
    """The class of all warnings of the package.

    Examples
    --------
    >>> import warnings
    >>> from mcce.exceptions import MCCEWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", MCCEWarning)
    """


def warn(message: str) -> None:
    """Issue an `MCCEWarning` for the calling line outside of the package.

    Examples
    --------
    >>> import warnings
    >>> from mcce.exceptions import warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("2 rows have no counterfactual")
    >>> str(caught[0].message)
    '2 rows have no counterfactual'
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("mcce", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, MCCEWarning, stacklevel=level)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return the end of a message about an unknown name: the nearest known name, or the known names.

    Examples
    --------
    >>> from mcce.exceptions import did_you_mean
    >>> did_you_mean("agee", ["age", "sex"])
    "did you mean 'age'?"
    >>> did_you_mean("z", range(4))
    'known: 0, 1, 2, 3'
    """
    known = list(known)
    texts = {str(k).lower(): k for k in known if len(str(k)) <= LONGEST}  # comparing takes the product of the lengths
    close = difflib.get_close_matches(name[:LONGEST].lower(), texts, n=1) if isinstance(name, str) else []
    if close:
        return f"did you mean {spell(texts[close[0]])}?"
    if not known:
        return "there are none"
    shown = ", ".join(spell(k) for k in known[:10])
    return f"known: {shown}" + (f", ... ({len(known)} in all)" if len(known) > 10 else "")


def listing(names: Iterable[object], most: int = 10) -> str:
    """Return names as Python writes them, separated by commas; a long list is cut and counted.

    Examples
    --------
    >>> from mcce.exceptions import listing
    >>> listing(["age", "sex", "job"], most=2)
    "'age', 'sex' and 1 more"
    """
    names = list(names)
    shown = ", ".join(spell(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def spell(value: Any) -> str:
    """Return a value as Python writes it, numbers of numpy as plain numbers, shortened if it is long.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.exceptions import spell
    >>> spell("clerk"), spell(np.float64(1.5))
    ("'clerk'", '1.5')
    """
    plain = value.item() if hasattr(value, "dtype") and getattr(value, "shape", None) == () else value
    text = " ".join(repr(plain).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."
