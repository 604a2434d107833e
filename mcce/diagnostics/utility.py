"""Utility of synthetic data as R's synthpop measures it: propensity scores, and tables of one or two columns.

`pmse` is `utility.gen(method = "logit")` (Snoke, Raab, Nowok, Dibben and Slavkovic 2018, JRSS A 181):

1. Regress t (1 for generated, 0 for real rows) on all columns and, with `max_order` 1, their products two by two,
   without linearly dependent columns. A missing number is 0 and has an indicator, a missing level is one more level.
2. pMSE is the mean of (score - c)^2 over N rows, a share c of which is generated. Its expectation for a correct model
   is k (1 - c)^2 c / N with k coefficients beside the intercept; S_pMSE is the ratio.

`utility_tables` is `utility.tables` (Raab, Nowok and Dibben 2021, arXiv 2109.12717): a cell of a table has s generated
and o real rows, and the score s / (s + o). Columns that generated rows copy from real ones (`fixed`) are not counted
in k, nor in the degrees of freedom of a table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.linalg import lstsq
from scipy.special import rel_entr

from mcce._utils import Floats, Ints, check_count, one_native_thread
from mcce.diagnostics.pairs import TablePair, find_copied, read_pair
from mcce.exceptions import InputError, spell
from mcce.table import Data, Kind

COLUMNS = ["pMSE", "S_pMSE", "df", "VW", "FT", "JSD", "SPECKS", "WMabsDD", "U", "G", "PO50", "MabsDD", "dBhatt"]
COLUMNS += ["S_VW", "S_FT", "S_JSD", "S_WMabsDD", "S_G", "dfG"]  # synthpop's order
DEPENDENT = 1e-9  # relative length of what is left of a linearly dependent column
MOST_CELLS = 2e8  # of a design matrix: 1.6 GB
MOST_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class PMSE:
    """Measures of how well propensity scores distinguish generated from real rows.

    Attributes
    ----------
    pMSE, expected, S_pMSE : float
        Mean squared distance of the scores to the share of generated rows, its expectation, and their ratio: about 1
        for rows generated from `real` itself, 1 / (1 - c), so 2 for equal sizes, for rows independent of it.
    SPECKS, PO50, U : float
        Kolmogorov-Smirnov distance of the scores, per cent of correct predictions minus 50, Mann-Whitney count.
    n_coefficients, n_counted : int
        Coefficients beside the intercept, and those that `expected` counts: all but those of the fixed columns.
    converged : bool
        Whether the regression did; it does not if a combination of columns separates the tables.
    scores : array
        The score of every row, generated rows first.
    """

    pMSE: float
    expected: float
    S_pMSE: float
    SPECKS: float
    PO50: float
    U: float
    n_coefficients: int
    n_counted: int
    converged: bool
    scores: Floats

    def __repr__(self) -> str:
        return (
            f"PMSE({self.n_coefficients} coefficients: pMSE {self.pMSE:.4g}, S_pMSE {self.S_pMSE:.3g}, "
            f"SPECKS {self.SPECKS:.3g}, PO50 {self.PO50:.3g}, U {self.U:g})"
        )


@one_native_thread()
def pmse(
    real: Data,
    generated: Data,
    *,
    fixed: Sequence[Hashable] = (),
    max_order: Literal[0, 1] = 1,
    kinds: Mapping[Any, Kind] | None = None,
) -> PMSE:
    """Measure how well the propensity scores of a logistic regression distinguish generated from real rows.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes.
    fixed : list of column names
        Columns that `generated` copies from `real` (synthpop's `not.synthesised`): they are in the regression, but
        not counted in the expectation.
    max_order : 0 or 1
        Whether to use the columns alone (0), or also their products two by two (1).
    kinds : dict, optional
        Kinds of columns, as for `ChainModel`.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(1000).X
    >>> good, bad = (mcce.ChainModel(sampler=name, random_state=1).fit(X).sample(1000) for name in ("cart", "marginal"))
    >>> bool(mcce.diagnostics.pmse(X, good).S_pMSE < 3 < mcce.diagnostics.pmse(X, bad).S_pMSE)
    True
    """
    if max_order not in (0, 1) or isinstance(max_order, bool):
        raise InputError(f"max_order is {spell(max_order)}; allowed: 0 (columns alone), 1 (and their products).")
    pair = read_pair(real, generated, kinds, least=2)
    copied = find_copied(pair, fixed)
    t = np.repeat([1.0, 0.0], [pair.generated.n_rows, pair.real.n_rows])
    share = float(t.mean())
    columns, is_copied = _design(pair, max_order, copied)
    independent = _independent(columns)
    n_counted = independent.shape[1] - _independent(columns[:, is_copied]).shape[1]
    scores, converged = _fit_logit(independent, t)
    error = float(((scores - share) ** 2).mean())
    expected = n_counted * (1 - share) ** 2 * share / t.size
    of_generated, of_real = scores[t == 1], scores[t == 0]
    return PMSE(
        pMSE=error,
        expected=expected,
        S_pMSE=_ratio(error, expected),
        SPECKS=largest_gap(of_generated, of_real),
        PO50=float(100 * ((scores > 0.5) == (t == 1)).mean() - 50),
        U=count_above(of_generated, of_real),
        n_coefficients=independent.shape[1] - 1,
        n_counted=n_counted,
        converged=converged,
        scores=scores,
    )


def _design(pair: TablePair, max_order: int, copied: Sequence[int]) -> tuple[Floats, Ints]:
    """Return the intercept and all columns of the regression, and which depend on copied columns only.

    Numbers are standardised: the scores do not change, since products accompany the columns themselves.
    """
    parts, indicators = [], []  # (columns, whether copied)
    for j, (feature, real, generated) in enumerate(pair.columns()):
        values = np.concatenate([generated, real])
        is_missing = np.isnan(values)
        if feature.is_numeric:
            parts.append((_standardise(np.where(is_missing, 0.0, values))[:, None], j in copied))
            if is_missing.any():
                indicators.append((is_missing.astype(np.float64)[:, None], j in copied))
        else:
            codes = np.where(is_missing, feature.n_levels, values)
            parts.append(((codes[:, None] == np.unique(codes)[1:]).astype(np.float64), j in copied))
    parts += indicators
    widths = [part.shape[1] for part, _ in parts]
    n_products = (sum(widths) ** 2 - sum(width**2 for width in widths)) // 2
    n_columns, n = 1 + sum(widths) + max_order * n_products, pair.real.n_rows + pair.generated.n_rows
    if n_columns * n > MOST_CELLS:
        raise InputError(
            f"max_order={max_order} makes {n_columns} columns for {n} rows, too many for the memory; use max_order=0 "
            "or fewer rows."
        )
    if max_order:
        for (a, a_copied), (b, b_copied) in itertools.combinations(parts.copy(), 2):
            parts.append(((a[:, :, None] * b[:, None, :]).reshape(n, -1), a_copied and b_copied))
    is_copied = np.concatenate([[True], *(np.repeat(flag, part.shape[1]) for part, flag in parts)])
    return np.column_stack([np.ones(n), *(part for part, _ in parts)]), np.flatnonzero(is_copied)


def _standardise(column: Floats) -> Floats:
    spread = column.max() - column.min()
    if not spread > 0:
        return np.zeros_like(column)
    centred = (column - column.min()) / spread
    centred = centred - centred.mean()
    return np.asarray(centred / np.sqrt((centred**2).mean()))


def _independent(design: Floats) -> Floats:
    """Return the columns that are linearly independent of those before them (Gram and Schmidt)."""
    basis = np.empty_like(design, order="F")
    kept: list[int] = []
    for j in range(design.shape[1]):
        length, rest = np.linalg.norm(design[:, j]), design[:, j]
        for _ in range(2):  # twice is enough (Kahan)
            rest = rest - basis[:, : len(kept)] @ (basis[:, : len(kept)].T @ rest)
        remaining = np.linalg.norm(rest)
        if length > 0 and remaining > DEPENDENT * length and len(kept) < len(design):
            basis[:, len(kept)] = rest / remaining
            kept.append(j)
    return np.asfortranarray(design[:, kept])


def _fit_logit(design: Floats, t: Floats) -> tuple[Floats, bool]:
    """Return fitted probabilities by iteratively reweighted least squares, started and stopped as in R's glm."""
    fitted = (t + 0.5) / 2
    predictor = np.log(fitted / (1 - fitted))
    deviance = _deviance(t, fitted)
    for _ in range(MOST_ROUNDS):
        weight = np.sqrt(fitted * (1 - fitted))
        working = predictor + (t - fitted) / weight**2
        beta = lstsq(design * weight[:, None], working * weight, lapack_driver="gelsy", check_finite=False)[0]
        predictor = np.zeros(t.size)
        for j in range(design.shape[1]):  # by column: equal rows get equal scores, which PO50 and U compare
            predictor += design[:, j] * beta[j]
        eps = np.finfo(np.float64).eps  # the bounds of R's logistic function
        fitted = np.where(np.abs(predictor) > 30, np.where(predictor > 0, 1 / (1 + eps), eps), _expit(predictor))
        before, deviance = deviance, _deviance(t, fitted)
        if abs(deviance - before) < 1e-8 * (abs(deviance) + 0.1):
            return fitted, True
    return fitted, False


def _expit(predictor: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(predictor, -30.0, 30.0)))


def _deviance(t: Floats, fitted: Floats) -> float:
    return float(-2 * np.log(np.where(t == 1, fitted, 1 - fitted)).sum())


# ---------------------------------------------------------------------------------------------------------------------


def utility_tables(
    real: Data,
    generated: Data,
    *,
    tables: Literal["oneway", "twoway"] = "twoway",
    n_groups: int = 5,
    fixed: Sequence[Hashable] = (),
    kinds: Mapping[Any, Kind] | None = None,
) -> pd.DataFrame:
    """Compare the counts of real and generated rows in the tables of each column, or of each two columns.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes.
    tables : {"oneway", "twoway"}
    n_groups : int
        Groups that numbers are cut into.
    fixed : list of column names
        Columns that `generated` copies from `real`.
    kinds : dict, optional
        Kinds of columns, as for `ChainModel`.

    Returns
    -------
    DataFrame
        A row for each column, or two of them, with synthpop's measures pMSE, VW (Voas and Williamson), FT (Freeman and
        Tukey), JSD (Jensen and Shannon, in bits), SPECKS, WMabsDD, U, G (likelihood ratio), PO50, MabsDD and dBhatt
        (Bhattacharyya). `S_...` is a measure over its expectation, by df and dfG: about 1 for rows drawn from the real
        shares, N / n_real for a table independent of the real one, missing if nothing can differ.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(1000).X
    >>> drawn = mcce.ChainModel(random_state=1).fit(X).sample(len(X))
    >>> bool(mcce.diagnostics.utility_tables(X, drawn, tables="oneway")["S_pMSE"].mean() < 3)
    True
    """
    if tables not in ("oneway", "twoway"):
        raise InputError(f"tables is {spell(tables)}; allowed: 'oneway', 'twoway'.")
    check_count(n_groups, "n_groups")
    pair = read_pair(real, generated, kinds)
    if tables == "twoway" and len(pair.names) < 2:
        raise InputError("real has one column; tables='twoway' needs two. Use tables='oneway'.")
    copied = find_copied(pair, fixed)
    groups = [_groups(*column, n_groups) for column in pair.columns()]
    nothing = np.zeros(pair.real.n_rows + pair.generated.n_rows, dtype=np.int64)
    margins = [group if j in copied else nothing for j, group in enumerate(groups)]
    size = 1 if tables == "oneway" else 2
    measures = {}
    for places in itertools.combinations(range(len(groups)), size):
        cells, margin = (_cross([part[j] for j in places]) for part in (groups, margins))
        name = tuple(pair.names[j] for j in places)
        measures[name] = _measures(cells, margin, pair.real.n_rows)
    names = [f"var{i + 1}" for i in range(size)]
    index = pd.MultiIndex.from_tuples(list(measures), names=names) if size == 2 else None
    if index is None:
        index = pd.Index(pair.names, name="var1", tupleize_cols=False)
    return pd.DataFrame(list(measures.values()), index=index)


def group_breaks(values: Floats, n_groups: int = 5) -> Floats:
    """Return the breaks between groups of numbers; an interval includes its lower end, the last one both.

    At most `n_groups` distinct numbers are groups of their own. Otherwise the breaks are distinct quantiles, or,
    if ties leave three of them or fewer, those of groups of equal width.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.diagnostics.utility import group_breaks
    >>> group_breaks(np.array([1.0, 1.0, 2.0, 4.0])), group_breaks(np.arange(101.0), 4)
    (array([0.25, 1.5 , 3.  , 4.75]), array([  0.,  25.,  50.,  75., 100.]))
    """
    present = values[~np.isnan(values)]
    distinct = np.unique(present)
    if distinct.size <= n_groups:
        if distinct.size < 2:
            return np.repeat(distinct, 2)
        margin = (distinct[-1] - distinct[0]) / (distinct.size - 1) / 2
        middles = (distinct[1:] + distinct[:-1]) / 2
        return np.concatenate([[distinct[0] - margin], middles, [distinct[-1] + margin]])
    breaks = np.unique(np.quantile(present, np.linspace(0, 1, n_groups + 1)))
    return breaks if breaks.size > 3 else np.linspace(distinct[0], distinct[-1], n_groups + 1)


def _groups(feature: Any, real: Floats, generated: Floats, n_groups: int) -> Ints:
    """Return the group or level of every row, real rows first; missing is one more."""
    values = np.concatenate([real, generated])
    codes = values
    if feature.is_numeric:
        codes = np.searchsorted(group_breaks(values, n_groups)[1:-1], values, side="right").astype(np.float64)
    codes = np.where(np.isnan(values), np.nan, codes)
    return np.asarray(np.unique(codes, return_inverse=True, equal_nan=True)[1], dtype=np.int64)


def _cross(codes: Sequence[Ints]) -> Ints:
    """Return the cell of every row in the table of one or two columns."""
    cells = codes[0] if len(codes) == 1 else codes[0] * (int(codes[1].max()) + 1) + codes[1]
    return np.asarray(np.unique(cells, return_inverse=True)[1], dtype=np.int64)


def _measures(cells: Ints, margin: Ints, n_real: int) -> dict[str, float]:
    """Return the measures of one table; `margin` is the cell of every row in the table of the copied columns.

    In synthpop's notation, o and s are the counts of real (observed) and generated (synthetic) rows in each cell, p and
    q their shares, and c the share of all rows that is generated.
    """
    o, s = (np.bincount(part, minlength=cells.max() + 1) for part in (cells[:n_real], cells[n_real:]))
    margin_of_cell = np.zeros(o.size, dtype=np.int64)
    margin_of_cell[cells] = margin
    n_o, n_s, n = n_real, cells.size - n_real, cells.size
    c, score, p, q = n_s / n, s / (s + o), o / n_o, s / n_s
    expected, middle = n_s / n_o * o, (p + q) / 2
    shared = (o > 0) & (s > 0)
    df, df_g = (int(part.sum() - np.unique(margin_of_cell[part]).size) for part in (s + o > 0, shared))
    ratio = s[shared].sum() / max(o[shared].sum(), 1)
    values = {
        "pMSE": ((s + o) * (score - c) ** 2).sum() / n,
        "VW": ((s - expected) ** 2 / (c * (s + o))).sum(),
        "FT": 4 * ((np.sqrt(s) - np.sqrt(expected)) ** 2).sum(),
        "JSD": (rel_entr(p, middle) + rel_entr(q, middle)).sum() / (2 * np.log(2)),
        "SPECKS": np.abs(p - q).sum() / 2,  # the distributions of the scores differ most where the score passes c
        "WMabsDD": (np.abs(s - expected) / np.sqrt(2 / np.pi * c * (s + o))).sum(),
        "U": count_above(np.repeat(score, s), np.repeat(score, o)),
        "G": 2 * (s[shared] * np.log(s[shared] / (o[shared] * ratio))).sum() if shared.any() else np.nan,
        "PO50": 100 * (s[score > c].sum() + o[score <= c].sum()) / n - 50,
        "MabsDD": np.abs(p - q).sum(),
        "dBhatt": np.sqrt(max(1 - np.sqrt(p * q).sum(), 0.0)),
    }
    expectation = {
        "pMSE": df * (1 - c) ** 2 * c / n,
        "VW": df,
        "FT": df,
        "JSD": df * np.log(2) / (2 * n),
        "WMabsDD": df,
        "G": df_g,
    }
    standardised = {f"S_{name}": _ratio(values[name], expected) for name, expected in expectation.items()}
    measures = values | standardised | {"df": df, "dfG": df_g}
    return {name: measures[name] for name in COLUMNS}


def _ratio(value: float, expected: float) -> float:
    return value / expected if expected > 0 else math.nan


def largest_gap(p: Floats, q: Floats) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples."""
    if not (p.size and q.size):
        return 0.0 if p.size == q.size else 1.0
    at = np.concatenate([p, q])  # scipy's ks_2samp warns for small samples
    below = [np.searchsorted(np.sort(values), at, "right") / values.size for values in (p, q)]
    return float(np.abs(below[0] - below[1]).max())


def count_above(generated: Floats, real: Floats) -> float:
    """Return the Mann-Whitney count: pairs in which the score of the generated row is higher, ties count half."""
    ordered = np.sort(real)
    below, up_to = (np.searchsorted(ordered, generated, side=side) for side in ("left", "right"))
    return float((below + up_to).sum() / 2)
