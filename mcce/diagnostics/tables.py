"""Comparison of generated and real rows by contingency tables of one or two features.

As synthpop's `utility.tables` (Raab, Nowok and Dibben 2021, "Assessing, visualizing and improving the utility of
synthetic data", arXiv 2109.12717):

1. Numbers are cut at quantiles of both tables together (`group_breaks`); levels are kept; a missing value is one
   more level.
2. Each cell has s generated and o real rows; n_s and n_o are the totals, N their sum, c = n_s / N, and k the number of
   cells that are not empty. The score of a cell is s / (s + o), the probability of being generated.
3. With r = n_s / n_o, and sums over the cells:
   pMSE = sum (s + o) (score - c)^2 / N, VW = sum (s - r o)^2 / (c (s + o)) (Voas and Williamson),
   FT = 4 sum (sqrt(s) - sqrt(r o))^2 (Freeman and Tukey), JSD the Jensen-Shannon divergence in bits,
   G = 2 sum s log(s / (r' o)) over the cells with rows of both tables, r' the ratio of the counts in these,
   MabsDD = sum |s / n_s - o / n_o|, WMabsDD = sum |s - r o| / sqrt(2 c (s + o) / pi),
   dBhatt the Bhattacharyya distance, and from the scores of the two tables SPECKS (the Kolmogorov-Smirnov distance),
   U (the Mann-Whitney count) and PO50 (per cent of correct predictions, generated above c, minus 50).
4. A standardised measure, S_..., is divided by its expectation for rows drawn from the real shares: df = k - 1
   for VW, FT, WMabsDD; dfG, the cells of G minus one, for G; df log(2) / 2N for JSD; df (1 - c)^2 c / N for pMSE.
   A feature that generated rows copy from real ones (`fixed`) cannot differ: in its tables df is k - k_f, and dfG
   likewise, with k_f the number of its nonempty cells; a table of fixed features alone has df 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from mcce.base.arrays import Floats, Ints
from mcce.base.checks import check_count
from mcce.diagnostics.pairs import TablePair, find_copied, read_pair
from mcce.exceptions import InputError
from mcce.table import Data, Kind


def utility_tables(
    real: Data,
    generated: Data,
    *,
    tables: Literal["oneway", "twoway"] = "twoway",
    n_groups: int = 5,
    fixed: Sequence[Hashable] = (),
    kinds: Mapping[Any, Kind] | None = None,
) -> pd.DataFrame:
    """Compare the counts of two tables, feature by feature or pair by pair.

    Parameters
    ----------
    real, generated : DataFrame or array
        Tables with the same columns, of any sizes.
    tables : "oneway" or "twoway"
    n_groups : int
        The number of groups that numbers are cut into.
    fixed : list of column names
        Columns that `generated` copies from `real`.
    kinds : dict or None
        Overrides of column kinds, as for `ChainModel`.

    Returns
    -------
    DataFrame
        A row for each feature, or for each pair of features in their order; indexed by var1, or by var1 and var2. The
        columns are pMSE, S_pMSE, df, VW, FT, JSD, SPECKS, WMabsDD, U, G, PO50, MabsDD, dBhatt, S_VW, S_FT, S_JSD,
        S_WMabsDD, S_G, dfG; see `mcce.diagnostics.tables` for their definitions. An `S_` measure is about 1 for rows
        drawn from the shares of the real table, and N / n_o for a table independent of it; it is missing if all rows
        are in one cell, or all features are fixed.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans().X
    >>> chain = mcce.ChainModel(random_state=1).fit(X)
    >>> measures = mcce.diagnostics.utility_tables(X, chain.sample(len(X)), tables="oneway")
    >>> measures.shape
    (10, 19)
    >>> bool(measures["S_pMSE"].mean() < 3)
    True
    """
    if tables not in ("oneway", "twoway"):
        raise InputError(f"tables is {tables!r}; allowed: 'oneway', 'twoway'.")
    check_count(n_groups, "n_groups")
    pair = read_pair(real, generated, kinds)
    codes = [_cells(pair, j, n_groups) for j in range(len(pair.features))]
    nothing = np.zeros_like(codes[0])
    copied = find_copied(pair, fixed)
    margins = [codes[j] if j in copied else nothing for j in range(len(codes))]
    if tables == "oneway":
        combined = codes
        index: pd.Index[Any] = pd.Index(pair.names, name="var1", tupleize_cols=False)
    else:
        if len(codes) < 2:
            raise InputError("real has one column; tables='twoway' needs two. Use tables='oneway'.")
        couples = list(itertools.combinations(range(len(codes)), 2))
        combined, margins = ([_crossed(part[i], part[j]) for i, j in couples] for part in (codes, margins))
        index = pd.MultiIndex.from_tuples([(pair.names[i], pair.names[j]) for i, j in couples], names=["var1", "var2"])
    n_real = pair.real.shape[0]
    rows = [
        _measures(np.bincount(c[:n_real], minlength=c.max() + 1), np.bincount(c[n_real:]), same)
        for c, same in zip(combined, (_margin_of_cells(*both) for both in zip(combined, margins)))
    ]
    return pd.DataFrame(rows, index=index)


def _crossed(a: Ints, b: Ints) -> Ints:
    """Return the cell of every row in the table of two columns of codes."""
    return a * (int(b.max()) + 1) + b


def _margin_of_cells(cells: Ints, margin: Ints) -> Ints:
    """Return for each cell that of the table of its fixed features."""
    of_cell = np.zeros(int(cells.max()) + 1, dtype=np.int64)
    of_cell[cells] = margin
    return of_cell


def group_breaks(values: Floats, n_groups: int = 5) -> Floats:
    """Return the breaks between groups of numbers; an interval includes its lower end, the last one both.

    1. At most `n_groups` distinct values: each is a group, with breaks half-way between them.
    2. Otherwise distinct quantiles of equal shares.
    3. With three breaks or fewer, because of ties, groups of equal width.

    Parameters
    ----------
    values : array
        Numbers of both tables; missing values are ignored.
    n_groups : int

    Examples
    --------
    >>> import numpy as np
    >>> from mcce.diagnostics.tables import group_breaks
    >>> group_breaks(np.array([1.0, 1.0, 2.0, 4.0]))
    array([0.25, 1.5 , 3.  , 4.75])
    >>> group_breaks(np.arange(101.0), 4)
    array([  0.,  25.,  50.,  75., 100.])
    """
    seen = values[~np.isnan(values)]
    distinct = np.unique(seen)
    if distinct.size <= n_groups:
        if distinct.size < 2:
            return np.repeat(distinct, 2)
        margin = (distinct[-1] - distinct[0]) / (distinct.size - 1) / 2
        middles = (distinct[1:] + distinct[:-1]) / 2
        return np.concatenate([[distinct[0] - margin], middles, [distinct[-1] + margin]])
    breaks = np.unique(np.quantile(seen, np.linspace(0, 1, n_groups + 1)))
    return breaks if breaks.size > 3 else np.linspace(distinct[0], distinct[-1], n_groups + 1)


def _cells(pair: TablePair, j: int, n_groups: int) -> Ints:
    """Return the group or level of every row, real rows first, numbered from 0 without gaps."""
    values = np.concatenate([pair.real[:, j], pair.generated[:, j]])
    codes = values
    if pair.features[j].is_numeric:
        inner = group_breaks(values, n_groups)[1:-1]
        codes = np.searchsorted(inner, values, side="right").astype(np.float64)
        codes[np.isnan(values)] = np.nan
    return np.asarray(np.unique(codes, return_inverse=True, equal_nan=True)[1], dtype=np.int64)


def _measures(o: Ints, s: Ints, margin: Ints) -> dict[str, float]:
    """Return the measures of one table with `o` real and `s` generated rows in each cell.

    `margin` numbers the cells of the fixed features, where counts cannot differ.
    """
    s = np.pad(s, (0, o.size - s.size))
    filled = (o + s) > 0
    o, s, margin = o[filled], s[filled], margin[filled]
    n_o, n_s = int(o.sum()), int(s.sum())
    c, ratio, n = n_s / (n_o + n_s), n_s / n_o, n_o + n_s
    score = s / (s + o)
    p, q = o / n_o, s / n_s
    df = o.size - np.unique(margin).size
    likelihood, df_likelihood = _likelihood(o, s, margin)
    pmse = float(((s + o) * (score - c) ** 2).sum() / n)
    vw = float(((s - ratio * o) ** 2 / (c * (s + o))).sum())
    ft = float(4 * ((np.sqrt(s) - np.sqrt(ratio * o)) ** 2).sum())
    jsd = float(_divergence(p, (p + q) / 2) + _divergence(q, (p + q) / 2)) / 2
    weighted = float((np.abs(s - ratio * o) / np.sqrt(2 / np.pi * c * (s + o))).sum())
    difference = float(np.abs(p - q).sum())
    overlap = float(np.sqrt(p * q).sum())
    return {
        "pMSE": pmse,
        "S_pMSE": _over(pmse, df * (1 - c) ** 2 * c / n),
        "df": df,
        "VW": vw,
        "FT": ft,
        "JSD": jsd,
        "SPECKS": difference / 2,  # the distributions of the scores differ most where the score passes c
        "WMabsDD": weighted,
        "U": count_above(np.repeat(score, s), np.repeat(score, o)),
        "G": likelihood,
        "PO50": float(100 * (s[score > c].sum() + o[score <= c].sum()) / n - 50),
        "MabsDD": difference,
        "dBhatt": float(np.sqrt(max(1 - overlap, 0.0))),
        "S_VW": _over(vw, df),
        "S_FT": _over(ft, df),
        "S_JSD": _over(jsd, df * np.log(2) / (2 * n)),
        "S_WMabsDD": _over(weighted, df),
        "S_G": _over(likelihood, df_likelihood),
        "dfG": df_likelihood,
    }


def _likelihood(o: Ints, s: Ints, margin: Ints) -> tuple[float, int]:
    """Return G and its degrees of freedom."""
    shared = (o > 0) & (s > 0)
    o, s, margin = o[shared], s[shared], margin[shared]
    if not o.size:
        return np.nan, 0
    return float(2 * (s * np.log(s / (o * (s.sum() / o.sum())))).sum()), o.size - np.unique(margin).size


def _divergence(p: Floats, middle: Floats) -> float:
    held = p > 0
    return float((p[held] * np.log2(p[held] / middle[held])).sum())


def _over(value: float, expected: float) -> float:
    return value / expected if expected > 0 else np.nan


def count_above(generated: Floats | Sequence[float], real: Floats | Sequence[float]) -> float:
    """Return the Mann-Whitney count: pairs in which the score of the generated row is higher, ties count half."""
    ordered = np.sort(np.asarray(real, dtype=np.float64))
    below, up_to = (np.searchsorted(ordered, generated, side=side) for side in ("left", "right"))
    return float((below + up_to).sum() / 2)
