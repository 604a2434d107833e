"""A chain as a file, and back.

1. What is written: the settings, the columns, the order of the visit, the seed, the fitted samplers, and the fixed
   values (and decisions) of the training rows, which `sample` bootstraps. The layout follows from these.
2. What is read is checked as a whole before anything is drawn: the settings as `fit` checks them, each sampler against
   the columns it is drawn given and the number of training rows (`ConditionalSampler.check_state`).
3. Without donors: samplers that can do without training values are stored so, others refuse; the fixed values of the
   training rows are left out.

A chain draws the same after a round trip, in another process or on another machine.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from mcce import exceptions
from mcce.base.arrays import Floats
from mcce.base.checks import check_count
from mcce.exceptions import InputError, MCCEError, SamplerError
from mcce.generators.auto import Choice
from mcce.generators.layout import ChainLayout, choose_predictors
from mcce.rng import resolve_seed
from mcce.samplers import ConditionalSampler
from mcce.samplers.donors.base import LeafDonorSampler
from mcce.samplers.registry import Recipe
from mcce.storage import load_fields, save_fields
from mcce.storage.fields import FLOAT, check_array, check_codes, check_flag, check_type, check_weights, require
from mcce.storage.state import Fields, register
from mcce.table import Schema, Table
from mcce.table.checks import check_fixed

Self = TypeVar("Self", bound="StoredChain")
Chain = TypeVar("Chain", bound=type[Any])  # a class of chains
Donors = Literal["all", "none"]

SETTINGS = ("sampler", "fixed", "visit_sequence", "predictors", "kinds", "random_state", "min_donors")
FITTED = ("seed_", "schema_", "visit_sequence_", "associations_", "conditions_on_decision_", "training_givens_")
_TOLD = ("given_features_", "target_feature_")  # of trees, which the chain tells them again


class StoredChain:
    """The part of a chain that writes it to a file and reads it from one."""

    samplers_: dict[Any, ConditionalSampler]
    schema_: Schema
    visit_sequence_: list[Any]
    training_givens_: Floats
    training_weights_: Floats | None
    conditions_on_decision_: bool
    n_jobs: int | None
    _layout: ChainLayout
    _given_columns: Mapping[int, Sequence[int]]

    def save(self, path: str | os.PathLike[str], *, donors: Donors = "all") -> None:
        """Write the fitted chain to one file, without pickle; what is there is replaced.

        **The file holds training values**: those that the samplers draw, and the fixed values of every training row.
        Whoever gets it can read them. ``mcce inspect FILE`` lists what it discloses.

        Parameters
        ----------
        path : str or path
        donors : "all" or "none"
            "none" leaves the training values out, which samplers made of coefficients can do without (norm, logreg,
            polyreg, polr); others refuse. What is left are ranges, level names and estimates. Such a chain draws given
            the fixed features only, and norm has no density.

        Examples
        --------
        >>> import mcce, tempfile
        >>> loans = mcce.datasets.load_loans(200)
        >>> chain = mcce.ChainModel(fixed=["age", "sex"], random_state=1).fit(loans.X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     chain.save(f"{folder}/loans.mcce")
        ...     again = mcce.ChainModel.load(f"{folder}/loans.mcce")
        >>> again.sample(n=5).equals(chain.sample(n=5))
        True
        """
        chain = self.stored(donors)
        save_fields(path, "ChainModel", {"chain": chain}, {"donors": donors})

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Return the chain in a file that `save` wrote.

        Nothing in a file is run. One that is damaged, crafted or newer is an `InputError`. Samplers of other packages
        are made by those, which have to be installed, and registered (`mcce.register_sampler`).

        Parameters
        ----------
        path : str or path
        n_jobs : int or None
            Threads to use; None for all cores.

        Examples
        --------
        >>> import mcce, tempfile
        >>> X = mcce.datasets.load_loans(300).X[["age", "salary"]]
        >>> chain = mcce.ChainModel(fixed=["age"], random_state=1).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     chain.save(f"{folder}/chain.mcce")
        ...     again = mcce.ChainModel.load(f"{folder}/chain.mcce")
        >>> again.sample(10).equals(chain.sample(10))
        True
        """
        chain = load_fields(path, "ChainModel", lambda fields: fields["chain"])
        if not isinstance(chain, cls):
            raise InputError(f"{os.fspath(path)!r} holds a {type(chain).__name__}; use its own load.")
        chain.n_jobs = n_jobs
        return chain

    def stored(self: Self, donors: Donors) -> Self:
        """Return the chain as it is to be stored: itself, or without training values (step 3)."""
        if not hasattr(self, "samplers_"):
            raise exceptions.NotFittedError(f"this {type(self).__name__} is not fitted; call fit(X) before saving it.")
        for name, sampler in self.samplers_.items():
            _check_storable(name, sampler)
        if donors not in ("all", "none"):
            raise InputError(f"donors is {donors!r}; it must be 'all' or 'none'.")
        if donors == "all":
            return self
        bare = copy.copy(self)
        bare.samplers_ = {name: _bare(name, sampler) for name, sampler in self.samplers_.items()}
        if self._layout.n_given:
            bare.training_givens_ = np.empty((0, self._layout.n_given), order="F")
            bare.training_weights_ = None
        return bare


def _check_storable(name: object, sampler: ConditionalSampler) -> None:
    if not sampler.storable:
        raise SamplerError(
            f"{sampler!r} for {name!r} cannot be saved: what it has learned could not be checked when it is read. "
            "Choose another sampler for it (cart, ctree, forest, parametric, copula), or pickle the chain."
        )


def _bare(name: object, sampler: ConditionalSampler) -> ConditionalSampler:
    try:
        return sampler.without_donors()
    except SamplerError as error:
        raise SamplerError(
            f"donors='none' cannot be done for {name!r}: {error} Choose a sampler of coefficients for it (norm, "
            "logreg, polyreg, polr), or save with donors='all'."
        ) from None


def stored_chain(cls: Chain) -> Chain:
    """Register a class of chains by what is written of it."""
    register("ChainModel", cls, _write, lambda fields: _read(cls, fields))
    return cls


def _write(chain: Any) -> Fields:
    """Return settings and fitted parts (step 1)."""
    if not hasattr(chain, "samplers_"):
        raise InputError("which is not fitted; call fit(X).")
    settings = {name: unfitted(getattr(chain, name)) for name in SETTINGS}
    fitted = {name: getattr(chain, name) for name in FITTED}
    fitted["training_givens_"] = np.asfortranarray(fitted["training_givens_"])
    if chain.training_weights_ is not None:
        fitted["training_weights_"] = chain.training_weights_
    samplers = [_shed(sampler) for sampler in chain.samplers_.values()]
    return {"samplers_": samplers, "settings": settings, "choice_": chain.choice_, **fitted}


def unfitted(value: Any) -> Any:
    """Return a setting as lists, dicts and samplers that are not fitted, whatever the user gave."""
    if isinstance(value, ConditionalSampler):
        return Recipe(value)
    if isinstance(value, type) and issubclass(value, ConditionalSampler):
        return Recipe(value())
    if isinstance(value, Mapping):
        return {key: unfitted(each) for key, each in value.items()}
    return list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else value


def _shed(sampler: ConditionalSampler) -> ConditionalSampler:
    """Return a sampler without the features that the chain tells it again."""
    bare = copy.copy(sampler)
    if isinstance(sampler, LeafDonorSampler):
        for name in _TOLD:
            vars(bare).pop(name, None)
    return bare


def _read(cls: type[Any], fields: Fields) -> Any:
    """Return the chain of these fields, checked as a whole (step 2)."""
    check_type(fields["settings"], "settings", dict)
    require({*fields["settings"]} <= {*SETTINGS}, "settings has one that a chain does not have")
    chain = cls(**fields["settings"])
    for name in FITTED:
        setattr(chain, name, fields[name])
    chain.choice_ = fields.get("choice_")
    chain.training_weights_ = fields.get("training_weights_")
    check_type(chain.choice_, "choice_", Choice, type(None))
    chain.seed_ = resolve_seed(chain.seed_)
    check_type(chain.schema_, "schema_", Schema)
    check_type(chain.associations_, "associations_", pd.DataFrame, type(None))
    check_flag(chain.conditions_on_decision_, "conditions_on_decision_")
    if chain.min_donors is not None:
        check_count(chain.min_donors, "min_donors")
    names = chain.schema_.names
    fixed, visited = check_fixed(chain.fixed, names), chain.visit_sequence_
    check_type(visited, "visit_sequence_", list)
    mutable = [name for name in names if name not in fixed]
    require(len(visited) == len(mutable) > 0 and {*visited} == {*mutable}, "visit_sequence_ is not of the features")
    chain._layout = layout = ChainLayout.arrange(chain.schema_, fixed, visited, chain.conditions_on_decision_)
    order = [feature.name for feature in layout.features]
    chain._given_columns = choose_predictors(
        chain.predictors, order, layout.n_given, with_decision=chain.conditions_on_decision_
    )
    check_givens(chain.training_givens_, layout)
    if chain.training_weights_ is not None:
        check_weights(chain.training_weights_, "training_weights_", chain.training_givens_.shape[0])
    chain.samplers_ = _checked_samplers(chain, fields["samplers_"])
    return chain


def check_givens(givens: Floats, layout: ChainLayout) -> None:
    """Refuse givens of training rows that are not of the columns."""
    check_array(givens, "training_givens_", FLOAT, None, layout.n_given)
    for j, feature in enumerate(layout.features[: layout.n_given]):
        column = givens[:, j]
        if feature.is_numeric:
            require(not np.isinf(column).any(), "training_givens_ holds an infinite number")
        else:
            check_codes(column, "training_givens_", feature.n_levels)


def _checked_samplers(chain: Any, samplers: object) -> dict[Any, ConditionalSampler]:
    """Return the samplers by feature, each checked against the columns that it is given."""
    check_type(samplers, "samplers_", list)
    assert isinstance(samplers, list)
    require(len(samplers) == len(chain.visit_sequence_), "samplers_ are not as many as the features")
    layout, n_rows = chain._layout, chain.training_givens_.shape[0]
    every = Table(layout.features, np.empty((0, len(layout.features)), order="F"))
    for k, (name, sampler) in enumerate(zip(chain.visit_sequence_, samplers), layout.n_given):
        check_type(sampler, "samplers_", ConditionalSampler)
        _check_storable(name, sampler)
        given, target = chain._given(every, k).features, layout.features[k]
        try:
            sampler.check_target(target)
            if isinstance(sampler, LeafDonorSampler):
                sampler.name_columns(given, target)
            sampler.check_state(given, target, n_rows)
        except MCCEError as error:
            raise InputError(f"the sampler of {name!r}: {error}") from None
    return dict(zip(chain.visit_sequence_, samplers))
