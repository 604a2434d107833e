"""The conformance suite: correct samplers pass, and each broken one fails only its check."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mcce import CartSampler, InputError, MarginalSampler, SamplerError
from mcce.samplers.base import SAMPLERS
from mcce.testing import CHECKS, GOODNESS_OF_FIT, ConformanceError, check_sampler
from tests.marks import nightly
from tests.testing import broken_draws, broken_fits
from tests.testing.sound_samplers import Frequencies, LogNormal, Normal, TwoMethods

ALL = (*CHECKS, *GOODNESS_OF_FIT)

CONFORMING = [
    CartSampler(),
    CartSampler(min_split=40, min_leaf=20),
    CartSampler(min_leaf=1, max_depth=4),
    CartSampler(cp=0.01),
    MarginalSampler(),
    Normal(),
    TwoMethods(),
    Frequencies(),
]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", CONFORMING, ids=repr)
def test_conforming_samplers_pass(sampler):
    check_sampler(sampler, goodness_of_fit=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *nightly(2, 3)])
def test_conforming_samplers_pass_at_other_seeds(seed):
    check_sampler(CartSampler(), goodness_of_fit=True, random_state=seed)
    check_sampler(MarginalSampler(), goodness_of_fit=True, random_state=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_misspecified_family_fails_only_the_goodness_of_fit(seed):
    check_sampler(LogNormal(), random_state=seed)
    with pytest.raises(ConformanceError, match=r"^check_\w+, LogNormal: .*are not distributed as the training values"):
        check_sampler(LogNormal(), goodness_of_fit=True, random_state=seed)


@pytest.mark.slow
def test_given_sampler_stays_unfitted():
    sampler = CartSampler()
    check_sampler(sampler)
    assert not hasattr(sampler, "tree_")


def test_global_state_is_unchanged():
    before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
    check_sampler(MarginalSampler())
    assert (repr(np.random.get_state()), random.getstate()) == before  # noqa: NPY002


@pytest.mark.parametrize("sampler", [CartSampler, 3, None])
def test_only_objects_and_names_are_checked(sampler):
    with pytest.raises(InputError, match="give an object of a subclass of ConditionalSampler"):
        check_sampler(sampler)


CANNOT_FIT = (LogNormal, broken_draws.IgnoresGivenSilently, broken_draws.NewValuesDeclaredObserved)
BROKEN = [*broken_fits.BROKEN, *broken_draws.BROKEN]


@pytest.mark.parametrize(
    ("sampler", "name", "message"), BROKEN, ids=[f"{type(s).__name__}-{name}" for s, name, _ in BROKEN]
)
def test_broken_sampler_fails_its_check(sampler, name, message):
    own = next(check for check in ALL if check.__name__ == f"check_{name}")
    with pytest.raises(ConformanceError, match=f"^check_{name}, {type(sampler).__name__}: .*{message}"):
        own(sampler)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "name"),
    [pytest.param(*broken[:2], marks=[pytest.mark.nightly] * (i % 8 > 0)) for i, broken in enumerate(BROKEN)],
    ids=lambda each: type(each).__name__,
)
def test_broken_sampler_fails_no_other_check(sampler, name):
    for check in CHECKS if isinstance(sampler, CANNOT_FIT) else ALL:
        if check.__name__ != f"check_{name}":
            check(sampler)


@pytest.mark.slow
def test_check_sampler_raises_the_first_failure():
    with pytest.raises(ConformanceError, match=r"^check_marginal, LowerHalf: numeric target: draws are not"):
        check_sampler(broken_draws.LowerHalf(), goodness_of_fit=True)


def test_every_check_has_a_broken_sampler():
    assert {check.__name__ for check in ALL} == {f"check_{name}" for _, name, _ in BROKEN}


def test_registered_name_is_resolved_to_a_sampler(monkeypatch):
    check_sampler("marginal")
    with pytest.raises(SamplerError, match=r"there is no sampler 'margnial'; did you mean 'marginal'"):
        check_sampler("margnial")
    monkeypatch.setitem(SAMPLERS.known, "broken", broken_fits.FitReturnsNothing)
    with pytest.raises(ConformanceError):
        check_sampler("broken")
