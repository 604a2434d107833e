"""Bayesian linear regression with synthpop's ridge: the common part of `norm`, `normrank` and `pmm`.

With X = (1, design), n rows and k columns:

1. V = (X'X + 1e-5 diag(X'X))^-1, beta = V X'y, rss = |y - X beta|^2. The ridge handles exact collinearity.
2. sigma = sqrt(rss / (n - k - 1)).
3. `proper`: sigma* = sqrt(rss / chi2), chi2 with n - k degrees of freedom, and beta* ~ N(beta, sigma*^2 V)
   (Rubin 1987, "Multiple Imputation for Nonresponse in Surveys", p. 167).

With weights w, the rows of X and y are multiplied by sqrt(w), and n is the sum of the weights. The degrees of freedom
are at least 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy

from mcce.base.arrays import Floats
from mcce.exceptions import SamplerError
from mcce.rng import RowStreams
from mcce.samplers.base import BaseMeasure
from mcce.samplers.density import ColumnDensity
from mcce.samplers.parametric.regression import RegressionSampler
from mcce.samplers.smoothing import Smoother, Smoothing, check_smoothing
from mcce.samplers.summary import Summary, coefficient_table
from mcce.storage.fields import FLOAT, learned
from mcce.table import Column, Table

RIDGE = 1e-5


@dataclass(frozen=True)
class LinearFit:
    """Estimates of the regression, intercept first; `covariance` is V, to be multiplied by sigma squared."""

    beta: Floats
    sigma: float
    covariance: Floats
    rss: float
    root: Floats
    n_rows: float

    def draw(self, streams: RowStreams) -> tuple[Floats, float]:
        """Return a draw of the parameters from their posterior (step 3); `streams` has one stream per coefficient."""
        uniform = float(streams.uniform()[0])
        chi2 = float(scipy.special.chdtri(max(self.n_rows - self.beta.size, 1), 1.0 - uniform))
        sigma = float(np.sqrt(self.rss / chi2)) if self.rss > 0.0 else 0.0
        return self.beta + sigma * self.root @ streams.normal(), sigma


def fit_linear(x: Floats, y: Floats, weights: Floats | None = None) -> LinearFit:
    """Fit the regression of `y` on the design `x` (without intercept); no column of `x` is all zeros."""
    n, k = x.shape[0], x.shape[1] + 1
    design = np.column_stack([np.ones(n), x])
    total: float = n
    constant, varies = y[:1], np.ptp(y) > 0.0
    if weights is not None:
        scale = np.sqrt(weights)
        total, design, y = float(weights.sum()), design * scale[:, None], y * scale
    # the ridge as k more rows: a QR decomposition does not square the condition number
    length = np.sqrt((design**2).sum(axis=0))
    q, r = np.linalg.qr(np.vstack([design / length, np.sqrt(RIDGE) * np.eye(k)]))
    root = np.linalg.solve(r, np.eye(k)) / length[:, None]
    beta = root @ (q[:n].T @ y)
    if not varies:
        # the ridge would shrink a constant towards zero
        beta = np.concatenate([constant, np.zeros(k - 1)])
    rss = float(((y - design @ beta) ** 2).sum()) if varies else 0.0
    return LinearFit(beta, float(np.sqrt(rss / max(total - k - 1, 1))), root @ root.T, rss, root, total)


class LinearSampler(RegressionSampler):
    """A regression with normal errors; subclasses map its draws to values of the target."""

    handles = frozenset({"numeric"})
    keeps_constants = True
    has_standard_errors: ClassVar[bool] = True  # whether `covariance_` is that of the coefficients

    coef_: Floats = learned(FLOAT, "columns + 1", finite=True)
    sigma_: float = learned(float, least=0.0)
    estimate_: Floats = learned(FLOAT, "columns + 1", finite=True)
    covariance_: Floats = learned(FLOAT, "columns + 1", "columns + 1")

    def fit_linear(self, x: Floats, y: Floats, target: Column) -> LinearFit:
        """Estimate the regression; with `proper`, draw its parameters from their posterior."""
        fit = fit_linear(x, y, target.weights)
        self.estimate_, self.covariance_ = fit.beta, fit.covariance
        self.coef_, self.sigma_ = fit.beta, fit.sigma
        if self.proper:
            self.coef_, self.sigma_ = fit.draw(self.proper_streams(target, fit.beta.size))
        return fit

    def summary(self) -> Summary:
        """Return the estimated coefficients with their standard errors."""
        if self.always_missing_:
            return super().summary()
        names = ["const", *self.design_.columns]
        covariance = self.sigma_**2 * self.covariance_ if self.has_standard_errors else None
        return coefficient_table(names, self.estimate_, covariance, self.about())

    def about(self) -> dict[str, Any]:
        """Return the entries above the table of coefficients."""
        return {"Model": repr(self), "Residual sd": f"{self.sigma_:.6g}"}

    def predict(self, given: Table) -> Floats:
        """Return the linear predictor of each row."""
        return self.predict_with(self.coef_, given)

    def predict_with(self, coef: Floats, given: Table) -> Floats:
        """Return the linear predictor of each row with these coefficients, intercept first."""
        return self.design_.predict(given, coef[:1], coef[None, 1:])[:, 0]


class DonorRegression(LinearSampler):
    """A regression that draws training values, smoothed on request; a base class of `normrank` and `pmm`."""

    smoother_: Smoother | None = learned(Smoother, optional=True)
    column_: ColumnDensity = learned(ColumnDensity)

    def __init__(
        self,
        *,
        smoothing: Smoothing = None,
        formula: str | None = None,
        proper: bool = False,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(formula=formula, proper=proper, random_state=random_state)
        self.smoothing = smoothing

    def check_parameters(self) -> None:
        super().check_parameters()
        check_smoothing(self.smoothing, self)

    def read_margin(self, values: Floats, weights: Floats | None) -> None:
        """Learn the marginal density of the target, and its smoothing."""
        self.smoother_ = None if self.smoothing is None else Smoother.read(values, weights)
        self.column_ = ColumnDensity.of(values, weights)

    @property
    def restricts_by_rejection(self) -> bool:
        return self.smoother_ is not None

    def base_measure(self) -> BaseMeasure:
        if self.always_missing_:
            return "counting"
        self.refuse_smoothing()
        return self.column_.base_measure

    def refuse_smoothing(self) -> None:
        """Raise if the draws are smoothed: their density is not known."""
        if self.smoother_ is not None:
            raise SamplerError(f"{self!r} has no density; without smoothing it has one.")
