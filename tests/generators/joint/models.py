"""Small third-party models: a generator, synthesizers with the interface of SDV, custom samplers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mcce.generators import JointGenerator


class HotDeck(JointGenerator):
    """Whole training rows with the same givens, or with the same decision; restrictions by rejection."""

    draws_observed = True

    def __init__(self, *, fixed=(), kinds=None, random_state=1, n_jobs=None):
        self.fixed, self.kinds, self.random_state, self.n_jobs = fixed, kinds, random_state, n_jobs

    def _fit(self, table, n_given):
        self.given_, self.rows_ = table.matrix[:, :n_given], table.matrix[:, n_given:]

    def donors(self, given):
        alike = ((self.given_ == given) | (np.isnan(self.given_) & np.isnan(given))).all(axis=1)
        if not alike.any():
            alike = self.given_[:, -1] == given[-1]
        return np.flatnonzero(alike) if alike.any() else np.arange(len(self.rows_))

    def _draw(self, givens, streams):
        uniform, drawn = streams.uniform(), np.empty((len(givens), self.rows_.shape[1]))
        for given in np.unique(givens, axis=0):
            mine, donors = ((givens == given) | (np.isnan(givens) & np.isnan(given))).all(axis=1), self.donors(given)
            drawn[mine] = self.rows_[donors[(uniform[mine] * donors.size).astype(int)]]
        return drawn


class Synthesizer:
    """SDV's `fit` and `sample`, from numpy's global random state."""

    def fit(self, data):
        self.data = data

    def rows(self, among, n):
        return among.iloc[np.random.randint(0, len(among), n)].reset_index(drop=True)  # noqa: NPY002

    def sample(self, num_rows):
        return self.rows(self.data, num_rows)


def alike(data, values):
    """Return rows with these values, approximately."""
    kept = data
    for name, value in values.items():
        near = kept[kept[name].isna()] if value is None or value != value else kept[kept[name] == value]
        kept = near if len(near) else kept
    return kept


class Completing(Synthesizer):
    """SDV's `sample_remaining_columns`."""

    def sample_remaining_columns(self, known_columns):
        values = known_columns.iloc[0].to_dict()
        drawn = self.rows(alike(self.data, values), len(known_columns))
        return drawn.assign(**{name: known_columns[name] for name in known_columns})


class Conditional(Synthesizer):
    """SDV's `sample_from_conditions`, with an internal random state that SDV's private method seeds."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def _set_random_state(self, random_state):
        self.rng = np.random.default_rng(random_state)

    def rows(self, among, n):
        return among.iloc[self.rng.integers(0, len(among), n)].reset_index(drop=True)

    def sample_from_conditions(self, conditions):
        parts = [self.rows(alike(self.data, c.get_column_values()), c.get_num_rows()) for c in conditions]
        return pd.concat(parts, ignore_index=True)


class OwnState(Conditional):
    """A random state that cannot be seeded."""

    _set_random_state = None


class Entropy(Synthesizer):
    """Random numbers from the system."""

    def rows(self, among, n):
        return among.iloc[np.random.default_rng().integers(0, len(among), n)].reset_index(drop=True)


class Alike:
    """`fit(X)` and `sample(n, given)`."""

    def fit(self, X):
        self.X = X

    def sample(self, n, given, random_state=None):
        return alike(self.X, given).sample(n, replace=True, random_state=random_state)
