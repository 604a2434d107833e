"""Messages in R's syntax (`mcce.wording`)."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.parameters import Parameters, changed_parameters
from mcce.generators.base import GENERATORS
from mcce.model.decisions import Interval, Not, OneOf
from mcce.rcompat.conditional import RConditional
from mcce.rcompat.names import ABSENT, CALL, FUNCTIONS, TABLES, here
from mcce.samplers.base import SAMPLERS, ConditionalSampler
from mcce.wording import Dialect, FunctionCall, shorten, spell

_RESERVED = frozenset({"if", "else", "repeat", "while", "function", "for", "next", "break", "in", "TRUE", "FALSE"}) | {
    "NULL", "Inf", "NaN", "NA",
}  # fmt: skip
EXACT = 2**53
_DECISIONS = {Interval: "mcce.Interval", Not: "mcce.Not", OneOf: "mcce.OneOf"}


class RDialect(Dialect):
    """R's wording of messages.

    Parameters
    ----------
    function : str
        The called function of `mcce.rcompat.calls`.

    Examples
    --------
    >>> from mcce.wording import Setting, call
    >>> RDialect("explain").format([Setting("sparse", True), "; ", call("mcce.allow", "job", levels=["cook", "pilot"])])
    'sparse = TRUE; allow("job", levels = c("cook", "pilot"))'
    """

    def __init__(self, function: str) -> None:
        self._names = {"X": TABLES.get(function, "data"), **{here(name): name for name in CALL}}

    def parameter(self, name: str) -> str | None:
        return None if name in ABSENT else self._names.get(name, name)

    def setting(self, name: str, value: Any) -> str | None:
        known = self.parameter(name)
        if known is None:
            return None
        if isinstance(value, list) and any(isinstance(each, FunctionCall) for each in value):
            calls = [self.word(each) for each in value]
            return None if None in calls else f"{known} = list({', '.join(map(str, calls))})"
        return f"{known} = {self._argument(value)}"

    def value(self, value: Any) -> str:
        return spell(value) if isinstance(value, str) else self._argument(value)

    def call(self, given: FunctionCall) -> str | None:
        if given.function == "mcce.rule":
            return self._argument(given.arguments[0])
        if given.function not in FUNCTIONS:
            return None
        options = [f"{_name(name)} = {self._argument(value)}" for name, value in given.options]
        return f"{FUNCTIONS[given.function]}({', '.join([*map(self._argument, given.arguments), *options])})"

    def python_only(self, text: str) -> str | None:
        return None

    def _argument(self, value: Any) -> str:
        try:
            return shorten(self._value(value))
        except RecursionError:
            return spell(value)

    def _value(self, value: Any) -> str:
        """Return a value as R code, a text in double quotes."""
        plain = value.item() if isinstance(value, np.generic) else value
        if plain is None or plain is ...:
            return "NULL" if plain is None else "..."
        if isinstance(plain, bool):
            return "TRUE" if plain else "FALSE"
        if isinstance(plain, float) and not math.isfinite(plain):
            return "NaN" if math.isnan(plain) else "Inf" if plain > 0 else "-Inf"
        if isinstance(plain, float) and plain.is_integer() and abs(plain) < EXACT:
            return str(int(plain))
        if isinstance(plain, str):
            return json.dumps(shorten(plain), ensure_ascii=False)
        if isinstance(plain, (list, tuple)):
            kinds = {type(each) for each in plain} - {type(...)}
            is_vector = bool(kinds) and (kinds <= {int, float} or kinds == {str} or kinds == {bool})
            return f"{'c' if is_vector else 'list'}({', '.join(map(self._value, plain))})"
        if isinstance(plain, Mapping):
            return f"list({', '.join(f'{_name(str(key))} = {self._value(each)}' for key, each in plain.items())})"
        if isinstance(plain, Parameters) or (isinstance(plain, type) and issubclass(plain, Parameters)):
            return self._member(plain)
        if isinstance(plain, type) and plain in _DECISIONS:
            return f"{FUNCTIONS[_DECISIONS[plain]]}()"
        if type(plain) in _DECISIONS:
            return self._decision(plain)
        if isinstance(plain, (pd.Timestamp, pd.Timedelta, pd.Period)):
            return json.dumps(str(plain))
        return spell(plain) if isinstance(plain, (int, float)) else f"an object of the class {type(plain).__name__}"

    def _member(self, member: Parameters | type[Parameters]) -> str:
        """Return the call that creates a sampler in R, or the name of a generator."""
        cls = member if isinstance(member, type) else type(member)
        if issubclass(cls, RConditional):
            return cls.maker
        names: dict[type[Any], str] = {
            each: name for family in (SAMPLERS, GENERATORS) for name, each in family.known.items()
        }
        name = self._value(names.get(cls, cls.__name__))
        changed = {} if isinstance(member, type) else changed_parameters(member)
        options = [f"{_name(key)} = {self._value(each)}" for key, each in changed.items()]
        return f"sampler({', '.join([name, *options])})" if issubclass(cls, ConditionalSampler) else name

    def _decision(self, decision: Any) -> str:
        fields = dataclasses.fields(decision)
        values = {each.name: getattr(decision, each.name) for each in fields}
        changed = [
            f"{each.name} = {self._value(values[each.name])}"
            for each in fields
            if each.default is not dataclasses.MISSING and values[each.name] != each.default
        ]
        first = [values["low"], values["high"]] if isinstance(decision, Interval) else decision.classes
        return f"{FUNCTIONS[_DECISIONS[type(decision)]]}({', '.join([*map(self._value, first), *changed])})"


def _name(name: str) -> str:
    """Return a name of R, in backticks where R needs them."""
    plain = name.replace(".", "x")
    is_word = plain.isascii() and plain.isidentifier() and not plain.startswith("_") and name not in _RESERVED
    if is_word and not (name.startswith(".") and name[1:2].isdigit()):
        return name
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
