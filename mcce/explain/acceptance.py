"""Whether a row may be returned for a factual: the only place where its conditions are checked.

`complete`   computes derived columns and solves kept equations; nothing else computes them.
`admits`     constraints, relations that the factual keeps, known values stay known, no copies of training rows,
             bounds on the number of changes and on the Gower distance; no model.
`plausible`  the score, judged for the change: each part at the floor, or no worse than in the factual.
`query`      the model, through one cache.

Methods take encoded `rows` and `owner`, the position of the factual of each row.
"""

from __future__ import annotations

import numpy as np

from mcce._utils import Bools, Floats, Ints
from mcce.distances import changed
from mcce.explain.problem import Problem
from mcce.model import Answer
from mcce.plausibility.score import Judged
from mcce.rng import hash_rows


class Acceptance:
    """The conditions on the rows of some factuals.

    Parameters
    ----------
    problem : the problem of the explanation.
    factuals : encoded rows.
    """

    def __init__(self, problem: Problem, factuals: Floats) -> None:
        self.problem = problem
        self.factuals = factuals
        self._judged: Judged | None = None

    def __len__(self) -> int:
        return len(self.factuals)

    def take(self, which: Ints) -> Acceptance:
        """Return the conditions on the rows of some of the factuals."""
        taken = Acceptance(self.problem, self.factuals[which])
        taken._judged = None if self._judged is None else self._judged.take(which)
        return taken

    @property
    def judged(self) -> Judged:
        """The plausibility of the factuals themselves."""
        assert self.problem.score is not None
        if self._judged is None:
            self._judged = self.problem.score.judge(self.factuals)
        return self._judged

    def complete(self, rows: Floats, owner: Ints) -> Floats:
        """Return rows with the columns that equations and formulas determine computed."""
        problem = self.problem
        if problem.relations:
            rows = problem.relations.complete(rows, self.factuals[owner])
        return problem.derived.complete(rows, self.factuals[owner]) if problem.derived else rows

    def changes(self, rows: Floats, owner: Ints) -> Bools:
        """Return which cells are changed, apart from derived columns."""
        is_changed = changed(rows, self.factuals[owner])
        is_changed[:, self.problem.derived.columns] = False
        return is_changed

    def admits(self, rows: Floats, owner: Ints) -> Bools:
        """Return which rows satisfy every condition that needs neither score nor model."""
        problem, factuals = self.problem, self.factuals[owner]
        admitted = problem.constraints.admits(rows, factuals)
        if problem.relations:
            admitted &= problem.relations.holds(rows, factuals)
        if problem.training_hashes is not None:
            admitted &= ~np.isin(hash_rows(rows), problem.training_hashes)
        if np.isfinite(problem.max_changes):
            admitted &= self.changes(rows, owner).sum(axis=1) <= problem.max_changes
        if np.isfinite(problem.max_steps):
            admitted &= self.steps(rows, owner) <= problem.max_steps
        return admitted

    def steps(self, rows: Floats, owner: Ints) -> Floats:
        """Return the sum of Gower's steps of each row, apart from derived columns."""
        factuals = self.factuals[owner]
        return self.problem.gower.sums(self.problem.derived.reset(rows, factuals), factuals)

    def plausible(self, rows: Floats, owner: Ints) -> Bools:
        """Return which rows are at or above the floor, judged for their changes."""
        problem = self.problem
        if problem.score is None or problem.floor == 0.0 or not len(rows):
            return np.ones(len(rows), dtype=bool)
        return problem.score.at_floor(rows, self.judged, owner, problem.floor)

    def query(self, rows: Floats) -> Answer:
        """Return the model's answers; no row is asked for twice."""
        return self.problem.query(rows)
