"""Training rows as donors, weighted by their distance (shapr's approach "empirical").

1. For numbers without missing values, d^2 = (x - x')' S^-1 (x - x') / q, the scaled Mahalanobis distance of q givens
   with covariance S. Otherwise Gower's distance; a missing value is at 1 from any value, at 0 from a missing one.
2. Training row i has the weight exp(-d_i^2 / (2 h^2)); the fewest donors with the share `keep` of the total are kept,
   and one of them is drawn by weight. Weights of training rows count as copies.
3. The density is that of `mcce.samplers.donors.density`, with m = (sum w)^2 / sum w^2 donors.
4. The bandwidth h is given or minimises AICc(h) = log(|Y - H Y|^2 / n) + 1 + 2 (tr H + 1) / (n - tr H - 2) (Hurvich,
   Simonoff and Tsai 1998), H the weights of n rows for each other. The responses Y are indicators of levels, or of
   values up to each decile (in shapr, the model's prediction). At most 500 rows and bandwidths from 0.01 to 3 in steps
   of a factor 1.4 are used; ties are resolved for the larger bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check, is_number
from mcce.rng import RowStreams, resolve_seed
from mcce.samplers.base import BaseMeasure, ConditionalSampler, RestrictedDraw, Within
from mcce.samplers.donors.density import PSEUDO_DONORS, MarginalDensity
from mcce.samplers.empirical import kernels
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.samplers.restricted import log_of
from mcce.storage.fields import (
    FLOAT,
    INT,
    check_array,
    check_codes,
    check_finite,
    check_rising,
    learned,
    require,
    stored,
)
from mcce.storage.state import stateful
from mcce.table import Column, Feature, Table
from mcce.table.weights import copies_at, count_copies, deviation_of, mean_of, quantiles

ROWS = 500
CANDIDATES = 0.01 * 1.4 ** np.arange(18)
_DECILES = np.arange(1, 10) / 10.0


def choose_bandwidth(
    points: Floats, scaling: Scaling, values: Floats, n_levels: int, rows: Ints, weights: Floats | None = None
) -> float:
    """Return the best bandwidth for some of the training rows."""
    responses = _responses(values, n_levels, weights)[rows]
    distances = np.empty((rows.size, rows.size))
    kernels.squared_distances(np.ascontiguousarray(points[rows]), scaling.whole, scaling.adds, distances)
    scores = [aicc(np.exp(-distances / (2.0 * width**2)), responses) for width in CANDIDATES[::-1]]
    return float(CANDIDATES[::-1][int(np.argmin(scores))])


def aicc(weights: Floats, responses: Floats) -> float:
    """Return the criterion; infinite if there are no residual degrees of freedom."""
    n = weights.shape[0]
    hat = weights / weights.sum(axis=1, keepdims=True)
    trace = float(np.trace(hat))
    if trace >= n - 2:
        return np.inf
    left = float(((responses - hat @ responses) ** 2).sum()) / n
    fit = np.log(max(left, float(np.finfo(np.float64).tiny)))  # avoid the logarithm of 0
    return float(fit + 1.0 + 2.0 * (trace + 1.0) / (n - trace - 2.0))


def _responses(values: Floats, n_levels: int, weights: Floats | None) -> Floats:
    """Return the responses of the criterion (step 4)."""
    missing = np.isnan(values)
    if n_levels:
        columns = [values == level for level in range(n_levels)]
    else:
        known = None if weights is None else weights[~missing]
        cuts = np.unique(quantiles(values[~missing], _DECILES, known)) if not missing.all() else np.empty(0)
        columns = [values <= cut for cut in cuts]
    return np.column_stack([*columns, missing]).astype(np.float64)


_RANK = 1e-9  # eigenvalues of the correlation matrix below this count as zero


@stateful("empirical.Scaling")
@dataclass(frozen=True)
class Scaling:
    """The map from givens to points.

    Attributes
    ----------
    adds : whether differences of columns are added before squaring (Gower) or after (Mahalanobis).
    centre : subtracted from each column.
    factor : multiplier of each column (Gower), or a matrix with one row per column (Mahalanobis).
    whole : difference of two unequal unordered levels (Gower); 0 for other columns.
    """

    adds: bool = stored(bool)
    centre: Floats = stored(FLOAT, "columns", finite=True)
    factor: Floats = stored((np.ndarray,))
    whole: Floats = stored(FLOAT, None, finite=True, least=0.0)

    @classmethod
    def of(cls, given: Table, weights: Floats | None = None) -> Scaling:
        """Learn the scales from training rows; weights count as copies."""
        q = len(given.features)
        nothing = np.zeros(q)
        if all(feature.is_numeric for feature in given.features) and not np.isnan(given.matrix).any():
            if q == 0 or given.n_rows < 2 or (weights is not None and weights.sum() <= 1.0):
                return cls(False, nothing, np.zeros((q, 0)), np.zeros(0))
            factor = _whitening(given.matrix, weights) / np.sqrt(q)
            return cls(False, mean_of(given.matrix, weights), factor, np.zeros(factor.shape[1]))
        unordered = np.array([feature.kind == "categorical" for feature in given.features])
        spans = np.array([feature.span for feature in given.features])
        inverse = np.divide(1.0, spans, out=np.zeros(q), where=(spans > 0) & ~unordered)
        return cls(True, nothing, np.where(unordered, 1.0, inverse / q), np.where(unordered, 1.0 / q, 0.0))

    def check_state(self) -> None:
        """Raise if the parts are not of the same columns."""
        q = self.centre.size
        check_array(self.factor, "factor", FLOAT, *((q,) if self.adds else (q, None)))
        check_finite(self.factor, "factor")
        check_array(self.whole, "whole", FLOAT, self.factor.shape[-1])

    def points(self, given: Table) -> Floats:
        """Return the scaled givens; those of a row do not depend on other rows."""
        if self.adds:
            return np.ascontiguousarray(given.matrix * self.factor)
        points = np.zeros((given.n_rows, self.factor.shape[1]))
        for j in range(self.factor.shape[0]):  # the rounding of a matrix product may depend on the number of rows
            points += (given.matrix[:, j] - self.centre[j])[:, None] * self.factor[j]
        return points


def _whitening(matrix: Floats, weights: Floats | None) -> Floats:
    """Return a whitening matrix of full column rank."""
    spread = deviation_of(matrix, weights, ddof=1)
    varies = spread > 0.0
    scale = np.divide(1.0, spread, out=np.zeros(spread.size), where=varies)
    centred = (matrix - mean_of(matrix, weights)) * scale
    counted, n = (centred, matrix.shape[0]) if weights is None else (weights[:, None] * centred, weights.sum())
    values, vectors = np.linalg.eigh(counted.T @ centred / (n - 1))
    kept = values > _RANK
    return np.asarray(scale[:, None] * vectors[:, kept] / np.sqrt(values[kept]))


LEAST_BANDWIDTH, MOST_BANDWIDTH = 1e-100, 1e100  # their squares are representable

Self = TypeVar("Self", bound="EmpiricalSampler")


@register_sampler("empirical")
class EmpiricalSampler(ConditionalSampler):
    """Draws training values, weighted by the distance of the givens.

    Parameters
    ----------
    bandwidth : "aicc" or float
        Standard deviation of the kernel of distances; "aicc" chooses one for each feature. shapr's fixed bandwidth is
        0.1, which suits few givens; with many givens, hardly any training row is that close.
    keep : float
        Share of the total weight of the donors that are kept, the heaviest first; shapr's eta.
    random_state : int or None
        Seed of the rows used by "aicc", combined with the chain's seed; see `NormSampler`.

    Attributes
    ----------
    bandwidth_ : float
    donors_ : the sorted training values, missing ones last.

    Notes
    -----
    Only the bandwidth is fitted. A draw computes the distance to every training row: 1000 rows with 10 000 training
    rows and ten givens take about a second. Use trees for many training rows.

    References
    ----------
    Aas, Jullum and Løland (2021), "Explaining individual predictions when features are dependent: more accurate
    approximations to Shapley values", Artificial Intelligence 298, section 3.3. Hurvich, Simonoff and Tsai (1998),
    "Smoothing parameter selection in nonparametric regression using an improved Akaike information criterion", JRSS B
    60.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"salary": mcce.EmpiricalSampler(bandwidth=0.2), "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> bool(chain.sample(n=50)["salary"].isin(loans.X["salary"]).all())
    True
    """

    handles_missing = True
    thread_safe = True
    leaves_one_out = True
    draws_observed = True
    takes_weights = True
    discloses = "{donors_} training values of it, and the scaled givens of each training row"

    scaling_: Scaling = learned(Scaling)
    bandwidth_: float = learned(float, least=LEAST_BANDWIDTH, most=MOST_BANDWIDTH)
    points_: Floats = learned(FLOAT, "rows", None)
    donors_: Floats = learned(FLOAT, "rows", filled=True)
    order_: Ints = learned(INT, "rows", index_of="rows", distinct=True)
    weights_: Floats | None = learned(FLOAT, "rows", finite=True, above=0.0, optional=True, default=None)
    n_levels_: int = learned(int, least="levels", most="levels")
    margin_: MarginalDensity = learned(MarginalDensity)

    def __init__(self, *, bandwidth: float | str = "aicc", keep: float = 0.95, random_state: int | None = 0) -> None:
        self.bandwidth = bandwidth
        self.keep = keep
        self.random_state = random_state

    def fit(self: Self, given: Table, target: Column) -> Self:
        self.check_training(target)
        vars(self).pop("weights_", None)
        self.scaling_ = Scaling.of(given, target.weights)
        self.order_ = np.argsort(target.values, kind="stable").astype(np.int64)  # missing values last
        self.donors_ = target.values[self.order_]
        if target.weights is not None:
            self.weights_ = target.weights[self.order_]
        self.points_ = np.ascontiguousarray(self.scaling_.points(given)[self.order_])
        self.n_levels_ = target.feature.n_levels
        self.margin_ = MarginalDensity.of(target.values, self.n_levels_, target.weights)
        self.bandwidth_ = self._choose_bandwidth(target) if self.bandwidth == "aicc" else float(self.bandwidth)
        return self

    def _choose_bandwidth(self, target: Column) -> float:
        weights, n = self.weights_, count_copies(target.weights, target.values.size)
        streams = RowStreams.from_seed(self.fit_seed(self.random_state), n)
        rows = np.sort(np.argsort(streams.child("aicc", target.feature.name).uniform(), kind="stable")[:ROWS])
        if weights is not None:
            rows = copies_at(weights, rows, n)
        return choose_bandwidth(self.points_, self.scaling_, self.donors_, self.n_levels_, rows, weights)

    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        if within is not None:
            return self.sample_within(given, rng, within).values
        return self._shares(given, Within(), rng.uniform(), freely=True)[0]

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        drawn, share, missing = self._shares(given, within, rng.uniform())
        found = RestrictedDraw.of(drawn, np.isnan(drawn), log_of(share))
        if within.missing is None:
            return found
        return found.or_missing(share, missing * within.allows_missing(given.n_rows), rng.uniform())

    def supports(self, given: Table, values: Floats) -> Bools:
        supported = np.empty(values.size, dtype=bool)
        values = np.ascontiguousarray(values, dtype=np.float64)
        rows = self.scaling_.points(given)
        kernels.find_support(rows, self._neighbours(), values, self.n_levels_ == 0, *self._scratch(), supported)
        return supported

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        values = np.ascontiguousarray(values, dtype=np.float64)
        n, margin, known = values.size, self.margin_, self.donors_[: self._n_known]
        share, number, missing, all_number = np.empty((4, n))
        own = np.full(n, -1, dtype=np.int64)
        if training_rows is not None:
            own = np.argsort(self.order_, kind="stable")[np.asarray(training_rows)].astype(np.int64)
        kernels.measure(
            *(self.scaling_.points(given), self._neighbours(), own, values, margin.is_atom(values)),
            *(margin.is_atom(known), margin.bandwidth, *self._scratch(), share, number, missing, all_number),
        )
        is_missing = np.isnan(values)
        left_out = np.full(n, float(training_rows is not None))
        if training_rows is not None and self.weights_ is not None:
            left_out = self.weights_[own]
        prior = margin.share(np.where(is_missing, 0.0, values), left_out)
        density = (number * share + PSEUDO_DONORS * prior) / (number + PSEUDO_DONORS)
        missing_probability = (all_number * missing + PSEUDO_DONORS * margin.missing_share) / (
            all_number + PSEUDO_DONORS
        )
        return np.where(is_missing, log_of(missing_probability), log_of(density) + log_of(1.0 - missing_probability))

    def distribution(self, given: Table) -> DistributionFunctions:
        missing = self._shares(given, Within())[2]
        total = np.where(missing < 1.0, 1.0 - missing, 1.0)
        return DistributionFunctions(
            lambda high: self._shares(given, Within(high=high))[1] / total,
            lambda u: self._shares(given, Within(), u)[0],
            missing,
            n_donors=self._n_known,
        )

    def base_measure(self) -> BaseMeasure:
        return self.margin_.base_measure

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        super().check_state(given, target, n_rows)
        require(self.scaling_.centre.size == len(given), "scaling_ does not match the columns")
        require(self.points_.shape[1] == self.scaling_.whole.size, "points_ does not match scaling_")
        check_finite(self.points_[~np.isnan(self.points_)] if self.scaling_.adds else self.points_, "points_")
        known = self.donors_[: self._n_known]
        check_rising(known, "donors_ before the missing ones", strictly=False)
        if not target.is_numeric:
            check_codes(known, "donors_", target.n_levels)
            levels = np.arange(target.n_levels, dtype=np.float64)
            require(np.array_equal(self.margin_.atoms, levels), "atoms are not the levels of the target")

    def _shares(
        self, given: Table, within: Within, uniform: Floats | None = None, *, freely: bool = False
    ) -> tuple[Floats, Floats, Floats]:
        """Return the `uniform`-quantile of the allowed donors, and the shares of allowed and of missing ones."""
        n = given.n_rows
        uniform = np.zeros(n) if uniform is None else uniform
        drawn, share, missing = np.empty((3, n))
        levels = np.empty((n, 0), dtype=bool) if within.levels is None else np.ascontiguousarray(within.levels)
        kernels.draw(
            *(self.scaling_.points(given), self._neighbours(), uniform, *within.bounds(n), levels, freely),
            *(*self._scratch(), drawn, share, missing),
        )
        return drawn, share, missing

    def _neighbours(self) -> kernels.Neighbours:
        rate = 0.5 / self.bandwidth_**2
        scaling = self.scaling_
        copies = np.ones(self.donors_.size) if self.weights_ is None else self.weights_
        parts = (self.points_, scaling.whole, scaling.adds, rate, float(self.keep), self.donors_, self._n_known, copies)
        return kernels.Neighbours(*parts)

    def _scratch(self) -> Floats:
        """Return work arrays for the weights of one row and the order of the donors, one set per thread."""
        return np.empty((3, self.donors_.size))

    @property
    def _n_known(self) -> int:
        return int(self.donors_.size - np.isnan(self.donors_).sum())

    def check_parameters(self) -> None:
        fixed = is_number(self.bandwidth) and LEAST_BANDWIDTH <= float(self.bandwidth) <= MOST_BANDWIDTH
        must_be = f"it must be 'aicc', or a number from {LEAST_BANDWIDTH:g} to {MOST_BANDWIDTH:g}."
        check(self.bandwidth == "aicc" or fixed, self.bandwidth, "bandwidth", must_be, owner=self)
        fits = is_number(self.keep) and 0 < self.keep <= 1
        check(fits, self.keep, "keep", "it must be a share above 0, at most 1.", owner=self)
        resolve_seed(self.random_state)
