"""Disclosure measures by counts: copies, distinguishing values, keys, and the attribution of a target by keys.

1. A copy is a released row that equals an original one in every column. A distinguishing cell holds a value that
   exactly one original row has in that column, and so identifies this row. Of a counterfactual only cells that differ
   from the factual count, since the others come from the query.
2. Keys are the columns known to an attacker; q is a combination of their values, t a value of the target. The original
   has d_tq rows of each and d_q of the keys, N_d in all; the released table s_tq, s_q, N_s. In per cent of N_d (but
   UiS and Dsyn, of N_s), as synthpop's `disclosure` (Raab, Nowok and Dibben, "Practical privacy metrics for synthetic
   data") computes them, sums being over q, or over t and q:
   UiO = sum 1[d_q = 1], UiS = sum 1[s_q = 1], UiOiS = sum 1[d_q = 1, s_q > 0], RepU = sum 1[d_q = 1, s_q = 1];
   Dorig = sum d_tq 1[d_tq = d_q], Dsyn = sum s_tq 1[s_tq = s_q], iS = sum d_q 1[s_q > 0],
   DiS = sum d_q 1[some s_tq = s_q > 0], DiSCO = sum d_tq 1[s_tq = s_q > 0], DiSDiO the same where d_tq = d_q too.
3. Correct attribution: baseCAPd = sum_t (d_t / N_d)^2, CAPd = sum d_tq^2 / d_q, CAPs the same of the released table,
   DCAP = sum d_tq s_tq / s_q, in per cent; TCAP = DiSCO over iS, as synthpop has it; TCAP_certain = DiSCO over DiS, as
   Little, Elliot and Allmendinger (2022) do.
4. Denominators: the largest and the mean d_tq of the cells that DiSCO counts; large values indicate relations that
   are generally known.
5. Linkage (Goethals, Soerensen and Martens 2023, "The privacy issue of counterfactual explanations"): the share of
   released rows whose keys k or fewer original rows have, and at least one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from mcce.base.arrays import Bools, Floats, Ints
from mcce.exceptions import InputError, did_you_mean, listing
from mcce.rng import hash_rows


def find_columns(names: Sequence[Hashable], known: Sequence[Hashable], what: str) -> list[int]:
    if isinstance(names, str):
        raise InputError(f"{what} is the text {names!r}; give a list of column names, as [{names!r}].")
    given = list(names)
    if not given:
        raise InputError(f"{what} is empty; name at least one of the columns {listing(known)}.")
    for name in given:
        if name not in known:
            raise InputError(f"{what} names {name!r}, which is not a column; {did_you_mean(name, known)}")
    if len(set(given)) < len(given):
        raise InputError(f"{what} names a column twice ({listing(given)}); name each once.")
    return [list(known).index(name) for name in given]


def count_by(original: Floats, released: Floats, columns: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Return the code of the combination of some columns in each row, original first, and the counts in both tables."""
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
    certain = (s_tq == s_q[q]) & (s_tq > 0)
    disclosed = np.where(certain, d_tq, 0)
    any_certain = np.bincount(q[certain], minlength=d_q.size) > 0
    i_s, di_s, disco = int(d_q[s_q > 0].sum()), int(d_q[any_certain].sum()), int(disclosed.sum())
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
        "DiSDiO": disclosed[d_tq == d_q[q]].sum() / n_d,
        "baseCAPd": ((d_t / n_d) ** 2).sum(),
        "CAPd": (p_d * d_tq).sum() / n_d,
        "CAPs": (p_s * s_tq).sum() / n_s,
        "DCAP": (p_s * d_tq).sum() / n_d,
        "TCAP": disco / i_s if i_s else np.nan,
        "TCAP_certain": disco / di_s if di_s else np.nan,
    }
    return {
        **{name: 100 * float(value) for name, value in figures.items()},
        "max_denom": int(disclosed.max()),
        "mean_denom": float(disclosed[disclosed > 0].mean()) if disco else np.nan,
    }


def copies_of(released: Floats, original: Floats) -> Bools:
    return np.isin(hash_rows(released), hash_rows(original))


def distinguishing_cells(released: Floats, original: Floats, disclosed_at: Bools) -> Bools:
    """Mark the disclosed cells with a value that exactly one original row has."""
    found = np.zeros(released.shape, dtype=bool)
    for j in range(released.shape[1]):
        values = np.sort(original[:, j])
        first = np.searchsorted(values, released[:, j])
        found[:, j] = np.searchsorted(values, released[:, j], side="right") - first == 1
    return found & disclosed_at & ~np.isnan(released)


def linked(released: Floats, original: Floats, keys: Sequence[int], k: int) -> Bools:
    """Mark the released rows whose keys between 1 and k original rows have."""
    number, counts, _ = count_by(original, released, keys)
    matched = counts[number[original.shape[0] :]]
    return (matched >= 1) & (matched <= k)
