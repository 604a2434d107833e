"""Conformance suites for samplers and generators, ours or a plug-in's.

`CHECKS` is the contract of a sampler, on small tables with known properties (`tables`); each check takes the sampler
and a seed. `GOODNESS_OF_FIT` compares draws with the training data; a parametric family need not pass it.
`GENERATOR_CHECKS` is the contract of a generator. A failing check raises a `ConformanceError`. Distributions are
compared by chi-square or Kolmogorov-Smirnov at level 1e-4; all data are functions of the seed.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

from mcce.exceptions import InputError
from mcce.generators.base import GENERATORS, Generator, check_is_generator
from mcce.samplers import ConditionalSampler
from mcce.samplers.registry import make_sampler
from mcce.testing import generators, samplers
from mcce.testing.requirements import Check, ConformanceError, GeneratorCheck
from mcce.testing.tables import forget_fits

__all__ = ["CHECKS", "GENERATOR_CHECKS", "GOODNESS_OF_FIT", "ConformanceError", "check_generator", "check_sampler"]

CHECKS: tuple[Check, ...] = tuple(samplers.CHECKS)
GOODNESS_OF_FIT: tuple[Check, ...] = tuple(samplers.GOODNESS_OF_FIT)
GENERATOR_CHECKS: tuple[GeneratorCheck, ...] = tuple(generators.CHECKS)


def check_sampler(sampler: ConditionalSampler | str, *, goodness_of_fit: bool = False, random_state: int = 0) -> None:
    """Check that a sampler fulfils the contract of `ConditionalSampler`.

    Parameters
    ----------
    sampler : ConditionalSampler or str
        The sampler with the parameters to check; only clones of it are fitted. Or a registered name, for the default
        parameters.
    goodness_of_fit : bool
        Whether to require also that draws are distributed as the training data of the suite, which are approximately
        normal numbers and levels of any shares. A sampler of another family, such as a log-normal distribution, fulfils
        the contract but does not fit these data.
    random_state : int
        Seed of the data and of the draws.

    Raises
    ------
    ConformanceError
        With the name of the first check that failed, and the reason. The checks can be run one by one, for
        example by ``@pytest.mark.parametrize("check", mcce.testing.CHECKS)``; those of goodness of fit are
        ``mcce.testing.GOODNESS_OF_FIT``.

    Examples
    --------
    >>> import mcce
    >>> from mcce.testing import check_sampler
    >>> check_sampler(mcce.CartSampler(min_leaf=10), goodness_of_fit=True)
    """
    if isinstance(sampler, str):
        sampler = make_sampler(sampler)
    if not isinstance(sampler, ConditionalSampler):
        raise InputError(
            f"check_sampler got {sampler!r}; give an object of a subclass of ConditionalSampler, or a registered name."
        )
    forget_fits(sampler)  # an estimator among the parameters may have changed since
    for check in (*CHECKS, *(GOODNESS_OF_FIT if goodness_of_fit else ())):
        check(sampler, random_state)


def check_generator(generator: Generator | str, *, random_state: int = 0) -> None:
    """Check that a generator fulfils the contract of `mcce.generators.Generator`.

    Parameters
    ----------
    generator : Generator or str
        An unfitted generator with the parameters to check. It is copied; the copies get the `fixed` features of the
        tables of the suite. Or a registered name, for the default parameters and the same `random_state`.
    random_state : int
        Seed of the data and of the draws.

    Raises
    ------
    ConformanceError
        With the name of the first check that failed, and the reason. Checked are fixed values, levels, grid and dtypes,
        independence of rows, global state, conditioning on decision and fixed values, weights, restrictions and rules,
        densities that sum to 1 and agree with the draws, storage, and counterfactuals. The checks can be run one by
        one, by ``@pytest.mark.parametrize("check", mcce.testing.GENERATOR_CHECKS)``.

    Examples
    --------
    >>> import mcce
    >>> from mcce.testing import check_generator
    >>> check_generator(mcce.ChainModel(random_state=1, n_jobs=1))
    """
    if isinstance(generator, str):
        cls = GENERATORS.find(generator)
        seeded = "random_state" in inspect.signature(cls).parameters
        make: Any = cls
        made: Generator = make(fixed=[], **({"random_state": random_state} if seeded else {}))
        return check_generator(made, random_state=random_state)
    check_is_generator(generator, "check_generator")
    generators.forget_fits()
    unfitted = copy.deepcopy(generator)
    for check in GENERATOR_CHECKS:
        check(unfitted, random_state)
