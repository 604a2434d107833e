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

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.exceptions import InputError, did_you_mean, listing, spell
from mcce.rcompat import kernels
from mcce.rcompat.columns import check_count, gower_roles
from mcce.rcompat.generate import Simulated
from mcce.schema import Floats

MEASURES = ("validation", "L0", "L1", "L2", "gower")


@dataclass(frozen=True)
class Processed:
    """The best rows, and the measures and ranks of all.

    Attributes
    ----------
    cf : id_explain, counterfactual_rank, and the features.
    cf_measures : id_explain, counterfactual_rank, pred, and the measures.
    measures : row_id, id_explain, pred, the measures and counterfactual_rank of every generated row.
    seconds : time for measuring and sorting.
    """

    cf: pd.DataFrame
    cf_measures: pd.DataFrame
    measures: pd.DataFrame
    seconds: float


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
    measured = {name: _measure(name, simulated, predictions) for name in dict.fromkeys((*measures, "validation"))}
    keys = np.column_stack([-measured[name] if name == "validation" else measured[name] for name in measures])
    order = np.empty(n, dtype=np.int64)
    kernels.sort_within(keys, K, order)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.tile(np.arange(1, K + 1), n // K)
    best = _best(order, measured["validation"] if remove_invalid else np.ones(n), K, return_best_k)
    everything = pd.DataFrame(
        {
            "row_id": np.arange(1, n + 1),
            "id_explain": np.repeat(np.arange(1, n // K + 1), K),
            "pred": predictions,
            **{f"measure_{name}": measured[name] for name in measures},
            "counterfactual_rank": rank,
        },
        copy=False,
    )
    chosen = everything.iloc[best].reset_index(drop=True)
    cf = pd.concat([chosen[["id_explain", "counterfactual_rank"]], simulated.rows(best)], axis=1)
    shown = ["id_explain", "counterfactual_rank", "pred", *(f"measure_{name}" for name in measures)]
    return Processed(cf, chosen[shown], everything, time.perf_counter() - start)


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


def _best(order: npt.NDArray[np.int64], kept: Floats, K: int, k: int) -> npt.NDArray[np.int64]:
    """Return the first `k` kept rows of each factual, in order (step 3)."""
    keeps = (kept[order] > 0).reshape(-1, K)
    first = keeps & (np.cumsum(keeps, axis=1) <= k)
    best: npt.NDArray[np.int64] = order[first.ravel()]
    return best
