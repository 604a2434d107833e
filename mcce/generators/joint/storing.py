"""A joint generator as a file, and back.

1. A class can be stored if `stored_joint` has registered it: then what its `_fit` learns stands in ``model_``, an
   object whose class says how it is written and checked (`mcce.state.stateful`, with `check_state`), and which has
   ``check_columns(features, n_given)``, unless the generator has a `check_model` of its own.
2. What is written: the settings, the columns, the seed, the model, and the fixed values (and decisions) of the training
   rows, which `sample` bootstraps, with their weights if they have any. The layout follows from these.
3. What is read is checked as a whole before anything is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from mcce import exceptions
from mcce.arrays import Floats
from mcce.exceptions import InputError, SamplerError
from mcce.generators.layout import ChainLayout
from mcce.generators.storing import Donors, check_givens, unfitted
from mcce.rng import resolve_seed
from mcce.soundness import check_flag, check_type, check_weights, require
from mcce.state import Fields, register
from mcce.storage import load_fields, save_fields
from mcce.table import Feature, Schema
from mcce.table.checks import check_fixed

Class = TypeVar("Class", bound=type[Any])
Self = TypeVar("Self", bound="StoredJoint")

OURS = "AdversarialForest, MixtureGenerator, VineGenerator, Made"  # which score rows, take weights and can be stored
FITTED = ("seed_", "schema_", "conditions_on_decision_", "training_givens_", "model_")
_registered: set[type[Any]] = set()


class StoredJoint:
    """The part of a joint generator that writes it to a file and reads it from one."""

    schema_: Schema
    training_givens_: Floats
    model_: Any
    n_jobs: int | None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted generator to one file, without pickle; what is there is replaced.

        **The file holds training values**: those that the model is made of, and the fixed values of every training row.
        Generators that wrap another package's model cannot be saved so; pickle them.
        """
        save_fields(path, "JointGenerator", {"generator": self.stored("all")}, {"donors": "all"})

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Return the generator in a file that `save` wrote; nothing in a file is run.

        Parameters
        ----------
        path : str or path
        n_jobs : int or None
            Threads to use; None for all cores.
        """
        generator = load_fields(path, "JointGenerator", lambda fields: fields["generator"])
        if not isinstance(generator, cls):
            raise InputError(f"{os.fspath(path)!r} holds a {type(generator).__name__}; use its own load.")
        generator.n_jobs = n_jobs
        return generator

    def check_model(self, features: Sequence[Feature], n_given: int) -> None:
        """Refuse a model that was read and is not of these columns, of which the first are given."""
        model = self.model_
        require(hasattr(model, "check_columns"), f"model_ is a {type(model).__name__}, which is no model")
        model.check_columns(features, n_given)

    def stored(self: Self, donors: Donors) -> Self:
        """Return the generator as it is to be stored; it has none without training values."""
        if not hasattr(self, "training_givens_"):
            raise exceptions.NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) before saving it.")
        if type(self) not in _registered:
            raise SamplerError(
                f"{self!r} cannot be saved: what it has learned could not be checked when it is read. Pickle it, or "
                f"use a generator made of arrays ({OURS}), or a chain."
            )
        if donors not in ("all", "none"):
            raise InputError(f"donors is {donors!r}; it must be 'all' or 'none'.")
        if donors == "none":
            raise SamplerError(
                f"donors='none' cannot be done for {self!r}: it is made of training values. Save with donors='all', or "
                "use a chain of coefficients (norm, logreg, polyreg, polr)."
            )
        return self


def stored_joint(name: str) -> Callable[[Class], Class]:
    """Register a class of joint generators by what is written of it (step 1)."""

    def decorate(cls: Class) -> Class:
        register(name, cls, _write, lambda fields: _read(cls, fields))
        _registered.add(cls)
        return cls

    return decorate


def _write(generator: Any) -> Fields:
    """Return settings and fitted parts (step 2)."""
    if not hasattr(generator, "training_givens_"):
        raise InputError("which is not fitted; call fit(X).")
    settings = generator.get_params(deep=False)
    settings.pop("n_jobs")
    fitted = {name: getattr(generator, name) for name in FITTED}
    fitted["training_givens_"] = np.asfortranarray(fitted["training_givens_"])
    if generator.training_weights_ is not None:
        fitted["training_weights_"] = generator.training_weights_
    return {"settings": {name: unfitted(value) for name, value in settings.items()}, **fitted}


def _read(cls: type[Any], fields: Fields) -> Any:
    """Return the generator of these fields, checked as a whole (step 3)."""
    check_type(fields["settings"], "settings", dict)
    known = {*cls._parameter_names()}
    require({*fields["settings"]} <= known, f"settings has one that a {cls.__name__} does not have")
    generator = cls(**fields["settings"])
    for name in FITTED:
        setattr(generator, name, fields[name])
    generator.seed_ = resolve_seed(generator.seed_)
    check_type(generator.schema_, "schema_", Schema)
    check_flag(generator.conditions_on_decision_, "conditions_on_decision_")
    names = generator.schema_.names
    fixed = check_fixed(generator.fixed, names)
    mutable = [name for name in names if name not in fixed]
    require(len(mutable) > 0, "all columns are fixed")
    layout = ChainLayout.arrange(generator.schema_, fixed, mutable, generator.conditions_on_decision_)
    generator._layout = layout
    check_givens(generator.training_givens_, layout)
    generator.training_weights_ = fields.get("training_weights_")
    if generator.training_weights_ is not None:
        check_weights(generator.training_weights_, "training_weights_", generator.training_givens_.shape[0])
    generator.check_model(layout.features, layout.n_given)
    return generator
