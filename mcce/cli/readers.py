"""Readers of option values: from the text of a command line, or from a TOML file, whose values have types.

A reader returns the same value for both. A value that it cannot read raises argparse's own error.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mcce.base.checks import is_number, is_whole
from mcce.base.files import check_path
from mcce.exceptions import InputError, spell

T = TypeVar("T")
ORDERS = ("data", "correlation", "reversed")
MOST_DIGITS = 18  # of a count; an array cannot count further


def text(value: Any) -> str:
    return str(_checked(isinstance(value, str), value, "text"))


def path(value: Any) -> str:
    """Read the name of a file or folder."""
    try:
        check_path(text(value))
    except InputError as error:
        raise ArgumentTypeError(str(error).rstrip(".")) from None
    return str(value)


def decision(value: Any) -> str:
    """Read a class or an interval; in a file also as [0, 0.1], true or 3."""
    if isinstance(value, list) and len(value) == 2 and all(map(is_number, value)):
        return f"{value[0]},{value[1]}"
    return str(_checked(isinstance(value, (str, bool, int, float)), value, "a class or an interval"))


def names(value: Any) -> list[str]:
    """Read names, with commas between them or as a list."""
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    return [text(each) for each in _checked(isinstance(value, list), value, "a list of names")]


def count(value: Any) -> int:
    """Read a whole number of at least 1."""
    digits = str(value)
    if not digits.isdecimal() or len(digits) > MOST_DIGITS or int(digits) < 1:
        most = f" and at most {MOST_DIGITS} digits" if len(digits) > MOST_DIGITS else ""
        raise _wrong(digits, f"a whole number of at least 1{most}")
    return int(digits)


def count_or_auto(value: Any) -> int | str:
    """Read a whole number of at least 1, or the word auto."""
    return "auto" if value == "auto" else count(value)


def whole(value: Any) -> int:
    try:
        return int(_checked(isinstance(value, str) or is_whole(value), value, "a whole number"))
    except ValueError:
        raise _wrong(value, "a whole number") from None


def number(value: Any) -> float:
    try:
        fits = isinstance(value, str) or is_number(value)
        return float(_checked(fits, value, "a number that a float can hold"))
    except ValueError:
        raise _wrong(value, "a number") from None


def flag(value: Any) -> bool:
    """Read true or false; on a command line a flag stands alone."""
    return bool(_checked(isinstance(value, bool), value, "true or false"))


def sep(value: Any) -> str:
    r"""Read a separator; a tab may be written as \t or tab."""
    char = {r"\t": "\t", "tab": "\t"}.get(text(value), value)
    return str(_checked(len(char) == 1, char, "a single character"))


def pairs(value: Any) -> dict[str, str]:
    return _by_name(value, "a=b,c=d", text)


def formats(value: Any) -> dict[str, Any]:
    """Read patterns by name; in a file also tables of words for levels."""
    return _by_name(value, "a=0.0%,b=0", lambda each: dict(each) if isinstance(each, Mapping) else text(each))


def reasons(value: Any) -> bool | dict[str, Any]:
    """Read true or false; in a file also a table of texts, or of codes and texts, by feature."""
    return formats(value) if isinstance(value, Mapping) else flag(value)


def numbers_by_name(value: Any) -> dict[str, float]:
    return _by_name(value, "a=2,b=0.5", number)


def takes(value: Any) -> dict[str, Any]:
    """Read times of actions; in a file also tables of steps by column."""
    return _by_name(value, "a=2 years", lambda each: numbers_by_name(each) if isinstance(each, Mapping) else text(each))


def number_or_by_name(value: Any) -> float | dict[str, float]:
    if isinstance(value, Mapping) or (isinstance(value, str) and "=" in value):
        return numbers_by_name(value)
    return number(value)


def text_or_pairs(value: Any) -> str | dict[str, str]:
    return pairs(value) if isinstance(value, Mapping) or "=" in text(value) else text(value)


def samplers(value: Any) -> str | dict[str, str]:
    """Read one sampler, or samplers by feature; commas and equals signs in parentheses do not separate."""
    if isinstance(value, Mapping):
        return pairs(value)
    parts = _split(text(value), ",")
    if len(parts) == 1 and len(_split(parts[0], "=")) == 1:
        return parts[0].strip()
    return pairs(dict(_pair(part, value, "A=NAME,*=NAME") for part in parts if part.strip()))


def sheet(value: Any) -> dict[str, str]:
    """Read the sheet of both files, or of each."""
    found = text_or_pairs(value)
    named = {"train": found, "explain": found} if isinstance(found, str) else found
    for role in named:
        if role not in ("train", "explain"):
            raise ArgumentTypeError(f"{role!r} is neither train nor explain")
    return named


def mark(value: Any) -> str:
    """Read a decimal or thousands mark."""
    found = text(value)
    return str(_checked(len(found) == 1 and not found.isalnum(), found, "a single mark, as . or ,"))


def date_format(value: Any) -> dict[str, str]:
    found = text_or_pairs(value)
    formats = {"": found} if isinstance(found, str) else found
    for each in formats.values():
        _checked("%" in each or each == "ISO8601", each, "a format such as %d.%m.%Y, or ISO8601")
    return formats


def ordered(value: Any) -> dict[str, list[str]]:
    return _by_name(value, "a column with its levels, as in size=low<high", _levels, is_one=True)


def derived(value: Any) -> dict[str, str]:
    return _by_name(value, "a column with its formula, as in dti=(rent + instalment) / income", text, is_one=True)


def visit_sequence(value: Any) -> str | list[str]:
    return str(value) if value in ORDERS else names(value)


def constraints(value: Any) -> str | dict[str, Any]:
    """Read the name of a file; in a TOML file also the constraints themselves."""
    return dict(value) if isinstance(value, Mapping) else path(value)


def _levels(value: Any) -> list[str]:
    levels = [part.strip() for part in value.split("<")] if isinstance(value, str) else list(map(str, value))
    if len(levels) < 2 or len(set(levels)) < len(levels) or "" in levels:
        raise _wrong(value, "levels from the lowest to the highest, each once, as in low<medium<high")
    return levels


def _by_name(value: Any, example: str, read: Callable[[Any], T], *, is_one: bool = False) -> dict[str, T]:
    """Read a table, or a text of pairs; a text of one pair (`is_one`) may have commas in its value."""
    if isinstance(value, Mapping):
        return {str(name): read(each) for name, each in value.items()}
    found = dict(_pair(part, value, example) for part in ([text(value)] if is_one else names(text(value))))
    _checked(not is_one or all(found.values()), value, example)
    return {name: read(each) for name, each in found.items()}


def _pair(part: str, value: Any, example: str) -> tuple[str, str]:
    name, equals, each = part.partition("=")
    if not equals:
        raise _wrong(value, example)
    return name.strip(), each.strip()


def _split(value: str, mark: str) -> list[str]:
    """Split a text at a mark outside parentheses."""
    parts, depth = [""], 0
    for letter in value:
        depth += (letter == "(") - (letter == ")")
        if letter == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise _wrong(value, "text with as many '(' as ')'")
    return parts


def _checked(fits: bool, value: Any, what: str) -> Any:
    if not fits:
        raise _wrong(value, what)
    return value


def _wrong(value: Any, what: str) -> ArgumentTypeError:
    return ArgumentTypeError(f"{spell(value)} is not {what}")
