"""Logistic regressions for targets with levels, as in synthpop: `logreg`, `polyreg`, `polr`.

1. Augmentation (White, Daniel and Royston 2010, "Avoiding bias due to perfect prediction in multiple imputation of
   incomplete categorical variables", section 4): for every design column and every class two rows of small weight at
   mean +- sd / 2, so that every class occurs on both sides of every column. They also break collinearity.
2. Maximum likelihood: the multinomial logit by scikit-learn, the cumulative logit by Newton's method (its
   log-likelihood is concave: Pratt 1981). With augmented rows the maximum exists and is unique.
3. A level is drawn by its probability; levels without training rows have probability 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from mcce._utils import Bools, Floats, Ints
from mcce.exceptions import MCCEError
from mcce.samplers.base import register_sampler
from mcce.samplers.design import RegressionSampler, distinct_rows
from mcce.samplers.distributions import Levels
from mcce.table import Column, Table

MOST_STEPS = 200
MOST_HALVINGS = 60
EXACT, COARSE = 1e-9, 1e-5  # gradient at which scikit-learn stops
MANY_COEFFICIENTS = 1_000  # with more, COARSE, because EXACT takes minutes
DECREMENT = 1e-12  # Newton's method stops one step after its decrement, in units of the log-likelihood, is below this


class NoMaximumError(MCCEError):
    """A likelihood whose maximum was not found."""


@dataclass(frozen=True)
class Rows:
    """Rows of a likelihood: design without intercept, class 0, 1, ... and weight."""

    x: Floats
    y: Ints
    weight: Floats

    def standardised(self) -> tuple[Rows, Floats, Floats]:
        """Return the rows with columns of mean 0 and deviation 1, and the means and deviations."""
        mean = np.average(self.x, axis=0, weights=self.weight)
        spread = np.sqrt(np.average((self.x - mean) ** 2, axis=0, weights=self.weight))
        spread[spread == 0.0] = 1.0
        return replace(self, x=(self.x - mean) / spread), mean, spread


def augmentation(x: Floats, n_classes: int) -> Rows:
    """Return the rows that step 1 adds to the design `x`.

    These are 2 p K rows, in blocks by column, then class, then (+, -): the column means, with one column moved by half
    its standard deviation, clipped to its range. Each weighs (p + 1) / (2 p K), so together they weigh as much as there
    are coefficients of one class.
    """
    p = x.shape[1]
    mean, half = x.mean(axis=0), x.std(axis=0, ddof=1) / 2.0
    column = np.repeat(np.arange(p), 2 * n_classes)
    sign = np.tile([1.0, -1.0], p * n_classes)
    rows = np.tile(mean, (column.size, 1))
    moved = mean[column] + sign * half[column]
    rows[np.arange(column.size), column] = np.clip(moved, x.min(axis=0)[column], x.max(axis=0)[column])
    classes = np.tile(np.repeat(np.arange(n_classes), 2), p)
    return Rows(rows, classes, np.full(column.size, (p + 1) / max(2 * p * n_classes, 1)))


def augmented(x: Floats, y: Ints, n_classes: int) -> Rows:
    """Return the training rows, of weight 1, followed by their augmentation (none without columns)."""
    if x.shape[1] == 0 or n_classes < 2:
        return Rows(x, y, np.ones(y.size))
    extra = augmentation(x, n_classes)
    return Rows(np.vstack([x, extra.x]), np.append(y, extra.y), np.append(np.ones(y.size), extra.weight))


@dataclass(frozen=True)
class Multinomial:
    """A multinomial logit: log p(class k) - log p(class 0) = intercept + coef x, with a row for k = 1, 2, ..."""

    intercept: Floats
    coef: Floats

    @classmethod
    def fit(cls, rows: Rows, n_classes: int) -> Multinomial:
        """Fit to rows in which each of the classes occurs."""
        from sklearn.linear_model import LogisticRegression

        if rows.x.shape[1] == 0:
            shares = np.bincount(rows.y, rows.weight, n_classes)
            return cls(np.log(shares[1:] / shares[0]), np.zeros((n_classes - 1, 0)))
        scaled, mean, spread = rows.standardised()
        tolerance = EXACT if n_classes * rows.x.shape[1] <= MANY_COEFFICIENTS else COARSE
        model = LogisticRegression(C=np.inf, solver="newton-cg", tol=tolerance, max_iter=MOST_STEPS)
        model.fit(scaled.x, scaled.y, sample_weight=scaled.weight)
        intercept, coef = model.intercept_, model.coef_
        if n_classes > 2:  # scikit-learn has coefficients of all classes
            intercept, coef = intercept[1:] - intercept[0], coef[1:] - coef[0]
        coef = coef / spread
        return cls(intercept - coef @ mean, coef)

    def probabilities(self, eta: Floats) -> Floats:
        """Return probabilities of all classes, given the linear predictors of all but the first."""
        return np.asarray(scipy.special.softmax(np.column_stack([np.zeros(len(eta)), eta]), axis=1))

    def covariance(self, rows: Rows) -> Floats:
        """Return the inverse information, in the order of ``np.column_stack([intercept, coef]).ravel()``."""
        scaled, mean, spread = rows.standardised()
        p = self.probabilities(self.intercept + rows.x @ self.coef.T)[:, 1:]
        z = np.column_stack([np.ones(rows.y.size), scaled.x])
        m, q = p.shape[1], z.shape[1]
        information = np.empty((m, q, m, q))
        for k in range(m):
            for j in range(m):
                information[k, :, j, :] = (z * (rows.weight * p[:, k] * ((j == k) - p[:, j]))[:, None]).T @ z
        back = np.diag(np.append(1.0, 1.0 / spread))
        back[0, 1:] = -mean / spread
        back = np.kron(np.eye(m), back)
        return back @ solve(information.reshape(m * q, m * q), np.eye(m * q)) @ back.T


@dataclass(frozen=True)
class Cumulative:
    """A cumulative logit: P(class <= k) = logistic(thresholds[k] - coef x)."""

    thresholds: Floats
    coef: Floats

    @classmethod
    def fit(cls, rows: Rows, n_classes: int) -> Cumulative:
        """Fit to rows in which each of the classes occurs; raise `NoMaximumError` if Newton's method fails."""
        scaled, mean, spread = rows.standardised()
        x, w, p, m = scaled.x, rows.weight, rows.x.shape[1], n_classes - 1
        # the class of a row is between two thresholds; the outermost thresholds are infinite
        is_threshold = np.vstack([np.eye(m), np.zeros(m)])
        above, below = np.column_stack([-x, is_threshold[rows.y]]), np.column_stack([-x, is_threshold[rows.y - 1]])

        def bounds(theta: Floats) -> tuple[Floats, Floats]:
            zeta = np.concatenate([[-np.inf], theta[p:], [np.inf]])
            eta = x @ theta[:p]
            return zeta[rows.y + 1] - eta, zeta[rows.y] - eta

        def log_likelihood(theta: Floats) -> float:
            return float(w @ log_between(*bounds(theta))) if (np.diff(theta[p:]) > 0.0).all() else -np.inf

        def newton_step(theta: Floats) -> tuple[Floats, float]:
            up, low = bounds(theta)
            gap = -np.expm1(low - up)
            # densities at the two bounds over the probability between them
            at_up = np.exp(scipy.special.log_expit(-up) - scipy.special.log_expit(-low)) / gap
            at_low = np.exp(scipy.special.log_expit(low) - scipy.special.log_expit(up)) / gap
            gradient = above.T @ (w * at_up) - below.T @ (w * at_low)
            curve_up = w * (at_up**2 - at_up * (1.0 - 2.0 * scipy.special.expit(up)))
            curve_low = w * (at_low**2 + at_low * (1.0 - 2.0 * scipy.special.expit(low)))
            cross = (above * (w * at_up * at_low)[:, None]).T @ below
            information = (above * curve_up[:, None]).T @ above + (below * curve_low[:, None]).T @ below
            step = solve(information - cross - cross.T, gradient)
            return step, float(gradient @ step)

        shares = np.cumsum(np.bincount(rows.y, w, n_classes))
        theta = np.append(np.zeros(p), np.log(shares[:-1] / (shares[-1] - shares[:-1])))
        reached = log_likelihood(theta)
        for _ in range(MOST_STEPS):
            step, decrement = newton_step(theta)
            if decrement <= DECREMENT:
                theta = theta + step
                coef = theta[:p] / spread
                return cls(theta[p:] + coef @ mean, coef)
            for _ in range(MOST_HALVINGS):
                moved = log_likelihood(theta + step)
                if moved >= reached - 1e-12 * (1.0 + abs(reached)):
                    break
                step = step / 2.0
            else:
                break
            theta, reached = theta + step, moved
        raise NoMaximumError("Newton's method did not reach the maximum of the likelihood.")

    def probabilities(self, eta: Floats) -> Floats:
        """Return probabilities of all classes, given the linear predictors ``coef x``."""
        upper, lower = np.append(self.thresholds, np.inf) - eta, np.append(-np.inf, self.thresholds) - eta
        return np.exp(log_between(upper, lower))


def log_between(upper: Floats, lower: Floats) -> Floats:
    """Return log(F(upper) - F(lower)), F the logistic distribution function, without cancellation."""
    outer = scipy.special.log_expit(upper) + scipy.special.log_expit(-lower)
    return np.asarray(outer + np.log(-np.expm1(lower - upper)))


def cholesky(matrix: Floats) -> Floats:
    """Return the Cholesky factor, with the smallest sufficient ridge if the matrix is numerically singular."""
    scale = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    scaled = matrix / np.outer(scale, scale)
    if np.isfinite(scaled).all():
        for ridge in (0.0, *10.0 ** np.arange(-14.0, 1.0)):
            try:
                return np.linalg.cholesky(scaled + ridge * np.eye(scale.size)) * scale[:, None]
            except np.linalg.LinAlgError:
                continue
    raise NoMaximumError("the information matrix of the likelihood is not finite and positive definite.")


def solve(information: Floats, right: Floats) -> Floats:
    """Return the solution of a positive definite system."""
    return np.asarray(scipy.linalg.cho_solve((cholesky(information), True), right))


class LevelSampler(RegressionSampler):
    """A regression for the probabilities of levels; a base class.

    Coefficients are those of ``(x - shift_) / scale_``, x the design columns, as synthpop maps them.
    """

    handles = frozenset({"categorical", "ordered"})
    bootstraps = True  # whether a proper fit is to a bootstrap sample

    def fit_design(self, x: Floats, target: Column, given: Table) -> None:
        """Augment and fit (steps 1 and 2)."""
        values = target.values
        if self.proper and self.bootstraps:
            rows = self.generator().integers(0, values.size, values.size)
            x, values = x[rows], values[rows]
        self.n_levels_ = target.feature.n_levels
        classes, codes = np.unique(values, return_inverse=True)
        self.classes_ = classes.astype(np.int64)
        self.shift_, self.scale_ = np.zeros(x.shape[1]), np.ones(x.shape[1])
        self.model_: Multinomial | None = None
        if classes.size > 1:
            varies = np.array([column.min() < column.max() for column in x.T], dtype=bool)
            self.fit_classes(x, codes.astype(np.int64), varies)

    def fit_classes(self, x: Floats, codes: Ints, varies: Bools) -> None:
        """Fit a multinomial logit, with each column that has values outside [0, 1] mapped to [0, 1]."""
        mapped = varies & ((x.min(axis=0) < 0.0) | (x.max(axis=0) > 1.0))
        self.shift_[mapped], self.scale_[mapped] = x[:, mapped].min(axis=0), np.ptp(x[:, mapped], axis=0)
        self.fit_multinomial(x, codes, varies)

    def fit_multinomial(self, x: Floats, codes: Ints, varies: Bools) -> Rows:
        """Fit to the augmented rows, and return them; constant columns get the coefficient 0."""
        rows = augmented(((x - self.shift_) / self.scale_)[:, varies], codes, self.classes_.size)
        fitted = Multinomial.fit(rows, self.classes_.size)
        self.model_ = Multinomial(fitted.intercept, spread_over(fitted.coef, varies))
        return rows

    def probabilities(self, given: Table) -> Floats:
        """Return the probability of every level for each row."""
        out = np.zeros((given.n_rows, self.n_levels_))
        out[:, self.classes_] = self.class_probabilities(given)
        return out

    def class_probabilities(self, given: Table) -> Floats:
        """Return the probabilities of the observed levels."""
        if self.model_ is None:
            return np.ones((given.n_rows, 1))
        coef = self.model_.coef / self.scale_
        eta = self.design_.predict(given, self.model_.intercept - coef @ self.shift_, coef)
        return self.model_.probabilities(eta)

    def distribution(self, given: Table) -> Levels:
        """Return the probabilities of the levels, once for each distinct row of givens."""
        first, rows = distinct_rows(given.matrix)
        return Levels(self.probabilities(given.take(first)), rows)


@register_sampler("logreg")
class LogregSampler(LevelSampler):
    """Logistic regression (synthpop's `logreg`).

    The design columns are centred before the augmentation. synthpop's `logreg` takes two levels; more levels are fitted
    by a multinomial logit, as in `PolyregSampler`.

    Parameters
    ----------
    formula, random_state : see `NormSampler`
    proper : bool
        Draw the coefficients once, at `fit`, from their asymptotic normal distribution.

    Attributes
    ----------
    model_ : intercept and coefficients of the centred columns; None if only one level occurs.
    shift_ : the column means.
    classes_ : codes of the observed levels; the first is the base.

    Notes
    -----
    Dummies are augmented one by one, as in synthpop, so probabilities depend slightly on the base level (the augmented
    rows weigh as much as one row per coefficient).

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> chain = mcce.ChainModel(sampler={"sex": "logreg", "*": "cart"}, fixed=["age"], random_state=1).fit(loans.X)
    >>> set(chain.sample(n=50)["sex"]) <= set(loans.X["sex"])
    True
    """

    bootstraps = False

    def fit_classes(self, x: Floats, codes: Ints, varies: Bools) -> None:
        """Fit to centred columns; a proper fit draws the coefficients."""
        self.shift_ = x.mean(axis=0)
        rows = self.fit_multinomial(x, codes, varies)
        if self.proper and self.model_ is not None:
            estimate = np.column_stack([self.model_.intercept, self.model_.coef[:, varies]])
            covariance = Multinomial(estimate[:, 0], estimate[:, 1:]).covariance(rows)
            moved = cholesky(covariance) @ self.generator().standard_normal(estimate.size)
            drawn = estimate + moved.reshape(estimate.shape)
            self.model_ = Multinomial(drawn[:, 0], spread_over(drawn[:, 1:], varies))


@register_sampler("polyreg")
class PolyregSampler(LevelSampler):
    """Multinomial logistic regression (synthpop's `polyreg`).

    Design columns with values outside [0, 1] are mapped to [0, 1], as in synthpop.

    Parameters
    ----------
    formula, random_state : see `NormSampler`
    proper : bool
        Fit to a bootstrap sample of the training rows.

    Attributes
    ----------
    model_ : intercept and coefficients, a row for every observed level but the first; None if only one level occurs.
    shift_, scale_ : the map to [0, 1].
    classes_ : codes of the observed levels; the first is the base.

    Notes
    -----
    synthpop's optimiser (`nnet::multinom`) stops up to 1e-3 (in probability) before the maximum; this one does not.

    Examples
    --------
    >>> import mcce
    >>> loans = mcce.datasets.load_loans()
    >>> sampler = {"employment": "polyreg", "*": "cart"}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age"], random_state=1).fit(loans.X)
    >>> set(chain.sample(n=50)["employment"]) <= set(loans.X["employment"])
    True
    """


@register_sampler("polr")
class PolrSampler(LevelSampler):
    """Proportional odds logistic regression for ordered targets (synthpop's `polr`; McCullagh 1980).

    P(level <= k) = logistic(threshold_k - coef x). If the fit fails, the model of `PolyregSampler` takes its place, as
    in synthpop, and `fell_back_` is True.

    Parameters
    ----------
    formula, proper, random_state : see `PolyregSampler`

    Attributes
    ----------
    cumulative_ : thresholds and coefficients; None after falling back, or if only one level occurs.
    fell_back_ : bool
    classes_ : codes of the observed levels.

    Examples
    --------
    >>> import pandas as pd, mcce
    >>> grade = pd.Categorical(["low", "mid", "high"] * 20, categories=["low", "mid", "high"], ordered=True)
    >>> X = pd.DataFrame({"hours": range(60), "grade": grade})
    >>> chain = mcce.ChainModel(sampler="polr", fixed=["hours"], random_state=1).fit(X)
    >>> chain.conditional("grade").fell_back_
    False
    """

    handles = frozenset({"ordered"})

    def fit_design(self, x: Floats, target: Column, given: Table) -> None:
        """Forget an earlier fit, and fit."""
        self.cumulative_: Cumulative | None = None
        self.fell_back_ = False
        super().fit_design(x, target, given)

    def fit_classes(self, x: Floats, codes: Ints, varies: Bools) -> None:
        """Fit the cumulative logit, or fall back to the multinomial one."""
        try:
            fitted = Cumulative.fit(augmented(x[:, varies], codes, self.classes_.size), self.classes_.size)
            self.cumulative_ = Cumulative(fitted.thresholds, spread_over(fitted.coef, varies))
        except NoMaximumError:
            self.fell_back_ = True
            super().fit_classes(x, codes, varies)

    def class_probabilities(self, given: Table) -> Floats:
        """Return the probabilities of the observed levels."""
        if self.cumulative_ is None:
            return super().class_probabilities(given)
        return self.cumulative_.probabilities(self.design_.predict(given, np.zeros(1), self.cumulative_.coef[None, :]))


def spread_over(coef: Floats, varies: Bools) -> Floats:
    """Return the coefficients of all columns, 0 for those that do not vary."""
    out = np.zeros((*coef.shape[:-1], varies.size))
    out[..., varies] = coef
    return out
