"""Dependence between features of any kinds, in real and in generated rows (paper, Experiment 3).

Two numbers, dates or ordered levels: Spearman's or Pearson's correlation, over rows without missing values. A number
and an unordered column: the correlation ratio of the ranks. Two unordered columns: Cramer's V, where missing is a
level. The last two are corrected for the number of levels, as in `mcce.generators.visit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats
from mcce.diagnostics.pairs import read_pair
from mcce.exceptions import InputError
from mcce.generators.visit import association_matrix
from mcce.report.plots import correlation_plot
from mcce.table import Data, Kind, Schema, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Method = Literal["spearman", "pearson"]

TITLES = {
    "real": "Correlations of the real rows",
    "generated": "Correlations of the generated rows",
    "difference": "Difference of the correlations, generated minus real",
}


@dataclass(frozen=True, repr=False, eq=False)
class Correlations:
    """The correlation matrices of two tables.

    Attributes
    ----------
    real, generated : DataFrame
        The matrices.
    difference : DataFrame
        generated minus real.
    method : str
        The correlation of two numeric columns.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(400).X[["age", "salary", "savings"]]
    >>> drawn = mcce.ChainModel(random_state=1).fit(X[:200]).sample(200)
    >>> correlations = mcce.diagnostics.compare_correlations(X[200:], drawn)
    >>> correlations.real.shape, correlations.largest_difference < 0.3
    ((3, 3), True)
    """

    real: pd.DataFrame
    generated: pd.DataFrame
    difference: pd.DataFrame
    method: str

    @property
    def pairs(self) -> pd.DataFrame:
        """Every pair of features with real, generated and difference, by decreasing absolute difference."""
        i, j = np.triu_indices(len(self.real), 1)
        names = self.real.columns
        table = pd.DataFrame(
            {
                "feature": names[i],
                "other": names[j],
                "real": self.real.to_numpy()[i, j],
                "generated": self.generated.to_numpy()[i, j],
                "difference": self.difference.to_numpy()[i, j],
            }
        )
        order = np.argsort(-table["difference"].abs().to_numpy(), kind="stable")
        return table.iloc[order].reset_index(drop=True)

    @property
    def mean_difference(self) -> float:
        """Mean absolute difference over the pairs of features; NaN for a single feature."""
        pairs = self.pairs["difference"].abs()
        return float(pairs.mean()) if len(pairs) else np.nan

    @property
    def largest_difference(self) -> float:
        """Largest absolute difference over the pairs of features; NaN for a single feature."""
        pairs = self.pairs["difference"].abs()
        return float(pairs.max()) if len(pairs) else np.nan

    def plot(self, which: str = "difference", *, scale: float = 1.0, ax: Axes | None = None) -> Axes:
        """Draw one of the matrices as circles.

        Parameters
        ----------
        which : "real", "generated" or "difference"
        scale : float
            The absolute value that fills a cell; less than 1 shows small differences.
        ax : Axes, optional
            Where to draw; by default a new figure.
        """
        if which not in TITLES:
            raise InputError(f"which is {which!r}; allowed: 'real', 'generated', 'difference'.")
        return correlation_plot(getattr(self, which), title=TITLES[which], scale=scale, ax=ax)

    def __repr__(self) -> str:
        pairs = self.pairs
        head = f"Correlations of {len(self.real)} features ({self.method} between numbers)"
        if pairs.empty:
            return head
        first = pairs.iloc[0]
        return (
            f"{head}: mean absolute difference {self.mean_difference:.3f}, largest {self.largest_difference:.3f} "
            f"({first['feature']} with {first['other']}: {first['real']:.2f} real, {first['generated']:.2f} generated)"
        )


def correlations(X: Data, *, method: Method = "spearman", kinds: Mapping[Any, Kind] | None = None) -> pd.DataFrame:
    """Return the correlation of every pair of columns.

    Parameters
    ----------
    X : DataFrame or array
    method : "spearman" or "pearson"
        The correlation of two numeric columns; see `mcce.diagnostics.correlations` for other pairs.
    kinds : dict or None
        Overrides of column kinds, as for `ChainModel`.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> X = pd.DataFrame({"age": [20, 30, 40, 50], "debt": [4, 3, 2, 1], "job": ["a", "a", "b", "b"]})
    >>> mcce.diagnostics.correlations(X).round(2).loc["age"].to_dict()
    {'age': 1.0, 'debt': -1.0, 'job': 0.84}
    """
    schema = Schema.from_data(X, kinds)
    return _matrix(schema.encode(X), _check(method))


def compare_correlations(
    real: Data,
    generated: Data,
    *,
    method: Method = "spearman",
    kinds: Mapping[Any, Kind] | None = None,
) -> Correlations:
    """Return the correlations of two tables with the same columns, and their difference.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes.
    method, kinds : as for `correlations`.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans().X
    >>> chain = mcce.ChainModel(random_state=1).fit(X)
    >>> compared = mcce.diagnostics.compare_correlations(X, chain.sample(len(X)))
    >>> compared.mean_difference < 0.05
    True
    """
    _check(method)
    pair = read_pair(real, generated, kinds)
    one, two = (_matrix(Table(pair.features, matrix), method) for matrix in (pair.real, pair.generated))
    return Correlations(one, two, two - one, method)


def _check(method: str) -> Method:
    if method not in ("spearman", "pearson"):
        raise InputError(f"method is {method!r}; allowed: 'spearman', 'pearson'.")
    return method  # type: ignore[return-value]


def _matrix(table: Table, method: Method) -> pd.DataFrame:
    is_number = np.array([f.kind != "categorical" for f in table.features])
    values = np.eye(len(is_number)) if is_number.all() else association_matrix(table).to_numpy().copy()
    numbers = np.flatnonzero(is_number)
    values[np.ix_(numbers, numbers)] = _among_numbers(table.matrix[:, numbers], method)
    names = pd.Index(table.names, tupleize_cols=False)
    return pd.DataFrame(values, index=names, columns=names)


def _among_numbers(matrix: Floats, method: Method) -> Floats:
    values = np.eye(matrix.shape[1])
    known = ~np.isnan(matrix)
    complete = known.all(axis=0)
    columns = np.flatnonzero(complete)
    values[np.ix_(columns, columns)] = _correlate(matrix[:, columns], method)
    for i in np.flatnonzero(~complete):
        for j in range(matrix.shape[1]):
            if i != j:
                both = known[:, i] & known[:, j]
                values[i, j] = values[j, i] = _correlate(matrix[both][:, (int(i), j)], method)[0, 1]
    return values


def _correlate(matrix: Floats, method: Method) -> npt.NDArray[np.float64]:
    """Return the correlations of complete columns, 0 for constant ones."""
    if not matrix.size:
        return np.eye(matrix.shape[1])
    ranked = pd.DataFrame(matrix).rank().to_numpy() if method == "spearman" else matrix
    centred = ranked - ranked.mean(axis=0)
    lengths = np.sqrt((centred**2).sum(axis=0))
    varies = lengths > 1e-12 * np.abs(ranked).max(axis=0)
    scaled = np.where(varies, centred / np.where(varies, lengths, 1.0), 0.0)
    result: npt.NDArray[np.float64] = np.clip(scaled.T @ scaled, -1.0, 1.0)
    np.fill_diagonal(result, 1.0)
    return result
