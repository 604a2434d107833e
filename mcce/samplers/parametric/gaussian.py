"""Conditionals of one joint Gaussian (shapr's approach "gaussian").

1. The design columns of the givens (`mcce.samplers.parametric.design`: numbers as they are, a dummy for every level but
   the first) and the target have the mean m and the covariance S of the training rows, with denominator n - 1 (n is the
   sum of the weights, if rows have some).
2. Given the columns g, the target t is normal with

       mean  m_t + S_tg S_gg^- (x_g - m_g),    variance  S_tt - S_tg S_gg^- S_gt,

   S_gg^- the Moore-Penrose inverse on the scale of correlations: collinear givens share what they say.
3. At least 1e-8 of the target's variance is left, so that a target which is a sum of others has a density. (shapr takes
   the nearest positive definite matrix, to the same end.)

S of fewer columns is a part of S of all. So numbers given numbers are conditionals of one and the same Gaussian, and a
chain of them has the same joint distribution in every visit sequence. Levels among the givens move the mean and leave
the covariance as it is (Olkin and Tate 1961, "Multivariate correlation models with mixed discrete and continuous
variables": their model, with effects of the levels that add up).
"""

from __future__ import annotations

import numpy as np
import scipy

from mcce.arrays import Floats
from mcce.samplers.parametric.norm import NormSampler
from mcce.soundness import FLOAT, check_array, check_finite
from mcce.table import Column, Feature, Table
from mcce.table.weights import deviation_of, mean_of

LEAST_SHARE = 1e-8
_RANK = 1e-9  # singular values below this share of the largest count as zero


class GaussianSampler(NormSampler):
    """The conditional of a joint Gaussian of all numbers, levels among the givens as dummies.

    1. Take mean and covariance of the givens and the target (`mcce.samplers.parametric.gaussian` has the formula).
    2. Draw from the normal distribution of the target given the row.
    3. Round to the decimals of the training values, if 12 or fewer write them all.

    Draws are new numbers and may lie outside the observed range; an integer dtype bounds them. Targets with levels are
    refused: give them a sampler of their own, as in the example.

    Attributes
    ----------
    mean_, covariance_ : of the design columns, then the target.
    coef_, sigma_ : of the conditional: coefficients, intercept first, and standard deviation.
    decimals_ : int or None

    Notes
    -----
    Up to a ridge and the denominator of the variance (n - 1 here, n less the number of coefficients there), this is
    `NormSampler`; take that one where the coefficients are many and the rows few. Density, supports and restricted
    draws are those of `NormSampler`, and so is what missing values do: a logistic regression says whether a target is
    missing, and a missing given has an indicator.

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
    proper = False
    random_state = 0

    mean_: Floats

    def __init__(self) -> None:
        pass

    def fit_complete(self, given: Table, x: Floats, target: Column) -> None:
        """Take the moments (step 1) and the target's conditional (steps 2 and 3)."""
        super().fit_complete(given, x, target)
        joint = np.column_stack([x, target.values])
        self.mean_ = mean_of(joint, target.weights)
        centred = joint - self.mean_
        counted = centred if target.weights is None else centred * target.weights[:, None]
        self.covariance_ = counted.T @ centred / max(target.total - 1, 1)
        self.estimate_ = self.coef_

    def check_complete(self, target: Feature, n_rows: int) -> None:
        """Refuse moments that are not of the design and the target."""
        super().check_complete(target, n_rows)
        check_array(self.mean_, "mean_", FLOAT, self.design_.n_columns + 1)
        check_finite(self.mean_, "mean_")
        check_finite(self.covariance_, "covariance_")

    def estimate(self, x: Floats, target: Column) -> None:
        """Find coefficients and standard deviation, without squaring the condition number of the covariance."""
        y, weights = target.values, target.weights
        mean, spread = mean_of(x, weights), deviation_of(x, weights)
        if np.ptp(y) == 0.0:  # rounding would leave a constant some variance
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
