"""The propensity score mean squared error of a logistic regression that distinguishes generated from real rows.

As synthpop's `utility.gen` (Snoke, Raab, Nowok, Dibben and Slavkovic 2018, "General and specific utility measures for
synthetic data", JRSS A 181):

1. Regress t (1 for generated, 0 for real rows) on all columns (treatment dummies for levels) and, with `max_order` 1,
   all their products two by two, without linearly dependent columns. A missing number counts 0 and has an indicator; a
   missing level is one more level. Iteratively reweighted least squares starts from 1/4 and 3/4, and stops when the
   relative change of the deviance is below 1e-8.
2. pMSE = mean of (score - c)^2 over N rows, a share c of which is generated. The expected value for a correct model is
   k (1 - c)^2 c / N with k coefficients beside the intercept; S_pMSE is their ratio. k does not count the
   coefficients of columns that generated rows copy from real ones (`fixed`), and of products of these.
3. From the scores also SPECKS, the Kolmogorov-Smirnov distance between those of generated and real rows; PO50, the per
   cent of correct predictions (generated above 0.5) minus 50; U, the Mann-Whitney count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mcce.base.arrays import Floats
from mcce.base.progress import working
from mcce.base.threads import one_native_thread
from mcce.diagnostics.marginals import largest_gap
from mcce.diagnostics.pairs import TablePair, find_copied, read_pair
from mcce.diagnostics.tables import count_above
from mcce.exceptions import InputError
from mcce.table import Data, Kind

DEPENDENT = 1e-9  # relative length of the residual of a linearly dependent column
MOST_CELLS = 2e8  # cells of a design matrix: 1.6 GB
MOST_ROUNDS = 200


@dataclass(frozen=True)
class PropensityScores:
    """The score of every row, generated rows first, and the number of coefficients without the intercept.

    `drawn` is the number of coefficients that are not determined by the fixed columns.
    """

    values: Floats
    size: int
    drawn: int
    converged: bool = True


def logit_scores(pair: TablePair, max_order: int, fixed: Sequence[int] = ()) -> PropensityScores:
    """Return the scores of a logistic regression; `fixed` are the positions of the copied columns."""
    n_generated = pair.generated.shape[0]
    t = np.zeros(n_generated + pair.real.shape[0])
    t[:n_generated] = 1.0
    n_columns = count_columns(pair, max_order)
    if n_columns * t.size > MOST_CELLS:
        raise InputError(
            f"the logit model with max_order={max_order} has {n_columns} columns for {t.size} rows, too many for the "
            "memory; use max_order=0 or fewer rows."
        )
    blocks, source = _blocks(np.concatenate([pair.generated, pair.real]), pair)
    copied = [j in fixed for j in source]
    columns = [np.ones((t.size, 1)), *blocks]
    same = [True, *copied]
    if max_order:
        for i, k in itertools.combinations(range(len(blocks)), 2):
            columns.append((blocks[i][:, :, None] * blocks[k][:, None, :]).reshape(t.size, -1))
            same.append(copied[i] and copied[k])
    with threadpool_limits(1, "blas"):  # sums must not depend on the number of cores
        design = _independent(np.concatenate(columns, axis=1))
        values, converged = _fit_logit(design, t)
        alike = _independent(np.concatenate([c for c, is_same in zip(columns, same) if is_same], axis=1))
    return PropensityScores(values, design.shape[1] - 1, design.shape[1] - alike.shape[1], converged)


def count_columns(pair: TablePair, max_order: int) -> int:
    """Return the number of columns of the design, including dependent ones."""
    widths = []
    for j, feature in enumerate(pair.features):
        both = np.concatenate([pair.generated[:, j], pair.real[:, j]])
        missing = bool(np.isnan(both).any())
        if feature.is_numeric:
            widths += [1, 1] if missing else [1]
        else:
            widths.append(np.unique(both[~np.isnan(both)]).size + missing - 1)
    products = (sum(widths) ** 2 - sum(width**2 for width in widths)) // 2
    return 1 + sum(widths) + products * max_order


def _blocks(matrix: Floats, pair: TablePair) -> tuple[list[Floats], list[int]]:
    """Return the design columns of each feature, numbers standardised, then of the indicators; and their features.

    Centring and scaling do not change the scores, since the products accompany the columns themselves.
    """
    blocks, indicators, indicated = [], [], []
    for j, feature in enumerate(pair.features):
        column = matrix[:, j]
        missing = np.isnan(column)
        if feature.is_numeric:
            blocks.append(_standardise(np.where(missing, 0.0, column))[:, None])
            if missing.any():
                indicators.append(missing.astype(np.float64)[:, None])
                indicated.append(j)
            continue
        levels = np.unique(np.where(missing, feature.n_levels, column))
        blocks.append((np.where(missing, feature.n_levels, column)[:, None] == levels[1:]).astype(np.float64))
    return blocks + indicators, [*range(len(pair.features)), *indicated]


def _standardise(column: Floats) -> Floats:
    spread = column.max() - column.min()
    if not spread > 0:
        return np.zeros_like(column)
    scaled = (column - column.min()) / spread
    centred = scaled - scaled.mean()
    return np.asarray(centred / np.sqrt((centred**2).mean()))


def _independent(design: Floats) -> Floats:
    """Return the columns that are linearly independent of those before them."""
    basis = np.empty_like(design, order="F")
    kept: list[int] = []
    for j in range(design.shape[1]):
        column = design[:, j]
        length = np.sqrt(column @ column)
        rest = column
        for _ in range(2):  # two rounds are orthogonal up to rounding
            rest = rest - basis[:, : len(kept)] @ (basis[:, : len(kept)].T @ rest)
        left = np.sqrt(rest @ rest)
        if length > 0 and left > DEPENDENT * length and len(kept) < design.shape[0]:
            basis[:, len(kept)] = rest / left
            kept.append(j)
    return np.asfortranarray(design[:, kept])


def _fit_logit(design: Floats, t: Floats) -> tuple[Floats, bool]:
    from scipy.linalg import lstsq

    fitted = (t + 0.5) / 2
    predictor = np.log(fitted / (1 - fitted))
    deviance = _deviance(t, fitted)
    for _ in range(MOST_ROUNDS):
        weight = np.sqrt(fitted * (1 - fitted))
        working = predictor + (t - fitted) / (fitted * (1 - fitted))
        beta = lstsq(design * weight[:, None], working * weight, lapack_driver="gelsy", check_finite=False)[0]
        predictor = np.zeros(t.size)
        for j in range(design.shape[1]):  # by column: equal rows get equal sums
            predictor += design[:, j] * beta[j]
        fitted = _logistic(predictor)
        before, deviance = deviance, _deviance(t, fitted)
        if abs(deviance - before) < 1e-8 * (abs(deviance) + 0.1):
            return fitted, True
    return fitted, False


def _logistic(predictor: Floats) -> Floats:
    """Return fitted values, bounded away from 0 and 1 by the machine epsilon, as in R."""
    bounded = np.clip(predictor, -30.0, 30.0)
    fitted = 1 / (1 + np.exp(-bounded))
    eps = np.finfo(np.float64).eps
    return np.where(predictor > 30, 1 / (1 + eps), np.where(predictor < -30, eps, fitted))


def _deviance(t: Floats, fitted: Floats) -> float:
    return float(-2 * np.log(np.where(t == 1, fitted, 1 - fitted)).sum())


FEWEST_ROWS = 2


@dataclass(frozen=True, repr=False, eq=False)
class PMSE:
    """Measures of how well propensity scores distinguish generated from real rows.

    Attributes
    ----------
    pMSE : float
        Mean squared distance of the scores to the share of generated rows; 0: indistinguishable.
    expected : float
        The expected pMSE if the generated rows were drawn from the distribution of the real ones.
    S_pMSE : float
        pMSE over expected. The best value is 1 if the rows were generated from `real` itself, and 1 / (1 - c), or 2
        for equal sizes, if they are independent of it. With fixed columns this holds if the regression can express
        how the drawn columns depend on them; otherwise the best value is lower.
    SPECKS, PO50, U : float
        Kolmogorov-Smirnov distance of the scores, per cent of correct predictions minus 50, Mann-Whitney count.
    size : int
        Number of coefficients without the intercept.
    scores : array
        The score of every row, generated rows first.
    settings : mapping
        max_order, fixed, n_real, n_generated, converged.
    drawn : int
        Number of coefficients that `expected` counts: all but those of the fixed columns.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(400).X[["age", "salary", "savings"]]
    >>> drawn = mcce.ChainModel(random_state=1).fit(X[:200]).sample(200)
    >>> found = mcce.diagnostics.pmse(X[200:], drawn)
    >>> found.pMSE < 0.01, found.size
    (True, 6)
    """

    pMSE: float
    expected: float
    S_pMSE: float
    SPECKS: float
    PO50: float
    U: float
    size: int
    scores: Floats
    settings: Mapping[str, Any] = field(default_factory=dict)
    drawn: int = 0

    def __repr__(self) -> str:
        standardised = "" if math.isnan(self.S_pMSE) else f", S_pMSE {self.S_pMSE:.3g}"
        n_real, n_generated = self.settings["n_real"], self.settings["n_generated"]
        return (
            f"PMSE({self.size} coefficients: pMSE {self.pMSE:.4g}{standardised}, SPECKS {self.SPECKS:.3g}, "
            f"PO50 {self.PO50:.3g}; {n_real:,} real and {n_generated:,} generated rows)"
        )


@one_native_thread()
@working("measuring pMSE", None)
def pmse(
    real: Data,
    generated: Data,
    *,
    fixed: Sequence[Hashable] = (),
    max_order: int = 1,
    kinds: Mapping[Any, Kind] | None = None,
) -> PMSE:
    """Measure how well propensity scores distinguish generated from real rows.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes; features only.
    fixed : list of column names
        Columns that `generated` copies from `real` (synthpop's `not.synthesised`): they are used in the scores, but
        not counted in the expected value.
    max_order : 0 or 1
        Whether to use the columns alone (0), or also their pairwise products (1).
    kinds : dict or None
        Overrides of column kinds, as for `ChainModel`.

    Returns
    -------
    PMSE

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(1000).X
    >>> good, bad = (
    ...     mcce.ChainModel(sampler=sampler, random_state=1).fit(X).sample(1000) for sampler in ("cart", "marginal"))
    >>> bool(mcce.diagnostics.pmse(X, good).S_pMSE < 3 < mcce.diagnostics.pmse(X, bad).S_pMSE)
    True
    """
    if max_order not in (0, 1) or isinstance(max_order, bool):
        raise InputError(f"max_order is {max_order!r}; allowed: 0 (columns alone), 1 (and their products).")
    pair = read_pair(real, generated, kinds, FEWEST_ROWS)
    n_real, n_generated = pair.real.shape[0], pair.generated.shape[0]
    share = n_generated / (n_real + n_generated)
    scores = logit_scores(pair, max_order, find_copied(pair, fixed))
    expected = scores.drawn * (1 - share) ** 2 * share / (n_real + n_generated)
    settings = {"fixed": list(fixed), "n_real": n_real, "n_generated": n_generated}
    settings |= {"max_order": max_order, "converged": scores.converged}
    return _measure(scores, expected, n_generated, settings)


def _measure(scores: PropensityScores, expected: float, n_generated: int, settings: dict[str, Any]) -> PMSE:
    values = scores.values
    share = n_generated / values.size
    error = float(((values - share) ** 2).mean())
    of_generated, of_real = values[:n_generated], values[n_generated:]
    right = (of_generated > 0.5).sum() + (of_real <= 0.5).sum()
    return PMSE(
        pMSE=error,
        expected=expected,
        S_pMSE=error / expected if expected > 0 else math.nan,
        SPECKS=largest_gap(of_generated, of_real),
        PO50=float(100 * right / values.size - 50),
        U=count_above(of_generated, of_real),
        size=scores.size,
        scores=values,
        settings=settings,
        drawn=scores.drawn,
    )
