"""What one feature may be, as the user says it: `allow`.

1. A range, a set of levels and values never to be used bind every row that is returned: a factual outside of them has
   to change.
2. A direction, a largest step and a grid bind changes: the factual's own value may always be kept as far as these are
   concerned. From a missing value there is no direction and no step: with either, it stays missing.
3. A feature that is said anything of may become missing only if that is said too; a missing one may stay missing.

What is said is checked here as far as no table is needed; `mcce.constraints.resolving` checks the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from mcce.checks import is_number
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.state import register
from mcce.table.dtypes import EXACT

Direction = Literal["increase", "decrease", "none"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)
MOST_SHOWN = 10  # levels in a sentence
_MOVES = {"increase": "may only rise", "decrease": "may only fall", "none": "stays as it is"}


@dataclass(frozen=True)
class Allow:
    """What one feature may be; made by `allow`, which says what each attribute means. None: nothing is said."""

    feature: Hashable
    low: Any = None
    high: Any = None
    levels: tuple[Any, ...] | None = None
    never: tuple[Any, ...] | None = None
    direction: Direction | None = None
    max_step: Any = None
    max_share: float | None = None
    step: float | None = None
    missing: bool | None = None

    def __str__(self) -> str:
        return f"{self.feature}: {', '.join(self._words())}"

    def _words(self) -> Iterable[str]:
        if self.low is not None and self.high is not None:
            yield f"from {say(self.low)} to {say(self.high)}"
        elif self.low is not None:
            yield f"at least {say(self.low)}"
        elif self.high is not None:
            yield f"at most {say(self.high)}"
        if self.levels is not None:
            yield ("only " if len(self.levels) == 1 else "one of ") + _say_all(self.levels)
        if self.never is not None:
            yield f"never {_say_all(self.never)}"
        if self.step is not None:
            yield f"in steps of {say(self.step)}"
        if self.direction is not None:
            yield _MOVES[self.direction]
        if self.max_step is not None:
            yield f"changes by at most {say(self.max_step)}"
        if self.max_share is not None:
            yield f"changes by at most {100 * self.max_share:g}% of its range"
        if self.missing is not None:
            yield "may become missing" if self.missing else "may not become missing"

    def to_dict(self) -> dict[str, Any]:
        """Return what is said as plain values, of which `mcce.constraints.read` makes the same again.

        Examples
        --------
        >>> import mcce
        >>> mcce.allow("salary", low=0, direction="increase").to_dict()
        {'feature': 'salary', 'low': 0, 'direction': 'increase'}
        """
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: plain(value) for name, value in said.items() if value is not None}


def allow(
    feature: Hashable,
    *,
    low: Any = None,
    high: Any = None,
    levels: Iterable[Any] | None = None,
    never: Iterable[Any] | None = None,
    direction: Direction | None = None,
    max_step: Any = None,
    max_share: float | None = None,
    step: float | None = None,
    missing: bool | None = None,
) -> Allow:
    """Say what one feature may be.

    Parameters
    ----------
    feature : column label
    low, high : number, date or ordered level
        Smallest and largest value.
    levels, never : list
        The levels that are allowed; levels or values that are never to be used.
    direction : {"increase", "decrease", "none"}
        Whether it may only rise or only fall, seen from the factual (numbers, dates, ordered levels), or has to stay.
    max_step : number or Timedelta
        Largest change, in the feature's own unit; a number of levels for ordered ones, a Timedelta for dates.
    max_share : float
        Largest change as a share of the training range.
    step : number
        Numbers that it changes to are multiples of it.
    missing : bool
        Whether it may become missing where the factual's value is known; not unless said.

    Notes
    -----
    Range, `levels` and `never` bind every row: a factual outside of them has to change. Direction, largest step and
    grid bind changes only. A missing value of the factual may be kept; with a direction or a largest step it has to be.

    Examples
    --------
    >>> import mcce
    >>> print(mcce.allow("salary", low=0, step=500, direction="increase"))
    salary: at least 0, in steps of 500, may only rise
    """
    if direction is not None and direction not in DIRECTIONS:
        raise InputError(f"direction of {feature!r} is {spell(direction)}; {did_you_mean(direction, DIRECTIONS)}")
    made = Allow(
        feature,
        _one(low, feature, "low"),
        _one(high, feature, "high"),
        None if levels is None else _several(levels, feature, "levels"),
        None if never is None else _several(never, feature, "never"),
        direction,
        max_step,
        max_share,
        step,
        missing,
    )
    if not any(True for _ in made._words()):
        raise InputError(
            f"allow({feature!r}) says nothing about it; give at least one of low, high, levels, never, direction, "
            "max_step, max_share, step or missing."
        )
    _check(made)
    return made


def _check(said: Allow) -> None:
    name = said.feature
    if is_number(said.low) and is_number(said.high) and said.low > said.high:
        raise InputError(
            f"low of {name!r} is {say(said.low)}, above its high, {say(said.high)}: no value is between; swap them."
        )
    if said.step is not None and not (is_number(said.step) and 0 < said.step < np.inf):
        raise InputError(f"step of {name!r} is {spell(said.step)}; it must be a positive number.")
    if said.max_share is not None and not (is_number(said.max_share) and 0 <= said.max_share <= 1):
        raise InputError(f"max_share of {name!r} is {spell(said.max_share)}; it must be a number from 0 to 1.")
    if is_number(said.max_step) and not said.max_step >= 0:
        raise InputError(f"max_step of {name!r} is {spell(said.max_step)}; it must be at least 0.")
    if said.missing is not None and not isinstance(said.missing, (bool, np.bool_)):
        raise InputError(f"missing of {name!r} is {spell(said.missing)}; say True or False.")
    if said.levels is not None and not said.levels:
        raise InputError(f"levels of {name!r} is empty: no level is allowed; name at least one.")


def _one(value: Any, feature: Hashable, name: str) -> Any:
    is_missing = value is pd.NaT or value is pd.NA or (is_number(value) and bool(np.isnan(float(value))))
    if isinstance(value, (list, tuple, set, dict, bool)) or is_missing:
        raise InputError(f"{name} of {feature!r} is {spell(value)}; give a number, a date or an ordered level.")
    return value


def _several(values: Any, feature: Hashable, name: str) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes, dict)) or not isinstance(values, Iterable):
        raise InputError(f"{name} of {feature!r} is {spell(values)}; give a list, for example [{spell(values)}].")
    return tuple(sorted(values, key=repr) if isinstance(values, (set, frozenset)) else values)


register("Allow", Allow, lambda said: {f.name: getattr(said, f.name) for f in fields(said)}, lambda said: allow(**said))


def say(value: Any) -> str:
    """Return a value as it stands in a sentence: text in quotes, numbers and dates plain."""
    value = plain(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return repr(value) if isinstance(value, str) and not _is_date(value) else str(value)


def _say_all(values: tuple[Any, ...]) -> str:
    rest = len(values) - MOST_SHOWN
    return ", ".join(map(say, values[:MOST_SHOWN])) + (f" and {rest} more" if rest > 0 else "")


def plain(value: Any) -> Any:
    """Return a value as JSON and TOML can hold it: dates and durations as text."""
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    elif isinstance(value, np.timedelta64):
        value = pd.Timedelta(value)
    elif isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, pd.Timedelta):
        return str(value)
    if isinstance(value, pd.Timestamp) and value == value.normalize() and value.tz is None:
        return value.date().isoformat()
    if isinstance(value, pd.Period):
        return str(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def _is_date(text: str) -> bool:
    return (text[:4].isdigit() and text[4:5] == "-") or " days" in text
