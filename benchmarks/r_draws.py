"""Draws of ten conditionals that are made of R functions, against R's own distribution functions.

    python -m benchmarks.r_draws [--quick]

1. A chain fits each conditional through `r_bridge.RSampler`, and draws y ten times for 400 rows of givens. Five use R's
   generator (rnorm, rpois, sample, ...), five are functions of our uniform numbers.
2. R alone fits the same model, and computes F(y) and F just below y for every draw at its givens. A random number
   between the two is uniform on (0, 1) if the draws have the distribution F (probability integral transform).
3. `p` is that of the chi-square test of 20 equal bins. It is to be above `LEVEL`: 0.001 for the ten together, by
   Bonferroni. `p_wrong` shows the power: F has a mean or scale 10% too large, or odds of a level 50% too large.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chisquare

from benchmarks.settings import Report, arguments
from mcce import ChainModel
from r_bridge import RSampler, to_r
from r_bridge.session import session

N_TRAIN, N_DRAWS, N_BINS = 400, 10, 20
LEVEL = 0.001 / 10


@dataclass(frozen=True)
class Conditional:
    """y given some columns of `people`, as R code.

    `fit` is code of `data`; `draw` of `object`, `newdata` and perhaps `u`; `cdf` of `object`, `newdata`, `y` (numbers,
    or places of levels from 1) and `k`, a factor of the mean, scale or odds, which is `wrong` for the power. A drawn
    value has the probability F(y + above) - F(y - below).
    """

    target: str
    givens: tuple[str, ...]
    fit: str
    draw: str
    cdf: str
    below: float = 0.0
    above: float = 0.0
    wrong: float = 1.1

    def sampler(self) -> RSampler:
        """Return the conditional for a chain."""
        u = ", u" if re.search(r"\bu\b", self.draw) else ""
        learn = f"function(x, y) {{ data <- cbind(x, y = y); {self.fit} }}"
        return RSampler(learn, f"function(object, newdata{u}) {{ {self.draw} }}")

    @property
    def package(self) -> str:
        """The R package of the fit."""
        return self.fit.partition("::")[0] if "::" in self.fit else "stats"


P = "predict(object, newdata, type = 'response')"
SHARES = "p <- matrix(predict(object, newdata, type = 'probs'), nrow(newdata)); "
UP_TO = SHARES + "p[, 1] <- k * p[, 1]; rowSums(p * outer(y, seq_len(ncol(p)), '>=')) / rowSums(p)"
LEAF = "f <- object; f$frame$yval <- seq_len(nrow(f$frame)); leaf <- predict(f, newdata); "
COUNT, LEVELS, CELL = {"below": 1.0}, {"below": 1.0, "wrong": 1.5}, {"below": 0.05, "above": 0.05}
CONDITIONALS = {
    "lm, rnorm": Conditional(
        "wage",
        ("age", "job"),
        "lm(y ~ ., data)",
        "rnorm(1, predict(object, newdata), sigma(object))",
        "pnorm(y, predict(object, newdata), k * sigma(object))",
        **CELL,
    ),
    "lm of the logarithm, qlnorm": Conditional(
        "savings",
        ("age", "job"),
        "lm(log(y) ~ ., data)",
        "qlnorm(u, predict(object, newdata), sigma(object))",
        "plnorm(y, predict(object, newdata), k * sigma(object))",
    ),
    "glm(poisson), rpois": Conditional(
        "visits", ("age", "job"), "glm(y ~ ., poisson, data)", f"rpois(1, {P})", f"ppois(y, k * {P})", **COUNT
    ),
    "glm(binomial), rbinom": Conditional(
        "owner",
        ("age", "wage"),
        "glm(y ~ ., binomial, data)",
        f"levels(object$model$y)[1 + rbinom(1, 1, {P})]",
        f"pbinom(y - 1, 1, plogis(qlogis({P}) + log(k)))",
        **LEVELS,
    ),
    "glm(Gamma), qgamma": Conditional(
        "rent",
        ("age", "grade"),
        "glm(y ~ ., Gamma('log'), data)",
        f"a <- 1 / summary(object)$dispersion; qgamma(u, a, a / {P})",
        f"a <- 1 / summary(object)$dispersion; pgamma(y, a, a / (k * {P}))",
    ),
    "MASS::glm.nb, rnbinom": Conditional(
        "claims",
        ("age", "job"),
        "MASS::glm.nb(y ~ ., data)",
        f"rnbinom(1, object$theta, mu = {P})",
        f"pnbinom(y, object$theta, mu = k * {P})",
        **COUNT,
    ),
    "nnet::multinom, sample": Conditional(
        "job",
        ("age", "wage"),
        "nnet::multinom(y ~ ., data, trace = FALSE)",
        SHARES + "sample(object$lev, 1, prob = p)",
        UP_TO,
        **LEVELS,
    ),
    "MASS::polr, cumulated": Conditional(
        "grade",
        ("age", "job"),
        "MASS::polr(y ~ ., data)",
        SHARES + "object$lev[1 + (u > p[, 1]) + (u > p[, 1] + p[, 2])]",
        UP_TO,
        **LEVELS,
    ),
    "mgcv::gam(betar), qbeta": Conditional(
        "share",
        ("age", "job"),
        "mgcv::gam(y ~ s(age) + job, mgcv::betar(), data)",
        f"m <- {P}; phi <- object$family$getTheta(TRUE); qbeta(u, m * phi, (1 - m) * phi)",
        f"m <- {P}; phi <- object$family$getTheta(TRUE) / k^2; pbeta(y, m * phi, (1 - m) * phi)",
    ),
    "rpart::rpart, quantile of the leaf": Conditional(
        "wage",
        ("age", "savings", "job"),
        "rpart::rpart(y ~ ., data)",
        LEAF + "mapply(function(leaf, u) quantile(object$y[object$where == leaf], u, type = 1), leaf, u)",
        LEAF + "mapply(function(leaf, y) ecdf(k * object$y[object$where == leaf])(y), leaf, y)",
        **CELL,
    ),
}


def people() -> pd.DataFrame:
    """Return simulated rows: numbers, counts, shares, levels; a sixth of the savings is missing."""
    rng = np.random.default_rng(59)
    age = rng.uniform(20, 70, N_TRAIN)
    job, grade = rng.integers(0, 4, N_TRAIN), np.digitize(age / 15 + rng.logistic(size=N_TRAIN), [2.0, 4.0])
    x = age / 25 + 0.4 * job
    mean = rng.uniform(0.1, 0.7, N_TRAIN)
    return pd.DataFrame(
        {
            "age": age,
            "job": pd.Categorical.from_codes(job, ["pilot", "clerk", "cook", "smith"]),
            "grade": pd.Categorical.from_codes(grade, ["low", "mid", "high"], ordered=True),
            "wage": (20 + 2 * x + rng.normal(0, 2, N_TRAIN)).round(1),
            "owner": pd.Categorical.from_codes((rng.logistic(size=N_TRAIN) > 2 - x).astype(int), ["no", "yes"]),
            "savings": np.where(rng.random(N_TRAIN) < 1 / 6, np.nan, np.exp(x + rng.normal(size=N_TRAIN))),
            "visits": rng.poisson(np.exp(x / 2)),
            "rent": rng.gamma(3, np.exp(x)),
            "claims": rng.negative_binomial(2, 1 / (1 + np.exp(x / 2))),
            "share": rng.beta(6 * mean, 6 * (1 - mean)),
        }
    )


def measure(conditional: Conditional, n_draws: int = N_DRAWS) -> dict[str, Any]:
    """Return the number of known draws, and the p values for R's distribution function and a wrong one."""
    r, givens = session(), list(conditional.givens)
    data = people()[[*givens, conditional.target]].rename(columns={conditional.target: "y"})
    chain = ChainModel(fixed=givens, sampler={"y": conditional.sampler()}, random_state=1).fit(data)
    drawn = chain.sample(n_draws, given=data[givens]).dropna(subset="y")
    is_level = isinstance(drawn["y"].dtype, pd.CategoricalDtype)
    y = (drawn["y"].cat.codes + 1 if is_level else drawn["y"]).to_numpy(float)
    fitted, newdata = r.evaluate(conditional.fit, to_r(data)), to_r(drawn[givens])
    cdf = r.evaluate(f"function(object, newdata, y, k) {{ {conditional.cdf} }}")
    between = np.random.default_rng(1).random(y.size)

    def p_value(k: float) -> float:
        edges = (y - conditional.below, y + conditional.above)
        low, high = (r.numbers(cdf(fitted, newdata, r.vector(edge), r.vector(k))) for edge in edges)
        return float(chisquare(np.histogram(low + between * (high - low), N_BINS, (0, 1))[0]).pvalue)

    return {"draws": y.size, "p": p_value(1.0), "p_wrong": p_value(conditional.wrong)}


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__, "r_draws").parse_args()
    report = Report("rcompat_draws", options)
    for name, conditional in CONDITIONALS.items():
        givens = ", ".join(conditional.givens)
        report.add(conditional=name, givens=givens, **measure(conditional, 1 if options.quick else N_DRAWS))
    report.write()


if __name__ == "__main__":
    main()
