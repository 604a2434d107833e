"""The acceptance rule: which rows may be returned for a factual, and how good they are.

Every search and every finishing step uses this rule only. Its parts, in order of cost:

1. `complete`: columns that relations determine are computed from the others, wherever a row is made.
2. `admits`: excluded rows (`mcce.constraints.excluded`), constraints, relations that the factual itself satisfies, and,
   in a search that avoids them, reasons not to send a row (`stopped`).
3. `within_bounds`: the largest number of changes, and the largest Gower distance.
4. `plausibility`: the score of a row, to be compared with `least`, the score at the floor.
5. `query`: the decision of the model. No row is queried twice.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mcce.base.arrays import Bools, Floats, Ints
from mcce.distances.measures import changed_columns, gower, rowwise
from mcce.explain.crossing import Limits
from mcce.explain.order import Caution
from mcce.explain.problem import Problem
from mcce.model.queries import CachedModel
from mcce.plausibility.score import Origins, Own, Plausibility
from mcce.plausibility.stop_reasons import StopRules


class Acceptance:
    """The rule by which rows are accepted for some factuals.

    Parameters
    ----------
    problem : the problem of the explanation.
    factuals : encoded rows.
    ids : names of the factuals, for constraints on single ones.
    model : the model with a cache of predictions; None for the problem's model with an empty cache.
    limits : limits of the changes in a sparse search; None for none.

    Methods take encoded `rows` and `owner`, the position of each row's factual.
    """

    def __init__(
        self,
        problem: Problem,
        factuals: Floats,
        ids: pd.Index[Any] | None = None,
        *,
        model: CachedModel | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.problem = problem
        self.matrix = rowwise(factuals)
        self.ids = ids
        self._model = CachedModel(problem.question) if model is None else model
        self.limits = limits
        self._constraints = None if problem.constraints is None else problem.constraints.of_factuals(factuals, ids)
        self._relations = None if problem.relations is None else problem.relations.of_factuals(factuals)
        self._excluded = problem.excluded
        self._stops = problem.stops if problem.avoids_stops else None
        parts = self._excluded, self._constraints, self._relations, self._stops
        self.admits_all = all(part is None for part in parts)

    def __len__(self) -> int:
        return len(self.matrix)

    def take(self, which: Ints | slice, *, apart: bool = False) -> Acceptance:
        """Return the rule for some of the factuals.

        The cache of predictions is shared. With `apart`, for another thread, the cache is separate and only the count
        of queries is shared. The plausibility of the factuals is not computed again.
        """
        model = CachedModel(self.problem.question, self._model) if apart else self._model
        ids = None if self.ids is None else self.ids[which]
        limits = None if self.limits is None else self.limits.take(which)
        taken = Acceptance(self.problem, self.matrix[which], ids, model=model, limits=limits)
        if "own" in self.__dict__:
            taken.own = self.own.take(which)
        return taken

    def for_problem(self, problem: Problem, limits: Limits | None = None) -> Acceptance:
        """Return the rule for another problem with the same factuals, model and cache, and with limits if given."""
        same = Acceptance(problem, self.matrix, self.ids, model=self._model, limits=limits or self.limits)
        if "own" in self.__dict__:
            same.own = self.own
        return same

    def remember(self, other: Acceptance) -> None:
        """Add the cached predictions of a rule made by `take(..., apart=True)`."""
        if other._model is not self._model:
            self._model.remember(other._model)

    @property
    def n_queried(self) -> int:
        """Number of rows for which the model was queried."""
        return self._model.n_queried

    @property
    def caution(self) -> Caution:
        """The trade-off of nearness, plausibility and margin."""
        assert self.problem.caution is not None
        return self.problem.caution

    @property
    def scale(self) -> Plausibility:
        """The scale of plausibility."""
        return self.caution.plausibility

    @property
    def least(self) -> float:
        """The score of plausibility at the floor."""
        return self.problem.least

    @cached_property
    def fold(self) -> Ints:
        """The fold of each factual, by whose trees its rows are scored."""
        return self.scale.fold_of(self.matrix)

    @cached_property
    def own(self) -> Own:
        """The plausibility of the factuals."""
        return self.scale.own(self.matrix)

    @cached_property
    def origins(self) -> Origins:
        """Cached plausibility of the factuals, from which that of similar rows is updated."""
        return self.scale.origins(self.matrix, kept=self.matrix.shape[0], own=self.own)

    def complete(self, rows: Floats, owner: Ints) -> Floats:
        """Return rows with the columns that relations determine computed."""
        return rows if self.problem.relations is None else self.problem.relations.complete(rows, self.matrix[owner])

    def free_changes(self, rows: Floats, owner: Ints) -> Bools:
        """Return which cells are changed, except in columns that relations determine."""
        changed = changed_columns(rows, self.matrix[owner])
        if self.problem.relations is not None:
            changed[:, self.problem.relations.determined] = False
        return changed

    def counted(self, rows: Floats, owner: Ints) -> Floats:
        """Return rows for counting changes and steps: with the factual's values in computed columns."""
        columns = self.problem.uncounted
        if not columns:
            return rows
        rows = rows.copy(order="K")
        rows[:, columns] = self.matrix[owner][:, columns]
        return rows

    def with_own(self, rows: Floats, owner: Ints, column: Ints) -> Floats:
        """Return rows, each with the factual's value in one column; `rows` is overwritten."""
        rows[np.arange(owner.size), column] = self.matrix[owner, column]
        return self.complete(rows, owner)

    def admits(self, rows: Floats, owner: Ints) -> Bools:
        """Return which rows satisfy all conditions except bounds, plausibility and the decision of the model."""
        admitted = np.ones(rows.shape[0], dtype=bool)
        if self._excluded is not None:
            admitted = ~self._excluded.contain(rows)
        for demands in (self._constraints, self._relations):
            if demands is not None:
                admitted[admitted] = demands.hold(rows[admitted], owner[admitted])
        if self._stops is not None:
            admitted[admitted] = ~self.stopped(rows[admitted], owner[admitted]).any(axis=1)
        return admitted

    def stopped(self, rows: Floats, owner: Ints) -> Bools:
        """Return which cells have a reason why the row must not be sent (`mcce.plausibility.stop_reasons`)."""
        if self.problem.stops is None:
            return np.zeros(rows.shape, dtype=bool)
        return self._cells(self.problem.stops, rows, owner)

    def seriousness(self, rows: Floats, owner: Ints) -> Ints:
        """Return 0 for rows without such a reason, 1 for long, 2 for far, 3 for very far steps, 4 for other reasons.

        In a diverse set, which contains the sparsest rows by feature, long steps do not count.
        """
        stops = self.problem.stops
        if stops is None:
            return np.zeros(len(rows), dtype=np.int64)
        seriousness = np.zeros(len(rows), dtype=np.int64)
        left = np.arange(len(rows))
        for rules in stops.nested:  # each reason of the next rules is one of these
            if not left.size:
                break
            left = left[self._cells(rules, rows[left], owner[left]).any(axis=1)]
            seriousness[left] += 1
        if self.problem.settings.diverse:
            seriousness[seriousness == 1] = 0
        return seriousness

    def _cells(self, stops: StopRules, rows: Floats, owner: Ints) -> Bools:
        own = self.matrix[owner]
        changed = changed_columns(rows, own)
        changed[:, list(self.problem.uncounted)] = False
        return stops.cells(own, rows, changed)

    def within_bounds(self, rows: Floats, owner: Ints) -> Bools:
        """Return which rows are within the bounds on changes and distance."""
        settings, own, rows = self.problem.settings, self.matrix[owner], self.counted(rows, owner)
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
        return self._model.predict_encoded(rows)
