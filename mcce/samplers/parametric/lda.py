"""Linear discriminant analysis as a conditional of levels.

Written by hand, because scikit-learn's LinearDiscriminantAnalysis takes no weights, and the denominator of its
covariance depends on its version.
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

    1. Take the design columns as normal within each level, with means m_k, shares p_k of the rows, and one covariance
       matrix S for all levels, with denominator n less the number of levels.
    2. log p(level) / p(first level) is then intercept + coef x, with coef = S^- (m_k - m_0) and
       intercept = log(p_k / p_0) - (m_k' S^- m_k - m_0' S^- m_0) / 2; S^- is the Moore-Penrose inverse on the scale of
       correlations.
    3. Draw a level by its probability.

    Parameters
    ----------
    formula : str or None
        The design in R's notation; None: all givens as they are. `mcce.samplers.parametric.formula` has the functions.
    proper : bool
        Fit to a bootstrap of the training rows.
    random_state : int or None
        Seed of the bootstrap, beside the chain's own; a sampler that is fitted alone has this one only.

    Attributes
    ----------
    model_ : intercept and coefficients, a row for every level that occurs but the first; None if only one does.
    shift_, scale_ : column means, and standard deviations inside the levels, which the coefficients belong to.
    classes_ : codes of the levels that occur; the first is the base.

    Notes
    -----
    A direction without spread inside the levels is left out, where `MASS::lda` stops with an error. So a given that
    determines the level is not used: take a tree or `LogregSampler` then. With a single row of each level the
    probabilities are the levels' shares.

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
        """Find the coefficients (steps 1 to 3)."""
        n_classes = self.classes_.size
        counted = np.ones(codes.size) if weights is None else weights
        freedom = max(float(counted.sum()) - n_classes, 1.0)  # as many levels as rows: all that follows is 0
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
