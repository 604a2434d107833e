"""Normal linear regressions of numeric targets.

`norm` and `normrank` (synthpop) regress the values, or the normal scores of their ranks
(`mcce.samplers.parametric.linear`). `lognorm`, `sqrtnorm` and `cubertnorm` (synthpop) regress transformed values
(`mcce.samplers.parametric.transforms`). `norm.boot` (mice) takes the parameters of one bootstrap sample. `gaussian`
(shapr) is the conditional of one joint Gaussian:

1. The design columns of the givens (`mcce.samplers.parametric.design`: numbers as they are, a dummy for every level but
   the first) and the target have the mean m and the covariance S of the training rows, with denominator n - 1, n the
   number of rows or the sum of their weights.
2. Given the columns g, the target t is normal with

       mean  m_t + S_tg S_gg^- (x_g - m_g),    variance  S_tt - S_tg S_gg^- S_gt,

   S_gg^- the Moore-Penrose inverse on the scale of correlations, which handles collinear givens.
3. The conditional variance is at least 1e-8 of the target's variance, so that a target which is a sum of others has a
   density. (shapr takes the nearest positive definite matrix instead.)

Numeric columns given numeric columns are conditionals of one Gaussian, so a chain of them has the same joint
distribution for every visit sequence. Levels among the givens shift the mean and leave the covariance unchanged (Olkin
and Tate 1961, "Multivariate correlation models with mixed discrete and continuous variables", with additive effects).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.rng import RowStreams
from mcce.samplers.base import REACH, BaseMeasure, Within, supported_by
from mcce.samplers.density import ColumnDensity, require_density
from mcce.samplers.parametric.linear import DonorRegression, LinearSampler, fit_linear
from mcce.samplers.parametric.regression import RegressionSampler
from mcce.samplers.parametric.transforms import (
    Transform,
    backward,
    check_domain,
    check_transform,
    forward,
    log_slope,
    shift_of,
)
from mcce.samplers.registry import register_sampler
from mcce.samplers.smoothing import log_normal_mass, truncated_normal, truncated_normal_quantile
from mcce.storage.fields import FLOAT, check_count_of, learned, require
from mcce.table import Column, Feature, Table
from mcce.table.checks import LARGEST
from mcce.table.grid import MOST_DECIMALS, decimals_of
from mcce.table.weights import deviation_of, mean_of, place_of_copy, sorted_with_weights

_NEAREST = 1e-12  # distance from 0, where the slope of a root is infinite


@register_sampler("norm")
class NormSampler(LinearSampler):
    """Normal linear regression (synthpop's `norm`).

    1. Regress the (transformed) target on the givens, with a slight ridge (`mcce.samplers.parametric.linear`).
    2. Draw from the normal distribution around the prediction, and transform back.
    3. Round to the decimals of the training values, if they have at most 12.

    Draws are new numbers and may lie outside the observed range; an integer dtype bounds them.

    Parameters
    ----------
    formula : str or None
        The design in R's notation, as in "salary ~ age * sex + log(savings + 1)"; None: all givens as they are.
        `mcce.samplers.parametric.formula` lists the functions.
    transform : "log", "sqrt", "cuberoot" or None
        Transformation of the target (`mcce.samplers.parametric.transforms`); "log" and "sqrt" need non-negative values,
        and draw only such values.
    proper : bool
        Draw the parameters from their posterior once, at `fit`, instead of using the estimates.
    random_state : int or None
        Seed of that draw, combined with the chain's seed; a sampler fitted on its own uses this seed alone.

    Attributes
    ----------
    coef_, sigma_ : coefficients, intercept first, and residual standard deviation used for draws.
    estimate_, covariance_ : the estimated coefficients and V, their covariance divided by sigma squared.
    decimals_ : int or None
    shift_ : float
        Constant added before the logarithm: half of the least positive value if some values are 0, else 0.

    Notes
    -----
    Coefficients and residual standard deviation are on the scale of the transformed target. The normal distribution is
    truncated to the range that the target can have (`low_`, `high_`).

    `log_density` is the normal density times the slope of the transformation. Values with point mass
    (`mcce.samplers.density`) have the probability of being rounded to them, mixed with a small uniform component;
    otherwise rounding is ignored. A constant target has probability 1. A value is supported within 7 standard
    deviations of the prediction, if it has no more decimals than the training values.

    References
    ----------
    Nowok, Raab and Dibben (2016), "synthpop: Bespoke Creation of Synthetic Data in R", Journal of Statistical
    Software 74 (11).

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"salary": mcce.NormSampler(proper=True), "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.sample(n=3)["salary"].dtype == loans.X["salary"].dtype
    True
    """

    takes_weights = True
    dispensable = ("column_",)  # its knots are training values; draws do not need it, the density does
    discloses = "coefficients, {column_.atoms} frequent values of it, and {column_.knots} quantiles of it"

    decimals_: int | None = learned(int, least=0, most=MOST_DECIMALS, optional=True)
    column_: ColumnDensity | None = learned(ColumnDensity, optional=True)  # for densities only
    low_: float = learned(float, finite=False)
    high_: float = learned(float, finite=False)
    shift_: float = learned(float, least=0.0, default=0.0)

    transform: Transform

    def __init__(
        self,
        *,
        formula: str | None = None,
        transform: Transform = None,
        proper: bool = False,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(formula=formula, proper=proper, random_state=random_state)
        self.transform = transform

    def check_parameters(self) -> None:
        super().check_parameters()
        check_transform(self.transform, self)

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        check_domain(self.transform, target, self)
        self.decimals_ = decimals_of(target.values)
        self.column_ = ColumnDensity.of(target.values, target.weights)
        self.low_, self.high_ = _dtype_range(target.feature)
        if self.transform is not None:
            self.shift_ = shift_of(self.transform, target.values)
            least = -LARGEST
            if self.transform != "cuberoot":  # if all training values are positive, no draw is rounded to 0
                least = 0.0 if self.decimals_ is None or target.values.min() == 0.0 else 10.0**-self.decimals_
            self.low_, self.high_ = max(self.low_, least), min(self.high_, LARGEST)
        self.estimate(given, x, replace(target, values=self._forward(target.values)))

    def estimate(self, given: Table, x: Floats, target: Column) -> None:
        """Estimate the coefficients and the standard deviation of an already transformed target."""
        self.fit_linear(x, target.values, target)

    def deviation(self, given: Table) -> Floats | float:
        """Return the standard deviation of each row's draw before rounding."""
        return self.sigma_

    def sample_complete(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        """Draw and round (steps 2 and 3); restricted draws are truncated to values that round to allowed ones."""
        mean, sd = self.predict(given), self.deviation(given)
        if within is None and np.isinf(self.low_):
            return self._rounded(mean + sd * rng.normal())
        low, high = self._allowed(within or Within(), given.n_rows)
        possible = (low <= high) & (low < np.inf) & (high > -np.inf)
        low, high = np.where(possible, low, -np.inf), np.where(possible, high, np.inf)
        if self.sigma_ == 0.0:
            drawn = self._rounded(self._backward(mean))
            return np.where(possible & (drawn >= low) & (drawn <= high), drawn, np.nan)
        drawn = truncated_normal(mean, sd, *self._cell(low, high), rng.uniform())
        return np.where(possible, np.clip(self._rounded(self._backward(drawn)), low, high), np.nan)

    def probability_within(self, given: Table, within: Within) -> Floats:
        """Return the probability of being rounded to an allowed value."""
        return np.exp(self.log_mass_complete(given, within))

    def log_mass_complete(self, given: Table, within: Within, drawn: Floats | None = None) -> Floats:
        """Return the log of this mass, far out in the tails too."""
        low, high = self._allowed(within, given.n_rows)
        if self.sigma_ == 0.0:
            always = self._rounded(self._backward(self.predict(given)))
            return np.where((always >= low) & (always <= high), 0.0, -np.inf)
        allowed = self._log_normal_mass(given, low, np.maximum(low, high))
        return np.where(low <= high, allowed - self._log_whole(given), -np.inf)

    def quantiles_complete(self, given: Table, u: Floats) -> Floats:
        """Return quantiles of the normal distribution, rounded (step 3)."""
        mean = self.predict(given)
        if self.sigma_ == 0.0:
            return self._rounded(self._backward(mean))
        low, high = self._allowed(Within(), given.n_rows)
        drawn = truncated_normal_quantile(mean, self.deviation(given), *self._cell(low, high), u)
        return np.clip(self._rounded(self._backward(drawn)), low, high)

    def supports_complete(self, given: Table, values: Floats) -> Bools:
        """Return whether each value is within 7 standard deviations of the prediction and on the grid of decimals."""
        mean, reach = self.predict(given), REACH * self.deviation(given)
        unit = 10.0 ** -(12.0 if self.decimals_ is None else self.decimals_)
        near = (self._forward(values + unit) >= mean - reach) & (self._forward(values - unit) <= mean + reach)
        supported: Bools = near & (values >= self.low_) & (values <= self.high_) & (self._rounded(values) == values)
        return supported

    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log normal density; for values with point mass, the log probability of being rounded to them."""
        mean, sd = self.predict(given), self.deviation(given)
        if self.sigma_ == 0.0:
            return np.where(self._rounded(values) == self._rounded(self._backward(mean)), 0.0, -np.inf)
        z = (self._forward(values) - mean) / sd
        density = np.asarray(-0.5 * z**2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi))
        whole = 0.0 if np.isinf(self.low_) else self._log_whole(given)
        if self.transform is not None:
            density += log_slope(self.transform, values, self.shift_, max(self._half, _NEAREST))
        density = np.where((values >= self.low_) & (values <= self.high_), density - whole, -np.inf)
        column = require_density(self.column_, self)
        if not column.atoms.size:
            return density
        mass = self._log_normal_mass(given, values, values) - whole
        if column.base_measure == "counting":  # new rounded values have point mass, too
            density = np.where(self._rounded(values) == values, mass, -np.inf)
        density = np.where(column.has_mass(values), mass, density)
        return column.log_with_uniform_part(np.exp(density), values)

    def base_measure(self) -> BaseMeasure:
        if self.always_missing_ or self.sigma_ == 0.0:
            return "counting"
        return require_density(self.column_, self).base_measure

    def check_complete(self, n_rows: int) -> None:
        require(self.low_ < self.high_, "low_ is not below high_")

    def _forward(self, values: Floats) -> Floats:
        return forward(self.transform, values, self.shift_)

    def _backward(self, values: Floats) -> Floats:
        return backward(self.transform, values, self.shift_)

    def _cell(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the interval of transformed values that are rounded to a value from low to high."""
        return self._forward(low - self._half), self._forward(high + self._half)

    def _log_normal_mass(self, given: Table, low: Floats, high: Floats) -> Floats:
        """Return the log probability of being rounded to a value from low to high."""
        mean, sd = self.predict(given), self.deviation(given)
        first, last = self._cell(low, high)
        return log_normal_mass((first - mean) / sd, (last - mean) / sd)

    def _log_whole(self, given: Table) -> Floats:
        """Return the log probability of the range of the target."""
        return self._log_normal_mass(given, *self._allowed(Within(), given.n_rows))

    @property
    def _half(self) -> float:
        """Half of the step between rounded values."""
        return 0.0 if self.decimals_ is None else 0.5 * 10.0**-self.decimals_

    def _allowed(self, within: Within, n_rows: int) -> tuple[Floats, Floats]:
        """Return the least and the greatest rounded value that is allowed and fits the dtype."""
        low, high = within.bounds(n_rows)
        return self._inwards(np.maximum(low, self.low_), np.minimum(high, self.high_))

    def _rounded(self, values: Floats) -> Floats:
        # adding 0 turns -0.0 into 0.0
        return values if self.decimals_ is None else np.round(values, self.decimals_) + 0.0

    def _inwards(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the least and the greatest rounded value inside [low, high]."""
        if self.decimals_ is None:
            return low, high
        unit = 10.0**-self.decimals_
        lowest, highest = self._rounded(low), self._rounded(high)
        lowest = np.where(lowest < low, self._rounded(lowest + unit), lowest)
        return lowest, np.where(highest > high, self._rounded(highest - unit), highest)


class _TransformedSampler(NormSampler):
    """`NormSampler` with one transformation; a base class, not a sampler."""

    def __init__(self, *, formula: str | None = None, proper: bool = False, random_state: int | None = 0) -> None:
        RegressionSampler.__init__(self, formula=formula, proper=proper, random_state=random_state)

    def __init_subclass__(cls) -> None:
        """Add the parameters to the docstring."""
        cls.__doc__ = (cls.__doc__ or "").replace("    Examples\n", f"{_PARAMETERS}\n    Examples\n", 1)


_PARAMETERS = """\
    Parameters
    ----------
    formula, proper, random_state : see `NormSampler`

    See Also
    --------
    NormSampler : attributes, density and restricted draws; its parameter `transform` selects the same transformation.
"""


@register_sampler("lognorm")
class LogNormSampler(_TransformedSampler):
    """Normal regression of the logarithm (synthpop's `lognorm`), for non-negative values.

    If some training values are 0, half of the least positive one is added before the logarithm. Draws are non-negative;
    synthpop's can be as low as minus that half.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler={"salary": "lognorm", "*": "cart"}, fixed=["age"], random_state=1).fit(loans.X)
    >>> bool((chain.sample(n=50)["salary"] > 0).all())
    True
    """

    numbers = "positive"
    transform = "log"


@register_sampler("sqrtnorm")
class SqrtNormSampler(_TransformedSampler):
    """Normal regression of the square root (synthpop's `sqrtnorm`), for non-negative values.

    The normal distribution of the root is truncated at 0. (synthpop also squares negative draws.)

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler={"salary": "sqrtnorm", "*": "cart"}, fixed=["age"], random_state=1).fit(loans.X)
    >>> bool((chain.sample(n=50)["salary"] >= 0).all())
    True
    """

    numbers = "positive"
    transform = "sqrt"


@register_sampler("cubertnorm")
class CubertNormSampler(_TransformedSampler):
    """Normal regression of the cube root (synthpop's `cubertnorm`), for values of both signs.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"salary": "cubertnorm", "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(loans.X)
    >>> chain.sample(n=3).shape
    (3, 10)
    """

    transform = "cuberoot"


@register_sampler("norm.boot")
class NormBootSampler(NormSampler):
    """Normal regression with the parameters of one bootstrap sample (mice's `norm.boot`).

    1. Draw a bootstrap sample of the training rows, once at `fit`.
    2. Estimate coefficients and residual standard deviation from this sample; draw as `NormSampler` does.

    Parameters
    ----------
    formula, transform, random_state : see `NormSampler`

    Attributes
    ----------
    coef_, sigma_ : estimates from the bootstrap sample. A design column that is constant there has coefficient 0.
    estimate_, covariance_ : of all training rows.

    See Also
    --------
    NormSampler : further attributes, density and restricted draws; its ``proper=True`` draws from the posterior.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"salary": "norm.boot", "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(loans.X)
    >>> chain.sample(n=3).shape
    (3, 10)
    """

    proper = False

    def __init__(
        self, *, formula: str | None = None, transform: Transform = None, random_state: int | None = 0
    ) -> None:
        self.formula = formula
        self.transform = transform
        self.random_state = random_state

    def estimate(self, given: Table, x: Floats, target: Column) -> None:
        """Fit to all rows, then to the bootstrap sample (steps 1 and 2)."""
        super().estimate(given, x, target)
        rows = self.bootstrap(target)
        varies = np.append(True, np.ptp(x[rows], axis=0) > 0.0)
        fit = fit_linear(x[rows][:, varies[1:]], target.values[rows])
        self.coef_, self.sigma_ = np.zeros(varies.size), fit.sigma
        self.coef_[varies] = fit.beta


@register_sampler("normrank")
class NormRankSampler(DonorRegression):
    """Normal regression on ranks, which preserves the marginal distribution (synthpop's `normrank`).

    1. Compute the normal score z = qnorm(rank / (n + 1)) of each training value, with average ranks for ties.
    2. Regress the scores on the givens, with a slight ridge (`mcce.samplers.parametric.linear`).
    3. Draw a score around the prediction; its position is pnorm(z) (n + 1), rounded, from 1 to n.
    4. Return the sorted training value at that position, smoothed on request.

    Parameters
    ----------
    smoothing : "density" or None
        Kernel smoothing of the drawn values (`mcce.samplers.smoothing`: Sheather-Jones bandwidth, observed range).
    formula, proper, random_state : see `NormSampler`

    Attributes
    ----------
    coef_, sigma_, estimate_, covariance_ : as in `NormSampler`, on the scale of the scores.
    sorted_ : the training values in ascending order.
    upto_ : cumulative sums of their weights; None without weights. Positions count copies.

    Notes
    -----
    `log_density` of a value with point mass is its log probability. For other values it is a surrogate: the kernel
    density of the margin times the density ratio of the score and a standard normal variable. Both are mixed with a
    small uniform component (`mcce.samplers.density`). Restricted draws truncate the normal distribution of the score.
    Smoothed draws have no density, and are redrawn until they are allowed.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler={"salary": "normrank", "*": "cart"}, fixed=["age"], random_state=1).fit(loans.X)
    >>> bool(chain.sample(n=50)["salary"].isin(loans.X["salary"]).all())
    True
    """

    takes_weights = True
    discloses = "{sorted_} training values of it"

    sorted_: Floats = learned(FLOAT, "values", rising="weakly", filled=True)
    upto_: Floats | None = learned(FLOAT, "values", above=0.0, rising=True, optional=True, default=None)

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        """Regress the normal scores (steps 1 and 2)."""
        self.sorted_, weights = sorted_with_weights(target.values, target.weights)
        if weights is not None:
            self.upto_ = np.cumsum(weights)
        self.fit_linear(x, normal_scores(target.values, target.weights), target)
        self.read_margin(self.sorted_, weights)

    def sample_complete(self, given: Table, rng: RowStreams, within: Within | None) -> Floats:
        """Draw a score and map it back (steps 3 and 4)."""
        if self.smoother_ is not None:
            return self.smoother_.smooth(self._at(self.predict(given) + self.sigma_ * rng.normal()), rng)
        mean = self.predict(given)
        if within is None:
            return self._at(mean + self.sigma_ * rng.normal())
        low, high = within.bounds(given.n_rows)
        first, after = np.searchsorted(self.sorted_, low), np.searchsorted(self.sorted_, high, side="right")
        possible = first < after
        first, after = np.where(possible, first, 0), np.where(possible, after, self.sorted_.size)
        if self.sigma_ == 0.0:
            drawn = self._at(mean)
            return np.where(possible & (drawn >= low) & (drawn <= high), drawn, np.nan)
        edges = self._edges()
        scores = truncated_normal(mean, self.sigma_, edges[first], edges[after], rng.uniform())
        position = np.clip(self._position(scores), first, after - 1)
        return np.where(possible, self.sorted_[position], np.nan)

    def probability_within(self, given: Table, within: Within) -> Floats:
        """Return the mass of the allowed training values."""
        return np.exp(self.log_mass_complete(given, within))

    def log_mass_complete(self, given: Table, within: Within, drawn: Floats | None = None) -> Floats:
        """Return the log of this mass, far out in the tails too."""
        return self._log_mass(given, *within.bounds(given.n_rows))

    def quantiles_complete(self, given: Table, u: Floats) -> Floats:
        """Return the training value at the position of each quantile (step 4)."""
        return self._at(self.predict(given) + self.sigma_ * scipy.special.ndtri(u))

    @property
    def n_ranked(self) -> int:
        return self.sorted_.size

    def supports_complete(self, given: Table, values: Floats) -> Bools:
        """Return whether each value is within the local spacing of a training value that can be drawn.

        With smoothing: whether it is in the observed range and within the reach of a kernel.
        """
        if self.smoother_ is not None:
            return self.smoother_.supports(self.sorted_, values)
        if self.sigma_ == 0.0:
            return np.asarray(self._at(self.predict(given)) == values)
        lowest, highest = (self._at(self.predict(given) + end * self.sigma_) for end in (-REACH, REACH))
        weights = None if self.upto_ is None else np.diff(self.upto_, prepend=0.0)
        near = supported_by(self.sorted_, values, is_number=True, weights=weights)
        return np.asarray(near & (values >= lowest) & (values <= highest))

    def log_density_complete(self, given: Table, values: Floats) -> Floats:
        """Return the log probability of each value with point mass, the log density of other values."""
        self.refuse_smoothing()
        mass = np.exp(self._log_mass(given, values, values))
        if self.sigma_ == 0.0:
            return self.column_.log_with_uniform_part(mass, values)
        below, density = self.column_.margin(values)
        least = 0.5 / (self._total + 1)
        score = scipy.special.ndtri(np.clip(below, least, 1.0 - least))
        residual = (score - self.predict(given)) / self.sigma_
        ratio = np.exp(0.5 * score**2 - 0.5 * residual**2) / self.sigma_
        if self.column_.base_measure == "mixed":
            density = density * self._between_atoms(given)
        return self.column_.log_with_uniform_part(
            np.where(self.column_.has_mass(values), mass, density * ratio), values
        )

    def _between_atoms(self, given: Table) -> Floats:
        """Return the factor that normalises the density of values without point mass.

        Draws use positions and the density a smoothed margin, so the two differ slightly in the mass between atoms.
        """
        atoms, mean = self.column_.atoms, self.predict(given)
        before = self.column_.margin(atoms)[0]
        ends = scipy.special.ndtri(np.clip([before, before + self.column_.shares], 0.0, 1.0))
        drawn, in_margin = np.zeros(mean.size), np.zeros(mean.size)
        for atom, low, high in zip(atoms, *ends):
            at = np.full(mean.size, atom)
            drawn += np.exp(self._log_mass(given, at, at))
            in_margin += np.exp(log_normal_mass((low - mean) / self.sigma_, (high - mean) / self.sigma_))
        left = 1.0 - in_margin
        return np.divide(np.maximum(1.0 - drawn, 0.0), left, out=np.zeros(mean.size), where=left > 0.0)

    def check_complete(self, n_rows: int) -> None:
        check_count_of(self.sorted_.size, "the number of sorted_", 1, n_rows)

    def _log_mass(self, given: Table, low: Floats, high: Floats) -> Floats:
        """Return the log probability of the training values from low to high."""
        mean = self.predict(given)
        first, after = np.searchsorted(self.sorted_, low), np.searchsorted(self.sorted_, high, side="right")
        if self.sigma_ == 0.0:
            drawn = self._at(mean)
            mass = np.where((drawn >= low) & (drawn <= high), 0.0, -np.inf)
        else:
            edges = self._edges()
            mass = log_normal_mass((edges[first] - mean) / self.sigma_, (edges[after] - mean) / self.sigma_)
        return np.where(first < after, mass, -np.inf)

    def _position(self, scores: Floats) -> Ints:
        """Return the position of each score among the sorted values, from 0."""
        n = self._total
        if self.upto_ is None:
            return (np.clip(np.rint(scipy.special.ndtr(scores) * (n + 1)), 1, n) - 1).astype(np.int64)
        return place_of_copy(self.upto_, scipy.special.ndtr(scores) * (n + 1) - 0.5)  # zero-based, not yet rounded

    def _at(self, scores: Floats) -> Floats:
        return self.sorted_[self._position(scores)]

    def _edges(self) -> Floats:
        """Return the scores at which the position changes: entry j is the lower end of position j."""
        n = self._total
        before = np.arange(1, n) if self.upto_ is None else self.upto_[:-1]
        inner = scipy.special.ndtri((before + 0.5) / (n + 1))
        return np.concatenate([[-np.inf], inner, [np.inf]])

    @property
    def _total(self) -> float:
        """Number of training values, or the sum of their weights."""
        return self.sorted_.size if self.upto_ is None else float(self.upto_[-1])


def normal_scores(values: Floats, weights: Floats | None = None) -> Floats:
    """Return qnorm(rank / (n + 1)) with average ranks for ties; a value of weight w counts as w tied values."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    total: float = values.size
    if weights is not None:
        count, total = np.bincount(place.ravel(), weights), float(weights.sum())
    rank = (np.cumsum(count) - (count - 1) / 2.0)[place]
    return np.asarray(scipy.special.ndtri(rank / (total + 1.0)))


def _dtype_range(feature: Feature) -> tuple[float, float]:
    """Return the range of an integer dtype other than int64; else infinite bounds."""
    dtype = getattr(feature.dtype, "numpy_dtype", feature.dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and dtype != np.int64:
        return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    return -np.inf, np.inf


LEAST_SHARE = 1e-8
_RANK = 1e-9  # relative to the largest: smaller singular values count as zero


@register_sampler("gaussian")
class GaussianSampler(NormSampler):
    """The conditional of a joint Gaussian of all numbers, with dummies for levels among the givens.

    1. Estimate mean and covariance of the givens and the target (`mcce.samplers.parametric.norm` has the formula).
    2. Draw from the conditional normal distribution of the target, and round as `NormSampler` does.

    Targets with levels need another sampler, as in the example.

    Attributes
    ----------
    mean_, covariance_ : of the design columns, then the target.
    coef_, sigma_ : of the conditional: coefficients, intercept first, and standard deviation.
    decimals_ : int or None

    Notes
    -----
    Apart from the ridge and the denominator of the variance (n - 1 here, n less the number of coefficients there), this
    is `NormSampler`; prefer that one with many coefficients and few rows. Density, supports, restricted draws and the
    treatment of missing values are those of `NormSampler`.

    References
    ----------
    Aas, Jullum and Løland (2021), "Explaining individual predictions when features are dependent: more accurate
    approximations to Shapley values", Artificial Intelligence 298, section 3.1.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> samplers = {"salary": "gaussian", "savings": "gaussian", "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=samplers, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.sample(n=3).shape
    (3, 10)
    """

    keeps_constants = False
    has_standard_errors = False
    proper = False
    random_state = 0
    transform = None

    mean_: Floats = learned(FLOAT, "columns + 1", finite=True)
    covariance_: Floats = learned(FLOAT, "columns + 1", "columns + 1", finite=True)

    def __init__(self) -> None:
        pass

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        """Estimate the moments and the conditional of the target (step 1)."""
        super().fit_complete(given, x, target)
        joint = np.column_stack([x, target.values])
        self.mean_ = mean_of(joint, target.weights)
        centred = joint - self.mean_
        counted = centred if target.weights is None else centred * target.weights[:, None]
        self.covariance_ = counted.T @ centred / max(target.total - 1, 1)
        self.estimate_ = self.coef_

    def estimate(self, given: Table, x: Floats, target: Column) -> None:
        """Estimate coefficients and standard deviation by least squares, which does not square the condition number."""
        y, weights = target.values, target.weights
        mean, spread = mean_of(x, weights), deviation_of(x, weights)
        if np.ptp(y) == 0.0:  # rounding would give a constant a positive variance
            self.coef_, self.sigma_ = np.concatenate([y[:1], np.zeros(mean.size)]), 0.0
            return
        middle = float(mean_of(y, weights))
        centred, columns = y - middle, (x - mean) / spread
        if weights is not None:
            centred, columns = centred * np.sqrt(weights), columns * np.sqrt(weights)[:, None]
        scaled = scipy.linalg.lstsq(columns, centred, cond=_RANK)[0] if mean.size else mean
        left = float(((centred - columns @ scaled) ** 2).sum())
        variance = max(left, LEAST_SHARE * float((centred**2).sum())) / max(target.total - 1, 1)
        slopes = scaled / spread
        self.coef_, self.sigma_ = np.concatenate([[middle - mean @ slopes], slopes]), float(np.sqrt(variance))
