"""Reading of constraints: constraint objects, texts of rules, a list of these, or a file.

A TOML or JSON file has sections with the names of the kinds (`mcce.available_constraints`), and the arguments of their
functions as keys; job files of the command line have the same sections::

    [[allow]]
    feature = "salary"
    low = 0
    direction = "increase"

    [[rule]]
    says = "savings >= 3 * rent"
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from mcce.base.files import check_path
from mcce.constraints.base import CONSTRAINTS, Constraint
from mcce.constraints.rules import rule
from mcce.exceptions import InputError, did_you_mean, shorten, spell
from mcce.storage.archive import depth_of
from mcce.wording import PythonOnly, Value, call, parts_of

MOST_NESTED = 20  # depth of lists and tables; constraints need five
_FILES = (".toml", ".json")
_SECTION = '[[allow]] with feature = "salary"'
_QUOTED = re.compile(  # comments and strings of TOML, also unclosed ones
    r"""#[^\n]*|"{3}(?:\\.|[^\\])*?(?:"{3}|\\?\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?""", re.DOTALL
)
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:[\w-]+[ \t]*\.[ \t]*){{{MOST_NESTED}}}[\w-]")


def read(source: Any) -> list[Constraint]:
    """Return the constraints of a list, of a TOML or JSON file, or a single one.

    Parameters
    ----------
    source : Constraint, str, list of these, or file
        A text that ends in .toml or .json, or a path, is a file; any other text is a rule.

    Examples
    --------
    >>> import mcce
    >>> from mcce.constraints import read
    >>> for each in read([mcce.allow("age", direction="increase"), "savings >= 3 * rent"]):
    ...     print(each)
    age: may only rise
    savings >= 3 * rent
    """
    if isinstance(source, PathLike) or (isinstance(source, str) and source.strip().lower().endswith(_FILES)):
        path = check_path(source)
        try:
            return read_sections(_load(path), f"constraints of {path.name}")
        except InputError as error:
            if path.name in str(error):
                raise
            raise InputError(f"constraints of {path.name}: ", *parts_of(error)) from error
    if source is None:
        return []
    if isinstance(source, (Constraint, str)):
        return [_read_one(source, "constraints")]
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, pd.DataFrame)):
        return [_read_one(each, f"constraints, entry {place}") for place, each in enumerate(source)]
    raise _not_a_constraint(source, "constraints")


def _read_one(source: Any, where: str) -> Constraint:
    if isinstance(source, Constraint):
        return source
    if isinstance(source, str):
        return rule(source)
    if isinstance(source, (list, tuple)):
        raise InputError(f"{where}: ", Value(source), " is a list; give one flat list of constraints.")
    raise _not_a_constraint(source, where)


def _not_a_constraint(source: Any, where: str) -> InputError:
    return InputError(
        f"{where}: ",
        Value(source),
        " is not a constraint; give ",
        call("mcce.allow", ...),
        PythonOnly(", mcce.rule(...), another constraint object"),
        " or the text of a rule.",
    )


def read_sections(content: Any, where: str) -> list[Constraint]:
    """Return the constraints of the sections of a file; `where` names the file in errors."""
    if not isinstance(content, Mapping):
        raise InputError(f"{where}: ", Value(content), " has no sections; give them, for example ", _SECTION, ".")
    found: list[Constraint] = []
    for section, entries in content.items():
        if section not in CONSTRAINTS.known and section not in CONSTRAINTS.all():
            raise InputError(f"{where}: there is no {spell(section)}; {did_you_mean(section, CONSTRAINTS.known)}")
        found += CONSTRAINTS.known[section].from_section(entries, where)
    return found


def _load(path: Path) -> Any:
    if path.suffix.lower() not in _FILES:
        raise InputError(f"constraints are read from .toml and .json files; got {path.name!r}; convert it.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the constraints in {path.name!r} cannot be read: {error}") from error
    return parse_file(text, "TOML" if path.suffix.lower() == ".toml" else "JSON", repr(path.name))


def parse_file(text: str, kind: Literal["TOML", "JSON"], where: str) -> Any:
    """Return the values in the text of a TOML or JSON file.

    Raise if the text is invalid, or nested more than 20 deep. TOML keys of too many parts are refused before parsing,
    whose time is quadratic in their number.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    deep = kind == "TOML" and _DEEP_KEY.search(_QUOTED.sub("q", text)) is not None
    found = None
    try:
        if not deep:
            found = tomllib.loads(text) if kind == "TOML" else json.loads(text)
            deep = depth_of(found) > MOST_NESTED
    except RecursionError:
        deep = True
    except ValueError as error:
        raise InputError(f"{where} is not a {kind} file: {shorten(str(error))}; correct it there.") from error
    if deep:
        raise InputError(f"{where} has lists or tables nested more than {MOST_NESTED} deep; correct it there.")
    return found
