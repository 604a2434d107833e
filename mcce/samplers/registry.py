"""Samplers by name: ours, the user's, and those of installed plug-ins (entry-point group `mcce.samplers`)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from mcce.exceptions import InputError, SamplerError
from mcce.samplers.base import SAMPLERS, ConditionalSampler
from mcce.storage.learned import check_storable, learned_attributes, set_learned
from mcce.storage.state import Fields, register

Class = TypeVar("Class", bound=type[ConditionalSampler])


@overload
def register_sampler(name: str) -> Callable[[Class], Class]: ...
@overload
def register_sampler(name: str, sampler: Class) -> Class: ...
def register_sampler(name: str, sampler: Any = ...) -> Any:
    """Make a sampler class available by name; without a class it is a decorator.

    A name can be given once; registering the same class again is allowed.

    Examples
    --------
    >>> import mcce
    >>> mcce.register_sampler("marginal", mcce.MarginalSampler).__name__
    'MarginalSampler'
    """

    def decorate(cls: Class) -> Class:
        SAMPLERS.register(name, cls)
        return cls

    return decorate if sampler is ... else decorate(sampler)


def available_samplers() -> dict[str, type[ConditionalSampler]]:
    """Return the sampler classes by name, plug-ins included.

    Examples
    --------
    >>> import mcce
    >>> mcce.available_samplers()["cart"].__name__
    'CartSampler'
    """
    return dict(sorted(SAMPLERS.all().items()))


def make_sampler(sampler: str | ConditionalSampler) -> ConditionalSampler:
    """Return a fresh sampler for a name, or an unfitted copy of the given one.

    A name may have a formula, as in "norm(~ age * sex)": so a job file or the command line can give one.
    """
    if isinstance(sampler, ConditionalSampler):
        return sampler.clone()
    if isinstance(sampler, type) and issubclass(sampler, ConditionalSampler):
        return sampler()
    if not isinstance(sampler, str):
        raise InputError(f"sampler is {sampler!r}; give a name, a ConditionalSampler, or a dict of them by feature.")
    with_formula = re.fullmatch(r"([\w.]+)\((.*~.*)\)", sampler, re.DOTALL)
    if with_formula is None:
        return SAMPLERS.find(sampler)()
    cls: Any = SAMPLERS.find(with_formula[1])
    if "formula" not in inspect.signature(cls).parameters:
        takes = SAMPLERS.names_that(lambda each: "formula" in inspect.signature(each).parameters)
        raise InputError(f"the sampler {with_formula[1]!r} takes no formula; those that do: {takes}.")
    made: ConditionalSampler = cls(formula=with_formula[2].strip())
    return made


def name_of_sampler(sampler: ConditionalSampler) -> str:
    """Return the name that the class of a sampler is registered by; one without a name is an error."""
    for loaded in (True, False):  # plug-ins are loaded only if the sampler is none of those that are
        for name, each in (SAMPLERS.known if loaded else SAMPLERS.all()).items():
            if each is type(sampler):
                return name
    raise InputError("a sampler without a name; give its class one by register_sampler().")


@dataclass(frozen=True)
class Recipe:
    """A sampler that is not fitted, as state: it comes back as the sampler itself."""

    sampler: ConditionalSampler

    def __repr__(self) -> str:
        return repr(self.sampler)


def _write_recipe(recipe: Recipe) -> Fields:
    return {"name": name_of_sampler(recipe.sampler), "params": recipe.sampler.plain_params()}


def _write(sampler: ConditionalSampler) -> Fields:
    """Return a sampler as its registered name, its parameters and what it has learned, None before `fit`."""
    try:
        check_storable(sampler)
    except SamplerError as error:
        raise InputError(f"which has no state: {error}") from error
    return {**_write_recipe(Recipe(sampler)), "fitted": learned_attributes(sampler) or None}


def _read(fields: Fields) -> ConditionalSampler:
    name, params, fitted = fields["name"], fields["params"], fields.get("fitted")
    if not isinstance(name, str) or not isinstance(params, dict) or not isinstance(fitted, (dict, type(None))):
        raise InputError("a sampler needs a name, its parameters and its state; one of these is something else.")
    return set_learned(type(make_sampler(name))(**params), fitted or {})


register("sampler", ConditionalSampler, _write, _read, family=True)
register("sampler.Recipe", Recipe, _write_recipe, _read)
