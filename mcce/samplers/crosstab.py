"""Tables of counts as conditionals of levels: `catall`, all givens crossed, and `nested`, one coarser given.

With the cells g of the givens, the levels t of the target and n(g, t) the sum of the weights of the training rows:

1. A given with levels has one code per level, a number one per quantile group (`n_groups`); missing is one more code.
   Only observed codes count.
2. p(t | g) = (n(g, t) + a / (G T)) / (n(g) + a / G), with `prior` a, G cells (the product of the givens' numbers of
   codes) and T levels of the target, including missing if it occurs.
3. A chain in which all features use this sampler has the joint distribution (n + a / cells) / (N + a): the posterior
   mean under synthpop's Dirichlet prior (`syn.catall`, its `priorn`), because the margins of a uniform prior over cells
   are uniform.
4. A cell without training rows has uniform probabilities; without a prior, the shares of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count, check_not_negative
from mcce.exceptions import SamplerError, did_you_mean
from mcce.rng import RowStreams
from mcce.samplers.base import IMPOSSIBLE, BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.restricted import log_of
from mcce.storage.fields import FLOAT, INT, learned, require, stored
from mcce.table import Column, Feature, Table
from mcce.table.weights import quantiles

Self = TypeVar("Self", bound="CatallSampler")

MOST_CELLS = 10**8  # synthpop's `maxtable`


@register_sampler("catall")
class CatallSampler(ConditionalSampler):
    """Levels by their counts in each combination of the givens: the saturated model (synthpop's `catall`).

    1. Cross all givens, with numbers in quantile groups (synthpop's `numtocat`).
    2. Draw a level by its share in the row's cell, with a uniform prior over all cells (`mcce.samplers.crosstab` has
       the formula).

    Parameters
    ----------
    prior : float
        Weight of the prior in rows, for the whole table.
    n_groups : int
        Number of quantile groups of a numeric given.

    Attributes
    ----------
    cells_, counts_ : observed cells, and the sums of the weights of their rows by code of the target.
    codes_ : observed codes of the target; the code of a missing value follows those of the levels.
    columns_, cuts_ : the crossed givens, and the lower ends of all groups of a number but the first.
    sizes_, used_ : number of possible and of observed codes of each crossed given.

    Notes
    -----
    Use it for few givens: cells without training rows have no information, and tables of more than 1e8 cells raise an
    error. Choose the givens by ``ChainModel(predictors={...})``. synthpop's `ipf` fits two-way margins instead of the
    whole table; so does `PolyregSampler`, for the margins of the target with each given.

    References
    ----------
    Nowok, Raab and Dibben (2016), "synthpop: Bespoke Creation of Synthetic Data in R", Journal of Statistical
    Software 74 (11).

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> X = loans.X[["sex", "employment", "defaulted_last_year"]]
    >>> chain = mcce.ChainModel(sampler="catall", fixed=["sex"], random_state=1).fit(X)
    >>> set(chain.sample(n=50)["employment"]) <= set(X["employment"])
    True
    """

    handles = frozenset({"categorical", "ordered"})
    handles_missing = True
    thread_safe = True
    takes_weights = True
    discloses = "the counts of its levels in {cells_} cells"

    n_levels_: int = learned(int, least="levels", most="levels")
    columns_: Ints = learned(INT, "columns", least=0, distinct=True)
    cuts_: tuple[Floats, ...] = learned(tuple, "columns", of=stored(FLOAT, None, rising=True))
    sizes_: Ints = learned(INT, "columns", least=1, most=2**31)
    used_: Ints = learned(INT, "columns", least=1, most=2**31)
    codes_: Ints = learned(INT, "codes", least=0, most="levels", rising=True, filled=True)
    cells_: Ints = learned(INT, "cells", least=0, rising=True, filled=True)
    counts_: Floats = learned(FLOAT, "cells", "codes", least=0.0, finite=True)

    def __init__(self, *, prior: float = 1.0, n_groups: int = 5) -> None:
        self.prior = prior
        self.n_groups = n_groups

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid."""
        check_not_negative(self.prior, "prior")
        check_count(self.n_groups, "n_groups", self, 2)

    def choose(self, given: Table, target: Column) -> Ints:
        """Return the givens to cross."""
        return np.arange(len(given.features))

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.check_training(target)
        self.n_levels_ = target.feature.n_levels
        self.columns_ = self.choose(given, target).astype(np.int64)
        self.cuts_ = tuple(self._cuts(given, j, target.weights) for j in self.columns_)
        coded = self._coded(given)
        self.sizes_ = np.array(
            [
                (cuts.size + 1 if given.features[j].is_numeric else given.features[j].n_levels) + 1
                for j, cuts in zip(self.columns_, self.cuts_)
            ],
            dtype=np.int64,
        )
        self.used_ = np.array([np.unique(column).size for column in coded.T], dtype=np.int64)
        self._check_size(target.feature)
        codes = np.where(np.isnan(target.values), self.n_levels_, target.values).astype(np.int64)
        self.codes_, place = np.unique(codes, return_inverse=True)
        self.cells_, cell = np.unique(self._cell(coded), return_inverse=True)
        shape = (self.cells_.size, self.codes_.size)
        flat = np.ravel_multi_index((cell.ravel(), place.ravel()), shape)
        self.counts_ = np.bincount(flat, target.weights, shape[0] * shape[1]).astype(np.float64).reshape(shape)
        return self

    def probabilities(self, given: Table) -> Floats:
        """Return the probability of every level, and of a missing value in the last column, for each row."""
        prior = self.prior / (float(np.prod(self.used_.astype(np.float64))) * self.codes_.size)
        cell = self._cell(self._coded(given))
        at = np.minimum(np.searchsorted(self.cells_, cell), self.cells_.size - 1)
        unknown = self.counts_.sum(axis=0) if prior == 0.0 else np.zeros(self.codes_.size)
        counts = np.where((self.cells_[at] == cell)[:, None], self.counts_[at], unknown) + prior
        out = np.zeros((given.n_rows, self.n_levels_ + 1))
        out[:, self.codes_] = counts / counts.sum(axis=1, keepdims=True)
        return out

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        within = Within(missing=np.ones(given.n_rows, dtype=bool)) if within is None else within
        return self.sample_within(given, rng, within).values

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one of the allowed levels, or a missing value where allowed."""
        n, values = given.n_rows, np.append(np.arange(float(self.n_levels_)), np.nan)
        may = np.column_stack([within.level_mask(n, self.n_levels_), within.allows_missing(n)])
        return RestrictedDraw.by_weight(values, self.probabilities(given) * may, rng)

    def supports(self, given: Table, values: Floats) -> Bools:
        return np.exp(self.log_density(given, values)) > IMPOSSIBLE

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log probability of each level or missing value; -inf for values that are not levels."""
        self.refuse_training_rows(training_rows)
        codes = np.where(np.isnan(values), self.n_levels_, values)
        is_code = (np.floor(codes) == codes) & (codes >= 0) & (codes <= self.n_levels_)
        places = np.where(is_code & ~((codes == self.n_levels_) & ~np.isnan(values)), codes, -1).astype(np.intp)
        return np.where(places >= 0, log_of(self.probabilities(given)[np.arange(values.size), places]), -np.inf)

    def distribution(self, given: Table) -> DistributionFunctions:
        return DistributionFunctions.of_levels(self.probabilities(given), missing_last=True)

    def base_measure(self) -> BaseMeasure:
        return "counting"

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        require(self.columns_.max(initial=-1) < len(given), "columns_ holds a position beyond the givens")
        for j, cuts, size in zip(self.columns_, self.cuts_, self.sizes_):
            codes = cuts.size + 2 if given[j].is_numeric else given[j].n_levels + 1
            require(size == codes and (given[j].is_numeric or not cuts.size), "sizes_ does not match the columns")
        self._check_size(target)
        require((self.used_ <= self.sizes_).all(), "used_ exceeds sizes_")
        require(int(self.cells_[-1]) < int(np.prod(self.sizes_)), "cells_ holds a cell that does not exist")
        require(bool((self.counts_.sum(axis=1) > 0.0).all()), "counts_ has an empty cell")

    def _check_size(self, feature: Feature) -> None:
        n_cells = float(np.prod(self.sizes_.astype(np.float64)))
        if n_cells > MOST_CELLS:
            raise SamplerError(
                f"{self!r} of {feature.name!r} would cross {self.sizes_.size} givens to {n_cells:.3g} cells; the "
                f"limit is {MOST_CELLS:.0g}. Reduce the givens by predictors={{{feature.name!r}: [...]}}, or use cart."
            )

    def _cuts(self, given: Table, j: int, weights: Floats | None) -> Floats:
        """Return the inner limits of the quantile groups of a number; empty for levels."""
        column = given.matrix[:, j]
        known = ~np.isnan(column)
        if not given.features[j].is_numeric or not known.any():
            return np.empty(0)
        shares = np.arange(1, self.n_groups) / self.n_groups
        order = np.argsort(column[known], kind="stable")
        of_known = None if weights is None else weights[known][order]
        cuts = np.unique(quantiles(column[known][order], shares, of_known))
        return np.asarray(cuts[cuts > column[known].min()])

    def _coded(self, given: Table) -> Ints:
        """Return the codes of the crossed givens; a missing value has the last code."""
        out = np.empty((given.n_rows, self.columns_.size), dtype=np.int64)
        for k, (j, cuts) in enumerate(zip(self.columns_, self.cuts_)):
            column, feature = given.matrix[:, j], given.features[j]
            codes = np.searchsorted(cuts, column, side="right") if feature.is_numeric else column
            last = cuts.size + 1 if feature.is_numeric else feature.n_levels
            out[:, k] = np.where(np.isnan(column), last, codes)
        return out

    def _cell(self, coded: Ints) -> Ints:
        """Return the number of each row's cell."""
        cell = np.zeros(coded.shape[0], dtype=np.int64)
        for k, size in enumerate(self.sizes_):
            cell = cell * size + coded[:, k]
        return cell


@register_sampler("nested")
class NestedSampler(CatallSampler):
    """Draws a fine level by its share within the row's coarse level (synthpop's `nested`); other givens are ignored.

    1. Find the coarse column: `within`, or the given with the largest uncertainty coefficient 1 - H(coarse | fine) /
       H(coarse), which is 1 if the target is nested in it. Ties are resolved for the most levels.
    2. Draw a level by its share among the training rows with the same coarse level; for a coarse level without training
       rows, by the shares of all rows.

    Parameters
    ----------
    within : str or None
        Name of the coarse column, which must be among the givens; None: found as above.

    Attributes
    ----------
    columns_ : position of the coarse column among the givens; empty if no given has levels.
    cells_, counts_, codes_, cuts_, sizes_, used_ : as in `CatallSampler`.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> X = pd.DataFrame({"region": ["north", "north", "south"] * 20, "town": ["a", "b", "c"] * 20})
    >>> chain = mcce.ChainModel(sampler={"town": "nested"}, fixed=["region"], random_state=1).fit(X)
    >>> sorted(chain.sample(n=60).value_counts().index)
    [('north', 'a'), ('north', 'b'), ('south', 'c')]
    """

    prior = 0.0
    n_groups = 2

    def __init__(self, *, within: str | None = None) -> None:
        self.within = within

    def choose(self, given: Table, target: Column) -> Ints:
        """Return the coarse column (step 1)."""
        names = [feature.name for feature in given.features]
        with_levels = [j for j, feature in enumerate(given.features) if not feature.is_numeric]
        if self.within is not None:
            if self.within not in [names[j] for j in with_levels]:
                known = [str(names[j]) for j in with_levels]
                raise SamplerError(
                    f"{self!r} of {target.feature.name!r} needs {self.within!r} among its givens, with levels, before "
                    f"it in the visit sequence; {did_you_mean(self.within, known)}"
                )
            return np.array([names.index(self.within)])
        fine = np.where(np.isnan(target.values), -1, target.values)
        best = max(
            (
                (_uncertainty(given.matrix[:, j], fine, target.weights), given.features[j].n_levels, j)
                for j in with_levels
            ),
            default=None,
        )
        return np.empty(0, dtype=np.int64) if best is None else np.array([best[2]])


def _uncertainty(coarse: Floats, fine: Floats, weights: Floats | None) -> float:
    """Return the uncertainty coefficient of the coarse column given the fine one; 0 if it is constant."""
    rows = np.unique(np.where(np.isnan(coarse), -1, coarse), return_inverse=True)[1].ravel()
    columns = np.unique(fine, return_inverse=True)[1].ravel()
    n_rows = int(rows.max(initial=0)) + 1

    def entropy(sums: Floats | Ints) -> float:
        shares = sums[sums > 0.0] / sums.sum()
        return float(-(shares * np.log(shares)).sum())

    joint, fine_only, whole = (
        entropy(np.bincount(codes, weights)) for codes in (columns * n_rows + rows, columns, rows)
    )
    return 1.0 - round((joint - fine_only) / whole, 9) if whole > 0.0 else 0.0
