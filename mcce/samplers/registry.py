"""Samplers by name: ours, the user's, and those of installed plug-ins (entry-point group `mcce.samplers`)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points

from mcce import exceptions
from mcce.exceptions import InputError, SamplerError, did_you_mean
from mcce.samplers.base import ConditionalSampler
from mcce.storage.state import Fields, flatten, from_state, register, to_state, unflatten

_GROUP = "mcce.samplers"
RESERVED = ("auto", "*")  # "auto": to be chosen by evidence; "*": the features that are not named
_registered: dict[str, type[ConditionalSampler]] = {}


def register_sampler(name: str, sampler: type[ConditionalSampler]) -> type[ConditionalSampler]:
    """Make a sampler class available by name.

    A name can be given once; registering the same class again is allowed.

    Examples
    --------
    >>> import mcce
    >>> mcce.register_sampler("marginal", mcce.MarginalSampler).__name__
    'MarginalSampler'
    """
    if not (isinstance(sampler, type) and issubclass(sampler, ConditionalSampler)):
        raise InputError(f"register_sampler({name!r}, ...) got {sampler!r}; it needs a subclass of ConditionalSampler.")
    if name in RESERVED:
        raise SamplerError(f"the sampler name {name!r} has a meaning of its own in a chain; choose another name.")
    known = _registered.get(name)
    if known is not None and known is not sampler:
        raise SamplerError(
            f"the sampler name {name!r} is taken by {known.__module__}.{known.__name__}; choose another name."
        )
    _registered[name] = sampler
    return sampler


def available_samplers() -> dict[str, type[ConditionalSampler]]:
    """Return the sampler classes by name, plug-ins included.

    Examples
    --------
    >>> import mcce
    >>> mcce.available_samplers()["cart"].__name__
    'CartSampler'
    """
    for point in entry_points(group=_GROUP):
        try:
            plug_in = point.load()
        except Exception as error:
            raise SamplerError(
                f"the sampler {point.name!r} of a plug-in, {point.value}, cannot be loaded: {error}"
            ) from error
        register_sampler(point.name, plug_in)
    return dict(_registered)


def make_sampler(sampler: str | ConditionalSampler) -> ConditionalSampler:
    """Return a fresh sampler for a name, or an unfitted copy of the given one."""
    if isinstance(sampler, ConditionalSampler):
        return sampler.clone()
    if isinstance(sampler, type) and issubclass(sampler, ConditionalSampler):
        return sampler()
    if not isinstance(sampler, str):
        raise InputError(f"sampler is {sampler!r}; give a name, a ConditionalSampler, or a dict of them by feature.")
    found = _registered.get(sampler) or available_samplers().get(sampler)
    if found is None:
        raise SamplerError(f"there is no sampler {sampler!r}; {did_you_mean(sampler, available_samplers())}")
    return found()


def name_of_sampler(sampler: ConditionalSampler) -> str:
    """Return the name that the class of a sampler is registered by; one without a name is an error."""
    for known in (_registered, available_samplers):
        for name, each in (known() if callable(known) else known).items():
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
    return {"name": name_of_sampler(recipe.sampler), "params": recipe.sampler.get_params()}


def _write(sampler: ConditionalSampler) -> Fields:
    """Return a sampler as its registered name, its parameters and its fitted state, None before `fit`."""
    try:
        fitted = sampler.get_state()
        if type(sampler).get_state is ConditionalSampler.get_state:  # what a plug-in writes itself it also reads itself
            fitted = {part: from_state(value) for part, value in unflatten(fitted).items()}
    except exceptions.NotFittedError:
        fitted = None
    except SamplerError as error:
        raise InputError(f"which has no state: {error}") from error
    return {**_write_recipe(Recipe(sampler)), "fitted": fitted}


def _read(fields: Fields) -> ConditionalSampler:
    name, params, fitted = fields["name"], fields["params"], fields.get("fitted")
    if not isinstance(name, str) or not isinstance(params, dict) or not isinstance(fitted, (dict, type(None))):
        raise InputError("a sampler needs a name, its parameters and its state; one of these is something else.")
    sampler = type(make_sampler(name))(**params)
    if fitted is None:
        return sampler
    if type(sampler).get_state is ConditionalSampler.get_state:
        fitted = flatten(to_state(fitted))
    return sampler.set_state(fitted)


register("sampler", ConditionalSampler, _write, _read, family=True)
register("sampler.Recipe", Recipe, _write_recipe, _read)
