"""Linear discriminant analysis as a conditional of levels.

Implemented here because scikit-learn's LinearDiscriminantAnalysis takes no weights, and the denominator of its
covariance depends on the version.
"""

from __future__ import annotations

import numpy as np
import scipy

from mcce.base.arrays import Bools, Floats, Ints
from mcce.samplers.parametric.glm import Multinomial
from mcce.samplers.parametric.logistic import LevelSampler
from mcce.samplers.registry import register_sampler
from mcce.table import Column
from mcce.table.weights import mean_of


@register_sampler("lda")
class LdaSampler(LevelSampler):
    """Linear discriminant analysis (mice's `lda`, that is `MASS::lda`).

    1. Model the design columns as normal within each level, with means m_k, level shares p_k, and one covariance matrix
       S for all levels, with denominator n less the number of levels.
    2. log p(level) / p(first level) is then intercept + coef x, with coef = S^- (m_k - m_0) and
       intercept = log(p_k / p_0) - (m_k' S^- m_k - m_0' S^- m_0) / 2; S^- is the Moore-Penrose inverse on the scale of
       correlations.
    3. Draw a level by its probability.

    Parameters
    ----------
    formula : see `NormSampler`
    proper, random_state : see `PolyregSampler`

    Attributes
    ----------
    model_ : intercept and coefficients, a row for every observed level but the first; None if only one level occurs.
    shift_, scale_ : means and within-level standard deviations of the columns, by which they are standardised.
    classes_ : codes of the observed levels; the first is the base.

    Notes
    -----
    A direction without within-level variance is dropped; `MASS::lda` stops with an error there. So a given that
    determines the level is not used; use a tree or `LogregSampler` in that case. With a single row per level the
    probabilities are the shares of the levels.

    References
    ----------
    Venables and Ripley (2002), "Modern Applied Statistics with S", section 12.1.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler={"employment": "lda", "*": "cart"}, fixed=["age"], random_state=1).fit(loans.X)
    >>> set(chain.sample(n=50)["employment"]) <= set(loans.X["employment"])
    True
    """

    def fit_classes(self, x: Floats, codes: Ints, varies: Bools, target: Column, weights: Floats | None = None) -> None:
        """Estimate the coefficients (steps 1 and 2)."""
        n_classes = self.classes_.size
        counted = np.ones(codes.size) if weights is None else weights
        freedom = max(float(counted.sum()) - n_classes, 1.0)  # with as many levels as rows, the covariance is 0
        member = (codes[:, None] == np.arange(n_classes)) * counted[:, None]
        share = member.sum(axis=0)
        self.shift_ = mean_of(x, weights)
        means = member.T @ (x - self.shift_) / share[:, None]
        within = x - self.shift_ - means[codes]
        spread = np.sqrt(counted @ within**2 / freedom)
        self.scale_ = np.where(spread > 1e-9 * np.ptp(x, axis=0), spread, 1.0) if x.shape[1] else spread
        means, within = means / self.scale_, within / self.scale_ * (self.scale_ == spread)
        covariance = within.T @ (counted[:, None] * within) / freedom
        solved = means @ scipy.linalg.pinvh(covariance, rtol=1e-9) if x.shape[1] else means
        heights = np.log(share) - 0.5 * (solved * means).sum(axis=1)
        self.model_ = Multinomial(heights[1:] - heights[0], solved[1:] - solved[0])
