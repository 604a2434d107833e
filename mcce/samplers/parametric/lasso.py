"""Regressions with an L1 penalty, chosen by cross-validation: `lasso.norm` and `lasso.logreg`, as in mice.

1. Scale the design columns to standard deviation 1.
2. Choose the penalty by cross-validation, and fit with it: scikit-learn's LassoCV or LogisticRegressionCV.
3. Draw as `norm` and `polyreg` do.

mice calls `glmnet::cv.glmnet`: the same model with other folds and another grid of penalties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.base.threads import without_warning
from mcce.exceptions import SamplerError
from mcce.samplers.parametric.glm import Multinomial
from mcce.samplers.parametric.linear import fit_linear
from mcce.samplers.parametric.logistic import LevelSampler
from mcce.samplers.parametric.norm import NormSampler
from mcce.samplers.parametric.transforms import Transform
from mcce.samplers.registry import register_sampler
from mcce.storage.fields import learned
from mcce.table import Column, Table
from mcce.table.weights import deviation_of

_MOST_ITERATIONS = 10_000


@register_sampler("lasso.norm")
class LassoNormSampler(NormSampler):
    """Normal regression with an L1 penalty (mice's `lasso.norm`).

    1. Scale the design columns; choose the penalty by cross-validation (scikit-learn's LassoCV).
    2. sigma = sqrt(rss / (n - k)), k the number of nonzero coefficients including the intercept.
    3. Draw from the normal distribution around the prediction, as `NormSampler` does.

    Parameters
    ----------
    n_folds : int
        Folds of the cross-validation.
    formula, transform : see `NormSampler`
    proper : bool
        Fit to a bootstrap sample of the training rows, as mice always does.
    random_state : int or None
        Seed of the folds and the bootstrap; see `NormSampler`.

    Attributes
    ----------
    coef_, sigma_ : coefficients, intercept first, and residual standard deviation.
    estimate_ : the same coefficients; standard errors are not estimated (`covariance_` is NaN).
    alpha_ : float
        The penalty, in units of the scaled columns.

    See Also
    --------
    NormSampler : further attributes, density and restricted draws.

    References
    ----------
    Reid, Tibshirani and Friedman (2016), "A study of error variance estimation in Lasso regression", Statistica
    Sinica 26 (step 2; mice divides by n).

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"salary": "lasso.norm", "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(loans.X)
    >>> chain.sample(n=3).shape
    (3, 10)
    """

    alpha_: float = learned(float, least=0.0, default=0.0)

    def __init__(
        self,
        *,
        n_folds: int = 5,
        formula: str | None = None,
        transform: Transform = None,
        proper: bool = False,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(formula=formula, transform=transform, proper=proper, random_state=random_state)
        self.n_folds = n_folds

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.n_folds, "n_folds", self, 2)

    def estimate(self, given: Table, x: Floats, target: Column) -> None:
        """Choose the penalty and fit (steps 1 and 2)."""
        from sklearn.linear_model import LassoCV
        from sklearn.model_selection import KFold

        y, weights = target.values, target.weights
        if self.proper:
            rows = self.bootstrap(target)
            x, y, weights = x[rows], y[rows], None
        scale = deviation_of(x, weights) if x.shape[1] else np.zeros(0)
        varies = scale > 0.0
        self.covariance_ = np.full((x.shape[1] + 1, x.shape[1] + 1), np.nan)
        self.coef_ = np.zeros(x.shape[1] + 1)
        if np.ptp(y) == 0.0 or not varies.any() or y.size < 2 * self.n_folds:
            fit = fit_linear(x[:, :0], y, weights)
            self.coef_[0], self.sigma_, self.estimate_ = fit.beta[0], fit.sigma, self.coef_
            return
        seed = self.fit_seed(self.random_state) % 2**32
        folds = KFold(self.n_folds, shuffle=True, random_state=seed)
        lasso = LassoCV(cv=folds, max_iter=_MOST_ITERATIONS, random_state=seed)
        with without_warning("Objective did not converge"):  # the chosen penalty is checked below
            lasso.fit(x[:, varies] / scale[varies], y, sample_weight=weights)
        if lasso.n_iter_ >= _MOST_ITERATIONS:
            raise SamplerError(
                f"{self!r} for {target.feature.name!r} did not converge in {_MOST_ITERATIONS:,} iterations with the "
                f"penalty {lasso.alpha_:.3g}. Drop collinear givens by predictors=, or use 'norm', which has a ridge."
            )
        self.alpha_ = float(lasso.alpha_)
        self.coef_[1:][varies] = lasso.coef_ / scale[varies]
        self.coef_[0] = lasso.intercept_
        self.estimate_ = self.coef_
        counted = np.ones(y.size) if weights is None else weights
        rss = float(counted @ (y - self.coef_[0] - x @ self.coef_[1:]) ** 2)
        self.sigma_ = float(np.sqrt(rss / max(counted.sum() - 1 - np.count_nonzero(lasso.coef_), 1.0)))


@register_sampler("lasso.logreg")
class LassoLogregSampler(LevelSampler):
    """Logistic regression with an L1 penalty (mice's `lasso.logreg`); multinomial with more than two levels.

    1. Scale the design columns; choose the penalty by the cross-validated log likelihood (scikit-learn's
       LogisticRegressionCV, folds by level).
    2. log p(level) / p(first level) = intercept + coef x.
    3. Draw a level by its probability.

    Parameters
    ----------
    n_folds : int
        Folds of the cross-validation; at most the number of rows of the rarest level.
    n_penalties : int
        Size of the grid of penalties.
    formula : see `NormSampler`
    proper : bool
        Fit to a bootstrap sample of the training rows, as mice always does.
    random_state : int or None
        Seed of the folds and the bootstrap; see `NormSampler`.

    Attributes
    ----------
    model_ : intercept and coefficients, a row for every observed level but the first; None if only one level occurs.
    classes_ : codes of the observed levels; the first is the base.

    Notes
    -----
    If a level has a single row, there is no cross-validation, and the probabilities are the shares of the levels. With
    more than two levels, all of them have penalised coefficients; those of the first level are then subtracted.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans(400)
    >>> sampler = {"defaulted_last_year": "lasso.logreg", "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"], random_state=1).fit(loans.X)
    >>> chain.samplers_["defaulted_last_year"].classes_
    array([0, 1])
    """

    def __init__(
        self,
        *,
        n_folds: int = 5,
        n_penalties: int = 10,
        formula: str | None = None,
        proper: bool = False,
        random_state: int | None = 0,
    ) -> None:
        super().__init__(formula=formula, proper=proper, random_state=random_state)
        self.n_folds = n_folds
        self.n_penalties = n_penalties

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count(self.n_folds, "n_folds", self, 2)
        check_count(self.n_penalties, "n_penalties", self, 1)

    def fit_classes(self, x: Floats, codes: Ints, varies: Bools, target: Column, weights: Floats | None = None) -> None:
        """Choose the penalty and fit (steps 1 and 2)."""
        n_classes, counts = self.classes_.size, np.bincount(codes)
        share = np.bincount(codes, weights)
        coef = np.zeros((n_classes - 1, x.shape[1]))
        self.model_ = Multinomial(np.log(share[1:] / share[0]), coef)
        scale = deviation_of(x, weights) if x.shape[1] else np.zeros(0)
        varies = varies & (scale > 0.0)
        if not varies.any() or counts.min() < 2:
            return
        self.shift_[varies] = x[:, varies].mean(axis=0)
        self.scale_[varies] = scale[varies]
        seed = self.fit_seed(self.random_state) % 2**32
        search, final = _search(min(self.n_folds, int(counts.min())), self.n_penalties, seed)
        scaled = (x[:, varies] - self.shift_[varies]) / self.scale_[varies]
        with without_warning("The max_iter was reached"):  # the chosen penalty is checked below
            search.fit(scaled, codes, sample_weight=weights)
            final.C = float(np.ravel(search.C_)[0])
            final.coef_, final.intercept_ = search.coef_, search.intercept_  # starting values
            final.fit(scaled, codes, sample_weight=weights)
        if final.n_iter_.max() >= _MOST_ITERATIONS:
            raise SamplerError(
                f"{self!r} for {target.feature.name!r} did not converge in {_MOST_ITERATIONS:,} iterations with the "
                f"penalty {1.0 / final.C:.3g}. Drop collinear givens by predictors=, or use 'polyreg'."
            )
        intercept = final.intercept_
        coef[:, varies] = final.coef_ if n_classes == 2 else final.coef_[1:] - final.coef_[:1]
        self.model_ = Multinomial(intercept if n_classes == 2 else intercept[1:] - intercept[0], coef)


def _search(n_folds: int, n_penalties: int, seed: int) -> tuple[Any, Any]:
    """Return the unfitted cross-validation and final regression; scikit-learn 1.8 renamed their parameters."""
    import sklearn
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
    from sklearn.model_selection import StratifiedKFold

    version = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
    renamed = version >= (1, 8)
    l1: dict[str, Any] = {"l1_ratios": (1.0,), "use_legacy_attributes": False} if renamed else {"penalty": "l1"}
    shared: dict[str, Any] = {"solver": "saga", "tol": 1e-3, "random_state": seed}
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    search = LogisticRegressionCV(Cs=n_penalties, cv=folds, scoring="neg_log_loss", max_iter=500, **shared, **l1)
    of_final: dict[str, Any] = {"l1_ratio": 1.0} if renamed else {"penalty": "l1"}
    return search, LogisticRegression(max_iter=_MOST_ITERATIONS, warm_start=True, **shared, **of_final)
