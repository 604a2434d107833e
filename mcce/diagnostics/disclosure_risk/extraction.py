"""Extraction: how well a surrogate copies the model, fitted to counterfactuals or to decisions alone.

1. The attacker asks about n rows, and is told the decision on each. Forests are fitted to rows and decisions. Accepted
   rows are repeated, as many as there are counterfactuals in step 2, so that it is not the number of accepted rows that
   makes the difference.
2. For each refused row a counterfactual is returned too, which has the wanted decision by construction. Other forests
   are fitted to the same rows and decisions, and these (Aivodji, Bolot and Gambs 2020, "Model extraction from
   counterfactual explanations").
3. Both are compared with the model on rows that neither has seen: the share on which they decide alike, and the
   difference, paired. `N_FORESTS` of each are fitted; the standard error is of rows and of forests, since what one
   forest gains over another by chance is no gain. So few forests leave it uncertain: the interval is Student's.

It is the model that is copied, not the training rows: an explainer that was fitted on other people gives as much of it
away. It gives away nothing where answers say only what is known of the model before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from mcce.base.arrays import Bools, Floats
from mcce.diagnostics.disclosure_risk.rates import Estimate, Rate, wilson

N_TREES = 50
N_FORESTS = 6


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
    accepted = queries[decisions]
    again = np.resize(accepted, answers.shape) if len(accepted) else answers[:0]
    told = [np.concatenate([decisions, np.ones(len(more), dtype=bool)]) for more in (answers, again)]
    joined, alone = (
        _agreement(np.concatenate([queries, more]), labels, unseen, truth, seed)
        for more, labels in zip((answers, again), told)
    )
    difference = joined - alone  # (forests, unseen rows)
    of_rows, of_forests = difference.mean(axis=0), difference.mean(axis=1)
    variances = np.array([of_rows.var() / max(of_rows.size, 1), of_forests.var(ddof=1) / N_FORESTS])
    error, gain = _half_width(variances, (of_rows.size - 1, N_FORESTS - 1), confidence), float(difference.mean())
    ours, theirs = (_rate(each, confidence) for each in (joined, alone))
    return Extraction(ours, theirs, Estimate(gain, gain - error, gain + error))


def _half_width(variances: Floats, degrees: tuple[int, int], confidence: float) -> float:
    """Return half an interval by Student's t, with the degrees of freedom of Welch and Satterthwaite."""
    variance = float(variances.sum())
    if variance == 0.0:
        return 0.0
    freedom = variance**2 / float((variances**2 / np.maximum(degrees, 1)).sum())
    return float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(variance)


def _rate(agreement: Floats, confidence: float) -> Rate:
    """Return the share of unseen rows on which forests agree with the model, on average."""
    return wilson(round(float(agreement.mean(axis=0).sum())), agreement.shape[1], confidence)


def _agreement(rows: Floats, decisions: Bools, unseen: Floats, truth: Bools, seed: int) -> Floats:
    """Return whether each forest decides as the model does on each unseen row: (forests, rows), 0 or 1."""
    if decisions.all() or not decisions.any():
        return np.tile(truth == decisions[0], (N_FORESTS, 1)).astype(np.float64)
    from sklearn.ensemble import RandomForestClassifier  # takes long to import

    forests = (RandomForestClassifier(N_TREES, random_state=(seed + i) % 2**32, n_jobs=1) for i in range(N_FORESTS))
    return np.stack([forest.fit(rows, decisions).predict(unseen) == truth for forest in forests]).astype(np.float64)
