"""What an explanation found, as plain tables, and how one finds a row in them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mcce.report.carrying import Ask
from mcce.report.changes import differing_cells
from mcce.report.finding import check_indexes, find_row
from mcce.report.names import Names
from mcce.rounds import Agreement
from mcce.table import FrameKind

Redraw = Callable[[], Agreement]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Results:
    """The tables of a `Counterfactuals`, which describes them."""

    frame: pd.DataFrame
    measures: pd.DataFrame
    factuals: pd.DataFrame
    unexplained: pd.DataFrame
    factual_predictions: pd.Series[Any]
    decision: str
    fixed: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    draws: pd.Series[int] | None = None
    standard_errors: Mapping[str, float] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    copies: int | None = None
    pairwise: pd.DataFrame | None = None
    constraints: pd.DataFrame | None = None
    nearest: pd.DataFrame | None = None
    allowed: pd.DataFrame | None = None
    ask: Ask | None = field(default=None, repr=False)
    redraw: Redraw | None = field(default=None, repr=False)
    names: Names = field(default_factory=Names)
    rules: Mapping[Hashable, tuple[str, ...]] = field(default_factory=dict)
    frames: FrameKind | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_indexes(self.frame, self.measures, self.factuals, self.factual_predictions)

    def __len__(self) -> int:
        return len(self.frame)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the ways to ask the model: what is saved is the result, not the model."""
        return {**vars(self), "ask": None, "redraw": None}

    def _row_of_factual(self) -> NDArray[np.intp]:
        """For each row of `frame`, the place of its factual in `factuals`."""
        return self.factuals.index.get_indexer(self.frame.index.get_level_values("id"))

    def _is_best(self) -> NDArray[np.bool_]:
        return np.asarray(self.frame.index.get_level_values("rank") == 1)

    def _compare(self, rows: NDArray[np.intp]) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
        """Return the factuals of some rows of `frame`, and which of the cells differ from them."""
        before = self.factuals[self.frame.columns].iloc[self._row_of_factual()[rows]].reset_index(drop=True)
        after = self.frame.iloc[rows].reset_index(drop=True)
        return before, differing_cells(before, after)

    def _allowed_of(self, factual: int) -> dict[Any, tuple[Any, Any]]:
        """Return between what a factual's constrained numbers had to stay."""
        if self.allowed is None:
            return {}
        names = self.allowed.columns.get_level_values(0).unique()
        ends = self.allowed.iloc[[factual]].astype(object).iloc[0]
        pairs = {name: (ends[name, "low"], ends[name, "high"]) for name in names}
        return {name: pair for name, pair in pairs.items() if not pd.isna(pair[0])}

    def _changes_of(self, row: int, names: Names | None = None) -> list[tuple[str, str, str]]:
        """Return what a row changes in words: feature, before, after; by other names than the result's, if given."""
        names = names or self.names
        before, changed = self._compare(np.array([row]))
        return [
            (
                names.label(self.frame.columns[j]),
                *names.pair(self.frame.columns[j], before.iloc[0, j], self.frame.iloc[row, j]),
            )
            for j in np.flatnonzero(changed[0]).tolist()
        ]

    def _find(self, id: Hashable, rank: int) -> tuple[int, int | None]:
        """Return the places of a factual and of its counterfactual; None if it has none at all."""
        ranks = self.frame.index.get_level_values("rank")
        return find_row(self.factuals.index, self._row_of_factual(), ranks, id, rank)
