"""What the explainer asks of a model of the data: to draw rows, and to say how dense they are.

A `Generator` models p(mutable | fixed, decision) as a whole. `ChainModel` is the one that the paper proposes; a joint
model is another. All it knows of a draw travels in one frozen object, `DrawRequest`, so that the same request gives the
same rows in any block, order, thread or process.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mcce.arrays import Bools, Floats, UInts
from mcce.samplers import Within
from mcce.table import Data, Schema


@dataclass(frozen=True)
class DrawRequest:
    """What the draws depend on, one row each.

    Attributes
    ----------
    givens : encoded fixed values, in data order, then the decision if the generator conditions on one.
    stream_keys, draw_indices : the row's random numbers are a function of these two and the seed.
    seed : int
    restrictions : what a feature's draws are restricted to, by feature; those not named are free.
    """

    givens: Floats
    stream_keys: UInts
    draw_indices: UInts
    seed: int
    restrictions: Mapping[Hashable, Within] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.givens.shape[0])

    def take(self, rows: slice) -> DrawRequest:
        """Return the request for some of the rows."""
        return replace(
            self,
            givens=self.givens[rows],
            stream_keys=self.stream_keys[rows],
            draw_indices=self.draw_indices[rows],
            restrictions={name: within.take(rows) for name, within in self.restrictions.items()},
        )


@dataclass(frozen=True)
class Drawn:
    """Encoded rows, columns in data order, and which are dead: they could not be drawn within their restrictions.

    A dead row has values that are not allowed, or missing; it is no candidate.
    """

    rows: Floats
    dead: Bools


class Generator(Protocol):
    """A model of the mutable features given the fixed ones and the decision.

    Attributes
    ----------
    schema_ : the columns of the training table.
    seed_ : seed of the draws.
    fixed_ : the features that are given, in data order.
    conditions_on_decision_ : whether the decision is given too.
    training_givens_ : the givens of the training rows.
    """

    schema_: Schema
    seed_: int
    conditions_on_decision_: bool
    training_givens_: Floats

    @property
    def fixed_(self) -> list[Any]:
        """The features that are given, in data order."""

    def fit(self, X: Data, decision: Bools | None = None, *, progress: bool | None = None) -> Any:
        """Learn the joint distribution of the training rows."""

    def givens_of(self, matrix: Floats, decision: bool | Bools = True) -> Floats:
        """Return the givens of encoded rows: their fixed values, then the decision."""

    def draw(self, request: DrawRequest, *, progress: bool | None = None, n_jobs: int | None = None) -> Drawn:
        """Draw one row for each row of the request."""

    def feature_log_densities(
        self, matrix: Floats, decision: bool | Bools = True, *, training: bool = False
    ) -> Mapping[Any, Floats]:
        """Return, by mutable feature, the log densities of encoded rows; they sum to that of the row."""
