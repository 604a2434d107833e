"""Normal regressions of numbers: `norm` (of the values, or of their logarithm or root) and `normrank` (of their ranks).

With X = (1, design), n rows and k columns, as in synthpop:

1. V = (X'X + 1e-5 diag(X'X))^-1, beta = V X'y, rss = |y - X beta|^2. The ridge handles exact collinearity.
2. sigma = sqrt(rss / (n - k - 1)); the degrees of freedom are at least 1.
3. `proper`: sigma* = sqrt(rss / chi2), chi2 with n - k degrees of freedom, and beta* ~ N(beta, sigma*^2 V)
   (Rubin 1987, "Multiple Imputation for Nonresponse in Surveys", p. 167).
4. Draw from the normal distribution around the prediction, and transform back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import scipy

from mcce._utils import Floats, Ints
from mcce.exceptions import InputError, spell
from mcce.rng import RowStreams
from mcce.samplers.base import register_sampler
from mcce.samplers.design import RegressionSampler, constant_target
from mcce.samplers.distributions import Continuous, Distribution
from mcce.samplers.families import Family, Normal
from mcce.samplers.margin import Margin
from mcce.table import Column, Table

RIDGE = 1e-5
NEAREST = 1e-12  # distance from 0, where the slope of a root is infinite
FARTHEST = 1e100  # a logarithm far outside of the training rows overflows

Transform = Literal["log", "sqrt", "cuberoot"] | None
NORMAL = Normal()


# ------------------------------------------------------------------------------------------------------- the regression


@dataclass(frozen=True)
class LinearFit:
    """Estimates of the regression, intercept first.

    Attributes
    ----------
    beta, sigma, rss : see steps 1 and 2.
    root : a square root of V; the covariance of beta is sigma squared times V.
    n_rows : int
    """

    beta: Floats
    sigma: float
    rss: float
    root: Floats
    n_rows: int

    @property
    def covariance(self) -> Floats:
        """The matrix V."""
        return self.root @ self.root.T

    def draw(self, generator: np.random.Generator) -> tuple[Floats, float]:
        """Return coefficients and sigma drawn from their posterior (step 3)."""
        chi2 = generator.chisquare(max(self.n_rows - self.beta.size, 1))
        sigma = float(np.sqrt(self.rss / chi2))
        return self.beta + sigma * self.root @ generator.standard_normal(self.beta.size), sigma


def fit_linear(x: Floats, y: Floats) -> LinearFit:
    """Fit the regression of `y` on the design `x` (without intercept); no column of `x` is all zeros."""
    n, k = x.shape[0], x.shape[1] + 1
    design = np.column_stack([np.ones(n), x])
    # the ridge as k more rows: a QR decomposition does not square the condition number
    length = np.sqrt((design**2).sum(axis=0))
    q, r = np.linalg.qr(np.vstack([design / length, np.sqrt(RIDGE) * np.eye(k)]))
    root = np.linalg.solve(r, np.eye(k)) / length[:, None]
    if np.ptp(y) == 0.0:  # the ridge would shrink a constant towards zero
        return LinearFit(np.append(y[0], np.zeros(k - 1)), 0.0, 0.0, root, n)
    beta = root @ (q[:n].T @ y)
    rss = float(((y - design @ beta) ** 2).sum())
    return LinearFit(beta, float(np.sqrt(rss / max(n - k - 1, 1))), rss, root, n)


class LinearSampler(RegressionSampler):
    """A regression with normal errors; a base class. Subclasses map the normal distribution to values."""

    handles = frozenset({"numeric"})
    keeps_constants = True

    def fit_linear(self, x: Floats, y: Floats) -> None:
        """Estimate the regression; with `proper`, draw its parameters from their posterior."""
        self.estimate_ = fit_linear(x, y)
        self.coef_, self.sigma_ = self.estimate_.beta, self.estimate_.sigma
        if self.proper:
            self.coef_, self.sigma_ = self.estimate_.draw(self.generator())

    def predict(self, given: Table, coef: Floats | None = None) -> Floats:
        """Return the linear predictor of each row."""
        coef = self.coef_ if coef is None else coef
        return self.design_.predict(given, coef[:1], coef[None, 1:])[:, 0]

    def around_predictions(self, family: Family, given: Table, margin: Margin) -> Distribution:
        """Return the family with the prediction and sigma of each row."""
        if self.sigma_ == 0.0:
            return constant_target(margin, given.n_rows)
        return Continuous(family, (self.predict(given), np.full(given.n_rows, self.sigma_)), margin)


# ----------------------------------------------------------------------------------------------------------------- norm


@dataclass(frozen=True)
class TransformedNormal(Family):
    """A number whose logarithm or root is normal, truncated to values from `least`. Parameters: mean, sd of t(y).

    t(y) = log(y + shift), sqrt(y) or cbrt(y).
    """

    transform: str
    shift: float
    least: float

    def forward(self, y: Floats) -> Floats:
        """Return t(y); values below the domain are clipped to it."""
        if self.transform == "cuberoot":
            return np.cbrt(y)
        inside = np.maximum(y + self.shift, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(inside) if self.transform == "log" else np.sqrt(inside))

    def backward(self, z: Floats) -> Floats:
        """Return the number with t(y) = z."""
        with np.errstate(over="ignore"):
            y = np.exp(z) - self.shift if self.transform == "log" else z**2 if self.transform == "sqrt" else z**3
        return np.clip(y, self.least, FARTHEST)

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        z, distance = self.forward(y), np.log(np.maximum(np.abs(y + self.shift), NEAREST))
        log_slope = {
            "log": -distance,
            "sqrt": -np.log(2.0) - distance / 2.0,
            "cuberoot": -np.log(3.0) - distance * 2.0 / 3.0,
        }[self.transform]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_density = NORMAL.log_density(z, *parameters) + log_slope - np.log(self._mass_from(z, *parameters))
        return np.where((y >= self.least) & np.isfinite(z), log_density, -np.inf)

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        return self.mass(np.full(np.shape(y), -np.inf), y, *parameters)

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        first = NORMAL.cdf(self._low(u), *parameters)
        return self.backward(NORMAL.ppf(first + u * (1.0 - first), *parameters))

    def mass(self, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        first = np.maximum(self.forward(low), self._low(low))
        mass = NORMAL.mass(first, np.maximum(self.forward(high), first), *parameters)
        return np.where(high < self.least, 0.0, mass / np.maximum(self._mass_from(low, *parameters), 1e-300))

    def draw(self, rng: RowStreams, *parameters: Floats) -> Floats:
        if self._least_score == -np.inf:
            return self.backward(NORMAL.draw(rng, *parameters))
        return self.draw_between(rng, *np.full((2, len(rng)), [[self.least], [np.inf]]), *parameters)

    def draw_between(self, rng: RowStreams, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        first = np.maximum(self.forward(low), self._low(low))
        return self.backward(NORMAL.draw_between(rng, first, self.forward(high), *parameters))

    @property
    def _least_score(self) -> float:
        return -np.inf if self.least == -np.inf else float(self.forward(np.array([self.least]))[0])

    def _low(self, like: Floats) -> Floats:
        return np.full(np.shape(like), self._least_score)

    def _mass_from(self, like: Floats, *parameters: Floats) -> Floats:
        return NORMAL.mass(self._low(like), np.full(np.shape(like), np.inf), *parameters)


@register_sampler("norm")
class NormSampler(LinearSampler):
    """Normal linear regression (synthpop's `norm`).

    1. Regress the (transformed) target on the givens, with a slight ridge.
    2. Draw from the normal distribution around the prediction, transform back, and round to the column's grid.

    Draws are new numbers and may lie outside the observed range.

    Parameters
    ----------
    transform : "log", "sqrt", "cuberoot" or None
        Transformation of the target (synthpop's `lognorm`, `sqrtnorm`, `cubertnorm`). "log" and "sqrt" need numbers
        that are not negative, and draw only such numbers, without 0 if no training row has it.
    formula : str or None
        The design in R's notation, as in "age * sex + log(savings + 1)", read by formulaic; None: all givens.
    proper : bool
        Draw the parameters from their posterior once, at `fit`, instead of using the estimates.
    random_state : int or None
        Seed of that draw; a chain sets it if it is None.

    Attributes
    ----------
    coef_, sigma_ : coefficients, intercept first, and residual standard deviation used for draws; of the transformed
        target.
    estimate_ : the estimates, with `covariance` (divided by sigma squared).
    shift_ : float
        Constant added before the logarithm: half of the least positive value if some values are 0, else 0.

    References
    ----------
    Nowok, Raab and Dibben (2016), "synthpop: Bespoke Creation of Synthetic Data in R", Journal of Statistical
    Software 74 (11).

    Examples
    --------
    >>> import mcce
    >>> from mcce.samplers import NormSampler
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"salary": NormSampler(transform="log"), "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.sample(n=3)["salary"].dtype == loans.X["salary"].dtype
    True
    """

    def __init__(
        self,
        *,
        transform: Transform = None,
        formula: str | None = None,
        proper: bool = False,
        random_state: int | None = None,
    ) -> None:
        super().__init__(formula=formula, proper=proper, random_state=random_state)
        self.transform = transform

    def fit_design(self, x: Floats, target: Column, given: Table) -> None:
        """Regress the transformed target."""
        self.margin_ = Margin.fit(target.values, target.feature)
        self.shift_ = 0.0
        self.family_: Family = NORMAL
        values = target.values
        if self.transform is not None:
            self._check_domain(target)
            positive = values[values > 0.0]
            has_zero = positive.size < values.size
            if self.transform == "log" and has_zero:
                self.shift_ = 0.5 * float(positive.min()) if positive.size else 1.0
            grid = self.margin_.grid
            least = 0.0 if has_zero or grid is None else 0.5 * grid.step
            self.family_ = family = TransformedNormal(
                self.transform, self.shift_, -np.inf if self.transform == "cuberoot" else least
            )
            values = family.forward(values)
        self.fit_linear(x, values)

    def distribution(self, given: Table) -> Distribution:
        """Return the normal distribution of each row, transformed back."""
        return self.around_predictions(self.family_, given, self.margin_)

    def _check_domain(self, target: Column) -> None:
        if self.transform not in ("log", "sqrt", "cuberoot"):
            raise InputError(
                f"transform of NormSampler is {spell(self.transform)}; allowed: 'log', 'sqrt', 'cuberoot', None."
            )
        wrong = target.values[target.values < 0.0]
        if wrong.size and self.transform != "cuberoot":
            raise InputError(
                f"NormSampler with transform={self.transform!r} needs numbers that are not negative, and column "
                f"{spell(target.feature.name)} holds {wrong[0]:g} ({wrong.size} such of {target.values.size} rows); "
                "use transform='cuberoot', 'norm' or 'normrank'."
            )


# ------------------------------------------------------------------------------------------------------------- normrank


def normal_scores(values: Floats) -> Floats:
    """Return qnorm(rank / (n + 1)) with average ranks for ties."""
    return np.asarray(scipy.special.ndtri(pd.Series(values).rank().to_numpy() / (values.size + 1.0)))


@dataclass(frozen=True, eq=False)
class Ranks(Family):
    """The training value at the rank of a normal score: position pnorm(z) (n + 1), rounded, from 1 to n.

    Parameters: mean and standard deviation of the score. The density of a number without point mass is that of its
    score, times the slope of the scores, which is the density of the column over the standard normal one.
    """

    ascending: Floats
    margin: Margin

    def from_normal(self, z: Floats) -> Floats:
        """Return the training value at each score."""
        n = self.ascending.size
        return self.ascending[np.clip(np.rint(scipy.special.ndtr(z) * (n + 1)), 1, n).astype(np.int64) - 1]

    def score(self, values: Floats) -> Floats:
        """Return the normal score of each value, between those of its neighbours if it is no training value."""
        rank = 0.5 * (self._count(values, "left") + self._count(values, "right") + 1.0)
        return np.asarray(scipy.special.ndtri(rank / (self.ascending.size + 1.0)))

    def log_density(self, y: Floats, *parameters: Floats) -> Floats:
        z = self.score(y)
        with np.errstate(divide="ignore"):
            log_slope = np.log(self.margin.density(y)) - NORMAL.log_density(z, *np.array([[0.0], [1.0]]))
        return np.asarray(NORMAL.log_density(z, *parameters) + log_slope)

    def cdf(self, y: Floats, *parameters: Floats) -> Floats:
        return NORMAL.cdf(self._edge(y, "right"), *parameters)

    def below(self, y: Floats, *parameters: Floats) -> Floats:
        return NORMAL.cdf(self._edge(y, "left"), *parameters)

    def ppf(self, u: Floats, *parameters: Floats) -> Floats:
        return self.from_normal(NORMAL.ppf(u, *parameters))

    def mass(self, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        first = self._edge(low, "left")
        return NORMAL.mass(first, np.maximum(self._edge(high, "right"), first), *parameters)

    def draw(self, rng: RowStreams, *parameters: Floats) -> Floats:
        return self.from_normal(NORMAL.draw(rng, *parameters))

    def draw_between(self, rng: RowStreams, low: Floats, high: Floats, *parameters: Floats) -> Floats:
        scores = NORMAL.draw_between(rng, self._edge(low, "left"), self._edge(high, "right"), *parameters)
        most = self.ascending.size - 1  # a score may be rounded across an edge
        least = self.ascending[np.minimum(self._count(low, "left"), most)]
        greatest = self.ascending[np.maximum(self._count(high, "right") - 1, 0)]
        return np.clip(self.from_normal(scores), least, np.maximum(least, greatest))

    def _count(self, values: Floats, side: Literal["left", "right"]) -> Ints:
        return np.searchsorted(self.ascending, values, side=side)

    def _edge(self, values: Floats, side: Literal["left", "right"]) -> Floats:
        """Return the score at which the position passes the training values below (or up to) each value."""
        count, n = self._count(values, side), self.ascending.size
        edge = scipy.special.ndtri((count + 0.5) / (n + 1.0))
        return np.where(count == 0, -np.inf, np.where(count == n, np.inf, edge))


@register_sampler("normrank")
class NormRankSampler(LinearSampler):
    """Normal regression on ranks, which preserves the marginal distribution (synthpop's `normrank`).

    1. Compute the normal score z = qnorm(rank / (n + 1)) of each training value, with average ranks for ties.
    2. Regress the scores on the givens, with a slight ridge.
    3. Draw a score around the prediction; return the sorted training value at position pnorm(z) (n + 1), rounded.

    Parameters
    ----------
    formula, proper, random_state : see `NormSampler`

    Attributes
    ----------
    coef_, sigma_, estimate_ : as in `NormSampler`, of the scores.
    ranks_ : the map of scores to training values.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler={"salary": "normrank", "*": "cart"}, fixed=["age"], random_state=1).fit(loans.X)
    >>> bool(chain.sample(n=50)["salary"].isin(loans.X["salary"]).all())
    True
    """

    def fit_design(self, x: Floats, target: Column, given: Table) -> None:
        """Regress the normal scores of the target."""
        self.margin_ = Margin.fit(target.values, target.feature)
        self.ranks_ = Ranks(np.sort(target.values), self.margin_)
        self.fit_linear(x, normal_scores(target.values))

    def distribution(self, given: Table) -> Distribution:
        """Return the normal distribution of each row's score, mapped to training values."""
        return self.around_predictions(self.ranks_, given, self.margin_)
