"""Known processes: a table whose last column is the target, and the log density of the true conditional there."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import log_softmax, logsumexp

from mcce.judging.scores import log_score
from mcce.rng import derive_key
from mcce.samplers import Margin, distribution_of, make_sampler
from mcce.table import Schema


def linear(rng, n):
    x1, x2 = rng.normal(size=(2, n))
    truth = stats.norm(1 + 2 * x1 - 1.5 * x2, 1)
    y = truth.rvs(random_state=rng)
    return pd.DataFrame({"x1": x1, "x2": x2, "y": y}), truth.logpdf(y)


def curved(rng, n):
    """A sine times a line, a spread that grows, and a group with two modes."""
    x1, x2 = rng.uniform(-2, 2, size=(2, n))
    group = rng.integers(0, 3, n)
    apart = np.where(group == 2, 2.0, 0.0)
    mean, sd = 2 * np.sin(2 * x1) * x2, 0.3 + 0.3 * np.abs(x2)
    y = mean + rng.choice([-1.0, 1.0], n) * apart + sd * rng.normal(size=n)
    each = [stats.norm.logpdf(y, mean + sign * apart, sd) for sign in (-1.0, 1.0)]
    frame = pd.DataFrame({"x1": x1, "x2": x2, "group": np.array(list("abc"))[group], "y": y})
    return frame, logsumexp(each, axis=0) - np.log(2)


def zeros(rng, n):
    """Zeros and a log-normal."""
    x1, x2 = rng.normal(size=(2, n))
    p = 1 / (1 + np.exp(-1.5 * x1))
    truth = stats.lognorm(0.6, scale=np.exp(1 + 0.5 * x2))
    y = np.where(rng.random(n) < p, 0.0, truth.rvs(random_state=rng))
    log_density = np.where(y == 0, np.log(p), np.log1p(-p) + truth.logpdf(np.where(y == 0, 1.0, y)))
    return pd.DataFrame({"x1": x1, "x2": x2, "y": y}), log_density


def counts(rng, n):
    """Negative binomial with dispersion 0.5."""
    x1, x2 = rng.normal(size=(2, n))
    mean = np.exp(1 + 0.4 * x1 - 0.3 * x2)
    truth = stats.nbinom(2, 2 / (2 + mean))
    y = truth.rvs(random_state=rng)
    return pd.DataFrame({"x1": x1, "x2": x2, "y": y}), truth.logpmf(y)


def gamma(rng, n):
    x1, x2 = rng.normal(size=(2, n))
    truth = stats.gamma(3, scale=np.exp(1 + 0.4 * x1 - 0.3 * x2) / 3)
    y = truth.rvs(random_state=rng)
    return pd.DataFrame({"x1": x1, "x2": x2, "y": y}), truth.logpdf(y)


def levels(rng, n):
    """Four levels that depend on a number, differently for each level of another column."""
    a, x = rng.integers(0, 4, n), rng.normal(size=n)
    scores = np.stack([np.zeros(n), 1.2 * x * np.where(a % 2, 1, -1), 0.8 * (a - 1.5), 0.7 * x * (a - 1.5)], axis=1)
    log_p = log_softmax(scores, axis=1)
    y = (rng.random(n)[:, None] > np.exp(log_p).cumsum(axis=1)).sum(axis=1)
    frame = pd.DataFrame({"a": np.array(list("pqrs"))[a], "x": x, "y": np.array(list("ABCD"))[y]})
    return frame, log_p[np.arange(n), y]


PROCESSES = [linear, curved, zeros, counts, gamma, levels]


def excess_log_score(sampler, process, n=1500, n_new=1500, seed=0):
    """The mean log score on new rows, minus that of the truth."""
    frame, truth = process(np.random.default_rng(derive_key(seed, process.__name__)), n + n_new)
    table = Schema.from_data(frame).encode(frame)
    old, new = table.take(np.arange(n)), table.take(np.arange(n, n + n_new))
    k = len(frame.columns) - 1
    target, values = old.column(k), new.column(k).values
    fitted = make_sampler(sampler).fit(old.first(k), target)
    margin = Margin.fit(target.values, target.feature)
    scores = log_score(distribution_of(fitted, new.first(k), target.feature), values, margin)
    return float((scores - truth[n:]).mean())
