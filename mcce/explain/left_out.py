"""Rows with a level that no training row has, put back into a result as unexplained.

1. The others are explained as if these were not there (`mcce.table.left_out`).
2. In the result they stand in their places among the factuals, with the levels that they have, and in `unexplained`,
   each with its reason; the model was not asked about them, so that they have no prediction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mcce.counterfactuals import Counterfactuals
from mcce.exceptions import spell_all
from mcce.report.reasons import UNREADABLE
from mcce.table import Schema
from mcce.table.left_out import LeftOut


def with_left_out(found: Counterfactuals, left_out: LeftOut, schema: Schema) -> Counterfactuals:
    """Return a result with the rows that were left out (step 2)."""
    places = np.array(list(left_out.reasons), dtype=np.intp)
    kept = np.flatnonzero(left_out.kept)
    back = np.argsort(np.concatenate([kept, places]))
    others = left_out.frame.iloc[places][list(found.factuals.columns)]
    index = left_out.frame.index
    reasons = [_reason(schema, why) for why in left_out.reasons.values()]
    scores, unexplained = found.factual_predictions, found.unexplained
    unasked = pd.Series(
        np.nan, index=others.index, name=scores.name, dtype=float if scores.dtype.kind == "f" else object
    )
    told = pd.DataFrame({"reason": pd.Series(reasons, dtype=object).to_numpy(), "prediction": unasked.to_numpy()})
    told.index = others.index.rename(unexplained.index.name)
    with_told = pd.concat([unexplained, told]) if len(unexplained) else told
    order = np.argsort(index.get_indexer_for(with_told.index), kind="stable")
    columns = {name: _joined(found.factuals[name], others[name]).take(back) for name in found.factuals.columns}
    questions = found._questions
    why = questions.why
    place_of_kept = np.full(len(index), -1, dtype=np.intp)
    place_of_kept[kept] = np.arange(kept.size)
    return replace(
        found,
        factuals=pd.DataFrame(columns).set_axis(index, axis=0),
        factual_predictions=pd.concat([scores, unasked]).iloc[back],
        unexplained=with_told.iloc[order],
        draws=None if found.draws is None else found.draws.reindex(index, fill_value=0),
        allowed=None if found.allowed is None else found.allowed.reindex(index),
        _questions=replace(questions, why=None if why is None else lambda some: why(place_of_kept[some])),
    )


def _reason(schema: Schema, why: str) -> str:
    known = next(
        f.levels for f in schema.features if f.levels is not None and why.startswith(f"column {f.name!r} holds ")
    )
    return f"{UNREADABLE}: {why}, which is not a known level (known: {spell_all(known)})"


def _joined(known: pd.Series[Any], others: pd.Series[Any]) -> pd.Series[Any]:
    """Return the column of all rows: levels that are unknown come behind the known ones."""
    if isinstance(known.dtype, pd.CategoricalDtype):
        levels = list(known.dtype.categories)
        levels += [each for each in others.dropna().unique() if each not in levels]
        dtype = pd.CategoricalDtype(levels, ordered=known.dtype.ordered)
        return pd.concat([known.astype(object), others.astype(object)], ignore_index=True).astype(dtype)
    try:
        return pd.concat([known, others.astype(known.dtype)], ignore_index=True)
    except (TypeError, ValueError):
        return pd.concat([known.astype(object), others.astype(object)], ignore_index=True)
