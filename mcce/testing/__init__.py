"""Conformance suites: the contracts of `ConditionalSampler` and `Generator` as checks.

The checks run on small tables whose distributions are known (`tables`), all functions of a seed. Distributions are
compared by chi-square or Kolmogorov-Smirnov at level 1e-4. The first check that fails raises a `ConformanceError`.
"""

from __future__ import annotations

from typing import Any

from mcce.exceptions import InputError, spell
from mcce.generators import Generator
from mcce.samplers import ConditionalSampler, make_sampler
from mcce.testing.generators import GENERATOR_CHECKS
from mcce.testing.requirements import ConformanceError, run
from mcce.testing.samplers import CHECKS, GOODNESS_OF_FIT
from mcce.testing.tables import Bench, GeneratorBench

__all__ = ["CHECKS", "GENERATOR_CHECKS", "GOODNESS_OF_FIT", "ConformanceError", "check_generator", "check_sampler"]


def check_sampler(
    sampler: ConditionalSampler | str,
    *,
    uses_given: bool = True,
    goodness_of_fit: bool = False,
    random_state: int = 0,
) -> None:
    """Check that a sampler fulfils the contract of `ConditionalSampler`.

    Parameters
    ----------
    sampler : ConditionalSampler or str
        An object with the parameters to check, of which only clones are fitted, or a registered name.
    uses_given : bool
        Whether the draws have to depend on a given that moves the target far; False for a marginal sampler.
    goodness_of_fit : bool
        Whether to require also that draws are distributed as the training data: approximately normal numbers, and
        levels of any shares. A sampler of another family fulfils the contract and does not fit these data.
    random_state : int
        Seed of the data and of the draws.

    Raises
    ------
    ConformanceError
        With the name of the first check that failed, and the reason.

    Examples
    --------
    >>> import mcce
    >>> from mcce.testing import check_sampler
    >>> check_sampler(mcce.samplers.CartSampler(min_leaf=10), goodness_of_fit=True)
    """
    if not isinstance(sampler, (str, ConditionalSampler)):
        raise InputError(
            f"check_sampler got {spell(sampler)}; give an object of ConditionalSampler, or a registered name."
        )
    bench = Bench(make_sampler(sampler), random_state, uses_given)
    for check in (*CHECKS, *(GOODNESS_OF_FIT if goodness_of_fit else ())):
        run(check, bench, type(bench.sampler).__name__)


def check_generator(generator: Any, *, random_state: int = 0) -> None:
    """Check that a generator fulfils the contract of `mcce.generators.Generator`.

    Parameters
    ----------
    generator : Generator
        An unfitted generator with the parameters to check. Clones get the `fixed` features of the suite's tables.
    random_state : int
        Seed of the data and of the draws.

    Raises
    ------
    ConformanceError
        With the name of the first check that failed, and the reason.

    Examples
    --------
    >>> import mcce
    >>> from mcce.testing import check_generator
    >>> check_generator(mcce.ChainModel(random_state=1))
    """
    if not isinstance(generator, Generator):
        raise InputError(f"check_generator got {spell(generator)}; give an object of a subclass of Generator.")
    bench = GeneratorBench(generator, random_state)
    for check in GENERATOR_CHECKS:
        run(check, bench, type(generator).__name__)
