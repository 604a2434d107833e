"""Exact noise: each distribution compared with its analytic probabilities, and the sources."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mcce.privacy.noise import SYSTEM, Mechanism, choose, discrete_gaussian, discrete_laplace, happens_exp

N = 8_000
LEVEL = 1e-3


def agrees(drawn, log_weight, reach):
    """Return the p-value of chi-squared: integers up to `reach` one by one, the tails pooled."""
    support = np.arange(-4000, 4001)
    p = np.exp(log_weight(support.astype(float)))
    p /= p.sum()
    inner = np.abs(support) <= reach
    expected = N * np.append(p[inner], p[~inner].sum())
    counts = [np.sum(drawn == x) for x in support[inner]] + [np.sum(np.abs(drawn) > reach)]
    kept = expected > 5
    assert kept[:-1].all()
    observed = np.array(counts)[kept]
    return stats.chisquare(observed, expected[kept] * observed.sum() / expected[kept].sum()).pvalue


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 3)])
def test_coin_has_its_probability(gamma):
    source = random.Random(1)
    times = sum(happens_exp(gamma.numerator, gamma.denominator, source) for _ in range(N))
    p = math.exp(-gamma)
    assert times == N if gamma == 0 else stats.binomtest(times, N, p).pvalue > LEVEL


@pytest.mark.parametrize(("epsilon", "reach"), [(Fraction(1), 5), (Fraction(2, 7), 12), (Fraction(5, 2), 2)])
def test_laplace(epsilon, reach):
    source = random.Random(2)
    drawn = np.array([discrete_laplace(epsilon, source) for _ in range(N)])
    assert agrees(drawn, lambda x: -float(epsilon) * np.abs(x), reach) > LEVEL
    assert drawn.var() == pytest.approx(Mechanism(epsilon=epsilon).variance, rel=0.1)


@pytest.mark.parametrize(("s2", "reach"), [(Fraction(1, 2), 1), (Fraction(17, 3), 5), (Fraction(4), 4)])
def test_gaussian(s2, reach):
    source = random.Random(3)
    drawn = np.array([discrete_gaussian(s2, source) for _ in range(N)])
    assert agrees(drawn, lambda x: -(x**2) / (2 * float(s2)), reach) > LEVEL
    assert drawn.var() == pytest.approx(Mechanism(rho=1 / (2 * s2)).variance, rel=0.1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_exponential_mechanism(epsilon):
    scores, source = [0, 3, 2, 7, 7], random.Random(4)
    chosen = np.bincount([choose(scores, epsilon, 2, source) for _ in range(N)], minlength=len(scores))
    p = np.exp(float(epsilon) * np.array(scores) / 4)
    expected = N * p / p.sum()
    kept = expected > 5
    observed = chosen[kept]
    assert stats.chisquare(observed, expected[kept] * observed.sum() / expected[kept].sum()).pvalue > LEVEL
    wrong = np.exp(float(epsilon) * np.array(scores) / 2)
    assert stats.chisquare(chosen[1:], chosen[1:].sum() * wrong[1:] / wrong[1:].sum()).pvalue < LEVEL


@pytest.mark.parametrize("whole", [Mechanism(epsilon=Fraction(2, 3)), Mechanism(rho=Fraction(1, 7))])
def test_choice_costs_no_more_than_its_share(whole):
    part = whole.part(Fraction(1, 4))
    cost = (part.choosing, whole.epsilon / 4) if whole.rho is None else (part.choosing**2 / 8, whole.rho / 4)
    assert cost[0] <= cost[1]
    assert float(cost[0]) == pytest.approx(float(cost[1]), rel=1e-9)


def test_chi_squared_test_detects_halved_noise():
    drawn = np.array([discrete_laplace(Fraction(2), random.Random(i)) for i in range(N // 4)])
    assert agrees(np.tile(drawn, 4), lambda x: -np.abs(x), 5) < LEVEL


def test_noise_is_integers_from_the_system_source():
    assert isinstance(discrete_laplace(Fraction(1, 10)), int)
    assert all(0 <= SYSTEM.randrange(3) < 3 for _ in range(50))
    assert len({discrete_laplace(Fraction(1, 10**9)) for _ in range(20)}) == 20


def test_system_source_is_cryptographic(monkeypatch):
    queried = []
    monkeypatch.setattr(random, "_urandom", lambda n: queried.append(n) or bytes(n))
    assert SYSTEM.randrange(7) == 0
    assert queried == [1]


def test_same_seed_gives_the_same_noise():
    first, again, other = (
        [discrete_laplace(Fraction(1, 9), s) for _ in range(30)] for s in map(random.Random, (1, 1, 2))
    )
    assert first == again != other


@pytest.mark.parametrize("mechanism", [Mechanism(epsilon=Fraction(10**6)), Mechanism(rho=Fraction(10**4))])
def test_large_budget_adds_no_noise(mechanism):
    draw = mechanism.noise(random.Random(1))
    assert {draw() for _ in range(50)} == {0}
    assert mechanism.variance < 1e-12
