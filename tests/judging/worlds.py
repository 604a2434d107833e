"""Known processes, and samplers that know them: what is right and what is wrong is certain."""

import numpy as np
import pandas as pd
from scipy.special import expit

from mcce.samplers import ConditionalSampler, Continuous, Levels, Margin


def normals(n, seed):
    """y given x and z is normal with mean x + z and standard deviation 1; the level is more probable for large x."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    level = np.where(rng.random(n) < expit(1.5 * x), "yes", "no")
    return pd.DataFrame({"x": x, "z": z, "y": x + z + rng.normal(size=n), "level": level})


class Known(ConditionalSampler):
    """y given x and z, without a fit; wrong if one of its parameters is."""

    handles = frozenset({"numeric"})

    def __init__(self, *, bias=0.0, sd=1.0, slope=1.0, growth=0.0):
        self.bias, self.sd, self.slope, self.growth = bias, sd, slope, growth

    def fit(self, given, target):
        self.margin_ = Margin.fit(target.values, target.feature)
        return self

    def distribution(self, given):
        x, z = given.matrix.T
        return Continuous("normal", (self.bias + x + self.slope * z, self.sd * np.exp(self.growth * x)), self.margin_)


class KnownLevels(ConditionalSampler):
    """The level given x, z and y, without a fit."""

    handles = frozenset({"categorical"})

    def __init__(self, *, slope=1.5):
        self.slope = slope

    def fit(self, given, target):
        self.names_ = list(target.feature.levels)
        return self

    def distribution(self, given):
        p = expit(self.slope * given.matrix[:, 0])
        return Levels(np.column_stack([1 - p, p]))
