"""What a user says about counterfactuals: `allow`, `rule` and `no_copies`; `resolve` checks it against a table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import pandas as pd

from mcce.constraints.grammar import parse
from mcce.exceptions import InputError, did_you_mean, listing, spell

Direction = Literal["increase", "decrease", "none"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)
_MOVES = {"increase": "may only rise", "decrease": "may only fall", "none": "stays as it is"}


@dataclass(frozen=True, repr=False)
class Allow:
    """The values that one feature may have; made by `allow`, which documents the attributes. None: no limit."""

    feature: Hashable
    low: Any = None
    high: Any = None
    levels: tuple[Any, ...] | None = None
    direction: Direction | None = None
    max_step: Any = None
    missing: bool | None = None

    def __repr__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        limits = [f"{name}={value!r}" for name, value in values.items() if value is not None]
        return f"allow({', '.join([repr(self.feature), *limits])})"

    def __str__(self) -> str:
        words = []
        if self.low is not None and self.high is not None:
            words.append(f"from {_plain(self.low)} to {_plain(self.high)}")
        elif self.low is not None:
            words.append(f"at least {_plain(self.low)}")
        elif self.high is not None:
            words.append(f"at most {_plain(self.high)}")
        if self.levels is not None:
            words.append(("only " if len(self.levels) == 1 else "one of ") + listing(self.levels))
        if self.direction is not None:
            words.append(_MOVES[self.direction])
        if self.max_step is not None:
            words.append(f"changes by at most {_plain(self.max_step)}")
        if self.missing is not None:
            words.append("may become missing" if self.missing else "may not become missing")
        return f"{self.feature}: {', '.join(words)}"


@dataclass(frozen=True, repr=False)
class Rule:
    """A condition on a row and its factual; made by `rule`."""

    text: str

    def __repr__(self) -> str:
        return f"rule({self.text!r})"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, repr=False)
class NoCopies:
    """No counterfactual equals a training row; made by `no_copies`."""

    def __repr__(self) -> str:
        return "no_copies()"

    def __str__(self) -> str:
        return "no copy of a training row"


Constraint = Allow | Rule | NoCopies


def allow(
    feature: Hashable,
    *,
    low: Any = None,
    high: Any = None,
    levels: Iterable[Any] | None = None,
    direction: Direction | None = None,
    max_step: Any = None,
    missing: bool | None = None,
) -> Allow:
    """Limit the values that one feature may have.

    Parameters
    ----------
    feature : column label
    low, high : number, date or ordered level
        Smallest and largest value.
    levels : list
        Allowed levels.
    direction : {"increase", "decrease", "none"}
        Whether it may only rise or only fall from the factual's value (numbers, dates, ordered levels), or must stay.
    max_step : number or Timedelta
        Largest change in the feature's own unit: a Timedelta for dates, a number of levels for ordered levels.
    missing : bool
        Whether a known value may become missing; by default not, and never where it must stay.

    Notes
    -----
    A range and levels restrict every row: a factual outside of them must change. Direction and largest step restrict
    changes only. A missing value of the factual may stay missing; with a direction or a largest step it must. Several
    limits on one feature hold together.

    Examples
    --------
    >>> import mcce
    >>> mcce.allow("salary", low=0, direction="increase")
    allow('salary', low=0, direction='increase')
    >>> print(mcce.allow("salary", low=0, direction="increase"))
    salary: at least 0, may only rise
    """
    where = f"allow({spell(feature)})"
    for name, value in (("low", low), ("high", high), ("max_step", max_step)):
        if isinstance(value, (list, tuple, set, dict, bool)) or (value is not None and _is_missing(value)):
            raise InputError(f"{where}: {name} is {spell(value)}; give a number, a date or an ordered level.")
    if direction is not None and direction not in DIRECTIONS:
        raise InputError(f"{where}: direction is {spell(direction)}; {did_you_mean(direction, DIRECTIONS)}")
    if missing is not None and not isinstance(missing, bool):
        raise InputError(f"{where}: missing is {spell(missing)}; give True or False.")
    if levels is not None:
        if isinstance(levels, (str, bytes, dict)) or not isinstance(levels, Iterable):
            raise InputError(f"{where}: levels is {spell(levels)}; give a list, for example [{spell(levels)}].")
        levels = tuple(sorted(levels, key=repr)) if isinstance(levels, (set, frozenset)) else tuple(levels)
        if not levels:
            raise InputError(f"{where}: levels is empty, so no level is allowed; name at least one.")
    limits = (low, high, levels, direction, max_step, missing)
    if all(limit is None for limit in limits):
        raise InputError(f"{where} sets no limit; give low, high, levels, direction, max_step or missing.")
    return Allow(feature, *limits)


def rule(text: str) -> Rule:
    """Require a condition of every row and its factual.

    Parameters
    ----------
    text : str
        Numbers, levels and dates in quotes, names of columns (unusual ones in backticks), ``+ - * / **``, comparisons
        (also chained), ``in [...]``, ``not in``, ``and``, ``or``, ``not``, ``A if B else C``, ``was(column)`` for the
        factual's value, ``missing(column)``, and abs, ceil, exp, floor, log, max, min, round, sqrt.

    Notes
    -----
    "If B then A" is ``A if B else True``. Ordered levels compare by their order. A difference of dates is a number of
    days, and numbers added to dates are days. A comparison with a missing value is false, also ``!=`` and ``not in``;
    what is computed from a missing value is missing, as are quotients by 0. Numbers compare exactly, as floats do:
    write ``abs(total - a - b) < 0.005`` for sums of cents. The text is never executed.

    Examples
    --------
    >>> import mcce
    >>> print(mcce.rule("salary == 0 if employed == 'no' else True"))
    salary == 0 if employed == 'no' else True
    """
    parse(text)
    return Rule(text.strip())


def no_copies() -> NoCopies:
    """Forbid counterfactuals that equal a training row in every column (the paper's safeguard).

    Examples
    --------
    >>> import mcce
    >>> mcce.no_copies()
    no_copies()
    """
    return NoCopies()


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, (pd.Timestamp, pd.Timedelta)) else spell(value)


def _is_missing(value: Any) -> bool:
    missing = pd.isna(value)
    return bool(missing) if isinstance(missing, bool) else False
