"""The rows of a result and their factuals: the rows of each factual, and the cells that differ.

`Result` is the part of `mcce.Counterfactuals` that reports read; the functions here and in the modules of sentences,
letters and pages accept any object with these attributes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mcce.base.arrays import Bools, Ints
from mcce.exceptions import InputError, spell, spell_all
from mcce.report.changes import differing_cells
from mcce.report.names import Names
from mcce.report.suspicious import STOP
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
