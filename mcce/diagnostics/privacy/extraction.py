"""Extraction: how well a surrogate copies the model, fitted to counterfactuals or to labels alone.

1. The attacker asks about n rows, and is told the decision on each. A forest is fitted to rows and decisions.
2. For each refused row a counterfactual is returned too, which has the wanted decision by construction. Another forest
   is fitted to the same rows and decisions, and these (Aivodji, Bolot and Gambs 2020, "Model extraction from
   counterfactual explanations").
3. Both are compared with the model on rows that neither has seen: the share on which they decide alike, and the
   difference, paired, with its standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mcce.base.arrays import Bools, Floats
from mcce.diagnostics.privacy.rates import Estimate, Rate, quantile, wilson

N_TREES = 50


@dataclass(frozen=True)
class Extraction:
    """Agreement with the model of the surrogate with counterfactuals, of that without, and the difference."""

    with_answers: Rate
    labels_alone: Rate
    gain: Estimate


def extract(
    queries: Floats, decisions: Bools, answers: Floats, unseen: Floats, truth: Bools, seed: int, confidence: float
) -> Extraction:
    """Fit both surrogates, and compare them with the model on unseen rows."""
    alone = _agreement(queries, decisions, unseen, truth, seed)
    more = np.concatenate([queries, answers]), np.concatenate([decisions, np.ones(len(answers), dtype=bool)])
    joined = _agreement(*more, unseen, truth, seed)
    difference = joined.astype(float) - alone
    error = quantile(confidence) * float(difference.std()) / math.sqrt(max(difference.size, 1))
    gain = float(difference.mean())
    ours, theirs = (wilson(int(right.sum()), right.size, confidence) for right in (joined, alone))
    return Extraction(ours, theirs, Estimate(gain, gain - error, gain + error))


def _agreement(rows: Floats, decisions: Bools, unseen: Floats, truth: Bools, seed: int) -> Bools:
    if decisions.all() or not decisions.any():
        return np.asarray(truth == decisions[0])
    from sklearn.ensemble import RandomForestClassifier  # takes long to import

    forest = RandomForestClassifier(N_TREES, random_state=seed % 2**32, n_jobs=1)
    forest.fit(rows, decisions)
    return np.asarray(forest.predict(unseen) == truth)
