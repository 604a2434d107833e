"""The base class of constraints, and the registry of their kinds.

A kind is a frozen dataclass, registered under the name of its section in files. `mcce.allow`, `mcce.rule`, `mcce.only`,
`mcce.per_factual`, `mcce.no_copies` and `mcce.k_anonymous` resolve to themselves; others resolve to these
(`mcce.constraints.resolve`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd

from mcce.base.registry import Registry
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.storage.fields import declarations
from mcce.storage.state import Fields, add_check, register
from mcce.table import Schema
from mcce.table.dtypes import date_text
from mcce.wording import Value, parts_of

Class = TypeVar("Class", bound=type[Any])
Self = TypeVar("Self", bound="Constraint")


class Constraint(ABC):
    """A limit on changes; a new kind is a subclass with two methods.

    ``words()``
        The constraint in words, for tables, reasons and letters.
    ``resolve(schema)``
        Equivalent constraints of simpler kinds for the columns of a table (`mcce.Schema`): `mcce.allow`, `mcce.rule`
        with a text or a function, `mcce.only`, `mcce.per_factual`, `mcce.no_copies`, `mcce.k_anonymous`, or other
        kinds. Raise `mcce.InputError` if the columns do not fit.

    Override `keys` and `from_dict` if the table of a file does not have the fields of the class.

    Attributes
    ----------
    kind : the registered name.

    Examples
    --------
    ``@mcce.register_constraint("budget")`` registers the class for files and saved explainers.

    >>> from dataclasses import dataclass
    >>> import mcce
    >>> @dataclass(frozen=True)
    ... class Budget(mcce.constraints.Constraint):
    ...     features: tuple
    ...     most: float
    ...     def words(self):
    ...         return f"{' and '.join(self.features)} together at most {self.most:g}"
    ...     def resolve(self, schema):
    ...         return [mcce.rule(f"{' + '.join(self.features)} <= {self.most}")]
    >>> budget = Budget(("rent", "savings"), 900)
    >>> print(budget)
    rent and savings together at most 900
    >>> print(*budget.resolve(None))
    rent + savings <= 900
    >>> Budget.keys()
    {'features': True, 'most': True}
    >>> Budget.from_dict({"features": ["rent", "savings"], "most": 900}) == budget
    True
    """

    kind: ClassVar[str] = ""

    @abstractmethod
    def words(self) -> str:
        """Return the constraint in words."""

    @abstractmethod
    def resolve(self, schema: Schema) -> Iterable[Constraint]:
        """Return equivalent constraints of simpler kinds for the columns of a table."""

    def __str__(self) -> str:
        return self.words()

    @classmethod
    def keys(cls) -> dict[str, bool]:
        """Return the keys of a table in a file, and whether each is required."""
        made = [each for each in fields(cls) if each.init]  # type: ignore[arg-type]
        return {each.name: each.default is MISSING and each.default_factory is MISSING for each in made}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Constraint:
        """Return the constraint of a table in a file with checked keys; lists become tuples."""
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in table.items()})

    @classmethod
    def from_table(cls, table: Mapping[Any, Any], where: str) -> Constraint:
        """Return the constraint of a table in a file; raise on unknown and missing keys."""
        keys = cls.keys()
        for key in table:
            if key not in keys:
                raise InputError(f"{where}: {cls.kind} has no {spell(key)}; {did_you_mean(key, keys)}")
        for key, is_needed in keys.items():
            if is_needed and key not in table:
                raise InputError(f"{where}: {cls.kind} lacks {key!r}; it has {listing(table) if table else 'nothing'}.")
        try:
            return cls.from_dict(table)
        except (InputError, TypeError) as error:
            raise InputError(f"{where}: ", *parts_of(error)) from error

    @classmethod
    def from_section(cls, entries: Any, where: str) -> Iterator[Constraint]:
        """Yield the constraints of a section of a file: a table, or a list of tables."""
        entries = [entries] if isinstance(entries, (Mapping, str)) else entries
        if not isinstance(entries, list):
            raise InputError(f"{where}: {cls.kind} is ", Value(entries), "; give a list of tables.")
        for place, entry in enumerate(entries):
            at = f"{where}, {cls.kind} {place + 1}"
            if not isinstance(entry, Mapping):
                raise InputError(f"{at}: ", Value(entry), f" is not a table; give the fields of {cls.kind} by name.")
            yield cls.from_table(dict(entry), at)

    def to_stored(self) -> Fields:
        """Return the fields for a saved explainer."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_stored(cls: type[Self], stored: Fields) -> Self:
        return cls(**stored)


class SimpleConstraint(Constraint):
    """Base class of the simplest kinds, to which others resolve."""

    def resolve(self, schema: Schema) -> Iterable[Constraint]:
        return [self]


def plain(value: Any) -> Any:
    """Return a value for JSON and TOML: dates and durations as text."""
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
    if isinstance(value, pd.Timestamp) and value.tz is None and value == value.normalize():
        return date_text(value)
    if isinstance(value, pd.Period):
        return str(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def _register(name: str, kind: Any, stored_as: str | None = None) -> None:
    """Register a kind of constraint; raise if it is not a dataclass and subclass of `Constraint`."""
    if not (isinstance(kind, type) and issubclass(kind, Constraint) and is_dataclass(kind)):
        raise InputError(
            f"register_constraint({name!r}) got {kind!r}; it needs a dataclass that is a subclass of "
            "mcce.constraints.Constraint."
        )
    if name in CONSTRAINTS.known and CONSTRAINTS.known[name] is kind:
        return
    CONSTRAINTS.add(name, kind)
    kind.kind = name
    register(stored_as or f"constraint.{name}", kind, kind.to_stored, kind.from_stored)
    if declarations(kind) or hasattr(kind, "check_state"):
        add_check(kind)


CONSTRAINTS: Registry[type[Constraint]] = Registry("constraint", "mcce.constraints", _register)


def register_constraint(name: str, *, stored_as: str | None = None) -> Callable[[Class], Class]:
    """Register a kind of constraint by name; a decorator of frozen dataclasses.

    Parameters
    ----------
    name : str
        Unique name of its section in TOML and JSON files, ``[[name]]``, whose keys are the fields of the class.
    stored_as : str or None
        Name in saved explainers; by default "constraint.NAME".

    Notes
    -----
    The class is a subclass of `mcce.constraints.Constraint`, with `words` and `resolve`.

    Examples
    --------
    >>> import mcce
    >>> mcce.register_constraint("only")(mcce.constraints.Only).kind
    'only'
    """

    def decorate(cls: Class) -> Class:
        _register(name, cls, stored_as)
        return cls

    return decorate


def available_constraints() -> dict[str, type[Constraint]]:
    """Return the kinds of constraints by the names of their sections in files, including plug-ins.

    Examples
    --------
    >>> import mcce
    >>> list(mcce.available_constraints())
    ['allow', 'k_anonymous', 'no_copies', 'only', 'per_factual', 'rule']
    """
    return dict(sorted(CONSTRAINTS.all().items()))
