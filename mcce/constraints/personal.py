"""What single factuals may change, as the user says it: `only` these features, or a table of bounds by factual."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from mcce.constraints.allowing import Allow, allow, plain
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.soundness import check_type, require
from mcce.state import stateful
from mcce.table.frames import is_other_frame, read_frame

SAID = tuple(field.name for field in fields(Allow) if field.name != "feature")


@stateful("Only")
@dataclass(frozen=True)
class Only:
    """The features that may change, by the id of a factual; made by `only`."""

    by_id: tuple[tuple[Hashable, tuple[Hashable, ...]], ...]

    def check_state(self) -> None:
        """Refuse what `only` could not have made."""
        for _, features in _pairs(self.by_id):
            check_type(features, "features", tuple)
            for name in features:
                require(isinstance(name, Hashable), "a feature is no label")

    def __str__(self) -> str:
        return "; ".join(f"factual {spell(who)}: {only_words(features)}" for who, features in self.by_id)

    def to_dict(self) -> dict[str, Any]:
        """Return what is said as plain values, of which `mcce.constraints.read` makes the same again."""
        return {"only": [{"id": plain(who), "features": plain(features)} for who, features in self.by_id]}


@stateful("PerFactual")
@dataclass(frozen=True)
class PerFactual:
    """What features may be, by the id of a factual; made by `per_factual`."""

    by_id: tuple[tuple[Hashable, Allow], ...]

    def check_state(self) -> None:
        """Refuse what `per_factual` could not have made."""
        for _, said in _pairs(self.by_id):
            check_type(said, "what is allowed", Allow)

    def __str__(self) -> str:
        return "; ".join(f"factual {spell(who)}: {said}" for who, said in self.by_id)

    def to_dict(self) -> dict[str, Any]:
        """Return what is said as plain values, of which `mcce.constraints.read` makes the same again."""
        return {"allow": [{"id": plain(who)} | said.to_dict() for who, said in self.by_id]}


def _pairs(by_id: Any) -> Any:
    """Return pairs of a factual's label and what is said of it, after a look that they are such."""
    check_type(by_id, "by_id", tuple)
    for pair in by_id:
        require(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], Hashable), "by_id holds no pairs")
    return by_id


def only_words(features: Iterable[Hashable]) -> str:
    """Return what is allowed, in words."""
    named = list(features)
    return f"only {listing(named)} may change" if named else "nothing may change"


def only(features: Mapping[Any, Iterable[Hashable]] | pd.Series[Any]) -> Only:
    """Say which features of single factuals may change; all others of these factuals stay.

    Parameters
    ----------
    features : dict or Series
        A list of features for each factual, by the factual's index label. Factuals that are not named are free.

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
            raise InputError(f"only() says {spell(names)} of factual {spell(who)}; give a list of features.")
    return Only(tuple((who, tuple(dict.fromkeys(names))) for who, names in features.items()))


def per_factual(table: pd.DataFrame) -> PerFactual:
    """Say what features of single factuals may be, by a table.

    Parameters
    ----------
    table : DataFrame
        Its index holds the factuals' index labels, repeats allowed; in a frame without an index (polars, pyarrow) its
        column `id` does. The column `feature` names a feature; any of low,
        high, levels, never, direction, max_step, max_share, step and missing say what `allow` says. An empty cell (None
        or NaN) says nothing.

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
                "the table of per_factual() has no column 'id', which says whom each row is about; add it."
            )
        table = table.set_index("id")
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"per_factual() takes a DataFrame; got a {type(table).__name__}.")
    if "feature" not in table.columns:
        raise InputError(f"the table of per_factual() has no column 'feature'; it has {listing(table.columns)}.")
    unknown = [name for name in table.columns if name not in ("feature", *SAID)]
    if unknown:
        raise InputError(
            f"the table of per_factual() has a column {unknown[0]!r}; {did_you_mean(unknown[0], ('feature', *SAID))}"
        )
    return PerFactual(
        tuple(
            (who, _read_row(dict(zip(table.columns, cells)), place, who))
            for place, (who, cells) in enumerate(zip(table.index, table.itertuples(index=False, name=None)))
        )
    )


def _read_row(cells: dict[Any, Any], place: int, who: Hashable) -> Allow:
    said = {name: cell for name, cell in cells.items() if not _is_empty(cell)}
    for name in ("levels", "never"):
        if name in said and (isinstance(said[name], str) or not isinstance(said[name], Iterable)):
            said[name] = [said[name]]
    if "feature" not in said:
        raise InputError(f"row {place} of the table of per_factual() (factual {spell(who)}) names no feature.")
    try:
        return allow(said.pop("feature"), **said)
    except InputError as error:
        raise InputError(f"row {place} of the table of per_factual() (factual {spell(who)}): {error}") from error


def _is_empty(cell: Any) -> bool:
    return pd.api.types.is_scalar(cell) and bool(pd.isna(cell))
