"""All parametric samplers, and tables for them."""

import numpy as np
import pandas as pd

import mcce
from mcce.table import Schema

SAMPLERS = [
    mcce.NormSampler(),
    mcce.NormSampler(proper=True, random_state=3),
    mcce.GaussianSampler(),
    mcce.NormSampler(transform="cuberoot"),
    mcce.NormBootSampler(),
    mcce.LassoNormSampler(),
    mcce.TwoLevelSampler(),
    mcce.TwoLevelSampler(proper=True),
    mcce.MidastouchSampler(),
    mcce.LdaSampler(),
    mcce.LassoLogregSampler(n_folds=2, n_penalties=2),
    mcce.NormRankSampler(),
    mcce.NormRankSampler(proper=True, smoothing="density"),
    mcce.PmmSampler(),
    mcce.PmmSampler(n_donors=7, proper=True),
    mcce.PmmSampler(smoothing="density"),
    mcce.LogregSampler(),
    mcce.LogregSampler(proper=True),
    mcce.PolyregSampler(),
    mcce.PolyregSampler(proper=True),
    mcce.PolrSampler(),
    mcce.PolrSampler(proper=True),
    mcce.ParametricSampler(),
    mcce.ParametricSampler(proper=True, smoothing="density"),
]


def encode(frame, target="y"):
    """Return the givens and the target of a frame."""
    table = Schema.from_data(frame).encode(frame)
    j = table.names.index(target)
    return table.select([k for k in range(len(table.names)) if k != j]), table.column(j)


def kinds_of(sampler):
    return sorted(sampler.handles)


def target_of(kind, codes):
    if kind == "numeric":
        return codes * 1.5
    return pd.Categorical.from_codes(codes, ["a", "b", "c", "d"], ordered=kind == "ordered")


def frame_with_missing(kind, seed=0, n=2000):
    """x drives both the target and, at x > 0, whether it is missing; x itself is missing at random."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    codes = np.digitize(x + rng.logistic(size=n), [-1.0, 0.5, 2.0])
    y = pd.Series(target_of(kind, codes)).mask(rng.random(n) < np.where(x > 0, 0.5, 0.1))
    f = pd.Series(rng.choice(["u", "v"], n)).mask(rng.random(n) < 0.2)
    return pd.DataFrame({"x": pd.Series(x).mask(rng.random(n) < 0.1), "f": f, "y": y}), x
