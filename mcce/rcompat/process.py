"""Stage 3, mcceR's `process`: measures, ranks, and the best rows of each factual.

1. Measure every row against its factual, over the mutable columns: `validation` (1 if the prediction lies in c_int),
   `L0` (columns changed), `L1` and `L2` (on the columns' own scales), `gower` (mcceR's, see the table in
   `mcce.rcompat`).
2. Sort the rows of a factual by the measures in the order asked for, validation descending, the others ascending; ties
   stay in the order of generation. The place is the rank.
3. Drop the invalid rows, if so wanted, and keep the first ones of each factual. A factual without any vanishes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.arrays import Floats
from mcce.checks import check_count
from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.rcompat import kernels
from mcce.rcompat.columns import gower_roles
from mcce.rcompat.generate import Simulated
from mcce.selection.kernels import best_within, sort_within

MEASURES = ("validation", "L0", "L1", "L2", "gower")


@dataclass(frozen=True)
class Processed:
    """The best rows, and the measures and ranks of all.

    Attributes
    ----------
    cf : id_explain, counterfactual_rank, and the features.
    cf_measures : id_explain, counterfactual_rank, pred, and the measures.
    measured : pred and the measures of every generated row.
    K : rows for each factual.
    seconds : time for measuring and selecting.
    """

    cf: pd.DataFrame
    cf_measures: pd.DataFrame
    measured: pd.DataFrame
    K: int
    seconds: float

    @cached_property
    def measures(self) -> pd.DataFrame:
        """row_id, id_explain, pred, the measures and counterfactual_rank of every generated row."""
        n = len(self.measured)
        return pd.DataFrame(
            {
                "row_id": np.arange(1, n + 1),
                "id_explain": np.arange(n) // self.K + 1,
                **dict(self.measured.items()),
                "counterfactual_rank": _ranks(_keys(self.measured), self.K),
            }
        )


def process(
    simulated: Simulated,
    pred_sim: npt.ArrayLike,
    measures: Sequence[str] = ("validation", "L0", "L1"),
    remove_invalid: bool = True,
    return_best_k: int = 1,
) -> Processed:
    """Measure, rank and select generated rows.

    Parameters
    ----------
    simulated : Simulated
    pred_sim : array
        The model's answer for each of its rows.
    measures : sequence of {"validation", "L0", "L1", "L2", "gower"}
        In the order in which they sort.
    remove_invalid : bool
    return_best_k : int

    Returns
    -------
    Processed
    """
    measures = check_measures(measures)
    return_best_k = check_count(return_best_k, "process_return_best_k")
    predictions = np.asarray(pred_sim, dtype=np.float64)
    n, K = simulated.matrix.shape[0], simulated.K
    if predictions.shape != (n,):
        raise InputError(f"pred_sim has shape {predictions.shape}; give one number for each of the {n} generated rows.")
    start = time.perf_counter()
    columns = {f"measure_{name}": _measure(name, simulated, predictions) for name in measures}
    measured = pd.DataFrame({"pred": predictions, **columns}, copy=False)
    keys = _keys(measured)
    kept = _measure("validation", simulated, predictions) > 0 if remove_invalid else np.ones(n, dtype=np.bool_)
    table = np.full((n // K, min(return_best_k, K)), -1)
    top = np.empty((len(keys), table.shape[1]))
    best_within(keys, kept, K, np.arange(len(keys)), top, table, np.zeros(len(table), dtype=np.int64))
    best = table[table >= 0]
    if remove_invalid and measures[0] != "validation":  # invalid rows stand between the valid ones
        rank = _ranks(keys, K)[best]
    else:
        rank = np.nonzero(table >= 0)[1] + 1
    ids = pd.DataFrame({"id_explain": best // K + 1, "counterfactual_rank": rank})
    cf = pd.concat([ids, simulated.rows(best)], axis=1)
    cf_measures = pd.concat([ids, measured.iloc[best].reset_index(drop=True)], axis=1)
    return Processed(cf, cf_measures, measured, K, time.perf_counter() - start)


def check_measures(measures: Sequence[str]) -> list[str]:
    """Return the measures as a list of known, different names."""
    names = [measures] if isinstance(measures, str) else list(measures)
    for name in names:
        if name not in MEASURES:
            raise InputError(f"process_measures names {spell(name)}; {did_you_mean(name, MEASURES)}")
    if not names or len(set(names)) < len(names):
        raise InputError(f"process_measures is {names!r}; name at least one of {listing(MEASURES)}, each once.")
    return names


def _measure(name: str, simulated: Simulated, predictions: Floats) -> Floats:
    """Return one measure of every row (step 1)."""
    model, K = simulated.feature_model, simulated.K
    rows, factuals = simulated.mutable, simulated.factuals
    out = np.zeros(rows.shape[0])
    if name == "validation":
        out = ((predictions >= model.c_int[0]) & (predictions <= model.c_int[1])).astype(np.float64)
    elif name == "L0":
        kernels.count_changes(rows, factuals, K, out)
    elif name in ("L1", "L2"):
        is_number = np.array([feature.kind != "categorical" for feature in model.mutable])
        kernels.sum_steps(rows, factuals, K, is_number, name == "L2", out)
    else:
        span = rows.max(axis=0) - rows.min(axis=0)
        kernels.sum_gower(rows, factuals, K, gower_roles(model.mutable), span, np.zeros(rows.shape[0]), out)
    return out


def _keys(measured: pd.DataFrame) -> Floats:
    """Return what the rows are sorted by, ascending, a row a measure (step 2)."""
    columns = [name for name in measured.columns if name != "pred"]
    return np.stack([-measured[c] if c == "measure_validation" else measured[c] for c in columns])


def _ranks(keys: Floats, K: int) -> npt.NDArray[np.int64]:
    """Return the place of each row among those of its factual, from 1."""
    order = np.empty(keys.shape[1], dtype=np.int64)
    sort_within(keys, K, np.arange(len(keys)), np.empty(K, dtype=np.int64), order)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size) % K + 1
    return rank
