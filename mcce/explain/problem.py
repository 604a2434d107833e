"""The problem of an explanation: the factuals, the requirements, and the blocks that are searched one by one.

1. `read_factuals` encodes the rows to explain and queries the model for them. Rows with a level that no training row
   has are left out, with a warning; the others are explained.
2. A `Problem` is made once for a call of `explain` and does not change. A `Block` is some of the factuals and a range
   of draws. The result for a block is a function of these two frozen objects, which can be sent to another process.
3. The draws of a factual are identified by the values that they depend on: its fixed values. Factuals that agree in
   them share one pool of draws. Independent draws are identified by all values of the factual. Blocks consist of
   factuals whose pools fit in memory; factuals of one pool are adjacent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Floats, Ints, UInts
from mcce.constraints import Constraints
from mcce.constraints.excluded import Anonymity, Excluded, Excludes, TrainingRows
from mcce.distances.measures import Distance, gower
from mcce.exceptions import InputError
from mcce.explain.order import Caution, Ordering
from mcce.generators.base import Generator
from mcce.model.decisions import Answer, Decision
from mcce.model.queries import PredictsEncoded, SpotCheck
from mcce.model.robustness import Robustness
from mcce.plausibility.relations import KeptRelations
from mcce.plausibility.score import Plausibility
from mcce.plausibility.stop_reasons import StopRules
from mcce.report.names import Names
from mcce.rng import hash_rows, mix
from mcce.table import Data, Feature, FrameKind, Schema, as_frame, frame_kind
from mcce.table.checks import check_magnitudes, check_missing, check_row_names, find_labels
from mcce.table.left_out import LeftOut, without_unknown_levels
from mcce.wording import Parameter

POOL_BYTES = 32 * 2**20  # memory for candidates
BLOCK_FACTUALS = 4096


@dataclass(frozen=True)
class Factuals:
    """Encoded rows with the user's names, the model's scores, and which already have the decision.

    `frames` is the kind of input frame, None for pandas; `left_out` has the rows with an unknown level, which are not
    among the factuals.
    """

    index: pd.Index[Any]
    matrix: Floats
    scores: npt.NDArray[Any]
    wanted: npt.NDArray[np.bool_]
    frames: FrameKind | None = None
    left_out: LeftOut | None = None

    def __len__(self) -> int:
        return len(self.index)


def encode_factuals(X: Data, schema: Schema) -> tuple[pd.Index[Any], Floats]:
    """Return the names and the encoded rows of a table to explain; a Series is one row, named by its name."""
    if isinstance(X, pd.Series):
        if not X.index.isin(schema.names).any():
            raise InputError(
                Parameter("X"),
                " is a Series whose index holds none of the training columns; a Series is read as one "
                "row. Give a DataFrame with all columns.",
            )
        X = X.to_frame().T.infer_objects()
    frame, _ = as_frame(X, "X")
    check_row_names(frame.index, "X", "factuals")
    table = schema.encode(frame, "X")
    check_magnitudes(table, "X")
    check_missing(table, frame.index, "X")
    return frame.index, table.matrix


def encode_known(X: Data, schema: Schema, then: str) -> tuple[pd.Index[Any], Floats, LeftOut | None]:
    """Return the result of `encode_factuals` without the rows with an unknown level, and these rows.

    Warn of such rows; `then` is the text on their treatment. Raise if all rows would be left out.
    """
    try:
        return *encode_factuals(X, schema), None
    except InputError:
        known, left_out = without_unknown_levels(X, schema)
        if left_out is None:
            raise
    left_out.warn("X", then)
    return *encode_factuals(known, schema), left_out


def read_factuals(X: Data, schema: Schema, decision: Decision, spots: SpotCheck) -> Factuals:
    """Encode the factuals and query the model for them, and again for some training rows."""
    index, matrix, left_out = encode_known(X, schema, "Such rows are not explained; `unexplained` says so.")
    n, frames = matrix.shape[0], frame_kind(X)
    if n == 0:
        return Factuals(index, matrix, np.empty(0), np.empty(0, dtype=bool), frames)
    rows = schema.decode_for_model(np.concatenate([matrix, spots.rows]))
    if isinstance(rows, pd.DataFrame):  # so that an error names the user's rows
        rows.index = pd.Index([*index, *(f"training row {i}" for i in spots.positions)], dtype=object)
    answer = decision.evaluate(rows, f"the {n} factuals, and {len(spots.rows)} training rows again")
    spots.compare(Answer(answer.scores[n:], answer.wanted[n:]))
    return Factuals(index, matrix, answer.scores[:n], answer.wanted[:n], frames, left_out)


def fixed_columns(generator: Generator) -> tuple[int, ...]:
    """Return the columns that unrestricted draws depend on: those of the fixed features."""
    return tuple(generator.schema_.names.index(name) for name in generator.fixed_)


def pool_keys(generator: Generator, matrix: Floats, columns: Sequence[int]) -> UInts:
    """Return hashes of the columns that each factual's draws depend on."""
    if tuple(columns) == fixed_columns(generator):
        return hash_rows(generator.givens_of(matrix))
    # mixed once more: these values may equal the fixed values and the decision of another factual
    return mix(hash_rows(matrix[:, list(columns)]))


def pool_blocks(order: Ints, keys: UInts, pool_bytes: int) -> Iterator[Ints]:
    """Yield the factuals in `order` in blocks whose pools, of the given size in bytes, fit in memory."""
    if not order.size:
        return
    n_pools = max(1, POOL_BYTES // pool_bytes)
    pool, _ = pd.factorize(keys[order])
    by_pool = np.argsort(pool, kind="stable")
    ordered = pool[by_pool]
    begin = 0
    while begin < order.size:
        end = int(np.searchsorted(ordered, ordered[begin] + n_pools))
        end = min(end, begin + BLOCK_FACTUALS)
        yield order[by_pool[begin:end]]
        begin = end


def restrict_keys(keys: UInts, constraints: Constraints, matrix: Floats, ids: pd.Index[Any]) -> UInts:
    """Return keys that also distinguish the constraints on the draws; unchanged where nothing is excluded."""
    return split_keys(keys, constraints.draws_depend_on(matrix, ids))


def split_keys(keys: UInts, depends: Floats) -> UInts:
    """Return keys that also distinguish some numbers of each factual; unchanged where all are NaN."""
    return np.where(np.isnan(depends).all(axis=1), keys, mix(keys ^ mix(hash_rows(depends))))


@dataclass(frozen=True)
class Settings:
    """The requirements of counterfactuals that are the same for all factuals; `redraw` is the number of the redraw."""

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
    """The requirements of an explanation, and all that the search of a block needs.

    Attributes
    ----------
    generator : the fitted generator.
    decision : the wanted decision, bound to the model.
    question : the model that is queried for candidates, with refits and noise if robustness is required.
    settings : the requirements that are the same for all factuals.
    order : the order of candidates.
    constraints : constraints on changes; None for none.
    caution : the scale of plausibility, for crossed draws, and the trade-off with the margin.
    training : the training rows, to count or to exclude copies of them; None if not available.
    robustness : what counterfactuals must be robust to; None for nothing.
    relations : relations between columns that counterfactuals keep; None for none.
    anonymity : how many training people must share a counterfactual, and on which keys; None for no such requirement.
    stops : reasons not to send a counterfactual; None if not available.
    avoids_stops : whether rows with such a reason are rejected.
    names : the display of values; numbers of sparse counterfactuals are rounded to it.
    threads : the largest number of threads; the result does not depend on it.
    """

    generator: Generator
    decision: Decision
    question: PredictsEncoded
    settings: Settings
    order: Ordering
    constraints: Constraints | None = None
    caution: Caution | None = None
    training: TrainingRows | None = None
    robustness: Robustness | None = None
    relations: KeptRelations | None = None
    anonymity: Anonymity | None = None
    stops: StopRules | None = None
    avoids_stops: bool = False
    names: Names = field(default_factory=Names)
    threads: int = 1

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns of factuals and candidates."""
        return self.generator.schema_.features

    @cached_property
    def mutable(self) -> Ints:
        """Positions of the columns that may change, except those that are computed from others."""
        columns = mutable_columns(self.generator)
        return columns[~np.isin(columns, self.uncounted)]

    @property
    def derived_from_fixed(self) -> Sequence[int]:
        """Positions of derived columns whose inputs are all fixed."""
        return () if self.relations is None else self.relations.derived_that_stay

    @property
    def derived(self) -> Sequence[int]:
        """Positions of columns that a formula computes from others."""
        return () if self.relations is None else self.relations.derived

    @property
    def uncounted(self) -> Sequence[int]:
        """Positions of columns that are computed from others and not counted as changes."""
        return () if self.relations is None else self.relations.uncounted

    @property
    def excluded(self) -> Excludes | None:
        """Rows excluded as counterfactuals: copies of training rows, or rows that too few people share."""
        copies = self.training if self.settings.exclude_training else None
        return copies if self.anonymity is None else Excluded(copies, self.anonymity)

    @property
    def plausibility(self) -> Plausibility | None:
        """The scale of plausibility."""
        return None if self.caution is None else self.caution.plausibility

    @cached_property
    def distance(self) -> Distance:
        """The distance of the caution; without it, the first of the order that does not count changes, or Gower's."""
        if self.caution is not None and self.caution.strength > 0.0 and self.caution.distance is not None:
            return self.caution.distance
        functions = [m.function for m in self.order.measures]
        steps = [each for each in functions if isinstance(each, Distance) and not each.counts_changes]
        return steps[0] if steps else gower(self.features)

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

    def block(self, factuals: Factuals, which: Ints, draws: range) -> Block:
        """Return the block of the factuals at `which` and these draws."""
        keys = self.keys(factuals)[which]
        return Block(which, factuals.matrix[which], keys, draws, factuals.index[which])

    def split(self, block: Block) -> Iterator[Block]:
        """Yield the factuals of a block in smaller ones, whose pools fit in memory."""
        shared_by, order = block.keys, np.arange(block.members.size)
        if self.constraints is not None:  # pools from the same draws are adjacent
            shared_by = restrict_keys(block.keys, self.constraints, block.matrix, block.ids)
            drawn_as, _ = pd.factorize(block.keys)
            order = np.argsort(drawn_as, kind="stable")
        for some in pool_blocks(order, shared_by, 8 * len(block.draws) * block.matrix.shape[1]):
            yield block.take(some)


@dataclass(frozen=True)
class Block:
    """Some factuals: positions among all, encoded rows, keys of their streams, which draws to make, and names."""

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
    is_searched = ~factuals.wanted
    is_searched[list(contradictions)] = False
    return np.flatnonzero(is_searched)


def mutable_columns(generator: Generator) -> Ints:
    """Return the positions of the columns that are not fixed."""
    given = fixed_columns(generator)
    return np.array([j for j in range(len(generator.schema_)) if j not in given], dtype=np.int64)
