"""Comparison of the cost of recourse between groups of factuals.

1. Only factuals without the wanted decision are counted.
2. A group is a value of a column, or a quantile range of an ordered column, of sizes as equal as ties allow. Factuals
   with a missing value form a group.
3. For each group compute the share explained and, over the best counterfactuals, the means of the Gower distance, of L0
   and, where measured, of the plausibility; and the difference of each to the mean over all other groups (the rest).
4. Intervals: percentiles of the bootstrap over factuals (Efron and Tibshirani 1993, chapter 13). The group and its rest
   are resampled separately, so that both keep their sizes. A group of one has no interval. The interval has width 0
   where all members have the same value.

5. A permutation test of each difference: `p` is the share of assignments of the values to the group and its rest, in
   their sizes, whose Welch statistic is at least as large in absolute value. All assignments are enumerated if there
   are at most 5000, else 4999 are drawn and the observed one is counted among them. The test is exact if the two
   distributions are equal. As the statistic is studentized, it is asymptotically valid if only the means are equal
   (Janssen 1997, Stat. Probab. Lett. 36, 9-21). In small groups whose values differ in shape from the rest it is
   liberal: with a log-normal group of 20 and a normal rest of 60, equal in mean, it rejected at level 0.05 in 0.087 of
   1000 simulations; with 40 and 40 in 0.066. `p_adjusted` is corrected for the number of groups and measures (Holm
   1979); of two groups the second repeats the tests of the first, which are counted once.

Intervals and tests are conditional on the draws and the fitted explainer, and concern new factuals from the same
groups. Intervals are not simultaneous: at 95 per cent, one group in twenty differs from the rest by chance;
`p_adjusted` is corrected for this. A difference does not prove unfairness, since groups may differ in other features.

Percentile intervals are slightly narrow in small groups: with about 50 explained factuals in a group and skewed
distances, intervals of confidence 0.9 covered the true mean and difference in 0.88 of 6000 simulations.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count, is_number
from mcce.exceptions import InputError, did_you_mean, spell, spell_all
from mcce.report.changes import has_order
from mcce.report.names import Names, value_text
from mcce.report.plots import groups_plot
from mcce.report.reasons import ALREADY
from mcce.table.checks import find_labels

if TYPE_CHECKING:
    from mcce.base.canvas import Panels

MOST_VALUES, MOST_GROUPS = 10, 30  # groups of numbers and dates; of other columns
N_BOOTSTRAP = 2000
N_PERMUTATIONS, MOST_ENUMERATED = 4999, 5000
ROUNDING = 1e-9  # relative tolerance of statistics
CELLS = 2_000_000  # resampled at a time
WORDS = {
    "gower": "Gower distance to the factual, mean over the features",
    "L0": "features changed, mean",
    "explained": "share of the factuals with a counterfactual",
    "plausibility": "share of real rows that are at least as unusual",
}
_EXPLAINED = list(WORDS).index("explained")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Groups:
    """The results by group, as `Counterfactuals.by` returns them.

    Attributes
    ----------
    table : DataFrame
        Indexed by (group, measure): `n`, the number of factuals, `mean`, and its interval `low`, `high`; then `rest`,
        the mean over all other groups, `difference`, mean minus rest, with its interval `difference_low`,
        `difference_high`, and the p-value of a permutation test of no difference, `p`, and `p_adjusted`, corrected for
        the number of groups and measures. The group of missing values is NaN.
    overall : DataFrame
        Indexed by measure: `n`, `mean`, `low`, `high` of all factuals together.
    name : str
        The name of the column of groups.
    confidence : float
        The coverage of the intervals.
    texts : tuple of str
        The names of the groups, in the order of `table`.
    """

    table: pd.DataFrame
    overall: pd.DataFrame
    name: str
    confidence: float
    texts: tuple[str, ...]

    def plot(self, axes: Any = None) -> Panels:
        """Draw each measure by group, with its intervals.

        Parameters
        ----------
        axes : sequence of Axes, optional
            Where to draw: one for each measure. By default a new figure.
        """
        return groups_plot(self.table, self.overall, self.name, confidence=self.confidence, texts=self.texts, axes=axes)

    def _headline(self) -> str:
        counted = f"{self.overall['n']['explained']} factuals without the wanted decision"
        percent = f"{100 * self.confidence:.12g} %"
        return f"Recourse by {self.name}: {counted}, {percent} intervals by bootstrap over the factuals"

    def _shown(self) -> pd.DataFrame:
        """Return the figures as text: a row for each group, and one for each difference to the rest."""
        measures, names = list(self.overall.index), list(self.texts)
        parts = [self.table.iloc[k * len(measures) : (k + 1) * len(measures)] for k in range(len(names))]
        rows = [_row(part, ["mean", "low", "high"]) for part in [*parts, self.overall]]
        rows = [[str(part["n"].iloc[_EXPLAINED]), *row] for part, row in zip([*parts, self.overall], rows)]
        if len(names) > 1:
            differences = ["difference", "difference_low", "difference_high"]
            rows += [["", *map(_with_p, _row(part, differences), part["p_adjusted"])] for part in parts]
        index = [*names, "all", *(f"{name} less the rest" for name in names)][: len(rows)]
        return pd.DataFrame(rows, index=index, columns=["factuals", *measures])

    def __repr__(self) -> str:
        reading = [f"{name}: {WORDS[name]}" for name in self.overall.index]
        reading += ["p: permutation test of no difference, adjusted for groups and measures"] * (len(self.texts) > 1)
        return "\n".join([self._headline(), "", str(self._shown().to_string()), "", *reading])

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self._headline())}</b></p>{self._shown().to_html(border=0)}"


def compare_groups(
    factuals: pd.DataFrame,
    best: pd.DataFrame,
    unexplained: pd.DataFrame,
    groups: Hashable | pd.Series[Any],
    *,
    bins: int | None,
    confidence: float,
    random_state: int,
    names: Names,
) -> Groups:
    """Compare groups of factuals; `best` holds the measures of the best counterfactual of each, by (id, rank)."""
    check_confidence(confidence)
    check_count(random_state, "random_state", least=0)
    column = _find_column(factuals, groups)
    of_best = find_labels(factuals.index, best.index.get_level_values("id"))
    explained = np.zeros(len(factuals), dtype=bool)
    explained[of_best] = True
    already = unexplained.index[(unexplained["reason"] == ALREADY).to_numpy()]
    counted = explained | ~factuals.index.isin(already)
    if not counted.any():
        raise InputError("no factual lacked the wanted decision, so there is nothing to compare; explain other rows.")
    measures = [name for name in WORDS if name == "explained" or name in best]
    values: Floats = np.full((len(factuals), len(measures)), np.nan)
    for k, name in enumerate(measures):
        values[of_best, k] = 1.0 if name == "explained" else best[name].to_numpy(dtype=np.float64)
        if name == "explained":
            values[~explained, k] = 0.0
    is_feature = not isinstance(groups, pd.Series)  # a Series may have the name of a feature
    used = names if is_feature else Names()
    labels, codes = _group(column[counted], bins, used)
    measured = values[counted]
    parts = [figures(measured, codes == k, confidence, random_state) for k in range(len(labels))]
    table = pd.concat(parts)
    table["p"] = permutation_tests(measured, codes, len(labels), random_state).ravel()
    distinct = len(measures) if len(labels) == 2 else len(table)
    table["p_adjusted"] = np.resize(holm(table["p"].to_numpy()[:distinct]), len(table))
    index = pd.MultiIndex.from_product([pd.Index(labels, tupleize_cols=False), measures], names=["group", "measure"])
    whole = figures(measured, np.ones(len(measured), dtype=bool), confidence, random_state)
    return Groups(
        table=table.set_axis(index, axis=0),
        overall=whole[["n", "mean", "low", "high"]].set_axis(pd.Index(measures, name="measure"), axis=0),
        name=used.label(column.name) if column.name is not None else "group",
        confidence=float(confidence),
        texts=tuple(used.text(column.name, each) if bins is None or pd.isna(each) else str(each) for each in labels),
    )


def check_confidence(confidence: float) -> None:
    """Raise unless a confidence lies between 0 and 1."""
    if not is_number(confidence) or not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}; it must lie between 0 and 1, as in 0.95.")


def _find_column(factuals: pd.DataFrame, groups: Any) -> pd.Series[Any]:
    if isinstance(groups, pd.Series):
        if not groups.index.is_unique:
            twice = groups.index[groups.index.duplicated()].unique()
            raise InputError(
                f"the index of the groups has {spell_all(twice, 5)} more than once; give one value per id."
            )
        missing = factuals.index[~factuals.index.isin(groups.index)]
        if len(missing):
            raise InputError(
                f"the groups have no value for {len(missing)} of {len(factuals)} factuals (ids "
                f"{spell_all(missing, 5)}); give a Series whose index holds every id, NaN where the group is unknown."
            )
        return groups.reindex(factuals.index)
    if not isinstance(groups, Hashable):
        raise InputError(
            f"groups is a {type(groups).__name__}; give the name of a column, or a Series with the ids as its index: "
            "pd.Series(values, index=found.factuals.index)."
        )
    if groups not in factuals.columns:
        raise InputError(
            f"the factuals have no column {spell(groups)}; for one that the model does not see give a Series with "
            f"the ids as its index; {did_you_mean(groups, factuals.columns)}"
        )
    return factuals[groups]


def _group(column: pd.Series[Any], bins: int | None, names: Names) -> tuple[list[Any], Ints]:
    """Return the names of the groups, and the position of the group of each factual (2)."""
    codes: Ints
    is_number_like = has_order(column)
    is_ordered = is_number_like or (isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.remove_unused_categories()
        levels = list(column.cat.categories)
        codes = np.asarray(column.cat.codes, dtype=np.int64)
    else:
        places, found = pd.factorize(column)
        levels = list(found)
        try:
            order = sorted(range(len(levels)), key=lambda k: levels[k])
        except TypeError:  # values of different types keep their order of appearance
            order = list(range(len(levels)))
        levels = [levels[k] for k in order]
        codes = np.asarray(np.append(np.argsort(order), -1)[places], dtype=np.int64)
    what = f"the groups by {spell(column.name)}"
    if bins is not None:
        if not is_ordered:
            raise InputError(f"bins goes with numbers, dates and ordered levels; {what} have no order. Leave it out.")
        levels, codes = _quantile_groups(
            levels, codes, check_count(bins, "bins", least=2), partial(names.text, column.name)
        )
    elif len(levels) > (MOST_VALUES if is_number_like else MOST_GROUPS):
        way = "cut it into quantiles with bins=4" if is_ordered else "join some levels"
        raise InputError(
            f"{what} would be {len(levels)}, one for each value; {way}, or give a Series of coarser groups."
        )
    missing = codes < 0
    if missing.any():
        codes = np.where(missing, len(levels), codes)
        levels = [*levels, np.nan]
    return levels, codes


def _quantile_groups(levels: list[Any], codes: Ints, bins: int, text: Callable[..., str]) -> tuple[list[Any], Ints]:
    """Join adjacent levels to groups of about equal size, named by their lowest and highest level."""
    present = codes[codes >= 0]
    breaks = np.empty(0)
    if present.size:
        breaks = np.unique(np.quantile(present, np.arange(1, bins) / bins, method="inverted_cdf"))
    group_of_level = np.unique(np.searchsorted(breaks, np.arange(len(levels))), return_inverse=True)[1]
    n_groups = int(group_of_level.max(initial=-1)) + 1
    ends = [np.flatnonzero(group_of_level == k)[[0, -1]] for k in range(n_groups)]
    names: list[str] = []
    for digits in range(4, 18):  # enough digits to distinguish the groups
        pairs = [[text(levels[k], digits, unit=False) for k in pair] for pair in ends]
        highest = [text(levels[b], digits) for _, b in ends]
        names = [last if low == high else f"{low} to {last}" for (low, high), last in zip(pairs, highest)]
        if len(set(names)) == n_groups:
            break
    return list(names), np.append(group_of_level, -1)[codes]


def figures(values: Floats, inside: Bools, confidence: float, seed: int) -> pd.DataFrame:
    """Return the figures of one group, a row for each measure, with its difference to the rest."""
    begin, end = (1 - confidence) / 2, (1 + confidence) / 2
    mean, rest = _means(values[inside]), _means(values[~inside])
    own, others = (_resampled_means(values, members, seed) for members in (inside, ~inside))
    return pd.DataFrame(
        {
            "n": (~np.isnan(values[inside])).sum(axis=0),
            "mean": mean,
            "low": _quantiles(own, begin),
            "high": _quantiles(own, end),
            "rest": rest,
            "difference": mean - rest,
            "difference_low": _quantiles(own - others, begin),
            "difference_high": _quantiles(own - others, end),
        }
    )


def permutation_tests(values: Floats, codes: Ints, n_groups: int, seed: int) -> Floats:
    """Return the p-values of each group against the rest, (group, measure); NaN where either has fewer than two."""
    found: Floats = np.full((n_groups, values.shape[1]), np.nan)
    known = ~np.isnan(values)
    for mask in np.unique(known, axis=1).T:  # measures of the same factuals share the permutations
        member = (codes[mask][:, None] == np.arange(n_groups)).astype(np.float64)
        sizes, n = member.sum(axis=0), int(mask.sum())
        tested = np.flatnonzero((sizes >= 2) & (n - sizes >= 2))
        few = np.array([math.comb(n, int(sizes[g])) <= MOST_ENUMERATED for g in tested], dtype=bool)
        at = np.flatnonzero((known == mask[:, None]).all(axis=0))
        found[np.ix_(tested, at)] = 1.0  # for constant values
        at = at[np.ptp(values[np.ix_(mask, at)], axis=0) > 0.0] if n else at[:0]
        if not tested.size or not at.size:
            continue
        columns = values[np.ix_(mask, at)].T
        columns = columns - columns.mean(axis=1)[:, None]
        observed = _welch(columns, member[:, tested])
        for i, g in zip(np.flatnonzero(few), tested[few]):
            found[g, at] = [_enumerated(column, int(sizes[g]), t) for column, t in zip(columns, observed[:, i])]
        if few.all():
            continue
        larger = np.ones(observed.shape)
        stream, step = np.random.default_rng([seed, zlib.crc32(np.packbits(mask).tobytes())]), max(CELLS // n, 1)
        for first in range(0, N_PERMUTATIONS, step):
            order = np.tile(np.arange(n, dtype=np.int32), (min(step, N_PERMUTATIONS - first), 1))
            stream.permuted(order, axis=1, out=order)
            for column, count, known_statistic in zip(columns, larger, observed):
                count += _is_larger(_welch(column[order], member[:, tested]), known_statistic).sum(axis=0)
        found[np.ix_(tested[~few], at)] = (larger / (N_PERMUTATIONS + 1)).T[~few]
    return found


def _welch(rows: Floats, member: Floats) -> Floats:
    """Return the absolute Welch statistic of each group against the rest, (row, group); inf for constant values."""
    sizes, n = member.sum(axis=0), rows.shape[1]
    sums, squares = rows @ member, rows**2 @ member
    spread: Floats = np.zeros(sums.shape)
    means = []
    for m, total, square in (
        (sizes, sums, squares),
        (n - sizes, rows.sum(axis=1)[:, None] - sums, (rows**2).sum(axis=1)[:, None] - squares),
    ):
        means.append(total / m)
        spread += np.maximum(square - total**2 / m, 0.0) / (m - 1) / m
    difference = np.abs(means[0] - means[1])
    difference[difference < ROUNDING * np.abs(rows).max(initial=0.0)] = 0.0
    spread[spread < (ROUNDING * np.abs(rows).max(initial=0.0)) ** 2] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference > 0, difference / np.sqrt(spread), 0.0)


def _is_larger(statistic: Floats, observed: Floats | float) -> Bools:
    return np.asarray(statistic >= observed * (1.0 - ROUNDING))


def _enumerated(values: Floats, size: int, observed: float) -> float:
    """Return the share of all groups of this size whose statistic is at least as large as the observed one."""
    chosen = np.array(list(itertools.combinations(range(values.size), size)))
    rest = np.array([np.setdiff1d(np.arange(values.size), some) for some in chosen])
    rows = values[np.hstack([chosen, rest])]
    member = (np.arange(values.size) < size).astype(np.float64)[:, None]
    return float(_is_larger(_welch(rows, member)[:, 0], observed).mean())


def holm(p: Floats) -> Floats:
    """Return p-values corrected for their number (Holm 1979), ignoring NaN.

    Examples
    --------
    >>> import numpy as np
    >>> holm(np.array([0.01, 0.04, 0.03, np.nan])).round(2).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]
    adjusted: Floats = np.full(p.size, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1)), 1.0)
    return adjusted


def _means(values: Floats) -> Floats:
    """Return the mean of each column over its known values; NaN without any."""
    n = (~np.isnan(values)).sum(axis=0)
    return np.where(n > 0, np.nansum(values, axis=0) / np.maximum(n, 1), np.nan)


def _resampled_means(table: Floats, members: Bools, seed: int) -> Floats:
    """Return the means of resampled members; all NaN for columns with fewer than two known values.

    The random stream depends on the members, so that two complementary groups use the same draws.
    """
    values, n = table[members], int(members.sum())
    stream = np.random.default_rng([seed, zlib.crc32(np.packbits(members).tobytes())])
    means: Floats = np.full((N_BOOTSTRAP, values.shape[1]), np.nan)
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    step = max(CELLS // max(n, 1), 1)
    for first in range(0, N_BOOTSTRAP if n else 0, step):
        size = min(step, N_BOOTSTRAP - first)
        rows = stream.integers(0, n, (size, n))
        counts = np.stack([np.bincount(row, minlength=n) for row in rows]).astype(np.float64)
        seen = counts @ known
        means[first : first + size] = np.where(seen > 0, counts @ filled / np.maximum(seen, 1), np.nan)
    means[:, known.sum(axis=0) < 2] = np.nan
    return means


def _quantiles(means: Floats, share: float) -> Floats:
    """Return a quantile of each column over the resamples with a mean; NaN without any."""
    columns = (column[~np.isnan(column)] for column in means.T)
    return np.array([np.quantile(column, share) if column.size else np.nan for column in columns])


def _row(part: pd.DataFrame, columns: list[str]) -> list[str]:
    return [_with_interval(*figures) for figures in part[columns].itertuples(index=False)]


def _with_p(text: str, p: float) -> str:
    return text if np.isnan(p) else f"{text} p {value_text(p, 2)}"


def _with_interval(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return "none"
    interval = "" if np.isnan(low) else f" [{value_text(low, 3)}, {value_text(high, 3)}]"
    return value_text(value, 3) + interval
