"""The contract of a conditional p(target | given), and the registered samplers.

A sampler implements `fit` and `distribution`, or `fit` and `sample`; everything else follows from the distribution
(`mcce.samplers.distributions`). Other modules call `check_problem` before `fit`, and `distribution_of` afterwards: it
also serves samplers that only draw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from mcce._utils import Floats, Ints
from mcce.exceptions import InputError, NotFittedError, did_you_mean, listing, spell
from mcce.rng import RowStreams
from mcce.samplers.distributions import Distribution, Sampled
from mcce.table import Column, Feature, Table

Self = TypeVar("Self", bound="ConditionalSampler")
Factory = TypeVar("Factory", bound=Callable[..., Any])


class ConditionalSampler(BaseEstimator, ABC):  # type: ignore[misc]
    """A model of one column given others: p(target | given).

    ``fit(given, target)``
        `given` is a `Table`: ``given.matrix`` is a float64 matrix (rows, columns) of numbers, level codes 0, 1, ... and
        NaN for missing values; ``given.features[j]`` describes column j. It may have no columns. `target` is a
        `Column`: ``target.values`` and ``target.feature``. Store what is learned in attributes with a trailing
        underscore, leave the parameters of the constructor as they are, and return `self`.
    ``distribution(given)``
        The conditional distribution of each row of `given` (the same columns as in `fit`): `Levels`, `Donors`,
        `Continuous` or `Hurdle`. No random numbers.
    ``sample(given, rng)``
        In place of `distribution`: one draw for each row, encoded like the target. All randomness comes from `rng`
        (`mcce.rng.RowStreams`): ``rng.uniform()``, ``rng.normal()``, ``rng.integer(high)`` and ``rng.categorical(p)``
        give one number for each row. Such a sampler has no density; restricted draws are repeated until they are
        allowed, at most 200 times, and numbers are rounded to the column's grid.

    Attributes
    ----------
    handles : frozenset of str
        Kinds of target: "numeric", "ordered", "categorical".
    accepts_missing : bool
        Whether the givens may have missing values.
    accepts_missing_target : bool
        Whether the target may have them, as one more donor. For other samplers the chain models P(missing | given) by
        "logreg", and fits the sampler to the known rows.

    Notes
    -----
    Randomness in `fit` comes from a parameter `random_state`, whose default is None: a chain then sets it on its clone.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce import ConditionalSampler
    >>> class RoundedNormal(ConditionalSampler):
    ...     '''A normal distribution that ignores the givens.'''
    ...     handles = frozenset({"numeric"})
    ...     def fit(self, given, target):
    ...         self.mean_, self.sd_ = float(np.mean(target.values)), float(np.std(target.values))
    ...         return self
    ...     def sample(self, given, rng):
    ...         return self.mean_ + self.sd_ * rng.normal()
    >>> RoundedNormal()
    RoundedNormal()

    `mcce.testing.check_sampler` checks whether a sampler fulfils this contract.
    """

    handles: ClassVar[frozenset[str]] = frozenset({"numeric", "ordered", "categorical"})
    accepts_missing: ClassVar[bool] = True
    accepts_missing_target: ClassVar[bool] = False

    @abstractmethod
    def fit(self: Self, given: Table, target: Column) -> Self:
        """Learn p(target | given)."""

    def distribution(self, given: Table) -> Distribution:
        """Return the conditional distribution of each row of `given`."""
        name = type(self).__name__
        raise InputError(f"{name} implements sample() only, so it has no distribution; implement distribution(given).")

    def sample(self, given: Table, rng: RowStreams) -> Floats:
        """Draw one value for each row of `given`."""
        return _unfitted_is_an_error(self, self.distribution, given).sample(rng)[0]


def has_distribution(sampler: ConditionalSampler) -> bool:
    """Return whether the sampler implements `distribution`, so that it has densities."""
    return type(sampler).distribution is not ConditionalSampler.distribution


def distribution_of(sampler: ConditionalSampler, given: Table, feature: Feature) -> Distribution:
    """Return the conditional distributions of a fitted sampler; `feature` is its target.

    For a sampler that implements `sample` only, they can only be drawn from.
    """
    check_given(sampler, given, feature)
    if has_distribution(sampler):
        return _unfitted_is_an_error(sampler, sampler.distribution, given)
    if type(sampler).sample is ConditionalSampler.sample:
        raise InputError(f"{type(sampler).__name__} implements neither distribution(given) nor sample(given, rng).")

    def draw(rows: Ints, rng: RowStreams) -> Floats:
        is_all = rows.size == given.n_rows and bool((rows == np.arange(rows.size)).all())
        return _unfitted_is_an_error(sampler, sampler.sample, given if is_all else given.take(rows), rng)

    return Sampled(draw, np.arange(given.n_rows), feature, type(sampler).__name__)


def _unfitted_is_an_error(sampler: ConditionalSampler, method: Callable[..., Any], *arguments: Any) -> Any:
    """Call a method; a missing attribute of a sampler without learned attributes means that it is not fitted."""
    try:
        return method(*arguments)
    except AttributeError:
        check_fitted(sampler)
        raise


def check_fitted(sampler: ConditionalSampler) -> None:
    """Raise `NotFittedError` if the sampler has no attribute with a trailing underscore."""
    if not any(name.endswith("_") and not name.startswith("_") for name in vars(sampler)):
        raise NotFittedError(f"{type(sampler).__name__} is not fitted; call fit(given, target) first.")


def check_problem(sampler: ConditionalSampler, given: Table, target: Column) -> None:
    """Raise if the sampler cannot be fitted to this target given these columns."""
    feature, name = target.feature, type(sampler).__name__
    if feature.kind not in sampler.handles:
        kinds = " and ".join(sorted(sampler.handles))
        raise InputError(
            f"{name} does not model {feature.kind} targets such as column {spell(feature.name)} (it models {kinds}); "
            "choose another sampler for this column."
        )
    if not sampler.accepts_missing_target and np.isnan(target.values).any():
        raise InputError(
            f"{name} does not model missing values, and column {spell(feature.name)} has "
            f"{int(np.isnan(target.values).sum())}; fit it to the known rows, or use a chain, which does."
        )
    check_given(sampler, given, feature)


def check_given(sampler: ConditionalSampler, given: Table, target: Feature) -> None:
    """Raise if the givens have missing values that the sampler does not accept."""
    if sampler.accepts_missing:
        return
    with_missing = [f.name for f, values in zip(given.features, given.matrix.T) if np.isnan(values).any()]
    if with_missing:
        raise InputError(
            f"{type(sampler).__name__}, the sampler of column {spell(target.name)}, does not accept missing values, "
            f"and there are some in {listing(with_missing)}; fill them, or choose another sampler for this column."
        )


# ---------------------------------------------------------------------------------------------------------- registry

_REGISTRY: dict[str, Callable[..., ConditionalSampler]] = {}


def register_sampler(name: str) -> Callable[[Factory], Factory]:
    """Register a sampler under a name: a decorator of its class, or of a function that makes one.

    Examples
    --------
    >>> import mcce
    >>> @mcce.register_sampler("my_marginal")
    ... class MyMarginal(mcce.samplers.MarginalSampler):
    ...     '''A sampler of one's own.'''
    >>> "my_marginal" in mcce.available_samplers()
    True
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"register_sampler got the name {spell(name)}; give a text.")

    def register(factory: Factory) -> Factory:
        if name in _REGISTRY and _place(_REGISTRY[name]) != _place(factory):
            raise InputError(f"the sampler name {name!r} is taken by {_REGISTRY[name].__name__}; choose another name.")
        if isinstance(factory, type) and not issubclass(factory, ConditionalSampler):
            raise InputError(f"{factory.__name__} is not a subclass of ConditionalSampler, so it cannot be registered.")
        _REGISTRY[name] = factory
        return factory

    return register


def _place(factory: Any) -> tuple[str, str]:
    return factory.__module__, factory.__qualname__


def available_samplers() -> list[str]:
    """Return the registered names, sorted.

    Examples
    --------
    >>> import mcce
    >>> mcce.available_samplers()[:3]
    ['beta', 'cart', 'copula']
    """
    return sorted(_REGISTRY)


def make_sampler(sampler: Any) -> ConditionalSampler:
    """Return an unfitted sampler for a registered name, or for an object or class of `ConditionalSampler`.

    Examples
    --------
    >>> from mcce.samplers import CartSampler, make_sampler
    >>> make_sampler("cart"), make_sampler(CartSampler(min_leaf=20))
    (CartSampler(), CartSampler(min_leaf=20))
    """
    if isinstance(sampler, str):
        if sampler not in _REGISTRY:
            raise InputError(f"there is no sampler {sampler!r}; {did_you_mean(sampler, available_samplers())}")
        return _REGISTRY[sampler]()
    if isinstance(sampler, ConditionalSampler):
        return clone(sampler)
    if isinstance(sampler, type) and issubclass(sampler, ConditionalSampler):
        return sampler()
    raise InputError(
        f"a sampler is {spell(sampler)}; give a registered name ({listing(available_samplers(), 30)}), or an object or "
        "class of ConditionalSampler."
    )
