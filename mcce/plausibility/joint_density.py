"""A rule that counterfactuals must be jointly likely, by a mixture of normals or a generator of the user's choice.

The score of `explain(floor=)` combines cells, trees and linear parts. It overrates rows whose columns depend on each
other in other ways. The rule judges whole rows:

1. The rows are dealt into two random halves, and a density is fitted to each.
2. The joint log density of a row is the smaller of the two.
3. A row must be as dense as a share of real rows, each judged by the density that it was not used for, or at least as
   dense as its factual.

The default density is a mixture of normals of the standardised numbers and of an indicator of each level and of missing
values.
"""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from mcce.base.arrays import Bools, Floats
from mcce.base.checks import check_share
from mcce.constraints.rules import Rule, rule
from mcce.exceptions import InputError, MCCEWarning
from mcce.generators.base import Generator
from mcce.table import Data, as_frame
from mcce.wording import Value

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

FEWEST_ROWS = 50
COMPONENTS, ROWS_EACH = 20, 50  # most components, and fewest rows for each
VARIANCE = 1e-3  # added to the variances of each component
RARE = 0.01  # levels in fewer rows have no indicator


def joint_density(X: Data, share: float = 0.1, *, generator: Generator | None = None) -> Rule:
    """Require that counterfactuals are jointly as likely as real rows.

    Parameters
    ----------
    X : DataFrame or array
        Training rows, for example those that the explainer is fitted to.
    share : float
        The share of real rows that are less likely than required. Rows of factuals that are less likely themselves need
        only be as likely as their factual.
    generator : Generator or None
        Any generator with a `log_density`, not fitted; None for a mixture of normals.

    Returns
    -------
    Rule
        A constraint, for `constraints=`. It cannot be stored in a file.

    Notes
    -----
    The rule complements the floor where columns depend on each other in a strongly non-linear way. It makes the search
    slower: each candidate row is scored by two densities.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans(600)
    >>> likely = mcce.joint_density(loans.X[["age", "salary", "savings"]], share=0.1)
    >>> print(likely)
    joint density above that of 10 % of the training rows
    """
    frame, _ = as_frame(X)
    check_share(share, "share")
    if len(frame) < FEWEST_ROWS:
        raise InputError(f"X has {len(frame)} rows; joint_density needs at least {FEWEST_ROWS}, half for each density.")
    if generator is not None and not isinstance(generator, Generator):
        raise InputError("generator is ", Value(generator), "; give an unfitted generator, for example a ChainModel.")
    texts = frame.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]]
    known = frame.astype({name: "category" for name in texts if frame[name].dtype.kind not in "mM"})  # in both halves
    order = np.random.default_rng(0).permutation(len(known))
    halves = [known.iloc[np.sort(order[k::2])] for k in (0, 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCCEWarning)  # about the halves; the explainer's fit warns of the whole table
        unfitted: Generator | NormalMixture = NormalMixture(known) if generator is None else generator
        fitted = [copy.deepcopy(unfitted).fit(half) for half in halves]
    real = np.concatenate([fitted[1 - k].log_density(half) for k, half in enumerate(halves)])
    least = float(np.quantile(real, share, method="lower"))
    if not np.isfinite(least):
        raise InputError(
            f"the joint density of {np.isneginf(real).mean():.0%} of the rows of X is 0 by the generator of the other "
            f"half, more than the share {share:g}; use more rows, fewer columns, or a smoother generator."
        )

    def is_likely(rows: pd.DataFrame, factuals: pd.DataFrame) -> Bools:
        density = _smaller_density(fitted, rows)
        likely = np.asarray(density >= least)
        likely[~likely] = density[~likely] >= _smaller_density(fitted, factuals[~likely])
        return likely

    name = f"joint density above that of {100 * share:g} % of the training rows"
    return rule(is_likely, features=list(frame.columns), name=name)


class NormalMixture:
    """A mixture of normals of standardised numbers, and of indicators of levels and of missing values.

    Parameters
    ----------
    X : the table that defines the scales of numbers and the levels.
    """

    def __init__(self, X: pd.DataFrame) -> None:
        self.scales: dict[Hashable, tuple[float, float]] = {}
        self.levels: dict[Hashable, list[Any]] = {}  # all but rare ones, the most frequent first
        for name in X:
            if _is_number(X[name]):
                numbers = _numbers(X[name])
                self.scales[name] = float(np.nanmean(numbers)), float(np.nanstd(numbers)) or 1.0
            else:
                shares = X[name].value_counts(normalize=True)
                self.levels[name] = shares.index[shares >= RARE].to_list()

    def fit(self, X: pd.DataFrame) -> NormalMixture:
        """Fit the mixture."""
        k = int(np.clip(len(X) // ROWS_EACH, 1, COMPONENTS))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.mixture = GaussianMixture(k, reg_covar=VARIANCE, random_state=0).fit(self._points(X))
        return self

    def log_density(self, X: pd.DataFrame) -> Floats:
        """Return the log density of each row."""
        return np.asarray(self.mixture.score_samples(self._points(X)))

    def _points(self, X: pd.DataFrame) -> Floats:
        found: list[Any] = [np.zeros((len(X), 0))]
        for name, (mean, sd) in self.scales.items():
            numbers = _numbers(X[name])
            found += [np.nan_to_num((numbers - mean) / sd), np.isnan(numbers)]
        for name, levels in self.levels.items():
            found += [*(X[name] == level for level in levels[1:]), ~X[name].isin(levels)]
        return np.column_stack(found)


def _is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) or column.dtype.kind in "mM"


def _numbers(column: pd.Series[Any]) -> Floats:
    kind = column.dtype.kind
    if kind not in "mM":
        return column.to_numpy(np.float64, na_value=np.nan)
    times = column.to_numpy(f"{kind}8[ns]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64))


def _smaller_density(fitted: Sequence[Generator | NormalMixture], rows: pd.DataFrame) -> Floats:
    """Return the smallest joint log density of each row."""
    if not len(rows):
        return np.empty(0)
    rows = rows.reset_index(drop=True)
    return np.min([np.asarray(each.log_density(rows), dtype=np.float64) for each in fitted], axis=0)
