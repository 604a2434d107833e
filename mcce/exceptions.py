"""The errors and warnings of the package.

Every message says what was wrong, where, what was found and what to do about it.

`NotFittedError` is scikit-learn's too, so that whoever catches that one catches ours. Importing scikit-learn takes
longer than importing everything else here, so the class is made when somebody first raises, catches or imports it; our
modules write `exceptions.NotFittedError`.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

__all__ = [
    "InputError",
    "MCCEError",
    "MCCEWarning",
    "ModelError",
    "NotFittedError",
    "SamplerError",
    "did_you_mean",
    "listing",
    "spell",
    "spell_all",
    "warn",
]

_making = Lock()


class MCCEError(ValueError):
    """Base of every error that mcce raises on purpose."""


class InputError(MCCEError):
    """A table, a parameter or a file is not what the call needs."""


class ModelError(MCCEError):
    """The explained model cannot be asked, or answers in a way that cannot be used."""


class SamplerError(MCCEError):
    """A conditional sampler cannot do what it was asked for."""


if TYPE_CHECKING:

    class NotFittedError(MCCEError, AttributeError):
        """A method that needs `fit` was called before it."""


class MCCEWarning(UserWarning):
    """Something works, but the user should know."""


def __getattr__(name: str) -> Any:
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _making:
        if name not in globals():
            from sklearn.exceptions import NotFittedError as OfScikitLearn

            described = {"__doc__": "A method that needs `fit` was called before it.", "__module__": __name__}
            globals()[name] = type(name, (MCCEError, OfScikitLearn), described)
    return globals()[name]


def warn(message: str) -> None:
    """Warn with a `MCCEWarning`, as of the line outside of the package that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("mcce", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, MCCEWarning, stacklevel=level)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """End of a sentence that offers the nearest known name, or lists the known ones."""
    names = [str(k) for k in known]
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {listing(names)}"


def listing(names: Iterable[object], most: int = 10) -> str:
    """Return the names quoted and comma-separated; a long list is cut and counted."""
    return spell_all(map(str, names), most)


def spell(value: Any) -> str:
    """Return a value as Python writes it, a scalar of numpy as the plain one."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def spell_all(values: Iterable[Any], most: int = 10) -> str:
    """Return the values as Python writes them, comma-separated; a long list is cut and counted."""
    shown = [spell(v) for v in values]
    if not shown:
        return "none"
    rest = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {rest} more" if rest > 0 else "")
