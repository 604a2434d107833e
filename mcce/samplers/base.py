"""The contract of a conditional: p(target | given), fitted once, drawn from row by row.

A conditional *supports* a value (`ConditionalSampler.supports`) if its probability, or that of values at least as
extreme, is above `IMPOSSIBLE`. A sampler that returns training values also supports numbers inside the range of what it
can draw for the row, no farther from the nearest of these than their local spacing: the median gap between neighbours,
one for each training row (the lower of two medians; 0 with fewer than three values).
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

IMPOSSIBLE = 1e-12
REACH = 7.034483825301131  # standard deviations: a normal draw is farther out, on one side, with probability IMPOSSIBLE


def local_spacing(drawable: Floats, weights: Floats | None = None) -> float:
    """Return the local spacing of sorted values; weights count as copies, whose gaps are 0."""
    if weights is None:
        return float(np.quantile(np.diff(drawable), 0.5, method="lower")) if drawable.size > 2 else 0.0
    copies = max(int(weights.sum()), drawable.size)
    wanted = (copies - 2) // 2 - (copies - drawable.size)
    return float(np.sort(np.diff(drawable))[wanted]) if copies > 2 and wanted >= 0 else 0.0


def distance_to(drawable: Floats, values: Floats) -> Floats:
    """Return how far each value is from the nearest of some sorted ones, of which there is at least one."""
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
    """Return whether values are supported by those that the draw comes from; a missing one is not.

    Parameters
    ----------
    drawable : array
        Values that the draw comes from, one for each training row, in any order; missing ones do not count.
    values : array
    is_number : bool
        Whether they are numbers; a level is supported by itself only.
    slack : float or array
        What rounding may add to a distance.
    weights : array or None
        Of the training rows, if they have any.
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
    """Return ``supported(drawable[first:after], values)``, where each value has its own part of them.

    A part may be in pieces: `first` and `after` then have a column for each.
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


__all__ = [
    "BASE_MEASURES",
    "BaseMeasure",
    "Bools",
    "ConditionalSampler",
    "Floats",
    "Ints",
    "RestrictedDraw",
    "Within",
]

Self = TypeVar("Self", bound="ConditionalSampler")

BaseMeasure = Literal["counting", "lebesgue", "mixed"]
BASE_MEASURES: tuple[BaseMeasure, ...] = ("counting", "lebesgue", "mixed")
REJECTION_ROUNDS = 200


class ConditionalSampler(Parameters, ABC):
    """A model of one column given others: p(target | given).

    To write one, subclass this and implement two methods; everything else has a working default or refuses clearly.

    ``fit(given, target)``
        `given` is a `Table`: ``given.matrix`` is a float64 matrix (rows, columns) in which numbers stand for
        themselves, levels are codes 0, 1, ... and NaN is missing; ``given.features[j]`` says what column j is
        (``kind`` is "numeric", "categorical" or "ordered"; ``levels``). It may have no columns at all. `target` is a
        `Column`: ``target.values`` and ``target.feature``. Return `self`. Learned state goes into attributes with a
        trailing underscore; constructor parameters stay as they are.
    ``sample(given, rng)``
        Return one float64 draw for each row of `given` (the same columns as in `fit`), encoded like the target: a level
        code that exists, a number, or NaN where the training target was missing. All randomness comes from `rng`
        (`mcce.rng.RowStreams`): ``rng.uniform()``, ``rng.normal()``, ``rng.integer(high)``, ``rng.categorical(p)`` each
        give one number per row. So a row's draw never depends on the rows beside it. If it takes `within`, it returns
        ``self.sample_within(given, rng, within).values`` then.

    Attributes
    ----------
    handles : set of str
        Kinds of target that the sampler models; the chain checks it once, before fitting.
    handles_missing : bool
        Whether missing values may stand in the givens and in the target.
    thread_safe : bool
        Whether `fit` and `sample` of different objects, and `sample` of one, may run in several threads. Each thread of
        a chain has one BLAS thread, because small problems wait longer for several than they gain.
    leaves_one_out : bool
        Whether `log_density` can leave a training row out; without it, `training_rows` is refused.
    draws_observed : bool
        Whether every number drawn is a value of the training target. The chain puts other numbers on the column's
        grid: whole numbers for an integer dtype or dates, as many decimals as the training values have.
    carries_over : bool
        Whether the sampler leaves something for the next one of a chain: it then implements `sample_carrying`.
    ignores_given : bool
        Whether the draws do not depend on the givens, on purpose; `mcce.testing` then does not expect them to.
    numbers : "any", "positive", "counts" or "shares"
        Which numeric targets the sampler models: any numbers, positive ones, whole ones from 0, or numbers strictly
        between 0 and 1; `fit` refuses others. `mcce.testing` chooses its targets by it.
    takes_weights : bool or "counts"
        Whether `fit` heeds ``target.weights``, which are None or the positive weights of the training rows: a row of
        weight 2 counts as two (`mcce.table.weights`); "counts": whole numbers only. A chain with weights refuses
        samplers that do not.
    discloses, dispensable, unstorable : str, tuple of str or None, str
        What a file tells of the training values; the attributes that it can draw without, for a file without training
        values; why it cannot be stored. See `mcce.storage.learned`. All that `fit` keeps in attributes with a trailing
        underscore is stored: arrays, numbers, text, lists, tuples, dicts, and objects of classes that
        `mcce.storage.state` knows.

    Notes
    -----
    Attributes above belong to the class. These methods are optional:

    ``sample_within(given, rng, within)``
        A draw from the conditional restricted to what `within` (`mcce.Within`) allows: values, missing ones where they
        are allowed, a mask of the rejected rows, of which nothing that is allowed can be drawn, and, if it is
        `weighted`, the log probability of what is allowed. The default draws again until the value is allowed, to the
        second time for an unbiased estimate of that probability (`mcce.samplers.restricted`); it rejects a row after
        200 draws. Override it for something exact; without a `log_mass` the chain takes the default's estimate.
    ``sample_carrying(given, rng, carried)``
        A draw, and what the chain gives to its next sampler that takes it, for a sampler with ``carries_over``.
        `carried` is what the one before left, None at the beginning of a block of rows, and may come from another
        class. Where some rows of a block are restricted, the chain asks it for ``carried.without(rows)``, and hands on
        nothing if it has no such method.
    ``seed_fit(key)``
        Called by the chain before `fit`, with a key that it derives from its own seed and the name of the target: what
        is random in `fit` comes from `fit_seed(random_state)`, so that chains with different seeds differ in it too. A
        sampler that is fitted alone has its `random_state` only.
    ``supports(given, values)``
        Could the conditional have produced this value? True where it could, and for numbers also between the training
        values that a draw comes from, no farther from one than their local spacing: `mcce.samplers.base` defines it,
        and has the functions. What has a probability below 1e-12 counts as impossible. A missing value is supported
        where a draw may be missing. Needed for anchored draws.
    ``log_density(given, values, training_rows=None)``
        Log density (numbers) or log probability (levels, missing values) of each value. `training_rows` are the
        positions of the rows among the training rows: each row is then left out of what its own density stands on.
    ``ranks(given, values, rng)``, ``at_ranks(given, u)``
        The conditional distribution function at the value of each row, randomised within point masses, levels and
        missing values by one call of ``rng.uniform()``, and its inverse: `mcce.samplers.ranks` defines both. Needed to
        keep what is special about a row under an intervention (`mcce.ChainModel.intervene`).
    ``distribution(given)``
        `mcce.samplers.ranks.DistributionFunctions` of the rows. The defaults of `ranks` and `at_ranks` follow from it,
        so that implementing this method is enough.
    ``base_measure()``
        What `log_density` is a density of, once fitted, missing values left aside: "counting" (probabilities; always so
        for levels), "lebesgue" (numbers, in encoded units), or "mixed" (probabilities of the numbers with point mass, a
        density of the others). Only densities with the same base measure can be compared.
    ``summary()``
        What was learned, as text: a table of coefficients, a tree, or what the state discloses.
    ``plain_params()``
        The parameters as a file holds them: those of `get_params`, objects replaced by texts that the constructor takes
        as well.
    ``check_state(given, target, n_rows)``
        Refuse, by an `InputError`, a state that does not belong to these features or to so many training rows. A chain
        that is loaded calls it before anything is drawn, since somebody may have changed the file. The default checks
        the attributes that are declared (`mcce.storage.fields.learned`); the lengths "rows" and "levels" are those of
        the training rows and of the target's levels.

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

    What a chain calls, with what (`mcce.table.Table`, `mcce.table.Column`):

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

    `mcce.testing.check_sampler` tells whether a sampler keeps this contract.
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
    discloses: ClassVar[str] = "a state of its own, which may be training values"
    dispensable: ClassVar[tuple[str, ...] | None] = None
    unstorable: ClassVar[str] = ""

    _fit_key: int | None = None

    @abstractmethod
    def fit(self: Self, given: Table, target: Column) -> Self:
        """Learn p(target | given)."""

    @abstractmethod
    def sample(self, given: Table, rng: RowStreams, within: Within | None = None) -> Floats:
        """Draw one value for each row of `given`, restricted to `within` if that is given."""

    def seed_fit(self, key: int) -> None:
        """Take the chain's key for what is random in `fit`."""
        self._fit_key = key

    def fit_seed(self, random_state: int | None) -> int:
        """Return the seed of what is random in `fit`: from `random_state` and the chain's key, if there is one."""
        seed = resolve_seed(random_state)
        return seed if self._fit_key is None else derive_key(self._fit_key, seed)

    def sample_within(self, given: Table, rng: RowStreams, within: Within) -> RestrictedDraw:
        """Draw one allowed value for each row, and say of which rows none can be drawn."""

        def draw(waiting: Ints, attempt: int) -> RestrictedDraw:
            tried = self.sample(given.take(waiting), rng.child("attempt", attempt).take(waiting))
            mass = np.zeros(waiting.size) if within.weighted else None
            return RestrictedDraw(tried, ~within.take(waiting).allows(tried), mass)

        return draw_until_allowed(draw, given.n_rows, REJECTION_ROUNDS, estimate=within.weighted)

    def sample_carrying(self, given: Table, rng: RowStreams, carried: object) -> tuple[Floats, object]:
        """Draw one value for each row, going on from what the sampler before it left; return also what is left."""
        raise SamplerError(Value(self), " leaves nothing for the next sampler; call sample().")

    def supports(self, given: Table, values: Floats) -> Bools:
        """Return whether the conditional could have produced each value, or a number as close as training values."""
        raise SamplerError(
            Value(self),
            " cannot tell which values its conditional supports; use a sampler that implements "
            f"supports() ({samplers_with('supports')}).",
        )

    def log_density(self, given: Table, values: Floats, training_rows: Ints | None = None) -> Floats:
        """Return the log density or log probability of each value; of training rows, without each row itself."""
        raise SamplerError(
            Value(self),
            f" has no density; use a sampler that implements log_density() ({samplers_with('log_density')}).",
        )

    def distribution(self, given: Table) -> DistributionFunctions:
        """Return the conditional distribution function of each row, and its inverse."""
        raise SamplerError(
            Value(self),
            " has no distribution function, so that values have no ranks; use a sampler that has "
            f"({samplers_with('distribution', 'ranks')}).",
        )

    def ranks(self, given: Table, values: Floats, rng: RowStreams) -> Floats:
        """Return the rank of each row's value in its conditional distribution: uniform for draws."""
        return self.distribution(given).ranks(np.asarray(values, dtype=np.float64), rng.uniform())

    def at_ranks(self, given: Table, u: Floats) -> Floats:
        """Return the value at rank `u` of each row's conditional distribution, the inverse of `ranks`."""
        return self.distribution(given).at(np.asarray(u, dtype=np.float64))

    def base_measure(self) -> BaseMeasure:
        """Return what `log_density` is a density of: "counting", "lebesgue" or "mixed"."""
        raise SamplerError(
            f"{self!r} does not say what its density is with respect to; use a sampler that implements base_measure() "
            f"({samplers_with('base_measure')})."
        )

    @property
    def has_coarse_probabilities(self) -> bool:
        """Whether `log_density` of counted numbers says little of the draws, as the shares of three donors do."""
        return False

    def summary(self) -> Summary:
        """Return what was learned, as text."""
        if not learned_attributes(self):
            raise exceptions.NotFittedError(f"{self!r} is not fitted; call fit(given, target) first.")
        return Summary(f"{self!r} holds {disclosed(self)}.")

    def plain_params(self) -> dict[str, Any]:
        """Return the parameters as a file holds them."""
        return self.get_params()

    def check_state(self, given: Sequence[Feature], target: Feature, n_rows: int) -> None:
        """Refuse a state that does not belong to these features: attributes that do not hold what they declare."""
        check_fields(self, rows=n_rows, levels=target.n_levels)

    # ---- what follows is the same for every sampler

    def clone(self: Self) -> Self:
        """Return an unfitted sampler with the same parameters."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_is_fitted__(self) -> bool:
        return bool(learned_attributes(self))

    def check_target(self, feature: Feature) -> None:
        """Refuse a target that the class does not declare to handle."""
        if feature.kind not in self.handles:
            raise SamplerError(
                Value(self),
                f" cannot model {feature.name!r}: it is {feature.kind}, and the sampler handles "
                f"{listing(sorted(self.handles))}. Choose another sampler for it.",
            )

    def check_weights(self, feature: Feature) -> None:
        """Refuse weights of training rows, unless the class declares to heed them."""
        if not self.takes_weights:
            raise SamplerError(
                Value(self),
                f" for {feature.name!r} does not take ",
                Parameter("sample_weight"),
                ", and would learn from all rows alike; use a sampler that does "
                f"({SAMPLERS.names_that(lambda cls: cls.takes_weights)}), or leave ",
                Parameter("sample_weight"),
                " out.",
            )

    def refuse_training_rows(self, training_rows: Ints | None) -> None:
        """Refuse to leave training rows out of a density that stands on all of them."""
        if training_rows is not None:
            raise SamplerError(
                f"{self!r} cannot leave a training row out of its density; ask for the density of new rows, or use a "
                f"sampler that can ({samplers_that_leave_one_out()})."
            )

    def check_fitted(self, attribute: str) -> None:
        """Refuse a call that needs `fit` first."""
        if not hasattr(self, attribute):
            raise exceptions.NotFittedError(f"{self!r} is not fitted; call fit(given, target) first.")


def _register(name: str, sampler: Any) -> None:
    """Register a sampler class, after a look that it is one."""
    if not (isinstance(sampler, type) and issubclass(sampler, ConditionalSampler)):
        raise InputError(f"register_sampler({name!r}, ...) got {sampler!r}; it needs a subclass of ConditionalSampler.")
    if name in RESERVED:
        raise SamplerError(f"the sampler name {name!r} has a meaning of its own in a chain; choose another name.")
    SAMPLERS.add(name, sampler)


RESERVED = ("auto", "*")  # "auto": to be chosen by evidence; "*": the features that are not named
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
    """Return the names of the samplers that have one of some optional methods, for a message."""
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
    """Return the names of the samplers that draw from at least so many training rows, for a message."""
    return SAMPLERS.names_that(lambda cls: "min_donors" in inspect.signature(cls.__init__).parameters)


def samplers_without_donors() -> str:
    """Return the names of the samplers that can be stored without training values, for a message."""
    return SAMPLERS.names_that(lambda cls: cls.dispensable is not None)
