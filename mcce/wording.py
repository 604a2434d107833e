"""Parts of messages that each front end writes in its own syntax.

1. The message of an error or a warning is a sequence of parts (`Message`). A plain text reads the same everywhere. The
   classes below represent what Python, R and the command line write differently: names of options, values, calls.
2. A `Dialect` words the parts. The one here is Python's, and `str()` of a message uses it; `mcce.cli.wording` and
   `mcce.rcompat.wording` have the others. A front end applies its dialect where it catches an error or a warning.
3. A dialect returns None for a part that its front end cannot express. `Either` lists alternatives for that case.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

MOST_QUOTED = 200  # characters of one value in a message


@dataclass(frozen=True)
class Parameter:
    """A parameter by its Python name: ``n_samples``, in R ``n_samples``, on the command line ``--n-samples``."""

    name: str


@dataclass(frozen=True)
class Setting:
    """A parameter with a value: ``sparse=True``, in R ``sparse = TRUE``, on the command line ``--sparse``."""

    name: str
    value: Any


@dataclass(frozen=True)
class Value:
    """A value as the front end writes it: ``True``, in R ``TRUE``.

    Within a list, ... stands for further values. A class stands for its objects, as in "min_leaf of CartSampler".
    """

    value: Any


@dataclass(frozen=True)
class Values:
    """Several values, separated by commas; a long list is cut and counted."""

    values: Collection[Any]


@dataclass(frozen=True)
class FunctionCall:
    """A call, as of a function of the package: ``mcce.allow('age', low=18)``; see `call`."""

    function: str
    arguments: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class PythonOnly:
    """Text for Python only: code without a counterpart in other front ends, or a clause about it."""

    text: str


@dataclass(frozen=True)
class Either:
    """Alternatives, each a part or a tuple of parts: the first that the front end can express, else an empty text.

    Examples
    --------
    >>> way = Either((" Use ", PythonOnly("X.reset_index(drop=True)"), "."), " Give each row its own name.")
    >>> PYTHON.format([way])
    ' Use X.reset_index(drop=True).'
    """

    ways: tuple[Part, ...]

    def __init__(self, *ways: Part) -> None:
        object.__setattr__(self, "ways", ways)


Part: TypeAlias = "str | Parameter | Setting | Value | Values | FunctionCall | PythonOnly | Either | tuple[Part, ...]"


def call(function: str, *arguments: Any, **options: Any) -> FunctionCall:
    """Return a call of a function, by its Python name.

    Examples
    --------
    >>> PYTHON.format([call("mcce.allow", "*", missing=True)])
    "mcce.allow('*', missing=True)"
    """
    return FunctionCall(function, arguments, tuple(options.items()))


def entry(option: str, key: object) -> Either:
    """Return one entry of a parameter that has several by name.

    Examples
    --------
    >>> PYTHON.format([entry("feature_weights", "age")])
    "feature_weights['age']"
    """
    return Either(PythonOnly(f"{option}[{spell(key)}]"), (Parameter(option), f" of {spell(key)}"))


class Dialect:
    """Python's wording; other front ends override the parts that differ."""

    def format(self, parts: Iterable[Part]) -> str:
        """Return the text of a message.

        Examples
        --------
        >>> PYTHON.format(["set ", Setting("sparse", True), ", or leave ", Parameter("floor"), " out."])
        'set sparse=True, or leave floor out.'
        """
        return "".join(self._without_syntax(each) if (words := self.word(each)) is None else words for each in parts)

    def word(self, part: Part) -> str | None:
        """Return the text of a part; None if it cannot be expressed."""
        if isinstance(part, str):
            return part
        if isinstance(part, Parameter):
            return self.parameter(part.name)
        if isinstance(part, Setting):
            return self.setting(part.name, part.value)
        if isinstance(part, Value):
            return self.value(part.value)
        if isinstance(part, Values):
            return list_values(map(self.value, part.values))
        if isinstance(part, FunctionCall):
            return self.call(part)
        if isinstance(part, PythonOnly):
            return self.python_only(part.text)
        if isinstance(part, Either):
            return next((words for each in part.ways if (words := self.word(each)) is not None), "")
        each_in_words = [self.word(each) for each in part]
        return None if None in each_in_words else "".join(map(str, each_in_words))

    def parameter(self, name: str) -> str | None:
        """Return the name of a parameter."""
        return name

    def setting(self, name: str, value: Any) -> str | None:
        """Return a parameter with its value; a list may hold calls."""
        if isinstance(value, list) and any(isinstance(each, FunctionCall) for each in value):
            return f"{name}=[{', '.join(str(self.word(each)) for each in value)}]"
        return f"{name}={self.value(value)}"

    def value(self, value: Any) -> str:
        """Return a value as source text."""
        if value is ... or isinstance(value, PythonOnly):
            return "..." if value is ... else value.text
        if isinstance(value, list) and any(each is ... for each in value):
            return f"[{', '.join(map(self.value, value))}]"
        return value.__name__ if isinstance(value, type) else spell(value)

    def call(self, given: FunctionCall) -> str | None:
        """Return a call as source text; its arguments may be code."""
        options = [f"{name}={self.value(value)}" for name, value in given.options]
        return f"{given.function}({', '.join([*map(self.value, given.arguments), *options])})"

    def python_only(self, text: str) -> str | None:
        """Return text for Python only; None in other front ends."""
        return text

    def _without_syntax(self, part: Part) -> str:
        if isinstance(part, (Parameter, Setting)):
            return part.name
        return part.function.removeprefix("mcce.") if isinstance(part, FunctionCall) else ""


PYTHON = Dialect()


class Message:
    """Base of errors and warnings: `args` are the parts of the message."""

    args: tuple[Any, ...]

    def __str__(self) -> str:
        return self.format_for(PYTHON)

    def format_for(self, dialect: Dialect) -> str:
        """Return the message in the syntax of a front end."""
        return dialect.format(self.args)


def parts_of(error: BaseException) -> tuple[Any, ...]:
    """Return the parts of the message of an error, for a message that contains it."""
    return error.args if isinstance(error, Message) else (str(error),)


def list_values(texts: Iterable[str], most: int = 10) -> str:
    """Return texts of values, comma-separated; a long list is cut and counted."""
    words = list(texts)
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more if words else "none"


def spell(value: Any) -> str:
    """Return the repr of a value, of a numpy scalar that of the Python scalar; long texts are shortened.

    Examples
    --------
    >>> import numpy as np
    >>> spell(np.float64(0.5))
    '0.5'
    >>> spell(10**400)
    'a whole number of about 401 digits, more than a float holds'
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, int) and plain.bit_length() > sys.float_info.max_exp:
        digits = int(plain.bit_length() * math.log10(2)) + 1  # Python refuses to write the longest ones
        return f"a whole number of about {digits} digits, more than a float holds"
    try:
        return shorten(repr(plain))
    except (RecursionError, ValueError):  # nested too deep, or with a number of too many digits inside
        return f"a {type(plain).__name__} too deep or too long to be written"


def shorten(text: str, most: int = MOST_QUOTED) -> str:
    """Return a text of at most `most` characters; the middle of a longer text is omitted.

    Examples
    --------
    >>> shorten("a very long name", 12)
    'a very...ame'
    """
    if len(text) <= most:
        return text
    end = (most - 3) // 3
    return f"{text[: most - 3 - end]}...{text[len(text) - end :]}"


def spell_all(values: Iterable[Any], most: int = 10) -> str:
    """Return the reprs of values, comma-separated; a long list is cut and counted.

    Examples
    --------
    >>> spell_all([1, "a"])
    "1, 'a'"
    """
    return list_values(map(spell, values), most)
