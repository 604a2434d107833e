"""Small tables, samplers and requests for the tests of generators."""

import numpy as np
import pandas as pd

from mcce.generators import DrawRequest
from mcce.samplers import ConditionalSampler

N = 400


def table(n=N, seed=2) -> pd.DataFrame:
    """Every kind of column; `salary` depends on age and school, `home` on salary, `since` on age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n)
    school = rng.integers(0, 3, n)
    salary = np.round(20 + age / 2 + 10 * school + rng.normal(0, 4, n), 1)
    owns = rng.random(n) < 1 / (1 + np.exp(-(salary - 50) / 4))
    return pd.DataFrame(
        {
            "age": age,
            "school": pd.Categorical.from_codes(school, ["low", "mid", "high"], ordered=True),
            "salary": salary,
            "home": np.where(owns, "own", "rent"),
            "since": pd.Timestamp("2020-01-01") - pd.to_timedelta(age * 100 + rng.integers(0, 9, n), "D"),
        }
    )


def with_gaps(X: pd.DataFrame, columns=("salary", "home"), share=0.2, seed=3) -> pd.DataFrame:
    """Return a copy with missing values."""
    rng, X = np.random.default_rng(seed), X.copy()
    for name in columns:
        X.loc[rng.random(len(X)) < share, name] = np.nan if name == "salary" else None
    return X


def request_for(generator, n, fixed=None, decision=True, seed=7, **options) -> DrawRequest:
    """Return a request for `n` draws with the same encoded fixed values, those of the first training row by default."""
    first = generator.training_[0, : generator.n_fixed_] if fixed is None else np.asarray(fixed, dtype=float)
    row = np.concatenate([first, np.zeros(len(generator.schema_) - first.size)])
    given = np.repeat(generator.givens_of(row[None], decision), n, axis=0)
    rows, draws = np.full(n, 5, dtype=np.uint64), np.arange(n, dtype=np.uint64)
    return DrawRequest(given, rows, draws, seed, **options)


class Rule:
    """A rule between the columns of a row."""

    def __init__(self, columns, holds):
        self.columns, self._holds = columns, holds

    def holds(self, rows, factuals):
        return self._holds(rows) if factuals is None else self._holds(rows, factuals)


class Uniform(ConditionalSampler):
    """Draws only, uniform on the training range; ignores the givens."""

    handles = frozenset({"numeric"})

    def fit(self, given, target):
        self.low_, self.high_ = target.values.min(), target.values.max()
        return self

    def sample(self, given, rng):
        return self.low_ + (self.high_ - self.low_) * rng.uniform()


class Constant(ConditionalSampler):
    """Draws one value."""

    def __init__(self, value=0.0):
        self.value = value

    def fit(self, given, target):
        self.fitted_ = True
        return self

    def sample(self, given, rng):
        return np.full(given.n_rows, self.value)
