"""A sampler or generator that violates one point of the contract fails the check of that point."""

import random

import numpy as np
import pytest

from mcce.testing import CHECKS, GENERATOR_CHECKS, GOODNESS_OF_FIT, ConformanceError, check_generator, check_sampler
from mcce.testing.requirements import run
from mcce.testing.tables import Bench, GeneratorBench
from tests.testing import broken

ALL = (*CHECKS, *GOODNESS_OF_FIT)


def name_of(case):
    return f"{type(case[0]).__name__}-{case[1]}"


def bench_of(sampler, name):
    return Bench(sampler, uses_given=name in ("given", "conditional"))


@pytest.mark.parametrize(("sampler", "name", "message"), broken.SAMPLERS, ids=map(name_of, broken.SAMPLERS))
def test_broken_sampler_fails_its_check(sampler, name, message):
    check = next(check for check in ALL if check.__name__ == f"check_{name}")
    with pytest.raises(ConformanceError, match=f"^check_{name}, {type(sampler).__name__}: .*{message}"):
        run(check, bench_of(sampler, name), type(sampler).__name__)


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "name", "message"), broken.SAMPLERS, ids=map(name_of, broken.SAMPLERS))
def test_broken_sampler_fails_no_other_check(sampler, name, message):
    bench = bench_of(sampler, name)
    implied = {"IgnoresTheSeed": ["within"], "SeedsItself": ["refit", "global_state"]}.get(type(sampler).__name__, [])
    for check in CHECKS:
        if check.__name__ not in [f"check_{each}" for each in (name, *implied)]:
            run(check, bench, type(sampler).__name__)


@pytest.mark.slow
@pytest.mark.parametrize(("generator", "name", "message"), broken.GENERATORS, ids=map(name_of, broken.GENERATORS))
def test_broken_generator_fails_its_check(generator, name, message):
    check = next(check for check in GENERATOR_CHECKS if check.__name__ == f"check_{name}")
    with pytest.raises(ConformanceError, match=f"^check_{name}, {type(generator).__name__}: .*{message}"):
        run(check, GeneratorBench(generator), type(generator).__name__)


def test_every_check_has_a_broken_object():
    assert {f"check_{name}" for _, name, _ in broken.SAMPLERS} == {check.__name__ for check in ALL}
    assert {f"check_{name}" for _, name, _ in broken.GENERATORS} == {check.__name__ for check in GENERATOR_CHECKS}


def test_the_suite_raises_the_first_failure():
    with pytest.raises(ConformanceError, match=r"^check_marginal, LowerHalf"):
        check_sampler(broken.LowerHalf(), uses_given=False, goodness_of_fit=True)
    with pytest.raises(ConformanceError, match=r"^check_fitted_attributes, KeepsNoTraining"):
        check_generator(broken.GENERATORS[0][0])


def test_sound_samplers_pass_and_nothing_global_changes():
    before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
    sampler = broken.Draws()
    check_sampler(sampler, uses_given=False, goodness_of_fit=True)
    check_sampler(broken.Pool(), uses_given=False, goodness_of_fit=True, random_state=3)
    assert (repr(np.random.get_state()), random.getstate()) == before  # noqa: NPY002
    assert not hasattr(sampler, "pool_")
