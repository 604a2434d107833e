"""The acceptance rule: which rows may be returned for a factual, and how good they are.

Plain and sparse search, refinement, rounding for display, adaptive rounds and the explanation of failures use it. Its
parts, in order of cost:

1. `complete`: columns that relations determine are computed from the others, wherever a row is made.
2. `admits`: excluded rows (`mcce.explain.excluded`), constraints, and relations that the factual itself satisfies.
3. `within_bounds`: the largest number of changes, and the largest Gower distance.
4. `plausibility`: the score of a row, to be compared with `least`, the score at the floor.
5. `query`: the model.

`one_change_less` lists the rows that show whether each change of a row is needed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import changed_columns, gower, rowwise
from mcce.explain.problem import Problem
from mcce.explain.winners import Winners
from mcce.plausibility.score import Origins, Plausibility


class Acceptance:
    """The rule by which rows are accepted for some factuals.

    Parameters
    ----------
    problem : what is asked for.
    factuals : encoded rows.
    ids : names of the factuals, for constraints on single ones.

    Methods take encoded `rows` and `owner`, the position of each row's factual.
    """

    def __init__(self, problem: Problem, factuals: Floats, ids: pd.Index[Any] | None = None) -> None:
        self.problem = problem
        self.matrix = rowwise(factuals)
        self._constraints = None if problem.constraints is None else problem.constraints.of_factuals(factuals, ids)
        self._relations = None if problem.relations is None else problem.relations.of_factuals(factuals)
        self.admits_all = problem.excluded is None and self._constraints is None and self._relations is None

    @property
    def scale(self) -> Plausibility:
        """The scale of plausibility."""
        assert self.problem.plausibility is not None
        return self.problem.plausibility

    @property
    def least(self) -> float:
        """The score of plausibility at the floor."""
        return self.problem.least

    @cached_property
    def fold(self) -> Ints:
        """The fold of each factual, by whose trees its rows are scored."""
        return self.scale.fold_of(self.matrix)

    @cached_property
    def origins(self) -> Origins:
        """What is known about the plausibility of the factuals, from which that of similar rows is found."""
        return self.scale.origins(self.matrix, kept=self.matrix.shape[0])

    def complete(self, rows: Floats, owner: Ints) -> Floats:
        """Return rows with the columns that relations determine."""
        return rows if self.problem.relations is None else self.problem.relations.complete(rows, self.matrix[owner])

    def free_changes(self, rows: Floats, owner: Ints) -> Bools:
        """Return which cells are changed, except in columns that relations determine."""
        changed = changed_columns(rows, self.matrix[owner])
        if self.problem.relations is not None:
            changed[:, self.problem.relations.determined] = False
        return changed

    def one_change_less(self, rows: Floats, owner: Ints) -> tuple[Ints, Floats]:
        """Return, for every change of rows that have several, the place of the row and the row without the change."""
        changed = self.free_changes(rows, owner)
        at, column = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])
        return at, self.with_own(rows[at], owner[at], column)

    def with_own(self, rows: Floats, owner: Ints, column: Ints) -> Floats:
        """Return rows, each with the factual's own value in one column; `rows` is overwritten."""
        rows[np.arange(owner.size), column] = self.matrix[owner, column]
        return self.complete(rows, owner)

    def admits(self, rows: Floats, owner: Ints) -> Bools:
        """Return which rows satisfy all that needs neither a bound, nor plausibility, nor the model."""
        admitted = np.ones(rows.shape[0], dtype=bool)
        if self.problem.excluded is not None:
            admitted = ~self.problem.excluded.contain(rows)
        for demands in (self._constraints, self._relations):
            if demands is not None:
                admitted[admitted] = demands.hold(rows[admitted], owner[admitted])
        return admitted

    def within_bounds(self, rows: Floats, owner: Ints) -> Bools:
        """Return which rows are within the bounds on changes and distance."""
        settings, own = self.problem.settings, self.matrix[owner]
        within = np.ones(owner.size, dtype=bool)
        if settings.max_changes is not None:
            within &= changed_columns(rows, own).sum(axis=1) <= settings.max_changes
        if settings.max_gower is not None:
            paper = gower(self.problem.features)
            within &= paper.finish(paper.sums(rows, own)) <= settings.max_gower
        return within

    def plausibility(self, rows: Floats, owner: Ints, least: float = -np.inf) -> Floats:
        """Return the scores of plausibility of rows; those below `least` need not be exact."""
        return self.scale.score(rows, self.fold[owner], self.origins[owner], least)

    def distance(self, rows: Floats, owner: Ints) -> Floats:
        """Return the mean distance of rows to the nearest real rows."""
        return self.scale.distance(rows, self.fold[owner], self.origins[owner])

    def query(self, rows: Floats) -> tuple[npt.NDArray[np.generic], Bools]:
        """Return the model's scores of rows, and which have the wanted decision."""
        return self.problem.question.ask_encoded(rows)


def without_harm(acceptance: Acceptance, found: Winners) -> Winners:
    """Leave out valid rows in which a change makes the decision worse, where their factual has others."""
    caution = acceptance.problem.caution
    assert caution is not None
    at, less = acceptance.one_change_less(found.rows, found.owner)
    if caution.margins is None or not at.size:
        return found
    harmed = np.zeros(found.owner.size, dtype=bool)
    harmed[at[caution.hurts(found.scores[at], acceptance.query(less)[0])]] = True
    cost = replace(found.cost, asked=found.cost.asked + at.size)
    return replace(found.preferring(~harmed), cost=cost)
