"""Small objects of every kind that can be saved, for round trips, stored files and corrupted files."""

from __future__ import annotations

import numpy as np
import pandas as pd

import mcce
from tests.extras import HAS_VINE

LEVELS = ["a,b", 'c"d', "<script>", "é\n", ""]


def table(n=60, *, missing=True, seed=3):
    """Return rows of every kind of column with few distinct numbers, so that files are small."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 12, n)
    frame = pd.DataFrame(
        {
            "x": x / 4,
            "sex": pd.Categorical(rng.choice(["f", "m"], n)),
            7: pd.Categorical(rng.integers(0, 3, n) * 10, categories=[0, 10, 20], ordered=True),
            "job": np.array(LEVELS, dtype=object)[(x // 3 + rng.integers(0, 2, n)) % 5],
            "paid": rng.random(n) < 0.2 + x / 24,
            "n": (x + rng.integers(0, 4, n)).astype(np.int16),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(7 * rng.integers(0, 9, n), unit="D"),
        }
    )
    if missing:
        frame["x"] = frame["x"].mask(rng.random(n) < 0.15)
        frame["job"] = frame["job"].mask(rng.random(n) < 0.15)
        frame["day"] = frame["day"].mask(rng.random(n) < 0.15)
    return frame


def accepted(rows):
    """Decide by a number that is never missing."""
    return rows["n"].to_numpy(float) / 15


BOOSTED = mcce.BoostingSampler(n_quantiles=3, max_trees=2, learning_rate=0.7, min_leaf=8)
STATED = {"bounds": {"x": (0, 3), "n": (0, 15), "day": (0, 63)}}
BY_KIND = {"paid": "logreg", 7: "polr", "job": "polyreg", "*": "norm"}
BINOMIAL = mcce.StatsmodelsSampler("GLM", family="Binomial(Probit)", formula="~ poly(n, 2)")
SURVIVAL = mcce.SurvCtreeSampler(event="sex", mincriterion=0.5, min_split=8, min_leaf=3)
CHAINS = {
    "cart": ("cart", True),
    "rpart": (mcce.CartSampler(dialect="rpart", cp=-1, min_split=6), True),
    "ctree": (mcce.CtreeSampler(mincriterion=0.5, min_split=8, min_leaf=3), True),
    "forest": (mcce.ForestSampler(n_trees=3), True),
    "forest by tree": (mcce.ForestSampler(n_trees=2, pooling="trees", smoothing="density"), True),
    "marginal": ("marginal", True),
    "parametric": ("parametric", True),
    "coefficients": (BY_KIND, True),
    "pmm": ({"x": "pmm", "n": mcce.PmmSampler(smoothing="density", proper=True), "day": "normrank", "*": "cart"}, True),
    "gaussian": ({"x": "gaussian", "n": "gaussian", "*": "cart"}, True),
    "empirical": ("empirical", True),
    "boosting": ({"wage": BOOSTED, "n": BOOSTED, "day": BOOSTED, "job": BOOSTED, "*": "marginal"}, True),
    "dp": (mcce.DPSampler(**STATED, levels="schema", max_depth=2, n_bins=4, testing_seed=1), True),
    "mixture": (mcce.MixtureSampler(max_components=2), True),
    "copula": (mcce.GaussianCopulaSampler(particles=3, sweeps=2, density_points=16), False),
    "amounts": ({"x": "twopart", "day": "quantile", "n": "gamma", "*": "marginal"}, True),
    "counts": ({"n": "poisson", "day": "negbin", "x": "zip", "*": "marginal"}, True),
    "shares": ({"x": "beta", "n": mcce.NormSampler(formula="bs(x, 4) * paid"), "*": "marginal"}, True),
    "transformed": ({"x": "sqrtnorm", "n": "lognorm", "day": "cubertnorm", "*": "marginal"}, True),
    "mice": ({"x": "midastouch", "n": "norm.boot", "day": "lasso.norm", "paid": "lasso.logreg", "*": "marginal"}, True),
    "grouped": ({"n": mcce.TwoLevelSampler(group="job"), "x": SURVIVAL, "*": "marginal"}, True),
    "counted": ({"paid": "lda", 7: "catall", "job": "nested", "*": "marginal"}, True),
    "stack": ({"x": mcce.StackSampler(["norm", "marginal"]), "*": "marginal"}, True),
    "statsmodels": ({"paid": BINOMIAL, 7: mcce.StatsmodelsSampler("OrderedModel"), "*": "marginal"}, True),
}
if HAS_VINE:
    VINE = mcce.VineSampler(families="gaussian", max_givens=2)
    CHAINS["vine"] = ({"x": VINE, 7: VINE, "n": VINE, "day": "marginal", "*": "cart"}, False)


def rows_of(name, n=60, *, missing=True):
    """Return the training rows for the chain of a family."""
    X = table(n, missing=missing)
    if name in ("boosting", "mixture"):  # a column with more distinct numbers than the limit for classes
        X["wage"] = np.sqrt(np.arange(n)) + X["n"]
    if name == "amounts":
        X["n"] += 1
    if name == "counts":
        X["x"] = np.where(np.arange(n) % 5 == 0, 0, X["x"] * 4)
        X["day"] = np.random.default_rng(6).negative_binomial(1, 0.2, n)
    if name == "shares":
        X["x"] = (X["x"] + 0.25) / 4
    if name == "statsmodels":
        X = X[["sex", "n", "x", 7, "paid", "job", "day"]]
    return X


def chain(name, *, decision=False, n=60):
    """Return a fitted chain of one family, or of several."""
    sampler, missing = CHAINS[name]
    X = rows_of(name, n, missing=missing)
    made = mcce.ChainModel(sampler=sampler, fixed=["sex"], random_state=5, n_jobs=1)
    return made.fit(X, accepted(X) > 0.5 if decision else None)


def explainer(**settings):
    """Return a fitted explainer with constraints."""
    constraints = [mcce.allow("n", low=1, direction="increase"), mcce.rule("if sex == 'f' then n >= 2")]
    settings = {"decision": (0.5, 1.0), "constraints": constraints} | settings
    return mcce.MCCE(accepted, fixed=["sex"], random_state=5, n_jobs=1, **settings).fit(table())


def counterfactuals():
    """Return a result with all its tables."""
    return explainer().explain(table(12, seed=4), n_samples=40, n_counterfactuals=2).with_why_unexplained()
