"""The plain method: MCCE as described in the paper with pandas and scikit-learn, as the baseline for speed.

1. Model (section 2.1). y' indicates whether a training row has the wanted decision; one scikit-learn tree for each
   mutable feature on the fixed features, y' and the preceding mutable features; leaf donors in a dict.
2. Generate (section 2.2). K rows for each factual, feature by feature: find the leaf, draw one of its donors.
3. Select (section 2.3). Query the model for every row and keep the valid ones; sparsity and Gower distance
   with pandas; the fewest changes, then the smallest distance, then the earlier draw.

All factuals are processed at once, so the baseline is not artificially slow. It takes numbers only; the caller
passes categories as codes, which the trees split as numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

DECISION = "<decision>"


def explain(
    X: pd.DataFrame,
    factuals: pd.DataFrame,
    *,
    wanted: Callable[[pd.DataFrame], np.ndarray],
    fixed: Sequence[str],
    categorical: Collection[str],
    n_samples: int,
    min_leaf: int = 5,
    seed: int = 1,
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the counterfactuals, indexed as `factuals` (without those that have none), and seconds by step.

    `X` and `factuals` hold floats; `wanted` returns for each row of such a frame whether it has the wanted decision.
    """
    rng = np.random.default_rng(seed)
    clock = [time.perf_counter()]
    train = X.assign(**{DECISION: wanted(X).astype(float)})
    mutable = [name for name in X.columns if name not in fixed]
    given = [*fixed, DECISION]
    trees, donors, givens = {}, {}, {}
    for name in mutable:
        kind = DecisionTreeClassifier if name in categorical else DecisionTreeRegressor
        columns, target = train[given].to_numpy(), train[name].to_numpy()
        trees[name] = kind(min_samples_leaf=min_leaf, random_state=seed).fit(columns, target)
        leaves = trees[name].apply(columns)
        donors[name] = {leaf: target[rows] for leaf, rows in pd.Series(leaves).groupby(leaves).indices.items()}
        givens[name] = list(given)
        given.append(name)
    clock.append(time.perf_counter())

    drawn = factuals.loc[factuals.index.repeat(n_samples), list(fixed)].assign(**{DECISION: 1.0})
    for name in mutable:
        leaves = trees[name].apply(drawn[givens[name]].to_numpy())
        values = np.empty(len(drawn))
        for leaf, rows in pd.Series(leaves).groupby(leaves).indices.items():
            values[rows] = rng.choice(donors[name][leaf], len(rows))
        drawn[name] = values
    drawn = drawn[X.columns]
    clock.append(time.perf_counter())

    valid = drawn[wanted(drawn)]
    steps = (valid - factuals.loc[valid.index]).abs()
    sparsity = (steps > 0).sum(axis=1)
    for name, span in (X.max() - X.min()).items():
        steps[name] = (steps[name] > 0) if name in categorical or span == 0 else steps[name] / span
    ranked = valid.assign(L0=sparsity, gower_sum=steps.sum(axis=1)).sort_values(["L0", "gower_sum"], kind="stable")
    best = ranked[~ranked.index.duplicated()]
    best = best.loc[factuals.index.intersection(best.index), X.columns]
    clock.append(time.perf_counter())
    return best, dict(zip(["fit", "generate", "select"], np.diff(clock).tolist()))
