"""The tables of a result, the rows of each factual, and the cells that differ.

`Result` is the part of `mcce.Counterfactuals` that reports read: the tables, and methods that the subclass implements.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mcce.base.arrays import Bools, Ints
from mcce.exceptions import InputError, spell, spell_all
from mcce.plausibility.stop_reasons import Usual
from mcce.report.changes import differing_cells
from mcce.report.names import Names
from mcce.report.suspicious import STOP
from mcce.table import FrameKind
from mcce.table.checks import find_labels
from mcce.wording import Either, Parameter, PythonOnly

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ROUNDING = 1e-9  # tolerance of comparisons with the floor


@dataclass(frozen=True, kw_only=True)
class Run:
    """Settings and timings of a result.

    Attributes
    ----------
    settings : mapping
        Settings of the call, `n_samples`, `n_counterfactuals`, `random_state`, ..., and its cost: `pools`, the number
        of pools drawn, and `rows_queried`, the number of rows for which the model was queried.
    timings : mapping
        Seconds for fit, generate and select.

    Examples
    --------
    >>> run = Run(settings={"n_samples": 1000, "sparse": True, "floor": 0.05}, timings={"fit": 1.5, "generate": 0.5})
    >>> run.seconds, run.floor
    (2.0, 0.05)
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Seconds for all steps together."""
        return float(sum(self.timings.values()))

    @property
    def floor(self) -> float | None:
        """The plausibility floor; None if the call had none."""
        return float(self.settings["floor"]) if self.settings.get("sparse") and "floor" in self.settings else None


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Result:
    """The tables of a result, base of `mcce.Counterfactuals`, whose docstring describes them."""

    frame: pd.DataFrame
    measures: pd.DataFrame
    factuals: pd.DataFrame
    unexplained: pd.DataFrame
    factual_predictions: pd.Series[Any]
    decision: str
    fixed: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    draws: pd.Series[int] | None = None
    copies: int | None = None
    constraints: pd.DataFrame | None = None
    nearest: pd.DataFrame | None = None
    allowed: pd.DataFrame | None = None
    consequences: pd.DataFrame | None = None
    names: Names = field(default_factory=Names)
    run: Run = field(default_factory=Run)
    _standard_errors: Mapping[str, float] = field(default_factory=dict)
    _pairwise: pd.DataFrame | None = None  # what `diversity` returns
    _along: pd.DataFrame | None = None  # cells of `frame` that the decision does not need; None if not sparse
    _rules: Mapping[Hashable, tuple[str, ...]] = field(default_factory=dict)  # by id, its constraints in words
    _usual: Usual | None = None  # of training rows, for `suspicious`; None if not computed
    _frame_kind: FrameKind | None = None  # the kind of frame that was explained; None for pandas

    def __post_init__(self) -> None:
        if not self.measures.index.equals(self.frame.index):
            raise InputError("measures and frame must have the same (id, rank) index; build both in one order.")
        if not self.factual_predictions.index.equals(self.factuals.index):
            raise InputError("factual_predictions and factuals must have the same index; build both in one order.")
        if not self.factuals.index.is_unique or (owners(self) < 0).any():
            raise InputError("every id of frame must occur exactly once in the index of factuals.")

    @property
    def incidental(self) -> pd.DataFrame | None:
        """Which cells of `frame` change without being needed for the decision; None if the result is not sparse."""
        return self._along

    @property
    def constraint_texts(self) -> Mapping[Hashable, tuple[str, ...]]:
        """The constraints of each factual in words, by id; empty if there are none."""
        return self._rules

    def __len__(self) -> int:
        return len(self.frame)

    def below_floor(self) -> pd.Series[Any]:
        """Return which rows are below the plausibility floor, because no valid candidate at or above it was found.

        Without `sparse=True` all values are False.
        """
        if self.run.floor is None or "plausibility" not in self.measures:
            return pd.Series(False, index=self.measures.index, name="below_floor")
        return (self.measures["plausibility"] < self.run.floor - ROUNDING).rename("below_floor")

    def suspicious(self, level: str = "stop") -> pd.DataFrame:
        raise NotImplementedError

    def changed_features(self) -> pd.DataFrame:
        raise NotImplementedError

    def principal_reasons(self, id: Hashable, n: int = 4, *, every: bool = False, n_draws: int = 1000) -> pd.DataFrame:
        raise NotImplementedError

    def plot_plans(
        self, id: Hashable | None = None, *, max_plans: int = 5, figure: Figure | None = None
    ) -> NDArray[np.object_]:
        raise NotImplementedError


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
