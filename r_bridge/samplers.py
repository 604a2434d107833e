"""Conditionals fitted by R: leaf donors of `rpart::rpart` and of `party::ctree`.

1. Write givens and target as an R data.frame (numbers as doubles, levels as factors, ordered ones as ordered factors)
   and let R grow the tree.
2. Read the tree as arrays, which route rows as R does.
3. Draw one training value of the target, uniformly among the training rows of that leaf, from the stream of the row
   (`mcce.rng.RowStreams`): the draws do not depend on R's random state, on order or blocks.

Donors and missing values of the target are handled by `mcce.samplers.donors.base`. R has one thread, so a chain with
such a sampler uses one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mcce.base.checks import check_count, is_number
from mcce.exceptions import InputError, SamplerError
from mcce.samplers.donors.base import LeafDonorSampler
from mcce.table import Column, Table
from r_bridge.frames import to_r
from r_bridge.session import session
from r_bridge.trees import NodesOfR, RTree, training_frame

MOST_LEVELS = 16  # with three classes or more rpart tries all of their 2**15 partitions
TEST_STATISTICS = {"quadratic": "quad", "maximum": "max"}
P_VALUES = {"bonferroni": "Bonferroni", "univariate": "Univariate", "none": "Teststatistic"}


class RpartSampler(LeafDonorSampler):
    """A conditional that draws donors from the leaves of a tree grown by R's `rpart`.

    `mcce.CartSampler` with ``dialect="rpart"`` gives the same tree without R.

    Parameters
    ----------
    cp, min_split, min_leaf, max_depth
        rpart's `cp`, `minsplit`, `minbucket`, `maxdepth`, with its defaults.

    Notes
    -----
    As in `rpart`, ordered and categorical targets get classification trees, numbers regression trees, and rows whose
    givens are all missing are not used in growing. These rows are donors of the leaf that R assigns them to.

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> chain = mcce.ChainModel(sampler=r_bridge.RpartSampler(), fixed=["Wind"], random_state=1).fit(air.X)
    >>> chain.sample(given=air.X[["Wind"]].head(2), n=3).shape
    (6, 5)
    """

    thread_safe = False

    def __init__(self, *, cp: float = 0.01, min_split: int = 20, min_leaf: int = 7, max_depth: int = 30) -> None:
        self.cp = cp
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.max_depth = max_depth

    def _grow(self, given: Table, target: Column) -> RTree:
        r = session()
        r.need("rpart", "RpartSampler")
        if not target.feature.is_numeric and np.unique(target.values).size > 2:
            for feature in given.features:
                if feature.kind == "categorical" and feature.n_levels > MOST_LEVELS:
                    raise SamplerError(
                        f"rpart tries every partition of the {feature.n_levels} levels of {feature.name!r} for "
                        f"{target.feature.name!r}, which has more than two classes; more than {MOST_LEVELS} levels "
                        "take too long. Merge levels, or use another sampler."
                    )
        method = "anova" if target.feature.is_numeric else "class"
        control = (float(self.cp), int(self.min_split), int(self.min_leaf), int(self.max_depth))
        return _grown(given, target, "rpart", method, *control)

    def _check_parameters(self) -> None:
        check_count(self.min_split, "min_split", self, 1)
        check_count(self.min_leaf, "min_leaf", self, 1)
        check_count(self.max_depth, "max_depth", self, 1)
        if self.max_depth > 30:
            raise InputError(f"max_depth of RpartSampler is {self.max_depth}; rpart allows 30 at most.")
        if not is_number(self.cp) or not np.isfinite(self.cp):
            raise InputError(f"cp of RpartSampler is {self.cp!r}; it must be a number.")


class PartyCtreeSampler(LeafDonorSampler):
    """A conditional that draws donors from the leaves of a conditional inference tree grown by R's `party::ctree`.

    `mcce.CtreeSampler` gives the same tree without R.

    Parameters
    ----------
    mincriterion : float
        A node is split if one minus the adjusted p-value is above it.
    min_split, min_leaf : int
        party's `minsplit` and `minbucket`.
    max_depth : int or None
        Greatest depth; None for no limit.
    statistic : {"quadratic", "maximum"}
    p_values : {"bonferroni", "univariate", "none"}

    Examples
    --------
    >>> import mcce, r_bridge
    >>> air = mcce.datasets.load_airquality(dropna=True)
    >>> chain = mcce.ChainModel(sampler=r_bridge.PartyCtreeSampler(), fixed=["Wind"], random_state=1).fit(air.X)
    >>> chain.samplers_["Temp"].tree_.n_leaves > 1
    True
    """

    thread_safe = False

    def __init__(
        self,
        *,
        mincriterion: float = 0.95,
        min_split: int = 20,
        min_leaf: int = 7,
        max_depth: int | None = None,
        statistic: str = "quadratic",
        p_values: str = "bonferroni",
    ) -> None:
        self.mincriterion = mincriterion
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.max_depth = max_depth
        self.statistic = statistic
        self.p_values = p_values

    def _grow(self, given: Table, target: Column) -> RTree:
        session().need("party", "PartyCtreeSampler")
        kinds = (TEST_STATISTICS[self.statistic], P_VALUES[self.p_values])
        control = (float(self.mincriterion), int(self.min_split), int(self.min_leaf), int(self.max_depth or 0))
        return _grown(given, target, "party", *kinds, *control)

    def _check_parameters(self) -> None:
        check_count(self.min_split, "min_split", self, 1)
        check_count(self.min_leaf, "min_leaf", self, 1)
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth", self, 1)
        for name, known in (("statistic", TEST_STATISTICS), ("p_values", P_VALUES)):
            if getattr(self, name) not in known:
                raise InputError(
                    f"{name} of PartyCtreeSampler is {getattr(self, name)!r}; allowed: {', '.join(map(repr, known))}."
                )
        at_most = 1.0 if self.p_values != "none" else np.inf
        if not is_number(self.mincriterion) or not 0 <= self.mincriterion < at_most:
            raise InputError(
                f"mincriterion of PartyCtreeSampler is {self.mincriterion!r}; it must be a number from 0 to "
                f"{at_most:g}."
            )


def _grown(given: Table, target: Column, engine: str, *control: Any) -> RTree:
    """Grow the tree in R (step 1), and read the leaves of the training rows."""
    r = session()
    data = to_r(training_frame(given, target))
    r_object = r.call(f"fit_{engine}", data, *control)
    nodes = NodesOfR.read(r.call(f"{engine}_nodes", r_object, data), by_party=engine == "party")
    place = np.zeros(int(nodes.number.max()) + 1, dtype=np.int64)
    place[nodes.number] = np.arange(nodes.number.size)
    leaf_of_row = place[r.numbers(r.call(f"{engine}_training", r_object, data)).astype(np.int64)]
    return RTree.from_r(nodes, leaf_of_row)
