"""Membership inference: scores of rows that distinguish training rows (members) from other rows.

Each score is computed for members and others, and is higher for members if the attack works (`rates`):

1. Distance (Pawelczyk, Lakkaraju and Neel 2023, "On the privacy risks of algorithmic recourse"): the Gower distance
   from a refused row to its counterfactual. An overfitted model has larger margins for members.
2. Plausibility of the counterfactual, which is higher near training rows. It is cross-fitted, so answers for a person
   are scored without the row of this person (`mcce.plausibility.score`).
3. Repeated queries, about people with the wanted decision: the attacker queries several refused rows with the fixed
   values of a person. A disclosed cell equal to that of the person scores -log of its share among the rows of the
   attacker; a row scores the sum over its cells, and a person the maximum over rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.threads import without_warning
from mcce.diagnostics.disclosure_risk.rates import FALSE_POSITIVES, Estimate, Rate, auc, found_at
from mcce.explain.protocol import Explainer


@dataclass(frozen=True)
class Membership:
    """Scores of members and others, with AUC and rates at low false positive rates."""

    members: Floats
    others: Floats
    area: Estimate
    found: tuple[Rate, ...]

    @classmethod
    def of(cls, members: Floats, others: Floats, confidence: float) -> Membership:
        """Return the measures of scores, ignoring missing ones."""
        members, others = (scores[~np.isnan(scores)] for scores in (members, others))
        found = tuple(found_at(members, others, share, confidence) for share in FALSE_POSITIVES)
        return cls(members, others, auc(members, others, confidence), found)


def explain_rows(explainer: Explainer, rows: Floats, settings: Mapping[str, Any]) -> tuple[Floats, Ints, pd.DataFrame]:
    """Explain encoded rows; return the encoded best answers, the positions of their rows, and their measures."""
    schema = explainer.generator_.schema_
    with without_warning(""):  # an attacker's rows may be unusual
        found = explainer.explain(schema.decode(rows, pd.RangeIndex(len(rows))), progress=False, **settings)
    best = found.frame.index.get_level_values("rank") == 1
    frame = found.frame[best]
    owner = frame.index.get_level_values("id").to_numpy(dtype=np.int64)
    return schema.encode(frame, "the answers").matrix, owner, found.measures[best]


def measured(owner: Ints, measure: pd.Series[Any], n: int) -> Floats:
    """Return a measure of the answers by row, NaN for rows without an answer."""
    scores = np.full(n, np.nan)
    scores[owner] = measure.to_numpy(dtype=np.float64)
    return scores


def surprise(person: Floats, returned: Floats, disclosed_at: Bools, own: Floats) -> float:
    """Return the score of one person by the rows returned for queries about them."""
    if not len(returned):
        return 0.0
    same = (returned == person) & disclosed_at
    counts = (own == person).sum(axis=0)
    worth = -np.log((counts + 1) / (len(own) + 1))
    return float((same * worth).sum(axis=1).max())


def queries_about(people: Floats, refused: Floats, fixed: Ints, n_queries: int, rng: np.random.Generator) -> Floats:
    """Return `n_queries` queries for each person: refused rows with the fixed values of the person."""
    queries = refused[rng.integers(len(refused), size=len(people) * n_queries)].copy()
    queries[:, fixed] = np.repeat(people[:, fixed], n_queries, axis=0)
    return queries
