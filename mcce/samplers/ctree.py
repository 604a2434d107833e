"""Donors from the leaf of a conditional inference tree (Hothorn, Hornik and Zeileis 2006), as in R's party.

The tree (`mcce.trees.ctree`) splits only where a test of independence rejects, and is not biased towards columns with
many values. `mcce.samplers.cart` does the rest.
"""

from __future__ import annotations

from typing import Any, Literal

from mcce._utils import check_count, check_number
from mcce.exceptions import InputError, did_you_mean, spell
from mcce.samplers.base import register_sampler
from mcce.samplers.cart import LeafSampler
from mcce.table import Column, Table
from mcce.trees.cart import recode_missing
from mcce.trees.ctree import grow_ctree

TEST_TYPES = {"bonferroni": "Bonferroni", "univariate": "Univariate", "none": "Teststatistic"}  # party's names


@register_sampler("ctree")
class CtreeSampler(LeafSampler):
    """Draws donors from the leaves of a conditional inference tree, which equals that of R's party.

    Parameters
    ----------
    p_values : {"bonferroni", "univariate", "none"}
        Criterion of a column: one minus its p-value, with or without adjustment for the number of columns, or the test
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

    Examples
    --------
    >>> import mcce
    >>> from mcce.datasets import load_loans
    >>> loans = load_loans()
    >>> sampler = mcce.samplers.CtreeSampler(mincriterion=0.9)
    >>> chain = mcce.ChainModel(sampler=sampler, fixed=["age", "sex"]).fit(loans.X)
    >>> chain.sample(given=loans.X.loc[[0], ["age", "sex"]], n=2).shape
    (2, 10)
    """

    def __init__(
        self,
        *,
        p_values: Literal["bonferroni", "univariate", "none"] = "bonferroni",
        mincriterion: float = 0.95,
        min_split: int = 20,
        min_leaf: int = 7,
        minprob: float = 0.01,
        max_depth: int | None = None,
    ) -> None:
        self.p_values = p_values
        self.mincriterion = mincriterion
        self.min_split = min_split
        self.min_leaf = min_leaf
        self.minprob = minprob
        self.max_depth = max_depth

    def _grow(self, given: Table, target: Column) -> Any:
        if self.p_values not in TEST_TYPES:
            raise InputError(f"p_values is {spell(self.p_values)}; {did_you_mean(self.p_values, TEST_TYPES)}")
        highest = float("inf") if self.p_values == "none" else 1.0
        testtype: Any = TEST_TYPES[self.p_values]
        return grow_ctree(
            given,
            recode_missing(target),
            mincriterion=check_number(self.mincriterion, "mincriterion", 0.0, highest),
            minsplit=check_count(self.min_split, "min_split", 2),
            minbucket=check_count(self.min_leaf, "min_leaf"),
            minprob=check_number(self.minprob, "minprob", 0.0, 0.5, below_high=True),
            maxdepth=None if self.max_depth is None else check_count(self.max_depth, "max_depth", 0),
            testtype=testtype,
        )
