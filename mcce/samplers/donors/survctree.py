"""Leaf-donor sampling of a survival time from a conditional inference tree of log-rank scores.

1. The score of a row with time t is H(t) - 1 if the event was observed and H(t) if the time is censored, with the
   Nelson-Aalen estimate H(t): the sum, over the times up to t, of the number of events over the number of rows at risk.
   Rows count by their weights.
2. Conditional inference of these scores is the log-rank test, so the survival tree of Hothorn, Hornik and Zeileis
   (2006, section 4) is a conditional inference tree of the scores (`mcce.trees.ctree.tree`). All givens but the event
   indicator are tested.
3. The donors of a row are the training rows of its leaf with the row's event indicator. If a split leaves too few of
   them on one side, the rows with this indicator are not split.

synthpop's `survctree` draws the time and its indicator as a pair from the leaf. A chain draws the indicator first, by
another sampler.
"""

from __future__ import annotations

import numpy as np

from mcce.base.arrays import Bools, Floats, Int32s
from mcce.exceptions import SamplerError, did_you_mean
from mcce.samplers.donors.ctree import CtreeSampler
from mcce.samplers.registry import register_sampler
from mcce.samplers.smoothing import Smoothing
from mcce.table import Column, Feature, Table
from mcce.trees.cart import with_donors
from mcce.trees.ctree.tree import PValues, Statistic
from mcce.trees.kernels import LEAF
from mcce.trees.tree import Tree, with_splits


@register_sampler("survctree")
class SurvCtreeSampler(CtreeSampler):
    """Draws survival times from the leaves of a survival tree (synthpop's `survctree`, party's tree of `Surv`).

    1. Grow a conditional inference tree of the times' log-rank scores (`mcce.samplers.donors.survctree`).
    2. Draw a donor of the row's leaf whose event indicator is that of the row.

    Parameters
    ----------
    event : str or None
        Name of the event indicator: numbers 0 (censored) and 1 (event), or two levels, the second being the event. It
        must precede the time in the visit sequence. None: no time is censored.
    statistic, p_values, mincriterion, min_split, min_leaf, minprob, max_depth : see `CtreeSampler`
    min_donors : int
        Fewest distinct training rows with the same event indicator that a value is drawn from, see `CartSampler`.
    proper, smoothing, random_state : see `CartSampler`

    Notes
    -----
    `min_leaf` counts rows with either indicator, as in party. A missing indicator counts as censored; such a row has
    the donors of the more frequent indicator. If only one indicator occurs, all times count as events. An indicator
    with fewer than `min_donors` rows has the donors of both.

    References
    ----------
    Hothorn, Hornik and Zeileis (2006), "Unbiased recursive partitioning: a conditional inference framework", Journal of
    Computational and Graphical Statistics 15.

    Examples
    --------
    >>> import numpy as np, pandas as pd, mcce
    >>> rng = np.random.default_rng(1)
    >>> X = pd.DataFrame({"arm": np.repeat(["a", "b"], 200), "status": rng.random(400) < 0.7})
    >>> X["time"] = rng.exponential(np.where(X["arm"] == "a", 1.0, 5.0)).round(2)
    >>> sampler = {"status": "ctree", "time": mcce.SurvCtreeSampler(event="status")}
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["arm"], random_state=1).fit(X)
    >>> bool(chain.sample(n=50)["time"].isin(X["time"]).all())
    True
    """

    handles = frozenset({"numeric"})

    def __init__(
        self,
        *,
        event: str | None = None,
        statistic: Statistic = "quadratic",
        p_values: PValues = "bonferroni",
        mincriterion: float = 0.95,
        min_split: int = 20,
        min_leaf: int = 7,
        minprob: float = 0.01,
        max_depth: int | None = None,
        min_donors: int = 1,
        proper: bool = False,
        smoothing: Smoothing = None,
        random_state: int | None = 0,
    ) -> None:
        self.event = event
        self.statistic = statistic
        self.p_values = p_values
        self.mincriterion = mincriterion
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.minprob = minprob
        self.max_depth = max_depth
        self.min_donors = min_donors
        self.proper = proper
        self.smoothing = smoothing
        self.random_state = random_state

    def _grow(self, given: Table, target: Column) -> Tree:
        if not target.feature.is_numeric:  # the indicator of missing times
            return super()._grow(given, target)
        if self.event is None:
            return super()._grow(given, target.with_values(log_rank_scores(target.values, weights=target.weights)))
        event = self._find_event(given, target.feature)
        indicator = given.matrix[:, event]
        is_event, censored = indicator == 1.0, indicator == 0.0
        others = np.array([j for j in range(len(given.features)) if j != event], dtype=np.int32)
        both = is_event.any() and censored.any()
        scores = log_rank_scores(target.values, is_event if both else None, target.weights)
        tree = super()._grow(given.select(others.tolist()), target.with_values(scores))
        feature = tree.feature.copy()
        feature[feature != LEAF] = others[feature[feature != LEAF]]
        if min(is_event.sum(), censored.sum()) < self.min_donors:
            return with_splits(tree, feature)
        weights = np.ones(is_event.size) if target.weights is None else target.weights
        split = split_first(tree, feature, event, missing_left=weights[censored].sum() > weights[is_event].sum())
        return with_donors(split, given.matrix, np.arange(given.n_rows), self.min_donors)

    def _find_event(self, given: Table, target: Feature) -> int:
        """Return the position of the event indicator among the givens."""
        names = [feature.name for feature in given.features]
        if self.event not in names:
            raise SamplerError(
                f"{self!r} of {target.name!r} needs the event indicator {self.event!r} among its givens, before "
                f"{target.name!r} in the visit sequence; {did_you_mean(self.event, names)}"
            )
        event = names.index(self.event)
        feature, column = given.features[event], given.matrix[:, event]
        if feature.n_levels > 2 or not np.isin(column[~np.isnan(column)], [0.0, 1.0]).all():
            found = f"{feature.n_levels} levels" if feature.n_levels else "other numbers"
            raise SamplerError(
                f"{self!r} of {target.name!r}: the event indicator {self.event!r} has {found}; it must hold 0 and 1, "
                "or two levels, the second being the event."
            )
        return event


def log_rank_scores(times: Floats, is_event: Bools | None = None, weights: Floats | None = None) -> Floats:
    """Return the log-rank score of each time (step 1); `is_event` None: all are events."""
    weights = np.ones(times.size) if weights is None else weights
    is_event = np.ones(times.size, dtype=bool) if is_event is None else is_event
    _, of_row = np.unique(times, return_inverse=True)
    events, leaving = np.bincount(of_row, weights * is_event), np.bincount(of_row, weights)
    at_risk = np.cumsum(leaving[::-1])[::-1]
    return np.asarray(np.cumsum(events / at_risk)[of_row] - is_event)


def split_first(tree: Tree, feature: Int32s, column: int, *, missing_left: bool) -> Tree:
    """Return a tree that splits on 0 and 1 of a column first, then as `tree`; `feature` are its split columns.

    The tree has no donors.
    """
    n = tree.n_nodes
    # the roots of the two copies are nodes 1 and 2; their other nodes follow, copy by copy
    node = np.concatenate([[0, 0], np.arange(1, n), np.arange(1, n)])
    shift = np.repeat([2, n + 1, 2, n + 1], [1, 1, n - 1, n - 1])
    left = np.where(feature[node] == LEAF, 0, tree.left[node] + shift)
    nothing = np.zeros(2 * n + 1, dtype=np.int32)
    return Tree(
        feature=np.append(column, feature[node]).astype(np.int32),
        threshold=np.append(0.5, tree.threshold[node]),
        left=np.append(1, left).astype(np.int32),
        missing_left=np.append(missing_left, tree.missing_left[node]),
        mask_at=np.append(-1, tree.mask_at[node]).astype(np.int32),
        masks=tree.masks,
        start=nothing,
        size=nothing,
        impurity=np.append(tree.impurity[0], tree.impurity[node]),
        donors=nothing[:0],
    )
