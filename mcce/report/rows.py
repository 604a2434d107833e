"""The rows of a result and their factuals: the rows of each factual, the cells that differ, and both in words.

`Result` is the part of `mcce.Counterfactuals` that reports read; the functions here and in the modules of sentences,
letters and pages accept any object with these attributes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mcce.base.arrays import Bools, Ints
from mcce.exceptions import InputError, spell, spell_all
from mcce.report.changes import differing_cells
from mcce.report.languages import Texts, read_texts
from mcce.report.names import Names, is_same
from mcce.report.suspicious import STOP
from mcce.report.words import Change, follow_sentence
from mcce.table.checks import find_labels
from mcce.wording import Either, Parameter, PythonOnly


class RunLike(Protocol):
    """The settings and timings of a result."""

    @property
    def settings(self) -> Mapping[str, Any]: ...

    @property
    def timings(self) -> Mapping[str, float]: ...

    @property
    def floor(self) -> float | None: ...


class Result(Protocol):
    """The attributes of `mcce.Counterfactuals` that reports read; its docstring describes them."""

    @property
    def frame(self) -> pd.DataFrame: ...

    @property
    def measures(self) -> pd.DataFrame: ...

    @property
    def factuals(self) -> pd.DataFrame: ...

    @property
    def unexplained(self) -> pd.DataFrame: ...

    @property
    def factual_predictions(self) -> pd.Series[Any]: ...

    @property
    def decision(self) -> str: ...

    @property
    def fixed(self) -> tuple[str, ...]: ...

    @property
    def computed(self) -> tuple[str, ...]: ...

    @property
    def derived(self) -> tuple[str, ...]: ...

    @property
    def kinds(self) -> Mapping[str, str]: ...

    @property
    def draws(self) -> pd.Series[int] | None: ...

    @property
    def constraints(self) -> pd.DataFrame | None: ...

    @property
    def names(self) -> Names: ...

    @property
    def run(self) -> RunLike: ...

    @property
    def incidental(self) -> pd.DataFrame | None: ...

    @property
    def consequences(self) -> pd.DataFrame | None: ...

    @property
    def constraint_texts(self) -> Mapping[Hashable, tuple[str, ...]]: ...

    def __len__(self) -> int: ...

    def below_floor(self) -> pd.Series[Any]: ...

    def suspicious(self, level: str = "stop") -> pd.DataFrame: ...

    def changed_features(self) -> pd.DataFrame: ...

    def principal_reasons(self, id: Hashable, n: int = 4, *, every: bool = False) -> pd.DataFrame: ...

    def plot_plans(self, id: Hashable | None = None, *, max_plans: int = 5, figure: Any = None) -> Any: ...


def owners(found: Result) -> NDArray[np.intp]:
    """Return for each row of `frame` the position of its factual in `factuals`."""
    return find_labels(found.factuals.index, found.frame.index.get_level_values("id"))


def best_rows(found: Result) -> Bools:
    """Mark the rows of `frame` that are the best of their factual."""
    return np.asarray(found.frame.index.get_level_values("rank") == 1)


def find_row(found: Result, id: Hashable, rank: int = 1) -> tuple[int, int | None]:
    """Return the positions of a factual and of its counterfactual; None if it has no counterfactual."""
    ids = found.factuals.index
    try:
        factual = int(find_labels(ids, pd.Index([id], tupleize_cols=False))[0])
    except (TypeError, ValueError):
        factual = -1
    if factual < 0:
        if isinstance(id, tuple) and len(id) == 2 and id in found.frame.index:
            raise InputError(
                f"no factual has the id {spell(id)}: {spell(id[0])} is the id and {id[1]} the rank; give them as two "
                "arguments."
            )
        raise InputError(
            f"no factual has the id {spell(id)}; the ids are the ",
            Either(PythonOnly("index"), "row names"),
            f" of the explained table: {spell_all(ids)}.",
        )
    rows = np.flatnonzero(owners(found) == factual)
    ranks = found.frame.index.get_level_values("rank")[rows]
    if len(rows) and rank not in ranks:
        raise InputError(
            f"factual {spell(id)} has no counterfactual of rank {rank!r}, only {spell_all(ranks)}; "
            "give one of these, or explain with a larger ",
            Parameter("n_counterfactuals"),
            ".",
        )
    return factual, int(rows[ranks == rank][0]) if len(rows) else None


def held_back(found: Result) -> pd.DataFrame:
    """Return the counterfactuals that must not be sent, each with its reasons, as `suspicious` does."""
    suspicious = found.suspicious("all")
    return suspicious[suspicious["severity"] == STOP]


def compare_rows(found: Result, rows: Ints | None = None) -> tuple[pd.DataFrame, Bools]:
    """Return the factuals of some rows of `frame`, all by default, and mark the cells that differ from them.

    Cells of computed columns are not marked.
    """
    rows = np.arange(len(found)) if rows is None else rows
    before = found.factuals[found.frame.columns].iloc[owners(found)[rows]].reset_index(drop=True)
    after = found.frame.iloc[rows].reset_index(drop=True)
    return before, differing_cells(before, after) & ~found.frame.columns.isin(found.computed)


def incidental_cells(found: Result, rows: Ints | None = None) -> Bools:
    """Mark the incidental changes in some rows of `frame`, all by default."""
    along = found.incidental
    cells = np.zeros(found.frame.shape, dtype=bool) if along is None else along.to_numpy(dtype=bool)
    return cells if rows is None else cells[rows]


def changes_in_words(
    found: Result, rows: Ints | None = None, names: Names | None = None
) -> Iterator[tuple[int, int, list[Change]]]:
    """Yield for rows of `frame`, all by default, the position of the factual, that of the row, and its changes.

    The names are those of the result unless others are given.
    """
    rows, names = np.arange(len(found)) if rows is None else rows, names or found.names
    before, changed = compare_rows(found, rows)
    owner, along = owners(found)[rows], incidental_cells(found, rows)
    for k, row in enumerate(rows.tolist()):
        changes = []
        for j in np.flatnonzero(changed[k]).tolist():
            name = found.frame.columns[j]
            old, new = names.pair(name, before.iloc[k, j], found.frame.iloc[row, j])
            changes.append(Change(names.label(name), old, new, bool(along[k, j])))
        yield int(owner[k]), row, changes


def follows_in_words(
    found: Result, factual: int, row: int, names: Names | None = None, texts: Texts | None = None
) -> str:
    """Return the changes of the derived features in a row of `frame` as a sentence; empty without any."""
    names, changes = names or found.names, []
    for name in found.frame.columns[found.frame.columns.isin(found.derived)]:
        before, after = found.factuals[name].iloc[factual], found.frame[name].iloc[row]
        if not is_same(before, after):
            changes.append((names.label(name), _way(found, name, before, after), names.pair(name, before, after)[1]))
    return follow_sentence(changes, texts)


def _way(found: Result, name: Any, before: Any, after: Any) -> str:
    """Return the key of the text that describes a change of a feature."""
    if found.kinds.get(name) != "numeric" or pd.isna(before) or pd.isna(after):
        return "becomes"
    return "rises" if after > before else "falls"


def usual_consequences(found: Result, row: int) -> list[tuple[str, Any, Any]]:
    """Return the consequences of the actions of a row of `frame`: each feature with its usual range."""
    table = found.consequences
    assert table is not None
    id, rank = found.frame.index[row]
    mine = table[(table["id"] == id) & (table["rank"] == rank)]
    return list(zip(mine["feature"], mine["low"], mine["high"]))


def cases_of_100(found: Result, row: int) -> int:
    """Return in how many of 100 cases the actions of a row reach the decision, at most 99."""
    return min(int(100 * found.measures["p_valid"].iloc[row] + 1e-9), 99)


def consequences_in_words(found: Result, row: int, names: Names | None = None, texts: Texts | None = None) -> str:
    """Return the usual consequences of the actions of a row of `frame`, and how often the decision is then reached."""
    names, texts = names or found.names, texts or read_texts()
    changes = []
    own = found.factuals.iloc[owners(found)[row]]
    for feature, low, high in usual_consequences(found, row):
        if is_same(low, high) and is_same(low, own[feature]):
            continue
        key = _way(found, feature, own[feature], high) if is_same(low, high) else "between"
        first, last = names.pair(feature, low, high)
        changes.append(texts.fill(f"example.{key}", feature=names.label(feature), low=first, high=last, after=last))
    usually = [texts.fill("example.usually", changes=texts.listed(changes))] if changes else []
    cases = cases_of_100(found, row)
    return " ".join([*usually, texts.fill("example.assured", cases=names.count(cases), decision=found.decision)])
