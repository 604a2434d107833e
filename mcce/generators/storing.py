"""Fitted generators as files, and back: what chains and joint generators share.

1. Written are the settings, as they can be given again; the fitted parts by name; and the fixed values (and decisions)
   of the training rows, with their weights if they have any.
2. What is read is checked as a whole before anything is drawn: the settings are those of the class, the training rows
   are of the columns, and each sampler of a chain is one of the columns that it is given and of the number of training
   rows (`ConditionalSampler.check_state`).
3. Without donors: samplers that can do without training values are stored so, others refuse.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

import numpy as np

from mcce.base.arrays import Floats
from mcce.exceptions import InputError, MCCEError, SamplerError
from mcce.generators.layout import ChainLayout
from mcce.rng import resolve_seed
from mcce.samplers import ConditionalSampler
from mcce.samplers.base import samplers_without_donors
from mcce.samplers.donors.base import LeafDonorSampler
from mcce.samplers.registry import Recipe
from mcce.storage.fields import FLOAT, check_array, check_codes, check_flag, check_type, check_weights, require
from mcce.storage.state import Fields
from mcce.table import Schema, Table

Donors = Literal["all", "none"]

SETTINGS = ("sampler", "fixed", "visit_sequence", "predictors", "kinds", "random_state", "min_donors")  # of a chain
_TOLD = ("given_features_", "target_feature_")  # of trees, which the chain tells them again


def unfitted(value: Any) -> Any:
    """Return a setting as lists, dicts and samplers that are not fitted, whatever the user gave."""
    if isinstance(value, ConditionalSampler):
        return Recipe(value)
    if isinstance(value, type) and issubclass(value, ConditionalSampler):
        return Recipe(value())
    if isinstance(value, Mapping):
        return {key: unfitted(each) for key, each in value.items()}
    return list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else value


def fitted_fields(generator: Any, names: Iterable[str]) -> Fields:
    """Return the fitted parts of a generator by name, and the weights of its training rows if they have any."""
    fitted = {name: getattr(generator, name) for name in names}
    fitted["training_givens_"] = np.asfortranarray(fitted["training_givens_"])
    if generator.training_weights_ is not None:
        fitted["training_weights_"] = generator.training_weights_
    return fitted


def samplers_to_store(samplers: Iterable[ConditionalSampler]) -> list[ConditionalSampler]:
    """Return copies of samplers without the features that a chain tells them again when it is read."""
    copies = [copy.copy(sampler) for sampler in samplers]
    for each in copies:
        if isinstance(each, LeafDonorSampler):
            for name in _TOLD:
                vars(each).pop(name, None)
    return copies


def read_fitted(cls: type[Any], fields: Fields, settings: Collection[str], names: Iterable[str]) -> Any:
    """Return a generator of these fields; its columns, its seed and its use of the decision are checked (step 2)."""
    check_type(fields["settings"], "settings", dict)
    require({*fields["settings"]} <= {*settings}, f"settings has one that a {cls.__name__} does not have")
    generator = cls(**fields["settings"])
    for name in names:
        setattr(generator, name, fields[name])
    generator.training_weights_ = fields.get("training_weights_")
    generator.seed_ = resolve_seed(generator.seed_)
    check_type(generator.schema_, "schema_", Schema)
    check_flag(generator.conditions_on_decision_, "conditions_on_decision_")
    return generator


def check_training_rows(givens: Floats, weights: Floats | None, layout: ChainLayout) -> int:
    """Refuse givens of training rows that are not of the columns, and weights of others; return how many rows."""
    check_array(givens, "training_givens_", FLOAT, None, layout.n_given)
    for j, feature in enumerate(layout.features[: layout.n_given]):
        column = givens[:, j]
        if feature.is_numeric:
            require(not np.isinf(column).any(), "training_givens_ holds an infinite number")
        else:
            check_codes(column, "training_givens_", feature.n_levels)
    if weights is not None:
        check_weights(weights, "training_weights_", givens.shape[0])
    return int(givens.shape[0])


def check_samplers(samplers: object, layout: ChainLayout, n_rows: int) -> dict[Any, ConditionalSampler]:
    """Return the samplers by feature, each checked against the columns that it is given."""
    check_type(samplers, "samplers_", list)
    assert isinstance(samplers, list)
    targets = layout.features[layout.n_given :]
    require(len(samplers) == len(targets), "samplers_ are not as many as the features")
    every = Table(layout.features, np.empty((0, len(layout.features)), order="F"))
    for k, (target, sampler) in enumerate(zip(targets, samplers), layout.n_given):
        check_type(sampler, "samplers_", ConditionalSampler)
        given = layout.given(every, k).features
        try:
            sampler.check_target(target)
            if isinstance(sampler, LeafDonorSampler):
                sampler.name_columns(given, target)
            sampler.check_state(given, target, n_rows)
        except MCCEError as error:
            raise InputError(f"the sampler of {target.name!r}: {error}") from None
    return {target.name: sampler for target, sampler in zip(targets, samplers)}


def check_donors(donors: str) -> None:
    """Refuse a value of `donors` that is neither of the two."""
    if donors not in ("all", "none"):
        raise InputError(f"donors is {donors!r}; it must be 'all' or 'none'.")


def without_training_values(name: object, sampler: ConditionalSampler) -> ConditionalSampler:
    """Return the sampler of a feature without training values (step 3)."""
    try:
        return sampler.without_donors()
    except SamplerError as error:
        raise SamplerError(
            f"donors='none' cannot be done for {name!r}: {error} Choose a sampler of coefficients for it "
            f"({samplers_without_donors()}), or save with donors='all'."
        ) from None
