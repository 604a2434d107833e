"""Leaf-donor sampling from a conditional inference tree.

The tree (`mcce.trees.ctree.tree`) splits only where a test of independence rejects, and is not biased towards variables
with many values. `mcce.samplers.donors.base` does the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mcce.base.checks import check, check_count, is_number
from mcce.exceptions import SamplerError, listing
from mcce.rng import resolve_seed
from mcce.samplers.base import samplers_of_weights
from mcce.samplers.donors.base import LeafDonorSampler, check_resampling
from mcce.samplers.registry import register_sampler
from mcce.samplers.smoothing import Smoothing, check_smoothing
from mcce.table import Column, Table
from mcce.table.weights import whole_counts
from mcce.trees.ctree import tree as ctree
from mcce.trees.ctree.tree import PValues, Statistic
from mcce.trees.tree import Tree, each_donor_once
from mcce.wording import Value

MOST_ROWS = 10_000_000  # rows after repetition by counts
_STATISTICS = ("quadratic", "maximum")
_P_VALUES = ("bonferroni", "univariate", "none")
_OF_TREE = ("statistic", "p_values", "mincriterion", "min_split", "minprob", "max_depth")


@register_sampler("ctree")
class CtreeSampler(LeafDonorSampler):
    """Draws donors from the leaves of a conditional inference tree (Hothorn, Hornik and Zeileis 2006), as in party.

    Parameters
    ----------
    statistic : {"quadratic", "maximum"}
        Form of the test statistic of a variable.
    p_values : {"bonferroni", "univariate", "none"}
        Criterion of a variable: one minus its p-value, with or without adjustment for the number of variables, or the
        statistic itself.
    mincriterion : float
        A node is split if the largest criterion is greater.
    min_split : int
        A node with fewer rows is not split.
    min_leaf : int
        Fewest rows on each side of a split.
    minprob : float
        Smallest share of the node's rows on each side of a split, approximately.
    max_depth : int or None
        Greatest depth of the tree.
    min_donors : int
        Fewest distinct training rows that a value is drawn from, see `CartSampler`.
    proper, honest, smoothing, random_state : see `CartSampler`
        An honest tree does not show its tests.

    Notes
    -----
    Weights of training rows must be counts, as in party: the tests are those of the repeated rows, and `min_split`,
    `min_leaf` and `minprob` refer to these. Other weights do not determine the number of independent rows.

    Examples
    --------
    >>> import mcce
    >>> from mcce.datasets import load_loans
    >>> loans = load_loans()
    >>> chain = mcce.ChainModel(sampler=mcce.CtreeSampler(mincriterion=0.9), fixed=["age", "sex"]).fit(loans.X)
    >>> chain.sample(given=loans.X.loc[[0], ["age", "sex"]], n=2).shape
    (2, 10)
    """

    takes_weights = "counts"

    def __init__(
        self,
        *,
        statistic: Statistic = "quadratic",
        p_values: PValues = "bonferroni",
        mincriterion: float = 0.95,
        min_split: int = 20,
        min_leaf: int = 7,
        minprob: float = 0.01,
        max_depth: int | None = None,
        min_donors: int = 1,
        proper: bool = False,
        honest: bool = False,
        smoothing: Smoothing = None,
        random_state: int | None = 0,
    ) -> None:
        self.statistic = statistic
        self.p_values = p_values
        self.mincriterion = mincriterion
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.minprob = minprob
        self.max_depth = max_depth
        self.min_donors = min_donors
        self.proper = proper
        self.honest = honest
        self.smoothing = smoothing
        self.random_state = random_state

    def _grow(self, given: Table, target: Column) -> Tree:
        options: Any = {name: getattr(self, name) for name in _OF_TREE} | {"min_leaf": self.leaf_size}
        if target.weights is None:
            return ctree.grow(given, target, **options)
        counts = whole_counts(target.weights, MOST_ROWS)
        if counts is None:
            raise SamplerError(
                Value(self),
                f" for {target.feature.name!r} uses tests of independent rows, so sample_weight must be counts "
                f"with a sum of at most {MOST_ROWS:,}, as in party; it has other weights. "
                f"Use another sampler ({samplers_of_weights()}).",
            )
        rows = np.repeat(np.arange(given.n_rows), counts)
        tree = ctree.grow(given.take(rows), Column(target.feature, target.values[rows]), **options)
        return each_donor_once(replace(tree, donors=rows[tree.donors].astype(np.int32)))

    @property
    def leaf_size(self) -> int:
        return max(self.min_leaf, self.min_donors)

    def _check_parameters(self) -> None:
        for name, allowed in (("statistic", _STATISTICS), ("p_values", _P_VALUES)):
            value = getattr(self, name)
            check(value in allowed, value, name, f"allowed: {listing(allowed)}.", owner=self)
        highest = np.inf if self.p_values == "none" else 1.0
        fits = is_number(self.mincriterion) and 0 <= self.mincriterion <= highest
        least = "at least 0" if self.p_values == "none" else "from 0 to 1"
        check(fits, self.mincriterion, "mincriterion", f"it must be a number {least}.", owner=self)
        fits = is_number(self.minprob) and 0 <= self.minprob < 0.5
        check(fits, self.minprob, "minprob", "it must be a share from 0 to below 0.5.", owner=self)
        check_count(self.min_split, "min_split", self, 2)
        check_count(self.min_leaf, "min_leaf", self, 1)
        check_count(self.min_donors, "min_donors", self)
        check_resampling(self, self.proper, self.honest)
        check_smoothing(self.smoothing, self)
        resolve_seed(self.random_state)
        if self.max_depth is not None:
            check_count(self.max_depth, "max_depth", self, 0)
