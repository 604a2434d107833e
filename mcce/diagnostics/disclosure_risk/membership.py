"""Membership: whether answers tell a row that the explainer was fitted on from one that it was not.

A score is computed for rows of both kinds, and should be higher for members; `rates` in this folder makes AUC
and rates of it.

1. Distance, one threshold (Pawelczyk, Lakkaraju and Neel 2023, "On the privacy risks of algorithmic recourse"): the
   Gower distance from a refused row to its counterfactual. A model that was fitted too closely decides on members more
   firmly, and they have farther to go.
2. Distance, a threshold for each person: some explainers are fitted on bootstrap samples of rows that hold neither, and
   explain the same person. The score is how far the log distance is above their mean, over their pooled standard
   deviation: the likelihood ratio test of the same paper against "not a member", for log distances that are normal. The
   model stays the one that is explained: what is learned of people from it alone is in step 1.
3. Plausibility: what the explainer says of the counterfactual's plausibility, higher where training rows are near. It
   would detect the training rows of a score that judges rows it was fitted on. Ours is cross-fitted: the answers of a
   person are judged by folds without that person's row (`mcce.plausibility.score`, step 1). What remains of a row is
   one part in n of the calibration scales, and its copies beyond the first.
4. Repeated queries, about people with the wanted decision, whom donors come from: the attacker asks for several refused
   rows that have the person's fixed values, and compares every row returned with the person. A cell that was handed out
   (it is not the query's own) and equals the person's scores -log of the share of the attacker's own rows that have
   this value; a row has the sum of its cells, and the person the largest row. Of generated rows the attacker takes
   those drawn for the person's fixed values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.threads import without_warning
from mcce.diagnostics.disclosure_risk.rates import FALSE_POSITIVES, Estimate, Rate, auc, found_at
from mcce.exceptions import InputError
from mcce.explain.protocol import Explainer
from mcce.rng import derive_key

LEAST_DISTANCE = 1e-6  # whose log is taken


@dataclass(frozen=True)
class Membership:
    """Scores of members and others, and what they are worth."""

    members: Floats
    others: Floats
    area: Estimate
    found: tuple[Rate, ...]

    @classmethod
    def of(cls, members: Floats, others: Floats, confidence: float) -> Membership:
        """Measure scores; those that are missing are left out."""
        members, others = (scores[~np.isnan(scores)] for scores in (members, others))
        found = tuple(found_at(members, others, share, confidence) for share in FALSE_POSITIVES)
        return cls(members, others, auc(members, others, confidence), found)


def explain_rows(explainer: Explainer, rows: Floats, settings: Mapping[str, Any]) -> tuple[Floats, Ints, pd.DataFrame]:
    """Explain encoded rows; return the best answers, encoded, whose they are, and their measures."""
    schema = explainer.generator_.schema_
    with without_warning(""):  # of rows that look unusual: they are what an attacker makes
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


def shadow_distances(
    explainer: Explainer, own: Floats, rows: Floats, settings: Mapping[str, Any], n_shadows: int, seed: int
) -> Floats:
    """Return the distances of rows by explainers fitted on bootstrap samples of the attacker's own rows (step 2)."""
    schema = explainer.generator_.schema_
    distances = []
    for i in range(n_shadows):
        rng = np.random.default_rng(derive_key(seed, "shadow", i))
        table = schema.decode_for_model(own[np.sort(rng.integers(len(own), size=len(own)))])
        with without_warning(""):  # the explainer itself has told what is unusual about the columns
            try:
                shadow = clone(explainer).fit(table, progress=False)
                _, owner, measures = explain_rows(shadow, rows, settings)
            except InputError:  # a sample without the wanted decision, or without a level
                continue
        distances.append(measured(owner, measures["gower"], len(rows)))
    return np.stack(distances) if distances else np.full((1, len(rows)), np.nan)


def by_person(distance: Floats, of_shadows: Floats) -> Floats:
    """Return how far log distances are above those by shadows, one a row, in pooled standard deviations (step 2)."""
    logs = np.log(np.maximum(of_shadows, LEAST_DISTANCE))
    n_known = (~np.isnan(logs)).sum(axis=0)
    mean = np.where(n_known > 0, np.nansum(logs, axis=0) / np.maximum(n_known, 1), np.nan)
    left = np.nansum((logs - mean) ** 2)
    pooled = float(np.sqrt(left / max((n_known - 1).clip(0).sum(), 1)))
    ratio: Floats = (np.log(np.maximum(distance, LEAST_DISTANCE)) - mean) / max(pooled, LEAST_DISTANCE)
    return ratio


def surprise(person: Floats, returned: Floats, handed_out: Bools, own: Floats) -> float:
    """Return the score of one person by the rows that were returned for queries about them (step 4)."""
    if not len(returned):
        return 0.0
    same = (returned == person) & handed_out
    counts = (own == person).sum(axis=0)
    worth = -np.log((counts + 1) / (len(own) + 1))
    return float((same * worth).sum(axis=1).max())


def queries_about(people: Floats, refused: Floats, fixed: Ints, n_queries: int, rng: np.random.Generator) -> Floats:
    """Return `n_queries` rows about each person: refused rows with the person's fixed values (step 4)."""
    queries = refused[rng.integers(len(refused), size=len(people) * n_queries)].copy()
    queries[:, fixed] = np.repeat(people[:, fixed], n_queries, axis=0)
    return queries
