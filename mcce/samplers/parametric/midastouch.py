"""Weighted predictive mean matching: all rows are donors, weighted by the distance of their predictions.

Follows mice's `midastouch` (Gaffert, Meinfelder and Bosch 2016), after Siddique and Belin (2008):

1. A bootstrap of the training rows gives donor i the count omega_i, once at `fit`.
2. For donor i, regress the target on the givens by the counts of all other rows, with a ridge of 1e-5 on the diagonal
   of X'X except the intercept: beta_i.
3. A row x draws donor i with probability proportional to omega_i / |(x_i - x) beta_i|^kappa; the power is clipped to
   [1.5e-8, 1.3e154].
4. kappa = min((50 R^2 / (1 - R^2))^(3/8), 100), with the R^2 of the bootstrap sample; 3 if it is undefined.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import is_number
from mcce.exceptions import InputError
from mcce.rng import RowStreams
from mcce.samplers.base import IMPOSSIBLE, BaseMeasure, Within, supported_by
from mcce.samplers.density import ColumnDensity, silverman
from mcce.samplers.parametric.linear import RIDGE, LinearSampler
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.registry import register_sampler
from mcce.storage.fields import FLOAT, check_count_of, learned
from mcce.table import Column, Table

_CELLS = 4_000_000  # floats held in memory at a time
_LEAST = float(np.finfo(np.float64).eps)
_BOUNDS = 0.5 * np.log(_LEAST), 0.5 * np.log(np.finfo(np.float64).max)  # of the log of the power (step 3)


@register_sampler("midastouch")
class MidastouchSampler(LinearSampler):
    """Predictive mean matching with weights instead of a number of donors (mice's `midastouch`).

    1. Bootstrap the training rows once, at `fit`; only sampled rows are donors.
    2. Predict each donor, and each row to draw, by a regression fitted without this donor.
    3. Draw a donor with a weight that is a power of the inverse distance of the two predictions
       (`mcce.samplers.parametric.midastouch` has the formulas), and return its value.

    Parameters
    ----------
    kappa : float or None
        The power; None: from the R squared of the regression, as in mice. Larger values concentrate the weights.
    formula, random_state : see `NormSampler`

    Attributes
    ----------
    donors_, counts_ : values of the donors in ascending order, and their counts in the bootstrap sample.
    betas_, predictions_ : leave-one-out coefficients of each donor, intercept first, and its prediction.
    kappa_ : float
    coef_, sigma_, estimate_, covariance_ : as in `NormSampler`, from all training rows.

    Notes
    -----
    Draws, restricted draws and their probabilities are exact. `log_density` of a value with point mass is its log
    probability. For other values it is a surrogate: normal kernels at the donors, with bandwidth 0.9 sigma n^(-1/5),
    where n = (sum w)^2 / sum w^2 is the effective number of donors of the row. Both are mixed with a small uniform
    component (`mcce.samplers.density`). Time and memory per draw grow with the number of training rows; `PmmSampler` is
    faster.

    References
    ----------
    Siddique and Belin (2008), "Multiple imputation using an iterative hot-deck with distance-based donor selection",
    Statistics in Medicine 27. Gaffert, Meinfelder and Bosch (2016), "Towards an MI-proper predictive mean matching".

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans(300)
    >>> sampler = {"salary": "midastouch", "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(loans.X)
    >>> bool(chain.sample(n=50)["salary"].isin(loans.X["salary"]).all())
    True
    """

    takes_weights = True
    draws_observed = True
    discloses = "{donors_} training values of it, and regressions without each"
    proper = False

    donors_: Floats = learned(FLOAT, "donors", rising="weakly", filled=True)
    counts_: Floats = learned(FLOAT, "donors", above=0.0, finite=True)
    betas_: Floats = learned(FLOAT, "donors", "columns + 1", finite=True)
    predictions_: Floats = learned(FLOAT, "donors", finite=True)
    kappa_: float = learned(float, least=0.0, finite=True)
    column_: ColumnDensity = learned(ColumnDensity)

    def __init__(self, *, kappa: float | None = None, formula: str | None = None, random_state: int | None = 0) -> None:
        self.kappa = kappa
        self.formula = formula
        self.random_state = random_state

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.kappa is not None and not (is_number(self.kappa) and 0.0 < self.kappa <= 100.0):
            raise InputError(f"kappa of {type(self).__name__} is {self.kappa!r}; give a number in (0, 100].")

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        """Bootstrap the donors and fit the leave-one-out regressions (steps 1 and 2)."""
        self.fit_linear(x, target.values, target)
        self.column_ = ColumnDensity.of(target.values, target.weights)
        counts = np.bincount(self.bootstrap(target), minlength=target.values.size).astype(np.float64)
        order = np.argsort(target.values, kind="stable")
        order = order[counts[order] > 0.0]
        self.donors_, self.counts_ = target.values[order], counts[order]
        design = np.column_stack([np.ones(order.size), x[order]])
        self.betas_, r2 = leave_one_out(design, self.donors_, self.counts_)
        self.predictions_ = (design * self.betas_).sum(axis=1)
        self.kappa_ = power_of(r2) if self.kappa is None else float(self.kappa)

    def probabilities(self, given: Table) -> Floats:
        """Return the probability of each donor, in the order of `donors_`, for each row (step 3)."""
        predicted = self.design_.predict(given, self.betas_[:, 0], self.betas_[:, 1:])
        distance = np.abs(self.predictions_ - predicted)
        power = np.clip(-scipy.special.xlogy(self.kappa_, distance), *_BOUNDS)  # 0 for a kappa of 0
        return np.asarray(scipy.special.softmax(power + np.log(self.counts_), axis=1))

    def sample_complete(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        uniform, out = rng.uniform(), np.full(given.n_rows, np.nan)
        for rows, weights in self._blocks(given):
            upto = np.cumsum(weights * self._allowed(given, within, rows), axis=1)
            total = upto[:, -1]
            # rounding may move the uniform number beyond the last donor with a positive weight
            last = np.argmax(upto >= total[:, None], axis=1)
            place = np.minimum((upto <= (uniform[rows] * total)[:, None]).sum(axis=1), last)
            out[rows] = np.where(total > 0.0, self.donors_[place], np.nan)
        return out

    def probability_within(self, given: Table, within: Within) -> Floats:
        out = np.empty(given.n_rows)
        for rows, weights in self._blocks(given):
            out[rows] = (weights * self._allowed(given, within, rows)).sum(axis=1)
        return np.minimum(out, 1.0)

    def quantiles_complete(self, given: Table, u: Floats) -> Floats:
        """Return quantiles of the donors by their probabilities."""
        out = np.empty(given.n_rows)
        for rows, weights in self._blocks(given):
            out[rows] = DistributionFunctions.of_levels(weights, self.donors_).inverse(u[rows])
        return out

    @property
    def n_ranked(self) -> int:
        return self.donors_.size

    def supports_complete(self, given: Table, values: Floats) -> Bools:
        """Return whether each value is that of a donor, or near a donor whose probability is at least 0.1 / n."""
        supported = np.zeros(values.size, dtype=bool)
        for rows, weights in self._blocks(given):
            same = (weights * (self.donors_ == values[rows, None])).sum(axis=1)
            supported[rows] = same > IMPOSSIBLE
            usual = weights >= 0.1 / self.donors_.size
            for row in rows[~supported[rows]]:
                drawable = self.donors_[usual[row - rows[0]]]
                supported[row] = supported_by(drawable, values[row : row + 1], is_number=True)[0]
        return supported

    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log probability of each value with point mass, the log kernel density of other values."""
        counted = self.column_.has_mass(values)
        smooth = ~self.column_.has_mass(self.donors_)
        density = np.empty(values.size)
        for rows, weights in self._blocks(given):
            same = self.donors_ == values[rows, None]
            effective = 1.0 / (weights**2).sum(axis=1)
            width = np.array([silverman(self.sigma_, 0.0, n) or 1.0 for n in effective])[:, None]
            z = (values[rows, None] - self.donors_) / width
            kernel = np.exp(-0.5 * z**2) / (width * np.sqrt(2.0 * np.pi)) * smooth
            density[rows] = (weights * np.where(counted[rows, None], same, kernel)).sum(axis=1)
        return self.column_.log_with_uniform_part(density, values)

    def base_measure(self) -> BaseMeasure:
        return "counting" if self.always_missing_ else self.column_.base_measure

    def check_complete(self, n_rows: int) -> None:
        check_count_of(self.donors_.size, "the number of donors_", 1, n_rows)

    def _blocks(self, given: Table) -> Iterator[tuple[Ints, Floats]]:
        """Yield blocks of rows with the probabilities of their donors."""
        step = max(_CELLS // self.donors_.size, 1)
        for first in range(0, given.n_rows, step):
            rows = np.arange(first, min(first + step, given.n_rows))
            yield rows, self.probabilities(given.take(rows))

    def _allowed(self, given: Table, within: Within | None, rows: Ints) -> Bools | float:
        if within is None:
            return 1.0
        low, high = (bound[rows, None] for bound in within.bounds(given.n_rows))
        return np.asarray((self.donors_ >= low) & (self.donors_ <= high))


def leave_one_out(design: Floats, y: Floats, counts: Floats) -> tuple[Floats, float]:
    """Return the coefficients without each row (step 2), and the R squared of all rows; NaN if it is undefined."""
    k = design.shape[1]
    length = np.sqrt((counts[:, None] * design**2).sum(axis=0))
    length[length == 0.0] = 1.0
    scaled = design / length
    ridge = np.append(1.0, np.full(k - 1, 1.0 + RIDGE))
    whole = scaled.T @ (counts[:, None] * scaled)
    product = scaled.T @ (counts * y)
    diagonal = np.arange(k)
    betas = np.empty((y.size, k))
    for first in range(0, y.size, max(_CELLS // k**2, 1)):
        rows = slice(first, first + max(_CELLS // k**2, 1))
        x, weight = scaled[rows], counts[rows]
        left = whole - weight[:, None, None] * x[:, :, None] * x[:, None, :]
        pivots = left[:, diagonal, diagonal] * ridge
        # for a column that is nonzero in the left-out row only: mice's substitute, on the scale of the column
        left[:, diagonal, diagonal] = np.where(pivots > 1e-12, pivots, _LEAST**0.25 / length**2)
        betas[rows] = _solve(left, (product - (weight * y[rows])[:, None] * x)[:, :, None])[:, :, 0]
    whole[diagonal, diagonal] *= ridge
    error = y - scaled @ _solve(whole, product)
    spread = float(counts @ (y - counts @ y / counts.sum()) ** 2)
    return betas / length, 1.0 - float(counts @ error**2) / spread if spread > 0.0 else np.nan


def _solve(left: Floats, right: Floats) -> Floats:
    """Return the solution of symmetric equations; the minimum norm solution if they are singular."""
    try:
        return np.asarray(np.linalg.solve(left, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(left, hermitian=True) @ right)


def power_of(r2: float) -> float:
    """Return kappa for an R squared (step 4)."""
    if not r2 >= 0.0:
        return 3.0
    return 100.0 if r2 >= 1.0 else min((50.0 * r2 / (1.0 - r2)) ** 0.375, 100.0)
