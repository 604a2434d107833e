"""The problem of an explanation: all that any block of factuals needs, and the blocks.

A `Problem` is made once for a call of `explain` and does not change; a `Block` is some of the factuals and a range of
draws. What is found for a block is a function of these two frozen objects, which can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats, Ints, UInts
from mcce.constraints import Constraints
from mcce.explain.caution import Caution
from mcce.explain.excluded import Anonymity, Excluded, Excludes, TrainingRows
from mcce.explain.factuals import Factuals
from mcce.explain.order import Ordering
from mcce.explain.pools import fixed_columns, pool_blocks, pool_keys, restrict_keys
from mcce.generators.base import Generator
from mcce.model.decisions import Decision
from mcce.model.robustness import AsksEncoded, Robustness
from mcce.plausibility.relations import KeptRelations
from mcce.plausibility.score import Plausibility
from mcce.table import Feature
from mcce.table.checks import find_labels


@dataclass(frozen=True)
class Settings:
    """The demands on counterfactuals, the same for all factuals; `redraw` is the number of the drawing to take."""

    n_samples: int | Literal["auto"]
    n_counterfactuals: int = 1
    independent: bool = False
    exhaustive: bool = False
    sparse: bool = False
    floor: float = 0.05
    caution: float = 1.0
    max_changes: int | None = None
    max_gower: float | None = None
    diverse: bool = False
    exclude_training: bool = False
    redraw: int = 0


@dataclass(frozen=True)
class Problem:
    """All that explaining any block needs.

    Attributes
    ----------
    generator : whom to draw from.
    decision : the wanted decision, bound to the model.
    question : whom to ask about candidates: the model, and refits and noise too if these are demanded.
    settings : what is asked for.
    order : what candidates are compared by.
    constraints : what may change, and how; None for anything.
    caution : the scale of plausibility, for crossed draws, and what a step away from the edge counts.
    training : the training rows, to count copies of them or to have none; None if they are gone.
    robustness : what counterfactuals are to stand; None for nothing.
    relations : what holds between columns in every counterfactual; None for nothing.
    anonymity : how many training people have to share a counterfactual, and on which keys; None for no such demand.
    threads : how many there may be; what is found does not depend on it.
    """

    generator: Generator
    decision: Decision
    question: AsksEncoded
    settings: Settings
    order: Ordering
    constraints: Constraints | None = None
    caution: Caution | None = None
    training: TrainingRows | None = None
    robustness: Robustness | None = None
    relations: KeptRelations | None = None
    anonymity: Anonymity | None = None
    threads: int = 1

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns of factuals and candidates."""
        return self.generator.schema_.features

    @cached_property
    def mutable(self) -> Ints:
        """Positions of the columns that may change."""
        return mutable_columns(self.generator)

    @property
    def excluded(self) -> Excludes | None:
        """The rows that no counterfactual may be: copies of training rows, or those that too few people share."""
        copies = self.training if self.settings.exclude_training else None
        return copies if self.anonymity is None else Excluded(copies, self.anonymity)

    @property
    def plausibility(self) -> Plausibility | None:
        """The scale of plausibility."""
        return None if self.caution is None else self.caution.plausibility

    @cached_property
    def least(self) -> float:
        """The score of plausibility at the floor."""
        return -np.inf if self.plausibility is None else self.plausibility.least_score(self.settings.floor)

    def contradictions(self, factuals: Factuals) -> dict[int, str]:
        """Return the positions of factuals whose constraints contradict each other, and how."""
        if self.constraints is None or not len(factuals):
            return {}
        table = self.constraints.check_factuals(factuals.matrix, factuals.index)
        reasons = table.groupby(level=0, sort=False)["reason"].first()
        places = find_labels(factuals.index, reasons.index)
        return {int(i): str(reason) for i, reason in zip(places, reasons) if not factuals.wanted[i]}

    def keys(self, factuals: Factuals) -> UInts:
        """Return what identifies the random numbers of each factual."""
        columns: Sequence[int] = fixed_columns(self.generator)
        if self.settings.independent:
            columns = range(factuals.matrix.shape[1])
        return pool_keys(self.generator, factuals.matrix, columns)

    def blocks(self, factuals: Factuals, which: Ints, draws: range) -> Iterator[Block]:
        """Yield the factuals at `which` in blocks whose pools, with these draws, fit in memory."""
        keys = self.keys(factuals)
        shared_by = keys
        if self.constraints is not None:  # pools that are taken from the same draws side by side
            shared_by = restrict_keys(keys, self.constraints, factuals.matrix, factuals.index)
            drawn_as, _ = pd.factorize(keys[which])
            which = which[np.argsort(drawn_as, kind="stable")]
        for m in pool_blocks(which, shared_by, 8 * len(draws) * factuals.matrix.shape[1]):
            yield Block(m, factuals.matrix[m], keys[m], draws, factuals.index[m])


@dataclass(frozen=True)
class Block:
    """Some factuals: positions among all, encoded rows, keys of their streams, and which draws of these are looked at.

    `ids` are their names.
    """

    members: npt.NDArray[np.intp]
    matrix: Floats
    keys: UInts
    draws: range
    ids: pd.Index[Any]

    def take(self, which: Ints) -> Block:
        """Return some of the factuals."""
        return Block(self.members[which], self.matrix[which], self.keys[which], self.draws, self.ids[which])


def searched(factuals: Factuals, contradictions: Mapping[int, str]) -> Ints:
    """Return the positions of factuals to search for: those without the decision and without a contradiction."""
    return np.setdiff1d(np.flatnonzero(~factuals.wanted), list(contradictions))


def mutable_columns(generator: Generator) -> Ints:
    """Return the positions of the columns that are not fixed."""
    given = fixed_columns(generator)
    return np.array([j for j in range(len(generator.schema_)) if j not in given], dtype=np.int64)
