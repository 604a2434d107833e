"""What an explanation found, as plain tables, and how one finds a row in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from mcce.exceptions import MCCEError
from mcce.explain.adaptive import Agreement
from mcce.report.changes import Ask, check_indexes, differing_cells, find_row, floor_of
from mcce.report.names import Names
from mcce.samplers import ConditionalSampler
from mcce.samplers.registry import Recipe
from mcce.storage import load_fields, save_fields
from mcce.storage.fields import check_number, check_type, require
from mcce.storage.state import Fields, to_state
from mcce.table import FrameKind
from mcce.table.checks import find_labels

Redraw = Callable[[], Agreement]
Self = TypeVar("Self", bound="Results")

_FRAMES = ("frame", "measures", "factuals", "unexplained", "pairwise", "constraints", "nearest", "allowed")
_SERIES = ("factual_predictions", "draws")
_COLUMNS = {
    "measures": ("prediction", "L0", "gower"),
    "unexplained": ("reason", "prediction"),
    "pairwise": ("rows", "gower", "features"),
    "constraints": ("breaks", "tried", "passed"),
}
_MAPPINGS = ("kinds", "ranges", "standard_errors", "timings", "settings", "rules")
_LIVE = ("ask", "redraw")  # ways to ask, which no file holds


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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to one file, without pickle; what is there is replaced.

        **The file holds personal data**: every factual, and counterfactuals made of training values. The way to ask the
        model is not in it, so that a result that is loaded gives no `reasons`.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X.select_dtypes("number")
        >>> explainer = mcce.MCCE(lambda rows: rows["salary"] > 40_000, decision=True, random_state=1).fit(X)
        >>> found = explainer.explain(X.head(20), n_samples=100)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.save(f"{folder}/found.mcce")
        ...     again = mcce.Counterfactuals.load(f"{folder}/found.mcce")
        >>> again.frame.equals(found.frame), again.decision == found.decision
        (True, True)
        """
        self._check_tables()
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _LIVE}
        kept |= {name: dict(kept[name]) for name in _MAPPINGS}
        kept["settings"] = {name: _storable(value) for name, value in kept["settings"].items()}
        save_fields(path, "Counterfactuals", kept, {"decision": self.decision, "rows": len(self)})

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Return the result in a file that `save` wrote; one that is damaged, crafted or newer is an `InputError`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> found = explainer.explain(X.head(2), sparse=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.save(Path(folder) / "found.mcce")
        ...     again = mcce.Counterfactuals.load(Path(folder) / "found.mcce")
        >>> again.frame.equals(found.frame)
        True
        """
        return load_fields(path, "Counterfactuals", cls._read)

    @classmethod
    def _read(cls: type[Self], read: Fields) -> Self:
        for names, kind in ((_FRAMES, pd.DataFrame), (_SERIES, pd.Series), (_MAPPINGS, dict)):
            for name in names:
                if read.get(name) is not None:
                    check_type(read[name], name, kind)
        check_type(read["decision"], "decision", str)
        check_type(read["fixed"], "fixed", tuple)
        check_type(read["copies"], "copies", int, type(None))
        check_type(read.get("names", Names()), "names", Names)
        check_type(read.get("frames"), "frames", FrameKind, type(None))
        require(not {*read} & {*_LIVE}, "a file holds no ways to ask")
        made = cls(**read)
        made._check_tables()
        return made

    def _check_tables(self) -> None:
        """Refuse tables without the columns that every result has."""
        require({*self.frame.columns} <= {*self.factuals.columns}, "frame has a column that factuals do not have")
        for name, columns in _COLUMNS.items():
            table = getattr(self, name)
            lacking = [] if table is None else [column for column in columns if column not in table.columns]
            require(not lacking, f"{name} has no column {', '.join(lacking)}")
        numbers = [*(self.measures[name] for name in ("L0", "gower"))]
        numbers += [] if self.pairwise is None else [self.pairwise[name] for name in _COLUMNS["pairwise"]]
        if floor_of(self.settings) is not None:
            check_number(floor_of(self.settings), "floor", 0.0, 1.0)
            numbers += [self.measures[name] for name in ("plausibility",) if name in self.measures.columns]
        require(all(is_numeric_dtype(column.dtype) for column in numbers), "a measure is no number")
        for name, value in [*self.timings.items(), *self.standard_errors.items()]:
            check_type(value, str(name), float, int)

    def _row_of_factual(self) -> NDArray[np.intp]:
        """For each row of `frame`, the place of its factual in `factuals`."""
        return find_labels(self.factuals.index, self.frame.index.get_level_values("id"))

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
        ends = [self.allowed.iloc[factual, j] for j in range(self.allowed.shape[1])]
        pairs = dict(zip(names, zip(ends[::2], ends[1::2])))  # by place: a feature may be named by a tuple
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


def _storable(value: object) -> object:
    """Return a setting as it can be written: a sampler without its fit, anything unknown as its text."""
    plain = Recipe(value) if isinstance(value, ConditionalSampler) else value
    if isinstance(value, Mapping):
        plain = {key: _storable(each) for key, each in value.items()}
    try:
        to_state(plain)
    except MCCEError:
        return repr(value)
    return plain
