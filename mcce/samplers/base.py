"""The contract of a conditional p(target | given).

A conditional *supports* a value (`ConditionalSampler.supports`) if its probability, or that of values at least as
extreme, is above `IMPOSSIBLE`. A sampler that returns training values also supports numbers inside the range of the
values it can draw for the row, if the nearest of these is within their *local spacing*: the median gap between
neighbours, with one value per training row (the lower of two medians; 0 with fewer than three values).
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from mcce import exceptions
from mcce.base.arrays import Bools, Floats, Ints
from mcce.base.parameters import Parameters
from mcce.base.registry import Registry
from mcce.exceptions import InputError, SamplerError, listing
from mcce.rng import RowStreams, derive_key, resolve_seed
from mcce.samplers.ranks import DistributionFunctions
from mcce.samplers.restricted import RestrictedDraw, Within, draw_until_allowed
from mcce.samplers.summary import Summary
from mcce.storage.fields import check_fields
from mcce.storage.learned import disclosed, learned_attributes
from mcce.table import KINDS, Column, Feature, Table
from mcce.table.weights import sorted_with_weights
from mcce.wording import Parameter, Value

__all__ = ["BASE_MEASURES", "BaseMeasure", "ConditionalSampler", "RestrictedDraw", "Within"]

IMPOSSIBLE = 1e-12
REACH = 7.034483825301131  # standard deviations: a normal draw is farther out, on one side, with probability IMPOSSIBLE


def local_spacing(drawable: Floats, weights: Floats | None = None) -> float:
    """Return the local spacing of sorted values; weights count as copies, with gaps of 0."""
    if weights is None:
        return float(np.quantile(np.diff(drawable), 0.5, method="lower")) if drawable.size > 2 else 0.0
    copies = max(int(weights.sum()), drawable.size)
    wanted = (copies - 2) // 2 - (copies - drawable.size)
    return float(np.sort(np.diff(drawable))[wanted]) if copies > 2 and wanted >= 0 else 0.0


def distance_to(drawable: Floats, values: Floats) -> Floats:
    """Return the distance of each value to the nearest of some sorted values (at least one)."""
    after = np.searchsorted(drawable, values)
    above, below = drawable[np.minimum(after, drawable.size - 1)], drawable[np.maximum(after - 1, 0)]
    return np.minimum(np.abs(above - values), np.abs(values - below))


def supported_by(
    drawable: Floats,
    values: Floats,
    *,
    is_number: bool,
    slack: Floats | float = 0.0,
    weights: Floats | None = None,
) -> Bools:
    """Return whether values are supported by the drawable ones; missing values are not.

    Parameters
    ----------
    drawable : array
        Values that can be drawn, one for each training row, in any order; missing ones are ignored.
    values : array
    is_number : bool
        Whether the values are numbers; levels have no neighbours.
    slack : float or array
        Tolerance for rounding of distances.
    weights : array or None
        Weights of the training rows.
    """
    known = ~np.isnan(drawable)
    drawable, weights = sorted_with_weights(drawable[known], None if weights is None else weights[known])
    if drawable.size == 0:
        return np.zeros(values.size, dtype=bool)
    spacing = local_spacing(drawable, weights) if is_number else 0.0
    inside = (values >= drawable[0] - slack) & (values <= drawable[-1] + slack)
    return np.asarray(inside & (distance_to(drawable, values) <= spacing + slack))


def supported_in_segments(
    supported: Callable[[Floats, Floats], Bools],
    drawable: Floats,
    first: npt.NDArray[np.integer],
    after: npt.NDArray[np.integer],
    values: Floats,
) -> Bools:
    """Return ``supported(drawable[first:after], values)`` with a separate segment for each value.

    A segment may have several pieces: `first` and `after` then have one column per piece.
    """
    found = np.zeros(values.size, dtype=bool)
    n_pieces = first.size // max(values.size, 1)
    parts, part_of_row = np.unique(np.column_stack([first, after]), axis=0, return_inverse=True)
    rows_by_part = np.argsort(part_of_row.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(part_of_row.ravel(), minlength=len(parts)))
    for part, rows in zip(parts, np.split(rows_by_part, ends[:-1])):
        pieces = [drawable[begin:end] for begin, end in zip(part[:n_pieces], part[n_pieces:])]
        found[rows] = supported(np.concatenate(pieces), values[rows])
    return found


Self = TypeVar("Self", bound="ConditionalSampler")

BaseMeasure = Literal["counting", "lebesgue", "mixed"]
BASE_MEASURES: tuple[BaseMeasure, ...] = ("counting", "lebesgue", "mixed")
REJECTION_ROUNDS = 200


class ConditionalSampler(Parameters, ABC):
    """A model of one column given others: p(target | given).

    Subclasses implement two methods; all others have a default or raise an error with the reason.

    ``fit(given, target)``
        `given` is a `Table`: ``given.matrix`` is a float64 matrix (rows, columns) with numbers, level codes 0, 1, ...
        and NaN for missing values; ``given.features[j]`` describes column j (``kind`` is "numeric", "categorical" or
        "ordered"; ``levels``). It may have no columns. `target` is a `Column`: ``target.values`` and
        ``target.feature``. Return `self`. Learned state is stored in attributes with a trailing underscore; constructor
        parameters are not modified.
    ``sample(given, rng)``
        Return one float64 draw for each row of `given` (the same columns as in `fit`), encoded like the target: an
        existing level code, a number, or NaN if the training target has missing values. All randomness comes from `rng`
        (`mcce.rng.RowStreams`): ``rng.uniform()``, ``rng.normal()``, ``rng.integer(high)``, ``rng.categorical(p)`` each
        give one number per row, so the draw of a row does not depend on other rows. With `within`, return
        ``self.sample_within(given, rng, within).values``.

    Attributes
    ----------
    handles : set of str
        Kinds of target that the sampler models; the chain checks it before fitting.
    handles_missing : bool
        Whether givens and target may have missing values.
    thread_safe : bool
        Whether `fit` and `sample` of different objects, and `sample` of one object, may run in several threads. Each
        thread of a chain uses one BLAS thread, which is faster for small problems.
    leaves_one_out : bool
        Whether `log_density` can leave a training row out; otherwise `training_rows` raises an error.
    draws_observed : bool
        Whether draws are values of the training target. The chain rounds other numbers to the grid of the column: whole
        numbers for an integer dtype or dates, else the decimals of the training values.
    carries_over : bool
        Whether the sampler passes state to the next sampler of a chain, by `sample_carrying`.
    ignores_given : bool
        Whether draws are independent of the givens by design; `mcce.testing` then does not test for dependence.
    numbers : "any", "positive", "counts" or "shares"
        The numeric targets that the sampler models: any numbers, positive ones, counts, or numbers strictly between 0
        and 1; `fit` raises an error for others. `mcce.testing` chooses its targets accordingly.
    takes_weights : bool or "counts"
        Whether `fit` uses ``target.weights``, which are None or the positive weights of the training rows: a row of
        weight 2 counts as two (`mcce.table.weights`); "counts": whole numbers only. A chain with weights raises an
        error for other samplers.
    discloses, dispensable, unstorable : str, tuple of str or None, str
        The training values that a file discloses; the attributes not needed for draws, for a file without training
        values; the reason why the sampler cannot be stored. See `mcce.storage.learned`. All attributes with a trailing
        underscore are stored: arrays, numbers, text, lists, tuples, dicts, and objects of classes registered in
        `mcce.storage.state`.

    Notes
    -----
    The attributes above are class attributes. These methods are optional:

    ``sample_within(given, rng, within)``
        A draw from the conditional restricted to `within` (`mcce.Within`): values, missing where allowed, a mask of the
        rejected rows, which have no allowed value that can be drawn, and, if `weighted`, the log probability of the
        allowed values. The default is rejection sampling with at most 200 draws per row; it draws until the second
        allowed value for an unbiased estimate of the probability (`mcce.samplers.restricted`). Override it for exact
        draws; without a `log_mass` the chain uses the default's estimate.
    ``sample_carrying(given, rng, carried)``
        A draw, and the state passed to the next sampler of the chain with ``carries_over``. `carried` is the state of
        the previous one, None at the beginning of a block of rows, and may come from another class. If some rows of a
        block are restricted, the chain calls ``carried.without(rows)``; without such a method no state is passed.
    ``seed_fit(key)``
        Called by the chain before `fit`, with a key derived from its seed and the name of the target. Randomness in
        `fit` comes from `fit_seed(random_state)`, so that it differs between chains with different seeds. A sampler
        fitted on its own uses its `random_state` only.
    ``supports(given, values)``
        Whether the conditional supports each value, as defined in `mcce.samplers.base`. A missing value is supported if
        a draw may be missing. Needed for anchored draws.
    ``log_density(given, values, training_rows=None)``
        Log density (numbers) or log probability (levels, missing values) of each value. `training_rows` are the
        positions of the rows among the training rows: each row is then left out of its own density.
    ``ranks(given, values, rng)``, ``at_ranks(given, u)``
        The conditional distribution function at the value of each row, randomised within point masses, levels and
        missing values by one call of ``rng.uniform()``, and its inverse, as defined in `mcce.samplers.ranks`. Needed
        for interventions that keep ranks (`mcce.ChainModel.intervene`).
    ``distribution(given)``
        `mcce.samplers.ranks.DistributionFunctions` of the rows, from which the defaults of `ranks` and `at_ranks`
        follow.
    ``base_measure()``
        The base measure of `log_density` after `fit`, apart from missing values: "counting" (probabilities; always for
        levels), "lebesgue" (numbers, in encoded units), or "mixed" (probabilities of numbers with point mass, a density
        of others). Only densities with the same base measure are comparable.
    ``summary()``
        The fitted state as text: a table of coefficients, a tree, or what the state discloses.
    ``plain_params()``
        The parameters for a file: those of `get_params`, with objects replaced by texts that the constructor accepts.
    ``check_parameters()``
        Raise an `InputError` if a parameter is invalid. `check_training(target)` calls it, for the beginning of `fit`.
    ``check_state(given, target, n_rows)``
        Raise an `InputError` if the state does not belong to these features and number of training rows. A loaded chain
        calls it before any draw, because the file may have been changed. The default checks the parameters and the
        declared attributes (`mcce.storage.fields.learned`); the lengths "rows" and "levels" are those of the training
        rows and of the target's levels.

    Examples
    --------
    >>> import numpy as np
    >>> from mcce import ConditionalSampler
    >>> class RoundedNormal(ConditionalSampler):
    ...     '''A normal distribution that ignores the givens, rounded.'''
    ...     handles = {"numeric"}
    ...     ignores_given = True
    ...     def fit(self, given, target):
    ...         self.mean_, self.sd_ = float(np.mean(target.values)), float(np.std(target.values))
    ...         return self
    ...     def sample(self, given, rng):
    ...         self.check_fitted("mean_")
    ...         return np.round(self.mean_ + self.sd_ * rng.normal())
    >>> RoundedNormal()
    RoundedNormal()

    The calls of a chain and their arguments (`mcce.table.Table`, `mcce.table.Column`):

    >>> from mcce import CartSampler, GaussianCopulaSampler, Within, datasets
    >>> from mcce.rng import RowStreams
    >>> from mcce.table import Column, Schema
    >>> X = datasets.load_loans(300).X[["age", "salary"]]
    >>> table = Schema.from_data(X).encode(X)
    >>> given, target = table.select([0]), Column(table.features[1], table.matrix[:, 1])
    >>> sampler = CartSampler().fit(given, target)
    >>> rich = Within(low=np.full(300, 60_000.0))
    >>> drawn = sampler.sample_within(given, RowStreams.from_seed(1, 300), rich)
    >>> bool((drawn.values[~drawn.rejected] >= 60_000).all())
    True
    >>> sampler.base_measure(), sampler.log_density(given, target.values).shape
    ('mixed', (300,))
    >>> bool(sampler.supports(given, target.values).all())
    True
    >>> ranks = sampler.ranks(given, target.values, RowStreams.from_seed(1, 300))
    >>> bool((sampler.at_ranks(given, ranks) == target.values).all())
    True
    >>> copula = GaussianCopulaSampler().fit(given, target)
    >>> values, latents = copula.sample_carrying(given, RowStreams.from_seed(1, 300), None)
    >>> values.shape
    (300,)

    `mcce.testing.check_sampler` checks whether a sampler satisfies this contract.
    """

    handles: ClassVar[frozenset[str] | set[str]] = frozenset(KINDS)
    handles_missing: ClassVar[bool] = False
    thread_safe: ClassVar[bool] = False
    leaves_one_out: ClassVar[bool] = False
    draws_observed: ClassVar[bool] = False
    carries_over: ClassVar[bool] = False
    ignores_given: ClassVar[bool] = False
    takes_weights: ClassVar[bool | Literal["counts"]] = False
    numbers: ClassVar[Literal["any", "positive", "counts", "shares"]] = "any"
    discloses: ClassVar[str] = "a state that may contain training values"
    dispensable: ClassVar[tuple[str, ...] | None] = None
    unstorable: ClassVar[str] = ""

    _fit_key: int | None = None

    @abstractmethod
    def fit(self: Self, given: Table, target: Column) -> Self:
        """Learn p(target | given)."""

    @abstractmethod
    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw one value for each row of `given`, restricted to `within` if it is not None."""

    def seed_fit(self, key: int) -> None:
        """Set the chain's key for the randomness of `fit`."""
        self._fit_key = key

    def fit_seed(self, random_state: int | None) -> int:
        """Return the seed of the randomness of `fit`, from `random_state` and the chain's key, if set."""
        seed = resolve_seed(random_state)
        return seed if self._fit_key is None else derive_key(self._fit_key, seed)

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one allowed value for each row; reject rows without one."""

        def draw(waiting: Ints, attempt: int) -> RestrictedDraw:
            tried = self.sample(given.take(waiting), rng.child("attempt", attempt).take(waiting))
            mass = np.zeros(waiting.size) if within.weighted else None
            return RestrictedDraw(tried, ~within.take(waiting).allows(tried), mass)

        return draw_until_allowed(draw, given.n_rows, REJECTION_ROUNDS, estimate=within.weighted)

    def sample_carrying(self, given: Table, rng: RowStreams, carried: object) -> tuple[Floats, object]:
        """Draw one value for each row, using the state of the previous sampler; also return the new state."""
        raise SamplerError(Value(self), " passes no state to the next sampler; call sample().")

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the conditional supports each value."""
        raise SamplerError(
            Value(self),
            f" does not implement supports(); use a sampler that does ({samplers_with('supports')}).",
        )

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log density or log probability of each value; training rows are left out of their own density."""
        raise SamplerError(
            Value(self),
            f" has no density; use a sampler that implements log_density() ({samplers_with('log_density')}).",
        )

    def distribution(self, given: Table) -> DistributionFunctions:
        """Return the conditional distribution function of each row, and its inverse."""
        raise SamplerError(
            Value(self),
            " has no distribution function, so values have no ranks; use a sampler that has one "
            f"({samplers_with('distribution', 'ranks')}).",
        )

    def ranks(self, given: Table, values: Floats, rng: RowStreams) -> Floats:
        """Return the rank of each row's value in its conditional distribution: uniform for draws."""
        return self.distribution(given).ranks(np.asarray(values, dtype=np.float64), rng.uniform())

    def at_ranks(self, given: Table, u: Floats) -> Floats:
        """Return the value at rank `u` of each row's conditional distribution, the inverse of `ranks`."""
        return self.distribution(given).at(np.asarray(u, dtype=np.float64))

    def base_measure(self) -> BaseMeasure:
        """Return the base measure of `log_density`: "counting", "lebesgue" or "mixed"."""
        raise SamplerError(
            f"{self!r} does not implement base_measure(); use a sampler that does ({samplers_with('base_measure')})."
        )

    @property
    def has_coarse_probabilities(self) -> bool:
        """Whether probabilities of numbers with point mass are too coarse to be compared, as shares of three donors."""
        return False

    def summary(self) -> Summary:
        """Return the fitted state as text."""
        if not learned_attributes(self):
            raise exceptions.NotFittedError(f"{self!r} is not fitted; call fit(given, target) first.")
        return Summary(f"{self!r} holds {disclosed(self)}.")

    def plain_params(self) -> dict[str, Any]:
        """Return the parameters in the form that is stored."""
        return self.get_params()

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        """Raise if a parameter is invalid, or the state does not belong to these features and number of rows."""
        self.check_parameters()
        check_fields(self, rows=n_rows, levels=target.n_levels)

    def clone(self: Self) -> Self:
        """Return an unfitted sampler with the same parameters."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_is_fitted__(self) -> bool:
        return bool(learned_attributes(self))

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid; by default all values are valid."""

    def check_training(self, target: Column) -> None:
        """Raise at the beginning of `fit` if a parameter is invalid, or the target has no rows or another kind."""
        self.check_parameters()
        self.check_target(target.feature)
        if not target.values.size:
            raise InputError(Value(self), f" got no rows to learn {target.feature.name!r} from.")

    def check_target(self, feature: Feature) -> None:
        """Raise if the class does not handle the kind of the target."""
        if feature.kind not in self.handles:
            raise SamplerError(
                Value(self),
                f" cannot model {feature.name!r}: it is {feature.kind}, and the sampler handles "
                f"{listing(sorted(self.handles))}. Choose another sampler for it.",
            )

    def check_weights(self, feature: Feature) -> None:
        """Raise unless the class takes weights of training rows."""
        if not self.takes_weights:
            raise SamplerError(
                Value(self),
                f" for {feature.name!r} does not take ",
                Parameter("sample_weight"),
                f"; use a sampler that does ({SAMPLERS.names_that(lambda cls: cls.takes_weights)}), or leave ",
                Parameter("sample_weight"),
                " out.",
            )

    def refuse_training_rows(self, training_rows: Ints | None) -> None:
        """Raise if training rows are to be left out of a density that cannot do so."""
        if training_rows is not None:
            raise SamplerError(
                f"{self!r} cannot leave a training row out of its density; use it for new rows only, or use a "
                f"sampler that can ({samplers_that_leave_one_out()})."
            )

    def check_fitted(self, attribute: str) -> None:
        """Raise if the sampler is not fitted."""
        if not hasattr(self, attribute):
            raise exceptions.NotFittedError(f"{self!r} is not fitted; call fit(given, target) first.")


def _register(name: str, sampler: Any) -> None:
    """Register a sampler class; raise if it is not one."""
    if not (isinstance(sampler, type) and issubclass(sampler, ConditionalSampler)):
        raise InputError(f"register_sampler({name!r}, ...) got {sampler!r}; it needs a subclass of ConditionalSampler.")
    if name in RESERVED:
        raise SamplerError(f"the sampler name {name!r} is reserved in a chain; choose another name.")
    SAMPLERS.add(name, sampler)


RESERVED = ("auto", "*")  # "auto": chosen by held-out rows; "*": all features that are not named
SAMPLERS: Registry[type[ConditionalSampler]] = Registry("sampler", "mcce.samplers", _register, SamplerError)


def refuse_missing(sampler: ConditionalSampler, given: Table, target: Column | None = None) -> None:
    """Raise if a given, or the target, has missing values."""
    columns = [] if given.complete else list(zip(given.features, given.matrix.T))
    columns += [] if target is None else [(target.feature, target.values)]
    holders = [feature.name for feature, values in columns if np.isnan(values).any()]
    if holders:
        raise SamplerError(
            Value(sampler),
            f" does not handle missing values, and {listing(holders)} has some; fill them, or use a sampler that does "
            f"({samplers_that_handle_missing()}).",
        )


def samplers_with(*methods: str) -> str:
    """Return the names of the samplers that implement one of the methods, for a message."""
    return SAMPLERS.names_that(
        lambda cls: any(getattr(cls, method) is not getattr(ConditionalSampler, method) for method in methods)
    )


def samplers_that_handle_missing() -> str:
    """Return the names of the samplers that handle missing values, for a message."""
    return SAMPLERS.names_that(lambda cls: cls.handles_missing)


def samplers_that_leave_one_out() -> str:
    """Return the names of the samplers whose density can leave a training row out, for a message."""
    return SAMPLERS.names_that(lambda cls: cls.leaves_one_out)


def samplers_of_weights() -> str:
    """Return the names of the samplers that take any weights, not only counts, for a message."""
    return SAMPLERS.names_that(lambda cls: cls.takes_weights is True)


def samplers_with_min_donors() -> str:
    """Return the names of the samplers with a parameter `min_donors`, for a message."""
    return SAMPLERS.names_that(lambda cls: "min_donors" in inspect.signature(cls.__init__).parameters)


def samplers_without_donors() -> str:
    """Return the names of the samplers that can be stored without training values, for a message."""
    return SAMPLERS.names_that(lambda cls: cls.dispensable is not None)
