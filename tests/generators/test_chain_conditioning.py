"""Weighted or resampled truncated draws follow the conditioned joint distribution."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import CartSampler, ChainModel, ConditionalSampler, MCCEWarning, NormSampler
from mcce.generators.requests import DrawRequest
from tests.generators.rules import AtLeast
from tests.marks import nightly, nightly_rows

N = 20_000


class Redrawn(NormSampler):
    """A normal regression without restricted draws: it uses rejection."""

    def sample(self, given, rng, within=None):
        return super().sample(given, rng)

    sample_within = ConditionalSampler.sample_within


class Silent(NormSampler):
    """A normal regression that does not report its rejected probability."""

    def sample_within(self, given, rng, within):
        found = super().sample_within(given, rng, within)
        return type(found)(found.values, found.rejected)


@pytest.fixture(scope="module")
def linear():
    rng = np.random.default_rng(3)
    x1 = rng.normal(1.0, 1.0, 3000)
    x2 = 0.8 * x1 + rng.normal(0.0, 0.6, 3000)
    x3 = 0.9 * x1 - 0.5 * x2 + rng.normal(0.0, 0.8, 3000)
    return pd.DataFrame({"x1": x1, "x2": x2, "x3": x3})


def moments(chain):
    """Return mean and covariance of the normal distribution implied by the fitted regressions."""
    mean, root = np.zeros(3), np.zeros((3, 3))
    for k, sampler in enumerate(chain.samplers_.values()):
        intercept, slopes = sampler.coef_[0], sampler.coef_[1:]
        mean[k] = intercept + slopes @ mean[:k]
        root[k] = slopes @ root[:k]
        root[k, k] = sampler.sigma_
    return mean, root @ root.T


def mean_above(chain, direction, bound):
    """E[x | direction'x >= bound], by the inverse Mills ratio."""
    mean, covariance = moments(chain)
    direction = np.asarray(direction, dtype=float)
    sd = np.sqrt(direction @ covariance @ direction)
    z = (bound - direction @ mean) / sd
    return mean + covariance @ direction / sd * stats.norm.pdf(z) / stats.norm.sf(z), stats.norm.sf(z)


def assert_weighted_mean(rows, weights, expected, z=4.0):
    mean = np.average(rows, axis=0, weights=weights)
    error = np.sqrt(((weights[:, None] * (rows - mean)) ** 2).sum(axis=0)) / weights.sum()
    assert (np.abs(mean - expected) < z * error).all(), (mean, expected, error)
    assert (error < 0.1).all()


@pytest.mark.parametrize("sampler", [NormSampler(), *nightly(Redrawn(), Silent())], ids=repr)
@pytest.mark.parametrize("constraint", ["rule", *nightly("bound", "rule without bounds")])
def test_normal_chain_conditioned_on_its_last_variables(linear, sampler, constraint):
    chain = ChainModel(sampler=sampler, random_state=1).fit(linear)
    if constraint == "bound":
        options = {"within": {"x3": (1.5, None)}}
        expected, mass = mean_above(chain, [0, 0, 1], 1.5)
    else:
        options = {"rules": [AtLeast(2, 1, 1.0, bounds=constraint == "rule")]}
        expected, mass = mean_above(chain, [0, -1, 1], 1.0)
    with_rejected_rows = type(sampler) is Redrawn or constraint == "rule without bounds"
    with pytest.warns(MCCEWarning, match="rejected by") if with_rejected_rows else nullcontext():
        rows, weights = chain.sample(N, importance=True, **options)
    # the first variable is drawn before the last is restricted: its mean is the unconditional one
    unconditional = moments(chain)[0][0]
    assert abs(expected[0] - unconditional) > 0.3
    # rejected rows have little mass: they account for part of the difference
    assert abs(rows["x1"].mean() - expected[0]) > 0.15
    if not with_rejected_rows:
        assert rows["x1"].mean() == pytest.approx(unconditional, abs=0.02)
    assert_weighted_mean(rows.to_numpy(), weights.to_numpy(), expected)
    resampled = chain.sample(N, resample=True, **options)
    assert len(resampled) == N
    np.testing.assert_allclose(resampled.mean(), expected, atol=0.06)
    # brute force: unrestricted rows of another seed that satisfy the restriction
    free = chain.sample(N, random_state=2)
    obeys = free["x3"] >= 1.5 if constraint == "bound" else free["x3"] >= free["x2"] + 1.0
    assert obeys.mean() == pytest.approx(mass, abs=4 * np.sqrt(mass / N))
    np.testing.assert_allclose(free[obeys].mean(), expected, atol=0.1)


@pytest.mark.slow
def test_mean_weight_is_the_allowed_probability(linear):
    """Holds also with a bound and rules, and with limited numbers of draws."""
    chain = ChainModel(sampler="norm", random_state=1).fit(linear)
    request = DrawRequest(
        np.empty((N, 0)),
        np.zeros(N, dtype=np.uint64),
        np.arange(N, dtype=np.uint64),
        5,
        rules=(AtLeast(2, 1, 0.5, bounds=False), AtLeast(1, 0, 0.2)),
        weighted=True,
    )
    weights = np.exp(chain.draw(request).log_weight)
    free = chain.sample(200_000, random_state=2)
    share = ((free["x3"] >= free["x2"] + 0.5) & (free["x2"] >= free["x1"] + 0.2)).mean()
    error = np.hypot(weights.std() / np.sqrt(N), np.sqrt(share / 200_000))
    assert 0.002 < share < 0.1
    assert abs(weights.mean() - share) < 4 * error


@pytest.fixture(scope="module")
def shop():
    """A table whose cells a tree separates: the joint distribution of the chain is that of the table."""
    rng = np.random.default_rng(8)
    size = rng.choice(["s", "m", "l"], 6000, p=[0.5, 0.3, 0.2])
    colour = np.where(rng.random(6000) < pd.Series(size).map({"s": 0.1, "m": 0.4, "l": 0.9}), "red", "blue")
    mean = pd.Series(size).map({"s": 2, "m": 3, "l": 4}) + 2 * (colour == "red")
    price = np.clip(mean + rng.integers(-2, 3, 6000), 0, 7)
    return pd.DataFrame({"size": size, "colour": colour, "price": price})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numeric", *nightly("ordered")])
@pytest.mark.parametrize(
    ("within", "keeps"),
    [
        ({"colour": ["red"], "price": (6, 7)}, lambda t: (t["colour"] == "red") & t["price"].between(6, 7)),
        *nightly_rows(({"price": (5, None)}, lambda t: t["price"] >= 5)),
    ],
)
def test_cells_of_a_small_table_have_their_exact_shares(shop, within, keeps, kind):
    sampler = {"size": "marginal", "*": CartSampler(min_leaf=1)}
    chain = ChainModel(sampler=sampler, kinds={"price": kind}, random_state=1).fit(shop)
    truth = shop[keeps(shop)].groupby(list(shop)).size() / keeps(shop).sum()
    by_size = truth.groupby("size").sum()

    def shares(rows, weights):
        return (weights.groupby([rows[name] for name in shop]).sum() / weights.sum()).reindex(truth.index, fill_value=0)

    few_are_left = "colour" not in within  # small blue items never cost that much
    with pytest.warns(MCCEWarning, match=f"{N} rows .* rejected by 'price'") if few_are_left else nullcontext():
        rows, weights = chain.sample(N, within=within, importance=True)
    assert keeps(rows).all()
    n_effective = weights.sum() ** 2 / (weights**2).sum()
    np.testing.assert_allclose(shares(rows, weights), truth, atol=4.5 * np.sqrt(0.25 / n_effective))
    unweighted = shares(rows, pd.Series(1.0, index=rows.index)).groupby("size").sum()
    assert (unweighted - by_size).abs().max() > 0.08
    resampled = chain.sample(N, within=within, resample=True)
    ones = pd.Series(1.0, index=resampled.index)
    np.testing.assert_allclose(shares(resampled, ones), truth, atol=4.5 * np.sqrt(0.25 / n_effective))
