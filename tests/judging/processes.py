"""Known processes, and conditionals that are correct or wrong in a known way; nothing is fitted.

Two numbers and two groups are given. The target is normal around 1 + z1, or a level with probabilities dependent on z1.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mcce import ConditionalSampler
from mcce.judging.feature import criticise_feature
from mcce.judging.scores import score_conditional
from mcce.table import Schema

N_ROWS, N_DRAWS = 300, 40


@dataclass(frozen=True)
class Normal:
    """Normal with a shift, a spread, an interaction, and a share of exact zeros."""

    shift: float = 0.0
    sd: float = 1.0
    growing: float = 0.0  # log sd = growing * z1
    interaction: float = 0.0
    zeros: float = 0.0

    def draw(self, z1, z2, is_b, normal, uniform):
        sd = self.sd * np.exp(self.growing * z1)
        mean = 1 + z1 + self.shift + self.interaction * np.sign(z1) * np.sign(z2)
        return np.where(uniform < self.zeros, 0.0, mean + sd * normal)


@dataclass(frozen=True)
class Levels:
    """Three levels; logits grow with z1 times `slope`, the first is more frequent by `more`."""

    slope: float = 1.0
    more: float = 0.0
    more_in_b: float = 0.0

    def draw(self, z1, z2, is_b, normal, uniform):
        logits = np.column_stack([self.slope * z1 + self.more + self.more_in_b * is_b, -self.slope * z1, 0.3 + 0 * z1])
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return (uniform[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1).astype(float)


RIGHT, RIGHT_WITH_ZEROS, RIGHT_LEVELS = Normal(), Normal(zeros=0.3), Levels()

# the truth, and a conditional with one error; spreads are correct on average unless they are the error
WRONG = {
    "too narrow": (Normal(), Normal(sd=0.75)),
    "biased": (Normal(), Normal(shift=0.3)),
    "heteroscedastic": (Normal(growing=0.5, sd=0.85), Normal()),
    "a missing interaction": (Normal(interaction=0.6), Normal(sd=np.sqrt(1 + 0.6**2))),
    "wrong atoms": (Normal(zeros=0.3), Normal(zeros=0.2)),
}


class Known(ConditionalSampler):
    """Draws from a process."""

    handles = frozenset({"numeric", "categorical", "ordered"})

    def __init__(self, process=RIGHT):
        self.process = process

    def fit(self, given, target):
        return self

    def sample(self, given, rng, within=None):
        return self.process.draw(*given.matrix.T, rng.normal(), rng.uniform())


def table_of(truth, seed, n=N_ROWS):
    rng = np.random.default_rng(seed)
    z1, z2, is_b = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 2, size=n)
    y = truth.draw(z1, z2, is_b, rng.normal(size=n), rng.uniform(size=n))
    if isinstance(truth, Levels):
        y = pd.Categorical.from_codes(y.astype(int), ["low", "middle", "high"])
    X = pd.DataFrame({"z1": z1, "z2": z2, "group": pd.Categorical.from_codes(is_b, ["a", "b"]), "y": y})
    return Schema.from_data(X).encode(X)


def criticise(truth, conditional, seed, n=N_ROWS, n_draws=N_DRAWS):
    table = table_of(truth, seed, n)
    sampler, given = Known(conditional), table.first(3)
    scores = score_conditional(sampler, given, table.column(3), seed=seed, n_draws=n_draws)
    return criticise_feature(scores, given, table.matrix[:, 3], repr(sampler), seed)
