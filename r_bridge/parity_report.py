"""The outcome of a comparison with R: a table of stages, quantities and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from r_bridge.report import as_html, as_text

EQUAL, ROUNDING, RENUMBERED = "equal", "last digits", "other numbers"
DIFFERS, NOT_COMPARED = "differs", "not compared"
LAST_DIGITS = 1e-12  # relative to the largest value
TO_THE_BIT = {  # by `r_bridge.arithmetic`
    "separate": "R rounds a product and a sum separately, as on x86, and mcce did the same: equal means to the bit.",
    "fused": "R fuses a product and a sum, as on ARM, and mcce did the same: equal means to the bit of this R, whose "
    "last bits differ from those of R on x86.",
    "other": "R rounds products and sums neither as on x86 nor as on ARM: R and mcce may split on different columns "
    "if two are equivalent.",
}
PARTY_FUSED = (
    "ctree: party's sums are not reproduced to the last bit here, so ties between columns may be broken differently."
)
COLUMNS = ["stage", "quantity", "compared", "different", "largest_difference", "verdict"]


@dataclass(frozen=True, repr=False, eq=False)
class ParityReport:
    """The quantities on which R and mcce agree to the bit, and those that differ.

    Attributes
    ----------
    table : DataFrame
        stage ("fit", "generate", "measures", "ranks", "final rows"), quantity, compared (values), different (how many
        of them), largest_difference (absolute; 1 for levels that differ), verdict ("equal": to the bit; "last digits";
        "other numbers": the same leaves, two of them exchanged; "differs"; "not compared").
    engine : str
        "rpart" or "ctree".
    by : str
        The code that ran R's side.
    notes : tuple of str
        What could not be compared, and why; how R rounds, which defines "to the bit".
    settings : mapping
        Seeds, K and the other arguments.
    versions : mapping
        Of R and its packages.
    """

    table: pd.DataFrame
    engine: str
    by: str
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def agrees(self) -> bool:
        """Whether all compared values are equal, apart from last digits and numbers of leaves."""
        return self.first_divergence is None

    @property
    def first_divergence(self) -> str | None:
        """The first stage and quantity that differ, as text; None if none does."""
        different = self.table[self.table["verdict"] == DIFFERS]
        return None if different.empty else f"{different['stage'].iloc[0]}: {different['quantity'].iloc[0]}"

    @property
    def n_compared(self) -> int:
        """Number of values compared."""
        return int(self.table["compared"].sum())

    def _headline(self) -> list[str]:
        seeds = f"fit_seed {self.settings['fit_seed']}, generate_seed {self.settings['generate_seed']}"
        what = f"{self.engine}, {self.settings['n_explain']} factuals, K = {self.settings['generate_K']:,}, {seeds}"
        if self.first_divergence is None:
            found = f"{self.n_compared:,} values compared, all agree."
        else:
            found = f"R and mcce differ at {self.first_divergence} ({self.n_compared:,} values compared)."
        return [f"Parity with {self.by} ({what}).", found]

    def _notes(self) -> list[str]:
        return [*self.notes, ", ".join(f"{name} {number}" for name, number in self.versions.items())]

    def __repr__(self) -> str:
        return as_text(self._headline(), self.table, self._notes())

    def _repr_html_(self) -> str:
        return as_html(self._headline(), self.table, self._notes(), list(self.table["verdict"] == DIFFERS))


def same_partition(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> bool:
    """Return whether two numberings define the same partition of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from r_bridge.parity_report import same_partition
    >>> same_partition(np.array([2, 2, 5]), np.array([7, 7, 3]))
    True
    """
    pairs = len(set(zip(ours.tolist(), theirs.tolist())))
    return pairs == np.unique(ours).size == np.unique(theirs).size


def difference(ours: pd.Series[Any], theirs: pd.Series[Any]) -> tuple[int, int, float, float]:
    """Return the numbers of values and of different ones, the largest difference (levels: 1) and the largest value.

    Examples
    --------
    >>> import pandas as pd
    >>> from r_bridge.parity_report import difference
    >>> difference(pd.Series([1.0, 2.0]), pd.Series([1.0, 2.5]))
    (2, 1, 0.5, 2.5)
    """
    n = max(len(ours), len(theirs))
    if len(ours) != len(theirs):
        return n, abs(len(ours) - len(theirs)), np.inf, 0.0
    if not all(pd.api.types.is_numeric_dtype(column.dtype) for column in (ours, theirs)):
        different = int((ours.astype(object).map(str).to_numpy() != theirs.astype(object).map(str).to_numpy()).sum())
        return n, different, float(different > 0), 0.0
    a, b = ours.to_numpy(dtype=np.float64), theirs.to_numpy(dtype=np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        gap = np.where(same, 0.0, np.abs(a - b))
    largest = float(np.where(np.isnan(gap), np.inf, gap).max(initial=0.0))
    values = np.abs(np.concatenate([a, b]))
    scale = float(values[np.isfinite(values)].max(initial=0.0))
    return n, int((~same).sum()), largest, scale
