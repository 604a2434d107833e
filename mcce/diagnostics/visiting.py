"""The effect of the order of the features in the chain.

The explainer is refitted with each order, and with the first order and another seed to show the size of chance.
Reported are the quality of the counterfactuals (`evaluation`), the realism of generated rows (pMSE, correlations), and
how many counterfactuals equal those of the first order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from mcce.base.progress import working
from mcce.base.threads import one_native_thread
from mcce.diagnostics.correlations import compare_correlations
from mcce.diagnostics.evaluation import evaluate
from mcce.diagnostics.pairs import draw_like, read_pair, spread
from mcce.diagnostics.propensity import logit_scores
from mcce.exceptions import InputError
from mcce.explain.protocol import Explainer
from mcce.table import Data, as_frame
from mcce.table.weights import rows_by_weight

Order = str | Sequence[Hashable]

CHANCE = "another seed"


@one_native_thread()
@working("comparing visit sequences", None)
def visit_effect(
    explainer: Explainer,
    X: Data,
    *,
    training: Data,
    visit_sequences: Sequence[Order] = ("data", "correlation", "reversed"),
    n_samples: int = 1000,
    max_rows: int = 5000,
    **settings: Any,
) -> pd.DataFrame:
    """Explain the same factuals with several orders of the features.

    Parameters
    ----------
    explainer : fitted MCCE
        Its other settings are kept.
    X : DataFrame or array
        The factuals.
    training : DataFrame or array
        What the explainer was fitted on.
    visit_sequences : sequence
        "data", "correlation", "reversed" (the data's, backwards) or lists of the mutable features. The first one is
        what the others are compared with.
    n_samples : int
        K, rows drawn for each factual.
    max_rows : int
        Rows that realism is measured on.
    **settings
        Further arguments of `explain`: sparse, floor, ...

    Returns
    -------
    DataFrame
        Indexed by order, "another seed" last: N_CE, L0, L1, distance and distance_wanted (means, see `evaluate`),
        pMSE and correlation_difference of generated rows, `same` (share of the factuals with the very counterfactual
        of the first order), seconds_fit, and `sequence`, the order itself.

    Examples
    --------
    >>> import mcce
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = mcce.datasets.load_loans(1000).X[["age", "salary", "savings"]]
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, X["savings"] + X["salary"] > 90_000)
    >>> explainer = mcce.MCCE(model, fixed=["age"], random_state=1).fit(X)
    >>> effect = mcce.diagnostics.visit_effect(explainer, X.head(20), training=X, n_samples=50, max_rows=200)
    >>> effect.index.tolist()
    ['data', 'correlation', 'reversed', 'another seed']
    """
    if not len(visit_sequences):
        raise InputError("visit_sequences is empty; give at least one order.")
    if not has_visit_sequence(explainer):
        raise InputError(
            f"the explainer draws from a {type(explainer.generator_).__name__}, which visits the features in no order; "
            "there is nothing to compare."
        )
    seed = explainer.generator_.seed_
    orders: list[tuple[str, Order, int]] = [(_name(order), order, seed) for order in visit_sequences]
    orders.append((CHANCE, visit_sequences[0], seed + 1))
    rows: dict[str, dict[str, Any]] = {}
    first: pd.DataFrame | None = None
    for name, order, state in orders:
        other = _refit(explainer, training, order, state)
        found = other.explain(X, **{"n_samples": n_samples, "progress": False, **settings})
        first = found.frame if first is None else first
        rows[name] = {
            **_quality(other, found, X, training),
            **_realism(other, training, max_rows),
            "same": _share_alike(first, found.frame, len(found.factuals)),
            "seconds_fit": other.fit_seconds_,
            "sequence": other.generator_.visit_sequence_,
        }
    table = pd.DataFrame.from_dict(rows, orient="index")
    return table.rename_axis("visit_sequence")


def has_visit_sequence(explainer: Explainer) -> bool:
    """Say whether an explainer draws from a chain; other generators have no order."""
    return explainer.generator_.visit_sequence_ is not None


def _name(order: Order) -> str:
    return order if isinstance(order, str) else ", ".join(map(str, order))


def _refit(explainer: Explainer, training: Data, order: Order, state: int) -> Explainer:
    """Fit a new explainer that differs in the order and the seed alone."""
    of_chain = "" if explainer.generator is None else "generator__"
    other: Explainer = clone(explainer)
    other.set_params(**{f"{of_chain}visit_sequence": order, f"{of_chain}random_state": state})
    weights = explainer.generator_.training_weights_
    if weights is not None and len(as_frame(training)[0]) != weights.size:
        raise InputError(
            f"the explainer was fitted with weights of {weights.size} rows, and training has "
            f"{len(as_frame(training)[0])}; give the rows that have weight, in their order."
        )
    return other.fit(training, sample_weight=weights, progress=False)


def _quality(explainer: Explainer, found: Any, X: Data, training: Data) -> dict[str, float]:
    measured = evaluate(
        found,
        X,
        explainer.model,
        training=training,
        decision=explainer.decision,
        kinds=explainer.generator_.schema_.kinds,
        n_jobs=explainer.n_jobs,
    )
    means = measured.summary["mean"]
    columns = ("L0", "L1", "distance", "distance_wanted")
    return {"N_CE": measured.n_explained, **{name: float(means[name]) for name in columns}}


def _realism(explainer: Explainer, training: Data, max_rows: int) -> dict[str, float]:
    frame, _ = as_frame(training)
    weights = explainer.generator_.training_weights_
    rows = np.arange(len(frame)) if weights is None else rows_by_weight(weights, 0)
    schema = explainer.generator_.schema_
    matrix = schema.encode(training).matrix[rows[spread(rows.size, max_rows)]]
    wanted = explainer.decision_.ask(schema.decode_for_model(matrix), "some training rows").wanted
    real = schema.decode(matrix)
    generated = schema.decode(draw_like(explainer.generator_, matrix, wanted, explainer.generator_.seed_))
    scores = logit_scores(read_pair(real, generated, schema.kinds), 0)
    return {
        "pMSE": float(((scores.values - 0.5) ** 2).mean()),
        "correlation_difference": compare_correlations(real, generated, kinds=schema.kinds).mean_difference,
    }


def _share_alike(first: pd.DataFrame, frame: pd.DataFrame, n_factuals: int) -> float:
    """Return the share of the factuals whose counterfactuals are the same in both; none in both counts as the same."""
    ids = first.index.get_level_values("id").union(frame.index.get_level_values("id")).unique()
    both = first.index.intersection(frame.index)
    a, b = (table.loc[both].astype(object) for table in (first, frame))
    same = ((a == b) | (a.isna() & b.isna())).all(axis=1)
    return (n_factuals - len(ids) + int(same.sum())) / max(n_factuals, 1)
