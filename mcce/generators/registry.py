"""Generators by name: those of mcce, of the user, and of installed plug-ins (entry-point group `mcce.generators`).

1. `make_generator` makes the generator of an explainer: a copy of the user's generator, so that `fit` does not change
   it; a generator by name; or a chain. Settings of a chain have no effect on a given generator, so they are an error
   with it. A generator by name is made with the settings that its class takes; the others are an error.
2. `check_givens` compares a fitted generator with the settings of the explainer: the fixed features, and whether the
   decision is conditioned on. With other fixed features, a generator would draw candidates that change fixed features.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mcce.exceptions import InputError
from mcce.generators.base import GENERATORS, Generator, check_is_generator
from mcce.wording import Either, Parameter, PythonOnly, Setting, Value

Class = TypeVar("Class", bound="type[Generator]")

OF_A_CHAIN = {
    "sampler": "cart",
    "visit_sequence": "data",
    "predictors": None,
    "graph": None,
    "kinds": None,
    "random_state": None,
}


def register_generator(name: str) -> Callable[[Class], Class]:
    """Make a class of generators available by name, as a decorator.

    Parameters
    ----------
    name : str
        For ``MCCE(model, generator=name)``. The class is called with `fixed`, and with `kinds`, `random_state` and
        `n_jobs` of the explainer if its constructor takes them; other parameters need defaults. A name can be
        registered once.

    Notes
    -----
    A registered generator can also be saved if its fitted model is in ``model_`` (`mcce.generators.base`).

    Examples
    --------
    >>> import mcce
    >>> mcce.register_generator("mixture")(mcce.generators.MixtureGenerator).__name__
    'MixtureGenerator'
    >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
    >>> explainer = mcce.MCCE(lambda rows: rows["salary"] / 120_000, fixed=["age"], generator="mixture", random_state=1)
    >>> explainer.fit(X).generator_
    MixtureGenerator(fixed=['age'], random_state=1)
    """

    def decorate(cls: Class) -> Class:
        GENERATORS.register(name, cls)
        return cls

    return decorate


def available_generators() -> dict[str, type[Generator]]:
    """Return the classes of generators by name, plug-ins included.

    Examples
    --------
    >>> import mcce
    >>> mcce.available_generators()["mixture"].__name__
    'MixtureGenerator'
    """
    return dict(sorted(GENERATORS.all().items()))


def make_generator(
    generator: Generator | str | None, fixed: list[Any], settings: Mapping[str, Any], n_jobs: int | None
) -> Generator:
    """Return an unfitted generator (step 1); `settings` are those of `OF_A_CHAIN`."""
    if generator is None or isinstance(generator, str):
        cls = GENERATORS.find(generator or "chain")
        taken = inspect.signature(cls).parameters
        _refuse_settings({name: value for name, value in settings.items() if name not in taken}, generator)
        given = {name: value for name, value in {**settings, "n_jobs": n_jobs}.items() if name in taken}
        make: Any = cls
        made: Generator = make(fixed=fixed, **given)
        return made
    check_is_generator(generator, "MCCE(generator=...)")
    _refuse_settings(settings, generator)
    return copy.deepcopy(generator)


def _refuse_settings(settings: Mapping[str, Any], generator: object) -> None:
    """Raise if settings that have no effect on a generator differ from their defaults."""
    for name, value in settings.items():
        default = OF_A_CHAIN[name]
        if not (value is default or (isinstance(value, str) and value == default)):
            raise InputError(
                Parameter(name),
                " is ",
                Value(value),
                ", a setting of the chain, but ",
                Setting("generator", generator),
                " replaces the chain; ",
                Either(PythonOnly("set it on the generator"), "leave one of them out"),
                ".",
            )


def check_givens(generator: Generator, fixed: list[Any], condition_on_decision: bool) -> None:
    """Raise if a fitted generator has other givens than the explainer (step 2)."""
    given = list(generator.fixed_)
    if given != fixed:
        raise InputError(
            Parameter("fixed"),
            " is ",
            Value(fixed),
            ", but the generator ",
            Value(generator),
            " has the fixed features ",
            Value(given),
            PythonOnly(" (fixed_, in data order)"),
            "; use the same features for both.",
        )
    if bool(generator.conditions_on_decision_) != bool(condition_on_decision):
        does = "conditions" if generator.conditions_on_decision_ else "does not condition"
        raise InputError(
            Parameter("condition_on_decision"),
            " is ",
            Value(condition_on_decision),
            ", but the generator ",
            Value(generator),
            f" {does} on the decision",
            PythonOnly(" (conditions_on_decision_)"),
            "; use the same setting for both.",
        )
