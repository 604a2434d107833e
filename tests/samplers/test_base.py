from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mcce import CartSampler, ConditionalSampler, InputError, MarginalSampler, NotFittedError, SamplerError
from mcce.base.checks import check_count
from mcce.rng import RowStreams
from mcce.samplers import Within
from mcce.storage.learned import get_state, set_state
from mcce.table import Schema, Table


class Uniform(ConditionalSampler):
    """Uniform on [0, width)."""

    handles = frozenset({"numeric"})

    def __init__(self, *, width=1.0, weights=None):
        self.width = width
        self.weights = weights

    def fit(self, given, target):
        self.scale_ = float(self.width)
        return self

    def sample(self, given, rng, within=None):
        self.check_fitted("scale_")
        if within is not None:
            return self.sample_within(given, rng, within).values
        return self.scale_ * rng.uniform()


def empty(n):
    return Table((), np.empty((n, 0)))


def test_within_bounds_are_closed_and_missing_is_never_allowed():
    values = np.array([1.0, 2.0, 3.0, np.nan])
    assert Within(low=np.full(4, 2.0)).allows(values).tolist() == [False, True, True, False]
    assert Within(high=np.full(4, 2.0)).allows(values).tolist() == [True, True, False, False]
    both = Within(low=np.full(4, 2.0), high=np.full(4, 2.0))
    assert both.allows(values).tolist() == [False, True, False, False]
    assert Within().allows(values).tolist() == [True, True, True, False]


def test_within_bounds_and_levels_hold_row_by_row():
    levels = np.array([[True, False], [False, True], [True, True], [False, False], [True, True]])
    values = np.array([0.0, 0.0, 1.0, 1.0, np.nan])
    assert Within(levels=levels).allows(values).tolist() == [True, False, True, False, False]
    low = np.array([0.0, 0.0, 2.0, 0.0, 0.0])
    assert Within(low=low, levels=levels).allows(values).tolist() == [True, False, False, False, False]


def test_within_take_restricts_every_part():
    levels = np.eye(3, dtype=bool)
    within = Within(low=np.arange(3.0), high=np.arange(3.0), levels=levels).take(np.array([2, 0]))
    assert within.low.tolist() == within.high.tolist() == [2.0, 0.0]
    assert within.levels.tolist() == levels[[2, 0]].tolist()
    assert Within().take(np.array([0])) == Within()


def test_rejection_draws_from_the_restricted_distribution():
    n = 20_000
    sampler = Uniform().fit(empty(n), None)
    low = np.where(np.arange(n) % 2, 0.2, 0.7)
    drawn = sampler.sample(empty(n), RowStreams.from_seed(3, n), Within(low=low, high=low + 0.2))
    for start in (0.2, 0.7):
        part = drawn[low == start]
        assert stats.kstest(part, stats.uniform(start, 0.2).cdf).pvalue > 1e-4


def test_rejection_stops_row_by_row():
    sampler = Uniform().fit(empty(3), None)
    drawn = sampler.sample(empty(3), RowStreams.from_seed(0, 3), Within(low=np.array([0.0, 2.0, 0.5])))
    assert np.isnan(drawn).tolist() == [False, True, False]


def test_rejection_does_not_depend_on_other_rows():
    n = 500
    sampler = Uniform().fit(empty(n), None)
    within = Within(low=np.random.default_rng(0).uniform(0, 0.9, n))
    drawn = sampler.sample(empty(n), RowStreams.from_seed(1, n), within)
    rows = np.random.default_rng(1).permutation(n)[:50]
    again = sampler.sample(empty(50), RowStreams.from_seed(1, n).take(rows), within.take(rows))
    np.testing.assert_array_equal(again, drawn[rows])


def test_parameters_clone_and_repr():
    weights = np.arange(3)
    sampler = Uniform(width=2.0, weights=weights)
    assert sampler.get_params() == {"width": 2.0, "weights": weights}
    cloned = sampler.fit(empty(1), None).clone()
    assert cloned.weights is weights
    assert not hasattr(cloned, "scale_")
    assert repr(sampler) == "Uniform(width=2.0, weights=array([0, 1, 2]))"
    assert repr(Uniform()) == "Uniform()"
    assert repr(CartSampler(min_leaf=9, cp=0.1)) == "CartSampler(min_leaf=9, cp=0.1)"
    assert MarginalSampler().get_params() == {"min_donors": 1}


def test_unimplemented_methods_raise():
    sampler = Uniform(width=3.0)
    with pytest.raises(SamplerError, match=r"Uniform\(width=3.0\) does not implement supports\(\)"):
        sampler.supports(empty(1), np.zeros(1))
    with pytest.raises(SamplerError, match=r"Uniform\(width=3.0\) has no density.*implements log_density\(\)"):
        sampler.log_density(empty(1), np.zeros(1))
    with pytest.raises(NotFittedError, match=r"Uniform\(width=3.0\) is not fitted; call fit\(given, target\)"):
        sampler.sample(empty(1), RowStreams.from_seed(0, 1))


def test_undeclared_kind_raises():
    feature = Schema.from_data(pd.DataFrame({"job": ["cook", "clerk"]})).features[0]
    with pytest.raises(
        SamplerError,
        match=r"Uniform\(\) cannot model 'job': it is categorical, and the sampler handles 'numeric'",
    ):
        Uniform().check_target(feature)


def test_default_state_holds_attributes_ending_in_underscore():
    sampler = Uniform(width=2.0).fit(empty(1), None)
    sampler.table_ = np.arange(3)
    sampler._scratch_ = object()
    state = get_state(sampler)
    assert set(state) == {"scale_", "table_"}
    restored = set_state(Uniform(), state)
    assert restored.scale_ == 2.0
    assert restored.table_ is sampler.table_


def test_default_state_rejects_objects():
    sampler = Uniform().fit(empty(1), None)
    sampler.model_ = {"a": object()}
    with pytest.raises(
        SamplerError, match=r"Uniform.model_ is a dict; Uniform.model_\['a'\] is <object .* cannot be written"
    ):
        get_state(sampler)


def test_sampler_requires_its_two_methods():
    class NoSample(ConditionalSampler):
        def fit(self, given, target):
            return self

    with pytest.raises(TypeError, match=r"abstract method '?sample"):
        NoSample()


@pytest.mark.parametrize("value", [0, 2.0, "3", None, True])
def test_check_count_names_parameter_value_and_bound(value):
    with pytest.raises(InputError, match=rf"min_leaf of CartSampler is {value!r}; .* of at least 1"):
        check_count(value, "min_leaf", CartSampler(), 1)
    check_count(np.int64(1), "min_leaf", CartSampler(), 1)
