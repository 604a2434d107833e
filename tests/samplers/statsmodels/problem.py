"""Known processes: a target of each family, given an age and a sex."""

import numpy as np
import pandas as pd

from mcce.table import Schema


def make_frame(n=600, seed=0):
    """Return two givens and a target of each family; log mean 0.5 + 0.02 age + 0.3 (m)."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.uniform(20, 70, n), "sex": pd.Categorical(rng.choice(["f", "m"], n))})
    mean = np.exp(0.5 + 0.02 * frame["age"] + 0.3 * (frame["sex"] == "m")).to_numpy()
    frame["count"] = rng.poisson(mean)
    frame["overdispersed"] = rng.negative_binomial(2, 2 / (2 + mean))
    frame["inflated"] = np.where(rng.random(n) < 0.3, 0, frame["count"])
    frame["amount"] = rng.gamma(3, mean / 3)
    frame["passage"] = rng.wald(mean, 20)
    share = 1 / (1 + np.exp(1 - mean / 5))
    frame["share"] = rng.beta(8 * share, 8 * (1 - share))
    frame["number"] = mean + rng.normal(size=n)
    frame["skewed"] = mean * (1 + rng.exponential(size=n))
    latent = mean - 5 + 2 * rng.logistic(size=n)
    frame["grade"] = pd.Categorical.from_codes(np.digitize(latent, [-2, 2]), ["low", "mid", "high"], ordered=True)
    frame["yes"] = pd.Categorical.from_codes((latent > 0).astype(int), ["no", "yes"])
    zero = rng.random(n) < 1 / (1 + np.exp((frame["age"] - 45) / 8))
    frame["saved"] = np.where(zero, 0, np.round(frame["amount"] + 0.05, 1))
    return frame


FRAME = make_frame()
TABLE = Schema.from_data(FRAME).encode(FRAME)
GIVEN = TABLE.first(2)


def column(name):
    """Return the target of a family."""
    return TABLE.column(list(FRAME).index(name))


def fitted(sampler, name):
    """Return a sampler that is fitted to a target."""
    return sampler.fit(GIVEN, column(name))
