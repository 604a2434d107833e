"""Which generator an explainer draws from: the one that the user gives or names, or a chain made from the settings.

1. `choose_generator` copies the one given, so that `fit` leaves the user's as it is. Settings of a chain would have no
   effect on it, so they are refused beside it. One that is named is made from those settings that its class takes; the
   others are refused.
2. `check_generator` compares the fitted one with what the explainer was told: what is fixed, and whether the decision
   is conditioned on. A generator that is given other columns would draw candidates that change fixed features.
3. `fit_generator` hands weights of rows over to a generator whose `fit` takes `sample_weight`, and to no other.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

from mcce.base.arrays import Bools, Floats
from mcce.exceptions import InputError, listing
from mcce.generators.base import GENERATORS, METHODS, Generator
from mcce.generators.chain import ChainModel
from mcce.table import Data
from mcce.wording import Either, Parameter, PythonOnly, Setting, Value

OF_A_CHAIN = {
    "sampler": "cart",
    "visit_sequence": "data",
    "predictors": None,
    "kinds": None,
    "random_state": None,
}


def choose_generator(
    generator: Generator | str | None, fixed: list[Any], settings: Mapping[str, Any], n_jobs: int | None
) -> Generator:
    """Return an unfitted generator (step 1); `settings` are those of `OF_A_CHAIN`."""
    if generator is None:
        return ChainModel(fixed=fixed, n_jobs=n_jobs, **settings)
    if isinstance(generator, str):
        cls = GENERATORS.find(generator)
        taken = inspect.signature(cls).parameters
        _refuse_settings({name: value for name, value in settings.items() if name not in taken}, generator)
        given = {name: value for name, value in {**settings, "n_jobs": n_jobs}.items() if name in taken}
        made: Generator = cls(fixed=fixed, **given)
        return made
    lacking = [name for name in METHODS if not callable(getattr(generator, name, None))]
    if isinstance(generator, type) or lacking:
        what = f"lacks {listing(lacking)}" if lacking else "is a class"
        raise InputError(
            Parameter("generator"),
            " is ",
            Value(generator),
            f", which {what}; give a name ({GENERATORS.names_that(bool)})",
            PythonOnly(", an unfitted object with the methods of mcce.generators.base.Generator"),
            ", or ",
            Value(None),
            " for a chain.",
        )
    _refuse_settings(settings, generator)
    return copy.deepcopy(generator)


def _refuse_settings(settings: Mapping[str, Any], generator: object) -> None:
    """Refuse settings that have no effect beside a generator, unless they are the defaults."""
    for name, value in settings.items():
        default = OF_A_CHAIN[name]
        if not (value is default or (isinstance(value, str) and value == default)):
            raise InputError(
                Parameter(name),
                " is ",
                Value(value),
                ", a setting of the chain, but ",
                Setting("generator", generator),
                " draws in its place; ",
                Either(PythonOnly("set it on the generator"), "leave one of them out"),
                ".",
            )


def fit_generator(
    generator: Generator, X: Data, decision: Bools | None, weights: Floats | None, progress: bool | None
) -> None:
    """Fit a generator, by the weights of the rows if they have some; one that takes none is refused."""
    if weights is None:
        generator.fit(X, decision, progress=progress)
        return
    if "sample_weight" not in inspect.signature(generator.fit).parameters:
        raise InputError(
            "the generator ",
            Value(generator),
            " does not take ",
            Parameter("sample_weight"),
            ", and would learn from all rows alike; leave ",
            Parameter("sample_weight"),
            " out, or use a chain.",
        )
    weighing: Any = generator.fit
    weighing(X, decision, sample_weight=weights, progress=progress)


def check_generator(generator: Generator, fixed: list[Any], condition_on_decision: bool) -> None:
    """Refuse a fitted generator that is given other columns than the explainer says (step 2)."""
    given = list(generator.fixed_)
    if given != fixed:
        raise InputError(
            Parameter("fixed"),
            " is ",
            Value(fixed),
            ", but the generator ",
            Value(generator),
            " is given ",
            Value(given),
            PythonOnly(" (fixed_, in the order of the data)"),
            "; let both name the same features.",
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
            "; let both say the same.",
        )
