"""How one gets at parts of a result: one factual of it, its tables as the user's kind of frame, files of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mcce.base.files import written_whole
from mcce.exceptions import InputError, did_you_mean
from mcce.report.changes import side_by_side
from mcce.results import Results
from mcce.table.frames import handed, index_as_columns, without_formulas

Self = TypeVar("Self", bound="Taking")

TABLES = ("frame", "measures", "factuals", "unexplained", "factual_predictions", "draws", "nearest", "allowed")
MADE = ("changes", "changed_features", "summary", "diversity", "sentences", "to_frame")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Taking(Results):
    """The part of a `Counterfactuals` that hands parts of it over."""

    def __getitem__(self: Self, id: Hashable) -> Self:
        """Return the result of one factual alone, by the label of its row."""
        factual, _ = self._find(id, 1)
        rows = self._row_of_factual() == factual
        label = self.factuals.index[[factual]]
        by_id = {
            name: table[table.index.isin(label)]
            for name in ("unexplained", "draws", "pairwise", "nearest", "allowed")
            if (table := getattr(self, name)) is not None
        }
        return replace(
            self,
            frame=self.frame[rows],
            measures=self.measures[rows],
            factuals=self.factuals.iloc[[factual]],
            factual_predictions=self.factual_predictions.iloc[[factual]],
            copies=None,  # known of all rows together, as the standard errors of the means
            standard_errors={},
            redraw=None,
            **by_id,
        )

    def __iter__(self) -> Iterator[Any]:
        """Go through the labels of the explained factuals."""
        return iter(self.frame.index.get_level_values("id").unique())

    def __contains__(self, id: object) -> bool:
        """Say whether a factual is among the explained ones."""
        return bool(np.any([id == label for label in self]))

    def table(self, name: str = "frame") -> Any:
        """Return a table of the result as the kind of frame that was explained, the names of its rows as columns.

        Parameters
        ----------
        name : str
            "frame", "measures", "factuals", "unexplained", "factual_predictions", "draws", "nearest", "allowed",
            "changes", "changed_features", "summary", "diversity", "sentences" or "to_frame".
        """
        if name not in TABLES + MADE:
            raise InputError(f"there is no table {name!r}; {did_you_mean(name, TABLES + MADE)}")
        table = getattr(self, name) if name in TABLES else getattr(self, name)()
        if table is None:
            raise InputError(f"this result has no table {name!r}; it was not asked for.")
        if not isinstance(table, (pd.DataFrame, pd.Series)):
            return table  # a method that hands over the user's kind itself
        plain = table.to_frame() if isinstance(table, pd.Series) else table.copy()
        unnamed = {"summary": "figure", "changed_features": "feature"}.get(name, "id")
        plain.index.names = [known or unnamed for known in plain.index.names]
        if plain.columns.nlevels > 1:
            plain.columns = pd.Index(["_".join(map(str, parts)) for parts in plain.columns])
        counted = name in ("changes", "to_frame")
        return self._handed(plain if counted else index_as_columns(plain))

    def diversity(self) -> pd.DataFrame:
        """Return how different the counterfactuals of each explained factual are from each other, two by two.

        `rows` counts them; `gower` is the mean Gower distance of two of them, `features` the mean share of features in
        which two of them differ. Both are NaN for a single one.
        """
        if self.pairwise is None:
            raise InputError("this result was built without `pairwise`; those of `MCCE.explain` have it.")
        return self.pairwise.copy()

    def to_csv(
        self, path: str | PathLike[str] | None = None, *, spreadsheet_safe: bool = False, **options: Any
    ) -> Path | str:
        """Write `to_frame()` as CSV, over what is there; without a path return it as text.

        With `spreadsheet_safe`, texts that a spreadsheet would run as a formula have an apostrophe in front.
        `options` are those of `pandas.DataFrame.to_csv`, for example ``sep=";"`` or ``decimal=","``.

        Examples
        --------
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> text = explainer.explain(X.head(2), sparse=True).to_csv(sep=";")
        >>> text.splitlines()[0]
        'id;rank;age;salary;savings;prediction;L0;gower;gower_sum;log_density;plausibility'
        """
        table = side_by_side(self.frame, self.measures)
        if spreadsheet_safe:
            table = without_formulas(table)
        options = {"index": False, **options}
        if path is None:
            return str(table.to_csv(**options))
        with written_whole(Path(path)) as beside:
            table.to_csv(beside, **options)
        return Path(path)

    def to_parquet(self, path: str | PathLike[str], **options: Any) -> Path:
        """Write `to_frame()` as Parquet, over what is there; `options` are those of `pandas.DataFrame.to_parquet`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import mcce
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
        >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
        >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = explainer.explain(X.head(2), sparse=True).to_parquet(Path(folder) / "found.parquet")
        ...     path.name, path.stat().st_size > 0
        ('found.parquet', True)
        """
        table = side_by_side(self.frame, self.measures)
        with written_whole(Path(path)) as beside:
            table.to_parquet(beside, **{"index": False, **options})
        return Path(path)

    def _handed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table as the kind of frame that was explained."""
        return handed(table, self.frames)
