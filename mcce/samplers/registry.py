"""Samplers by name: built-in, user-defined, and those of plug-ins (entry-point group `mcce.samplers`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from mcce.exceptions import InputError, SamplerError, spell
from mcce.samplers.base import SAMPLERS, ConditionalSampler
from mcce.storage.learned import check_storable, learned_attributes, set_learned
from mcce.storage.state import Fields, register

Class = TypeVar("Class", bound=type[ConditionalSampler])
Candidates = Sequence[str | ConditionalSampler] | Mapping[str, str | ConditionalSampler]


@overload
def register_sampler(name: str) -> Callable[[Class], Class]: ...
@overload
def register_sampler(name: str, sampler: Class) -> Class: ...
def register_sampler(name: str, sampler: Any = ...) -> Any:
    """Make a sampler class available by name; without a class, return a decorator.

    Each name is registered once; registering the same class again is allowed.

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
    """Return the sampler classes by name, including plug-ins.

    Examples
    --------
    >>> import mcce
    >>> mcce.available_samplers()["cart"].__name__
    'CartSampler'
    """
    return dict(sorted(SAMPLERS.all().items()))


def make_sampler(sampler: str | ConditionalSampler) -> ConditionalSampler:
    """Return a new sampler for a name, or an unfitted copy of the given one.

    A name may include a formula, as in "norm(~ age * sex)", for job files and the command line.
    """
    if isinstance(sampler, ConditionalSampler):
        return sampler.clone()
    if isinstance(sampler, type) and issubclass(sampler, ConditionalSampler):
        return sampler()
    if not isinstance(sampler, str):
        raise InputError(f"sampler is {sampler!r}; give a name, a ConditionalSampler, or a dict of them by feature.")
    name, bracket, formula = sampler.removesuffix(")").partition("(")
    if not (bracket and "~" in formula and sampler.endswith(")")):
        return SAMPLERS.find(sampler)()
    cls: Any = SAMPLERS.find(name)
    if "formula" not in inspect.signature(cls).parameters:
        takes = SAMPLERS.names_that(lambda each: "formula" in inspect.signature(each).parameters)
        raise InputError(f"the sampler {name!r} takes no formula; those that do: {takes}.")
    made: ConditionalSampler = cls(formula=formula.strip())
    return made


def read_candidates(candidates: Any, where: str) -> dict[str, ConditionalSampler]:
    """Return unfitted samplers by display name; objects in a list are named by their representation."""
    if isinstance(candidates, (str, ConditionalSampler)) or not isinstance(candidates, (Sequence, Mapping)):
        raise InputError(f"{where}: got {spell(candidates)}; give a list of samplers, or a dict of them by name.")
    if not candidates:
        raise InputError(f"{where}: the list is empty; give at least one sampler.")
    named = list(candidates.items()) if isinstance(candidates, Mapping) else [(_name(c), c) for c in candidates]
    made: dict[str, ConditionalSampler] = {}
    for name, candidate in named:
        if not isinstance(name, str):
            raise InputError(f"{where}: the name {spell(name)} is not a string; name the samplers by strings.")
        if name in made:
            raise InputError(f"{where}: {name!r} occurs twice; name each once, or give a dict of samplers by name.")
        made[name] = make_sampler(candidate)
    return made


def _name(candidate: Any) -> str:
    return candidate if isinstance(candidate, str) else repr(candidate)


def name_of_sampler(sampler: ConditionalSampler) -> str:
    """Return the registered name of the class of a sampler; raise if it has none."""
    for loaded in (True, False):  # load plug-ins only if necessary
        for name, each in (SAMPLERS.known if loaded else SAMPLERS.all()).items():
            if each is type(sampler):
                return name
    raise InputError("the class of a sampler is not registered; register it by register_sampler().")


@dataclass(frozen=True)
class Recipe:
    """An unfitted sampler as state; it is read back as the sampler itself."""

    sampler: ConditionalSampler

    def __repr__(self) -> str:
        return repr(self.sampler)


def _write_recipe(recipe: Recipe) -> Fields:
    return {"name": name_of_sampler(recipe.sampler), "params": recipe.sampler.plain_params()}


def _write(sampler: ConditionalSampler) -> Fields:
    """Return the registered name, the parameters and the fitted state of a sampler; None before `fit`."""
    try:
        check_storable(sampler)
    except SamplerError as error:
        raise InputError(f"which has no state: {error}") from error
    return {**_write_recipe(Recipe(sampler)), "fitted": learned_attributes(sampler) or None}


def _read(fields: Fields) -> ConditionalSampler:
    name, params, fitted = fields["name"], fields["params"], fields.get("fitted")
    if not isinstance(name, str) or not isinstance(params, dict) or not isinstance(fitted, (dict, type(None))):
        raise InputError("a sampler needs a name, its parameters and its state; one of these has another type.")
    return set_learned(type(make_sampler(name))(**params), fitted or {})


register("sampler", ConditionalSampler, _write, _read, family=True)
register("sampler.Recipe", Recipe, _write_recipe, _read)
