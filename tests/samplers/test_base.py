"""The contract of a sampler, user's samplers that only draw, and the registry."""

import numpy as np
import pandas as pd
import pytest

from mcce.exceptions import InputError, NotFittedError
from mcce.rng import RowStreams
from mcce.samplers import (
    ConditionalSampler,
    Continuous,
    Within,
    available_samplers,
    base,
    distribution_of,
    make_sampler,
    register_sampler,
)
from mcce.table import Schema


class RoundedNormal(ConditionalSampler):
    """A user's conditional of ten lines."""

    handles = frozenset({"numeric"})
    accepts_missing = False

    def __init__(self, spread=1.0):
        self.spread = spread

    def fit(self, given, target):
        self.mean_ = float(np.mean(target.values))
        return self

    def sample(self, given, rng):
        return self.mean_ + given.matrix[:, 0] + self.spread * rng.normal()


class WithDistribution(RoundedNormal):
    """The same with a distribution."""

    def distribution(self, given):
        return Continuous("normal", (self.mean_ + given.matrix[:, 0], np.full(given.n_rows, self.spread)))

    sample = ConditionalSampler.sample


class OnlyFit(ConditionalSampler):
    """A sampler without the second method."""

    def fit(self, given, target):
        self.fitted_ = True
        return self


@pytest.fixture
def problem():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"g": rng.normal(size=300), "y": rng.integers(0, 200, 300)})
    table = Schema.from_data(frame).encode(frame)
    return table.select([0]), table.column(1)


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))


def test_draws_follow_from_a_distribution(problem):
    given, target = problem
    fitted = WithDistribution(2.0).fit(given, target)
    drawn = fitted.sample(given, RowStreams.from_seed(1, 300))
    assert np.array_equal(drawn, fitted.distribution(given).sample(RowStreams.from_seed(1, 300))[0])
    assert distribution_of(fitted, given, target.feature).has_density


def test_a_sampler_that_only_draws_works_and_is_rounded(problem):
    given, target = problem
    fitted = RoundedNormal(30.0).fit(given, target)
    distribution = distribution_of(fitted, given, target.feature)
    drawn, rejected = distribution.sample(RowStreams.from_seed(1, 300))
    assert np.array_equal(drawn, np.rint(fitted.sample(given, RowStreams.from_seed(1, 300))))
    assert not rejected.any()
    assert not distribution.has_density
    within = Within(low=np.where(np.arange(300) < 150, 130.0, 900.0))
    drawn, rejected = distribution.sample(RowStreams.from_seed(1, 300), within)
    assert (drawn[:150] >= 130.0).all()
    assert rejected.tolist() == [False] * 150 + [True] * 150
    assert np.isnan(drawn[150:]).all()
    for ask in (
        lambda: distribution.log_density(np.zeros(300)),
        lambda: distribution.cdf(np.zeros(300)),
        lambda: distribution.ppf(np.zeros(300)),
        lambda: distribution.probability(within),
    ):
        with pytest.raises(InputError, match=r"RoundedNormal has no .* because it implements sample\(\) only"):
            ask()
    with pytest.raises(InputError, match="implements sample"):
        fitted.distribution(given)


def test_rejection_of_a_row_does_not_depend_on_other_rows(problem):
    given, target = problem
    fitted = RoundedNormal(30.0).fit(given, target)
    within, rows = Within(low=np.full(300, 140.0)), np.arange(10, 300, 7)
    drawn, _ = distribution_of(fitted, given, target.feature).sample(RowStreams.from_seed(1, 300), within)
    part = distribution_of(fitted, given, target.feature).take(rows)
    again, _ = part.sample(RowStreams.from_seed(1, 300).take(rows), within.take(rows))
    assert np.array_equal(again, drawn[rows])


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        (lambda n: np.zeros(n + 1), r"Broken drew an array of shape \(301,\) for 'y' and 300 rows"),
        (lambda n: np.full(n, np.inf), r"Broken drew inf for 'y' \(300 of 300 draws\)"),
    ],
)
def test_wrong_draws_of_numbers(problem, drawn, message):
    class Broken(RoundedNormal):
        def sample(self, given, rng):
            return drawn(given.n_rows)

    given, target = problem
    with pytest.raises(InputError, match=message):
        distribution_of(Broken().fit(given, target), given, target.feature).sample(RowStreams.from_seed(1, 300))


def test_wrong_draws_of_levels():
    frame = pd.DataFrame({"y": list("abcab")})
    table = Schema.from_data(frame).encode(frame)

    class Broken(OnlyFit):
        def sample(self, given, rng):
            return rng.integer(2) * 3.0

    target = table.column(0)
    distribution = distribution_of(Broken().fit(table.select([]), target), table.select([]), target.feature)
    with pytest.raises(InputError, match=r"drew 3 for 'y'.*whole number from 0 to 2"):
        distribution.sample(RowStreams.from_seed(1, 5))


def test_errors_before_fit_and_without_methods(problem):
    given, target = problem
    for unfitted in (RoundedNormal(), WithDistribution()):
        with pytest.raises(NotFittedError, match="is not fitted; call fit"):
            distribution_of(unfitted, given, target.feature).sample(RowStreams.from_seed(1, 300))
    with pytest.raises(NotFittedError):
        WithDistribution().sample(given, RowStreams.from_seed(1, 300))
    with pytest.raises(InputError, match="OnlyFit implements neither"):
        distribution_of(OnlyFit().fit(given, target), given, target.feature)


def test_check_problem(problem):
    given, target = problem
    base.check_problem(RoundedNormal(), given, target)
    frame = pd.DataFrame({"g": [1.0, np.nan, 2.0], "y": [1.0, 2.0, 3.0], "job": ["a", None, "b"]})
    table = Schema.from_data(frame).encode(frame)
    with pytest.raises(InputError, match=r"sampler of column 'y', does not accept missing values, .* some in 'g'"):
        base.check_problem(RoundedNormal(), table.select([0]), table.column(1))
    with pytest.raises(InputError, match="OnlyFit does not model missing values, and column 'job' has 1"):
        base.check_problem(OnlyFit(), table.select([1]), table.column(2))


def test_registry(registry):
    @register_sampler("mine")
    class Mine(RoundedNormal):
        """A sampler of one's own."""

    @register_sampler("wide")
    def wide():
        return RoundedNormal(9.0)

    assert {"mine", "wide"} <= set(available_samplers())
    assert type(make_sampler("mine")) is Mine
    assert make_sampler("wide").spread == 9.0
    original = RoundedNormal(3.0)
    made = make_sampler(original)
    assert made is not original
    assert made.spread == 3.0
    assert type(make_sampler(RoundedNormal)) is RoundedNormal
    with pytest.raises(InputError, match="a sampler is 3; give a registered name"):
        make_sampler(3)
