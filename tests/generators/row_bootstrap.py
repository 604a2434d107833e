"""A direct subclass of `Generator`: whole training rows that have the same fixed values and decision.

1. Donors of a request's row are the training rows with its givens; without any, those with its decision.
2. One donor is drawn by the stream of the row. Mutable values come from the donor, fixed values from the request.
3. A row that violates a restriction or a rule is rejected.

It uses no part of chains: no samplers, no order, no layout.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mcce.generators import Generator
from mcce.generators.requests import Drawn, DrawRequest
from mcce.rng import RowStreams, derive_key, hash_rows
from mcce.table import Schema


class RowBootstrap(Generator):
    """p(mutable | fixed, decision) of the training rows."""

    def __init__(self, fixed=(), seed=1):
        self.fixed = fixed
        self.seed = seed

    def __repr__(self):
        return f"RowBootstrap({list(self.fixed)!r})"

    def fit(self, X, decision=None, *, progress=None):
        self.schema_ = Schema.from_data(X)
        self.seed_ = self.seed
        self.matrix_ = self.schema_.encode(X).matrix
        self.given_ = [j for j, name in enumerate(self.schema_.names) if name in self.fixed]
        self.mutable_ = [j for j in range(len(self.schema_)) if j not in self.given_]
        self.fixed_ = [self.schema_.names[j] for j in self.given_]
        self.conditions_on_decision_ = decision is not None
        self.training_givens_ = self.givens_of(self.matrix_, True if decision is None else decision)
        return self

    def draw(self, request: DrawRequest, *, progress=None) -> Drawn:
        self.check_fitted()
        known = pd.Series(np.arange(len(self.matrix_))).groupby(hash_rows(self.training_givens_)).indices
        streams = RowStreams(derive_key(request.seed, "row bootstrap"), request.stream_keys, request.draw_indices)
        keys, uniform = hash_rows(request.givens), streams.uniform()
        rows = np.empty((len(request), len(self.schema_)), order="F")
        for key in np.unique(keys):
            mine = np.flatnonzero(keys == key)
            donors = known.get(key, self._of_decision(request.givens[mine[0]]))
            rows[mine] = self.matrix_[donors[(uniform[mine] * len(donors)).astype(int)]]
        rows[:, self.given_] = request.givens[:, : len(self.given_)]
        rejected = np.zeros(len(request), dtype=bool)
        for name, within in request.restrictions.items():
            rejected |= ~within.allows(rows[:, self.schema_.names.index(name)])
        for rule in request.rules:
            rejected |= ~rule.holds(rows, request.factuals)
        return Drawn(rows, rejected)

    def _of_decision(self, given):
        alike = self.training_givens_[:, -1] == given[-1] if self.conditions_on_decision_ else slice(None)
        return np.arange(len(self.matrix_))[alike]

    def feature_log_densities(self, matrix, decision=True, *, training=False):
        """By the chain rule: among the rows that agree so far, the share that agrees in the next feature."""
        before, known = self.givens_of(matrix, decision), self.training_givens_
        found = {}
        for j in self.mutable_:
            after, seen = np.column_stack([before, matrix[:, j]]), np.column_stack([known, self.matrix_[:, j]])
            agree = [_count(rows, among) - training for rows, among in ((before, known), (after, seen))]
            with np.errstate(divide="ignore", invalid="ignore"):
                found[self.schema_.names[j]] = np.nan_to_num(np.log(agree[1] / agree[0]), nan=-np.inf, neginf=-np.inf)
            before, known = after, seen
        return found


def _count(rows, among):
    if not rows.shape[1]:
        return np.full(len(rows), len(among))
    counts = pd.Series(hash_rows(among)).value_counts()
    return counts.reindex(hash_rows(rows), fill_value=0).to_numpy()
