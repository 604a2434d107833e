"""Constraints on single features: `allow`, `only`, `per_factual`, `no_copies`.

1. A range, levels and excluded values restrict every returned row: a factual outside of them must change.
2. A direction, a largest step and a grid restrict changes: the factual's own value is always allowed. A missing value
   has no direction and no step: with either, it stays missing.
3. A feature with an `allow` may become missing only if its `missing` is True; a missing value may stay missing.

`mcce.constraints.resolve` checks constraints against a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import pandas as pd

from mcce.base.checks import is_number, is_too_large
from mcce.constraints.base import Constraint, SimpleConstraint, plain, register_constraint
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.storage.fields import stored
from mcce.storage.state import Fields
from mcce.table.dtypes import EXACT
from mcce.table.frames import is_other_frame, read_frame
from mcce.wording import Value, call, parts_of

Self = TypeVar("Self", bound="OfFactuals")
Direction = Literal["increase", "decrease", "none"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)
MOST_SHOWN = 10  # levels in a sentence
_MOVES = {"increase": "may only rise", "decrease": "may only fall", "none": "stays as it is"}


@register_constraint("allow", stored_as="Allow")
@dataclass(frozen=True)
class Allow(SimpleConstraint):
    """The values that one feature may have; made by `allow`, which documents the attributes. None: no limit."""

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

    def words(self) -> str:
        return f"{self.feature}: {', '.join(self._words())}"

    @classmethod
    def keys(cls) -> dict[str, bool]:
        return {**super().keys(), "id": False}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Constraint:
        bounds = {key: value for key, value in table.items() if key not in ("feature", "id")}
        made = allow(table["feature"], **bounds)
        return PerFactual(((table["id"], made),)) if "id" in table else made

    @classmethod
    def from_stored(cls, stored: Fields) -> Allow:
        return allow(**stored)

    def _words(self) -> Iterable[str]:
        if self.low is not None and self.high is not None:
            yield f"from {as_text(self.low)} to {as_text(self.high)}"
        elif self.low is not None:
            yield f"at least {as_text(self.low)}"
        elif self.high is not None:
            yield f"at most {as_text(self.high)}"
        if self.levels is not None:
            yield ("only " if len(self.levels) == 1 else "one of ") + _format_values(self.levels)
        if self.never is not None:
            yield f"never {_format_values(self.never)}"
        if self.step is not None:
            yield f"in steps of {as_text(self.step)}"
        if self.direction is not None:
            yield _MOVES[self.direction]
        if self.max_step is not None:
            yield f"changes by at most {as_text(self.max_step)}"
        if self.max_share is not None:
            yield f"changes by at most {100 * self.max_share:g}% of its range"
        if self.missing is not None:
            yield "may become missing" if self.missing else "may not become missing"


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
    """Limit the values that one feature may have.

    Parameters
    ----------
    feature : column label
        Or "*", with `missing` alone: for all features without an `allow` that sets `missing`.
    low, high : number, date or ordered level
        Smallest and largest value.
    levels, never : list
        Allowed levels; excluded levels or values.
    direction : {"increase", "decrease", "none"}
        Whether it may only rise or only fall from the factual's value (numbers, dates, ordered levels), or must stay.
    max_step : number or Timedelta
        Largest change, in the feature's own unit; a number of levels for ordered levels, a Timedelta for dates.
    max_share : float
        Largest change as a share of the training range.
    step : number
        Changed values are multiples of it.
    missing : bool
        Whether a known value may become missing; by default not.

    Notes
    -----
    Range, `levels` and `never` restrict every row: a factual outside of them must change. Direction, largest step and
    grid restrict changes only. A missing value of the factual may stay; with a direction or a largest step it must.

    Examples
    --------
    >>> import mcce
    >>> print(mcce.allow("salary", low=0, step=500, direction="increase"))
    salary: at least 0, in steps of 500, may only rise
    """
    numbers = {"low": low, "high": high, "max_step": max_step, "max_share": max_share, "step": step}
    for name, value in numbers.items():
        _check_size(value, feature, name)
    if direction is not None and direction not in DIRECTIONS:
        raise InputError(f"direction of {feature!r} is ", Value(direction), f"; {did_you_mean(direction, DIRECTIONS)}")
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
            call("mcce.allow", feature),
            " sets no limit; give at least one of low, high, levels, never, direction, "
            "max_step, max_share, step or missing.",
        )
    _check(made)
    return made


def _check(made: Allow) -> None:
    name = made.feature
    if is_number(made.low) and is_number(made.high) and made.low > made.high:
        raise InputError(f"low of {name!r} is {as_text(made.low)}, above its high, {as_text(made.high)}; swap them.")
    if made.step is not None and not (is_number(made.step) and 0 < made.step < np.inf):
        raise InputError(f"step of {name!r} is ", Value(made.step), "; it must be a positive number.")
    if made.max_share is not None and not (is_number(made.max_share) and 0 <= made.max_share <= 1):
        raise InputError(f"max_share of {name!r} is ", Value(made.max_share), "; it must be a number from 0 to 1.")
    if is_number(made.max_step) and not made.max_step >= 0:
        raise InputError(f"max_step of {name!r} is ", Value(made.max_step), "; it must be at least 0.")
    if made.missing is not None and not isinstance(made.missing, (bool, np.bool_)):
        raise InputError(
            f"missing of {name!r} is ", Value(made.missing), "; give ", Value(True), " or ", Value(False), "."
        )
    if made.levels is not None and not made.levels:
        raise InputError(f"levels of {name!r} is empty: no level is allowed; name at least one.")


def _one(value: Any, feature: Hashable, name: str) -> Any:
    is_missing = value is pd.NaT or value is pd.NA or (is_number(value) and bool(np.isnan(float(value))))
    if isinstance(value, (list, tuple, set, dict, bool)) or is_missing:
        raise InputError(f"{name} of {feature!r} is ", Value(value), "; give a number, a date or an ordered level.")
    return value


def _several(values: Any, feature: Hashable, name: str) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes, dict)) or not isinstance(values, Iterable):
        raise InputError(
            f"{name} of {feature!r} is ", Value(values), "; give a list, for example ", Value([values]), "."
        )
    found = tuple(values)
    for value in found:
        _check_size(value, feature, f"a value in {name}")
    return tuple(sorted(found, key=repr)) if isinstance(values, (set, frozenset)) else found


def _check_size(value: Any, feature: Hashable, name: str) -> None:
    if is_too_large(value):
        raise InputError(f"{name} of {feature!r} is ", Value(value), "; give a smaller one, or leave it out.")


def as_text(value: Any) -> str:
    """Return a value as written in a sentence: text in quotes, numbers and dates plain."""
    value = plain(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return repr(value) if isinstance(value, str) and not _is_date(value) else str(value)


def _format_values(values: tuple[Any, ...]) -> str:
    rest = len(values) - MOST_SHOWN
    return ", ".join(map(as_text, values[:MOST_SHOWN])) + (f" and {rest} more" if rest > 0 else "")


def _is_date(text: str) -> bool:
    return re.match(r"-?\d{3,6}-\d\d", text) is not None or " days" in text


@register_constraint("no_copies", stored_as="NoCopies")
@dataclass(frozen=True)
class NoCopies(SimpleConstraint):
    """No counterfactual is a copy of a training row; made by `no_copies`."""

    def check_state(self) -> None:
        """Check nothing: no fields are stored."""

    def words(self) -> str:
        return "no copy of a training row"

    @classmethod
    def from_section(cls, entries: Any, where: str) -> Iterator[Constraint]:
        if not isinstance(entries, bool):
            raise InputError(f"{where}: no_copies is {spell(entries)}; give true or false.")
        if entries:
            yield no_copies()


def no_copies() -> NoCopies:
    """Forbid counterfactuals that equal a training row in every column (the paper's safeguard).

    Single values are still those of training rows, unless the sampler smooths. Without the constraint,
    `Counterfactuals.copies` counts copies.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
    >>> explainer.explain(X.head(20), n_samples=50, constraints=[mcce.no_copies()]).copies
    0
    """
    return NoCopies()


BOUNDS = tuple(field.name for field in fields(Allow) if field.name != "feature")


@dataclass(frozen=True)
class OfFactuals(SimpleConstraint):
    """Constraints on single factuals: pairs of a factual's id and its constraint."""

    by_id: tuple[tuple[Hashable, Any], ...]

    def with_names(self: Self, name: Callable[[Hashable], Hashable]) -> Self:
        """Return the constraint with renamed factuals."""
        return replace(self, by_id=tuple((name(who), its) for who, its in self.by_id))


@register_constraint("only", stored_as="Only")
@dataclass(frozen=True)
class Only(OfFactuals):
    """The features that may change, by the id of a factual; made by `only`."""

    by_id: tuple[tuple[Hashable, tuple[Hashable, ...]], ...] = stored(
        tuple, of=stored(tuple, parts=(Hashable, stored(tuple, of=Hashable)))
    )

    @classmethod
    def keys(cls) -> dict[str, bool]:
        return {"id": True, "features": True}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Constraint:
        return only({table["id"]: table["features"]})

    def words(self) -> str:
        return "; ".join(f"factual {spell(who)}: {only_words(features)}" for who, features in self.by_id)


@register_constraint("per_factual", stored_as="PerFactual")
@dataclass(frozen=True)
class PerFactual(OfFactuals):
    """The values that features may have, by the id of a factual; made by `per_factual`."""

    by_id: tuple[tuple[Hashable, Allow], ...] = stored(tuple, of=stored(tuple, parts=(Hashable, Allow)))

    @classmethod
    def keys(cls) -> dict[str, bool]:
        return {**Allow.keys(), "id": True}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Constraint:
        return Allow.from_dict(table)

    def words(self) -> str:
        return "; ".join(f"factual {spell(who)}: {allowed}" for who, allowed in self.by_id)


def only_words(features: Iterable[Hashable]) -> str:
    named = list(features)
    return f"only {listing(named)} may change" if named else "nothing may change"


def only(features: Mapping[Any, Iterable[Hashable]] | pd.Series[Any]) -> Only:
    """Limit the features that may change for single factuals; all other features of these factuals stay.

    Parameters
    ----------
    features : dict or Series
        A list of features for each factual, by index label. Other factuals are not restricted.

    Examples
    --------
    >>> import mcce
    >>> print(mcce.only({7: ["salary", "hours"]}))
    factual 7: only 'salary', 'hours' may change
    """
    if isinstance(features, pd.Series):
        if not features.index.is_unique:
            raise InputError("the index of only(...) names a factual more than once; give one list for each.")
        features = dict(features.items())
    if not isinstance(features, Mapping):
        raise InputError(f"only() takes a dict, for example only({{7: ['salary']}}); got {spell(features)}.")
    for who, names in features.items():
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"only() has {spell(names)} for factual {spell(who)}; give a list of features.")
    return Only(tuple((who, tuple(dict.fromkeys(names))) for who, names in features.items()))


def per_factual(table: pd.DataFrame) -> PerFactual:
    """Limit the values that features may have, for single factuals, by a table.

    Parameters
    ----------
    table : DataFrame
        Its index holds the factuals' index labels, repeats allowed; in a frame without an index (polars, pyarrow) its
        column `id` does. The column `feature` names a feature; columns called low, high, levels, never, direction,
        max_step, max_share, step and missing hold what `allow` takes. An empty cell (None or NaN) sets no limit.

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> table = pd.DataFrame({"feature": ["salary", "hours"], "high": [60000, 40]}, index=[7, 7])
    >>> print(mcce.per_factual(table))
    factual 7: salary: at most 60000; factual 7: hours: at most 40
    """
    if is_other_frame(table):
        table = read_frame(table, "the table of per_factual()")
        if "id" not in table.columns:
            raise InputError(
                "the table of per_factual() has no column 'id', which names the factual of each row; add it."
            )
        table = table.set_index("id")
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"per_factual() takes a DataFrame; got a {type(table).__name__}.")
    if "feature" not in table.columns:
        raise InputError(f"the table of per_factual() has no column 'feature'; it has {listing(table.columns)}.")
    unknown = [name for name in table.columns if name not in ("feature", *BOUNDS)]
    if unknown:
        raise InputError(
            f"the table of per_factual() has a column {unknown[0]!r}; {did_you_mean(unknown[0], ('feature', *BOUNDS))}"
        )
    return PerFactual(
        tuple(
            (who, _read_row(dict(zip(table.columns, cells)), place, who))
            for place, (who, cells) in enumerate(zip(table.index, table.itertuples(index=False, name=None)))
        )
    )


def _read_row(cells: dict[Any, Any], place: int, who: Hashable) -> Allow:
    given = {name: cell for name, cell in cells.items() if not _is_empty(cell)}
    for name in ("levels", "never"):
        if name in given and (isinstance(given[name], str) or not isinstance(given[name], Iterable)):
            given[name] = [given[name]]
    if "feature" not in given:
        raise InputError(f"row {place} of the table of per_factual() (factual {spell(who)}) names no feature.")
    try:
        return allow(given.pop("feature"), **given)
    except InputError as error:
        raise InputError(
            f"row {place} of the table of per_factual() (factual {spell(who)}): ", *parts_of(error)
        ) from error


def _is_empty(cell: Any) -> bool:
    return pd.api.types.is_scalar(cell) and bool(pd.isna(cell))
