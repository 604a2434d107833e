"""Messages in the syntax of the command line (`mcce.wording`): options as typed, constraints as in a file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from mcce.base.parameters import Parameters
from mcce.cli.options import OPTIONS, to_toml
from mcce.constraints import available_constraints
from mcce.constraints.base import CONSTRAINTS
from mcce.generators.base import GENERATORS
from mcce.model.decisions import Interval, Not, OneOf
from mcce.samplers.base import SAMPLERS
from mcce.wording import Dialect, FunctionCall, shorten, spell

_OF_BATCHES = {"batch_size": "--batch-size", "skip_bad": "--skip-bad"}
_FIRST = {"allow": "feature", "rule": "says", "k_anonymous": "k"}  # the key of the first argument in a file


class CommandLineDialect(Dialect):
    """Wording of messages on the command line.

    Examples
    --------
    >>> from mcce.wording import Setting, call
    >>> COMMAND_LINE.format(["add ", Setting("sparse", True), " or ", Setting("fixed", ["age", "sex"])])
    'add --sparse or --fixed age,sex'
    >>> COMMAND_LINE.format([call("mcce.allow", "*", missing=True)])
    '[[allow]] with feature = "*" and missing = true'
    """

    def parameter(self, name: str) -> str | None:
        if name == "X":
            return "the table"
        known = {each.name: each.flag for each in OPTIONS} | _OF_BATCHES
        return known.get(name)

    def setting(self, name: str, value: Any) -> str | None:
        flag = self.parameter(name)
        if isinstance(value, list) and any(isinstance(each, FunctionCall) for each in value):
            calls = [self.word(each) for each in value]
            return None if None in calls else f"{', '.join(map(str, calls))} in the file of {flag}"
        if flag is None and name in _fields():
            return f"{name} = {to_toml(value)}"
        if flag is None or not flag.startswith("--"):
            return None
        if isinstance(value, bool):
            return flag if value else None
        if name == "derived":
            return " ".join(f"{flag} {_typed({column: formula})}" for column, formula in value.items())
        return f"{flag} {_typed(value)}"

    def value(self, value: Any) -> str:
        plain = value.item() if isinstance(value, np.generic) else value
        if plain is None or isinstance(plain, bool):
            return {None: "nothing", True: "true", False: "false"}[plain]
        if isinstance(plain, (list, tuple)):
            return shorten(f"[{', '.join(map(self.value, plain))}]")
        if isinstance(plain, Mapping):
            return shorten(_typed(plain))
        cls = plain if isinstance(plain, type) else type(plain)
        if issubclass(cls, Parameters):
            names: dict[type[Any], str] = {
                each: name for family in (SAMPLERS, GENERATORS) for name, each in family.known.items()
            }
            return names.get(cls, cls.__name__)
        if issubclass(cls, (Interval, Not, OneOf)):
            return "the decision"
        return super().value(plain) if plain is ... or isinstance(plain, (int, float, str)) else _kind(plain)

    def call(self, given: FunctionCall) -> str | None:
        kind = given.function.removeprefix("mcce.")
        if kind not in available_constraints():
            return None
        pairs = [(_FIRST.get(kind, ""), each) for each in given.arguments if each is not ...] + list(given.options)
        fields = [f"{name} = {to_toml(value)}" for name, value in pairs if name]
        return f"[[{kind}]] with {' and '.join(fields)}" if fields else f"[[{kind}]]"

    def python_only(self, text: str) -> str | None:
        return None


COMMAND_LINE = CommandLineDialect()


def _fields() -> set[str]:
    return {name for kind in CONSTRAINTS.known.values() for name in kind.keys()}  # noqa: SIM118  # a method of the class


def _typed(value: Any) -> str:
    """Return the value of an option as typed into a shell."""
    if isinstance(value, Mapping):
        return shlex.quote(",".join(f"{name}={each}" for name, each in value.items()))
    if isinstance(value, (list, tuple)):
        return ",".join("..." if each is ... else shlex.quote(str(each)) for each in value)
    return "..." if value is ... else shlex.quote(str(value))


def _kind(value: Any) -> str:
    return shorten(spell(value)) if isinstance(value, bytes) else f"a {type(value).__name__}"
