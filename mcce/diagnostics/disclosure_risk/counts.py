"""Counts of released rows beside those of the original: copies, single values, keys and what they tell of a target.

1. A copy is a released row that equals an original one in every column. A distinguishing cell holds a value that
   exactly one original row has in that column: whoever knows it knows whose it was. Of a counterfactual only cells that
   differ from the factual count; the others belong to whoever asked.
2. Keys are what an attacker knows of people; q is a combination of their values, t a value of the target. The original
   has d_tq rows of each and d_q of the keys, N_d in all; the released table s_tq, s_q, N_s. In per cent of N_d (but
   UiS and Dsyn, of N_s), as synthpop's `disclosure` (Raab, Nowok and Dibben, "Practical privacy metrics for synthetic
   data") computes them, sums being over q, or over t and q:
   UiO = sum 1[d_q = 1], UiS = sum 1[s_q = 1], UiOiS = sum 1[d_q = 1, s_q > 0], RepU = sum 1[d_q = 1, s_q = 1];
   Dorig = sum d_tq 1[d_tq = d_q], Dsyn = sum s_tq 1[s_tq = s_q], iS = sum d_q 1[s_q > 0],
   DiS = sum d_q 1[some s_tq = s_q > 0], DiSCO = sum d_tq 1[s_tq = s_q > 0], DiSDiO the same where d_tq = d_q too.
3. Correct attribution: baseCAPd = sum_t (d_t / N_d)^2, CAPd = sum d_tq^2 / d_q, CAPs the same of the released table,
   DCAP = sum d_tq s_tq / s_q, in per cent; TCAP = DiSCO over iS, as synthpop has it; TCAP_certain = DiSCO over DiS, as
   Little, Elliot and Allmendinger (2022) do.
4. Denominators: the largest and the mean d_tq of the cells that DiSCO counts; large ones come from relations that
   anybody knows. `check_1way` is the level of the target that makes up more than 90 per cent of what DiSCO counts, of
   more than 50 rows; `check_2way` the number of pairs of a target's level and a key's level, within cells of more than
   4 rows, where more than 80 per cent of the original rows with the key's level have that of the target.
5. Linkage (Goethals, Soerensen and Martens 2023, "The privacy issue of counterfactual explanations"): the share of
   released rows whose keys k or fewer original rows have, and at least one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.checks import check_count
from mcce.diagnostics.pairs import TablePair, read_pair
from mcce.diagnostics.tables import group_breaks
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.rng import hash_rows
from mcce.table import Data, Feature, Kind

ONE_WAY = (50, 90.0)  # rows, and per cent of what DiSCO counts, above which one level is told
TWO_WAY = (4, 80.0)  # rows of a cell, and per cent of the rows with the key's level


def disclosure_tables(
    real: Data,
    released: Data,
    *,
    keys: Sequence[Hashable],
    targets: Sequence[Hashable] | None = None,
    n_groups: Mapping[Any, int] | None = None,
    kinds: Mapping[Any, Kind] | None = None,
) -> pd.DataFrame:
    """Count what a released table tells of the people in the real one to whom knows the keys.

    Parameters
    ----------
    real, released : DataFrame or array
        Tables with the same columns, of any sizes.
    keys : list of column names
        What an attacker knows.
    targets : list of column names or None
        What the attacker wants to know; None takes all other columns.
    n_groups : dict or None
        For numeric columns, keys or targets, into how many groups they are cut; others are compared exactly.
    kinds : dict or None
        Overrides of column kinds, as for `ChainModel`.

    Returns
    -------
    DataFrame
        Indexed by target, in per cent: UiO, UiS, UiOiS, RepU (the same for all targets), Dorig, Dsyn, iS, DiS, DiSCO,
        DiSDiO, then max_denom and mean_denom, baseCAPd, CAPd, CAPs, DCAP, TCAP, TCAP_certain, check_1way and
        check_2way; see `mcce.diagnostics.disclosure_risk.counts`.

    Examples
    --------
    >>> import mcce
    >>> X = mcce.datasets.load_loans(1000).X[["age", "sex", "housing"]]
    >>> drawn = mcce.ChainModel(random_state=1).fit(X).sample(1000)
    >>> told = mcce.diagnostics.disclosure_tables(X, drawn, keys=["age", "sex"])
    >>> bool(told.loc["housing", "DiSCO"] < told.loc["housing", "iS"])
    True
    """
    pair = read_pair(real, released, kinds)
    places = find_columns(keys, pair.names, "keys")
    wanted = [name for name in pair.names if name not in set(keys)] if targets is None else list(targets)
    aims = find_columns(wanted, pair.names, "targets")
    both = sorted(set(places) & set(aims))
    if both:
        raise InputError(f"{listing([pair.names[j] for j in both])} is among keys and targets; name it in one of them.")
    groups = dict(n_groups or {})
    find_columns(list(groups), pair.names, "n_groups", fewest=0)
    cells = [_grouped(pair, j, groups.get(name)) for j, name in enumerate(pair.names)]
    n_real = pair.real.shape[0]
    original, other = (np.column_stack([c[part] for c in cells]) for part in (slice(n_real), slice(n_real, None)))
    rows = []
    for j in aims:
        rows.append(name_level(measure_target(original, other, places, j), pair.features[j]))
    return pd.DataFrame(rows, index=pd.Index(wanted, name="target", tupleize_cols=False))


def name_level(measured: dict[str, Any], feature: Feature) -> dict[str, Any]:
    """Return the measures of a target with the level of `check_1way` as its value, if the target has levels."""
    level, levels = measured["check_1way"], feature.levels
    if level is None or levels is None or np.isnan(level):
        return measured
    return {**measured, "check_1way": levels[int(level)]}


def find_columns(names: Sequence[Hashable], known: Sequence[Hashable], what: str, fewest: int = 1) -> list[int]:
    if isinstance(names, str):
        raise InputError(f"{what} is the text {names!r}; give a list of column names, as [{names!r}].")
    given = list(names)
    if len(given) < fewest:
        raise InputError(f"{what} is empty; name at least {fewest} of the columns {listing(known)}.")
    for name in given:
        if name not in known:
            raise InputError(f"{what} names {name!r}, which is no column; {did_you_mean(name, known)}")
    if len(set(given)) < len(given):
        raise InputError(f"{what} names a column twice ({listing(given)}); name each once.")
    return [list(known).index(name) for name in given]


def _grouped(pair: TablePair, j: int, n_groups: int | None) -> Floats:
    """Return a column of both tables, real rows first, cut into groups if that is asked for."""
    values = np.concatenate([pair.real[:, j], pair.generated[:, j]])
    if n_groups is None:
        return values
    if not pair.features[j].is_numeric:
        raise InputError(f"n_groups names {pair.names[j]!r}, which has levels; only numbers are cut into groups.")
    check_count(n_groups, f"n_groups of {pair.names[j]!r}", least=2)
    groups = np.searchsorted(group_breaks(values, n_groups)[1:-1], values, side="right").astype(np.float64)
    return np.where(np.isnan(values), np.nan, groups)


def count_by(original: Floats, released: Floats, columns: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Return the number of the combination of some columns in each row, original first, and both tables' counts."""
    both = np.concatenate([original[:, columns], released[:, columns]])
    number = np.asarray(np.unique(hash_rows(both), return_inverse=True)[1], dtype=np.int64)
    n = original.shape[0]
    size = int(number.max()) + 1
    return number, np.bincount(number[:n], minlength=size), np.bincount(number[n:], minlength=size)


def measure_target(original: Floats, released: Floats, keys: Sequence[int], target: int) -> dict[str, Any]:
    n_d, n_s = original.shape[0], released.shape[0]
    of_keys, d_q, s_q = count_by(original, released, keys)
    of_cell, d_tq, s_tq = count_by(original, released, [*keys, target])
    q = np.zeros(d_tq.size, dtype=np.int64)
    q[of_cell] = of_keys
    values = np.concatenate([original[:, target], released[:, target]])
    t = np.zeros(d_tq.size)
    t[of_cell] = values
    certain = (s_tq == s_q[q]) & (s_tq > 0)
    told = np.where(certain, d_tq, 0)
    any_certain = np.bincount(q[certain], minlength=d_q.size) > 0
    i_s, di_s, disco = int(d_q[s_q > 0].sum()), int(d_q[any_certain].sum()), int(told.sum())
    _, d_t, _ = count_by(original, released, [target])
    with np.errstate(divide="ignore", invalid="ignore"):
        p_s = np.where(s_q[q] > 0, s_tq / s_q[q], 0.0)
        p_d = np.where(d_q[q] > 0, d_tq / d_q[q], 0.0)
    figures = {
        "UiO": (d_q == 1).sum() / n_d,
        "UiS": (s_q == 1).sum() / n_s,
        "UiOiS": ((d_q == 1) & (s_q > 0)).sum() / n_d,
        "RepU": ((d_q == 1) & (s_q == 1)).sum() / n_d,
        "Dorig": d_tq[d_tq == d_q[q]].sum() / n_d,
        "Dsyn": s_tq[s_tq == s_q[q]].sum() / n_s,
        "iS": i_s / n_d,
        "DiS": di_s / n_d,
        "DiSCO": disco / n_d,
        "DiSDiO": told[d_tq == d_q[q]].sum() / n_d,
        "baseCAPd": ((d_t / n_d) ** 2).sum(),
        "CAPd": (p_d * d_tq).sum() / n_d,
        "CAPs": (p_s * s_tq).sum() / n_s,
        "DCAP": (p_s * d_tq).sum() / n_d,
        "TCAP": disco / i_s if i_s else np.nan,
        "TCAP_certain": disco / di_s if di_s else np.nan,
    }
    return {
        **{name: 100 * float(value) for name, value in figures.items()},
        "max_denom": int(told.max()),
        "mean_denom": float(told[told > 0].mean()) if disco else np.nan,
        "check_1way": _one_way(told, t),
        "check_2way": _two_way(told, t, original, keys, target, of_cell),
    }


def _one_way(told: Ints, t: Floats) -> float | None:
    """Return the level that makes up most of what is disclosed, if it does."""
    levels, place = np.unique(t, return_inverse=True, equal_nan=True)
    by_level = np.bincount(place, weights=told, minlength=levels.size)
    most = int(by_level.argmax())
    rows, share = ONE_WAY
    return float(levels[most]) if by_level[most] > rows and 100 * by_level[most] > share * by_level.sum() else None


def _two_way(told: Ints, t: Floats, original: Floats, keys: Sequence[int], target: int, of_cell: Ints) -> int:
    """Return how many pairs of a key's level and the target's tell what anybody knows."""
    n = original.shape[0]
    rows, share = TWO_WAY
    inside = told[of_cell[:n]] > rows
    known = 0
    for key in keys:
        pairs, of_key = (hash_rows(original[:, columns]) for columns in ([key, target], [key]))
        kinds, first, with_pair = np.unique(pairs, return_index=True, return_counts=True)
        of_each = dict(zip(*np.unique(of_key, return_counts=True)))
        for pair in np.unique(pairs[inside]):
            at = int(np.searchsorted(kinds, pair))
            known += 100 * int(with_pair[at]) > share * int(of_each[of_key[first[at]]])
    return known


def copies_of(released: Floats, original: Floats) -> Bools:
    return np.isin(hash_rows(released), hash_rows(original))


def distinguishing_cells(released: Floats, original: Floats, handed_out: Bools) -> Bools:
    """Return which cells, of those handed out, hold a value that exactly one original row has."""
    found = np.zeros(released.shape, dtype=bool)
    for j in range(released.shape[1]):
        values = np.sort(original[:, j])
        first = np.searchsorted(values, released[:, j])
        found[:, j] = np.searchsorted(values, released[:, j], side="right") - first == 1
    return found & handed_out & ~np.isnan(released)


def linked(released: Floats, original: Floats, keys: Sequence[int], k: int) -> Bools:
    """Return which released rows have keys that k or fewer original rows have, and at least one."""
    number, counts, _ = count_by(original, released, keys)
    matched = counts[number[original.shape[0] :]]
    return (matched >= 1) & (matched <= k)
